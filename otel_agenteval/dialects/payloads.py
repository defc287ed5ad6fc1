"""Parse tool arguments, tool results, JSON objects, Python literals, and log probabilities."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from ..core import jsonio, literals

_LONGEST_LITERAL = 1_000_000


def literal(value: Any) -> Any:
    """Parse text that is a Python literal or JSON (list, object, or string). Return other values unchanged."""
    if value.__class__ is not str or value[:1] not in ("{", "[", "'", '"') or len(value) > _LONGEST_LITERAL:
        return value
    try:
        return literals.python_literal(value)
    except ValueError:
        return jsonio.loads_or_text(value)[0]


def literal_in(text: str) -> Any:
    try:
        return literals.python_literal(text)
    except ValueError:
        return None


def parsed(raw: Any) -> Any:
    return jsonio.loads_or_text(raw)[0] if raw.__class__ is str else raw


def object_in(raw: Any) -> Mapping[str, Any]:
    value = parsed(raw)
    return value if isinstance(value, Mapping) else {}


def unquoted(raw: Any) -> Any:
    return jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:1] == '"' else raw


_REPR = re.compile(r"""content=('(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")(?: \w+=|$)""", re.DOTALL)


def repr_text(raw: str) -> str:
    """Return the content in the ``str()`` of a LangChain message (``content='…' name='…'``). Return other texts unchanged."""
    found = _REPR.match(raw)
    try:
        return str(literals.python_literal(found.group(1))) if found is not None else raw
    except ValueError:
        return raw


CALL_FIELDS = frozenset(("args", "kwargs", "sanitize_inputs_outputs"))
_LONGEST_ARGUMENTS = 100_000


def arguments_of(raw: Any) -> dict[str, Any] | None:
    """Return a tool call's arguments as a dict. Text is parsed. Return None if the arguments aren't an object."""
    if isinstance(raw, str):
        try:
            raw = jsonio.loads(raw)
        except ValueError:
            is_dict = raw[:1] == "{" and len(raw) <= _LONGEST_ARGUMENTS
            raw = (literal_in(raw) if is_dict else None) or literals.java_value(raw)
        if isinstance(raw, str):  # JSON text inside JSON text
            return arguments_of(raw) if raw[:1] == "{" else None
    if not isinstance(raw, Mapping):
        return None
    inner = raw.get("kwargs")
    return dict(inner if isinstance(inner, Mapping) and raw.keys() <= CALL_FIELDS and not raw.get("args") else raw)


def first_argument(raw: Any) -> Any:
    """Return the query or the first text in JSON arguments, or None if no argument is text. Return other values unchanged."""
    if raw.__class__ is not str or raw[:1] not in '{["':
        return raw
    value, _ = jsonio.loads_or_text(raw)
    if isinstance(value, Mapping):
        args, kwargs = value.get("args"), value.get("kwargs")
        if isinstance(args, list) or isinstance(kwargs, Mapping):
            value = [*(args if isinstance(args, list) else ()), *(kwargs.values() if isinstance(kwargs, Mapping) else ())]
        else:
            value = [value[key] for key in ("query", "question", "input") if key in value] + list(value.values())
    if isinstance(value, list):
        return next((item for item in value if isinstance(item, str)), None)
    return value


TEXT_BLOCK_FIELDS = frozenset(
    ("text", "type", "block_type", "annotations", "_meta", "meta", "cache_control", "citations", "thought")
)
_FUNCTION_RESPONSE = frozenset(("id", "name", "response"))
_RESULT_KEYS = frozenset((
    "toolUseId", "status", "content", "isError", "is_error", "structuredContent", "structured_content", "meta", "_meta", "resultType",
))  # fmt: skip
_WRAPPER_KEYS = ('"content"', '"text"', '"response"')
"""Keys in wrappers around a tool's result. An object or list in JSON text is unwrapped only if it contains one of these keys."""


def unwrap_result(raw: Any) -> Any:
    """Remove the message or content blocks around a tool's result."""
    value = raw
    if isinstance(raw, str):
        if raw[:8] == "content=" and " tool_call_id='" in raw:
            return repr_text(raw)
        is_text = raw[:1] == '"' == raw[-1:]
        if not is_text and not (raw[:1] in "{[" and any(key in raw for key in _WRAPPER_KEYS)):
            return raw
        try:
            value = jsonio.loads(raw)
        except ValueError:
            return raw
        if is_text:
            return value
    if isinstance(value, list) and value and all(map(_is_text_block, value)):
        return "\n".join(str(item.get("text", item.get("content", ""))) for item in value)
    return _result_of_message(value, raw) if isinstance(value, Mapping) else raw


def _is_text_block(item: Any) -> bool:
    """Return True if an item is a text block. An item with ``text``, but no ``type``, must have only keys that text blocks have."""
    if not isinstance(item, Mapping):
        return False
    kind = item.get("type")
    return kind == "text" or ("text" in item and (isinstance(kind, str) or TEXT_BLOCK_FIELDS.issuperset(item)))


def _result_of_message(value: Mapping[str, Any], raw: Any) -> Any:
    """Return the result in a tool message of LangChain, MCP, Anthropic, or another framework. For other values, return ``raw``."""
    only = value.get("output") if len(value) == 1 else None
    message = only if isinstance(only, Mapping) and "lc" in only else value
    if "lc" in message and isinstance(message.get("kwargs"), Mapping):
        message = {"type": "tool", "data": message["kwargs"]}
    kind, data = message.get("type"), message.get("data")
    if kind == "tool" and isinstance(data, Mapping) and "content" in data:
        return data["content"] if isinstance(data["content"], str) else unwrap_result(data["content"])
    if "content" in message and kind in ("tool", "ToolMessage"):
        return message["content"]
    if "content" in message and _RESULT_KEYS.issuperset(message):
        return unwrap_result(message["content"])
    return _result_of_framework(value, raw)


def _result_of_framework(value: Mapping[str, Any], raw: Any) -> Any:
    if value.keys() == _FUNCTION_RESPONSE:
        return value["response"]
    choices = value.get("choices")
    if isinstance(choices, list) and len(choices) == 1 and isinstance(choices[0], Mapping):
        message = choices[0].get("message")
        return unwrap_result(message["content"]) if isinstance(message, Mapping) and "content" in message else raw
    if "blocks" in value and "raw_output" in value:
        output = value["raw_output"]
        return output if isinstance(output, Mapping) and "source_nodes" not in output else unwrap_result(value["blocks"])
    if "tool_output" in value and ("tool_name" in value or "tool_call_id" in value):
        return unwrap_result(value["tool_output"])
    return raw


def says_failed(value: Mapping[str, Any]) -> bool:
    """Return True if a tool result has an Anthropic, Bedrock, or MCP error flag."""
    return value.get("is_error") is True or value.get("isError") is True or "error" in (value.get("status"), value.get("state"))


_DEEPEST_LOGPROBS = 12


def logprobs_in(raw: Any) -> list[float] | None:
    """Return the log probability of each token in a response's first answer, or None if any is missing."""
    if raw.__class__ is str:
        if '"logprob"' not in raw and '"token_logprobs"' not in raw:
            return None
        raw, _ = jsonio.loads_or_text(raw)
    held = _logprobs_below(raw, 0)
    items = held.get("content") or held.get("token_logprobs") if isinstance(held, Mapping) else held
    found = [one.get("logprob") if isinstance(one, Mapping) else one for one in (items if isinstance(items, Sequence) else ())]
    numbers = [float(number) for number in found if isinstance(number, (int, float)) and not isinstance(number, bool)]
    return numbers if numbers and len(numbers) == len(found) else None


def _logprobs_below(value: Any, depth: int) -> Any:
    if depth > _DEEPEST_LOGPROBS:
        return None
    if isinstance(value, Mapping):
        if value.get("logprobs"):
            return value["logprobs"]
        value = value.values()
    elif not isinstance(value, (list, tuple)):
        return None
    return next((found for item in value if (found := _logprobs_below(item, depth + 1))), None)
