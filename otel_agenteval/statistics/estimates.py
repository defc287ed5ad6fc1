"""What judged metrics would say of all turns, from those that were judged: by metric and agent, over the last hour and since the start.

A score that was made with probability p stands for 1/p turns; turns of one trace stand or fall together, so the trace is the unit of the variance
(:mod:`.weighted` has the mathematics). Of the hour there is a 95 % interval. Since the start there is a confidence sequence, whose interval holds at every
look at once. Both are helped by proxies, which every turn has that takes part in the draw.

Not every turn that was chosen gets its answer: the budget is used up, the judge is out. Those that did stand for the others of their
class as well: turns that a rule chose for those of rules, turns that were drawn for drawn ones. What answers for itself, as an empty turn
does, is a class of its own, else it would weigh more and more. Where a class has no answer at all, there is no estimate.

Sums are kept by minute, never single scores: the memory does not grow with traffic.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from ..core.clock import Clock
from ..core.label_values import LabelValues
from ..core.semconv import ESTIMATE_HIGH, ESTIMATE_LOW, ESTIMATE_MEAN, ESTIMATE_N, OTHER
from ..core.telemetry import Telemetry
from .weighted import Estimate, Everyone, Sums, padded, vector

_PARTS = 60
_KEPT_TOGETHER = 10
"""Parts that are kept as one over restarts."""
_EVER = -1
"""The part of all time."""
SINCE_START = "start"
"""The label of the window of all time."""
_SERIES = 1_000
_TRACES = 10_000
_TURNS = 50_000
"""Turns, by metric, that a revision can replace."""
_LEAST_WEIGHT = 0.5
"""Less than one turn weighs: sums below it are what rounding leaves when everything was taken out again."""


Group = Literal["rule", "drawn", "itself"]
"""How a turn got its score: chosen by a rule and asked about, drawn and asked about, or without a question."""
_GROUPS: tuple[Group, ...] = ("rule", "drawn", "itself")


def group_of(decided_by: str) -> Group:
    """The class of a turn that a model is asked about, by what chose it."""
    return "rule" if decided_by == "rule" else "drawn"


class _Part:
    """One part of the time of one metric and agent."""

    __slots__ = ("chosen", "everyone", "sums")

    def __init__(self) -> None:
        self.everyone = Everyone()
        self.sums: dict[Group, Sums] = {}
        self.chosen: dict[Group, float] = {}
        """Sum of the weights of turns that were to be asked about."""

    def join(self, other: _Part) -> None:
        """Add what another part has."""
        self.everyone = self.everyone.plus(other.everyone)
        for group, sums in other.sums.items():
            self.sums[group] = self.sums[group].plus(sums) if group in self.sums else sums
        for group, chosen in other.chosen.items():
            self.chosen[group] = self.chosen.get(group, 0.0) + chosen


class _Trace:
    """A trace whose scores may be joined by others, or be replaced."""

    __slots__ = ("part", "sums")

    def __init__(self, part: int) -> None:
        self.part = part
        self.sums: dict[Group, tuple[int, Any]] = {}
        """How many scores, and the sum of their vectors."""


class _Answer(NamedTuple):
    """What a metric said of a turn."""

    trace: str
    group: Group
    vector: Any
    revision: int


class _Turn:
    """What one metric is known to have made of one turn, so that its revisions take its place."""

    __slots__ = ("answer", "certain", "chosen", "key", "proxies")

    def __init__(self, key: tuple[str, str]) -> None:
        self.key = key
        """Metric and agent that it counts towards: a revision may find that the agent is another one."""
        self.chosen: tuple[int, Group, float] | None = None
        """The part of the time in which it was chosen, how, and what it stands for."""
        self.certain = False
        """Whether it turned out that it would have been chosen whatever was drawn."""
        self.answer: _Answer | None = None
        self.proxies: Any = None


class Estimates:
    """Estimates by metric and agent over the time that ends now. Thread-safe.

    Args:
        window: seconds.
        clock: moves it.
        label: its name.
    """

    def __init__(self, window: float, clock: Clock, label: str = "1h") -> None:
        self._length = window / _PARTS
        self._clock = clock
        self._label = label
        self.after_fork_in_child()

    def after_fork_in_child(self) -> None:
        """Start empty: the parent reports what it saw."""
        self._lock = threading.Lock()
        self._series: dict[tuple[str, str], dict[int, _Part]] = {}
        """By metric and agent, then by part of the time."""
        self._places: LabelValues[tuple[str, str]] = LabelValues(_SERIES)
        """Which of them are kept apart from other agents' scores of the same metric."""
        self._traces: OrderedDict[tuple[tuple[str, str], str], _Trace] = OrderedDict()
        self._turns: OrderedDict[tuple[str, str], _Turn] = OrderedDict()
        """By metric and turn."""
        self._changes = 0
        self._known: tuple[tuple[int, int], dict[tuple[str, str], Estimate], dict[tuple[str, str], Estimate]] | None = None
        """What was read last, and of which state: a scrape asks for four fields of it."""
        self._seen: OrderedDict[tuple[str, str], tuple[tuple[str, str], int, Any]] = OrderedDict()
        """By metric and turn: where a turn's proxies were counted, and what they are."""

    def see(self, metric: str, agent: str, turn_id: str, proxies: Sequence[float]) -> None:
        """A turn takes part in the draw for a metric, and this is known of it. Of a turn that is seen again, what is known takes the place of what was."""
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
        """A turn was chosen with a probability, and a model is to be asked about it. A turn counts once, however often it is revised."""
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
        """A turn that was drawn turned out to be one that a rule would have chosen, as by what its user said later: it stands for itself alone."""
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
        self,
        metric: str,
        agent: str,
        trace: str,
        turn_id: str,
        value: float,
        probability: float,
        group: Group = "drawn",
        revision: int = 1,
        replaces: Iterable[str] = (),
    ) -> None:
        """A score that was made with a probability; of the same turn it takes the place of the one before.

        Args:
            metric: the metric's name.
            agent: the turn's agent.
            trace: the cluster.
            turn_id: the turn, under the id that it had first.
            value: the score.
            probability: of its being made.
            group: how the turn got it.
            revision: of the turn. A score of an earlier one that comes later changes nothing.
            replaces: ids of other turns that turned out to be parts of this one.
        """
        if probability <= 0 or not math.isfinite(value):
            return
        with self._lock:
            # The others were seen when they were chosen.
            turn = self._turn(metric, turn_id, self._now(metric, agent, 1 if group == "itself" else 0)[0])
            if turn.answer is not None and turn.answer.revision > revision:
                return
            if turn.certain and group != "itself":
                probability, group = 1.0, "rule"
            for one in (turn, *(part for other in replaces if (part := self._turns.get((metric, other))) is not None)):
                if one.answer is not None:
                    self._count(one.key, one.answer, -1)
                    one.answer = None
            proxies = self._usual(turn.key) if turn.proxies is None else turn.proxies
            turn.answer = _Answer(trace, group, vector(1 / probability, value, proxies), revision)
            for sums in self._count(turn.key, turn.answer, 1):
                sums.least, sums.most = min(sums.least, value), max(sums.most, value)

    def _usual(self, key: tuple[str, str]) -> Any:
        """The mean of everybody's proxies, for a turn that was seen by another process or too long ago: it moves nothing."""
        ever = self._series.get(key, {}).get(_EVER)
        return ever.everyone.total / ever.everyone.n if ever is not None and ever.everyone.n > 0 else padded(())

    def _parts_of(self, key: tuple[str, str], number: int) -> list[_Part]:
        """A part of the time and the part of all time, as far as they are kept."""
        parts = self._series.get(key, {})
        return [parts[one] for one in (number, _EVER) if one in parts]

    def _turn(self, metric: str, turn_id: str, key: tuple[str, str]) -> _Turn:
        found = self._turns.pop((metric, turn_id), None)
        if found is None:
            found = _Turn(key)
            seen = self._seen.get((metric, turn_id))
            found.proxies = None if seen is None else seen[2]
        self._turns[metric, turn_id] = found
        if len(self._turns) > _TURNS:
            self._turns.popitem(last=False)
        return found

    def _count(self, key: tuple[str, str], answer: _Answer, sign: int) -> list[Sums]:
        """Add an answer to the sums of its time and of all time, or with a sign of -1 take it out again, with the others of its trace."""
        key, number, _ = self._now(*key, 0)
        parts = self._series[key]
        trace = self._traces.pop((key, answer.trace), None)
        if trace is None or trace.part not in parts:
            if sign < 0:  # its time is over
                return []
            trace = _Trace(number)
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

    def _now(self, metric: str, agent: str, sightings: int) -> tuple[tuple[str, str], int, _Part]:
        """What a score of this moment counts towards; ``sightings`` as in :meth:`LabelValues.use`."""
        now = self._clock.monotonic()
        self._changes += 1
        number = int(now // self._length)
        key = (metric, agent)
        if key in self._places:
            self._places.use(key, now, sightings)
        elif agent != OTHER:
            admitted, leaving = self._places.ask(key, now, sightings)
            if leaving is not None:
                self._join_others(leaving)
            if not admitted:
                key = (metric, OTHER)
        parts = self._series.setdefault(key, {})
        if number not in parts:
            for old in [old for old in parts if old != _EVER and old <= number - _PARTS]:
                del parts[old]
            parts[number] = _Part()
            parts.setdefault(_EVER, _Part())
        return key, number, parts[number]

    def _join_others(self, key: tuple[str, str]) -> None:
        """What was kept apart is part of ``__other__`` from now on."""
        parts = self._series.pop(key, {})
        for trace in [trace for trace in self._traces if trace[0] == key]:
            del self._traces[trace]
        others = self._series.setdefault((key[0], OTHER), {})
        for number, part in parts.items():
            others.setdefault(number, _Part()).join(part)

    def read(self) -> dict[tuple[str, str], Estimate]:
        """The present estimates of the window by metric and agent."""
        return self._read()[0]

    def read_since_start(self) -> dict[tuple[str, str], Estimate]:
        """Estimates of everything since the start, with intervals that hold however often they are looked at."""
        return self._read()[1]

    def _read(self) -> tuple[dict[tuple[str, str], Estimate], dict[tuple[str, str], Estimate]]:
        newest = int(self._clock.monotonic() // self._length)
        with self._lock:
            state = newest, self._changes
            if self._known is not None and self._known[0] == state:
                return self._known[1:]
            recent = {
                key: _total([part for number, part in parts.items() if number > newest - _PARTS and number != _EVER])
                for key, parts in self._series.items()
            }
            ever = {key: _total([parts[_EVER]]) for key, parts in self._series.items() if _EVER in parts}
        window = {key: sums.estimate(everyone) for key, (sums, everyone) in recent.items() if sums is not None}
        since = {key: sums.sequence(everyone) for key, (sums, everyone) in ever.items() if sums is not None}
        self._known = state, _without_none(window), _without_none(since)
        return self._known[1:]

    # --- kept over restarts

    def state(self) -> list[list[Any]]:
        """What is known of each series, as plain values, in parts of ten minutes and that of all time."""
        newest = int(self._clock.monotonic() // self._length)
        with self._lock:
            return [[*key, self._state_of(parts, newest)] for key, parts in self._series.items()]

    @staticmethod
    def _state_of(parts: Mapping[int, _Part], newest: int) -> list[list[Any]]:
        gathered: dict[int, _Part] = {}
        for number, part in parts.items():
            age = newest - number
            if number != _EVER and age >= _PARTS:
                continue
            into = gathered.setdefault(_EVER if number == _EVER else age // _KEPT_TOGETHER * _KEPT_TOGETHER, _Part())
            into.join(part)
        return [
            [age, part.everyone.state(), {group: sums.state() for group, sums in part.sums.items()}, part.chosen]
            for age, part in gathered.items()
        ]

    def restore(self, state: Any, passed: float = 0.0) -> None:
        """Go on where another process ended.

        Args:
            state: as :meth:`state` made it.
            passed: seconds since then.

        Raises:
            TypeError, ValueError: it is none.
        """
        newest = int(self._clock.monotonic() // self._length)
        found: dict[tuple[str, str], dict[int, _Part]] = {}
        for metric, agent, kept in state:
            parts = found.setdefault((str(metric), str(agent)), {_EVER: _Part()})
            for age, everyone, sums, chosen in kept:
                older = int(age) + int(passed // self._length)
                if age != _EVER and older >= _PARTS:
                    continue
                part = parts[_EVER if age == _EVER else newest - older] = _Part()
                part.everyone = Everyone.of_state(everyone)
                part.sums = {group: Sums.of_state(sums[group]) for group in _GROUPS if group in sums}
                part.chosen = {group: float(chosen[group]) for group in _GROUPS if group in chosen}
        with self._lock:
            self._changes += 1
            for key, parts in found.items():
                if key[1] != OTHER:
                    self._places.ask(key, self._clock.monotonic())
                self._series[key] = parts

    def watch(self, telemetry: Telemetry) -> None:
        """Show them as gauges."""

        def reader(field: str) -> Callable[[], Iterator[tuple[Mapping[str, str], float]]]:
            def read() -> Iterator[tuple[Mapping[str, str], float]]:
                for window, estimates in ((self._label, self.read()), (SINCE_START, self.read_since_start())):
                    for (metric, agent), estimate in estimates.items():
                        yield {"metric": metric, "agent": agent, "window": window}, getattr(estimate, field)

            return read

        for name, field in ((ESTIMATE_MEAN, "mean"), (ESTIMATE_LOW, "low"), (ESTIMATE_HIGH, "high"), (ESTIMATE_N, "n_eff")):
            telemetry.watch(name, reader(field))


def _without_none(found: Mapping[tuple[str, str], Estimate | None]) -> dict[tuple[str, str], Estimate]:
    return {key: estimate for key, estimate in found.items() if estimate is not None}


def _total(parts: Sequence[_Part]) -> tuple[Sums | None, Everyone]:
    """The sums of all parts together, None where turns were chosen of which none has an answer; and everybody's proxies."""
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
        # Answers to questions that other processes chose, or that were chosen before the window began, stand for no other turn.
        total = total.plus(answered.times(max(1.0, chosen / answered.weight)))
    return total, everyone
