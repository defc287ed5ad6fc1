"""One event loop for all coroutines of this package, because an asynchronous client belongs to the loop of its first use."""

from __future__ import annotations

import asyncio
import atexit
import os
import threading
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import Any, TypeVar

from .futures import started

_T = TypeVar("_T")


class _Loop:
    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="otel-agenteval-loop", daemon=True)
        self.thread.start()
        atexit.register(self._stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
        finally:
            self.loop.close()

    def _stop(self) -> None:
        if self.process == os.getpid():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(1.0)


_lock = threading.Lock()
_current: _Loop | None = None


def _process_loop() -> _Loop:
    global _current
    with _lock:
        if _current is None or _current.process != os.getpid():  # a forked child has no thread
            _current = _Loop()
        return _current


def submitted(coroutine: Coroutine[Any, Any, _T], loop: asyncio.AbstractEventLoop | None = None) -> Future[_T]:
    """Run a coroutine in ``loop``, by default the process's. A nested call gets its own loop."""
    loop = loop or _process_loop().loop
    if asyncio._get_running_loop() is loop:
        return started(asyncio.run, coroutine)
    return asyncio.run_coroutine_threadsafe(coroutine, loop)


def result_of(coroutine: Coroutine[Any, Any, _T]) -> _T:
    """Run a coroutine in the process's loop, and return its result."""
    future = submitted(coroutine)
    try:
        return future.result()
    except BaseException:
        future.cancel()
        raise
