"""Concurrent work on daemon threads, within a time limit.

A thread can't be stopped. Work that never returns is left behind, and doesn't hold up the end of the process.
"""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextvars import copy_context
from typing import Any, TypeVar

_T = TypeVar("_T")
_R = TypeVar("_R")


def started(work: Callable[..., _R], *args: Any) -> Future[_R]:
    """Start work on a thread of its own, in a copy of the caller's context."""
    future: Future[_R] = Future()
    future.set_running_or_notify_cancel()
    context = copy_context()

    def run() -> None:
        try:
            future.set_result(context.run(work, *args))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, name="otel-agenteval-work", daemon=True).start()
    return future


def completed(
    items: Iterable[_T], begin: Callable[[_T], Future[_R]], most: int, seconds: float | None
) -> Iterator[tuple[_T, Future[_R] | None]]:
    """Begin work on each item, ``most`` at a time, and yield it with its future, or with None after ``seconds``."""
    waiting = iter(items)
    running: dict[Future[_R], tuple[_T, float]] = {}
    try:
        while True:
            for item in itertools.islice(waiting, most - len(running)):
                running[begin(item)] = item, time.monotonic()
            if not running:
                return
            first = next(iter(running.values()))[1]
            wait(running, None if seconds is None else max(0.0, first + seconds - time.monotonic()), FIRST_COMPLETED)
            for future, (item, start) in list(running.items()):
                if future.done():
                    del running[future]
                    yield item, future
                elif seconds is not None and time.monotonic() - start >= seconds:
                    del running[future]
                    future.cancel()
                    yield item, None
    finally:
        for future in running:
            future.cancel()
