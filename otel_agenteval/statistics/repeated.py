"""Statistics on repetitions of the same case: pass rates over k tries, and consistency.

The case is the unit of every interval.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .weighted import Estimate, Sums, vector


class Tries(NamedTuple):
    n: int
    passed: int


def pass_at_k(tries: Tries, k: int) -> float:
    """Estimate the probability that at least one of k repetitions passes (Chen et al. 2021).

    Raises:
        ValueError: there are fewer than k repetitions.
    """
    return 1.0 - _none_of(tries.n, tries.n - tries.passed, k)


def pass_hat_k(tries: Tries, k: int) -> float:
    """Estimate the probability that all of k repetitions pass (pass^k, Yao et al. 2024).

    Raises:
        ValueError: there are fewer than k repetitions.
    """
    return _none_of(tries.n, tries.passed, k)


def _none_of(n: int, chosen: int, k: int) -> float:
    if not 1 <= k <= n:
        raise ValueError(f"k: must be between 1 and the number of repetitions ({n}), got {k}")
    return math.comb(chosen, k) / math.comb(n, k)


def consistency(cases: Sequence[Tries]) -> float | None:
    """Return the share of repeated cases whose repetitions all have the same verdict."""
    repeated = [tries for tries in cases if tries.n > 1]
    return sum(tries.passed in (0, tries.n) for tries in repeated) / len(repeated) if repeated else None


def mean_by_case(values: Mapping[str, Sequence[float]]) -> Estimate | None:
    """Return the mean of all values, with the case as the cluster, or None without values."""
    sums = Sums()
    for found in values.values():
        if found:
            sums.add(sum(vector(1.0, value) for value in found))
            sums.widen(*found)
    return sums.estimate()
