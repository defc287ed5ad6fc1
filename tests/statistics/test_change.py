"""Changes of a series: found when there is one, seldom when there is none, and what is said of them."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

from otel_agenteval.core.score import Score
from otel_agenteval.core.semconv import CHANGE_SIZE
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.statistics.change import DetectorOptions, Found, Moments, Series, _limit
from otel_agenteval.statistics.changes import Changes, verdict_of
from tests.support.changing import KINDS, delays, false_alarms
from tests.support.clock import FakeClock

OFTEN = DetectorOptions(false_alarm_every=5_000.0)
"""So often that false alarms can be counted."""


def fed(series: Series, values: Any, start: float = 0.0, **more: Any) -> tuple[int, Found] | None:
    for place, value in enumerate(values):
        found = series.see(float(value), start + place, exemplar=f"t{place}", **more)
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
    """The mean number of steps until an EWMA of standard normal values leaves its limits (Brook and Evans' Markov chain)."""
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


@pytest.mark.slow
def test_releases_without_a_difference_are_seldom_reported() -> None:
    random = np.random.default_rng(6)
    reported = 0
    for _ in range(60):
        series = Series(DetectorOptions(false_alarm_every=20_000.0))  # an error of one in twenty
        fed(series, (random.random(1_000) >= 0.1).astype(float), version="1")
        found = fed(series, (random.random(3_000) >= 0.1).astype(float), version="2")
        reported += found is not None
    assert reported <= 60 * 0.05 + 2 * math.sqrt(3)


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
            assert changes.see([one], "bot", 1.0, None, None) == []
    assert changes.state() == []


def test_each_agent_has_a_series_of_its_own_and_says_whether_it_is_worse() -> None:
    changes = Changes(DetectorOptions(), FakeClock())
    found = [
        changes.see([score(value if agent == "bot" else 0.9)], agent, 1.0, None, None)
        for value in [0.9] * 300 + [0.4] * 60
        for agent in ("bot", "other")
    ]
    [change] = [one for some in found for one in some]
    assert (change.agent, change.verdict) == ("bot", "worse")
    assert change.title == "llm_relevance of bot is worse: mean 0.4, before 0.9"
    assert changes.read() == [change]
    assert [verdict_of(direction, 0.1) for direction in ("up", "down", "neutral")] == ["better", "worse", "changed"]


def test_each_tenant_has_a_series_of_its_own() -> None:
    """One tenant's drop isn't hidden among the scores of the other, and their gauges aren't added up."""
    changes, telemetry = Changes(DetectorOptions(), FakeClock()), Telemetry()
    changes.watch(telemetry)
    found = [
        changes.see([score(value if tenant == "acme" else 0.9)], "bot", 1.0, None, None, tenant)
        for value in [0.9] * 300 + [0.4] * 60
        for tenant in ("acme", "globex")
    ]
    assert [one.found.after for some in found for one in some] == [pytest.approx(0.4)]
    again = Changes(DetectorOptions(), FakeClock())
    again.restore(changes.state())
    assert [again.see([score(0.3)], "bot", 1.0, None, None, "globex") for _ in range(60)].count([]) < 60
    for _ in range(60):
        changes.see([score(0.4)], "bot", 1.0, None, None, "globex")
    sizes = telemetry.read(CHANGE_SIZE).values.values()
    assert [*sizes] == [pytest.approx(-0.5)]


def test_names_without_end_take_no_memory_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("otel_agenteval.statistics.changes._SERIES", 10)
    changes = Changes(DetectorOptions(), FakeClock())
    for number in range(1_000):
        changes.see([score(0.9)], f"agent-{number}", 1.0, None, None)
    assert len(changes.state()) <= 11
    assert len(changes._of_agent) <= 10
