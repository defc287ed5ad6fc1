"""Limits on the rate and concurrency of model requests."""

from __future__ import annotations

import threading

from ...core.errors import JudgeError
from ...core.token_bucket import TokenBucket
from .request_options import RequestOptions


class RateLimits:
    """Limits on concurrency, requests and tokens per minute. None means no limit. Thread-safe. Many servers of local models
    process one request at a time, so each time-out halves the concurrency, and answers raise it again.
    """

    def __init__(self, options: RequestOptions) -> None:
        requests, tokens = options.requests_per_minute, options.tokens_per_minute
        self._clock, self._sleep = options.clock, options.sleep
        self._most = self._room = float("inf") if options.max_concurrency is None else options.max_concurrency
        """Maximum number of concurrent requests, as configured and at present."""
        self._running = 0
        self._free = threading.Condition()
        self._slowed = float("-inf")
        """Time of the last reduction. Later time-outs of requests that began before it have the same cause."""
        self._has_answered = False
        self._requests = None if requests is None else TokenBucket(requests / 60, self._clock.monotonic)
        self._tokens = None if tokens is None else TokenBucket(tokens / 60, self._clock.monotonic)

    def enter(self, tokens: int, until: float) -> None:
        """Wait for a slot until the monotonic deadline. :meth:`leave` must follow. A JudgeError takes nothing."""
        wait = self._take(1, tokens)
        late = self._clock.monotonic() + wait > until
        if wait and not late:
            self._sleep(wait)
        with self._free:
            left = max(0.0, until - self._clock.monotonic())
            if not late and self._free.wait_for(lambda: self._running + 1 <= self._room, left):
                self._running += 1
                return
        self._take(-1, -tokens)
        raise JudgeError("the rate or concurrency allows no call before the deadline", "rate_limited")

    def leave(self, *, answered: bool = True) -> None:
        with self._free:
            self._running -= 1
            self._has_answered |= answered
            if answered and self._room < self._most:
                self._room = min(self._most, self._room + 1 / self._room)
            self._free.notify_all()

    def slow_down(self, began: float) -> bool:
        """Halve the concurrency after a time-out. Return False if the server was only busy with requests sent before that."""
        with self._free:
            news = began >= self._slowed
            if news:
                self._room, self._slowed = max(1, (self._running + 1) // 2), self._clock.monotonic()
            return news or not self._has_answered

    @property
    def is_reduced(self) -> bool:
        """Return True if the server answers, but not as many concurrent requests as allowed."""
        return self._has_answered and self._room < self._most

    def correct(self, estimated: int, used: int) -> None:
        if self._tokens is not None:
            self._tokens.take(used - estimated)

    def _take(self, requests: int, tokens: int) -> float:
        waits = [
            bucket.take(amount) for bucket, amount in ((self._requests, requests), (self._tokens, tokens)) if bucket is not None
        ]
        return max(waits, default=0.0)
