"""Accumulators are exact, limited in size, and safe to read during updates."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from otel_agenteval.core import semconv
from otel_agenteval.core.telemetry import MAX_TAPPED, Telemetry, TelemetryGroup
from tests.support.clock import FakeClock

OF_A_SCORE = {"metric": "code_a", "kind": "code", "agent": "travel", "model": "gpt-5", "service_name": "shop"}
KEY = ("code_a", "code", "travel", "gpt-5", "shop")


def turns_of(telemetry: Telemetry, agent: str) -> float:
    return sum(value for labels, value in telemetry.read(semconv.TURNS).values.items() if labels[0] == agent)


def add_turn(telemetry: Telemetry, agent: str) -> None:
    telemetry.add(semconv.TURNS, agent=agent, service_name="shop", close_reason="root_ended", complete="true")


@pytest.mark.parametrize(
    ("value", "bucket"),
    [(-1.0, 0), (0.0, 0), (0.05, 1), (0.1, 1), (0.100001, 2), (0.99, 10), (0.995, 11), (1.0, 11), (1.5, 12)],
)
def test_a_bucket_takes_values_up_to_and_with_its_bound(value: float, bucket: int) -> None:
    telemetry = Telemetry()
    telemetry.observe(semconv.SCORE, value, **OF_A_SCORE)
    counts = telemetry.read(semconv.SCORE).distributions[KEY].counts
    assert [i for i, count in enumerate(counts) if count] == [bucket]


def test_a_bucket_keeps_its_latest_exemplar(clock: FakeClock) -> None:
    telemetry = Telemetry(clock)
    telemetry.observe(semconv.SCORE, 0.31, {"trace_id": "old"}, **OF_A_SCORE)
    clock.advance(5)
    telemetry.observe(semconv.SCORE, 0.32, {"trace_id": "new"}, **OF_A_SCORE)
    telemetry.observe(semconv.SCORE, 0.33, **OF_A_SCORE)
    telemetry.observe(semconv.SCORE, 0.95, **OF_A_SCORE)
    found = telemetry.read(semconv.SCORE).distributions[KEY]
    (kept,) = [exemplar for exemplar in found.exemplars if exemplar is not None]
    assert (kept.labels, kept.value, kept.time_s) == ({"trace_id": "new"}, 0.32, clock.time_ns() / 1e9)
    assert found.sum == pytest.approx(1.91)


@pytest.mark.parametrize(
    ("name", "labels"), [("agenteval.nothing", {}), (semconv.RESULTS, {"metric": "code_a", "agent": "travel"})]
)
def test_a_wrong_name_or_a_missing_label_is_told(name: str, labels: dict[str, str]) -> None:
    with pytest.raises(KeyError):
        Telemetry().add(name, 1, **labels)


def test_label_values_past_the_cap_are_counted_as_other() -> None:
    telemetry = Telemetry(max_values=3)
    for i in range(10):
        add_turn(telemetry, f"agent-{i}")
        add_turn(telemetry, "agent-1")
    assert {labels[0] for labels in telemetry.read(semconv.TURNS).values} == {"agent-0", "agent-1", "agent-2", "__other__"}
    assert turns_of(telemetry, "agent-1") == 11
    assert turns_of(telemetry, "__other__") == 7
    assert telemetry.read(semconv.EMIT_ERRORS).values == {("metrics", "label_overflow"): 7}


def test_labels_that_configuration_makes_have_no_cap() -> None:
    telemetry = Telemetry(max_values=3)
    for i in range(200):
        telemetry.add(semconv.RESULTS, metric=f"code_{i}", agent="travel", outcome="pass")
    assert len(telemetry.read(semconv.RESULTS).values) == 200


def test_label_sets_are_bounded_even_when_each_value_is_within_its_cap() -> None:
    telemetry = Telemetry(max_series=10)
    for i in range(30):
        telemetry.add(semconv.TURN_COST, agent=f"a{i % 6}", model=f"m{i % 5}", service_name="s", estimated="true")
    values = telemetry.read(semconv.TURN_COST).values
    assert len(values) == 11
    assert values[("__other__", "__other__", "__other__", "true")] == 20
    assert sum(values.values()) == 30


def test_watched_values_are_read_at_collection_and_added_to_what_was_counted() -> None:
    telemetry = Telemetry()
    now = {"worker": 3}
    telemetry.watch(semconv.QUEUE_SIZE, lambda: [({"queue": queue}, size) for queue, size in now.items()])
    telemetry.watch(semconv.EMIT_ERRORS, lambda: [({"outlet": "jsonl", "reason": "OSError"}, 2)])
    telemetry.add(semconv.EMIT_ERRORS, outlet="jsonl", reason="OSError")
    now["worker"] = 8
    assert telemetry.read(semconv.QUEUE_SIZE).values == {("worker",): 8}
    assert telemetry.read(semconv.EMIT_ERRORS).values == {("jsonl", "OSError"): 3}


def test_a_watch_that_fails_costs_its_own_values_only() -> None:
    def failing() -> Iterator[tuple[dict[str, str], float]]:
        yield {}, 5
        raise RuntimeError("half shut down")

    telemetry = Telemetry()
    telemetry.watch(semconv.TURNS_OPEN, failing)
    telemetry.watch(semconv.TURNS_OPEN, lambda: [({}, 2)])
    assert telemetry.read(semconv.TURNS_OPEN).values == {(): 2}
    assert telemetry.read(semconv.EMIT_ERRORS).values == {("metrics", "watch"): 1}


def test_a_watch_may_use_the_telemetry_itself() -> None:
    telemetry = Telemetry()

    def counting() -> list[tuple[dict[str, str], float]]:
        add_turn(telemetry, "from a callback")
        return [({}, 1)]

    telemetry.watch(semconv.TURNS_OPEN, counting)
    assert telemetry.read(semconv.TURNS_OPEN).values == {(): 1}
    assert turns_of(telemetry, "from a callback") == 1


def test_a_tap_gets_single_values_and_is_bounded() -> None:
    telemetry = Telemetry()
    telemetry.observe(semconv.METRIC_DURATION, 9.0, kind="code")
    tapped = telemetry.tap(semconv.METRIC_DURATION)
    telemetry.observe(semconv.METRIC_DURATION, 0.5, kind="llm")
    assert list(tapped) == [(semconv.METRIC_DURATION, ("llm",), 0.5)]
    telemetry.record([(semconv.METRIC_DURATION, ("code",), float(i)) for i in range(MAX_TAPPED + 1)])
    assert len(tapped) == MAX_TAPPED
    assert tapped[-1][2] == MAX_TAPPED


def test_threads_lose_nothing() -> None:
    telemetry = Telemetry()

    def work() -> None:
        for _ in range(2000):
            add_turn(telemetry, "travel")
            telemetry.observe(semconv.SCORE, 0.5, **OF_A_SCORE)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        found = telemetry.read(semconv.SCORE).distributions.get(KEY)
        assert found is None or sum(found.counts) == found.sum / 0.5
    assert turns_of(telemetry, "travel") == 8000
    assert sum(telemetry.read(semconv.SCORE).distributions[KEY].counts) == 8000


def test_a_forked_child_starts_from_zero_and_from_a_free_lock() -> None:
    telemetry = Telemetry(max_values=1)
    add_turn(telemetry, "travel")
    telemetry.observe(semconv.SCORE, 0.5, **OF_A_SCORE)
    telemetry._lock.acquire()  # as if another of the parent's threads held it when it forked
    telemetry.reset()
    assert all(not family.values and not family.distributions for family in telemetry.collect())
    add_turn(telemetry, "another")
    assert turns_of(telemetry, "another") == 1


def test_a_group_adds_its_members_up(clock: FakeClock) -> None:
    group, one, two = TelemetryGroup(), Telemetry(clock), Telemetry(clock)
    group.join(one)
    group.join(two)
    one.observe(semconv.SCORE, 0.5, {"trace_id": "one"}, **OF_A_SCORE)
    clock.advance(1)
    two.observe(semconv.SCORE, 0.5, {"trace_id": "two"}, **OF_A_SCORE)
    two.observe(semconv.SCORE, 0.7, **{**OF_A_SCORE, "agent": "cook"})
    for telemetry in (one, two):
        add_turn(telemetry, "travel")
    scores, turns = group.read(semconv.SCORE), group.read(semconv.TURNS)
    assert scores is not None
    assert turns is not None
    both = scores.distributions[KEY]
    assert (sum(both.counts), both.sum, [e.labels for e in both.exemplars if e]) == (2, 1.0, [{"trace_id": "two"}])
    assert len(scores.distributions) == 2
    assert list(turns.values.values()) == [2]


def test_a_group_counts_a_member_once_and_keeps_it_until_it_left_as_often_as_it_joined() -> None:
    group, telemetry = TelemetryGroup(), Telemetry()
    group.join(telemetry)
    group.join(telemetry)
    add_turn(telemetry, "travel")
    found = group.read(semconv.TURNS)
    assert found is not None
    assert list(found.values.values()) == [1]
    assert group.leave(telemetry) is False
    assert group.leave(telemetry) is True
    assert group.read(semconv.TURNS) is None
