"""Circuit breakers that hold jobs during the outage of a model server.

When a server is down, its jobs wait and keep their order until one of them succeeds. All processes that share a queue share
the state. Requests have a separate breaker in :mod:`.models.limits`, which fails them at once after several errors. It also
covers judges that an application calls directly.
"""

from __future__ import annotations

import threading
from typing import Protocol

from ..core.clock import Clock

_FIRST_HOLD, _LONGEST_HOLD = 30.0, 300.0
_SHARE_OF_OUTAGE = 4


class SharedOutages(Protocol):
    """State of servers that are down, shared between processes."""

    def until(self, kind: str) -> float:
        """Return the Unix time at which the next job tries a server, or 0 if the server seems up."""

    def report(self, kind: str, until: float, seconds: float) -> None:
        """Record that a server is down for some seconds, or up again if ``seconds`` is 0."""

    def close(self) -> None:
        """Release connections and files."""

    def after_fork_in_child(self) -> None:
        """Open new connections in a forked child."""


class CircuitBreaker:
    """Breaker for the jobs of one server. Thread-safe.

    All jobs wait for the same moment, so they keep their order. Then one job tries the server.

    Args:
        clock: the clock for outages.
        kind: the server's name, shared with other processes.
        shared: outages that other processes found, if any.
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
        """Return the seconds that a job must wait, and True if it is the one that tries.

        The time is 0 if the job can continue, or None while another job is trying the server.
        """
        if self._shared is None and self._since is None:  # the server is up: no lock needed
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
        """Record the result of a job that continued.

        Args:
            trying: as returned by :meth:`enter`.
            answered: True if the server answered, or None if it wasn't called.
            down: True if it wasn't called because it is known to be down.
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
        """Return the Unix time at which the next job tries the server."""
        return self._until

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9


class CircuitBreakers:
    """Collection with one breaker for each server. Thread-safe.

    Args:
        clock: the clock for outages.
        shared: outages that other processes found, if any.
    """

    def __init__(self, clock: Clock, shared: SharedOutages | None = None) -> None:
        self._clock = clock
        self._shared = shared
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, CircuitBreaker] = {}

    def of(self, server: str) -> CircuitBreaker:
        """Return the breaker of a server."""
        with self._lock:
            found = self._found.get(server)
            if found is None:
                found = self._found[server] = CircuitBreaker(self._clock, server, self._shared)
            return found

    def close(self) -> None:
        """Stop sharing outages with other processes."""
        if self._shared is not None:
            self._shared.close()

    def after_fork_in_child(self) -> None:
        """Forget outages and open new connections in a forked child."""
        self._reset()
        if self._shared is not None:
            self._shared.after_fork_in_child()
