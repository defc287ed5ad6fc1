"""Comparison of two groups of live turns: difference, uncertainty, and turns needed for a clear result.

As in :mod:`.weighted`, each score has the weight of the turns that it represents, and the variance is computed over traces.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator
from typing import Any, NamedTuple

from .intervals import Z95, Interval
from .weighted import Estimate, Sums, vector

_Z80 = 0.8416212335729143
"""80 % quantile of the normal distribution, for a power of 80 %."""
_OPEN_TRACES = 10_000


class Group:
    """The scores of one metric in one group. The turns of a trace should follow each other."""

    __slots__ = ("_open", "_sums", "turns")

    def __init__(self) -> None:
        self.turns = 0
        self._sums = Sums()
        self._open: OrderedDict[str, Any] = OrderedDict()

    def add(self, trace: str, value: float, probability: float = 1.0) -> None:
        self.turns += 1
        self._sums.widen(value)
        own = vector(1.0 / probability, value)
        before = self._open.pop(trace, None)
        self._open[trace] = own if before is None else before + own
        if len(self._open) > _OPEN_TRACES:
            self._sums.add(self._open.popitem(last=False)[1])

    def estimate(self) -> Estimate | None:
        while self._open:
            self._sums.add(self._open.popitem()[1])
        return self._sums.estimate()


class Difference(NamedTuple):
    before: Estimate
    after: Estimate
    interval: Interval
    """95 % interval, not corrected for the number of metrics."""
    p: float
    detectable: float
    """Smallest difference that this many turns detect with a probability of 80 %."""

    @property
    def size(self) -> float:
        return self.after.mean - self.before.mean

    def turns_needed(self, turns: tuple[int, int], effect: float) -> tuple[int, int]:
        """Return how many more turns each group needs to detect an effect (power 80 %), -1 for infinity."""
        factor = (self.detectable / abs(effect)) ** 2 if effect else math.inf
        before, after = (max(0, math.ceil(n * factor) - n) if math.isfinite(factor) else -1 for n in turns)
        return before, after


def difference(before: Estimate, after: Estimate) -> Difference:
    """Compare two means, with an interval from both intervals (MOVER, Zou and Donner 2008)."""
    size = after.mean - before.mean
    down = math.hypot(after.mean - after.low, before.high - before.mean)
    up = math.hypot(after.high - after.mean, before.mean - before.low)
    towards = up if size < 0 else down
    p = math.erfc(abs(size) / (towards / Z95) / math.sqrt(2)) if towards > 0 else (1.0 if not size else 0.0)
    return Difference(before, after, (size - down, size + up), p, (Z95 + _Z80) / Z95 * (down + up) / 2)


def in_pairs(groups: dict[str, Group], other: dict[str, Group]) -> Iterator[tuple[str, Difference, tuple[int, int]]]:
    """Yield each metric in both groups: name, difference, and the number of turns in each."""
    for name, group in groups.items():
        if name in other:
            before, after = group.estimate(), other[name].estimate()
            if before is not None and after is not None:
                yield name, difference(before, after), (group.turns, other[name].turns)
