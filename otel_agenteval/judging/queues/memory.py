"""Job queue and spend book in this process's memory.

Jobs that remain at exit are counted as dropped.
"""

from __future__ import annotations

import heapq
import itertools
import threading
from collections import Counter, OrderedDict, deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from ...core import forks
from ...core.clock import SYSTEM_CLOCK, Clock
from .base import SLOTS, Demand, Job, JobQueue, Leases
from .base import Counter as Spending

_REMEMBERED = 10_000
_DEAD_LETTERS = 1_000


@dataclass(slots=True)
class _QueuedJob:
    job: Job
    number: int
    due: float
    """Time at which the job can be claimed or, if claimed, at which its lease ends."""
    claimed: bool = False
    token: str = ""
    """Token of the last lease, or empty before a claim and after a return."""


class MemoryQueue(JobQueue):
    """A :class:`~otel_agenteval.judging.queues.JobQueue` in memory."""

    is_shared = False

    def __init__(self, max_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self.max_bytes = max_bytes
        self._clock = clock
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._leases = Leases()
        self._numbers = itertools.count()
        self._entries: dict[str, _QueuedJob] = {}
        self._bytes = 0
        self._ready: list[tuple[int, int, str]] = []
        """Heap of (negative priority, number, id). Entries that aren't due any more are skipped later."""
        self._later: list[tuple[float, int, str]] = []
        self._evictable: Counter[int] = Counter()
        """Number of unclaimed jobs by priority."""
        self._done: OrderedDict[str, None] = OrderedDict()
        self._dead: deque[tuple[str, str]] = deque(maxlen=_DEAD_LETTERS)

    @property
    def depth(self) -> int:
        return len(self._entries)

    @property
    def bytes(self) -> int:
        return self._bytes

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        now = self._clock.time_ns() / 1e9
        left_out: list[Job] = []
        with self._lock:
            self._promote(now)
            for job in jobs:
                if job.id in self._entries or job.id in self._done:
                    continue
                if not self._make_room(job, left_out):
                    left_out.append(job)
                    continue
                entry = self._entries[job.id] = _QueuedJob(job, next(self._numbers), now)
                self._bytes += job.size
                self._evictable[job.priority] += 1
                self._schedule(entry, now, claimed=False)
        return left_out

    def claim(self, n: int, lease: float) -> list[Job]:
        now = self._clock.time_ns() / 1e9
        claimed: list[Job] = []
        with self._lock:
            self._promote(now)
            while len(claimed) < n:
                entry = self._first(now)
                if entry is None:
                    break
                entry.token = self._leases.grant()
                job = entry.job
                entry.job = Job(job.id, job.payload, job.priority, job.attempts + 1)
                self._schedule(entry, now + lease, claimed=True)
                claimed.append(Job(job.id, job.payload, job.priority, job.attempts + 1, entry.token))
        return claimed

    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        until = self._clock.time_ns() / 1e9 + lease
        lost = []
        with self._lock:
            for job in jobs:
                entry = self._owned(job)
                if entry is None:
                    lost.append(_id_of(job))
                else:
                    self._schedule(entry, until, claimed=True)
        return lost

    def ack_many(self, jobs: Sequence[Job | str]) -> list[str]:
        with self._lock:
            return [_id_of(job) for job in jobs if not self._finish(job)]

    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        with self._lock:
            entry = self._owned(job)
            if entry is None:
                return False
            if not counted:
                entry.job = replace(entry.job, attempts=entry.job.attempts - 1)
            entry.token = ""
            self._schedule(entry, at, claimed=False)
            return True

    def dead(self, job: Job | str, reason: str) -> bool:
        with self._lock:
            done = self._finish(job)
            if done:
                self._dead.append((_id_of(job), reason))
            return done

    def dead_letters(self) -> list[tuple[str, str]]:
        with self._lock:
            return list(self._dead)

    def close(self) -> list[Job]:
        with self._lock:
            lost = [entry.job for entry in self._entries.values()]
            self._entries.clear()
            self._bytes = 0
            return lost

    def _owned(self, job: Job | str) -> _QueuedJob | None:
        job_id, fence = self._leases.claimed(job)
        entry = self._entries.get(job_id)
        return entry if entry is not None and entry.token.startswith(fence) else None

    def _schedule(self, entry: _QueuedJob, due: float, *, claimed: bool) -> None:
        self._evictable[entry.job.priority] += entry.claimed - claimed
        entry.claimed, entry.due = claimed, due
        heapq.heappush(self._later, (due, entry.number, entry.job.id))

    def _promote(self, now: float) -> None:
        """Move jobs that became due to the ready heaps, including those whose lease ended."""
        while self._later and self._later[0][0] <= now:
            due, number, job_id = heapq.heappop(self._later)
            entry = self._entries.get(job_id)
            if entry is None or entry.due != due:
                continue
            if entry.claimed:
                entry.claimed = False
                self._evictable[entry.job.priority] += 1
            heapq.heappush(self._ready, (-entry.job.priority, number, job_id))

    def _first(self, now: float) -> _QueuedJob | None:
        while self._ready:
            _, _, job_id = heapq.heappop(self._ready)
            entry = self._entries.get(job_id)
            if entry is not None and not entry.claimed and entry.due <= now:
                return entry
        return None

    def _finish(self, job: Job | str) -> bool:
        entry = self._owned(job)
        if entry is None:
            return False
        job_id = entry.job.id
        del self._entries[job_id]
        self._bytes -= entry.job.size
        if not entry.claimed:
            self._evictable[entry.job.priority] -= 1
        self._done[job_id] = None
        if len(self._done) > _REMEMBERED:
            self._done.popitem(last=False)
        return True

    def _make_room(self, job: Job, left_out: list[Job]) -> bool:
        """Drop waiting jobs of lower priority if necessary, and return True if the job fits.

        The lowest priority is dropped first, and within it the oldest job.
        """
        short = self._bytes + job.size - self.max_bytes
        if short <= 0:
            return True
        if not any(count for priority, count in self._evictable.items() if priority < job.priority):
            return False
        waiting = [entry for entry in self._entries.values() if not entry.claimed and entry.job.priority < job.priority]
        if sum(entry.job.size for entry in waiting) < short:
            return False
        for entry in sorted(waiting, key=lambda entry: (entry.job.priority, entry.number)):
            if short <= 0:
                break
            del self._entries[entry.job.id]
            self._bytes -= entry.job.size
            self._evictable[entry.job.priority] -= 1
            short -= entry.job.size
            left_out.append(entry.job)
        return True


class MemorySpendBook:
    """A :class:`~otel_agenteval.judging.queues.SpendBook` in memory."""

    def __init__(self) -> None:
        self._spent: dict[Spending, dict[int, float]] = {}
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

    def add(self, amounts: Sequence[tuple[Spending, float]], at: float) -> None:
        with self._lock:
            for counter, amount in amounts:
                self._add(counter, amount, at)

    def used(self, counter: Spending, at: float) -> float:
        with self._lock:
            return self._used(counter, at)

    def close(self) -> None:
        """Do nothing."""

    def _add(self, counter: Spending, amount: float, at: float) -> None:
        slots = self._spent.setdefault(counter, {})
        slot = counter.slot(at)
        slots[slot] = slots.get(slot, 0.0) + amount

    def _used(self, counter: Spending, at: float) -> float:
        slots = self._spent.get(counter)
        if not slots:
            return 0.0
        oldest = counter.slot(at) - SLOTS
        for slot in [slot for slot in slots if slot < oldest]:
            del slots[slot]
        return sum(slots.values())


def _id_of(job: Job | str) -> str:
    return job if isinstance(job, str) else job.id
