"""Numbers about turns, scores and the engine itself, kept until they are collected.

The accumulators are our own because they have to be cheap (a worker feeds some fifty per turn), bounded whatever the traffic brings, and
readable by several outlets at once. Nothing here does I/O, and no callback runs under the lock.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from operator import add, itemgetter
from typing import Any, NamedTuple, Protocol

from .clock import SYSTEM_CLOCK, Clock
from .label_values import LabelValues
from .semconv import (
    EMIT_ERRORS,
    ESTIMATE_LOW,
    ESTIMATE_MEAN,
    ESTIMATE_N,
    ESTIMATES,
    INSTRUMENTS,
    OTHER,
    SPAN_LABELS,
    Instrument,
    known_label_sets,
)

Labels = tuple[str, ...]
"""Label values in the order of the instrument's attributes."""

Observation = tuple[str, Labels, float]
"""Instrument name, label values, and what to add (counters) or to observe (histograms)."""

Read = Callable[[], Iterable[tuple[Mapping[str, str], float]]]
"""Returns the present values of something that is counted elsewhere."""

MAX_TAPPED = 10_000
"""How many single values wait for an outlet. Beyond that the oldest are lost to it."""


_MOST_PLANNED, _MOST_PLANS = 64, 256
"""How many label sets have plans, and how many each of them."""


class Exemplar(NamedTuple):
    """One observation that stands for its bucket."""

    labels: Mapping[str, str]
    """``trace_id`` and ``span_id``, in hex."""
    value: float
    time_s: float
    """Seconds since the Unix epoch."""


class Distribution(NamedTuple):
    """A histogram's state: per bucket (the last one infinite) how many, and the latest exemplar."""

    counts: tuple[int, ...]
    sum: float
    exemplars: tuple[Exemplar | None, ...]
    least: float
    """The smallest value; infinity before the first."""
    most: float
    """The largest value."""


class Family(NamedTuple):
    """The present state of one instrument, by label values: ``values`` for counters and gauges, else ``distributions``."""

    instrument: Instrument
    values: dict[Labels, float]
    distributions: dict[Labels, Distribution]


class _Cell:
    """One label set of a histogram."""

    __slots__ = ("counts", "exemplars", "least", "most", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.sum = 0.0
        self.least = math.inf
        self.most = -math.inf
        self.exemplars: list[tuple[Mapping[str, str], float, float] | None] = [None] * buckets

    def plus(self, other: _Cell) -> _Cell:
        """Add all that the other holds."""
        self.sum += other.sum
        self.least, self.most = min(self.least, other.least), max(self.most, other.most)
        for bucket, count in enumerate(other.counts):
            self.counts[bucket] += count
            mine, theirs = self.exemplars[bucket], other.exemplars[bucket]
            if mine is None or (theirs is not None and theirs[2] > mine[2]):
                self.exemplars[bucket] = theirs
        return self

    def snapshot(self) -> Distribution:
        exemplars = tuple([None if kept is None else Exemplar(*kept) for kept in self.exemplars])
        return Distribution(tuple(self.counts), self.sum, exemplars, self.least, self.most)


class Plan:
    """What something adds each time it happens: one to a counter, and perhaps a value to a histogram.

    Where that is counted is looked up the first time, and again after label values have lost their places.

    Args:
        counter: name of the counter.
        counted: its label values.
        histogram: name of the histogram.
        observed: its label values.
    """

    __slots__ = ("cell", "counted", "counter", "epoch", "histogram", "observed", "of_cell", "of_count")

    def __init__(self, counter: str, counted: Labels, histogram: str | None = None, observed: Labels = ()) -> None:
        self.counter = counter
        self.counted = counted
        self.histogram = histogram
        self.observed = observed
        self.epoch = -1
        """Of the telemetry, when the rest was looked up; the telemetry alone reads and writes it."""
        self.of_count: Any = None
        self.of_cell: Any = None
        self.cell: Any = None


class _Series:
    """All label sets of one instrument."""

    __slots__ = (
        "buckets",
        "capped",
        "cells",
        "expected",
        "instrument",
        "key_of",
        "keys_of",
        "last",
        "moves",
        "pick",
        "sighting",
        "taps",
        "values",
        "watches",
    )

    def __init__(self, instrument: Instrument, max_values: int) -> None:
        self.instrument = instrument
        self.buckets = instrument.buckets
        self.key_of = _key_of(instrument.attributes)
        self.values: dict[Labels, float] = {}
        self.expected: dict[Labels, float] = {}
        """Label sets that are shown before they are first counted, as 0."""
        self.cells: dict[Labels, _Cell] = {}
        self.capped: dict[int, LabelValues[str]] = {
            i: LabelValues(max_values) for i, name in enumerate(instrument.attributes) if name in SPAN_LABELS
        }
        """Which values have series of their own, by position of the attributes that are capped."""
        self.keys_of: dict[tuple[int, str], set[Labels]] = {}
        """The label sets that a capped value is part of, by its position."""
        self.pick: Callable[[Labels], Any] = itemgetter(*self.capped) if self.capped else tuple
        """The capped values of a label set, as one thing to compare."""
        self.moves = 0
        """How often a label value lost its place."""
        self.sighting = 0
        self.last: Any = None
        """The capped values of the last label set. A turn has many observations, but each value counts as seen once in it."""
        self.watches: list[Read] = []
        self.taps: list[deque[Observation]] = []

    def clear(self) -> None:
        self.values = dict(self.expected)
        self.cells.clear()
        self.keys_of.clear()
        self.last = None
        for kept in self.capped.values():
            kept.clear()
        for tap in self.taps:
            tap.clear()

    def use(self, key: Labels, sighting: int, now: float, counts: int) -> None:
        """Note a use of the values of a known label set: once per sighting, for the first label set in it."""
        for position, kept in self.capped.items():
            kept.use(key[position], now, counts)
        self.sighting = sighting
        self.last = self.pick(key)

    def admit(self, key: Labels, sighting: int, now: float, counts: int, max_series: int) -> Labels:
        """The label set under which a new ``key`` is counted: itself if its values get a place, else with ``__other__`` in it."""
        picked = self.pick(key)
        if self.sighting == sighting and self.last == picked:
            counts = 0
        self.sighting = sighting
        self.last = picked
        folded = list(key)
        for position, kept in self.capped.items():
            value = key[position]
            if value in kept:
                kept.use(value, now, counts)
                continue
            admitted, leaving = kept.ask(value, now, counts)
            if leaving is not None:
                self._leave(position, leaving)
            if not admitted:
                folded[position] = OTHER
        return self._within(tuple(folded), max_series)

    def shown(self, key: Labels, max_series: int) -> Labels:
        """What :meth:`admit` would return for a value that is seen for the first time; changes nothing."""
        folded = list(key)
        for position, kept in self.capped.items():
            if kept.full and key[position] not in kept:
                folded[position] = OTHER
        return self._within(tuple(folded), max_series)

    def place(self, key: Labels) -> None:
        """Note a label set that is new."""
        for position in self.capped:
            self.keys_of.setdefault((position, key[position]), set()).add(key)

    def _within(self, key: Labels, max_series: int) -> Labels:
        if not self.capped or key in self.cells or key in self.values or len(self.cells) + len(self.values) < max_series:
            return key
        return tuple([OTHER if position in self.capped else value for position, value in enumerate(key)])

    def _leave(self, position: int, value: str) -> None:
        """Take a value's place: what was counted under it moves to ``__other__``, so that no sum ever falls."""
        self.moves += 1
        for key in self.keys_of.pop((position, value), ()):
            for other in self.capped:
                if other != position:
                    self.keys_of[other, key[other]].discard(key)
            folded = (*key[:position], OTHER, *key[position + 1 :])
            if folded not in self.values and folded not in self.cells:
                self.place(folded)
            if key in self.values:
                self.values[folded] = self.values.get(folded, 0) + self.values.pop(key)
            else:
                cell = self.cells.pop(key)
                into = self.cells.get(folded)
                self.cells[folded] = cell if into is None else into.plus(cell)


class Telemetry:
    """Counters and histograms of :data:`~otel_agenteval.core.semconv.INSTRUMENTS`, safe to use from any thread.

    Args:
        clock: dates exemplars, and measures how long a label value has been unused.
        max_values: distinct values of each label that comes from spans, per instrument. All others are counted under
            ``__other__``, and each time as ``agenteval.emit.errors{outlet="metrics", reason="label_overflow"}``.
            :class:`~otel_agenteval.core.label_values.LabelValues` decides by their use which values have a place. When a value
            loses its place, what was counted under it moves to ``__other__``, so that no sum over a label ever falls. Labels that
            come from configuration and code (``metric``, ``outcome``, …) cannot grow with traffic and have no cap.
        max_series: label sets per instrument. Beyond that the labels from spans become ``__other__``, counted the same way.
        public: returns a label from spans as it may leave. Asked about new label sets only.
    """

    def __init__(
        self, clock: Clock = SYSTEM_CLOCK, *, max_values: int = 100, max_series: int = 10_000, public: Callable[[str], str] = str
    ) -> None:
        self._clock = clock
        self._public = public
        self._max_series = max_series
        self._lock = threading.Lock()
        self._series = {instrument.name: _Series(instrument, max_values) for instrument in INSTRUMENTS}
        self._now = 0.0
        self._sighting = 0
        """Number of the present call: all its observations are one sighting of each label value."""
        self._counts = 1
        self._epoch = 0
        """Changes whenever a label set may have got another place, or none."""
        self._plans: dict[Labels, dict[Hashable, Plan]] = {}

    def expect(self, name: str, **given: Collection[str]) -> None:
        """Show every known label set of a counter from now on, as 0 until it is counted: see :data:`~otel_agenteval.core.semconv.KNOWN_LABELS`.

        Args:
            name: the counter.
            given: see :func:`~otel_agenteval.core.semconv.known_label_sets`.
        """
        series = self._series[name]
        zeros = {series.key_of(labels): 0.0 for labels in known_label_sets(name, given)}
        with self._lock:
            series.expected |= zeros
            series.values = zeros | series.values

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter.

        Raises:
            KeyError: no such instrument, or one of its labels was not given.
        """
        series = self._series[name]
        key = series.key_of(labels)
        with self._lock:
            self._begin(1)
            self._count(series, key, amount)

    def observe(self, name: str, value: float, exemplar: Mapping[str, str] | None = None, **labels: str) -> None:
        """Put a value into a histogram.

        Args:
            name: the instrument.
            value: in the instrument's unit.
            exemplar: ``trace_id`` and ``span_id`` in hex, of a trace that is kept.
            labels: every attribute of the instrument.

        Raises:
            KeyError: no such instrument, or one of its labels was not given.
        """
        series = self._series[name]
        key = series.key_of(labels)
        with self._lock:
            self._begin(1)
            self._observe(series, key, value, exemplar, 0.0 if exemplar is None else self._clock.time_ns() / 1e9)

    def plans_of(self, labels: Labels) -> dict[Hashable, Plan]:
        """Plans to be reused for what happens with these label values, by keys of the caller's choice. They may be forgotten."""
        plans = self._plans.get(labels)
        if plans is None or len(plans) >= _MOST_PLANS:
            if len(self._plans) >= _MOST_PLANNED:
                self._plans.clear()
            plans = self._plans[labels] = {}
        return plans

    def record(
        self,
        observations: Iterable[Observation],
        exemplar: Mapping[str, str] | None = None,
        *,
        again: bool = False,
        planned: Iterable[tuple[Plan, float | None]] = (),
    ) -> None:
        """Add and observe many at once: one lock for all.

        Args:
            observations: usually all of one turn. Together they are one sighting of each label value.
            exemplar: as for :meth:`observe`, for all of them.
            again: they add to a turn that was recorded before, and so make no label value look more frequent.
            planned: plans of :meth:`plans_of` that are to be followed, each with a value for its histogram. They belong to the same sighting.
        """
        now = 0.0 if exemplar is None else self._clock.time_ns() / 1e9
        all_series = self._series
        with self._lock:
            self._begin(0 if again else 1)
            for name, key, value in observations:
                series = all_series[name]
                if series.buckets:
                    self._observe(series, key, value, exemplar, now)
                else:
                    self._count(series, key, value)
            for plan, amount in planned:
                if plan.epoch == self._epoch:
                    self._follow(plan, amount, exemplar, now)
                else:
                    self._look_up(plan, amount, exemplar, now)

    def watch(self, name: str, read: Read) -> None:
        """Read values where they are counted, at each collection. Values of the same label set are added up.

        ``read`` runs on the collecting thread. When it fails, its values are missing from that collection and
        ``agenteval.emit.errors{outlet="metrics", reason="watch"}`` counts it.
        """
        self._series[name].watches.append(read)

    def tap(self, name: str) -> deque[Observation]:
        """A queue that also gets each later observation of ``name``, for an outlet that must pass on single values.

        It holds the last :data:`MAX_TAPPED`; the outlet takes them with ``popleft``.
        """
        tapped: deque[Observation] = deque(maxlen=MAX_TAPPED)
        with self._lock:
            self._series[name].taps.append(tapped)
        return tapped

    def folded(self, name: str, labels: Labels) -> Labels:
        """The label set under which ``labels`` is counted, so that all outlets show the same."""
        series = self._series[name]
        with self._lock:
            return series.shown(self._left(series, labels), self._max_series)

    def read(self, name: str) -> Family:
        """The present state of one instrument."""
        series = self._series[name]
        with self._lock:
            values = dict(series.values)
            distributions = {key: cell.snapshot() for key, cell in series.cells.items()}
        for watched in series.watches:
            try:
                found = [(self._left(series, series.key_of(labels)), value) for labels, value in watched()]
            except Exception:  # what is watched may be shutting down; the collection goes on
                self.add(EMIT_ERRORS, outlet="metrics", reason="watch")
                continue
            for key, value in found:
                values[key] = values.get(key, 0) + value
        return Family(series.instrument, values, distributions)

    def collect(self) -> list[Family]:
        """The present state of every instrument, in the order of the table."""
        return [self.read(name) for name in self._series]

    def after_fork_in_child(self) -> None:
        """Start from zero: the parent goes on reporting what it counted, and one of its threads may have held the lock."""
        self._lock = threading.Lock()
        self._epoch += 1
        for series in self._series.values():
            series.clear()

    def _begin(self, counts: int) -> None:
        self._now = self._clock.monotonic()
        self._sighting += 1
        self._counts = counts

    def _follow(self, plan: Plan, value: float | None, exemplar: Mapping[str, str] | None, now: float) -> None:
        """As :meth:`_count` and :meth:`_observe`, for label sets that are known to have places."""
        series: _Series = plan.of_count
        if series.sighting != self._sighting and series.capped:
            series.use(plan.counted, self._sighting, self._now, self._counts)
        series.values[plan.counted] += 1
        if value is not None:
            series = plan.of_cell
            if series.sighting != self._sighting and series.capped:
                series.use(plan.observed, self._sighting, self._now, self._counts)
            self._put(series, plan.observed, plan.cell, value, exemplar, now)

    def _look_up(self, plan: Plan, value: float | None, exemplar: Mapping[str, str] | None, now: float) -> None:
        """Count by its label sets, and keep in the plan where that is. One that is counted under ``__other__`` is looked up each time."""
        plan.of_count = self._series[plan.counter]
        self._count(plan.of_count, plan.counted, 1)
        if plan.histogram is not None:
            plan.of_cell = self._series[plan.histogram]
            if value is not None:
                self._observe(plan.of_cell, plan.observed, value, exemplar, now)
            plan.cell = plan.of_cell.cells.get(plan.observed)
        if plan.counted in plan.of_count.values and (plan.histogram is None or plan.cell is not None):
            plan.epoch = self._epoch

    def _count(self, series: _Series, key: Labels, amount: float) -> None:
        values = series.values
        if key in values:
            if series.sighting != self._sighting and series.capped:
                series.use(key, self._sighting, self._now, self._counts)
            values[key] += amount
            return
        key = self._admit(series, key)
        values[key] = values.get(key, 0) + amount

    def _observe(self, series: _Series, key: Labels, value: float, exemplar: Mapping[str, str] | None, now: float) -> None:
        cell = series.cells.get(key)
        if cell is not None:
            if series.sighting != self._sighting and series.capped:
                series.use(key, self._sighting, self._now, self._counts)
        else:
            key = self._admit(series, key)
            cell = series.cells.get(key)
            if cell is None:
                cell = series.cells[key] = _Cell(len(series.buckets) + 1)
        self._put(series, key, cell, value, exemplar, now)

    @staticmethod
    def _put(series: _Series, key: Labels, cell: _Cell, value: float, exemplar: Mapping[str, str] | None, now: float) -> None:
        bucket = bisect_left(series.buckets, value)
        cell.counts[bucket] += 1
        cell.sum += value
        if value < cell.least:  # noqa: PLR1730 - as a call it costs three times as much
            cell.least = value
        if value > cell.most:  # noqa: PLR1730
            cell.most = value
        if exemplar is not None:
            cell.exemplars[bucket] = (exemplar, value, now)
        for tapped in series.taps:
            tapped.append((series.instrument.name, key, value))

    def _admit(self, series: _Series, key: Labels) -> Labels:
        if not series.capped:
            return key
        key = self._left(series, key)
        if key in series.values or key in series.cells:
            series.use(key, self._sighting, self._now, self._counts)
            return key
        moves = series.moves
        folded = series.admit(key, self._sighting, self._now, self._counts, self._max_series)
        if series.moves != moves:
            self._epoch += 1
        if folded != key:
            errors = self._series[EMIT_ERRORS].values
            overflow = ("metrics", "label_overflow")
            errors[overflow] = errors.get(overflow, 0) + 1
        if folded not in series.values and folded not in series.cells:
            series.place(folded)
        return folded

    def _left(self, series: _Series, key: Labels) -> Labels:
        """A label set as it may leave."""
        return tuple([self._public(value) if place in series.capped else value for place, value in enumerate(key)])


class Readable(Protocol):
    """What knows the state of instruments: a telemetry, or what another process left of one."""

    def read(self, name: str) -> Family:
        """The present state of one instrument."""


class TelemetryGroup:
    """Telemetries that leave through one place (a Prometheus registry, a MeterProvider), added up.

    Otherwise two engines in one process would show the same series twice, or one of them would not appear at all.
    """

    def __init__(self) -> None:
        self._members: tuple[Telemetry, ...] = ()
        self._lock = threading.Lock()

    def join(self, telemetry: Telemetry) -> None:
        """Add one. One that joins twice has to leave twice, and counts once."""
        with self._lock:
            self._members = (*self._members, telemetry)

    def is_last(self, telemetry: Telemetry) -> bool:
        """Whether nothing is left when this one leaves."""
        return self._members == (telemetry,)

    def add(self, name: str, **labels: str) -> None:
        """Count something that is nobody's in particular."""
        for member in self._members[:1]:
            member.add(name, 1, **labels)

    def leave(self, telemetry: Telemetry) -> bool:
        """Remove one; whether the group is empty now."""
        with self._lock:
            members = list(self._members)
            if telemetry in members:
                members.remove(telemetry)
            self._members = tuple(members)
            return not members

    def read(self, name: str, others: Sequence[Readable] = ()) -> Family | None:
        """All members, and ``others`` that are no members, together; None when there are none."""
        members = (*dict.fromkeys(self._members), *others)
        return merged(name, members) if members else None


def merged(name: str, members: Sequence[Readable]) -> Family:
    """What several that count apart have counted together.

    Counters and histograms are added up, of gauges the sum, the least or the most is taken, as the instrument says. Means of samples that were drawn apart are weighted by how much each sample tells.
    """
    if name in ESTIMATES and len(members) > 1:
        return _merged_estimate(name, members)
    first, *others = [member.read(name) for member in members]
    put_together = _OVER[first.instrument.over]
    for family in others:
        for key, value in family.values.items():
            first.values[key] = put_together(first.values[key], value) if key in first.values else value
        for key, distribution in family.distributions.items():
            mine = first.distributions.get(key)
            first.distributions[key] = distribution if mine is None else _sum_of_two(mine, distribution)
    return first


_OVER: dict[str, Callable[[float, float], float]] = {"sum": add, "min": min, "max": max}


def _merged_estimate(name: str, members: Sequence[Readable]) -> Family:
    """Means weighted by the number of turns that each stands on; the squares of their intervals' halves add up as those of errors do."""
    parts: dict[Labels, list[tuple[float, float]]] = {}
    """Number of turns, and mean, or distance from it."""
    for member in members:
        wanted = member.read(name).values
        means = member.read(ESTIMATE_MEAN).values
        for key, turns in member.read(ESTIMATE_N).values.items():
            if turns > 0 and key in wanted and key in means:
                of_mean = name in (ESTIMATE_MEAN, ESTIMATE_N)
                parts.setdefault(key, []).append((turns, means[key] if of_mean else wanted[key] - means[key]))
    instrument = members[0].read(name).instrument
    if name in (ESTIMATE_MEAN, ESTIMATE_N):
        whole = {key: math.fsum(turns for turns, _ in some) for key, some in parts.items()}
        if name == ESTIMATE_N:
            return Family(instrument, whole, {})
        return Family(
            instrument, {key: math.fsum(turns * mean for turns, mean in some) / whole[key] for key, some in parts.items()}, {}
        )
    middle = _merged_estimate(ESTIMATE_MEAN, members).values
    sign = -1 if name == ESTIMATE_LOW else 1
    half = {
        key: math.hypot(*(turns * distance for turns, distance in some)) / math.fsum(turns for turns, _ in some)
        for key, some in parts.items()
    }
    return Family(instrument, {key: middle[key] + sign * half[key] for key in parts}, {})


def _sum_of_two(a: Distribution, b: Distribution) -> Distribution:
    return Distribution(
        tuple([x + y for x, y in zip(a.counts, b.counts, strict=True)]),
        a.sum + b.sum,
        tuple([_newer(x, y) for x, y in zip(a.exemplars, b.exemplars, strict=True)]),
        min(a.least, b.least),
        max(a.most, b.most),
    )


def _newer(a: Exemplar | None, b: Exemplar | None) -> Exemplar | None:
    if a is None or b is None:
        return a or b
    return a if a.time_s >= b.time_s else b


def _key_of(attributes: Sequence[str]) -> Callable[[Mapping[str, str]], Labels]:
    """A function that picks the label values in order; ``itemgetter`` alone would unpack a single one."""
    if not attributes:
        return lambda labels: ()
    if len(attributes) == 1:
        only = attributes[0]
        return lambda labels: (labels[only],)
    return itemgetter(*attributes)
