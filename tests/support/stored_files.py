"""Files that earlier versions wrote (``tests/data/stores``, made by ``scripts/make_stored_files.py``), unpacked for one test."""

from __future__ import annotations

import base64
import json
import sqlite3
import tarfile
import time
from contextlib import closing
from pathlib import Path
from typing import Any

from tests.support.clock import FakeClock
from tests.support.process import ROOT

ARCHIVES = sorted((ROOT / "tests" / "data" / "stores").glob("*.tar.xz"))


class StoredFiles:
    """One archive: six turns, four jobs of which one is claimed, two replies, what they cost, and three requests in a journal.

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
        self.made_at: float = json.loads((folder / "made.json").read_text())["at"]

    def clock(self, later: float = 0.0) -> FakeClock:
        """A clock that stands at the time at which the files were made, or some seconds later."""
        return FakeClock(time_ns=int((self.made_at + later) * 1e9))

    def make_recent(self) -> None:
        """Date the turns of the store, so that none of them is too old to be kept by the system's clock."""
        with closing(sqlite3.connect(self.store, isolation_level=None)) as db:
            db.execute("UPDATE turns SET stored_at = ?", (time.time(),))

    def restore_redis(self, client: Any) -> None:
        """Put the keys of Redis into a server."""
        for key, content in json.loads((self.folder / "redis.json").read_text())["keys"].items():
            client.restore(key, 0, base64.b64decode(content))
