"""Admission control. Limits the memory that requests (including their decompression) and open turns use.

A request reserves memory for its bytes as they arrive, for its decompressed size (a megabyte can decompress to gigabytes), and
for parsing. To prevent deadlocks, requests never wait for memory. If there isn't enough memory, the request is refused and its
sender must retry.
"""

from __future__ import annotations

import threading
import zlib
from asyncio import Future
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..core.errors import MissingExtra
from ..core.extras import require
from ..engine.status import Status
from ..spans.wire import Part
from .responses import Refusal

LEAST = 256 << 20
"""Lower limit for the default value of ``serve.max_inflight``, in bytes."""
COPIES = 3
_HALF, _CROWDED, _NEARLY_ALL = 0.5, 0.75, 0.95
"""Shares of the open-turn limit. :class:`Arriving` explains the first two. Above the last, all requests are refused."""
_STUCK = 30.0
"""Seconds after the first refusal. Then, requests are accepted again, and the oldest open turns are evicted."""
TURNS_FULL = "open turns are close to their limit (turn.total_bytes, turn.max_open)"


@dataclass(slots=True, eq=False)
class Budget:
    """Memory budget of ``limit`` bytes, shared by all requests. Thread-safe."""

    limit: int
    used: int = 0
    peak: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def check(self, size: int, held: int = 0) -> None:
        """Raise a Refusal if ``size`` additional bytes aren't available to a request that already holds ``held`` bytes."""
        if held + size > self.limit:
            raise Refusal(
                "too_large",
                f"the request needs more than the {self.limit} bytes that all requests can use together (serve.max_inflight)",
            )
        if self.used + size > self.limit:
            raise Refusal("overloaded", "other requests use the memory that serve.max_inflight allows; retry later")

    def take(self, size: int, held: int) -> None:
        with self._lock:
            self.check(size, held)
            self.used += size
            self.peak = max(self.peak, self.used)

    def release(self, size: int) -> None:
        with self._lock:
            self.used -= size


class MemoryShare:
    """Memory that one request has reserved from a budget. Not thread-safe."""

    __slots__ = ("_budget", "_kept", "size")

    def __init__(self, budget: Budget | None) -> None:
        self._budget = budget
        self.size = 0
        self._kept = False

    @property
    def room(self) -> int | None:
        """Maximum number of bytes by which the share could grow if no other request used memory. None if memory is unlimited."""
        return None if self._budget is None else self._budget.limit - self.size

    def grow(self, size: int) -> None:
        if self._budget is not None:
            self._budget.take(size, self.size)
            self.size += size

    def shrink(self, size: int) -> None:
        if self._budget is not None and size:
            self.size -= size
            self._budget.release(size)

    def keep_until(self, work: Future[Any]) -> None:
        """Keep the share until ``work`` ends, even if the response is sent before that."""
        self._kept = True
        work.add_done_callback(lambda _: self.shrink(self.size))

    def close(self) -> None:
        """Release all bytes at the end of the request, unless :meth:`keep_until` releases them later. Safe to call twice."""
        if not self._kept:
            self.shrink(self.size)


UNBOUNDED = MemoryShare(None)


class Arriving:
    """Admission control for open turns. Thread-safe. Refuses requests that would evict turns that can still complete.

    If open turns use over half of their limit, requests that would exceed the limit are refused, and so are requests with mostly
    new turns that would exceed 75 % of it. Above 95 %, all are refused. The sender retries until turns close. 30 seconds after
    the first refusal, open turns probably wait for spans that never arrive. Then, requests are accepted, and the oldest turns evicted.
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
        """True if all requests are refused. Also starts the 30-second timer, because refused requests don't reach :meth:`room`."""
        with self._lock:
            if self._status.open_turns.fill() < _NEARLY_ALL:
                return False
            self._full_since = self._now() if self._full_since is None else self._full_since
            return not self._is_stuck()

    @contextmanager
    def room(self, parts: Sequence[tuple[int, Part]]) -> Iterator[None]:
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


try:  # two to three times as fast
    from isal import isal_zlib

    _zlib: Any = isal_zlib
except ImportError:
    _zlib = zlib

_PIECE = 1 << 20
_MAX_PARTS = 10_000


def inflate(body: bytes, encoding: str, limit: int, share: MemoryShare = UNBOUNDED) -> bytes:
    if encoding in ("", "identity", "none"):
        found = body
    elif encoding in ("gzip", "x-gzip"):
        found = _decompressed(body, _GZIP, limit, share)
    elif encoding == "deflate":
        found = _decompressed(body, _DEFLATE, limit, share)
    elif encoding == "zstd":
        found = _decompressed(body, _zstd_format(), limit, share)
    else:
        raise Refusal("bad_type", "unknown Content-Encoding; must be gzip, deflate, zstd, or identity")
    if len(found) > limit:
        raise too_large(limit)
    return found


def too_large(limit: int) -> Refusal:
    return Refusal("too_large", f"the request is larger than {limit} bytes (serve.max_body)")


class _Format(NamedTuple):
    """Compression format. A body can consist of several concatenated streams, as in gzip."""

    open: Callable[[], Any]
    decompress: Callable[[Any, bytes, int], bytes]
    """Function that decompresses a part of a stream. If the format supports a limit, the last argument limits the result's size."""
    feed: int
    errors: tuple[type[Exception], ...]


def _zlib_format(window: int) -> _Format:
    # zlib copies the bytes that it doesn't consume
    errors = (zlib.error, _zlib.error)
    return _Format(
        lambda: _zlib.decompressobj(window), lambda stream, data, most: stream.decompress(data, most), 64 << 10, errors
    )


_GZIP, _DEFLATE = _zlib_format(31), _zlib_format(15)


def _zstd_format() -> _Format:
    try:
        zstandard = require("zstandard", feature="Content-Encoding zstd", extra="serve")
    except MissingExtra as error:
        raise Refusal("bad_type", str(error)) from None
    # Four compressed bytes can hold a block of 128 KiB, so even 256 bytes can exceed the limit before the check.
    reader = zstandard.ZstdDecompressor(max_window_size=8 << 20)
    return _Format(reader.decompressobj, lambda stream, data, most: stream.decompress(data), 256, (zstandard.ZstdError,))


def _decompressed(body: bytes, form: _Format, limit: int, share: MemoryShare) -> bytes:
    pieces: list[bytes] = []
    room, at, parts = limit, 0, 0
    try:
        while at < len(body):
            if parts == _MAX_PARTS:
                raise Refusal("bad_data", f"the compressed body has more than {_MAX_PARTS} parts")
            parts += 1
            stream = form.open()
            left = b""
            while not stream.eof:
                if not left:
                    left = body[at : at + form.feed]
                    at += len(left)
                piece = form.decompress(stream, left, min(room + 1, _PIECE))
                left = stream.unconsumed_tail
                room -= len(piece)
                if room < 0:
                    raise too_large(limit)
                if piece:
                    share.grow(len(piece))
                    pieces.append(piece)
                elif not (stream.eof or left or at < len(body)):
                    raise Refusal("bad_data", "the compressed body is incomplete")
            at -= len(stream.unused_data)
    except form.errors:
        raise Refusal("bad_data", "the body can't be decompressed with its Content-Encoding") from None
    if len(pieces) == 1:
        return pieces[0]
    size = sum(map(len, pieces))
    share.grow(size)  # during the join, the bytes exist twice
    whole = b"".join(pieces)
    pieces.clear()
    share.shrink(size)
    return whole
