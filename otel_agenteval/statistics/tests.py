"""Effect sizes and significance tests for comparing two sets of scores.

Differences are always *after* minus *before*. Proportions get exact tests. Means of small sets get permutation tests, which don't
assume a distribution.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from .intervals import MANY, RESAMPLES, Interval, blocks, mean_interval, newcombe_paired

_EXACT_FLIPS = 12  # exact test with at most 4,096 sign patterns
_SLACK = 1e-9  # tolerance for rounding: float sums depend on the order


def mcnemar(lost: int, gained: int) -> float:
    """Return McNemar's exact two-sided p-value for the hypothesis that losses and gains are equally likely."""
    n, fewer = lost + gained, min(lost, gained)
    if lost == gained:
        return 1.0
    tail = math.fsum(math.exp(log_choose(n, i) - n * math.log(2)) for i in range(fewer + 1))
    return min(1.0, 2 * tail)


def fisher(before: tuple[int, int], after: tuple[int, int]) -> float:
    """Return Fisher's exact two-sided p-value for two proportions ``(successes, n)``."""
    (x, n), (y, m) = before, after
    successes, whole = x + y, log_choose(n + m, x + y)

    def log_p(i: int) -> float:
        return log_choose(n, i) + log_choose(m, successes - i) - whole

    observed = log_p(x) + 1e-7  # tables as likely as the observed table count, despite rounding
    tables = (log_p(i) for i in range(max(0, successes - m), min(n, successes) + 1))
    return min(1.0, math.fsum(math.exp(p) for p in tables if p <= observed))


def log_choose(n: int, k: int) -> float:
    return math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)


def sign_flip(differences: Sequence[float]) -> float:
    """Return the two-sided p-value for the hypothesis that the mean of paired differences is 0."""
    found = np.asarray(differences, dtype=float)
    found = found[found != 0]
    if not found.size:
        return 1.0
    observed = abs(float(found.sum())) - _SLACK * float(np.abs(found).sum())
    if found.size > MANY:
        return _normal_p(abs(float(found.sum())), math.sqrt(float((found**2).sum())))
    if found.size <= _EXACT_FLIPS:
        patterns = (np.arange(2**found.size)[:, None] >> np.arange(found.size)) & 1
        return float(np.mean(np.abs((2 * patterns - 1) @ found) >= observed))
    as_large = sum(
        int(np.count_nonzero(np.abs((2 * generator.integers(0, 2, (count, found.size)) - 1) @ found) >= observed))
        for generator, count in blocks(found.size)
    )
    return (as_large + 1) / (RESAMPLES + 1)


def paired_test(before: Sequence[float], after: Sequence[float], *, is_rate: bool) -> tuple[float, Interval]:
    """Return the p-value and interval for paired differences. Rates of 0 and 1 get McNemar's test, other values a sign-flip test."""
    pairs = list(zip(before, after, strict=True))
    if is_rate and {*before, *after} <= {0.0, 1.0}:
        both, lost, gained, neither = (pairs.count(pair) for pair in ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0), (0.0, 0.0)))
        return mcnemar(lost, gained), newcombe_paired(both, lost, gained, neither)
    differences = [after - before for before, after in pairs]
    return sign_flip(differences), mean_interval(differences)


def permutation(before: Sequence[float], after: Sequence[float]) -> float:
    """Return the two-sided p-value for the hypothesis that two independent sets have the same mean."""
    pooled = np.concatenate([np.asarray(before, dtype=float), np.asarray(after, dtype=float)])
    n, total = len(after), len(pooled)
    centered = pooled - pooled.mean()
    spread = float(np.abs(centered).sum())
    if spread <= _SLACK * float(np.abs(pooled).sum()):
        return 1.0
    observed = abs(float(centered[-n:].sum()))
    if total > MANY:
        variance = float((centered**2).sum()) / (total - 1)
        return _normal_p(observed, math.sqrt(variance * n * (total - n) / total))
    as_large = 0
    for generator, count in blocks(total):
        dealt = generator.permuted(np.broadcast_to(centered, (count, total)), axis=1)[:, :n].sum(axis=1)
        as_large += int(np.count_nonzero(np.abs(dealt) >= observed - _SLACK * spread))
    return (as_large + 1) / (RESAMPLES + 1)


def _normal_p(observed: float, spread: float) -> float:
    return math.erfc(observed / spread / math.sqrt(2)) if spread else 1.0


def cliffs_delta(before: Sequence[float], after: Sequence[float]) -> float:
    """Return Cliff's delta, from -1 to 1: P(after > before) - P(after < before)."""
    first, second = np.sort(np.asarray(before, dtype=float)), np.asarray(after, dtype=float)
    below = np.searchsorted(first, second, "left")
    above = first.size - np.searchsorted(first, second, "right")
    return float((below - above).sum()) / (first.size * second.size)


def cohens_d(differences: Sequence[float]) -> float | None:
    found = np.asarray(differences, dtype=float)
    spread = float(found.std(ddof=1)) if found.size > 1 else 0.0
    return float(found.mean()) / spread if spread > _SLACK * float(np.abs(found).max(initial=0.0)) else None


def holm(ps: Sequence[float]) -> list[float]:
    """Return p-values with Holm's correction, which limits the probability of at least one false rejection."""
    adjusted, highest = [0.0] * len(ps), 0.0
    for rank, index in enumerate(sorted(range(len(ps)), key=lambda i: ps[i])):
        highest = max(highest, min(1.0, ps[index] * (len(ps) - rank)))
        adjusted[index] = highest
    return adjusted


def cohen_kappa(first: Sequence[int], second: Sequence[int]) -> float | None:
    if not len(first):
        return None
    a, b, levels = _coded(first, second)
    value = float(_kappas(a[None, :], b[None, :], levels)[0])
    return None if np.isnan(value) else value


def kappa_interval(first: Sequence[int], second: Sequence[int]) -> Interval | None:
    """Return the bootstrap 95 % interval of :func:`cohen_kappa`, or None if kappa is undefined."""
    if cohen_kappa(first, second) is None:
        return None
    a, b, levels = _coded(first, second)
    found = []
    for generator, count in blocks(a.size):
        drawn = generator.integers(0, a.size, (count, a.size))
        found.append(_kappas(a[drawn], b[drawn], levels))
    kappas = np.concatenate(found)
    low, high = np.quantile(kappas[~np.isnan(kappas)], (0.025, 0.975))
    return float(low), float(high)


def _coded(first: Sequence[int], second: Sequence[int]) -> tuple[Any, Any, int]:
    a, b = np.asarray(first), np.asarray(second)
    names, codes = np.unique(np.concatenate([a, b]), return_inverse=True)
    codes = codes.astype(np.int8)
    return codes[: a.size], codes[a.size :], names.size


def _kappas(a: Any, b: Any, levels: int) -> Any:
    observed = (a == b).mean(axis=1)
    chance = sum((a == level).mean(axis=1) * (b == level).mean(axis=1) for level in range(levels))
    room = 1 - chance
    return np.divide(observed - chance, room, out=np.full(observed.shape, np.nan), where=room > 1e-12)


def spearman(first: Sequence[float], second: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation, or None with fewer than two values or if either argument doesn't vary."""
    if len(first) < 2:
        return None
    a, b = _ranks(first), _ranks(second)
    a, b = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / spread if spread else None


def _ranks(values: Sequence[float]) -> Any:
    _, place, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    return (np.cumsum(counts) - (counts - 1) / 2)[place]
