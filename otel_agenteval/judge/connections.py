"""HTTP clients of one connection each.

A pool of connections looks at every one of them on every request: with two hundred questions at once that takes several times as long
as all else that a request takes.
"""

from __future__ import annotations

import os
import ssl
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ..clock import SYSTEM_CLOCK, Clock

if TYPE_CHECKING:
    import httpx

_IDLE_SECONDS = 30.0


class Connections:
    """Clients to be used by one thread at a time, as many as were needed at once lately. Thread-safe.

    Args:
        clock: says how long a client was not needed.
    """

    def __init__(self, clock: Clock = SYSTEM_CLOCK) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._reset()

    def _reset(self) -> None:
        self._process = os.getpid()
        self._idle: deque[tuple[httpx.Client, float]] = deque()
        """With the time since when, the longest idle one first."""
        self._opened = 0
        """Counts calls of :meth:`close`: what was taken before is not kept."""

    @contextmanager
    def client(self) -> Iterator[httpx.Client]:
        """A client that nobody else uses meanwhile: the one that was used last, whose connection is most likely still open."""
        with self._lock:
            if self._process != os.getpid():  # after a fork connections belong to the parent
                self._reset()
            opened = self._opened
            found = self._idle.pop()[0] if self._idle else None
        client = found or self._made()
        try:
            yield client
        finally:
            self._give_back(client, opened)

    def close(self) -> None:
        """Release connections. A later request makes new ones."""
        with self._lock:
            idle = [] if self._process != os.getpid() else [client for client, _ in self._idle]
            self._idle.clear()
            self._opened += 1
        for client in idle:
            client.close()

    def _give_back(self, client: httpx.Client, opened: int) -> None:
        now = self._clock.monotonic()
        with self._lock:
            over = []
            if self._process == os.getpid() and opened == self._opened:
                self._idle.append((client, now))
                while self._idle[0][1] < now - _IDLE_SECONDS:
                    over.append(self._idle.popleft()[0])
            else:
                over.append(client)
        for one in over:
            one.close()

    def _made(self) -> httpx.Client:
        import httpx

        limits = httpx.Limits(max_connections=1, max_keepalive_connections=1)
        return httpx.Client(limits=limits, follow_redirects=False, verify=_trusted())


_TRUSTED: list[ssl.SSLContext] = []


def _trusted() -> ssl.SSLContext:
    """What all clients trust; reading the certificates takes tens of milliseconds."""
    if not _TRUSTED:
        import httpx

        _TRUSTED.append(httpx.create_ssl_context())
    return _TRUSTED[0]
