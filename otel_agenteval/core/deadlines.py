"""Deadlines that cover a complete request, including every wait.

Socket and HTTP client timeouts limit each wait separately. If a host sends one byte at a time, or if name resolution is slow, the
request can take much longer. Code that can check the time between waits uses a :class:`Deadline`. Other code runs in
:func:`within`.
"""

from __future__ import annotations

import contextvars
import ipaddress
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

from .clock import Clock
from .threads import started

T = TypeVar("T")


class Deadline:
    """Time by which a request must finish, in seconds of ``clock.monotonic()``."""

    __slots__ = ("_clock", "_stop")

    def __init__(self, clock: Clock, stop: float) -> None:
        self._clock = clock
        self._stop = stop

    def left(self) -> float:
        left = self._stop - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def bind(self, connected: socket.socket) -> None:
        """Set the socket's timeout to the remaining time, or raise a TimeoutError if no time is left. To save system calls, keep
        the current timeout if it differs from the remaining time by at most 1 %.
        """
        left, bound = self.left(), connected.gettimeout()
        if bound is None or abs(bound - left) > left / 100:
            connected.settimeout(left)


def within(seconds: float, work: Callable[[], T]) -> T:
    """Run ``work`` on another thread and return its result. After ``seconds``, raise a TimeoutError and abandon the thread. If a
    thread can't start, run ``work`` on the caller's thread without a limit.
    """
    context = contextvars.copy_context()
    found: list[T] = []
    faults: list[BaseException] = []

    def run() -> None:
        try:
            found.append(context.run(work))
        except BaseException as error:
            faults.append(error)

    thread = started(run, "agenteval-within")
    if thread is None:  # the interpreter is shutting down
        return work()
    thread.join(seconds)
    if faults:
        raise faults.pop()
    if not found:
        raise TimeoutError
    return found.pop()


def addresses_of(host: str, port: int, deadline: Deadline) -> list[tuple[Any, ...]]:
    look_up = partial(socket.getaddrinfo, host, port, type=socket.SOCK_STREAM)
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return within(deadline.left(), look_up)
    return look_up()
