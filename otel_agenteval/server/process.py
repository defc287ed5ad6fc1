"""Process setup: signals, memory settings, and file limit. Also contains the runner for the sidecar's event loop.

Signals are handled from the start of a process, so this module doesn't import slow packages. Signals that arrive before the event
loop runs are handled later.

The process keeps freed memory for later requests, because getting memory from the kernel takes longer than parsing a request.
"""

from __future__ import annotations

import contextlib
import gc
import resource
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from ..engine.engine import Engine

Found = TypeVar("Found")
NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_MIB = 1 << 20
_FILES = 65_536
_YOUNG = 20_000
"""Number of new objects between garbage collections. Spans live for seconds, so more frequent collections would free nothing."""


class Signals:
    """Context manager that handles SIGTERM, SIGINT, and SIGHUP on the main thread, so that these signals don't end the process."""

    def __init__(self) -> None:
        self._early: list[int] = []
        self._take: Callable[[int], object] = self._early.append
        self._before = {number: signal.signal(number, lambda number, frame: self._take(number)) for number in NUMBERS}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)

    def pass_to(self, take: Callable[[int], object]) -> None:
        """Call ``take`` with each signal's number on the running loop. Signals that arrived earlier are passed immediately."""
        import asyncio

        loop = asyncio.get_running_loop()

        def pass_on(number: int) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed, so the process is already ending
                loop.call_soon_threadsafe(take, number)

        self._take = pass_on
        while self._early:
            take(self._early.pop(0))

    def __enter__(self) -> Signals:  # noqa: PYI034 - nothing is derived from it
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def held_back() -> Iterator[None]:
    """Block signals in a ``with`` block. A child process that starts there blocks signals until it creates :class:`Signals`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)


def print_line(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def allow_files() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def tune() -> bool:
    """Keep up to 64 MiB of freed memory, and collect garbage less often. If the allocator can't be configured, return False."""
    gc.set_threshold(_YOUNG, 20, 100)
    if sys.platform != "linux":
        return False
    try:
        import ctypes

        mallopt = ctypes.CDLL(None).mallopt
        wanted = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, 32 * _MIB), (_TRIM_THRESHOLD, 64 * _MIB), (_TOP_PAD, 16 * _MIB))
        return [mallopt(option, value) for option, value in wanted] == [1] * len(wanted)
    except (AttributeError, OSError):  # another C library
        return False


def run_beside(engine: Engine, program: Coroutine[Any, Any, Found]) -> Found:
    """Run ``program`` on another thread, and score turns on the calling thread. Call this on the main thread."""
    import asyncio
    from concurrent.futures import Future

    from ..core.threads import OwnThread

    outcome: Future[Found] = Future()

    def run() -> None:
        try:
            outcome.set_result(asyncio.run(program))
        except BaseException as error:
            outcome.set_exception(error)
        finally:
            engine.end_work()

    engine.work_here(OwnThread(run, "agenteval-loop").start)
    return outcome.result()
