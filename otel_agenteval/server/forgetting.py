"""Removal of traces from a journal, without the service that owns it."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..core import jsonio
from .journal_folder import JournalFolder
from .wal import SUFFIX, Record, records_in, segment_of

_MOST = 1 << 30
"""Maximum bytes of a request."""


def forget_in_journal(folder: str, is_meant: Callable[[str, Any], bool]) -> int:
    """Remove every trace with an attribute that ``is_meant``, by key and value. Return the number of traces.

    Raises ConfigError if the folder can't be used, or if a service uses it.
    """
    journal = JournalFolder(folder)
    asyncio.run(journal.acquire(0.0))
    try:
        segments = sorted(journal.path.rglob(f"*{SUFFIX}"))
        traces = {
            trace
            for path in segments
            for record in _records(path)
            for trace, attributes in _items(record)
            if any(is_meant(key, value) for key, value in attributes)
        }
        for path in segments if traces else ():
            records = list(_records(path))
            left = [record._replace(body=_without(record, traces)) for record in records]
            if left != records:
                _replace(path, segment_of(left))
        return len(traces)
    finally:
        journal.release()


def _records(path: Path) -> Iterator[Record]:
    return (record for record in records_in(path, _MOST) if record is not None)


def _replace(path: Path, content: bytes) -> None:
    partial = path.with_suffix(".partial")
    with open(partial, "wb", opener=lambda name, flags: os.open(name, flags, 0o600)) as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    partial.replace(path)


def _message(record: Record) -> Any:
    """Parse a protobuf request."""
    from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
    from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

    return (ExportTraceServiceRequest if record.signal == "traces" else ExportLogsServiceRequest).FromString(record.body)


_PROTO = {"traces": ("resource_spans", "scope_spans", "spans"), "logs": ("resource_logs", "scope_logs", "log_records")}
_JSON = {"traces": ("resourceSpans", "scopeSpans", "spans"), "logs": ("resourceLogs", "scopeLogs", "logRecords")}


def _items(record: Record) -> Iterator[tuple[str, list[tuple[str, Any]]]]:
    """Yield the trace id and the attributes of each span or log record. Attributes include those of its resource."""
    if record.is_json:
        groups, scopes, items = _JSON[record.signal]
        for group in jsonio.loads(record.body).get(groups) or ():
            shared = _json_pairs(group.get("resource") or {})
            for item in (item for scope in group.get(scopes) or () for item in scope.get(items) or ()):
                yield str(item.get("traceId", "")).lower(), [*shared, *_json_pairs(item)]
        return
    groups, scopes, items = _PROTO[record.signal]
    for group in getattr(_message(record), groups):
        shared = _proto_pairs(group.resource)
        for item in (item for scope in getattr(group, scopes) for item in getattr(scope, items)):
            yield item.trace_id.hex(), [*shared, *_proto_pairs(item)]


def _json_pairs(item: Any) -> list[tuple[str, Any]]:
    return [(pair.get("key", ""), next(iter((pair.get("value") or {}).values()), None)) for pair in item.get("attributes") or ()]


def _proto_pairs(item: Any) -> list[tuple[str, Any]]:
    return [(pair.key, pair.value.string_value or pair.value.int_value) for pair in item.attributes]


def _without(record: Record, traces: set[str]) -> bytes:
    """Return a request's body without the spans or log records of some traces."""
    if not any(trace in traces for trace, _ in _items(record)):
        return record.body
    if record.is_json:
        found = jsonio.loads(record.body)
        groups, scopes, items = _JSON[record.signal]
        for scope in (scope for group in found[groups] for scope in group.get(scopes) or ()):
            scope[items] = [one for one in scope.get(items) or () if str(one.get("traceId", "")).lower() not in traces]
        return jsonio.dumps(found).encode()
    message = _message(record)
    groups, scopes, items = _PROTO[record.signal]
    for scope in (scope for group in getattr(message, groups) for scope in getattr(group, scopes)):
        kept = [one for one in getattr(scope, items) if one.trace_id.hex() not in traces]
        del getattr(scope, items)[:]
        getattr(scope, items).extend(kept)
    return bytes(message.SerializeToString())
