"""Preparation for the first turn: imports, compiled patterns and small models.

A short-lived thread, separate from the agent's, runs steps of a few milliseconds with pauses in between. It starts after a
short delay, so that it costs short programs nothing. If a turn comes first, it only waits for the imports that it needs.

The end of the interpreter waits for the current step, because native code must not lose its thread. So does a fork, see
:func:`~otel_agenteval.core.extras.late_imports`.
"""

from __future__ import annotations

import atexit
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from ..core import forks
from ..core.extras import PATIENCE, late_imports
from ..core.threads import started

DELAY = 0.2
"""Seconds until the first step, so that short programs pay nothing."""


class WarmUp:
    """Thread that runs ``steps``, one per element, once. A step that raises ends the warm-up and is passed to ``failed``."""

    def __init__(self, steps: Callable[[], Iterable[object]], failed: Callable[[str, BaseException], None]) -> None:
        self._steps = steps
        self._failed = failed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_running = False
        forks.in_child(self._begin_in_child, forks.Step.THREADS)

    def start(self) -> None:
        self._is_running = True
        atexit.register(self.stop)  # first, because the thread unregisters it when it ends
        self._thread = started(self._run, "otel-agenteval-start")
        if self._thread is None:
            self._ended()

    def stop(self) -> None:
        """Start no further step, and wait for the current one."""
        self.cancel()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(PATIENCE)

    def cancel(self) -> None:
        self._stop.set()

    def _begin_in_child(self) -> None:
        """Start again if the parent's thread hadn't finished."""
        if not self._is_running:
            return
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
        self._is_running = False
        atexit.unregister(self.stop)

    def _work(self, steps: Iterator[object]) -> None:
        while not self._stop.is_set():
            with late_imports():
                begun = time.perf_counter()
                if next(steps, self) is self:
                    return
                spent = time.perf_counter() - begun
            self._stop.wait(spent)  # give the agent the same time
