"""Changes of all series of a process: one series for each metric and agent."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from ..core.clock import Clock
from ..core.label_values import LabelValues
from ..core.score import Direction, Score
from ..core.semconv import CHANGE_SIZE, CHANGE_TIME, OTHER
from ..core.telemetry import Telemetry
from .change import Exemplar, Found, Options, Series

Verdict = Literal["worse", "better", "changed"]
_SERIES = 10_000


@dataclass(frozen=True, slots=True)
class Change:
    """A series has changed."""

    metric: str
    agent: str
    verdict: Verdict
    """``changed`` where neither more nor less of the metric is better."""
    found: Found
    at: float
    """When it was found, in seconds since the Unix epoch."""

    @property
    def title(self) -> str:
        """What happened, in a few words."""
        found = self.found
        of = f" of {self.agent}" if self.agent else ""
        since = f" with version {found.version}" if found.version_before is not None else ""
        return f"{self.metric}{of} is {self.verdict}{since}: mean {found.after:.3g}, before {found.before:.3g}"


def verdict_of(direction: Direction, size: float) -> Verdict:
    """Whether a change of a metric is for the better."""
    if direction == "neutral" or not size:
        return "changed"
    return "better" if (size > 0) == (direction == "up") else "worse"


class Changes:
    """Looks for changes of scores. Thread-safe.

    Args:
        options: how sensitive.
        clock: dates what is found, and gives places to agents.
    """

    def __init__(self, options: Options, clock: Clock) -> None:
        self._options = options
        self._clock = clock
        self.reset()

    def reset(self) -> None:
        """Begin anew: a forked child has seen nothing yet."""
        self._lock = threading.Lock()
        self._series: dict[tuple[str, str], Series] = {}
        self._places: LabelValues[tuple[str, str]] = LabelValues(_SERIES)
        self._last: dict[tuple[str, str], Change] = {}
        """The last change of each series that had one."""

    def see(self, score: Score, agent: str, weight: float, version: str | None, exemplar: Exemplar | None) -> Change | None:
        """One more score: what it shows, if anything.

        Args:
            score: of a turn that was not scored by the metric before.
            agent: who answered.
            weight: one over the probability that it was made with.
            version: of the service that made the turn.
            exemplar: the turn.
        """
        value = score.value
        if value is None or score.status != "ok" or score.vacuous:
            return None
        now = self._clock.time_ns() / 1e9
        with self._lock:
            key, series = self._series_of((score.metric, agent), bounded=score.unit == "1")
            found = series.see(value, now, weight, version, exemplar)
            if found is None:
                return None
            change = self._last[key] = Change(*key, verdict_of(score.direction, found.size), found, now)
            return change

    def _series_of(self, key: tuple[str, str], *, bounded: bool) -> tuple[tuple[str, str], Series]:
        found = self._series.get(key)
        if found is not None:
            self._places.use(key, self._clock.monotonic())
            return key, found
        admitted, leaving = self._places.ask(key, self._clock.monotonic())
        if leaving is not None:
            self._series.pop(leaving, None)
            self._last.pop(leaving, None)
        if not admitted:
            key = key[0], OTHER
        return key, self._series.setdefault(key, Series(self._options, bounded=bounded))

    def read(self) -> list[Change]:
        """The last change of each series that had one."""
        with self._lock:
            return list(self._last.values())

    def watch(self, telemetry: Telemetry) -> None:
        """Show when each series changed last, and by how much."""

        def reader(value: Callable[[Change], float]) -> Callable[[], Iterator[tuple[Mapping[str, str], float]]]:
            def read() -> Iterator[tuple[Mapping[str, str], float]]:
                for change in self.read():
                    yield {"metric": change.metric, "agent": change.agent, "verdict": change.verdict}, value(change)

            return read

        telemetry.watch(CHANGE_TIME, reader(lambda change: change.at))
        telemetry.watch(CHANGE_SIZE, reader(lambda change: change.found.size))

    # --- kept over restarts

    def state(self) -> list[list[Any]]:
        """What is known of each series, as plain values."""
        with self._lock:
            return [[metric, agent, series.state()] for (metric, agent), series in self._series.items()]

    def restore(self, state: Any, passed: float = 0.0) -> None:
        """Go on where another process ended. A series that cannot be read begins anew.

        Args:
            state: as :meth:`state` made it.
            passed: seconds since then, which change nothing.

        Raises:
            TypeError, ValueError: it is no state at all.
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
