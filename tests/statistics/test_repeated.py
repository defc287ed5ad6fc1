"""Intervals of experiments with few cases contain the true mean as often as they state."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from otel_agenteval.statistics.repeated import FEWEST_CASES, mean_by_case

RUNS = 1_000
Draw = Callable[[Any, int], Any]
SHARES: dict[str, tuple[Draw, float]] = {
    "half pass": (lambda dice, n: (dice.random(n) < 0.5) * 1.0, 0.5),
    "nine of ten pass": (lambda dice, n: (dice.random(n) < 0.9) * 1.0, 0.9),
    "scores around the middle": (lambda dice, n: dice.beta(2, 2, n), 0.5),
    "high scores": (lambda dice, n: dice.beta(8, 2, n), 0.8),
    "mostly perfect scores": (lambda dice, n: np.where(dice.random(n) < 0.7, 1.0, dice.beta(2, 2, n)), 0.85),
}
AMOUNTS: dict[str, tuple[Draw, float]] = {
    "latencies": (lambda dice, n: dice.lognormal(0, 0.5, n), float(np.exp(0.125))),
    "small costs": (lambda dice, n: dice.exponential(0.01, n), 0.01),
    "differences": (lambda dice, n: dice.normal(-1, 2, n), -1.0),
}


def coverage(draw: Draw, truth: float, cases: int, *, is_share: bool) -> float:
    """Return the percentage of intervals that contain the true mean."""
    dice = np.random.default_rng(cases)
    held = 0
    for _ in range(RUNS):
        values = {str(case): [float(value)] for case, value in enumerate(draw(dice, cases))}
        found = mean_by_case(values, is_share=is_share)
        assert found is not None
        assert found.interval is not None
        held += found.interval[0] - 1e-9 <= truth <= found.interval[1] + 1e-9
    return 100 * held / RUNS


@pytest.mark.slow
@pytest.mark.parametrize("cases", [FEWEST_CASES, 8, 20])
def test_interval_holds_for_few_cases(cases: int) -> None:
    found = {
        **{name: coverage(*given, cases, is_share=True) for name, given in SHARES.items()},
        **{name: coverage(*given, cases, is_share=False) for name, given in AMOUNTS.items()},
    }
    assert np.mean([*found.values()]) == pytest.approx(95, abs=2), found
    assert min(found.values()) > 90, found


def test_repetitions_do_not_narrow_an_interval() -> None:
    once = {str(case): [case / 10] for case in range(6)}
    three_times = {case: values * 3 for case, values in once.items()}
    one, three = (mean_by_case(values, is_share=True) for values in (once, three_times))
    assert one is not None
    assert three is not None
    assert one.interval == pytest.approx(three.interval)


@pytest.mark.parametrize("cases", range(1, FEWEST_CASES))
def test_too_few_cases_have_no_interval(cases: int) -> None:
    found = mean_by_case({str(case): [0.5, 1.0] for case in range(cases)}, is_share=True)
    assert found is not None
    assert (found.mean, found.interval) == (0.75, None)


def test_small_amounts_are_not_bounded_by_one() -> None:
    found = mean_by_case({str(case): [value] for case, value in enumerate((0.1, 0.2, 0.9, 0.95, 0.99))}, is_share=False)
    assert found is not None
    assert found.interval is not None
    assert found.interval[1] > 1
