"""Parser for Traceloop's JavaScript instrumentation of OpenAI's Responses API.

Spans contain a request's whole ``input`` as one message's text, and only the text of an answer. If an answer lacks text, it
requests tools, regardless of its finish reason.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .step import LLM, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"@traceloop/instrumentation-openai\b")
_NO_TEXT = '"parts":[{"type":"text","content":""}]'


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    return None


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    response = get("gen_ai.response.id")
    if step.role != LLM or (response.__class__ is str and not response.startswith("resp_")):
        return
    raw_input, raw_output = get("gen_ai.input.messages"), get("gen_ai.output.messages")
    if raw_input.__class__ is str and '"content":"[{' in raw_input:
        step.input_messages = Later(_opened, raw_input)
    if raw_output.__class__ is str and _NO_TEXT in raw_output:
        step.output_messages = []
        step.finish_reason = "tool_call"


def _opened(raw: str) -> Any:
    messages, _ = jsonio.loads_or_text(raw)
    if not isinstance(messages, list):
        return raw
    found: list[Any] = []
    for message in messages:
        parts = message.get("parts") if isinstance(message, Mapping) else None
        text = parts[0].get("content") if isinstance(parts, list) and len(parts) == 1 and isinstance(parts[0], Mapping) else None
        items = jsonio.loads_or_text(text)[0] if text.__class__ is str and text[:2] == "[{" else None
        found += items if isinstance(items, list) else [message]
    return found
