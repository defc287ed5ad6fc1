"""Intervals, effect sizes and tests for two sets of scores. Differences are always *after* minus *before*.

Whatever draws random numbers starts from one fixed seed: the same scores always give the same answer. Proportions get
exact tests and Wilson's interval, which stay honest near 0 and 1; means get permutation tests and bootstrap intervals,
which assume no distribution. Past ``_MANY`` values the normal approximation of both is as good, and fast.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

Interval = tuple[float, float]

Z95 = 1.959963984540054
"""Two-sided 95 % point of the normal distribution."""
_SEED = 20_260_101
_RESAMPLES = 10_000
_EXACT_FLIPS = 12  # up to 4,096 sign patterns are all tried
_MANY = 1_000
_CELLS = 2_000_000  # of one block of resamples: bounds the memory
_SLACK = 1e-9  # sums of floats in another order are the same sum


# --- proportions -----------------------------------------------------------------------------------------------------


def wilson(successes: int, n: int) -> Interval:
    """Wilson's 95 % interval of a proportion."""
    share, z2 = successes / n, Z95 * Z95
    middle = (share + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 * math.sqrt(share * (1 - share) / n + z2 / (4 * n * n)) / (1 + z2 / n)
    return max(0.0, middle - half), min(1.0, middle + half)


def newcombe(before: tuple[int, int], after: tuple[int, int]) -> Interval:
    """Newcombe's 95 % interval of the difference of two independent proportions, each ``(successes, n)``."""
    return _square_and_add(before, after, 0.0)


def newcombe_paired(both: int, lost: int, gained: int, neither: int) -> Interval:
    """Newcombe's 95 % interval of the difference of two paired proportions.

    Args:
        both: pairs that passed before and after.
        lost: pairs that passed only before.
        gained: pairs that passed only after.
        neither: pairs that passed neither time.
    """
    n = both + lost + gained + neither
    margins = float(both + lost) * (gained + neither) * (both + gained) * (lost + neither)
    cross = float(both * neither - lost * gained)
    if cross > 0:  # the continuity correction of the method: a weak positive correlation counts as none
        cross = max(cross - n / 2, 0.0)
    phi = cross / math.sqrt(margins) if margins else 0.0
    return _square_and_add((both + lost, n), (both + gained, n), phi)


def _square_and_add(before: tuple[int, int], after: tuple[int, int], phi: float) -> Interval:
    p, q = before[0] / before[1], after[0] / after[1]
    (p_low, p_high), (q_low, q_high) = wilson(*before), wilson(*after)

    def half(first: float, second: float) -> float:
        return math.sqrt(max(first * first - 2 * phi * first * second + second * second, 0.0))

    return max(-1.0, q - p - half(q - q_low, p_high - p)), min(1.0, q - p + half(q_high - q, p - p_low))


def mcnemar(lost: int, gained: int) -> float:
    """McNemar's exact two-sided p: whether as many pairs were lost as were gained."""
    n, fewer = lost + gained, min(lost, gained)
    if lost == gained:
        return 1.0
    tail = math.fsum(math.exp(_log_choose(n, i) - n * math.log(2)) for i in range(fewer + 1))
    return min(1.0, 2 * tail)


def fisher(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Fisher's exact two-sided p for two independent proportions, each ``(successes, n)``."""
    (x, n), (y, m) = before, after
    successes, whole = x + y, _log_choose(n + m, x + y)

    def log_p(i: int) -> float:
        return _log_choose(n, i) + _log_choose(m, successes - i) - whole

    observed = log_p(x) + 1e-7  # tables as likely as the observed one count, whatever the rounding
    tables = (log_p(i) for i in range(max(0, successes - m), min(n, successes) + 1))
    return min(1.0, math.fsum(math.exp(p) for p in tables if p <= observed))


def _log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


# --- means -----------------------------------------------------------------------------------------------------------


def sign_flip(differences: Sequence[float]) -> float:
    """Two-sided p that the mean of paired differences is 0: how many ways to swap pairs give one as large."""
    found = np.asarray(differences, dtype=float)
    found = found[found != 0]
    if not found.size:
        return 1.0
    observed = abs(float(found.sum())) - _SLACK * float(np.abs(found).sum())
    if found.size > _MANY:
        return _normal_p(abs(float(found.sum())), math.sqrt(float((found**2).sum())))
    if found.size <= _EXACT_FLIPS:
        patterns = (np.arange(2**found.size)[:, None] >> np.arange(found.size)) & 1
        return float(np.mean(np.abs((2 * patterns - 1) @ found) >= observed))
    as_large = sum(
        int(np.count_nonzero(np.abs((2 * generator.integers(0, 2, (count, found.size)) - 1) @ found) >= observed))
        for generator, count in _blocks(found.size)
    )
    return (as_large + 1) / (_RESAMPLES + 1)


def permutation(before: Sequence[float], after: Sequence[float]) -> float:
    """Two-sided p that two independent sets have one mean: how many ways to deal the values give one as large."""
    pooled = np.concatenate([np.asarray(before, dtype=float), np.asarray(after, dtype=float)])
    n, total = len(after), len(pooled)
    centred = pooled - pooled.mean()
    spread = float(np.abs(centred).sum())
    if spread <= _SLACK * float(np.abs(pooled).sum()):
        return 1.0
    observed = abs(float(centred[-n:].sum()))
    if total > _MANY:
        variance = float((centred**2).sum()) / (total - 1)
        return _normal_p(observed, math.sqrt(variance * n * (total - n) / total))
    as_large = 0
    for generator, count in _blocks(total):
        dealt = generator.permuted(np.broadcast_to(centred, (count, total)), axis=1)[:, :n].sum(axis=1)
        as_large += int(np.count_nonzero(np.abs(dealt) >= observed - _SLACK * spread))
    return (as_large + 1) / (_RESAMPLES + 1)


def mean_interval(differences: Sequence[float]) -> Interval:
    """Bootstrap 95 % interval of the mean of paired differences."""
    found = np.asarray(differences, dtype=float)
    return _interval(float(found.mean()), _error(found) ** 2, found.size, lambda: _bootstrap(found))


def difference_interval(before: Sequence[float], after: Sequence[float]) -> Interval:
    """Bootstrap 95 % interval of the difference of the means of two independent sets."""
    first, second = np.asarray(before, dtype=float), np.asarray(after, dtype=float)
    difference, variance = float(second.mean() - first.mean()), _error(first) ** 2 + _error(second) ** 2
    return _interval(difference, variance, max(first.size, second.size), lambda: _bootstrap(second) - _bootstrap(first, 1))


def _interval(middle: float, variance: float, n: int, draw: Callable[[], Any]) -> Interval:
    if n > _MANY:
        half = Z95 * math.sqrt(variance)
        return middle - half, middle + half
    low, high = np.quantile(draw(), (0.025, 0.975))
    return float(low), float(high)


def _error(values: Any) -> float:
    """Standard error of a mean."""
    return float(values.std(ddof=1)) / math.sqrt(values.size) if values.size > 1 else 0.0


def _bootstrap(values: Any, stream: int = 0) -> Any:
    """Means of resamples with replacement."""
    means = [
        values[generator.integers(0, values.size, (count, values.size))].mean(axis=1)
        for generator, count in _blocks(values.size, stream)
    ]
    return np.concatenate(means)


def _blocks(width: int, stream: int = 0) -> Iterator[tuple[Any, int]]:
    """One generator, and how many resamples to draw from it at a time."""
    generator = np.random.default_rng((_SEED, stream))
    step, left = max(1, _CELLS // width), _RESAMPLES
    while left > 0:
        yield generator, min(step, left)
        left -= step


def _normal_p(observed: float, spread: float) -> float:
    return math.erfc(observed / spread / math.sqrt(2)) if spread else 1.0


# --- effect sizes, several tests -------------------------------------------------------------------------------------


def cliffs_delta(before: Sequence[float], after: Sequence[float]) -> float:
    """How much more often a value of ``after`` is the larger one than the smaller one, from -1 to 1."""
    first, second = np.sort(np.asarray(before, dtype=float)), np.asarray(after, dtype=float)
    below = np.searchsorted(first, second, "left")
    above = first.size - np.searchsorted(first, second, "right")
    return float((below - above).sum()) / (first.size * second.size)


def cohens_d(differences: Sequence[float]) -> float | None:
    """Mean of paired differences in their standard deviations; None where they do not vary."""
    found = np.asarray(differences, dtype=float)
    spread = float(found.std(ddof=1)) if found.size > 1 else 0.0
    return float(found.mean()) / spread if spread > _SLACK * float(np.abs(found).max(initial=0.0)) else None


def holm(ps: Sequence[float]) -> list[float]:
    """Holm's adjusted p values: below 0.05, at most one family in twenty has a false one among them."""
    adjusted, highest = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        highest = max(highest, min(1.0, ps[index] * (len(ps) - rank)))
        adjusted[index] = highest
    return adjusted
