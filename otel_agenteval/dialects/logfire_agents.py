"""Parser for Logfire's spans of the OpenAI Agents SDK, named by message templates, with the SDK's own fields."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.turn import ErrorInfo
from ..spans.record import SpanRecord
from .attributes import as_text
from .payloads import parsed
from .step import AGENT, GUARDRAIL, HANDOFF, INNER, LLM, TOOL, WORKFLOW, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"logfire\.openai_agents$")
_ROLES = (
    ("OpenAI Agents trace", WORKFLOW), ("Agent run: ", AGENT), ("Function: ", TOOL), ("Handoff: ", HANDOFF), ("Guardrail ", GUARDRAIL),
    ("Responses API", LLM), ("Chat completion", LLM), ("Task: ", INNER), ("Turn ", INNER), ("Custom span: ", INNER),
)  # fmt: skip


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    if not SCOPES.match(scope):
        return None
    return next((role for start, role in _ROLES if name.startswith(start)), None)


def read(record: SpanRecord, step: Step) -> None:
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
        _read_call(get, step)
    error = get("error")
    if error is not None:
        step.error = _error(error)


def _read_call(get: Any, step: Step) -> None:
    events = get("events")
    step.input_messages = get("input") if events is None else events
    step.output_messages = get("output") if events is None else events
    if step.response_id is None:
        step.response_id = as_text(get("response_id"))
    step.tool_definitions = get("response")  # a Responses object repeats the request's tools


def _error(raw: Any) -> ErrorInfo:
    """Return the inner error of ``{"message": ..., "data": {"error": ...}}``, or its message."""
    value = parsed(raw)
    if not isinstance(value, Mapping):
        return ErrorInfo("error", jsonio.text_of(value))
    data = value.get("data")
    inner = data.get("error") if isinstance(data, Mapping) else None
    return ErrorInfo("error", as_text(inner) or as_text(value.get("message")))
