"""Notices about scores that need attention, merged by subject.

A metric that fails a thousand times is one notice with a count.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal

from ...core.score import Score
from ...evaluation.scored_turn import Root, ScoredTurn
from ...metrics.registry import EPSILON
from ..log_events import change_attributes

if TYPE_CHECKING:
    from ...statistics.changes import Change

Kind = Literal["gate", "critical", "failed", "error", "floor", "recovered", "change"]
_MOST_EXAMPLES = 3
_MOST_SERIES = 1_000
"""Number of means that are tracked, one per metric, agent and service."""
_PARTS = 12
"""Number of steps in a sliding window."""


@dataclass(frozen=True, slots=True)
class Example:
    turn_id: str
    trace_id: str
    span_id: str
    value: float | None
    explanation: str | None = None
    """Redacted explanation, which can quote the turn."""


@dataclass(slots=True)
class Notice:
    kind: Kind
    metric: str
    agent: str
    service: str
    count: int
    """Number of scores that it covers."""
    threshold: float | None = None
    """The metric's threshold or, for a floor, the floor."""
    mean: float | None = None
    """For a floor, the mean that crossed it."""
    error_type: str | None = None
    change: Change | None = None
    examples: list[Example] = field(default_factory=list)
    records: int = 1
    """Number of notices merged into it, including itself."""

    @property
    def key(self) -> tuple[str, ...]:
        """Key that notices about the same subject share. A floor and its recovery share one."""
        kind = "floor" if self.kind == "recovered" else self.kind
        tenant = self.change.tenant if self.change is not None else None
        return kind, self.metric, self.agent, self.service, *([tenant] if tenant is not None else [])

    @property
    def facts(self) -> tuple[str, ...]:
        """Facts of the failed turns since a change for the worse."""
        return self.change.facts if self.change is not None else ()

    @property
    def title(self) -> str:
        agent = f" of {self.agent}" if self.agent else ""
        times = "once" if self.count == 1 else f"{self.count:,} times"
        if self.change is not None:
            return self.change.title
        if self.kind == "gate":
            return f"Gate {self.metric}{agent} failed {times}"
        if self.kind == "critical":
            return f"{self.metric}{agent} has a critical finding" + ("" if self.count == 1 else f", {times}")
        if self.kind == "failed":
            return f"{self.metric}{agent} failed {times}"
        if self.kind == "error":
            return f"{self.metric}{agent} couldn't be evaluated {times} ({self.error_type})"
        where = "crossed" if self.kind == "floor" else "is back within"
        return f"{self.metric}{agent} {where} its floor of {self.threshold:g}: mean {self.mean:.3g} of {self.count:,} turns"

    def merged(self, later: Notice) -> Notice:
        records = self.records + later.records
        if later.kind in ("floor", "recovered", "change"):
            return replace(later, records=records)
        examples = (self.examples + later.examples)[:_MOST_EXAMPLES]
        return replace(later, count=self.count + later.count, examples=examples, records=records)

    def to_dict(self) -> dict[str, Any]:
        found = {"title": self.title, **asdict(replace(self, change=None))}
        del found["records"]
        if self.change is not None:
            found["change"] = change_attributes(self.change, "")
        found["examples"] = [{key: value for key, value in one.items() if value is not None} for one in found["examples"]]
        return {key: value for key, value in found.items() if value not in (None, [], "")}


def notice_of(change: Change, root: Root) -> Notice:
    found, service = change.found, str(root.resource.get("service.name") or "")
    examples = [Example(one.turn_id, one.trace_id, one.span_id, None) for one in found.exemplars]
    return Notice("change", change.metric, change.agent, service, round(found.n), None, found.after, None, change, examples)


@dataclass(slots=True)
class _Mean:
    """Mean of a series over a sliding window."""

    parts: deque[tuple[int, float, float, int]] = field(default_factory=deque)
    """Number, weighted sum, sum of weights and number of turns of each step."""
    is_below: bool = False

    def add(self, step: int, value: float, weight: float) -> tuple[float, int]:
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
    """Selector of scores that need a notice. Used by one thread. ``window`` is in seconds."""

    def __init__(self, about: Collection[str], floors: Mapping[str, float], window: float, least: int) -> None:
        self._about = frozenset(about)
        self._floors = floors
        self._step = window / _PARTS
        self._least = least
        self._means: dict[tuple[str, str, str], _Mean] = {}

    def notices(self, scored: ScoredTurn, now: float) -> list[Notice]:
        """Return notices about a turn's redacted scores. ``now`` is in monotonic seconds."""
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
        result = score.summary.outcome
        if result == "error":
            return "error" if "errors" in self._about else None
        if score.severity == "critical" and "critical" in self._about:
            return "critical"
        if result != "fail":
            return None
        if score.policy == "gate" and "gates" in self._about:
            return "gate"
        return "failed" if "failed" in self._about else None

    def _compared(self, scored: ScoredTurn, score: Score, floor: float, now: float) -> Notice | None:
        """Return a notice if this score makes the mean of its series cross the floor."""
        assert score.value is not None  # callers check this
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
