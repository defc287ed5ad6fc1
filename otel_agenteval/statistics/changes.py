"""Change detection for all series of a process. Each metric and agent has one series."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..core.clock import Clock
from ..core.label_values import LabelValues
from ..core.score import Direction, Score
from ..core.semconv import CHANGE_SIZE, CHANGE_TIME, OTHER
from ..core.telemetry import Telemetry
from .change import DetectorOptions, Found, Series

Verdict = Literal["worse", "better", "changed"]
_SERIES = 10_000
_USES = 64
"""Scores of a series per recorded use."""


@dataclass(frozen=True, slots=True)
class Change:
    metric: str
    agent: str
    verdict: Verdict
    """``changed`` if neither direction of the metric is better."""
    found: Found
    at: float

    @property
    def title(self) -> str:
        found = self.found
        of = f" of {self.agent}" if self.agent else ""
        since = f" with version {found.version}" if found.version_before is not None else ""
        return f"{self.metric}{of} is {self.verdict}{since}: mean {found.after:.3g}, before {found.before:.3g}"


def verdict_of(direction: Direction, size: float) -> Verdict:
    if direction == "neutral" or not size:
        return "changed"
    return "better" if (size > 0) == (direction == "up") else "worse"


@dataclass(slots=True, eq=False)
class _OpenSeries:
    series: Series
    agent: str
    left: int = _USES


class Changes:
    """Detects changes in scores. Thread-safe."""

    def __init__(self, options: DetectorOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[tuple[str, str], Series] = {}
        self._places: LabelValues[tuple[str, str]] = LabelValues(_SERIES)
        self._of_agent: dict[str, dict[str, _OpenSeries]] = {}
        """Series in use, by agent and metric."""
        self._last: dict[tuple[str, str], Change] = {}

    def see(self, scores: Iterable[Score], agent: str, weight: float, version: str | None, turn_id: str | None) -> list[Change]:
        """Add the scores of a turn, and return the changes that they reveal.

        ``weight`` is one divided by the sampling probability. ``version`` is that of the service that made the turn.
        """
        now = self._clock.time_ns() / 1e9
        changes: list[Change] = []
        with self._lock:
            known = self._of_agent.get(agent) or {}
            for score in scores:
                value = score.value
                if value is None or score.status != "ok" or score.vacuous:
                    continue
                metric = score.facts.metric
                place = known.get(metric)
                if place is None or place.left <= 0:
                    place = self._place_of(metric, agent, bounded=score.facts.unit == "1")
                place.left -= 1
                found = place.series.see(value, now, weight, version, turn_id)
                if found is not None:
                    change = Change(metric, place.agent, verdict_of(score.direction, found.size), found, now)
                    self._last[metric, place.agent] = change
                    changes.append(change)
        return changes

    def _place_of(self, metric: str, agent: str, *, bounded: bool) -> _OpenSeries:
        """Return the series of a score, and record :data:`_USES` uses. Unused series can be discarded."""
        key, now = (metric, agent), self._clock.monotonic()
        if key in self._places:
            self._places.use(key, now, _USES)
        else:
            admitted, leaving = self._places.ask(key, now)
            if leaving is not None:
                self._forget(leaving)
            if not admitted:
                key = metric, OTHER
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series(self._options, bounded=bounded)
        found = _OpenSeries(series, key[1])
        if key[1] == agent:
            self._of_agent.setdefault(agent, {})[metric] = found
        return found

    def _forget(self, key: tuple[str, str]) -> None:
        metric, agent = key
        self._series.pop(key, None)
        self._last.pop(key, None)
        known = self._of_agent.get(agent)
        if known is not None:
            known.pop(metric, None)
            if not known:
                del self._of_agent[agent]

    def read(self) -> list[Change]:
        with self._lock:
            return list(self._last.values())

    def watch(self, telemetry: Telemetry) -> None:
        telemetry.watch(CHANGE_TIME, lambda: self._gauges(lambda change: change.at))
        telemetry.watch(CHANGE_SIZE, lambda: self._gauges(lambda change: change.found.size))

    def _gauges(self, value: Callable[[Change], float]) -> Iterator[tuple[Mapping[str, str], float]]:
        for change in self.read():
            yield {"metric": change.metric, "agent": change.agent, "verdict": change.verdict}, value(change)

    # --- state across restarts

    def state(self) -> list[list[Any]]:
        with self._lock:
            return [[metric, agent, series.state()] for (metric, agent), series in self._series.items()]

    def restore(self, state: Any, passed: float = 0.0) -> None:
        """Restore the output of :meth:`state`. A series with an invalid state starts empty.

        Raises:
            TypeError, ValueError: the state as a whole is invalid.
        """
        for metric, agent, known in state:
            try:
                series = Series.of_state(self._options, known)
            except (KeyError, TypeError, ValueError):
                continue
            with self._lock:
                key = str(metric), str(agent)
                if agent != OTHER:
                    self._places.ask(key, self._clock.monotonic())
                self._series[key] = series
