"""Failed turns, grouped by what went wrong first, with the rate of each group and how it changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ..evaluation.first_fault import Fault
from ..outlets.store.reader import EXAMPLES, FailedTurns, ModeCounts, StoredModes
from ..statistics.intervals import Interval, newcombe, wilson
from .formatting import aligned, count, markdown_table, percent, points
from .html import page, text_table

Trend = Literal["new", "growing", "steady", "shrinking", "gone"]


@dataclass(slots=True)
class FailureMode:
    fault: Fault
    """Its kind, step and error are those of all turns of the mode."""
    turns: tuple[int, int]
    """Number of failed turns in the first and the second half of the time."""
    rate: float
    """Share among all turns. Judged turns stand for those that weren't judged."""
    interval: Interval
    """95 % interval of :attr:`rate`."""
    change: Interval
    """95 % interval of the change of the rate, from the first half to the second."""
    examples: list[str]
    """Ids of some turns, latest first."""

    @property
    def trend(self) -> Trend:
        low, high = self.change
        if low > 0:
            return "growing" if self.turns[0] else "new"
        if high < 0:
            return "shrinking" if self.turns[1] else "gone"
        return "steady"


class FailedTurn(NamedTuple):
    turn_id: str
    at: float
    """Start in Unix seconds, or 0 if unknown."""
    fault: Fault


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
    return StoredModes(modes, totals, middle)


def modes_of(found: StoredModes) -> list[FailureMode]:
    """Return the failure modes with their rates, most frequent first."""
    modes = []
    for fault, halves, examples in found.modes:
        first, second = halves
        whole = FailedTurns(first.turns + second.turns, first.represented + second.represented, first.squares + second.squares)
        share = _share(whole, sum(found.totals))
        before, after = (_share(half, total) for half, total in zip(halves, found.totals, strict=True))
        change = newcombe(before, after) if before[1] and after[1] else (-1.0, 1.0)
        turns = halves[0].turns, halves[1].turns
        modes.append(FailureMode(fault, turns, share[0] / share[1], wilson(*share), change, examples))
    return sorted(modes, key=lambda mode: (-sum(mode.turns), mode.fault))


def _share(failed: FailedTurns, total: int) -> tuple[float, float]:
    """Return a share as failed and all turns: as many as would be known equally well if each stood for one."""
    total = max(total, failed.turns)
    if not failed.turns:
        return 0.0, float(total)
    of_one = failed.squares / failed.represented
    return min(failed.represented, total) / of_one, total / of_one


# --- as texts ------------------------------------------------------------------------------------------------------

_HEADS = ("id", "mode", "failed turns", "of all turns", "trend", "change, 95 % interval", "examples")


def _cells(mode: FailureMode) -> tuple[str, ...]:
    (low, high), (down, up) = mode.interval, mode.change
    return (
        mode.fault.mode, mode.fault.title, f"{sum(mode.turns):,}", f"{percent(mode.rate)} ({percent(low)} … {percent(high)})", mode.trend,
        f"{points(down)} … {points(up)}", " ".join(mode.examples),
    )  # fmt: skip


def _title(modes: Sequence[FailureMode]) -> str:
    return f"{count(sum(sum(mode.turns) for mode in modes), 'turn')} failed, in {count(len(modes), 'failure mode')}"


def as_text(modes: Sequence[FailureMode]) -> str:
    return f"{_title(modes)}\n\n{aligned([_HEADS, *map(_cells, modes)])}"


def as_markdown(modes: Sequence[FailureMode]) -> str:
    return f"**{_title(modes)}**\n\n{markdown_table([_HEADS, *map(_cells, modes)])}"


def as_html(modes: Sequence[FailureMode]) -> str:
    return page("Failure modes", ["<h1>Failure modes</h1>", text_table(_title(modes), _HEADS, map(_cells, modes))])


def as_data(modes: Sequence[FailureMode]) -> list[dict[str, Any]]:
    return [
        {
            "id": mode.fault.mode, "kind": mode.fault.kind, "step": mode.fault.step or None, "error": mode.fault.error or None, "failed": sum(mode.turns), "halves": list(mode.turns),
            "rate": mode.rate, "interval": list(mode.interval), "change": list(mode.change), "trend": mode.trend, "examples": mode.examples,
        }
        for mode in modes
    ]  # fmt: skip


RENDERINGS: Mapping[str, Callable[[Sequence[FailureMode]], str]] = {
    "table": as_text, "markdown": as_markdown, "html": as_html,
}  # fmt: skip
