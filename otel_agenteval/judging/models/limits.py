"""Limits on model requests: rates, concurrency, and a circuit breaker.

The breaker rejects every request at once while a server is down. A separate one in :mod:`..circuit_breaker` holds jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...core.clock import Clock
from ...core.errors import JudgeError


class Bucket:
    """Token bucket for a rate per minute.

    One second's amount is available at once. Later requests wait in order of arrival.
    """

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self._rate = per_minute / 60
        self._room = max(1.0, self._rate)
        self._level = self._room
        self._clock = clock
        self._last = clock.monotonic()
        self._lock = threading.Lock()

    def take(self, amount: float) -> float:
        """Take an amount, and return the seconds to wait before using it.

        A negative amount is returned to the bucket.
        """
        with self._lock:
            now = self._clock.monotonic()
            self._level = min(self._room, self._level + (now - self._last) * self._rate)
            self._last = now
            wait = max(0.0, min(amount, self._room) - self._level) / self._rate
            self._level = min(self._room, self._level - amount)
            return wait


class Limits:
    """Limits on concurrency, requests and tokens per minute. None means no limit. Thread-safe."""

    def __init__(
        self,
        max_concurrency: int | None,
        requests_per_minute: float | None,
        tokens_per_minute: float | None,
        clock: Clock,
        sleep: Callable[[float], None],
    ) -> None:
        self._slots = None if max_concurrency is None else threading.BoundedSemaphore(max_concurrency)
        self._requests = None if requests_per_minute is None else Bucket(requests_per_minute, clock)
        self._tokens = None if tokens_per_minute is None else Bucket(tokens_per_minute, clock)
        self._clock = clock
        self._sleep = sleep

    def enter(self, tokens: int, until: float) -> None:
        """Wait for a slot until the deadline ``until``, in seconds of the monotonic clock.

        :meth:`leave` must follow.

        Raises:
            JudgeError: the wait would exceed the deadline. Nothing is taken in this case.
        """
        wait = self._take(1, tokens)
        late = self._clock.monotonic() + wait > until
        if wait and not late:
            self._sleep(wait)
        if late or not self._has_slot(until):
            self._take(-1, -tokens)
            raise JudgeError("the configured rate or concurrency allows no call before the deadline", "rate_limited")

    def _has_slot(self, until: float) -> bool:
        return self._slots is None or self._slots.acquire(timeout=max(0.0, until - self._clock.monotonic()))

    def leave(self) -> None:
        """Release the slot after the call."""
        if self._slots is not None:
            self._slots.release()

    def correct(self, estimated: int, used: int) -> None:
        """Replace estimated tokens by the actual number."""
        if self._tokens is not None:
            self._tokens.take(used - estimated)

    def _take(self, requests: int, tokens: int) -> float:
        waits = [
            bucket.take(amount) for bucket, amount in ((self._requests, requests), (self._tokens, tokens)) if bucket is not None
        ]
        return max(waits, default=0.0)


class Breaker:
    """Circuit breaker that opens after ``threshold`` failures in a row.

    One call tries again after ``cooldown`` seconds. A failure doesn't count if the server answered another call in the
    meantime: the server is slow or overloaded, but not down.
    """

    def __init__(self, clock: Clock, threshold: int = 5, cooldown: float = 30.0) -> None:
        self._clock = clock
        self._threshold = threshold
        self._cooldown = cooldown
        self._lock = threading.Lock()
        self._failures = 0
        self._answered = float("-inf")
        """Time at which the last answered call ended."""
        self._opened: float | None = None
        self._probing = False

    @property
    def closed(self) -> bool:
        """Return True if calls are allowed."""
        return self._opened is None

    def admit(self) -> bool:
        """Allow a call, and return True if it is the one that tries again.

        :meth:`leave` must follow.

        Raises:
            JudgeError: the server is considered down.
        """
        with self._lock:
            if self._opened is None:
                return False
            if self._probing or self._clock.monotonic() - self._opened < self._cooldown:
                raise JudgeError(f"not called, because the server failed {self._failures} times in a row", "circuit_open")
            self._probing = True
            return True

    def leave(self, probe: bool, alive: bool | None, began: float = float("inf")) -> None:
        """Record the result of an allowed call.

        Args:
            probe: as returned by :meth:`admit`.
            alive: True if the server answered, or None if it wasn't called.
            began: when the call started, in seconds of the monotonic clock.
        """
        with self._lock:
            if probe:
                self._probing = False
            if alive:
                self._failures, self._opened = 0, None
                self._answered = self._clock.monotonic()
            elif alive is False and (probe or began >= self._answered):
                self._failures += 1
                if self._failures >= self._threshold and (self._opened is None or probe):
                    self._opened = self._clock.monotonic()
