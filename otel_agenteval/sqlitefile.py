"""SQLite files of ours: readable for their owner only, and changed in transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .writable import fault_of_file

_BEGINNING = b"SQLite format 3\0"


def connect(path: str | os.PathLike[str], busy: float = 5.0) -> sqlite3.Connection:
    """A connection without transactions of its own, for any thread; the file is made if need be.

    A change waits for another process's, up to ``busy`` seconds.

    Raises:
        OSError: the file cannot be made or read.
        sqlite3.Error: it cannot be opened.
    """
    os.close(os.open(path, os.O_RDWR | os.O_CREAT, 0o600))
    return sqlite3.connect(path, timeout=busy, isolation_level=None, check_same_thread=False)


def connect_wal(path: str | os.PathLike[str], schema: str) -> sqlite3.Connection:
    """A connection to a file in WAL mode that has the tables of a schema, without a sync per transaction.

    Raises:
        OSError, sqlite3.Error: it cannot be used.
    """
    db = connect(path)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.executescript(f"BEGIN IMMEDIATE; {schema} COMMIT;")
    except BaseException:
        db.close()
        raise
    return db


def fault_of(path: str) -> str | None:
    """Why the file cannot be used, as far as can be seen without making it; None if nothing speaks against it."""
    file = Path(path).absolute()
    fault = fault_of_file(file)
    if fault is not None:
        return fault
    if not os.access(file.parent, os.W_OK | os.X_OK):  # its journal stands beside it
        return f"nothing can be written into {file.parent}"
    if not file.exists():
        return None
    if not os.access(file, os.R_OK | os.W_OK):
        return f"{file} cannot be read and written"
    with file.open("rb") as opened:
        begins = opened.read(len(_BEGINNING))
    return None if begins in (b"", _BEGINNING) else f"{file} is no SQLite file"


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
