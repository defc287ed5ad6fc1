"""Other OTLP exports: spans over gRPC, and metrics."""

from __future__ import annotations

import pytest
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa
from otel_agenteval.core.semconv import EVENT, INSTRUMENTS
from tests.support.live import Live
from tests.support.receiver import GrpcReceiver, Receiver, plain
from tests.support.rig import chat_attributes


def run_a_turn(tracer):
    with tracer.start_as_current_span(
        "invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
    ):
        tracer.start_span("chat m-1", attributes=chat_attributes("hello", "Hi.")).end()


@pytest.mark.parametrize("position", ["before", "after"], ids=["exporter before us", "exporter after us"])
def test_the_score_events_arrive_over_grpc(position):
    receiver = GrpcReceiver()
    live = Live(position, span_exporter=OTLPSpanExporter(endpoint=receiver.address, insecure=True))
    run_a_turn(live.tracer)
    live.flush()
    (root,) = receiver.spans("invoke_agent bot")
    sent = {plain(event.attributes)["agenteval.result.id"] for event in root.events if event.name == EVENT}
    assert sent == {score.result_id for score in live.scored()[0].scores if score.status != "skipped"}
    live.close()
    receiver.close()


@pytest.fixture
def pushed():
    """Return the exported metrics after one turn, by name."""
    receiver = Receiver()
    reader = PeriodicExportingMetricReader(
        OTLPMetricExporter(endpoint=f"{receiver.url}/v1/metrics"), export_interval_millis=3_600_000
    )
    meter_provider = MeterProvider([reader], shutdown_on_exit=False)
    provider = TracerProvider(shutdown_on_exit=False)
    config = {"outlets": {"otlp_metrics": True, "prometheus": None, "log_events": False}}
    handle = oa.instrument(tracer_provider=provider, meter_provider=meter_provider, config=config)
    run_a_turn(provider.get_tracer("app"))
    assert handle.flush()
    yield {metric.name: metric for metric in receiver.metrics()}
    handle.shutdown()
    provider.shutdown()
    meter_provider.shutdown()
    receiver.close()


def test_a_flush_pushes_the_metrics_of_the_turn(pushed):
    (point,) = pushed["agenteval.turns"].sum.data_points
    assert point.as_int == 1
    assert plain(point.attributes)["agent"] == "bot"


def test_pushed_histograms_have_the_buckets_of_the_table(pushed):
    bounds = {instrument.name: list(instrument.buckets) for instrument in INSTRUMENTS if instrument.buckets}
    arrived = {
        name: list(metric.histogram.data_points[0].explicit_bounds)
        for name, metric in pushed.items()
        if metric.HasField("histogram")
    }
    assert arrived
    assert arrived == {name: bounds[name] for name in arrived}


def test_pushed_scores_have_exemplars_that_lead_to_a_trace(pushed):
    exemplars = [exemplar for point in pushed["agenteval.score"].histogram.data_points for exemplar in point.exemplars]
    assert len({exemplar.trace_id for exemplar in exemplars}) == 1
    assert all(len(exemplar.span_id) == 8 for exemplar in exemplars)
