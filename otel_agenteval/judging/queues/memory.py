"""Job queue and spend book in this process's memory. Jobs that remain at exit are counted as dropped."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ...core import forks
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.sqlite import MEMORY
from .base import SLOTS, Counter, Demand, Job
from .sqlite import SqliteQueue


class MemoryQueue(SqliteQueue):
    """A :class:`~otel_agenteval.judging.queues.JobQueue` in memory. A forked child begins with an empty one."""

    remembered = 10_000

    def __init__(self, max_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(MEMORY, max_bytes, clock)

    def close(self) -> list[Job]:
        with self._lock:
            return [] if self._file.closed else [*self._remaining(), *super().close()]

    def _remaining(self) -> list[Job]:
        with self._using("read") as db:
            return [Job(*row) for row in db.execute("SELECT id, payload, priority, attempts FROM jobs ORDER BY number")]


class MemorySpendBook:
    """A :class:`~otel_agenteval.judging.queues.SpendBook` in memory."""

    def __init__(self) -> None:
        self._spent: dict[Counter, dict[int, float]] = {}
        """Amounts by slot, oldest first. They still count in a forked child."""
        self._make_lock()
        forks.in_child(self._make_lock)

    def _make_lock(self) -> None:
        self._lock = threading.Lock()

    def take(self, demands: Sequence[Demand], at: float) -> float:
        with self._lock:
            wait = 0.0
            for demand in demands:
                if not demand.fits(self._used(demand.counter, at)):
                    oldest = next(iter(self._spent.get(demand.counter, ())), demand.counter.slot(at))
                    wait = max(wait, demand.counter.leaves(oldest) - at)
            if wait == 0.0:
                for demand in demands:
                    self._add(demand.counter, demand.amount, at)
            return wait

    def add(self, amounts: Sequence[tuple[Counter, float]], at: float) -> None:
        with self._lock:
            for counter, amount in amounts:
                self._add(counter, amount, at)

    def used(self, counter: Counter, at: float) -> float:
        with self._lock:
            return self._used(counter, at)

    def close(self) -> None:
        """Do nothing."""

    def _add(self, counter: Counter, amount: float, at: float) -> None:
        slots = self._spent.setdefault(counter, {})
        slot = counter.slot(at)
        slots[slot] = slots.get(slot, 0.0) + amount

    def _used(self, counter: Counter, at: float) -> float:
        slots = self._spent.get(counter)
        if not slots:
            return 0.0
        oldest = counter.slot(at) - SLOTS
        for slot in [slot for slot in slots if slot < oldest]:
            del slots[slot]
        return sum(slots.values())
