"""Statistics on repetitions of the same case, such as pass rates over k tries and consistency.

Repetitions of a case aren't independent, so each interval is computed over cases, not over repetitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from .intervals import Z95, Interval, student, wilson_around


class Tries(NamedTuple):
    n: int
    passed: int


def pass_at_k(tries: Tries, k: int) -> float:
    """Estimate the probability that at least one of ``k`` tries passes (Chen et al. 2021). An invalid ``k`` raises ValueError."""
    return 1.0 - pass_hat_k(Tries(tries.n, tries.n - tries.passed), k)


def pass_hat_k(tries: Tries, k: int) -> float:
    """Estimate the probability that all ``k`` tries pass (Yao et al. 2024). For an invalid ``k``, raise ValueError."""
    if not 1 <= k <= tries.n:
        raise ValueError(f"k: must be between 1 and the number of repetitions ({tries.n}), got {k}")
    return math.comb(tries.passed, k) / math.comb(tries.n, k)


def consistency(cases: Sequence[Tries]) -> float | None:
    """Return the share of repeated cases in which all tries have the same verdict, or None without repeated cases."""
    repeated = [tries for tries in cases if tries.n > 1]
    return sum(tries.passed in (0, tries.n) for tries in repeated) / len(repeated) if repeated else None


FEWEST_CASES = 5
"""Minimum effective number of cases for an interval. With fewer cases, intervals would miss the true mean too often."""
_LEAST_SPREAD = 0.05
"""Smallest plausible variance of scores from 0 to 1, as a share of the variance of zeros and ones with the same mean."""


class CaseMean(NamedTuple):
    mean: float
    interval: Interval | None
    """95 % interval of the mean. None if the effective number of cases is below :data:`FEWEST_CASES`."""


def mean_by_case(values: Mapping[str, Sequence[float]], *, is_share: bool) -> CaseMean | None:
    """Return the mean of all values with its interval over cases, or None without values.

    ``is_share`` is True if values are always from 0 to 1. Intervals use Student's quantile, except for zeros and ones. Shares get
    Wilson's interval with the observed variance. Other positive values get an interval on a logarithmic scale, and all other values
    get a symmetric interval. In simulations, 93 to 97 % of the intervals contain the true mean. For very skewed values, such as a
    few extreme costs, only 90 % do.
    """
    cases = [found for found in values.values() if found]
    if not cases:
        return None
    sizes = np.array([len(found) for found in cases], dtype=float)
    sums = np.array([sum(found) for found in cases], dtype=float)
    every = np.concatenate([np.asarray(found, dtype=float) for found in cases])
    mean, n = float(every.mean()), float(sizes.sum() ** 2 / (sizes @ sizes))
    if n < FEWEST_CASES - 1e-9:
        return CaseMean(mean, None)
    deviations = sums - mean * sizes
    variance = float(deviations @ deviations) / every.size**2 * n / (n - 1)
    if every.min() >= 0 and every.max() <= 1 and is_share:
        most, spread = mean * (1 - mean), float(every.var()) * n / (n - 1)
        share = min(1.0, max(_LEAST_SPREAD, spread / most)) if most > 0 else 1.0
        z = Z95 + (student(n - 1) - Z95) * min(1.0, 2 * (1 - share))  # zeros and ones have the variance mean * (1 - mean)
        middle, half = wilson_around(mean, variance, n / share, z)
        return CaseMean(mean, (max(0.0, min(mean, middle - half)), min(1.0, max(mean, middle + half))))
    half = student(n - 1) * math.sqrt(variance)
    if every.min() > 0:
        factor = math.exp(half / mean)
        return CaseMean(mean, (mean / factor, mean * factor))
    return CaseMean(mean, (mean - half, mean + half))
