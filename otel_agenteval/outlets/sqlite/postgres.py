"""A score store in PostgreSQL, for several sidecars: the statements of :mod:`.store` and :mod:`.views`, written for SQLite, and a connection that understands them.

What PostgreSQL lacks of the functions that they use stands in a schema of its own, ``agenteval``, with the tables. The few places where the two differ in the language itself are :data:`_DIFFERENT`.
Extra ``[postgres]``.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import lru_cache
from typing import Any

from ...core.errors import StoreError, Unusable
from ...core.extras import require
from ...core.files import another_version

SCHEMA = "agenteval"
_CONNECT_SECONDS = 5
_APPLICATION = "otel-agenteval"
_MIGRATING = 0x4F414556
"""The advisory lock under which one process makes the tables."""
_WRITING = _MIGRATING + 1
"""The one under which one process writes, for milliseconds."""
_FUNCTIONS = """
CREATE OR REPLACE FUNCTION instr(whole text, piece text) RETURNS integer LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT strpos(whole, piece)';
CREATE OR REPLACE FUNCTION json_extract(document text, path text) RETURNS text LANGUAGE sql IMMUTABLE PARALLEL SAFE AS
  'SELECT replace(document, ''\\u0000'', ''\\ufffd'')::jsonb ->> trim(both ''"'' from substr(path, 3))';
CREATE OR REPLACE FUNCTION add_float(sum double precision, one double precision) RETURNS double precision LANGUAGE sql IMMUTABLE PARALLEL SAFE AS 'SELECT sum + coalesce(one, 0)';
CREATE OR REPLACE AGGREGATE total(double precision) (SFUNC = add_float, STYPE = double precision, INITCOND = 0);
"""
_DIFFERENT = (
    (re.compile(r"\+(?=scores\.|coalesce\()"), ""),  # keeps SQLite from an index
    (re.compile(r"\bLIKE\b"), "ILIKE"),  # SQLite's LIKE takes A for a
    (re.compile(r"CAST\((coalesce\([^()]*\)) / (\d+) AS INTEGER\)"), r"floor(\1 / \2)::bigint"),
    (re.compile(r"CAST\((.+?) AS INTEGER\) AS tokens"), r"(\1)::bigint AS tokens"),
    (re.compile(r"\bREAL\b"), "DOUBLE PRECISION"),
    (re.compile(r"\bINTEGER\b"), "BIGINT"),
    (re.compile(r"\) WITHOUT ROWID"), ")"),
    (re.compile(r"\bscores\.rowid\b"), "scores.scored_at, scores.result_id"),
)
_OF_VALUES = ("22", "23", "54", "42804", "42846")
"""What the codes of faults begin with that lie in a value: it is out of range, breaks a rule, is too large, or of another type."""
_WITHOUT_VALUES = ("25", "28", "3D", "3F", "42", "53", "55", "57", "58")
"""What the codes of faults begin with whose message quotes no value: of transactions, rights, missing databases and tables, and the server's own."""
_PLACE = re.compile(r"'(?:[^']|'')*'|\?|:(?=[a-z_])(?<!::)([a-z_]+)|%")


def is_address(path: str) -> bool:
    """Whether a store is named by an address of PostgreSQL rather than by a file."""
    return path.startswith(("postgresql://", "postgres://"))


def without_password(address: str) -> str:
    """An address as it may be shown."""
    return re.sub(r"(//[^:/@]*):[^@]*@", r"\1:****@", address)


@lru_cache(maxsize=1_024)
def translated(statement: str) -> str:
    """A statement of SQLite's for PostgreSQL and psycopg."""
    for pattern, instead in _DIFFERENT:
        statement = pattern.sub(instead, statement)

    def place(found: re.Match[str]) -> str:
        text = found[0]
        if text == "?":
            return "%s"
        if text.startswith(":"):
            return f"%({found[1]})s"
        return text.replace("%", "%%")

    return _PLACE.sub(place, statement)


class Row(Sequence[Any]):
    """A row, by place and by name."""

    __slots__ = ("_names", "_values")

    def __init__(self, names: Mapping[str, int], values: Sequence[Any]) -> None:
        self._names = names
        self._values = values

    def __getitem__(self, at: Any) -> Any:
        return self._values[self._names[at] if isinstance(at, str) else at]

    def __len__(self) -> int:
        return len(self._values)

    def keys(self) -> list[str]:
        """The names of its columns."""
        return list(self._names)


def _rows(cursor: Any) -> Any:
    names = {column.name: place for place, column in enumerate(cursor.description or ())}
    return lambda values: Row(names, values)


def _given(value: Any) -> Any:
    """A value as the columns take it: yes and no are numbers, and no text has a zero byte, which PostgreSQL cannot keep."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and "\0" in value:
        return value.replace("\0", "\ufffd")
    return value


def _parameters(values: Any) -> Any:
    if isinstance(values, Mapping):
        return {name: _given(value) for name, value in values.items()}
    return [_given(value) for value in values]


def _said_by(error: Any) -> str:
    """What may be shown of a fault. Of one that came before there was a connection, that is all but the address."""
    code = error.sqlstate
    if code is not None:
        primary = error.diag.message_primary if code.startswith(_WITHOUT_VALUES) else None
        return primary or f"{type(error).__name__} ({code})"
    found = re.search(r"\bfailed: (?:FATAL: *)?((?:(?!\bfailed: ).)+)\Z", str(error).split("\n", 1)[0])
    return found[1][:200] if found else type(error).__name__


class NotStorable(ValueError):
    """A value that the database cannot hold. Nothing of the transaction was written, and the same values fail again."""


class Connection:
    """A connection as :mod:`.store` and :mod:`.views` use one of SQLite. Every fault of it is a ``ConnectionError``, which is an ``OSError``;
    but :class:`NotStorable` where a value is at fault that was to be written.

    Args:
        address: of the database, ``postgresql://user:password@host/database``.
        read_only: whether nothing can be written.
    """

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
        except self._psycopg.Error as error:  # its message may quote what was written
            if not self._read_only and self._lies_in_a_value(error):
                raise NotStorable(f"PostgreSQL: {type(error).__name__}") from None
            raise Unusable(f"PostgreSQL: {type(error).__name__}", _said_by(error)) from None

    def _lies_in_a_value(self, error: Any) -> bool:
        if error.sqlstate is None:  # it did not reach the server
            return isinstance(error, (self._psycopg.DataError, self._psycopg.ProgrammingError))
        return bool(error.sqlstate.startswith(_OF_VALUES))

    def execute(self, statement: str, values: Any = ()) -> Any:
        """Run a statement; a cursor, whose rows are :class:`Row`."""
        with self._faults():
            return self._connection.execute(translated(statement), _parameters(values))

    def script(self, statements: str) -> None:
        """Run several statements, which take no values."""
        with self._faults():
            self._connection.execute(translated(statements).replace("%%", "%"))

    def executemany(self, statement: str, rows: Iterable[Any]) -> None:
        """Run a statement for each row."""
        wanted = [_parameters(row) for row in rows]
        if wanted:
            with self._faults(), self._connection.cursor() as cursor:
                cursor.executemany(translated(statement), wanted)

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All that is done inside, or nothing if it raises."""
        with self._faults(), self._connection.transaction():
            yield self

    @property
    def closed(self) -> bool:
        """Whether it can no longer be used."""
        return bool(self._connection.closed)

    def close(self) -> None:
        """End it."""
        self._connection.close()


class PostgresDatabase:
    """The database for writing, opened at first use and again when it was lost. Thread-safe: one thread uses it at a time.

    Args:
        address: of the database.
        steps: the statements that make the tables, a script for each version.
    """

    def __init__(self, address: str, steps: Sequence[str]) -> None:
        self._address = address
        self._steps = steps
        self._lock = threading.Lock()
        self._connection: Connection | None = None
        self._process = os.getpid()
        self._inherited: Connection | None = None

    @contextmanager
    def transaction(self) -> Iterator[Connection]:
        """All that is done inside, or nothing if it raises. Writers take turns, so that none waits for another that waits for it."""
        with self.connection() as db, db.transaction():
            db.execute("SELECT pg_advisory_xact_lock(?)", (_WRITING,))
            yield db

    @contextmanager
    def connection(self) -> Iterator[Connection]:
        """For single statements, each of which is a transaction."""
        if self._process != os.getpid():  # the parent's connection is neither used nor closed here
            self._process, self._lock, self._inherited, self._connection = os.getpid(), threading.Lock(), self._connection, None
        with self._lock:
            if self._connection is None or self._connection.closed:
                opened = Connection(self._address, read_only=False)
                try:
                    migrate(opened, self._steps)
                except BaseException:  # it is not used before its tables are known to be of this version
                    opened.close()
                    raise
                self._connection = opened
            try:
                yield self._connection
            except (
                ConnectionError
            ):  # another one may lead to a server that takes what this one refuses: the primary, after a failover
                lost, self._connection = self._connection, None
                lost.close()
                raise

    def close(self, *, for_good: bool = False) -> None:
        """End the connection. A later use opens another."""
        with self._lock:
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()


def migrate(db: Connection, steps: Sequence[str]) -> None:
    """Make the tables, or bring them up to the last version; one process at a time.

    Raises:
        StoreError: they are of a later version.
    """
    with db.transaction():
        db.execute("SELECT pg_advisory_xact_lock(?)", (_MIGRATING,))
        db.execute(f"CREATE SCHEMA IF NOT EXISTS {SCHEMA}")
        db.execute("CREATE TABLE IF NOT EXISTS version (number INTEGER NOT NULL)")
        version = version_of(db)
        if version > len(steps):
            raise other_version("PostgreSQL", version, len(steps))
        if version == len(steps):
            return
        db.script(_FUNCTIONS)
        for step in steps[version:]:
            db.script(step)
        db.execute("DELETE FROM version")
        db.execute("INSERT INTO version VALUES (?)", (len(steps),))


def other_version(address: str, found: int, known: int) -> StoreError:
    """Return the refusal of a store of another version, with what to do."""
    fault = another_version(found, known, "start the process that writes to it")
    return StoreError(f"{address}: score store {fault}, or choose another database")


def version_of(db: Connection) -> int:
    """How many steps were taken."""
    row = db.execute("SELECT max(number) FROM version").fetchone()
    return int(row[0] or 0) if row is not None else 0
