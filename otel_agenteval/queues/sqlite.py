"""Jobs in a file: they survive the process, also one that is killed, and several processes may share them.

The file holds turns, so it is made readable for its owner only. WAL mode without a sync per transaction: what was put is safe
when the process dies, and may lose its last moments when the machine does.
"""

from __future__ import annotations

import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ..clock import SYSTEM_CLOCK, Clock
from .base import Job

_BUSY_SECONDS = 5.0
_REMEMBERED_SECONDS = 86_400.0
_DEAD_LETTERS = 1_000
_SCHEMA = """
CREATE TABLE IF NOT EXISTS jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, payload BLOB NOT NULL, size INTEGER NOT NULL,
    priority INTEGER NOT NULL, attempts INTEGER NOT NULL, due REAL NOT NULL, claimed INTEGER NOT NULL
);
CREATE INDEX IF NOT EXISTS by_priority ON jobs (priority DESC, number);
CREATE TABLE IF NOT EXISTS done (id TEXT PRIMARY KEY, at REAL NOT NULL, reason TEXT);
CREATE INDEX IF NOT EXISTS by_time ON done (at);
CREATE TABLE IF NOT EXISTS totals (jobs INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO totals SELECT 0, 0 WHERE NOT EXISTS (SELECT * FROM totals);
CREATE TRIGGER IF NOT EXISTS added AFTER INSERT ON jobs BEGIN UPDATE totals SET jobs = jobs + 1, bytes = bytes + new.size; END;
CREATE TRIGGER IF NOT EXISTS removed AFTER DELETE ON jobs BEGIN UPDATE totals SET jobs = jobs - 1, bytes = bytes - old.size; END;
"""
_LEFT_TO_THE_PARENT: list[sqlite3.Connection] = []
"""Connections that a forked child inherited: it must neither use nor close them."""


class SqliteQueue:
    """A :class:`~otel_agenteval.queues.JobQueue` in an SQLite file, opened at first use.

    Args:
        path: of the file; its folder must exist.
        max_bytes: bound of all jobs in the file.
        clock: dates leases and retries; processes that share the file share its wall time.

    Every method raises ``sqlite3.Error`` or ``OSError`` when the file cannot be used.
    """

    def __init__(self, path: str, max_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self.max_bytes = max_bytes
        self._path = path
        self._clock = clock
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._closed = False

    @property
    def depth(self) -> int:
        """Jobs that wait or are claimed, by whatever process."""
        return self._totals()[0]

    @property
    def bytes(self) -> int:
        """Bytes of them."""
        return self._totals()[1]

    def put_many(self, jobs: Sequence[Job]) -> list[Job]:
        """Add jobs; returns those that there is no room for."""
        now = self._now()
        left_out: list[Job] = []
        with self._transaction() as db:
            db.execute("DELETE FROM done WHERE at < ?", (now - _REMEMBERED_SECONDS,))
            for job in jobs:
                if db.execute(
                    "SELECT 1 FROM jobs WHERE id = :id UNION SELECT 1 FROM done WHERE id = :id", {"id": job.id}
                ).fetchone():
                    continue
                if not self._make_room(db, job, left_out):
                    left_out.append(job)
                    continue
                db.execute(
                    "INSERT INTO jobs (id, payload, size, priority, attempts, due, claimed) VALUES (?, ?, ?, ?, ?, ?, 0)",
                    (job.id, job.payload, job.size, job.priority, job.attempts, now),
                )
        return left_out

    def claim(self, n: int, lease: float) -> list[Job]:
        """Up to ``n`` jobs that are due, for ``lease`` seconds."""
        now = self._now()
        with self._transaction() as db:
            rows = db.execute(
                "SELECT number, id, payload, priority, attempts + 1 FROM jobs WHERE due <= ? ORDER BY priority DESC, number LIMIT ?",
                (now, n),
            ).fetchall()
            db.executemany(
                "UPDATE jobs SET claimed = 1, attempts = ?, due = ? WHERE number = ?",
                [(row[4], now + lease, row[0]) for row in rows],
            )
        return [Job(*row[1:]) for row in rows]

    def ack(self, job_id: str) -> None:
        """It is done."""
        self._finish(job_id, None)

    def retry_at(self, job_id: str, at: float, *, counted: bool = True) -> None:
        """Give a claimed job back, due at a time."""
        with self._transaction() as db:
            db.execute(
                "UPDATE jobs SET claimed = 0, due = ?, attempts = attempts - ? WHERE id = ? AND claimed",
                (at, not counted, job_id),
            )

    def dead(self, job_id: str, reason: str) -> None:
        """It cannot be done."""
        self._finish(job_id, reason)

    def dead_letters(self) -> list[tuple[str, str]]:
        """(id, reason) of the last thousand, of the last day."""
        with self._transaction() as db:
            rows = db.execute("SELECT id, reason FROM done WHERE reason IS NOT NULL ORDER BY at DESC LIMIT ?", (_DEAD_LETTERS,))
            return list(reversed(rows.fetchall()))

    def close(self) -> list[Job]:
        """Close the file; nothing is lost."""
        with self._lock:
            self._closed = True
            connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
        return []

    def after_fork_in_child(self) -> None:
        """The child opens the file for itself."""
        if self._connection is not None:
            _LEFT_TO_THE_PARENT.append(self._connection)
        self._connection = None
        self._lock = threading.Lock()

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9

    def _totals(self) -> tuple[int, int]:
        if self._closed:
            return 0, 0
        with self._lock:
            jobs, size = self._open().execute("SELECT jobs, bytes FROM totals").fetchone()
        return jobs, size

    def _finish(self, job_id: str, reason: str | None) -> None:
        with self._transaction() as db:
            if db.execute("DELETE FROM jobs WHERE id = ?", (job_id,)).rowcount:
                db.execute("INSERT OR REPLACE INTO done VALUES (?, ?, ?)", (job_id, self._now(), reason))

    def _make_room(self, db: sqlite3.Connection, job: Job, left_out: list[Job]) -> bool:
        """Whether the job fits, once lower ones that wait have made room for it: the lowest first, and of those the oldest."""
        short = db.execute("SELECT bytes FROM totals").fetchone()[0] + job.size - self.max_bytes
        if short <= 0:
            return True
        lower = "FROM jobs WHERE priority < ? AND (NOT claimed OR due <= ?)"
        of = (job.priority, self._now())
        if db.execute(f"SELECT coalesce(sum(size), 0) {lower}", of).fetchone()[0] < short:
            return False
        rows = db.execute(f"SELECT number, id, payload, priority, attempts, size {lower} ORDER BY priority, number", of)
        for number, job_id, payload, priority, attempts, size in rows.fetchall():
            if short <= 0:
                break
            db.execute("DELETE FROM jobs WHERE number = ?", (number,))
            short -= size
            left_out.append(Job(job_id, payload, priority, attempts))
        return True

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        with self._lock:
            db = self._open()
            db.execute("BEGIN IMMEDIATE")
            try:
                yield db
            except BaseException:
                db.execute("ROLLBACK")
                raise
            db.execute("COMMIT")

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            if self._closed:
                raise sqlite3.ProgrammingError("the queue is closed")
            os.close(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600))
            db = sqlite3.connect(self._path, timeout=_BUSY_SECONDS, isolation_level=None, check_same_thread=False)
            db.execute("PRAGMA journal_mode = WAL")
            db.execute("PRAGMA synchronous = NORMAL")
            db.executescript(f"BEGIN IMMEDIATE; {_SCHEMA} COMMIT;")
            self._connection = db
        return self._connection
