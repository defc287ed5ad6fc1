"""Files that earlier versions wrote (``tests/data/stores``, made by ``scripts/make_stored_files.py``), unpacked for one test."""

from __future__ import annotations

import json
import sqlite3
import tarfile
import time
from contextlib import closing
from pathlib import Path

from otel_agenteval.judging.models import VerdictCache
from otel_agenteval.judging.queues import Counter, Job, SqliteQueue, SqliteSpendBook
from tests.support.clock import FakeClock
from tests.support.process import ROOT

ARCHIVES = sorted((ROOT / "tests" / "data" / "stores").glob("*.tar.xz"))


class StoredFiles:
    """One archive with six turns and three requests in a journal, and a new queue and cache.

    Args:
        archive: what to unpack.
        folder: where to.
    """

    def __init__(self, archive: Path, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        with tarfile.open(archive) as packed:
            packed.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))
        self.folder = folder
        self.store, self.queue, self.cache = (str(folder / name) for name in ("scores.db", "queue.db", "verdicts.db"))
        self.spool, self.journal = str(folder / "spool"), folder / "journal"
        for path in (self.queue, self.cache):
            for suffix in ("", "-wal"):
                Path(path + suffix).unlink(missing_ok=True)
        _write_judging_files(self.queue, self.cache)
        self.made_at: float = json.loads((folder / "made.json").read_text())["at"]

    def clock(self, later: float = 0.0) -> FakeClock:
        """A clock that stands at the time at which the files were made, or some seconds later."""
        return FakeClock(time_ns=int((self.made_at + later) * 1e9))

    def make_recent(self) -> None:
        """Date the turns of the store, so that none of them is too old to be kept by the system's clock."""
        with closing(sqlite3.connect(self.store, isolation_level=None)) as db:
            db.execute("UPDATE turns SET stored_at = ?", (time.time(),))


def _write_judging_files(queue: str, cache: str) -> None:
    """Write a job, spending and a reply, because judging has one schema version only."""
    jobs, book, replies = SqliteQueue(queue, 1 << 30), SqliteSpendBook(queue), VerdictCache(cache, 86_400.0, 1 << 30)
    jobs.put_many([Job("a", b"{}")])
    book.add([(Counter("", "calls", 3600.0), 1.0)], 0.0)
    replies["a"] = "{}"
    for file in (jobs, book, replies):
        file.close()
    for path in (queue, cache):
        Path(f"{path}-wal").touch()  # copied with the file by some tests
