"""Clock interface. Callers pass a clock as an argument, so that tests can replace the clock instead of sleeping."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Source of time: monotonic for deadlines, wall-clock for timestamps."""

    def monotonic(self) -> float:
        """Return seconds since an arbitrary start. The value never decreases."""

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch."""


class SystemClock:
    monotonic = staticmethod(time.monotonic)
    time_ns = staticmethod(time.time_ns)


SYSTEM_CLOCK = SystemClock()
