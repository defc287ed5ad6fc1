"""Buffer for log records that arrive before their spans.

A log exporter often sends a record while its span is still open.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

from ..spans.record import LogPart

Parts = list[tuple[int, LogPart, int]]
"""Tuples of span id, record and the record's size in bytes."""


class EarlyLogs:
    """Log records of unknown traces, by trace. Not thread-safe.

    The oldest records are dropped when they wait longer than ``max_age()`` seconds or exceed ``max_bytes``.
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
        """Keep a record, and return the number of records dropped to make room."""
        self._traces.setdefault(trace_id, (self._now(), []))[1].append((span_id, part, size))
        self._bytes += size
        lost = self.expire()
        while self._bytes > self._max_bytes:
            lost += len(self.pop(next(iter(self._traces))))
        return lost

    def expire(self) -> int:
        """Drop the records of traces that didn't arrive in time, and return their number."""
        oldest, lost = self._now() - self._max_age(), 0
        while self._traces and next(iter(self._traces.values()))[0] <= oldest:
            lost += len(self.pop(next(iter(self._traces))))
        return lost

    def pop(self, trace_id: int) -> Parts:
        found = self._traces.pop(trace_id, (0.0, []))[1]
        self._bytes -= sum(size for _, _, size in found)
        return found

    def forget(self) -> None:
        self._traces.clear()
        self._bytes = 0
