"""SQLite files of ours: readable for their owner only, and changed in transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager


def connect(path: str | os.PathLike[str], busy: float = 5.0) -> sqlite3.Connection:
    """A connection without transactions of its own, for any thread; the file is made if need be.

    A change waits for another process's, up to ``busy`` seconds.

    Raises:
        OSError: the file cannot be made or read.
        sqlite3.Error: it cannot be opened.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    return sqlite3.connect(path, timeout=busy, isolation_level=None, check_same_thread=False)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All that is done inside, or nothing if it raises."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
    except BaseException:
        db.execute("ROLLBACK")
        raise
    db.execute("COMMIT")
