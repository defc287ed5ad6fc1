"""Encryption of jobs for another queue."""

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
    """Encrypted queue on another one. Jobs that can't be decrypted wait for ``pause`` seconds."""

    def __init__(self, queue: JobQueue, seal: Seal, clock: Clock = SYSTEM_CLOCK, pause: float = 300.0) -> None:
        self._queue = queue
        self._seal = seal
        self._clock = clock
        self._pause = pause
        self.max_bytes = queue.max_bytes
        self.is_shared = queue.is_shared
        self.extend, self.ack, self.ack_many, self.retry_at = queue.extend, queue.ack, queue.ack_many, queue.retry_at
        self.dead, self.dead_letters, self.flush = queue.dead, queue.dead_letters, queue.flush

    @property
    def depth(self) -> int:
        return self._queue.depth

    @property
    def bytes(self) -> int:
        return self._queue.bytes

    @property
    def unsent(self) -> int:
        return self._queue.unsent

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        given = {job.id: job for job in jobs}
        left_out = self._queue.put_many([replace(job, payload=self._seal.encrypt(job.payload)) for job in jobs])
        return [given.get(job.id) or self._made_room(job) for job in left_out]

    def claim(self, n: int, lease: float) -> list[Job]:
        """Claim jobs, or raise a :class:`SealError` if none of the due ones can be decrypted."""
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
            raise SealError("judge.encryption_key: must be the key that encrypted the waiting jobs")
        return found

    def close(self) -> list[Job]:
        return [self._made_room(job) for job in self._queue.close()]

    def _opened(self, job: Job) -> Job:
        return replace(job, payload=self._seal.decrypt(job.payload))

    def _made_room(self, job: Job) -> Job:
        """Decrypt a dropped job so that it can be counted, or use a placeholder payload."""
        try:
            return self._opened(job)
        except SealError:
            return replace(job, payload=json.dumps({"metric": OTHER, "agent": "", "turn_id": "", "new": True}).encode() + b"\n")
