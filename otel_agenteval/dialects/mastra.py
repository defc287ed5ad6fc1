"""Parser for Mastra's exporters: ``mastra.*`` and some of the GenAI convention's attributes.

Before version 1, content is in ``input`` and ``output``. A ``model_generation`` span encloses an agent's whole loop and has
the loop's total tokens. Each model request is a ``model_step`` span, which contains a ``model_inference`` span since version 1.4.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.turn import ErrorInfo
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_text, first_text, seconds_until
from .step import AGENT, CHAIN, CONVERSATION_NAMES, EMBEDDING, GUARDRAIL, INNER, LLM, MEMORY, TOOL, Step

MARKS = frozenset(("mastra.span.type",))
SCOPES = re.compile(r"@mastra/")

_ROLES = {
    "agent_run": AGENT, "workflow_run": CHAIN, "model_generation": LLM, "model_step": LLM, "model_inference": LLM, "tool_call": TOOL,
    "mcp_tool_call": TOOL, "provider_tool_call": TOOL, "client_tool_call": TOOL, "rag_embedding": EMBEDDING,
    "memory_operation": MEMORY, "scorer_run": GUARDRAIL, "scorer_step": GUARDRAIL,
}  # fmt: skip
_CONVERSATION = ("threadId", *CONVERSATION_NAMES)
_BRIEF = re.compile(r"\[(tool|tool-result): ([^\]]+)\]$")
"""Pattern for placeholders that replace tool requests and results in a step's messages."""


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    kind = attributes.get("mastra.span.type")
    return _ROLES.get(kind.lower(), INNER) if kind.__class__ is str else None


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    step.framework = "mastra"
    kind = str(get("mastra.span.type")).lower()
    if step.conversation_id is None:
        step.conversation_id = as_text(get("gen_ai.conversation.id")) or _first(get, _CONVERSATION)
    if step.user_id is None:
        step.user_id = _first(get, ("userId", "user_id", "resourceId"))
    raw_input, raw_output = _content(get, kind, "input"), _content(get, kind, "output")
    role = step.role
    if role == LLM:
        _read_call(record, kind, raw_input, raw_output, step)
    elif role == TOOL:
        step.tool_arguments, step.tool_result = raw_input, raw_output
        step.tool_failed = get("gen_ai.tool.success") is False
    elif role == AGENT:
        step.agent = as_text(get("gen_ai.agent.name")) or as_text(get("agent.id")) or record.name.removeprefix("agent.")
        step.input_messages = raw_input
        if raw_output is not None:
            step.output_messages = Later(_answer, raw_output)
    elif role == CHAIN:
        step.input_value, step.output_value = raw_input, raw_output


def _first(get: Any, keys: tuple[str, ...]) -> str | None:
    for key in keys:
        text = as_text(get(f"mastra.metadata.{key}")) or as_text(get(key))
        if text is not None:
            return text
    return None


def _content(get: Any, kind: str, side: str) -> Any:
    value = get(f"mastra.{kind}.{side}")
    return get(side) if value is None else value


def _read_call(record: SpanRecord, kind: str, raw_input: Any, raw_output: Any, step: Step) -> None:
    get = record.attributes.get
    step.loop = kind == "model_generation"
    if raw_input is not None:
        step.input_messages = Later(_asked, raw_input)
    if raw_output is not None:
        step.output_messages = Later(_answer, raw_output)
    if step.model is None:
        step.model = as_text(get("mastra.metadata.modelId")) or as_text(get("modelId"))
    provider = as_text(get("gen_ai.provider.name")) or as_text(get("gen_ai.system"))
    if provider is not None:  # the API follows the dot
        step.provider = provider.partition(".")[0]
    step.response_id = as_text(get("mastra.metadata.id")) or as_text(get("id"))
    step.finish_reason = first_text(get("gen_ai.response.finish_reasons"))
    if step.finish_reason == "error":
        step.error, step.output_messages = ErrorInfo("error", None), []  # the empty text in the output isn't an answer
    if (began := get("mastra.completion_start_time")) is not None:
        step.time_to_first_token_s = seconds_until(began, record.start_ns)


def _value(raw: Any) -> Any:
    return jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:1] in "{[" else raw


def _asked(raw: Any) -> Any:
    value = _value(raw)
    if isinstance(value, Mapping):
        body = value.get("body")
        inner = body if isinstance(body, Mapping) else value
        value = inner.get("messages") or inner.get("input") or inner.get("contents")
    return [_unabridged(item) for item in value] if isinstance(value, list) else value


def _unabridged(message: Any) -> Any:
    content = message.get("content") if isinstance(message, Mapping) else None
    found = _BRIEF.match(content) if content.__class__ is str and content[:5] == "[tool" else None
    if found is None:
        return message
    kind = "tool_call" if found[1] == "tool" else "tool_call_response"
    return {"role": message.get("role"), "parts": [{"type": kind, "name": found[2]}]}


def _answer(raw: Any) -> Any:
    """Convert ``{text, toolCalls, object, reasoningText}`` to one message. Return other values unchanged."""
    value = _value(raw)
    if not isinstance(value, Mapping) or not ("text" in value or "toolCalls" in value or "object" in value):
        return raw
    calls = value.get("toolCalls")
    text = value.get("text")
    if not text and value.get("object") is not None:
        text = jsonio.text_of(value["object"])
    parts: list[dict[str, Any]] = []
    if value.get("reasoningText"):
        parts.append({"type": "reasoning", "content": value["reasoningText"]})
    if text or not calls:
        parts.append({"type": "text", "content": text if text.__class__ is str else ""})
    for call in calls if isinstance(calls, list) else ():
        if isinstance(call, Mapping):
            payload = call.get("payload")
            inner = payload if isinstance(payload, Mapping) else call
            arguments = inner.get("args", inner.get("input"))
            parts.append(
                {"type": "tool_call", "id": inner.get("toolCallId"), "name": inner.get("toolName"), "arguments": arguments}
            )
    return {"role": "assistant", "parts": parts}
