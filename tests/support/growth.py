"""How the time of a call grows with the length of the text that it reads."""

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
"""Factor of the seconds for each step to four times the text. Over two steps, linear growth is 16 and quadratic growth 256, with 36 allowed."""
FLOOR = 0.02
"""Seconds that do not count: below them, a clock's tick looks like growth."""
LIMIT = 2.0
"""Seconds of CPU after which a call is stopped, unless linear growth may take longer: one whose time is exponential would never end."""


class Stopped(BaseException):
    """A call took longer than it may."""


@contextmanager
def stopped_after(seconds: float) -> Iterator[None]:
    """Raise :class:`Stopped` in what takes more CPU time, and behind it if it was caught; ``re`` looks for signals while it matches."""
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
    """Return the CPU time of this thread for a call, the least of some rounds; ``inf`` if it had to be stopped."""
    best = float("inf")
    coverage = sys.gettrace()  # makes code with short lines several times slower
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

    A text of four times the largest size decides: a reader may take little for short texts, and linear time for longer ones.
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
    """Add the seconds of a call, and return False if it had to be stopped."""
    times.append(seconds(call, text, rounds, max(LIMIT, STEEPEST * times[-1]) if times else LIMIT))
    return times[-1] < float("inf")
