"""Connections to one server for many concurrent requests.

A connection pool checks every connection on every request. With 200 connections, that takes several times as long as the rest
of a request. So each concurrent request has its own connection.
"""

from __future__ import annotations

import os
import threading
import zlib
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.deadlines import Deadline
from ...core.proxies import proxy_for

_IDLE_SECONDS = 30.0
_INFLATED_AT_ONCE = 65_536


class BrokenAnswer(ConnectionError):
    """The reply isn't complete, valid HTTP/1.1. The message contains nothing of it."""


class ReplyTooLarge(Exception):
    def __init__(self, status: int) -> None:
        super().__init__("the reply exceeds the size limit")
        self.status = status


class Reply(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: bytes


class Bounds(NamedTuple):
    answer: int
    """Maximum bytes with status 2xx. A larger body is an error."""
    refusal: int
    """Maximum bytes with any other status. A larger body is truncated."""

    def body_of(self, status: int, pieces: Iterable[bytes]) -> bytes:
        """Return a reply's body, truncated to the limit. A too large answer is an error."""
        is_answer = 200 <= status < 300
        most = self.answer if is_answer else self.refusal
        body = bytearray()
        for piece in pieces:
            body += piece
            if len(body) > most:
                if is_answer:
                    raise ReplyTooLarge(status)
                break
        return bytes(body[:most])


class Connections:
    """Connections to one server, one for each concurrent request. Thread-safe."""

    def __init__(self, url: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._url = url
        self._clock = clock
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._idle: deque[tuple[Channel, float]] = deque()
        self._times_closed = 0
        """Number of calls of :meth:`close`. Connections taken before the last one aren't kept."""

    @contextmanager
    def lend(self) -> Iterator[Channel]:
        """Lend a connection to one thread. The most recently used one is most likely still open."""
        with self._lock:
            if self._process != os.getpid():  # after a fork connections belong to the parent
                self._reset()
            times_closed = self._times_closed
            found = self._idle.pop()[0] if self._idle else None
        connection = found or Channel(proxy_for(self._url), self._clock)
        try:
            yield connection
        finally:
            now = self._clock.monotonic()
            with self._lock:
                surplus: list[Channel] = []
                if self._process == os.getpid() and times_closed == self._times_closed:
                    self._idle.append((connection, now))
                    while self._idle[0][1] < now - _IDLE_SECONDS:
                        surplus.append(self._idle.popleft()[0])
                else:
                    surplus.append(connection)
            for one in surplus:
                one.close()

    def close(self) -> None:
        with self._lock:
            idle = [] if self._process != os.getpid() else [connection for connection, _ in self._idle]
            self._idle.clear()
            self._times_closed += 1
        for connection in idle:
            connection.close()


class Channel:
    """A connection for one request after the other. Only one thread uses it at a time."""

    def __init__(self, proxy: str | None, clock: Clock) -> None:
        from ...core.outbound import pool_to, trusted  # imports httpx

        self._pool = pool_to(trusted(), proxy, idle=None)
        self._clock = clock

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        """Send one request, never twice, and return the reply. ``headers`` are printable ASCII without ``Host`` and
        ``Content-Length``. ``stop`` is monotonic. Raises a TimeoutError, an OSError if the connection failed or the reply was
        invalid (:class:`BrokenAnswer`), ReplyTooLarge, or a ValueError for a header.
        """
        import httpcore

        from ...core.outbound import bounded_by, encoded

        deadline = Deadline(self._clock, stop)
        fault: Exception
        try:
            sent = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
            asked = self._pool.stream("POST", encoded(url), headers=sent, content=content)
            with bounded_by(deadline), asked as response:
                if response.status < 200:
                    raise BrokenAnswer("the server switched to another protocol")
                found = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in response.headers}
                pieces = response.iter_stream()
                if found.get("content-encoding", "").lower() in ("gzip", "deflate"):
                    pieces = _decompressed(pieces)
                body = bounds.body_of(response.status, pieces)
            deadline.left()
            return Reply(response.status, found, body)
        except httpcore.TimeoutException:
            fault = TimeoutError()
        except httpcore.LocalProtocolError as error:
            fault = ValueError(type(error).__name__)
        except (httpcore.NetworkError, httpcore.ProtocolError, httpcore.ProxyError, zlib.error) as error:
            fault = BrokenAnswer(f"the reply isn't valid HTTP/1.1 ({type(error).__name__})")
            cause: BaseException | None = error
            while cause is not None and not isinstance(cause, OSError):
                cause = cause.__cause__ or cause.__context__
            fault = cause or fault  # the system's or TLS's error behind httpcore's
        raise fault  # outside the handler, because the other exception contains the header or what the server sent

    def close(self) -> None:
        """Close the connection. A later request connects again."""
        self._pool.close()


def _decompressed(pieces: Iterable[bytes]) -> Iterator[bytes]:
    """Decompress a body piece by piece. Some servers compress although the request doesn't accept that."""
    inflater = zlib.decompressobj(zlib.MAX_WBITS | 32)
    for piece in pieces:
        left = piece
        while left and not inflater.eof:
            yield inflater.decompress(left, _INFLATED_AT_ONCE)
            left = inflater.unconsumed_tail
