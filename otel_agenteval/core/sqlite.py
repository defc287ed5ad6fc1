"""The SQLite files of this package: how they are created, opened, migrated, shared and closed.

``application_id`` says what a file is, and ``user_version`` how many steps of its :class:`Schema` were applied to it. Opening a file applies the
missing steps in one transaction: all of them or, on a full disk for example, none. A file of a later version, or of another
kind, is refused before anything is written to it. To change a schema, append a :class:`Step`; never edit an earlier one.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from .files import another_version
from .writable import fault_of_file

_RETRY_EVERY = 0.01
_FORK_WAITS = 1.0
"""Seconds that a fork waits for a transaction."""
_WAL_BYTES = 64 << 20
"""A write-ahead log that has grown longer is cut to this when it is merged."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a schema."""

    change: str = ""
    """SQL statements, each of which ends a line. They run inside a transaction."""
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Columns to add before that: table → column → type. A column that exists is left as it is."""
    reading: str = ""
    """SQL that makes temporary views, through which a reader sees a file without this step as if it had it. Missing ``columns`` read as NULL
    without a view."""


@dataclass(frozen=True, slots=True)
class Schema:
    """A kind of file: its name, and all the steps that lead to its tables."""

    name: str
    """As in "judge queue"."""
    application_id: int
    steps: tuple[Step, ...]
    unnumbered: frozenset[str] = frozenset()
    """Tables that may exist in files from before the steps were numbered. The first steps must accept any of them."""
    shrinks: bool = False
    """Whether free pages can be given back to the file system."""

    def version_in(self, db: sqlite3.Connection, path: str | os.PathLike[str]) -> int:
        """How many steps were applied to a file.

        Raises:
            sqlite3.DatabaseError: the file is of another kind, or of a later version.
        """
        with _snapshot(db):  # another process may migrate the file at this moment
            numbers = [int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version")]
            tables = _tables_of(db)
        application_id, version = numbers
        if application_id == self.application_id and version <= len(self.steps):
            return version
        if application_id == self.application_id:
            fault = another_version(version, len(self.steps), "start the process that writes to it")
            raise sqlite3.DatabaseError(f"{path}: {self.name} {fault}, or choose another file")
        if (application_id, version) == (0, 0) and tables <= self.unnumbered:
            return 0
        raise sqlite3.DatabaseError(f"{path} is not a {self.name}, and is left as it is")

    def migrate(self, db: sqlite3.Connection, path: str | os.PathLike[str]) -> None:
        """Apply the missing steps. Another process may have applied them meanwhile."""
        with transaction(db):
            version = self.version_in(db, path)
            if version == len(self.steps):
                return
            for step in self.steps[version:]:
                for table, columns in step.columns.items():
                    for name in columns.keys() - columns_of(db, table):
                        db.execute(f"ALTER TABLE {table} ADD COLUMN {name} {columns[name]}")
                for statement in _statements(step.change):
                    db.execute(statement)
            db.execute(f"PRAGMA application_id = {self.application_id}")
            db.execute(f"PRAGMA user_version = {len(self.steps)}")

    def fault_of(self, path: str) -> str | None:
        """Why a file cannot be used, as far as can be seen without changing it; None if it seems that it can."""
        file = Path(path).absolute()
        fault = fault_of_file(file)
        if fault is not None:
            return fault
        if not os.access(file.parent, os.W_OK | os.X_OK):  # its write-ahead log is written beside it
            return f"nothing can be written into {file.parent}"
        if not file.exists():
            return None
        if not os.access(file, os.R_OK | os.W_OK):
            return f"{file} cannot be read and written"
        try:
            with closing(_connect(file, 0.0, mode="rw")) as db:
                self.version_in(db, file)
        except sqlite3.OperationalError:  # another process has it at the moment
            return None
        except sqlite3.DatabaseError as error:
            return f"{file} is not an SQLite file" if "not a database" in str(error) else str(error)
        return None


class SqliteFile:
    """A connection to a file, opened at first use. Thread-safe: one thread uses it at a time.

    The file is closed while the process forks. Then parent and child open it again, each for itself.

    Args:
        path: of the file; its folder must exist.
        schema: what the file is.
        busy: seconds that a call waits for another process.

    Every method raises ``sqlite3.Error`` or ``OSError`` when the file cannot be used. Then nothing of that call was written.
    """

    def __init__(self, path: str | os.PathLike[str], schema: Schema, busy: float = 5.0) -> None:
        self.path = os.fspath(path)
        self._schema = schema
        self._busy = busy
        self._make_locks()
        self._db: sqlite3.Connection | None = None
        self._closed = False
        _FILES.add(self)

    def _make_locks(self) -> None:
        self._lock = threading.Lock()
        self._next = threading.Lock()
        """Held by who waits for the other one: a fork gets its turn though a thread has the file again and again."""

    @property
    def closed(self) -> bool:
        """Whether the file was closed for good."""
        return self._closed

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is done inside, or nothing if it raises."""
        with self.connection() as db, transaction(db):
            yield db

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """For single statements, each of which is a transaction."""
        with self._next:
            self._lock.acquire()
        try:
            yield self._open()
        except sqlite3.OperationalError as error:
            if not is_busy(error):  # a file that was opened while it could not be written stays so until it is opened again
                self._forget()
            raise
        finally:
            self._lock.release()

    def close(self, *, for_good: bool = False) -> None:
        """Close the file. A later use opens it again, unless it was closed for good."""
        with self._lock:
            self._closed = self._closed or for_good
            self._forget()

    def _forget(self) -> None:
        db, self._db = self._db, None
        if db is not None:
            db.close()

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            if self._closed:
                raise sqlite3.ProgrammingError(f"{self.path} is closed")
            self._db = open_file(self.path, self._schema, self._busy)
        return self._db

    def _before_fork(self) -> bool:
        """Close the file, and keep it closed until the fork is done; False if a transaction takes too long."""
        if not self._next.acquire(timeout=_FORK_WAITS):
            return False
        if not self._lock.acquire(timeout=_FORK_WAITS):
            self._next.release()
            return False
        self._forget()
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
"""Inherited connections, which the child must neither use nor close."""
_FORKING = threading.local()


def _before_fork() -> None:
    _FORKING.files = [file for file in list(_FILES) if file._before_fork()]


def _after_fork_in_parent() -> None:
    for file in _FORKING.files:
        file._after_fork_in_parent()


def _after_fork_in_child() -> None:
    for file in list(_FILES):
        file._after_fork_in_child()


# SQLite remembers in the memory of a process which locks it has. A child would believe that it has those of its parent: then the parent,
# when it closes the file, deletes the log that the child writes to.
os.register_at_fork(before=_before_fork, after_in_parent=_after_fork_in_parent, after_in_child=_after_fork_in_child)


def open_file(path: str | os.PathLike[str], schema: Schema, busy: float = 5.0, *, exclusive: bool = False) -> sqlite3.Connection:
    """A connection to a file to which all steps of a schema were applied. A new file is readable for its owner only.

    Any thread may use the connection, which begins no transactions by itself. The file has a write-ahead log that is not synced with every
    transaction: what was written survives the end of the process, and the last moments may be lost when the machine fails.

    Args:
        path: of the file; its folder must exist.
        schema: what the file is.
        busy: seconds that this call, and each change later on, waits for another process.
        exclusive: whether to keep all others from the file as long as the connection is open. Then no call waits.

    Raises:
        OSError: the file cannot be created.
        sqlite3.Error: it cannot be used. A file of another kind or of a later version is not changed.
    """
    with suppress(
        FileExistsError
    ):  # one that exists is not opened here: closing it would end the locks that this process has on it
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    until = time.monotonic() + busy
    while True:
        try:
            return _opened(path, schema, busy, exclusive=exclusive)
        except sqlite3.OperationalError as error:  # SQLite itself does not wait while another process changes the journal mode
            if exclusive or not is_busy(error) or time.monotonic() >= until:
                raise
        time.sleep(_RETRY_EVERY)


def open_to_read(path: str | os.PathLike[str], schema: Schema, busy: float = 5.0) -> sqlite3.Connection:
    """A connection that cannot write, with the tables of the schema's last step whatever the version of the file.

    Raises:
        sqlite3.Error: the file cannot be read, or is of another kind or of a later version.
    """
    db = _connect(path, busy, mode="ro")
    try:
        version = schema.version_in(db, path)
        if not _tables_of(db):
            raise sqlite3.DatabaseError(f"{path} is not a {schema.name}, but an empty file")
        lacking: dict[str, set[str]] = {}
        for step in schema.steps[version:]:
            for table, columns in step.columns.items():
                lacking.setdefault(table, set()).update(columns.keys() - columns_of(db, table))
            for statement in _statements(step.reading):
                db.execute(statement)
        for table, names in lacking.items():
            if names:
                nulls = "".join(f", NULL AS {name}" for name in sorted(names))
                db.execute(f"CREATE TEMP VIEW {table} AS SELECT *{nulls} FROM main.{table}")  # noqa: S608 - names of a schema
    except BaseException:
        db.close()
        raise
    return db


def is_busy(error: sqlite3.Error) -> bool:
    """Whether a call failed because another connection had the file."""
    return isinstance(error, sqlite3.OperationalError) and "locked" in str(error)


@contextmanager
def transaction(db: sqlite3.Connection) -> Iterator[sqlite3.Connection]:
    """All that is done inside, or nothing if it raises. A commit that fails, on a full disk say, is rolled back too."""
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
    """All that is read inside is of one moment."""
    if db.in_transaction:
        yield
        return
    db.execute("BEGIN")
    try:
        yield
    finally:
        if db.in_transaction:
            db.execute("ROLLBACK")


def columns_of(db: sqlite3.Connection, table: str) -> set[str]:
    """Names of a table's columns; none where there is no such table."""
    return {row[1] for row in db.execute(f"PRAGMA table_info({table})")}


def _opened(path: str | os.PathLike[str], schema: Schema, busy: float, *, exclusive: bool) -> sqlite3.Connection:
    db = sqlite3.connect(path, timeout=0.0 if exclusive else busy, isolation_level=None, check_same_thread=False)
    try:
        if exclusive:
            db.execute("PRAGMA locking_mode = EXCLUSIVE")
        version = schema.version_in(db, path)
        if version == 0 and schema.shrinks:
            db.execute("PRAGMA auto_vacuum = INCREMENTAL")  # before the first table, or never
        if db.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
            db.execute("PRAGMA journal_mode = WAL")
        db.execute("PRAGMA synchronous = NORMAL")
        db.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        if exclusive or version < len(schema.steps):
            schema.migrate(db, path)  # even without a step to apply, its transaction takes the exclusive lock
    except BaseException:
        db.close()
        raise
    return db


def _connect(path: str | os.PathLike[str], busy: float, *, mode: str) -> sqlite3.Connection:
    return sqlite3.connect(f"{Path(path).absolute().as_uri()}?mode={mode}", uri=True, timeout=busy, isolation_level=None)


def _tables_of(db: sqlite3.Connection) -> set[str]:
    rows = db.execute("SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite\\_%' ESCAPE '\\'")
    return {row[0] for row in rows}


def _statements(script: str) -> Iterator[str]:
    """The statements of a script one by one: ``executescript`` would end the transaction first."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if statement.strip() and sqlite3.complete_statement(statement):
            yield statement
            statement = ""
