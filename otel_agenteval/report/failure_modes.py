"""Failed turns, grouped by what went wrong first, with the rate of each group and how it changes."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

from ..core.finding import value_at
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.first_fault import first_fault
from ..statistics.intervals import Interval, newcombe, wilson
from .formatting import aligned, count, markdown_table, percent, points
from .html import page, text_table

Trend = Literal["new", "growing", "steady", "shrinking", "gone"]
_EXAMPLES = 3


class ModeKey(NamedTuple):
    """What turns of a failure mode have in common."""

    kind: str
    """Kind of the first fault, or the failed metric if no rule finds a fault."""
    step: str = ""
    """Name of the tool, model or agent at that step."""

    @property
    def id(self) -> str:
        """Id that depends on nothing else, so that a mode keeps it from day to day."""
        return hashlib.blake2b("\0".join(self).encode(), digest_size=4).hexdigest()

    def __str__(self) -> str:
        return f"{self.kind}: {self.step}" if self.step else self.kind


class FailedTurn(NamedTuple):
    turn_id: str
    at: float
    """Start in Unix seconds, or 0 if unknown."""
    mode: ModeKey


@dataclass(slots=True)
class FailureMode:
    key: ModeKey
    turns: tuple[int, int]
    """Number of failed turns in the first and the second half of the time."""
    rate: float
    """Share among all turns."""
    interval: Interval
    """95 % interval of :attr:`rate`."""
    change: Interval
    """95 % interval of the change of the rate, from the first half to the second."""
    examples: list[str] = field(default_factory=list)
    """Ids of some turns, latest first."""

    @property
    def trend(self) -> Trend:
        low, high = self.change
        if low > 0:
            return "growing" if self.turns[0] else "new"
        if high < 0:
            return "shrinking" if self.turns[1] else "gone"
        return "steady"


def mode_of(turn: Turn, scores: Sequence[Score]) -> ModeKey | None:
    """Return the failure mode of a turn, or None if no score failed."""
    failed = sorted(score.metric for score in scores if score.verdict is False)
    if not failed:
        return None
    fault = first_fault(turn, scores)
    return ModeKey(failed[0]) if fault is None else ModeKey(fault.kind, _step_name(turn, fault.path))


def _step_name(turn: Turn, path: str) -> str:
    name = value_at(turn, f"{path}.{_NAMES.get(path.partition('[')[0], 'name')}")
    return name if isinstance(name, str) else ""


_NAMES = {"llm_calls": "model", "handoffs": "to"}


def modes_of(failed: Iterable[FailedTurn], totals: tuple[int, int], middle: float) -> list[FailureMode]:
    """Return the failure modes, most frequent first.

    Args:
        failed: the failed turns.
        totals: number of all turns before and from ``middle`` on.
        middle: time in Unix seconds that divides the turns into two halves.
    """
    groups: dict[ModeKey, list[FailedTurn]] = {}
    for turn in failed:
        groups.setdefault(turn.mode, []).append(turn)
    found = []
    for key, turns in groups.items():
        after = sum(turn.at >= middle for turn in turns)
        counts = len(turns) - after, after
        before_of, after_of = ((n, max(n, total)) for n, total in zip(counts, totals, strict=True))
        both = before_of[1] and after_of[1]
        found.append(
            FailureMode(
                key,
                counts,
                len(turns) / max(sum(totals), len(turns)),
                wilson(len(turns), max(sum(totals), len(turns))),
                newcombe(before_of, after_of) if both else (-1.0, 1.0),
                [turn.turn_id for turn in sorted(turns, key=lambda turn: -turn.at)[:_EXAMPLES]],
            )
        )
    return sorted(found, key=lambda mode: (-sum(mode.turns), mode.key))


# --- as texts ------------------------------------------------------------------------------------------------------

_HEADS = ("id", "mode", "failed turns", "of all turns", "trend", "change, 95 % interval", "examples")


def _cells(mode: FailureMode) -> tuple[str, ...]:
    (low, high), (down, up) = mode.interval, mode.change
    return (
        mode.key.id, str(mode.key), f"{sum(mode.turns):,}", f"{percent(mode.rate)} ({percent(low)} … {percent(high)})", mode.trend,
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
            "id": mode.key.id, "kind": mode.key.kind, "step": mode.key.step or None, "failed": sum(mode.turns), "halves": list(mode.turns),
            "rate": mode.rate, "interval": list(mode.interval), "change": list(mode.change), "trend": mode.trend, "examples": mode.examples,
        }
        for mode in modes
    ]  # fmt: skip


RENDERINGS: Mapping[str, Callable[[Sequence[FailureMode]], str]] = {
    "table": as_text, "markdown": as_markdown, "html": as_html,
}  # fmt: skip
