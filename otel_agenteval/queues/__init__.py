"""Where judge jobs wait."""

from .base import Job, JobQueue
from .memory import MemoryQueue
from .sqlite import SqliteQueue

__all__ = ["Job", "JobQueue", "MemoryQueue", "SqliteQueue"]
