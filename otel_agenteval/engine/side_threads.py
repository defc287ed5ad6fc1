"""Threads for slow work, such as fetching media or reading the score store, so that the worker isn't delayed."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from ..core import forks
from ..core.threads import started

_IDLE_SECONDS = 10.0
"""Seconds after which a thread without work ends."""


class SideThreads:
    """Pool of threads that run work in order, several at once. They start with the first work."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def do(self, work: Callable[[], None]) -> bool:
        """Queue work that never raises. Return False if no thread can be started."""
        with self._changed:
            if self._idle <= len(self._waiting) and self._threads < self._most:
                if started(self._run, "otel-agenteval-side") is not None:
                    self._threads += 1
                elif not self._threads:
                    return False
            self._waiting.append(work)
            self._changed.notify()
        return True

    def _run(self) -> None:
        changed = self._changed
        while True:
            with changed:
                self._idle += 1
                there_is = changed.wait_for(lambda: self._waiting, _IDLE_SECONDS)
                self._idle -= 1
                if not there_is:
                    self._threads -= 1
                    return
                work = self._waiting.popleft()
            work()
