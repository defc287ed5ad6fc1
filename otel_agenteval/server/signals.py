"""Signal handling from the start of a process: early signals wait for the event loop."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """Context manager of the main thread that keeps signals from ending the process."""

    def __init__(self) -> None:
        self._early: list[int] = []
        self._take: Callable[[int], object] = self._early.append
        self._before = {number: signal.signal(number, lambda number, frame: self._take(number)) for number in NUMBERS}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)

    def pass_to(self, take: Callable[[int], object]) -> None:
        """Make the running loop call ``take`` with each signal number, earlier ones at once."""
        import asyncio  # takes longer than everything else in this module

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
    """Block signals, also for a process that starts, until that creates its :class:`Signals`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
