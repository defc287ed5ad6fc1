"""Create span records from this process's SDK spans.

Some of this code runs on the agent's thread. If the SDK's private fields have the expected types, the code reads these fields,
because public properties copy their values. Otherwise, the code reads the public properties.
"""

from __future__ import annotations

import time
from typing import Any

from opentelemetry.trace import SpanContext, SpanKind, StatusCode, TraceFlags

from .record import ERROR, UNSET, SpanEvent, SpanRecord, clean

_ERROR = StatusCode.ERROR
_SERVER = SpanKind.SERVER
_SAMPLED = TraceFlags(TraceFlags.SAMPLED)


def attributes_of(holder: Any) -> dict[str, Any]:
    """Return a span's or event's attributes. Callers must not change the dictionary, because it can be the SDK's own."""
    try:
        found = holder._attributes._dict
    except AttributeError:
        found = None
    return found if found.__class__ is dict else dict(holder.attributes or {})


def _by_position() -> bool:
    """Return True if a SpanContext is a tuple, as in all known SDK versions. Indexing is three times as fast as using properties."""
    sample = SpanContext(1, 2, True, _SAMPLED)
    return isinstance(sample, tuple) and sample[:5] == (1, 2, True, _SAMPLED, sample.trace_state)


_BY_POSITION = _by_position()


def has_known_fields(span: Any) -> bool:
    """Return True if an SDK span's private fields have the expected types. One check per span class is enough."""
    try:
        context, parent, scope, attributes = (
            span._context,
            span._parent,
            span._instrumentation_scope._name,
            span._attributes._dict,
        )
    except AttributeError:
        return False
    return (
        _BY_POSITION
        and attributes.__class__ is dict
        and isinstance(context, tuple)
        and isinstance(parent, tuple | None)
        and isinstance(scope, str)
    )


def start_of(span: Any) -> tuple[int, int, int, str, dict[str, Any]]:
    """Return a starting span's trace ID, span ID, local parent's ID (0 without a local parent), scope, and attributes."""
    if _BY_POSITION:
        try:
            context, parent, scope, attributes = span._context, span._parent, span._instrumentation_scope, span._attributes._dict
            if attributes.__class__ is dict:
                parent_id = 0 if parent is None or parent[2] else parent[1]
                return context[0], context[1], parent_id, "" if scope is None else scope._name, attributes
        except (AttributeError, TypeError):
            pass
    context, parent = span.context, span.parent
    parent_id = 0 if parent is None or parent.is_remote else parent.span_id
    return context.trace_id, context.span_id, parent_id, scope_of(span), attributes_of(span)


def end_of(span: Any) -> tuple[int, int, bool, dict[str, Any]]:
    """Return an ending span's trace ID, span ID, local root flag (True without a local parent), and attributes."""
    if _BY_POSITION:
        try:
            context, parent, attributes = span._context, span._parent, span._attributes._dict
            if attributes.__class__ is dict:
                return context[0], context[1], parent is None or parent[2], attributes
        except (AttributeError, TypeError):
            pass
    context, parent = span.context, span.parent
    return context.trace_id, context.span_id, parent is None or parent.is_remote, attributes_of(span)


def scope_of(span: Any) -> str:
    scope = span.instrumentation_scope
    return scope.name if scope is not None else ""


def from_sdk(span: Any) -> SpanRecord:
    """Convert an SDK span, which can still be open, to a record whose attributes and events contain only JSON types and tuples."""
    record = _record_of(span)
    clean(record)
    return record


def _record_of(span: Any) -> SpanRecord:
    if _BY_POSITION:
        try:
            return _from_fields(span)
        except (AttributeError, TypeError):
            pass
    context, parent, status = span.context, span.parent, span.status
    record = SpanRecord(
        span.name,
        context.trace_id,
        context.span_id,
        parent.span_id if parent is not None else 0,
        remote_parent=parent is not None and parent.is_remote,
        server=span.kind is _SERVER,
        start_ns=span.start_time or 0,
        end_ns=span.end_time or time.time_ns(),
        status=ERROR if status.status_code is _ERROR else UNSET,
        status_message=status.description if status.status_code is _ERROR else None,
        attributes=attributes_of(span),
        events=_events(span.events),
        scope=scope_of(span),
        resource=span.resource,
        truncated=span.dropped_attributes > 0,
    )
    record.trace_state = context.trace_state
    record.sampled = bool(context.trace_flags.sampled)
    return record


def _from_fields(span: Any) -> SpanRecord:
    """Convert a span as :func:`_record_of` does, but read the SDK's private fields, which is faster."""
    record = SpanRecord.__new__(SpanRecord)
    context = span._context
    record.trace_id = context[0]
    record.span_id = context[1]
    record.sampled = context[3] & _SAMPLED == _SAMPLED
    record.trace_state = context[4]
    if (parent := span._parent) is None:
        record.parent_id = 0
        record.remote_parent = False
    else:
        record.parent_id = parent[1]
        record.remote_parent = parent[2]
    record.server = span._kind is _SERVER
    scope = span._instrumentation_scope
    record.scope = "" if scope is None else scope._name
    attributes = span._attributes
    record.attributes = attributes._dict
    record.truncated = attributes.dropped > 0
    status = span._status
    record.status = UNSET
    record.status_message = None
    if status._status_code is _ERROR:
        record.status = ERROR
        record.status_message = status.description
    record.name = span._name
    record.start_ns = span._start_time or 0
    record.end_ns = span._end_time or time.time_ns()
    record.resource = span._resource
    record.events = _events(span._events) if span._events._dq else ()
    record.logs = ()
    record.references = None
    record.dialects = None
    return record


def _events(events: Any) -> list[SpanEvent]:
    return [SpanEvent(event.name, attributes_of(event), event.timestamp) for event in events]
