"""Read and write spans as table columns, as in the Collector's ClickHouse and Parquet data, and in otel-agenteval's own export.

Each row of this table contains a column's OTLP name, its name in the Collector's ClickHouse exporter, and the allowed values::

    trace_id                  TraceId             hex text, or 16 bytes
    span_id                   SpanId              hex text, or 8 bytes
    parent_span_id            ParentSpanId        hex text or 8 bytes. Empty if the span has no parent
    name                      SpanName            text
    start_time_unix_nano      Timestamp           nanoseconds, or a timestamp
    end_time_unix_nano        (none)              nanoseconds, or a timestamp. ``Duration`` in nanoseconds can replace this column
    kind                      SpanKind            2 or ``SERVER`` for a received request. Other kinds are ignored
    status_code               StatusCode          0, 1, 2, or Unset, Ok, Error
    status_message            StatusMessage       text
    scope_name                ScopeName           text
    flags                     (none)              the span's flags, which show if the parent is remote
    dropped_attributes_count  (none)              above 0 if the span was truncated
    attributes                SpanAttributes      a map, or an object as JSON text
    resource_attributes       ResourceAttributes  a map, or an object as JSON text
    service_name              ServiceName         used if the resource lacks the name
    events                    Events.Name, …      a list of {name, time_unix_nano, attributes}, its JSON text, or one list per field
    log_body                  (none)              body of a log record (JSON text). ``name`` is the event name

Only the trace ID, span ID, and name are required. If a map stores all values as text, types are lost. Numbers, booleans, and lists
are then restored if the attribute's name implies a type (``gen_ai.usage.input_tokens``). Message content stays text.
"""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..core import jsonio
from ..core.errors import NotASpan
from ..core.extras import require
from ..core.wellformed import bounded_name, plain
from .otlp import HAS_IS_REMOTE, IS_REMOTE, SERVER, OtlpLog, from_hex, is_server, whole_number
from .record import LogPart, SpanEvent, SpanRecord, cut_long_values, time_of

_EVENTS = {
    "events": ("Events",),
    "events_name": ("Events.Name",),
    "events_time": ("Events.Timestamp",),
    "events_attributes": ("Events.Attributes",),
}
_SPELLINGS: dict[str, tuple[str, ...]] = {
    "trace_id": ("TraceId", "traceId"),
    "span_id": ("SpanId", "spanId"),
    "parent_span_id": ("ParentSpanId", "parentSpanId", "parent_id"),
    "name": ("SpanName", "span_name"),
    "start_time_unix_nano": ("Timestamp", "startTimeUnixNano", "start_time", "timestamp"),
    "end_time_unix_nano": ("endTimeUnixNano", "end_time"),
    "duration": ("Duration", "duration_nano", "duration_ns"),
    "status_code": ("StatusCode", "statusCode"),
    "status_message": ("StatusMessage", "statusMessage"),
    "scope_name": ("ScopeName", "scopeName", "scope"),
    "flags": ("Flags",),
    "kind": ("SpanKind", "span_kind"),
    "dropped_attributes_count": ("droppedAttributesCount",),
    "attributes": ("SpanAttributes", "span_attributes"),
    "resource_attributes": ("ResourceAttributes", "resourceAttributes", "resource"),
    "service_name": ("ServiceName", "serviceName"),
    **_EVENTS,
    "log_body": (),
}
COLUMNS = tuple(_SPELLINGS)
"""otel-agenteval's names for the columns that can be read. :func:`table_of` doesn't write all of these columns."""
_NEEDED = ("trace_id", "span_id", "name")
_CODES = {"unset": 0, "ok": 1, "error": 2, "status_code_unset": 0, "status_code_ok": 1, "status_code_error": 2}
_NUMBERS = re.compile(
    r"(?:^|[._])(?:tokens?|count|cost|price|usd|temperature|top_?[pk]|seed|score|port|penalty|max_tokens|duration\w{0,60}|latency\w{0,60}|"
    r"time_to_first_\w{1,60}|dimensions?|choice_count|index|is_error|stream|streaming|status_code)(?:$|\.)|tokens$",
    re.IGNORECASE,
)
_LISTS = re.compile(r"(?:finish_reasons?|stop_sequences|encoding_formats|tags|ids|handoffs)$", re.IGNORECASE)
_NUMBER = re.compile(r"-?(?:\d{1,18}|\d+\.\d*(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)")


def known_columns(names: Iterable[str]) -> dict[str, str]:
    """Map each known column to the column's name in the source. Raises ValueError if a required column is missing."""
    names = list(names)
    found = {}
    for ours, others in _SPELLINGS.items():
        spelling = next((name for name in (ours, *others) if name in names), None)
        if spelling is not None:
            found[ours] = spelling
    missing = [ours for ours in _NEEDED if ours not in found]
    if missing:
        raise ValueError(f"column {missing[0]} (or {', '.join(_SPELLINGS[missing[0]])}): missing, got {', '.join(names)[:300]}")
    return found


def spans_of(table: Any) -> Iterator[SpanRecord | OtlpLog | NotASpan]:
    """Yield a span or a log record for each row in a ``pyarrow.Table`` or record batch, or a NotASpan if the row is invalid.

    Raises ValueError if a required column is missing.
    """
    columns = known_columns(table.schema.names)
    mine = {ours: _values(table.column(theirs)) for ours, theirs in columns.items()}
    nothing = [None] * table.num_rows
    resources: dict[str, dict[str, Any]] = {}
    for row in zip(*(mine.get(name, nothing) for name in COLUMNS), strict=True):
        try:
            yield _item(dict(zip(COLUMNS, row, strict=True)), resources)
        except NotASpan as problem:
            yield problem


def _values(column: Any) -> list[Any]:
    pa = require("pyarrow", feature="columnar span data", extra="parquet")
    if pa.types.is_timestamp(column.type):
        with suppress(pa.ArrowInvalid):  # out of range for nanoseconds: convert each value by itself
            column = column.cast(pa.timestamp("ns", column.type.tz)).cast(pa.int64())
    if pa.types.is_list(column.type) and pa.types.is_timestamp(column.type.value_type):
        column = column.cast(pa.list_(pa.int64())) if column.type.value_type.unit == "ns" else column
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    values: list[Any] = column.to_pylist()
    return values


def _item(row: dict[str, Any], resources: dict[str, dict[str, Any]]) -> SpanRecord | OtlpLog:
    trace_id, span_id = _id(row["trace_id"], 16), _id(row["span_id"], 8)
    start = _time(row["start_time_unix_nano"])
    if row["log_body"] is not None:
        return OtlpLog(
            trace_id, span_id, LogPart(str(row["name"] or ""), _mapping(row["attributes"]), _json(row["log_body"]), start)
        )
    if not trace_id or not span_id:
        raise NotASpan(
            f"trace and span ID: must be 16 and 8 bytes (or hex), got {str(row['trace_id'])[:40]!r} and {str(row['span_id'])[:40]!r}"
        )
    end = _time(row["end_time_unix_nano"])
    if not end and start:
        end = time_of(start + whole_number(row["duration"]))
    flags, code = whole_number(row["flags"]), row["status_code"]
    known = repr((row["resource_attributes"], row["service_name"]))
    if (resource := resources.get(known)) is None:
        resource = _mapping(row["resource_attributes"])
        if row["service_name"]:
            resource.setdefault("service.name", row["service_name"])
        resources[known] = resource
    record = SpanRecord(
        str(row["name"] or ""),
        trace_id,
        span_id,
        _id(row["parent_span_id"], 8),
        remote_parent=flags & (HAS_IS_REMOTE | IS_REMOTE) == HAS_IS_REMOTE | IS_REMOTE,
        server=is_server(row["kind"]),
        start_ns=start,
        end_ns=end,
        status=_CODES.get(code.lower(), 0) if isinstance(code, str) else whole_number(code),
        status_message=str(row["status_message"]) if row["status_message"] else None,
        attributes=_mapping(row["attributes"]),
        events=_events(row),
        scope=bounded_name(str(row["scope_name"] or "")),
        resource=resource,
        truncated=bool(row["dropped_attributes_count"]),
    )
    cut_long_values(record)
    return record


def _events(row: Mapping[str, Any]) -> list[SpanEvent]:
    found = _json(row["events"]) if isinstance(row["events"], str) else row["events"]
    if isinstance(found, Mapping):  # a struct of lists
        row = {
            "events_name": found.get("Name"),
            "events_time": found.get("Timestamp"),
            "events_attributes": found.get("Attributes"),
        }
        found = None
    if found is None:
        names = _list(row["events_name"])
        times = _list(row["events_time"]) or [0] * len(names)
        attributes = _list(row["events_attributes"]) or [{}] * len(names)
        return [
            SpanEvent(str(name or ""), _mapping(some), _time(at))
            for name, at, some in zip(names, times, attributes, strict=False)
        ]
    return [
        SpanEvent(
            str(event.get("name") or event.get("Name") or ""),
            _mapping(event.get("attributes", event.get("Attributes"))),
            _time(event.get("time_unix_nano", event.get("Timestamp"))),
        )
        for event in _list(found)
        if isinstance(event, Mapping)
    ]


def _list(value: Any) -> Sequence[Any]:
    return value if isinstance(value, (list, tuple)) else ()


def _id(value: Any, size: int) -> int:
    if isinstance(value, str):
        value = from_hex(value)
    return int.from_bytes(value, "big") if isinstance(value, bytes) and len(value) == size else 0


def _time(value: Any) -> int:
    if isinstance(value, datetime.datetime):
        whole = value if value.tzinfo is not None else value.replace(tzinfo=datetime.timezone.utc)
        return time_of(int(whole.timestamp()) * 1_000_000_000 + whole.microsecond * 1_000)
    return time_of(value)


def _mapping(value: Any) -> dict[str, Any]:
    if isinstance(value, str):
        found = _json(value)
        return found if isinstance(found, dict) else {}
    if isinstance(value, Mapping):  # a struct, whose values keep their types
        found = plain(value)
        return {key: inner for key, inner in found.items() if inner is not None}
    pairs = [pair for pair in _list(value) if isinstance(pair, (list, tuple)) and len(pair) == 2]
    return {str(key): _typed(str(key), plain(inner)) for key, inner in pairs if inner is not None}


def _typed(key: str, value: Any) -> Any:
    if not isinstance(value, str):
        return value
    if _LISTS.search(key) and value.startswith("["):
        found = _json(value)
        return found if isinstance(found, list) else value
    if _NUMBERS.search(key):
        if value in ("true", "false"):
            return value == "true"
        if _NUMBER.fullmatch(value):
            number = float(value)
            return int(value) if value.lstrip("-").isdecimal() else number if math.isfinite(number) else value
    return value


def _json(text: Any) -> Any:
    try:
        return jsonio.loads(text) if isinstance(text, (str, bytes)) else text
    except ValueError:
        return None


# --- our own format, which preserves types


def schema() -> Any:
    """Return the ``pyarrow.Schema`` of the tables that :func:`table_of` returns."""
    pa = require("pyarrow", feature="columnar span data", extra="parquet")
    text, number = pa.string(), pa.int64()
    return pa.schema(
        {
            "trace_id": text, "span_id": text, "parent_span_id": text, "name": text, "start_time_unix_nano": number,
            "end_time_unix_nano": number, "status_code": number, "status_message": text, "scope_name": text, "flags": number, "kind": number,
            "dropped_attributes_count": number, "attributes": text, "resource_attributes": text, "events": text, "log_body": text,
        }.items()
    )  # fmt: skip


def table_of(items: Sequence[SpanRecord | OtlpLog]) -> Any:
    """Return spans and log records as a ``pyarrow.Table``. Attributes and events are JSON text, which preserves JSON types."""
    pa = require("pyarrow", feature="columnar span data", extra="parquet")
    resources: dict[int, str] = {}
    return pa.Table.from_pylist([_row(item, resources) for item in items], schema())


def _row(item: SpanRecord | OtlpLog, resources: dict[int, str]) -> dict[str, Any]:
    if isinstance(item, OtlpLog):
        part = item.part
        return {
            "trace_id": f"{item.trace_id:032x}", "span_id": f"{item.span_id:016x}", "name": part.name,
            "start_time_unix_nano": part.time_ns, "attributes": jsonio.dumps(part.attributes), "log_body": jsonio.dumps(part.body),
        }  # fmt: skip
    resource = resources.get(id(item.resource)) or resources.setdefault(id(item.resource), jsonio.dumps(item.resource_attributes))
    return {
        "trace_id": f"{item.trace_id:032x}", "span_id": f"{item.span_id:016x}",
        "parent_span_id": f"{item.parent_id:016x}" if item.parent_id else "", "name": item.name,
        "start_time_unix_nano": item.start_ns, "end_time_unix_nano": item.end_ns, "status_code": item.status,
        "status_message": item.status_message, "scope_name": item.scope,
        "flags": HAS_IS_REMOTE | IS_REMOTE if item.remote_parent else 0,
        "kind": SERVER if item.server else 0,
        "dropped_attributes_count": int(item.truncated), "attributes": jsonio.dumps(item.attributes),
        "resource_attributes": resource,
        "events": jsonio.dumps(
            [{"name": event.name, "time_unix_nano": event.time_ns, "attributes": event.attributes} for event in item.events]
        ),
    }  # fmt: skip
