"""Parser for Logfire's spans around the OpenAI and Anthropic clients.

Attributes are ``request_data``, ``response_data`` and ``events``. A streamed call is written twice: as a span that ends when
the response begins, and as a log (a span without duration) with request and answer. Only the log counts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .attributes import as_float, as_int
from .step import LLM, UNKNOWN, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"logfire\.(openai|anthropic)$")
_ANSWERS = frozenset(("response_data", "gen_ai.output.messages", "gen_ai.response.id", "gen_ai.usage.input_tokens"))
_ERROR_LEVEL = 17
_NO_ANSWER_KEPT = ("embeddings", "image_generation")
_WRAPPED_INPUT = '{\\"input\\":'


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return ``unknown`` for a request without an answer, which may be half of a streamed call. Other spans have an operation."""
    if "request_data" not in attributes or not _ANSWERS.isdisjoint(attributes):
        return None
    level = attributes.get("logfire.level_num")
    failed = level.__class__ is int and level >= _ERROR_LEVEL
    if failed or attributes.get("logfire.span_type") == "log" or attributes.get("gen_ai.operation.name") in _NO_ANSWER_KEPT:
        return None
    return UNKNOWN


def read(record: SpanRecord, step: Step) -> None:
    if step.role != LLM:
        return
    attributes = record.attributes
    get = attributes.get
    if get("logfire.span_type") == "log":
        step.answer_only = True
        step.duration_s = as_float(get("duration"))
    request, response, events = get("request_data"), get("response_data"), get("events")
    if "gen_ai.input.messages" not in attributes:
        step.input_messages = events if events is not None else request
    if "gen_ai.system_instructions" not in attributes and events is None:
        step.system = request
    if "gen_ai.tool.definitions" not in attributes:
        step.tool_definitions = request
    if "gen_ai.output.messages" not in attributes:
        step.output_messages = response if events is None else events
        if response.__class__ is str and ("gen_ai.usage.output_tokens" not in attributes or _WRAPPED_INPUT in response):
            _read_response(response, step)


def _read_response(text: str, step: Step) -> None:
    """Fill the provider's usage, and unwrap the ``input`` around Anthropic's tool arguments."""
    response, _ = jsonio.loads_or_text(text)
    if not isinstance(response, Mapping):
        return
    usage = response.get("usage")
    if isinstance(usage, Mapping):
        step.input_tokens = as_int(usage.get("prompt_tokens", usage.get("input_tokens")))
        step.output_tokens = as_int(usage.get("completion_tokens", usage.get("output_tokens")))
    message = response.get("message")
    if _WRAPPED_INPUT in text and isinstance(message, Mapping) and isinstance(message.get("tool_calls"), list):
        step.output_messages = {**message, "tool_calls": [_unwrapped(call) for call in message["tool_calls"]]}


def _unwrapped(call: Any) -> Any:
    function = call.get("function") if isinstance(call, Mapping) else None
    if not isinstance(function, Mapping) or not isinstance(function.get("arguments"), str):
        return call
    value, _ = jsonio.loads_or_text(function["arguments"])
    if isinstance(value, Mapping) and set(value) == {"input"}:
        return {**call, "function": {**function, "arguments": value["input"]}}
    return call
