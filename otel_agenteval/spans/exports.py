"""Convert other tools' span files to OTLP/JSON.

The supported formats are from console exporters, Jaeger, Zipkin, Tempo, Phoenix, Langfuse, LangSmith, Datadog, PandaProbe, Logfire,
CloudWatch, and Application Insights. IDs, times, and attributes are converted, so that dialects can interpret the attributes. If a
format stores all values as text, known numeric attributes become numbers again. A document's keys identify its format::

    console     context.trace_id: ConsoleSpanExporter, span.to_json()
    Jaeger      traceID with spans and processes; {"data": [...]} from Jaeger's page or API
    Zipkin      traceId, id, and tags or localEndpoint; a trace is a list of such spans
    Tempo       batches, or trace around resourceSpans
    Phoenix     context.trace_id with span_kind; a data frame's rows, whose columns are attributes.…
    Langfuse    traceId with type and startTime; traces with or without their observations
    LangSmith   run_type with start_time; runs with or without their child_runs
    Datadog     attributes with span_kind and start_ns: span events of LLM Observability
    PandaProbe  spans with started_at or start_time; spans with trace_id, span_id, and started_at
    Logfire     trace_id with start_timestamp; the query API's rows and columns
    CloudWatch  startTimeUnixNano or observedTimeUnixNano; log events and query results that contain such JSON text
    Azure       OperationId or operation_Id: rows of Application Insights; the query API's tables
    Go          SpanContext: stdouttrace
    Node.js     traceId with id, timestamp, and attributes: ConsoleSpanExporter written as JSON
    flat        trace ID, span ID, and attributes in one object, as from ClickHouse's otel_traces, MLflow, or custom exporters
"""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core import jsonio
from .otlp import HAS_IS_REMOTE, IS_REMOTE
from .writing import attributes_as_json, value_as_json

_OTLP = re.compile(rb'\s*\{\s*"resource(?:Spans|Logs|_spans|_logs)"')
"""Matches the start of an OTLP/JSON line. This module doesn't parse these lines."""
_MOST_BYTES = 512 * 2**20
"""Maximum bytes of a JSON document on several lines. A larger document is truncated, so it can't be parsed."""
_FIRST_LINE = 4_096
"""Maximum bytes of the first line if a JSON document has several lines. A longer line is read as a whole document."""
_PREFIX = 256
"""Maximum bytes before the JSON object in a line. A log service's time, level, or stream name can precede the object."""

Numbered = tuple[int, bytes]
"""(line number, line)."""


def otlp_lines(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    """Yield a file's lines. Convert documents in known formats, including documents on several lines, to OTLP/JSON."""
    for number, read in _documents(lines):
        if _says_otlp(read):
            yield number, read
            continue
        document = read
        if read[:1] not in b'{["' and (start := read.find(b"{", 0, _PREFIX)) > 0:
            document = read[start:]
        try:
            value = jsonio.loads_lenient(document)
            messages = list(messages_of(value))
        except (ValueError, RecursionError):
            yield number, read  # the next reader reports the error
            continue
        if len(messages) == 1 and messages[0] is value and document.find(b"\n", 0, -1) < 0:
            yield number, document
        else:
            yield from ((number, jsonio.dumps(message).encode()) for message in messages)


def _says_otlp(line: bytes) -> bool:
    return _OTLP.match(line) is not None and line.find(b"\n", 0, -1) < 0


def _documents(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    """Yield a file's lines. If a JSON document has several lines, yield the whole document."""
    held: list[bytes] = []
    start = tried = size = 0
    for number, line in lines:
        if held:
            if (line[:1] != b"{" or held[0][:1] == b"[") and size < _MOST_BYTES:
                held.append(line)
                size += len(line)
                # Without usual indentation, parsing is tried again at each doubled size.
                if line[:1] in b"}]" and size >= 2 * tried:
                    tried = size
                    if _is_json(document := b"".join(held)):
                        yield start, document
                        held = []
                continue
            yield start, b"".join(held)  # documents don't nest, so the previous one was truncated
            held = []
        if (
            len(line) <= _FIRST_LINE
            and not _says_otlp(line)
            and line[:1] in b"{["
            and line[-3:].rstrip()[-1:] in (b"{", b"[", b",")
            and not _is_json(line)
        ):
            held, start, size, tried = [line], number, len(line), 0
        else:
            yield number, line
    if held:
        yield start, b"".join(held)


def _is_json(text: bytes) -> bool:
    try:
        jsonio.loads_lenient(text)
    except ValueError:
        return False
    return True


# --- formats


def messages_of(value: Any) -> Iterator[Any]:
    """Convert a document in any known format to OTLP/JSON messages. Yield parts in unknown formats unchanged."""
    if isinstance(value, list) and value:
        for item in value:
            yield from messages_of(item)
        return
    convert = next((convert for is_form, convert in _FORMS if is_form(value)), None) if isinstance(value, dict) else None
    try:
        found = [value] if convert is None else [*convert(value)]
    except (ValueError, TypeError, LookupError, AttributeError, OverflowError):
        found = [value]
    yield from found


def _message(span: dict[str, Any], attributes: Any, scope: Any = None, resource: Any = None) -> dict[str, Any]:
    span = {**{key: value for key, value in span.items() if value not in (None, "")}, "attributes": _attributes(attributes)}
    scopes = [{"scope": {"name": str(scope or "")}, "spans": [span]}]
    return {"resourceSpans": [{"resource": {"attributes": _attributes(resource)}, "scopeSpans": scopes}]}


def _attributes(found: Any) -> list[Any]:
    return found if isinstance(found, list) else attributes_as_json(_object(found))


def _span(trace_id: Any, span_id: Any, parent_id: Any, name: Any, start: Any, end: Any, **more: Any) -> dict[str, Any]:
    ids = {"traceId": _hex(trace_id, 32), "spanId": _hex(span_id, 16), "parentSpanId": _hex(parent_id, 16)}
    return {**ids, "name": name, "startTimeUnixNano": start, "endTimeUnixNano": end, **more}


def _log_message(record: Mapping[str, Any], attributes: Any, body: Any, scope: Any = None) -> dict[str, Any]:
    log = {**record, "attributes": _attributes(attributes), "body": value_as_json(body)}
    return {"resourceLogs": [{"scopeLogs": [{"scope": {"name": str(scope or "")}, "logRecords": [log]}]}]}


def _event(name: Any, time_ns: Any, attributes: Any) -> dict[str, Any]:
    return {"name": str(name or ""), "timeUnixNano": str(time_ns or 0), "attributes": _attributes(attributes)}


def _status(code: Any, message: Any = None) -> dict[str, Any] | None:
    name = str(code or "").upper().rpartition("_")[2].rpartition(".")[2]
    number = {"OK": 1, "ERROR": 2, "1": 1, "2": 2}.get(name)
    return None if number is None else {"code": number, **({"message": str(message)} if message else {})}


def _object(value: Any) -> dict[str, Any]:
    if isinstance(value, str) and value[:1] == "{":
        try:
            value = jsonio.loads(value)
        except ValueError:
            return {}
    return value if isinstance(value, dict) else {}


def _objects(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, str) and value[:1] == "[":
        try:
            value = jsonio.loads(value)
        except ValueError:
            return []
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []


def _hex(value: Any, digits: int) -> str | None:
    """Return an ID as hex with leading zeros, or None if empty. Decode hex, base64, and UUIDs of traces. Hash other IDs."""
    text = str(value or "").strip().removeprefix("0x")
    if not text:
        return None
    if text[-1:] == "=" and len(text) == {32: 24, 16: 12}[digits]:  # base64, as in protobuf's JSON
        return base64.b64decode(text).hex()
    text = text.lower()
    if len(text) <= digits and all(one in "0123456789abcdef" for one in text):
        return text.zfill(digits)
    if digits == 32 and len(plain := text.replace("-", "")) == 32 and all(one in "0123456789abcdef" for one in plain):
        return plain
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:digits]


def _nanoseconds(value: Any) -> str | None:
    """Return a time as nanoseconds since 1970, or None for a value in an unknown format.

    The time can be ISO 8601 text, a pair of seconds and nanoseconds, or a number in a guessed unit (from seconds to nanoseconds).
    """
    if isinstance(value, bool) or value is None:
        return None
    if isinstance(value, list):  # Node.js: seconds and nanoseconds
        seconds, nanoseconds = value
        return str(int(seconds) * 10**9 + int(nanoseconds))
    if isinstance(value, (int, float)):
        if isinstance(value, float) and not abs(value) < 1e20:
            return None
        scale = next((scale for most, scale in _SCALES if abs(value) < most), 1)
        return str(int(value * scale) if isinstance(value, int) or scale == 1 else round(value * 1_000) * (scale // 1_000))
    text = str(value).strip().replace(" ", "T", 1)
    whole, dot, rest = text.partition(".")
    digits = len(rest) - len(rest.lstrip("0123456789")) if dot else 0
    fraction, zone = rest[:digits], rest[digits:] if dot else ""
    try:
        moment = datetime.datetime.fromisoformat((whole + zone).replace("Z", "+00:00"))
    except ValueError:
        return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=datetime.timezone.utc)
    return str(int(moment.timestamp()) * 1_000_000_000 + int((fraction + "000000000")[:9]))


_SCALES = ((1e11, 1_000_000_000), (1e14, 1_000_000), (1e17, 1_000))
"""Pairs of (upper limit of a time, factor to nanoseconds) for times in seconds, milliseconds, and microseconds."""


# --- console


def _from_console(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a span from a console exporter or from Phoenix's API, whose ``attributes`` can be nested."""
    context = value["context"]
    status = _object(value.get("status"))
    resource = _object(value.get("resource"))
    resource = _object(resource.get("attributes", resource))  # the first SDKs printed the attributes without this key
    scope = _object(value.get("instrumentation_scope") or value.get("instrumentation_info") or value.get("scope"))
    attributes = _object(value.get("attributes"))
    kind = value.get("span_kind")
    if "span_kind" in value:
        attributes = flattened(attributes)
    if kind in (None, "UNKNOWN"):
        kind = None
    else:
        attributes.setdefault("openinference.span.kind", kind)
    code = status.get("status_code") or value.get("status_code")
    message = status.get("description") or value.get("status_message")
    events = [
        _event(event.get("name"), _nanoseconds(event.get("timestamp")), event.get("attributes"))
        for event in _objects(value.get("events"))
    ]
    span = _span(
        context.get("trace_id"), context.get("span_id"), value.get("parent_id"), value.get("name"), _nanoseconds(value.get("start_time")),
        _nanoseconds(value.get("end_time")), kind=value.get("kind"), status=_status(code, message), events=events, flags=value.get("flags"),
    )  # fmt: skip
    return [_message(span, attributes, scope.get("name") or (kind and "openinference"), resource)]


def _from_go(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    context, parent, status = (_object(value.get(key)) for key in ("SpanContext", "Parent", "Status"))
    scope = _object(value.get("InstrumentationScope") or value.get("InstrumentationLibrary"))
    return _from_console(
        {
            "name": value.get("Name"),
            "context": {"trace_id": context.get("TraceID"), "span_id": context.get("SpanID")},
            "parent_id": parent.get("SpanID"),
            "flags": HAS_IS_REMOTE | IS_REMOTE if parent.get("Remote") else HAS_IS_REMOTE,
            "kind": value.get("SpanKind"),
            "start_time": value.get("StartTime"),
            "end_time": value.get("EndTime"),
            "status": {"status_code": status.get("Code"), "description": status.get("Description")},
            "attributes": _go_attributes(value.get("Attributes")),
            "events": [
                {"name": one.get("Name"), "timestamp": one.get("Time"), "attributes": _go_attributes(one.get("Attributes"))}
                for one in _objects(value.get("Events"))
            ],
            "resource": {"attributes": _go_attributes(value.get("Resource"))},
            "scope": {"name": scope.get("Name")},
        }
    )


def _go_attributes(items: Any) -> dict[str, Any]:
    return {str(item.get("Key")): _object(item.get("Value")).get("Value") for item in _objects(items)}


def _from_node(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    status = _object(value.get("status"))
    return _from_console(
        {
            **value,
            "context": {"trace_id": value["traceId"], "span_id": value["id"]},
            "parent_id": _object(value.get("parentSpanContext")).get("spanId") or value.get("parentId"),
            "kind": "SERVER" if value.get("kind") == 1 else None,  # numbered from 0, unlike OTLP's kinds
            "start_time": value["timestamp"],
            "end_time": value["timestamp"] + round(value.get("duration") or 0),
            "status": {"status_code": status.get("code"), "description": status.get("message")},
            "events": [{**one, "timestamp": one["time"][0] * 10**9 + one["time"][1]} for one in _objects(value.get("events"))],
            "scope": value.get("instrumentationScope"),
        }
    )


def _plain_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    return {str(key).lower().replace("_", ""): one for key, one in value.items()}


def _is_flat(value: Mapping[str, Any]) -> bool:
    keys = _plain_keys(value).keys()
    return keys >= {"traceid", "spanid"} and not keys.isdisjoint({"attributes", "spanattributes"})


def _from_flat(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    flat = _plain_keys(value)

    def get(*keys: str) -> Any:
        return next((flat[key] for key in keys if flat.get(key) not in (None, "")), None)

    start = get("starttimeunixnano", "starttime", "timestamp", "@timestamp")
    begin = _nanoseconds(start)
    end = get("endtimeunixnano", "endtime") or (begin and int(begin) + int(get("duration", "durationnano", "durationns") or 0))
    status, scope = get("status"), get("scope", "instrumentationscope")
    columns = zip(*(flat.get(f"events.{key}") or () for key in ("name", "timestamp", "attributes")), strict=False)
    attributes = _object(get("attributes", "spanattributes"))
    return _from_console(
        {
            "name": get("name", "spanname"),
            "context": {"trace_id": get("traceid"), "span_id": get("spanid")},
            "parent_id": get("parentspanid", "parentid"),
            "kind": get("kind", "spankind"),
            "start_time": start,
            "end_time": end,
            "status": status if isinstance(status, dict) and "status_code" in status else None,
            "status_code": _object(status).get("code") or get("statuscode") or status,
            "status_message": _object(status).get("message") or get("statusmessage"),
            "attributes": {key: _typed(key, one) for key, one in attributes.items()},
            "events": get("events") or [{"name": name, "timestamp": time, "attributes": found} for name, time, found in columns],
            "resource": {"service.name": get("servicename"), **_object(get("resourceattributes"))}
            if "resourceattributes" in flat
            else get("resource"),
            "scope": scope if isinstance(scope, dict) else {"name": get("scopename") or scope},
        }
    )


# --- Jaeger


def _from_jaeger(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for item in _objects(value["spans"]):
        process = _object(value["processes"].get(item.get("processID")) or item.get("process"))
        resource = {"service.name": process.get("serviceName"), **_tags(process.get("tags"))}
        tags = _tags(item.get("tags"))
        parents = [one for one in _objects(item.get("references")) if one.get("refType", "CHILD_OF") == "CHILD_OF"]
        parent = next((one for one in parents if one.get("traceID") == item.get("traceID")), None)
        events = []
        for log in _objects(item.get("logs")):
            fields = _tags(log.get("fields"))
            events.append(_event(fields.pop("event", ""), _microseconds(log.get("timestamp")), fields))
        span = _span(
            item.get("traceID"), item.get("spanID"), parent.get("spanID") if parent else item.get("parentSpanID"), item.get("operationName"),
            *_from_to(item.get("startTime"), item.get("duration")), kind=tags.get("span.kind"), events=events, status=_status_of_tags(tags),
        )  # fmt: skip
        found.append(_message(span, tags, _scope_of_tags(tags), resource))
    return found


def _microseconds(value: Any) -> int:
    return int(value or 0) * 1_000


def _from_to(start: Any, duration: Any) -> tuple[str, str]:
    begin = _microseconds(start)
    return str(begin), str(begin + _microseconds(duration))


def _tags(items: Any) -> dict[str, Any]:
    """Return Jaeger's tags by key. Lists are parsed, because Jaeger stores lists as JSON text."""
    return {str(item.get("key")): _as_list(item.get("value")) for item in _objects(items)}


def _as_list(value: Any) -> Any:
    if isinstance(value, str) and value[:1] == "[" and value[-1:] == "]":
        try:
            found = jsonio.loads(value)
        except ValueError:
            return value
        if found and all(isinstance(one, (str, int, float)) for one in found):
            return found
    return value


def _scope_of_tags(tags: dict[str, Any]) -> Any:
    names = [tags.pop(key, None) for key in ("otel.scope.name", "otel.library.name")]
    for key in ("otel.scope.version", "otel.library.version", "span.kind", "internal.span.format"):
        tags.pop(key, None)
    return next((name for name in names if name), None)


def _status_of_tags(tags: dict[str, Any]) -> dict[str, Any] | None:
    code, message, error = (tags.pop(key, None) for key in ("otel.status_code", "otel.status_description", "error"))
    failed = error not in (None, False, "", "false")
    text = message or (error if failed and isinstance(error, str) and error != "true" else None)
    return _status("ERROR" if failed and not code else code, text)


# --- Zipkin


_MEAN_NUMBERS = (
    "tokens", "_count", "temperature", "top_p", "top_k", "penalty", ".seed", "cost", "_seconds", ".port", "status_code", "_ms", ".score",
    ".prompt", ".completion", ".total", "choice.count",
)  # fmt: skip
"""Endings of keys that have numeric values, which Zipkin stores as text."""


def _from_zipkin(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    endpoint = _object(value.get("localEndpoint"))
    tags = {key: _typed(key, text) for key, text in _object(value.get("tags")).items()}
    events = [_annotation(one) for one in _objects(value.get("annotations"))]
    span = _span(
        value["traceId"], value["id"], value.get("parentId"), value.get("name"), *_from_to(value.get("timestamp"), value.get("duration")),
        kind=value.get("kind"), events=events, status=_status_of_tags(tags),
    )  # fmt: skip
    return [_message(span, tags, _scope_of_tags(tags), {"service.name": endpoint.get("serviceName")})]


def _typed(key: str, text: Any) -> Any:
    if isinstance(text, str):
        if key.endswith(_MEAN_NUMBERS):
            for kind in (int, float):
                try:
                    return kind(text)
                except ValueError:
                    pass
        if text in ("true", "false") and not key.endswith((".name", ".id")):
            return text == "true"
    return _as_list(text)


def _annotation(item: Mapping[str, Any]) -> dict[str, Any]:
    """Convert a Zipkin annotation (``{"name": {attributes}}`` in SDKs, ``name|{attributes}|dropped``, or a name) to an event."""
    text = str(item.get("value") or "")
    time_ns = _microseconds(item.get("timestamp"))
    whole = _object(text)
    if len(whole) == 1:
        ((name, attributes),) = whole.items()
        return _event(name, time_ns, attributes)
    name, _, rest = text.partition("|{")
    return _event(name, time_ns, "{" + rest.rpartition("|")[0])


# --- Phoenix data frames


def _from_row_of_phoenix(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert one row of Phoenix's data frame, or all rows of the frame's ``to_json()`` (column name → row index → value)."""
    if isinstance(value["context.trace_id"], dict):
        columns = {key: _object(column) for key, column in value.items()}
        rows = [{key: column.get(index) for key, column in columns.items()} for index in columns["context.trace_id"]]
    else:
        rows = [dict(value)]
    found: list[dict[str, Any]] = []
    for row in rows:
        attributes = {key.removeprefix("attributes."): one for key, one in row.items() if key.startswith("attributes.")}
        found += _from_console(
            {
                **row,
                "span_kind": row.get("span_kind"),
                "context": {"trace_id": row.get("context.trace_id"), "span_id": row.get("context.span_id")},
                "attributes": {key: one for key, one in attributes.items() if one is not None},
            }
        )
    return found


def flattened(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten objects, and lists that contain objects, to keys such as ``llm.input_messages.0.message.role``.

    The object ``metadata`` isn't flattened, but becomes JSON text.
    """
    found: dict[str, Any] = {}
    for key, value in attributes.items():
        if isinstance(value, dict) and key != "metadata":
            found.update({f"{key}.{inner}": one for inner, one in flattened(value).items()})
        elif isinstance(value, dict):
            found[key] = json.dumps(value, ensure_ascii=False)
        elif isinstance(value, list) and any(isinstance(one, dict) for one in value):
            for place, one in enumerate(value):
                found.update(flattened({f"{key}.{place}": one}))
        elif value is not None:
            found[key] = value
    return found


# --- Langfuse and PandaProbe


def _from_langfuse_trace(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a trace's observations to spans. A trace without observations becomes one span with the trace's input and output."""
    begun, seconds = value.get("timestamp"), value.get("latency")
    end = int(start) + round(seconds * 1e9) if (start := _nanoseconds(begun)) and isinstance(seconds, (int, float)) else begun
    own = {**value, "id": f"trace-{value['id']}", "type": "AGENT", "startTime": begun, "endTime": end}
    own["costDetails"] = {"total": value.get("totalCost", value.get("total_cost"))}
    observations = _objects(value.get("observations")) or [own]
    roots = sum(not (one.get("parentObservationId") or one.get("parent_observation_id")) for one in observations)
    shared = value if roots == 1 else {**value, "input": None, "output": None}
    return [message for one in observations for message in _from_observation({"traceId": value["id"], **one}, shared)]


def _from_observation(value: Mapping[str, Any], trace: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    def get(name: str) -> Any:
        """Return a field by its API name or, as in files from Langfuse's web page, by the API name in snake case."""
        found = value.get(name)
        return value.get("".join(f"_{one.lower()}" if one.isupper() else one for one in name)) if found is None else found

    metadata = _object(get("metadata"))
    span = _span(
        get("traceId"), value.get("id"), get("parentObservationId"), get("name"), _nanoseconds(get("startTime")),
        _nanoseconds(get("endTime") or get("startTime")), status=_status(get("level") == "ERROR" and "ERROR", get("statusMessage")),
    )  # fmt: skip
    resource = _object(metadata.get("resourceAttributes"))
    scope = _object(metadata.get("scope")).get("name")
    return [_message(span, _langfuse_attributes(get, metadata, trace or {}), scope or "langfuse-sdk", resource)]


def _langfuse_attributes(get: Callable[[str], Any], metadata: Mapping[str, Any], trace: Mapping[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = dict(_object(metadata.get("attributes")))
    if not any(key.startswith("langfuse.") for key in attributes):
        attributes["langfuse.observation.type"] = str(get("type") or "span").lower()
    of_root = {} if get("parentObservationId") else trace
    found = {
        "langfuse.observation.input": get("input") or of_root.get("input"),
        "langfuse.observation.output": get("output") or of_root.get("output"),
        "langfuse.observation.model.name": get("model") or get("providedModelName"),
        "langfuse.observation.model.parameters": get("modelParameters"),
        "langfuse.observation.usage_details": get("usageDetails") or get("usage"),
        "langfuse.observation.cost_details": get("costDetails"),
        "langfuse.observation.level": get("level"),
        "session.id": trace.get("sessionId") or get("sessionId"),
        "user.id": trace.get("userId") or get("userId"),
        "langfuse.trace.name": of_root.get("name"),
        **{f"langfuse.observation.metadata.{key}": one for key, one in metadata.items() if key not in _LANGFUSE_OWN},
    }
    for key, one in found.items():
        if one not in (None, "", {}, []) and key not in attributes:
            attributes[key] = jsonio.text_of(one) if isinstance(one, (dict, list)) else one
    return attributes


_LANGFUSE_OWN = frozenset(("attributes", "resourceAttributes", "scope"))
"""Keys that Langfuse adds to an observation's metadata if the observation comes from an OpenTelemetry span."""


def _from_pandaprobe_trace(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a PandaProbe trace and its spans to OTLP spans. The trace becomes a root span with the trace's input and output."""
    has_agent = any(str(one.get("kind", one.get("type"))).upper() == "AGENT" for one in value["spans"])
    trace = {"trace_id": value.get("id"), **value, "kind": "CHAIN" if has_agent else "AGENT"}
    trace["span_id"] = f"trace-{trace['trace_id']}"
    shared = {key: trace.get(key) for key in ("trace_id", "session_id", "user_id", "release")}
    known = {one.get("span_id", one.get("id")) for one in value["spans"]}
    found = _from_pandaprobe_span(trace)
    for one in value["spans"]:
        parent = one.get("parent_span_id", one.get("parent_id"))
        found += _from_pandaprobe_span({**shared, **one, "parent_span_id": parent if parent in known else trace["span_id"]})
    return found


def _from_pandaprobe_span(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    flat = {**_object(value.get("token_usage") or value.get("usage")), **_object(value.get("cost")), **value}

    def get(*keys: str) -> Any:
        return next((flat[key] for key in keys if flat.get(key) is not None), None)

    found = {
        "openinference.span.kind": get("kind", "type") or "CHAIN", "input.value": get("input", "inputs"),
        "output.value": get("output", "outputs"), "llm.model_name": get("model"), "metadata": get("metadata"),
        "session.id": get("session_id"), "user.id": get("user_id"), "llm.cost.total": get("total_cost", "total"),
        "llm.token_count.prompt": get("prompt_tokens", "input_tokens"), "llm.token_count.completion": get("completion_tokens", "output_tokens"),
    }  # fmt: skip
    attributes = {key: jsonio.text_of(one) if isinstance(one, (dict, list)) else one for key, one in found.items()}
    start, end = (_nanoseconds(get(*keys)) for keys in (("started_at", "start_time"), ("ended_at", "end_time")))
    ids = get("trace_id"), get("span_id", "id"), get("parent_span_id", "parent_id")
    span = _span(*ids, get("name"), start, end or start, status=_status(get("status"), get("error")))
    return [_message(span, attributes, None, {"service.version": get("release")})]


# --- LangSmith and Datadog, converted like spans of PandaProbe


def _from_langsmith(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    metadata = _object(_object(value.get("extra")).get("metadata"))
    sides = {
        key: next(iter(side.values())) if (side := _object(value.get(f"{key}s"))).keys() == {key} else side
        for key in ("input", "output")
    }
    run = {
        **value, **sides, "parent_id": value.get("parent_run_id"), "kind": value["run_type"].upper(), "model": metadata.get("ls_model_name"),
        "session_id": metadata.get("thread_id", metadata.get("session_id")), "user_id": metadata.get("user_id"), "metadata": metadata,
    }  # fmt: skip
    return _from_pandaprobe_span(run) + [
        message for child in _objects(value.get("child_runs")) for message in _from_langsmith(child)
    ]


def _from_datadog(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    one = value["attributes"]
    sides = {key: side.get("messages") or side.get("value") for key in ("input", "output") if (side := _object(one.get(key)))}
    tags = dict(str(tag).split(":", 1) for tag in one.get("tags") or () if ":" in str(tag))
    times = {"start_time": one["start_ns"], "end_time": one["start_ns"] + int(one.get("duration") or 0)}
    more = {
        "kind": _KINDS_OF_DATADOG.get(one["span_kind"], one["span_kind"].upper()),
        "usage": one.get("metrics"),
        "model": one.get("model_name"),
        "parent_id": None if one.get("parent_id") == "undefined" else one.get("parent_id"),
        "session_id": tags.get("session_id"),
    }
    return _from_pandaprobe_span({**one, **sides, **times, **more})


_KINDS_OF_DATADOG = {"retrieval": "RETRIEVER", "task": "CHAIN", "workflow": "CHAIN"}


# --- Logfire


def _from_logfire(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    if value.get("kind") in ("pending_span", "span_event"):
        return []
    events = [
        _event(
            event.get("event_name") or event.get("name"),
            _nanoseconds(event.get("event_timestamp") or event.get("timestamp")),
            _object(event.get("attributes")) or {key: one for key, one in event.items() if not key.startswith("event_")},
        )
        for event in _objects(value.get("otel_events"))
    ]
    attributes = {
        key: json.dumps(one, ensure_ascii=False) if isinstance(one, dict) or (isinstance(one, list) and any(isinstance(item, (dict, list)) for item in one)) else one
        for key, one in _object(value.get("attributes")).items()
    }  # fmt: skip
    span = _span(
        value["trace_id"], value["span_id"], value.get("parent_span_id"), value.get("span_name"), _nanoseconds(value["start_timestamp"]),
        _nanoseconds(value.get("end_timestamp")), status=_status(value.get("otel_status_code"), value.get("otel_status_message")), events=events,
    )  # fmt: skip
    resource = _object(value.get("otel_resource_attributes"))
    if value.get("service_name"):
        resource = {"service.name": value["service_name"], **resource}
    return [_message(span, attributes, value.get("otel_scope_name"), resource)]


# --- CloudWatch


def _from_cloudwatch(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a span from the log group ``aws/spans``, or a log record with a span's content."""
    scope, status = _object(value.get("scope")).get("name"), _object(value.get("status"))
    if "startTimeUnixNano" not in value:
        return [_log_message(value, value.get("attributes"), value.get("body"), scope)]
    events = [_event(one.get("name"), one.get("timeUnixNano"), one.get("attributes")) for one in _objects(value.get("events"))]
    span = {**value, "status": _status(status.get("code"), status.get("message")), "events": events}
    return [_message(span, value.get("attributes"), scope, _object(value.get("resource")).get("attributes"))]


def _from_log_line(value: Mapping[str, Any]) -> Iterable[Any]:
    """Convert a log event, or the ``@message`` field of a query result. Skip a query result's other fields."""
    if value.get("field", "@message") != "@message":
        return ()
    inner = _object(next((value[key] for key in ("@message", "message", "value") if key in value), None))
    return messages_of(inner) if inner else [value]


# --- Application Insights


_COLUMNS = {
    "operation_Id": "OperationId", "operation_ParentId": "ParentId", "id": "Id", "name": "Name", "message": "Message", "timestamp": "TimeGenerated",
    "session_Id": "SessionId", "duration": "DurationMs", "success": "Success", "customDimensions": "Properties", "cloud_RoleName": "AppRoleName", "itemType": "Type",
}  # fmt: skip
"""Maps column names in classic Application Insights tables to column names in a workspace."""
_TUPLE = re.compile(r"\('[^']*'(?:, '[^']*')*,?\)")
"""Matches a list of texts, which Azure's exporter for Python writes as a tuple."""


def _from_azure(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a row with an ID, for example from the table ``requests``, to a span, and any other row to a log record."""
    row = {_COLUMNS.get(key, key): one for key, one in value.items()}
    trace, parent, start = row["OperationId"], row.get("ParentId"), _nanoseconds(row.get("TimeGenerated"))
    attributes = {"session.id": row["SessionId"]} if row.get("SessionId") else {}
    for key, text in _object(row.get("Properties")).items():
        is_tuple = isinstance(text, str) and _TUPLE.fullmatch(text)
        attributes[key] = re.findall("'([^']*)'", text) if is_tuple else _typed(key, text)
    if not row.get("Id"):
        text = str(row.get("Message") or row.get("Name") or "exception")
        name = text if text.startswith(("gen_ai.", "exception")) else None
        record = {"traceId": _hex(trace, 32), "spanId": _hex(parent, 16), "timeUnixNano": start, "eventName": name}
        return [_log_message(record, attributes, None if name else _object(text) or text)]
    end = start and str(int(start) + round(float(row.get("DurationMs") or 0) * 1e6))
    kind = "SERVER" if "request" in str(row.get("Type")).lower() else None
    status = _status(str(row.get("Success")).lower() == "false" and "ERROR")
    # The service repeats the trace id as the parent of a root.
    span = _span(trace, row["Id"], parent if parent != trace else None, row.get("Name"), start, end, kind=kind, status=status)
    return [_message(span, attributes, None, {"service.name": row.get("AppRoleName")})]


# --- containers


def _from_rows(value: Mapping[str, Any]) -> Iterator[Any]:
    names = [column["name"] for column in _objects(value.get("columns"))]
    for row in value["rows"]:
        yield from messages_of(dict(zip(names, row, strict=True)) if isinstance(row, list) else row)


def _from_columns(value: Mapping[str, Any]) -> Iterator[Any]:
    columns = [(column["name"], column["values"]) for column in value["columns"]]
    for row in zip(*(values for _, values in columns), strict=True):
        yield from messages_of(dict(zip((name for name, _ in columns), row, strict=True)))


def _from_tempo(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    if (groups := value.get("batches")) is None:
        trace = value["trace"]
        groups = trace.get("resourceSpans") or trace.get("batches")
    found = []
    for group in _objects(groups):
        scopes = group.get("scopeSpans") or group.get("instrumentationLibrarySpans")
        found.append({**group, "scopeSpans": [{"scope": one.get("instrumentationLibrary"), **one} for one in _objects(scopes)]})
    return [{"resourceSpans": found}]


def _has(*keys: str, **kinds: type) -> Callable[[Mapping[str, Any]], bool]:
    """Return a function that checks whether an object has all ``keys``, and values with the types in ``kinds``."""
    return lambda value: value.keys() >= {*keys} and all(isinstance(value.get(key), kind) for key, kind in kinds.items())


_OF_LANGFUSE = frozenset(("htmlPath", "projectId", "project_id", "environment", "bookmarked", "totalCost", "total_cost"))
"""Keys of Langfuse traces. Each trace has at least one of these keys. Other tools' spans and datasets rarely have them."""
Form = tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Iterable[Any]]]
_FORMS: Sequence[Form] = (
    (lambda value: any(key in value for key in ("resourceSpans", "resourceLogs", "resource_spans", "resource_logs")), lambda value: [value]),
    (_has(batches=list), _from_tempo),
    (_has("observations", trace=dict), lambda value: _from_langfuse_trace({**value, **value["trace"]})),
    (_has(trace=dict), _from_tempo),
    (lambda value: "trace_id" in _object(value.get("context")), _from_console),
    (_has(spans=list, processes=dict), _from_jaeger),
    (_has("context.trace_id", "context.span_id"), _from_row_of_phoenix),
    (_has("id", "start_time", run_type=str), _from_langsmith),
    (lambda value: {"span_kind", "start_ns"} <= _object(value.get("attributes")).keys(), _from_datadog),
    (lambda value: "resourceSpans" in _object(value.get("result")), lambda value: [value["result"]]),
    (_has(_source=dict), lambda value: messages_of(value["_source"])),
    (_has("trace_id", "span_id", "start_timestamp"), _from_logfire),
    (lambda value: "id" in value and _objects(value.get("observations")) == value.get("observations"), _from_langfuse_trace),
    (lambda value: value.keys() >= {"id", "timestamp", "input", "output"} and not _OF_LANGFUSE.isdisjoint(value), _from_langfuse_trace),
    (lambda value: _has(spans=list)(value) and ("started_at" in value or "start_time" in value), _from_pandaprobe_trace),
    (_has("trace_id", "span_id", "started_at"), _from_pandaprobe_span),
    (_has("traceId", "type", "startTime"), _from_observation),
    (_has("trace_id", "type", "start_time"), _from_observation),
    (_has("traceId", "id", "tags"), _from_zipkin),
    (_has("traceId", "id", "localEndpoint"), _from_zipkin),
    (_has("SpanContext"), _from_go),
    (_has("startTimeUnixNano"), _from_cloudwatch),
    (_has("observedTimeUnixNano"), _from_cloudwatch),
    (_has("OperationId"), _from_azure),
    (_has("operation_Id"), _from_azure),
    (_has("traceId", "id", "timestamp", "attributes"), _from_node),
    (_has("message", "timestamp"), _from_log_line),
    (_has("@message"), _from_log_line),
    (lambda value: str(value.get("field"))[:1] == "@", _from_log_line),
    (_has(scopeSpans=list), lambda value: [{"resourceSpans": [value]}]),
    (_has(scopeLogs=list), lambda value: [{"resourceLogs": [value]}]),
    (_is_flat, _from_flat),
    (_has(rows=list), _from_rows),
    (lambda value: _has(meta=list, data=list)(value) and value["data"][:1] != _objects(value["data"][:1]), lambda value: _from_rows({"columns": value["meta"], "rows": value["data"]})),
    (_has(columns=list), _from_columns),
    (_has("page", "total", content=list), lambda value: messages_of(value["content"])),
    *((_has(**{key: kind}), lambda value, key=key: messages_of(value[key])) for key in ("data", "tables", "results", "events", "logEvents", "items", "traces", "spans", "hits") for kind in (list, dict)),
)  # fmt: skip
"""Pairs of (test, converter). The first pair whose test succeeds is used."""
