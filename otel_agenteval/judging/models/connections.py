"""Connections to a server that is asked many questions at once.

A pool looks at every connection on every request: with two hundred of them that takes several times as long as all else that a request
takes. So these are httpx's transports, each with one connection, without the client around them, which prepares redirects, cookies and
logins that no judge has.
"""

from __future__ import annotations

import os
import ssl
import threading
import urllib.parse
import urllib.request
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ...core.clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    import httpx

_IDLE_SECONDS = 30.0


class Connections:
    """Connections to be used by one thread at a time, as many as were needed at once lately. Thread-safe.

    Args:
        url: of the server.
        clock: says how long a connection was not needed.
    """

    def __init__(self, url: str, clock: Clock = SYSTEM_CLOCK) -> None:
        self._url = url
        self._clock = clock
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._idle: deque[tuple[httpx.HTTPTransport, float]] = deque()
        """With the time since when, the longest idle one first."""
        self._opened = 0
        """Counts calls of :meth:`close`: what was taken before is not kept."""

    @contextmanager
    def one(self) -> Iterator[httpx.HTTPTransport]:
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

    def _give_back(self, connection: httpx.HTTPTransport, opened: int) -> None:
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

    def _made(self) -> httpx.HTTPTransport:
        import httpx

        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        return httpx.HTTPTransport(verify=_trusted(), limits=limits, proxy=_proxy_for(self._url))


def _proxy_for(url: str) -> str | None:
    """The proxy that the environment names (``HTTPS_PROXY``, ``HTTP_PROXY``, ``ALL_PROXY``, and not in ``NO_PROXY``)."""
    parts = urllib.parse.urlsplit(url)
    proxies = urllib.request.getproxies()
    proxy = proxies.get(parts.scheme) or proxies.get("all")
    if proxy is None or urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"  # as curl and others read it


_TRUSTED: list[ssl.SSLContext] = []


def _trusted() -> ssl.SSLContext:
    """What all connections trust; reading the certificates takes tens of milliseconds."""
    if not _TRUSTED:
        import httpx

        _TRUSTED.append(httpx.create_ssl_context())
    return _TRUSTED[0]
