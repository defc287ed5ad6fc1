"""Convert spans to the OTLP/JSON format that :mod:`.otlp` reads.

OTLP has separate messages for traces and logs, so the log records of spans are written to a second message.
"""

from __future__ import annotations

import base64
import math
from collections.abc import Iterable, Mapping
from typing import Any

from ..core.tenancy import trace_id_of
from .otlp import HAS_IS_REMOTE, IS_REMOTE, SERVER
from .record import SpanRecord

_INT64 = 2**63


def as_otlp_json(records: Iterable[SpanRecord]) -> list[dict[str, Any]]:
    """Return a message with all spans and, if the spans have log records, a second message with these log records."""
    spans: dict[tuple[int, str], list[SpanRecord]] = {}
    resources: dict[int, Mapping[str, Any]] = {}
    for record in records:
        resources.setdefault(id(record.resource), record.resource_attributes)
        spans.setdefault((id(record.resource), record.scope), []).append(record)
    messages = [{"resourceSpans": _groups(resources, spans, "scopeSpans", "spans", lambda record: [span_as_json(record)])}]
    logs = {key: [one for one in found if one.logs] for key, found in spans.items()}
    if any(logs.values()):
        messages.append({"resourceLogs": _groups(resources, logs, "scopeLogs", "logRecords", _logs_as_json)})
    return messages


def _groups(
    resources: Mapping[int, Mapping[str, Any]],
    members: Mapping[tuple[int, str], list[SpanRecord]],
    of_scopes: str,
    of_items: str,
    items: Any,
) -> list[dict[str, Any]]:
    found: dict[int, dict[str, Any]] = {}
    for (resource, scope), records in members.items():
        if records:
            group = found.setdefault(
                resource, {"resource": {"attributes": attributes_as_json(resources[resource])}, of_scopes: []}
            )
            group[of_scopes].append({"scope": {"name": scope}, of_items: [item for record in records for item in items(record)]})
    return list(found.values())


def span_as_json(record: SpanRecord) -> dict[str, Any]:
    found: dict[str, Any] = {
        "traceId": f"{trace_id_of(record.trace_id):032x}",
        "spanId": f"{record.span_id:016x}",
        "name": record.name,
        "startTimeUnixNano": str(record.start_ns),
        "endTimeUnixNano": str(record.end_ns),
        "attributes": attributes_as_json(record.attributes),
    }
    if record.parent_id:
        found["parentSpanId"] = f"{record.parent_id:016x}"
        found["flags"] = HAS_IS_REMOTE | (IS_REMOTE if record.remote_parent else 0)
    if record.server:
        found["kind"] = SERVER
    if record.status:
        found["status"] = {"code": record.status, **({"message": record.status_message} if record.status_message else {})}
    if record.events:
        found["events"] = [
            {"name": event.name, "timeUnixNano": str(event.time_ns), "attributes": attributes_as_json(event.attributes)}
            for event in record.events
        ]
    if record.truncated:
        found["droppedAttributesCount"] = 1
    return found


def _logs_as_json(record: SpanRecord) -> list[dict[str, Any]]:
    trace_id = trace_id_of(record.trace_id)
    return [_log(trace_id, record.span_id, part.name, part.time_ns, part.attributes, part.body) for part in record.logs]


def log_as_json(
    trace_id: int, span_id: int, name: str, time_ns: int, attributes: Mapping[str, Any], body: Any, scope: str
) -> dict[str, Any]:
    log = _log(trace_id, span_id, name, time_ns, attributes, body)
    return {"resourceLogs": [{"resource": {}, "scopeLogs": [{"scope": {"name": scope}, "logRecords": [log]}]}]}


def _log(trace_id: int, span_id: int, name: str, time_ns: int, attributes: Mapping[str, Any], body: Any) -> dict[str, Any]:
    return {
        "traceId": f"{trace_id:032x}",
        "spanId": f"{span_id:016x}",
        "timeUnixNano": str(time_ns),
        "eventName": name,
        "attributes": attributes_as_json(attributes),
        "body": value_as_json(body),
    }


def attributes_as_json(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [{"key": str(key), "value": value_as_json(value)} for key, value in attributes.items()]


def value_as_json(value: Any) -> dict[str, Any]:
    """Convert a value to OTLP/JSON. If OTLP lacks a value's type, the value becomes text. None becomes ``{}``."""
    if isinstance(value, str):
        return {"stringValue": value}
    if isinstance(value, bool):
        return {"boolValue": value}
    if isinstance(value, int):
        return {"intValue": str(value)} if -_INT64 <= value < _INT64 else {"stringValue": str(value)}
    if isinstance(value, float):
        return {"doubleValue": value if math.isfinite(value) else _SPELLED[str(value)]}
    if isinstance(value, bytes):
        return {"bytesValue": base64.b64encode(value).decode()}
    if isinstance(value, Mapping):
        return {"kvlistValue": {"values": attributes_as_json(value)}}
    if isinstance(value, (list, tuple)):
        return {"arrayValue": {"values": [value_as_json(item) for item in value]}}
    return {} if value is None else {"stringValue": str(value)}


_SPELLED = {"inf": "Infinity", "-inf": "-Infinity", "nan": "NaN"}
