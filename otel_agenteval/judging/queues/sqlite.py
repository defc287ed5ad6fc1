"""Jobs in a file: they outlive the process, even one that is killed, and several processes may share them.

The file holds turns, so only its owner can read it. It is not synced with every transaction: jobs survive the end of the process, and
those of the last moments may be lost when the machine fails.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.sqlite import Schema, SqliteFile, Step
from .base import SLOTS, Counter, Demand, Job, Leases

_REMEMBERED_SECONDS = 86_400.0
_REMEMBERED = 200_000
_DEAD_LETTERS = 1_000
_FIRST_TABLES = """
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
CREATE TABLE IF NOT EXISTS spent (
    account TEXT NOT NULL, unit TEXT NOT NULL, length REAL NOT NULL, slot INTEGER NOT NULL, amount REAL NOT NULL,
    PRIMARY KEY (account, unit, length, slot)
) WITHOUT ROWID;
"""
_TOKENS = """
CREATE TRIGGER IF NOT EXISTS claimed_without_token AFTER UPDATE OF attempts ON jobs
WHEN new.attempts > old.attempts AND new.token = old.token AND new.token <> ''
BEGIN UPDATE jobs SET token = '' WHERE number = new.number; END;
"""
"""The trigger ends the lease of a job when a process of the first version, which knows no tokens, claims it."""

SCHEMA = Schema(
    "judge queue", 0x4F414551,  # "OAEQ"
    steps=(
        Step(_FIRST_TABLES),
        Step(_TOKENS, columns={"jobs": {"token": "TEXT NOT NULL DEFAULT ''"}}),
    ),
    unnumbered=frozenset(("jobs", "done", "totals", "spent", "versions", "verdicts", "total")),
)  # fmt: skip
"""Jobs, and what was spent on them. A file from before the steps were numbered may hold a verdict cache too, which is left as it is."""
_OURS = "token <> '' AND substr(token, 1, length(:fence)) = :fence"
"""Whether the last lease is the given one."""


class SqliteQueue:
    """A :class:`~otel_agenteval.judging.queues.JobQueue` in an SQLite file, opened at first use.

    Args:
        path: of the file; its folder must exist.
        max_bytes: bound of all jobs in the file.
        clock: dates leases and retries; processes that share the file share its wall time.

    Every method raises ``sqlite3.Error`` or ``OSError`` when the file cannot be used.
    """

    is_shared = False
    """Other processes have workers of their own. What they leave behind is found within the longest pause."""

    def __init__(self, path: str, max_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self._file = SqliteFile(path, SCHEMA)
        self.max_bytes = max_bytes
        self._clock = clock
        self._leases = Leases()

    def after_fork_in_child(self) -> None:
        """What the parent claimed is the parent's."""
        self._leases = Leases()

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
        with self._file.transaction() as db:
            db.execute("DELETE FROM done WHERE at < ?", (now - _REMEMBERED_SECONDS,))
            db.execute("DELETE FROM done WHERE rowid <= (SELECT max(rowid) FROM done) - ?", (_REMEMBERED,))
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
        with self._file.transaction() as db:
            rows = db.execute(
                "SELECT number, id, payload, priority, attempts + 1 FROM jobs WHERE due <= ? ORDER BY priority DESC, number LIMIT ?",
                (now, n),
            ).fetchall()
            token = self._leases.grant()
            db.executemany(
                "UPDATE jobs SET claimed = 1, attempts = ?, due = ?, token = ? WHERE number = ?",
                [(row[4], now + lease, token, row[0]) for row in rows],
            )
        return [Job(job_id, payload, priority, attempts, token) for _, job_id, payload, priority, attempts in rows]

    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        """Hold claimed jobs for ``lease`` more seconds; returns the ids of those that are no longer ours."""
        return self._each("UPDATE jobs SET claimed = 1, due = :due", jobs, due=self._now() + lease)

    def ack(self, job: Job | str) -> bool:
        """It is done; False when it was no longer ours."""
        return not self._finish([job], None)

    def ack_many(self, jobs: Sequence[Job | str]) -> list[str]:
        """They are done: one transaction for all. Returns the ids of those that were no longer ours."""
        return self._finish(jobs, None)

    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        """Give a claimed job back, due at a time; False when it was no longer ours."""
        back = "UPDATE jobs SET claimed = 0, token = '', due = :due, attempts = attempts - :uncounted"
        return not self._each(back, [job], due=at, uncounted=not counted)

    def dead(self, job: Job | str, reason: str) -> bool:
        """It cannot be done; False when it was no longer ours."""
        return not self._finish([job], reason)

    def dead_letters(self) -> list[tuple[str, str]]:
        """(id, reason) of the last thousand, of the last day."""
        with self._file.transaction() as db:
            rows = db.execute("SELECT id, reason FROM done WHERE reason IS NOT NULL ORDER BY at DESC LIMIT ?", (_DEAD_LETTERS,))
            return list(reversed(rows.fetchall()))

    def flush(self) -> bool:
        """Always True: jobs are written at once."""
        return True

    def close(self) -> list[Job]:
        """Close the file. No job is lost."""
        self._file.close(for_good=True)
        return []

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9

    def _totals(self) -> tuple[int, int]:
        if self._file.closed:
            return 0, 0
        with self._file.connection() as db:
            jobs, size = db.execute("SELECT jobs, bytes FROM totals").fetchone()
        return jobs, size

    def _finish(self, jobs: Sequence[Job | str], reason: str | None) -> list[str]:
        now = self._now()
        done = ("INSERT OR REPLACE INTO done VALUES (:id, :at, :reason)", {"at": now, "reason": reason})
        return self._each("DELETE FROM jobs", jobs, done)

    def _each(
        self, change: str, jobs: Sequence[Job | str], then: tuple[str, dict[str, Any]] | None = None, **values: Any
    ) -> list[str]:
        """Change jobs that are still ours, all in one transaction, and ``then`` something with each; the ids of the others."""
        lost = []
        with self._file.transaction() as db:
            for job in jobs:
                job_id, fence = self._leases.claimed(job)
                if not db.execute(f"{change} WHERE id = :id AND {_OURS}", {"id": job_id, "fence": fence, **values}).rowcount:
                    lost.append(job_id)
                elif then is not None:
                    db.execute(then[0], {"id": job_id, **then[1]})
        return lost

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


class SqliteSpendBook:
    """A :class:`~otel_agenteval.judging.queues.SpendBook` in an SQLite file: it outlives the process, and processes of one machine share it.

    Args:
        path: of the file, which may be a queue's; its folder must exist.

    Every method raises ``sqlite3.Error`` or ``OSError`` when the file cannot be used.
    """

    def __init__(self, path: str) -> None:
        self._file = SqliteFile(path, SCHEMA)

    def take(self, demands: Sequence[Demand], at: float) -> float:
        """Add all amounts at once if there is room for each, and 0; else the seconds until there may be."""
        with self._file.transaction() as db:
            wait = 0.0
            for demand in demands:
                used, oldest = self._within(db, demand.counter, at)
                if not demand.fits(used):
                    wait = max(wait, demand.counter.leaves(oldest) - at)
            if wait == 0.0:
                self._write(db, [(demand.counter, demand.amount) for demand in demands], at)
            return wait

    def add(self, amounts: Sequence[tuple[Counter, float]], at: float) -> None:
        """Correct what was taken at a time."""
        with self._file.transaction() as db:
            self._write(db, amounts, at)

    def used(self, counter: Counter, at: float) -> float:
        """What was spent within the window that ends at a time."""
        if self._file.closed:
            return 0.0
        with self._file.connection() as db:
            return self._within(db, counter, at)[0]

    def close(self) -> None:
        """Close the file; what was spent stays in it."""
        self._file.close(for_good=True)

    def after_fork_in_child(self) -> None:
        """Nothing to do: the child opens the file for itself."""

    def _within(self, db: sqlite3.Connection, counter: Counter, at: float) -> tuple[float, int]:
        now = counter.slot(at)
        used, oldest = db.execute(
            "SELECT sum(amount), min(slot) FROM spent WHERE account = ? AND unit = ? AND length = ? AND slot >= ?",
            (*counter, now - SLOTS),
        ).fetchone()
        return used or 0.0, now if oldest is None else oldest

    def _write(self, db: sqlite3.Connection, amounts: Sequence[tuple[Counter, float]], at: float) -> None:
        for counter, amount in amounts:
            slot = counter.slot(at)
            db.execute(
                "INSERT INTO spent VALUES (?, ?, ?, ?, ?) ON CONFLICT DO UPDATE SET amount = amount + excluded.amount",
                (*counter, slot, amount),
            )
            db.execute("DELETE FROM spent WHERE account = ? AND unit = ? AND length = ? AND slot < ?", (*counter, slot - SLOTS))
