"""SQLite files of ours: how they are made, opened, migrated, shared and closed.

``application_id`` says what a file is, and ``user_version`` how many steps of its :class:`Schema` it has taken. Opening a file takes the steps
that it lacks, in one transaction: either all of them or none, whatever happens meanwhile. A file of a later version, or of another
kind, is refused before anything is written to it. To change a schema, append a :class:`Step`; never edit one that stands.
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

from .writable import fault_of_file

_RETRY_EVERY = 0.01
_WAL_BYTES = 64 << 20
"""A write-ahead log that has grown longer is cut to this when it is merged."""


@dataclass(frozen=True, slots=True)
class Step:
    """One change of a schema."""

    change: str = ""
    """SQL statements, each of which ends a line. They run inside a transaction."""
    columns: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    """Columns to add before that: table → column → type. A file that has one already keeps it."""
    reading: str = ""
    """What lets a reader see a file that has not taken the step: SQL that makes temporary views. ``columns`` need none: they read as NULL."""


@dataclass(frozen=True, slots=True)
class Schema:
    """What a kind of file is called, and all the steps that lead to its tables."""

    name: str
    """As in "judge queue"."""
    application_id: int
    steps: tuple[Step, ...]
    unnumbered: frozenset[str] = frozenset()
    """Tables that files from before the steps were numbered may have. The first steps must cope with what is there."""
    shrinks: bool = False
    """Whether pages that become free can be given back to the file system."""

    def version_in(self, db: sqlite3.Connection, path: str | os.PathLike[str]) -> int:
        """How many steps a file has taken.

        Raises:
            sqlite3.DatabaseError: the file is of another kind, or of a later version.
        """
        application_id, version = (int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("application_id", "user_version"))
        if application_id == self.application_id and version <= len(self.steps):
            return version
        if application_id == self.application_id:
            raise sqlite3.DatabaseError(
                f"{path} is a {self.name} of version {version}. This program reads versions up to {len(self.steps)}; a newer one is needed."
            )
        if (application_id, version) == (0, 0) and _tables_of(db) <= self.unnumbered:
            return 0
        raise sqlite3.DatabaseError(f"{path} is not a {self.name}. It is left as it is; name another file.")

    def migrate(self, db: sqlite3.Connection, path: str | os.PathLike[str]) -> None:
        """Take the steps that a file lacks. Another process may have taken them meanwhile."""
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


class SqliteFile:
    """A connection to a file, opened at first use. Thread-safe; one thread has it at a time.

    A forked child opens the file for itself: it must neither use nor close the connection that it inherited.

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
        self._lock = threading.Lock()
        self._db: sqlite3.Connection | None = None
        self._closed = False
        _OPENED.add(self)

    @property
    def closed(self) -> bool:
        """Whether the file was closed for good."""
        return self._closed

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All that is done inside, or nothing if it raises."""
        with self._lock, transaction(self._open()) as db:
            yield db

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """For single statements, each of which is a transaction."""
        with self._lock:
            yield self._open()

    def close(self, *, for_good: bool = False) -> None:
        """Close the file. A later use opens it again, unless it was closed for good."""
        with self._lock:
            self._closed = self._closed or for_good
            db, self._db = self._db, None
        if db is not None:
            db.close()

    def _open(self) -> sqlite3.Connection:
        if self._db is None:
            if self._closed:
                raise sqlite3.ProgrammingError(f"{self.path} is closed")
            self._db = open_file(self.path, self._schema, self._busy)
        return self._db

    def _after_fork_in_child(self) -> None:
        if self._db is not None:
            _LEFT_TO_THE_PARENT.append(self._db)
        self._db = None
        self._lock = threading.Lock()


_OPENED: weakref.WeakSet[SqliteFile] = weakref.WeakSet()
_LEFT_TO_THE_PARENT: list[sqlite3.Connection] = []


def _after_fork_in_child() -> None:
    for file in list(_OPENED):
        file._after_fork_in_child()


os.register_at_fork(after_in_child=_after_fork_in_child)


def open_file(path: str | os.PathLike[str], schema: Schema, busy: float = 5.0, *, exclusive: bool = False) -> sqlite3.Connection:
    """A connection to a file that has all steps of a schema; the file is made if need be, readable for its owner only.

    The connection may be used by any thread and begins no transactions of its own. Write-ahead log, without a sync per transaction: what
    was written is safe when the process dies, and its last moments may be lost when the machine does.

    Args:
        path: of the file; its folder must exist.
        schema: what the file is.
        busy: seconds that this call, and each change later on, waits for another process.
        exclusive: whether nobody else may use the file as long as the connection is open. Then nothing waits.

    Raises:
        OSError: the file cannot be made.
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
            raise sqlite3.DatabaseError(f"{path} is not a {schema.name}: it is empty.")
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


def fault_of(path: str, schema: Schema | None = None) -> str | None:
    """Why a file cannot be used, as far as can be seen without changing it; None if nothing speaks against it."""
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
    try:
        with closing(_connect(file, 0.0, mode="rw")) as db:
            db.execute("PRAGMA schema_version")
            if schema is not None:
                schema.version_in(db, file)
    except sqlite3.OperationalError:  # another process has it at the moment
        return None
    except sqlite3.DatabaseError as error:
        return f"{file} is not an SQLite file" if "not a database" in str(error) else str(error)
    return None


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
            schema.migrate(db, path)  # its transaction takes the lock that is wanted
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
