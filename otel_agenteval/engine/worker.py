"""One background thread for everything that may wait: evaluating turns, rendering scores, deadlines.

The agent's threads only append to a queue that is bounded in bytes; they never wait for the worker. The thread starts with
the first item, wakes at most a few times a second, and can be missing (before the first item, at exit, in a forked child):
then the thread that flushes does the work.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..core.threads import OwnThread, is_meant_for_host
from .side_threads import SideThreads

_log = logging.getLogger("otel_agenteval")

Found = TypeVar("Found")

POLL = 0.25
"""Seconds between two looks at the queue and at open turns."""
_COURTEOUS_BATCH = 2
_BREATH = 0.0005
"""An agent's thread cannot run while we do: half a millisecond of work, then a pause in which it gets its turn."""
_BACKLOG = 2_000
"""Items from which the queue is emptied without pauses."""
_RETRY = 0.05
"""Seconds between two tries of an outlet that has no room, while a caller waits for it."""
_SIDE_THREADS = 4
_ASIDE_SECONDS = 600.0
"""Longest time that an item waits for another thread: whatever holds it, the spans in it are done with then."""
_QUIET_POLLS = 8
"""Looks without work after which the thread sleeps until it is woken."""


class Worker:
    """A queue and the thread that empties it.

    Args:
        handle: does the work of a batch of items, and returns those that it did not begin because the end came. When it raises, what is
            left in the list is handled later.
        tick: called at every look, for deadlines; returns whether there is anything that may become due.
        flush: delivers what handling left in buffers, within the given seconds; False when that was not all.
        max_bytes: bound of the queue; an item that does not fit is refused, unless it must be taken.
        can_emit: whether there is room for the scores of one more batch; asked before each. Until then items wait in the queue.
        failed: called when a batch went wrong or the thread was ended; exceptions are named without content.
        now: monotonic seconds.
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
        """False at interpreter exit, when no thread can be started any more."""
        self.courteous = True
        """Whether to work in small bites, because an agent runs in this process."""
        self._side = SideThreads(_SIDE_THREADS)
        self._reset()

    def _reset(self) -> None:
        self._queue: deque[tuple[Any, int]] = deque()
        self._in_hand: Sequence[Any] = ()
        """The batch that is being handled."""
        self._given_up = False
        """Whether no further batch is begun."""
        self._aside: dict[int, _Aside] = {}
        """What is done by other threads, and what came back from them and is not handled yet; by the item's id."""
        self._returned = threading.Event()
        self._bytes = 0
        self._accepted = self._handled = 0
        """Items put and done so far: a flush covers what was put before it, whatever comes meanwhile."""
        self.looks = 0
        """How often the thread has looked for work."""
        self._lock = threading.Lock()
        self._working = threading.Lock()
        self._ticking = threading.Lock()
        self._handling = threading.Lock()
        self._wake = threading.Event()
        self._requests: deque[_Flush] = deque()
        self._soon: deque[_Flush] = deque()
        """Requests that wait for no item."""
        self._thread: threading.Thread | None = None
        self.idle = True
        """Whether the thread sleeps until it is woken."""
        self._stopping = False
        self._ended = threading.Event()
        """Set while no thread works."""

    @property
    def bytes(self) -> int:
        """Bytes in the queue."""
        return self._bytes

    @property
    def waiting(self) -> int:
        """Items in the queue."""
        return len(self._queue)

    @property
    def handled(self) -> int:
        """Items done so far."""
        return self._handled

    def put(self, item: Any, size: int, *, must: bool = False) -> bool:
        """Queue an item; False when the queue has no room for it, or the worker has stopped. Never blocks.

        What ``must`` be taken was in memory anyway, as an open turn was: then the bound is no reason to lose it.
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

    def set_aside(self, item: Any, size: int, work: Callable[[], None], late: Callable[[], Any] | None = None) -> None:
        """Have something done by another thread, then queue an item. To be called while a batch is handled, of which the item is a part.

        Args:
            item: queued when the work is done, or could not be: it does then what is left.
            size: of the item, in bytes.
            work: what would hold up everything else.
            late: return the item that is queued instead if the work isn't done in time; by default the item itself.
        """
        aside = _Aside(item, size, self._handled, self._now() + _ASIDE_SECONDS, late)
        with self._lock:
            self._bytes += size
            self._accepted += 1
            self._aside[id(item)] = aside

        def do() -> None:
            try:
                work()
            except BaseException as error:  # the item does what is left
                self._failed("worker", error)
            finally:
                self._take_back(aside)

        if not self.may_start or not self._side.do(do):
            self._take_back(aside)

    def _take_back(self, aside: _Aside) -> None:
        with self._lock:
            if aside.is_back or self._aside.get(id(aside.item)) is not aside:  # it was given up
                return
            aside.is_back = True
            self._queue.append((aside.item, aside.size))
        self._returned.set()
        if self.idle:
            self.wake()

    def _give_up_aside(self) -> None:
        """Queue what other threads have had long enough."""
        now = self._now()
        for aside in [aside for aside in self._aside.values() if aside.until <= now and not aside.is_back]:
            item = aside.item if aside.late is None else aside.late()
            with self._lock:
                if aside.is_back or self._aside.pop(id(aside.item), None) is None:
                    continue
                aside.is_back, aside.item = True, item
                self._aside[id(item)] = aside
                self._queue.append((item, aside.size))
            self._failed("side_thread", TimeoutError())

    def wake(self) -> None:
        """Make the thread look now; start it if there is none."""
        if not self._runs() and self.may_start and not self._stopping:
            with self._lock:
                if not self._runs():
                    thread = OwnThread(self._run, "otel-agenteval")
                    try:
                        thread.start()
                    except RuntimeError:  # the interpreter is going down: flush and exit do the work
                        self.may_start = False
                        return
                    self._thread = thread
        self.idle = False
        self._wake.set()

    def _runs(self) -> bool:
        """Whether there is a thread: the one that was started may have been ended from outside."""
        thread = self._thread
        return thread is not None and thread.is_alive()

    def flush(self, timeout: float) -> bool:
        """Handle everything that is queued now and flush the outlets; False unless all was delivered in time."""
        return self._ask(timeout, outlets=True)

    def drain(self, timeout: float) -> bool:
        """Handle everything that is queued now, without flushing outlets; False unless that was done in time."""
        return self._ask(timeout, outlets=False)

    def mark(self, look: Callable[[], Found]) -> tuple[int, Found]:
        """How many items were put so far, and what ``look`` finds while nothing is on its way from open turns into the queue."""
        with self._ticking:
            found = look()
            return self._accepted, found

    def has_handled(self, mark: int) -> bool:
        """Whether all items that were put before are handled, with what was set aside of them."""
        with self._lock:
            return self._handled >= mark and all(aside.first >= mark for aside in self._aside.values())

    def discard(self, unwanted: Callable[[Any], bool], forget: Callable[[], None]) -> None:
        """Drop some items that are still queued. ``forget`` is called while nothing is closed or handled."""
        with self._ticking, self._handling:
            forget()
            with self._lock:
                for i, (item, size) in enumerate(self._queue):
                    if item is not None and unwanted(item):
                        self._queue[i] = None, size

    def flush_outlets(self, timeout: float) -> bool:
        """Deliver what handling left in buffers, however much waits in the queue; False unless that was done in time."""
        deadline = time.monotonic() + timeout
        if not self._runs() or self._thread is threading.current_thread():
            return self._is_done(0, deadline, outlets=True)
        request = _Flush(deadline, True, 0)
        self._soon.append(request)
        return self._wait_for(request)

    def _ask(self, timeout: float, outlets: bool) -> bool:
        deadline = time.monotonic() + timeout
        if self._thread is threading.current_thread():
            return False  # it cannot wait for itself
        if self._queue and not self._runs():
            self.wake()
        if not self._runs():
            return self._work_here(deadline, outlets)
        request = _Flush(deadline, outlets, self._accepted)
        self._requests.append(request)
        return self._wait_for(request)

    def _wait_for(self, request: _Flush) -> bool:
        """Whether the thread, or one that takes its place, did what was asked for, in time."""
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
        """Handle what is queued, flush the ``outlets`` too if wanted, and let the thread end. Starts no thread; safe to call twice."""
        deadline = time.monotonic() + timeout
        ok = self._ask(timeout, outlets=outlets)
        self._stopping = True
        self._wake.set()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            self._ended.wait(max(0.0, deadline - time.monotonic()))
        return ok and not self._queue

    def give_up(self, timeout: float) -> list[Any]:
        """Begin no further batch, and wait up to ``timeout`` seconds for the one in hand. Returns the items that stay unprocessed.

        A batch in which ``handle`` is stuck counts as unprocessed.
        """
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

    def after_fork_in_child(self) -> None:
        """The parent owns what was queued; the child starts anew, with locks of its own."""
        self._side.reset()
        self._reset()

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
                # A pause between two looks, so that a busy agent does not pay for waking us with every turn.
                self.idle = False
                self._wake.wait(POLL)
            else:
                self.idle = True
                if not (self._queue or self._requests or self._soon):  # else something came in the meantime
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
        """Whether everything up to an item was handled and, with ``outlets``, delivered."""
        try:
            return (not outlets or self._flush(max(0.0, deadline - time.monotonic()))) and self.has_handled(upto)
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            _log.warning("flushing scores failed: %s", type(error).__name__)
            return False

    def _work(self, hurry: bool = False, upto: int | None = None, deadline: float | None = None, most: int = 256) -> bool:
        """Do what is due and empty the queue, or handle it up to an item; in a ``hurry`` when a caller waits for it.

        Past the ``deadline`` nothing more is begun. While nothing can be emitted, that is tried until then; without a deadline, at the
        next look. At most ``most`` items are handled at once: one, where a caller waits that could not go on before the last of them.
        """
        try:
            with self._ticking:
                due = self._tick() or bool(self._aside)
            self._give_up_aside()
        except BaseException as error:
            if is_meant_for_host(error):
                raise
            _log.warning("closing turns failed: %s", type(error).__name__)
            due = True
        upto = None if upto is None else self._accepted  # with what was closed just now
        while not self._given_up and (self._queue if upto is None else not self.has_handled(upto)):
            if not self._queue:
                if not self._wait_for_aside(deadline):
                    break
                continue
            if not self._can_emit():
                if deadline is None or time.monotonic() >= deadline:
                    return True
                time.sleep(_RETRY)
                continue
            hurry = hurry or not self.courteous or self._stopping or bool(self._requests) or len(self._queue) > _BACKLOG
            with self._handling:
                if self._given_up:
                    break
                self._handle_some(min(most, 256 if hurry else _COURTEOUS_BATCH))
            if self._soon and threading.current_thread() is self._thread:
                self._flush_soon()
            if deadline is not None and time.monotonic() >= deadline:
                break
            if not hurry and self._queue:
                time.sleep(_BREATH)
        return due

    def _wait_for_aside(self, deadline: float | None) -> bool:
        """Wait a moment for what other threads do; False if there is nothing to wait for, or no time."""
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
        """Handle the next items. When that goes wrong, what was not begun goes back to the head of the queue."""
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
            if len(items) == count:  # it is not known which of them failed, and it would fail again
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
        """The next items, and their size; None stands for one that was discarded."""
        batch: list[Any] = []
        size = 0
        while self._queue and len(batch) < most:
            try:
                item, bytes_ = self._queue.popleft()
            except IndexError:  # it was given up
                break
            batch.append(item)
            size += bytes_
        return batch, size


class _Aside:
    """An item that waits for another thread's work."""

    __slots__ = ("first", "is_back", "item", "late", "size", "until")

    def __init__(self, item: Any, size: int, first: int, until: float, late: Callable[[], Any] | None) -> None:
        self.item = item
        self.size = size
        self.first = first
        """How many items were handled before: no flush that covers more than these is done without it."""
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
