"""Telemetry for live tests: providers that export real OTLP to a receiver, and ``instrument()``."""

from __future__ import annotations

import urllib.request
from collections import deque
from collections.abc import Mapping
from typing import Any, Literal

from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import otel_agenteval as oa
from otel_agenteval.core.semconv import EVENT
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.scored_turn import ScoredTurn
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from tests.support.receiver import Receiver, plain

Position = Literal["before", "after"]
"""Order of the exporting batch processor: registered before or after ours."""

_NEVER = 3_600_000
"""Milliseconds between exports. Batches are exported only by flush."""


class Live:
    """An application's telemetry with ``instrument()``.

    Args:
        exporting: ``before`` or ``after``: where the exporting span processor is registered.
        metrics: True to serve ``/metrics`` on a port (closing it takes half a second).
        span_exporter: exporter for spans, instead of OTLP over HTTP to :attr:`receiver`.
        config: configuration of otel-agenteval, in addition to defaults.
        clock: clock of otel-agenteval (default: real time).
    """

    def __init__(
        self,
        exporting: Position = "after",
        *,
        metrics: bool = False,
        span_exporter: Any = None,
        config: Mapping[str, Any] | None = None,
        clock: Any = None,
    ) -> None:
        self.receiver = Receiver()
        resource = Resource({"service.name": "support"})
        self.provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self.logger_provider = LoggerProvider(resource=resource, shutdown_on_exit=False)
        self.logger_provider.add_log_record_processor(
            BatchLogRecordProcessor(OTLPLogExporter(endpoint=f"{self.receiver.url}/v1/logs"), schedule_delay_millis=_NEVER)
        )
        spans_out = BatchSpanProcessor(
            span_exporter or OTLPSpanExporter(endpoint=f"{self.receiver.url}/v1/traces"), schedule_delay_millis=_NEVER
        )
        if exporting == "before":
            self.provider.add_span_processor(spans_out)
        config = {"outlets": {"prometheus": {"port": 0} if metrics else None, "log_events": "all"}, **(config or {})}
        if clock is not None:  # instrument() has no clock parameter, but uses an existing processor
            processor = oa.AgentEvalSpanProcessor(config, logger_provider=self.logger_provider, clock=clock)
            self.provider.add_span_processor(processor)
            self.logger_provider.add_log_record_processor(oa.AgentEvalLogProcessor(processor))
        self.handle = oa.instrument(tracer_provider=self.provider, logger_provider=self.logger_provider, config=config)
        if exporting == "after":
            self.provider.add_span_processor(spans_out)
        assert self.handle.processor is not None
        self.engine = self.handle.processor.engine
        self.kept = deque()
        self.engine.keep_turns(self.kept)
        self.tracer = self.provider.get_tracer("acme.app")

    def flush(self) -> None:
        """Deliver everything that has ended to the receiver."""
        assert self.handle.flush()
        assert self.provider.force_flush()

    def scored(self) -> list[ScoredTurn]:
        assert self.handle.flush()
        return list(self.kept)

    def turn(self) -> Turn:
        turns = [scored.turn for scored in self.scored()]
        assert len(turns) == 1, turns
        return turns[0]

    def metrics(self) -> dict[str, Any]:
        """Return our own ``/metrics`` page as OpenMetrics, by family."""
        return {family.name: family for family in text_string_to_metric_families(self.metrics_text())}

    def metrics_text(self) -> str:
        """Return ``/metrics`` as Prometheus requests it."""
        (outlet,) = [outlet for outlet in self.engine.outlets if isinstance(outlet, PrometheusOutlet)]
        request = urllib.request.Request(
            f"http://127.0.0.1:{outlet.port}/metrics", headers={"Accept": "application/openmetrics-text; version=1.0.0"}
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return str(answer.read().decode())

    def close(self) -> None:
        self.handle.shutdown()
        self.provider.shutdown()
        self.logger_provider.shutdown()
        self.receiver.close()


def check_outlets(live: Live) -> None:
    """Check that all outlets and exports contain the same scores of the only turn.

    Raises:
        AssertionError: If a score is missing or differs.
    """
    live.flush()
    (scored,) = live.scored()
    root = scored.root
    made = {score.metric: score.result_id for score in scored.scores if score.status != "skipped"}
    assert len(made) > 10
    assert _on_the_wire(live, root.span_id) == made
    logged = live.receiver.scores()
    assert {
        plain(record.attributes)["gen_ai.evaluation.name"]: plain(record.attributes)["agenteval.result.id"] for record in logged
    } == made
    ids = (root.trace_id.to_bytes(16, "big"), root.span_id.to_bytes(8, "big"))
    assert {(record.trace_id, record.span_id) for record in logged} == {ids}
    _check_metrics(live, scored)


def _on_the_wire(live: Live, root_id: int) -> dict[str, str]:
    """Return the score events of the exported root, as metric → result id. Check that no other span has score events."""
    found = {}
    for span in live.receiver.spans():
        events = {}
        for event in span.events:
            if event.name == EVENT:
                attributes = plain(event.attributes)
                events[attributes["gen_ai.evaluation.name"]] = attributes["agenteval.result.id"]
        if events:
            assert int.from_bytes(span.span_id, "big") == root_id
            found.update(events)
    return found


def _check_metrics(live: Live, scored: ScoredTurn) -> None:
    families = live.metrics()
    trace_id = f"{scored.root.trace_id:032x}"
    exemplars = [
        sample.exemplar
        for name in ("agenteval_score", "agenteval_turn_duration_seconds")
        for sample in families[name].samples
        if sample.exemplar
    ]
    assert {exemplar.labels["trace_id"] for exemplar in exemplars} == {trace_id}
    (turns,) = [sample for sample in families["agenteval_turns"].samples if sample.name == "agenteval_turns_total"]
    assert turns.value == 1
    assert turns.labels == {
        "agent": scored.turn.agent or "",
        "service_name": "support",
        "close_reason": "root_ended",
        "complete": "true",
    }
    results = {sample.labels["metric"] for sample in families["agenteval_results"].samples if sample.name.endswith("_total")}
    assert {score.metric for score in scored.scores} == results
