"""Scores sent to an OTLP endpoint by connections of our own: what a sidecar does, typically back to the Collector that feeds it.

Each turn's records go under the Resource of the service that made its root, so that they lie where that service's telemetry does.
What comes back to us in a circle is recognised by its scope and attributes (see :func:`otel_agenteval.spans.otlp.is_ours`), and is
never evaluated.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opentelemetry.exporter.otlp.proto.common.metrics_encoder import encode_metrics
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue
from opentelemetry.proto.logs.v1.logs_pb2 import LogRecord, SeverityNumber
from opentelemetry.proto.resource.v1.resource_pb2 import Resource as ResourceMessage
from opentelemetry.proto.trace.v1.trace_pb2 import Span
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource

from ...config.otlp import OtlpOptions
from ...core import semconv
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.errors import ConfigError
from ...core.telemetry import Telemetry
from ...core.wellformed import well_formed
from ...core.writable import fault_of_folder
from ...evaluation.scored_turn import ScoredTurn
from ...spans.otlp import Signal
from ..base import Outlet, RecordAccount, Setup
from ..log_events import event_attributes, turn_attributes
from ..otlp_metrics import OtlpMetricsOutlet
from .client import client_for
from .sender import Sender
from .spool import Spool, SpoolFile

_log = logging.getLogger("otel_agenteval")

_SAMPLED = 0x1
_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200
_MAX_NESTING = 16


class OtlpOutlet(Outlet):
    """Log events, metrics and ``evaluate`` spans for one OTLP endpoint.

    Records are rendered in the worker's thread and sent in a thread of the outlet's own: a receiver that is slow or gone fills a
    bounded queue, and delays nothing else. What becomes of each record is counted in ``agenteval.emit.records{outlet="otlp"}``,
    requests that fail in ``agenteval.emit.errors``.

    Args:
        wanted: where to, and what.
        telemetry: the engine's accumulators: gets the counts, and is what the metrics are made from.
        instance_id: tells the engines of a fleet apart; asked again in a forked child.
        version: of this package, for the scope.
        clock: dates the records.
        pauses: the first and the longest pause between two attempts, in seconds; tests shorten them.

    Raises:
        ConfigError: a certificate's file cannot be read.
    """

    name = "otlp"
    records: RecordAccount

    def __init__(
        self,
        wanted: OtlpOptions,
        telemetry: Telemetry,
        instance_id: Callable[[], str],
        version: str,
        clock: Clock = SYSTEM_CLOCK,
        pauses: tuple[float, float] = (1.0, 30.0),
    ) -> None:
        for option in ("ca_file", "cert_file", "key_file"):
            file = getattr(wanted, option)
            if file is not None and not os.access(file, os.R_OK):
                raise ConfigError(f"outlets.otlp.{option}: {file!r} cannot be read; it must be a PEM file")
        self._wanted = wanted
        self._telemetry = telemetry
        self._instance_id = instance_id
        self._version = version
        self._clock = clock
        self.records = RecordAccount(self.name, telemetry)
        self._keeps_all = False
        self._warned_of: set[str] = set()
        self._metrics: OtlpMetricsOutlet | None = None
        self._reader: InMemoryMetricReader | None = None
        spool = wanted.spool
        self._sender = Sender(
            wanted,
            lambda: client_for(wanted),
            lambda: Spool(
                wanted.queue_bytes,
                None if spool is None else lambda: SpoolFile(spool.directory, spool.max_bytes),
                self.failed,
                self.records.add,
            ),
            self,
            self._collected,
            clock,
            pauses,
        )
        telemetry.watch(semconv.QUEUE_SIZE, lambda: [({"queue": "otlp"}, self._sender.spool.bytes)])
        telemetry.watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "otlp"}, self._sender.spool.max_bytes)])

    # --- what the pipeline calls

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Render a batch and leave it to the sending thread."""
        if self._wanted.log_events:
            logs, count = self._logs(batch)
            if count:
                self._put("logs", logs, count)
        if self._wanted.evaluate_spans != "off":
            spans, count = self._spans(batch)
            if count:
                self._put("traces", spans, count)
        if self._wanted.metrics_interval:
            self._metrics_outlet().emit(batch)
            self._sender.start()

    def _put(self, signal: Signal, body: bytes, items: int) -> None:
        self.records.add(items)
        self._sender.put(signal, body, items, must=self._keeps_all)

    @property
    def full(self) -> bool:
        """Whether as much waits as may."""
        return self._sender.spool.full

    def keep_all(self) -> None:
        """Drop nothing for lack of room: the worker asks for :attr:`full` first."""
        self._keeps_all = True

    def flush(self, timeout: float) -> bool:
        """Send everything that waits; False when that was not done within ``timeout`` seconds. See :meth:`Sender.flush`."""
        return self._sender.flush(timeout)

    def close(self) -> None:
        """Send nothing more; what waits stays in the spool, or is counted as lost."""
        self._sender.close()
        if self._metrics is not None:
            self._metrics.close()

    def start(self) -> None:
        """Start sending, also what an earlier process left in the spool."""
        self._sender.start()

    def begin_exit(self) -> None:
        """Start no thread any more, and wait for the receiver when flushed: it is the last time."""
        self._sender.may_start = False

    def after_fork_in_child(self) -> None:
        """What waits is the parent's; the child is an instance of its own."""
        self._metrics = self._reader = None
        self.records.reset()
        self._sender.after_fork_in_child()

    # --- the account

    def finished(self, outcome: str, items: int) -> None:
        """Count records or spans that were sent, or are not going to be."""
        self.records.finish(outcome, items)
        if outcome != "sent":
            self._warn_once(outcome, f"{items} records were not sent")

    def failed(self, reason: str) -> None:
        """Count a request that failed."""
        self._telemetry.add(semconv.EMIT_ERRORS, outlet=self.name, reason=reason)
        self._warn_once(reason, "a request failed")

    def _warn_once(self, reason: str, what: str) -> None:
        if reason not in self._warned_of:
            self._warned_of.add(reason)
            _log.warning("outlet otlp: %s: %s (counted from now on)", what, reason)

    # --- rendering

    def _logs(self, batch: Sequence[ScoredTurn]) -> tuple[bytes, int]:
        request = ExportLogsServiceRequest()
        scopes: dict[str, Any] = {}
        now = self._clock.time_ns()
        count = 0
        for scored in batch:
            written = [score for score in scored.scores if score.status != "skipped"]
            if not written:
                continue
            root = scored.root
            scope = _scope_of(scopes, root.resource, request.resource_logs, "scope_logs", self._version)
            shared = turn_attributes(scored, self._instance_id())
            frame = LogRecord(
                time_unix_nano=now, observed_time_unix_nano=now, event_name=semconv.EVENT, flags=_SAMPLED if root.sampled else 0,
                trace_id=root.trace_id.to_bytes(16, "big"), span_id=root.span_id.to_bytes(8, "big"),
            )  # fmt: skip
            _set_all(frame.attributes, shared)
            frame_bytes = frame.SerializeToString()
            for score in written:
                record = scope.log_records.add()
                record.MergeFromString(frame_bytes)  # in C: what a turn's records share is encoded once
                error = score.status == "error"
                record.severity_number = SeverityNumber.SEVERITY_NUMBER_WARN if error else SeverityNumber.SEVERITY_NUMBER_INFO
                _set_all(record.attributes, event_attributes(score, {}))
                count += 1
        return request.SerializeToString(), count

    def _spans(self, batch: Sequence[ScoredTurn]) -> tuple[bytes, int]:
        request = ExportTraceServiceRequest()
        scopes: dict[str, Any] = {}
        now = self._clock.time_ns()
        count = 0
        for scored in batch:
            written = [score for score in scored.scores if score.status != "skipped"]
            root = scored.root
            if not written or not root.sampled:
                continue  # the trace that it would lead to is not kept
            scope = _scope_of(scopes, root.resource, request.resource_spans, "scope_spans", self._version)
            # Its ids follow from its content, so that a span that is sent twice is one span.
            seed = hashlib.sha256("".join([score.result_id for score in written]).encode()).digest()
            trace_id, root_id = root.trace_id.to_bytes(16, "big"), root.span_id.to_bytes(8, "big")
            child = self._wanted.evaluate_spans == "child"
            span = scope.spans.add()
            span.name = f"evaluate {scored.turn.agent}" if scored.turn.agent else "evaluate"
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
            _set_all(span.attributes, turn_attributes(scored, self._instance_id()))
            for score in written:
                event = span.events.add(name=semconv.EVENT, time_unix_nano=now)
                _set_all(event.attributes, event_attributes(score, {}))
            count += 1
        return request.SerializeToString(), count

    # --- metrics

    def _metrics_outlet(self) -> OtlpMetricsOutlet:
        if self._metrics is None:
            self._reader = InMemoryMetricReader()
            about = {
                "service.name": "otel-agenteval",
                "service.version": self._version,
                "service.instance.id": self._instance_id(),
            }
            resource = Resource(about).merge(OTELResourceDetector().detect())
            provider = MeterProvider([self._reader], resource, shutdown_on_exit=False)
            self._metrics = OtlpMetricsOutlet(provider, self._telemetry, self._version)
        return self._metrics

    def _collected(self) -> bytes:
        data = self._reader.get_metrics_data() if self._reader is not None else None
        return encode_metrics(data).SerializeToString() if data is not None else b""


def outlet_from(wanted: OtlpOptions, setup: Setup) -> Outlet:
    """The endpoint that is configured."""
    directory = None if wanted.spool is None else wanted.spool.directory
    setup.warn_of_fault(("outlets", "otlp", "spool", "directory"), directory, fault_of_folder, "scores wait in memory")
    return OtlpOutlet(wanted, setup.telemetry, setup.instance_id, setup.version)


def _scope_of(known: dict[str, Any], resource: Mapping[str, Any], groups: Any, of_scopes: str, version: str) -> Any:
    """The scope in a request for records under a Resource: one for each Resource."""
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
