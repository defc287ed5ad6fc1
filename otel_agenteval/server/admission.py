"""Admission control: limits the memory of requests in progress, and of open turns.

A request is charged for its bytes as they arrive, for its decompressed size, and for the memory that parsing it takes.
A request never waits for memory. If there isn't enough, its sender is asked to retry, so requests can't deadlock.
"""

from __future__ import annotations

import threading
from asyncio import Future
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..engine.status import Status
from ..spans.wire import Part
from .responses import Refusal

LEAST = 256 << 20
"""Smallest limit in bytes if ``serve.max_inflight`` isn't set."""
COPIES = 3
"""How many copies of a body exist during parsing: as received, as protobuf, and as spans."""
_HALF, _CROWDED, _NEARLY_ALL = 0.5, 0.75, 0.95
"""Fill levels of open turns. All requests are accepted below the first, and none from the last."""
_STUCK = 30.0
"""Seconds of refusals after which the oldest open turns are evicted."""
TURNS_FULL = "open turns are close to their limit (turn.total_bytes, turn.max_open)"


class Budget:
    """Memory budget of ``limit`` bytes, shared by all requests. Thread-safe."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.used = 0
        self.peak = 0
        self._lock = threading.Lock()

    @property
    def fill(self) -> float:
        """Part of the limit in use now, from 0 to 1."""
        return self.used / self.limit

    def check(self, announced: int | None) -> None:
        """Raise a Refusal if a request of the announced size doesn't fit now."""
        size = announced or 0
        if size > self.limit:
            raise self.too_large()
        if self.used + size > self.limit:
            raise self.no_room()

    def too_large(self) -> Refusal:
        return Refusal(
            "too_large",
            f"the request needs more than the {self.limit} bytes that all requests can use together (serve.max_inflight)",
        )

    @staticmethod
    def no_room() -> Refusal:
        return Refusal("overloaded", "requests in progress use all the memory that serve.max_inflight allows; retry later")

    def take(self, size: int) -> bool:
        with self._lock:
            if self.used + size > self.limit:
                return False
            self.used += size
            self.peak = max(self.peak, self.used)
            return True

    def release(self, size: int) -> None:
        with self._lock:
            self.used -= size


class MemoryShare:
    """Part of a budget that one request holds. Used by one thread at a time."""

    __slots__ = ("_budget", "_kept", "size")

    def __init__(self, budget: Budget | None) -> None:
        self._budget = budget
        self.size = 0
        self._kept = False

    @property
    def room(self) -> int | None:
        """Bytes by which the share could grow without other requests. None if unlimited."""
        return None if self._budget is None else self._budget.limit - self.size

    def grow(self, size: int) -> None:
        """Reserve ``size`` more bytes, or raise a Refusal if they don't fit."""
        budget = self._budget
        if budget is None:
            return
        if self.size + size > budget.limit:
            raise budget.too_large()
        if not budget.take(size):
            raise budget.no_room()
        self.size += size

    def shrink(self, size: int) -> None:
        if self._budget is not None and size:
            self.size -= size
            self._budget.release(size)

    def keep_until(self, work: Future[Any]) -> None:
        """Keep the share until ``work`` ends, even if the response is sent earlier."""
        self._kept = True
        work.add_done_callback(lambda _: self.shrink(self.size))

    def close(self) -> None:
        """Release all bytes at the end of the request. Safe to call twice."""
        if not self._kept:
            self.shrink(self.size)


UNBOUNDED = MemoryShare(None)
"""Share without a limit, for requests whose memory is limited elsewhere."""


class Arriving:
    """Admission by open turns, so that requests don't evict turns that can still complete.

    When open turns fill three quarters of their limit, a request must bring more bytes for open turns than for new ones.
    The sender of a refused request retries until turns close. If no turn closes for 30 seconds, all open turns wait
    for spans that don't arrive. Then requests are accepted and the oldest turns are evicted. Thread-safe.
    """

    def __init__(self, status: Status, now: Callable[[], float]) -> None:
        self._status = status
        self._now = now
        self._lock = threading.Lock()
        self._bytes = 0
        self._turns = 0
        self._full_since: float | None = None

    @property
    def is_full(self) -> bool:
        return self._status.open_turns.fill() >= _NEARLY_ALL and not self._is_stuck()

    @contextmanager
    def room(self, parts: Sequence[tuple[int, Part]]) -> Iterator[None]:
        """Reserve room for a request's spans during the block, or raise a Refusal."""
        if not parts:
            yield
            return
        size = sum(part.size for _, part in parts)
        new = [part.size for key, part in parts if not self._status.is_open(key)]
        with self._lock:
            before, after = self._fill(0, 0), self._fill(size, len(new))
            crowded = after > 1 or (after > _CROWDED and sum(new) * 2 > size)
            if before < _CROWDED:
                self._full_since = None
            if crowded and before > _HALF and not self._is_stuck():
                if self._full_since is None:
                    self._full_since = self._now()
                raise Refusal("overloaded", TURNS_FULL)
            self._bytes += size
            self._turns += len(new)
        try:
            yield
        finally:
            with self._lock:
                self._bytes -= size
                self._turns -= len(new)

    def _fill(self, size: int, turns: int) -> float:
        return self._status.open_turns.fill(self._bytes + size, self._turns + turns)

    def _is_stuck(self) -> bool:
        return self._full_since is not None and self._now() - self._full_since > _STUCK
