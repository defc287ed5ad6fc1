"""Scores and metrics as OTLP messages, built with the protobuf classes and the SDK, to compare with our own encoder."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from otel_agenteval.core import semconv
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.core.wellformed import well_formed
from otel_agenteval.evaluation.scored_turn import ScoredTurn
from otel_agenteval.outlets.log_events import event_attributes, turn_attributes
from otel_agenteval.outlets.otlp_metrics import OtlpMetricsOutlet

_SAMPLED = 0x1
_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200
_MAX_NESTING = 16

_SEVERITY = {
    "info": SeverityNumber.SEVERITY_NUMBER_INFO,
    "warning": SeverityNumber.SEVERITY_NUMBER_WARN,
    "critical": SeverityNumber.SEVERITY_NUMBER_ERROR,
}


def log_records(batch: Sequence[ScoredTurn], now: int, instance_id: str, version: str) -> ExportLogsServiceRequest:
    """Return an export request with one log record per score."""
    request = ExportLogsServiceRequest()
    scopes: dict[str, Any] = {}
    for scored in batch:
        written = [score for score in scored.scores if score.status != "skipped"]
        if not written:
            continue
        root = scored.root
        scope = _scope_of(scopes, root.resource, request.resource_logs, "scope_logs", version)
        shared = turn_attributes(scored, instance_id)
        frame = LogRecord(
            time_unix_nano=now, observed_time_unix_nano=now, event_name=semconv.EVENT, flags=_SAMPLED if root.sampled else 0,
            trace_id=root.trace_id.to_bytes(16, "big"), span_id=root.span_id.to_bytes(8, "big"),
        )  # fmt: skip
        _set_all(frame.attributes, shared)
        for score in written:
            record = scope.log_records.add()
            record.CopyFrom(frame)
            record.severity_number = _SEVERITY[score.severity or ("warning" if score.status == "error" else "info")]
            _set_all(record.attributes, event_attributes(score, {}))
    return request


def evaluate_spans(
    batch: Sequence[ScoredTurn], now: int, instance_id: str, version: str, *, child: bool
) -> ExportTraceServiceRequest:
    """Return an export request with one span per turn, whose events are the turn's scores.

    A ``child`` is part of the turn's trace. Other spans are separate traces, with a link to the turn's root.
    """
    request = ExportTraceServiceRequest()
    scopes: dict[str, Any] = {}
    for scored in batch:
        written = [score for score in scored.scores if score.status != "skipped"]
        root = scored.root
        if not written or not root.sampled:
            continue  # the linked trace isn't kept
        scope = _scope_of(scopes, root.resource, request.resource_spans, "scope_spans", version)
        # Ids are hashes of the content, so that a span that is sent twice has the same id.
        seed = hashlib.sha256("".join([score.result_id for score in written]).encode()).digest()
        trace_id, root_id = root.trace_id.to_bytes(16, "big"), root.span_id.to_bytes(8, "big")
        span = scope.spans.add()
        span.name = well_formed(f"evaluate {scored.turn.agent}") if scored.turn.agent else "evaluate"
        span.kind = Span.SpanKind.SPAN_KIND_INTERNAL
        span.trace_id = trace_id if child else seed[:16]
        span.span_id = seed[16:24]
        if child:
            span.parent_span_id = root_id
        else:
            span.links.add(trace_id=trace_id, span_id=root_id, flags=_SAMPLED | _HAS_IS_REMOTE | _IS_REMOTE)
        span.flags = _SAMPLED | _HAS_IS_REMOTE | (_IS_REMOTE if child else 0)
        span.start_time_unix_nano = now - round(scored.seconds * 1e9)
        span.end_time_unix_nano = now
        _set_all(span.attributes, turn_attributes(scored, instance_id))
        for score in written:
            event = span.events.add(name=semconv.EVENT, time_unix_nano=now)
            _set_all(event.attributes, event_attributes(score, {}))
    return request


def _scope_of(known: dict[str, Any], resource: Mapping[str, Any], groups: Any, of_scopes: str, version: str) -> Any:
    """Return the scope for records of a resource in a request. Each resource has one scope."""
    message = ResourceMessage()
    _set_all(message.attributes, resource)
    key = repr(message)
    if key not in known:
        group = groups.add(resource=message)
        known[key] = scope = getattr(group, of_scopes).add()
        scope.scope.name, scope.scope.version = semconv.SCOPE, version
    return known[key]


def _set_all(target: Any, attributes: Mapping[str, Any]) -> None:
    for key, value in attributes.items():
        _set(target.add(key=well_formed(key)).value, value, 0)


def _set(target: AnyValue, value: Any, depth: int) -> None:
    if isinstance(value, str):
        target.string_value = well_formed(value)
    elif isinstance(value, bool):
        target.bool_value = value
    elif isinstance(value, int):
        if -(2**63) <= value < 2**63:
            target.int_value = value
        else:
            target.string_value = str(value)
    elif isinstance(value, float):
        target.double_value = value
    elif isinstance(value, bytes):
        target.bytes_value = value
    elif isinstance(value, Mapping) and depth < _MAX_NESTING:
        target.kvlist_value.SetInParent()
        for key, inner in value.items():
            _set(target.kvlist_value.values.add(key=well_formed(str(key))).value, inner, depth + 1)
    elif isinstance(value, (list, tuple)) and depth < _MAX_NESTING:
        target.array_value.SetInParent()
        for inner in value:
            _set(target.array_value.values.add(), inner, depth + 1)


class SdkMetrics:
    """The metrics of one engine, collected by the SDK. All observations go through the SDK's histograms.

    Args:
        telemetry: the accumulators.
        version: version of this package.
        instance_id: id of the engine.
    """

    def __init__(self, telemetry: Telemetry, version: str, instance_id: str) -> None:
        self._reader = InMemoryMetricReader()
        about = {"service.name": "otel-agenteval", "service.version": version, "service.instance.id": instance_id}
        resource = Resource(about).merge(OTELResourceDetector().detect())
        self._provider = MeterProvider([self._reader], resource, shutdown_on_exit=False)
        self.outlet = OtlpMetricsOutlet(self._provider, telemetry, version)
        """Outlet that receives every batch."""

    def request(self) -> ExportMetricsServiceRequest:
        """Return the current metrics. Each exemplar is returned only once."""
        self.outlet.emit([])  # adds the engine's own measurements. A flush would collect, and thereby remove the exemplars
        data = self._reader.get_metrics_data()
        return ExportMetricsServiceRequest() if data is None else encode_metrics(data)

    def close(self) -> None:
        self.outlet.close()
        self._provider.shutdown()
