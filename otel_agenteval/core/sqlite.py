"""Creation, migration, and shared use of the package's SQLite files.

A file's ``application_id`` identifies its kind, and its ``user_version`` is the version of its :class:`Schema`. Opening an older
version to write migrates the file in one transaction. A file of a newer version or of another kind is rejected and stays unchanged.
"""

from __future__ import annotations

import logging
import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from .files import another_version, fault_of_file, fixed, is_at
from .forks import Step, at_fork

_log = logging.getLogger("otel_agenteval")

MEMORY = ":memory:"
"""Path of an in-memory database, which is deleted when it is closed."""
_RETRY_EVERY = 0.01
_FORK_WAITS = 1.0
"""Maximum seconds that a fork waits for a transaction to end."""
_WAL_BYTES = 8 << 20
"""Size in bytes to which SQLite truncates a larger write-ahead log after merging the log into the database."""


@dataclass(frozen=True, slots=True)
class Schema:
    """Kind of SQLite file: its name, its tables, and the migrations from older versions."""

    name: str
    application_id: int
    tables: str
    """SQL statements that create the tables. Each statement ends at the end of a line."""
    migrations: tuple[str, ...] = ()
    """SQL scripts. The first script migrates the tables from version 1 to version 2, and so on."""
    shrinks: bool = False

    @property
    def version(self) -> int:
        return 1 + len(self.migrations)

    def version_in(self, db: sqlite3.Connection, path: str | os.PathLike[str]) -> int:
        """Return a file's schema version, or 0 for an empty file. For other files or newer versions, raise a DatabaseError."""
        with _snapshot(db):  # another process may migrate the file at this moment
            application_id, version = (
                int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")
            )
            has_tables = db.execute("SELECT 1 FROM sqlite_master").fetchone() is not None
        if application_id == self.application_id and version > self.version:
            raise self.other_version(version, path)
        if application_id == self.application_id or ((application_id, version) == (0, 0) and not has_tables):
            return version
        raise sqlite3.DatabaseError(f"{path}: must be a {self.name}, got another kind of file. Choose another path")

    def other_version(self, version: int, path: str | os.PathLike[str]) -> sqlite3.DatabaseError:
        fault = another_version(version, self.version, "start the process that writes to it")
        return sqlite3.DatabaseError(f"{path}: {self.name} {fault}, or choose another file")

    def migrate(self, db: sqlite3.Connection, path: str | os.PathLike[str]) -> None:
        """Create or migrate the tables, unless another process has already done so."""
        with transaction(db):
            version = self.version_in(db, path)
            if version == self.version:
                return
            for script in self.migrations[version - 1 :] if version else (self.tables,):
                for statement in _statements(script):
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {self.application_id}")
            db.execute(f"PRAGMA user_version = {self.version}")

    def fault_of(self, path: str) -> str | None:
        """Return the reason why a file can't be used, or None. The check changes nothing, so it can't find every reason."""
        file = fixed(path)
        fault = fault_of_file(file)
        if fault is not None:
            return fault
        if not os.access(file.parent, os.W_OK | os.X_OK):  # the write-ahead log is in the same folder
            return f"folder {file.parent} isn't writable"
        if not file.exists():
            return None
        if not os.access(file, os.R_OK | os.W_OK):
            return f"{file} isn't readable and writable"
        try:
            with closing(_connect(file, 0.0, mode="rw")) as db:
                self.version_in(db, file)
        except sqlite3.OperationalError:  # another process is using it
            return None
        except sqlite3.DatabaseError as error:
            return f"{file} isn't an SQLite file" if "not a database" in str(error) else str(error)
        return None


class SqliteFile:
    """SQLite file with one connection, which opens on first use. Thread-safe, because one thread at a time uses it.

    After a fork, parent and child use separate connections. With :data:`MEMORY`, a child's database is empty. If the file can't be
    used, methods raise ``sqlite3.Error`` or ``OSError`` and write nothing. The folder of ``path`` must exist. ``busy`` is the
    maximum number of seconds to wait for other processes.
    """

    def __init__(self, path: str | os.PathLike[str], schema: Schema, busy: float = 5.0) -> None:
        self.path = path if path == MEMORY else str(fixed(path))
        self._schema = schema
        self._busy = busy
        self._make_locks()
        self._db: sqlite3.Connection | None = None
        self._found: os.stat_result | None = None
        self.closed = False
        _FILES.add(self)

    def _make_locks(self) -> None:
        self._lock = threading.Lock()
        self._next = threading.Lock()
        """Lock that is held while waiting for ``_lock``, so that a thread that uses the file continuously can't block a fork."""

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        with self.connection() as db, transaction(db):
            yield db

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Provide the connection in autocommit mode, so that each statement is a transaction."""
        with self._next:
            self._lock.acquire()
        try:
            yield self._open()
        except sqlite3.OperationalError as error:
            if not is_busy(error):  # a connection opened while the file was read-only stays read-only: reopen it
                self._close_file()
            raise
        finally:
            self._lock.release()

    def close(self, *, for_good: bool = False) -> None:
        with self._lock:
            self.closed = self.closed or for_good
            self._forget()

    def _close_file(self) -> None:
        """Close the file until its next use. An in-memory database stays open, because closing would delete it."""
        if self.path != MEMORY:
            self._forget()

    def _forget(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _open(self) -> sqlite3.Connection:
        if self._db is not None and self._found is not None and not is_at(self.path, self._found):
            _log.warning("%s was moved, removed, or replaced, so it is opened or created again", self.path)
            self._forget()
        if self._db is None:
            if self.closed:
                raise sqlite3.ProgrammingError(f"{self.path} is closed")
            self._db = open_file(self.path, self._schema, self._busy)
            self._found = None if self.path == MEMORY else Path(self.path).stat()
        return self._db

    def _before_fork(self) -> bool:
        if not self._next.acquire(timeout=_FORK_WAITS):
            return False
        if not self._lock.acquire(timeout=_FORK_WAITS):
            self._next.release()
            return False
        self._close_file()
        return True

    def _after_fork_in_parent(self) -> None:
        self._lock.release()
        self._next.release()

    def _after_fork_in_child(self) -> None:
        if self._db is not None:
            _LEFT_TO_THE_PARENT.append(self._db)
        self._db = None
        self._make_locks()


_FILES: weakref.WeakSet[SqliteFile] = weakref.WeakSet()
_LEFT_TO_THE_PARENT: list[sqlite3.Connection] = []
"""Connections that a forked child inherited. The child must neither use nor close these connections."""
_FORKING = threading.local()


def _before_fork() -> None:
    _FORKING.files = [file for file in list(_FILES) if file._before_fork()]


def _after_fork_in_parent() -> None:
    for file in _FORKING.files:
        file._after_fork_in_parent()


def _after_fork_in_child() -> None:
    for file in list(_FILES):
        file._after_fork_in_child()


# SQLite tracks its locks in process memory, so a forked child would assume that it holds its parent's locks. The parent could then
# close the file and delete the log that the child is writing to.
at_fork(Step.FILES, before=_before_fork, in_parent=_after_fork_in_parent, in_child=_after_fork_in_child)


def open_file(path: str | os.PathLike[str], schema: Schema, busy: float = 5.0, *, exclusive: bool = False) -> sqlite3.Connection:
    """Open, create, or migrate a file in an existing folder, and return a connection for any thread.

    Callers must begin transactions themselves. Commits aren't synced to disk. Commits survive the end of the process, but if the
    machine fails, the latest commits can be lost. Only the owner can read a new file. This call and each later write wait up to
    ``busy`` seconds for other processes. ``exclusive`` locks out other connections, so that calls never wait. If the file can't be
    used, raise an OSError or ``sqlite3.Error``. A file of another kind or a newer version stays unchanged.
    """
    if path != MEMORY:
        with suppress(FileExistsError):  # don't open an existing file here: closing it would release this process's locks on it
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    until = time.monotonic() + busy
    while True:
        try:
            return _opened(path, schema, busy, exclusive=exclusive)
        except sqlite3.OperationalError as error:  # SQLite doesn't wait while another process changes the journal mode
            if exclusive or not is_busy(error) or time.monotonic() >= until:
                raise
        time.sleep(_RETRY_EVERY)


def open_to_read(path: str | os.PathLike[str], schema: Schema, busy: float = 5.0, mode: str = "ro") -> sqlite3.Connection:
    """Return a read-only connection. If the file is unreadable, or of another kind or version, raise a ``sqlite3.Error``."""
    db = _connect(path, busy, mode=mode)
    try:
        version = schema.version_in(db, path)
        if version == 0:
            raise sqlite3.DatabaseError(f"{path}: must be a {schema.name}, got an empty file")
        if version != schema.version:
            raise schema.other_version(version, path)
    except BaseException as error:
        db.close()
        may_be_folder = mode == "ro" and isinstance(error, sqlite3.OperationalError) and not is_busy(error)
        if may_be_folder and not Path(f"{path}-wal").exists():  # SQLite can't create the journal's index in a read-only folder
            return open_to_read(path, schema, busy, "ro&immutable=1")
        raise
    return db


def is_busy(error: sqlite3.Error) -> bool:
    """Return True if a call failed because another connection was using the file."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """Run the ``with`` block in a transaction. If the block or the commit fails, for example on a full disk, roll back."""
    db.execute("BEGIN IMMEDIATE")
    try:
        yield db
        db.execute("COMMIT")
    except BaseException:
        if db.in_transaction:  # SQLite rolls back itself after some errors
            db.execute("ROLLBACK")
        raise


@contextmanager
def _snapshot(db: sqlite3.Connection) -> Iterator[None]:
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def _opened(path: str | os.PathLike[str], schema: Schema, busy: float, *, exclusive: bool) -> sqlite3.Connection:
    name = path if path == MEMORY else Path(path).absolute()  # relative, `file:x` would be a URI in some builds of SQLite
    db = sqlite3.connect(name, timeout=0.0 if exclusive else busy, isolation_level=None, check_same_thread=False)
    try:
        if exclusive:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        version = schema.version_in(db, path)
        if version == 0 and schema.shrinks:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # has an effect only before the first table exists
        if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        if exclusive or version < schema.version:
            schema.migrate(db, path)  # its transaction acquires the exclusive lock even if nothing is missing
    except BaseException:
        db.close()
        raise
    return db


def _connect(path: str | os.PathLike[str], busy: float, *, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode={mode}", uri=True, timeout=busy, isolation_level=None)


def _statements(script: str) -> Iterator[str]:
    """Yield a script's statements one by one, because ``executescript`` would commit the current transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if statement.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
