"""Spans of this process: from the SDK's span objects.

Reading runs on the agent's thread, so it goes to the SDK's fields directly where they are as expected (one attribute access
instead of a property that copies), and through public properties where they are not.
"""

from __future__ import annotations

import time
from typing import Any

from opentelemetry.trace import SpanContext, StatusCode

from .record import ERROR, SpanEvent, SpanRecord

_ERROR = StatusCode.ERROR


def attributes_of(holder: Any) -> dict[str, Any]:
    """The attributes of a span or an event, to read only: the SDK's own dict, or a copy where it cannot be reached."""
    try:
        found = holder._attributes._dict
    except AttributeError:
        found = None
    return found if found.__class__ is dict else dict(holder.attributes or {})


def _by_position() -> bool:
    """Whether a SpanContext is the tuple that it has always been: indexing it costs a third of its properties."""
    sample = SpanContext(1, 2, True)
    return isinstance(sample, tuple) and sample[:3] == (1, 2, True)


_BY_POSITION = _by_position()


def ids_of(span: Any) -> tuple[int, int, int]:
    """Trace id, span id, and the parent's span id: 0 for none, or for one in another process."""
    if _BY_POSITION:
        try:
            context, parent = span._context, span._parent
            return context[0], context[1], 0 if parent is None or parent[2] else parent[1]
        except (AttributeError, TypeError):
            pass
    context, parent = span.context, span.parent
    return context.trace_id, context.span_id, 0 if parent is None or parent.is_remote else parent.span_id


def scope_of(span: Any) -> str:
    """The name of the instrumentation scope."""
    scope = span.instrumentation_scope
    return scope.name if scope is not None else ""


def from_sdk(span: Any) -> SpanRecord:
    """The record of a span of this process. Works on an ended span and on one that is ending."""
    context = span.context
    parent = span.parent
    record = SpanRecord.__new__(SpanRecord)
    record.name = span.name
    record.trace_id = context.trace_id
    record.span_id = context.span_id
    record.remote_parent = False
    if parent is None:
        record.parent_id = 0
    else:
        record.parent_id = parent.span_id
        record.remote_parent = parent.is_remote
    record.start_ns = span.start_time or 0
    record.end_ns = span.end_time or time.time_ns()
    record.attributes = attributes_of(span)
    record.scope = scope_of(span)
    record.resource = span.resource
    record.context = context
    record.logs = record.events = ()
    record.references = None
    record.truncated = span.dropped_attributes > 0
    status = span.status
    if status.status_code is _ERROR:
        record.status = ERROR
        record.status_message = status.description
    else:
        record.status = 0
        record.status_message = None
    events = getattr(span, "_events", None)
    if events is None or len(events):
        record.events = [SpanEvent(event.name, attributes_of(event), event.timestamp) for event in span.events]
    return record
