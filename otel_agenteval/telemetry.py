"""Numbers about turns, scores and ourselves, kept until someone collects them.

The accumulators are our own because they have to be cheap (a worker feeds some fifty per turn), bounded whatever the
traffic brings, and readable by several outlets at once. Nothing here does I/O, and no callback runs under the lock.
"""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import itemgetter
from typing import NamedTuple

from .clock import SYSTEM_CLOCK, Clock
from .names import EMIT_ERRORS, INSTRUMENTS, OTHER, SPAN_LABELS, Instrument

Labels = tuple[str, ...]
"""Label values in the order of the instrument's attributes."""

Observation = tuple[str, Labels, float]
"""Instrument name, label values, and what to add (counters) or to observe (histograms)."""

Read = Callable[[], Iterable[tuple[Mapping[str, str], float]]]
"""Gives the present values of something that is counted elsewhere."""

MAX_TAPPED = 10_000
"""Single values that wait for an outlet at most; past it the oldest are lost to that outlet."""


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


class Family(NamedTuple):
    """The present state of one instrument, by label values: ``values`` for counters and gauges, else ``distributions``."""

    instrument: Instrument
    values: dict[Labels, float]
    distributions: dict[Labels, Distribution]


class _Cell:
    """One label set of a histogram."""

    __slots__ = ("counts", "exemplars", "sum")

    def __init__(self, buckets: int) -> None:
        self.counts = [0] * buckets
        self.sum = 0.0
        self.exemplars: list[tuple[Mapping[str, str], float, float] | None] = [None] * buckets

    def snapshot(self) -> Distribution:
        return Distribution(
            tuple(self.counts), self.sum, tuple([None if kept is None else Exemplar(*kept) for kept in self.exemplars])
        )


class _Series:
    """All label sets of one instrument."""

    __slots__ = ("buckets", "cells", "instrument", "key_of", "known", "taps", "values", "watches")

    def __init__(self, instrument: Instrument) -> None:
        self.instrument = instrument
        self.buckets = instrument.buckets
        self.key_of = _key_of(instrument.attributes)
        self.values: dict[Labels, float] = {}
        self.cells: dict[Labels, _Cell] = {}
        self.known: dict[int, set[str]] = {i: set() for i, name in enumerate(instrument.attributes) if name in SPAN_LABELS}
        """Values seen, by position of the attributes that are capped."""
        self.watches: list[Read] = []
        self.taps: list[deque[Observation]] = []

    def clear(self) -> None:
        self.values.clear()
        self.cells.clear()
        for seen in self.known.values():
            seen.clear()
        for tap in self.taps:
            tap.clear()

    def fold(self, key: Labels, max_values: int, max_series: int) -> Labels:
        """The label set that ``key`` is counted under: itself while there is room, else with ``__other__`` in it."""
        if not self.known or key in self.cells or key in self.values:
            return key
        folded = list(key)
        for position, seen in self.known.items():
            value = key[position]
            if value not in seen:
                if len(seen) < max_values:
                    seen.add(value)
                else:
                    folded[position] = OTHER
        within = tuple(folded)
        if within in self.cells or within in self.values or len(self.cells) + len(self.values) < max_series:
            return within
        for position in self.known:
            folded[position] = OTHER
        return tuple(folded)


class Telemetry:
    """Counters and histograms of :data:`names.INSTRUMENTS`, safe to use from any thread.

    Args:
        clock: dates exemplars.
        max_values: distinct values of each label that comes from spans, per instrument. Later ones are counted under
            ``__other__``, and each time as ``agenteval.emit.errors{outlet="metrics", reason="label_overflow"}``. Labels
            that configuration and code make (``metric``, ``outcome``, …) cannot grow with traffic and have no cap.
        max_series: label sets per instrument; past it the labels from spans become ``__other__``, counted the same way.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK, *, max_values: int = 100, max_series: int = 10_000) -> None:
        self._clock = clock
        self._max_values = max_values
        self._max_series = max_series
        self._lock = threading.Lock()
        self._series = {instrument.name: _Series(instrument) for instrument in INSTRUMENTS}

    def add(self, name: str, amount: float = 1, **labels: str) -> None:
        """Add to a counter.

        Raises:
            KeyError: no such instrument, or one of its labels was not given.
        """
        series = self._series[name]
        key = series.key_of(labels)
        with self._lock:
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
            self._observe(series, key, value, exemplar, 0.0 if exemplar is None else self._clock.time_ns() / 1e9)

    def record(self, observations: Iterable[Observation], exemplar: Mapping[str, str] | None = None) -> None:
        """Add and observe many at once: one lock for all."""
        now = 0.0 if exemplar is None else self._clock.time_ns() / 1e9
        all_series = self._series
        with self._lock:
            for name, key, value in observations:
                series = all_series[name]
                if series.buckets:
                    self._observe(series, key, value, exemplar, now)
                else:
                    self._count(series, key, value)

    def watch(self, name: str, read: Read) -> None:
        """Read values where they are counted, whenever someone collects; the same label set twice is added up.

        ``read`` runs on the collecting thread. When it fails, its values are missing from that collection and
        ``agenteval.emit.errors{outlet="metrics", reason="watch"}`` counts it.
        """
        self._series[name].watches.append(read)

    def tap(self, name: str) -> deque[Observation]:
        """A queue that gets each later observation of ``name`` too, for an outlet that must hand on single values.

        It holds the last :data:`MAX_TAPPED`; the outlet takes them with ``popleft``.
        """
        tapped: deque[Observation] = deque(maxlen=MAX_TAPPED)
        with self._lock:
            self._series[name].taps.append(tapped)
        return tapped

    def folded(self, name: str, labels: Labels) -> Labels:
        """The label set that ``labels`` is counted under, so that all outlets show the same."""
        with self._lock:
            return self._series[name].fold(labels, self._max_values, self._max_series)

    def read(self, name: str) -> Family:
        """The present state of one instrument."""
        series = self._series[name]
        with self._lock:
            values = dict(series.values)
            distributions = {key: cell.snapshot() for key, cell in series.cells.items()}
        for watched in series.watches:
            try:
                found = [(series.key_of(labels), value) for labels, value in watched()]
            except Exception:  # whatever is watched may be half shut down; the scrape goes on
                self.add(EMIT_ERRORS, outlet="metrics", reason="watch")
                continue
            for key, value in found:
                values[key] = values.get(key, 0) + value
        return Family(series.instrument, values, distributions)

    def collect(self) -> list[Family]:
        """The present state of every instrument, in the order of the table."""
        return [self.read(name) for name in self._series]

    def after_fork_in_child(self) -> None:
        """Start again from zero: the parent goes on to report what it counted, and its threads may have held the lock."""
        self._lock = threading.Lock()
        for series in self._series.values():
            series.clear()

    def _count(self, series: _Series, key: Labels, amount: float) -> None:
        values = series.values
        if key not in values:
            key = self._fold(series, key)
        values[key] = values.get(key, 0) + amount

    def _observe(self, series: _Series, key: Labels, value: float, exemplar: Mapping[str, str] | None, now: float) -> None:
        cell = series.cells.get(key)
        if cell is None:
            key = self._fold(series, key)
            cell = series.cells.get(key)
            if cell is None:
                cell = series.cells[key] = _Cell(len(series.buckets) + 1)
        bucket = bisect_left(series.buckets, value)
        cell.counts[bucket] += 1
        cell.sum += value
        if exemplar is not None:
            cell.exemplars[bucket] = (exemplar, value, now)
        for tapped in series.taps:
            tapped.append((series.instrument.name, key, value))

    def _fold(self, series: _Series, key: Labels) -> Labels:
        folded = series.fold(key, self._max_values, self._max_series)
        if folded != key:
            errors = self._series[EMIT_ERRORS].values
            overflow = ("metrics", "label_overflow")
            errors[overflow] = errors.get(overflow, 0) + 1
        return folded


class TelemetryGroup:
    """Telemetries that leave through one place (a Prometheus registry, a MeterProvider), added up.

    Two engines in one process would else show the same series twice, or one of them not at all.
    """

    def __init__(self) -> None:
        self._members: tuple[Telemetry, ...] = ()
        self._lock = threading.Lock()

    def join(self, telemetry: Telemetry) -> None:
        """Take one in. One that joins twice has to leave twice, and counts once."""
        with self._lock:
            self._members = (*self._members, telemetry)

    def leave(self, telemetry: Telemetry) -> bool:
        """Let one go; whether the group is empty now."""
        with self._lock:
            members = list(self._members)
            if telemetry in members:
                members.remove(telemetry)
            self._members = tuple(members)
            return not members

    def read(self, name: str) -> Family | None:
        """The sum over all members; None when there are none."""
        families = [telemetry.read(name) for telemetry in dict.fromkeys(self._members)]
        return _sum(families) if families else None


def _sum(families: Sequence[Family]) -> Family:
    first, *others = families
    for family in others:
        for key, value in family.values.items():
            first.values[key] = first.values.get(key, 0) + value
        for key, distribution in family.distributions.items():
            mine = first.distributions.get(key)
            first.distributions[key] = distribution if mine is None else _sum_of_two(mine, distribution)
    return first


def _sum_of_two(a: Distribution, b: Distribution) -> Distribution:
    return Distribution(
        tuple([x + y for x, y in zip(a.counts, b.counts, strict=True)]),
        a.sum + b.sum,
        tuple([_newer(x, y) for x, y in zip(a.exemplars, b.exemplars, strict=True)]),
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
