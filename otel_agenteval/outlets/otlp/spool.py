"""What waits to be sent: in memory, or in a file that outlives the process.

A parcel is looked at, sent, and only then removed; one that was sent when the process died is sent again. Receivers tell
scores by their result id.
"""

from __future__ import annotations

import logging
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

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


class Parcel(NamedTuple):
    """An encoded export request; several of one signal, one after the other, are one request too."""

    signal: Signal
    items: int
    """Records or spans in it."""
    at: float
    """When it was made, seconds since the Unix epoch."""
    body: bytes
    number: int = 0
    """What it is removed by."""


class Box(Protocol):
    """A bounded store of parcels. Safe to use from several threads."""

    @property
    def bytes(self) -> int:
        """Bytes that wait."""

    def put(self, parcel: Parcel, *, must: bool = False) -> bool:
        """Add one; False when there is no room for it, unless it ``must`` be kept."""

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[Parcel]:
        """The oldest of a signal, up to so many and so many bytes, at least one; they stay."""

    def remove(self, parcels: Sequence[Parcel]) -> None:
        """They are done with."""

    def items(self) -> int:
        """Records and spans that wait."""

    def close(self) -> None:
        """Release what is held."""


class MemoryBox:
    """Parcels that are lost with the process."""

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.bytes = 0
        self._lock = threading.Lock()
        self._number = 0
        self._waiting: dict[Signal, deque[Parcel]] = {signal: deque() for signal in SIGNALS}

    def put(self, parcel: Parcel, *, must: bool = False) -> bool:
        """Add one; False when there is no room for it, unless it ``must`` be kept."""
        with self._lock:
            if self.bytes + len(parcel.body) > self.max_bytes and not must:
                return False
            self._number += 1
            self.bytes += len(parcel.body)
            self._waiting[parcel.signal].append(parcel._replace(number=self._number))
            return True

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[Parcel]:
        """The oldest of a signal; they stay."""
        found: list[Parcel] = []
        with self._lock:
            for parcel in self._waiting[signal]:
                max_bytes -= len(parcel.body)
                if len(found) == most or (found and max_bytes < 0):
                    break
                found.append(parcel)
        return found

    def remove(self, parcels: Sequence[Parcel]) -> None:
        """They are done with: the oldest, as :meth:`first` gave them."""
        with self._lock:
            for parcel in parcels:
                waiting = self._waiting[parcel.signal]
                if waiting and waiting[0].number == parcel.number:
                    waiting.popleft()
                    self.bytes -= len(parcel.body)

    def items(self) -> int:
        """Records and spans that wait."""
        with self._lock:
            return sum(parcel.items for waiting in self._waiting.values() for parcel in waiting)

    def close(self) -> None:
        """Nothing is held."""


class DiskBox:
    """Parcels in an SQLite file of a folder that processes may share: each takes the first file that nobody holds.

    So whoever starts after a process that died goes on with what that one left; those that run :meth:`adopt` it. The file holds explanations, so it is made
    readable for its owner only.

    Args:
        directory: made when it is missing.
        max_bytes: bound of the parcels in the file.

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
        self._slot, self._db = _first_free(directory)
        row = self._db.execute("SELECT coalesce(sum(length(body)), 0), coalesce(sum(items), 0) FROM batches").fetchone()
        self.bytes: int = row[0]
        self._items: int = row[1]

    def put(self, parcel: Parcel, *, must: bool = False) -> bool:
        """Add one; False when there is no room for it, unless it ``must`` be kept."""
        with self._lock:
            if self.bytes + len(parcel.body) > self.max_bytes and not must:
                return False
            self._db.execute("INSERT INTO batches (signal, items, at, body) VALUES (?, ?, ?, ?)", parcel[:4])
            self.bytes += len(parcel.body)
            self._items += parcel.items
            return True

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[Parcel]:
        """The oldest of a signal; they stay."""
        found: list[Parcel] = []
        with self._lock:
            rows = self._db.execute(
                "SELECT signal, items, at, body, number FROM batches WHERE signal = ? ORDER BY number LIMIT ?", (signal, most)
            )
            for row in rows:
                max_bytes -= len(row[3])
                if found and max_bytes < 0:
                    break
                found.append(Parcel(*row))
        return found

    def remove(self, parcels: Sequence[Parcel]) -> None:
        """They are done with."""
        with self._lock:
            self._db.execute("BEGIN")
            try:
                self._db.executemany("DELETE FROM batches WHERE number = ?", [(parcel.number,) for parcel in parcels])
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")
            self.bytes -= sum(len(parcel.body) for parcel in parcels)
            self._items -= sum(parcel.items for parcel in parcels)

    def adopt(self) -> int:
        """Take over what lies in files that nobody holds, as many processes as there were may never run again; how many items."""
        before = self._adopted
        for slot in range(_SLOTS):
            path = Path(self._directory, f"outbox-{slot}.db")
            if slot == self._slot or not path.exists():
                continue
            with suppress(sqlite3.DatabaseError):  # somebody holds it, or it is damaged
                db = open_file(path, SCHEMA, exclusive=True)
                try:
                    rows = db.execute("SELECT signal, items, at, body, number FROM batches ORDER BY number").fetchall()
                    taken = [row for row in rows if self.put(Parcel(*row))]  # before it is gone there: twice, not never
                    self._adopted += sum(row[1] for row in taken)
                    db.executemany("DELETE FROM batches WHERE number = ?", [(row[4],) for row in taken])
                finally:
                    db.close()
        return self._adopted - before

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


def _first_free(directory: str) -> tuple[int, sqlite3.Connection]:
    """The first file that nobody holds, by its number."""
    for slot in range(_SLOTS):
        path = Path(directory, f"outbox-{slot}.db")
        try:
            return slot, open_file(path, SCHEMA, exclusive=True)
        except sqlite3.OperationalError as error:
            if not is_busy(error):
                raise
        except sqlite3.DatabaseError as error:
            _log.warning("%s cannot be used, and what it holds is not sent: %s", path, error)
    raise OSError(f"{directory}: all {_SLOTS} files are taken")


class Outbox:
    """Parcels in a file where there is one, in memory where there is none or it fails.

    Args:
        memory: bytes that may wait in memory.
        open_disk: opens the file, at the first parcel; None when there is none.
        failed: told, by a word, of what the disk could not do.
        found: told how many records and spans an earlier process left in a file that is ours now.
    """

    def __init__(
        self,
        memory: int,
        open_disk: Callable[[], DiskBox] | None,
        failed: Callable[[str], None],
        found: Callable[[int], None] = lambda items: None,
    ) -> None:
        self._memory = MemoryBox(memory)
        self._open_disk = open_disk
        self._failed = failed
        self._found = found
        self._disk: DiskBox | None = None
        self._opening = threading.Lock()

    @property
    def bytes(self) -> int:
        """Bytes that wait."""
        return self._memory.bytes + (self._disk.bytes if self._disk is not None else 0)

    @property
    def max_bytes(self) -> int:
        """The bound."""
        return self._disk.max_bytes if self._disk is not None else self._memory.max_bytes

    def open(self) -> None:
        """Open the file, if there is to be one: what an earlier process left in it waits from now on."""
        with self._opening:
            if self._open_disk is not None:
                open_disk, self._open_disk = self._open_disk, None
                try:
                    disk = open_disk()
                    self._found(disk.items())
                    self._disk = disk
                except (OSError, sqlite3.Error) as error:
                    _log.warning("no spool, scores wait in memory: %s", error)
                    self._failed("spool_not_opened")

    def put(self, parcel: Parcel, *, must: bool = False) -> bool:
        """Add one; False when there is no room for it, unless it ``must`` be kept."""
        self.open()
        if self._disk is not None:
            try:
                return self._disk.put(parcel, must=must)
            except sqlite3.Error:  # a full disk, as a rule: memory is better than nothing
                self._failed("spool_failed")
        return self._memory.put(parcel, must=must)

    @property
    def full(self) -> bool:
        """Whether the bound of what waits in memory, or of the file, is reached."""
        return self._memory.bytes >= self._memory.max_bytes or (
            self._disk is not None and self._disk.bytes >= self._disk.max_bytes
        )

    def adopt(self) -> bool:
        """Take over what processes left in other files; whether there is such a thing as files here."""
        if self._disk is None:
            return False
        try:
            self._found(self._disk.adopt())
        except (OSError, sqlite3.Error):
            self._failed("spool_failed")
        return True

    def first(self, signal: Signal, most: int, max_bytes: int) -> list[Parcel]:
        """The oldest of a signal; they stay. What is in memory goes first: it is lost first."""
        found = self._memory.first(signal, most, max_bytes)
        if not found and self._disk is not None:
            try:
                return self._disk.first(signal, most, max_bytes)
            except sqlite3.Error:
                self._do_without_disk()
        # numbers of the two do not mix: those in memory are told by being negative
        return [parcel._replace(number=-parcel.number) for parcel in found]

    def remove(self, parcels: Sequence[Parcel]) -> None:
        """They are done with."""
        of_memory = [parcel._replace(number=-parcel.number) for parcel in parcels if parcel.number < 0]
        self._memory.remove(of_memory)
        if self._disk is not None and len(of_memory) < len(parcels):
            try:
                self._disk.remove(parcels)
            except sqlite3.Error:  # else they would be sent again and again
                self._do_without_disk()

    def items(self) -> int:
        """Records and spans that wait."""
        return self._memory.items() + (self._disk.items() if self._disk is not None else 0)

    @property
    def outlives_us(self) -> bool:
        """Whether all that waits is in a file: the next process goes on with it."""
        return self._disk is not None and self._memory.bytes == 0

    def close(self) -> int:
        """Put into the file what is in memory, and close it; how many records and spans are lost with the process."""
        if self._disk is not None:
            for signal in SIGNALS:
                while parcels := self._memory.first(signal, 1, 0):
                    try:
                        if not self._disk.put(parcels[0]):
                            break
                    except sqlite3.Error:
                        break
                    self._memory.remove(parcels)
            self._disk.close()
        return self._memory.items()

    def _do_without_disk(self) -> None:
        """It cannot be read, or nothing be taken out: what it holds waits for the next process."""
        self._failed("spool_failed")
        disk, self._disk = self._disk, None
        if disk is not None:
            disk.close()

    def after_fork_in_child(self) -> None:
        """What waits is the parent's."""
        if self._disk is not None:
            self._disk.leave_to_the_parent()
