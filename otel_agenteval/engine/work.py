"""The worker's queue, and the types of queued items."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..evaluation.scored_turn import Root, ScoredTurn
from ..turns.conversations import Ended
from ..turns.roots import SpanGroup
from ..turns.state import Closed
from .feedback import TurnFeedback

if TYPE_CHECKING:
    from ..statistics.changes import Change


class WorkItem(Protocol):
    @property
    def size(self) -> int:
        """Estimated bytes that this item takes in memory."""

    @property
    def trace_key(self) -> int:
        """Key of the item's trace (see :mod:`otel_agenteval.core.tenancy`)."""


@dataclass(slots=True)
class ClosedSpans:
    closed: Closed

    @property
    def size(self) -> int:
        return self.closed.size

    @property
    def trace_key(self) -> int:
        return self.closed.trace_id


@dataclass(slots=True)
class GroupedSpans:
    """Spans of one turn that isn't evaluated yet. The turn's root ended earlier, so span events can't be written."""

    group: SpanGroup

    @property
    def size(self) -> int:
        return self.group.size

    @property
    def trace_key(self) -> int:
        return self.group.root.trace_id


@dataclass(slots=True)
class EvaluatedTurn:
    """Turn that was evaluated when it closed, except by the metrics in ``scored.pending``."""

    scored: ScoredTurn

    @property
    def size(self) -> int:
        return self.scored.size

    @property
    def trace_key(self) -> int:
        return self.scored.root.trace_key


class TurnWithMedia(EvaluatedTurn):
    """Turn whose media metrics ran on another thread. The worker runs the remaining metrics."""

    __slots__ = ()

    def copy(self) -> TurnWithMedia:
        return TurnWithMedia(replace(self.scored))


@dataclass(slots=True)
class JudgedTurns:
    turns: Sequence[ScoredTurn]
    size: int

    @property
    def trace_key(self) -> int:
        return self.turns[0].root.trace_key


@dataclass(slots=True)
class DetectedChange:
    """Score change for the worse. Another thread adds details from the score store before otel-agenteval announces the change."""

    change: Change
    root: Root
    size = 1024

    @property
    def trace_key(self) -> int:
        return self.root.trace_key

    def explain(self, explained: Callable[[Change], Change]) -> None:
        self.change = explained(self.change)


@dataclass(slots=True)
class EndedConversation:
    ended: Ended
    size = 0

    @property
    def trace_key(self) -> int:
        return int(self.ended.last.trace_key)


@dataclass(slots=True)
class GivenFeedback:
    given: TurnFeedback
    last: bool = False
    """True if the feedback must not wait for its turn again."""
    size = 1024

    @property
    def trace_key(self) -> int:
        return self.given.trace_key


# --- the queue, with a limit in bytes and a place for items that wait for another thread


class QueuedBatch(NamedTuple):
    """Items that the worker handles together, without items that were discarded while queued."""

    items: list[Any]
    length: int
    """Number of items in the batch, including items that were discarded while queued."""
    size: int


@dataclass(slots=True)
class Aside:
    item: Any
    size: int
    start: int
    """Number of items that were already handled when this item was set aside. A flush that waits for more items than this number
    also waits for this item.
    """
    until: float
    late: Callable[[], Any]
    is_back: bool = False


class WorkQueue:
    """First-in, first-out queue with a byte limit. Thread-safe. In a forked child process, call :meth:`reset` to empty it."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.reset()

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._items: deque[tuple[Any, int]] = deque()
        """Queued (item, size) pairs. If an item was discarded, None replaces it."""
        self._aside: dict[int, Aside] = {}
        """Maps ``id(item)`` to an item that was set aside for another thread. The entry stays until the item is handled."""
        self._returned = threading.Event()
        self.bytes = 0
        self.accepted = 0
        """Number of items ever queued, which serves as a position in the queue."""
        self.handled = 0

    def __len__(self) -> int:
        return len(self._items)

    @property
    def fill(self) -> float:
        """Fill level from 0 to 1, or above 1 if items had to be added to a full queue."""
        return self.bytes / self.max_bytes

    def put(self, item: Any, size: int, *, must: bool = False) -> bool:
        """Queue an item. Return False if the queue is full, unless ``must`` is True."""
        with self._lock:
            if self.bytes + size > self.max_bytes and not must:
                return False
            self.bytes += size
            self.accepted += 1
            self._items.append((item, size))
        return True

    def waiting(self, most: int) -> list[Any]:
        with self._lock:
            return [item for item, _ in islice(self._items, most)]

    def next_batch(self, most: int) -> QueuedBatch:
        items: list[Any] = []
        count = size = 0
        while count < most:
            try:
                item, item_size = self._items.popleft()
            except IndexError:
                break
            count += 1
            size += item_size
            if item is not None:
                items.append(item)
        return QueuedBatch(items, count, size)

    def finish(self, batch: QueuedBatch, left: Sequence[Any]) -> None:
        """Count a batch as handled, except for items in ``left``, which return to the front of the queue."""
        with self._lock:
            self.handled += batch.length - len(left)
            if self._aside:
                kept = {id(item) for item in left}
                for item in batch.items:
                    if id(item) not in kept:
                        self._aside.pop(id(item), None)
            if left:
                self._items.extendleft((item, 0) for item in reversed(left[1:]))
                self._items.appendleft((left[0], batch.size))
            else:
                self.bytes -= batch.size

    def has_handled(self, mark: int) -> bool:
        """Return True if the first ``mark`` items are handled, including items that another thread holds."""
        with self._lock:
            return self.handled >= mark and all(aside.start >= mark for aside in self._aside.values())

    def discard(self, unwanted: Callable[[Any], bool]) -> None:
        with self._lock:
            for place, (item, size) in enumerate(self._items):
                if item is not None and unwanted(item):
                    self._items[place] = None, size

    def clear(self) -> list[Any]:
        with self._lock:
            waiting = [aside for aside in self._aside.values() if not aside.is_back]
            left = [*((aside.item, aside.size) for aside in waiting), *self._items]
            self._aside.clear()
            self._items.clear()
            self.handled += len(left)
            self.bytes -= sum(size for _, size in left)
        return [item for item, _ in left if item is not None]

    # --- items that wait for another thread

    @property
    def has_aside(self) -> bool:
        return bool(self._aside)

    def set_aside(self, item: Any, until: float, late: Callable[[], Any]) -> Aside:
        """Hold an item from the current batch for another thread, until :meth:`take_back`.

        If the item isn't back at the time ``until``, the item that ``late()`` returns is queued instead.
        """
        with self._lock:
            aside = Aside(item, item.size, self.handled, until, late)
            self.bytes += aside.size
            self.accepted += 1
            self._aside[id(item)] = aside
        return aside

    def take_back(self, aside: Aside) -> bool:
        """Queue an item again after another thread has finished it. Return False if the item is already queued or dropped."""
        with self._lock:
            if aside.is_back or self._aside.get(id(aside.item)) is not aside:
                return False
            aside.is_back = True
            self._items.append((aside.item, aside.size))
        self._returned.set()
        return True

    def take_back_overdue(self, now: float) -> int:
        """Queue a replacement for each item that another thread didn't finish in time. Return the number of replacements."""
        overdue = [aside for aside in list(self._aside.values()) if aside.until <= now and not aside.is_back]
        count = 0
        for aside in overdue:
            item = aside.late()
            with self._lock:
                if not aside.is_back and self._aside.pop(id(aside.item), None) is not None:
                    aside.is_back, aside.item = True, item
                    self._aside[id(item)] = aside
                    self._items.append((item, aside.size))
                    count += 1
        return count

    def wait_for_aside(self, seconds: float) -> bool:
        """If the queue is empty, wait for an item that another thread holds, or return False if none is held or no time is left."""
        self._returned.clear()
        if seconds > 0 and self._aside and not self._items:
            self._returned.wait(seconds)
            return True
        return bool(self._items)
