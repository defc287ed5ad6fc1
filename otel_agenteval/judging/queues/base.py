"""Base class for job queues, and interface for spending records. All implementations must pass the same tests."""

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
"""Maximum total bytes of jobs to hold in memory while the queue's file or server is unavailable."""


@dataclass(frozen=True, slots=True)
class Job:
    id: str
    """Result ID of the score. The queue ignores a new job if a job with the same ID is in the queue or was finished recently."""
    payload: bytes
    priority: int = 0
    """Priority. Higher numbers are claimed first and, if the queue is full, dropped last."""
    attempts: int = 0
    """Number of attempts so far, including the current attempt."""
    token: str = field(default="", compare=False, repr=False)
    """Lease token of a claimed job. See :class:`JobQueue`."""

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

    ``held`` contains new jobs, and ``ended`` contains claims that ended. If the queue fails and another thread holds its lock, new
    jobs are first added to ``incoming``. Jobs that were sent are removed, and jobs that don't fit into the queue move to
    ``left_out``. Only :meth:`set_aside` may be called without the queue's lock.
    """

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes  # of jobs that aren't sent
        self._held_bytes = 0
        self.held: dict[str, Job] = {}  # by ID
        self.incoming: deque[Job] = deque()
        self.left_out: list[Job] = []
        self.ended: dict[str, EndedClaim] = {}  # by job ID

    @property
    def bytes(self) -> int:
        return self._held_bytes + sum(job.size for job in [*self.incoming])

    def set_aside(self, jobs: Sequence[Job]) -> list[Job]:
        total_sizes = list(itertools.accumulate(job.size for job in jobs))
        count = bisect.bisect_right(total_sizes, self._max_bytes - self.bytes)
        self.incoming.extend(jobs[:count])
        return [*jobs[count:]]

    def hold(self, jobs: Sequence[Job] = ()) -> None:
        """Move all jobs from ``incoming`` to ``held``, then add ``jobs``. Ignores jobs that ``held`` already contains."""
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
        """Remove and return the newest held jobs, until the remaining jobs are within the size limit. At least one job remains."""
        dropped = []
        while self._held_bytes > self._max_bytes and len(self.held) > 1:
            _, job = self.held.popitem()
            self._held_bytes -= job.size
            dropped.append(job)
        return dropped


class JobQueue(ABC):
    """Base class for job queues in memory, in a file, or on a server. Thread-safe. All times are Unix times.

    Each claim leases jobs under a token such as ``ab12/7/``. Here, ``ab12`` identifies the queue object, and 7 is the claim's
    number. A job can be finished, extended, or put back only if its latest token starts with the caller's *fence*. For a claimed
    :class:`Job`, the fence is the job's token. For a job ID, the fence is ``ab12/``, which matches all claims of this queue object.

    An expired lease stays valid until the job is claimed again. If the lease was lost, methods change nothing and report the loss.
    If the file or server is unavailable, new jobs (up to ``held_bytes``) and ended claims wait in an :class:`Outbox`.
    """

    is_shared: bool
    """True if other processes can add jobs without notifying this process. Such a queue must be polled."""
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
        """Claim up to ``n`` due jobs, by priority and arrival in each shard. After ``lease`` seconds, the jobs become due again."""

    @abstractmethod
    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        """Extend leases to ``lease`` seconds from now. Return the IDs of jobs whose lease was lost."""

    @abstractmethod
    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        """Return a claimed job to the queue, due at the Unix time ``at``. If the lease was lost, return False. If ``counted`` is
        false, the claim doesn't count as an attempt.
        """

    @abstractmethod
    def dead_letters(self) -> list[tuple[str, str]]:
        """Return an (ID, failure reason) pair for each recently failed job."""

    @abstractmethod
    def close(self) -> list[Job]:
        """Close the queue. Return the jobs that are lost when this process ends. Safe to call twice."""

    @abstractmethod
    def _send(self) -> list[str]:
        """Send the outbox's changes. Return the IDs of jobs whose lease was lost. The caller must hold the lock.

        Sent entries are removed, and jobs that don't fit into the queue move to ``left_out``. If the queue is unavailable, unsent
        entries stay in the outbox and no error is raised.
        """

    @abstractmethod
    def _total(self, name: str) -> int:
        """Return the total of ``name`` (``jobs`` or ``bytes``) in the queue's file or server. For a closed queue, return 0."""

    @property
    def unsent(self) -> int:
        return len(self._outbox.held) + len(self._outbox.incoming)

    @property
    def depth(self) -> int:
        return self._total("jobs") + self.unsent

    @property
    def bytes(self) -> int:
        return self._total("bytes") + self._outbox.bytes

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        """Add jobs. If the queue is full, drop new jobs or waiting jobs of lower priority, and return the dropped jobs."""
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
        """Remove a finished job. If the lease was lost, return False."""
        return not self._end([job], "done")

    def ack_many(self, jobs: Sequence[Job | str]) -> list[str]:
        return self._end(jobs, "done")

    def dead(self, job: Job | str, reason: str) -> bool:
        """Move a failed job to the dead letters. If the lease was lost, return False."""
        return not self._end([job], "failed", reason=reason)

    def flush(self) -> bool:
        with self._lock:
            self._outbox.hold()
            self._send()
            return not self._outbox.held and not self._outbox.ended

    def _end(
        self, jobs: Sequence[Job | str], outcome: Outcome, *, reason: str = "", due: float = 0.0, uncounted: bool = False
    ) -> list[str]:
        """End claims. Return the IDs of jobs whose lease was lost. If the queue is unavailable, return an empty list."""
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
        outbox = self._outbox
        outbox.hold()
        self._send()
        left_out, held = outbox.left_out, [*outbox.held.values()]
        outbox.left_out = []
        outbox.remove_held(held)
        return left_out + held


SLOTS = 60
"""Number of slots in a spending window. A slot's amounts expire when the entire slot is older than the window."""


class Counter(NamedTuple):
    """Identifier of a spending total: account, unit, and sliding-window length."""

    account: str  # a metric's name, or "" for all metrics together
    unit: str  # "usd" or "calls"
    window: float  # the window's length in seconds

    def slot(self, at: float) -> int:
        return int(at // (self.window / SLOTS))

    def expires_at(self, slot: int) -> float:
        """Return the Unix time at which all amounts in a slot are older than the window."""
        return (slot + SLOTS + 1) * (self.window / SLOTS)


class Demand(NamedTuple):
    """Amount (dollars or calls) that a judge call needs, and the limits on the spending total."""

    counter: Counter
    amount: float
    limit: float
    """Maximum total, including this amount. If the total is 0, an amount above the limit is also allowed."""
    below: float
    """Before this amount is added, the total must be below this value."""

    def fits(self, used: float) -> bool:
        return used < self.below and (used <= 0 or used + self.amount <= self.limit)


class SpendBook(Protocol):
    """Interface for a record of judge spending. Safe for concurrent threads and processes. All times are Unix times."""

    def spend(self, demands: Sequence[Demand], at: float) -> float:
        """Reserve all amounts and return 0. If a limit doesn't allow this, reserve nothing and return the seconds to wait."""

    def add(self, amounts: Sequence[tuple[Counter, float]], at: float) -> None:
        """Correct amounts that were reserved at the Unix time ``at``. A negative amount reduces the total."""

    def used(self, counter: Counter, at: float) -> float:
        """Return the counter's total for the window that ends at the Unix time ``at``."""

    def close(self) -> None:
        """Close the record. Safe to call twice."""
