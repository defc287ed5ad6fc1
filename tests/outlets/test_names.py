"""Metric and attribute names, and their Prometheus form."""

from __future__ import annotations

from typing import get_args

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from prometheus_client import CollectorRegistry

from otel_agenteval.core import semconv
from otel_agenteval.core.semconv import INSTRUMENTS, Instrument, prometheus_name
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.server.responses import Kind

PROMISED = [
    "score",
    "measure_duration_seconds",
    "measure_tokens",
    "measure_cost_usd",
    "measure_items",
    "measure_severity",
    "results_total",
    "turns_total",
    "turn_duration_seconds",
    "turn_cost_usd_total",
    "turn_tokens_total",
    "spans_received_total",
    "spans_dropped_total",
    "late_spans_total",
    "turns_open",
    "queue_size",
    "queue_capacity",
    "metric_duration_seconds",
    "emit_errors_total",
    "span_events_total",
    "judge_requests_total",
    "judge_cost_usd_total",
    "budget_remaining_usd",
]


def test_promised_metrics_have_their_prometheus_names() -> None:
    assert {f"agenteval_{name}" for name in PROMISED} <= {prometheus_name(instrument) for instrument in INSTRUMENTS}


@pytest.mark.parametrize(
    ("instrument", "expected"),
    [
        (("x.share", "gauge", "1"), "x_share_ratio"),
        (("x.share", "histogram", "1"), "x_share"),
        (("x.share", "gauge", "By"), "x_share_bytes"),
        (("x.share", "gauge", ""), "x_share"),
        (("x.wait_seconds", "counter", "s"), "x_wait_seconds_total"),
    ],
)
def test_units_become_suffixes(instrument: tuple[str, str, str], expected: str) -> None:
    assert prometheus_name(Instrument(*instrument, (), "")) == expected


def test_opentelemetry_s_own_prometheus_exporter_translates_to_the_same_names() -> None:
    exporter = pytest.importorskip("opentelemetry.exporter.prometheus")
    registry = CollectorRegistry()
    provider = MeterProvider(metric_readers=[exporter.PrometheusMetricReader(registry=registry, disable_target_info=True)])
    meter = provider.get_meter(semconv.SCOPE)
    for instrument in INSTRUMENTS:
        labels = dict.fromkeys(instrument.attributes, "x")
        if instrument.kind == "counter":
            meter.create_counter(instrument.name, instrument.unit).add(1, labels)
        elif instrument.kind == "gauge":
            meter.create_gauge(instrument.name, instrument.unit).set(1, labels)
        else:
            meter.create_histogram(instrument.name, instrument.unit).record(1, labels)
    samples = {sample.name for family in registry.collect() for sample in family.samples}
    provider.shutdown()
    series = {"counter": "", "gauge": "", "histogram": "_bucket"}
    expected = {prometheus_name(instrument) + series[instrument.kind] for instrument in INSTRUMENTS}
    assert {name for name in samples if not name.endswith(("_sum", "_count"))} == expected


def test_each_instrument_stands_once_and_is_whole() -> None:
    assert len({instrument.name for instrument in INSTRUMENTS}) == len(INSTRUMENTS)
    for instrument in INSTRUMENTS:
        assert instrument.name.startswith("agenteval.")
        assert (instrument.kind == "histogram") == bool(instrument.buckets)
        assert list(instrument.buckets) == sorted(set(instrument.buckets))


def test_names_are_the_convention_s_or_under_our_own_prefix() -> None:
    wire = [value for key, value in vars(semconv).items() if key.isupper() and isinstance(value, str) and "." in value]
    assert len(wire) > 20
    assert [value for value in wire if not value.startswith(("gen_ai.", "agenteval.", "error.", "service."))] == []


def test_every_refusal_is_known_for_its_transport() -> None:
    known = {value for group in semconv.KNOWN_LABELS[semconv.SERVE_REQUESTS] for value in group["outcome"]}
    assert set(get_args(Kind)) <= known


def test_a_counter_is_shown_as_0_by_every_outlet_until_it_is_counted() -> None:
    registry = CollectorRegistry()
    telemetry = Telemetry()
    outlet = PrometheusOutlet(telemetry, registry=registry)
    telemetry.expect(semconv.SPANS_DROPPED)
    telemetry.expect(semconv.EMIT_ERRORS, outlet=["jsonl"])
    assert registry.get_sample_value("agenteval_spans_dropped_total", {"reason": "queue_full"}) == 0
    assert registry.get_sample_value("agenteval_emit_errors_total", {"outlet": "jsonl", "reason": "OSError"}) == 0
    assert registry.get_sample_value("agenteval_emit_errors_total", {"outlet": "store", "reason": "OSError"}) is None
    telemetry.add(semconv.SPANS_DROPPED, 2, reason="queue_full")
    telemetry.expect(semconv.SPANS_DROPPED)  # as a reload does
    assert registry.get_sample_value("agenteval_spans_dropped_total", {"reason": "queue_full"}) == 2
    telemetry.reset()
    assert registry.get_sample_value("agenteval_spans_dropped_total", {"reason": "queue_full"}) == 0
    outlet.close()


def test_labels_that_only_configuration_knows_must_be_given() -> None:
    with pytest.raises(KeyError, match="metric"):
        Telemetry().expect(semconv.DROPPED)
    telemetry = Telemetry()
    telemetry.expect(semconv.DROPPED, metric=["code_a"], reason=["queue_full", "shutdown"])
    assert telemetry.read(semconv.DROPPED).values == {("code_a", "queue_full"): 0, ("code_a", "shutdown"): 0}
