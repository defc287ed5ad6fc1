"""What keeps us from asking too much: token buckets, a limit of calls at once, and a breaker for a server that is down.

The breaker refuses requests at once while a server is down, whatever asks. Jobs are held back by :mod:`..circuit_breaker`.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...core.clock import Clock
from ...core.errors import JudgeError


class Bucket:
    """A rate per minute. A second's worth may come at once; what comes later waits for its turn, in order of arrival."""

    def __init__(self, per_minute: float, clock: Clock) -> None:
        self._rate = per_minute / 60
        self._room = max(1.0, self._rate)
        self._level = self._room
        self._clock = clock
        self._last = clock.monotonic()
        self._lock = threading.Lock()

    def take(self, amount: float) -> float:
        """Take an amount, and the seconds to wait before it is used. An amount below 0 is given back."""
        with self._lock:
            now = self._clock.monotonic()
            self._level = min(self._room, self._level + (now - self._last) * self._rate)
            self._last = now
            wait = max(0.0, min(amount, self._room) - self._level) / self._rate
            self._level = min(self._room, self._level - amount)
            return wait


class Limits:
    """Calls at once, requests and tokens per minute; None is without limit. Thread-safe."""

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
        """Wait for a turn, in seconds of the monotonic clock no longer than ``until``; :meth:`leave` ends it.

        Raises:
            JudgeError: the turn would come too late; nothing is then taken.
        """
        wait = self._take(1, tokens)
        late = self._clock.monotonic() + wait > until
        if wait and not late:
            self._sleep(wait)
        if late or not self._has_slot(until):
            self._take(-1, -tokens)
            raise JudgeError(
                "the configured rate or concurrency leaves no room before the deadline of this question", "rate_limited"
            )

    def _has_slot(self, until: float) -> bool:
        return self._slots is None or self._slots.acquire(timeout=max(0.0, until - self._clock.monotonic()))

    def leave(self) -> None:
        """The call has ended."""
        if self._slots is not None:
            self._slots.release()

    def correct(self, estimated: int, used: int) -> None:
        """Tokens that were used, where others had been taken."""
        if self._tokens is not None:
            self._tokens.take(used - estimated)

    def _take(self, requests: int, tokens: int) -> float:
        waits = [
            bucket.take(amount) for bucket, amount in ((self._requests, requests), (self._tokens, tokens)) if bucket is not None
        ]
        return max(waits, default=0.0)


class Breaker:
    """Stops asking a server that failed ``threshold`` times in a row; after ``cooldown`` seconds one call tries again.

    What failed although the server answered another call in the meantime says nothing: it is slow, or has too much to do, and is not down.
    """

    def __init__(self, clock: Clock, threshold: int = 5, cooldown: float = 30.0) -> None:
        self._clock = clock
        self._threshold = threshold
        self._cooldown = cooldown
        self._lock = threading.Lock()
        self._failures = 0
        self._answered = float("-inf")
        """When the last call ended that was answered."""
        self._opened: float | None = None
        self._probing = False

    @property
    def closed(self) -> bool:
        """Whether calls are let through."""
        return self._opened is None

    def admit(self) -> bool:
        """Let a call through; whether it is the one that tries again. :meth:`leave` says how it went.

        Raises:
            JudgeError: the server is taken to be down.
        """
        with self._lock:
            if self._opened is None:
                return False
            if self._probing or self._clock.monotonic() - self._opened < self._cooldown:
                raise JudgeError(f"not asked: the server failed {self._failures} times in a row", "circuit_open")
            self._probing = True
            return True

    def leave(self, probe: bool, alive: bool | None, began: float = float("inf")) -> None:
        """How a call went that was let through.

        Args:
            probe: as :meth:`admit` said.
            alive: whether the server answered; None where it was not asked after all.
            began: when it was asked, in seconds of the monotonic clock.
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
