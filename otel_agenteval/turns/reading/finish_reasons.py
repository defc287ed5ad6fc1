"""Interpret the finish reasons of model calls."""

from __future__ import annotations

from ...dialects.step import Step

_BY_ITSELF = frozenset(("stop", "endturn", "completed", "stopsequence"))
_ASKS = frozenset(("toolcalls", "toolcall", "tooluse", "functioncall", "functioncalls"))
_NOT_SAID = frozenset(("", "unknown", "other", "none", "null", "unspecified", "finishreasonunspecified"))
_ALSO_WITH_TOOLS = frozenset(("completed", "complete", "success"))
"""Statuses, such as those of the Responses API, that don't change if the answer requests tools."""
_ALWAYS_STOP = ("gemini", "ollama")
"""Models and servers that report ``stop`` even if they request tools."""


def _folded(reason: str | None) -> str:
    return (reason or "").rsplit(".", 1)[-1].lower().replace("_", "").replace("-", "")


def ends_by_itself(reason: str | None) -> bool:
    return _folded(reason) in _BY_ITSELF


def asks_for_tools(reason: str | None) -> bool:
    """Return True if the model stopped to request tools. The reason doesn't show which ones."""
    return _folded(reason) in _ASKS


def rules_out_tools(step: Step, is_last: bool) -> bool:
    """Return True if the finish reason shows that the call requested no tool. Some models always report the same reason."""
    reason = _folded(step.finish_reason)
    if reason in _NOT_SAID or reason in _ASKS:
        return False
    if is_last:
        return True
    served_by = f"{step.provider or ''} {step.model or ''}".lower()
    return reason not in _ALSO_WITH_TOOLS and not (reason == "stop" and any(name in served_by for name in _ALWAYS_STOP))
