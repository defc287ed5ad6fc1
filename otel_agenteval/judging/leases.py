"""Job leases, which prevent other processes from claiming this process's jobs.

A process keeps extending its leases. If the process dies, its leases expire and other processes claim its jobs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from ..core import forks
from ..core.clock import Clock
from ..core.threads import OwnThread
from .queues import Job, JobQueue

_BEATS_PER_LEASE = 3


class LeaseLost(Exception):
    """Error for a job whose lease this process lost."""


@dataclass(slots=True)
class _Lease:
    job: Job
    """Job with its latest claim token. A thread might still run the job under an earlier token."""
    since: float
    """Monotonic time when the job started or, if the job hasn't started, when the job was claimed."""
    until: float
    """Monotonic time until which no other process can claim the job."""
    lost: bool = False


@dataclass(eq=False)
class HeldLeases:
    """Leases that this process holds. Thread-safe. A background thread extends each lease for up to ``_longest`` seconds."""

    queue: JobQueue
    _lease: float
    _longest: float
    _clock: Clock
    _failed: Callable[[str, BaseException], None]

    def __post_init__(self) -> None:
        self.reset()
        forks.in_child(self.reset)

    def reset(self) -> None:
        self._changed = threading.Condition()
        """Condition that guards the leases. Notified when the first lease is added."""
        self._stopping = threading.Event()
        self._held: dict[str, _Lease] = {}
        self._thread: threading.Thread | None = None

    def claim(self, n: int) -> list[Job]:
        now = self._clock.monotonic()
        jobs = self.queue.claim(n, self._lease)
        self.hold(jobs, now)
        return jobs

    def hold(self, jobs: Sequence[Job], now: float) -> None:
        """Keep extending the leases of ``jobs``. If a running job was claimed again, extend only its new lease."""
        with self._changed:
            if jobs and not self._held:
                self._changed.notify()
            for job in jobs:
                known = self._held.get(job.id)
                self._held[job.id] = _Lease(job, now if known is None else known.since, now + self._lease)

    def begin(self, job: Job) -> None:
        """Record that a job starts. From now on, extend the job's lease for up to ``_longest`` seconds."""
        now = self._clock.monotonic()
        with self._changed:
            held = self._held.get(job.id)
            if held is not None:
                held.since = now
                return
        self.hold([job], now)

    def is_overdue(self, job: Job) -> bool:
        held = self._held.get(job.id)
        return held is not None and self._clock.monotonic() - held.since > self._longest

    def release(self, job: Job) -> Job:
        with self._changed:
            held = self._held.pop(job.id, None)
        return job if held is None else held.job

    def confirm(self, jobs: Sequence[Job]) -> Collection[str]:
        """Extend leases before scores are exported. Return the IDs of jobs whose lease was lost. If the queue is unreachable, also
        return the IDs of jobs whose lease has expired or isn't held by this process.
        """
        held = [lease.job if (lease := self._held.get(job.id)) is not None else job for job in jobs]
        try:
            return set(self._extend(held))
        except Exception as error:
            self._failed("judge_queue", error)
            now = self._clock.monotonic()
            return {job.id for job in jobs if (lease := self._held.get(job.id)) is None or lease.lost or lease.until <= now}

    def beat(self) -> None:
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
                if known is not None and known.job.token == job.token:  # neither acknowledged nor claimed again
                    known.until, known.lost = now + self._lease, job.id in lost
        return list(lost)

    # --- the thread

    def start(self) -> None:
        """Start the thread that extends leases, unless it runs or was stopped. At interpreter shutdown, raise a RuntimeError."""
        if (self._thread is None or not self._thread.is_alive()) and not self._stopping.is_set():
            self._thread = OwnThread(self._run, "otel-agenteval-leases")
            self._thread.start()

    def stop(self) -> None:
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
            except BaseException as error:  # for example, the disk or server fails. The next beat may still be in time
                self._failed("judge_queue", error)
