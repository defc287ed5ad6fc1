"""Threads of ours, and exceptions that are meant for the host.

A metric or an outlet is foreign code and may raise anything. On a thread of ours that is a fault of theirs and ends nothing. On a
thread of the host's, some exceptions come from outside: Ctrl-C, an asyncio task that is cancelled, a greenlet that is killed, a signal
handler that exits. They must reach the host as they would without us.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import CodeType

_HOST_ENDS = frozenset(("CancelledError", "Cancelled", "GreenletExit", "Timeout"))
"""Classes of asyncio, trio, greenlet and gevent, by name: none of them is imported for this. All are checked to be no ``Exception``."""
_SDK_THREADS = "Otel"
"""What names of the OpenTelemetry SDK's own threads begin with. Those cannot be cancelled or interrupted from outside."""
_here = threading.local()


class OutOfTime(BaseException):
    """Work on one turn took more CPU time than ``turn.max_work`` allows. No ``Exception``: what catches faults must not catch it."""


class OwnThread(threading.Thread):
    """A daemon thread of ours."""

    def __init__(self, run: Callable[[], None], name: str) -> None:
        super().__init__(target=run, name=name, daemon=True)

    def run(self) -> None:
        """Run the target, marked as ours."""
        mark_as_ours()
        super().run()


def started(run: Callable[[], None], name: str) -> OwnThread | None:
    """A thread of ours that runs; None if the interpreter is going down and starts none any more."""
    thread = OwnThread(run, name)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


def mark_as_ours() -> None:
    """From now on the current thread is ours: the initializer of our thread pools."""
    _here.ours = True


def is_meant_for_host(error: BaseException) -> bool:
    """Whether an exception that foreign code let out must be passed on to our caller."""
    if isinstance(error, OutOfTime):  # meant for the pipeline
        return True
    if isinstance(error, Exception) or getattr(_here, "ours", False):
        return False
    if threading.current_thread().name.startswith(_SDK_THREADS):
        return False
    if isinstance(error, SystemExit):
        return _is_from_signal_handler(error)
    return isinstance(error, KeyboardInterrupt) or any(kind.__name__ in _HOST_ENDS for kind in type(error).__mro__)


def _is_from_signal_handler(error: BaseException) -> bool:
    """Whether a handler of the host's raised it, which Python calls in the middle of whatever the main thread is doing."""
    if threading.current_thread() is not threading.main_thread():
        return False
    handlers = {_code_of(signal.getsignal(number)) for number in signal.valid_signals()}
    step = error.__traceback__
    while step is not None:
        if step.tb_frame.f_code in handlers:
            return True
        step = step.tb_next
    return False


def _code_of(handler: object) -> CodeType | None:
    handler = getattr(handler, "func", handler)  # a partial
    handler = getattr(handler, "__func__", handler)  # a method
    return getattr(handler, "__code__", None)
