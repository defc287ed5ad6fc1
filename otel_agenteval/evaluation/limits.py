"""Limit the run time of metrics that aren't built in, and limit the worker's load.

A hanging metric must not stop all scoring, so metrics that aren't built in have a time limit. An overloaded worker first skips
``llm_`` metrics, then also ``embed_`` metrics, then also heavy ``code_`` metrics. The load is the fill ratio of the worker's queue,
because the worker prepares turns for judges and runs heavy metrics. A slow or unreachable judge doesn't fill this queue.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable

from ..core.errors import MetricError
from ..core.score import Score
from ..core.threads import Lane, is_ours, own_work
from ..core.turn import Turn
from ..metrics.bound_metric import BoundMetric

_log = logging.getLogger("otel_agenteval")

_PAUSE = 60.0
"""Seconds after an interrupted call before the metric is called again. The pause doubles each time, up to an hour."""
_LONGEST_PAUSE = 3600.0

Interrupted = Callable[[float, Callable[[], Score]], Score]
"""Function that runs work on the calling thread, and raises a TimeoutError if the work still waits after the given seconds."""


class ForeignMetrics:
    """Component that runs metrics that aren't built in. If they don't open media, their waits are limited to ``limit()`` seconds.

    ``interrupted()`` returns a function that can interrupt the calling thread, or None. With None, calls on the application's
    threads don't have a limit, and other calls run on a thread per metric. While a call hangs, the metric's scores are errors.
    """

    def __init__(self, limit: Callable[[], float], interrupted: Callable[[], Interrupted | None]) -> None:
        self._limit = limit
        self._interrupted = interrupted
        self._lanes: dict[tuple[str, str], Lane] = {}
        self._pauses: dict[tuple[str, str], tuple[float, float]] = {}
        """Maps each metric's key to (end of its pause in monotonic seconds, length of the pause in seconds)."""
        self._hung: dict[str, str] = {}

    def hung(self) -> dict[str, str]:
        """Return {metric name: problem} for each metric whose last call timed out."""
        return dict(self._hung)

    def keep_only(self, metrics: Iterable[BoundMetric]) -> None:
        """Discard the state of metrics that aren't in ``metrics``. Call this method after a configuration reload."""
        found = list(metrics)
        names, keys = {metric.name for metric in found}, {metric.key for metric in found}
        self._hung = {name: reason for name, reason in self._hung.items() if name in names}
        self._pauses = {key: pause for key, pause in self._pauses.items() if key in keys}
        self._lanes = {key: lane for key, lane in self._lanes.items() if key in keys}

    def evaluate(self, metric: BoundMetric, turn: Turn) -> Score:
        """Return a metric's score, or an error if the call takes too long, an earlier call hangs, or the metric is paused."""
        interrupted = self._interrupted()
        if metric.opens_media or not (interrupted or is_ours()):  # opening media has its own limit
            return metric.evaluate(turn)

        def work() -> Score:
            with own_work():
                return metric.evaluate(turn)

        seconds = self._limit()
        lane = self._lanes.get(metric.key)
        until, pause = self._pauses.get(metric.key, (0.0, _PAUSE / 2))
        try:
            if (lane is not None and lane.stuck) or time.monotonic() < until:
                raise TimeoutError
            if interrupted is not None:
                score = interrupted(seconds, work)
            else:
                if lane is None:
                    lane = self._lanes[metric.key] = Lane(seconds)
                score = lane.ask(work, seconds)
        except TimeoutError:
            reason = f"no result within {seconds:g} s"
            if metric.name not in self._hung:
                _log.warning("metric %s: %s. Its scores are errors until it returns or a pause ends", metric.name, reason)
            self._hung[metric.name] = reason
            if interrupted is not None and time.monotonic() >= until:
                pause = min(2 * pause, _LONGEST_PAUSE)
                self._pauses[metric.key] = time.monotonic() + pause, pause
            return metric.failed(MetricError("timeout", f"{metric.name}: {reason}"))
        if self._hung:
            self._hung.pop(metric.name, None)
            self._pauses.pop(metric.key, None)
        return score


# --- load shedding

LEVELS = ("llm", "embed", "heavy")
"""Kinds of metrics to skip. Level 1 skips the first kind, level 2 the first two kinds, and level 3 all kinds."""
_ON = (0.5, 0.7, 0.85)
_LOWER = 0.25
"""A level ends only when the fill ratio is this far below the value that started the level."""
_HOLD = 5.0


class Shedding:
    """Current level of load shedding. Only the thread that handles a batch updates the level. ``now`` returns monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.level = 0
        self._now = now
        self._since = 0.0

    def update(self, fill: float) -> int:
        """Update and return the level. ``fill`` is the queue's fill ratio (0..1). The level falls by at most one step per call."""
        wanted = sum(fill >= on for on in _ON)
        if wanted > self.level:
            self.level, self._since = wanted, self._now()
        elif self.level and fill < _ON[self.level - 1] - _LOWER and self._now() - self._since >= _HOLD:
            self.level, self._since = self.level - 1, self._now()
        return self.level

    def skips(self, what: str) -> bool:
        """Return True if metrics of this kind (``llm``, ``embed``, or ``heavy``) are skipped at the current level."""
        return self.level > LEVELS.index(what)
