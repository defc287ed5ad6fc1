"""Connection to a Redis or Valkey server, opened on demand and paused after failures."""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Callable, Sequence
from importlib.resources import files
from typing import Any

from ...core import forks
from ...core.pacing import backoff
from ...core.threads import may_wait
from .connect import connect, normal, unreachable

_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 10.0
"""Minimum and maximum seconds until an unreachable server is tried again."""


class Script:
    """Lua script from files in ``lua/``, called by its hash and sent if the server doesn't have it."""

    def __init__(self, *names: str, **constants: int) -> None:
        folder = files(__package__) / "lua"
        text = "".join((folder / f"{name}.lua").read_text(encoding="utf-8") for name in names)
        for word, value in constants.items():
            text = text.replace(word, str(value))
        self._text = text
        self._hash = hashlib.sha1(self._text.encode(), usedforsecurity=False).hexdigest()

    def __call__(self, client: Any, keys: Sequence[str], args: Sequence[Any]) -> Any:
        from redis.exceptions import NoScriptError

        try:
            return client.evalsha(self._hash, len(keys), *keys, *args)
        except NoScriptError:
            return client.eval(self._text, len(keys), *keys, *args)


class Server:
    """Client that connects on first use and pauses after a failed call. ``opened`` gets each new client."""

    def __init__(self, url: str, opened: Callable[[Any], None] = lambda client: None) -> None:
        self._url = normal(url)
        self._opened = opened
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._client: Any = None
        self._closed = False
        self._failures = 0
        self._quiet_until = 0.0

    @property
    def failing(self) -> bool:
        return self._failures > 0

    def call(self, call: Callable[..., Any], *args: Any) -> Any:
        """Make a call with the client and ``args``, unless the server was unreachable a moment ago. After a failure, only threads that
        may wait try again.
        """
        if time.monotonic() < self._quiet_until or (self.failing and not may_wait()):
            raise _not_connected("judge.queue.url: server unreachable, next try in a few seconds")
        try:
            found = call(self._open(), *args)
        except Exception as error:
            if unreachable(error):
                self._failures += 1
                self._quiet_until = time.monotonic() + backoff(self._failures, _FIRST_PAUSE, _LONGEST_PAUSE)
            raise
        self._failures = 0
        return found

    def close(self) -> None:
        with self._lock:
            self._closed = True
            client, self._client = self._client, None
        if client is not None:
            client.close()

    def _open(self) -> Any:
        with self._lock:
            if self._client is None:
                if self._closed:
                    raise _not_connected("the queue is closed")
                client = connect(self._url)
                self._opened(client)
                self._client = client
            return self._client


def _not_connected(text: str) -> Exception:
    from redis.exceptions import ConnectionError as NotConnected

    return NotConnected(text)
