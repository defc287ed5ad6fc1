"""What the reason why a model ended says."""

from __future__ import annotations

from ...dialects.step import Step

_BY_ITSELF = frozenset(("stop", "endturn", "completed", "stopsequence"))
_ASKS = frozenset(("toolcalls", "toolcall", "tooluse", "functioncall", "functioncalls"))
_NOT_SAID = frozenset(("", "unknown", "other", "none", "null", "unspecified", "finishreasonunspecified"))
_ALSO_WITH_TOOLS = frozenset(("completed", "complete", "success"))
"""A status of the Responses API and its like, which is the same when the answer asks for tools."""
_ALWAYS_STOP = ("gemini", "ollama")
"""Models and servers that end with ``stop`` also where they ask for tools."""


def _folded(reason: str | None) -> str:
    return (reason or "").rsplit(".", 1)[-1].lower().replace("_", "").replace("-", "")


def ends_by_itself(reason: str | None) -> bool:
    """Whether a model had said all that it wanted to say."""
    return _folded(reason) in _BY_ITSELF


def asks_for_tools(reason: str | None) -> bool:
    """Whether a model ended because it asked for tools. That alone does not say for which, and is no call of one."""
    return _folded(reason) in _ASKS


def rules_out_tools(step: Step, is_last: bool) -> bool:
    """Whether why a call ended says that it asked for no tool. Reasons that are always the same say so of the last call only."""
    reason = _folded(step.finish_reason)
    if reason in _NOT_SAID or reason in _ASKS:
        return False
    if is_last:
        return True
    served_by = f"{step.provider or ''} {step.model or ''}".lower()
    return reason not in _ALSO_WITH_TOOLS and not (reason == "stop" and any(name in served_by for name in _ALWAYS_STOP))
