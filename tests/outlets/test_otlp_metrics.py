"""Metrics through the real MeterProvider, compared with Prometheus."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, Metric, NumberDataPoint
from prometheus_client import CollectorRegistry

from otel_agenteval.core import semconv
from otel_agenteval.core.score import Score
from otel_agenteval.core.semconv import INSTRUMENTS, prometheus_name
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.evaluation.scored_turn import ScoredTurn
from otel_agenteval.outlets.accounting import account
from otel_agenteval.outlets.otlp_metrics import OtlpMetricsOutlet
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from tests.outlets.factories import scored_turn


class Metered:
    """A real provider that is read on demand."""

    def __init__(self) -> None:
        self._reader = InMemoryMetricReader()
        self.provider = MeterProvider([self._reader], shutdown_on_exit=False)

    def metrics(self) -> dict[str, Metric]:
        data = self._reader.get_metrics_data()
        if data is None:
            return {}
        return {m.name: m for resource in data.resource_metrics for scope in resource.scope_metrics for m in scope.metrics}

    def points(self, name: str) -> dict[tuple[str, ...], Any]:
        metric = self.metrics().get(name)
        return {} if metric is None else {tuple(map(str, (p.attributes or {}).values())): p for p in metric.data.data_points}


@pytest.fixture
def metered() -> Metered:
    return Metered()


def emit(outlet: OtlpMetricsOutlet, telemetry: Telemetry, *batch: ScoredTurn) -> None:
    """Count first and then call the outlets, as the pipeline does."""
    for scored in batch:
        account(telemetry, scored)
    outlet.emit(batch)


@pytest.fixture
def busy() -> list[ScoredTurn]:
    units = ("1", "s", "{token}", "USD", "{item}", "{level}")
    scores = [Score(f"code_{i}", 0.1 * i, i % 2 == 0, unit=unit) for i, unit in enumerate(units)]
    others = [Score("code_b", status="error"), Score("code_c", status="skipped"), Score("code_d", 1.0, detail={"vacuous": True})]
    others.append(Score("code_e", status="skipped", detail={"reason": "shed"}))
    turns = [scored_turn(*scores, *others, turn={"agent": agent, "duration_s": 7.0}) for agent in ("a", "b", "c", "a")]
    return [*turns, scored_turn(*scores, new=False)]


def watch_everything(telemetry: Telemetry) -> None:
    for instrument in INSTRUMENTS:
        if instrument.kind == "gauge" or (instrument.about_us and instrument.kind == "counter"):
            telemetry.watch(instrument.name, lambda keys=instrument.attributes: [(dict.fromkeys(keys, "x"), 3)])
    telemetry.observe(semconv.METRIC_DURATION, 0.002, kind="code")
    telemetry.observe(semconv.LATE_SPAN_AGE, 2.0)


def test_totals_and_label_sets_equal_the_prometheus_view(metered: Metered, busy: list[ScoredTurn]) -> None:
    telemetry, registry = Telemetry(max_values=2), CollectorRegistry()
    outlet = OtlpMetricsOutlet(metered.provider, telemetry, "0.1.0")
    PrometheusOutlet(telemetry, registry=registry)
    watch_everything(telemetry)
    for scored in busy:
        emit(outlet, telemetry, scored)
    compared = 0
    for name, metric in metered.metrics().items():
        instrument = next(item for item in INSTRUMENTS if item.name == name)
        for point in metric.data.data_points:
            labels: Mapping[str, str] = {key: str(value) for key, value in (point.attributes or {}).items()}
            series = prometheus_name(instrument)
            if isinstance(point, HistogramDataPoint):
                assert registry.get_sample_value(f"{series}_count", dict(labels)) == point.count, (series, labels)
                assert registry.get_sample_value(f"{series}_sum", dict(labels)) == pytest.approx(point.sum), (series, labels)
            else:
                assert isinstance(point, NumberDataPoint)
                assert registry.get_sample_value(series, dict(labels)) == point.value, (series, labels)
            compared += 1
    shown = sum(1 for f in registry.collect() for s in f.samples if not s.name.endswith(("_bucket", "_sum")))
    assert compared == shown
    assert any("__other__" in point for point in metered.points(semconv.TURNS))


def test_what_is_measured_of_ourselves_is_handed_over_once(metered: Metered) -> None:
    telemetry = Telemetry()
    outlet = OtlpMetricsOutlet(metered.provider, telemetry, "0.1.0")
    telemetry.observe(semconv.METRIC_DURATION, 0.5, kind="code")
    outlet.emit([])
    telemetry.observe(semconv.METRIC_DURATION, 0.25, kind="code")
    assert outlet.flush(60)
    outlet.emit([])
    point = metered.points(semconv.METRIC_DURATION)[("code",)]
    assert (point.count, point.sum) == (2, 0.75)


def test_two_engines_on_one_provider_are_added_up(metered: Metered, caplog: pytest.LogCaptureFixture) -> None:
    engines = [Telemetry(), Telemetry()]
    outlets = [OtlpMetricsOutlet(metered.provider, telemetry, "0.1.0") for telemetry in engines]
    for outlet, telemetry in zip(outlets, engines, strict=True):
        emit(outlet, telemetry, scored_turn(Score("code_a", 0.5)))
    assert [point.value for point in metered.points(semconv.TURNS).values()] == [2]
    assert [point.count for point in metered.points(semconv.SCORE).values()] == [2]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


def test_a_closed_outlet_no_longer_feeds_the_provider(metered: Metered) -> None:
    telemetry = Telemetry()
    outlet = OtlpMetricsOutlet(metered.provider, telemetry, "0.1.0")
    emit(outlet, telemetry, scored_turn())
    telemetry.observe(semconv.METRIC_DURATION, 0.5, kind="code")
    outlet.close()
    outlet.close()
    assert metered.points(semconv.METRIC_DURATION)[("code",)].count == 1
    account(telemetry, scored_turn())
    assert metered.points(semconv.TURNS) == {}
