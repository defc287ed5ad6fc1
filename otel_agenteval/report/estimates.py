"""Estimates for all turns from the scores in a store, by metric and group, with intervals."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..core.errors import AgentEvalError
from ..core.score import pass_rate
from ..outlets.store.reader import StoreReader, Wanted
from ..statistics.groups import Group, is_amount
from ..statistics.weighted import Estimate
from .formatting import number, percent
from .render import Table, TabularReport

_FEW = 30.0
"""Effective number of turns below which an interval is wide."""


@dataclass(frozen=True, slots=True)
class GroupMean:
    group: str
    metric: str
    unit: str
    scored: int
    turns: int
    estimate: Estimate
    pass_rate: float | None
    """Estimated share of all turns that pass, or None if the metric gives no verdict."""


def estimates_of(reader: StoreReader, by: str, wanted: Wanted) -> list[GroupMean]:
    """Estimate each metric for all stored turns, see :func:`.releases.compare_groups`. Raises AgentEvalError without scores."""
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
        raise AgentEvalError(f"{by}: there is no score of such turns in the store")
    return found


_HEADS = ("", "metric", "mean of all turns", "95 % interval", "pass rate", "scored", "of", "n_eff", "")


def _cells(row: GroupMean) -> tuple[str, ...]:
    of = row.estimate
    low, high = number(of.low, row.unit), number(of.high, row.unit)
    few = "few" if of.n_eff < _FEW else ""
    scored, turns, n_eff = f"{row.scored:,}", f"{row.turns:,}", f"{of.n_eff:,.0f}"
    return row.group, row.metric, number(of.mean, row.unit), f"{low} … {high}", percent(row.pass_rate), scored, turns, n_eff, few


def as_report(rows: Sequence[GroupMean]) -> TabularReport:
    names = ("group", "metric", "unit", "scored", "turns", "pass_rate")
    data = [{**{name: getattr(row, name) for name in names}, **row.estimate._asdict()} for row in rows]
    return TabularReport("Estimates for all turns", [Table("", _HEADS, [*map(_cells, rows)])], data)
