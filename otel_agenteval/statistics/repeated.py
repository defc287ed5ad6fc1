"""What repetitions of the same case say: how often one of k is right, how often all of them are, and how alike they are. The case is the unit of every interval."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .weighted import Estimate, Sums, vector


class Tries(NamedTuple):
    """The repetitions of one case."""

    n: int
    passed: int


def pass_at_k(tries: Tries, k: int) -> float:
    """The chance that at least one of k repetitions passes, estimated without bias from n of which some passed (Chen et al. 2021).

    Raises:
        ValueError: there are fewer than k repetitions.
    """
    return 1.0 - _none_of(tries.n, tries.n - tries.passed, k)


def pass_hat_k(tries: Tries, k: int) -> float:
    """The chance that all of k repetitions pass (pass^k; Yao et al. 2024, tau-bench).

    Raises:
        ValueError: there are fewer than k repetitions.
    """
    return _none_of(tries.n, tries.passed, k)


def _none_of(n: int, chosen: int, k: int) -> float:
    """The chance that k of n, drawn without putting back, are all among the chosen."""
    if not 1 <= k <= n:
        raise ValueError(f"k = {k} of {n} repetitions: it must be between 1 and their number")
    return math.comb(chosen, k) / math.comb(n, k)


def consistency(cases: Sequence[Tries]) -> float | None:
    """The share of cases whose repetitions all have the same verdict; None where no case has two."""
    repeated = [tries for tries in cases if tries.n > 1]
    return sum(tries.passed in (0, tries.n) for tries in repeated) / len(repeated) if repeated else None


def mean_by_case(values: Mapping[str, Sequence[float]]) -> Estimate | None:
    """The mean of all values with a 95 % interval in which the case is the cluster: repeating a case makes no more cases of it. None of nothing."""
    sums = Sums()
    for found in values.values():
        if found:
            sums.add(sum(vector(1.0, value) for value in found))
            sums.least, sums.most = min(sums.least, *found), max(sums.most, *found)
    return sums.estimate()
