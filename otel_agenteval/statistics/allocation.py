"""How many turns of each stratum to judge for what a budget pays: Neyman's allocation, with bounds.

A stratum is a metric and an agent. Judging n of its turns tells its mean with a variance of S²/n, so a stratum whose scores vary more, or whose questions are cheaper, is given more
(Neyman 1934). How much its size counts is Bankier's power (1988): 1 makes the mean over all turns as sure as can be, 0 that of each agent by itself.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping
from typing import NamedTuple, TypeVar

Key = TypeVar("Key", bound=Hashable)


class Stratum(NamedTuple):
    """What is known of a stratum."""

    turns: float
    """Seen in an hour."""
    spread: float
    """Standard deviation of its scores."""
    cost: float
    """Of judging one turn."""
    most: float = 1.0
    """Share of its turns that may be judged."""


def allocate(strata: Mapping[Key, Stratum], budget: float, least: float, power: float = 0.5) -> dict[Key, float]:
    """Turns to judge in an hour, by stratum.

    Args:
        strata: by any key.
        budget: for an hour, in the unit of the costs.
        least: turns that each stratum gets, as far as it has so many. Where the budget does not pay for that, all get the same share of it.
        power: how much the size of a stratum counts, 0 to 1.
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
    """The multiple of what is wanted that a budget pays for, each between its bounds: the spending grows with the multiple, so it is bisected."""

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


class Moments:
    """Mean and variance of scores, in which older ones fade."""

    __slots__ = ("mean", "n", "squares")

    _FADING = 0.995
    """200 scores count."""
    _PRIOR, _PRIOR_VARIANCE = 4.0, 0.1
    """A stratum of which little is known is taken to vary as scores often do."""

    def __init__(self) -> None:
        self.n = 0.0
        self.mean = 0.0
        self.squares = 0.0

    def add(self, value: float) -> None:
        """One more."""
        self.n = self.n * self._FADING + 1.0
        step = value - self.mean
        self.mean += step / self.n
        self.squares = self.squares * self._FADING + step * (value - self.mean)

    @property
    def spread(self) -> float:
        """Standard deviation."""
        return math.sqrt((self.squares + self._PRIOR * self._PRIOR_VARIANCE) / (self.n + self._PRIOR))
