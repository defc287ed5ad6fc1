"""Work on several cores: functions that are called in processes of their own."""

from __future__ import annotations

import itertools
import multiprocessing
import os
import signal
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from types import TracebackType
from typing import Any, TypeVar

from .errors import AgentEvalError, ConfigError

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    """The cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not every system knows it
        return os.cpu_count() or 1


def jobs_of(text: str | None) -> int:
    """The number of processes that an option asks for; without one, all cores.

    Raises:
        ConfigError: no number from 1.
    """
    if text is None:
        return cores()
    if not text.isdigit() or int(text) < 1:
        raise ConfigError(f"--jobs: {text!r} is not allowed; it must be a number from 1")
    return int(text)


class Processes:
    """Calls functions in processes of their own, or with one job in this one.

    Functions and what they take and give must be picklable. Processes are started anew (``spawn``): a fork would take over locks and
    connections of this one.

    Args:
        jobs: how many.
    """

    def __init__(self, jobs: int) -> None:
        self._pool: ProcessPoolExecutor | None = None
        if jobs > 1:
            self._pool = ProcessPoolExecutor(jobs, multiprocessing.get_context("spawn"), _begin)
        self._room = 2 * jobs

    def __enter__(self) -> Processes:  # noqa: PYI034 - nothing is derived from it
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._pool is not None:
            self._pool.shutdown(wait=True, cancel_futures=True)

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> Iterator[R]:
        """The result for each item, in the order of the items; a few items are read ahead.

        Raises:
            AgentEvalError: a process was killed.
        """
        source = iter(items)
        first = list(itertools.islice(source, 2))
        if self._pool is None or len(first) < 2:  # one item is done before a process has begun
            yield from map(function, itertools.chain(first, source))
            return
        waiting: deque[Future[R]] = deque()
        try:
            for item in itertools.chain(first, source):
                waiting.append(self._pool.submit(function, item))
                if len(waiting) >= self._room:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        except BrokenProcessPool:
            raise AgentEvalError(
                "a process of this command was killed, perhaps for want of memory; --jobs 1 needs least"
            ) from None


def _begin(*_: Any) -> None:
    """End when the first process does, however it ends. An interrupt from the keyboard reaches all processes, so it is ignored here."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
