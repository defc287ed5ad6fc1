"""Concurrent work on daemon threads, within a time limit.

A thread can't be stopped. Work that never returns is left behind, and doesn't hold up the end of the process.
"""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextvars import copy_context
from queue import Empty, SimpleQueue
from typing import Any, TypeVar

from .threads import SideThreads

_T = TypeVar("_T")
_R = TypeVar("_R")
_threads = SideThreads(100_000)
_LONGEST_WAIT = 0.5
"""Seconds. A wait without an end can miss Ctrl-C."""


def started(work: Callable[..., _R], *args: Any) -> Future[_R]:
    """Start work on a thread of the package, in a copy of the caller's context.

    Raises:
        RuntimeError: no thread can be started.
    """
    future: Future[_R] = Future()
    future.set_running_or_notify_cancel()
    context = copy_context()

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
    """Begin work on each item, ``most`` at a time, and yield it with its future, or with None after ``seconds``."""
    waiting = iter(items)
    running: dict[Future[_R], tuple[_T, float]] = {}  # in the order of their starts
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
                if future in running:  # otherwise, it was too late
                    yield running.pop(future)[0], future
    finally:
        for future in running:
            future.cancel()
