"""Write access to the score store, which has one row per turn and one row per result ID.

Rows that exceed the limits for age and size are deleted. Writing a score again, for example by a retry or a replayed journal,
doesn't change the stored score. Only user feedback can change, because later feedback replaces earlier feedback. A revision's
scores don't overwrite scores of earlier revisions. :data:`.statements.CURRENT` selects the latest revision, even if revisions
arrive out of order.
"""

from __future__ import annotations

import logging
import os
import sqlite3
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from ...core import jsonio
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.feedback import METRIC as FEEDBACK
from ...core.feedback import warn_unmatched
from . import sqlite
from .postgres import NotStorable
from .reader import StoredTopic, backend_of
from .statements import (
    AT,
    CHANGE_COLUMNS,
    MINUTE,
    OUTCOME_COLUMNS,
    QUESTION_COLUMNS,
    SCORE_COLUMNS,
    TURN_COLUMNS,
    VACUOUS,
    VERDICT_COLUMNS,
    Syntax,
    Where,
    level_of,
)

_log = logging.getLogger("otel_agenteval")

_MOST_TOPICS = 50
"""Maximum number of topics per failure mode. Above this number, the least recently seen topics are deleted."""
_SLICE = 100
_SLICES = 50
_FREED_PAGES = 4_000
_JUMP, _HELD = 86_400.0, 3_600.0
"""Maximum plausible clock jump, and the time for which turns don't expire after a larger jump, both in seconds."""
_UPDATED_APART = frozenset(("turn_id", "supersedes", "superseded_by", "fault", "mode", "failed"))
_REVISED = "excluded.revision > turns.revision"


@dataclass(frozen=True, slots=True)
class Retention:
    max_age: float
    """Maximum age in seconds. Older turns and their scores are deleted."""
    max_bytes: int
    """Maximum bytes of the SQLite file. Above this size, the oldest turns are deleted. Ignored for PostgreSQL."""


class Rows(NamedTuple):
    """Rows to write in one transaction."""

    turns: Sequence[Mapping[str, Any]] = ()
    scores: Sequence[Mapping[str, Any]] = ()
    """Scores with the keys of :data:`SCORE_COLUMNS`. Stored rows with the same result ID change only for user feedback."""
    outcomes: Sequence[tuple[str, str, str]] = ()
    """Outcomes of metrics without a score, as tuples (turn ID, metric, outcome). Later outcomes replace earlier outcomes."""
    absorbed: Sequence[tuple[str, str]] = ()
    """Pairs of turn IDs. In each pair, the second turn has become part of the first turn."""
    questions: Sequence[Mapping[str, Any]] = ()
    """Judge calls with the keys of :data:`QUESTION_COLUMNS`. Stored calls aren't changed."""
    changes: Sequence[Mapping[str, Any]] = ()
    unmatched: Collection[str] = ()
    """IDs of turns whose rows contain only user feedback, because this process doesn't know the turn."""


_FAULTS_OF_VALUES = (
    sqlite3.DataError, sqlite3.IntegrityError, sqlite3.InterfaceError, sqlite3.ProgrammingError, ValueError, TypeError, OverflowError,
)  # fmt: skip


class _RolledBack(Exception):
    """Error that rolls back a test transaction."""


class ScoreStore:
    """Write access to a score store, which opens on first use. Thread-safe.

    If the store can't be used, methods raise ``sqlite3.Error``, ``OSError``, or :class:`~otel_agenteval.core.errors.StoreError`.
    For a value that the store can't hold, :meth:`write` raises :class:`.postgres.NotStorable` and writes nothing.
    """

    def __init__(self, path: str | os.PathLike[str], retention: Retention, clock: Clock = SYSTEM_CLOCK) -> None:
        backend = backend_of(path)
        self._file = backend.open_writer(os.fspath(path))
        self._sql = _Statements(backend.SYNTAX)
        self._is_file = backend is sqlite
        self._retention = retention
        self._clock = clock
        self._seen: tuple[float, float] | None = None
        """Unix time and monotonic time of the last write."""
        self._expires_after = 0.0

    def write(self, rows: Rows) -> None:
        with self._file.transaction() as db:
            self._put(db, rows)

    def can_write(self, rows: Rows) -> bool:
        try:
            with self._file.transaction() as db:
                self._put(db, rows)
                raise _RolledBack
        except _RolledBack:
            return True
        except NotStorable:
            return False

    def _put(self, db: Any, rows: Rows) -> None:
        now = self._watched_time(db)
        rows = self._joined(db, rows) if rows.unmatched else rows
        touched = {turn["turn_id"] for turn in rows.turns} | {turn["supersedes"] for turn in rows.turns}
        touched |= {one for _, one in rows.absorbed}
        try:
            self._mark_minutes(db, touched)  # the previous minutes, in case a turn's start changes
            for turn in rows.turns:
                db.execute(self._sql.put_turn, [turn[name] for name in TURN_COLUMNS])
                self._supersede(db, turn["turn_id"], turn["supersedes"])
            db.executemany(self._sql.absorb, rows.absorbed)
            starts = {turn["turn_id"]: turn["start"] for turn in rows.turns}
            levels = {turn_id: level_of(turn_id) for turn_id in {row["turn_id"] for row in rows.scores}}
            db.executemany(
                self._sql.put_score,
                [
                    [
                        *(row[name] for name in SCORE_COLUMNS),
                        verdict_of(row),
                        levels[row["turn_id"]],
                        starts.get(row["turn_id"]) or row["scored_at"],
                    ]
                    for row in rows.scores
                ],
            )
            db.executemany(self._sql.put_question, [[row[name] for name in QUESTION_COLUMNS] for row in rows.questions])
            db.executemany(self._sql.put_outcome, [(*outcome, now) for outcome in rows.outcomes])
            db.executemany(self._sql.put_change, [[row[name] for name in CHANGE_COLUMNS] for row in rows.changes])
            self._mark_minutes(db, touched)
        except NotStorable:
            raise
        except _FAULTS_OF_VALUES as error:
            raise NotStorable(type(error).__name__) from None

    def _joined(self, db: Any, rows: Rows) -> Rows:
        """Move unmatched user feedback to the stored turn with the same ID or, without such a turn, to the trace's only turn."""
        moved: dict[str, tuple[str, int]] = {}
        for turn_id in rows.unmatched:
            trace = turn_id[:-16]
            found = db.execute(self._sql.turns_of_trace, (f"{trace}{'0' * 16}", f"{trace}{'f' * 16}")).fetchall()
            home = next((one for one in found if one[0] == turn_id), found[0] if len(found) == 1 else None)
            if home is None:
                warn_unmatched()
            else:
                moved[turn_id] = home[0], home[1]

        def fixed(row: Mapping[str, Any], **more: Any) -> Mapping[str, Any]:
            home = moved.get(row["turn_id"])
            return row if home is None else {**row, "turn_id": home[0], "revision": home[1], **more}

        turns = [fixed(row, span_id=None, complete=None, instance_id=None) for row in rows.turns]
        return rows._replace(turns=turns, scores=[fixed(row) for row in rows.scores])

    def _mark_minutes(self, db: Any, turn_ids: Iterable[str | None]) -> None:
        db.executemany(self._sql.mark_minute, [(turn_id,) for turn_id in turn_ids if turn_id is not None])

    def _supersede(self, db: Any, turn_id: str, supersedes: str | None) -> None:
        """Link a revision to the turn that it replaces. The two turns can arrive in any order."""
        if supersedes is not None and supersedes != turn_id:
            db.execute(self._sql.supersede, (turn_id, supersedes))
            # A later revision, which supersedes this one under the same ID, may have arrived first.
            db.execute(self._sql.supersedes, (supersedes, turn_id))
        db.execute(self._sql.supersede_by_later, (turn_id, turn_id, turn_id))

    def retain(self) -> bool:
        """Delete rows that exceed the limits. If more rows remain for the next call, return False."""
        for _ in range(_SLICES):
            with self._file.transaction() as db:
                oldest = self._watched_time(db) - self._retention.max_age
                if self._clock.monotonic() < self._expires_after:
                    oldest = 0.0
                gone = self._delete(db, self._sql.old_turns, (oldest,))
                gone += db.execute(self._sql.delete_old_outcomes, (oldest,)).rowcount
                gone += db.execute(self._sql.delete_old_changes, (oldest,)).rowcount
                gone += db.execute(self._sql.delete_old_topics, (oldest,)).rowcount
                if self._is_file and sqlite.bytes_used(db) > self._retention.max_bytes:
                    gone += self._delete(db, self._sql.oldest_turns, ())
            if not gone:
                break
        if self._is_file:
            with self._file.connection() as db:
                db.executescript(f"PRAGMA incremental_vacuum({_FREED_PAGES});")  # execute() would free one page
        return not gone

    def forget(self, column: Literal["conversation_id", "user_id"], value: str, tenant: str | None = None) -> int:
        """Delete all turns of a conversation or user, with their scores and judge calls. If ``tenant`` is set, delete only this tenant's turns.
        Return the number of deleted turns. SQLite overwrites the deleted bytes.
        """
        where, count = Where(self._sql.syntax), 0
        where.compare(f"{column} =", value)
        where.compare("tenant =", tenant)
        while True:
            with self._file.transaction() as db:
                if self._is_file:
                    db.execute("PRAGMA secure_delete = ON")
                gone = self._delete(db, f"SELECT turn_id FROM turns WHERE {where} LIMIT {_SLICE}", where.values)
            count += gone
            if not gone:
                return count

    def _watched_time(self, db: Any) -> float:
        """Return the Unix time. If the clock jumped ahead by over a day, it might be wrong, so nothing expires for an hour."""
        now, running = self._clock.time_ns() / 1e9, self._clock.monotonic()
        if self._seen is None:
            self._seen = db.execute("SELECT max(stored_at) FROM turns").fetchone()[0] or now, running
        written, then = self._seen
        ahead = now - written - (running - then)
        if ahead > _JUMP:
            self._expires_after = running + _HELD
            _log.warning(
                "outlets.store: the last turn was stored %.0f days ago. In case the clock is wrong, no turn expires in the next hour",
                ahead / 86_400,
            )
        self._seen = now, running
        return now

    def _delete(self, db: Any, turns: str, values: Sequence[Any]) -> int:
        """Delete the turns that the SQL query ``turns`` selects, with all related rows. Return the number of deleted turns."""
        ids = [(row[0],) for row in db.execute(turns, values).fetchall()]
        self._mark_minutes(db, [turn_id for (turn_id,) in ids])
        for statement in self._sql.delete_turn:
            db.executemany(statement, ids)
        return len(ids)

    def close(self) -> None:
        self._file.close()


def write_topics(path: str | os.PathLike[str], topics: Iterable[StoredTopic], model: str, now: float) -> None:
    """Write topics. Above the limit, delete the least recently seen topics. Can raise sqlite3.Error, OSError, or StoreError."""
    backend = backend_of(path)
    file = backend.open_writer(os.fspath(path))
    p, columns = backend.SYNTAX.p, [*StoredTopic._fields, "model", "last_seen"]
    rows = [[*{**topic._asdict(), "center": jsonio.dumps(topic.center)}.values(), model, now] for topic in topics]
    try:
        with file.transaction() as db:
            for row in rows:
                db.execute(f"DELETE FROM topics WHERE mode = {p} AND id = {p}", row[:2])
                db.execute(backend.SYNTAX.insert("topics", columns), row)
            for mode in {row[0] for row in rows}:
                kept = f"SELECT id FROM topics WHERE mode = {p} ORDER BY last_seen DESC, id LIMIT {_MOST_TOPICS}"
                db.execute(f"DELETE FROM topics WHERE mode = {p} AND id NOT IN ({kept})", (mode, mode))
    finally:
        file.close(for_good=True)


def verdict_of(score: Mapping[str, Any]) -> int | None:
    """Return a score's verdict as 1 (passed) or 0 (failed). If :func:`.statements.verdict_is` ignores the score, return None."""
    counts = score["status"] == "ok" and score["direction"] != "neutral" and VACUOUS not in (score["detail"] or "")
    return int(score["passed"]) if counts and score["passed"] is not None else None


class _Statements:
    def __init__(self, syntax: Syntax) -> None:
        p = syntax.p
        self.syntax = syntax
        updated = (f"{name} = coalesce(excluded.{name}, turns.{name})" for name in TURN_COLUMNS if name not in _UPDATED_APART)
        # A judged score arrives without the turn, so its row can't name a step.
        causes = (
            f"{name} = CASE WHEN {_REVISED} THEN excluded.{name} WHEN excluded.facts IS NULL THEN coalesce(turns.{name}, excluded.{name}) "
            f"ELSE coalesce(excluded.{name}, turns.{name}) END"
            for name in ("fault", "mode")
        )
        self.put_turn = (
            f"{syntax.insert('turns', TURN_COLUMNS)} ON CONFLICT (turn_id) DO UPDATE SET {', '.join((*updated, *causes))}"
            # If several scores failed, the turn represents the smallest of their numbers of turns.
            f", failed = CASE WHEN {_REVISED} THEN excluded.failed WHEN turns.failed < excluded.failed THEN turns.failed "
            "ELSE coalesce(excluded.failed, turns.failed) END"
            # A turn that was revised under its own ID still supersedes the other turn that it replaced first.
            ", supersedes = coalesce(nullif(turns.supersedes, turns.turn_id), excluded.supersedes)"
            " WHERE excluded.revision >= turns.revision"
        )
        columns = {**SCORE_COLUMNS, **VERDICT_COLUMNS}
        self.put_score = (
            f"{syntax.insert('scores', columns)} ON CONFLICT (result_id) DO UPDATE SET "
            f"{', '.join(f'{name} = excluded.{name}' for name in columns)} "
            f"WHERE excluded.metric = '{FEEDBACK}' AND excluded.scored_at >= scores.scored_at"  # a user can change the feedback
        )
        self.put_question = f"{syntax.insert('questions', QUESTION_COLUMNS)} ON CONFLICT (result_id, place) DO NOTHING"
        self.put_outcome = (
            f"{syntax.insert('outcomes', OUTCOME_COLUMNS)} "
            "ON CONFLICT (turn_id, metric) DO UPDATE SET outcome = excluded.outcome, at = excluded.at"
        )
        self.put_change = syntax.insert("changes", CHANGE_COLUMNS)
        self.absorb = f"UPDATE turns SET superseded_by = {p} WHERE turn_id = {p} AND superseded_by IS NULL"
        self.supersede = f"UPDATE turns SET superseded_by = {p} WHERE turn_id = {p}"
        self.supersedes = f"UPDATE turns SET supersedes = {p} WHERE turn_id = {p} AND supersedes = turn_id"
        self.supersede_by_later = (
            "UPDATE turns SET superseded_by = "
            f"(SELECT turn_id FROM turns AS later WHERE later.supersedes = {p} AND later.turn_id <> {p} LIMIT 1) "
            f"WHERE turn_id = {p} AND superseded_by IS NULL"
        )
        # All turn IDs of a trace have the same length, so that every collation orders them alike.
        self.turns_of_trace = (
            f"SELECT turn_id, revision FROM turns WHERE turn_id BETWEEN {p} AND {p} "
            "AND close_reason IS NOT NULL AND superseded_by IS NULL"
        )
        self.mark_minute = (
            f"INSERT INTO stale_minutes SELECT {syntax.floor.format(f'{AT} / {MINUTE}')}, 1, 0 FROM turns WHERE turn_id = {p} "
            "ON CONFLICT (minute) DO UPDATE SET marks = stale_minutes.marks + 1"
        )
        self.oldest_turns = f"SELECT turn_id FROM turns ORDER BY stored_at LIMIT {_SLICE}"
        self.old_turns = f"SELECT turn_id FROM turns WHERE stored_at < {p} ORDER BY stored_at LIMIT {_SLICE}"
        self.delete_turn = [f"DELETE FROM {table} WHERE turn_id = {p}" for table in ("scores", "outcomes", "questions", "turns")]
        self.delete_old_outcomes = (
            "DELETE FROM outcomes WHERE (turn_id, metric) IN "
            f"(SELECT turn_id, metric FROM outcomes WHERE at < {p} LIMIT {_SLICE})"
        )
        self.delete_old_changes = f"DELETE FROM changes WHERE at < {p}"
        self.delete_old_topics = f"DELETE FROM topics WHERE last_seen < {p}"
