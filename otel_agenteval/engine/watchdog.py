"""A limit on the CPU time that one turn may take.

Turns hold foreign text. If one of them drives a metric or a reader into a loop, the watchdog raises :class:`OutOfTime` inside that
loop, the turn is set aside, and the next one is scored.

Python delivers signals on the main thread only, and also in the middle of a regular expression, which holds the interpreter's lock.
So ``serve`` and ``worker`` score turns on the main thread and run everything else beside it. In an agent's process the main thread is
the agent's, and the watchdog is off.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from types import FrameType
from typing import Protocol

from ..core.threads import OutOfTime

_FIRST, _EVERY = 0.25, 0.05
"""Seconds of real time from the start of a batch to the first look, and between two looks."""
_PAUSE = 0.005
"""Seconds that each look sleeps: other threads, such as those that answer health checks, run meanwhile."""


class InHand(Protocol):
    """Keeps which turn is being worked on, for the next process if this one does not survive it."""

    def begin(self, trace_key: int) -> None:
        """Note that work on a turn of the trace begins."""

    def end(self) -> None:
        """Note that the work has ended."""

    def set_aside(self, trace_key: int) -> None:
        """Note that the turn took too long."""


class Watchdog:
    """Raises :class:`OutOfTime` in work on one item that takes too much CPU time.

    Args:
        limit: return the seconds of CPU time that one item may take.
    """

    def __init__(self, limit: Callable[[], float]) -> None:
        self._limit = limit
        self._in_hand: InHand | None = None
        self._on = False
        self._since: float | None = None
        """The thread's CPU time when the work on the item began; None between items."""
        self._ending = False

    def keep(self, in_hand: InHand) -> None:
        """From now on, keep which turn is being worked on: another process goes on with the others."""
        self._in_hand = in_hand

    def start(self) -> None:
        """Watch the calling thread, which must be the main thread, until :meth:`stop`."""
        if hasattr(signal, "setitimer"):  # not on Windows
            signal.signal(signal.SIGALRM, self._look)
            self._on = True

    def stop(self) -> None:
        """Watch no longer."""
        if self._on:
            self._on = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def end_work(self) -> None:
        """Give the item in hand, and every later one, no more time: the process is about to end."""
        self._ending = True

    def begin_batch(self) -> None:
        """Start looking."""
        if self._on:
            signal.setitimer(signal.ITIMER_REAL, _FIRST, _EVERY)

    def end_batch(self) -> None:
        """Stop looking."""
        if self._on:
            signal.setitimer(signal.ITIMER_REAL, 0)

    def begin(self, trace_key: int) -> None:
        """Note that the work on an item begins."""
        if self._in_hand is not None:
            self._in_hand.begin(trace_key)
        if self._on:
            self._since = time.thread_time()

    def end(self) -> None:
        """Note that the work on the item has ended."""
        self._since = None
        if self._in_hand is not None:
            self._in_hand.end()

    def set_aside(self, trace_key: int) -> None:
        """Note that an item took too long."""
        if self._in_hand is not None:
            self._in_hand.set_aside(trace_key)

    def _look(self, number: int, frame: FrameType | None) -> None:
        time.sleep(_PAUSE)
        since = self._since
        if since is not None and (self._ending or time.thread_time() - since > self._limit()):
            self._since = None
            raise OutOfTime
