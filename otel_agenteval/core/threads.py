"""The package's threads, and the exceptions that must reach the host program.

A metric or an outlet is foreign code and can raise anything. On the package's own threads, any exception is that code's failure
and is contained. On the host's threads, some exceptions come from outside: Ctrl-C, a cancelled asyncio task, a killed greenlet,
an exiting signal handler. These must propagate to the host.
"""

from __future__ import annotations

import signal
import threading
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from opentelemetry import context
from opentelemetry.context import (
    _SUPPRESS_INSTRUMENTATION_KEY,
    Context,
    attach,
    create_key,
    detach,
    get_current,
    get_value,
    set_value,
)

from . import forks

_HOST_ENDS = frozenset(("CancelledError", "Cancelled", "GreenletExit", "Timeout"))
"""Class names of host exceptions in asyncio, trio, greenlet and gevent, which aren't imported. None is an ``Exception``."""
_SDK_THREADS = "Otel"
"""Name prefix of the OpenTelemetry SDK's threads. They can't be cancelled or interrupted from outside."""
_here = threading.local()
_OWN_WORK = create_key("agenteval-own-work")


class OutOfTime(BaseException):
    """Work on one turn exceeded ``turn.max_work``. Not an ``Exception``, so that handlers for failures don't catch it."""


class OwnThread(threading.Thread):
    def __init__(self, run: Callable[[], None], name: str) -> None:
        super().__init__(target=run, name=name, daemon=True)

    def run(self) -> None:
        mark_as_ours()
        super().run()


def started(run: Callable[[], None], name: str) -> OwnThread | None:
    """Start a thread, or return None if the interpreter is shutting down and can't start any."""
    thread = OwnThread(run, name)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


def mark_as_ours() -> None:
    """Mark the current thread as the package's own. Use it to initialize thread pools."""
    _here.ours = True
    attach(_own_context())


@contextmanager
def borrowed() -> Iterator[None]:
    """Use a thread of the host as the package's own for a while."""
    before, token = is_ours(), attach(_own_context())
    _here.ours = True
    try:
        yield
    finally:
        _here.ours = before
        detach(token)


def is_ours() -> bool:
    """Return True on a thread of the package."""
    return getattr(_here, "ours", False)


def _own_context() -> Context:
    return set_value(_OWN_WORK, True, set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))


@contextmanager
def own_work() -> Iterator[None]:
    """Suppress instrumentation, because a metric may call an instrumented model, and wait for no server (:func:`may_wait`)."""
    token = attach(_own_context())
    before, _here.scores = may_wait(), True
    try:
        yield
    finally:
        _here.scores = not before
        detach(token)


@contextmanager
def unseen() -> Iterator[None]:
    """Hide the package's own requests from instrumentations of HTTP clients, which would record them as turns of the host."""
    token = attach(Context({**get_current(), **_HIDDEN}))
    try:
        yield
    finally:
        detach(token)


_HIDING_KEYS = ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY")
_HIDDEN = dict.fromkeys((*(getattr(context, key, key) for key in _HIDING_KEYS), "suppress_instrumentation"), True)
"""Keys of a context. The last is that of older instrumentations."""


def may_wait() -> bool:
    """Return False on a thread that scores turns now. It should not wait again for a server that didn't answer."""
    return not getattr(_here, "scores", False)


def is_own_work() -> bool:
    """Return True on threads of the package, and below :func:`own_work`. Spans that start there are part of no turn."""
    return get_value(_OWN_WORK) is True


def is_meant_for_host(error: BaseException) -> bool:
    """Return True if an exception from foreign code must propagate to the caller."""
    if isinstance(error, OutOfTime):  # the pipeline handles it
        return True
    if isinstance(error, Exception) or is_ours():
        return False
    if threading.current_thread().name.startswith(_SDK_THREADS):
        return False
    if isinstance(error, SystemExit):
        return _is_from_signal_handler(error)
    return isinstance(error, KeyboardInterrupt) or any(kind.__name__ in _HOST_ENDS for kind in type(error).__mro__)


def _is_from_signal_handler(error: BaseException) -> bool:
    """Return True if a signal handler of the host raised it: these run on the main thread between any two instructions."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handlers = set()
    for number in signal.valid_signals():
        handler: object = signal.getsignal(number)
        handler = getattr(handler, "func", handler)  # a partial
        handler = getattr(handler, "__func__", handler)  # a method
        handlers.add(getattr(handler, "__code__", None))
    return any(frame.f_code in handlers for frame, _ in traceback.walk_tb(error.__traceback__))


_IDLE_SECONDS = 10.0
"""Seconds after which a thread without work ends."""


class SideThreads:
    """Pool of threads that run work in order, several at once. They start with the first work."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def do(self, work: Callable[[], None]) -> bool:
        """Queue work that never raises. Return False if no thread can be started."""
        with self._changed:
            if self._idle <= len(self._waiting) and self._threads < self._most:
                if started(self._run, "otel-agenteval-side") is not None:
                    self._threads += 1
                elif not self._threads:
                    return False
            self._waiting.append(work)
            self._changed.notify()
        return True

    def _run(self) -> None:
        changed = self._changed
        while True:
            with changed:
                self._idle += 1
                there_is = changed.wait_for(lambda: self._waiting, _IDLE_SECONDS)
                self._idle -= 1
                if not there_is:
                    self._threads -= 1
                    return
                work = self._waiting.popleft()
            work()
