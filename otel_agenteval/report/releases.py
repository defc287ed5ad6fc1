"""Comparison of two groups of stored turns, such as versions, models, or prompts. Also estimates means and pass rates per group.

For each metric, a comparison shows whether the difference is larger than expected by chance. If the result is unclear, the
comparison shows how many more turns each group needs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from ..core.errors import AgentEvalError
from ..core.score import Direction, pass_rate
from ..outlets.store.reader import StoreReader, Wanted
from ..outlets.turn_text import number_of
from ..statistics.groups import Difference, Group, GroupValue, Measure, compare_values, is_amount
from ..statistics.weighted import Estimate
from .formatting import number, p_value, percent
from .render import Table, TabularReport

ALPHA = 0.05
_FEW = 30

Verdict = Literal["worse", "better", "changed", "no difference shown"]


@dataclass(frozen=True, slots=True)
class Line:
    metric: str
    measure: Measure
    unit: str
    difference: Difference
    adjusted: float
    """p-value after Holm's correction for the number of measures."""
    verdict: Verdict
    needed: tuple[int, int] | None
    """Turns or cases that each group still needs for significance, or -1 if no number is enough. None if significant or equal."""


@dataclass(slots=True)
class Releases:
    by: str
    before: str
    after: str
    turns: tuple[int, int]
    lines: list[Line] = field(default_factory=list)
    others: list[str] = field(default_factory=list)
    alone: list[str] = field(default_factory=list)

    @property
    def worse(self) -> list[Line]:
        return [line for line in self.lines if line.verdict == "worse"]


def compare_groups(
    reader: StoreReader, by: str, wanted: Wanted, groups: Sequence[str] = (), effect: float | None = None
) -> Releases:
    """Compare two groups of stored turns, by default the last two. ``effect`` is the smallest difference that matters."""
    known = reader.groups(by, wanted)
    names = _chosen(by, known, groups)
    about: dict[str, tuple[str, Direction]] = {}

    def values() -> Iterator[GroupValue]:
        for row in reader.values(by, names, wanted):
            about[row.metric] = row.unit, row.direction
            yield row

    before, after = names
    found = Releases(by, before, after, (known[before], known[after]), others=[name for name in known if name not in names])
    compared, found.alone = compare_values(values(), before, after)
    for metric, measure, difference, p in compared:
        unit, direction = about[metric] if measure == "mean" else ("1", about[metric][1])
        verdict = _verdict(difference.size, p, "up" if measure == "pass rate" else direction)
        aim = effect if effect is not None else difference.size
        needed = difference.turns_needed(aim) if verdict == "no difference shown" and aim else None
        found.lines.append(Line(metric, measure, unit, difference, p, verdict, needed))
    order = ("worse", "changed", "better", "no difference shown")
    found.lines.sort(key=lambda line: (order.index(line.verdict), line.metric, line.measure))
    return found


def _chosen(by: str, known: Mapping[str, int], groups: Sequence[str]) -> tuple[str, str]:
    listed = ", ".join(f"{name} ({number_of(turns, 'turn')})" for name, turns in known.items()) or "none"
    for name in groups:
        if name not in known:
            raise AgentEvalError(f"{by}: must be a group of stored turns, got {name!r}. Stored groups: {listed}")
    if groups:
        return groups[0], groups[1]
    if len(known) < 2:
        raise AgentEvalError(f"{by}: a comparison needs two groups of stored turns, got {listed}")
    before, after = list(known)[-2:]
    return before, after


def _verdict(size: float, p: float, direction: Direction) -> Verdict:
    if p >= ALPHA:
        return "no difference shown"
    if direction == "neutral":
        return "changed"
    return "better" if (size > 0) == (direction == "up") else "worse"


def releases_report(found: Releases) -> TabularReport:
    heads = ("metric", "", "before", "after", "difference, 95 % interval", "p", "turns", "", "shows from", "turns still needed")
    warnings = []
    if min(found.turns) < _FEW:
        warnings.append(f"{found.turns[0]} and {number_of(found.turns[1], 'turn')}: with fewer than {_FEW}, intervals are wide")
    if found.alone:
        warnings.append(f"metrics in only one group: {', '.join(found.alone)}")
    if found.others:
        warnings.append(f"groups not compared: {', '.join(found.others)}")
    data = {
        "by": found.by, "before": found.before, "after": found.after, "turns": list(found.turns), "warnings": warnings,
        "metrics": [
            {
                "metric": line.metric, "measure": line.measure, "before": line.difference.before._asdict(), "after": line.difference.after._asdict(),
                "difference": line.difference.size, "interval": list(line.difference.interval), "p": line.adjusted, "p_unadjusted": line.difference.p,
                "turns": list(line.difference.turns), "paired_by": "case" if line.difference.paired else None, "verdict": line.verdict, "detectable": line.difference.detectable,
                "turns_needed": None if line.needed is None or min(line.needed) < 0 else list(line.needed),
            }
            for line in found.lines
        ],
    }  # fmt: skip
    title = f"{found.by}: {found.before} ({number_of(found.turns[0], 'turn')}) and {found.after} ({number_of(found.turns[1], 'turn')})"
    table = Table(title, heads, [*map(_cells, found.lines)])
    about = "After minus before, with p corrected for the number of tests"
    return TabularReport(f"{found.before} and {found.after}", [table], data, warnings, about)


def _cells(line: Line) -> tuple[str, ...]:
    of, unit = line.difference, line.unit
    low, high = of.interval
    needed = (
        "–"
        if line.needed is None or not any(line.needed)
        else "more than exist"
        if min(line.needed) < 0
        else f"{line.needed[0]:,} and {line.needed[1]:,}"
    )
    return (
        line.metric, line.measure, number(of.before.mean, unit), number(of.after.mean, unit),
        f"{number(of.size, unit, signed=True)} ({number(low, unit, signed=True)} … {number(high, unit, signed=True)})", p_value(line.adjusted),
        number_of(of.turns[0], "pair") if of.paired else f"{of.turns[0]:,} and {of.turns[1]:,}", line.verdict, number(of.detectable, unit), needed,
    )  # fmt: skip


# --- estimates of each group


@dataclass(frozen=True, slots=True)
class GroupMean:
    group: str
    metric: str
    unit: str
    scored: int
    turns: int
    estimate: Estimate
    pass_rate: float | None


def estimates_of(reader: StoreReader, by: str, wanted: Wanted) -> list[GroupMean]:
    """Estimate each metric's mean and pass rate per group, over all stored turns. Without scores, raise AgentEvalError."""
    turns = reader.groups(by, wanted)
    groups: dict[tuple[str, str], Group] = {}
    units: dict[str, str] = {}
    verdicts: dict[tuple[str, str], list[float]] = {}
    for value in reader.values(by, list(turns), wanted) if turns else ():
        units[value.metric] = value.unit
        group = groups.setdefault((value.group, value.metric), Group(is_amount=is_amount(value.unit)))
        group.add(value.trace, value.value, value.probability)
        if value.passed is not None and value.direction != "neutral":
            verdicts.setdefault((value.group, value.metric), [0.0, 0.0])[1 - value.passed] += 1 / value.probability
    found = [
        GroupMean(
            name, metric, units[metric], group.turns, turns[name], estimate, pass_rate(*verdicts.get((name, metric), (0, 0)))
        )
        for (name, metric), group in sorted(groups.items())
        if (estimate := group.estimate()) is not None
    ]
    if not found:
        raise AgentEvalError(f"{by}: the store contains no scores of matching turns (see outlets.store.attributes)")
    return found


def estimates_report(rows: Sequence[GroupMean]) -> TabularReport:
    heads = ("", "metric", "mean of all turns", "95 % interval", "pass rate", "scored", "of", "n_eff", "")
    cells = []
    for row in rows:
        mean, low, high = (number(value, row.unit) for value in row.estimate[:3])
        few = "few" if row.estimate.n_eff < _FEW else ""
        counts = f"{row.scored:,}", f"{row.turns:,}", f"{row.estimate.n_eff:,.0f}"
        cells.append((row.group, row.metric, mean, f"{low} … {high}", percent(row.pass_rate), *counts, few))
    names = ("group", "metric", "unit", "scored", "turns", "pass_rate")
    data = [{**{name: getattr(row, name) for name in names}, **row.estimate._asdict()} for row in rows]
    return TabularReport("Estimates for all turns", [Table("", heads, cells)], data)
