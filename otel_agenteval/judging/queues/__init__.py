"""Queues of judge jobs, and records of judge spending.

Modules in this folder may import the same packages as :mod:`~otel_agenteval.judging`. Start reading at :mod:`.base`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...config.judge import JobQueueOptions
from ...core.clock import Clock
from .base import Counter, Demand, Job, JobQueue, SpendBook
from .sqlite import MemoryQueue, MemorySpendBook, SqliteQueue, SqliteSpendBook

if TYPE_CHECKING:
    from .redis import RedisOutages

__all__ = [
    "Counter", "Demand", "Job", "JobQueue", "MemoryQueue", "MemorySpendBook", "SpendBook", "SqliteQueue", "SqliteSpendBook", "outages_from",
    "queue_from",
    "spend_book_from",
]  # fmt: skip


def queue_from(wanted: JobQueueOptions, clock: Clock, failed: Callable[[str, BaseException], None]) -> JobQueue:
    """Return the configured queue. If a queue file is unavailable, ``failed`` is called and new jobs wait in memory."""
    if wanted.url is not None:
        from .redis import RedisQueue  # only needed with a server

        return RedisQueue(wanted.url, wanted.max_bytes, clock, shards=wanted.shards, name=wanted.name)
    if wanted.path is not None:
        return SqliteQueue(wanted.path, wanted.max_bytes, clock, failed=lambda error: failed("judge_queue", error))
    return MemoryQueue(wanted.max_bytes, clock)


def spend_book_from(wanted: JobQueueOptions) -> SpendBook:
    if wanted.url is not None:
        from .redis import RedisSpendBook

        return RedisSpendBook(wanted.url, wanted.name)
    return MemorySpendBook() if wanted.path is None else SqliteSpendBook(wanted.path)


def outages_from(wanted: JobQueueOptions) -> RedisOutages | None:
    if wanted.url is None:
        return None
    from .redis import RedisOutages

    return RedisOutages(wanted.url, wanted.name)
