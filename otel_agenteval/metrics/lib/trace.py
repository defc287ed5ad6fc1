"""What a judge reads about the course of a turn: its steps and what was said on the way, cut to a length that fits a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

from ...core import jsonio
from ...core.turn import ErrorInfo, Message, SpanInfo, ToolCall, Turn
from .replies import numbered

_STEPS = 100
"""Steps that a judge reads at most: the first and the last ones."""
_CHARS = 500
"""Of a result, an attribute or a remark."""
_ARGUMENT_CHARS = 2_000
"""Of a call's arguments, which are what many judgements are about."""
_ATTRIBUTES = 10
_PROMPTS = ("input.messages", "input_messages", "prompt", "system_instructions", "tool.definitions", "tools")
"""Attributes that repeat the input of every model call."""

Item = TypeVar("Item")


def cut(text: str, limit: int) -> str:
    """The first ``limit`` characters, and a mark where there were more."""
    return text if len(text) <= limit else f"{text[:limit]}…"


def ends_of(items: Sequence[Item], limit: int) -> tuple[Sequence[Item], Sequence[Item], int]:
    """The first and the last items that fit the limit, and how many between them do not."""
    if len(items) <= limit:
        return items, (), 0
    first = limit - limit // 2
    return items[:first], items[len(items) - limit // 2 :], len(items) - limit


def listed(items: Iterable[str] | str) -> str:
    """A text as it is, texts by number."""
    return items if isinstance(items, str) else numbered(list(items))


def call_of(call: ToolCall, result_chars: int = _CHARS) -> dict[str, Any]:
    """A tool call as a judge reads it."""
    found: dict[str, Any] = {
        "name": call.name,
        "parameters": "(unknown)" if call.arguments is None else _arguments(call.arguments),
    }
    if call.result is not None and result_chars:
        found["result"] = cut(jsonio.text_of(call.result), result_chars)
    if call.error is not None:
        found["error"] = _error(call.error)
    if call.permission_denied:
        found["permission_denied"] = True
    return found


def calls_of(turn: Turn, limit: int | None = None, result_chars: int = _CHARS) -> list[dict[str, Any]]:
    """The turn's tool calls as a judge reads them, in order; past the limit those in the middle are left out."""
    calls = turn.tool_calls or []
    first, last, left_out = ends_of(calls, len(calls) if limit is None else limit)
    shown = [call_of(call, result_chars) for call in first]
    if left_out:
        shown.append({"left_out": f"{left_out} calls"})
    return shown + [call_of(call, result_chars) for call in last]


def trace_of(turn: Turn) -> dict[str, Any]:
    """The material of a whole turn: request, reasoning, remarks, steps and findings on the way, answer, error; what is known of them."""
    known: dict[str, Any] = {
        "user_input": turn.input,
        "reasoning": turn.reasoning,
        "said_on_the_way": _remarks(turn.messages),
        "steps": _steps(turn),
        "retrieved": [cut(text, _CHARS) for text in turn.context[:_STEPS]],
        "final_answer": turn.output if turn.output is None or turn.output.strip() else "(empty)",
        "error": _error(turn.error) if turn.error is not None else None,
    }
    return {name: value for name, value in known.items() if value}


def _arguments(arguments: Mapping[str, Any]) -> Any:
    text = jsonio.text_of(arguments)
    return arguments if len(text) <= _ARGUMENT_CHARS else cut(text, _ARGUMENT_CHARS)


def _error(error: ErrorInfo) -> str:
    return cut(": ".join(part for part in (error.type, error.message) if part) or "failed", _CHARS)


def _remarks(messages: Sequence[Message]) -> list[str]:
    """What the agent said beside its tool calls since the user spoke last: often its plan."""
    asked = max((place for place, message in enumerate(messages) if message.role == "user" and message.content), default=-1)
    said = [message.content for message in messages[asked + 1 :] if message.role == "assistant" and message.tool_calls]
    return [cut(text, _CHARS) for text in said if text and text.strip()][:_STEPS]


def _steps(turn: Turn) -> list[dict[str, Any]]:
    """Spans in their order; then the tool calls that have none."""
    spans = turn.spans
    calls = turn.tool_calls or []
    by_span = {call.span_id: call for call in calls if call.span_id is not None}
    ids = {span.id for span in spans}
    every: list[SpanInfo | ToolCall] = [*spans, *(call for call in calls if call.span_id not in ids)]
    first, last, left_out = ends_of(every, _STEPS)
    shown = [_step(item, by_span) for item in first]
    if left_out:
        shown.append({"left_out": f"{left_out} steps"})
    return shown + [_step(item, by_span) for item in last]


def _step(item: SpanInfo | ToolCall, by_span: Mapping[str, ToolCall]) -> dict[str, Any]:
    if isinstance(item, ToolCall):
        return {"type": "tool", **call_of(item)}
    call = by_span.get(item.id)
    if call is not None:
        return {"type": "tool", **call_of(call)}
    shown = {key: cut(jsonio.text_of(value), _CHARS) for key, value in _telling(item)}
    return {"name": item.name, **({"attributes": shown} if shown else {})}


def _telling(span: SpanInfo) -> list[tuple[str, Any]]:
    return [(key, value) for key, value in span.attributes.items() if not any(part in key for part in _PROMPTS)][:_ATTRIBUTES]
