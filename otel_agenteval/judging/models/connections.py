"""Connections to a server that is asked many questions at once.

A pool looks at every connection on every request: with two hundred of them that takes several times as long as all else that a request
takes. So here is one connection for each question at once. It is a plain one (:mod:`.http1`); only through a proxy, and to a host whose name is
not ASCII, httpx is asked instead.
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
    """A connection to be used by one thread at a time."""

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        """The answer to one request, see :meth:`.http1.Connection.post`."""

    def close(self) -> None:
        """Release it. A later request connects anew."""


class Connections:
    """Connections to be used by one thread at a time, as many as were needed at once lately. Thread-safe.

    Args:
        url: of the server.
        clock: says how long a connection was not needed, and measures deadlines.
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
        """With the time since when, the longest idle one first."""
        self._opened = 0
        """Counts calls of :meth:`close`: what was taken before is not kept."""

    @contextmanager
    def one(self) -> Iterator[Posts]:
        """A connection that no other thread uses meanwhile: the one that was used last, which is most likely still open."""
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
        """Release connections. A later request makes new ones."""
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
    """A connection of httpx, without the client around it, which prepares redirects, cookies and logins that no judge has."""

    def __init__(self, proxy: str | None, clock: Clock) -> None:
        from ...core.outbound import Transport, trusted  # imports httpx

        self._transport = Transport(trusted(), proxy)
        self._clock = clock

    def post(self, url: str, headers: Mapping[str, str], content: bytes, stop: float, bounds: Bounds) -> Reply:
        """The answer to one request; what httpx raises is raised as what :mod:`.http1` would."""
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
        raise fault  # outside of the handler: the other library's exception holds the request, and with it the key

    def close(self) -> None:
        """Release it. A later request connects anew."""
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
    """The fault of a certificate that another one was raised for."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause


def _trusted() -> ssl.SSLContext:
    from ...core.outbound import trusted  # imports httpx

    return trusted()
