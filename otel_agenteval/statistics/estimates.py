"""Estimates for all turns, computed from the judged turns, by metric and agent.

Each pair of metric and agent has two estimates, for the last hour and for the time since the start. A score that was sampled with
probability p represents 1/p turns. Turns of one trace are correlated, so the variance is computed over traces (see
:mod:`.weighted`). The hourly estimate has a 95 % interval. The estimate since the start has a confidence sequence, which stays
valid if you check it repeatedly. Proxies are cheap scores of every turn, and can narrow both intervals.

Some selected turns don't get a score, because the budget is used up or the judge is unavailable. Scored turns of the same class
then also represent the turns without a score. The classes are turns selected by a rule, turns selected at random, and turns that
don't need a judge call, such as empty turns. If a class has selected turns but no scores, the estimate is missing.

Memory usage doesn't grow with traffic. This module keeps only sums per minute and the latest scores, which revisions can replace.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Literal, NamedTuple

from ..core import forks
from ..core.clock import Clock
from ..core.label_values import LabelValues
from ..core.semconv import ESTIMATE_HIGH, ESTIMATE_LOW, ESTIMATE_MEAN, ESTIMATE_N, OTHER
from ..core.telemetry import Telemetry
from .weighted import Estimate, Everyone, Sums, padded, vector

_PARTS = 60
_KEPT_TOGETHER = 10
"""Number of time parts (minutes, if the window is an hour) that are combined into one part in saved states."""
_EVER = -1
SINCE_START = "start"
_SERIES = 1_000
_TRACES = 10_000
_TURNS = 50_000
"""Maximum number of scores (one per metric and turn) that revisions can still replace."""
_LEAST_WEIGHT = 0.5
"""Minimum sum of weights. A smaller sum is a rounding error, because each turn has a weight of at least 1."""


Group = Literal["rule", "drawn", "itself"]
"""Class of a turn: selected by a rule, drawn at random, or (``itself``) scored without a judge call."""
_GROUPS: tuple[Group, ...] = ("rule", "drawn", "itself")


def group_of(decided_by: str) -> Group:
    return "rule" if decided_by == "rule" else "drawn"


@dataclass(slots=True)
class _TimePart:
    everyone: Everyone = field(default_factory=Everyone)
    sums: dict[Group, Sums] = field(default_factory=dict)
    chosen: dict[Group, float] = field(default_factory=dict)
    """Total weight of turns that were selected for a judge call, by class."""

    def join(self, other: _TimePart) -> None:
        self.everyone = self.everyone.plus(other.everyone)
        for group, sums in other.sums.items():
            self.sums[group] = self.sums[group].plus(sums) if group in self.sums else sums
        for group, chosen in other.chosen.items():
            self.chosen[group] = self.chosen.get(group, 0.0) + chosen


@dataclass(slots=True)
class _TraceSums:
    """Sums for one recent trace, whose turns can still get new or changed scores."""

    part: int
    sums: dict[Group, tuple[int, Any]] = field(default_factory=dict)
    """Number of scores and sum of the scores' vectors, by class."""


class _TurnScore(NamedTuple):
    trace: str
    group: Group
    vector: Any
    revision: int


@dataclass(slots=True)
class _Turn:
    key: tuple[str, str]
    """Metric and agent of the series. Revisions of a turn stay in this series, even if their agent differs."""
    chosen: tuple[int, Group, float] | None = None
    """Tuple: number of the time part in which the turn was selected, the turn's class, and the turn's weight."""
    certain: bool = False
    answer: _TurnScore | None = None
    proxies: Any = None


class Estimates:
    """Thread-safe estimates by metric and agent, for a moving window of ``window`` seconds and since the start."""

    def __init__(self, window: float, clock: Clock) -> None:
        self._length = window / _PARTS
        self._clock = clock
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[tuple[str, str], dict[int, _TimePart]] = {}
        self._places: LabelValues[tuple[str, str]] = LabelValues(_SERIES)
        """Series that have their own estimate. Scores of all other series are added to the metric's ``__other__`` series."""
        self._traces: OrderedDict[tuple[tuple[str, str], str], _TraceSums] = OrderedDict()
        self._turns: OrderedDict[tuple[str, str], _Turn] = OrderedDict()
        self._changes = 0
        self._known: tuple[tuple[int, int], dict[tuple[str, str], Estimate], dict[tuple[str, str], Estimate]] | None = None
        """Cached estimates, and the version of the data from which they were computed. A scrape reads the estimates four times."""
        self._seen: OrderedDict[tuple[str, str], tuple[tuple[str, str], int, Any]] = OrderedDict()
        """Series, time part, and proxies of each turn, by metric and turn ID."""

    def add_proxies(self, metric: str, agent: str, turn_id: str, proxies: Sequence[float]) -> None:
        """Record a turn's proxies for a metric. New proxies replace earlier proxies for the same turn and metric."""
        known = padded(proxies)
        with self._lock:
            key, number, part = self._now(metric, agent, 1)
            before = self._seen.pop((metric, turn_id), None)
            if before is not None:
                for old in self._parts_of(before[0], before[1]):
                    old.everyone.add(before[2], -1)
            part.everyone.add(known)
            self._series[key][_EVER].everyone.add(known)
            self._seen[metric, turn_id] = key, number, known
            if len(self._seen) > _TURNS:
                self._seen.popitem(last=False)
            turn = self._turns.get((metric, turn_id))
            if turn is not None:
                turn.proxies = known

    def choose(self, metric: str, agent: str, probability: float, group: Group, turn_id: str | None = None) -> None:
        """Record that a turn was selected with ``probability``. Later revisions of this turn aren't counted again."""
        if probability <= 0:
            return
        with self._lock:
            key, number, part = self._now(metric, agent, 1)
            if turn_id is not None:
                turn = self._turn(metric, turn_id, key)
                if turn.chosen is not None:
                    return
                if turn.key != key:
                    key, number, part = self._now(*turn.key, 0)
                turn.chosen = number, group, 1 / probability
            for one in (part, self._series[key][_EVER]):
                one.chosen[group] = one.chosen.get(group, 0.0) + 1 / probability

    def make_certain(self, metric: str, turn_id: str) -> None:
        """Set a sampled turn's weight to 1, because a rule now selects the turn, for example after late feedback."""
        with self._lock:
            turn = self._turns.get((metric, turn_id))
            if turn is None or turn.certain:
                return
            self._changes += 1
            turn.certain = True
            if turn.chosen is not None:
                number, group, weight = turn.chosen
                for part in self._parts_of(turn.key, number):
                    part.chosen[group] = max(0.0, part.chosen.get(group, 0.0) - weight)
                    part.chosen["rule"] = part.chosen.get("rule", 0.0) + 1.0
                turn.chosen = number, "rule", 1.0
            if turn.answer is not None and turn.answer.group != "itself":
                answer = turn.answer
                self._count(turn.key, answer, -1)
                turn.answer = answer._replace(group="rule", vector=answer.vector / answer.vector[0])
                self._count(turn.key, turn.answer, 1)

    def add(
        self, metric: str, agent: str, trace: str, turn_id: str, value: float, probability: float, group: Group = "drawn",
        revision: int = 1, replaces: Iterable[str] = (),
    ) -> None:  # fmt: skip
        """Add a score with its sampling probability. The score replaces an earlier score of the same turn.

        The variance is computed over traces. ``turn_id`` is the ID of the turn's first revision. A late score of an earlier
        revision is ignored. ``replaces`` contains the IDs of other turns that were merged into this turn.
        """
        if probability <= 0 or not math.isfinite(value):
            return
        with self._lock:
            # For turns of other classes, the series' use was counted when they were selected.
            turn = self._turn(metric, turn_id, self._now(metric, agent, 1 if group == "itself" else 0)[0])
            if turn.answer is not None and turn.answer.revision > revision:
                return
            if turn.certain and group != "itself":
                probability, group = 1.0, "rule"
            for one in (turn, *(part for other in replaces if (part := self._turns.get((metric, other))) is not None)):
                if one.answer is not None:
                    self._count(one.key, one.answer, -1)
                    one.answer = None
            proxies = turn.proxies
            if proxies is None:  # the mean of all turns
                ever = self._series.get(turn.key, {}).get(_EVER)
                proxies = ever.everyone.total / ever.everyone.n if ever is not None and ever.everyone.n > 0 else padded(())
            turn.answer = _TurnScore(trace, group, vector(1 / probability, value, proxies), revision)
            for sums in self._count(turn.key, turn.answer, 1):
                sums.widen(value)

    def _parts_of(self, key: tuple[str, str], number: int) -> list[_TimePart]:
        parts = self._series.get(key, {})
        return [parts[one] for one in (number, _EVER) if one in parts]

    def _turn(self, metric: str, turn_id: str, key: tuple[str, str]) -> _Turn:
        found = self._turns.pop((metric, turn_id), None)
        if found is None:
            seen = self._seen.get((metric, turn_id))
            found = _Turn(key, proxies=None if seen is None else seen[2])
        self._turns[metric, turn_id] = found
        if len(self._turns) > _TURNS:
            self._turns.popitem(last=False)
        return found

    def _count(self, key: tuple[str, str], answer: _TurnScore, sign: int) -> list[Sums]:
        """Add a score to the sums of its time part and of all time, and return both sums. A ``sign`` of -1 removes the score."""
        key, number, _ = self._now(*key, 0)
        parts = self._series[key]
        trace = self._traces.pop((key, answer.trace), None)
        if trace is None or trace.part not in parts:
            if sign < 0:  # its time part has expired
                return []
            trace = _TraceSums(number)
        found = [part.sums.setdefault(answer.group, Sums()) for part in (parts[trace.part], parts[_EVER])]
        count, before = trace.sums.get(answer.group, (0, None))
        after = answer.vector * sign if before is None else before + sign * answer.vector
        for sums in found:
            if before is not None:
                sums.add(before, sign=-1)
            if count + sign:
                sums.add(after)
        if count + sign:
            trace.sums[answer.group] = count + sign, after
        else:
            trace.sums.pop(answer.group, None)
        self._traces[key, answer.trace] = trace
        if len(self._traces) > _TRACES:
            self._traces.popitem(last=False)
        return found

    def _now(self, metric: str, agent: str, sightings: int) -> tuple[tuple[str, str], int, _TimePart]:
        """Return the key of the series for a new score, the number of the current time part, and this time part."""
        now = self._clock.monotonic()
        self._changes += 1
        number = int(now // self._length)
        key = (metric, agent)
        if key in self._places:
            self._places.use(key, now, sightings)
        elif agent != OTHER:
            admitted, leaving = self._places.ask(key, now, sightings)
            if leaving is not None:
                for trace in [trace for trace in self._traces if trace[0] == leaving]:
                    del self._traces[trace]
                others = self._series.setdefault((leaving[0], OTHER), {})
                for old, part in self._series.pop(leaving, {}).items():
                    others.setdefault(old, _TimePart()).join(part)
            if not admitted:
                key = (metric, OTHER)
        parts = self._series.setdefault(key, {})
        if number not in parts:
            for old in [old for old in parts if old != _EVER and old <= number - _PARTS]:
                del parts[old]
            parts[number] = _TimePart()
            parts.setdefault(_EVER, _TimePart())
        return key, number, parts[number]

    def read(self) -> dict[tuple[str, str], Estimate]:
        return self._read()[0]

    def read_since_start(self) -> dict[tuple[str, str], Estimate]:
        """Return the estimates since the start. The intervals stay valid if you check them repeatedly."""
        return self._read()[1]

    def _read(self) -> tuple[dict[tuple[str, str], Estimate], dict[tuple[str, str], Estimate]]:
        newest = int(self._clock.monotonic() // self._length)
        with self._lock:
            state = newest, self._changes
            if self._known is not None and self._known[0] == state:
                return self._known[1:]
            recent = [
                (key, *_total([part for number, part in parts.items() if number > newest - _PARTS and number != _EVER]))
                for key, parts in self._series.items()
            ]
            ever = [(key, *_total([parts[_EVER]])) for key, parts in self._series.items() if _EVER in parts]
        window, since = (
            {key: estimate for key, sums, everyone in totals if sums is not None and (estimate := of(sums, everyone)) is not None}
            for of, totals in ((Sums.estimate, recent), (Sums.sequence, ever))
        )
        self._known = state, window, since
        return self._known[1:]

    # --- state across restarts

    def state(self) -> list[list[Any]]:
        """Return all series as plain values, with one time part per ten minutes and one for all time."""
        newest = int(self._clock.monotonic() // self._length)
        found = []
        with self._lock:
            for key, parts in self._series.items():
                gathered: dict[int, _TimePart] = {}
                for number, part in parts.items():
                    age = newest - number
                    if number == _EVER or age < _PARTS:
                        group = _EVER if number == _EVER else age // _KEPT_TOGETHER * _KEPT_TOGETHER
                        gathered.setdefault(group, _TimePart()).join(part)
                kept = [
                    [age, part.everyone.state(), {group: sums.state() for group, sums in part.sums.items()}, part.chosen]
                    for age, part in gathered.items()
                ]
                found.append([*key, kept])
        return found

    def restore(self, state: Any, passed: float = 0.0) -> None:
        """Restore the output of :meth:`state` from ``passed`` seconds ago. For an invalid state, raise an error."""
        newest = int(self._clock.monotonic() // self._length)
        found: dict[tuple[str, str], dict[int, _TimePart]] = {}
        for metric, agent, kept in state:
            parts = found.setdefault((str(metric), str(agent)), {_EVER: _TimePart()})
            for age, everyone, sums, chosen in kept:
                older = int(age) + int(passed // self._length)
                if age != _EVER and older >= _PARTS:
                    continue
                parts[_EVER if age == _EVER else newest - older] = _TimePart(
                    Everyone.of_state(everyone),
                    {group: Sums.of_state(sums[group]) for group in _GROUPS if group in sums},
                    {group: float(chosen[group]) for group in _GROUPS if group in chosen},
                )
        with self._lock:
            self._changes += 1
            for key, parts in found.items():
                if key[1] != OTHER:
                    self._places.ask(key, self._clock.monotonic())
                self._series[key] = parts

    def watch(self, telemetry: Telemetry) -> None:
        for name, attribute in ((ESTIMATE_MEAN, "mean"), (ESTIMATE_LOW, "low"), (ESTIMATE_HIGH, "high"), (ESTIMATE_N, "n_eff")):
            telemetry.watch(name, partial(self._gauges, attribute))

    def _gauges(self, attribute: str) -> Iterator[tuple[Mapping[str, str], float]]:
        for window, estimates in (("1h", self.read()), (SINCE_START, self.read_since_start())):
            for (metric, agent), estimate in estimates.items():
                yield {"metric": metric, "agent": agent, "window": window}, getattr(estimate, attribute)


def _total(parts: Sequence[_TimePart]) -> tuple[Sums | None, Everyone]:
    """Return the total sums and the total proxies. If a class has selected turns but no scores, the sums are None."""
    total, everyone = Sums(), Everyone()
    for part in parts:
        everyone = everyone.plus(part.everyone)
    for group in _GROUPS:
        answered = Sums()
        for part in parts:
            if group in part.sums:
                answered = answered.plus(part.sums[group])
        chosen = sum(part.chosen.get(group, 0.0) for part in parts)
        if answered.weight < _LEAST_WEIGHT:
            if chosen:
                return None, everyone
            continue
        # Turns that another process selected, or that were selected before the window, represent only themselves.
        total = total.plus(answered.times(max(1.0, chosen / answered.weight)))
    return total, everyone
