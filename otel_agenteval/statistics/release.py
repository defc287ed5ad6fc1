"""Comparison of a new ``service.version`` with the previous version, while scores arrive.

The comparison is based on :mod:`.groups`, so that live alerts and the ``compare`` commands agree. The first test requires 20 scores
from each version. The test runs again each time that the number of scores has grown by a quarter, up to about 3,000 scores. All
tests of a release share the release's allowed false alarms. Only a version that wasn't seen recently begins a release. If the
previous version still runs, its later scores also count.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from .groups import Difference, difference
from .tests import fisher
from .weighted import Sums

FIRST = 20
"""Number of scores that each version needs before the first test."""
_GROWTH = 1.25
_LAST = 3_000
_TESTS = 11.0
"""In simulations, a release's 23 correlated tests cause as many false alarms as this number of independent tests."""
_OF_AMOUNTS = 0.25
"""Factor for the allowed false alarms of amounts. It is low because the mix of requests affects amounts more than scores."""
_EXEMPLARS = 3
_KNOWN = 8
"""Number of remembered versions. A return to a remembered version isn't a new release."""


_LEAST_SPREAD = 0.02
"""Smallest plausible variance of scores from 0 to 1, as a share of the variance of zeros and ones with the same mean."""


@dataclass(slots=True, eq=False)
class Moments:
    weight: float = 0.0
    weight_squares: float = 0.0
    sum: float = 0.0
    squares: float = 0.0

    def add(self, value: float, weight: float = 1.0) -> None:
        self.weight += weight
        self.weight_squares += weight * weight
        self.sum += weight * value
        self.squares += weight * value * value

    def join(self, other: Moments) -> None:
        self.weight += other.weight
        self.weight_squares += other.weight_squares
        self.sum += other.sum
        self.squares += other.squares

    @property
    def n(self) -> float:
        """Kish's effective sample size."""
        return self.weight * self.weight / self.weight_squares if self.weight_squares else 0.0

    @property
    def mean(self) -> float:
        return self.sum / self.weight if self.weight else 0.0

    def variance(self, *, bounded: bool) -> float:
        """Return the variance of a single value. ``bounded`` values (0 to 1) have at least the smallest plausible variance."""
        n = self.n
        found = max(0.0, self.squares / self.weight - self.mean**2) if self.weight else 0.0
        found *= n / (n - 1) if n > 1 else 2.0
        if not bounded:
            return found
        likely = (self.mean * n + 0.5) / (n + 1)
        binary = likely * (1 - likely)
        return max(found, binary * (_LEAST_SPREAD if found > 1e-12 else 1.0))

    def state(self) -> list[float]:
        return [self.weight, self.weight_squares, self.sum, self.squares]


class VersionScores:
    """Sums over one version's scores. ``is_amount`` is true for seconds, dollars, and other amounts."""

    __slots__ = ("ends", "is_amount", "logs", "raw", "squared")

    def __init__(self, *, is_amount: bool, are_logs: bool = False) -> None:
        self.is_amount = is_amount
        self.raw = Moments()
        self.squared = [0.0, 0.0]
        """Sum of weight² × value, and sum of weight² × value²."""
        self.ends = [math.inf, -math.inf]
        self.logs = VersionScores(is_amount=True, are_logs=True) if is_amount and not are_logs else None
        """Logarithms of the values. None if a value isn't positive, or the values aren't amounts."""

    def add(self, value: float, weight: float) -> None:
        self.raw.add(value, weight)
        double = weight * weight * value
        self.squared[0] += double
        self.squared[1] += double * value
        self.ends[0] = min(self.ends[0], value)
        self.ends[1] = max(self.ends[1], value)
        if self.logs is not None:
            if value > 0:
                self.logs.add(math.log(value), weight)
            else:
                self.logs = None

    def compared_to(self, after: VersionScores) -> Difference | None:
        first, second = self._sums().estimate(), after._sums().estimate()
        if first is None or second is None:
            return None
        found = difference(first, second)
        if self._is_binary() and after._is_binary():
            first_counts, second_counts = ((round(one.raw.sum), round(one.raw.weight)) for one in (self, after))
            return found._replace(p=fisher(first_counts, second_counts))
        if self.logs is not None and after.logs is not None and (logs := self.logs.compared_to(after.logs)) is not None:
            return found._replace(p=logs.p)
        # p-value for equal variances: the first scores of a version can vary less by chance
        n, m = self.raw.n, after.raw.n
        variance = (n * self.raw.variance(bounded=False) + m * after.raw.variance(bounded=False)) / (n + m)
        error = math.sqrt(variance * (1 / n + 1 / m))
        pooled_p = math.erfc(abs(after.raw.mean - self.raw.mean) / error / math.sqrt(2)) if error > 0 else 0.0
        return found._replace(p=max(found.p, pooled_p))

    def _sums(self) -> Sums:
        raw = self.raw
        ends = self.ends[0], math.inf if self.is_amount else self.ends[1]
        return Sums.of_turns((raw.weight, raw.sum, raw.squares), (raw.weight_squares, *self.squared), ends)

    def _is_binary(self) -> bool:
        raw = self.raw
        return raw.sum == raw.squares and raw.weight == raw.weight_squares and self.ends[0] >= 0 and self.ends[1] <= 1

    def state(self) -> list[Any]:
        return [
            self.is_amount,
            self.raw.state(),
            self.squared,
            self.ends if self.raw.weight else None,
            None if self.logs is None else self.logs.state(),
        ]

    @classmethod
    def of_state(cls, state: Any) -> VersionScores:
        is_amount, raw, squared, ends, logs = state
        found = cls(is_amount=bool(is_amount))
        found.raw, found.squared = Moments(*map(float, raw)), [float(squared[0]), float(squared[1])]
        found.ends = found.ends if ends is None else [float(ends[0]), float(ends[1])]
        found.logs = None if logs is None else cls.of_state(logs)
        return found


class ReleaseWatch:
    """Comparison of a series' current version with the previous version. ``error`` is the false alarm rate per release."""

    __slots__ = (
        "_after", "_before", "_error", "_high", "_is_amount", "_known", "_last", "_low", "_next", "before", "reported",
        "since", "version",
    )  # fmt: skip

    def __init__(self, error: float, *, is_amount: bool) -> None:
        self._error = error
        self._is_amount = is_amount
        self.version: str | None = None
        self.before: str | None = None
        self.since = 0.0
        self.reported = False
        self._known: list[str] = []
        self._last: str | None = None
        self._after = VersionScores(is_amount=is_amount)
        self._before = VersionScores(is_amount=is_amount)
        self._begin_tests()

    def _begin_tests(self) -> None:
        self._next = float(FIRST)
        self._low: list[str] = []
        """Turn IDs of the new version's latest scores below the previous version's mean."""
        self._high: list[str] = []

    def add(self, value: float, weight: float, version: str, at: float, exemplar: str | None) -> bool:
        """Add a score. Return True if the score's version begins a release."""
        begins = version not in self._known
        if begins:
            if self._last is not None:
                if self._last == self.version:
                    self._before = self._after
                elif self._last != self.before:  # ignore the scores of older versions
                    self._before = VersionScores(is_amount=self._is_amount)
                self.before, self.since = self._last, at
            self.version, self.reported = version, False
            self._known = [*self._known[1 - _KNOWN :], version]
            self._after = VersionScores(is_amount=self._is_amount)
            self._begin_tests()
        self._last = version
        if version == self.version:
            self._after.add(value, weight)
            if exemplar is not None and self.before is not None:
                side = self._low if value < self._before.raw.mean else self._high
                side.append(exemplar)
                del side[:-_EXEMPLARS]
        elif version == self.before:
            self._before.add(value, weight)
        return begins

    def test(self) -> tuple[Difference, Moments, list[str]] | None:
        """If a test is due and significant, return (difference, new version's scores, example turn IDs). Otherwise, return None."""
        after, before = self._after.raw, self._before.raw
        if self.reported or self.before is None or not self._next <= after.n or self._next > _LAST or before.n < FIRST:
            return None
        while self._next <= after.n:
            self._next = math.ceil(self._next * _GROWTH)
        found = self._before.compared_to(self._after)
        if found is None or found.p > self._error * (_OF_AMOUNTS if self._is_amount else 1.0) / _TESTS:
            return None
        if found.interval[0] <= 0 <= found.interval[1]:  # amounts are tested by their logarithms
            return None
        return found, after, self._low if found.size < 0 else self._high

    def state(self) -> list[Any]:
        return [
            self._is_amount, self.version, self.before, self.since, self.reported, self._known, self._last, self._next, self._low, self._high,
            self._after.state(), self._before.state(),
        ]  # fmt: skip

    def restore(self, state: Any) -> None:
        """Restore the output of :meth:`state`. If the state is invalid, raise IndexError, TypeError, or ValueError."""
        self._is_amount, self.version, self.before, since, reported, known, self._last, following, low, high, after, before = (
            state
        )
        self.since, self.reported, self._known, self._next = float(since), bool(reported), [*known], float(following)
        self._low, self._high = [*low], [*high]
        self._after, self._before = VersionScores.of_state(after), VersionScores.of_state(before)
