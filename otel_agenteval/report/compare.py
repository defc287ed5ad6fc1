"""Comparison of two runs, metric by metric. :mod:`~otel_agenteval.statistics.groups` distinguishes real changes from chance.

Turns are paired by case ID, input, or turn ID, if at least half of the smaller run has a counterpart. The mean of a case replaces
the values of the case's turns. Holm's correction covers all tests in a comparison, except tests of values that don't vary.
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from operator import attrgetter
from typing import Literal

from ..evaluation.datasets import HASH_OF_INPUT
from ..statistics.groups import Measure, Side, adjusted_ps, compare_sides, is_amount
from ..statistics.intervals import Interval
from .run import About, MetricSeries, Run

ALPHA = 0.05
_FEWEST = 6  # pairs, or values per run. With fewer pairs, the smallest possible p-value, 2 / 2^n, is above ALPHA

Verdict = Literal["regression", "improvement", "changed", "no change shown", "too few"]


@dataclass(frozen=True, slots=True, eq=False)
class MetricChange:
    label: str
    series: MetricSeries = field(repr=False)
    measure: Measure
    before: float
    after: float
    counts: tuple[int, int]  # numbers of turns or cases before and after. If paired, both are the number of pairs
    paired: bool
    interval: Interval  # 95 % confidence interval of the difference, without correction for several metrics
    effect: float | None
    p: float
    varies: bool
    watched: bool  # True if a regression fails the run: the metric is a gate or watched
    adjusted: float = 1.0
    verdict: Verdict = "no change shown"

    @property
    def difference(self) -> float:
        return self.after - self.before


@dataclass(slots=True)
class Comparison:
    baseline: str
    turns: tuple[int, int]
    paired_by: Literal["turn id", "case id", "input"] | None
    pairs: int  # if paired_by is None, the number of ids that both runs have
    repeated: bool = False  # True if inputs without a case ID repeat, so that their turns are paired by position
    changes: list[MetricChange] = field(default_factory=list)
    new: list[str] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    disjoint: list[str] = field(default_factory=list)  # metrics without a case or turn that has a value in both runs
    errored: list[tuple[str, int, int]] = field(default_factory=list)  # (metric, errors before, errors now) if more now
    not_compared: list[tuple[str, str]] = field(default_factory=list)  # (metric, reason)
    lost: list[str] = field(default_factory=list)  # watched metrics that lost their values (absent metrics only with `all`)
    causes: list[str] = field(default_factory=list)  # facts that are more frequent in the failed turns of metrics that regressed

    @property
    def regressions(self) -> list[MetricChange]:
        return [change for change in self.changes if change.watched and change.verdict == "regression"]


def compare(before: Run, after: Run, baseline: str, watch: Collection[str] = ()) -> Comparison:
    """Compare a run with a baseline. A regression of a gate or of a metric in ``watch`` (``all``: every metric) fails the run."""
    paired_by, pairs = _pairing(before, after)
    repeated = paired_by == "input" and any(str(about.case_id).count("-") > 1 for about in after.turns.values())
    comparison = Comparison(baseline, (len(before.turns), len(after.turns)), paired_by, pairs, repeated)
    matched: set[int] = set()
    for series in after.series.values():
        if (earlier := _earlier_of(series, before, after)) is None:
            comparison.new.append(series.label)
            continue
        matched.add(id(earlier))
        errors_before, errors = (sum(row.outcome == "error" for row in each.rows) for each in (earlier, series))
        if errors > errors_before:
            comparison.errored.append((series.label, errors_before, errors))
        watched = series.facts.policy == "gate" or "all" in watch or series.facts.metric in watch
        _compare_series(comparison, earlier, series, watched)
    missing = [series for series in before.series.values() if id(series) not in matched]
    comparison.missing = [series.label for series in missing]
    if "all" in watch:
        comparison.lost += [series.label for series in missing if series.evaluated or series.verdicts]
    adjusted = adjusted_ps([(change.p, change.varies) for change in comparison.changes])
    corrected = zip(comparison.changes, adjusted, strict=True)
    comparison.changes = [replace(change, adjusted=p, verdict=_verdict(change, p)) for change, p in corrected]
    return comparison


def _pairing(before: Run, after: Run) -> tuple[Literal["turn id", "case id", "input"] | None, int]:
    by_turn = before.turns.keys(), after.turns.keys()
    by_case = [{about.case_id for about in run.turns.values() if about.case_id is not None} for run in (before, after)]
    turns, cases = len(by_turn[0] & by_turn[1]), len(by_case[0] & by_case[1])
    if cases and 2 * cases >= min(map(len, by_case)):
        return "input" if all(map(HASH_OF_INPUT.fullmatch, by_case[0] & by_case[1])) else "case id", cases
    if turns and 2 * turns >= min(map(len, by_turn)):
        return "turn id", turns
    return None, max(turns, cases)


def _earlier_of(series: MetricSeries, before: Run, after: Run) -> MetricSeries | None:
    metric = series.facts.metric
    candidates = [one for one in before.series.values() if one.facts.metric == metric]
    for one in candidates:
        if one.parameters == series.parameters:
            return one
    is_only_one = len(candidates) == 1 and sum(name == metric for name, _ in after.series) == 1
    return candidates[0] if is_only_one else None


def _compare_series(comparison: Comparison, earlier: MetricSeries, series: MetricSeries, watched: bool) -> None:
    """Add a metric's changes to the comparison, or the reason why the metric's values can't be compared."""
    definition_change = _definition_change(earlier, series)
    if definition_change is not None:
        comparison.not_compared.append((series.label, definition_change))
        return
    before, after = (each.evaluated or each.verdicts for each in (earlier, series))
    if not before or not after:
        missing = " and ".join(word for word, rows in (("the baseline", before), ("this run", after)) if not rows)
        comparison.not_compared.append((series.label, f"no values in {missing}"))
        if watched and before:
            comparison.lost.append(series.label)
        return
    by = attrgetter("turn_id" if comparison.paired_by == "turn id" else "case")
    if comparison.paired_by and {by(row.about) for row in before}.isdisjoint(by(row.about) for row in after):
        comparison.disjoint.append(series.label)
    measures, threshold_change = _measures(earlier, series)
    for measure in (*measures, "share with a value"):
        sides = (_side(each, measure, comparison.paired_by, series.facts.unit) for each in (earlier, series))
        found = compare_sides(*sides, is_rate=measure != "mean")
        if found is not None and (found.size or measure != "share with a value"):
            comparison.changes.append(MetricChange(
                series.label, series, measure, before=found.before.mean, after=found.after.mean, counts=found.turns,
                paired=found.paired, interval=found.interval, effect=found.effect, p=found.p, varies=found.varies, watched=watched,
            ))  # fmt: skip
    if threshold_change is not None:
        comparison.not_compared.append((series.label, threshold_change))


def _definition_change(earlier: MetricSeries, series: MetricSeries) -> str | None:
    was, now = earlier.facts, series.facts
    if was.version != now.version:
        return f"version {was.version} before, {now.version} now"
    if earlier.parameters != series.parameters:
        return "its parameters have changed"
    return f"unit {was.unit} before, {now.unit} now" if was.unit != now.unit else None


def _measures(earlier: MetricSeries, series: MetricSeries) -> tuple[list[Measure], str | None]:
    """Return the measures to compare, and the reason why the pass rate isn't compared (different thresholds), or None."""
    facts = series.facts
    if facts.type == "boolean":
        return ["rate" if facts.direction == "neutral" else "pass rate"], None
    if not facts.gives_verdict or not series.verdicts:
        return ["mean"], None
    if earlier.facts.threshold == facts.threshold:
        return ["mean", "pass rate"], None
    was, now = ("none" if bound is None else f"{bound:g}" for bound in (earlier.facts.threshold, facts.threshold))
    return ["mean"], f"pass rate: threshold {was} before, {now} now"


def _side(series: MetricSeries, measure: Measure, paired_by: str | None, unit: str) -> Side:
    """Return one value per turn or case. Repetitions of a case aren't independent, so their mean replaces the values."""
    values: dict[str, list[float]] = {}
    abouts: dict[str, About] = {}
    if measure == "share with a value":
        found = [(row.about, float(row.has_value)) for row in series.rows]
    elif measure == "pass rate":
        found = [(row.about, float(bool(row.passed))) for row in series.verdicts]
    else:
        found = [(row.about, row.value or 0.0) for row in series.evaluated]
    for about, value in found:
        key = about.turn_id if paired_by == "turn id" else about.case
        values.setdefault(key, []).append(value)
        abouts.setdefault(key, about)
    side = Side(is_amount=measure == "mean" and is_amount(unit))
    for key, about in abouts.items():
        cluster = key if about.case_id else about.cluster  # values in one cluster, such as a conversation, aren't independent
        side.add(math.fsum(values[key]) / len(values[key]), cluster, case=key if paired_by else None)
    return side


def _verdict(change: MetricChange, adjusted: float) -> Verdict:
    if min(change.counts) < _FEWEST:
        return "too few"
    if adjusted >= ALPHA:
        return "no change shown"
    direction = change.series.facts.direction
    if direction == "neutral":
        return "changed"
    better = change.difference > 0 if direction == "up" or change.measure != "mean" else change.difference < 0
    return "improvement" if better else "regression"
