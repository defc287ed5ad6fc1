"""DSPy, as OpenInference writes it: what a module was given and gave back are the fields of its signature."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .content import Later
from .step import AGENT, INNER, TOOL, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"openinference\.instrumentation\.dspy")
_MODULE = (".forward", ".aforward")
_TOOL = (".__call__", ".acall")
_AGENT = re.compile(r"(ReAct\w*|CodeAct|RLM|\w*Agent)\.a?forward$")
ASKED = (
    "question", "query", "user_message", "user_input", "user_query", "user_request", "message", "request", "input", "prompt", "task",
    "text",
)  # fmt: skip
"""What a field is called that holds the user's words, the surest name first."""
_BACKGROUND = frozenset(
    ("context", "history", "trajectory", "passages", "documents", "instructions", "system_prompt", "template")
)
_ANSWERS = ("answer", "response", "reply", "final_answer", "output", "result")
_WORKING = frozenset(("reasoning", "rationale", "trajectory", "completions", "history"))


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """A module that acts by itself is an agent; ``finish`` is how ReAct ends its loop, no tool. All others state their kind."""
    if name.endswith(_MODULE):
        return AGENT if _AGENT.match(name) else None
    return INNER if name in ("finish.__call__", "finish.acall") else None


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that this dialect has and no dialect before it had."""
    get = record.attributes.get
    name = record.name
    if name.endswith(_MODULE):
        if step.role == AGENT:
            step.agent = name.rpartition(".")[0] or None
        given, gave = get("input.value"), get("output.value")
        if given.__class__ is str and given[:1] == "{":
            step.input_messages = Later(user_words, given)
        if gave.__class__ is str and gave[:1] in '{["':
            step.output_messages = Later(_answer, gave)
    elif step.role == TOOL and name.endswith(_TOOL):
        step.tool_name = name.rpartition(".")[0] or None


def user_words(raw: Any) -> Any:
    """The user's words among named inputs: by the field's name, else the first text that is no background."""
    fields, _ = jsonio.loads_or_text(raw) if isinstance(raw, str) else (raw, False)
    while isinstance(fields, dict) and len(fields) == 1:  # ``forward(**inputs)`` is bound as one
        inner = next(iter(fields.values()))
        if not isinstance(inner, dict):
            break
        fields = inner
    if not isinstance(fields, dict):
        return None
    texts = {name: value for name, value in fields.items() if isinstance(value, str) and value and name not in _BACKGROUND}
    said = next((texts[name] for name in ASKED if name in texts), None) or next(iter(texts.values()), None)
    return {"role": "user", "content": said} if said is not None else fields.get("messages")


def _answer(raw: Any) -> Any:
    """The answer among the output fields: the one that is left without the reasoning, else all of them as an object."""
    value, _ = jsonio.loads_or_text(raw)
    if isinstance(value, dict):
        left = {name: inner for name, inner in value.items() if name not in _WORKING}
        named = next((left[name] for name in _ANSWERS if isinstance(left.get(name), str)), None)
        value = named if named is not None else next(iter(left.values())) if len(left) == 1 else left
    return {"role": "assistant", "content": [{"type": "text", "text": jsonio.text_of(value)}]}
