"""Signals of a command whose event loop runs beside the main thread."""

from __future__ import annotations

import signal
from collections.abc import Callable


class Signals:
    """Keeps SIGTERM, SIGINT and SIGHUP from ending the process, from construction on.

    Signals that arrive before :meth:`pass_to` is called are passed on then.
    """

    def __init__(self) -> None:
        self._early: list[int] = []
        self._take: Callable[[int], object] = self._early.append
        for name in ("SIGTERM", "SIGINT", "SIGHUP"):
            if hasattr(signal, name):  # Windows has no SIGHUP
                signal.signal(getattr(signal, name), lambda number, frame: self._take(number))

    def pass_to(self, take: Callable[[int], object]) -> None:
        """Call ``take`` on the main thread with the number of each signal."""
        self._take = take
        while self._early:
            take(self._early.pop(0))
