"""Recordings as other tools would export them: the inverse of :mod:`otel_agenteval.spans.exports`, based on the tools' documentation."""

from __future__ import annotations

import base64
import datetime
import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from otel_agenteval.spans.otlp import OtlpLog
from otel_agenteval.spans.record import SpanRecord

CODES = {0: "UNSET", 1: "OK", 2: "ERROR"}


def iso(ns: int) -> str:
    """Return a time with nanoseconds, as most tools write it."""
    moment = datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc)
    return f"{moment:%Y-%m-%dT%H:%M:%S}.{ns % 10**9:09d}Z"


def console(spans: list[SpanRecord]) -> str:
    """Return ``span.to_json()`` of each span, with other program output in between."""
    found = []
    for span in spans:
        document = {
            "name": span.name,
            "context": {"trace_id": f"0x{span.trace_id:032x}", "span_id": f"0x{span.span_id:016x}", "trace_state": "[]"},
            "kind": "SpanKind.INTERNAL",
            "parent_id": f"0x{span.parent_id:016x}" if span.parent_id else None,
            "start_time": iso(span.start_ns),
            "end_time": iso(span.end_ns),
            "status": {
                "status_code": CODES[span.status],
                **({"description": span.status_message} if span.status_message else {}),
            },
            "attributes": span.attributes,
            "events": [{"name": one.name, "timestamp": iso(one.time_ns), "attributes": one.attributes} for one in span.events],
            "links": [],
            "resource": {"attributes": dict(span.resource_attributes), "schema_url": ""},
        }
        found.append(json.dumps(document, indent=4))
    return "\n".join(found) + "\n"


def as_text(value: Any) -> str:
    """Return a value as backends without types write it."""
    return value if isinstance(value, str) else json.dumps(value)


def jaeger(spans: list[SpanRecord]) -> str:
    """Return a download from Jaeger's UI: one JSON document over many lines."""

    def tag(key: str, value: Any) -> dict[str, Any]:
        kind = (
            "bool"
            if isinstance(value, bool)
            else "int64"
            if isinstance(value, int)
            else "float64"
            if isinstance(value, float)
            else "string"
        )
        return {"key": key, "type": kind, "value": value if kind != "string" else as_text(value)}

    traces: dict[int, dict[str, Any]] = {}
    for span in spans:
        trace = traces.setdefault(
            span.trace_id, {"traceID": f"{span.trace_id:032x}", "spans": [], "processes": {}, "warnings": None}
        )
        resource = dict(span.resource_attributes)
        process = f"p{len(trace['processes']) + 1}"
        trace["processes"][process] = {
            "serviceName": resource.pop("service.name", ""),
            "tags": [tag(*one) for one in resource.items()],
        }
        tags = [tag(*one) for one in span.attributes.items()]
        tags += [tag("otel.scope.name", span.scope), tag("span.kind", "internal"), tag("internal.span.format", "otlp")]
        if span.status:
            tags.append(tag("otel.status_code", CODES[span.status]))
        if span.status == 2:
            tags.append(tag("error", True))
        if span.status_message:
            tags.append(tag("otel.status_description", span.status_message))
        parent = {"refType": "CHILD_OF", "traceID": f"{span.trace_id:032x}", "spanID": f"{span.parent_id:016x}"}
        trace["spans"].append(
            {
                "traceID": f"{span.trace_id:032x}",
                "spanID": f"{span.span_id:016x}",
                "operationName": span.name,
                "references": [parent] if span.parent_id else [],
                "startTime": span.start_ns // 1_000,
                "duration": span.end_ns // 1_000 - span.start_ns // 1_000,
                "tags": tags,
                "logs": [
                    {
                        "timestamp": one.time_ns // 1_000,
                        "fields": [tag("event", one.name), *(tag(*pair) for pair in one.attributes.items())],
                    }
                    for one in span.events
                ],
                "processID": process,
                "warnings": None,
            }
        )
    return json.dumps({"data": list(traces.values()), "total": 0, "limit": 0, "offset": 0, "errors": None}, indent=2)


def zipkin(spans: list[SpanRecord]) -> str:
    """Return ``GET /api/v2/traces``: lists of lists, with strings as values."""
    traces: dict[int, list[dict[str, Any]]] = {}
    for span in spans:
        tags = {key: as_text(value) for key, value in span.attributes.items()}
        tags["otel.scope.name"] = span.scope
        if span.status:
            tags["otel.status_code"] = CODES[span.status]
        if span.status == 2:
            tags["error"] = span.status_message or ""
        traces.setdefault(span.trace_id, []).append(
            {
                "traceId": f"{span.trace_id:032x}",
                "id": f"{span.span_id:016x}",
                **({"parentId": f"{span.parent_id:016x}"} if span.parent_id else {}),
                "name": span.name,
                "timestamp": span.start_ns // 1_000,
                "duration": max(1, span.end_ns // 1_000 - span.start_ns // 1_000),
                "localEndpoint": {"serviceName": span.resource_attributes.get("service.name", "")},
                "tags": tags,
                "annotations": [
                    {"timestamp": one.time_ns // 1_000, "value": json.dumps({one.name: one.attributes})} for one in span.events
                ],
            }
        )
    return json.dumps(list(traces.values()))


def logfire(spans: list[SpanRecord]) -> str:
    """Return ``GET /v1/query`` with ``json_rows=true``."""
    rows = [
        {
            "kind": "span",
            "trace_id": f"{span.trace_id:032x}",
            "span_id": f"{span.span_id:016x}",
            "parent_span_id": f"{span.parent_id:016x}" if span.parent_id else None,
            "span_name": span.name,
            "start_timestamp": iso(span.start_ns),
            "end_timestamp": iso(span.end_ns),
            "attributes": json.dumps(span.attributes),
            "otel_scope_name": span.scope,
            "service_name": span.resource_attributes.get("service.name"),
            "otel_resource_attributes": json.dumps(dict(span.resource_attributes)),
            "otel_status_code": CODES[span.status],
            "otel_status_message": span.status_message,
            "otel_events": [
                {"event_name": one.name, "event_timestamp": iso(one.time_ns), "attributes": one.attributes} for one in span.events
            ],
        }
        for span in spans
    ]
    return json.dumps({"columns": [{"name": name, "datatype": "Utf8"} for name in rows[0]], "rows": rows})


def logfire_columns(spans: list[SpanRecord]) -> str:
    """Return ``GET /v1/query`` in its default form, column by column."""
    rows = json.loads(logfire(spans))["rows"]
    return json.dumps(
        {"columns": [{"name": name, "datatype": "Utf8", "values": [row[name] for row in rows]} for name in rows[0]]}
    )


def phoenix(spans: list[SpanRecord]) -> str:
    """Return ``GET /v1/projects/…/spans``."""
    return json.dumps({"data": [_phoenix_span(span) for span in spans], "next_cursor": None})


def _phoenix_span(span: SpanRecord) -> dict[str, Any]:
    return {
        "id": f"U3Bhbjo{span.span_id}",
        "name": span.name,
        "context": {"trace_id": f"{span.trace_id:032x}", "span_id": f"{span.span_id:016x}"},
        "span_kind": span.attributes.get("openinference.span.kind", "UNKNOWN"),
        "parent_id": f"{span.parent_id:016x}" if span.parent_id else None,
        "start_time": iso(span.start_ns),
        "end_time": iso(span.end_ns),
        "status_code": CODES[span.status],
        "status_message": span.status_message or "",
        "attributes": span.attributes,
        "events": [{"name": one.name, "timestamp": iso(one.time_ns), "attributes": one.attributes} for one in span.events],
    }


def _nested(attributes: dict[str, Any]) -> dict[str, Any]:
    """Nest ``llm.input_messages.0.message.role`` as Phoenix does: ``{"llm.input_messages": [{"message.role": …}]}``."""
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        parts = key.split(".")
        place = next((n for n, part in enumerate(parts) if part.isdigit()), None)
        if place is None:
            found[key] = value
        else:
            items = found.setdefault(".".join(parts[:place]), {})
            items.setdefault(int(parts[place]), {})[".".join(parts[place + 1 :])] = value
    return {
        key: [_nested(value[n]) for n in sorted(value)]
        if isinstance(value, dict) and all(isinstance(n, int) for n in value)
        else value
        for key, value in found.items()
    }


def phoenix_frame(spans: list[SpanRecord]) -> str:
    """Return ``client.get_spans_dataframe().to_json()``: columns with values by span id."""
    rows = {}
    for span in spans:
        row = _phoenix_span(span)
        attributes = row.pop("attributes")
        context = row.pop("context")
        rows[context["span_id"]] = {
            **row,
            "context.trace_id": context["trace_id"],
            "context.span_id": context["span_id"],
            **{f"attributes.{key}": value for key, value in _nested(attributes).items()},
        }
    names = dict.fromkeys(name for row in rows.values() for name in row)
    return json.dumps({name: {index: row.get(name) for index, row in rows.items()} for name in names})


def go(spans: list[SpanRecord]) -> str:
    """Return the output of ``stdouttrace`` with ``WithPrettyPrint()``."""

    def pairs(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
        return [{"Key": key, "Value": {"Type": "STRING", "Value": value}} for key, value in attributes.items()]

    def context(trace_id: int, span_id: int, remote: bool) -> dict[str, Any]:
        return {
            "TraceID": f"{trace_id:032x}",
            "SpanID": f"{span_id:016x}",
            "TraceFlags": "01",
            "TraceState": "",
            "Remote": remote,
        }

    documents = [
        {
            "Name": span.name,
            "SpanContext": context(span.trace_id, span.span_id, False),
            "Parent": context(span.trace_id if span.parent_id else 0, span.parent_id, span.remote_parent),
            "SpanKind": 2 if span.server else 1,
            "StartTime": iso(span.start_ns),
            "EndTime": iso(span.end_ns),
            "Attributes": pairs(span.attributes) or None,
            "Events": [{"Name": one.name, "Attributes": pairs(one.attributes), "Time": iso(one.time_ns)} for one in span.events],
            "Links": None,
            "Status": {"Code": CODES[span.status].title(), "Description": span.status_message or ""},
            "Resource": pairs(span.resource_attributes),
            "InstrumentationScope": {"Name": span.scope, "Version": "", "SchemaURL": "", "Attributes": None},
        }
        for span in spans
    ]
    return "".join(f"{json.dumps(one, indent=chr(9))}\n" for one in documents)


def node(spans: list[SpanRecord]) -> str:
    """Return the output of Node.js's ``ConsoleSpanExporter`` as JSON."""
    documents = [
        {
            "resource": {"attributes": dict(span.resource_attributes)},
            "instrumentationScope": {"name": span.scope},
            "traceId": f"{span.trace_id:032x}",
            "parentSpanContext": {"spanId": f"{span.parent_id:016x}"} if span.parent_id else None,
            "name": span.name,
            "id": f"{span.span_id:016x}",
            "kind": 1 if span.server else 0,
            "timestamp": span.start_ns // 1_000,
            "duration": (span.end_ns - span.start_ns) / 1_000,
            "attributes": span.attributes,
            "status": {"code": span.status, **({"message": span.status_message} if span.status_message else {})},
            "events": [
                {"name": one.name, "attributes": one.attributes, "time": [one.time_ns // 10**9, one.time_ns % 10**9]}
                for one in span.events
            ],
            "links": [],
        }
        for span in spans
    ]
    return "".join(f"{json.dumps(one)}\n" for one in documents)


def cloudwatch_lines(items: Iterable[SpanRecord | OtlpLog]) -> list[str]:
    """Return log events of ``aws/spans`` and of an agent's log group, as AWS documents them for AgentCore evaluations."""
    found: list[dict[str, Any]] = []
    for item in items:
        ids = {"traceId": f"{item.trace_id:032x}", "spanId": f"{item.span_id:016x}", "scope": {"name": item.scope, "version": ""}}
        if isinstance(item, OtlpLog):
            times = {"timeUnixNano": item.part.time_ns, "observedTimeUnixNano": item.part.time_ns}
            attributes = {"event.name": item.part.name, **item.part.attributes}
            found.append({**ids, **times, "severityNumber": 9, "body": item.part.body, "attributes": attributes})
            continue
        found.append(
            {
                "resource": {"attributes": dict(item.resource_attributes)},
                **ids,
                **({"parentSpanId": f"{item.parent_id:016x}", "flags": 256} if item.parent_id else {}),
                "name": item.name,
                "kind": "SERVER" if item.server else "INTERNAL",
                "startTimeUnixNano": item.start_ns,
                "endTimeUnixNano": item.end_ns,
                "durationNano": item.end_ns - item.start_ns,
                "attributes": item.attributes,
                "status": {"code": CODES[item.status], **({"message": item.status_message} if item.status_message else {})},
                "events": [{"name": one.name, "timeUnixNano": one.time_ns, "attributes": one.attributes} for one in item.events],
            }
        )
    return [json.dumps(one) for one in found]


def cloudwatch(spans: list[SpanRecord]) -> str:
    """Return the output of ``aws logs filter-log-events``."""
    events = [
        {"logStreamName": "default", "timestamp": 0, "message": line, "ingestionTime": 0, "eventId": "1"}
        for line in cloudwatch_lines(spans)
    ]
    return json.dumps({"events": events, "searchedLogStreams": []}, indent=4)


def azure(spans: list[SpanRecord]) -> str:
    """Return a query result of Application Insights tables. All values are strings, as the Python exporter writes them."""

    def properties(attributes: Mapping[str, Any]) -> str:
        texts = {key: str(tuple(one) if isinstance(one, list) else one) for key, one in attributes.items() if one is not None}
        return json.dumps({key: text for key, text in texts.items() if key != "session.id"})

    rows = []
    for span in spans:
        same = {
            "OperationId": f"{span.trace_id:032x}",
            "SessionId": span.attributes.get("session.id") or "",
            "AppRoleName": span.resource_attributes.get("service.name", ""),
        }
        rows.append(
            {
                **same,
                "TimeGenerated": iso(span.start_ns),
                "Id": f"{span.span_id:016x}",
                "ParentId": f"{span.parent_id:016x}" if span.parent_id else same["OperationId"],
                "Name": span.name,
                "DurationMs": (span.end_ns - span.start_ns) / 1e6,
                "Success": span.status != 2,
                "Properties": properties(span.attributes),
                "Message": "",
                "Type": "AppRequests" if span.server else "AppDependencies",
            }
        )
        for event in span.events:
            of_event = {
                "TimeGenerated": iso(event.time_ns),
                "Id": "",
                "ParentId": f"{span.span_id:016x}",
                "Name": "",
                "DurationMs": None,
                "Success": None,
                "Properties": properties(event.attributes),
                "Message": "" if event.name == "exception" else event.name,
                "Type": "AppExceptions" if event.name == "exception" else "AppTraces",
            }
            rows.append({**same, **of_event})
    columns = [{"name": name, "type": "string"} for name in rows[0]]
    return json.dumps({"tables": [{"name": "PrimaryResult", "columns": columns, "rows": [list(row.values()) for row in rows]}]})


def flat(spans: list[SpanRecord]) -> str:
    """Return one object per span in a list in an object, as MLflow's ``trace.to_json()`` and custom exporters do."""
    rows = [
        {
            "trace_id": base64.b64encode(span.trace_id.to_bytes(16, "big")).decode(),
            "span_id": base64.b64encode(span.span_id.to_bytes(8, "big")).decode(),
            "parent_span_id": base64.b64encode(span.parent_id.to_bytes(8, "big")).decode() if span.parent_id else None, "name": span.name,
            "start_time_unix_nano": span.start_ns, "end_time_unix_nano": span.end_ns,
            "status": {"code": f"STATUS_CODE_{CODES[span.status]}", "message": span.status_message or ""},
            "attributes": span.attributes, "resource": {"attributes": dict(span.resource_attributes)}, "scope": {"name": span.scope},
            "events": [{"name": one.name, "timestamp": one.time_ns, "attributes": one.attributes} for one in span.events],
        }
        for span in spans
    ]  # fmt: skip
    return json.dumps({"info": {"state": "OK"}, "data": {"spans": rows}}, indent=2)


def clickhouse(spans: list[SpanRecord]) -> str:
    """Return ``SELECT * FROM otel_traces FORMAT JSONEachRow`` for the Collector exporter's table. Attribute values are strings."""
    rows = [
        {
            "Timestamp": iso(span.start_ns).replace("T", " ").removesuffix("Z"), "TraceId": f"{span.trace_id:032x}",
            "SpanId": f"{span.span_id:016x}", "ParentSpanId": f"{span.parent_id:016x}" if span.parent_id else "", "TraceState": "",
            "SpanName": span.name, "SpanKind": "Internal", "ServiceName": span.resource_attributes.get("service.name", ""),
            "ResourceAttributes": {key: as_text(value) for key, value in span.resource_attributes.items()},
            "ScopeName": span.scope, "ScopeVersion": "", "Duration": span.end_ns - span.start_ns,
            "SpanAttributes": {key: as_text(value) for key, value in span.attributes.items()},
            "StatusCode": CODES[span.status].capitalize(), "StatusMessage": span.status_message or "",
            "Events.Timestamp": [iso(one.time_ns).replace("T", " ").removesuffix("Z") for one in span.events],
            "Events.Name": [one.name for one in span.events],
            "Events.Attributes": [{key: as_text(value) for key, value in one.attributes.items()} for one in span.events],
        }
        for span in spans
    ]  # fmt: skip
    return "".join(f"{json.dumps(row)}\n" for row in rows)


FORMS: dict[str, Callable[[list[SpanRecord]], str]] = {
    "console": console,
    "jaeger": jaeger,
    "zipkin": zipkin,
    "logfire": logfire,
    "logfire columns": logfire_columns,
    "phoenix": phoenix,
    "phoenix frame": phoenix_frame,
    "go": go,
    "node": node,
    "cloudwatch": cloudwatch,
    "azure": azure,
    "flat": flat,
    "clickhouse": clickhouse,
}
