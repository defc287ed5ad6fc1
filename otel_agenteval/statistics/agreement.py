"""Agreement of two raters: Cohen's kappa for levels, Spearman's rank correlation for scores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .intervals import Interval, blocks


def cohen_kappa(first: Sequence[int], second: Sequence[int]) -> float | None:
    """Return the agreement of two raters beyond chance, from -1 to 1, or None if both gave one level to every item."""
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
    """Return Spearman's rank correlation, or None if one side doesn't vary."""
    if len(first) < 2:
        return None
    a, b = _ranks(first), _ranks(second)
    a, b = a - a.mean(), b - b.mean()
    spread = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float((a * b).sum()) / spread if spread else None


def _ranks(values: Sequence[float]) -> Any:
    _, place, counts = np.unique(np.asarray(values, dtype=float), return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return (last - (counts - 1) / 2)[place]
