"""Failed turns, grouped by their first fault, with the rate of each group and how it changes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..evaluation.first_fault import Fault
from ..outlets.store.reader import EXAMPLES, FailedTurns, ModeCounts, StoredModes
from ..outlets.turn_text import number_of
from ..statistics.intervals import Interval, newcombe, wilson
from .formatting import percent, points
from .render import Table, TabularReport
from .topics import Topic

Trend = Literal["new", "growing", "steady", "shrinking", "gone"]


class ModeShare(NamedTuple):
    """Failed turns of a mode in a half of the time, or in a group."""

    group: str | None
    turns: int
    rate: float | None
    """Share among the turns. Judged turns stand for those that weren't judged. None without turns."""
    interval: Interval
    """95 % interval of :attr:`rate`."""


@dataclass(slots=True)
class FailureMode:
    fault: Fault
    """Its kind, step and error are those of all turns of the mode."""
    parts: list[ModeShare]
    """The two halves of the time, or the groups in order of appearance."""
    rate: float
    """Share among all turns."""
    interval: Interval
    """95 % interval of :attr:`rate`."""
    change: Interval
    """95 % interval of the change of the rate, from the last part but one to the last."""
    examples: list[str]
    """Ids of some turns, latest first."""
    topics: list[Topic] = field(default_factory=list)
    """What its turns' texts are about, if they were compared."""

    @property
    def turns(self) -> int:
        """Number of failed turns."""
        return sum(part.turns for part in self.parts)

    @property
    def trend(self) -> Trend:
        low, high = self.change
        if low > 0:
            return "growing" if self.parts[-2].turns else "new"
        if high < 0:
            return "shrinking" if self.parts[-1].turns else "gone"
        return "steady"


class FailedTurn(NamedTuple):
    turn_id: str
    at: float
    """Start in Unix seconds, or 0 if unknown."""
    fault: Fault
    text: str = ""
    """What its texts contain about the failure."""


def counted(failed: Iterable[FailedTurn], totals: tuple[int, int], middle: float) -> StoredModes:
    """Count failed turns as a store does."""
    groups: dict[str, list[FailedTurn]] = {}
    for turn in sorted(failed, key=lambda turn: -turn.at):
        groups.setdefault(turn.fault.mode, []).append(turn)
    modes = []
    for turns in groups.values():
        after = sum(turn.at >= middle for turn in turns)
        before = len(turns) - after
        examples = [turn.turn_id for turn in turns[:EXAMPLES]]
        modes.append(
            ModeCounts(turns[0].fault, (FailedTurns(before, before, before), FailedTurns(after, after, after)), examples)
        )
    return StoredModes(modes, totals)


def modes_of(found: StoredModes) -> list[FailureMode]:
    """Return the failure modes with their rates, most frequent first."""
    modes = []
    for fault, parts, examples in found.modes:
        whole = FailedTurns(*(sum(column) for column in zip(*parts, strict=True)))
        share = _share(whole, sum(found.totals))
        of_parts = [_share(part, total) for part, total in zip(parts, found.totals, strict=True)]
        shares = [
            ModeShare(group, part.turns, one[0] / one[1] if one[1] else None, wilson(*one) if one[1] else (0.0, 1.0))
            for group, part, one in zip(found.groups or (None, None), parts, of_parts, strict=True)
        ]
        known = len(of_parts) > 1 and of_parts[-2][1] and of_parts[-1][1]
        change = newcombe(of_parts[-2], of_parts[-1]) if known else (-1.0, 1.0)
        modes.append(FailureMode(fault, shares, share[0] / share[1], wilson(*share), change, examples))
    return sorted(modes, key=lambda mode: (-mode.turns, mode.fault))


def _share(failed: FailedTurns, total: int) -> tuple[float, float]:
    """Return a share as failed and all turns: as many as would be known equally well if each stood for one."""
    total = max(total, failed.turns)
    if not failed.turns:
        return 0.0, float(total)
    of_one = failed.squares / failed.represented
    return min(failed.represented, total) / of_one, total / of_one


# --- as texts ------------------------------------------------------------------------------------------------------

_MOST_GROUPS = 4
"""Number of groups in a table, the last to appear."""


def _cells(mode: FailureMode) -> tuple[str, ...]:
    down, up = mode.change
    shares = [_rate(part.rate, part.interval) for part in mode.parts if part.group is not None][-_MOST_GROUPS:]
    return (
        mode.fault.mode, mode.fault.title, f"{mode.turns:,}", *(shares or [_rate(mode.rate, mode.interval)]), mode.trend,
        f"{points(down)} … {points(up)}", " ".join(mode.examples),
    )  # fmt: skip


def _rate(rate: float | None, interval: Interval) -> str:
    low, high = interval
    return f"{percent(rate)} ({percent(low)} … {percent(high)})"


def as_report(modes: Sequence[FailureMode]) -> TabularReport:
    title = f"{number_of(sum(mode.turns for mode in modes), 'turn')} failed, in {number_of(len(modes), 'failure mode')}"
    groups = [part.group for part in modes[0].parts if part.group is not None][-_MOST_GROUPS:] if modes else []
    heads = (
        "id",
        "mode",
        "failed turns",
        *(map("of {}".format, groups) if groups else ["of all turns"]),
        f"trend, {groups[-2]} → {groups[-1]}" if len(groups) > 1 else "trend",
        "change, 95 % interval",
        "examples",
    )
    rows: list[tuple[str, ...]] = []
    for mode in modes:
        cells = _cells(mode)
        rows.append(cells)
        for topic in mode.topics:
            first = f"  {topic.about.id}", f"  {topic.title}", f"{topic.turns:,}", f"stability {topic.about.stability:.2f}"
            rows.append((*first, *[""] * (len(cells) - len(first) - 1), " ".join(one.turn_id for one in topic.nearest)))
    return TabularReport("Failure modes", [Table(title, heads, rows)], as_data(modes))


def as_data(modes: Sequence[FailureMode]) -> list[dict[str, Any]]:
    return [
        {
            "id": mode.fault.mode, "kind": mode.fault.kind, "step": mode.fault.step or None, "error": mode.fault.error or None, "failed": mode.turns,
            **_parts(mode),
            "rate": mode.rate, "interval": list(mode.interval), "change": list(mode.change), "trend": mode.trend, "examples": mode.examples,
            "topics": [
                {
                    "id": topic.about.id, "name": topic.about.name, "description": topic.about.description or None, "failed": topic.turns,
                    "stability": topic.about.stability, "examples": [one.turn_id for one in topic.nearest],
                }
                for topic in mode.topics
            ],
        }
        for mode in modes
    ]  # fmt: skip


def _parts(mode: FailureMode) -> dict[str, Any]:
    if any(part.group is None for part in mode.parts):
        return {"halves": [part.turns for part in mode.parts]}
    return {"groups": [{**part._asdict(), "interval": list(part.interval)} for part in mode.parts]}
