"""What the first turn would otherwise pay for (imports, patterns, small models) is done before it comes, away from the agent's threads.

A short-lived thread works off steps of a few milliseconds, with pauses between them. It begins a moment after the start, so that a program
that ends at once never meets it. Whatever comes first does its own share: a turn that is faster waits for nothing but the import that it needs.

The end of the interpreter waits for the step in hand, because native code must not lose its thread; and so does a fork, see
:mod:`~otel_agenteval.core.late_imports`.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator

from ..core.late_imports import PATIENCE, late_imports
from ..core.threads import OwnThread

DELAY = 0.2
"""Seconds until the first step: a program that is over by then has not paid for anything."""


class WarmUp:
    """Does some steps once.

    Args:
        steps: makes the steps: each is done when the iterator gets to it.
        failed: called when a step went wrong, which ends it.
    """

    def __init__(self, steps: Callable[[], Iterable[object]], failed: Callable[[str, BaseException], None]) -> None:
        self._steps = steps
        self._failed = failed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        """Begin soon, on a thread of its own."""
        thread = self._thread = OwnThread(self._run, "otel-agenteval-start")
        _running.add(self)
        atexit.register(self.stop)  # before the thread can be at its end, which takes it back
        try:
            thread.start()
        except RuntimeError:  # the interpreter is going down
            self._thread = None
            self._ended()

    def stop(self) -> None:
        """Begin no further step, and wait for the one in hand."""
        self.cancel()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(PATIENCE)

    def cancel(self) -> None:
        """Begin no further step."""
        self._stop.set()

    def after_fork_in_child(self) -> None:
        """The thread is the parent's: begin anew."""
        self._stop = threading.Event()
        self._thread = None
        atexit.unregister(self.stop)
        self.start()

    def _run(self) -> None:
        try:
            if not self._stop.wait(DELAY):
                self._work(iter(self._steps()))
        except BaseException as error:
            self._failed("warm_up", error)
        finally:
            self._ended()

    def _ended(self) -> None:
        _running.discard(self)
        atexit.unregister(self.stop)

    def _work(self, steps: Iterator[object]) -> None:
        while not self._stop.is_set():
            with late_imports():
                begun = time.perf_counter()
                if next(steps, self) is self:
                    return
                spent = time.perf_counter() - begun
            self._stop.wait(spent)  # the agent's turn


_running: weakref.WeakSet[WarmUp] = weakref.WeakSet()


def _in_child() -> None:
    for warm_up in [*_running]:
        warm_up.after_fork_in_child()


os.register_at_fork(after_in_child=_in_child)
