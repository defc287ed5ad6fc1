"""What every queue of judge jobs does. One suite of tests runs against all of them."""

from __future__ import annotations

import itertools
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

_OVERHEAD = 256
HELD_BYTES = 16 * 2**20
"""Bound of the jobs that a process holds while a queue's file or server cannot be used."""


@dataclass(frozen=True, slots=True)
class Job:
    """One metric to be judged on one turn."""

    id: str
    """The result's id: turn, metric, parameters, version and revision. A job with an id that the queue has, or had lately, is ignored."""
    payload: bytes
    """What is needed to do it, JSON."""
    priority: int = 0
    """Higher ones are claimed first, and stay when there is no room for all."""
    attempts: int = 0
    """How often it was claimed, with this time; claims that were given back uncounted are not."""
    token: str = field(default="", compare=False, repr=False)
    """Of a claimed job: which lease. Every claim has another one."""

    @property
    def size(self) -> int:
        """Bytes that it takes in a queue's bound."""
        return len(self.payload) + _OVERHEAD


class Leases:
    """Names the leases that one queue object grants.

    A token begins with its owner, so that a bare job id can stand for "the lease that this queue object granted last".
    """

    def __init__(self) -> None:
        self._owner = f"{secrets.token_hex(8)}/"
        self._numbers = itertools.count(1)

    def grant(self) -> str:
        """A token that was never granted before."""
        return f"{self._owner}{next(self._numbers)}/"

    def claimed(self, job: Job | str) -> tuple[str, str]:
        """The id of a claimed job, and what the token of its current lease must begin with."""
        return (job, self._owner) if isinstance(job, str) else (job.id, job.token or self._owner)


class JobQueue(Protocol):
    """Jobs that wait, or that a process has claimed for a time. Safe to use from any thread. Times are seconds since the Unix epoch.

    Each claim grants a lease with a token of its own. Only the holder of a job's last lease can finish, return or extend it, also
    after the lease has ended, as long as no other process claimed the job. For all others these calls change nothing and say so. They
    take the job as :meth:`claim` returned it; an id alone stands for the last lease that this queue object granted.
    """

    max_bytes: int
    """Bound of what waits and what is claimed."""

    is_shared: bool
    """Whether other processes put jobs in unnoticed: then it must be polled."""

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        """Add jobs; returns those that there is no room for: of these, or of lower ones that waited and made room."""

    def claim(self, n: int, lease: float) -> list[Job]:
        """Up to ``n`` jobs that are due, the highest priority first, then in order of arrival. The process that claims them has
        ``lease`` seconds to finish each; after that it is due again.
        """

    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        """Hold claimed jobs for ``lease`` more seconds from now; returns the ids of those that are not ours any more."""

    def ack(self, job: Job | str) -> bool:
        """It is done: it will not be claimed again, nor taken in again. False when it was not ours any more."""

    def ack_many(self, jobs: Sequence[Job | str]) -> list[str]:
        """As :meth:`ack`, for several at once; returns the ids of those that were not ours any more."""

    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        """Give a claimed job back, due at a time; whether the attempt counts. False when it was not ours any more."""

    def dead(self, job: Job | str, reason: str) -> bool:
        """It cannot be done: as :meth:`ack`, and kept as a dead letter, without its payload. False when it was not ours any more."""

    def dead_letters(self) -> list[tuple[str, str]]:
        """(id, reason) of the last jobs that could not be done."""

    @property
    def depth(self) -> int:
        """Jobs that wait or are claimed."""

    @property
    def bytes(self) -> int:
        """Bytes of them."""

    @property
    def unsent(self) -> int:
        """Jobs that this process holds because the queue's file or server cannot be used."""

    def flush(self) -> bool:
        """Whether all jobs are where they outlive this process, if they ever are; what waits to be sent is sent."""

    def close(self) -> list[Job]:
        """Release what it holds; returns the jobs that are lost by that. Safe to call twice."""

    def after_fork_in_child(self) -> None:
        """What the parent holds is the parent's."""


SLOTS = 60
"""Parts of a window in which what was spent is counted; a part is forgotten once all of it is older than the window."""


class Counter(NamedTuple):
    """What is added up within any time of a length."""

    account: str
    """The metric that it is for; empty for all together."""
    unit: str
    """``usd``, ``tokens`` or ``calls``."""
    window: float
    """Seconds."""

    def slot(self, at: float) -> int:
        """The part of the window that a time falls into."""
        return int(at // (self.window / SLOTS))

    def leaves(self, slot: int) -> float:
        """When a part no longer counts."""
        return (slot + SLOTS + 1) * (self.window / SLOTS)


class Demand(NamedTuple):
    """What a question wants to spend, and how much room there must be."""

    counter: Counter
    amount: float
    limit: float
    """With the amount no more may be spent than this; an amount that could never fit is let through once nothing is spent."""
    below: float
    """Less than this must be spent so far."""

    def fits(self, used: float) -> bool:
        """Whether there is room, when so much was spent."""
        return used < self.below and (used <= 0 or used + self.amount <= self.limit)


class SpendBook(Protocol):
    """Keeps what judges spent. Safe to use from any thread, and by all processes that share it. Times are seconds since the Unix epoch."""

    def take(self, demands: Sequence[Demand], at: float) -> float:
        """Add all amounts at once if there is room for each, and 0; else nothing, and the seconds until there may be."""

    def add(self, amounts: Sequence[tuple[Counter, float]], at: float) -> None:
        """Correct what was taken at a time; amounts below 0 give back."""

    def used(self, counter: Counter, at: float) -> float:
        """What was spent within the window that ends at a time."""

    def close(self) -> None:
        """Release what it holds. Safe to call twice."""

    def after_fork_in_child(self) -> None:
        """What the parent spent still counts in the child, which has locks of its own."""
