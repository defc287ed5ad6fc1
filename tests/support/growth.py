"""Measure how the time of a call grows with the length of its text."""

from __future__ import annotations

import gc
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from otel_agenteval.core.caches import forget

SIZES = (1_000, 4_000, 16_000)
STEEPEST = 6.0
"""Maximum factor in time for four times the text. For two steps, the limit is 36. Linear growth is 16, quadratic growth 256."""
FLOOR = 0.02
"""Times below this number of seconds are ignored, because a clock tick would look like growth."""
LIMIT = 2.0
"""CPU seconds after which a call is stopped, because exponential calls never end. A call that was slow for a shorter text gets more."""


class Stopped(BaseException):
    """Raised if a call takes too long."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise :class:`Stopped` after this CPU time, and again if it was caught. ``re`` checks for signals while it matches."""
    late = False

    def stop(*_: object) -> None:
        nonlocal late
        late = True
        raise Stopped

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
    if late:
        raise Stopped


def seconds(call: Callable[[str], Any], text: str, rounds: int = 1, limit: float = LIMIT) -> float:
    """Return the CPU time of a call on this thread, as the minimum of some rounds. ``inf`` if it was stopped."""
    best = float("inf")
    coverage = sys.gettrace()  # tracing makes code with short lines several times slower
    sys.settrace(None)
    gc.disable()
    try:
        for _ in range(rounds):
            forget()
            with stopped_after(limit):
                start = time.thread_time()
                call(text)
                spent = time.thread_time() - start
            best = min(best, spent)
    except Stopped:
        pass
    finally:
        gc.enable()
        sys.settrace(coverage)
    return best


def steep(call: Callable[[str], Any], make: Callable[[int], str], sizes: Sequence[int] = SIZES) -> list[float] | None:
    """Return the seconds for texts of growing sizes if they grow too fast in each measurement. Otherwise, return None.

    A text of four times the largest size decides, because some calls skip short texts.
    """
    for rounds in (1, 5, 15):
        times: list[float] = []
        for size in sizes:
            if not _measure(call, make(size), rounds, times):
                return times
        if times[-1] <= max(STEEPEST ** (len(sizes) - 1) * times[0], FLOOR):
            return None
    if _measure(call, make(4 * sizes[-1]), rounds, times) and times[-1] <= STEEPEST * times[-2]:
        return None
    return times


def _measure(call: Callable[[str], Any], text: str, rounds: int, times: list[float]) -> bool:
    """Add the seconds of a call. Return False if it was stopped."""
    times.append(seconds(call, text, rounds, max(LIMIT, STEEPEST * times[-1]) if times else LIMIT))
    return times[-1] < float("inf")
