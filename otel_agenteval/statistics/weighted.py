"""Means over all turns, estimated from a weighted sample and improved with proxies.

A score that was sampled with probability p represents 1/p turns, and the mean is Hájek's estimator. *Proxies* are cheap scores that
every turn has. If proxies correlate with the score, the mean is corrected by the difference between the proxies of the sample and
the proxies of all turns. This is prediction-powered inference (PPI++, Angelopoulos, Duchi, and Zrnic 2023), also known as the
regression estimator in survey statistics (Särndal, Swensson, and Wretman 1992).

The weights of the proxies minimize the variance, so an uninformative proxy changes nothing. A wrong proxy doesn't bias the
estimate.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from .intervals import Z95, Interval, always_valid, wilson_around

PROXIES = 3
_ENOUGH = 10
"""Effective number of traces required to use proxies: this number, plus this number per proxy. Fewer traces are too uncertain.

For scores from 0 to 1, the effective number is lower if one outcome is rare, for example if nearly all turns pass.
"""
_FIRST = 3
"""Index of the first proxy in a trace's vector, after the weight, the weighted score, and the weighted squared score."""
_SIZE = _FIRST + PROXIES
_LEAST_SPREAD = 0.02
"""Smallest plausible variance of scores from 0 to 1, as a share of the variance of zeros and ones with the same mean.

A smaller observed variance is attributed to chance.
"""
_FLAT = 1e-9
"""Minimum relative variation of a proxy. Proxies that vary less are ignored."""
ALPHA = 0.05


class Estimate(NamedTuple):
    """Mean over all turns, with its 95 % interval."""

    mean: float
    low: float
    high: float
    n_eff: float
    """Kish's effective sample size, multiplied by the precision gain from proxies."""


@dataclass(slots=True, eq=False)
class Everyone:
    """Count of all turns, with sums of the turns' proxies and of the proxies' products."""

    n: float = 0.0
    total: Any = field(default_factory=lambda: np.zeros(PROXIES))
    outer: Any = field(default_factory=lambda: np.zeros((PROXIES, PROXIES)))

    def add(self, proxies: Any, sign: int = 1) -> None:
        self.n += sign
        self.total += sign * proxies
        self.outer += sign * np.outer(proxies, proxies)

    def state(self) -> list[Any]:
        return [self.n, self.total.tolist(), self.outer.tolist()]

    @classmethod
    def of_state(cls, state: Sequence[Any]) -> Everyone:
        return cls(float(state[0]), _array(state[1], (PROXIES,)), _array(state[2], (PROXIES, PROXIES)))

    def plus(self, other: Everyone) -> Everyone:
        return Everyone(self.n + other.n, self.total + other.total, self.outer + other.outer)


def _array(values: Any, shape: tuple[int, ...]) -> Any:
    found = np.asarray(values, dtype=float)
    if found.shape != shape:
        raise ValueError(f"state: must have shape {shape}, got {found.shape}")
    return found


@dataclass(slots=True, eq=False)
class Sums:
    """Sums over the traces of one period: weights, weighted scores, weighted squared scores, and weighted proxies."""

    total: Any = field(default_factory=lambda: np.zeros(_SIZE))
    outer: Any = field(default_factory=lambda: np.zeros((_SIZE, _SIZE)))
    """Sum of the outer product of each trace's vector with itself, for the variance over traces."""
    least: float = math.inf
    most: float = -math.inf

    @classmethod
    def of_turns(cls, once: Sequence[float], squared: Sequence[float], ends: Interval) -> Sums:
        """Return the sums of turns, treating each turn as a separate trace.

        ``once`` contains the sums of the weights, the weighted values, and the weighted squares. ``squared`` contains the
        same sums with squared weights.
        """
        found = cls(least=ends[0], most=ends[1])
        found.total[:_FIRST] = once
        weights, values, squares = squared
        found.outer[:2, :2] = (weights, values), (values, squares)
        return found

    @property
    def weight(self) -> float:
        return float(self.total[0])

    def add(self, trace: Any, sign: int = 1) -> None:
        self.total += sign * trace
        self.outer += sign * np.outer(trace, trace)

    def widen(self, *values: float) -> None:
        self.least, self.most = min(self.least, *values), max(self.most, *values)

    def state(self) -> list[Any]:
        ends = [value if math.isfinite(value) else None for value in (self.least, self.most)]
        return [self.total.tolist(), self.outer.tolist(), *ends]

    @classmethod
    def of_state(cls, state: Sequence[Any]) -> Sums:
        total, outer, least, most = state
        ends = math.inf if least is None else float(least), -math.inf if most is None else float(most)
        return cls(_array(total, (_SIZE,)), _array(outer, (_SIZE, _SIZE)), *ends)

    def times(self, factor: float) -> Sums:
        return Sums(self.total * factor, self.outer * (factor * factor), self.least, self.most)

    def plus(self, other: Sums) -> Sums:
        ends = min(self.least, other.least), max(self.most, other.most)
        return Sums(self.total + other.total, self.outer + other.outer, *ends)

    def estimate(self, everyone: Everyone | None = None) -> Estimate | None:
        """Return the mean with its interval, or None without scores. Informative proxies narrow the interval."""
        moments = self._moments(everyone)
        return None if moments is None else self._interval(*moments, Z95)

    def sequence(self, everyone: Everyone | None = None) -> Estimate | None:
        """Return the mean with an interval that stays valid if you check it repeatedly, or None without scores."""
        moments = self._moments(everyone)
        return None if moments is None else self._interval(*moments, always_valid(moments[2], ALPHA))

    def _moments(self, everyone: Everyone | None) -> tuple[float, float, float] | None:
        weight, squares = self.total[0], self.outer[0, 0]
        if weight <= 0 or squares <= 0:
            return None
        means = self.total / weight
        n = float(weight * weight / squares)
        mean = float(means[1])
        deviations = max(0.0, self.outer[1, 1] - 2 * mean * self.outer[0, 1] + mean * mean * squares)
        # n / (n - 1), because the mean is estimated too
        variance = float(deviations / (weight * weight)) * (n / (n - 1) if n > 1 else 2.0)
        predicted = self._predicted(means, n, variance, everyone) if everyone is not None and everyone.n > 0 else None
        return predicted or (mean, variance, n)

    def _predicted(self, means: Any, n: float, variance: float, everyone: Everyone) -> tuple[float, float, float] | None:
        """Return the mean, variance, and effective sample size, corrected with proxies, or None if the proxies don't help."""
        if variance <= 0:
            return None
        kept = [1, *range(_FIRST, _SIZE)]
        center = np.eye(_SIZE)[kept]
        center[:, 0] = -means[kept]
        spread = center @ self.outer @ center.T / self.total[0] ** 2
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
        # All turns have proxies, but they are themselves a sample of all possible turns
        between = float(worth @ all_spread[np.ix_(places, places)] @ worth) / everyone.n
        total = max(left, 0.0) + max(between, 0.0)
        if not 0 < total < variance:
            return None
        mean = float(means[1] + worth @ (all_means[places] - proxies[places]))
        return mean, total, n * variance / total

    def _spread(self, means: Any) -> float:
        """Return the variance of scores from 0 to 1, divided by the variance of zeros and ones with the same mean."""
        most = means[1] * (1 - means[1])
        return float(min(1.0, max(_LEAST_SPREAD, (means[2] - means[1] ** 2) / most))) if most > 0 else 1.0

    def _interval(self, mean: float, variance: float, n: float, z: float) -> Estimate:
        if self.least < 0 or self.most > 1:
            half = z * math.sqrt(variance)
            return Estimate(mean, mean - half, mean + half, n)
        mean = min(1.0, max(0.0, mean))
        equal = n / self._spread(self.total / self.total[0])  # number of zeros and ones with equal precision
        middle, half = wilson_around(mean, variance, equal, z)
        return Estimate(mean, max(0.0, min(mean, middle - half)), min(1.0, max(mean, middle + half)), n)


def padded(proxies: Sequence[float]) -> Any:
    found = np.zeros(PROXIES)
    found[: len(proxies)] = proxies[:PROXIES]
    return found


_NO_PROXIES = padded(())


def vector(weight: float, value: float, proxies: Any = _NO_PROXIES) -> Any:
    """Return a turn's weight, weighted score, weighted squared score, and weighted proxies. ``proxies`` must be :func:`padded`."""
    return np.array([weight, weight * value, weight * value * value, *(weight * proxies)])
