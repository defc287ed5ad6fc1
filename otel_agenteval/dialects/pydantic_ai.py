"""Parser for pydantic-ai: an agent's result and history, and attributes of early versions."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..spans.record import SpanRecord
from .step import AGENT, LLM, TOOL, Step, as_text

MARKS = frozenset(("pydantic_ai.all_messages",))
SCOPES = re.compile(r"(pydantic[-_]ai|logfire\.pydantic_ai)$")
_NAMES = (("agent run", AGENT), ("running tool", TOOL))


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role from the span's name. Versions 1 and 2 write it only there."""
    if "model_name" in attributes and "agent_name" in attributes:
        return AGENT
    for start, role in _NAMES:
        if name.startswith(start) and name != "running tools" and not name.endswith(" tools"):
            return role
    return None


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    get = record.attributes.get
    step.framework = "pydantic-ai"
    if step.role == LLM:
        events = get("events")  # version 1: all messages of the call
        if events is not None:
            if step.input_messages is None:
                step.input_messages = events
            if step.output_messages is None:
                step.output_messages = events
        if step.tool_definitions is None:
            step.tool_definitions = get("model_request_parameters")
    elif step.role == AGENT:
        if step.agent is None:
            step.agent = as_text(get("agent_name"))
        if step.final_result is None:
            step.final_result = get("final_result")
        if step.input_value is None:
            step.input_value = get("pydantic_ai.all_messages") or get("all_messages_events")
    elif step.role == TOOL:
        if step.tool_arguments is None:
            step.tool_arguments = get("tool_arguments")
        if step.tool_result is None:
            step.tool_result = get("tool_response")
