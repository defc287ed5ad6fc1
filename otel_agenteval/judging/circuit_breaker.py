"""What is known of a server that is down: its jobs wait until one of them finds it up again.

This breaker is about jobs, which can wait: while a server is down, its jobs keep their order, and all processes that share a queue know
of it. The one in :mod:`.models.limits` is about requests, which cannot: after some failures in a row it refuses them at once, also where
an application asks a judge directly.
"""

from __future__ import annotations

import threading
from typing import Protocol

from ..core.clock import Clock

_FIRST_HOLD, _LONGEST_HOLD = 30.0, 300.0
_SHARE_OF_OUTAGE = 4


class SharedOutages(Protocol):
    """What processes tell each other about servers that are down."""

    def until(self, kind: str) -> float:
        """When the next job tries it, in seconds since the Unix epoch; 0 when it is up as far as is known."""

    def report(self, kind: str, until: float, seconds: float) -> None:
        """It is down, for so many seconds from now on; 0 says that it is up again."""

    def close(self) -> None:
        """Release what it holds."""

    def after_fork_in_child(self) -> None:
        """The child has connections of its own."""


class CircuitBreaker:
    """Holds the jobs of a server that does not answer: they wait for the same moment, so that they keep their order; then one tries.

    Thread-safe.

    Args:
        clock: dates it.
        kind: which server, for other processes.
        shared: what other processes found out about it.
    """

    def __init__(self, clock: Clock, kind: str = "", shared: SharedOutages | None = None) -> None:
        self._clock = clock
        self._kind = kind
        self._shared = shared
        self._lock = threading.Lock()
        self._since: float | None = None
        self._until = 0.0
        self._trying = False

    def enter(self) -> tuple[float | None, bool]:
        """Whether a job may continue: (0, whether it is the one that tries), or the seconds to wait; None until that one is back."""
        if self._shared is None and self._since is None:  # it is up: nothing to keep
            return 0.0, False
        reported = 0.0 if self._shared is None else self._shared.until(self._kind)
        with self._lock:
            if reported > max(self._now(), self._until):
                self._until = reported
                self._since = self._now() if self._since is None else self._since
            if self._since is None:
                return 0.0, False
            left = self._until - self._now()
            if left > 0:
                return left, False
            if self._trying:
                return None, False
            self._trying = True
            return 0.0, True

    def leave(self, trying: bool, answered: bool | None, *, down: bool = False) -> None:
        """What came of a job that continued.

        Args:
            trying: as :meth:`enter` said.
            answered: whether the server answered; None when it was not asked.
            down: whether it was not asked because it is known to be down.
        """
        if self._since is None and not trying and not down:
            return
        news: float | None = None
        with self._lock:
            now = self._now()
            if trying:
                self._trying = False
            if down or (trying and answered is False):
                self._since = now if self._since is None else self._since
                hold = min(_LONGEST_HOLD, max(_FIRST_HOLD, (now - self._since) / _SHARE_OF_OUTAGE))
                if now + hold > self._until:
                    self._until, news = now + hold, hold
            elif answered and self._since is not None:
                self._since, news = None, 0.0
        if news is not None and self._shared is not None:
            self._shared.report(self._kind, self._until, news)

    @property
    def until(self) -> float:
        """When the next job tries, in seconds since the Unix epoch."""
        return self._until

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9


class CircuitBreakers:
    """One breaker for each server. Thread-safe.

    Args:
        clock: dates outages.
        shared: what processes tell each other about servers that are down.
    """

    def __init__(self, clock: Clock, shared: SharedOutages | None = None) -> None:
        self._clock = clock
        self._shared = shared
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, CircuitBreaker] = {}

    def of(self, server: str) -> CircuitBreaker:
        """That of a server."""
        with self._lock:
            found = self._found.get(server)
            if found is None:
                found = self._found[server] = CircuitBreaker(self._clock, server, self._shared)
            return found

    def close(self) -> None:
        """Tell other processes nothing more."""
        if self._shared is not None:
            self._shared.close()

    def after_fork_in_child(self) -> None:
        """The child finds out for itself, and has connections of its own."""
        self._reset()
        if self._shared is not None:
            self._shared.after_fork_in_child()
