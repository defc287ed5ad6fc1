"""Intervals of fleet estimates contain the true mean as often as stated, are narrower with good proxies, and can be checked repeatedly."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import NormalIndPower

from otel_agenteval.statistics.estimates import Estimates
from otel_agenteval.statistics.groups import Difference, Group, Side, compare_sides, difference
from otel_agenteval.statistics.weighted import Everyone, Sums, padded, vector
from tests.support.clock import FakeClock
from tests.support.simulated import FLEETS, Fleet, coverage, ever_missed

RUNS = 2_000
LEAST, MOST = 0.935, 0.975
"""Limits for 2,000 runs. If few turns fail, counts are whole numbers, so intervals can contain the true mean more often than in 95 %."""


@pytest.mark.slow
@pytest.mark.parametrize("fleet", FLEETS, ids=lambda fleet: fleet.name)
def test_intervals_hold_the_truth_as_often_as_they_say(fleet: Fleet) -> None:
    found = coverage(fleet, RUNS)
    assert LEAST <= found.plain <= MOST
    assert LEAST <= found.predicted <= MOST
    assert found.narrower > -0.01


def test_a_proxy_that_goes_with_the_score_narrows_as_much_as_can_be() -> None:
    """With a correlation r, no estimator can narrow the interval by more than 1 - sqrt(1 - r²), which is 28.6 % at 0.7."""
    found = coverage(Fleet("scores", 8_000, None, 0.05, correlation=0.7), 150)
    assert 0.25 <= found.narrower <= 1 - math.sqrt(1 - 0.7**2)
    assert coverage(Fleet("scores", 8_000, None, 0.05, correlation=0.9), 150).narrower >= 0.5


@pytest.mark.slow
def test_a_sequence_may_be_looked_at_as_often_as_one_likes_and_an_interval_may_not() -> None:
    once, always = ever_missed(Fleet("scores", 400, None, 0.1, correlation=0.7), 400)
    assert once > 0.12
    assert always <= 0.05


def test_a_sequence_is_wider_but_not_by_much() -> None:
    sums, everyone, _ = Fleet("scores", 4_000, None, 0.1, correlation=0.7).sums(np.random.default_rng(3))
    once, always = sums.estimate(everyone), sums.sequence(everyone)
    assert once is not None
    assert always is not None
    assert once.mean == always.mean
    assert 1.3 < (always.high - always.low) / (once.high - once.low) < 2


def test_turns_of_one_trace_count_as_one_piece_of_evidence() -> None:
    alone, together = Sums(), Sums()
    for number in range(40):
        value = float(number % 2)
        for _ in range(5):
            alone.add(vector(1.0, value))
        together.add(5 * vector(1.0, value))
    for sums in (alone, together):
        sums.least, sums.most = 0.0, 1.0
    apart, joined = alone.estimate(), together.estimate()
    assert apart is not None
    assert joined is not None
    assert (round(apart.n_eff), round(joined.n_eff)) == (200, 40)
    assert (joined.high - joined.low) > 2 * (apart.high - apart.low)


def test_with_few_traces_proxies_are_left_out() -> None:
    sums, everyone = Sums(), Everyone()
    for number in range(12):
        proxies = padded((number % 2, 0.5))
        sums.add(vector(1.0, float(number % 2), proxies))
        everyone.add(proxies)
    sums.least, sums.most = 0.0, 1.0
    assert sums.estimate(everyone) == sums.estimate()


def hour(estimates: Estimates, *, seen: bool) -> None:
    """Add 200 turns, of which 45 are judged. The proxy depends on the score, and the judged turns are better by chance."""
    for number in range(200):
        good, judged = number % 10 < 5, number % 10 in (0, 9) or number % 40 == 1
        if seen:
            estimates.add_proxies("m", "bot", f"t{number}", (float(good) * 0.8 + 0.1 * (number % 3),))
        if judged:
            estimates.choose("m", "bot", 0.2, "drawn", f"t{number}")
            estimates.add("m", "bot", f"t{number}", f"t{number}", float(good), 0.2)


def test_what_is_known_of_every_turn_moves_the_estimate_to_the_truth() -> None:
    without, helped = (Estimates(3_600.0, FakeClock()) for _ in range(2))
    hour(without, seen=False)
    hour(helped, seen=True)
    (plain,), (predicted,) = without.read().values(), helped.read().values()
    assert plain.mean > 0.54
    assert abs(predicted.mean - 0.5) < 0.02
    assert predicted.high - predicted.low < 0.6 * (plain.high - plain.low)
    assert predicted.n_eff > plain.n_eff


def test_a_turn_that_is_seen_again_counts_once_with_what_is_known_last() -> None:
    once, again = (Estimates(3_600.0, FakeClock()) for _ in range(2))
    hour(once, seen=True)
    for number in range(200):
        again.add_proxies("m", "bot", f"t{number}", (5.0, -3.0))
    hour(again, seen=True)
    (one,), (other,) = once.read().values(), again.read().values()
    assert tuple(one) == pytest.approx(tuple(other))


def test_an_answer_to_a_turn_that_another_process_saw_moves_nothing() -> None:
    here, there = (Estimates(3_600.0, FakeClock()) for _ in range(2))
    for estimates in (here, there):
        hour(estimates, seen=True)
    before = here.read()["m", "bot"]
    here.add("m", "bot", "far", "far", before.mean, 0.2)
    assert here.read()["m", "bot"].mean == pytest.approx(before.mean, abs=0.002)


def test_the_window_forgets_and_the_start_does_not() -> None:
    clock = FakeClock()
    estimates = Estimates(3_600.0, clock)
    hour(estimates, seen=True)
    clock.advance(4_000)
    assert estimates.read() == {}
    (kept,) = estimates.read_since_start().values()
    assert kept.low < 0.5 < kept.high


def test_memory_does_not_grow_with_scores() -> None:
    estimates = Estimates(3_600.0, FakeClock())
    hour(estimates, seen=True)
    parts = {key: len(series) for key, series in estimates._series.items()}
    for repetition in range(5):
        for number in range(200):
            estimates.add_proxies("m", "bot", f"more{repetition}-{number}", (0.5,))
            estimates.add("m", "bot", f"more{repetition}-{number}", f"more{repetition}-{number}", 1.0, 1.0)
    assert {key: len(series) for key, series in estimates._series.items()} == parts


# --- two groups of turns, against scipy and statsmodels


def group(values: list[float], probability: float = 1.0, per_trace: int = 1) -> Group:
    found = Group()
    for place, value in enumerate(values):
        found.add(f"t{place // per_trace}", value, probability)
    return found


def compared(before: Group, after: Group) -> Difference:
    first, second = before.estimate(), after.estimate()
    assert first is not None
    assert second is not None
    return difference(first, second, (before.turns, after.turns))


@pytest.mark.slow
@pytest.mark.parametrize(("rates", "n"), [((0.05, 0.05), 400), ((0.02, 0.08), 600), ((0.5, 0.4), 200)])
def test_intervals_hold_the_true_difference_in_95_of_100_runs(rates: tuple[float, float], n: int) -> None:
    random, held, runs = np.random.default_rng(1), 0, 600
    for _ in range(runs):
        found = compared(*(group((random.random(n) >= rate).astype(float).tolist()) for rate in rates))
        low, high = found.interval
        held += low <= rates[0] - rates[1] <= high
    assert 0.925 <= held / runs <= 0.985


@pytest.mark.slow
def test_a_sample_that_prefers_bad_turns_makes_no_release_look_worse() -> None:
    """Errors of the later group are always judged, but the group is as good as the other."""
    random, shown = np.random.default_rng(3), 0
    for _ in range(200):
        groups = []
        for always in (False, True):
            found = Group()
            for place in range(3_000):
                bad = random.random() < 0.1
                probability = 1.0 if always and bad else 0.1
                if random.random() < probability:
                    found.add(f"t{place}", 0.0 if bad else 1.0, probability)
            groups.append(found)
        shown += compared(*groups).p < 0.05
    assert shown <= 200 * 0.05 + 2 * np.sqrt(200 * 0.05)


def test_it_agrees_with_welch_and_with_a_power_calculation() -> None:
    random = np.random.default_rng(4)
    first, second = random.normal(3, 1, 300).tolist(), random.normal(3.2, 1.4, 300).tolist()
    found = compared(group(first), group(second))
    assert found.p == pytest.approx(stats.ttest_ind(first, second, equal_var=False).pvalue, rel=0.05)
    spread = np.sqrt((np.var(first, ddof=1) + np.var(second, ddof=1)) / 2)
    by_statsmodels = NormalIndPower().solve_power(nobs1=300, alpha=0.05, power=0.8) * spread
    assert found.detectable == pytest.approx(by_statsmodels, rel=0.01)
    needed = NormalIndPower().solve_power(effect_size=0.1 / spread, alpha=0.05, power=0.8)
    assert found.turns_needed(0.1)[0] + 300 == pytest.approx(needed, rel=0.02)


def test_equal_turns_of_one_conversation_are_one_piece_of_evidence() -> None:
    def p_value(per_conversation: int) -> float:
        sides = Side(), Side()
        for side, failures in zip(sides, (4, 12), strict=True):
            for number in range(40):
                for _ in range(per_conversation):
                    side.add(0.0 if number < failures else 1.0, f"conversation {number}")
        found = compare_sides(*sides, is_rate=True)
        assert found is not None
        assert found.turns == (40 * per_conversation, 40 * per_conversation)
        return found.p

    assert 0.01 < p_value(5) < 0.1
    assert p_value(1) == pytest.approx(stats.fisher_exact([[36, 4], [28, 12]]).pvalue)


def test_turns_of_one_trace_are_one_piece_of_evidence() -> None:
    values = [float(place // 5 % 3 > 0) for place in range(600)]
    alone, together = group(values), group(values, per_trace=5)
    assert alone.estimate() is not None
    narrow, wide = (one.estimate() for one in (group(values), together))
    assert wide.high - wide.low > 1.5 * (narrow.high - narrow.low)


def test_what_does_not_vary_differs_only_if_it_is_different() -> None:
    same = difference(group([1.0] * 50).estimate(), group([1.0] * 50).estimate())
    assert same.p == 1.0
    other = difference(group([1.0] * 200).estimate(), group([0.0] * 200).estimate())
    assert other.p < 1e-6
    assert other.interval[1] < -0.9
    assert same.turns_needed(0.0) == (-1, -1)
