"""Where judge jobs wait, and what judges spent is kept.

May import what :mod:`~otel_agenteval.judging` may.
Start at :mod:`.base`; :mod:`.memory` is the shortest one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ...config.job_queue import JobQueueOptions
from ...core.clock import Clock
from .base import Counter, Demand, Job, JobQueue, SpendBook
from .memory import MemoryQueue, MemorySpendBook
from .sqlite import SqliteQueue, SqliteSpendBook

if TYPE_CHECKING:
    from .redis_shared import RedisOutages

__all__ = [
    "Counter", "Demand", "Job", "JobQueue", "MemoryQueue", "MemorySpendBook", "SpendBook", "SqliteQueue", "SqliteSpendBook", "outages_from",
    "queue_from",
    "spend_book_from",
]  # fmt: skip


def queue_from(wanted: JobQueueOptions, clock: Clock, failed: Callable[[str, BaseException], None]) -> JobQueue:
    """The queue that a configuration asks for. Nothing is opened or connected to before its first use.

    Args:
        wanted: as configured.
        clock: dates leases and retries.
        failed: called when what is put has to wait in this process.

    Raises:
        ConfigError: its address cannot be one.
    """
    if wanted.url is not None:
        from .redis import RedisQueue  # only needed where there is such a server

        return RedisQueue(wanted.url, wanted.max_bytes, clock, shards=wanted.shards, name=wanted.name)
    if wanted.path is not None:
        return SqliteQueue(wanted.path, wanted.max_bytes, clock, failed=lambda error: failed("judge_queue", error))
    return MemoryQueue(wanted.max_bytes, clock)


def spend_book_from(wanted: JobQueueOptions) -> SpendBook:
    """Where what judges spend is kept: beside the queue, if that is a file or a server, where all that share it count."""
    if wanted.url is not None:
        from .redis_shared import RedisSpendBook

        return RedisSpendBook(wanted.url, wanted.name)
    return MemorySpendBook() if wanted.path is None else SqliteSpendBook(wanted.path)


def outages_from(wanted: JobQueueOptions) -> RedisOutages | None:
    """Where processes tell each other about models that are down: on the queue's server, if there is one."""
    if wanted.url is None:
        return None
    from .redis_shared import RedisOutages

    return RedisOutages(wanted.url, wanted.name)
