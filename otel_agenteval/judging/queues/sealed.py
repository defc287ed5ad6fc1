"""Jobs that are encrypted before another queue keeps them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.encryption import Seal
from ...core.errors import SealError
from ...core.semconv import OTHER
from .base import Job, JobQueue


class SealedQueue:
    """A :class:`~otel_agenteval.judging.queues.JobQueue` whose jobs are sealed before another one keeps them.

    Args:
        queue: keeps the jobs.
        seal: encrypts them.
        clock: dates retries, as the other queue's.
        pause: seconds for which a job that cannot be opened is left alone; it is never thrown away.
    """

    def __init__(self, queue: JobQueue, seal: Seal, clock: Clock = SYSTEM_CLOCK, pause: float = 300.0) -> None:
        self._queue = queue
        self._seal = seal
        self._clock = clock
        self._pause = pause
        self.max_bytes = queue.max_bytes
        self.is_shared = queue.is_shared

    @property
    def depth(self) -> int:
        """Jobs that wait or are claimed."""
        return self._queue.depth

    @property
    def bytes(self) -> int:
        """Bytes of them, sealed."""
        return self._queue.bytes

    @property
    def unsent(self) -> int:
        """Jobs that this process holds because the queue's file or server cannot be used."""
        return self._queue.unsent

    def flush(self) -> bool:
        """Whether all jobs are where they outlive this process."""
        return self._queue.flush()

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        """Add jobs; returns those that there is no room for."""
        given = {job.id: job for job in jobs}
        left_out = self._queue.put_many([replace(job, payload=self._seal.encrypt(job.payload)) for job in jobs])
        return [given.get(job.id) or self._made_room(job) for job in left_out]

    def claim(self, n: int, lease: float) -> list[Job]:
        """Up to ``n`` jobs that are due, for ``lease`` seconds.

        Raises:
            SealError: none of those that are due can be opened. They wait for a while and are not counted as tried.
        """
        found: list[Job] = []
        shut: list[Job] = []
        for job in self._queue.claim(n, lease):
            try:
                found.append(self._opened(job))
            except SealError:
                shut.append(job)
        for job in shut:
            self._queue.retry_at(job, self._clock.time_ns() / 1e9 + self._pause, counted=False)
        if shut and not found:
            raise SealError("jobs in the queue wait: judge.encryption_key is not the key that sealed them")
        return found

    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        """Hold claimed jobs for ``lease`` more seconds; returns the ids of those that are not ours any more."""
        return self._queue.extend(jobs, lease)

    def ack(self, job: Job | str) -> bool:
        """It is done; False when it was not ours any more."""
        return self._queue.ack(job)

    def ack_many(self, jobs: Sequence[Job | str]) -> list[str]:
        """They are done; returns the ids of those that were not ours any more."""
        return self._queue.ack_many(jobs)

    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        """Give a claimed job back, due at a time; False when it was not ours any more."""
        return self._queue.retry_at(job, at, counted=counted)

    def dead(self, job: Job | str, reason: str) -> bool:
        """It cannot be done; False when it was not ours any more."""
        return self._queue.dead(job, reason)

    def dead_letters(self) -> list[tuple[str, str]]:
        """(id, reason) of the last jobs that could not be done."""
        return self._queue.dead_letters()

    def close(self) -> list[Job]:
        """Release what the other queue holds; returns the jobs that are lost by that."""
        return [self._made_room(job) for job in self._queue.close()]

    def after_fork_in_child(self) -> None:
        """What the parent holds is the parent's."""
        self._queue.after_fork_in_child()

    def _opened(self, job: Job) -> Job:
        return replace(job, payload=self._seal.decrypt(job.payload))

    def _made_room(self, job: Job) -> Job:
        """A job that left the queue, so that it can be counted; without its turn where that cannot be opened."""
        try:
            return self._opened(job)
        except SealError:
            return replace(job, payload=json.dumps({"metric": OTHER, "agent": "", "turn_id": "", "new": True}).encode() + b"\n")
