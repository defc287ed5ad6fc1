"""Label values keep their places if they are used. A burst of names that never recur takes no place."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import HistogramDataPoint, InMemoryMetricReader, NumberDataPoint

from otel_agenteval.core import semconv
from otel_agenteval.core.label_values import IDLE, LabelValues
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.outlets import otlp_metrics
from otel_agenteval.outlets.accounting import account
from otel_agenteval.outlets.otlp_metrics import OtlpMetricsOutlet
from otel_agenteval.statistics.estimates import Estimates
from tests.outlets.factories import scored_turn
from tests.support.clock import FakeClock

REAL = [f"real-{i}" for i in range(20)]


def hostile(start: int, count: int) -> Iterator[str]:
    return (f"hostile-{i}" for i in range(start, start + count))


def turns_by_agent(telemetry: Telemetry) -> dict[str, float]:
    found: dict[str, float] = {}
    for labels, value in telemetry.read(semconv.TURNS).values.items():
        found[labels[0]] = found.get(labels[0], 0) + value
    return found


def durations_by_agent(telemetry: Telemetry) -> dict[str, int]:
    return {labels[0]: sum(one.counts) for labels, one in telemetry.read(semconv.TURN_DURATION).distributions.items()}


def run(telemetry: Telemetry, agent: str) -> None:
    account(telemetry, scored_turn(turn={"agent": agent}))


def test_real_agents_have_their_own_series_after_a_burst_and_while_it_goes_on(clock: FakeClock) -> None:
    telemetry = Telemetry(clock)
    total = 0
    for agent in hostile(0, 3_000):
        run(telemetry, agent)
        total += 1
    for _ in range(3):
        for agent in REAL:
            run(telemetry, agent)
            total += 1
    assert set(REAL) <= set(turns_by_agent(telemetry))
    before = turns_by_agent(telemetry)
    for number in range(30):
        for agent in hostile(10_000 + 100 * number, 100):
            run(telemetry, agent)
        for agent in REAL:
            run(telemetry, agent)
        total += 120
        clock.advance(120)
    after = turns_by_agent(telemetry)
    assert {agent: after[agent] - before[agent] for agent in REAL} == dict.fromkeys(REAL, 30)
    assert sum(after.values()) == sum(durations_by_agent(telemetry).values()) == total
    assert len(after) <= 101


def test_a_series_that_left_begins_again_at_zero_and_others_keep_what_it_had(clock: FakeClock) -> None:
    telemetry = Telemetry(clock, max_values=1)
    for _ in range(5):
        run(telemetry, "a")
    clock.advance(IDLE + 1)
    run(telemetry, "b")
    assert turns_by_agent(telemetry) == {"__other__": 5, "b": 1}
    clock.advance(IDLE + 1)
    run(telemetry, "a")
    assert turns_by_agent(telemetry) == {"__other__": 6, "a": 1}


def test_one_turn_is_one_sighting_however_many_metrics_and_judges_it_has(clock: FakeClock) -> None:
    telemetry = Telemetry(clock, max_values=1)
    many = [(semconv.RESULTS, (f"code_{i}", "b", "pass"), 1.0) for i in range(50)]
    run(telemetry, "a")
    telemetry.record([(semconv.RESULTS, ("code_0", "a", "pass"), 1.0)])
    telemetry.record(many)
    telemetry.record(many, again=True)
    assert {labels[1] for labels in telemetry.read(semconv.RESULTS).values} == {"a", "__other__"}
    telemetry.record(many)
    assert {labels[1] for labels in telemetry.read(semconv.RESULTS).values} == {"b", "__other__"}


def test_a_value_in_use_keeps_its_place_from_one_that_is_seen_more_often(clock: FakeClock) -> None:
    admission: LabelValues[str] = LabelValues(1)
    admission.ask("steady", clock.monotonic())
    admission.use("steady", clock.monotonic())
    assert [admission.ask("flood", clock.monotonic()) for _ in range(5)] == [(False, None)] * 5
    clock.advance(61)
    assert admission.ask("flood", clock.monotonic()) == (True, "steady")


def test_candidates_are_bounded(clock: FakeClock) -> None:
    admission: LabelValues[str] = LabelValues(5)
    for value in hostile(0, 10_000):
        admission.ask(value, clock.monotonic())
    assert len(admission._candidates) <= 50


def test_estimates_of_real_agents_stand_apart_after_a_burst(clock: FakeClock) -> None:
    estimates = Estimates(3_600.0, clock)
    for agent in hostile(0, 3_000):
        estimates.choose("llm_a", agent, 1.0, "drawn")
        estimates.add("llm_a", agent, agent, agent, 0.0, 1.0)
    for number in range(3):
        for agent in REAL:
            estimates.choose("llm_a", agent, 1.0, "drawn")
            estimates.add("llm_a", agent, f"{agent}-{number}", f"{agent}-{number}", 1.0, 1.0)
    found = estimates.read()
    assert all(found["llm_a", agent].mean == 1.0 for agent in REAL)
    assert len(found) <= 1_001


def test_a_provider_gets_a_bounded_number_of_label_sets(clock: FakeClock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(otlp_metrics, "MAX_SETS", 10)
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    telemetry = Telemetry(clock, max_values=4)
    outlet = OtlpMetricsOutlet(provider, telemetry, "0.1.0")
    for agent in hostile(0, 50):
        scored = scored_turn(turn={"agent": agent})
        account(telemetry, scored)
        outlet.emit([scored])
        reader.get_metrics_data()
        clock.advance(IDLE + 1)
    data = reader.get_metrics_data()
    assert data is not None
    found = {metric.name: metric.data.data_points for metric in data.resource_metrics[0].scope_metrics[0].metrics}
    durations, turns = found[semconv.TURN_DURATION], found[semconv.TURNS]
    assert len(durations) == 11
    assert sum(point.count for point in durations if isinstance(point, HistogramDataPoint)) == 50
    assert sum(point.value for point in turns if isinstance(point, NumberDataPoint)) == 50
    provider.shutdown()
