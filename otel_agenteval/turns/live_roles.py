"""The role of a span that may be open still, in whatever form it came."""

from __future__ import annotations

from typing import Any

from ..core.feedback import LOGFIRE_SCOPE
from ..core.semconv import SCOPE
from ..dialects.reader import role_in, role_of
from ..spans.record import SpanRecord
from ..spans.sdk import attributes_of, scope_of
from ..spans.wire import WireSpan

FEEDBACK = "feedback"
"""What a span says about a turn that is over."""


def role_of_span(span: Any) -> str | None:
    """A span's role from what it says now, as far as turn roots are concerned."""
    if span is None:
        return None
    if span.__class__ is SpanRecord:
        return FEEDBACK if span.scope == LOGFIRE_SCOPE else role_in(span)
    if span.__class__ is WireSpan:
        record = span.record()
        return FEEDBACK if record.scope == LOGFIRE_SCOPE else role_in(record)
    scope = scope_of(span)
    return None if scope == SCOPE else role_of(attributes_of(span), scope, span.name)
