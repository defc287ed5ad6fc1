"""One deadline for all of a piece of work, whatever it waits for.

Timeouts of sockets and clients bound each wait by itself: a host that sends a byte now and then, or answers a name slowly, is waited for
without end. What can look at a deadline between its waits gets a :class:`Deadline`; what cannot runs :func:`within` one.
"""

from __future__ import annotations

import contextvars
import ipaddress
import socket
from collections.abc import Callable
from typing import Any, TypeVar

from .clock import Clock
from .threads import started

T = TypeVar("T")


class Deadline:
    """The moment until which a request may take.

    Args:
        clock: its monotonic time is meant.
        stop: seconds of it.
    """

    __slots__ = ("_clock", "_stop")

    def __init__(self, clock: Clock, stop: float) -> None:
        self._clock = clock
        self._stop = stop

    def left(self) -> float:
        """Return the seconds until then.

        Raises:
            TimeoutError: none are left.
        """
        left = self._stop - self._clock.monotonic()
        if left <= 0:
            raise TimeoutError
        return left

    def bind(self, connected: socket.socket) -> None:
        """Let the next call on a socket take no longer than what is left, or one part in a hundred more: each change is a system call.

        Raises:
            TimeoutError: nothing is left.
        """
        left, bound = self.left(), connected.gettimeout()
        if bound is None or not left <= bound <= left * 1.01:
            connected.settimeout(left)


def within(seconds: float, work: Callable[[], T]) -> T:
    """Return what work returns, from a thread of its own that is left alone once the time is over.

    Raises:
        TimeoutError: it was not done in time.
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
    if thread is None:  # the interpreter is going down
        return work()
    thread.join(seconds)
    if faults:
        raise faults.pop()
    if not found:
        raise TimeoutError
    return found.pop()


def addresses_of(host: str, port: int, deadline: Deadline) -> list[tuple[Any, ...]]:
    """Return the addresses of a host as ``socket.getaddrinfo`` does, whose own time nothing bounds.

    Raises:
        TimeoutError: the resolver did not answer in time.
        OSError: the name has no address.
    """

    def look_up() -> list[tuple[Any, ...]]:
        return list(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))

    try:
        ipaddress.ip_address(host)
    except ValueError:
        return within(deadline.left(), look_up)
    return look_up()
