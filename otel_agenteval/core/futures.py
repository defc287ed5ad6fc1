"""Execution of functions on daemon threads with a time limit, and of coroutines on an event loop.

Python can't stop a thread. A function that never returns is abandoned and doesn't delay the process exit.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import itertools
import os
import threading
import time
from collections.abc import Callable, Coroutine, Iterable, Iterator
from concurrent.futures import Future, wait
from contextvars import ContextVar, copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from .threads import SideThreads

_T = TypeVar("_T")
_R = TypeVar("_R")
_threads = SideThreads(100_000)
_blocks_loop: ContextVar[bool] = ContextVar("agenteval_blocks_loop", default=False)
"""True in work that a coroutine on the package's loop started. The coroutine blocks the loop until the work is done."""
_LONGEST_WAIT = 0.5
"""Maximum seconds for a single wait, because an unlimited wait can miss Ctrl+C."""


def started(work: Callable[..., _R], *args: Any) -> Future[_R]:
    """Call a function on one of the package's threads, in a copy of the caller's context.

    Raises:
        RuntimeError: If no thread is running, and none can be started.
    """
    future: Future[_R] = Future()
    future.set_running_or_notify_cancel()
    context = copy_context()
    if _current is not None and asyncio._get_running_loop() is _current.loop:
        context.run(_blocks_loop.set, True)

    def run() -> None:
        try:
            future.set_result(context.run(work, *args))
        except BaseException as error:
            future.set_exception(error)

    if not _threads.do(run):
        raise RuntimeError("can't start a thread")
    return future


def completed(
    items: Iterable[_T], begin: Callable[[_T], Future[_R]], most: int, seconds: float
) -> Iterator[tuple[_T, Future[_R] | None]]:
    """Call ``begin`` on up to ``most`` items at a time. Yield each item with its finished future, or None after ``seconds``."""
    waiting = iter(items)
    running: dict[Future[_R], tuple[_T, float]] = {}  # in start order
    done: SimpleQueue[Future[_R]] = SimpleQueue()
    try:
        while True:
            for item in itertools.islice(waiting, most - len(running)):
                future = begin(item)
                running[future] = item, time.monotonic()
                future.add_done_callback(done.put)
            if not running:
                return
            oldest, (item, start) = next(iter(running.items()))
            left = start + seconds - time.monotonic()
            try:
                future = done.get(timeout=max(0.0, min(left, _LONGEST_WAIT)))
            except Empty:
                if left <= _LONGEST_WAIT:
                    del running[oldest]
                    oldest.cancel()
                    yield item, None
            else:
                if future in running:  # otherwise, the item was already yielded with None
                    yield running.pop(future)[0], future
    finally:
        for future in running:
            future.cancel()


class _Loop:
    def __init__(self) -> None:
        self.process = os.getpid()
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self._run, name="otel-agenteval-loop", daemon=True)
        self.thread.start()
        atexit.register(self._stop)

    def _run(self) -> None:
        asyncio.set_event_loop(self.loop)
        while not self.loop.is_closed():
            with contextlib.suppress(KeyboardInterrupt, SystemExit):  # from a coroutine, whose caller receives it
                self.loop.run_forever()
                self.loop.close()

    def _stop(self) -> None:
        if self.process == os.getpid():
            self.loop.call_soon_threadsafe(self.loop.stop)
            self.thread.join(1.0)


_lock = threading.Lock()
_current: _Loop | None = None
"""Default event loop of the package's coroutines, because an asynchronous client can't switch to another event loop."""


def submitted(coroutine: Coroutine[Any, Any, _R], loop: asyncio.AbstractEventLoop | None = None) -> Future[_R]:
    """Run a coroutine on ``loop`` (default: the package's loop), or on a new one if the caller runs on it or blocks the default."""
    global _current
    if loop is None and _blocks_loop.get():
        return started(asyncio.run, coroutine)
    if loop is None:
        with _lock:
            if _current is None or _current.process != os.getpid():  # a forked child has no thread
                _current = _Loop()
            loop = _current.loop
    if asyncio._get_running_loop() is loop:
        return started(asyncio.run, coroutine)
    return asyncio.run_coroutine_threadsafe(coroutine, loop)


def result_of(coroutine: Coroutine[Any, Any, _R]) -> _R:
    future = submitted(coroutine)
    try:
        while not wait((future,), _LONGEST_WAIT).done:
            pass  # between waits, the thread can be interrupted
        return future.result()
    except BaseException:
        future.cancel()
        raise
