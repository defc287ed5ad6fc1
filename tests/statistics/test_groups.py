"""Two groups of turns: intervals and p values by simulation, against scipy and statsmodels, and how many turns it would take."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats
from statsmodels.stats.power import NormalIndPower

from otel_agenteval.statistics.groups import Group, difference, in_pairs


def group(values: list[float], probability: float = 1.0, per_trace: int = 1) -> Group:
    found = Group()
    for place, value in enumerate(values):
        found.add(f"t{place // per_trace}", value, probability)
    return found


def compared(before: Group, after: Group) -> object:
    [(_, found, _)] = in_pairs({"m": before}, {"m": after})
    return found


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
def test_without_a_difference_p_is_below_5_percent_in_5_of_100_runs() -> None:
    random, small, runs = np.random.default_rng(2), 0, 600
    for _ in range(runs):
        small += compared(*(group(random.beta(8, 2, 150).tolist()) for _ in range(2))).p < 0.05
    assert 0.03 <= small / runs <= 0.075


@pytest.mark.slow
def test_a_sample_that_prefers_bad_turns_makes_no_release_look_worse() -> None:
    """The later group has its errors judged always, and is as good as the other."""
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
    assert found.turns_needed((300, 300), 0.1)[0] + 300 == pytest.approx(needed, rel=0.02)


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
    assert same.turns_needed((50, 50), 0.0) == (-1, -1)
