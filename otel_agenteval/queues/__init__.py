"""Where judge jobs wait."""

from ..clock import Clock
from ..config import JobQueueOptions
from .base import Job, JobQueue
from .memory import MemoryQueue
from .sqlite import SqliteQueue

__all__ = ["Job", "JobQueue", "MemoryQueue", "SqliteQueue", "queue_from"]


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
