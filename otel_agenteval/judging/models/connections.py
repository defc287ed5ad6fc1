"""Connections to one server for many concurrent requests.

A connection pool checks every connection on every request. With 200 connections, that takes several times as long as the rest
of a request. So each concurrent request has its own connection (:mod:`.http1`). httpx is used only for proxies and for hosts
with non-ASCII names.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Protocol

from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.deadlines import Deadline
from ...core.proxies import proxy_for
from .http1 import Bounds, BrokenAnswer, Connection, Origin, Reply, ReplyTooLarge

if TYPE_CHECKING:
    import httpx

_IDLE_SECONDS = 30.0


class Posts(Protocol):
    """Protocol of a connection. Only one thread uses it at a time."""

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        """Send one request and return the reply, see :meth:`.http1.Connection.post`."""

    def close(self) -> None:
        """Close the connection. A later request connects again."""


class Connections:
    """Connections to one server, as many as were recently needed at the same time.

    Thread-safe.

    Args:
        url: the server's URL.
        clock: the clock for idle times and deadlines.
    """

    def __init__(self, url: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._url = url
        self._clock = clock
        self._origin = Origin(url, _trusted)
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._idle: deque[tuple[Posts, float]] = deque()
        """Idle connections with the time since when, longest first."""
        self._opened = 0
        """Number of calls of :meth:`close`. Connections taken before the last one aren't kept."""

    @contextmanager
    def one(self) -> Iterator[Posts]:
        """Lend a connection to one thread. The most recently used one is most likely still open."""
        with self._lock:
            if self._process != os.getpid():  # after a fork connections belong to the parent
                self._reset()
            opened = self._opened
            found = self._idle.pop()[0] if self._idle else None
        connection = found or self._made()
        try:
            yield connection
        finally:
            self._give_back(connection, opened)

    def close(self) -> None:
        """Close all connections. A later request opens new ones."""
        with self._lock:
            idle = [] if self._process != os.getpid() else [connection for connection, _ in self._idle]
            self._idle.clear()
            self._opened += 1
        for connection in idle:
            connection.close()

    def _give_back(self, connection: Posts, opened: int) -> None:
        now = self._clock.monotonic()
        with self._lock:
            over = []
            if self._process == os.getpid() and opened == self._opened:
                self._idle.append((connection, now))
                while self._idle[0][1] < now - _IDLE_SECONDS:
                    over.append(self._idle.popleft()[0])
            else:
                over.append(connection)
        for one in over:
            one.close()

    def _made(self) -> Posts:
        proxy = proxy_for(self._url)
        if proxy is None and self._origin.host.isascii():
            return Connection(self._origin, self._clock)
        return _HttpxConnection(proxy, self._clock)


class _HttpxConnection:
    """Connection with httpx's transport, for proxies and non-ASCII host names.

    httpx's client isn't used, because no judge needs redirects, cookies or logins.
    """

    def __init__(self, proxy: str | None, clock: Clock) -> None:
        from ...core.outbound import Transport, trusted  # imports httpx

        self._transport = Transport(trusted(), proxy)
        self._clock = clock

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        """Send one request and return the reply.

        Errors of httpx are raised as the errors of :mod:`.http1`.
        """
        import httpx

        from ...core.outbound import bounded_by

        deadline = Deadline(self._clock, stop)
        fault: Exception
        try:
            timeout = {"timeout": httpx.Timeout(deadline.left()).as_dict()}
            request = httpx.Request("POST", url, headers=headers, content=content, extensions=timeout)
            with bounded_by(deadline), closing(self._transport.handle_request(request)) as response:
                return Reply(response.status_code, response.headers, _read(response, bounds.of(response.status_code)))
        except httpx.TimeoutException:
            fault = TimeoutError()
        except httpx.TransportError as error:
            fault = _untrusted(error) or BrokenAnswer(type(error).__name__)
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            fault = ValueError(type(error).__name__)
        raise fault  # outside the handler, because httpx's exception contains the request with the API key

    def close(self) -> None:
        """Close the connection. A later request connects again."""
        self._transport.close()


def _read(response: httpx.Response, most: int) -> bytes:
    found = bytearray()
    for chunk in response.iter_bytes():
        found += chunk
        if len(found) > most:
            if response.is_success:
                raise ReplyTooLarge(response.status_code)
            break
    return bytes(found)


def _untrusted(error: BaseException) -> ssl.SSLCertVerificationError | None:
    """Return the certificate error in an exception's chain of causes."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause


def _trusted() -> ssl.SSLContext:
    from ...core.outbound import trusted  # imports httpx

    return trusted()
