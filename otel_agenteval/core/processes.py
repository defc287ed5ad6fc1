"""Execution of functions in separate processes, to use several CPU cores."""

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
from typing import TypeVar

from .errors import AgentEvalError, ConfigError

T = TypeVar("T")
R = TypeVar("R")


def cores() -> int:
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not available on every system
        return os.cpu_count() or 1


def jobs_of(text: str | None) -> int:
    if text is None:
        return cores()
    if not text.isdecimal() or int(text) < 1:
        raise ConfigError(f"--jobs: must be a positive integer, got {text!r}")
    return int(text)


class Processes:
    """Process pool for functions with picklable arguments and results. A single job or item runs in the current process.
    Processes are spawned, because forked processes would inherit locks and connections.
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
        """Yield results in order. Compute up to two items per process ahead. If a process dies, raise an AgentEvalError."""
        source = iter(items)
        first = list(itertools.islice(source, 2))
        if self._pool is None or len(first) < 2:  # one item finishes before a process has started
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
                "--jobs: a worker process died, possibly because memory ran out. Use --jobs 1 to use less memory"
            ) from None


def _begin() -> None:
    """Make this process exit with its parent, and ignore Ctrl+C, which the parent handles."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    parent = multiprocessing.parent_process()
    assert parent is not None

    def end_with_parent() -> None:
        parent.join()
        os._exit(1)

    threading.Thread(target=end_with_parent, daemon=True).start()
