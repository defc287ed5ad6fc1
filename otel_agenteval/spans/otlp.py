"""Read spans and log records from OTLP/JSON, and log records from OTLP protobuf messages.

OTLP/JSON (from the Collector's file exporter, for example) and protobuf messages are converted to the same record types. Unknown
fields are ignored. A span without valid IDs becomes a :class:`NotASpan`, because this span can't belong to a turn.
"""

from __future__ import annotations

import base64
import binascii
import codecs
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from sys import intern
from typing import Any, Literal

from ..core import jsonio
from ..core.errors import NotASpan, NotOtlp
from ..core.feedback import is_feedback, is_feedback_record
from ..core.semconv import EVENT, RESULT_ID, SCOPE, TURN_ID
from ..core.wellformed import bounded_name, plain
from .record import LogPart, SpanEvent, SpanRecord, cut_long_values, time_of, trace_state_of
from .wire import Part, Vocabulary, WireSpan

Signal = Literal["traces", "logs"]
"""Names of OTLP signals that otel-agenteval receives."""

HAS_IS_REMOTE, IS_REMOTE = 0x100, 0x200

SERVER = 2
"""OTLP's number for the span kind ``SERVER``."""
_CODES = {"STATUS_CODE_UNSET": 0, "STATUS_CODE_OK": 1, "STATUS_CODE_ERROR": 2}
_MAX_NESTING = 64


def is_ours(scope: str, attributes: Mapping[str, Any], name: str = "") -> bool:
    """Return True if a span, event, or log record contains a score, or has otel-agenteval's scope. These aren't evaluated.

    A score from otel-agenteval has otel-agenteval's scope or, if a pipeline renamed the scope, a turn ID or result ID. Evaluation
    results from other programs are also scores, unless they are user feedback.
    """
    return (
        scope == SCOPE
        or (name == EVENT and not is_feedback_record(name, attributes))
        or TURN_ID in attributes
        or RESULT_ID in attributes
    )


@dataclass(slots=True, eq=False)
class OtlpLog:
    trace_id: int
    span_id: int
    part: LogPart
    scope: str = ""


# --- OTLP/JSON -----------------------------------------------------------------------------------------------------


def from_json(message: Any) -> Iterator[SpanRecord | OtlpLog | NotASpan]:
    """Yield the spans and log records of an OTLP/JSON request. Scores are omitted (see :func:`is_ours`).

    Yields a :class:`NotASpan` for each span without valid IDs. Raises :class:`NotASpan` if the message isn't an OTLP/JSON request.
    """
    if not isinstance(message, Mapping):
        raise NotASpan(f"must be an OTLP/JSON object, got {type(message).__name__}")
    groups = [key for key in ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs") if key in message]
    if not groups:
        raise NotASpan("neither resourceSpans nor resourceLogs found")
    for key in groups:
        if not isinstance(message[key], (list, type(None))):
            raise NotASpan(f"{key}: must be a list, got {type(message[key]).__name__}")
        for group in _objects(message[key]):
            yield from _from_group(group, spans="pans" in key)


def _from_group(group: Mapping[str, Any], *, spans: bool) -> Iterator[SpanRecord | OtlpLog | NotASpan]:
    resource = _attributes(_object(group.get("resource")).get("attributes"))
    scopes = group.get("scopeSpans", group.get("scope_spans")) if spans else group.get("scopeLogs", group.get("scope_logs"))
    for scope_group in _objects(scopes):
        scope = bounded_name(str(_object(scope_group.get("scope")).get("name") or ""))
        if scope == SCOPE:
            continue
        items = scope_group.get("spans") if spans else scope_group.get("logRecords", scope_group.get("log_records"))
        for item in _objects(items):
            if not spans:
                log = _log_from_json(item, scope)
                if not is_ours("", log.part.attributes, log.part.name):
                    yield log
                continue
            try:
                span = _span_from_json(item, scope, resource)
            except NotASpan as problem:
                yield problem
                continue
            if not is_ours(scope, span.attributes):
                yield span


def _span_from_json(item: Mapping[str, Any], scope: str, resource: dict[str, Any]) -> SpanRecord:
    flags = whole_number(item.get("flags"))
    status = _object(item.get("status"))
    code = status.get("code", 0)
    record = SpanRecord(
        str(item.get("name") or ""),
        _id(item.get("traceId", item.get("trace_id")), 16, "trace ID"),
        _id(item.get("spanId", item.get("span_id")), 8, "span ID"),
        _id(item.get("parentSpanId", item.get("parent_span_id")), 8, None),
        remote_parent=flags & (HAS_IS_REMOTE | IS_REMOTE) == HAS_IS_REMOTE | IS_REMOTE,
        server=is_server(item.get("kind")),
        start_ns=time_of(item.get("startTimeUnixNano", item.get("start_time_unix_nano"))),
        end_ns=time_of(item.get("endTimeUnixNano", item.get("end_time_unix_nano"))),
        status=_CODES[code] if isinstance(code, str) and code in _CODES else whole_number(code),
        status_message=str(status["message"]) if status.get("message") else None,
        attributes=_attributes(item.get("attributes")),
        events=[
            SpanEvent(str(event.get("name") or ""), _attributes(event.get("attributes")), time_of(event.get("timeUnixNano")))
            for event in _objects(item.get("events"))
        ],
        scope=scope,
        resource=resource,
        truncated=whole_number(item.get("droppedAttributesCount")) > 0,
    )
    record.trace_state = trace_state_of(str(item.get("traceState") or item.get("trace_state") or ""))
    return record


def is_server(kind: Any) -> bool:
    return kind == SERVER or (kind.__class__ is str and kind.upper().endswith("SERVER"))


def _event_name(attributes: Mapping[str, Any]) -> Any:
    """Return the event name in a log record's attributes: ``event.name`` or, as in LiteLLM's records, ``event_name``."""
    return attributes.get("event.name") or attributes.get("event_name") or ""


def _log_from_json(item: Mapping[str, Any], scope: str) -> OtlpLog:
    attributes = _attributes(item.get("attributes"))
    name = item.get("eventName", item.get("event_name")) or _event_name(attributes)
    written_ns = time_of(item.get("timeUnixNano")) or time_of(item.get("observedTimeUnixNano"))  # many SDKs set only the latter
    part = LogPart(str(name), attributes, _value(item.get("body"), 0), written_ns)
    # A record outside any span is valid, but isn't part of a turn.
    trace_id = _id(item.get("traceId", item.get("trace_id")), 16, None)
    return OtlpLog(trace_id, _id(item.get("spanId", item.get("span_id")), 8, None), part, scope)


def _id(value: Any, size: int, needed: str | None) -> int:
    """Parse an ID from hex or base64 (protobuf's JSON). If invalid, return 0 or, if ``needed`` names the field, raise NotASpan."""
    if value and isinstance(value, str):
        if len(value) == 2 * size:
            raw = from_hex(value)
        else:
            try:
                raw = base64.b64decode(value, validate=True)
            except (binascii.Error, ValueError):
                raw = b""
        number = int.from_bytes(raw, "big") if len(raw) == size else 0
        if number or needed is None:
            return number
    if needed is None:
        return 0
    raise NotASpan(f"{needed}: must be {2 * size} hex digits or base64 (not all 0), got {str(value)[:40]!r}")


def from_hex(text: str) -> bytes:
    try:
        return bytes.fromhex(text)
    except ValueError:
        return b""


def whole_number(value: Any) -> int:
    """Convert a number, or an integer written as text (as in OTLP/JSON), to an integer. Return 0 for other values."""
    if value.__class__ is int:
        return value
    try:
        return int(value)
    except (TypeError, ValueError, OverflowError):
        return 0


# JSON values are dicts and lists. This code runs for every attribute, and comparing classes is ten times as fast as checking
# for an abstract class.


def _object(value: Any) -> dict[str, Any]:
    return value if value.__class__ is dict else {}


def _objects(value: Any) -> Sequence[dict[str, Any]]:
    return [item for item in value if item.__class__ is dict] if value.__class__ is list else ()


def _attributes(items: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for item in items if items.__class__ is list else ():
        key = item.get("key") if item.__class__ is dict else None
        if key:
            value = item.get("value")
            text = value.get("stringValue") if value.__class__ is dict else None
            # Interned names are compared by their addresses.
            found[intern(str(key))] = text if text.__class__ is str else _value(value, 0)
    return found


def _value(value: Any, depth: int) -> Any:
    if value.__class__ is not dict:
        return None
    for kind, inner in value.items():
        if (read := _SCALARS.get(kind)) is not None:
            return read(inner)
        if depth >= _MAX_NESTING:
            return None
        if kind in ("arrayValue", "array_value"):
            return [_value(item, depth + 1) for item in _objects(_object(inner).get("values"))]
        if kind in ("kvlistValue", "kvlist_value"):
            pairs = _objects(_object(inner).get("values"))
            return {str(pair.get("key")): _value(pair.get("value"), depth + 1) for pair in pairs}
    return None


def _finite(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


_SCALARS: dict[str, Callable[[Any], Any]] = {
    **dict.fromkeys(("stringValue", "string_value"), lambda value: value if value.__class__ is str else str(value)),
    **dict.fromkeys(("intValue", "int_value"), lambda value: plain(whole_number(value))),
    **dict.fromkeys(("doubleValue", "double_value"), _finite),
    **dict.fromkeys(("boolValue", "bool_value"), lambda value: value if value.__class__ is bool else None),
    **dict.fromkeys(("bytesValue", "bytes_value"), lambda value: value if value.__class__ is str else None),
}


# --- OTLP protobuf -------------------------------------------------------------------------------------------------


def _log_from_proto(item: Any) -> OtlpLog:
    attributes = {pair.key: _proto_value(pair.value, 0) for pair in item.attributes}
    name = getattr(item, "event_name", "") or _event_name(attributes)
    part = LogPart(
        str(name), attributes, _proto_value(item.body, 0), time_of(item.time_unix_nano or item.observed_time_unix_nano)
    )
    return OtlpLog(int.from_bytes(item.trace_id, "big"), int.from_bytes(item.span_id, "big"), part)


def _proto_value(value: Any, depth: int) -> Any:
    if (kind := value.WhichOneof("value")) is None:
        return None
    inner = getattr(value, kind)
    if kind == "array_value":
        return [_proto_value(item, depth + 1) for item in inner.values] if depth < _MAX_NESTING else None
    if kind == "kvlist_value":
        return {pair.key: _proto_value(pair.value, depth + 1) for pair in inner.values} if depth < _MAX_NESTING else None
    if kind == "double_value":
        return _finite(inner)
    return base64.b64encode(inner).decode() if kind == "bytes_value" else inner


# --- OTLP/JSON requests, with the results of :mod:`.split`. They are parsed completely, because JSON can't be parsed in parts

_LOG_SIZE = 1_024
"""Estimated bytes of a log record without its body."""


def json_spans(body: bytes, drop_scope: str = "", base: int = 0) -> tuple[dict[bytes, Part], int]:
    """Split an OTLP/JSON request as :func:`.split.split_spans` does, but omit scores. Return (spans by trace ID, invalid spans)."""
    parts: dict[bytes, Part] = {}
    invalid = 0
    for span in _items(body, "traces"):
        if not isinstance(span, SpanRecord):
            invalid += 1
            continue
        if span.scope == drop_scope and drop_scope:
            continue
        part = parts.setdefault(span.trace_id.to_bytes(16, "big"), Part())
        span.trace_id += base
        size = cut_long_values(span)
        part.spans.append(WireSpan.of(span, size))
        part.size += size
        part.local_root = part.local_root or span.parent_id == 0 or span.remote_parent
    return parts, invalid


def json_logs(body: bytes, vocabulary: Vocabulary) -> tuple[list[tuple[OtlpLog, int]], int]:
    """Split an OTLP/JSON request as :func:`.split.split_logs` does, but keep records without IDs. Return the same types."""
    items = _items(body, "logs")
    logs = [item for item in items if isinstance(item, OtlpLog)]
    wanted = [
        (log, _LOG_SIZE + len(str(log.part.body)))
        for log in logs
        if log.part.name.startswith(vocabulary.log_names)
        or is_feedback(log.part.name)
        or vocabulary.is_scope(log.scope)
        or vocabulary.is_call(log.part.attributes)
        or _may_hold_messages(log, vocabulary)
    ]
    return wanted, len(items) - len(logs)


def _may_hold_messages(log: OtlpLog, vocabulary: Vocabulary) -> bool:
    whole = f"{log.part.body} {log.part.attributes}".replace("'", '"').encode(errors="replace")
    return any(text in whole for text in vocabulary.log_texts)


def _items(body: bytes, signal: Signal) -> list[SpanRecord | OtlpLog | NotASpan]:
    try:
        message = jsonio.loads_lenient(body.removeprefix(codecs.BOM_UTF8)) if body.strip() else {}
    except (ValueError, RecursionError) as error:
        is_deep = "depth limit" in str(error) or "nested too deeply" in str(error)
        raise NotOtlp("the body is nested too deeply" if is_deep else "the body isn't JSON") from None
    if message == {}:
        return []
    try:
        items = list(from_json(message))
    except NotASpan:
        raise NotOtlp(f"the body isn't an OTLP/JSON {signal} request") from None
    if any(isinstance(item, SpanRecord if signal == "logs" else OtlpLog) for item in items):
        raise NotOtlp(f"the body isn't an OTLP/JSON {signal} request")
    return items
