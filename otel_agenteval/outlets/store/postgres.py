"""Score store in PostgreSQL, which several sidecars can share.

The tables are in the schema ``agenteval``. Requires the extra ``[postgres]``.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from ...core.errors import StoreError, Unusable
from ...core.extras import require
from ...core.files import another_version
from .statements import VERSION, Syntax, create_tables, migrations

SCHEMA = "agenteval"
_CONNECT_SECONDS = 5
_APPLICATION = "otel-agenteval"
_MIGRATING = 0x4F414556
"""ID of the advisory lock for creating and migrating tables."""
_WRITING = _MIGRATING + 1
"""ID of the advisory lock for writing."""

SYNTAX = Syntax(
    p="%s",
    types={"REAL": "DOUBLE PRECISION", "INTEGER": "BIGINT"},
    by_key_only="",
    like="ILIKE",
    contains="strpos({}, {}) > 0",
    field="(replace({}, '\\u0000', '\\ufffd')::jsonb ->> {}::text)",
    field_name=str,
    number="substring({} from '^-?[0-9]+(?:[.][0-9]+)?(?:[eE][-+]?[0-9]+)?$')::double precision",
    floor="floor({})::bigint",
    integer="({})::bigint",
    total="coalesce(sum(({})::double precision), 0)",
    unindexed="{}",
    score_order="scores.scored_at, scores.result_id",
)
_OF_VALUES = ("22", "23", "54", "42804", "42846")
"""SQLSTATE prefixes for errors that a value causes, such as a value that is out of range or has the wrong type."""
_WITHOUT_VALUES = ("25", "28", "3D", "3F", "42", "53", "55", "57", "58")
"""SQLSTATE prefixes for errors whose messages don't quote values."""


def is_address(path: str) -> bool:
    return path.startswith(("postgresql://", "postgres://"))


def without_password(address: str) -> str:
    address = re.sub(r"(//[^:/@]*):.*@", r"\1:****@", address)
    return re.sub(r"([?&]password=)[^&]*", r"\1****", address)


class PostgresRow(Sequence[Any]):
    __slots__ = ("_names", "_values")

    def __init__(self, names: Mapping[str, int], values: Sequence[Any]) -> None:
        self._names = names
        self._values = values

    def __getitem__(self, at: Any) -> Any:
        return self._values[self._names[at] if isinstance(at, str) else at]

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> list[str]:
        return list(self._names)


def _rows(cursor: Any) -> Any:
    names = {column.name: place for place, column in enumerate(cursor.description or ())}
    return lambda values: PostgresRow(names, values)


def _bound(values: Iterable[Any]) -> list[Any]:
    """Convert values for PostgreSQL. Booleans become numbers, and NUL characters become U+FFFD."""
    plain = (int(value) if isinstance(value, bool) else value for value in values)
    return [value.replace("\0", "\ufffd") if isinstance(value, str) else value for value in plain]


def _loggable(error: Any) -> str:
    """Return the part of an error message that is safe to log, without stored values or addresses."""
    code = error.sqlstate
    if code is not None:
        primary = error.diag.message_primary if code.startswith(_WITHOUT_VALUES) else None
        return primary or f"{type(error).__name__} ({code})"
    found = re.search(r"\bfailed: (?:FATAL: *)?((?:(?!\bfailed: ).)+)\Z", str(error).split("\n", 1)[0])
    return found[1][:200] if found else type(error).__name__


class NotStorable(ValueError):
    """Error for a value that can't be stored. Nothing was written, and retries would also fail."""


class Connection:
    """PostgreSQL connection with the ``sqlite3`` methods that the store uses. Raises ConnectionError or :class:`NotStorable`."""

    def __init__(self, address: str, *, read_only: bool) -> None:
        self._read_only = read_only
        self._psycopg = require("psycopg", feature="a score store in PostgreSQL", extra="postgres")
        options = f"-c search_path={SCHEMA} -c timezone=UTC" + (
            " -c default_transaction_read_only=on -c default_transaction_isolation=repeatable\\ read" if read_only else ""
        )
        with self._faults():
            self._connection = self._psycopg.connect(
                address, autocommit=True, row_factory=_rows, connect_timeout=_CONNECT_SECONDS, options=options, application_name=_APPLICATION, prepare_threshold=None,
            )  # fmt: skip

    @contextmanager
    def _faults(self) -> Iterator[None]:
        try:
            yield
        except self._psycopg.Error as error:  # its message can quote written values
            if error.sqlstate is None:  # raised by the client
                of_value = isinstance(error, (self._psycopg.DataError, self._psycopg.ProgrammingError))
            else:
                of_value = error.sqlstate.startswith(_OF_VALUES)
            if not self._read_only and of_value:
                raise NotStorable(f"PostgreSQL: {type(error).__name__}") from None
            raise Unusable(f"PostgreSQL: {type(error).__name__}", _loggable(error)) from None

    def execute(self, statement: str, values: Iterable[Any] = ()) -> Any:
        with self._faults():
            return self._connection.execute(statement, _bound(values))

    def executemany(self, statement: str, rows: Iterable[Iterable[Any]]) -> None:
        wanted = [_bound(row) for row in rows]
        if wanted:
            with self._faults(), self._connection.cursor() as cursor:
                cursor.executemany(statement, wanted)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        with self._faults(), self._connection.transaction():
            yield self

    @property
    def closed(self) -> bool:
        return bool(self._connection.closed)

    def close(self) -> None:
        self._connection.close()


class PostgresDatabase:
    """PostgreSQL database for writing. Connects on first use, and reconnects after a lost connection. Thread-safe."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._process = os.getpid()
        self._inherited: Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """Commit the block's changes. After an error, roll back all changes. To prevent deadlocks, only one writer runs at once."""
        with self.connection() as db, db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(%s)", (_WRITING,))
            yield db

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """Provide a connection on which each statement runs in its own transaction."""
        self._leave_to_parent()
        with self._lock:
            if self._connection is None or self._connection.closed:
                opened = Connection(self._address, read_only=False)
                try:
                    _migrate(opened)
                except BaseException:  # a connection is only used with tables of this version
                    opened.close()
                    raise
                self._connection = opened
            try:
                yield self._connection
            except ConnectionError:  # after a failover, a new connection may reach the primary
                lost, self._connection = self._connection, None
                lost.close()
                raise

    def _leave_to_parent(self) -> None:
        """In a forked child, discard the parent's connection without closing it."""
        if self._process != os.getpid():
            self._process, self._lock, self._inherited, self._connection = os.getpid(), threading.Lock(), self._connection, None

    def close(self, *, for_good: bool = False) -> None:
        self._leave_to_parent()
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


open_writer = PostgresDatabase


def open_reader(address: str) -> Connection:
    """Open a score store for reading. If it is unreadable or has another version, raise StoreError. Without psycopg: MissingExtra."""
    shown = without_password(address)
    db = None
    try:
        db = Connection(address, read_only=True)
        version = _version_of(db)
    except OSError as error:
        if db is not None:
            db.close()
        raise StoreError(f"{shown}: can't read the score store: {getattr(error, 'reason', error)}") from None
    if version != VERSION:
        db.close()
        raise _other_version(shown, version)
    return db


def _migrate(db: Connection) -> None:
    """Create or migrate the tables, one process at a time. If a later version created the tables, raise StoreError."""
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(%s)", (_MIGRATING,))
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        db.execute("CREATE TABLE IF NOT EXISTS version (number INTEGER NOT NULL)")
        version = _version_of(db)
        if version == VERSION:
            return
        if version > VERSION:
            raise _other_version("PostgreSQL", version)
        for step in migrations(SYNTAX)[version - 1 :] if version else [create_tables(SYNTAX)]:
            for statement in step:
                db.execute(statement)
        db.execute("DELETE FROM version")
        db.execute("INSERT INTO version VALUES (%s)", (VERSION,))


def _other_version(address: str, found: int) -> StoreError:
    fault = another_version(found, VERSION, "start the process that writes to it")
    return StoreError(f"{address}: score store {fault}, or choose another database")


def _version_of(db: Connection) -> int:
    path: str = db.execute("SELECT current_setting('search_path')").fetchone()[0]
    if path.partition(",")[0].strip(' "') != SCHEMA:
        fault = f"the connection pooler ignores the search_path option; set search_path to {SCHEMA} for the database user"
        raise Unusable(f"PostgreSQL: {fault}", fault)
    row = db.execute("SELECT max(number) FROM version").fetchone()
    return int(row[0] or 0) if row is not None else 0
