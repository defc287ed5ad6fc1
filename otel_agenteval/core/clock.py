"""Time, injected everywhere so that tests never sleep."""

from __future__ import annotations

import time
from typing import Protocol


class Clock(Protocol):
    """Two readings: deadlines use the monotonic one, timestamps the wall one."""

    def monotonic(self) -> float:
        """Seconds from an arbitrary start; never goes back."""

    def time_ns(self) -> int:
        """Nanoseconds since the Unix epoch."""


class SystemClock:
    """The machine's clocks."""

    monotonic = staticmethod(time.monotonic)
    time_ns = staticmethod(time.time_ns)


SYSTEM_CLOCK = SystemClock()
