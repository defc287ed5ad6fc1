"""BeeAI under OpenInference: an event of a run has a span of its run's kind, and a tool's arguments stand beside its options."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .step import INNER, TOOL, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"openinference\.instrumentation\.beeai\b")


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """An event (``error``, ``retry``) is no run of what it happened to: only a run says what it is a run of."""
    if "openinference.span.kind" not in attributes or "metadata.class_name" in attributes:
        return None
    return INNER if "metadata.path" in attributes else None


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that this dialect has and no dialect before it had."""
    if step.role == INNER:
        step.agent = ""
    elif step.role == TOOL:
        raw = record.attributes.get("input.value")
        value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:8] == '{"input"' else None
        if isinstance(value, Mapping) and value.keys() <= {"input", "options"}:
            step.tool_arguments = value["input"]
