"""What waits to be sent: in memory, or in a file that outlives the process.

A batch is read, sent, and only then removed. One that was sent just before the process died is sent again; receivers can recognise a
score by its result id.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

from ...core.sqlite import Schema, Step, is_busy, open_file
from ...spans.otlp import Signal

_log = logging.getLogger("otel_agenteval")

SIGNALS: tuple[Signal, ...] = ("logs", "traces")
_SLOTS = 64
_FIRST_TABLES = """
CREATE TABLE IF NOT EXISTS parcels (
    number INTEGER PRIMARY KEY AUTOINCREMENT, signal TEXT NOT NULL, items INTEGER NOT NULL, at REAL NOT NULL, body BLOB NOT NULL
);
CREATE INDEX IF NOT EXISTS by_signal ON parcels (signal, number);
"""
SCHEMA = Schema(
    "spool", 0x4F414553,  # "OAES"
    steps=(Step(_FIRST_TABLES), Step("ALTER TABLE parcels RENAME TO batches;")),
    unnumbered=frozenset(("parcels",)),
)  # fmt: skip
_LEFT_TO_THE_PARENT: list[sqlite3.Connection] = []
"""Connections that a forked child inherited: it must neither use nor close them."""


class Batch(NamedTuple):
    """An encoded export request. Several of one signal, one after the other, are one request too."""

    signal: Signal
    items: int
    """Records or spans in it."""
    at: float
    """When it was made, seconds since the Unix epoch."""
    body: bytes
    number: int = 0
    """Identifies it where it waits."""


class SpoolMemory:
    """Batches that are lost with the process."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._lock = threading.Lock()
        self._number = 0
        self._waiting: dict[Signal, deque[Batch]] = {signal: deque() for signal in SIGNALS}

    def put(self, batch: Batch, *, must: bool = False) -> bool:
        """Add a batch; False when it has no room and need not be kept (``must``)."""
        with self._lock:
            if self.bytes + len(batch.body) > self.max_bytes and not must:
                return False
            self._number += 1
            self.bytes += len(batch.body)
            self._waiting[batch.signal].append(batch._replace(number=self._number))
            return True

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[Batch]:
        """The oldest of a signal. They stay."""
        found: list[Batch] = []
        with self._lock:
            for batch in self._waiting[signal]:
                max_bytes -= len(batch.body)
                if len(found) == most or (found and max_bytes < 0):
                    break
                found.append(batch)
        return found

    def remove(self, batches: Sequence[Batch]) -> None:
        """Remove the oldest, as :meth:`first` gave them."""
        with self._lock:
            for batch in batches:
                waiting = self._waiting[batch.signal]
                if waiting and waiting[0].number == batch.number:
                    waiting.popleft()
                    self.bytes -= len(batch.body)

    def items(self) -> int:
        """Records and spans that wait."""
        with self._lock:
            return sum(batch.items for waiting in self._waiting.values() for batch in waiting)

    def close(self) -> None:
        """Nothing is held."""


class SpoolFile:
    """Batches in an SQLite file of a folder that processes may share: each takes the first file that no other process holds.

    So a process that starts after another one died goes on with what that one left, and one that runs already can :meth:`adopt` it. The
    file holds explanations, so it is made readable for its owner only.

    Args:
        directory: made when it is missing.
        max_bytes: how many the batches in the file may have.

    Raises:
        OSError: the folder or file cannot be used.
        sqlite3.Error: the same.
    """

    def __init__(self, directory: str, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        self._lock = threading.Lock()
        self._directory = directory
        self._adopted = 0
        self._refused: set[Path] = set()
        """Files that cannot be read: damaged ones, and those of another version."""
        self._slot, self._db = self._first_free()
        row = self._db.execute("SELECT coalesce(sum(length(body)), 0), coalesce(sum(items), 0) FROM batches").fetchone()
        self.bytes: int = row[0]
        self._items: int = row[1]

    def put(self, batch: Batch, *, must: bool = False) -> bool:
        """Add a batch; False when it has no room and need not be kept (``must``)."""
        with self._lock:
            if self.bytes + len(batch.body) > self.max_bytes and not must:
                return False
            self._db.execute("INSERT INTO batches (signal, items, at, body) VALUES (?, ?, ?, ?)", batch[:4])
            self.bytes += len(batch.body)
            self._items += batch.items
            return True

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[Batch]:
        """The oldest of a signal. They stay."""
        found: list[Batch] = []
        with self._lock:
            rows = self._db.execute(
                "SELECT signal, items, at, body, number FROM batches WHERE signal = ? ORDER BY number LIMIT ?", (signal, most)
            )
            for row in rows:
                max_bytes -= len(row[3])
                if found and max_bytes < 0:
                    break
                found.append(Batch(*row))
        return found

    def remove(self, batches: Sequence[Batch]) -> None:
        """Remove batches that :meth:`first` gave."""
        with self._lock:
            self._db.execute("BEGIN")
            try:
                self._db.executemany("DELETE FROM batches WHERE number = ?", [(batch.number,) for batch in batches])
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            self.bytes -= sum(len(batch.body) for batch in batches)
            self._items -= sum(batch.items for batch in batches)

    def adopt(self) -> int:
        """Take over what lies in files that no process holds, for fewer processes may run from now on; how many records and spans."""
        before = self._adopted
        for slot in range(_SLOTS):
            path = Path(self._directory, f"outbox-{slot}.db")
            if slot == self._slot or not path.exists():
                continue
            db = self._opened(path)
            if db is None:
                continue
            with suppress(sqlite3.DatabaseError), closing(db):
                rows = db.execute("SELECT signal, items, at, body, number FROM batches ORDER BY number").fetchall()
                taken = [row for row in rows if self.put(Batch(*row))]  # before it is removed there: rather twice than never
                self._adopted += sum(row[1] for row in taken)
                db.executemany("DELETE FROM batches WHERE number = ?", [(row[4],) for row in taken])
        return self._adopted - before

    def _first_free(self) -> tuple[int, sqlite3.Connection]:
        """The first file that no process holds, by its number."""
        for slot in range(_SLOTS):
            db = self._opened(Path(self._directory, f"outbox-{slot}.db"))
            if db is not None:
                return slot, db
        raise OSError(f"{self._directory}: all {_SLOTS} files are taken")

    def _opened(self, path: Path) -> sqlite3.Connection | None:
        """A file, for this process alone; None if another one holds it, or it cannot be read, which is logged once."""
        try:
            return open_file(path, SCHEMA, exclusive=True)
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                return None
            if isinstance(error, sqlite3.OperationalError):
                raise
            if path not in self._refused:
                self._refused.add(path)
                _log.warning("outlets.otlp.spool: %s; what it holds is not sent", error)
            return None

    def items(self) -> int:
        """Records and spans that wait."""
        return self._items

    def close(self) -> None:
        """Close the file; nothing is lost."""
        with self._lock:
            self._db.close()

    def leave_to_the_parent(self) -> None:
        """In a forked child: neither use nor close it."""
        _LEFT_TO_THE_PARENT.append(self._db)


class Spool:
    """Batches in a file where there is one, and in memory where there is none or it fails.

    Args:
        memory: bytes that may wait in memory.
        open_spool_file: opens the file, with the first batch; None when there is none.
        failed: called with a word for what the file could not do.
        found: called with the number of records and spans that another process left in a file that is ours now.
    """

    def __init__(
        self,
        memory: int,
        open_spool_file: Callable[[], SpoolFile] | None,
        failed: Callable[[str], None],
        found: Callable[[int], None] = lambda items: None,
    ) -> None:
        self._memory = SpoolMemory(memory)
        self._open_spool_file = open_spool_file
        self._failed = failed
        self._found = found
        self._file: SpoolFile | None = None
        self._opening = threading.Lock()

    @property
    def bytes(self) -> int:
        """Bytes that wait."""
        return self._memory.bytes + (self._file.bytes if self._file is not None else 0)

    @property
    def max_bytes(self) -> int:
        """The bound."""
        return self._file.max_bytes if self._file is not None else self._memory.max_bytes

    def open(self) -> None:
        """Open the file, if one is configured: what an earlier process left in it waits from now on."""
        with self._opening:
            if self._open_spool_file is not None:
                open_spool_file, self._open_spool_file = self._open_spool_file, None
                try:
                    file = open_spool_file()
                    self._found(file.items())
                    self._file = file
                except (OSError, sqlite3.Error) as error:
                    _log.warning("no spool, scores wait in memory: %s", error)
                    self._failed("spool_not_opened")

    def put(self, batch: Batch, *, must: bool = False) -> bool:
        """Add a batch; False when it has no room and need not be kept (``must``)."""
        self.open()
        if self._file is not None:
            try:
                return self._file.put(batch, must=must)
            except sqlite3.Error:  # as a rule the disk is full: memory is better than nothing
                self._failed("spool_failed")
        return self._memory.put(batch, must=must)

    @property
    def full(self) -> bool:
        """Whether as much waits in memory, or in the file, as may."""
        return self._memory.bytes >= self._memory.max_bytes or (
            self._file is not None and self._file.bytes >= self._file.max_bytes
        )

    def adopt(self) -> bool:
        """Take over what processes left in other files; False where there are no files."""
        if self._file is None:
            return False
        try:
            self._found(self._file.adopt())
        except (OSError, sqlite3.Error):
            self._failed("spool_failed")
        return True

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[Batch]:
        """The oldest of a signal. They stay. What is in memory comes first, for it would be lost with the process."""
        found = self._memory.first(signal, most, max_bytes)
        if not found and self._file is not None:
            try:
                return self._file.first(signal, most, max_bytes)
            except sqlite3.Error:
                self._give_up_file()
        # a number in memory is made negative, so that it is no number in the file
        return [batch._replace(number=-batch.number) for batch in found]

    def remove(self, batches: Sequence[Batch]) -> None:
        """Remove batches that :meth:`first` gave."""
        in_memory = [batch._replace(number=-batch.number) for batch in batches if batch.number < 0]
        self._memory.remove(in_memory)
        if self._file is not None and len(in_memory) < len(batches):
            try:
                self._file.remove(batches)
            except sqlite3.Error:  # else they would be sent again and again
                self._give_up_file()

    def items(self) -> int:
        """Records and spans that wait."""
        return self._memory.items() + (self._file.items() if self._file is not None else 0)

    @property
    def outlives_us(self) -> bool:
        """Whether all that waits is in a file: the next process goes on with it."""
        return self._file is not None and self._memory.bytes == 0

    def close(self) -> int:
        """Move into the file what is in memory, and close it; how many records and spans are lost with the process."""
        if self._file is not None:
            for signal in SIGNALS:
                while batches := self._memory.first(signal, 1, 0):
                    try:
                        if not self._file.put(batches[0]):
                            break
                    except sqlite3.Error:
                        break
                    self._memory.remove(batches)
            self._file.close()
        return self._memory.items()

    def _give_up_file(self) -> None:
        """Leave a file that cannot be read or changed: what it holds waits for the next process."""
        self._failed("spool_failed")
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def after_fork_in_child(self) -> None:
        """What waits is the parent's."""
        if self._file is not None:
            self._file.leave_to_the_parent()
