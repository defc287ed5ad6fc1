"""The leases that this process holds: extended while their jobs are worked on, so that no other process begins a job that is slow.

A process that dies extends nothing, and its jobs are claimed by others once their leases have ended. A job that makes no progress is
held for a bounded time only.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ..core.clock import Clock
from ..core.threads import OwnThread
from .queues import Job, JobQueue

_BEATS_PER_LEASE = 3


class LeaseLost(Exception):
    """Another process claimed a job while it was worked on here: the lease had ended before it was extended."""


@dataclass(slots=True)
class _Lease:
    job: Job
    """As it was claimed last, which may be later than the claim that is worked on."""
    since: float
    """When it was claimed, or begun."""
    until: float
    """Before this no other process can have claimed it."""
    lost: bool = False
    """Whether another process did."""


class HeldLeases:
    """Knows which leases are held, and extends them in a thread of its own. Thread-safe. Times are monotonic seconds.

    Args:
        queue: grants the leases.
        lease: seconds for which they are granted and extended.
        longest: seconds after which a job that was begun is no longer held.
        clock: dates leases.
        failed: called when the queue cannot be reached.
    """

    def __init__(
        self, queue: JobQueue, lease: float, longest: float, clock: Clock, failed: Callable[[str, BaseException], None]
    ) -> None:
        self.queue = queue
        """Where the jobs are claimed from."""
        self._lease = lease
        self._longest = longest
        self._clock = clock
        self._failed = failed
        self.reset()

    def reset(self) -> None:
        """In a forked child: the leases are the parent's."""
        self._changed = threading.Condition()
        """Guards the leases; notified when the first one is held."""
        self._stopping = threading.Event()
        self._held: dict[str, _Lease] = {}
        self._thread: threading.Thread | None = None

    def claim(self, n: int) -> list[Job]:
        """Up to ``n`` jobs that are due. Their leases are held from now on."""
        now = self._clock.monotonic()
        jobs = self.queue.claim(n, self._lease)
        self._hold(jobs, now)
        return jobs

    def _hold(self, jobs: Sequence[Job], now: float) -> None:
        with self._changed:
            if jobs and not self._held:
                self._changed.notify()
            for job in jobs:
                known = self._held.get(job.id)
                self._held[job.id] = _Lease(job, now if known is None else known.since, now + self._lease)

    def begin(self, job: Job) -> None:
        """A job is begun: the time for which it may be held is counted from now."""
        now = self._clock.monotonic()
        with self._changed:
            held = self._held.get(job.id)
            if held is not None:
                held.since = now
                return
        self._hold([job], now)

    def renew(self, job: Job) -> None:
        """A job was claimed once more while it is worked on here: it is held by the later lease."""
        self._hold([job], self._clock.monotonic())

    def is_overdue(self, job: Job) -> bool:
        """Whether a job was begun so long ago that it is not held any more."""
        held = self._held.get(job.id)
        return held is not None and self._clock.monotonic() - held.since > self._longest

    def release(self, job: Job) -> Job:
        """Hold a job no longer; returns it with its last lease, to acknowledge it or to give it back."""
        with self._changed:
            held = self._held.pop(job.id, None)
        return job if held is None else held.job

    def confirm(self, jobs: Sequence[Job]) -> Collection[str]:
        """Extend the leases of jobs right before their scores are sent out; returns the ids of those that are not ours any more.

        While the queue cannot be reached, those are ours whose leases have not ended.
        """
        held = [lease.job if (lease := self._held.get(job.id)) is not None else job for job in jobs]
        try:
            return set(self._extend(held))
        except Exception as error:
            self._failed("judge_queue", error)
            now = self._clock.monotonic()
            return {job.id for job in jobs if (lease := self._held.get(job.id)) is None or lease.lost or lease.until <= now}

    def beat(self) -> None:
        """Extend all leases whose jobs are worked on."""
        now = self._clock.monotonic()
        with self._changed:
            held = [lease.job for lease in self._held.values() if not lease.lost and now - lease.since <= self._longest]
        self._extend(held)

    def _extend(self, jobs: Sequence[Job]) -> list[str]:
        now = self._clock.monotonic()
        lost = set(self.queue.extend(jobs, self._lease)) if jobs else set()
        with self._changed:
            for job in jobs:
                known = self._held.get(job.id)
                if known is not None and known.job.token == job.token:  # else it was acknowledged, or claimed anew, meanwhile
                    known.until, known.lost = now + self._lease, job.id in lost
        return list(lost)

    # --- the thread

    def start(self) -> None:
        """Extend leases from now on, unless that is done already. On the worker's thread.

        Raises:
            RuntimeError: the interpreter is going down.
        """
        if (self._thread is None or not self._thread.is_alive()) and not self._stopping.is_set():
            self._thread = OwnThread(self._run, "otel-agenteval-leases")
            self._thread.start()

    def stop(self) -> None:
        """Extend nothing more."""
        self._stopping.set()
        with self._changed:
            self._changed.notify_all()

    def _run(self) -> None:
        stopping = self._stopping
        while not stopping.is_set():
            with self._changed:
                self._changed.wait_for(lambda: self._held or stopping.is_set())
            try:
                if not stopping.wait(self._lease / _BEATS_PER_LEASE):
                    self.beat()
            except (
                BaseException
            ) as error:  # the queue's disk or server: what cannot be extended now may be in time for the next try
                self._failed("judge_queue", error)
