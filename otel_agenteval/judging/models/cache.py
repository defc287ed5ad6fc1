"""Cache of judge replies in an SQLite file.

The key is a hash of the judge call. Calls that only number redaction markers such as ``[EMAIL_1]`` differently have the same key.
Old replies are deleted, and the total size is limited. In an audit (:func:`bypassing_cache`), the new reply replaces the old reply.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, MutableMapping
from contextlib import AbstractContextManager
from contextvars import ContextVar
from typing import Any

from ...core.clock import SYSTEM_CLOCK, Clock
from ...core.contexts import setting
from ...core.sqlite import Schema, SqliteFile

_OVERHEAD = 128
_MARKER = re.compile(r"\[(EMAIL|PHONE|CARD|SSN|SECRET)_(\d+)\]")
_TABLES = """
CREATE TABLE verdicts (
    number INTEGER PRIMARY KEY AUTOINCREMENT, key TEXT NOT NULL UNIQUE, reply BLOB NOT NULL, size INTEGER NOT NULL, at REAL NOT NULL
);
CREATE INDEX by_age ON verdicts (at);
CREATE TABLE total (bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TRIGGER kept AFTER INSERT ON verdicts BEGIN UPDATE total SET bytes = bytes + new.size; END;
CREATE TRIGGER gone AFTER DELETE ON verdicts BEGIN UPDATE total SET bytes = bytes - old.size; END;
"""
SCHEMA = Schema("verdict cache", 0x4F414543, _TABLES)  # "OAEC"
_BYPASSED: ContextVar[bool] = ContextVar("otel_agenteval_cache_bypassed", default=False)


def bypassing_cache() -> AbstractContextManager[None]:
    """Don't read the caches of judges that the current thread or task calls within the block. New replies are still cached."""
    return setting(_BYPASSED, True)


def is_cache_bypassed() -> bool:
    return _BYPASSED.get()


def without_marker_numbers(text: str) -> str:
    seen: dict[str, dict[str, int]] = {}

    def renumbered(found: re.Match[str]) -> str:
        numbers = seen.setdefault(found[1], {})
        return f"[{found[1]}_{numbers.setdefault(found[2], len(numbers) + 1)}]"

    return _MARKER.sub(renumbered, text)


class VerdictCache(MutableMapping[str, str]):
    """Mapping from a judge call's hash to the judge's reply, stored in an SQLite file that processes can share.

    If the file can't be read, each lookup is a cache miss. ``faults`` counts failed reads and writes. Replies expire after ``ttl``
    seconds. If all replies together exceed ``max_bytes``, the oldest replies are deleted.
    """

    def __init__(self, path: str, ttl: float, max_bytes: int, clock: Clock = SYSTEM_CLOCK) -> None:
        self.faults = 0
        self._file = SqliteFile(path, SCHEMA)
        self._ttl = ttl
        self._max_bytes = max_bytes
        self._clock = clock

    def __getitem__(self, key: str) -> str:
        rows = self._execute("SELECT reply FROM verdicts WHERE key = ? AND at > ?", (key, self._now() - self._ttl))
        if not rows:
            raise KeyError(key)
        try:
            reply: str = rows[0][0].decode()
            return reply
        except UnicodeDecodeError:
            self.faults += 1
            raise KeyError(key) from None

    def __setitem__(self, key: str, reply: str) -> None:
        kept, now = reply.encode("utf-8", "replace"), self._now()
        size = len(kept) + _OVERHEAD
        if size > self._max_bytes:
            return
        try:
            with self._file.transaction() as db:
                db.execute("DELETE FROM verdicts WHERE key = ? OR at <= ?", (key, now - self._ttl))
                db.execute("INSERT INTO verdicts (key, reply, size, at) VALUES (?, ?, ?, ?)", (key, kept, size, now))
                over = db.execute("SELECT bytes FROM total").fetchone()[0] - self._max_bytes
                while over > 0:
                    number, freed = db.execute("SELECT number, size FROM verdicts ORDER BY number LIMIT 1").fetchone()
                    db.execute("DELETE FROM verdicts WHERE number = ?", (number,))
                    over -= freed
        except (sqlite3.Error, OSError):
            self.faults += 1

    def __delitem__(self, key: str) -> None:
        self._execute("DELETE FROM verdicts WHERE key = ?", (key,))

    def __iter__(self) -> Iterator[str]:
        return iter([row[0] for row in self._execute("SELECT key FROM verdicts WHERE at > ?", (self._now() - self._ttl,))])

    def __len__(self) -> int:
        rows = self._execute("SELECT count(*) FROM verdicts WHERE at > ?", (self._now() - self._ttl,))
        return int(rows[0][0]) if rows else 0

    @property
    def bytes(self) -> int:
        rows = self._execute("SELECT bytes FROM total", ())
        return int(rows[0][0]) if rows else 0

    def clear(self) -> None:
        self._execute("DELETE FROM verdicts", ())

    def close(self) -> None:
        self._file.close()

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9

    def _execute(self, statement: str, values: tuple[object, ...]) -> list[tuple[Any, ...]]:
        try:
            with self._file.connection() as db:
                return db.execute(statement, values).fetchall()
        except (sqlite3.Error, OSError):
            self.faults += 1
            return []
