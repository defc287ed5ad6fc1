"""Parser for BeeAI under OpenInference: spans of events, and tool arguments with options."""

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
    """Return INNER for an event (``error``, ``retry``).

    Its span has the kind of its run but no class name.
    """
    if "openinference.span.kind" not in attributes or "metadata.class_name" in attributes:
        return None
    return INNER if "metadata.path" in attributes else None


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    if step.role == INNER:
        step.agent = ""
    elif step.role == TOOL:
        raw = record.attributes.get("input.value")
        value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:8] == '{"input"' else None
        if isinstance(value, Mapping) and value.keys() <= {"input", "options"}:
            step.tool_arguments = value["input"]
