"""Admission by memory: what all requests together may hold of this process, from their first byte to their response.

A request is charged for its bytes as they come in, for their size while they are unpacked, and for what reading them takes before
they are read. No request waits for room: a sender that finds none is asked to retry, so that requests that each hold a part of it
can never wait for each other.
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
"""What ``serve.max_inflight: null`` is at least, in bytes."""
COPIES = 3
"""How often a body is held while it is read: as it came, as protobuf keeps it, and as the spans that are made of it."""
_HALF, _CROWDED, _NEARLY_ALL = 0.5, 0.75, 0.95
"""Shares of what open turns may hold: below the first any request is accepted, from the last none."""
_STUCK = 30.0
"""Seconds after which turns are evicted, when all that are open wait for spans that do not come."""
TURNS_FULL = "open turns hold nearly all that they may hold (turn.total_bytes, turn.max_open)"


class Budget:
    """The bytes that all requests hold together. Thread-safe.

    Args:
        limit: bytes; no request is accepted beyond it.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._used = 0
        self._peak = 0
        self._lock = threading.Lock()
        self._on_room: Callable[[], None] | None = None

    @property
    def used(self) -> int:
        """Bytes that are held now."""
        return self._used

    @property
    def peak(self) -> int:
        """The most that were ever held."""
        return self._peak

    @property
    def fill(self) -> float:
        """The share of the limit that is held now."""
        return self._used / self.limit

    def check(self, announced: int | None) -> None:
        """Look whether a request of so many bytes could come in now; nothing is reserved.

        Raises:
            Refusal: not now, or never.
        """
        size = announced or 0
        if size > self.limit:
            raise self.too_large()
        if self._used + size > self.limit:
            raise self.no_room()

    def share(self, size: int = 0) -> Share | None:
        """The share of one request, which begins with so many bytes; None when there is no room for them now."""
        return Share(self, size) if self._take(size) else None

    def when_room(self, call: Callable[[], None]) -> None:
        """Call something, on any thread, whenever bytes are given back."""
        self._on_room = call

    def too_large(self) -> Refusal:
        """The refusal of a request that can never fit."""
        return Refusal(
            "too_large",
            f"reading the request takes more than the {self.limit} bytes that all requests may use together (serve.max_inflight)",
        )

    @staticmethod
    def no_room() -> Refusal:
        """The refusal of a request that may fit later."""
        return Refusal("overloaded", "the requests in progress use all the memory that they may use (serve.max_inflight)")

    def _take(self, size: int) -> bool:
        with self._lock:
            if self._used + size > self.limit:
                return False
            self._used += size
            self._peak = max(self._peak, self._used)
            return True

    def _give_back(self, size: int) -> None:
        with self._lock:
            self._used -= size
        if self._on_room is not None:
            self._on_room()


class Share:
    """What one request holds of a budget. Used by one thread at a time."""

    __slots__ = ("_budget", "_kept", "_size")

    def __init__(self, budget: Budget | None, size: int = 0) -> None:
        self._budget = budget
        self._size = size
        self._kept = False

    @property
    def size(self) -> int:
        """Bytes that it holds."""
        return self._size

    @property
    def room(self) -> int | None:
        """Bytes by which it could ever grow, if no other request were here; None is without limit."""
        return None if self._budget is None else self._budget.limit - self._size

    def grow(self, size: int) -> None:
        """Hold more.

        Raises:
            Refusal: there is no room for it now, or never can be.
        """
        budget = self._budget
        if budget is None:
            return
        if self._size + size > budget.limit:
            raise budget.too_large()
        if not budget._take(size):
            raise budget.no_room()
        self._size += size

    def shrink(self, size: int) -> None:
        """Hold less."""
        if self._budget is not None and size:
            self._size -= size
            self._budget._give_back(size)

    def keep_until(self, work: Future[Any]) -> None:
        """Stay open until some work ends, although the response to its request is sent before."""
        self._kept = True
        work.add_done_callback(lambda _: self._close())

    def close(self) -> None:
        """The request is over: hold nothing. Safe to call twice."""
        if not self._kept:
            self._close()

    def _close(self) -> None:
        self.shrink(self._size)


UNBOUNDED = Share(None)
"""For requests whose memory is bounded in another way."""


class Arriving:
    """Admission by open turns: no request may come in that would evict a turn which could still complete.

    From three quarters of what open turns may hold, a request must bring more for turns that are open than for new ones. The sender of
    one that does not fit is asked to retry, until turns close. When none closes for a while, because all of them wait for spans that do
    not come, requests are accepted, and the oldest turns are evicted. Thread-safe.

    Args:
        status: knows what open turns hold.
        now: monotonic seconds.
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
        """Whether nothing can come in at the moment."""
        return self._status.open_turns.fill() >= _NEARLY_ALL and not self._is_stuck()

    @contextmanager
    def room(self, parts: Sequence[tuple[int, Part]]) -> Iterator[None]:
        """Room for the spans of a request, by trace key, while they are given to the engine.

        Raises:
            Refusal: there is none.
        """
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
