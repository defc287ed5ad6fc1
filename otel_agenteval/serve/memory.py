"""How the C library gives memory back. Requests of megabytes come and go all the time, and asking the kernel for fresh pages
each time costs more than reading them.
"""

from __future__ import annotations

import ctypes
import gc
import sys

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -2, -3, -8
_MIB = 1 << 20
_YOUNG = 20_000
"""New objects between two looks for cycles. Spans wait for seconds, and each look would go through them in vain."""


def tune() -> bool:
    """Keep up to 64 MiB of freed memory for the next request, in one arena, and look for cycles less often.

    False where the C library is not glibc: then only the last is done.
    """
    gc.set_threshold(_YOUNG, 20, 100)
    if sys.platform != "linux":
        return False
    try:
        mallopt = ctypes.CDLL(None).mallopt
        wanted = ((_ARENA_MAX, 1), (_MMAP_THRESHOLD, 8 * _MIB), (_TRIM_THRESHOLD, 64 * _MIB), (_TOP_PAD, 16 * _MIB))
        return [mallopt(option, value) for option, value in wanted] == [1] * len(wanted)
    except (AttributeError, OSError):  # another C library
        return False
