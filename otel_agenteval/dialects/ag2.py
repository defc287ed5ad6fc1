"""Parser for AG2, which writes the GenAI convention's attributes and ``ag2.span.type``. Some spans have only ``ag2.span.type``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .content import decode
from .step import AGENT, INNER, LLM, SETUP, TOOL, WORKFLOW, Step

MARKS = frozenset(("ag2.span.type",))
SCOPES = re.compile(r"opentelemetry\.instrumentation\.ag2\b")
_TYPES = {
    "agent": AGENT, "llm": LLM, "tool": TOOL, "conversation": WORKFLOW, "multi_conversation": WORKFLOW, "code_execution": TOOL,
    "usage": SETUP, "agent_lifetime": SETUP, "agent_event": SETUP,
}  # fmt: skip
"""Roles by span type. Spans with the type ``usage`` only repeat the token counts of model calls."""


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    if (kind := attributes.get("ag2.span.type")) is None:
        return SETUP if name.startswith("record_usage ") and SCOPES.match(scope) else None
    if kind == "agent" and str(attributes.get("gen_ai.agent.name")).startswith("_"):  # runs the tools of a group chat
        return INNER
    return _TYPES.get(kind, INNER) if kind.__class__ is str else INNER


def read(record: SpanRecord, step: Step) -> None:
    step.framework = step.framework or "ag2"
    kind = record.attributes.get("ag2.span.type")
    if step.role in (WORKFLOW, INNER):
        step.agent = ""  # the requester or the framework, not the answering agent
    if kind == "code_execution" and step.tool_name is None:
        step.tool_name = "execute_code"
    elif kind == "conversation" and step.output_messages is None and "gen_ai.output.messages" in record.attributes:
        step.output_messages = Later(_last_words, record.attributes["gen_ai.output.messages"])


def _last_words(raw: Any) -> list[dict[str, Any]]:
    """Return a chat's answer: the last text that isn't a tool result. In AG2, the answer's message can have the role ``user``."""
    history = decode(raw, "assistant").messages
    texts = (message.content for message in reversed(history) if message.role != "tool" and message.content)
    return [{"role": "assistant", "content": next(texts, None)}]
