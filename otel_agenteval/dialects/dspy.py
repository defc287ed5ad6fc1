"""Parser for DSPy's spans from OpenInference and OpenTelemetry. Inputs and outputs are the fields in a DSPy signature."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio, literals
from ..core.wellformed import Later, plain
from ..spans.record import SpanRecord
from .attributes import as_text
from .step import AGENT, INNER, TOOL, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"openinference\.instrumentation\.dspy|opentelemetry\.instrumentation\.genai\.dspy")
_MODULE = (".forward", ".aforward")
_TOOL = (".__call__", ".acall")
_CLASSES = frozenset(("ReAct", "ReActV2", "CodeAct", "RLM", "ProgramOfThought", "Avatar"))
"""Names of DSPy's own classes, which aren't agent names."""
_AGENT = re.compile(r"(ReAct\w*|CodeAct|RLM|\w*Agent)\.a?forward$")
ASKED = (
    "question", "query", "user_message", "user_input", "user_query", "user_request", "message", "request", "input", "prompt", "task",
    "text",
)  # fmt: skip
"""Names of fields that contain the user's words, most likely name first."""
_BACKGROUND = frozenset(
    ("context", "history", "trajectory", "passages", "documents", "instructions", "system_prompt", "template")
)
_ANSWERS = ("answer", "response", "reply", "final_answer", "output", "result")
_WORKING = frozenset(("reasoning", "rationale", "trajectory", "completions", "history"))


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return ``AGENT`` for a module such as ReAct, ``INNER`` for ReAct's tool ``finish``, and None for other spans."""
    if name.endswith(_MODULE):
        return AGENT if _AGENT.match(name) else None
    return INNER if name in ("finish.__call__", "finish.acall") else None


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    name = record.name
    if record.scope.startswith("opentelemetry."):
        if step.role == AGENT:
            step.agent = as_text(get("gen_ai.agent.name"))
            step.agent_is_class = step.agent is not None and step.agent.removeprefix("dspy.") in _CLASSES
            raw_input = get("gen_ai.input.messages")
            if raw_input.__class__ is str and "\"{'" in raw_input:
                step.input_messages = Later(_user_message, raw_input)
        return
    if name.endswith(_MODULE):
        if step.role == AGENT:
            step.agent = name.rpartition(".")[0] or None
            step.agent_is_class = step.agent in _CLASSES
        raw_input, raw_output = get("input.value"), get("output.value")
        if raw_input.__class__ is str and raw_input[:1] == "{":
            step.input_messages = Later(user_words, raw_input)
        if raw_output.__class__ is str and raw_output[:1] in '{["':
            step.output_messages = Later(_answer, raw_output)
    elif step.role == TOOL and name.endswith(_TOOL):
        step.tool_name = name.rpartition(".")[0] or None


def user_words(raw: Any) -> Any:
    """Return the user's message from a field such as ``question``, another text field, or ``messages``, in this order."""
    fields, _ = jsonio.loads_or_text(raw) if isinstance(raw, str) else (raw, False)
    while isinstance(fields, dict) and len(fields) == 1:  # ``forward(**inputs)`` is one argument
        inner = next(iter(fields.values()))
        if not isinstance(inner, dict):
            break
        fields = inner
    if not isinstance(fields, dict):
        return None
    texts = {name: value for name, value in fields.items() if isinstance(value, str) and value and name not in _BACKGROUND}
    question = next((texts[name] for name in ASKED if name in texts), None) or next(iter(texts.values()), None)
    return {"role": "user", "content": question} if question is not None else fields.get("messages")


def _user_message(raw: Any) -> Any:
    messages, _ = jsonio.loads_or_text(raw)
    try:
        text = messages[-1]["parts"][0]["content"]
        tree = literals.python_tree(text).body
        pairs = zip(tree.keys, tree.values, strict=True) if isinstance(tree, ast.Dict) else ()
        fields = {
            key.value: plain(value.value)
            for key, value in pairs
            if isinstance(key, ast.Constant) and isinstance(value, ast.Constant)
        }
    except (LookupError, TypeError, ValueError):
        return messages
    return user_words(fields) or messages


def _answer(raw: Any) -> Any:
    value, _ = jsonio.loads_or_text(raw)
    return {"role": "assistant", "content": [{"type": "text", "text": answer_of(value)}]}


def answer_of(value: Any) -> str:
    """Return the text in a field such as ``answer``. Otherwise, return the fields other than reasoning, or their only value."""
    if isinstance(value, Mapping):
        left = {name: inner for name, inner in value.items() if name not in _WORKING}
        named = next((left[name] for name in _ANSWERS if isinstance(left.get(name), str)), None)
        value = named if named is not None else next(iter(left.values())) if len(left) == 1 else left
    return jsonio.text_of(value)
