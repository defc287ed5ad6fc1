"""Limits on the rate and concurrency of model requests."""

from __future__ import annotations

import threading

from ...core.errors import JudgeError
from ...core.token_bucket import TokenBucket
from .request_options import RequestOptions


class RateLimits:
    """Limits on concurrency, requests and tokens per minute. None means no limit. Thread-safe."""

    def __init__(self, options: RequestOptions) -> None:
        most, requests, tokens = options.max_concurrency, options.requests_per_minute, options.tokens_per_minute
        self._clock, self._sleep = options.clock, options.sleep
        self._slots = None if most is None else threading.BoundedSemaphore(most)
        self._requests = None if requests is None else TokenBucket(requests / 60, self._clock.monotonic)
        self._tokens = None if tokens is None else TokenBucket(tokens / 60, self._clock.monotonic)

    def enter(self, tokens: int, until: float) -> None:
        """Wait for a slot until the deadline, in seconds of the monotonic clock. :meth:`leave` must follow.

        Raises:
            JudgeError: the wait would exceed the deadline. Nothing is taken in this case.
        """
        wait = self._take(1, tokens)
        late = self._clock.monotonic() + wait > until
        if wait and not late:
            self._sleep(wait)
        in_time = not late and (self._slots is None or self._slots.acquire(timeout=max(0.0, until - self._clock.monotonic())))
        if not in_time:
            self._take(-1, -tokens)
            raise JudgeError("the configured rate or concurrency allows no call before the deadline", "rate_limited")

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
