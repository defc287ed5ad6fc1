"""Request timing: backoff after failures, the ``Retry-After`` header, rate limits, and circuit breakers.

Processes with the same judge queue share information about outages through :class:`SharedOutages`. Judges that an application calls
directly don't share outages.
"""

from __future__ import annotations

import email.utils
import math
import random
import threading
from collections.abc import Callable
from typing import Protocol

from . import forks
from .clock import SYSTEM_CLOCK, Clock

LONGEST_WAIT = 3_600.0


def backoff(failures: int, first: float, longest: float) -> float:
    """Return the seconds to wait: ``first``, doubled per further failure (up to ``longest``), times a random factor (0.5 to 1)."""
    return min(longest, first * 2.0 ** min(max(0, failures - 1), 64)) * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret


def retry_after(header: str | None, clock: Clock = SYSTEM_CLOCK) -> float:
    """Return the seconds in a ``Retry-After`` header (a number or a date), at most 3,600. Without a valid header, return 0."""
    try:
        asked = float(header or 0)
    except ValueError:
        try:
            asked = email.utils.parsedate_to_datetime(header or "").timestamp() - clock.time_ns() / 1e9
        except (ValueError, OverflowError):
            return 0.0
    return 0.0 if math.isnan(asked) else min(LONGEST_WAIT, max(0.0, asked))


class TokenBucket:
    """Rate limiter. The bucket gains ``rate`` tokens per second and holds at most one second's tokens (at least one token). A
    caller can take more tokens than the bucket holds. Later callers then wait until the missing tokens are refilled. Thread-safe.
    """

    def __init__(self, rate: float, monotonic: Callable[[], float]) -> None:
        self._rate = rate
        self._left = max(1.0, rate)
        self._monotonic = monotonic
        self._filled_at = monotonic()
        self._lock = threading.Lock()

    def wait(self) -> float:
        with self._lock:
            self._fill()
            return max(0.0, -self._left / self._rate)

    def take(self, amount: float) -> float:
        """Take tokens, and return the seconds to wait before use. To return unused tokens, pass a negative ``amount``."""
        with self._lock:
            size = self._fill()
            wait = max(0.0, min(amount, size) - self._left) / self._rate
            self._left = min(size, self._left - amount)
            return wait

    def set_rate(self, rate: float) -> None:
        with self._lock:
            self._fill()
            self._rate = rate
            self._left = min(self._left, max(1.0, rate))

    def _fill(self) -> float:
        now, size = self._monotonic(), max(1.0, self._rate)
        self._left = min(size, self._left + (now - self._filled_at) * self._rate)
        self._filled_at = now
        return size


_FIRST_HOLD, _LONGEST_HOLD = 30.0, 300.0
_SHARE_OF_OUTAGE = 4


class SharedOutages(Protocol):
    def until(self, kind: str) -> float:
        """Return the Unix time at which to retry the server ``kind``, or 0 if the server is up."""

    def report(self, kind: str, until: float, seconds: float) -> None:
        """Record that the server ``kind`` is down for ``seconds``, until the Unix time ``until``. If ``seconds`` is 0, it is up."""

    def close(self) -> None:
        """Release connections and files."""


class CircuitBreaker:
    """Circuit breaker for calls to one server. Thread-safe.

    The breaker opens after ``threshold`` failures in a row (if not None), or when an outage is reported. All calls then wait
    until the same time, when one call tries the server. If the server answered another call after the failed call had started, the
    failure doesn't count, because the server is slow, not down. ``longest`` is the maximum number of seconds between two tries.
    ``kind`` identifies the server in ``shared``, which contains the outages that other processes found.
    """

    def __init__(
        self,
        clock: Clock,
        threshold: int | None = None,
        longest: float = _LONGEST_HOLD,
        kind: str = "",
        shared: SharedOutages | None = None,
    ) -> None:
        self._clock = clock
        self._threshold = float("inf") if threshold is None else threshold
        self._longest = longest
        self._kind = kind
        self._shared = shared
        self._lock = threading.Lock()
        self.failures = 0
        self.answered_at = float("-inf")
        self._since: float | None = None
        self.until = 0.0
        """Unix time until which calls don't try the server."""
        self._trying = False

    def enter(self) -> tuple[float | None, bool]:
        """Return the seconds to wait before a call, and True if the call should try a server that is down. If another call is
        already trying the server, return None instead of the seconds. The caller must call :meth:`leave` after the call.
        """
        if self._shared is None and self._since is None:  # the server is up: no lock needed
            return 0.0, False
        reported = 0.0 if self._shared is None else self._shared.until(self._kind)
        with self._lock:
            if reported > max(self._now(), self.until):
                self.until = reported
                self._since = self._now() if self._since is None else self._since
            if self._since is None:
                return 0.0, False
            left = self.until - self._now()
            if left > 0:
                return left, False
            if self._trying:
                return None, False
            self._trying = True
            return 0.0, True

    def leave(self, trying: bool, answered: bool | None, *, began: float = float("inf"), down: bool = False) -> None:
        """Record the result of a call. ``trying`` is the flag from :meth:`enter`. ``answered`` is None if the server wasn't
        called. ``began`` is the call's monotonic start time. If ``down`` is true, the server is down.
        """
        news: float | None = None
        with self._lock:
            if trying:
                self._trying = False
            if answered:
                self.failures, self.answered_at = 0, self._clock.monotonic()
            elif answered is False and (trying or began >= self.answered_at):
                self.failures += 1
            failed = answered is False and (trying or (self._since is None and self.failures >= self._threshold))
            now = self._now()
            if down or failed:
                self._since = now if self._since is None else self._since
                hold = min(self._longest, max(_FIRST_HOLD, (now - self._since) / _SHARE_OF_OUTAGE))
                if now + hold > self.until:
                    self.until, news = now + hold, hold
            elif answered and self._since is not None:
                self._since, news = None, 0.0
        if news is not None and self._shared is not None:
            self._shared.report(self._kind, self.until, news)

    @property
    def is_closed(self) -> bool:
        return self._since is None

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9


class CircuitBreakers:
    def __init__(self, clock: Clock, shared: SharedOutages | None = None) -> None:
        self._clock = clock
        self._shared = shared
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._found: dict[str, CircuitBreaker] = {}

    def of(self, server: str) -> CircuitBreaker:
        with self._lock:
            found = self._found.get(server)
            if found is None:
                found = self._found[server] = CircuitBreaker(self._clock, kind=server, shared=self._shared)
            return found

    def all(self) -> dict[str, CircuitBreaker]:
        with self._lock:
            return self._found.copy()

    def close(self) -> None:
        if self._shared is not None:
            self._shared.close()
