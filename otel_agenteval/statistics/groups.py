"""Comparison of two groups of turns: difference, uncertainty, and the number of turns needed for a clear result.

- If no value is sampled, all values have a case ID, and at least half of the smaller group's cases are also in the other group,
  values are compared case by case.
- Other values are independent samples. If no value is sampled and no conversation has several values, rates get Fisher's exact
  test, and other measures of small groups get a permutation test.
- As in :mod:`.weighted`, a sampled score counts for all turns that it represents. Turns of one conversation aren't independent, so
  the variance is computed over conversations.
- Amounts, such as seconds and dollars, are tested on a logarithmic scale. Otherwise, a few large amounts would hide other changes.
  With few conversations, the estimated variance of amounts would be too low, so the conversations' means get a permutation test.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple

from ..core.score import Direction
from .intervals import Z95, Interval, difference_interval, mean_interval, newcombe, student, wilson
from .tests import cliffs_delta, cohens_d, fisher, holm, paired_test, permutation, sign_flip
from .weighted import Estimate, Sums, vector

Measure = Literal["mean", "pass rate", "rate", "share with a value"]
_Clusters = dict[str, tuple[float, float, int]]
_Z80 = 0.8416212335729143
"""80 % quantile of the normal distribution. Used for a statistical power of 80 %."""
_OPEN_TRACES = 10_000
_MOST_KEPT = 20_000
"""Maximum number of values to keep per measure and group. Larger groups keep only sums, to limit memory."""
_FEW = 200
"""Maximum number of turns or conversations, in both groups, for a permutation test. Larger tests are slow and hardly better."""


class Group:
    """Scores of one metric in one group. The caller must add the scores of a trace consecutively."""

    __slots__ = ("_open", "_sums", "turns")

    def __init__(self, *, is_amount: bool = False) -> None:
        self.turns = 0
        self._sums = Sums(most=math.inf) if is_amount else Sums()  # amounts can be below 1 too, but aren't limited to 0 to 1
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
    """95 % interval of the difference, without correction for the number of measures."""
    p: float
    detectable: float
    """Smallest difference that a test with this many turns detects with a probability of 80 %."""
    turns: tuple[int, int] = (0, 0)
    """Number of turns in each group. For paired values, the number of pairs."""
    paired: bool = False
    effect: float | None = None
    """Cohen's d (for pairs) or Cliff's delta (for independent turns), or None if unknown."""
    varies: bool = True
    """False if all values are equal or, for pairs, if each pair's values are equal. Then a test can't be significant."""

    @property
    def size(self) -> float:
        return self.after.mean - self.before.mean

    def turns_needed(self, effect: float) -> tuple[int, int]:
        """Return the additional turns that each group needs to detect ``effect`` (power 80 %), or -1 if no number is enough."""
        factor = (self.detectable / abs(effect)) ** 2 if effect else math.inf
        before, after = (max(0, math.ceil(n * factor) - n) if math.isfinite(factor) else -1 for n in self.turns)
        return before, after


def difference(before: Estimate, after: Estimate, turns: tuple[int, int] = (0, 0)) -> Difference:
    """Compare two means. The difference's interval is computed from the means' intervals (MOVER, Zou and Donner 2008)."""
    size = after.mean - before.mean
    down = math.hypot(after.mean - after.low, before.high - before.mean)
    up = math.hypot(after.high - after.mean, before.mean - before.low)
    towards = up if size < 0 else down
    p = math.erfc(abs(size) / (towards / Z95) / math.sqrt(2)) if towards > 0 else (1.0 if not size else 0.0)
    return Difference(
        before, after, (size - down, size + up), p, (Z95 + _Z80) / Z95 * (down + up) / 2, turns, varies=bool(size) or p < 1
    )


class Side:
    """Values of one measure in one group. ``is_amount`` is true for seconds, dollars, and other amounts."""

    __slots__ = ("_alone", "_cases", "_clusters", "_group", "_logs")

    def __init__(self, *, is_amount: bool = False) -> None:
        self._group = Group(is_amount=is_amount)
        self._logs = Group(is_amount=True) if is_amount else None
        """Logarithms of the values. None if a value isn't positive or if the values aren't amounts."""
        self._alone: dict[str, float] | None = {}
        """Mapping from cluster to value. None if a value is sampled, a cluster has several values, or there are too many values."""
        self._clusters: _Clusters | None = {} if is_amount else None
        """Sum, sum of logarithms, and number of amounts, by cluster. None for other values, or for sampled or too many amounts."""
        self._cases: dict[str, tuple[float, int]] | None = {}
        """Mapping from case to (sum, number) of values. None if a value lacks a case or is sampled, or the limit is exceeded."""

    def add(self, value: float, cluster: str, probability: float = 1.0, case: str | None = None) -> None:
        """Add a turn's value. The caller must add all turns of a ``cluster``, such as a conversation, consecutively."""
        self._group.add(cluster, value, probability)
        if self._logs is not None and value > 0:
            self._logs.add(cluster, math.log(value), probability)
        else:
            self._logs = None
        is_kept = probability >= 1 and self._group.turns <= _MOST_KEPT
        self._alone = self._alone if is_kept and self._alone is not None and cluster not in self._alone else None
        self._cases = self._cases if is_kept and case is not None else None
        if self._alone is not None:
            self._alone[cluster] = value
        self._clusters = self._clusters if is_kept else None
        if self._clusters is not None:
            total, logs, count = self._clusters.get(cluster, (0.0, 0.0, 0))
            self._clusters[cluster] = total + value, logs + (math.log(value) if value > 0 else 0.0), count + 1
        if self._cases is not None and case is not None:
            total, count = self._cases.get(case, (0.0, 0))
            self._cases[case] = total + value, count + 1


def compare_sides(before: Side, after: Side, *, is_rate: bool) -> Difference | None:
    """Compare a measure in two groups. If either group is empty, return None."""
    in_logs = before._logs is not None and after._logs is not None
    cases = before._cases or {}, after._cases or {}
    common = sorted(cases[0].keys() & cases[1].keys())
    if common and 2 * len(common) >= min(map(len, cases)):
        means = ([side[name][0] / side[name][1] for name in common] for side in cases)
        return _compare_values(*means, paired=True, is_rate=is_rate, in_logs=in_logs)
    turns = before._group.turns, after._group.turns
    if before._alone and after._alone:
        first, second = [*before._alone.values()], [*after._alone.values()]
        binary = is_rate and {*first, *second} <= {0.0, 1.0}
        if binary or sum(turns) <= _FEW:
            return _compare_values(first, second, paired=False, is_rate=is_rate, in_logs=in_logs)
    found = _compare_estimates(before._group, after._group)
    if found is not None and before._clusters and after._clusters and len(before._clusters) + len(after._clusters) <= _FEW:
        return _of_few_clusters(found, before._clusters, after._clusters, in_logs=in_logs)
    logs = None if before._logs is None or after._logs is None else _compare_estimates(before._logs, after._logs)
    return found if found is None or logs is None else found._replace(p=logs.p)


def _compare_estimates(before: Group, after: Group) -> Difference | None:
    first, second = before.estimate(), after.estimate()
    return None if first is None or second is None else difference(first, second, (before.turns, after.turns))


def _of_few_clusters(found: Difference, before: _Clusters, after: _Clusters, *, in_logs: bool) -> Difference:
    """Return ``found`` with a permutation test's p-value for the cluster means, and with a wider interval (Student's)."""
    place = 1 if in_logs else 0
    p = permutation(*([one[place] / one[2] for one in clusters.values()] for clusters in (before, after)))
    freedom = min(len(before), len(after)) - 1
    if not freedom:  # with one cluster, the variance between clusters is unknown
        half = abs(found.size) + max(abs(found.before.mean), abs(found.after.mean))
        return found._replace(p=p, interval=(found.size - half, found.size + half), detectable=(Z95 + _Z80) / Z95 * half)
    wider = student(freedom) / Z95
    low, high = (found.size + (end - found.size) * wider for end in found.interval)
    return found._replace(p=p, interval=(low, high), detectable=found.detectable * wider)


def _compare_values(before: list[float], after: list[float], *, paired: bool, is_rate: bool, in_logs: bool) -> Difference:
    """Compare two groups' values. If ``paired`` is true, values with the same index form a pair."""
    binary = is_rate and {*before, *after} <= {0.0, 1.0}
    effect: float | None
    if paired:
        after = [first if math.isclose(first, second) else second for first, second in zip(before, after, strict=True)]
        p, interval, effect, varies = _compare_pairs(before, after, is_rate, in_logs)
    else:
        if binary:
            counts = (int(sum(before)), len(before)), (int(sum(after)), len(after))
            p, interval = fisher(*counts), newcombe(*counts)
        else:
            tested = ([math.log(value) for value in side] if in_logs else side for side in (before, after))
            p, interval = permutation(*tested), difference_interval(before, after)
        effect, varies = cliffs_delta(before, after), len({*before, *after}) > 1
    estimates = _estimate(before, binary), _estimate(after, binary)
    detectable = (Z95 + _Z80) / Z95 * (interval[1] - interval[0]) / 2
    return Difference(*estimates, interval, p, detectable, (len(before), len(after)), paired, effect, varies)


def _compare_pairs(
    before: list[float], after: list[float], is_rate: bool, in_logs: bool
) -> tuple[float, tuple[float, float], float | None, bool]:
    p, interval = paired_test(before, after, is_rate=is_rate)
    if in_logs:
        p = sign_flip([math.log(second / first) for first, second in zip(before, after, strict=True)])
    differences = [second - first for first, second in zip(before, after, strict=True)]
    return p, interval, cohens_d(differences), any(differences)


def _estimate(values: Sequence[float], is_binary: bool) -> Estimate:
    low, high = wilson(int(sum(values)), len(values)) if is_binary else mean_interval(values)
    return Estimate(math.fsum(values) / len(values), low, high, float(len(values)))


def adjusted_ps(found: Sequence[tuple[float, bool]]) -> list[float]:
    """Return p-values with Holm's correction. Measures that don't vary get p = 1 and don't count toward the correction."""
    adjusted = iter(holm([p for p, varies in found if varies]))
    return [next(adjusted) if varies else 1.0 for _, varies in found]


class GroupValue(NamedTuple):
    group: str
    metric: str
    unit: str
    direction: Direction
    trace: str
    """Conversation ID of the turn or, if unknown, trace ID."""
    value: float
    probability: float
    case: str | None
    type: str | None
    passed: int | None

    def measures(self) -> Iterable[tuple[Measure, float]]:
        """Yield each measure that applies to the score (``mean``, ``rate``, or ``pass rate``), with the measure's value."""
        has_verdict = self.passed is not None and self.direction != "neutral"
        if self.type != "boolean":
            yield "mean", self.value
        elif not has_verdict:
            yield "rate", self.value
        if has_verdict:
            yield "pass rate", float(self.passed or 0)


class Compared(NamedTuple):
    metric: str
    measure: Measure
    difference: Difference
    adjusted: float


def compare_values(values: Iterable[GroupValue], before: str, after: str) -> tuple[list[Compared], list[str]]:
    """Compare two groups' metrics. Also return the metrics that can't be compared."""
    sides: dict[tuple[str, Measure], dict[str, Side]] = {}
    for one in values:
        case = None if one.case is None or one.case.startswith("#") else one.case  # a hash of an input, not a case ID
        for measure, value in one.measures():
            of_groups = sides.setdefault((one.metric, measure), {})
            if one.group not in of_groups:
                of_groups[one.group] = Side(is_amount=measure == "mean" and is_amount(one.unit))
            of_groups[one.group].add(value, one.trace, one.probability, case)
    found: list[tuple[str, Measure, Difference]] = []
    for (metric, measure), of_groups in sorted(sides.items()):
        if before in of_groups and after in of_groups:
            one_difference = compare_sides(of_groups[before], of_groups[after], is_rate=measure != "mean")
            if one_difference is not None:
                found.append((metric, measure, one_difference))
    adjusted = adjusted_ps([(of.p, of.varies) for _, _, of in found])
    compared = [Compared(*one, p) for one, p in zip(found, adjusted, strict=True)]
    return compared, sorted({metric for metric, _ in sides} - {metric for metric, _, _ in found})


def is_amount(unit: str) -> bool:
    """Return True if ``unit`` is for amounts, such as seconds or dollars. Scores have the unit ``1`` or, for example, ``/100``."""
    return unit != "1" and not unit.startswith("/")
