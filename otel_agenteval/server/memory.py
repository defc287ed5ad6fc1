"""Settings of the C library's allocator, of garbage collection, and of open files.

Requests of megabytes come and go all the time, and asking the kernel for fresh pages each time costs more than reading them.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_MIB = 1 << 20
_FILES = 65_536
_YOUNG = 20_000
"""New objects between two garbage collections. Spans wait for seconds, and each collection would go through them in vain."""


def allow_files() -> None:
    """Let the process open as many files as it may: connections of senders must not leave none for probes, queues and logs."""
    try:
        import resource
    except ImportError:  # not on this platform
        return
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _FILES if hard == resource.RLIM_INFINITY else min(hard, _FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def tune() -> bool:
    """Keep up to 64 MiB of freed memory for the next request, in one arena, and collect garbage less often.

    False where the C library is not glibc: then only the last is done.
    """
    gc.set_threshold(_YOUNG, 20, 100)
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        wanted = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, 32 * _MIB), (_TRIM_THRESHOLD, 64 * _MIB), (_TOP_PAD, 16 * _MIB))
        return [mallopt(option, value) for option, value in wanted] == [1] * len(wanted)
    except (AttributeError, OSError):  # another C library
        return False
