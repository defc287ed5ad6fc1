"""Conversion of other tools' span files to OTLP/JSON.

It reads the output of ``ConsoleSpanExporter`` and exports of Jaeger, Zipkin, Tempo, Phoenix, Langfuse and Logfire. A document's
keys identify its format. Formats differ in ids, times and attributes. The dialects interpret attributes, as with any other
span. Formats that store only texts don't preserve types, so known numeric attributes are converted back.

===============  ==================================================================================================
format           identified by
===============  ==================================================================================================
console          ``context.trace_id``: ``ConsoleSpanExporter``, ``span.to_json()``
Jaeger           ``traceID`` with ``spans`` and ``processes``; the page's and the API's ``{"data": [...]}``
Zipkin           ``traceId``, ``id`` and ``tags`` or ``localEndpoint``; traces are lists of them
Tempo            ``batches``, or ``trace`` around ``resourceSpans``
Phoenix          ``context.trace_id`` with ``span_kind``; a data frame's rows, whose columns are ``attributes.…``
Langfuse         ``traceId`` with ``type`` and ``startTime``; a trace with its ``observations``
Logfire          ``trace_id`` with ``start_timestamp``; the query API's ``rows`` and ``columns``
===============  ==================================================================================================
"""

from __future__ import annotations

import datetime
import hashlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from ..core import jsonio
from .writing import attributes_as_json

_OTLP = re.compile(rb'\s*\{\s*"resource(?:Spans|Logs|_spans|_logs)"')
"""Start of an OTLP/JSON line. Such lines aren't parsed here."""

_MOST_BYTES = 512 * 2**20
"""Limit in bytes for a document of several lines. A larger one isn't treated as a document."""
_FIRST_LINE = 4_096
"""Limit in bytes for the first line of a document of several lines. A longer line is a broken one-line document."""

Numbered = tuple[int, bytes]
"""A line's number and the line."""


def otlp_lines(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    """Yield a file's lines as OTLP/JSON.

    Documents in other formats are converted, even if they span several lines. Anything else stays unchanged.
    """
    for number, document in _documents(lines):
        if _says_otlp(document):
            yield number, document
            continue
        try:
            value = jsonio.loads_lenient(document)
            messages = list(messages_of(value))
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
            yield number, document  # the next reader reports the error
            continue
        if len(messages) == 1 and messages[0] is value and document.find(b"\n", 0, -1) < 0:
            yield number, document
        else:
            yield from ((number, jsonio.dumps(message).encode()) for message in messages)


def _says_otlp(line: bytes) -> bool:
    return _OTLP.match(line) is not None and line.find(b"\n", 0, -1) < 0


def _documents(lines: Iterable[Numbered]) -> Iterator[Numbered]:
    """Yield lines, with the lines of an indented document joined."""
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
    """Yield the OTLP/JSON messages in a document of any known format, or the document itself.

    Raises:
        TypeError, ValueError, KeyError, AttributeError, OverflowError: it has a format's keys, but invalid values.
    """
    if isinstance(value, list) and value:
        for item in value:
            yield from messages_of(item)
        return
    convert = next((convert for is_form, convert in _FORMS if is_form(value)), None) if isinstance(value, dict) else None
    if convert is None:
        yield value
    else:
        yield from convert(value)


def _message(
    span: dict[str, Any], attributes: Mapping[str, Any], scope: Any = None, resource: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    span = {key: value for key, value in span.items() if value not in (None, "")}
    return {
        "resourceSpans": [
            {
                "resource": {"attributes": attributes_as_json(resource or {})},
                "scopeSpans": [
                    {"scope": {"name": str(scope or "")}, "spans": [{**span, "attributes": attributes_as_json(attributes)}]}
                ],
            }
        ]
    }


def _event(name: Any, time_ns: int | None, attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": str(name or ""), "timeUnixNano": str(time_ns or 0), "attributes": attributes_as_json(attributes)}


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
    """Return an id as hex digits.

    A prefix ``0x`` is removed, and missing leading zeros are added. An id of another form becomes its digest.
    """
    text = str(value or "").strip().removeprefix("0x").lower()
    if not text:
        return None
    if len(text) <= digits and all(one in "0123456789abcdef" for one in text):
        return text.zfill(digits)
    if digits == 32 and len(plain := text.replace("-", "")) == 32 and all(one in "0123456789abcdef" for one in plain):
        return plain
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()[:digits]


def _nanoseconds(value: Any) -> str | None:
    """Return a time as nanoseconds since 1970, or None.

    It is ISO 8601, or a number in seconds, milli-, micro- or nanoseconds.
    """
    if isinstance(value, bool) or value is None:
        return None
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
"""Upper limits of numbers in seconds, milliseconds and microseconds, with their factors."""


# --- console


def _is_console(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("context"), dict) and "trace_id" in value["context"]


def _from_console(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a console span or a span of Phoenix's API, whose ``attributes`` may be nested."""
    context = value["context"]
    status = _object(value.get("status"))
    resource = _object(_object(value.get("resource")).get("attributes"))
    scope = _object(value.get("instrumentation_scope") or value.get("instrumentation_info") or value.get("scope"))
    attributes = _object(value.get("attributes"))
    kind = value.get("span_kind")
    if "span_kind" in value:
        attributes = flattened(attributes)
    if kind in (None, "UNKNOWN"):
        kind = None
    else:
        attributes.setdefault("openinference.span.kind", kind)
    events = [
        _event(event.get("name"), _number(_nanoseconds(event.get("timestamp"))), _object(event.get("attributes")))
        for event in _objects(value.get("events"))
    ]
    span = {
        "traceId": _hex(context.get("trace_id"), 32),
        "spanId": _hex(context.get("span_id"), 16),
        "parentSpanId": _hex(value.get("parent_id"), 16),
        "kind": value.get("kind"),
        "name": value.get("name"),
        "startTimeUnixNano": _nanoseconds(value.get("start_time")),
        "endTimeUnixNano": _nanoseconds(value.get("end_time")),
        "status": _status(
            status.get("status_code") or value.get("status_code"), status.get("description") or value.get("status_message")
        ),
        "events": events,
    }
    return [_message(span, attributes, scope.get("name") or (kind and "openinference"), resource)]


def _number(text: str | None) -> int | None:
    return None if text is None else int(text)


# --- Jaeger


def _is_jaeger(value: Mapping[str, Any]) -> bool:
    return isinstance(value.get("spans"), list) and isinstance(value.get("processes"), dict)


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
        span = {
            "traceId": _hex(item.get("traceID"), 32),
            "spanId": _hex(item.get("spanID"), 16),
            "parentSpanId": _hex(parent.get("spanID") if parent else item.get("parentSpanID"), 16),
            "kind": tags.get("span.kind"),
            "name": item.get("operationName"),
            **_from_to(item.get("startTime"), item.get("duration")),
            "events": events,
            **_status_of_tags(tags),
        }
        found.append(_message(span, tags, _scope_of_tags(tags), resource))
    return found


def _microseconds(value: Any) -> int:
    return int(value or 0) * 1_000


def _from_to(start: Any, duration: Any) -> dict[str, Any]:
    begin = _microseconds(start)
    return {"startTimeUnixNano": str(begin), "endTimeUnixNano": str(begin + _microseconds(duration))}


def _tags(items: Any) -> dict[str, Any]:
    """Return Jaeger's typed tags. Jaeger stores lists as JSON text."""
    return {str(item.get("key")): _as_list(item.get("value")) for item in _objects(items)}


def _as_list(value: Any) -> Any:
    """Return a list of plain values from JSON text, or the value unchanged."""
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


def _status_of_tags(tags: dict[str, Any]) -> dict[str, Any]:
    code, message, error = (tags.pop(key, None) for key in ("otel.status_code", "otel.status_description", "error"))
    failed = error not in (None, False, "", "false")
    text = message or (error if failed and isinstance(error, str) and error != "true" else None)
    return {"status": _status("ERROR" if failed and not code else code, text)}


# --- Zipkin


def _is_zipkin(value: Mapping[str, Any]) -> bool:
    return "traceId" in value and "id" in value and ("tags" in value or "localEndpoint" in value) and "observations" not in value


_MEAN_NUMBERS = (
    "tokens", "_count", "temperature", "top_p", "top_k", "penalty", ".seed", "cost", "_seconds", ".port", "status_code", "_ms", ".score",
    ".prompt", ".completion", ".total", "choice.count",
)  # fmt: skip
"""Endings of keys with numeric values. Zipkin stores only texts."""


def _from_zipkin(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    endpoint = _object(value.get("localEndpoint"))
    tags = {key: _typed(key, text) for key, text in _object(value.get("tags")).items()}
    span = {
        "traceId": _hex(value["traceId"], 32),
        "spanId": _hex(value["id"], 16),
        "parentSpanId": _hex(value.get("parentId"), 16),
        "kind": value.get("kind"),
        "name": value.get("name"),
        **_from_to(value.get("timestamp"), value.get("duration")),
        "events": [_annotation(one) for one in _objects(value.get("annotations"))],
        **_status_of_tags(tags),
    }
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
    """Return an event from a Zipkin annotation.

    SDKs write ``{"name": {attributes}}``, the Collector ``name|{attributes}|dropped``. Others write only the name.
    """
    text = str(item.get("value") or "")
    time_ns = _microseconds(item.get("timestamp"))
    whole = _object(text)
    if len(whole) == 1:
        ((name, attributes),) = whole.items()
        return _event(name, time_ns, _object(attributes))
    name, _, rest = text.partition("|{")
    return _event(name, time_ns, _object("{" + rest.rpartition("|")[0]) if rest else {})


# --- Phoenix data frames


def _is_row_of_phoenix(value: Mapping[str, Any]) -> bool:
    return "context.trace_id" in value and "context.span_id" in value


def _from_row_of_phoenix(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a row, or the columns that ``DataFrame.to_json()`` writes.

    Each column has its values by row index.
    """
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
    """Return attributes with one flat key per plain value.

    An example is ``llm.input_messages.0.message.role``. Lists of plain values stay lists.
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


# --- Langfuse


def _is_langfuse_trace(value: Mapping[str, Any]) -> bool:
    return (
        isinstance(value.get("observations"), list)
        and "id" in value
        and all(isinstance(one, dict) for one in value["observations"])
    )


def _from_langfuse_trace(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Convert a trace's observations or, without any, its own input and output."""
    found = [message for one in value["observations"] for message in _from_observation({"traceId": value["id"], **one}, value)]
    if not found:
        own = {
            "id": f"trace-{value['id']}", "traceId": value["id"], "type": "SPAN", "name": value.get("name"),
            "startTime": value.get("timestamp"), "endTime": _end_of(value), "input": value.get("input"), "output": value.get("output"),
        }  # fmt: skip
        found = _from_observation(own, value)
    return found


def _end_of(trace: Mapping[str, Any]) -> Any:
    start, seconds = _number(_nanoseconds(trace.get("timestamp"))), trace.get("latency")
    return start + round(seconds * 1e9) if start is not None and isinstance(seconds, (int, float)) else trace.get("timestamp")


def _is_observation(value: Mapping[str, Any]) -> bool:
    return ("traceId" in value or "trace_id" in value) and "type" in value and ("startTime" in value or "start_time" in value)


def _from_observation(value: Mapping[str, Any], trace: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
    def get(name: str) -> Any:
        """Return a field by its name in the API or in a page export."""
        found = value.get(name)
        return value.get("".join(f"_{one.lower()}" if one.isupper() else one for one in name)) if found is None else found

    metadata = _object(get("metadata"))
    span = {
        "traceId": _hex(get("traceId"), 32),
        "spanId": _hex(value.get("id"), 16),
        "parentSpanId": _hex(get("parentObservationId"), 16),
        "name": get("name"),
        "startTimeUnixNano": _nanoseconds(get("startTime")),
        "endTimeUnixNano": _nanoseconds(get("endTime") or get("startTime")),
        "status": _status("ERROR" if get("level") == "ERROR" else None, get("statusMessage")),
    }
    resource = _object(metadata.get("resourceAttributes"))
    scope = _object(metadata.get("scope")).get("name")
    return [_message(span, _langfuse_attributes(get, metadata, trace or {}), scope or "langfuse-sdk", resource)]


def _langfuse_attributes(get: Callable[[str], Any], metadata: Mapping[str, Any], trace: Mapping[str, Any]) -> dict[str, Any]:
    attributes: dict[str, Any] = dict(_object(metadata.get("attributes")))
    if not any(key.startswith("langfuse.") for key in attributes):
        attributes["langfuse.observation.type"] = str(get("type") or "span").lower()
    found = {
        "langfuse.observation.input": get("input"),
        "langfuse.observation.output": get("output"),
        "langfuse.observation.model.name": get("model") or get("providedModelName"),
        "langfuse.observation.model.parameters": get("modelParameters"),
        "langfuse.observation.usage_details": get("usageDetails") or get("usage"),
        "langfuse.observation.cost_details": get("costDetails"),
        "langfuse.observation.level": get("level"),
        "session.id": trace.get("sessionId") or get("sessionId"),
        "user.id": trace.get("userId") or get("userId"),
        **({"langfuse.trace.name": trace.get("name")} if not get("parentObservationId") else {}),
        **{f"langfuse.observation.metadata.{key}": one for key, one in metadata.items() if key not in _LANGFUSE_OWN},
    }
    for key, one in found.items():
        if one not in (None, "", {}, []) and key not in attributes:
            attributes[key] = jsonio.text_of(one) if isinstance(one, (dict, list)) else one
    return attributes


_LANGFUSE_OWN = frozenset(("attributes", "resourceAttributes", "scope"))
"""Keys that Langfuse adds to the metadata of an observation from a span."""


# --- Logfire


def _is_logfire(value: Mapping[str, Any]) -> bool:
    return "trace_id" in value and "span_id" in value and "start_timestamp" in value


def _from_logfire(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    if value.get("kind") in ("pending_span", "span_event"):
        return []
    events = [
        _event(
            event.get("event_name") or event.get("name"),
            _number(_nanoseconds(event.get("event_timestamp") or event.get("timestamp"))),
            _object(event.get("attributes")) or {key: one for key, one in event.items() if not key.startswith("event_")},
        )
        for event in _objects(value.get("otel_events"))
    ]
    attributes = {
        key: json.dumps(one, ensure_ascii=False) if isinstance(one, dict) or (isinstance(one, list) and any(isinstance(item, (dict, list)) for item in one)) else one
        for key, one in _object(value.get("attributes")).items()
    }  # fmt: skip
    span = {
        "traceId": _hex(value["trace_id"], 32),
        "spanId": _hex(value["span_id"], 16),
        "parentSpanId": _hex(value.get("parent_span_id"), 16),
        "name": value.get("span_name"),
        "startTimeUnixNano": _nanoseconds(value["start_timestamp"]),
        "endTimeUnixNano": _nanoseconds(value.get("end_timestamp")),
        "status": _status(value.get("otel_status_code"), value.get("otel_status_message")),
        "events": events,
    }
    resource = _object(value.get("otel_resource_attributes"))
    if value.get("service_name"):
        resource = {"service.name": value["service_name"], **resource}
    return [_message(span, attributes, value.get("otel_scope_name"), resource)]


# --- containers


def _from_columns(value: Mapping[str, Any]) -> Iterator[Any]:
    columns = [(column["name"], column["values"]) for column in value["columns"]]
    for row in zip(*(values for _, values in columns), strict=True):
        yield from messages_of(dict(zip((name for name, _ in columns), row, strict=True)))


def _from_tempo(value: Mapping[str, Any]) -> list[dict[str, Any]]:
    groups = value.get("batches")
    if groups is None:
        trace = value["trace"]
        groups = trace.get("resourceSpans") or trace.get("batches")
    found = []
    for group in _objects(groups):
        scopes = group.get("scopeSpans") or group.get("instrumentationLibrarySpans")
        found.append({**group, "scopeSpans": [{"scope": one.get("instrumentationLibrary"), **one} for one in _objects(scopes)]})
    return [{"resourceSpans": found}]


Form = tuple[Callable[[Mapping[str, Any]], bool], Callable[[Mapping[str, Any]], Iterable[Any]]]
_FORMS: Sequence[Form] = (
    (lambda value: any(key in value for key in ("resourceSpans", "resourceLogs", "resource_spans", "resource_logs")), lambda value: [value]),
    (lambda value: isinstance(value.get("batches"), list) or isinstance(value.get("trace"), dict), _from_tempo),
    (_is_console, _from_console),
    (_is_jaeger, _from_jaeger),
    (_is_row_of_phoenix, _from_row_of_phoenix),
    (_is_logfire, _from_logfire),
    (_is_langfuse_trace, _from_langfuse_trace),
    (_is_observation, _from_observation),
    (_is_zipkin, _from_zipkin),
    (lambda value: isinstance(value.get("data"), (list, dict)), lambda value: messages_of(value["data"])),
    (lambda value: isinstance(value.get("rows"), list), lambda value: messages_of(value["rows"])),
    (lambda value: isinstance(value.get("columns"), list), _from_columns),
)  # fmt: skip
"""Formats in order. The first one whose keys a document has is used."""
