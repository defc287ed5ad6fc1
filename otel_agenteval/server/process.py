"""Process settings (allocator, garbage collection, open files), and the runner of the sidecar's event loop.

Requests of several megabytes arrive all the time. Getting new pages from the kernel for each costs more than parsing it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import gc
import resource
import sys
from collections.abc import Coroutine
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

from ..core.threads import OwnThread

if TYPE_CHECKING:
    from ..engine.engine import Engine

Found = TypeVar("Found")

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_MIB = 1 << 20
_FILES = 65_536
_YOUNG = 20_000
"""New objects between garbage collections. Spans live for seconds, so frequent ones would free nothing."""


def allow_files() -> None:
    """Raise the limit of open files, so that connections leave some for probes and logs."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def tune() -> bool:
    """Keep up to 64 MiB of freed memory, and collect garbage less often. False without glibc."""
    gc.set_threshold(_YOUNG, 20, 100)
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        wanted = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, 32 * _MIB), (_TRIM_THRESHOLD, 64 * _MIB), (_TOP_PAD, 16 * _MIB))
        return [mallopt(option, value) for option, value in wanted] == [1] * len(wanted)
    except (AttributeError, OSError):  # another C library
        return False


def run_beside(engine: Engine, program: Coroutine[Any, Any, Found]) -> Found:
    """Run ``program`` on another thread, and score turns on this one, the main thread."""
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
