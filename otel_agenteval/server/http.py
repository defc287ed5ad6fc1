"""Receiver for OTLP and user feedback over HTTP, with health and readiness endpoints on the same port."""

from __future__ import annotations

import codecs
import json
import math
import time
import uuid
from collections.abc import Mapping
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

from google.protobuf import json_format

from ..core import jsonio
from ..core.errors import ConfigError, nearest
from ..core.feedback import EVENT_NAME, feedback_of, ids_of
from ..spans.otlp import Signal
from .admin import Readiness, health
from .admission import MemoryShare, too_large
from .auth import Guard, Tenant
from .http_server import Failure, Head, HttpExchange, Response
from .receiver import ExportRequest, Receiver
from .responses import FAULT, Accepted, Refusal, Refused, response_of

_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
_PATHS: dict[str, Signal] = {"/v1/traces": "traces", "/v1/logs": "logs"}
_FEEDBACK = "/v1/feedback"
_UNKNOWN = "unknown path; send OTLP to /v1/traces and /v1/logs, feedback to /v1/feedback"
_NO_METRICS = "metrics aren't received; in the sender, set OTEL_METRICS_EXPORTER=none"
_NO_GRPC = "this port doesn't accept HTTP/2; send OTLP/gRPC to serve.grpc (default port 14317)"


@dataclass(slots=True)
class OtlpHandler:
    receiver: Receiver
    threads: Executor
    guard: Guard
    readiness: Readiness

    def begin(self, head: Head) -> HttpExchange | Response:
        if (well := health(head, self.readiness)) is not None:
            return well
        is_feedback = head.path == _FEEDBACK
        signal: Signal | None = "logs" if is_feedback else _PATHS.get(head.path)
        is_json = head.content_type == _JSON
        try:
            if signal is None:
                no_grpc = head.method == "PRI"  # with PRI, HTTP/2 and so gRPC starts
                raise Refusal("not_found", _NO_GRPC if no_grpc else _NO_METRICS if head.path == "/v1/metrics" else _UNKNOWN)
            if (asked := self.guard.check(head)) is not None:
                return asked
            if head.method != "POST":
                raise Refusal("bad_method", "only POST is allowed here")
            if is_feedback and (not is_json or head.headers.get("content-encoding", "identity").strip().lower() != "identity"):
                raise Refusal("bad_type", f"feedback must be uncompressed {_JSON}")
            if not is_json and head.content_type != _PROTOBUF:
                raise Refusal("bad_type", f"Content-Type must be {_PROTOBUF} or {_JSON}")
            tenant = self.receiver.authorize(head.headers.get("authorization"))
            self.receiver.in_flight.check(head.length or 0)
            self.receiver.admit(head.client, tenant)
        except Refusal as refusal:
            return self.refused(refusal.answer, signal or "other", is_json)
        return (_Feedback if is_feedback else _Export)(self, head, signal, is_json, tenant)

    def failed(self, error: Exception) -> Response:
        self.receiver.engine.failed("http", error)
        return self.refused(FAULT, "other", is_json=False)

    def refused(self, refusal: Refused, signal: str, is_json: bool) -> Response:
        self.receiver.refused("http", signal, refusal)
        response = _message(refusal.http_status, refusal.status(), is_json)
        if refusal.retry_after is not None:
            response.headers.append(("retry-after", str(max(1, math.ceil(refusal.retry_after)))))
        if refusal.kind == "unauthenticated":
            response.headers.append(("www-authenticate", "Bearer"))
        if refusal.kind == "bad_method":
            response.headers.append(("allow", "POST"))
        return response


class _Export:
    def __init__(self, handler: OtlpHandler, head: Head, signal: Signal, is_json: bool, tenant: Tenant | None) -> None:
        self._handler = handler
        self._head = head
        self._signal = signal
        self._json = is_json
        self._tenant = tenant
        self.max_body = handler.receiver.options.max_body
        self.body_timeout = handler.receiver.options.body_timeout
        self._share = MemoryShare(handler.receiver.in_flight)
        self._refused: Refused | None = None

    def received(self, size: int) -> bool:
        try:
            self._share.grow(size)
        except Refusal as refusal:
            self._refused = refusal.answer
            return False
        return True

    async def answer(self, body: bytes) -> Response:
        encoding = self._head.headers.get("content-encoding", "").strip().lower()
        handler = self._handler
        request = ExportRequest(self._signal, body, encoding, self._json, self._share, self._tenant)
        found = await handler.receiver.answer(request, "http", handler.threads)
        if not isinstance(found, Accepted):
            return handler.refused(found, self._signal, self._json)
        handler.receiver.count("http", self._signal, "partial" if found.rejected else "ok")
        return _message(200, response_of(self._signal, found), self._json)

    def refuse(self, why: Failure) -> Response:
        if why == "no_room" and self._refused is not None:
            found = self._refused
        elif why == "too_large":
            found = too_large(self.max_body).answer
        elif why == "too_slow":
            found = Refusal("timeout", "the body didn't arrive within serve.body_timeout").answer
        else:
            found = Refusal("bad_data", "the body isn't valid HTTP").answer
        return self._handler.refused(found, self._signal, self._json)

    def end(self, size: int) -> None:
        self._share.close()
        self._handler.receiver.release(self._head.client, size)


class _Feedback(_Export):
    async def answer(self, body: bytes) -> Response:
        try:
            body, count = as_log_records(body)
        except Refusal as refusal:
            return self._handler.refused(refusal.answer, self._signal, self._json)
        found = await super().answer(body)
        return found if found.status != 200 else Response(200, json.dumps({"accepted": count}).encode(), _JSON)


def _message(status: int, message: Any, is_json: bool) -> Response:
    if is_json:
        return Response(status, json.dumps(json_format.MessageToDict(message)).encode(), _JSON)
    return Response(status, message.SerializeToString(), _PROTOBUF)


# --- user feedback without OpenTelemetry log records


_FEEDBACK_KEYS = ("turn_id", "trace_id", "span_id", "traceparent", "score", "label", "comment", "edited", "scale", "id")
_FEEDBACK_ATTRIBUTES = ("label", "comment", "edited", "id")


def as_log_records(body: bytes) -> tuple[bytes, int]:
    """Convert feedback (one JSON object or a list) to an OTLP/JSON request. Return the request and the number of objects.

    Each object identifies its turn with ``turn_id``, ``traceparent``, or ``trace_id`` (optionally with ``span_id``). For other
    keys, see :meth:`Handle.feedback <otel_agenteval.Handle.feedback>`. If any object is invalid, the entire request is refused.
    """
    try:
        found = jsonio.loads(body.removeprefix(codecs.BOM_UTF8))
    except (ValueError, RecursionError):
        raise Refusal("bad_data", "the body isn't valid JSON") from None
    items = found if isinstance(found, list) else [found]
    if not items:
        raise Refusal("bad_data", "the list of feedback is empty")
    records = []
    for place, item in enumerate(items):
        try:
            records.append(_feedback_record(item))
        except ConfigError as error:
            at = f"[{place}]: " if isinstance(found, list) else ""
            raise Refusal("bad_data", f"{at}{error}") from None
    message = {"resourceLogs": [{"scopeLogs": [{"scope": {"name": "feedback"}, "logRecords": records}]}]}
    return jsonio.dumps(message).encode(), len(records)


def _feedback_record(item: Any) -> dict[str, Any]:
    if not isinstance(item, Mapping):
        raise ConfigError(f"feedback: must be a JSON object, got {type(item).__name__}")
    for key in item:
        if key not in _FEEDBACK_KEYS:
            raise ConfigError(f"feedback.{key}: unknown key. Did you mean {' or '.join(nearest(str(key), _FEEDBACK_KEYS, 2))}?")
    trace_id, span_id = ids_of(_feedback_turn(item))
    given: dict[str, Any] = {key: item.get(key) for key in ("score", "label", "comment", "edited", "scale", "id")}
    read = feedback_of(**given, seed=uuid.uuid4().hex)  # equal feedback of two users counts twice
    attributes: dict[str, Any] = {key: {"stringValue": item[key]} for key in _FEEDBACK_ATTRIBUTES if item.get(key)}
    if item.get("score") is not None:
        worst, best = item.get("scale") or (0, 1)
        attributes |= {
            key: {"doubleValue": float(value)} for key, value in (("score", item["score"]), ("min", worst), ("max", best))
        }
    attributes.setdefault("id", {"stringValue": read.id})
    return {
        "traceId": f"{trace_id:032x}", "spanId": f"{span_id:016x}" if span_id else "", "timeUnixNano": str(time.time_ns()),
        "eventName": EVENT_NAME, "attributes": [{"key": f"{EVENT_NAME}.{key}", "value": value} for key, value in attributes.items()],
    }  # fmt: skip


def _feedback_turn(item: Mapping[str, Any]) -> Any:
    named = [key for key in ("turn_id", "traceparent", "trace_id") if item.get(key)]
    if len(named) != 1:
        raise ConfigError(f"feedback: requires exactly one of turn_id, traceparent, and trace_id, got {len(named)} of them")
    span = item.get("span_id")
    return f"{item['trace_id']}-{span}" if named == ["trace_id"] and span else item[named[0]]
