"""Background thread for evaluation, emission of scores and deadlines.

The agent's threads only append to a queue with a limit in bytes, and never wait for the worker. The thread starts with the
first item and wakes at most a few times a second. Before the first item, at exit and in a forked child there is no thread.
Then the thread that flushes does the work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..core import forks
from ..core.threads import SideThreads, is_meant_for_host, may_wait, started
from .work import WorkItem

_log = logging.getLogger("otel_agenteval")

Found = TypeVar("Found")

POLL = 0.25
"""Seconds between checks of the queue and of open turns."""
_COURTEOUS_BATCH = 2
_BREATH = 0.0005
"""Seconds of pause after half a millisecond of work, because the agent's thread can't run at the same time."""
_BACKLOG = 2_000
"""Number of items from which the queue is emptied without pauses."""
_RETRY = 0.05
"""Seconds between retries of a full outlet while a caller waits."""
_SIDE_THREADS = 4
_ASIDE_SECONDS = 600.0
"""Longest time that an item waits for another thread. Then it is queued without the result."""
_QUIET_POLLS = 8
"""Number of checks without work after which the thread sleeps until it is woken."""


class Worker:
    """Queue, and the thread that empties it.

    Args:
        handle: processes a batch of items, and returns those that it didn't start because the engine is ending. If it raises, the
            items left in the list are handled later.
        tick: called at every check, for deadlines. Returns True if anything may become due.
        flush: delivers buffered scores within the given seconds. Returns False if some remain.
        max_bytes: limit of the queue. An item that doesn't fit is refused, unless it must be accepted.
        can_emit: returns True if the outlets have room for another batch. Until then, items wait in the queue.
        failed: called if a batch fails or the thread ends, with an exception that is logged without content.
        now: returns monotonic seconds.
    """

    def __init__(
        self,
        handle: Callable[[list[Any]], Sequence[Any]],
        tick: Callable[[], bool],
        flush: Callable[[float], bool],
        max_bytes: int,
        can_emit: Callable[[], bool] = lambda: True,
        failed: Callable[[str, BaseException], None] = lambda where, error: None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        self._handle = handle
        self._tick = tick
        self._flush = flush
        self._can_emit = can_emit
        self._failed = failed
        self._now = now
        self.max_bytes = max_bytes
        self.may_start = True
        """False at interpreter exit, when no thread can be started."""
        self._is_courteous = True
        """True to work in small steps, because an agent runs in this process."""
        self._side = SideThreads(_SIDE_THREADS)
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._queue: deque[tuple[Any, int]] = deque()
        self._in_hand: Sequence[Any] = ()
        """Batch that is being handled."""
        self._given_up = False
        """True if no further batch is started."""
        self._aside: dict[int, _Aside] = {}
        """Items by id that wait for another thread, or came back and aren't handled yet."""
        self._returned = threading.Event()
        self._bytes = 0
        self._accepted = self._handled = 0
        """Numbers of queued and handled items. A flush covers items that were queued before it."""
        self.looks = 0
        """Number of checks for work."""
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._ticking = threading.Lock()
        self._handling = threading.Lock()
        self._wake = threading.Event()
        self._requests: deque[_Flush] = deque()
        self._soon: deque[_Flush] = deque()
        """Requests that don't wait for items."""
        self._thread: threading.Thread | None = None
        self.idle = True
        """True while the thread sleeps until it is woken."""
        self._stopping = False
        self._ended = threading.Event()
        """Set while no thread works."""

    @property
    def bytes(self) -> int:
        return self._bytes

    @property
    def waiting(self) -> int:
        return len(self._queue)

    @property
    def handled(self) -> int:
        return self._handled

    def put(self, item: Any, size: int, *, must: bool = False) -> bool:
        """Queue an item, or return False if the queue is full or the worker has stopped. Never blocks. An item that ``must`` be
        accepted was already in memory, so it is accepted above the limit.
        """
        with self._lock:
            if (self._bytes + size > self.max_bytes and not must) or self._stopping:
                return False
            self._bytes += size
            self._accepted += 1
            self._queue.append((item, size))
        if self.idle or self._bytes * 2 > self.max_bytes:
            self.wake()
        return True

    def hurry(self) -> None:
        """Work without pauses, because no agent runs in this process."""
        self._is_courteous = False

    def start_no_threads(self) -> None:
        """Start no further thread, because the interpreter is exiting."""
        self.may_start = False

    def set_aside(self, item: WorkItem, work: Callable[[], None], late: Callable[[], WorkItem]) -> None:
        """Run work on another thread, then queue the item of the current batch again, even if the work failed. If the work isn't
        done in time, the item of ``late`` is queued.
        """
        aside = _Aside(item, item.size, self._handled, self._now() + _ASIDE_SECONDS, late)
        with self._lock:
            self._bytes += aside.size
            self._accepted += 1
            self._aside[id(item)] = aside

        def do() -> None:
            try:
                work()
            except BaseException as error:  # the item does the rest
                self._failed("worker", error)
            finally:
                self._take_back(aside)

        if not self.may_start or not self._side.do(do):
            self._take_back(aside)

    def _take_back(self, aside: _Aside) -> None:
        with self._lock:
            if aside.is_back or self._aside.get(id(aside.item)) is not aside:  # already given up
                return
            aside.is_back = True
            self._queue.append((aside.item, aside.size))
        self._returned.set()
        if self.idle:
            self.wake()

    def _give_up_aside(self) -> None:
        """Queue items that other threads didn't finish in time."""
        now = self._now()
        for aside in [aside for aside in self._aside.values() if aside.until <= now and not aside.is_back]:
            item = aside.late()
            with self._lock:
                if aside.is_back or self._aside.pop(id(aside.item), None) is None:
                    continue
                aside.is_back, aside.item = True, item
                self._aside[id(item)] = aside
                self._queue.append((item, aside.size))
            self._failed("side_thread", TimeoutError())

    def wake(self) -> None:
        """Make the thread check for work now, and start it if necessary."""
        if not self._runs() and self.may_start and not self._stopping:
            with self._lock:
                if not self._runs():
                    thread = started(self._run, "otel-agenteval")
                    if thread is None:  # flush and exit do the work
                        self.may_start = False
                        return
                    self._thread = thread
        self.idle = False
        self._wake.set()

    def _runs(self) -> bool:
        """Return True if the thread is alive. It may have been ended from outside."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def flush(self, timeout: float) -> bool:
        """Handle all queued items and flush the outlets. Return True if all was delivered in time."""
        return self._ask(timeout, outlets=True)

    def drain(self, timeout: float) -> bool:
        """Handle all queued items without flushing outlets. Return True if it was done in time."""
        return self._ask(timeout, outlets=False)

    def mark(self, look: Callable[[], Found]) -> tuple[int, Found]:
        """Return the number of queued items, and the result of ``look``, during which no open turn moves to the queue."""
        with self._ticking:
            found = look()
            return self._accepted, found

    def has_handled(self, mark: int) -> bool:
        """Return True if all items up to the mark are handled, including those set aside."""
        with self._lock:
            return self._handled >= mark and all(aside.first >= mark for aside in self._aside.values())

    def discard(self, unwanted: Callable[[Any], bool], forget: Callable[[], None]) -> None:
        """Drop some queued items. ``forget`` runs while nothing is closed or handled."""
        with self._ticking, self._handling:
            forget()
            with self._lock:
                for i, (item, size) in enumerate(self._queue):
                    if item is not None and unwanted(item):
                        self._queue[i] = None, size

    def flush_outlets(self, timeout: float) -> bool:
        """Deliver buffered scores without handling queued items. Return True if it was done in time."""
        deadline = time.monotonic() + timeout
        if not self._runs() or self._thread is threading.current_thread():
            return self._is_done(0, deadline, outlets=True)
        request = _Flush(deadline, True, 0)
        self._soon.append(request)
        return self._wait_for(request)

    def _ask(self, timeout: float, outlets: bool) -> bool:
        deadline = time.monotonic() + timeout
        if self._thread is threading.current_thread() or not may_wait():
            return False  # the thread can't wait for itself, nor for a metric that waits for it
        if self._queue and not self._runs():
            self.wake()
        if not self._runs():
            return self._work_here(deadline, outlets)
        request = _Flush(deadline, outlets, self._accepted)
        self._requests.append(request)
        return self._wait_for(request)

    def _wait_for(self, request: _Flush) -> bool:
        """Return True if the thread, or a replacement, fulfilled the request in time."""
        self.wake()
        while not request.done.wait(min(POLL, max(0.0, request.deadline - time.monotonic()))):
            if time.monotonic() >= request.deadline:
                return False
            if not self._runs():
                if not self.may_start:
                    return self._work_here(request.deadline, request.outlets)
                self.wake()
        return request.ok

    def stop(self, timeout: float, *, outlets: bool = True) -> bool:
        """Handle queued items, optionally flush ``outlets``, and end the thread. Starts none. Safe to call twice."""
        deadline = time.monotonic() + timeout
        ok = self._ask(timeout, outlets=outlets)
        self._stopping = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            self._ended.wait(max(0.0, deadline - time.monotonic()))
        return ok and not self._queue

    def give_up(self, timeout: float) -> list[Any]:
        """Start no further batch, wait up to ``timeout`` seconds, and return unprocessed items, including a stuck batch."""
        self._given_up = True
        if self._thread is not threading.current_thread() and self._handling.acquire(timeout=max(0.0, timeout)):
            self._handling.release()
        left = list(self._in_hand)
        with self._lock:
            for aside in self._aside.values():
                if not aside.is_back:
                    self._bytes -= aside.size
                    self._handled += 1
                    left.append(aside.item)
            self._aside.clear()
            while self._queue:
                item, size = self._queue.popleft()
                self._bytes -= size
                self._handled += 1
                left.append(item)
        return [item for item in left if item is not None]

    def run_here(self, start: Callable[[], object]) -> None:
        """Call ``start``, then work on the calling thread until :meth:`stop`."""
        self._thread = threading.current_thread()
        start()
        while not self._stopping:
            self._run_once()
        self._thread = None

    def _run_once(self) -> None:
        self._ended.clear()
        try:
            self._loop()
        except BaseException as error:  # raised from outside
            self._failed("worker", error)
        finally:
            self._ended.set()

    def _run(self) -> None:
        try:
            self._run_once()
        finally:
            self.idle = True  # the next item starts another thread
            if self._queue and not self._stopping and self._thread is threading.current_thread():
                self._thread = None
                self.wake()

    def _loop(self) -> None:
        quiet = 0
        while not self._stopping:
            found = bool(self._queue or self._requests or self._soon)
            due = self._work_once()
            quiet = 0 if found or due else quiet + 1
            if quiet < _QUIET_POLLS:
                # A pause between checks, so that a busy agent doesn't pay for a wake-up with every turn.
                self.idle = False
                self._wake.wait(POLL)
            else:
                self.idle = True
                if not (self._queue or self._requests or self._soon):  # nothing arrived in the meantime
                    self._wake.wait()
                self.idle = False
                quiet = 0
            self._wake.clear()
        self._work_once()

    def _work_once(self) -> bool:
        self.looks += 1
        with self._working:
            due = self._work()
        self._flush_soon()
        while self._requests:
            request = self._requests.popleft()
            with self._working:
                self._work(hurry=True, upto=request.upto, deadline=request.deadline)
            request.ok = self._is_done(request.upto, request.deadline, outlets=request.outlets)
            request.done.set()
        return due

    def _flush_soon(self) -> None:
        while self._soon:
            request = self._soon.popleft()
            request.ok = self._is_done(request.upto, request.deadline, outlets=True)
            request.done.set()

    def _work_here(self, deadline: float, outlets: bool) -> bool:
        upto = self._accepted
        if not self._working.acquire(timeout=max(0.0, deadline - time.monotonic())):
            return False
        try:
            self._work(hurry=True, upto=upto, deadline=deadline, most=1)
        finally:
            self._working.release()
        return self._is_done(upto, deadline, outlets=outlets)

    def _is_done(self, upto: int, deadline: float, *, outlets: bool) -> bool:
        try:
            return (not outlets or self._flush(max(0.0, deadline - time.monotonic()))) and self.has_handled(upto)
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            _log.warning("flushing scores failed: %s", type(error).__name__)
            return False

    def _work(self, hurry: bool = False, upto: int | None = None, deadline: float | None = None, most: int = 256) -> bool:
        """Do all due work and empty the queue, or handle it up to an item. In a ``hurry``, because a caller waits, it doesn't
        pause. After the ``deadline``, nothing more is started. While outlets are full, this retries until the deadline or,
        without one, returns. ``most`` limits the items per batch: 1 if a caller could not continue before the last of them.
        """
        due = self._close_due_turns()
        upto = None if upto is None else self._accepted  # includes turns that were closed just now
        while self._has_work(upto):
            if not self._queue:
                if self._wait_for_aside(deadline):
                    continue
                break
            if not self._can_emit():
                if deadline is None or time.monotonic() >= deadline:
                    return True
                time.sleep(_RETRY)
                continue
            hurry = hurry or self._must_hurry()
            self._handle_batch(most if hurry else _COURTEOUS_BATCH)
            if deadline is not None and time.monotonic() >= deadline:
                break
            if not hurry and self._queue:
                time.sleep(_BREATH)
        return due

    def _has_work(self, upto: int | None) -> bool:
        if self._given_up:
            return False
        return bool(self._queue) if upto is None else not self.has_handled(upto)

    def _close_due_turns(self) -> bool:
        try:
            with self._ticking:
                due = self._tick() or bool(self._aside)
            self._give_up_aside()
            return due
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            _log.warning("closing turns failed: %s", type(error).__name__)
            return True

    def _must_hurry(self) -> bool:
        return not self._is_courteous or self._stopping or bool(self._requests) or len(self._queue) > _BACKLOG

    def _handle_batch(self, most: int) -> None:
        with self._handling:
            if self._given_up:
                return
            self._handle_some(most)
        if self._soon and threading.current_thread() is self._thread:
            self._flush_soon()

    def _wait_for_aside(self, deadline: float | None) -> bool:
        """Wait briefly for other threads. Return False if there is nothing to wait for, or no time."""
        self._returned.clear()
        if self._soon and threading.current_thread() is self._thread:
            self._flush_soon()
        left = 0.0 if deadline is None else deadline - time.monotonic()
        if left <= 0 or not self._aside:
            return bool(self._queue)
        if not self._queue:
            self._returned.wait(min(_RETRY, left))
        return True

    def _handle_some(self, most: int) -> None:
        """Handle the next items. If that fails, unstarted items return to the head of the queue."""
        batch, size = self._batch(most)
        self._in_hand = batch
        items = [item for item in batch if item is not None]
        count = len(items)
        not_begun: Sequence[Any] = ()
        try:
            not_begun = self._handle(items)
            items = []
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            self._failed("worker", error)
            if len(items) == count:  # drop the first, because the failing item is unknown and would fail again
                items = items[1:]
        finally:
            self._in_hand = not_begun
            with self._lock:
                self._handled += len(batch) - len(items)
                if self._aside:
                    left = {id(item) for item in items}
                    for item in batch:
                        if item is not None and id(item) not in left:
                            self._aside.pop(id(item), None)
                if items:
                    self._queue.extendleft((item, 0) for item in reversed(items[1:]))
                    self._queue.appendleft((items[0], size))
                else:
                    self._bytes -= size

    def _batch(self, most: int) -> tuple[list[Any], int]:
        """Return the next items and their size. None stands for a discarded item."""
        batch: list[Any] = []
        size = 0
        while self._queue and len(batch) < most:
            try:
                item, bytes_ = self._queue.popleft()
            except IndexError:  # emptied by give_up
                break
            batch.append(item)
            size += bytes_
        return batch, size


class _Aside:
    __slots__ = ("first", "is_back", "item", "late", "size", "until")

    def __init__(self, item: Any, size: int, first: int, until: float, late: Callable[[], WorkItem]) -> None:
        self.item = item
        self.size = size
        self.first = first
        """Number of items handled before. A flush that covers more waits for this one."""
        self.until = until
        self.late = late
        self.is_back = False


class _Flush:
    __slots__ = ("deadline", "done", "ok", "outlets", "upto")

    def __init__(self, deadline: float, outlets: bool, upto: int) -> None:
        self.upto = upto
        self.deadline = deadline
        self.outlets = outlets
        self.done = threading.Event()
        self.ok = False
