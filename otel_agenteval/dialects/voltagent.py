"""Parser for VoltAgent.

VoltAgent writes its own attributes, and one ``llm`` span for all model requests of a run. The agent's span contains the run's token
counts. The ``llm`` span contains only the first prompt and the last request's tokens.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.turn import Document
from ..spans.record import SpanRecord
from .attributes import as_int, as_text
from .otel_genai import documents
from .step import AGENT, CHAIN, EMBEDDING, GUARDRAIL, INNER, LLM, MEMORY, RETRIEVAL, TOOL, Step

MARKS = frozenset(("voltagent.operation_id",))
SCOPES = re.compile(r"@voltagent/")

_TYPES = {
    "llm": LLM, "tool": TOOL, "retriever": RETRIEVAL, "memory": MEMORY, "embedding": EMBEDDING, "guardrail": GUARDRAIL, "agent": AGENT,
    "workflow": CHAIN,
}  # fmt: skip


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    if (kind := attributes.get("span.type")) is not None:
        return _TYPES.get(kind, INNER) if kind.__class__ is str else INNER
    entity = attributes.get("entity.type")
    return AGENT if entity == "agent" else CHAIN if entity == "workflow" else None


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    step.framework = "voltagent"
    if step.conversation_id is None:
        step.conversation_id = as_text(get("conversation.id")) or as_text(get("voltagent.conversation_id"))
    role, raw_input, raw_output = step.role, get("input"), get("output")
    if role == AGENT:
        # Spans below a sub-agent have the names of the sub-agent and its parent agent.
        step.agent = as_text(get("subagent.name")) or as_text(get("entity.name"))
        step.input_messages, step.output_value, step.system = raw_input, raw_output, get("agent.instructions")
        step.input_tokens, step.output_tokens = as_int(get("usage.prompt_tokens")), as_int(get("usage.completion_tokens"))
        step.reasoning_tokens = as_int(get("usage.reasoning_tokens"))
        step.loop = True
    elif role == LLM:
        step.overwritten = True
        step.model = as_text(get("llm.model"))
        step.input_messages = get("llm.messages")
        step.finish_reason = as_text(get("llm.finish_reason"))
    elif role == TOOL:
        step.tool_name = as_text(get("tool.name")) or record.name.removeprefix("tool.execution:")
        step.tool_call_id, step.tool_arguments, step.tool_result = as_text(get("tool.call.id")), raw_input, raw_output
    elif role == RETRIEVAL:
        step.query = raw_input
        step.documents = _documents(raw_output)
    elif role == CHAIN:
        step.input_value, step.output_value = raw_input, raw_output


def _documents(raw: Any) -> list[Document] | None:
    """Return the retrieved documents, usually one document with all text. Return None if the value isn't text."""
    if raw.__class__ is not str:
        return None
    return documents(raw) if raw[:1] in "[{" and raw else [Document(content=raw)] if raw else []
