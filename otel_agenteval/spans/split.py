"""Split OTLP requests into serialized spans and log records.

Parsing attributes takes twenty times as long as parsing the rest of a request, and most attributes are never needed. So a span
usually stays serialized until its turn closes. :mod:`.schemas` defines OTLP's fields, and :mod:`.pairs` parses attributes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, TypeVar, cast

from google.protobuf.message import DecodeError
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord

from ..core.errors import NotOtlp
from ..core.feedback import is_feedback
from ..core.wellformed import bounded_name
from .otlp import HAS_IS_REMOTE, IS_REMOTE, SERVER, OtlpLog, _log_from_proto
from .pairs import attributes_of, pairs_of, read_all, value_of
from .record import LAST_NS, MAX_VALUE_CHARS, UNSET, SpanEvent, SpanRecord, cut_long_values, time_of, trace_state_of
from .schemas import MESSAGES, Kind, mended
from .wire import OVERHEAD, LazyAttributes, Origin, Part, Vocabulary, WireSpan

_number = int.from_bytes
_REMOTE = HAS_IS_REMOTE | IS_REMOTE
UNREADABLE = "unreadable"
Found = TypeVar("Found")

_parse_request = MESSAGES["Request"].FromString
_parse_resource = MESSAGES["Resource"].FromString
_parse_scope = MESSAGES["Scope"].FromString
_parse_head = MESSAGES["SpanHead"].FromString
_parse_span = MESSAGES["Span"].FromString
_parse_log_head = MESSAGES["LogHead"].FromString


def _parsed(read: Callable[[bytes], Found], raw: bytes, kind: Kind) -> Found:
    try:
        return read(raw)
    except (DecodeError, UnicodeDecodeError):
        if (found := mended(raw, kind)) is None:
            raise DecodeError(kind) from None
    return read(found)


# --- spans ---------------------------------------------------------------------------------------------------------

_TRACE_ID, _SPAN_ID, _PARENT_ID, _FLAGS = b"\x0a\x10", b"\x12\x08", b"\x22\x08", b"\x85\x01"
"""Tags and lengths of span fields. All common writers sort fields by number."""
_NAME = 0x2A
_HEAD = struct.Struct("2s16s2s8s2s8s")
"""Format of a serialized span's start: tag, trace ID, tag, span ID, next tag, and (if that tag is the parent's) parent ID."""
_NO_HEAD = (b"",) * 6
_NO_ID = bytes(8)
_NO_TRACE = bytes(16)


def split_spans(
    body: bytes, drop_scope: str = "", base: int = 0, vocabulary: Vocabulary | None = None
) -> tuple[dict[bytes, Part], int]:
    """Return (a request's spans by trace ID, number of spans without valid IDs). Raises :class:`NotOtlp` for invalid requests.

    Spans with the scope ``drop_scope`` are omitted. ``base`` is added to trace IDs (see :mod:`~otel_agenteval.core.tenancy`).
    ``vocabulary`` identifies GenAI spans. In other spans, attributes that are lists or objects are parsed on first use.
    """
    parts: dict[bytes, Part] = {}
    invalid = 0
    try:
        for raw_resource, raw_scope, items in _scopes(body):
            scope = scope_name(raw_scope)
            if scope == drop_scope and scope:
                continue
            keys = None if vocabulary is None or vocabulary.is_scope(scope) else vocabulary.keys
            origin = Origin(scope, resource_attributes(raw_resource), _record_of, base, keys)
            invalid += _add_spans(items, origin, parts)
    except DecodeError:
        raise NotOtlp("not a protobuf ExportTraceServiceRequest") from None
    without_trace = parts.pop(_NO_TRACE, None)
    return parts, invalid + (len(without_trace.spans) if without_trace is not None else 0)


def _add_spans(items: Iterable[bytes], origin: Origin, parts: dict[bytes, Part]) -> int:
    """Add a scope's spans to the traces in ``parts``. Return the number of spans without valid IDs."""
    invalid = 0
    for raw in items:
        size = len(raw)
        head = _HEAD.unpack_from(raw) if size > _HEAD.size else _NO_HEAD
        trace_tag, trace_id, span_tag, span_id, next_tag, parent_id = head
        if trace_tag == _TRACE_ID and span_tag == _SPAN_ID:
            if next_tag == _PARENT_ID:
                # Guessed flags are enough to decide if the rest of the trace is awaited. The record has parsed flags.
                root = (raw[-3] & 3 == 3 and raw[-6:-4] == _FLAGS) or parent_id == _NO_ID
            else:
                root = next_tag[0] == _NAME or _is_local_root(raw)
        else:
            if (found := _ids_of(raw)) is None:
                invalid += 1
                continue
            trace_id, span_id = found
            root = _is_local_root(raw)
        if span_id == _NO_ID:
            invalid += 1
            continue
        if (part := parts.get(trace_id)) is None:
            part = parts[trace_id] = Part()
        size += OVERHEAD
        part.spans.append(WireSpan(raw, span_id, origin, size))
        part.size += size
        if root:
            part.local_root = True
    return invalid


def count_records(body: bytes, most: int) -> int:
    """Count a request's resources, scopes, spans, log records, and other fields. Stop when the count exceeds ``most``.

    This function doesn't parse the request, because an empty span of two bytes takes a hundred bytes when parsed. Raises
    :class:`NotOtlp` if the request's structure is invalid.
    """
    found = 0
    below = [(0, len(body), 0)]
    """(start, end, level) of each message whose fields aren't counted yet. Level 0 is a request, 1 a resource, and 2 a scope."""
    try:
        while below and found <= most:
            at, end, level = below.pop()
            next_tag = _NEXT_LEVEL[level]
            while at < end and found <= most:
                tag, size = body[at], body[at + 1]
                if tag & 0x87 != 2 or tag == 2:  # a number, or a field that isn't in OTLP
                    at = _after(body, at)
                else:
                    at += 2
                    if size >= 0x80:
                        size, at = _varint(body, at - 1)
                    if tag == next_tag:
                        below.append((at, at + size, level + 1))
                    at += size
                found += 1
            if at > end:
                raise IndexError
    except (IndexError, KeyError):
        raise NotOtlp("not a protobuf OTLP request") from None
    return found


_NEXT_LEVEL = (0x0A, 0x12, 0)
"""Tags of the messages to enter in a request, a resource, and a scope. 0 means that no messages are entered."""


def _after(body: bytes, at: int) -> int:
    tag, at = _varint(body, at)
    kind = tag & 7
    if tag < 8:  # no field has the number 0
        raise IndexError
    if kind in (0, 2):
        size, at = _varint(body, at)
        return at + size if kind == 2 else at
    return at + {1: 8, 5: 4}[kind]


def _varint(body: bytes, at: int) -> tuple[int, int]:
    value = body[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in range(7, 70, 7):
        byte = body[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError


def _ids_of(raw: bytes) -> tuple[bytes, bytes] | None:
    """Return (trace ID, span ID) of a span whose fields have an unusual order, or None if an ID is invalid."""
    try:
        head = _parse_head(raw)
    except DecodeError:
        return None
    return (head.trace_id, head.span_id) if len(head.trace_id) == 16 and len(head.span_id) == 8 else None


def _is_local_root(raw: bytes) -> bool:
    try:
        head = _parse_head(raw)
    except DecodeError:
        return False
    return len(head.parent_id) != 8 or head.parent_id == _NO_ID or head.flags & _REMOTE == _REMOTE


def _scopes(body: bytes) -> Iterator[tuple[bytes, bytes, Any]]:
    for group in _parse_request(body).groups:
        raw_resource = group.resource
        for scope_group in group.groups:
            yield raw_resource, scope_group.scope, scope_group.items


_CACHED_BYTES = 8_192
"""Maximum bytes of a cached resource or scope. The limit prevents the cache from filling the memory."""


def resource_attributes(raw: bytes) -> dict[str, Any]:
    """Return a resource's attributes, which callers must not change. Short resources are cached, because requests repeat them."""
    return (_known_resource if len(raw) <= _CACHED_BYTES else _resource)(raw)


def _resource(raw: bytes) -> dict[str, Any]:
    found = _parsed(lambda raw: attributes_of(_parse_resource(raw).attributes), raw, "resource.v1.Resource")
    if len(raw) > _CACHED_BYTES:  # each recent turn keeps its resource in memory
        found = {key: bounded_name(value) if value.__class__ is str else value for key, value in found.items()}
    return found


_known_resource = lru_cache(maxsize=1_024)(_resource)


def scope_name(raw: bytes) -> str:
    return (_known_scope if len(raw) <= _CACHED_BYTES else _scope)(raw)


def _scope(raw: bytes) -> str:
    return bounded_name(_parse_scope(raw).name.decode("utf-8", "replace"))


_known_scope = lru_cache(maxsize=1_024)(_scope)


def _record_of(span: WireSpan) -> SpanRecord:
    raw = span.raw
    try:
        record = _record_from(span, raw)
    except (DecodeError, UnicodeDecodeError):
        record = _record_of_broken(span)
    if len(raw) > MAX_VALUE_CHARS:
        cut_long_values(record)
    return record


def _record_of_broken(span: WireSpan) -> SpanRecord:
    """Replace invalid UTF-8 in a span, and parse the span. If it still can't be parsed, its record has only IDs."""
    raw, origin = span.raw, span.origin
    if (found := mended(raw, "trace.v1.Span")) is not None:
        return _record_from(span, found)
    ids = _ids_of(raw) or (raw[2:18], span.id)
    return SpanRecord(
        UNREADABLE, origin.base + int.from_bytes(ids[0], "big"), int.from_bytes(span.id, "big"), scope=origin.scope,
        resource=origin.resource, truncated=True,
    )  # fmt: skip


def _record_from(span: WireSpan, raw: bytes) -> SpanRecord:
    """Parse a span into a record, field by field, because the constructor is slower. Raises DecodeError or UnicodeDecodeError."""
    origin = span.origin
    message = _parse_span(raw)
    parent_id = message.parent_id
    record = SpanRecord.__new__(SpanRecord)
    record.name = message.name.decode("utf-8", "replace")
    record.trace_id = origin.base + _number(message.trace_id, "big")
    record.span_id = _number(span.id, "big")
    record.parent_id = _number(parent_id, "big") if len(parent_id) == 8 else 0
    record.remote_parent = message.flags & _REMOTE == _REMOTE
    record.server = message.kind == SERVER
    record.start_ns = message.start if message.start <= LAST_NS else 0
    record.end_ns = message.end if message.end <= LAST_NS else 0
    if message.HasField("status"):
        status = message.status
        record.status = status.code
        record.status_message = status.message.decode("utf-8", "replace") or None
    else:
        record.status = UNSET
        record.status_message = None
    record.scope = origin.scope
    record.resource = origin.resource
    record.truncated = message.dropped > 0
    record.logs = ()
    record.sampled = True
    record.trace_state = trace_state_of(message.state.decode("utf-8", "replace"))
    record.dialects = record.references = None
    attributes, unread = pairs_of(message.attributes)
    if unread:
        keys = origin.genai_keys  # the attributes of an application's own span are rarely read
        plain = keys is not None and "gen_ai.operation.name" not in attributes and keys.isdisjoint(attributes)
        attributes = cast("dict[str, Any]", LazyAttributes(attributes)) if plain else read_all(attributes, unread)
    record.attributes = attributes
    events = message.events
    record.events = (
        [
            SpanEvent(event.name.decode("utf-8", "replace"), attributes_of(event.attributes), time_of(event.time))
            for event in events
        ]
        if events
        else ()
    )
    return record


# --- log records ---------------------------------------------------------------------------------------------------


def split_logs(body: bytes, vocabulary: Vocabulary) -> tuple[list[tuple[OtlpLog, int]], int]:
    """Return ((log record, size in bytes) pairs, number of invalid records). Omit records without a trace ID. Include only
    records that contain user feedback, describe a GenAI span, or might contain messages. Raises :class:`NotOtlp`.
    """
    found: list[tuple[OtlpLog, int]] = []
    invalid = 0
    try:
        for _, raw_scope, items in _scopes(body):
            genai = vocabulary.is_scope(scope_name(raw_scope))
            for raw in items:
                head = _parsed(_parse_log_head, raw, "logs.v1.LogRecord")
                name = _event_name(head)
                is_call = vocabulary.is_call(head.attributes)
                if len(head.trace_id) != 16 or not (len(head.span_id) == 8 or is_call or is_feedback(name)):
                    continue
                if (
                    not genai
                    and not is_call
                    and not name.startswith(vocabulary.log_names)
                    and not is_feedback(name)
                    and not any(text in raw for text in vocabulary.log_texts)
                ):
                    continue
                try:
                    found.append((_log_from_proto(_parsed(LogRecord.FromString, raw, "logs.v1.LogRecord")), len(raw) + OVERHEAD))
                except (DecodeError, RecursionError):
                    invalid += 1
    except DecodeError:
        raise NotOtlp("not a protobuf ExportLogsServiceRequest") from None
    return found, invalid


def _event_name(head: Any) -> str:
    name = head.event_name.decode("utf-8", "replace")
    if not name and "event.name" in head.attributes:
        name = value_of(head.attributes["event.name"])
    return name if name.__class__ is str else ""
