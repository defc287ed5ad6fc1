"""Statistics compared with hand calculations, the standard library, published values, and simulations with a fixed seed."""

from __future__ import annotations

import itertools
import math
import statistics

import numpy as np
import pytest

from otel_agenteval.statistics import intervals
from otel_agenteval.statistics import tests as ours

# --- proportions


@pytest.mark.parametrize(
    ("successes", "n", "interval"),
    [(8, 10, (0.4902, 0.9433)), (0, 10, (0.0, 0.2775)), (10, 10, (0.7225, 1.0)), (1, 1, (0.2065, 1.0))],
)
def test_wilson(successes: int, n: int, interval: tuple[float, float]) -> None:
    assert intervals.wilson(successes, n) == pytest.approx(interval, abs=5e-5)


def test_newcombe_as_published() -> None:
    assert intervals.newcombe((48, 80), (56, 70)) == pytest.approx((0.0524, 0.3339), abs=5e-5)


def test_newcombe_paired_is_wilsons_intervals_squared_and_added() -> None:
    # 20 passed both times, 2 only before, 12 only after, 16 neither time: 44 % before, 64 % after
    (p_low, p_high), (q_low, q_high) = intervals.wilson(22, 50), intervals.wilson(32, 50)
    phi = (20 * 16 - 2 * 12 - 50 / 2) / math.sqrt(22 * 28 * 32 * 18)
    down, up, above, below = 0.64 - q_low, q_high - 0.64, p_high - 0.44, 0.44 - p_low
    low = 0.2 - math.sqrt(down**2 - 2 * phi * down * above + above**2)
    high = 0.2 + math.sqrt(up**2 - 2 * phi * up * below + below**2)
    assert intervals.newcombe_paired(20, 2, 12, 16) == pytest.approx((low, high))
    assert intervals.newcombe_paired(20, 12, 2, 16) == pytest.approx((-high, -low))


def test_newcombe_of_uncorrelated_pairs_is_that_of_independent_ones() -> None:
    assert intervals.newcombe_paired(9, 9, 9, 9) == pytest.approx(intervals.newcombe((18, 36), (18, 36)))


@pytest.mark.parametrize(("lost", "gained", "p"), [(0, 0, 1.0), (5, 5, 1.0), (9, 1, 22 / 1024), (0, 6, 2 / 64), (0, 5, 2 / 32)])
def test_mcnemar_is_the_binomial_tail_doubled(lost: int, gained: int, p: float) -> None:
    assert ours.mcnemar(lost, gained) == pytest.approx(p)


def test_mcnemar_of_many_pairs_does_not_overflow() -> None:
    assert 0 < ours.mcnemar(5_000, 5_300) < 0.01


@pytest.mark.parametrize(
    ("before", "after", "p"), [((1, 4), (3, 4), 34 / 70), ((0, 5), (5, 5), 2 / 252), ((3, 3), (7, 7), 1.0), ((0, 3), (0, 7), 1.0)]
)
def test_fisher_counts_the_tables_that_are_as_unlikely(before: tuple[int, int], after: tuple[int, int], p: float) -> None:
    assert ours.fisher(before, after) == pytest.approx(p)


# --- means


@pytest.mark.parametrize(
    ("differences", "p"), [([], 1.0), ([0, 0], 1.0), ([1, 2, 3], 2 / 8), ([0, 1, 2, 3], 2 / 8), ([1, -1], 1.0)]
)
def test_sign_flip_counts_the_ways_to_swap(differences: list[float], p: float) -> None:
    assert ours.sign_flip(differences) == p


def test_sign_flip_of_more_pairs_is_close_to_all_ways() -> None:
    differences = np.random.default_rng(1).normal(0.4, 1, 14)
    every = [abs(np.dot(signs, differences)) for signs in itertools.product((-1, 1), repeat=14)]
    exact = np.mean(np.array(every) >= abs(differences.sum()) - 1e-9)
    assert ours.sign_flip(differences) == pytest.approx(exact, abs=0.01)


def test_permutation_is_close_to_all_ways_to_deal() -> None:
    before, after = [1.0, 2.0, 4.0, 4.5], [3.0, 5.0, 6.0, 7.5, 8.0]
    pooled, observed = before + after, abs(statistics.mean(after) - statistics.mean(before))
    ways = list(itertools.combinations(range(9), 5))
    extreme = 0
    for way in ways:
        second = [pooled[i] for i in way]
        first = [pooled[i] for i in range(9) if i not in way]
        extreme += abs(statistics.mean(second) - statistics.mean(first)) >= observed - 1e-9
    assert ours.permutation(before, after) == pytest.approx(extreme / len(ways), abs=0.006)


def test_values_that_do_not_vary_show_nothing() -> None:
    assert ours.permutation([0.1] * 5, [0.1] * 7) == 1.0
    assert intervals.difference_interval([0.1] * 5, [0.1] * 7) == pytest.approx((0, 0), abs=1e-12)


def test_many_values_take_the_normal_approximation_without_a_jump(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(3)
    before, after = generator.normal(0, 1, 400), generator.normal(0.15, 1, 400)
    results = []
    for many in (1_000, 100):
        for module in (intervals, ours):
            monkeypatch.setattr(module, "MANY", many)
        differences = after - before
        results.append((
            ours.permutation(before, after), ours.sign_flip(differences),
            *intervals.difference_interval(before, after), *intervals.mean_interval(differences),
        ))  # fmt: skip
    assert results[0] == pytest.approx(results[1], abs=0.012)


def test_bootstrap_intervals_cover_what_they_should() -> None:
    generator, covered = np.random.default_rng(7), 0
    for _ in range(60):
        before, after = generator.exponential(1, 60), generator.exponential(1, 60) + 0.5
        low, high = intervals.difference_interval(before, after)
        covered += low <= 0.5 <= high
    assert 52 <= covered <= 60  # 95 % of 60, and what chance does to it


# --- effect sizes, several tests


def test_cliffs_delta_is_wins_less_losses() -> None:
    before, after = [1, 2, 2, 3], [2, 3, 4]
    wins = sum(b > a for a in before for b in after) - sum(b < a for a in before for b in after)
    assert ours.cliffs_delta(before, after) == pytest.approx(wins / 12)
    assert ours.cliffs_delta([1, 2], [3]) == 1
    assert ours.cliffs_delta([3], [1, 2]) == -1


def test_cohens_d_is_the_mean_in_standard_deviations() -> None:
    differences = [0.1, 0.4, -0.2, 0.3]
    assert ours.cohens_d(differences) == pytest.approx(statistics.mean(differences) / statistics.stdev(differences))
    assert ours.cohens_d([0.1, 0.1, 0.1]) is None
    assert ours.cohens_d([0.0]) is None


def test_holm() -> None:
    assert ours.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert ours.holm([0.6, 0.7]) == [1.0, 1.0]
    assert ours.holm([]) == []
