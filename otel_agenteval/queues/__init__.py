"""Where judge jobs wait, and what judges spent is kept."""

from ..clock import Clock
from ..config import JobQueueOptions
from .base import Counter, Demand, Job, JobQueue, SpendBook
from .memory import MemoryQueue, MemorySpendBook
from .sqlite import SqliteQueue, SqliteSpendBook

__all__ = [
    "Counter", "Demand", "Job", "JobQueue", "MemoryQueue", "MemorySpendBook", "SpendBook", "SqliteQueue", "SqliteSpendBook", "queue_from",
    "spend_book_from",
]  # fmt: skip


def queue_from(wanted: JobQueueOptions, clock: Clock) -> JobQueue:
    """The queue that a configuration asks for. Nothing is opened or connected to before its first use.

    Raises:
        ConfigError: its address cannot be one.
    """
    if wanted.url is not None:
        from .redis import RedisQueue  # only who has such a server needs it

        return RedisQueue(wanted.url, wanted.max_bytes, clock, shards=wanted.shards, name=wanted.name)
    if wanted.path is not None:
        return SqliteQueue(wanted.path, wanted.max_bytes, clock)
    return MemoryQueue(wanted.max_bytes, clock)


def spend_book_from(wanted: JobQueueOptions) -> SpendBook:
    """Where what judges spend is kept: beside the queue, if that is a file."""
    return MemorySpendBook() if wanted.path is None else SqliteSpendBook(wanted.path)
