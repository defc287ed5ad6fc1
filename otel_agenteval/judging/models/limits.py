"""Limits on the rate and concurrency of model requests."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ...core.clock import Clock
from ...core.errors import JudgeError
from ...core.token_bucket import TokenBucket


class RateLimits:
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
        self._requests = None if requests_per_minute is None else TokenBucket(requests_per_minute / 60, clock.monotonic)
        self._tokens = None if tokens_per_minute is None else TokenBucket(tokens_per_minute / 60, clock.monotonic)
        self._clock = clock
        self._sleep = sleep

    def enter(self, tokens: int, until: float) -> None:
        """Wait for a slot until the deadline, in seconds of the monotonic clock. :meth:`leave` must follow.

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
        if self._slots is not None:
            self._slots.release()

    def correct(self, estimated: int, used: int) -> None:
        if self._tokens is not None:
            self._tokens.take(used - estimated)

    def _take(self, requests: int, tokens: int) -> float:
        waits = [
            bucket.take(amount) for bucket, amount in ((self._requests, requests), (self._tokens, tokens)) if bucket is not None
        ]
        return max(waits, default=0.0)
