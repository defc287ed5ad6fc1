"""Calls out of the process that may hang, each kind on a thread of its own.

A thread can't be stopped. So a caller waits for a limited time, and the call goes on without it. Later calls wait behind it
without their callers, within a limit of bytes.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Any, TypeVar, cast

from . import forks
from .threads import started

_T = TypeVar("_T")
_LEAST_SECONDS = 0.2
"""Shortest wait, which is enough for a call that doesn't hang."""
_IDLE_SECONDS = 10.0
"""Seconds after which a thread without work ends."""


class LaneFull(Exception):
    """The calls behind one that hangs exceed their limit."""


class _LaneCall:
    __slots__ = ("done", "error", "is_awaited", "result", "size", "work")

    def __init__(self, work: Callable[[], Any], size: int) -> None:
        self.work = work
        self.size = size
        self.done = threading.Event()
        self.result: Any = None
        self.error: BaseException | None = None
        self.is_awaited = True


class Lane:
    """Runs calls in their order. ``patience`` is the number of seconds for which a caller waits, and ``max_bytes`` the limit of what
    waits. ``failed`` gets the exceptions of calls whose callers went on.
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
        """Start of the current call."""
        self._bytes = 0
        self._is_running = False

    @property
    def stuck(self) -> float:
        """Seconds for which the current call has run if that is longer than callers wait, or 0."""
        since = self._since
        seconds = 0.0 if since is None else time.monotonic() - since
        return seconds if seconds > self._patience else 0.0

    @property
    def full(self) -> bool:
        return self._bytes >= self._max_bytes

    def do(self, work: Callable[[], object], size: int = 0) -> bool:
        """Run work, and return True when it is done. If an earlier call hangs, it only waits for its turn.

        Raises:
            TimeoutError: the work has begun and goes on.
            LaneFull: the work isn't done.
        """
        with self._changed:
            is_behind = self.stuck > 0 or any(not call.is_awaited for call in self._calls)
        if is_behind and self._bytes + size > self._max_bytes:
            raise LaneFull
        call = _LaneCall(work, size)
        call.is_awaited = not is_behind
        self._put(call)
        if not is_behind:
            self._result_of(call, self._patience)
        return not is_behind

    def ask(self, work: Callable[[], _T], seconds: float) -> _T:
        """Return the result of work, or raise TimeoutError if it isn't there in time. Work that hasn't begun is then left out."""
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
        """Do calls on their callers' threads from now on, unless the lane's own runs."""
        self._may_start = False

    def _put(self, call: _LaneCall) -> None:
        with self._changed:
            self._calls.append(call)
            self._bytes += call.size
            self._changed.notify()
            if self._is_running:
                return
            self._is_running = self._may_start and started(self._run, "otel-agenteval-lane") is not None
        if not self._is_running:  # the interpreter ends
            self._work()

    def _result_of(self, call: _LaneCall, seconds: float) -> Any:
        if not call.done.wait(max(seconds, _LEAST_SECONDS)):
            with self._changed:
                call.is_awaited = call.done.is_set()
            if not call.is_awaited:
                raise TimeoutError("no answer")
        if call.error is not None:
            raise call.error
        return call.result

    def _run(self) -> None:
        while True:
            self._work()
            with self._changed:
                if not self._changed.wait_for(lambda: self._calls, _IDLE_SECONDS):
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
