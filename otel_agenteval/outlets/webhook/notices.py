"""What is worth a message, gathered by what it is about: a metric that fails a thousand times is one notice with a number."""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ...core.score import Score
from ...evaluation.scored_turn import ScoredTurn
from ...metrics.registry import EPSILON
from ..accounting import outcome
from ..change_event import change_attributes

if TYPE_CHECKING:
    from ...statistics.changes import Change

Kind = Literal["gate", "failed", "error", "floor", "recovered", "change"]
_MOST_EXAMPLES = 3
_MOST_SERIES = 1_000
"""Metrics times agents of which means are kept."""
_PARTS = 12
"""Parts of a window that leave it one after the other."""


@dataclass(frozen=True, slots=True)
class Example:
    """A turn that shows what a notice is about."""

    turn_id: str
    trace_id: str
    span_id: str
    value: float | None
    explanation: str | None = None
    """Redacted, and can quote the agent."""


@dataclass(slots=True)
class Notice:
    """One thing to look at."""

    kind: Kind
    metric: str
    agent: str
    service: str
    count: int
    """Scores that it is about."""
    threshold: float | None = None
    """Of the metric; of a floor, the floor."""
    mean: float | None = None
    """Of a floor: the mean that crossed it."""
    error_type: str | None = None
    change: Change | None = None
    examples: list[Example] = field(default_factory=list)
    records: int = 1
    """Notices that were merged into it, with itself."""

    @property
    def key(self) -> tuple[str, ...]:
        """The same for notices about the same thing; a floor and its recovery are one thing."""
        kind = "floor" if self.kind == "recovered" else self.kind
        return kind, self.metric, self.agent, self.service

    @property
    def title(self) -> str:
        """What happened, in a few words."""
        agent = f" of {self.agent}" if self.agent else ""
        times = "once" if self.count == 1 else f"{self.count:,} times"
        if self.change is not None:
            return self.change.title
        if self.kind == "gate":
            return f"Gate {self.metric}{agent} failed {times}"
        if self.kind == "failed":
            return f"{self.metric}{agent} failed {times}"
        if self.kind == "error":
            return f"{self.metric}{agent} could not be evaluated {times} ({self.error_type})"
        where = "has left" if self.kind == "floor" else "is back within"
        return f"{self.metric}{agent} {where} its floor of {self.threshold:g}: mean {self.mean:.3g} of {self.count:,} turns"

    def merged(self, later: Notice) -> Notice:
        """This notice and a later one about the same thing."""
        records = self.records + later.records
        if later.kind in ("floor", "recovered", "change"):
            return replace(later, records=records)
        examples = (self.examples + later.examples)[:_MOST_EXAMPLES]
        return replace(later, count=self.count + later.count, examples=examples, records=records)

    def to_dict(self) -> dict[str, Any]:
        """For JSON; what is not known is left out."""
        found = {"title": self.title, **asdict(replace(self, change=None))}
        del found["records"]
        if self.change is not None:
            found["change"] = change_attributes(self.change, "")
        found["examples"] = [{key: value for key, value in one.items() if value is not None} for one in found["examples"]]
        return {key: value for key, value in found.items() if value not in (None, [], "")}


def notice_of(change: Change, service: str) -> Notice:
    """The notice of a change."""
    examples = [Example(one.turn_id, one.trace_id, one.span_id, None) for one in change.found.exemplars]
    found = change.found
    return Notice("change", change.metric, change.agent, service, round(found.n), None, found.after, None, change, examples)


class _Mean:
    """The mean of a series over a window that moves in steps."""

    def __init__(self) -> None:
        self.parts: deque[tuple[int, float, float, int]] = deque()
        """Of each step: its number, the weighted sum, the weights, and the turns."""
        self.is_below = False

    def add(self, step: int, value: float, weight: float) -> tuple[float, int]:
        """The mean with one more value, and of how many turns it is."""
        if self.parts and self.parts[-1][0] == step:
            _, total, weights, turns = self.parts.pop()
            self.parts.append((step, total + value * weight, weights + weight, turns + 1))
        else:
            self.parts.append((step, value * weight, weight, 1))
        while self.parts[0][0] <= step - _PARTS:
            self.parts.popleft()
        weights = sum(part[2] for part in self.parts)
        return sum(part[1] for part in self.parts) / weights, sum(part[3] for part in self.parts)


class Watch:
    """Looks at scores, and says what is worth a notice. Used by one thread.

    Args:
        about: ``gates``, ``failed``, ``errors``.
        floors: the worst mean that each metric may have.
        window: seconds over which means are taken.
        least: turns before a mean is compared.
    """

    def __init__(self, about: Collection[str], floors: Mapping[str, float], window: float, least: int) -> None:
        self._about = frozenset(about)
        self._floors = floors
        self._step = window / _PARTS
        self._least = least
        self._means: dict[tuple[str, str, str], _Mean] = {}

    def notices(self, scored: ScoredTurn, now: float) -> list[Notice]:
        """What is worth saying about a turn's scores.

        Args:
            scored: with its scores, redacted.
            now: monotonic seconds.
        """
        found = []
        agent, service = scored.turn.agent or "", scored.turn.service or ""
        for score in scored.scores:
            kind = self._kind(score)
            if kind is not None:
                error = score.error_type if kind == "error" else None
                example = _example(scored, score)
                found.append(Notice(kind, score.metric, agent, service, 1, score.threshold, None, error, examples=[example]))
            floor = self._floors.get(score.metric)
            if floor is not None and score.status == "ok" and score.value is not None and scored.new and not score.vacuous:
                notice = self._compared(scored, score, floor, now)
                if notice is not None:
                    found.append(notice)
        return found

    def _kind(self, score: Score) -> Kind | None:
        said = outcome(score)
        if said == "error":
            return "error" if "errors" in self._about else None
        if said != "fail":
            return None
        if score.policy == "gate" and "gates" in self._about:
            return "gate"
        return "failed" if "failed" in self._about else None

    def _compared(self, scored: ScoredTurn, score: Score, floor: float, now: float) -> Notice | None:
        """A notice if the mean of a series has left its floor, or come back, with this score."""
        assert score.value is not None  # who calls this has looked
        key = score.metric, scored.turn.agent or "", scored.turn.service or ""
        series = self._means.get(key)
        if series is None:
            if len(self._means) >= _MOST_SERIES:
                return None
            series = self._means[key] = _Mean()
        judged = scored.judged
        weight = 1 / judged.probability if judged is not None and judged.probability > 0 else 1.0
        mean, turns = series.add(int(now // self._step), score.value, weight)
        if turns < self._least:
            return None
        below = mean > floor + EPSILON if score.direction == "down" else mean < floor - EPSILON
        if below == series.is_below:
            return None
        series.is_below = below
        examples = [_example(scored, score)] if below else []
        return Notice("floor" if below else "recovered", *key, turns, floor, mean, examples=examples)


def _example(scored: ScoredTurn, score: Score) -> Example:
    root = scored.root
    return Example(scored.turn.turn_id, f"{root.trace_id:032x}", f"{root.span_id:016x}", score.value, score.explanation)
