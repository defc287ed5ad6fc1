"""Means over all turns from a sample of them, in which each turn had its own chance, helped by what is known of every turn.

A score that was made with probability p stands for 1/p turns: the mean is Hájek's. What every turn has anyway, cheap scores, is its *proxies*. Where they go
with the score, the sample's mean is moved by as much as the sample's proxies differ from everybody's (prediction-powered inference, PPI++ of Angelopoulos,
Duchi and Zrnic 2023, which is the survey statistician's regression estimator; Särndal, Swensson and Wretman 1992). How much a proxy counts is what makes the variance least, so
that one that says nothing changes nothing, and a wrong one makes no estimate wrong: it only stops helping.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from .intervals import Z95, Interval

PROXIES = 3
"""Of each turn, at most."""
_ENOUGH = 10
"""Effective traces for each proxy and for the mean, below which proxies are left out: what they are worth has to be learned too. Of scores from 0 to 1
those count that a mean near an end stands on: failures where nearly all is well."""
_FIRST = 3
"""Where a trace's vector has its proxies: before them are its weight, weighted scores, and weighted squares of scores."""
_SIZE = _FIRST + PROXIES
_LEAST_SPREAD = 0.02
"""How little scores from 0 to 1 may vary, by what ones and zeros of the same mean would, before it is taken for a chance."""
_FLAT = 1e-9
"""A proxy that varies less than this by its own size says nothing."""
ALPHA = 0.05
_EXPECTED = 300.0
"""Effective traces at which a confidence sequence is as narrow as it can be made."""


class Estimate(NamedTuple):
    """A mean over all turns, with its 95 % interval."""

    mean: float
    low: float
    high: float
    n_eff: float
    """How many equally weighted traces would say as much without proxies: Kish's effective size, times what they gain."""


class Everyone:
    """The proxies of all turns: how many, their sums, and the sums of their products."""

    __slots__ = ("n", "outer", "total")

    def __init__(self) -> None:
        self.n = 0.0
        self.total: Any = np.zeros(PROXIES)
        self.outer: Any = np.zeros((PROXIES, PROXIES))

    def add(self, proxies: Any, sign: int = 1) -> None:
        """Add a turn, or with a sign of -1 take it out again."""
        self.n += sign
        self.total += sign * proxies
        self.outer += sign * np.outer(proxies, proxies)

    def state(self) -> list[Any]:
        """For keeping."""
        return [self.n, self.total.tolist(), self.outer.tolist()]

    @classmethod
    def of_state(cls, state: Sequence[Any]) -> Everyone:
        """What :meth:`state` came from.

        Raises:
            TypeError, ValueError: it is none.
        """
        found = cls()
        found.n = float(state[0])
        found.total, found.outer = _array(state[1], found.total), _array(state[2], found.outer)
        return found

    def plus(self, other: Everyone) -> Everyone:
        """Both together."""
        found = Everyone()
        found.n, found.total, found.outer = self.n + other.n, self.total + other.total, self.outer + other.outer
        return found


def _array(values: Any, like: Any) -> Any:
    found = np.asarray(values, dtype=float)
    if found.shape != like.shape:
        raise ValueError("of another form")
    return found


class Sums:
    """What is kept of the traces of one time. A trace is the vector of its sums of weights, of weighted scores and their squares, and of weighted proxies."""

    __slots__ = ("least", "most", "outer", "total")

    def __init__(self) -> None:
        self.total: Any = np.zeros(_SIZE)
        """Over the traces."""
        self.outer: Any = np.zeros((_SIZE, _SIZE))
        """Over the products of each trace with itself: the trace is the unit of the variance."""
        self.least = math.inf
        self.most = -math.inf

    @classmethod
    def of_turns(cls, once: Sequence[float], squared: Sequence[float], ends: Interval) -> Sums:
        """Of turns that are each a trace, by their sums.

        Args:
            once: the sums of the weights, of weighted values, and of weighted squares of values.
            squared: the same with each weight squared.
            ends: the least and the largest value.
        """
        found = cls()
        found.total[:_FIRST] = once
        weights, values, squares = squared
        found.outer[0, 0], found.outer[0, 1], found.outer[1, 0], found.outer[1, 1] = weights, values, values, squares
        found.least, found.most = ends
        return found

    @property
    def weight(self) -> float:
        """How many turns they stand for."""
        return float(self.total[0])

    def add(self, trace: Any, sign: int = 1) -> None:
        """Add a trace, or with a sign of -1 take it out again."""
        self.total += sign * trace
        self.outer += sign * np.outer(trace, trace)

    def state(self) -> list[Any]:
        """For keeping."""
        ends = [value if math.isfinite(value) else None for value in (self.least, self.most)]
        return [self.total.tolist(), self.outer.tolist(), *ends]

    @classmethod
    def of_state(cls, state: Sequence[Any]) -> Sums:
        """What :meth:`state` came from.

        Raises:
            TypeError, ValueError: it is none.
        """
        found = cls()
        total, outer, least, most = state
        found.total, found.outer = _array(total, found.total), _array(outer, found.outer)
        found.least, found.most = math.inf if least is None else float(least), -math.inf if most is None else float(most)
        return found

    def times(self, factor: float) -> Sums:
        """As if every weight were so many times what it is."""
        found = Sums()
        found.total, found.outer, found.least, found.most = (
            self.total * factor,
            self.outer * (factor * factor),
            self.least,
            self.most,
        )
        return found

    def plus(self, other: Sums) -> Sums:
        """Both together."""
        found = Sums()
        found.total, found.outer = self.total + other.total, self.outer + other.outer
        found.least, found.most = min(self.least, other.least), max(self.most, other.most)
        return found

    def estimate(self, everyone: Everyone | None = None) -> Estimate | None:
        """The mean and its interval; None of nothing. With the proxies of all turns it is at most as wide as without, but for the noise of learning what they are worth."""
        moments = self._moments(everyone)
        return None if moments is None else self._interval(*moments, Z95)

    def sequence(self, everyone: Everyone | None = None) -> Estimate | None:
        """The same with an interval that holds at every time at once: whoever looks after each score, and stops when it pleases, is wrong in 5 % of all cases too.

        Asymptotic confidence sequence: Waudby-Smith, Arbour, Sinha, Kennedy and Ramdas 2024, narrowest near 300 effective traces.
        """
        moments = self._moments(everyone)
        if moments is None:
            return None
        tuned = (-2 * math.log(ALPHA) + math.log(-2 * math.log(ALPHA) + 1)) / _EXPECTED
        size = max(moments[2], 1.0) * tuned
        wide = math.sqrt(2 * (size + 1) / size * math.log(math.sqrt(size + 1) / ALPHA))
        return self._interval(*moments, wide)

    def _moments(self, everyone: Everyone | None) -> tuple[float, float, float] | None:
        """The mean, its variance, and the effective size."""
        weight, squares = self.total[0], self.outer[0, 0]
        if weight <= 0 or squares <= 0:
            return None
        means = self.total / weight
        n = float(weight * weight / squares)
        mean = float(means[1])
        deviations = max(0.0, self.outer[1, 1] - 2 * mean * self.outer[0, 1] + mean * mean * squares)
        # n / (n - 1) as for any variance around a mean that was estimated too
        variance = float(deviations / (weight * weight)) * (n / (n - 1) if n > 1 else 2.0)
        predicted = self._predicted(means, n, variance, everyone) if everyone is not None and everyone.n > 0 else None
        return predicted or (mean, variance, n)

    def _predicted(self, means: Any, n: float, variance: float, everyone: Everyone) -> tuple[float, float, float] | None:
        """The same with the proxies; None where they gain nothing."""
        if variance <= 0:
            return None
        kept = [1, *range(_FIRST, _SIZE)]
        centre = np.eye(_SIZE)[kept]
        centre[:, 0] = -means[kept]
        spread = centre @ self.outer @ centre.T / self.total[0] ** 2
        proxies = means[_FIRST:]
        varying = [1 + place for place in range(PROXIES) if spread[1 + place, 1 + place] > _FLAT * (proxies[place] ** 2 + _FLAT)]
        evidence = n if self.least < 0 or self.most > 1 else n * 2 * min(means[1], 1 - means[1]) / self._spread(means)
        if not varying or evidence < _ENOUGH * (1 + len(varying)):
            return None
        among, with_score = spread[np.ix_(varying, varying)], spread[varying, 0]
        worth = np.linalg.lstsq(among, with_score, rcond=1e-6)[0]
        places = np.array(varying) - 1
        all_means = everyone.total / everyone.n
        all_spread = everyone.outer / everyone.n - np.outer(all_means, all_means)
        left = float(spread[0, 0] - with_score @ worth) * n / max(n - 1 - len(varying), 1.0)
        # What the proxies say is known of all turns, which are themselves some of those that could have come
        between = float(worth @ all_spread[np.ix_(places, places)] @ worth) / everyone.n
        total = max(left, 0.0) + max(between, 0.0)
        if not 0 < total < variance:
            return None
        mean = float(means[1] + worth @ (all_means[places] - proxies[places]))
        return mean, total, n * variance / total

    def _spread(self, means: Any) -> float:
        """The variance of scores from 0 to 1 by what it would be if all of them were ones and zeros."""
        most = means[1] * (1 - means[1])
        return float(min(1.0, max(_LEAST_SPREAD, (means[2] - means[1] ** 2) / most))) if most > 0 else 1.0

    def _interval(self, mean: float, variance: float, n: float, z: float) -> Estimate:
        """Scores from 0 to 1 get Wilson's interval with the variance that was observed, which stays honest where all that were judged agree; others a normal one."""
        if self.least < 0 or self.most > 1:
            half = z * math.sqrt(variance)
            return Estimate(mean, mean - half, mean + half, n)
        mean, z2 = min(1.0, max(0.0, mean)), z * z
        size, n = n, n / self._spread(self.total / self.total[0])  # as many ones and zeros would say as much
        middle = (mean + z2 / (2 * n)) / (1 + z2 / n)
        half = z * math.sqrt(variance + z2 / (4 * n * n)) / (1 + z2 / n)
        return Estimate(mean, max(0.0, min(mean, middle - half)), min(1.0, max(mean, middle + half)), size)


def padded(proxies: Sequence[float]) -> Any:
    """Proxies as they are added, with zeros for those that there are not."""
    found = np.zeros(PROXIES)
    found[: len(proxies)] = proxies[:PROXIES]
    return found


_NO_PROXIES = padded(())


def vector(weight: float, value: float, proxies: Any = _NO_PROXIES) -> Any:
    """A score of a turn as part of its trace; ``proxies`` as :func:`padded` gives them."""
    return np.array([weight, weight * value, weight * value * value, *(weight * proxies)])
