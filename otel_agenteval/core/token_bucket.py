"""A token bucket, which limits a rate."""

from __future__ import annotations

import threading
from collections.abc import Callable


class TokenBucket:
    """Bucket that fills with ``rate`` tokens per second and holds one second's tokens, at least one. More can be taken. Later
    ones then wait until the debt is paid. Thread-safe.
    """

    def __init__(self, rate: float, monotonic: Callable[[], float]) -> None:
        self._rate = rate
        self._left = max(1.0, rate)
        self._monotonic = monotonic
        self._filled_at = monotonic()
        self._lock = threading.Lock()

    def wait(self) -> float:
        """Return the seconds until the bucket holds tokens, or 0 if it holds some."""
        with self._lock:
            self._fill()
            return max(0.0, -self._left / self._rate)

    def take(self, amount: float) -> float:
        """Take tokens, or return a negative amount. Returns the seconds until all are there, at most until the bucket is full."""
        with self._lock:
            self._fill()
            wait = max(0.0, min(amount, self._size) - self._left) / self._rate
            self._left = min(self._size, self._left - amount)
            return wait

    def set_rate(self, rate: float) -> None:
        """Change the rate. Tokens that were taken stay taken."""
        with self._lock:
            self._fill()
            self._rate = rate
            self._left = min(self._left, self._size)

    @property
    def _size(self) -> float:
        return max(1.0, self._rate)

    def _fill(self) -> None:
        now = self._monotonic()
        self._left = min(self._size, self._left + (now - self._filled_at) * self._rate)
        self._filled_at = now
