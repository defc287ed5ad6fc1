"""Parser for trpc-agent-go: the convention's attributes, and messages in ``*.otel``.

A tool's result is a whole event.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .step import AGENT, INNER, LLM, TOOL, Step, as_text

MARKS = frozenset((
    "trpc.go.agent.invocation_id", "trpc.go.agent.event_id", "trpc.go.agent.llm_request", "trpc.go.agent.runner.session_id",
    "trpc.go.agent.runner.name", "trpc.go.agent.tool_call_args",
))  # fmt: skip
SCOPES = re.compile(r"trpc\.agent\.go\b")

_MERGED = "(merged tools)"


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return AGENT for a runner's span, and INNER for a workflow or for merged tools.

    A merged span repeats the results of parallel tools.
    """
    if attributes.get("gen_ai.tool.name") == _MERGED or name.endswith(_MERGED):
        return INNER
    if "trpc.go.agent.runner.name" in attributes and "gen_ai.operation.name" not in attributes:
        return AGENT
    return INNER if attributes.get("gen_ai.operation.name") == "workflow" else None


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    get = record.attributes.get
    step.framework = "trpc-agent-go"
    step.conversation_id = as_text(get("trpc.go.agent.runner.session_id"))
    step.user_id = as_text(get("trpc.go.agent.runner.user_id"))
    if step.role in (AGENT, LLM):
        asked, answered = get("gen_ai.input.messages.otel"), get("gen_ai.output.messages.otel")
        if step.role == AGENT:
            asked = get("trpc.go.agent.runner.input") if asked is None else asked
            answered = get("trpc.go.agent.runner.output") if answered is None else answered
        step.input_messages, step.output_messages = asked, answered
    elif step.role == TOOL:
        step.tool_arguments = get("trpc.go.agent.tool_call_args")
        result = get("gen_ai.tool.call.result")
        result = get("trpc.go.agent.tool_response") if result is None else result
        step.tool_result = _result(result) if result.__class__ is str and '"choices"' in result else result


def _result(raw: str) -> Any:
    """Return a tool's result from the event that contains it."""
    event = jsonio.loads_or_text(raw)[0]
    choices = event.get("choices") if isinstance(event, Mapping) else None
    message = choices[0].get("message") if isinstance(choices, list) and choices and isinstance(choices[0], Mapping) else None
    return message.get("content") if isinstance(message, Mapping) else raw
