"""Parser for Logfire's spans of the OpenAI client, the Anthropic client, and the OpenAI Agents SDK.

A client's span has ``request_data``, ``response_data``, and ``events``. A streamed call has two spans. The first span ends when
the response begins. The second span is a log (a span without duration) with the request and the answer. Only the log is read. The
Agents SDK's spans have message templates as names.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.turn import ErrorInfo
from ..spans.record import SpanRecord
from .attributes import as_float, as_int, as_text
from .payloads import parsed
from .step import AGENT, GUARDRAIL, HANDOFF, INNER, LLM, TOOL, UNKNOWN, WORKFLOW, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"logfire\.(openai|anthropic|openai_agents)$")
_AGENTS = re.compile(r"logfire\.openai_agents$")
_ANSWERS = frozenset(("response_data", "gen_ai.output.messages", "gen_ai.response.id", "gen_ai.usage.input_tokens"))
_ERROR_LEVEL = 17
_NO_ANSWER_KEPT = ("embeddings", "image_generation")
_WRAPPED_INPUT = '{\\"input\\":'


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role of an Agents SDK span, ``UNKNOWN`` for a request whose answer is in another span, or None."""
    if _AGENTS.match(scope):
        return next((role for start, role in _ROLES if name.startswith(start)), None)
    if "request_data" not in attributes or not _ANSWERS.isdisjoint(attributes):
        return None
    level = attributes.get("logfire.level_num")
    failed = level.__class__ is int and level >= _ERROR_LEVEL
    if failed or attributes.get("logfire.span_type") == "log" or attributes.get("gen_ai.operation.name") in _NO_ANSWER_KEPT:
        return None
    return UNKNOWN


def read(record: SpanRecord, step: Step) -> None:
    if _AGENTS.match(record.scope):
        _read_agents(record, step)
        return
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
    """Read the provider's token usage. For Anthropic, unwrap tool arguments from ``input`` objects."""
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


# --- the OpenAI Agents SDK

_ROLES = (
    ("OpenAI Agents trace", WORKFLOW), ("Agent run: ", AGENT), ("Function: ", TOOL), ("Handoff: ", HANDOFF), ("Guardrail ", GUARDRAIL),
    ("Responses API", LLM), ("Chat completion", LLM), ("Task: ", INNER), ("Turn ", INNER), ("Custom span: ", INNER),
)  # fmt: skip


def _read_agents(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    step.framework = "openai-agents"
    role = step.role
    if role == WORKFLOW:
        step.workflow = as_text(get("name"))
        step.conversation_id = as_text(get("group_id"))
    elif role == AGENT:
        step.agent = as_text(get("name"))
    elif role == TOOL:
        step.tool_name = as_text(get("name"))
        step.tool_arguments = get("input")
        step.tool_result = get("output") if get("output") != "null" else None
    elif role == HANDOFF:
        step.agent = as_text(get("from_agent"))
        step.handoff_to = as_text(get("to_agent"))
    elif role == LLM:
        events = get("events")
        step.input_messages = get("input") if events is None else events
        step.output_messages = get("output") if events is None else events
        if step.response_id is None:
            step.response_id = as_text(get("response_id"))
        step.tool_definitions = get("response")  # a response of the Responses API has the tools
    if (error := get("error")) is not None:
        step.error = _error(error)


def _error(raw: Any) -> ErrorInfo:
    value = parsed(raw)
    if not isinstance(value, Mapping):
        return ErrorInfo("error", jsonio.text_of(value))
    data = value.get("data")
    inner = data.get("error") if isinstance(data, Mapping) else None
    return ErrorInfo("error", as_text(inner) or as_text(value.get("message")))
