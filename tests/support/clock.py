"""A clock that only a test moves."""

from __future__ import annotations


class FakeClock:
    """Both readings of :class:`otel_agenteval.core.clock.Clock`. They move together."""

    def __init__(self, monotonic: float = 1_000.0, time_ns: int = 1_767_225_600_000_000_000) -> None:
        self._monotonic = monotonic
        self._time_ns = time_ns

    def monotonic(self) -> float:
        return self._monotonic

    def time_ns(self) -> int:
        """Return nanoseconds since the Unix epoch. The default start is 2026-01-01T00:00:00Z."""
        return self._time_ns

    def advance(self, seconds: float) -> None:
        self._monotonic += seconds
        self._time_ns += round(seconds * 1e9)
