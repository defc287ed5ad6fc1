"""Functions for the package's threads, for exceptions that must reach the host program, and for calls that can hang.

Metrics and outlets can be user code that raises any exception. On the package's own threads, every exception counts as a failure of
this code. On the host's threads, some exceptions come from the host: Ctrl+C, a canceled asyncio task, a killed greenlet, or a
signal handler that exits. These exceptions must propagate to the host.
"""

from __future__ import annotations

import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

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
"""Host exceptions in asyncio, trio, greenlet, and gevent that don't inherit from ``Exception``, by name to avoid imports."""
_SDK_THREADS = "Otel"
"""Name prefix of the OpenTelemetry SDK's threads, which the host can't cancel or interrupt."""
_here = threading.local()
_OWN_WORK = create_key("agenteval-own-work")


class OutOfTime(BaseException):
    """Error for a turn that took longer than ``turn.max_work``. ``except Exception`` doesn't catch it."""


class OwnThread(threading.Thread):
    def __init__(self, run: Callable[[], None], name: str) -> None:
        super().__init__(target=run, name=name, daemon=True)

    def run(self) -> None:
        mark_as_ours()
        super().run()


def started(run: Callable[[], None], name: str) -> OwnThread | None:
    """Start a thread. If the thread can't start, for example during interpreter shutdown, return None."""
    thread = OwnThread(run, name)
    try:
        thread.start()
    except RuntimeError:
        return None
    return thread


def mark_as_ours() -> None:
    """Mark the current thread as the package's own. A thread pool can use this function as its initializer."""
    _here.ours = True
    attach(_own_context())


@contextmanager
def borrowed() -> Iterator[None]:
    """Treat the current host thread as the package's own inside the ``with`` block."""
    before, token = is_ours(), attach(_own_context())
    _here.ours = True
    try:
        yield
    finally:
        _here.ours = before
        detach(token)


def is_ours() -> bool:
    """Return True on the package's own threads and inside :func:`borrowed`."""
    return getattr(_here, "ours", False)


def _own_context() -> Context:
    return set_value(_OWN_WORK, True, set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))


@contextmanager
def own_work() -> Iterator[None]:
    """Suppress instrumentation, because metrics can call instrumented models. Within the block, :func:`may_wait` returns False."""
    token = attach(_own_context())
    before, _here.scores = may_wait(), True
    try:
        yield
    finally:
        _here.scores = not before
        detach(token)


@contextmanager
def unseen() -> Iterator[None]:
    """Hide the package's own requests from HTTP client instrumentations, which would record them as part of the host's turns."""
    token = attach(Context({**get_current(), **_HIDDEN}))
    try:
        yield
    finally:
        detach(token)


_HIDING_KEYS = ("_SUPPRESS_INSTRUMENTATION_KEY", "_SUPPRESS_HTTP_INSTRUMENTATION_KEY")
_HIDDEN = dict.fromkeys((*(getattr(context, key, key) for key in _HIDING_KEYS), "suppress_instrumentation"), True)
"""OpenTelemetry context keys that suppress instrumentation. Older instrumentations use the last key."""


def may_wait() -> bool:
    """Return True unless this thread is scoring turns. A scoring thread shouldn't wait again for an unresponsive server."""
    return not getattr(_here, "scores", False)


def is_own_work() -> bool:
    """Return True if the current work is the package's own, for example on its threads or inside :func:`own_work`."""
    return get_value(_OWN_WORK) is True


def is_meant_for_host(error: BaseException) -> bool:
    """Return True if an exception from a metric or an outlet must propagate."""
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
    """Return True if the host's signal handler raised the error. Signal handlers run on the main thread, between instructions."""
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


class SideThreads:
    """Thread pool that starts work in order of arrival. Its threads start on demand and end when they are idle."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._threads = self._idle = 0

    def do(self, work: Callable[[], None]) -> bool:
        """Queue ``work``, which must not raise an exception. If no thread runs or can be started, return False."""
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


_T = TypeVar("_T")
_LEAST_SECONDS = 0.2
"""Minimum seconds to wait. This time is enough for a call that doesn't hang."""


class LaneFull(Exception):
    """Error for a call that can't be queued, because an earlier call hangs and the :class:`Lane`'s queue is full."""


@dataclass(slots=True, eq=False)
class _LaneCall:
    work: Callable[[], Any]
    size: int
    done: threading.Event = field(default_factory=threading.Event)
    result: Any = None
    error: BaseException | None = None
    is_awaited: bool = True


class Lane:
    """Queue that runs calls one after another. A caller waits up to ``patience`` seconds (at least 0.2). While a call hangs, other
    calls are queued, up to ``max_bytes`` in total. ``failed`` receives the exceptions of calls whose callers no longer wait.
    """

    def __init__(self, patience: float, max_bytes: float = float("inf"), failed: Callable[[BaseException], None] = lambda error: None) -> None:  # fmt: skip
        self._patience = patience
        self._max_bytes = max_bytes
        self._failed = failed
        self._may_start = True
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        self._calls: deque[_LaneCall] = deque()
        self._since: float | None = None
        self._bytes = 0
        self._is_running = False

    @property
    def stuck(self) -> float:
        """Duration of the current call in seconds if it exceeds ``patience``, otherwise 0."""
        since = self._since
        seconds = 0.0 if since is None else time.monotonic() - since
        return seconds if seconds > self._patience else 0.0

    @property
    def full(self) -> bool:
        return self._bytes >= self._max_bytes

    def do(self, work: Callable[[], object], size: int = 0, *, must: bool = False) -> bool:
        """Run ``work`` and return True, or raise its exception. While an earlier call hangs, only queue ``work`` and return False.
        Set ``must`` to queue ``work`` even if the queue is full.

        Raises:
            TimeoutError: If the work isn't done in time. The work still runs, or will run later.
            LaneFull: If the work doesn't fit in the queue behind a hanging call.
        """
        with self._changed:
            is_behind = self.stuck > 0 or any(not call.is_awaited for call in self._calls)
        if is_behind and self._bytes + size > self._max_bytes and not must:
            raise LaneFull
        call = _LaneCall(work, size, is_awaited=not is_behind)
        self._put(call)
        if not is_behind:
            self._result_of(call, self._patience)
        return not is_behind

    def ask(self, work: Callable[[], _T], seconds: float) -> _T:
        """Return the result of ``work``. After ``seconds`` (at least 0.2), raise a TimeoutError, and drop ``work`` if unstarted."""
        call = _LaneCall(work, 0)
        self._put(call)
        try:
            return cast("_T", self._result_of(call, seconds))
        except TimeoutError:
            with self._changed:
                if call in self._calls and call is not self._calls[0]:
                    self._calls.remove(call)
            raise

    def start_no_thread(self) -> None:
        """Run later calls on their callers' threads, unless the lane's thread is already running."""
        self._may_start = False

    def _put(self, call: _LaneCall) -> None:
        with self._changed:
            self._calls.append(call)
            self._bytes += call.size
            self._changed.notify()
            if self._is_running:
                return
            self._is_running = True
        if not self._may_start or started(self._run, "otel-agenteval-lane") is None:  # the interpreter may be shutting down
            self._run(idle_seconds=0)

    def _result_of(self, call: _LaneCall, seconds: float) -> Any:
        if not call.done.wait(max(seconds, _LEAST_SECONDS)):
            with self._changed:
                call.is_awaited = call.done.is_set()
            if not call.is_awaited:
                raise TimeoutError("no answer")
        if call.error is not None:
            raise call.error
        return call.result

    def _run(self, idle_seconds: float = _IDLE_SECONDS) -> None:
        while True:
            self._work()
            with self._changed:
                if not self._changed.wait_for(lambda: self._calls, idle_seconds):
                    self._is_running = False
                    return

    def _work(self) -> None:
        while self._calls:
            call = self._calls[0]
            self._since = time.monotonic()
            try:
                call.result = call.work()
            except BaseException as error:
                call.error = error
            self._since = None
            with self._changed:
                self._calls.popleft()
                self._bytes -= call.size
                call.done.set()
                is_awaited = call.is_awaited
            if call.error is not None and not is_awaited:
                self._failed(call.error)
