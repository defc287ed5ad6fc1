"""Change detection: changes are found, false alarms are rare, and reported values are right."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from otel_agenteval.core.score import Score
from otel_agenteval.core.semconv import CHANGE_SIZE
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.statistics.change import DetectorOptions, Found, Series, _limit
from otel_agenteval.statistics.changes import Changes, verdict_of
from otel_agenteval.statistics.groups import GroupValue, compare_values
from otel_agenteval.statistics.release import Moments, VersionScores
from tests.support.changing import KINDS, delays, false_alarms
from tests.support.clock import FakeClock

OFTEN = DetectorOptions(false_alarm_every=5_000.0)
"""So frequent that false alarms can be counted."""


def fed(series: Series, values: Any, start: float = 0.0, **more: Any) -> tuple[int, Found] | None:
    for place, value in enumerate(values):
        found = series.add(float(value), start + place, exemplar=f"t{place}", **more)
        if found is not None:
            return place, found
    return None


def change_of(series: Series, values: Any, **more: Any) -> Found:
    found = fed(series, values, **more)
    assert found is not None
    return found[1]


# --- by simulation


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_changes_are_reported_without_cause_no_more_often_than_was_asked_for(kind: Any) -> None:
    alarms, scores = false_alarms(kind, 20, np.random.default_rng(7), OFTEN)
    allowed = scores / OFTEN.false_alarm_every
    assert alarms <= allowed + 2 * math.sqrt(allowed)


@pytest.mark.parametrize(
    ("kind", "change", "within"),
    [(0, 0.1, 400), (2, 0.3, 120), (4, 0.1, 200), (6, 0.3, 400)],
    ids=str,
)
def test_what_changes_is_reported_soon(kind: int, change: float, within: int) -> None:
    found, missed = delays(KINDS[kind], change, 8, np.random.default_rng(3))
    assert missed == 0
    assert np.quantile(found, 0.9) <= within


def run_length(limit: float, smoothing: float = 0.1, states: int = 101) -> float:
    """Return the mean number of steps until an EWMA of standard normal values leaves its limits (Brook and Evans' Markov chain)."""
    edge = limit * math.sqrt(smoothing / (2 - smoothing))
    width = 2 * edge / states
    centres = -edge + width * (np.arange(states) + 0.5)
    middle = centres[None, :] - (1 - smoothing) * centres[:, None]
    moves = stats.norm.cdf((middle + width / 2) / smoothing) - stats.norm.cdf((middle - width / 2) / smoothing)
    return float(np.linalg.solve(np.eye(states) - moves, np.ones(states))[states // 2])


def test_limits_have_the_run_length_that_they_are_for() -> None:
    """Lucas and Saccucci (1990), table 3: a weight of 0.1 and limits of 2.814 give a run length of 500."""
    assert run_length(2.814) == pytest.approx(500, rel=0.02)
    for batches in (20.0, 500.0, 5_000.0, 123_456.0, 1e7):
        assert run_length(_limit(batches)) == pytest.approx(batches, rel=0.06)
    assert _limit(1e20) == 7.0


# --- what is said


def test_a_change_says_what_was_before_what_is_now_since_when_and_where_to_look() -> None:
    random = np.random.default_rng(5)
    before, after = (random.random(1_000) >= 0.05).astype(float), (random.random(1_000) >= 0.5).astype(float)
    found = fed(Series(DetectorOptions()), [*before, *after])
    assert found is not None
    place, change = found
    assert 1_000 < place < 1_060
    assert change.before == pytest.approx(0.95, abs=0.02)
    assert change.after == pytest.approx(0.5, abs=0.2)
    low, high = change.difference
    assert low < -0.45 < high < 0
    assert change.since == pytest.approx(1_000, abs=10)
    assert change.detector in ("cusum", "ewma")
    assert 1 <= len(change.exemplars) <= 3
    assert all(int(one.turn_id[1:]) >= 990 and [*before, *after][int(one.turn_id[1:])] == 0 for one in change.exemplars)


def test_examples_of_small_change_are_scores_beyond_the_usual_mean() -> None:
    random = np.random.default_rng(0)
    leaks = 0.3 * np.concatenate([random.random(1_500) < 0.01, random.random(3_000) < 0.06])
    change = change_of(Series(DetectorOptions()), leaks)
    assert change.detector == "ewma"
    assert [leaks[int(one.turn_id[1:])] for one in change.exemplars] == [0.3] * 3


def test_after_a_change_the_new_level_is_what_is_usual() -> None:
    series = Series(DetectorOptions())
    assert fed(series, [1.0] * 300) is None
    assert fed(series, [0.5] * 300) is not None
    assert fed(series, [0.5] * 600) is None
    assert series.usual == pytest.approx(0.5, abs=0.05)
    assert change_of(series, [1.0] * 300).size > 0.4


def test_a_series_of_equal_scores_may_have_a_bad_one_now_and_then() -> None:
    series = Series(DetectorOptions())
    assert fed(series, [1.0] * 1_000) is None
    assert fed(series, ([0.0] + [1.0] * 199) * 10) is None
    assert fed(series, [0.0] * 20) is not None


def test_any_measure_may_be_watched_by_its_ranks() -> None:
    random = np.random.default_rng(2)
    series = Series(DetectorOptions(), bounded=False)
    assert fed(series, random.lognormal(0, 1, 3_000)) is None
    assert fed(series, [1e9]) is None  # one outlier is none
    change = change_of(series, random.lognormal(1.5, 1, 500))
    assert change.after > change.before


def test_a_release_is_compared_with_the_one_before() -> None:
    random = np.random.default_rng(4)
    series = Series(DetectorOptions())
    assert fed(series, (random.random(3_000) >= 0.05).astype(float), version="1.0") is None
    change = change_of(series, (random.random(3_000) >= 0.2).astype(float), start=3_000, version="1.1")
    assert (change.version_before, change.version) == ("1.0", "1.1")
    assert change.since >= 3_000


def shuffled(passed: int, failed: int, random: Any) -> list[float]:
    return random.permutation([1.0] * passed + [0.0] * failed).tolist()  # type: ignore[no-any-return]


def test_a_release_is_found_as_soon_as_by_a_comparison_of_all_its_turns() -> None:
    """141 of 155 turns passed, and 96 of 125 after the release: p = 0.0014. The series is still learning its usual level."""
    random, reported = np.random.default_rng(11), []
    for _ in range(40):
        series = Series(DetectorOptions())
        assert fed(series, shuffled(141, 14, random), version="1.4.0") is None
        found = fed(series, shuffled(96, 29, random), start=155, version="1.5.0")
        reported += [found[1]] if found is not None else []
    assert len(reported) >= 30
    assert {(one.detector, one.version_before, one.version, one.since) for one in reported} == {
        ("release", "1.4.0", "1.5.0", 155.0)
    }


@pytest.mark.parametrize("unit", ["1", "s"])
def test_a_report_of_a_release_has_the_numbers_of_compare(unit: str) -> None:
    random = np.random.default_rng(12)
    first, second = (
        (random.lognormal(level, 0.6, 400) if unit == "s" else random.beta(4, 4 * level, 400)).tolist() for level in (1.0, 1.35)
    )
    series = Series(DetectorOptions(), bounded=unit == "1", is_amount=unit == "s")
    assert fed(series, first, version="a") is None
    found = fed(series, second, version="b")
    assert found is not None
    place, change = found
    values = [
        GroupValue(group, "m", unit, "up", f"{group}{i}", value, 1.0, None, None, None)
        for group, some in (("a", first), ("b", second[: place + 1]))
        for i, value in enumerate(some)
    ]
    [compared] = compare_values(values, "a", "b")[0]
    assert (change.before, change.after) == pytest.approx((compared.difference.before.mean, compared.difference.after.mean))
    assert change.difference == pytest.approx(compared.difference.interval)


def test_versions_that_run_side_by_side_are_one_release() -> None:
    random = np.random.default_rng(13)
    series, reported = Series(DetectorOptions()), []
    for place in range(2_000):  # one in ten of 3,000 turns goes to the new version
        version = "2" if place >= 600 and place % 10 == 0 else "1"
        found = series.add(float(random.random() < (0.6 if version == "2" else 0.95)), float(place), 1.0, version, f"t{place}")
        reported += [found] if found is not None and found.detector == "release" else []
    [change] = reported
    assert (change.version_before, change.version, change.since) == ("1", "2", 600.0)
    assert change.before == pytest.approx(0.95, abs=0.02)
    assert all(int(one.turn_id[1:]) % 10 == 0 for one in change.exemplars)


def test_a_release_after_a_return_is_compared_with_the_version_that_ran_last() -> None:
    random = np.random.default_rng(14)
    series = Series(DetectorOptions())
    for version, rate in (("1", 0.95), ("2", 0.5), ("1", 0.95)):
        fed(series, (random.random(300) < rate).astype(float), version=version)
    change = change_of(series, (random.random(600) < 0.7).astype(float), version="3")
    assert (change.version_before, change.version) == ("1", "3")
    assert change.before == pytest.approx(0.95, abs=0.03)


def test_a_third_version_does_not_mix_with_the_two_that_are_compared() -> None:
    series = Series(DetectorOptions())
    assert fed(series, [0.9] * 300, version="old service") is None
    for place in range(300):
        for version, value in (("1", 0.9), ("old service", 0.2)):
            assert series.add(value, float(place), 1.0, version) is None or version == "old service"


def test_sampled_scores_of_a_release_count_as_much_as_they_say() -> None:
    """Two hundred scores, one of which has nearly all the weight, show no difference."""
    series = Series(DetectorOptions())
    fed(series, [1.0, 0.8] * 200, version="1")
    assert series.add(0.0, 0.0, 10_000.0, "2") is None
    assert fed(series, [1.0, 0.8] * 20, version="2") is None


def test_a_comparison_of_releases_goes_on_after_a_restart() -> None:
    random = np.random.default_rng(15)
    before, after = random.lognormal(0, 0.5, 300), random.lognormal(0.3, 0.5, 300)
    whole = Series(DetectorOptions(), bounded=False, is_amount=True)
    restarted = Series(DetectorOptions(), bounded=False, is_amount=True)
    found = []
    for begun in (whole, restarted):
        fed(begun, before, version="1")
        fed(begun, after[:19], version="2")
        state = json.loads(json.dumps(begun.state()))
        series = begun if begun is whole else Series.of_state(DetectorOptions(), state)
        found.append(fed(series, after[19:], version="2"))
    assert found[0] is not None
    assert found[0] == found[1]


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.name)
def test_releases_without_a_difference_are_seldom_reported(kind: Any) -> None:
    random, reported = np.random.default_rng(6), 0
    for _ in range(100):
        series = Series(DetectorOptions(false_alarm_every=40_000.0), bounded=kind.bounded, is_amount=not kind.bounded)
        weight = 1.0 / kind.probability
        fed(series, kind.draw(random, 0.0, 1_000), version="1", weight=weight)
        found = fed(series, kind.draw(random, 0.0, 1_500), version="2", weight=weight)
        reported += found is not None and found[1].detector == "release"
    assert reported <= 100 * 0.05 + 2 * math.sqrt(5)


def test_what_is_known_goes_on_after_a_restart() -> None:
    random = np.random.default_rng(8)
    values = (random.random(2_000) >= 0.05).astype(float)
    bad = (random.random(400) >= 0.4).astype(float)
    without, restarted = Series(DetectorOptions()), Series(DetectorOptions())
    fed(without, values, version="1")
    fed(restarted, values, version="1")
    restarted = Series.of_state(DetectorOptions(), restarted.state())
    assert restarted.usual == without.usual
    first, second = fed(without, bad, version="1"), fed(restarted, bad, version="1")
    assert first is not None
    assert second is not None
    assert abs(first[0] - second[0]) <= 20


def test_weights_are_evidence_only_as_far_as_they_go() -> None:
    moments = Moments()
    for _ in range(10):
        moments.add(1.0, 20.0)
    moments.add(0.0, 200.0)
    assert moments.n < 4
    assert moments.mean == 0.5


# --- all series of a process


def score(value: float, **more: Any) -> Score:
    return Score("llm_relevance", value, **more)


def test_only_scores_that_say_something_count() -> None:
    changes = Changes(DetectorOptions(reference=20), FakeClock())
    for one in (score(0.1, status="error"), Score("llm_relevance", None), score(1.0, detail={"vacuous": True})):
        for _ in range(50):
            assert changes.add([one], "bot", 1.0, None, None) == []
    assert changes.state() == []


def test_each_agent_has_a_series_of_its_own_and_says_whether_it_is_worse() -> None:
    changes = Changes(DetectorOptions(), FakeClock())
    found = [
        changes.add([score(value if agent == "bot" else 0.9)], agent, 1.0, None, None)
        for value in [0.9] * 300 + [0.4] * 60
        for agent in ("bot", "other")
    ]
    [change] = [one for some in found for one in some]
    assert (change.agent, change.verdict) == ("bot", "worse")
    assert change.title == "llm_relevance is worse for bot: mean 0.4, was 0.9"
    assert changes.read() == [change]
    assert [verdict_of(direction, 0.1) for direction in ("up", "down", "neutral")] == ["better", "worse", "changed"]


def test_each_tenant_has_a_series_of_its_own() -> None:
    """A drop for one tenant isn't hidden among another tenant's scores, and their gauges aren't added up."""
    changes, telemetry = Changes(DetectorOptions(), FakeClock()), Telemetry()
    changes.watch(telemetry)
    found = [
        changes.add([score(value if tenant == "acme" else 0.9)], "bot", 1.0, None, None, tenant)
        for value in [0.9] * 300 + [0.4] * 60
        for tenant in ("acme", "globex")
    ]
    assert [one.found.after for some in found for one in some] == [pytest.approx(0.4)]
    again = Changes(DetectorOptions(), FakeClock())
    again.restore(changes.state())
    assert [again.add([score(0.3)], "bot", 1.0, None, None, "globex") for _ in range(60)].count([]) < 60
    for _ in range(60):
        changes.add([score(0.4)], "bot", 1.0, None, None, "globex")
    sizes = telemetry.read(CHANGE_SIZE).values.values()
    assert [*sizes] == [pytest.approx(-0.5)]


def test_damaged_series_is_skipped_at_restore() -> None:
    changes = Changes(DetectorOptions(), FakeClock())
    changes.add([score(0.9)], "bot", 1.0, "1.0", None)
    state = changes.state()
    state[0][-1]["releases"][-1][2] = []  # sums that must have two numbers
    again = Changes(DetectorOptions(), FakeClock())
    again.restore(state)
    assert again.state() == []


def test_names_without_end_take_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agenteval.statistics.changes._SERIES", 10)
    changes = Changes(DetectorOptions(), FakeClock())
    for number in range(1_000):
        changes.add([score(0.9)], f"agent-{number}", 1.0, None, None)
    assert len(changes.state()) <= 11
    assert len(changes._of_agent) <= 10


@pytest.mark.parametrize("factor", [0.001, 1_000.0])
def test_a_unit_of_amounts_does_not_change_the_comparison(factor: float) -> None:
    """Logarithms of amounts from 1 to 2.7 lie between 0 and 1, but aren't shares."""
    found = []
    for scale in (1.0, factor):
        sides = VersionScores(is_amount=True), VersionScores(is_amount=True)
        for side, level, spread, count in zip(sides, (0.03, 0.036), (0.002, 0.009), (400, 25), strict=True):
            for value in np.random.default_rng(count).normal(level, spread, count):
                side.add(scale * math.exp(abs(value)), 1.0)
        found.append(sides[0].compared_to(sides[1]))
    assert found[0] is not None
    assert found[1] is not None
    assert found[0].p == pytest.approx(found[1].p, rel=1e-6)
