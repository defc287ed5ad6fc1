"""Parser for BeeAI's spans from OpenInference, in Python and TypeScript.

In TypeScript, a model or tool call isn't a span. Instead, each event of the call is a span: ``start`` (contains the input),
``success`` or ``error`` (contains the output), and ``finish`` (empty). The last segment of ``target`` is the event's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.turn import ErrorInfo
from ..spans.record import SpanRecord
from .attributes import as_text
from .step import AGENT, INNER, LLM, TOOL, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"openinference\.instrumentation\.beeai\b|@arizeai/openinference-instrumentation-beeai$")
_EVENTS = {"LLM": {"start": LLM, "success": LLM, "error": LLM}, "TOOL": {"success": TOOL, "error": TOOL}}


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return an event span's role, or None for other spans. Python's event spans have ``metadata.path``, but no class name."""
    kind, target = attributes.get("openinference.span.kind"), attributes.get("target")
    if target.__class__ is str and "traceId" in attributes:
        return _EVENTS.get(str(kind), {}).get(target.rpartition(".")[2], INNER)
    if kind is None or "metadata.class_name" in attributes:
        return None
    return INNER if "metadata.path" in attributes else None


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    target = get("target")
    if step.role == INNER:
        step.agent = ""
    elif target.__class__ is str and "traceId" in record.attributes:
        _read_event(get, step, target.split("."))
    elif step.role == TOOL:
        raw = get("input.value")
        value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:8] == '{"input"' else None
        if isinstance(value, Mapping) and value.keys() <= {"input", "options"}:
            step.tool_arguments = value["input"]
    elif step.role == AGENT and "traceId" in record.attributes:
        step.agent, step.agent_is_class = as_text(get("source")), True
        step.output_value = _text_in(get("output.value"))


def _read_event(get: Any, step: Step, target: list[str]) -> None:
    event = target[-1]
    if event == "error":
        step.error = ErrorInfo(as_text(get("exception.type")) or "error", as_text(get("exception.message")))
    if step.role == TOOL:
        step.tool_name = target[-2] if len(target) > 1 else None
        step.tool_unnamed = True  # ``getWeather`` for ``get_weather``
        step.tool_arguments = get("tool.parameters")
    else:
        step.deferred, step.answer_only = event == "start", event != "start"
        step.output_messages = get("output.value")  # flattened messages don't contain tool requests
        step.input_messages = get("input.value")
        if event == "error":
            step.finish_reason = "error"


def _text_in(raw: Any) -> Any:
    value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:1] == "{" else None
    return value["text"] if isinstance(value, Mapping) and value.keys() == {"role", "text"} else raw
