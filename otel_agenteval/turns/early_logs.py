"""Log records that come before the spans that they belong to: a log exporter sends while the span is still open."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from ..spans.record import LogPart

Parts = list[tuple[int, LogPart, int]]
"""Span id, record, and its size in bytes."""


class EarlyLogs:
    """Log records whose trace is unknown, by trace. The oldest are dropped when they wait too long or hold too much. Not thread-safe.

    Args:
        max_bytes: what they may hold.
        max_age: seconds that a record waits for its trace.
        now: monotonic seconds.
    """

    def __init__(self, max_bytes: int, max_age: Callable[[], float], now: Callable[[], float]) -> None:
        self._max_bytes = max_bytes
        self._max_age = max_age
        self._now = now
        self._traces: OrderedDict[int, tuple[float, Parts]] = OrderedDict()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._traces)

    def __contains__(self, trace_id: int) -> bool:
        return trace_id in self._traces

    def add(self, trace_id: int, span_id: int, part: LogPart, size: int) -> int:
        """Keep a record; returns how many others had to go for it."""
        self._traces.setdefault(trace_id, (self._now(), []))[1].append((span_id, part, size))
        self._bytes += size
        lost = self.expire()
        while self._bytes > self._max_bytes:
            lost += len(self.pop(next(iter(self._traces))))
        return lost

    def expire(self) -> int:
        """Drop the records of traces that didn't come in time; return how many."""
        oldest, lost = self._now() - self._max_age(), 0
        while self._traces and next(iter(self._traces.values()))[0] <= oldest:
            lost += len(self.pop(next(iter(self._traces))))
        return lost

    def pop(self, trace_id: int) -> Parts:
        """The records of a trace, which are no longer kept here."""
        found = self._traces.pop(trace_id, (0.0, []))[1]
        self._bytes -= sum(size for _, _, size in found)
        return found

    def forget(self) -> None:
        """Drop everything: in a forked child, the parent owns it."""
        self._traces.clear()
        self._bytes = 0
