"""Limit the CPU time that scoring one turn can take.

Turns contain untrusted text. If a metric or parser uses too much CPU time on a turn, the watchdog raises :class:`OutOfTime` in
the metric or parser. The turn is dropped, and the worker continues with the next turn.

Only the main thread can be interrupted, because Python runs signal handlers there, even during a long regular expression.
``serve`` and ``worker`` therefore score turns on the main thread, and do everything else on other threads. In an agent's process,
the main thread belongs to the agent, so the watchdog is off.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Protocol, TypeVar

from ..core.threads import OutOfTime

_T = TypeVar("_T")
_FIRST, _EVERY = 0.25, 0.05
"""Wall-clock seconds from a batch's start to the first check, and then between checks."""
_WAITS = 0.1
"""Share of the CPU time limit. Work that has used less CPU time than this share counts as waiting, for example for a server."""
_PAUSE = 0.005
"""Seconds that each check sleeps, so that other threads can run."""


class InHand(Protocol):
    """Record of the turn that is being scored. After a crash, the next process reads this record to find the cause."""

    def begin(self, trace_key: int) -> None:
        """Record that work on a turn in this trace begins."""

    def end(self) -> None:
        """Record that the work has ended."""

    def set_aside(self, trace_key: int) -> None:
        """Record that a turn in this trace exceeded the CPU time limit."""


class Watchdog:
    """Watchdog that raises :class:`OutOfTime` on the watched thread after ``limit()`` CPU seconds of work on one item."""

    def __init__(self, limit: Callable[[], float]) -> None:
        self._limit = limit
        self._in_hand: InHand | None = None
        self._on = False
        self._until: float | None = None
        """Monotonic time when :meth:`within` interrupts its work."""
        self._since: float | None = None
        """Thread's CPU time at the current item's start, or None between items."""
        self._ending = False

    def keep(self, in_hand: InHand) -> None:
        self._in_hand = in_hand

    def start(self) -> None:
        """Watch the calling thread, which must be the main thread, until :meth:`stop`. On Windows, do nothing."""
        if hasattr(signal, "setitimer"):  # not on Windows
            signal.signal(signal.SIGALRM, self._look)
            self._on = True

    def stop(self) -> None:
        if self._on:
            self._on = False
            signal.setitimer(signal.ITIMER_REAL, 0)
            signal.signal(signal.SIGALRM, signal.SIG_DFL)

    def end_work(self) -> None:
        """Interrupt the current item and every later item, because the process is ending."""
        self._ending = True

    @contextmanager
    def batch(self) -> Iterator[None]:
        """Watch the work inside the ``with`` block. Callers must call :meth:`begin` before and :meth:`end` after each item."""
        if self._on:
            signal.setitimer(signal.ITIMER_REAL, _FIRST, _EVERY)
        try:
            yield
        finally:
            if self._on:
                signal.setitimer(signal.ITIMER_REAL, 0)

    def begin(self, trace_key: int) -> None:
        if self._in_hand is not None:
            self._in_hand.begin(trace_key)
        if self._on:
            self._since = time.thread_time()

    def end(self) -> None:
        self._since = None
        if self._in_hand is not None:
            self._in_hand.end()

    @property
    def watches(self) -> bool:
        return self._on

    def within(self, seconds: float, work: Callable[[], _T]) -> _T:
        """Run ``work`` on the watched thread. Interrupt ``work`` if it still waits (for example, for a server) after ``seconds``.

        Raises:
            TimeoutError: the work waited too long.
        """
        self._until = time.monotonic() + seconds
        try:
            return work()
        except OutOfTime:
            if self._until is not None:
                raise
            raise TimeoutError from None
        finally:
            self._until = None

    def set_aside(self, trace_key: int) -> None:
        if self._in_hand is not None:
            self._in_hand.set_aside(trace_key)

    def _look(self, number: int, frame: FrameType | None) -> None:
        time.sleep(_PAUSE)
        since = self._since
        if since is not None and (self._ending or time.thread_time() - since > self._limit()):
            self._since = None
            raise OutOfTime
        is_waiting = since is None or time.thread_time() - since < self._limit() * _WAITS  # otherwise, the machine is busy
        if is_waiting and self._until is not None and time.monotonic() > self._until:
            self._until = None
            raise OutOfTime
