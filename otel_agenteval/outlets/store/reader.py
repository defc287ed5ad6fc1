"""Score store in SQLite: one row per turn and one per result id.

Age and size are limited. Writing is idempotent: the same score again (a receiver's retry, a replayed journal, two processes
with the same turn) changes nothing. A revision doesn't overwrite earlier ones. :data:`CURRENT` selects the latest one,
whatever the order of arrival. All processes of one machine can share the file, and others can read it at the same time.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...core import jsonio
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.errors import ConfigError, StoreError
from ...core.score import FIELDS, Direction, Score
from ...core.sqlite import Schema, SqliteFile, Step, open_to_read
from . import postgres
from .postgres import NotStorable

if TYPE_CHECKING:
    from typing_extensions import Self

    from ...config.root import Config

_BUSY_SECONDS = 2.0
_SLICE = 100
_SLICES = 50
_FREED_PAGES = 4_000

TURN_COLUMNS: Mapping[str, str] = {
    "turn_id": "TEXT PRIMARY KEY", "trace_id": "TEXT", "span_id": "TEXT", "revision": "INTEGER NOT NULL", "supersedes": "TEXT",
    "superseded_by": "TEXT", "conversation_id": "TEXT", "service": "TEXT", "agent": "TEXT", "model": "TEXT", "start": "REAL",
    "duration_s": "REAL", "cost_usd": "REAL", "input_tokens": "INTEGER", "output_tokens": "INTEGER", "close_reason": "TEXT",
    "complete": "INTEGER", "is_conversation": "INTEGER NOT NULL DEFAULT 0", "skipped": "TEXT", "content": "TEXT",
    "instance_id": "TEXT", "stored_at": "REAL NOT NULL", "tenant": "TEXT", "labels": "TEXT", "service_version": "TEXT",
    "attributes": "TEXT", "tools": "TEXT", "error": "TEXT", "case_key": "TEXT",
}  # fmt: skip
"""Columns of a turn's row.

``tenant`` sent the turn, and ``labels`` are the labels configured for it, a JSON object. ``service_version`` belongs to the
root. ``attributes`` are the configured attributes of its spans, a JSON object. ``start`` and ``stored_at`` are seconds since
the Unix epoch. ``skipped`` is a JSON object, metric → reason. ``content`` is the turn in the form ``turn.v1``, if configured.
``tools`` are the names of the called tools, a JSON list. ``error`` is the type of the error that ended the turn. Turns of the
same case share a ``case_key``: the case id or, if content is kept, a hash of the input.
"""

SCORE_COLUMNS: Mapping[str, str] = {
    "result_id": "TEXT PRIMARY KEY", "turn_id": "TEXT NOT NULL", "revision": "INTEGER NOT NULL", "metric": "TEXT NOT NULL",
    "kind": "TEXT NOT NULL", "version": "TEXT", "type": "TEXT", "unit": "TEXT", "direction": "TEXT", "policy": "TEXT",
    "status": "TEXT NOT NULL", "value": "REAL", "passed": "INTEGER", "label": "TEXT", "threshold": "REAL", "error_type": "TEXT",
    "explanation": "TEXT", "detail": "TEXT", "also": "TEXT", "sample_probability": "REAL",
    "sample_upstream_probability": "REAL", "sample_decided_by": "TEXT", "judge_model": "TEXT",
    "judge_cost_usd": "REAL", "scored_at": "REAL NOT NULL",
}  # fmt: skip
"""Columns of a score's row. ``detail`` and ``also`` are JSON."""

CHANGE_COLUMNS: Mapping[str, str] = {
    "at": "REAL NOT NULL", "metric": "TEXT NOT NULL", "agent": "TEXT", "service": "TEXT", "tenant": "TEXT", "verdict": "TEXT NOT NULL",
    "detector": "TEXT NOT NULL", "mean_before": "REAL", "mean_after": "REAL", "ci_low": "REAL", "ci_high": "REAL", "since": "REAL", "n_eff": "REAL",
    "version_before": "TEXT", "version": "TEXT", "turns": "TEXT", "instance_id": "TEXT",
}  # fmt: skip
"""Columns of a change's row.

The interval is that of the difference. ``turns`` is a JSON list of ids.
"""

VACUOUS = "(scores.detail IS NOT NULL AND instr(scores.detail, '\"vacuous\":true') > 0)"
"""SQL condition for a score that means that there was nothing to evaluate."""
CURRENT = "turns.superseded_by IS NULL AND scores.revision = turns.revision"
"""SQL condition for the latest revision in joined rows."""

_FIRST_TABLES = """
CREATE TABLE IF NOT EXISTS turns (
    turn_id TEXT PRIMARY KEY, trace_id TEXT, span_id TEXT, revision INTEGER NOT NULL, supersedes TEXT, superseded_by TEXT,
    conversation_id TEXT, service TEXT, agent TEXT, model TEXT, start REAL, duration_s REAL, cost_usd REAL, input_tokens INTEGER,
    output_tokens INTEGER, close_reason TEXT, complete INTEGER, is_conversation INTEGER NOT NULL DEFAULT 0, skipped TEXT,
    content TEXT, instance_id TEXT, stored_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS turns_by_time ON turns (stored_at);
CREATE INDEX IF NOT EXISTS turns_by_agent ON turns (agent, stored_at);
CREATE INDEX IF NOT EXISTS turns_by_conversation ON turns (conversation_id) WHERE conversation_id IS NOT NULL;
CREATE INDEX IF NOT EXISTS turns_that_supersede ON turns (supersedes) WHERE supersedes IS NOT NULL;
CREATE TABLE IF NOT EXISTS scores (
    result_id TEXT PRIMARY KEY, turn_id TEXT NOT NULL, revision INTEGER NOT NULL, metric TEXT NOT NULL, kind TEXT NOT NULL,
    version TEXT, type TEXT, unit TEXT, direction TEXT, policy TEXT, status TEXT NOT NULL, value REAL, passed INTEGER, label TEXT,
    threshold REAL, error_type TEXT, explanation TEXT, detail TEXT, also TEXT, sample_probability REAL,
    sample_upstream_probability REAL, sample_decided_by TEXT, judge_model TEXT, judge_cost_usd REAL, scored_at REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS scores_by_turn ON scores (turn_id);
CREATE INDEX IF NOT EXISTS scores_by_metric ON scores (metric, scored_at);
CREATE TABLE IF NOT EXISTS fates (
    turn_id TEXT NOT NULL, metric TEXT NOT NULL, fate TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (turn_id, metric)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS fates_by_time ON fates (at);
"""
_OUTCOMES = """
ALTER TABLE fates RENAME TO outcomes;
ALTER TABLE outcomes RENAME COLUMN fate TO outcome;
DROP INDEX fates_by_time;
CREATE INDEX outcomes_by_time ON outcomes (at);
"""
_CHANGES = f"""
CREATE TABLE IF NOT EXISTS changes ({", ".join(f"{name} {kind}" for name, kind in CHANGE_COLUMNS.items())});
CREATE INDEX IF NOT EXISTS changes_by_time ON changes (at);
"""
_NO_CHANGES = f"CREATE TEMP VIEW changes AS SELECT {', '.join(f'NULL AS {name}' for name in CHANGE_COLUMNS)} WHERE 0;"
AT = "coalesce(turns.start, turns.stored_at)"
"""SQL for a turn's start or, if unknown, its time of storage, in Unix seconds."""
HOUR = 3600
"""Seconds in a row of ``hourly``."""
DAY = 24
"""Hours in a row of ``daily``."""
MINUTE = 60
"""Seconds in a row of ``minutely``, and minutes per hour."""
HOURLY_COLUMNS: Mapping[str, str] = {
    "hour": "INTEGER NOT NULL", "agent": "TEXT", "service": "TEXT", "service_version": "TEXT", "model": "TEXT", "tenant": "TEXT", "judge_model": "TEXT", "metric": "TEXT NOT NULL",
    "turns": "INTEGER", "scored": "INTEGER", "passed": "INTEGER", "failed": "INTEGER", "errors": "INTEGER", "cost_usd": "REAL", "tokens": "INTEGER",
    "duration_s": "REAL", "least": "REAL", "most": "REAL", "w": "REAL", "wy": "REAL", "wy2": "REAL", "w2": "REAL", "w2y": "REAL", "w2y2": "REAL",
}  # fmt: skip
"""Columns of sums over an hour's turns that share all filter values.

There is one row per metric, and one with an empty ``metric`` for the turns themselves.
``w`` is the sum of the scores' weights, ``wy`` of weighted values, ``w2y2`` of squared weights times squared values, and so on.
"""
_HOURLY = f"""
CREATE TABLE IF NOT EXISTS hourly ({", ".join(f"{name} {kind}" for name, kind in HOURLY_COLUMNS.items())});
CREATE INDEX IF NOT EXISTS hourly_by_hour ON hourly (hour);
CREATE TABLE IF NOT EXISTS daily ({", ".join(f"{name} {kind}" for name, kind in HOURLY_COLUMNS.items())});
CREATE INDEX IF NOT EXISTS daily_by_hour ON daily (hour);
CREATE TABLE IF NOT EXISTS stale_hours (hour INTEGER PRIMARY KEY, marks INTEGER NOT NULL);
INSERT INTO stale_hours SELECT DISTINCT CAST({AT} / {HOUR} AS INTEGER), 1 FROM turns WHERE 1 = 1 ON CONFLICT (hour) DO NOTHING;
CREATE INDEX IF NOT EXISTS turns_by_start ON turns ({AT.replace("turns.", "")}, turn_id);
CREATE INDEX IF NOT EXISTS turns_by_agent_and_start ON turns (agent, {AT.replace("turns.", "")}, turn_id);
CREATE INDEX IF NOT EXISTS scores_by_verdict ON scores (metric, passed, value);
DROP INDEX IF EXISTS scores_by_metric;
CREATE INDEX IF NOT EXISTS turns_by_case ON turns (case_key) WHERE case_key IS NOT NULL;
"""
_NO_HOURLY = f"""
CREATE TEMP VIEW hourly AS SELECT {", ".join(f"NULL AS {name}" for name in HOURLY_COLUMNS)} WHERE 0;
CREATE TEMP VIEW daily AS SELECT {", ".join(f"NULL AS {name}" for name in HOURLY_COLUMNS)} WHERE 0;
CREATE TEMP VIEW stale_hours AS SELECT DISTINCT CAST(coalesce(start, stored_at) / {HOUR} AS INTEGER) AS hour, 1 AS marks FROM main.turns;
"""
_MINUTELY = f"""
CREATE TABLE IF NOT EXISTS minutely (minute INTEGER NOT NULL, {", ".join(f"{name} {kind}" for name, kind in HOURLY_COLUMNS.items())});
CREATE INDEX IF NOT EXISTS minutely_by_minute ON minutely (minute);
CREATE TABLE IF NOT EXISTS stale_minutes (minute INTEGER PRIMARY KEY, marks INTEGER NOT NULL, summed INTEGER NOT NULL);
INSERT INTO stale_minutes SELECT DISTINCT CAST({AT} / {MINUTE} AS INTEGER), 1, 0 FROM turns WHERE CAST({AT} / {HOUR} AS INTEGER) IN (SELECT hour FROM stale_hours) ON CONFLICT (minute) DO NOTHING;
INSERT INTO stale_minutes SELECT hour * {MINUTE}, 1, 0 FROM stale_hours WHERE 1 = 1 ON CONFLICT (minute) DO NOTHING;
DROP TABLE stale_hours;
"""
_NO_MINUTELY = f"""
CREATE TEMP VIEW minutely AS SELECT NULL AS minute, {", ".join(f"NULL AS {name}" for name in HOURLY_COLUMNS)} WHERE 0;
CREATE TEMP VIEW stale_minutes AS SELECT hour * {MINUTE} AS minute, marks, 0 AS summed FROM stale_hours;
"""
QUESTION_COLUMNS: Mapping[str, str] = {
    "result_id": "TEXT NOT NULL", "place": "INTEGER NOT NULL", "turn_id": "TEXT NOT NULL", "stage": "TEXT", "model": "TEXT", "question": "TEXT", "reply": "TEXT",
}  # fmt: skip
"""Columns of a judge call's row, if content is kept: the prompt, and the model's reply.

Rows of one result are ordered by ``place``.
"""
_QUESTIONS = f"""
CREATE TABLE IF NOT EXISTS questions ({", ".join(f"{name} {kind}" for name, kind in QUESTION_COLUMNS.items())}, PRIMARY KEY (result_id, place));
CREATE INDEX IF NOT EXISTS questions_by_turn ON questions (turn_id);
"""
_NO_QUESTIONS = f"CREATE TEMP VIEW questions AS SELECT {', '.join(f'NULL AS {name}' for name in QUESTION_COLUMNS)} WHERE 0;"
_OUTCOMES_BEFORE = "CREATE TEMP VIEW outcomes AS SELECT turn_id, metric, fate AS outcome, at FROM main.fates;"

SCHEMA = Schema(
    "score store", 0x4F414556, shrinks=True,  # "OAEV"
    steps=(
        Step(_FIRST_TABLES),
        Step(_OUTCOMES, columns={"turns": {"tenant": "TEXT", "labels": "TEXT"}}, reading=_OUTCOMES_BEFORE),
        Step(_CHANGES, columns={"turns": {"service_version": "TEXT", "attributes": "TEXT"}}, reading=_NO_CHANGES),
        Step(_HOURLY, columns={"turns": {"tools": "TEXT", "error": "TEXT", "case_key": "TEXT"}}, reading=_NO_HOURLY),
        Step(_MINUTELY, reading=_NO_MINUTELY),
        Step(_QUESTIONS, reading=_NO_QUESTIONS),
    ),
)  # fmt: skip
"""Migration steps.

To add a column, add a step here, and the column to :data:`TURN_COLUMNS` or :data:`SCORE_COLUMNS`.
"""
_KEPT_ON_UPDATE = frozenset(("turn_id", "supersedes", "superseded_by"))
_PUT_TURN = (
    f"INSERT INTO turns ({', '.join(TURN_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in TURN_COLUMNS)}) "
    "ON CONFLICT (turn_id) DO UPDATE SET "
    + ", ".join(f"{name} = coalesce(excluded.{name}, turns.{name})" for name in TURN_COLUMNS if name not in _KEPT_ON_UPDATE)
    # A turn that was revised under its own id before still supersedes the one whose place it took first.
    + ", supersedes = coalesce(nullif(turns.supersedes, turns.turn_id), excluded.supersedes)"
    + " WHERE excluded.revision >= turns.revision"
)
_PUT_SCORE = (
    f"INSERT INTO scores ({', '.join(SCORE_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in SCORE_COLUMNS)}) "
    "ON CONFLICT (result_id) DO NOTHING"
)


_PUT_OUTCOME = (
    "INSERT INTO outcomes (turn_id, metric, outcome, at) VALUES (?, ?, ?, ?) "
    "ON CONFLICT (turn_id, metric) DO UPDATE SET outcome = excluded.outcome, at = excluded.at"
)
_PUT_QUESTION = (
    f"INSERT INTO questions ({', '.join(QUESTION_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in QUESTION_COLUMNS)}) "
    "ON CONFLICT (result_id, place) DO NOTHING"
)
_PUT_CHANGE = f"INSERT INTO changes ({', '.join(CHANGE_COLUMNS)}) VALUES ({', '.join(f':{name}' for name in CHANGE_COLUMNS)})"


@dataclass(frozen=True, slots=True)
class Retention:
    """Limits of a store."""

    max_age: float
    """Seconds after which a turn is deleted with its scores."""
    max_bytes: int
    """Size of the file above which the oldest turns are deleted."""


def database_at(path: str | os.PathLike[str]) -> Any:
    """Return the SQLite file or PostgreSQL database at a path, for writing.

    Both have ``transaction()``, ``connection()`` and ``close()``.
    """
    if postgres.is_address(os.fspath(path)):
        return postgres.PostgresDatabase(os.fspath(path), [_as_postgres(step) for step in SCHEMA.steps])
    return SqliteFile(path, SCHEMA, _BUSY_SECONDS)


def _as_postgres(step: Step) -> str:
    """Return a migration step as one PostgreSQL script."""
    added = [
        f"ALTER TABLE {table} ADD COLUMN IF NOT EXISTS {name} {kind};"
        for table, columns in step.columns.items()
        for name, kind in columns.items()
    ]
    change = step.change.replace("DROP INDEX fates_by_time", "DROP INDEX IF EXISTS fates_by_time")
    return "\n".join([*added, change])


REQUIRED: frozenset[str] = frozenset(
    name
    for columns in (TURN_COLUMNS, SCORE_COLUMNS, CHANGE_COLUMNS, QUESTION_COLUMNS)
    for name, kind in columns.items()
    if "KEY" in kind or "NOT NULL" in kind
)
"""Columns that a row must have."""


class Rows(NamedTuple):
    """Rows that are written in one transaction."""

    turns: Sequence[Mapping[str, Any]] = ()
    """Turns with the keys of :data:`TURN_COLUMNS`."""
    scores: Sequence[Mapping[str, Any]] = ()
    """Scores with the keys of :data:`SCORE_COLUMNS`. Existing result ids are left unchanged."""
    outcomes: Sequence[tuple[str, str, str]] = ()
    """(turn id, metric, outcome) without a score. Later ones replace earlier ones."""
    absorbed: Sequence[tuple[str, str]] = ()
    """(turn id, id of another turn that turned out to be a part of it)."""
    questions: Sequence[Mapping[str, Any]] = ()
    """Judge calls with the keys of :data:`QUESTION_COLUMNS`. Existing ones are left unchanged."""
    changes: Sequence[Mapping[str, Any]] = ()
    """Changes with the keys of :data:`CHANGE_COLUMNS`."""


class _TakenBack(Exception):
    """Raised to roll back a test transaction."""


class ScoreStore:
    """Store for writing, opened at first use. Thread-safe.

    Args:
        path: path of the file, whose folder must exist, or URL of a PostgreSQL database.
        retention: limits of age and size.
        clock: sets the time of rows.

    Every method raises ``sqlite3.Error``, ``OSError`` or :class:`~otel_agenteval.core.errors.StoreError` if the file can't be
    used, and :class:`.postgres.NotStorable` if it can't store a value. Then nothing of that call is written.
    """

    def __init__(self, path: str | os.PathLike[str], retention: Retention, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = database_at(path)
        self._is_file = isinstance(self._file, SqliteFile)
        self._retention = retention
        self._clock = clock

    def write(
        self,
        turns: Sequence[Mapping[str, Any]],
        scores: Sequence[Mapping[str, Any]],
        outcomes: Sequence[tuple[str, str, str]] = (),
        absorbed: Sequence[tuple[str, str]] = (),
        questions: Sequence[Mapping[str, Any]] = (),
        changes: Sequence[Mapping[str, Any]] = (),
    ) -> None:
        """Write rows in one transaction. The arguments are the fields of :class:`Rows`."""
        with self._file.transaction() as db:
            self._put(db, Rows(turns, scores, outcomes, absorbed, questions, changes))

    def would_take(self, rows: Rows) -> bool:
        """Return True if the rows can be stored, without writing them.

        Raises the same errors as :meth:`write` if the file can't be used.
        """
        try:
            with self._file.transaction() as db:
                self._put(db, rows)
                raise _TakenBack
        except _TakenBack:
            return True
        except NotStorable:
            return False

    def _put(self, db: Any, rows: Rows) -> None:
        now = self._clock.time_ns() / 1e9
        touched = {turn["turn_id"] for turn in rows.turns} | {turn["supersedes"] for turn in rows.turns}
        touched |= {one for _, one in rows.absorbed}
        with _faults_of_values():
            _mark_minutes(db, touched)  # the previous minutes, in case a turn's start changes
            for turn in rows.turns:
                db.execute(_PUT_TURN, turn)
                _supersede(db, turn)
            db.executemany("UPDATE turns SET superseded_by = ? WHERE turn_id = ? AND superseded_by IS NULL", rows.absorbed)
            db.executemany(_PUT_SCORE, rows.scores)
            db.executemany(_PUT_QUESTION, rows.questions)
            db.executemany(_PUT_OUTCOME, [(*outcome, now) for outcome in rows.outcomes])
            db.executemany(_PUT_CHANGE, rows.changes)
            _mark_minutes(db, touched)

    def retain(self) -> bool:
        """Delete rows beyond the limits of age and size.

        Return False if more remain for the next call.
        """
        oldest = self._clock.time_ns() / 1e9 - self._retention.max_age
        for _ in range(_SLICES):
            with self._file.transaction() as db:
                gone = _delete(db, "stored_at < ?", oldest)
                gone += db.execute(
                    "DELETE FROM outcomes WHERE (turn_id, metric) IN (SELECT turn_id, metric FROM outcomes WHERE at < ? LIMIT ?)",
                    (oldest, _SLICE),
                ).rowcount
                gone += db.execute("DELETE FROM changes WHERE at < ?", (oldest,)).rowcount
                if self._is_file and _size(db) > self._retention.max_bytes:
                    gone += _delete(db, "1 = 1", None)
            if not gone:
                break
        with self._file.connection() if self._is_file else nullcontext() as db:  # return free pages to the file system
            if db is not None:
                db.executescript(f"PRAGMA incremental_vacuum({_FREED_PAGES});")  # execute() would free one page
        return not gone

    def close(self) -> None:
        """Close the file. A later call opens it again."""
        self._file.close()


@contextmanager
def _faults_of_values() -> Iterator[None]:
    """Convert errors that a value causes to :class:`NotStorable`."""
    try:
        yield
    except NotStorable:
        raise
    except (
        sqlite3.DataError,
        sqlite3.IntegrityError,
        sqlite3.InterfaceError,
        sqlite3.ProgrammingError,
        ValueError,
        TypeError,
        OverflowError,
    ) as error:
        raise NotStorable(type(error).__name__) from None


_MARK_MINUTE = (
    f"INSERT INTO stale_minutes SELECT CAST({AT} / {MINUTE} AS INTEGER), 1, 0 FROM turns WHERE turn_id = ? "
    "ON CONFLICT (minute) DO UPDATE SET marks = stale_minutes.marks + 1"
)


def _mark_minutes(db: sqlite3.Connection, turn_ids: Iterable[str | None]) -> None:
    """Mark the sums of the turns' hours and minutes as outdated."""
    db.executemany(_MARK_MINUTE, [(turn_id,) for turn_id in turn_ids if turn_id is not None])


def _supersede(db: sqlite3.Connection, turn: Mapping[str, Any]) -> None:
    """Link a revision and the turn that it replaces under another id.

    They can arrive in either order.
    """
    turn_id, supersedes = turn["turn_id"], turn["supersedes"]
    if supersedes is not None and supersedes != turn_id:
        db.execute("UPDATE turns SET superseded_by = ? WHERE turn_id = ?", (turn_id, supersedes))
        # A later revision, which supersedes this one under the same id, may have arrived first.
        db.execute("UPDATE turns SET supersedes = ? WHERE turn_id = ? AND supersedes = turn_id", (supersedes, turn_id))
    db.execute(
        "UPDATE turns SET superseded_by = (SELECT turn_id FROM turns AS later WHERE later.supersedes = :id AND later.turn_id <> :id LIMIT 1) "
        "WHERE turn_id = :id AND superseded_by IS NULL",
        {"id": turn_id},
    )


def _delete(db: sqlite3.Connection, condition: str, value: Any) -> int:
    """Delete a slice of the oldest turns and their rows. Return the number of turns."""
    given = () if value is None else (value,)
    ids = db.execute(f"SELECT turn_id FROM turns WHERE {condition} ORDER BY stored_at LIMIT {_SLICE}", given).fetchall()
    _mark_minutes(db, [turn_id for (turn_id,) in ids])
    for table in ("scores", "outcomes", "questions", "turns"):
        db.executemany(f"DELETE FROM {table} WHERE turn_id = ?", ids)
    return len(ids)


def _size(db: sqlite3.Connection) -> int:
    """Return the bytes in use."""
    pages, free, size = (
        int(db.execute(f"PRAGMA {name}").fetchone()[0]) for name in ("page_count", "freelist_count", "page_size")
    )
    return (pages - free) * size


LEAST_OF_ID = 4
"""Smallest number of characters of a shortened id."""


def only_one(short: str, found: Sequence[str]) -> str | None:
    """Return the only id found for a shortened one, or None.

    Raises:
        StoreError: several ids were found.
    """
    if len(found) > 1:
        more = ", …" if len(found) > 5 else ""
        raise StoreError(f"{short}: several turn ids begin with this, {', '.join(found[:5])}{more}; give more characters")
    return found[0] if found else None


# --- reading -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Wanted:
    """Filter for turns and scores to read. Unset fields match everything."""

    since: float | None = None
    """Earliest time of storage, in seconds since the Unix epoch."""
    until: float | None = None
    """Time before which the turn was stored."""
    agents: Sequence[str] = ()
    services: Sequence[str] = ()
    metrics: Sequence[str] = ()
    conversation_id: str | None = None
    revisions: bool = False
    """True to include superseded revisions."""
    failed: bool = False
    """True for only those turns with a failed score or a metric's error."""


EXPORTED: tuple[str, ...] = (
    "turn_id", "tenant", "trace_id", "span_id", "conversation_id", "service", "service_version", "agent", "model", "start", "duration_s", "close_reason", "complete",
    "supersedes", "revision", "metric", "kind", "version", "type", "unit", "direction", "policy", "status", "value", "passed", "label",
    "threshold", "error_type", "explanation", "detail", "also", "sample_probability", "sample_upstream_probability", "sample_decided_by", "judge_model", "judge_cost_usd", "result_id",
    "scored_at",
)  # fmt: skip
"""Keys of a row of :meth:`StoreReader.rows`, in order."""
_BOOLEANS = ("complete", "passed", "is_conversation")
_JSON = ("detail", "also", "skipped", "content", "labels", "turns", "attributes", "tools")


def _read_postgres(address: str) -> postgres.Connection:
    """Open a PostgreSQL store for reading.

    Raises:
        StoreError: the store doesn't exist or has another version.
    """
    shown = postgres.without_password(address)
    db = None
    try:
        db = postgres.Connection(address, read_only=True)
        version = postgres.version_of(db)
    except OSError as error:
        if db is not None:
            db.close()
        raise StoreError(f"{shown}: can't be read as a score store: {error}") from None
    if version != len(SCHEMA.steps):
        db.close()
        raise postgres.other_version(shown, version, len(SCHEMA.steps))
    return db


class StoreReader:
    """Store for reading, used by the web UI, exports and ``why``. Serves one thread.

    Args:
        path: path of the file, or URL of a PostgreSQL database.

    Raises:
        StoreError: the file doesn't exist, or isn't a store of a readable version.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._db: Any
        if postgres.is_address(self.path):
            self._db = _read_postgres(self.path)
            return
        if not Path(self.path).is_file():
            folder = Path(self.path).absolute().parent
            raise StoreError(f"{self.path}: {'file not found' if folder.is_dir() else f'folder not found: {folder}'}")
        try:
            self._db = open_to_read(self.path, SCHEMA, _BUSY_SECONDS)
        except sqlite3.Error as error:
            said = str(error)  # complete for a file of another version
            said = said if said.startswith(f"{self.path}: ") else f"{self.path}: can't be read as a score store: {said}"
            raise StoreError(said) from None
        self._db.row_factory = sqlite3.Row

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        self._db.close()

    def find(self, short: str) -> str | None:
        """Return the full turn id for an id or its beginning. None if unknown.

        Raises:
            StoreError: several turn ids begin with it. The message lists some.
        """
        known = "SELECT turn_id FROM turns UNION SELECT turn_id FROM outcomes"
        exact = self._db.execute(f"SELECT turn_id FROM ({known}) AS known WHERE turn_id = ?", (short,)).fetchone()
        if exact is not None or len(short) < LEAST_OF_ID:
            return short if exact is not None else None
        rows = self._db.execute(
            f"SELECT turn_id FROM ({known}) AS known WHERE turn_id > ? AND turn_id < ? LIMIT 6", (short, f"{short}\U0010ffff")
        )
        return only_one(short, [row[0] for row in rows])

    def turn(self, turn_id: str) -> dict[str, Any] | None:
        """Return one turn with all stored columns, or None."""
        row = self._db.execute("SELECT * FROM turns WHERE turn_id = ?", (turn_id,)).fetchone()
        return plain(row) if row is not None else None

    def turns(self, wanted: Wanted = Wanted(), limit: int = 100, before: float | None = None) -> list[dict[str, Any]]:
        """Return the latest turns, newest first.

        For the next page, pass ``stored_at`` of the last turn as ``before``.
        """
        where, values = _conditions(wanted, of_scores=False)
        if before is not None:
            where, values = f"{where} AND turns.stored_at < ?", [*values, before]
        rows = self._db.execute(f"SELECT * FROM turns WHERE {where} ORDER BY stored_at DESC LIMIT ?", [*values, limit])
        return [plain(row) for row in rows]

    def scores(self, turn_id: str, *, revisions: bool = False) -> list[dict[str, Any]]:
        """Return a turn's scores by metric, optionally including earlier ``revisions``."""
        current = "" if revisions else f" AND {CURRENT}"
        rows = self._db.execute(
            f"SELECT scores.* FROM scores JOIN turns USING (turn_id) WHERE turn_id = ?{current} ORDER BY metric, scores.revision",
            (turn_id,),
        )
        return [plain(row) for row in rows]

    def questions(self, result_id: str) -> list[dict[str, Any]]:
        """Return the judge calls of a score in order, with stage, model, prompt and reply.

        Empty if content isn't kept.
        """
        rows = self._db.execute(
            "SELECT stage, model, question, reply FROM questions WHERE result_id = ? ORDER BY place", (result_id,)
        )
        return [dict(zip(row.keys(), tuple(row), strict=True)) for row in rows]

    def rows(self, wanted: Wanted = Wanted()) -> Iterator[dict[str, Any]]:
        """Yield one row per score with the facts of its turn (:data:`EXPORTED`), oldest first."""
        where, values = _conditions(wanted, of_scores=True)
        columns = ", ".join(f"scores.{name}" if name in SCORE_COLUMNS else f"turns.{name}" for name in EXPORTED)
        rows = self._db.execute(
            f"SELECT {columns} FROM turns JOIN scores USING (turn_id) WHERE {where} ORDER BY turns.stored_at, scores.rowid",
            values,
        )
        return map(plain, rows)

    def groups(self, by: str, wanted: Wanted = Wanted()) -> dict[str, int]:
        """Return the groups with their number of turns, in order of first appearance.

        Args:
            by: a key of :data:`GROUPED_BY`, or the name of a stored attribute.
            wanted: filter for turns.
        """
        column, given = _grouping(by)
        where, values = _conditions(wanted, of_scores=True)
        rows = self._db.execute(
            f"SELECT {column} AS name, count(DISTINCT turns.turn_id) FROM turns JOIN scores USING (turn_id) WHERE {where} AND {column} IS NOT NULL "
            "GROUP BY name ORDER BY min(turns.stored_at)",
            [*given, *values, *given],
        )
        return {str(name): int(count) for name, count in rows}

    def values(self, by: str, groups: Sequence[str], wanted: Wanted = Wanted()) -> Iterator[Value]:
        """Yield the current values of some groups, oldest first. Vacuous scores are left out."""
        column, given = _grouping(by)
        where, values = _conditions(wanted, of_scores=True)
        rows = self._db.execute(
            f"SELECT {column} AS name, scores.metric, scores.unit, scores.direction, coalesce(turns.trace_id, turns.turn_id), scores.value, "
            f"coalesce(scores.sample_probability, 1.0) FROM turns JOIN scores USING (turn_id) WHERE {where} AND {among(column, groups)} AND status = 'ok' "
            f"AND value IS NOT NULL AND NOT {VACUOUS} ORDER BY turns.stored_at",
            [*given, *values, *given, *groups],
        )
        return (Value(*row) for row in rows if row[6] > 0)

    def has_metric(self, name: str) -> bool:
        """Return True if the store has a score of the metric."""
        return self._db.execute("SELECT 1 FROM scores WHERE metric = ? LIMIT 1", (name,)).fetchone() is not None

    def summary(self, wanted: Wanted = Wanted()) -> list[dict[str, Any]]:
        """Return counts of scores, verdicts and errors, and the mean value, per agent and metric.

        Vacuous scores don't count towards the mean.
        """
        where, values = _conditions(wanted, of_scores=True)
        mean = f"CASE WHEN NOT {VACUOUS} THEN value END"
        rows = self._db.execute(
            f"SELECT agent, metric, kind, count(*) AS scores, count(CASE WHEN passed = 1 THEN 1 END) AS passed, "
            f"count(CASE WHEN passed = 0 THEN 1 END) AS failed, count(CASE WHEN status = 'error' THEN 1 END) AS errors, avg({mean}) AS mean FROM turns JOIN scores USING (turn_id) "
            f"WHERE {where} GROUP BY agent, metric, kind ORDER BY agent, metric",
            values,
        )
        return [dict(row) for row in rows]

    def changes(self, since: float | None = None, limit: int = 100) -> list[dict[str, Any]]:
        """Return the latest changes of scores, newest first.

        ``since`` is a time in seconds since the Unix epoch.
        """
        rows = self._db.execute("SELECT * FROM changes WHERE at >= ? ORDER BY at DESC LIMIT ?", (since or 0.0, limit))
        return [plain(row) for row in rows]

    def agents(self) -> list[str]:
        """Return the names of all agents."""
        return [row[0] for row in self._db.execute("SELECT DISTINCT agent FROM turns WHERE agent IS NOT NULL ORDER BY agent")]

    def why(self, turn_id: str) -> dict[str, str] | None:
        """Return the outcome of each metric on a turn, or None for an unknown turn.

        Examples of outcomes are ``scored``, ``skipped: …`` and ``sampled out …``.
        """
        turn = self.turn(turn_id)
        rows = self._db.execute("SELECT metric, outcome FROM outcomes WHERE turn_id = ?", (turn_id,))
        outcomes = {row["metric"]: row["outcome"] for row in rows}
        if turn is None:
            return outcomes or None
        skipped = {metric: f"skipped: {reason}" for metric, reason in (turn["skipped"] or {}).items()}
        rows = self._db.execute(
            "SELECT metric, status, error_type FROM scores WHERE turn_id = ? AND revision = ?", (turn_id, turn["revision"])
        )
        scored = {row["metric"]: "scored" if row["status"] == "ok" else f"error: {row['error_type']}" for row in rows}
        return {**skipped, **outcomes, **scored}


class Value(NamedTuple):
    """One value for the comparison of groups."""

    group: str
    metric: str
    unit: str
    direction: Direction
    trace: str
    value: float
    probability: float


GROUPED_BY: Mapping[str, str] = {
    "service.version": "turns.service_version", "version": "turns.service_version", "model": "turns.model", "gen_ai.request.model": "turns.model",
    "agent": "turns.agent", "gen_ai.agent.name": "turns.agent", "service": "turns.service", "service.name": "turns.service",
    "judge_model": "scores.judge_model", "tenant": "turns.tenant",
}  # fmt: skip
"""Columns by which turns can be grouped. Any other name refers to a stored attribute."""


def _grouping(by: str) -> tuple[str, list[str]]:
    """Return the SQL expression of a group, and its parameters."""
    column = GROUPED_BY.get(by)
    return (column, []) if column is not None else ("json_extract(turns.attributes, ?)", [f"$.{jsonio.dumps(by)}"])


def score_of_row(row: Mapping[str, Any]) -> Score:
    """Return the score in a row of :meth:`StoreReader.scores`, without its companion scores."""
    return Score.from_dict({key: row[key] for key in FIELDS if key != "also" and row.get(key) is not None})


def among(column: str, values: Sequence[Any]) -> str:
    """Return the SQL condition that a column has one of the values. Works for no values too."""
    return f"{column} IN ({', '.join('?' * len(values))})" if values else "1 = 0"


def _conditions(wanted: Wanted, *, of_scores: bool) -> tuple[str, list[Any]]:
    parts, values = ["1 = 1"], list[Any]()
    if not wanted.revisions:
        parts.append(CURRENT if of_scores else "turns.superseded_by IS NULL")
    for condition, value in (
        ("stored_at >= ?", wanted.since),
        ("stored_at < ?", wanted.until),
        ("conversation_id = ?", wanted.conversation_id),
    ):
        if value is not None:
            parts.append(f"turns.{condition}")
            values.append(value)
    for column, chosen in (("turns.agent", wanted.agents), ("turns.service", wanted.services)):
        if chosen:
            parts.append(among(column, chosen))
            values += chosen
    if wanted.metrics:
        of_metrics = among("scores.metric", wanted.metrics)
        parts.append(
            of_metrics if of_scores else f"EXISTS (SELECT 1 FROM scores WHERE scores.turn_id = turns.turn_id AND {of_metrics})"
        )
        values += wanted.metrics
    if wanted.failed:
        of_metric = f" AND {among('metric', wanted.metrics)}" if wanted.metrics else ""
        wrong = "(passed = 0 AND direction <> 'neutral') OR status = 'error'"
        parts.append(
            f"EXISTS (SELECT 1 FROM scores AS one WHERE one.turn_id = turns.turn_id AND one.revision = turns.revision AND ({wrong}){of_metric})"
        )
        values += wanted.metrics
    return " AND ".join(parts), values


def plain(row: sqlite3.Row) -> dict[str, Any]:
    """Convert a row to plain values: decode JSON and booleans."""
    found = dict(row)
    for name in _BOOLEANS:
        if found.get(name) is not None:
            found[name] = bool(found[name])
    for name in _JSON:
        if found.get(name) is not None:
            found[name] = jsonio.loads(found[name])
    return found


def store_path(given: str | None, config: Config) -> str:
    """Return the path of the store to read: the given one or, if unset, the configured one.

    Raises:
        ConfigError: neither is set.
    """
    if given is not None:
        return given
    if config.outlets.store is None:
        raise ConfigError("--store: no store is configured; name one with --store FILE, or set outlets.store")
    return config.outlets.store.path
