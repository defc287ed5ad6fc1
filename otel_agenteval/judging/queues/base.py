"""Job queues without their storage, and the interface of spend books. One test suite runs against all implementations."""

from __future__ import annotations

import bisect
import itertools
import secrets
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

from ...core import forks
from ...core.clock import Clock

_OVERHEAD = 256  # bytes of a job's other fields
HELD_BYTES = 16 * 2**20
"""Maximum bytes of jobs that a process holds while a queue's file or server is unavailable."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    """The result id, from turn, metric, parameters, version and revision. Jobs with a current or recent id are ignored."""
    payload: bytes
    priority: int = 0
    """Jobs with higher priority are claimed first, and are dropped last if the queue is full."""
    attempts: int = 0
    """Number of claims, including this one but without uncounted ones."""
    token: str = field(default="", compare=False, repr=False)
    """The lease of a claimed job. Every claim has another token."""

    @property
    def size(self) -> int:
        return len(self.payload) + _OVERHEAD


class EndedClaim(NamedTuple):
    """The end of a job's claim: put back if ``due`` is set, or else removed, as failed if ``reason`` is set, or else as done."""

    fence: str  # prefix that the token of the job's last lease must have
    due: float | None = None
    reason: str | None = None
    uncounted: bool = False  # True if the claim of a job that is put back doesn't count as an attempt


class JobQueue(ABC):
    """Queue of jobs in a file or on a server, which subclasses access. Thread-safe. All times are Unix times.

    Each claim grants a lease with its own token. Only the holder of a job's last lease can finish, return or extend it. This
    is possible even after the lease has ended, until another process claims the job. For other callers, these methods change
    nothing and report that. They accept the job from :meth:`claim`, or an id for the last lease of this queue object.

    If the file or server is unavailable, up to ``held_bytes`` of new jobs and all ended claims wait in this process, and later
    calls try again.
    """

    is_shared: bool
    """True if other processes add jobs without notice, so that the queue must be polled."""
    is_failing: bool = False  # True if the queue didn't answer the last call, so that calls take seconds

    def __init__(self, max_bytes: int, clock: Clock, held_bytes: int) -> None:
        self.max_bytes = max_bytes  # of waiting and claimed jobs
        self._clock = clock
        self._held_bytes = held_bytes
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.RLock()
        self._owner = secrets.token_hex(8)  # prefix of the tokens of this queue object's leases
        self._numbers = itertools.count(1)
        self._held: dict[str, Job] = {}  # new jobs that couldn't be sent yet
        self._incoming: deque[Job] = deque()  # new jobs that arrived while another thread waited for the server
        self._unsent_bytes = 0  # of the held jobs
        self._ended: dict[str, EndedClaim] = {}  # ended claims that couldn't be sent yet, by job id
        self._left_out: list[Job] = []  # jobs without room, which the next put_many returns

    @abstractmethod
    def claim(self, n: int, lease: float) -> list[Job]:
        """Claim up to ``n`` due jobs for ``lease`` seconds, by highest priority and then by arrival. Then they are due again."""

    @abstractmethod
    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        """Extend leases to ``lease`` seconds from now. Return ids of jobs with a lost lease."""

    @abstractmethod
    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        """Put a claimed job back, due at a Unix time. Return False if the lease was lost. If ``counted``, the attempt counts."""

    @abstractmethod
    def dead_letters(self) -> list[tuple[str, str]]:
        """Return the ids and reasons of the last failed jobs."""

    @abstractmethod
    def close(self) -> list[Job]:
        """Close the queue, and return the jobs that are lost. Safe to call twice."""

    @abstractmethod
    def _send(self) -> list[str]:
        """Send ``_held`` jobs and ``_ended`` claims, remove what was sent, add jobs without room to ``_left_out``, and return the ids of
        lost leases. If the queue is unavailable, everything stays, and nothing is raised.
        """

    @abstractmethod
    def _total(self, name: str) -> int:
        """Return the number of all ``jobs`` in the queue or their ``bytes``, or 0 if it is closed."""

    @property
    def unsent(self) -> int:
        """Return the number of jobs held in this process because the queue is unavailable."""
        return len(self._held) + len(self._incoming)

    @property
    def depth(self) -> int:
        """Return the number of waiting and claimed jobs."""
        return self._total("jobs") + self.unsent

    @property
    def bytes(self) -> int:
        """Return the bytes of waiting and claimed jobs."""
        return self._total("bytes") + self._unsent_bytes + sum(job.size for job in [*self._incoming])

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        """Add jobs and return those without room. The result includes waiting jobs of lower priority that made room."""
        if not self._lock.acquire(blocking=not self.is_failing):  # another thread waits for the server
            return self._set_aside(jobs)
        try:
            self._hold(jobs)
            self._send()
            left_out, self._left_out = self._left_out, []
            return left_out + self._drop_newest()
        finally:
            self._lock.release()

    def _set_aside(self, jobs: Sequence[Job]) -> list[Job]:
        """Add jobs to ``_incoming`` up to ``held_bytes``, without the lock, and return the others."""
        room = self._held_bytes - self._unsent_bytes - sum(job.size for job in [*self._incoming])
        total_sizes = list(itertools.accumulate(job.size for job in jobs))
        count = bisect.bisect_right(total_sizes, room)
        self._incoming.extend(jobs[:count])
        return [*jobs[count:]]

    def _drop_newest(self) -> list[Job]:
        """Remove and return the newest held jobs above ``held_bytes``. One job is always held."""
        dropped = []
        while self._unsent_bytes > self._held_bytes and len(self._held) > 1:
            _, job = self._held.popitem()
            self._unsent_bytes -= job.size
            dropped.append(job)
        return dropped

    def _hold(self, jobs: Sequence[Job] = ()) -> None:
        """Hold jobs until they are sent, after those that arrived while the queue was in use."""
        arrived = []
        while self._incoming:  # other threads add more
            arrived.append(self._incoming.popleft())
        for job in (*arrived, *jobs):
            if job.id not in self._held:
                self._held[job.id] = job
                self._unsent_bytes += job.size

    def ack(self, job: Job | str) -> bool:
        """Remove a finished job for good. Return False if the lease was lost."""
        return not self._end([job])

    def ack_many(self, jobs: Sequence[Job | str]) -> list[str]:
        """Remove several finished jobs, and return the ids of those with a lost lease."""
        return self._end(jobs)

    def dead(self, job: Job | str, reason: str) -> bool:
        """Remove a failed job and keep a dead letter. Return False if the lease was lost."""
        return not self._end([job], reason=reason)

    def flush(self) -> bool:
        """Send held jobs, and return True if all jobs are in the queue's final storage."""
        with self._lock:
            self._hold()
            self._send()
            return not self._held and not self._ended

    def _end(
        self, jobs: Sequence[Job | str], *, due: float | None = None, reason: str | None = None, uncounted: bool = False
    ) -> list[str]:
        """End claims, and return the ids of lost leases, or none while the queue is unavailable."""
        with self._lock:
            fences = dict(map(self._fence, jobs))
            self._ended.update((job_id, EndedClaim(fence, due, reason, uncounted)) for job_id, fence in fences.items())
            return [job_id for job_id in self._send() if job_id in fences]

    def _new_token(self) -> str:
        return f"{self._owner}/{next(self._numbers)}/"

    def _fence(self, job: Job | str) -> tuple[str, str]:
        """Return a claimed job's id, and the prefix that the token of its current lease must have."""
        return (job, f"{self._owner}/") if isinstance(job, str) else (job.id, job.token or f"{self._owner}/")

    def _take_unsent(self) -> list[Job]:
        """Try to send what waits for the last time, and return the jobs that are lost."""
        self._hold()
        self._send()
        lost = [*self._left_out, *self._held.values()]
        self._held.clear()
        self._left_out, self._unsent_bytes = [], 0
        return lost


SLOTS = 60
"""Number of slots that a spending window is divided into. A slot's sum expires when all of the slot is older than the window."""


class Counter(NamedTuple):
    """Sum of one unit within a sliding window."""

    account: str
    unit: str  # "usd" or "calls"
    window: float  # the window's length in seconds

    def slot(self, at: float) -> int:
        return int(at // (self.window / SLOTS))

    def expires_at(self, slot: int) -> float:
        """Return when the end of a slot is as old as the window."""
        return (slot + SLOTS + 1) * (self.window / SLOTS)


class Demand(NamedTuple):
    """Amount that a judge call needs, with the limits that apply."""

    counter: Counter
    amount: float
    limit: float
    """Maximum sum including the amount. An amount above the limit is admitted if nothing else was spent."""
    below: float
    """Value that the sum without the amount must be below."""

    def fits(self, used: float) -> bool:
        return used < self.below and (used <= 0 or used + self.amount <= self.limit)


class SpendBook(Protocol):
    """Interface of a record of judge spending. Safe to use from any thread and process. All times are Unix times."""

    def spend(self, demands: Sequence[Demand], at: float) -> float:
        """Add all amounts if each fits, and return 0. Otherwise, return the seconds until they may fit."""

    def add(self, amounts: Sequence[tuple[Counter, float]], at: float) -> None:
        """Correct amounts that were taken at a time. Negative amounts are returned."""

    def used(self, counter: Counter, at: float) -> float:
        """Return the sum within the window that ends at a time."""

    def close(self) -> None:
        """Close the record. Safe to call twice."""
