"""Counters, gauges, and histograms about turns, scores, and the engine, kept in memory.

These instruments replace the OpenTelemetry SDK's instruments, because updates must be fast (about 50 per turn), memory must be
limited, and several outlets read the same values. While the module holds its lock, it doesn't do I/O or call watch functions.
"""

from __future__ import annotations

import math
import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import add, itemgetter
from typing import Any, NamedTuple, Protocol

from . import forks
from .clock import SYSTEM_CLOCK, Clock
from .label_values import LabelValues
from .semconv import (
    EMIT_ERRORS,
    ESTIMATE_LOW,
    ESTIMATE_MEAN,
    ESTIMATE_N,
    ESTIMATE_PASSES,
    ESTIMATE_PASSES_LOW,
    ESTIMATES,
    INSTRUMENTS,
    OTHER,
    SPAN_LABELS,
    Instrument,
    known_label_sets,
)
from .wellformed import for_label

Labels = tuple[str, ...]
"""Label values in the order of the instrument's attributes."""
Observation = tuple[str, Labels, float]
"""Instrument name, label values, and the amount to add (counters) or to observe (histograms)."""
Read = Callable[[], Iterable[tuple[Mapping[str, str], float]]]
"""Function that returns pairs (labels, value) for values that are counted elsewhere."""
MAX_TAPPED = 10_000
"""Maximum number of a histogram's observations that wait for an outlet. The oldest observations are discarded first."""
_MOST_PLANNED, _MOST_PLANS = 256, 256
"""Maximum number of label sets with a :class:`Plan`, and maximum number of plans per label set."""


class Exemplar(NamedTuple):
    labels: Mapping[str, str]
    value: float
    time_s: float


class Distribution(NamedTuple):
    """State of a histogram: count and latest exemplar for each bucket. The last bucket's upper bound is infinite."""

    counts: tuple[int, ...]
    sum: float
    exemplars: tuple[Exemplar | None, ...]
    least: float
    """Smallest value, or infinity without values."""
    most: float
    """Largest value, or minus infinity without values."""


class Family(NamedTuple):
    """State of one instrument, keyed by label values. Counters and gauges use ``values``, and histograms use ``distributions``."""

    instrument: Instrument
    values: dict[Labels, float]
    distributions: dict[Labels, Distribution]


class _Cell:
    __slots__ = ("counts", "exemplars", "least", "most", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.sum = 0.0
        self.least = math.inf
        self.most = -math.inf
        self.exemplars: list[tuple[Mapping[str, str], float, float] | None] = [None] * buckets

    def plus(self, other: _Cell) -> _Cell:
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


@dataclass(slots=True, eq=False)
class Plan:
    """Reusable update of a counter and, optionally, a histogram. Caches the storage locations until the epoch changes."""

    counter: str
    counted: Labels
    histogram: str | None = None
    observed: Labels = ()
    epoch: int = -1
    """The telemetry's epoch at the last lookup. Only :class:`Telemetry` uses this attribute and the next three attributes."""
    of_count: Any = None
    of_cell: Any = None
    cell: Any = None


class _Series:
    __slots__ = (
        "buckets", "capped", "cells", "expected", "instrument", "key_of", "keys_of", "last", "moves", "pick", "sighting", "taps",
        "values", "watches",
    )  # fmt: skip

    def __init__(self, instrument: Instrument, max_values: int) -> None:
        self.instrument = instrument
        self.buckets = instrument.buckets
        self.key_of = _key_of(instrument.attributes)
        self.values: dict[Labels, float] = {}
        self.expected: dict[Labels, float] = {}
        """Label sets that are reported as 0 before their first count."""
        self.cells: dict[Labels, _Cell] = {}
        self.capped: dict[int, LabelValues[str]] = {
            i: LabelValues(max_values) for i, name in enumerate(instrument.attributes) if name in SPAN_LABELS
        }
        """Mapping from a limited label's position in the label set to the values that have their own series."""
        self.keys_of: dict[tuple[int, str], set[Labels]] = {}
        """Mapping from (position, value) of a limited label to the label sets that contain this value."""
        self.pick: Callable[[Labels], Any] = itemgetter(*self.capped) if self.capped else tuple
        """Function that returns a label set's limited values, for comparison."""
        self.moves = 0
        self.sighting = 0
        self.last: Any = None
        """Limited values of the most recently used label set. Needed to count all of a turn's observations as one sighting."""
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
        for position, kept in self.capped.items():
            kept.use(key[position], now, counts)
        self.sighting = sighting
        self.last = self.pick(key)

    def admit(self, key: Labels, sighting: int, now: float, counts: int, max_series: int) -> Labels:
        """Return the label set under which a new ``key`` is counted. Limited values without their own series become ``__other__``.
        If there are already ``max_series`` label sets, the values of all limited labels become ``__other__``.
        """
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
                self._fold_value(position, leaving)
            if not admitted:
                folded[position] = OTHER
        return self._limited(tuple(folded), max_series)

    def folded_key(self, key: Labels, max_series: int) -> Labels:
        """Return the label set under which a recorded ``key`` is counted. Unlike :meth:`admit`, change nothing."""
        folded = list(key)
        for position, kept in self.capped.items():
            if kept.full and key[position] not in kept:
                folded[position] = OTHER
        return self._limited(tuple(folded), max_series)

    def place(self, key: Labels) -> None:
        for position in self.capped:
            self.keys_of.setdefault((position, key[position]), set()).add(key)

    def _limited(self, key: Labels, max_series: int) -> Labels:
        if not self.capped or key in self.cells or key in self.values or len(self.cells) + len(self.values) < max_series:
            return key
        return tuple([OTHER if position in self.capped else value for position, value in enumerate(key)])

    def _fold_value(self, position: int, value: str) -> None:
        """Move the counts of a replaced label value to ``__other__``, so that sums over the label never decrease."""
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
    """Counters and histograms of :data:`~otel_agenteval.core.semconv.INSTRUMENTS`. Thread-safe.

    Labels from spans, such as ``model``, are limited to ``max_values`` values per instrument (see
    :class:`~otel_agenteval.core.label_values.LabelValues`) and to ``max_series`` label sets. Values over a limit are counted as
    ``__other__``, and each of these updates also increments ``agenteval.emit.errors{outlet="metrics", reason="label_overflow"}``.
    Counts of a replaced value move to ``__other__``, so sums over a label never decrease. Labels from configuration and code, such
    as ``metric``, aren't limited. The function ``public`` redacts new label values from spans.
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
        """Number of the current call. All observations in a call count as one sighting of each label value."""
        self._counts = 1
        self._epoch = 0
        """Number that increases when counts might have moved to another label set, which invalidates all older plans."""
        self._plans: dict[Labels, dict[Hashable, Plan]] = {}
        forks.in_child(self.reset)

    def expect(self, name: str, **given: Collection[str]) -> None:
        """Report 0 for each of a counter's :func:`~otel_agenteval.core.semconv.known_label_sets` until its first count."""
        series = self._series[name]
        zeros = {self._public_labels(series, series.key_of(labels)): 0.0 for labels in known_label_sets(name, given)}
        with self._lock:
            series.expected |= zeros
            series.values = zeros | series.values

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add ``amount`` to a counter. For an unknown instrument or a missing label, raise a KeyError."""
        series = self._series[name]
        key = series.key_of(labels)
        with self._lock:
            self._begin(1)
            self._count(series, key, amount)

    def observe(self, name: str, value: float, exemplar: Mapping[str, str] | None = None, **labels: str) -> None:
        """Record a value in a histogram, in the instrument's unit. ``exemplar`` contains an exported span's IDs, in hex."""
        series = self._series[name]
        key = series.key_of(labels)
        with self._lock:
            self._begin(1)
            self._observe(series, key, value, exemplar, 0.0 if exemplar is None else self._clock.time_ns() / 1e9)

    def plans_of(self, labels: Labels) -> dict[Hashable, Plan]:
        """Return a dict in which the caller can store plans for ``labels``. The telemetry can discard the dict at any time."""
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
        """Record observations and plans, usually of one turn, under one lock. Together, they count as one use of each label value.
        If ``again`` is true, the observations don't count as a use. All observations share one ``exemplar``.
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
                if plan.epoch != self._epoch:
                    self._look_up(plan, amount, exemplar, now)
                    continue
                series = plan.of_count  # the label sets have places, so they need no lookup
                if series.sighting != self._sighting and series.capped:
                    series.use(plan.counted, self._sighting, self._now, self._counts)
                series.values[plan.counted] += 1
                if amount is not None:
                    series = plan.of_cell
                    if series.sighting != self._sighting and series.capped:
                        series.use(plan.observed, self._sighting, self._now, self._counts)
                    self._put(series, plan.observed, plan.cell, amount, exemplar, now)

    def watch(self, name: str, read: Read) -> None:
        """Register ``read``, which returns current values at each collection. Values with equal labels are added. If ``read``
        raises an exception, its values are missing, and ``agenteval.emit.errors{outlet="metrics", reason="watch"}`` is incremented.
        """
        self._series[name].watches.append(read)

    def tap(self, name: str) -> deque[Observation]:
        """Return a queue for a histogram's future observations, at most :data:`MAX_TAPPED`. Outlets read it with ``popleft``."""
        tapped: deque[Observation] = deque(maxlen=MAX_TAPPED)
        with self._lock:
            self._series[name].taps.append(tapped)
        return tapped

    def folded(self, name: str, labels: Labels) -> Labels:
        """Return the label set under which ``labels`` are counted, so that all outlets use the same labels."""
        series = self._series[name]
        with self._lock:
            return series.folded_key(self._public_labels(series, labels), self._max_series)

    def read(self, name: str) -> Family:
        series = self._series[name]
        with self._lock:
            values = dict(series.values)
            distributions = {key: cell.snapshot() for key, cell in series.cells.items()}
        for watched in series.watches:
            try:
                found = [(self._public_labels(series, series.key_of(labels)), value) for labels, value in watched()]
            except Exception:  # the watched object may be shutting down: continue with the others
                self.add(EMIT_ERRORS, outlet="metrics", reason="watch")
                continue
            for key, value in found:
                values[key] = values.get(key, 0) + value
        return Family(series.instrument, values, distributions)

    def collect(self) -> list[Family]:
        return [self.read(name) for name in self._series]

    def reset(self) -> None:
        """Reset all counts in a forked child, because the parent exports them. Replace the lock, which a thread might hold."""
        self._lock = threading.Lock()
        self._epoch += 1
        for series in self._series.values():
            series.clear()

    def _begin(self, counts: int) -> None:
        self._now = self._clock.monotonic()
        self._sighting += 1
        self._counts = counts

    def _look_up(self, plan: Plan, value: float | None, exemplar: Mapping[str, str] | None, now: float) -> None:
        """Record a plan, and cache the storage locations of its label sets. Don't cache label sets that count as ``__other__``."""
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
        if value < cell.least:  # noqa: PLR1730 - a call of min() takes three times as long
            cell.least = value
        if value > cell.most:  # noqa: PLR1730
            cell.most = value
        if exemplar is not None:
            cell.exemplars[bucket] = (exemplar, value, now)
        for tapped in series.taps:
            tapped.append((series.instrument.name, key, value))

    def _admit(self, series: _Series, key: Labels) -> Labels:
        key = self._public_labels(series, key)
        if not series.capped:
            return key
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

    def _public_labels(self, series: _Series, key: Labels) -> Labels:
        """Redact label values from spans, and escape characters that break scrapers."""
        named = zip(series.instrument.attributes, key, strict=True)
        return tuple(
            [for_label(self._public(value) if name == "scope" or name in SPAN_LABELS else value) for name, value in named]
        )


class Readable(Protocol):
    """Source of instrument states: a :class:`Telemetry`, or the saved state of another process."""

    def read(self, name: str) -> Family:
        """Return the current state of one instrument."""


class TelemetryGroup:
    """Telemetry objects that share an exporter, such as a Prometheus registry. The group exports combined values."""

    def __init__(self) -> None:
        self._members: tuple[Telemetry, ...] = ()
        self._lock = threading.Lock()

    def join(self, telemetry: Telemetry) -> None:
        """Add ``telemetry`` as a member. If it joins twice, the group exports its values once, but it must leave twice."""
        with self._lock:
            self._members = (*self._members, telemetry)

    def is_last(self, telemetry: Telemetry) -> bool:
        return self._members == (telemetry,)

    def add(self, name: str, **labels: str) -> None:
        """Increment the first member's counter, for an event that isn't specific to one member."""
        for member in self._members[:1]:
            member.add(name, 1, **labels)

    def leave(self, telemetry: Telemetry) -> bool:
        with self._lock:
            members = list(self._members)
            if telemetry in members:
                members.remove(telemetry)
            self._members = tuple(members)
            return not members

    def read(self, name: str, others: Sequence[Readable] = ()) -> Family | None:
        members = (*dict.fromkeys(self._members), *others)
        return merged(name, members) if members else None


def merged(name: str, members: Sequence[Readable]) -> Family:
    """Return an instrument's combined state. Counters and histograms are added. Gauges are combined by the operation in their
    instrument: sum, min, or max. Estimates come from independent samples, so they are weighted by effective sample size.
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
    """Combine estimates, weighted by effective sample size. The squares of the weighted half-widths are added."""
    name_of_mean = ESTIMATE_PASSES if name.startswith(ESTIMATE_PASSES) else ESTIMATE_MEAN
    parts = _parts_of_estimate(name, name_of_mean, members)
    instrument = members[0].read(name).instrument
    whole = {key: math.fsum(turns for turns, _ in some) for key, some in parts.items()}
    if name == ESTIMATE_N:
        return Family(instrument, whole, {})
    if name == name_of_mean:
        return Family(instrument, {key: math.fsum(map(math.prod, some)) / whole[key] for key, some in parts.items()}, {})
    middle = _merged_estimate(name_of_mean, members).values
    sign = -1 if name in (ESTIMATE_LOW, ESTIMATE_PASSES_LOW) else 1
    half = {key: math.hypot(*map(math.prod, some)) / whole[key] for key, some in parts.items()}
    return Family(instrument, {key: middle[key] + sign * half[key] for key in parts}, {})


def _parts_of_estimate(name: str, name_of_mean: str, members: Sequence[Readable]) -> dict[Labels, list[tuple[float, float]]]:
    """Return one pair per member for each label set: effective sample size, and mean (for an interval's end: its distance from it)."""
    parts: dict[Labels, list[tuple[float, float]]] = {}
    for member in members:
        wanted, means, sizes = (member.read(one).values for one in (name, name_of_mean, ESTIMATE_N))
        for key, value in wanted.items():
            if (turns := sizes.get(key[:3], 0.0)) > 0 and key in means:
                distance = means[key] if name in (name_of_mean, ESTIMATE_N) else value - means[key]
                parts.setdefault(key, []).append((turns, distance))
    return parts


def _sum_of_two(a: Distribution, b: Distribution) -> Distribution:
    return Distribution(
        tuple([x + y for x, y in zip(a.counts, b.counts, strict=True)]),
        a.sum + b.sum,
        tuple(
            [
                x if y is None or (x is not None and x.time_s >= y.time_s) else y
                for x, y in zip(a.exemplars, b.exemplars, strict=True)
            ]
        ),
        min(a.least, b.least),
        max(a.most, b.most),
    )


def _key_of(attributes: Sequence[str]) -> Callable[[Mapping[str, str]], Labels]:
    if not attributes:
        return lambda labels: ()
    if len(attributes) == 1:
        only = attributes[0]
        return lambda labels: (labels[only],)
    return itemgetter(*attributes)
