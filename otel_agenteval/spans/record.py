"""Span and log records with the fields that the engine needs. IDs are integers. The parent ID is 0 if a span lacks a parent."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

from opentelemetry.trace import TraceState

from ..core.jsonio import frozen
from ..core.tenancy import turn_id_in
from ..core.wellformed import plain

UNSET, ERROR = 0, 2

LAST_NS = 2**63 - 1
"""Latest valid time, in the year 2262. Later times are treated as unknown."""
MAX_VALUE_CHARS = 1_000_000
"""Maximum characters of a text attribute. A longer text is truncated, and its record is marked as truncated."""


class SpanEvent(NamedTuple):
    """Span event, such as an exception. Some instrumentations write message content in events."""

    name: str
    attributes: dict[str, Any]
    time_ns: int = 0


class LogPart(NamedTuple):
    """Log record that belongs to a span. Newer instrumentations write message content in log records."""

    name: str
    attributes: dict[str, Any]
    body: Any
    time_ns: int = 0


class SpanRecord:
    """Record of a span, which can still be open. Don't change the attributes."""

    __slots__ = (
        "attributes", "dialects", "end_ns", "events", "logs", "name", "parent_id", "references", "remote_parent", "resource",
        "sampled", "scope", "server", "span_id", "start_ns", "status", "status_message", "trace_id", "trace_state",
        "truncated",
    )  # fmt: skip

    attributes: dict[str, Any]
    events: Sequence[SpanEvent]
    logs: Sequence[LogPart]
    references: dict[str, Any] | None
    """References that ``expect()`` set when the span started."""
    server: bool
    """True if the span is a request that the span's process received (kind ``SERVER``)."""
    resource: Any
    """Resource attributes, or the SDK's Resource object."""
    sampled: bool
    """True if the trace is sampled for export, or if the sampling decision is unknown."""
    trace_state: Any
    """The SDK's TraceState, or None if it is unknown."""
    dialects: Any
    """The span's dialects and role, or None until :mod:`otel_agenteval.dialects.reader` determines both."""

    def __init__(
        self,
        name: str,
        trace_id: int,
        span_id: int,
        parent_id: int = 0,
        *,
        remote_parent: bool = False,
        server: bool = False,
        start_ns: int = 0,
        end_ns: int = 0,
        status: int = UNSET,
        status_message: str | None = None,
        attributes: dict[str, Any] | None = None,
        events: Sequence[SpanEvent] = (),
        scope: str = "",
        resource: Any = None,
        truncated: bool = False,
    ) -> None:
        self.name = name
        self.trace_id = trace_id  # with tenants, the trace key
        self.span_id = span_id
        self.parent_id = parent_id
        self.remote_parent = remote_parent
        self.server = server
        self.start_ns = start_ns
        self.end_ns = end_ns
        self.status = status
        self.status_message = status_message
        self.attributes = {} if attributes is None else attributes
        self.events = events
        self.logs = ()
        self.scope = scope
        self.resource = {} if resource is None else resource
        self.trace_state = None
        self.sampled = True
        self.dialects = None
        self.truncated = truncated
        self.references = None

    @property
    def resource_attributes(self) -> Mapping[str, Any]:
        resource = self.resource
        return resource if resource.__class__ is dict else resource.attributes

    @property
    def shown_id(self) -> int:
        """ID of the span at which trace viewers show this record. For a logged call, this is the span that wrote the log record."""
        return self.span_id

    @property
    def duration_s(self) -> float | None:
        """Duration in seconds, or None if the start or end is unknown, or if the end is before the start."""
        return (self.end_ns - self.start_ns) / 1e9 if self.start_ns and self.end_ns >= self.start_ns else None

    def __repr__(self) -> str:
        return f"SpanRecord({self.name!r}, {turn_id_in(self.trace_id, self.span_id)})"


def trace_state_of(header: str) -> TraceState | None:
    """Return a received span's trace state, or None if the header doesn't contain a sampler's probability (``ot=…``)."""
    return TraceState.from_header([header]) if "ot=" in header else None


def is_more_complete(record: SpanRecord, other: SpanRecord) -> bool:
    """Compare two copies of a span. Return True if ``record`` is more complete than ``other``.

    A copy that has ended is more complete than a copy that hasn't. Otherwise, the copy with more attributes is more complete.
    """
    ended, other_ended = record.end_ns > record.start_ns, other.end_ns > other.start_ns
    return (ended, len(record.attributes)) > (other_ended, len(other.attributes))


def join_logs(record: SpanRecord, parts: Sequence[LogPart]) -> None:
    """Add log records to a span, ordered by time and without duplicates."""
    found = sorted((*record.logs, *parts), key=_time)
    if len({(part.time_ns, part.name) for part in found}) < len(found):
        unique: dict[Hashable, LogPart] = {}
        for part in found:
            unique.setdefault((part.time_ns, part.name, frozen(part.attributes), frozen(part.body)), part)
        found = list(unique.values())
    record.logs = found
    record.dialects = None  # the logs may change the span's role


_time = attrgetter("time_ns")


def time_of(value: Any) -> int:
    try:
        number = int(value)
    except (TypeError, ValueError, OverflowError):
        return 0
    return number if 0 < number <= LAST_NS else 0


def clean(record: SpanRecord) -> None:
    """In an SDK span's record, replace values that JSON can't represent. The SDK's objects stay unchanged."""
    record.name = str(plain(record.name))
    if record.status_message is not None:
        record.status_message = str(plain(record.status_message))
    record.start_ns, record.end_ns = time_of(record.start_ns), time_of(record.end_ns)
    if not _is_simple(record.attributes):
        record.attributes = plain(record.attributes)
    if record.events:
        record.events = [
            SpanEvent(str(plain(event.name)), plain(event.attributes), time_of(event.time_ns)) for event in record.events
        ]


def _is_simple(attributes: Mapping[str, Any]) -> bool:
    """Return True if all attributes are ASCII texts, booleans, or valid numbers, so that :func:`plain` isn't needed."""
    for key, value in attributes.items():
        kind = value.__class__
        if not key.isascii():
            return False
        if not (
            value.isascii()
            if kind is str
            else kind is bool or (kind is int and -LAST_NS <= value <= LAST_NS) or (kind is float and math.isfinite(value))
        ):
            return False
    return True


def cleaned(part: LogPart) -> LogPart:
    return LogPart(str(plain(part.name)), plain(part.attributes), plain(part.body), time_of(part.time_ns))


def cut_long_values(record: SpanRecord) -> int:
    """Truncate texts that are too long, and set ``truncated`` if there are any. Return the record's approximate size in bytes."""
    size = 512
    for key, value in list(record.attributes.items()):
        if value.__class__ is str:
            length = len(value)
            if length > MAX_VALUE_CHARS:
                record.attributes = {**record.attributes, key: value[:MAX_VALUE_CHARS]}  # the original may be the SDK's object
                record.truncated = True
                length = MAX_VALUE_CHARS
            size += length
        elif value.__class__ in (list, tuple, dict):
            size += 64 * len(value)
    return size
