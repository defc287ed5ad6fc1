"""Job queues without their storage, and the interface of spend books. One test suite runs against all implementations."""

from __future__ import annotations

import bisect
import itertools
import secrets
import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, TypeAlias

from ...core import forks
from ...core.clock import Clock

_OVERHEAD = 256  # bytes of a job's other fields
HELD_BYTES = 16 * 2**20
"""Maximum bytes of jobs that a process holds while a queue's file or server is unavailable."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    """Result id, from turn, metric, parameters, version and revision. A job with a queued or recent id isn't added again."""
    payload: bytes
    priority: int = 0
    """Jobs with higher priority are claimed first, and are dropped last if the queue is full."""
    attempts: int = 0
    """Number of claims that count as attempts, including this one."""
    token: str = field(default="", compare=False, repr=False)
    """The token of a claimed job's lease. See :class:`JobQueue`."""

    @property
    def size(self) -> int:
        return len(self.payload) + _OVERHEAD


Outcome: TypeAlias = Literal["done", "failed", "put back"]


class EndedClaim(NamedTuple):
    fence: str  # see JobQueue
    outcome: Outcome
    reason: str = ""  # of a failed job
    due: float = 0.0  # Unix time at which a job that is put back can be claimed
    uncounted: bool = False  # True if the claim of a job that is put back doesn't count as an attempt


class Outbox:
    """Changes that wait in this process until they are sent to the queue's file or server.

    A new job goes to ``held``. If another thread waits for the server and has the queue's lock, the job goes to ``incoming``, and
    the next call moves it to ``held``. A sent job is removed, or moves to ``left_out`` if the queue is full. The end of a claim
    waits in ``ended``. All methods but :meth:`set_aside` need the lock.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes  # of jobs that aren't sent
        self._held_bytes = 0
        self.held: dict[str, Job] = {}  # by id
        self.incoming: deque[Job] = deque()
        self.left_out: list[Job] = []
        self.ended: dict[str, EndedClaim] = {}  # by job id

    @property
    def bytes(self) -> int:
        """Return the bytes of the jobs that aren't sent."""
        return self._held_bytes + sum(job.size for job in [*self.incoming])

    def set_aside(self, jobs: Sequence[Job]) -> list[Job]:
        """Add jobs to ``incoming`` as far as there is room, and return the others."""
        total_sizes = list(itertools.accumulate(job.size for job in jobs))
        count = bisect.bisect_right(total_sizes, self._max_bytes - self.bytes)
        self.incoming.extend(jobs[:count])
        return [*jobs[count:]]

    def hold(self, jobs: Sequence[Job] = ()) -> None:
        """Move all jobs from ``incoming`` to ``held``, and then add ``jobs``. Known ids are ignored."""
        arrived = []
        while self.incoming:  # other threads add more
            arrived.append(self.incoming.popleft())
        for job in (*arrived, *jobs):
            if job.id not in self.held:
                self.held[job.id] = job
                self._held_bytes += job.size

    def remove_held(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            del self.held[job.id]
            self._held_bytes -= job.size

    def drop_newest(self) -> list[Job]:
        """Remove and return the newest held jobs that exceed the limit. One job is always held."""
        dropped = []
        while self._held_bytes > self._max_bytes and len(self.held) > 1:
            _, job = self.held.popitem()
            self._held_bytes -= job.size
            dropped.append(job)
        return dropped


class JobQueue(ABC):
    """Queue of jobs in a file or on a server, which subclasses access. Thread-safe. All times are Unix times.

    Each claim leases its jobs under a token such as ``ab12/7/``, in which ``ab12`` is the queue object and 7 the number of its
    claim. Only the holder of a job's latest lease can finish, extend or put back the job. So the job's current token must begin
    with the caller's *fence*. For a :class:`Job` from :meth:`claim`, the fence is the job's token. For a job id, the fence is
    ``ab12/``, which matches every lease of this queue object. A lease that has ended stays valid until the job is claimed again.
    If a lease was lost, nothing changes, and the method reports the loss.

    If the file or server is unavailable, up to ``held_bytes`` of new jobs and all ended claims wait in an :class:`Outbox`, and
    later calls try again.
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
        self._owner = secrets.token_hex(8)
        self._numbers = itertools.count(1)
        self._outbox = Outbox(self._held_bytes)

    @abstractmethod
    def claim(self, n: int, lease: float) -> list[Job]:
        """Claim up to ``n`` due jobs by priority and then by arrival. Claimed jobs are due again after ``lease`` seconds."""

    @abstractmethod
    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        """Extend leases to ``lease`` seconds from now. Return ids of jobs with a lost lease."""

    @abstractmethod
    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        """Put a claimed job back, due at a Unix time. Return False if the lease was lost.

        Unless ``counted``, the claim doesn't count as an attempt.
        """

    @abstractmethod
    def dead_letters(self) -> list[tuple[str, str]]:
        """Return the ids and reasons of the last failed jobs."""

    @abstractmethod
    def close(self) -> list[Job]:
        """Close the queue, and return the jobs that are lost. Safe to call twice."""

    @abstractmethod
    def _send(self) -> list[str]:
        """Send the outbox, and return the ids of jobs with a lost lease. Needs the lock.

        Sent entries are removed, and jobs without room move to ``left_out``. If the queue is unavailable, unsent entries stay,
        and nothing is raised.
        """

    @abstractmethod
    def _total(self, name: str) -> int:
        """Return the number of all ``jobs`` in the queue or their ``bytes``, or 0 if it is closed."""

    @property
    def unsent(self) -> int:
        """Return the number of jobs held in this process because the queue is unavailable."""
        return len(self._outbox.held) + len(self._outbox.incoming)

    @property
    def depth(self) -> int:
        """Return the number of waiting and claimed jobs."""
        return self._total("jobs") + self.unsent

    @property
    def bytes(self) -> int:
        """Return the bytes of waiting and claimed jobs."""
        return self._total("bytes") + self._outbox.bytes

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        """Add jobs and return those without room. The result includes waiting jobs of lower priority that made room."""
        outbox = self._outbox
        if not self._lock.acquire(blocking=not self.is_failing):  # another thread waits for the server
            return outbox.set_aside(jobs)
        try:
            outbox.hold(jobs)
            self._send()
            left_out, outbox.left_out = outbox.left_out, []
            return left_out + outbox.drop_newest()
        finally:
            self._lock.release()

    def ack(self, job: Job | str) -> bool:
        """Remove a finished job for good. Return False if the lease was lost."""
        return not self._end([job], "done")

    def ack_many(self, jobs: Sequence[Job | str]) -> list[str]:
        """Remove several finished jobs, and return the ids of those with a lost lease."""
        return self._end(jobs, "done")

    def dead(self, job: Job | str, reason: str) -> bool:
        """Remove a failed job and keep a dead letter. Return False if the lease was lost."""
        return not self._end([job], "failed", reason=reason)

    def flush(self) -> bool:
        """Send held jobs and ended claims. Return True if nothing waits in this process anymore."""
        with self._lock:
            self._outbox.hold()
            self._send()
            return not self._outbox.held and not self._outbox.ended

    def _end(
        self, jobs: Sequence[Job | str], outcome: Outcome, *, reason: str = "", due: float = 0.0, uncounted: bool = False
    ) -> list[str]:
        """End claims, and return the ids of jobs with a lost lease. If the queue is unavailable, lost leases aren't reported."""
        with self._lock:
            fences = dict(map(self._fence, jobs))
            self._outbox.ended.update(
                (job_id, EndedClaim(fence, outcome, reason, due, uncounted)) for job_id, fence in fences.items()
            )
            return [job_id for job_id in self._send() if job_id in fences]  # without those of earlier claims

    def _new_token(self) -> str:
        return f"{self._owner}/{next(self._numbers)}/"

    def _fence(self, job: Job | str) -> tuple[str, str]:
        return (job, f"{self._owner}/") if isinstance(job, str) else (job.id, job.token or f"{self._owner}/")

    def _take_unsent(self) -> list[Job]:
        """Try one last time to send the outbox, and return the jobs that are lost."""
        outbox = self._outbox
        outbox.hold()
        self._send()
        left_out, held = outbox.left_out, [*outbox.held.values()]
        outbox.left_out = []
        outbox.remove_held(held)
        return left_out + held


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
        """Return the Unix time at which the end of a slot is as old as the window."""
        return (slot + SLOTS + 1) * (self.window / SLOTS)


class Demand(NamedTuple):
    """Amount that a judge call needs, with the limits that apply."""

    counter: Counter
    amount: float
    limit: float
    """Maximum sum including the amount. An amount above the limit is admitted if nothing else was spent."""
    below: float
    """Limit that the sum without the amount must be below."""

    def fits(self, used: float) -> bool:
        return used < self.below and (used <= 0 or used + self.amount <= self.limit)


class SpendBook(Protocol):
    """Interface of a record of judge spending. Safe to use from any thread and process. All times are Unix times."""

    def spend(self, demands: Sequence[Demand], at: float) -> float:
        """Add all amounts if each fits, and return 0. Otherwise, return the seconds until they may fit."""

    def add(self, amounts: Sequence[tuple[Counter, float]], at: float) -> None:
        """Correct the amounts that were spent at the time ``at``. A negative amount reduces the sum."""

    def used(self, counter: Counter, at: float) -> float:
        """Return the sum within the window that ends at the time ``at``."""

    def close(self) -> None:
        """Close the record. Safe to call twice."""
