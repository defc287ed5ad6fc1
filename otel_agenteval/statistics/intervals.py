"""Confidence intervals for a set of scores and for the difference between two sets.

Differences are always *after* minus *before*. Proportions get Wilson's interval, which stays valid near 0 and 1. Means of small
sets get bootstrap intervals, which don't assume a distribution. Random numbers have a fixed seed, so that results are reproducible.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Interval = tuple[float, float]
Z95 = 1.959963984540054
"""Quantile of the normal distribution for two-sided 95 % intervals."""
_STUDENT = (1.2104, 1.4401, 1.3040, 0.8110, 0.7173)
"""Coefficients for the ratio of Student's to the normal 95 % quantile, by increasing power of 1 / degrees of freedom."""
_SEED = 20_260_101
RESAMPLES = 10_000
MANY = 1_000
"""Number of values above which the normal approximation is as accurate as resampling."""
_CELLS = 2_000_000  # per block of resamples, to limit memory


def blocks(width: int, stream: int = 0) -> Iterator[tuple[Any, int]]:
    """Split the resamples into blocks, to limit memory. For each block, yield a random generator and the number of resamples."""
    generator = np.random.default_rng((_SEED, stream))
    step, left = max(1, _CELLS // width), RESAMPLES
    while left > 0:
        yield generator, min(step, left)
        left -= step


def always_valid(n: float, error: float) -> float:
    """Return the half-width, in standard errors, of an interval that stays valid if you check it repeatedly.

    This is an asymptotic confidence sequence (Waudby-Smith, Arbour, Sinha, Kennedy, and Ramdas 2024), tuned to be narrowest near
    an effective sample size of 300.
    """
    tuned = (-2 * math.log(error) + math.log(-2 * math.log(error) + 1)) / 300.0
    size = max(n, 1.0) * tuned
    return math.sqrt(2 * (size + 1) / size * math.log(math.sqrt(size + 1) / error))


def wilson(successes: float, n: float, z: float = Z95) -> Interval:
    share = successes / n
    middle, half = wilson_around(share, share * (1 - share) / n, n, z)
    return max(0.0, middle - half), min(1.0, middle + half)


def wilson_around(mean: float, variance: float, n: float, z: float) -> Interval:
    """Return the middle and half-width of Wilson's interval for a mean from 0 to 1. ``variance`` is the mean's variance."""
    z2 = z * z
    middle = (mean + z2 / (2 * n)) / (1 + z2 / n)
    return middle, z * math.sqrt(variance + z2 / (4 * n * n)) / (1 + z2 / n)


def student(df: float) -> float:
    """Return Student's quantile for two-sided 95 % intervals, accurate to 1 % for ``df`` ≥ 1."""
    return Z95 * (1 + sum(term / df**power for power, term in enumerate(_STUDENT, 1)))


def newcombe(before: tuple[float, float], after: tuple[float, float], correlation: float = 0.0, z: float = Z95) -> Interval:
    """Return Newcombe's interval for the difference between two proportions ``(successes, n)``, by default the 95 % interval."""
    p, q = before[0] / before[1], after[0] / after[1]
    (p_low, p_high), (q_low, q_high) = wilson(*before, z), wilson(*after, z)

    def half(first: float, second: float) -> float:
        return math.sqrt(max(first * first - 2 * correlation * first * second + second * second, 0.0))

    return max(-1.0, q - p - half(q - q_low, p_high - p)), min(1.0, q - p + half(q_high - q, p - p_low))


def newcombe_paired(both: int, lost: int, gained: int, neither: int) -> Interval:
    """Return Newcombe's 95 % interval for the difference between paired proportions, from the numbers of pairs by outcome."""
    n = both + lost + gained + neither
    margins = float(both + lost) * (gained + neither) * (both + gained) * (lost + neither)
    cross = float(both * neither - lost * gained)
    if cross > 0:  # the method's continuity correction treats a weak positive correlation as zero
        cross = max(cross - n / 2, 0.0)
    phi = cross / math.sqrt(margins) if margins else 0.0
    return newcombe((both + lost, n), (both + gained, n), phi)


def mean_interval(differences: Sequence[float]) -> Interval:
    """Return the 95 % interval of a mean. For up to :data:`MANY` values, the interval is a bootstrap interval."""
    found = np.asarray(differences, dtype=float)
    return _interval(float(found.mean()), _error(found) ** 2, found.size, lambda: _bootstrap(found))


def difference_interval(before: Sequence[float], after: Sequence[float]) -> Interval:
    """Return the 95 % interval of the difference between two means, by bootstrap up to :data:`MANY` values per set."""
    first, second = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    difference, variance = float(second.mean() - first.mean()), _error(first) ** 2 + _error(second) ** 2
    return _interval(difference, variance, max(first.size, second.size), lambda: _bootstrap(second) - _bootstrap(first, 1))


def _interval(middle: float, variance: float, n: int, draw: Callable[[], Any]) -> Interval:
    if n > MANY:
        half = Z95 * math.sqrt(variance)
        return middle - half, middle + half
    low, high = np.quantile(draw(), (0.025, 0.975))
    return float(low), float(high)


def _error(values: Any) -> float:
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else 0.0


def _bootstrap(values: Any, stream: int = 0) -> Any:
    means = [
        values[generator.integers(0, values.size, (count, values.size))].mean(axis=1)
        for generator, count in blocks(values.size, stream)
    ]
    return np.concatenate(means)
