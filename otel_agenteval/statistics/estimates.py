"""What judged metrics would say of all turns, from those that were judged.

A score that was made with probability p stands for 1/p turns. The mean is Hájek's: the weighted sum over the sum of weights. Turns
of one trace stand or fall together, so the trace is the unit of its variance, and the interval widens with it. Scores from 0 to 1 get
Wilson's interval with that variance, which stays honest where all that were judged agree; other scores get a normal one.

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
from dataclasses import dataclass
from typing import Literal, NamedTuple

from ..core.clock import Clock
from ..core.label_values import LabelValues
from ..core.semconv import ESTIMATE_HIGH, ESTIMATE_LOW, ESTIMATE_MEAN, ESTIMATE_N, OTHER
from ..core.telemetry import Telemetry

_Z = 1.959963984540054
_PARTS = 60
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


class Estimate(NamedTuple):
    """A mean over all turns, with its 95 % interval."""

    mean: float
    low: float
    high: float
    n_eff: float
    """How many equally weighted traces would say as much: Kish's effective size."""


@dataclass(slots=True)
class Sums:
    """What is kept of the traces of one time: with W a trace's sum of weights and S that of weighted scores."""

    w: float = 0.0
    s: float = 0.0
    ww: float = 0.0
    ws: float = 0.0
    ss: float = 0.0
    least: float = math.inf
    most: float = -math.inf

    def add(self, weight: float, weighted: float, sign: int = 1) -> None:
        """Add a trace, or with a sign of -1 take it out again."""
        self.w += sign * weight
        self.s += sign * weighted
        self.ww += sign * weight * weight
        self.ws += sign * weight * weighted
        self.ss += sign * weighted * weighted

    def times(self, factor: float) -> Sums:
        """As if every weight were so many times what it is."""
        square = factor * factor
        return Sums(self.w * factor, self.s * factor, self.ww * square, self.ws * square, self.ss * square, self.least, self.most)

    def plus(self, other: Sums) -> Sums:
        """Both together."""
        return Sums(
            self.w + other.w, self.s + other.s, self.ww + other.ww, self.ws + other.ws, self.ss + other.ss,
            min(self.least, other.least), max(self.most, other.most),
        )  # fmt: skip

    def estimate(self) -> Estimate | None:
        """The mean and its interval; None of nothing."""
        if self.w <= 0 or self.ww <= 0:
            return None
        mean = self.s / self.w
        n = self.w * self.w / self.ww
        deviations = max(0.0, self.ss - 2 * mean * self.ws + mean * mean * self.ww)
        # n / (n - 1) as for any variance around a mean that was estimated too
        variance = deviations / (self.w * self.w) * (n / (n - 1) if n > 1 else 2.0)
        if self.least < 0 or self.most > 1:
            half = _Z * math.sqrt(variance)
            return Estimate(mean, mean - half, mean + half, n)
        z2 = _Z * _Z
        middle = (mean + z2 / (2 * n)) / (1 + z2 / n)
        half = _Z * math.sqrt(variance + z2 / (4 * n * n)) / (1 + z2 / n)
        return Estimate(mean, max(0.0, min(mean, middle - half)), min(1.0, max(mean, middle + half)), n)


_NOTHING = Sums()


class _Part:
    """One part of the time of one metric and agent."""

    __slots__ = ("chosen", "sums")

    def __init__(self) -> None:
        self.sums: dict[Group, Sums] = {}
        self.chosen: dict[Group, float] = {}
        """Sum of the weights of turns that were to be asked about."""


class _Trace:
    """A trace whose scores may be joined by others, or be replaced."""

    __slots__ = ("part", "sums")

    def __init__(self, part: int) -> None:
        self.part = part
        self.sums: dict[Group, tuple[int, float, float]] = {}
        """How many scores, and the sums of their weights and of the weighted scores."""


class _Answer(NamedTuple):
    """What a metric said of a turn."""

    trace: str
    group: Group
    weight: float
    weighted: float
    revision: int


class _Turn:
    """What one metric is known to have made of one turn, so that its revisions take its place."""

    __slots__ = ("answer", "chosen", "key")

    def __init__(self, key: tuple[str, str]) -> None:
        self.key = key
        """Metric and agent that it counts towards: a revision may find that the agent is another one."""
        self.chosen = False
        self.answer: _Answer | None = None


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

    def choose(self, metric: str, agent: str, probability: float, group: Group, turn_id: str | None = None) -> None:
        """A turn was chosen with a probability, and a model is to be asked about it. A turn counts once, however often it is revised."""
        if probability <= 0:
            return
        with self._lock:
            key, _, part = self._now(metric, agent, 1)
            if turn_id is not None:
                turn = self._turn(metric, turn_id, key)
                if turn.chosen:
                    return
                turn.chosen = True
                if turn.key != key:
                    part = self._now(*turn.key, 0)[2]
            part.chosen[group] = part.chosen.get(group, 0.0) + 1 / probability

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
            for one in (turn, *(part for other in replaces if (part := self._turns.get((metric, other))) is not None)):
                if one.answer is not None:
                    self._count(one.key, one.answer, -1)
                    one.answer = None
            turn.answer = _Answer(trace, group, 1 / probability, value / probability, revision)
            sums = self._count(turn.key, turn.answer, 1)
            sums.least, sums.most = min(sums.least, value), max(sums.most, value)

    def _turn(self, metric: str, turn_id: str, key: tuple[str, str]) -> _Turn:
        found = self._turns.pop((metric, turn_id), None) or _Turn(key)
        self._turns[metric, turn_id] = found
        if len(self._turns) > _TURNS:
            self._turns.popitem(last=False)
        return found

    def _count(self, key: tuple[str, str], answer: _Answer, sign: int) -> Sums:
        """Add an answer to the sums of its time, or with a sign of -1 take it out again, with the others of its trace."""
        key, number, _ = self._now(*key, 0)
        parts = self._series[key]
        trace = self._traces.pop((key, answer.trace), None)
        if trace is None or trace.part not in parts:
            if sign < 0:  # its time is over
                return Sums()
            trace = _Trace(number)
        sums = parts[trace.part].sums.setdefault(answer.group, Sums())
        count, weight, weighted = trace.sums.get(answer.group, (0, 0.0, 0.0))
        if count:
            sums.add(weight, weighted, sign=-1)
        count, weight, weighted = count + sign, weight + sign * answer.weight, weighted + sign * answer.weighted
        if count:
            sums.add(weight, weighted)
        trace.sums[answer.group] = (count, weight, weighted) if count else (0, 0.0, 0.0)
        self._traces[key, answer.trace] = trace
        if len(self._traces) > _TRACES:
            self._traces.popitem(last=False)
        return sums

    def _now(self, metric: str, agent: str, sightings: int) -> tuple[tuple[str, str], int, _Part]:
        """What a score of this moment counts towards; ``sightings`` as in :meth:`LabelValues.use`."""
        now = self._clock.monotonic()
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
            for old in [old for old in parts if old <= number - _PARTS]:
                del parts[old]
            parts[number] = _Part()
        return key, number, parts[number]

    def _join_others(self, key: tuple[str, str]) -> None:
        """What was kept apart is part of ``__other__`` from now on."""
        parts = self._series.pop(key, {})
        for trace in [trace for trace in self._traces if trace[0] == key]:
            del self._traces[trace]
        others = self._series.setdefault((key[0], OTHER), {})
        for number, part in parts.items():
            into = others.setdefault(number, _Part())
            for group, sums in part.sums.items():
                into.sums[group] = into.sums.get(group, _NOTHING).plus(sums)
            for group, chosen in part.chosen.items():
                into.chosen[group] = into.chosen.get(group, 0.0) + chosen

    def read(self) -> dict[tuple[str, str], Estimate]:
        """The present estimates by metric and agent."""
        oldest = int(self._clock.monotonic() // self._length) - _PARTS
        with self._lock:
            found = {
                key: _estimate([part for number, part in parts.items() if number > oldest]) for key, parts in self._series.items()
            }
        return {key: estimate for key, estimate in found.items() if estimate is not None}

    def watch(self, telemetry: Telemetry) -> None:
        """Show them as gauges."""

        def reader(field: str) -> Callable[[], Iterator[tuple[Mapping[str, str], float]]]:
            def read() -> Iterator[tuple[Mapping[str, str], float]]:
                for (metric, agent), estimate in self.read().items():
                    yield {"metric": metric, "agent": agent, "window": self._label}, getattr(estimate, field)

            return read

        for name, field in ((ESTIMATE_MEAN, "mean"), (ESTIMATE_LOW, "low"), (ESTIMATE_HIGH, "high"), (ESTIMATE_N, "n_eff")):
            telemetry.watch(name, reader(field))


def _estimate(parts: Sequence[_Part]) -> Estimate | None:
    """Of all parts together; None where turns were chosen of which none has an answer."""
    total = Sums()
    for group in _GROUPS:
        answered = Sums()
        for part in parts:
            answered = answered.plus(part.sums.get(group, _NOTHING))
        chosen = sum(part.chosen.get(group, 0.0) for part in parts)
        if answered.w < _LEAST_WEIGHT:
            if chosen:
                return None
            continue
        # Answers to questions that other processes chose, or that were chosen before the window began, stand for no other turn.
        total = total.plus(answered.times(max(1.0, chosen / answered.w)))
    return total.estimate()
