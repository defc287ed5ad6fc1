"""Compares two runs metric by metric, and separates real changes from chance, with :mod:`~otel_agenteval.statistics.groups`.

Turns are paired by case id, or by turn id, if at least half of the smaller run has a counterpart. Several turns of one case count as
one turn with their mean. Holm's correction covers all tests of a comparison. A test whose values don't vary can't reject anything, so
the correction ignores it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field, replace
from typing import Literal

from ..statistics.groups import Measure, Side, adjusted_ps, compare_sides, is_amount
from ..statistics.intervals import Interval
from .run import About, MetricSeries, Run

ALPHA = 0.05
_FEWEST_PAIRS = 6  # smallest n for which the smallest possible p value, 2 / 2^n, is below ALPHA

Verdict = Literal["regression", "improvement", "changed", "no change shown", "too few"]


@dataclass(frozen=True, slots=True, eq=False)
class MetricChange:
    label: str
    series: MetricSeries
    measure: Measure
    before: float
    after: float
    counts: tuple[int, int]
    """Number of turns or cases before and after. If cases are paired, both are the number of pairs."""
    paired: bool
    interval: Interval
    """95 % confidence interval of the difference, not corrected for the number of metrics."""
    effect: float | None
    p: float
    varies: bool
    watched: bool
    """True if a regression is a failure: the metric is a gate, or the caller named it."""
    adjusted: float = 1.0
    verdict: Verdict = "no change shown"

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(slots=True)
class Comparison:
    baseline: str
    turns: tuple[int, int]
    paired_by: Literal["turn id", "case id"] | None
    pairs: int
    changes: list[MetricChange] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    errored: list[tuple[str, int, int]] = field(default_factory=list)
    """Metric, errors before and errors now, for metrics with more errors than before."""
    not_compared: list[tuple[str, str]] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    """Watched metrics that had values in the baseline, and are now missing or have only errors."""
    causes: list[str] = field(default_factory=list)
    """Facts that are more frequent in the failed turns of metrics that regressed."""

    @property
    def regressions(self) -> list[MetricChange]:
        return [change for change in self.changes if change.watched and change.verdict == "regression"]


def compare(before: Run, after: Run, baseline: str, watch: Collection[str] = ()) -> Comparison:
    """Compare a run with a baseline. Regressions of gates and of metrics in ``watch`` (``all`` for every metric) are failures."""
    paired_by, pairs = _pairing(before, after)
    found = Comparison(baseline, (len(before.turns), len(after.turns)), paired_by, pairs)
    by_name: dict[str, list[MetricSeries]] = {}
    for series in before.series.values():
        by_name.setdefault(series.facts.metric, []).append(series)
    met: set[int] = set()
    for series in after.series.values():
        known = by_name.get(series.facts.metric, [])
        earlier = next((one for one in known if one.parameters == series.parameters), None)
        if earlier is None and len(known) == 1 and sum(name == series.facts.metric for name, _ in after.series) == 1:
            earlier = known[0]
        if earlier is None:
            found.new.append(series.label)
            continue
        met.add(id(earlier))
        watched = series.facts.policy == "gate" or "all" in watch or series.facts.metric in watch
        _compare_series(found, earlier, series, watched)
    missing = [series for series in before.series.values() if id(series) not in met]
    found.missing = [series.label for series in missing]
    if "all" in watch:
        found.lost += [series.label for series in missing if series.evaluated or series.verdicts]
    adjusted = adjusted_ps([(change.p, change.varies) for change in found.changes])
    found.changes = [
        replace(change, adjusted=p, verdict=_verdict(change, p)) for change, p in zip(found.changes, adjusted, strict=True)
    ]
    return found


def _pairing(before: Run, after: Run) -> tuple[Literal["turn id", "case id"] | None, int]:
    by_turn = before.turns.keys(), after.turns.keys()
    by_case = [{about.case_id for about in run.turns.values() if about.case_id is not None} for run in (before, after)]
    turns, cases = len(by_turn[0] & by_turn[1]), len(by_case[0] & by_case[1])
    if cases and 2 * cases >= min(map(len, by_case)):
        return "case id", cases
    return ("turn id", turns) if turns and 2 * turns >= min(map(len, by_turn)) else (None, max(turns, cases))


def _compare_series(found: Comparison, earlier: MetricSeries, series: MetricSeries, watched: bool) -> None:
    errors = [sum(row.outcome == "error" for row in each.rows) for each in (earlier, series)]
    if errors[1] > errors[0]:
        found.errored.append((series.label, errors[0], errors[1]))
    was, now = earlier.facts, series.facts
    changed = None
    if was.version != now.version:
        changed = f"version {was.version} before, {now.version} now"
    elif earlier.parameters != series.parameters:
        changed = "its parameters have changed"
    elif was.unit != now.unit:
        changed = f"unit {was.unit} before, {now.unit} now"
    if changed is not None:
        found.not_compared.append((series.label, changed))
        return
    before, after = (each.evaluated or each.verdicts for each in (earlier, series))
    if not before or not after:
        missing = " and ".join(word for word, rows in (("the baseline", before), ("this run", after)) if not rows)
        found.not_compared.append((series.label, f"no values in {missing}"))
        if watched and before and errors[1]:
            found.lost.append(series.label)
        return
    for measure in _measures(found, earlier, series):
        sides = (_side(each, measure, found.paired_by, series.facts.unit) for each in (earlier, series))
        one = compare_sides(*sides, is_rate=measure != "mean")
        if one is not None:
            facts = one.before.mean, one.after.mean, one.turns, one.paired, one.interval, one.effect, one.p, one.varies
            found.changes.append(MetricChange(series.label, series, measure, *facts, watched))


def _measures(found: Comparison, earlier: MetricSeries, series: MetricSeries) -> Iterator[Measure]:
    facts = series.facts
    if facts.type == "boolean":
        yield "rate" if facts.direction == "neutral" else "pass rate"
        return
    yield "mean"
    if not facts.gives_verdict or not series.verdicts:
        return
    if earlier.facts.threshold == facts.threshold:
        yield "pass rate"
    else:
        was, now = ("none" if bound is None else f"{bound:g}" for bound in (earlier.facts.threshold, facts.threshold))
        found.not_compared.append((series.label, f"pass rate: threshold {was} before, {now} now"))


def _side(series: MetricSeries, measure: Measure, paired_by: str | None, unit: str) -> Side:
    """Return one value per turn or case. Repetitions of a case aren't independent, so their mean counts."""
    values: dict[str, tuple[About, list[float]]] = {}
    for row in series.verdicts if measure == "pass rate" else series.evaluated:
        key = row.about.turn_id if paired_by == "turn id" else row.about.case
        value = float(bool(row.passed)) if measure == "pass rate" else row.value or 0.0
        values.setdefault(key, (row.about, []))[1].append(value)
    side = Side(is_amount=measure == "mean" and is_amount(unit))
    for key, (about, found) in values.items():
        side.add(math.fsum(found) / len(found), key if about.case_id else about.cluster, case=key if paired_by else None)
    return side


def _verdict(change: MetricChange, adjusted: float) -> Verdict:
    if adjusted >= ALPHA:
        first, second = change.counts
        too_few = first < _FEWEST_PAIRS if change.paired else 2 / math.comb(first + second, first) > ALPHA
        return "too few" if too_few else "no change shown"
    direction = change.series.facts.direction
    if direction == "neutral":
        return "changed"
    better = change.difference > 0 if direction == "up" or change.measure != "mean" else change.difference < 0
    return "improvement" if better else "regression"
