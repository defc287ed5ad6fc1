"""Parser for spans of Google's Gen AI SDK from OpenInference and OpenTelemetry.

The SDK can run tools itself. One span then describes all model requests of a turn. The span's ``output.value`` contains earlier
messages (``automatic_function_calling_history``), and ``message.tool_calls.*`` contains only tool calls. Older versions write tool
results as the user's text. OpenTelemetry's instrumentation writes a tool's arguments and result to ``code.function.*``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .openinference import inputs_of, messages_of, objects_under, unflatten
from .payloads import object_in
from .step import LLM, TOOL, Step

MARKS = frozenset(("message.tool_calls.0.tool_call.function.name",))
SCOPES = re.compile(r"(openinference|opentelemetry)\.instrumentation\.google_genai\b")
_HISTORY = "automatic_function_calling_history"


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    return None


def read(record: SpanRecord, step: Step) -> None:
    attributes = record.attributes
    if step.role == TOOL and record.scope.startswith("opentelemetry"):
        values = unflatten(attributes, "code.function.parameters.")
        if isinstance(values, dict):
            step.tool_arguments = {
                name: found["value"] for name, found in values.items() if isinstance(found, dict) and "value" in found
            } or None
        step.tool_result = attributes.get("code.function.return.value")
    if step.role != LLM:
        return
    said = attributes.get("output.value")
    step.overwritten = not MARKS.isdisjoint(attributes) or (
        said.__class__ is str and f'"{_HISTORY}"' in said and bool(_history(said))
    )
    if any(key.startswith("llm.input_messages.") for key in attributes):
        step.input_messages = Later(_input_messages, attributes)
    if any(key.startswith("llm.output_messages.") for key in attributes):
        step.output_messages = Later(_answered, attributes)


def _input_messages(attributes: dict[str, Any]) -> list[Any]:
    messages = inputs_of(attributes)
    history = _history(attributes.get("output.value"))
    if history:
        return [*(message for message in messages if message.get("role") == "system"), *history]
    calls = objects_under(attributes, "message.tool_calls.")
    if calls:
        messages.append({"role": "assistant", "tool_calls": [call["tool_call"] for call in calls if "tool_call" in call]})
    return _with_results(messages)


def _answered(attributes: dict[str, Any]) -> list[Any]:
    messages = messages_of(attributes, "llm.output_messages.")
    if any(message.get("content") or message.get("tool_calls") for message in messages):
        return messages
    candidates = object_in(attributes.get("output.value")).get("candidates")
    found = [candidate.get("content") for candidate in candidates or () if isinstance(candidate, Mapping)]
    return [content for content in found if isinstance(content, Mapping)] or messages


def _history(raw: Any) -> list[Any] | None:
    found = object_in(raw).get(_HISTORY) if raw.__class__ is str and _HISTORY in raw else None
    if not isinstance(found, list):
        return None
    size = len(found)
    for part in range(2, size // 2 + 1):  # each chunk of a stream repeats the whole history
        if size % part == 0 and found[part] == found[0] and found[:part] * (size // part) == found:
            return found[:part]
    return found


def _with_results(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """If a user message contains one JSON object per preceding tool request, replace the message with tool results."""
    found: list[dict[str, Any]] = []
    for message in messages:
        calls = found[-1].get("tool_calls") if found else None
        values = _objects_in(message.get("content")) if calls and message.get("role") == "user" else None
        if calls and values and len(values) == len(calls):
            found += [
                {"role": "tool", "name": call.get("function", {}).get("name"), "content": json.dumps(value, ensure_ascii=False)}
                for call, value in zip(calls, values, strict=True)
            ]
        else:
            found.append(message)
    return found


def _objects_in(text: Any) -> list[Any] | None:
    """Parse an object and the JSON values after it, such as ``{"a": 1} {"b": 2}``. Return None for other text."""
    if text.__class__ is not str or text[:1] != "{":
        return None
    found, at = [], 0
    try:
        while at < len(text):
            value, at = _DECODER.raw_decode(text, at)
            found.append(value)
            at += len(text[at:]) - len(text[at:].lstrip())
    except ValueError:
        return None
    return found


_DECODER = json.JSONDecoder()
