"""What judged metrics would say of all turns, from those that were judged.

A score that was made with probability p stands for 1/p turns. The mean is Hájek's: the weighted sum over the sum of weights. Turns
of one trace stand or fall together, so the trace is the unit of its variance, and the interval widens with it. Scores from 0 to 1 get
Wilson's interval with that variance, which stays honest where all that were judged agree; other scores get a normal one.

Sums are kept by minute, never single scores: the memory does not grow with traffic.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from .clock import Clock
from .names import ESTIMATE_HIGH, ESTIMATE_LOW, ESTIMATE_MEAN, ESTIMATE_N, OTHER
from .telemetry import Telemetry

_Z = 1.959963984540054
_PARTS = 60
_SERIES = 1_000
_TRACES = 10_000


class Estimate(NamedTuple):
    """A mean over all turns, with its 95 % interval."""

    mean: float
    low: float
    high: float
    n_eff: float
    """How many traces, drawn alike, would tell as much: Kish's effective size."""


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


class _Trace:
    """A trace whose scores may be joined by others, or be replaced."""

    __slots__ = ("part", "scores")

    def __init__(self, part: int) -> None:
        self.part = part
        self.scores: dict[str, tuple[float, float]] = {}
        """By turn: weight, and weighted score."""

    def sums(self) -> tuple[float, float]:
        return sum(weight for weight, _ in self.scores.values()), sum(weighted for _, weighted in self.scores.values())


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
        """The parent tells what it saw."""
        self._lock = threading.Lock()
        self._series: dict[tuple[str, str], dict[int, Sums]] = {}
        """By metric and agent, then by part of the time."""
        self._traces: OrderedDict[tuple[tuple[str, str], str], _Trace] = OrderedDict()

    def add(self, metric: str, agent: str, trace: str, turn_id: str, value: float, probability: float) -> None:
        """A score that was made with a probability; of the same turn it takes the place of the one before."""
        if probability <= 0 or not math.isfinite(value):
            return
        part = self._part()
        with self._lock:
            key = (metric, agent)
            if key not in self._series and len(self._series) >= _SERIES:
                key = (metric, OTHER)
            parts = self._series.setdefault(key, {})
            if part not in parts:
                for old in [old for old in parts if old <= part - _PARTS]:
                    del parts[old]
                parts[part] = Sums()
            found = self._traces.pop((key, trace), None)
            if found is None or found.part not in parts:
                found = _Trace(part)
            sums = parts[found.part]
            if found.scores:
                sums.add(*found.sums(), sign=-1)
            found.scores[turn_id] = (1 / probability, value / probability)
            sums.add(*found.sums())
            sums.least, sums.most = min(sums.least, value), max(sums.most, value)
            self._traces[key, trace] = found
            if len(self._traces) > _TRACES:
                self._traces.popitem(last=False)

    def read(self) -> dict[tuple[str, str], Estimate]:
        """The present estimates by metric and agent."""
        oldest = self._part() - _PARTS
        found = {}
        with self._lock:
            for key, parts in self._series.items():
                total = Sums()
                for part, sums in parts.items():
                    total = total.plus(sums) if part > oldest else total
                estimate = total.estimate()
                if estimate is not None:
                    found[key] = estimate
        return found

    def watch(self, telemetry: Telemetry) -> None:
        """Show them as gauges."""

        def reader(field: str) -> Callable[[], Iterator[tuple[Mapping[str, str], float]]]:
            def read() -> Iterator[tuple[Mapping[str, str], float]]:
                for (metric, agent), estimate in self.read().items():
                    yield {"metric": metric, "agent": agent, "window": self._label}, getattr(estimate, field)

            return read

        for name, field in ((ESTIMATE_MEAN, "mean"), (ESTIMATE_LOW, "low"), (ESTIMATE_HIGH, "high"), (ESTIMATE_N, "n_eff")):
            telemetry.watch(name, reader(field))

    def _part(self) -> int:
        return int(self._clock.monotonic() // self._length)
