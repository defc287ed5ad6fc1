"""Job queue and spending record in an SQLite file, which processes on one machine can share.

The file contains turns, so only its owner can read it. Not every transaction is synced to disk. Jobs survive a killed process, but
if the machine crashes, the latest jobs can be lost.
"""

from __future__ import annotations

import sqlite3
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Literal

from ...core import forks
from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.sqlite import MEMORY, Schema, SqliteFile
from .base import HELD_BYTES, SLOTS, Counter, Demand, EndedClaim, Job, JobQueue

_BUSY_SECONDS = 0.25
"""Maximum seconds that a call waits for other processes. The limit is short, because the worker and all outlets wait, too."""
_PAUSE = 1.0
_REMEMBERED_SECONDS = 86_400.0
_DEAD_LETTERS = 1_000
_TABLES = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, payload BLOB NOT NULL, size INTEGER NOT NULL,
    priority INTEGER NOT NULL, attempts INTEGER NOT NULL, due REAL NOT NULL, claimed INTEGER NOT NULL,
    token TEXT NOT NULL DEFAULT ''
);
CREATE INDEX by_priority ON jobs (priority DESC, number, due);
CREATE TABLE done (id TEXT PRIMARY KEY, at REAL NOT NULL, reason TEXT);
CREATE INDEX by_time ON done (at);
CREATE TABLE totals (jobs INTEGER NOT NULL, bytes INTEGER NOT NULL);
INSERT INTO totals VALUES (0, 0);
CREATE TRIGGER added AFTER INSERT ON jobs BEGIN UPDATE totals SET jobs = jobs + 1, bytes = bytes + new.size; END;
CREATE TRIGGER removed AFTER DELETE ON jobs BEGIN UPDATE totals SET jobs = jobs - 1, bytes = bytes - old.size; END;
CREATE TABLE spent (
    account TEXT NOT NULL, unit TEXT NOT NULL, length REAL NOT NULL, slot INTEGER NOT NULL, amount REAL NOT NULL,
    PRIMARY KEY (account, unit, length, slot)
) WITHOUT ROWID;
"""
SCHEMA = Schema("judge queue", 0x4F414551, _TABLES)  # "OAEQ"
_OURS = "id = :id AND token <> '' AND substr(token, 1, length(:fence)) = :fence"
_WAITING = "SELECT id, payload, priority, attempts FROM jobs WHERE priority = ? AND (NOT claimed OR due <= ?) ORDER BY number"
_EXTEND, _GIVE_BACK, _REMOVE = (
    f"{change} WHERE {_OURS}"
    for change in (
        "UPDATE jobs SET claimed = 1, due = :due",
        "UPDATE jobs SET claimed = 0, token = '', due = :due, attempts = attempts - :uncounted",
        "DELETE FROM jobs",
    )
)


class SqliteQueue(JobQueue):
    """Job queue in an SQLite file. The first call opens the file, whose folder must exist.

    If the file is unavailable, the queue retries at most once a second. Meanwhile, new jobs and ended claims wait in this process,
    and ``failed`` gets each error. :meth:`claim`, :meth:`extend`, and reading methods can raise ``sqlite3.Error`` or ``OSError``.
    """

    is_shared = False
    """False, because running processes claim their own jobs. Infrequent checks find jobs that ended processes left behind."""
    remembered = 200_000
    """Maximum number of remembered IDs of finished jobs. Jobs with a remembered ID aren't added again."""

    def __init__(
        self,
        path: str,
        max_bytes: int,
        clock: Clock = SYSTEM_CLOCK,
        *,
        held_bytes: int = HELD_BYTES,
        failed: Callable[[BaseException], None] = lambda error: None,
    ) -> None:
        self._file = SqliteFile(path, SCHEMA, _BUSY_SECONDS)
        self._failed = failed
        super().__init__(max_bytes, clock, held_bytes)

    def _reset(self) -> None:
        super()._reset()
        self._quiet_until = {"read": 0.0, "write": 0.0}
        self._known: dict[str, int] = {}

    def claim(self, n: int, lease: float) -> list[Job]:
        with self._lock:
            self._send()
        now = self._now()
        with self._using("write") as db:
            rows = db.execute(
                "SELECT number, id, payload, priority, attempts + 1 FROM jobs WHERE due <= ? ORDER BY priority DESC, number LIMIT ?",
                (now, n),
            ).fetchall()
            token = self._new_token()
            db.executemany(
                "UPDATE jobs SET claimed = 1, attempts = ?, due = ?, token = ? WHERE number = ?",
                [(row[4], now + lease, token, row[0]) for row in rows],
            )
        return [Job(job_id, payload, priority, attempts, token) for _, job_id, payload, priority, attempts in rows]

    def extend(self, jobs: Sequence[Job | str], lease: float) -> list[str]:
        lost, due = [], self._now() + lease
        with self._using("write") as db:
            for job_id, fence in map(self._fence, jobs):
                if not db.execute(_EXTEND, {"id": job_id, "fence": fence, "due": due}).rowcount:
                    lost.append(job_id)
        return lost

    def retry_at(self, job: Job | str, at: float, *, counted: bool = True) -> bool:
        return not self._end([job], "put back", due=at, uncounted=not counted)

    def dead_letters(self) -> list[tuple[str, str]]:
        with self._using("write") as db:
            rows = db.execute("SELECT id, reason FROM done WHERE reason IS NOT NULL ORDER BY at DESC LIMIT ?", (_DEAD_LETTERS,))
            return list(reversed(rows.fetchall()))

    def close(self) -> list[Job]:
        with self._lock:
            if self._file.closed:
                return []
            self._quiet_until["write"] = 0.0
            lost = self._take_unsent()
        self._file.close(for_good=True)
        return lost

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9

    @contextmanager
    def _using(self, how: Literal["read", "write"]) -> Iterator[sqlite3.Connection]:
        """Open a transaction. Raise an error if the file was unavailable within the last second. Readers don't wait for writers."""
        if self._clock.monotonic() < self._quiet_until[how]:
            raise sqlite3.OperationalError("judge.queue.path: file unavailable. The next attempt follows within a second")
        try:
            with self._file.connection() if how == "read" else self._file.transaction() as db:
                yield db
        except (sqlite3.Error, OSError):
            self._quiet_until[how] = self._clock.monotonic() + _PAUSE
            raise

    def _total(self, name: str) -> int:
        if self._file.closed:
            return 0
        try:
            with self._using("read") as db:
                jobs, size = db.execute("SELECT jobs, bytes FROM totals").fetchone()
            self._known = {"jobs": jobs, "bytes": size}
        except (sqlite3.Error, OSError):
            if not self._known:
                raise
        return self._known[name]

    def _send(self) -> list[str]:
        outbox, held = self._outbox, [*self._outbox.held.values()]
        if not held and not outbox.ended:
            return []
        try:
            with self._using("write") as db:
                lost = [job_id for job_id, ending in outbox.ended.items() if not self._write_end(db, job_id, ending)]
                left_out = self._write(db, held) if held else []
        except (sqlite3.Error, OSError) as error:
            self._failed(error)
            return []
        outbox.ended.clear()
        outbox.remove_held(held)
        outbox.left_out += left_out
        return lost

    def _write_end(self, db: sqlite3.Connection, job_id: str, ending: EndedClaim) -> bool:
        of = {"id": job_id, "fence": ending.fence}
        if ending.outcome == "put back":
            return bool(db.execute(_GIVE_BACK, {**of, "due": ending.due, "uncounted": ending.uncounted}).rowcount)
        if not db.execute(_REMOVE, of).rowcount:
            return False
        db.execute(
            "INSERT OR REPLACE INTO done VALUES (?, ?, ?)",
            (job_id, self._now(), ending.reason if ending.outcome == "failed" else None),
        )
        return True

    def _write(self, db: sqlite3.Connection, jobs: Iterable[Job]) -> list[Job]:
        now = self._now()
        left_out: list[Job] = []
        db.execute("DELETE FROM done WHERE at < ?", (now - _REMEMBERED_SECONDS,))
        db.execute("DELETE FROM done WHERE rowid <= (SELECT max(rowid) FROM done) - ?", (self.remembered,))
        for job in jobs:
            known = "SELECT 1 FROM jobs WHERE id = :id UNION SELECT 1 FROM done WHERE id = :id"
            if db.execute(known, {"id": job.id}).fetchone():
                continue
            if not self._make_room(db, job, left_out):
                left_out.append(job)
                continue
            db.execute(
                "INSERT INTO jobs (id, payload, size, priority, attempts, due, claimed) VALUES (?, ?, ?, ?, ?, ?, 0)",
                (job.id, job.payload, job.size, job.priority, job.attempts, now),
            )
        return left_out

    def _make_room(self, db: sqlite3.Connection, job: Job, left_out: list[Job]) -> bool:
        """Drop waiting jobs of lower priority until ``job`` fits: lowest priority, then oldest first. Return True on success."""
        short = db.execute("SELECT bytes FROM totals").fetchone()[0] + job.size - self.max_bytes
        dropped = []
        waiting = self._waiting_below(db, job.priority) if short > 0 else iter(())
        while short > 0:
            found = next(waiting, None)
            if found is None:
                return False
            dropped.append(found)
            short -= found.size
        db.executemany("DELETE FROM jobs WHERE id = ?", [(one.id,) for one in dropped])
        left_out += dropped
        return True

    def _waiting_below(self, db: sqlite3.Connection, priority: int) -> Iterator[Job]:
        """Yield waiting jobs whose priority is below ``priority``. One query per priority level avoids sorting all jobs."""
        lowest = "SELECT min(priority) FROM jobs WHERE priority > ? AND priority < ?"
        (found,) = db.execute("SELECT min(priority) FROM jobs WHERE priority < ?", (priority,)).fetchone()
        while found is not None:
            yield from (Job(*row) for row in db.execute(_WAITING, (found, self._now())))
            (found,) = db.execute(lowest, (found, priority)).fetchone()


class SqliteSpendBook:
    """Record of judge spending in an SQLite file. If the file is unavailable, methods raise ``sqlite3.Error`` or ``OSError``."""

    def __init__(self, path: str) -> None:
        self._file = SqliteFile(path, SCHEMA)

    def spend(self, demands: Sequence[Demand], at: float) -> float:
        with self._file.transaction() as db:
            wait = 0.0
            for demand in demands:
                used, oldest = self._within(db, demand.counter, at)
                if not demand.fits(used):
                    wait = max(wait, demand.counter.expires_at(oldest) - at)
            if wait == 0.0:
                self._write(db, [(demand.counter, demand.amount) for demand in demands], at)
            return wait

    def add(self, amounts: Sequence[tuple[Counter, float]], at: float) -> None:
        with self._file.transaction() as db:
            self._write(db, amounts, at)

    def used(self, counter: Counter, at: float) -> float:
        if self._file.closed:
            return 0.0
        with self._file.connection() as db:
            return self._within(db, counter, at)[0]

    def close(self) -> None:
        self._file.close(for_good=True)

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


class MemoryQueue(SqliteQueue):
    """Job queue in memory. A forked child starts with an empty queue."""

    remembered = 10_000

    def __init__(self, max_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        super().__init__(MEMORY, max_bytes, clock)

    def close(self) -> list[Job]:
        with self._lock:
            if self._file.closed:
                return []
            with self._using("read") as db:
                rows = db.execute("SELECT id, payload, priority, attempts FROM jobs ORDER BY number").fetchall()
            return [*(Job(*row) for row in rows), *super().close()]


class MemorySpendBook:
    def __init__(self) -> None:
        self._spent: dict[Counter, dict[int, float]] = {}
        """Spent amounts by counter and then by slot, oldest slot first. A forked child inherits these amounts."""
        self._make_lock()
        forks.in_child(self._make_lock)

    def _make_lock(self) -> None:
        self._lock = threading.Lock()

    def spend(self, demands: Sequence[Demand], at: float) -> float:
        with self._lock:
            wait = 0.0
            for demand in demands:
                if not demand.fits(self._used(demand.counter, at)):
                    oldest = next(iter(self._spent.get(demand.counter, ())), demand.counter.slot(at))
                    wait = max(wait, demand.counter.expires_at(oldest) - at)
            if wait == 0.0:
                for demand in demands:
                    self._add(demand.counter, demand.amount, at)
            return wait

    def add(self, amounts: Sequence[tuple[Counter, float]], at: float) -> None:
        with self._lock:
            for counter, amount in amounts:
                self._add(counter, amount, at)

    def used(self, counter: Counter, at: float) -> float:
        with self._lock:
            return self._used(counter, at)

    def close(self) -> None:
        """Do nothing."""

    def _add(self, counter: Counter, amount: float, at: float) -> None:
        slots = self._spent.setdefault(counter, {})
        slot = counter.slot(at)
        slots[slot] = slots.get(slot, 0.0) + amount

    def _used(self, counter: Counter, at: float) -> float:
        slots = self._spent.get(counter)
        if not slots:
            return 0.0
        oldest = counter.slot(at) - SLOTS
        for slot in [slot for slot in slots if slot < oldest]:
            del slots[slot]
        return sum(slots.values())
