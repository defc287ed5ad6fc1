"""Background thread that evaluates turns, emits scores, and handles deadlines.

Usually, the agent's threads only append to the worker's queue, which has a size limit. They wait for the worker in ``flush`` and at
exit. The worker's thread starts with the first queued item, and usually wakes up a few times per second. If it isn't running
(before the first item, at exit, or in a forked child), the thread that calls ``flush`` does the work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..core import forks
from ..core.threads import SideThreads, is_meant_for_host, may_wait, started
from .work import WorkItem, WorkQueue

_log = logging.getLogger("otel_agenteval")

Found = TypeVar("Found")

POLL = 0.25
"""Seconds between two checks of the queue and open turns."""
_COURTEOUS_BATCH = 2
_MOST_UNHANDLED = 256
_BREATH = 0.0005
"""Seconds that the worker pauses after each small batch, so that the agent's thread can run."""
_BACKLOG = 2_000
"""Number of queued items above which the worker doesn't pause."""
_RETRY = 0.05
"""Seconds between retries if an outlet is full and a caller waits."""
_SIDE_THREADS = 4
_ASIDE_SECONDS = 600.0
"""Maximum seconds that an item waits for another thread's result. After this time, the item is queued without the result."""
_QUIET_POLLS = 8
"""Number of consecutive checks without work before the thread sleeps until :meth:`Worker.wake`."""


class Worker:
    """Thread that handles queued items. :meth:`connect` sets the functions that handle the items.

    Args:
        flush: delivers buffered scores within the given seconds. Returns False if scores remain.
        max_bytes: maximum bytes in the queue. An item that doesn't fit is refused, unless ``must`` is True.
        can_emit: returns True if the outlets can accept another batch. Until then, items wait in the queue.
        failed: receives the exception of failed work.
        now: returns monotonic seconds.
    """

    def __init__(
        self,
        flush: Callable[[float], bool],
        max_bytes: int,
        can_emit: Callable[[], bool] = lambda: True,
        failed: Callable[[str, BaseException], None] = lambda where, error: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._handle: Callable[[list[Any]], Sequence[Any]]
        self._tick: Callable[[], bool] = lambda: False
        self._flush = flush
        self._can_emit = can_emit
        self._failed = failed
        self._now = now
        self.queue = WorkQueue(max_bytes)
        self.may_start = True
        """False at interpreter exit, when threads can't be started."""
        self.is_courteous = True
        """True if the worker must work in small steps, because an agent runs in this process."""
        self._side = SideThreads(_SIDE_THREADS)
        self._reset()
        forks.in_child(self._reset)

    def connect(self, handle: Callable[[list[Any]], Sequence[Any]], tick: Callable[[], bool] = lambda: False) -> None:
        """Set the functions that the worker calls. These functions belong to components that are created after the worker.

        Args:
            handle: processes a batch of items, and returns items that it didn't start because the engine is ending. If
                ``handle`` raises an exception, the items left in the list are handled later.
            tick: closes due turns, and is called at every check. Returns True if data might become due later.
        """
        self._handle, self._tick = handle, tick

    def _reset(self) -> None:
        self.queue.reset()
        self._in_hand: Sequence[Any] = ()
        self._given_up = False
        self.looks = 0
        self._starting = threading.Lock()
        self._working = threading.Lock()
        self._ticking = threading.Lock()
        self._handling = threading.Lock()
        self._wake = threading.Event()
        self._requests: deque[_Flush] = deque()
        self._urgent: deque[_Flush] = deque()
        self._thread: threading.Thread | None = None
        self.idle = True
        """True while the thread sleeps until :meth:`wake`."""
        self._stopping = False
        self._ended = threading.Event()

    def put(self, item: Any, size: int, *, must: bool = False) -> bool:
        """Queue an item without blocking. Return False if the worker has stopped, or the queue is full and ``must`` is False."""
        if self._stopping or not self.queue.put(item, size, must=must):
            return False
        if self.idle or self.queue.bytes * 2 > self.queue.max_bytes:
            self.wake()
        return True

    def set_aside(self, item: WorkItem, work: Callable[[], None], late: Callable[[], WorkItem]) -> None:
        """Run ``work`` on another thread, and then queue ``item`` again, even if ``work`` failed. If ``work`` takes too long, queue
        the item that ``late()`` returns instead.
        """
        aside = self.queue.set_aside(item, self._now() + _ASIDE_SECONDS, late)

        def take_back() -> None:
            if self.queue.take_back(aside) and self.idle:
                self.wake()

        def do() -> None:
            try:
                work()
            except BaseException as error:  # handling the item does the rest
                self._failed("worker", error)
            finally:
                take_back()

        if not self.may_start or not self._side.do(do):
            take_back()

    def mark(self, look: Callable[[], Found]) -> tuple[int, Found]:
        """Return (number of items ever queued, result of ``look()``). No turn closes at its deadline while ``look`` runs."""
        with self._ticking:
            found = look()
            return self.queue.accepted, found

    def discard(self, unwanted: Callable[[Any], bool], forget: Callable[[], None]) -> None:
        """Call ``forget``, then drop queued items for which ``unwanted`` returns True. Meanwhile, no queued item is handled."""
        with self._ticking, self._handling:
            forget()
            self.queue.discard(unwanted)

    def unhandled(self) -> list[Any]:
        return [*self._in_hand, *self.queue.waiting(_MOST_UNHANDLED)]

    # --- the thread

    def wake(self) -> None:
        """Make the thread check for work now. Start the thread if necessary."""
        if not self._runs() and self.may_start and not self._stopping:
            with self._starting:
                if not self._runs():
                    thread = started(self._run, "otel-agenteval")
                    if thread is None:  # flush and exit do the work
                        self.may_start = False
                        return
                    self._thread = thread
        self.idle = False
        self._wake.set()

    def run_here(self, start: Callable[[], object]) -> None:
        """Call ``start``, then handle items on the calling thread until :meth:`stop`."""
        self._thread = threading.current_thread()
        start()
        while not self._stopping:
            self._run_once()
        self._thread = None

    def _runs(self) -> bool:
        """Return True if the thread is alive. Other code can end this thread by raising an exception in it."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def _run(self) -> None:
        try:
            self._run_once()
        finally:
            self.idle = True  # the next item starts another thread
            if self.queue and not self._stopping and self._thread is threading.current_thread():
                self._thread = None
                self.wake()

    def _run_once(self) -> None:
        self._ended.clear()
        try:
            self._loop()
        except BaseException as error:  # raised from outside
            self._failed("worker", error)
        finally:
            self._ended.set()

    def _loop(self) -> None:
        quiet = 0
        while True:
            is_last = self._stopping
            found = self._has_work
            self.looks += 1
            with self._working:
                due = self._work()
            self._answer_urgent()
            self._answer_requests()
            if is_last:
                return
            quiet = 0 if found or due else quiet + 1
            if quiet < _QUIET_POLLS:
                # A pause between checks, so that a busy agent doesn't pay for a wake-up with every turn.
                self.idle = False
                self._wake.wait(POLL)
            else:
                self.idle = True
                if not self._has_work:  # nothing arrived in the meantime
                    self._wake.wait()
                self.idle = False
                quiet = 0
            self._wake.clear()

    @property
    def _has_work(self) -> bool:
        return bool(self.queue or self._requests or self._urgent)

    # --- flush and end

    def flush(self, timeout: float, *, items: bool = True, outlets: bool = True) -> bool:
        """Handle all queued items if ``items`` is True, and deliver buffered scores if ``outlets`` is True. Return True if this
        succeeds in time. A thread that must not wait for the worker, such as the worker's own thread, can't handle queued items.
        In such a thread, the method returns False if ``items`` is True.
        """
        deadline = time.monotonic() + timeout
        if self._thread is threading.current_thread() or not may_wait():
            # The thread can't wait for itself, nor for a metric that waits for it.
            return not items and self._is_done(0, deadline, outlets)
        if items and self.queue and not self._runs():
            self.wake()
        if not self._runs():
            return self._flush_here(items, outlets, deadline)
        request = _Flush(outlets, self.queue.accepted if items else 0, deadline)
        (self._requests if items else self._urgent).append(request)
        self.wake()
        while not request.done.wait(min(POLL, max(0.0, deadline - time.monotonic()))):
            if time.monotonic() >= deadline:
                return False
            if not self._runs():
                if not self.may_start:
                    return self._flush_here(items, outlets, deadline)
                self.wake()
        return request.ok

    def _flush_here(self, items: bool, outlets: bool, deadline: float) -> bool:
        upto = self.queue.accepted if items else 0
        if items:
            if not self._working.acquire(timeout=max(0.0, deadline - time.monotonic())):
                return False
            try:
                self._work(upto, deadline, most=1)
            finally:
                self._working.release()
        return self._is_done(upto, deadline, outlets)

    def _answer_requests(self) -> None:
        while self._requests:
            request = self._requests.popleft()
            with self._working:
                self._work(request.upto, request.deadline)
            request.ok = self._is_done(request.upto, request.deadline, request.outlets)
            request.done.set()

    def _answer_urgent(self) -> None:
        while self._urgent and threading.current_thread() is self._thread:
            request = self._urgent.popleft()
            request.ok = self._is_done(0, request.deadline, request.outlets)
            request.done.set()

    def _is_done(self, upto: int, deadline: float, outlets: bool) -> bool:
        try:
            return (not outlets or self._flush(max(0.0, deadline - time.monotonic()))) and self.queue.has_handled(upto)
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            _log.warning("flushing scores failed: %s", type(error).__name__)
            return False

    def stop(self, timeout: float, *, outlets: bool = True) -> bool:
        """Handle queued items, flush the outlets if ``outlets`` is True, and end the thread. Return True if this succeeds in time."""
        deadline = time.monotonic() + timeout
        ok = self.flush(timeout, outlets=outlets)
        self._stopping = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            self._ended.wait(max(0.0, deadline - time.monotonic()))
        return ok and not self.queue

    def give_up(self, timeout: float) -> list[Any]:
        """Stop starting batches. Wait up to ``timeout`` seconds for the current batch. Return all unhandled items."""
        self._given_up = True
        if self._thread is not threading.current_thread() and self._handling.acquire(timeout=max(0.0, timeout)):
            self._handling.release()
        return [*self._in_hand, *self.queue.clear()]

    # --- work

    def _work(self, upto: int | None = None, deadline: float | None = None, most: int = 256) -> bool:
        """Close due turns, and then handle the queue. Return True if data might become due later. If ``upto`` is set, a caller is
        waiting, so work without pauses. Start at most one batch after ``deadline``. If an outlet is full, retry until ``deadline``,
        or return if ``deadline`` is None. ``most`` is the maximum batch size, which is 1 if the calling thread can be interrupted.
        """
        queue = self.queue
        due = self._close_due_turns()
        hurry = upto is not None
        upto = None if upto is None else queue.accepted  # includes turns that were closed just now
        while not self._given_up and (queue if upto is None else not queue.has_handled(upto)):
            left = 0.0 if deadline is None else deadline - time.monotonic()
            if not queue:
                self._answer_urgent()
                if queue.wait_for_aside(min(_RETRY, left)):
                    continue
                break
            if not self._can_emit():
                if left <= 0:
                    return True
                time.sleep(_RETRY)
                continue
            hurry = hurry or not self.is_courteous or self._stopping or bool(self._requests) or len(queue) > _BACKLOG
            with self._handling:
                self._handle_batch(most if hurry else _COURTEOUS_BATCH)
            self._answer_urgent()
            if deadline is not None and time.monotonic() >= deadline:
                break
            if not hurry and queue:
                time.sleep(_BREATH)
        return due

    def _close_due_turns(self) -> bool:
        try:
            with self._ticking:
                due = self._tick() or self.queue.has_aside
            for _ in range(self.queue.take_back_overdue(self._now())):
                self._failed("side_thread", TimeoutError())
            return due
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            _log.warning("closing turns failed: %s", type(error).__name__)
            return True

    def _handle_batch(self, most: int) -> None:
        """Handle the next batch. If this fails, return items that weren't started to the front of the queue."""
        if self._given_up:
            return
        batch = self.queue.next_batch(most)
        self._in_hand = batch.items
        items = list(batch.items)
        not_begun: Sequence[Any] = ()
        try:
            not_begun = self._handle(items)
            items = []
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            self._failed("worker", error)
            if len(items) == len(batch.items):  # drop the first item, which may be the failing item
                items = items[1:]
        finally:
            self._in_hand = not_begun
            self.queue.finish(batch, items)


@dataclass(slots=True)
class _Flush:
    """Flush request to the worker's thread. ``upto`` is the number of queued items to wait for."""

    outlets: bool
    upto: int
    deadline: float
    done: threading.Event = field(default_factory=threading.Event)
    ok: bool = False
