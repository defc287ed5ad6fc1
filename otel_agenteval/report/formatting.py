"""Shared parts of all reports: numbers with units, single-line text, and the verdict on a run."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from ..core.score import TASK_RAISED
from ..metrics.bound_metric import BoundMetric
from ..outlets.turn_text import number_of, one_line
from ..statistics.intervals import Interval
from .compare import Comparison, MetricChange
from .run import Run, ScoreRow, SeriesSummary, parameters_hash

_UNITS = {"1": "", "s": " s", "{token}": " tokens", "{level}": "", "{item}": "", "USD": "", "/100": ""}


def number(value: float | None, unit: str = "1", *, signed: bool = False) -> str:
    """Format a value with its unit and up to four significant digits. Values from 1,000 become integers. None becomes a dash."""
    if value is None:
        return "–"
    sign = "+" if signed and value > 0 else "−" if value < 0 else ""
    size = abs(float(value))
    whole = size >= 1_000 or size.is_integer()
    digits = f"{size:,.0f}" if whole else np.format_float_positional(size, 4, unique=False, fractional=False, trim="-")
    return f"{sign}{'$' if unit == 'USD' else ''}{digits}{_UNITS.get(unit, f' {unit}')}"


def percent(share: float | None, digits: int = 1) -> str:
    """Format a share in percent. A share that differs from 0 and 1 by more than 1e-9 isn't rounded to 0 % or 100 %."""
    if share is None:
        return "–"
    size = share * 100
    if 1e-9 < share < 1 - 1e-9:
        size = min(max(size, 0.001), 99.999)
        digits = next(n for n in range(digits, 4) if 0 < round(size, n) < 100)
    return f"{size:.{digits}f} %".replace(".0 %", " %")


def with_interval(share: float | None, interval: Interval) -> str:
    low, high = interval
    return f"{percent(share)} ({percent(low)} … {percent(high)})"


def share(passed: int, judged: int, *, whole: bool) -> str:
    """Format a pass rate as ``67 %`` if ``whole`` (every attempt was scored), otherwise as ``67 % (4 of 6)``."""
    return percent(passed / judged if judged else None) + ("" if whole or not judged else f" ({passed:,} of {judged:,})")


def rate_and_interval(summary: SeriesSummary) -> tuple[str, str]:
    """Format a pass rate and its interval in percent, such as ``(78–100)``. Without an interval, the second text is empty."""
    scored = summary.outcomes["pass"] + summary.outcomes["fail"]
    rate = share(summary.passed, summary.judged, whole=scored == summary.outcomes.total())
    between = "–".join(percent(end, 0) for end in summary.rate_interval or ())
    return rate, between and f"({between})".replace(" %", "")


def points(difference: float) -> str:
    return (
        f"{difference * 100:+.1f} pp".replace(".0 pp", " pp").replace("+0 pp", "0 pp").replace("-0 pp", "0 pp").replace("-", "−")
    )


@dataclass(frozen=True, slots=True)
class Report:
    run: Run
    comparison: Comparison | None = None
    unevaluated: Sequence[str] = ()
    """Messages, with the reasons, about gates that were never evaluated, or about the lack of gates. Each message fails the run."""

    @property
    def gates_failed(self) -> int:
        return sum(row.fails_gate for row in self.run.rows)

    @property
    def _gate_faults(self) -> list[str]:
        kinds = Counter(row.outcome for row in self.run.rows if row.fails_gate and row.passed is None)
        counts = ((kinds["error"], "error"), (kinds["skipped"], "blank answer"))
        cause = f" ({', '.join(number_of(count, what) for count, what in counts if count)})" if kinds else ""
        return [f"{number_of(self.gates_failed, 'gate score')} failed{cause}"] if self.gates_failed else []

    @property
    def failures(self) -> list[str]:
        """Reasons why the run fails, one per line. Empty if the run passes."""
        labels = list(dict.fromkeys(row.series.label for row in self.run.rows if row.fails_gate))
        found = [f"{fault}: {', '.join(labels[:3])}{', …' * (len(labels) > 3)}" for fault in self._gate_faults] + [
            *self.unevaluated
        ]
        if self.comparison is not None:
            found += [f"regression of {change.label}: {describe_change(change)}" for change in self.comparison.regressions]
            found += [f"{label} can't be compared: this run has no value" for label in self.comparison.lost]
        return found

    @property
    def decides(self) -> bool:
        """True if a metric in the run has the policy ``gate``, or a watched metric is compared with a baseline."""
        return self._has_gates or (self.comparison is not None and any(change.watched for change in self.comparison.changes))

    @property
    def _has_gates(self) -> bool:
        return any(series.facts.policy == "gate" for series in self.run.series.values())

    def verdict(self) -> str:
        scored = f"{number_of(len(self.run.turns), 'turn')}, {number_of(len(self.run.series), 'metric')}"
        if not self.failures:
            return f"{scored}: {'every gate passed' if self._has_gates else 'no regression' if self.decides else 'no gates'}"
        regressions = len(self.failures) - bool(self.gates_failed) - len(self.unevaluated)
        faults = self._gate_faults
        faults += [f"{number_of(len(self.unevaluated), 'gate')} without a verdict"] if self.unevaluated else []
        return f"{scored}: {', '.join(faults + ([number_of(regressions, 'regression')] if regressions else []))}"


def unevaluated_gates(metrics: Iterable[BoundMetric], run: Run) -> list[str]:
    """Return one message, with the reason, for each gate that neither has a verdict nor fails on any turn."""
    found = []
    for metric in metrics:
        series = run.series.get((metric.name, parameters_hash(metric))) if metric.policy == "gate" else None
        rows = series.rows if series is not None else []
        if metric.policy != "gate" or any(row.fails_gate for row in rows) or (series is not None and series.verdicts):
            continue
        vacuous = sum(row.outcome == "vacuous" for row in rows)
        reason = "it applies to no turn"
        if vacuous:
            reason = f"{number_of(vacuous, 'turn')} had nothing to evaluate"
        elif rows:
            why, times = Counter(row.why if row.outcome == "skipped" else "" for row in rows).most_common(1)[0]
            reason = f"skipped on {number_of(times, 'turn')}, {why}" if why else "its scores have no verdict. Set its threshold"
        found.append(f"{metric.name} was never evaluated: {reason}")
    return found


def errors_in(run: Run) -> list[str]:
    """Return one line per metric and error type, with the error count and the first explanation. Task errors are excluded."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in run.rows:
        if row.outcome == "error":
            found.setdefault((row.series.label, row.why.partition(":")[0]), []).append(row.why)
    return [
        one_line(f"{label}: {number_of(len(reasons), 'error')}: {reasons[0]}")
        for (label, kind), reasons in found.items()
        if kind != TASK_RAISED
    ]


def describe_change(change: MetricChange) -> str:
    """Format a change, such as ``pass rate 95 % → 70 % (−25 pp, 95 % CI …, p = 0.0005)``."""
    before, after, difference, interval = change_numbers(change)
    return f"{change.measure} {before} → {after} ({difference}, 95 % CI {interval}, {p_value(change.adjusted)})"


def change_numbers(change: MetricChange) -> tuple[str, str, str, str]:
    of_unit = partial(number, unit=change.series.facts.unit)
    plain, signed = (of_unit, partial(of_unit, signed=True)) if change.measure == "mean" else (percent, points)
    is_known = not change.difference or not math.isclose(*change.interval)  # equal differences give no interval
    interval = " to ".join(map(signed, change.interval)) if is_known else "unknown"
    return plain(change.before), plain(change.after), signed(change.difference), interval


def effect_of(change: MetricChange) -> str:
    """Format the effect size, which is Cohen's d for paired values and Cliff's delta for independent values."""
    return "–" if change.effect is None else f"{'d' if change.paired else 'δ'} = {change.effect:.2f}".replace("-", "−")


def n_of(change: MetricChange) -> str:
    return number_of(change.counts[0], "pair") if change.paired else f"{change.counts[0]:,}, {change.counts[1]:,}"


def p_value(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.2g}"


def describe_pairing(comparison: Comparison) -> str:
    before, after = comparison.turns
    sizes = f"{number_of(before, 'turn')} before, {number_of(after, 'turn')} now"
    if comparison.paired_by:
        return f"{sizes}; {number_of(comparison.pairs, 'pair')} by {comparison.paired_by}"
    matches = f"only {number_of(comparison.pairs, 'id')} in both" if comparison.pairs else "no id in both"
    return f"{sizes}; {matches}, so the turns are compared as independent samples"


def remarks(comparison: Comparison) -> list[str]:
    found = [f"New: {', '.join(comparison.new)}"] if comparison.new else []
    found += [f"Missing in this run: {', '.join(comparison.missing)}"] if comparison.missing else []
    if comparison.repeated:
        found.append("Repeated inputs are paired by their position. Add the column case_id to the dataset")
    what = "turn" if comparison.paired_by == "turn id" else "case"
    found += [f"{label}: no {what} has a value in both runs" for label in comparison.disjoint]
    found += comparison.causes
    found += [f"More errors: {label}, {before:,} before, {now:,} now" for label, before, now in comparison.errored]
    for change in comparison.changes:
        if change.measure == "share with a value":
            first, second = change.counts
            lost, now = round(first * (1 - change.before)), round(second * (1 - change.after))
            of = "" if first == second else f" of {first:,}"
            found.append(f"{change.label}: {now:,} of {second:,} {what}s have no value ({lost:,}{of} before)")
    by_reason: dict[str, list[str]] = {}
    for label, reason in comparison.not_compared:
        by_reason.setdefault(reason, []).append(label)
    return found + [f"Not compared ({reason}): {', '.join(labels)}" for reason, labels in by_reason.items()]


_WEIGHT = {"regression": 0, "changed": 1, "improvement": 2, "too few": 4, "no change shown": 3}


def by_weight(changes: Iterable[MetricChange]) -> list[MetricChange]:
    return sorted(changes, key=lambda change: (_WEIGHT[change.verdict], not change.watched))


def worst_turns(run: Run) -> list[list[ScoreRow]]:
    """Return the failed and errored scores of each turn. Turns are sorted by the number of failed gates, highest first."""
    by_turn: dict[str, list[ScoreRow]] = {}
    for row in run.rows:
        if row.outcome in ("fail", "error") or row.fails_gate:
            by_turn.setdefault(row.about.turn_id, []).append(row)
    for rows in by_turn.values():
        rows.sort(key=lambda row: (not row.fails_gate, row.outcome != "error"))
    return sorted(by_turn.values(), key=lambda rows: (-sum(row.fails_gate for row in rows), -len(rows)))
