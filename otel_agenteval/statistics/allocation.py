"""Allocation of a judge budget to strata: Neyman's allocation, with limits.

A stratum is a metric and an agent. Judging n of its turns estimates its mean with a variance of S²/n. A stratum whose scores
vary more, or whose judge calls cost less, therefore gets more turns (Neyman 1934). The influence of a stratum's size is
Bankier's power (1988). A power of 1 minimizes the error of the mean over all turns. A power of 0 treats all strata alike,
whatever their size.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Stratum(NamedTuple):
    turns: float
    """Received turns per hour."""
    spread: float
    cost: float
    most: float = 1.0


def allocate(strata: Mapping[Key, Stratum], budget: float, least: float, power: float = 0.5) -> dict[Key, float]:
    """Return the number of turns to judge per hour, by stratum. ``budget`` is the hourly limit, in the unit of the costs.
    ``least`` is the minimum for each stratum, or all of its turns if there are fewer. If the budget doesn't cover the minimums,
    all are reduced by the same factor. ``power`` is the influence of a stratum's size, from 0 to 1.
    """
    if not strata or budget <= 0:
        return dict.fromkeys(strata, 0.0)
    most = {key: one.turns * one.most for key, one in strata.items()}
    floor = {key: min(least, most[key]) for key in strata}
    of_floor = sum(floor[key] * strata[key].cost for key in strata)
    if of_floor >= budget:
        return {key: found * budget / of_floor for key, found in floor.items()}
    wanted = {
        key: one.turns**power * one.spread / math.sqrt(one.cost) if one.turns > 0 and one.cost > 0 else 0.0
        for key, one in strata.items()
    }
    return _within(strata, wanted, floor, most, budget)


def _within(
    strata: Mapping[Key, Stratum],
    wanted: Mapping[Key, float],
    floor: Mapping[Key, float],
    most: Mapping[Key, float],
    budget: float,
) -> dict[Key, float]:
    """Scale the wanted numbers by bisection to the budget, within each stratum's limits."""

    def at(multiple: float) -> dict[Key, float]:
        return {key: min(most[key], max(floor[key], multiple * wanted[key])) for key in strata}

    def spent(multiple: float) -> float:
        return sum(n * strata[key].cost for key, n in at(multiple).items())

    low, high = 0.0, 1.0
    while spent(high) < budget and high < 1e12:
        low, high = high, high * 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if spent(middle) <= budget else (low, middle)
    return at(low)


class FadingMoments:
    """Mean and variance of scores. Older scores lose weight."""

    __slots__ = ("mean", "n", "squares")

    _FADING = 0.995
    """Decay per score, for an effective memory of 200 scores."""
    _PRIOR, _PRIOR_VARIANCE = 4.0, 0.1
    """Weight and variance of the prior, for strata with few scores."""

    def __init__(self) -> None:
        self.n = self.mean = self.squares = 0.0

    def add(self, value: float) -> None:
        self.n = self.n * self._FADING + 1.0
        step = value - self.mean
        self.mean += step / self.n
        self.squares = self.squares * self._FADING + step * (value - self.mean)

    @property
    def spread(self) -> float:
        return math.sqrt((self.squares + self._PRIOR * self._PRIOR_VARIANCE) / (self.n + self._PRIOR))
