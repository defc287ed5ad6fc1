"""Change detection for all series in a process. Each combination of tenant, metric, and agent is a series."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ..core.clock import Clock
from ..core.label_values import LabelValues
from ..core.score import Direction, Score
from ..core.semconv import CHANGE_SIZE, CHANGE_TIME, OTHER
from ..core.telemetry import Telemetry
from .change import DetectorOptions, Found, Series
from .groups import is_amount

Verdict = Literal["worse", "better", "changed"]
_SERIES = 10_000
_USES = 64
"""Number of scores in a series between two updates of the series' last-use time."""


@dataclass(frozen=True, slots=True)
class Change:
    metric: str
    agent: str
    verdict: Verdict
    """Verdict on the change. ``changed`` if neither higher nor lower values of the metric are better."""
    found: Found
    at: float
    tenant: str | None = None
    facts: tuple[str, ...] = ()
    """Attribute values that are more frequent among failed turns after a change for the worse. Empty without a score store."""

    @property
    def title(self) -> str:
        found = self.found
        where = f" for {self.agent}" if self.agent else ""
        where += f" (tenant {self.tenant})" if self.tenant is not None else ""
        since = f" with version {found.version}" if found.version_before is not None else ""
        return f"{self.metric} is {self.verdict}{where}{since}: mean {found.after:.3g}, was {found.before:.3g}"


def verdict_of(direction: Direction, size: float) -> Verdict:
    if direction == "neutral" or not size:
        return "changed"
    return "better" if (size > 0) == (direction == "up") else "worse"


class _Key(NamedTuple):
    metric: str
    agent: str
    tenant: str | None


@dataclass(slots=True, eq=False)
class _OpenSeries:
    series: Series
    key: _Key
    left: int = _USES


class Changes:
    """Thread-safe change detector for all series of a process."""

    def __init__(self, options: DetectorOptions, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._series: dict[_Key, Series] = {}
        self._places: LabelValues[_Key] = LabelValues(_SERIES)
        self._of_agent: dict[tuple[str, str | None], dict[str, _OpenSeries]] = {}
        """Series in use, by (agent, tenant) and then by metric."""
        self._last: dict[_Key, Change] = {}

    def add(
        self, scores: Iterable[Score], agent: str, weight: float, version: str | None, turn_id: str | None,
        tenant: str | None = None,
    ) -> list[Change]:  # fmt: skip
        """Add a turn's scores, and return the detected changes. ``weight`` is 1 / sampling probability."""
        now = self._clock.time_ns() / 1e9
        changes: list[Change] = []
        with self._lock:
            known = self._of_agent.get((agent, tenant)) or {}
            for score in scores:
                value = score.value
                if value is None or score.status != "ok" or score.vacuous:
                    continue
                metric = score.facts.metric
                place = known.get(metric)
                if place is None or place.left <= 0:
                    place = self._place_of(_Key(metric, agent, tenant), score.facts.unit)
                place.left -= 1
                found = place.series.add(value, now, weight, version, turn_id)
                if found is not None:
                    change = Change(metric, place.key.agent, verdict_of(score.direction, found.size), found, now, tenant)
                    self._last[place.key] = change
                    changes.append(change)
        return changes

    def _place_of(self, key: _Key, unit: str) -> _OpenSeries:
        """Return the series for ``key``. At the limit, replace a rarely used series or, if there is none, return ``__other__``."""
        wanted, now = key, self._clock.monotonic()
        if key in self._places:
            self._places.use(key, now, _USES)
        else:
            admitted, leaving = self._places.ask(key, now)
            if leaving is not None:
                self._series.pop(leaving, None)
                self._last.pop(leaving, None)
                known = self._of_agent.get((leaving.agent, leaving.tenant), {})
                known.pop(leaving.metric, None)
                if not known:
                    self._of_agent.pop((leaving.agent, leaving.tenant), None)
            if not admitted:
                key = key._replace(agent=OTHER)
        series = self._series.get(key)
        if series is None:
            series = self._series[key] = Series(self._options, bounded=unit == "1", is_amount=is_amount(unit))
        found = _OpenSeries(series, key)
        if key == wanted:
            self._of_agent.setdefault((key.agent, key.tenant), {})[key.metric] = found
        return found

    def read(self) -> list[Change]:
        with self._lock:
            return list(self._last.values())

    def watch(self, telemetry: Telemetry) -> None:
        telemetry.watch(CHANGE_TIME, lambda: self._gauges(lambda change: change.at))
        telemetry.watch(CHANGE_SIZE, lambda: self._gauges(lambda change: change.found.size))

    def _gauges(self, value: Callable[[Change], float]) -> Iterator[tuple[Mapping[str, str], float]]:
        # Tenants share a gauge. Its values would be added up, so it shows only the latest change.
        latest = {(change.metric, change.agent, change.verdict): change for change in sorted(self.read(), key=lambda one: one.at)}
        for (metric, agent, verdict), change in latest.items():
            yield {"metric": metric, "agent": agent, "verdict": verdict}, value(change)

    # --- state across restarts

    def state(self) -> list[list[Any]]:
        with self._lock:
            return [[*key, series.state()] for key, series in self._series.items()]

    def restore(self, state: Any, passed: float = 0.0) -> None:
        """Restore the output of :meth:`state`. Skip invalid series. For an invalid structure, raise TypeError or ValueError."""
        for metric, agent, tenant, known in state:
            try:
                series = Series.of_state(self._options, known)
            except (LookupError, TypeError, ValueError, ArithmeticError):
                continue
            with self._lock:
                key = _Key(str(metric), str(agent), None if tenant is None else str(tenant))
                if agent != OTHER:
                    self._places.ask(key, self._clock.monotonic())
                self._series[key] = series
