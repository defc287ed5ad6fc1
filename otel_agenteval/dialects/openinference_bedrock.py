"""Parser for OpenInference on Bedrock.

Only the whole request (``input.value``) shows whether a tool failed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.later import Later
from ..spans.record import SpanRecord
from .openinference import messages_of
from .step import LLM, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"openinference\.instrumentation\.bedrock\b")


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return None, because OpenInference's dialect reads the role."""
    return None


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    request = record.attributes.get("input.value")
    if step.role == LLM and request.__class__ is str and ('"toolResult"' in request or '"tool_result"' in request):
        step.input_messages = Later(_whole, record.attributes)


def _whole(attributes: dict[str, Any]) -> list[Any]:
    given = messages_of(attributes, "llm.input_messages.")
    value, cut = jsonio.loads_or_text(attributes["input.value"])
    messages = value.get("messages") if isinstance(value, Mapping) else value
    if cut or not isinstance(messages, list):
        return given
    return [*(message for message in given if message.get("role") == "system"), *messages]
