"""Signals from a process's first moment on: those that come before its event loop runs wait for it."""

from __future__ import annotations

import contextlib
import signal
from collections.abc import Callable, Iterator

NUMBERS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


class Signals:
    """Keeps SIGTERM, SIGINT and SIGHUP from ending the process, in a ``with`` block of the main thread."""

    def __init__(self) -> None:
        self._early: list[int] = []
        self._take: Callable[[int], object] = self._early.append
        self._before = {number: signal.signal(number, lambda number, frame: self._take(number)) for number in NUMBERS}
        signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)

    def pass_to(self, take: Callable[[int], object]) -> None:
        """Have the running loop call ``take`` with the number of each signal; at once with those that came before."""
        import asyncio  # takes longer than everything else in this module

        loop = asyncio.get_running_loop()

        def pass_on(number: int) -> None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the process ends anyhow
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
    """Hold signals back from this thread, and from a process that it starts: that one gets them once it has its :class:`Signals`."""
    signal.pthread_sigmask(signal.SIG_BLOCK, NUMBERS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, NUMBERS)
