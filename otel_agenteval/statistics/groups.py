"""Comparison of two groups of live turns: difference, uncertainty, and turns needed for a clear result.

As in :mod:`.weighted`, each score has the weight of the turns that it represents, and the variance is computed over
conversations. If both groups ran the same cases, unsampled scores are compared case by case.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..core.score import Direction
from .intervals import Z95, Interval, mean_interval, wilson
from .tests import holm, paired_test
from .weighted import Estimate, Sums, vector

_Z80 = 0.8416212335729143
"""80 % quantile of the normal distribution, for a power of 80 %."""
_OPEN_TRACES = 10_000
_MOST_CASES = 20_000
"""Cases of a metric above which groups aren't paired, to limit memory."""


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


class GroupValue(NamedTuple):
    """A metric's score on a turn of a group."""

    group: str
    metric: str
    unit: str
    direction: Direction
    trace: str
    value: float
    probability: float
    case: str | None
    type: str | None
    passed: int | None


class Compared(NamedTuple):
    metric: str
    difference: Difference
    turns: tuple[int, int]
    """Number of turns in each group or, if paired, of cases."""
    paired: bool
    adjusted: float
    """The p value, corrected for the number of metrics (Holm)."""


def compare_values(values: Iterable[GroupValue], before: str, after: str) -> tuple[list[Compared], list[str]]:
    """Compare the metrics of two groups. Returns also the metrics that only one group has.

    A metric is paired by case if at least half of the smaller group's cases have a counterpart, and none of its scores is sampled.
    """
    groups: dict[str, dict[str, Group]] = {before: {}, after: {}}
    cases: dict[str, dict[str, _Cases]] = {before: {}, after: {}}
    rates: set[str] = set()
    for one in values:
        groups[one.group].setdefault(one.metric, Group()).add(one.trace, one.value, one.probability)
        cases[one.group].setdefault(one.metric, _Cases()).add(one)
        if one.type == "boolean":
            rates.add(one.metric)
    found: list[tuple[str, Difference, tuple[int, int], bool]] = []
    for metric, unpaired, turns in sorted(in_pairs(groups[before], groups[after]), key=lambda one: one[0]):
        sides = _pairs(cases[before][metric], cases[after][metric])
        if sides is None:
            found.append((metric, unpaired, turns, False))
        else:
            found.append((metric, _of_pairs(*sides, is_rate=metric in rates), (len(sides[0]), len(sides[1])), True))
    adjusted = adjusted_ps({metric: of for metric, of, _, _ in found})
    return [Compared(*one, adjusted[one[0]]) for one in found], sorted(groups[before].keys() ^ groups[after].keys())


def adjusted_ps(found: Mapping[str, Difference]) -> dict[str, float]:
    """Return each metric's p value, corrected for the number of metrics that vary (Holm). Others can't differ by chance."""
    testable = [metric for metric, of in found.items() if of.size or of.p < 1]
    adjusted = dict(zip(testable, holm([found[metric].p for metric in testable]), strict=True))
    return {metric: adjusted.get(metric, 1.0) for metric in found}


@dataclass(slots=True)
class _Cases:
    """Sums of a metric's values by case, unless there are too many or one of them is sampled."""

    sums: dict[str, tuple[float, int]] | None = field(default_factory=dict)

    def add(self, one: GroupValue) -> None:
        if self.sums is not None:
            by_input = one.case is not None and one.case.startswith("#")  # live turns of one question aren't attempts at one case
            key = f" {one.trace}" if one.case is None or by_input else one.case
            total, count = self.sums.get(key, (0.0, 0))
            self.sums[key] = total + one.value, count + 1
            if one.probability < 1 or len(self.sums) > _MOST_CASES:
                self.sums = None


def _pairs(before: _Cases, after: _Cases) -> tuple[list[float], list[float]] | None:
    """Return the mean value of each common case in both groups, or None with too few of them."""
    first, second = before.sums, after.sums
    if first is None or second is None:
        return None
    common = first.keys() & second.keys()
    if not common or 2 * len(common) < min(len(first), len(second)):
        return None
    names = sorted(common)
    return [first[name][0] / first[name][1] for name in names], [second[name][0] / second[name][1] for name in names]


def _of_pairs(before: list[float], after: list[float], *, is_rate: bool) -> Difference:
    p, (low, high) = paired_test(before, after, is_rate=is_rate)
    first, second = (_estimate(side, is_rate=is_rate) for side in (before, after))
    return Difference(first, second, (low, high), p, (Z95 + _Z80) / Z95 * (high - low) / 2)


def _estimate(values: list[float], *, is_rate: bool) -> Estimate:
    binary = is_rate and {*values} <= {0.0, 1.0}
    low, high = wilson(int(sum(values)), len(values)) if binary else mean_interval(values)
    return Estimate(math.fsum(values) / len(values), low, high, float(len(values)))
