"""SQLite files of ours: readable for their owner only, and changed in transactions."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Sequence
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


def connect_wal(path: str | os.PathLike[str], schema: str, part: str = "", steps: Sequence[str] = ()) -> sqlite3.Connection:
    """A connection to a file in WAL mode that has the tables of a schema, without a sync per transaction.

    Args:
        path: of the file, which several parts of ours may share.
        schema: the first version of the tables; nothing happens where they exist.
        part: what the version in the file is kept for.
        steps: what later versions changed, in this order; each is done once in a file.

    Raises:
        OSError, sqlite3.Error: it cannot be used.
    """
    db = connect(path)
    try:
        db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.executescript(f"BEGIN IMMEDIATE; {schema} COMMIT;")
        if steps:
            _migrate(db, part, steps)
    except BaseException:
        db.close()
        raise
    return db


def _migrate(db: sqlite3.Connection, part: str, steps: Sequence[str]) -> None:
    """Bring the tables of a part to the version that this program knows. A file of a later version stays as it is."""
    with transaction(db):
        db.execute("CREATE TABLE IF NOT EXISTS versions (part TEXT PRIMARY KEY, version INTEGER NOT NULL)")
        found = db.execute("SELECT version FROM versions WHERE part = ?", (part,)).fetchone()
        version = found[0] if found else 0
        for step in steps[version:]:
            for statement in _statements(step):
                db.execute(statement)
        if version < len(steps):
            db.execute("INSERT OR REPLACE INTO versions VALUES (?, ?)", (part, len(steps)))


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: ``executescript`` would end the transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if statement.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""


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
