"""Determine the role of a span, which may still be open."""

from __future__ import annotations

from typing import Any

from ..core.feedback import LOGFIRE_SCOPE
from ..core.semconv import SCOPE
from ..dialects.reader import role_in, role_of
from ..spans.record import SpanRecord
from ..spans.sdk import attributes_of, scope_of
from ..spans.wire import WireSpan

FEEDBACK = "feedback"
"""Role of a feedback span, which refers to a turn that has closed."""


def role_of_span(span: Any) -> str | None:
    """Return the current role of a span in any form, as needed to find turn roots."""
    if span is None:
        return None
    if span.__class__ is SpanRecord:
        return FEEDBACK if span.scope == LOGFIRE_SCOPE else role_in(span)
    if span.__class__ is WireSpan:
        record = span.record()
        return FEEDBACK if record.scope == LOGFIRE_SCOPE else role_in(record)
    scope = scope_of(span)
    return None if scope == SCOPE else role_of(attributes_of(span), scope, span.name)
