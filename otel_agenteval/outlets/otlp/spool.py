"""Storage for waiting batches, in memory or in a file that outlives the process.

A batch is removed after it is sent or dropped. If the process dies before removing a sent batch from the file, the next process
sends the batch again. Receivers can recognize a repeated score by its result ID.
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

from ...core.files import make_private
from ...core.sqlite import Schema, is_busy, open_file
from ...spans.otlp import Signal

_log = logging.getLogger("otel_agenteval")

SIGNALS: tuple[Signal, ...] = ("logs", "traces")
_SLOTS = 64
_TABLES = """
CREATE TABLE batches (
    number INTEGER PRIMARY KEY AUTOINCREMENT, signal TEXT NOT NULL, items INTEGER NOT NULL, at REAL NOT NULL, body BLOB NOT NULL
);
CREATE INDEX by_signal ON batches (signal, number);
"""
SCHEMA = Schema("spool", 0x4F414553, _TABLES)  # "OAES"
_LEFT_TO_THE_PARENT: list[sqlite3.Connection] = []
"""Connections that a forked child inherited. The child must neither use nor close these connections."""


class SpooledBatch(NamedTuple):
    """Encoded export request. A concatenation of batches for the same signal is also a valid request."""

    signal: Signal
    items: int
    at: float
    body: bytes
    number: int = 0
    """ID of the batch within its storage. Negative for batches in memory."""


class SpoolMemory:
    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._lock = threading.Lock()
        self._number = 0
        self._waiting: dict[Signal, deque[SpooledBatch]] = {signal: deque() for signal in SIGNALS}

    def put(self, batch: SpooledBatch, *, must: bool = False) -> bool:
        with self._lock:
            if self.bytes + len(batch.body) > self.max_bytes and not must:
                return False
            self._number -= 1
            self.bytes += len(batch.body)
            self._waiting[batch.signal].append(batch._replace(number=self._number))
            return True

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[SpooledBatch]:
        """Return up to ``most`` of a signal's oldest batches, up to ``max_bytes`` in total. The oldest batch can be larger."""
        found: list[SpooledBatch] = []
        with self._lock:
            for batch in self._waiting[signal]:
                max_bytes -= len(batch.body)
                if len(found) == most or (found and max_bytes < 0):
                    break
                found.append(batch)
        return found

    def remove(self, batches: Sequence[SpooledBatch]) -> None:
        with self._lock:
            for batch in batches:
                waiting = self._waiting[batch.signal]
                if waiting and waiting[0].number == batch.number:
                    waiting.popleft()
                    self.bytes -= len(batch.body)

    def items(self) -> int:
        with self._lock:
            return sum(batch.items for waiting in self._waiting.values() for batch in waiting)


class SpoolFile:
    """Storage in an SQLite file that only its owner can read, because explanations can quote turns.

    Each process locks the first unlocked file in the folder, and sends the batches that an ended process left in that file. Raises
    OSError or sqlite3.Error if the folder or file can't be used.
    """

    def __init__(self, directory: str, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        make_private(Path(directory))
        self._lock = threading.Lock()
        self._directory = directory
        self._refused: set[Path] = set()
        """Unreadable files, which are damaged or from another version."""
        for self._slot in range(_SLOTS):
            db = self._opened(self._slot)
            if db is not None:
                break
        else:
            raise OSError(f"{directory}: all {_SLOTS} spool files are in use or unreadable; use another folder")
        self.db = db
        row = self.db.execute("SELECT coalesce(sum(length(body)), 0), coalesce(sum(items), 0) FROM batches").fetchone()
        self.bytes: int = row[0]
        self.items: int = row[1]

    def put(self, batch: SpooledBatch, *, must: bool = False) -> bool:
        with self._lock:
            if self.bytes + len(batch.body) > self.max_bytes and not must:
                return False
            self.db.execute("INSERT INTO batches (signal, items, at, body) VALUES (?, ?, ?, ?)", batch[:4])
            self.bytes += len(batch.body)
            self.items += batch.items
            return True

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[SpooledBatch]:
        found: list[SpooledBatch] = []
        with self._lock:
            rows = self.db.execute(
                "SELECT signal, items, at, body, number FROM batches WHERE signal = ? ORDER BY number LIMIT ?", (signal, most)
            )
            for row in rows:
                max_bytes -= len(row[3])
                if found and max_bytes < 0:
                    break
                found.append(SpooledBatch(*row))
        return found

    def remove(self, batches: Sequence[SpooledBatch]) -> None:
        with self._lock:
            self.db.execute("BEGIN")
            try:
                self.db.executemany("DELETE FROM batches WHERE number = ?", [(batch.number,) for batch in batches])
            except BaseException:
                self.db.execute("ROLLBACK")
                raise
            self.db.execute("COMMIT")
            self.bytes -= sum(len(batch.body) for batch in batches)
            self.items -= sum(batch.items for batch in batches)

    def adopt(self) -> int:
        """Move batches from ended processes' files to this file. Return the number of moved records."""
        adopted = 0
        for slot in range(_SLOTS):
            db = self._opened(slot) if slot != self._slot and Path(self._directory, f"outbox-{slot}.db").exists() else None
            if db is None:
                continue
            with suppress(sqlite3.DatabaseError), closing(db):
                rows = db.execute("SELECT signal, items, at, body, number FROM batches ORDER BY number").fetchall()
                taken = [row for row in rows if self.put(SpooledBatch(*row))]  # added here before they are removed there
                adopted += sum(row[1] for row in taken)
                db.executemany("DELETE FROM batches WHERE number = ?", [(row[4],) for row in taken])
        return adopted

    def _opened(self, slot: int) -> sqlite3.Connection | None:
        """Open and lock a file. Return None if the file is in use by another process or unreadable (logged once)."""
        path = Path(self._directory, f"outbox-{slot}.db")
        try:
            return open_file(path, SCHEMA, exclusive=True)
        except sqlite3.DatabaseError as error:
            if is_busy(error):
                return None
            if isinstance(error, sqlite3.OperationalError):
                raise
            if path not in self._refused:
                self._refused.add(path)
                _log.warning("outlets.otlp.spool: %s. The batches in this file aren't sent", error)
            return None

    def close(self) -> None:
        with self._lock:
            self.db.close()


class Spool:
    """Storage in the configured file. Without a file, or if the file fails, batches wait in memory."""

    def __init__(
        self, memory: int, open_file: Callable[[], SpoolFile] | None, failed: Callable[[str], None], found: Callable[[int], None]
    ) -> None:
        self._memory = SpoolMemory(memory)
        self._open_file = open_file
        self._failed = failed
        self._found = found
        self._file: SpoolFile | None = None
        self._opening = threading.Lock()

    @property
    def bytes(self) -> int:
        return self._memory.bytes + (self._file.bytes if self._file is not None else 0)

    @property
    def max_bytes(self) -> int:
        return self._file.max_bytes if self._file is not None else self._memory.max_bytes

    def open(self) -> None:
        """On the first call, open the configured file and queue its leftover batches. Log and count failures."""
        with self._opening:
            opener, self._open_file = self._open_file, None
            if opener is None:
                return
            try:
                file = opener()
                self._found(file.items)
                self._file = file
            except (OSError, sqlite3.Error) as error:
                _log.warning("outlets.otlp.spool: can't open the spool, so scores wait in memory: %s", error)
                self._failed("spool_not_opened")

    def put(self, batch: SpooledBatch, *, must: bool = False) -> bool:
        self.open()
        if self._file is not None:
            try:
                return self._file.put(batch, must=must)
            except sqlite3.Error:  # usually the disk is full, so keep the batch in memory
                self._failed("spool_failed")
        return self._memory.put(batch, must=must)

    @property
    def full(self) -> bool:
        return any(store is not None and store.bytes >= store.max_bytes for store in (self._memory, self._file))

    def adopt(self) -> bool:
        """Move batches from ended processes' files to the open file. If no file is open, return False."""
        if self._file is None:
            return False
        try:
            self._found(self._file.adopt())
        except (OSError, sqlite3.Error):
            self._failed("spool_failed")
        return True

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[SpooledBatch]:
        """Return a signal's oldest batches. Batches in memory come first, because a crash would lose these batches."""
        found = self._memory.first(signal, most, max_bytes)
        if not found and self._file is not None:
            try:
                return self._file.first(signal, most, max_bytes)
            except sqlite3.Error:
                self._give_up_file()
        return found

    def remove(self, batches: Sequence[SpooledBatch]) -> None:
        self._memory.remove([batch for batch in batches if batch.number < 0])
        in_file = [batch for batch in batches if batch.number > 0]
        if self._file is not None and in_file:
            try:
                self._file.remove(in_file)
            except sqlite3.Error:  # with the file still in use, the batches would be sent again and again
                self._give_up_file()

    @property
    def outlives_us(self) -> bool:
        """True if all waiting batches are in a file, from which the next process can send them."""
        return self._file is not None and self._memory.bytes == 0

    def close(self) -> int:
        """Move batches from memory to the file, and close the file. Return the number of records that remain in memory."""
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
        """Close a file that can't be read or written. Another process later sends the file's batches."""
        self._failed("spool_failed")
        file, self._file = self._file, None
        if file is not None:
            file.close()

    def after_fork_in_child(self) -> None:
        if self._file is not None:
            _LEFT_TO_THE_PARENT.append(self._file.db)
