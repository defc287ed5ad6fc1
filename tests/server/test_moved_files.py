"""If another program renames or deletes an output file, the sidecar creates a new file and logs it."""

from __future__ import annotations

import json
import shutil
import sqlite3
from pathlib import Path

import pytest

from tests.server.test_watchdog import post
from tests.support.servers import until
from tests.support.service import Sidecar as Service
from tests.support.service import turn_of
from tests.support.sidecar import Sidecar


def stored_in(file: Path) -> int:
    with sqlite3.connect(file) as db:
        return int(db.execute("SELECT count(DISTINCT turn_id) FROM scores").fetchone()[0])


def lines_in(file: Path) -> int:
    return len({json.loads(line)["turn_id"] for line in file.read_text().splitlines()})


@pytest.mark.parametrize("how", ["renamed", "removed", "replaced"])
def test_files_that_are_moved_are_made_again(how: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    lines, store = tmp_path / "scores.jsonl", tmp_path / "scores.db"
    with Service({"outlets": {"jsonl": str(lines), "store": str(store)}}) as service:
        service.post("/v1/traces", turn_of(1))
        service.turns()
        for file in (lines, store):
            if how == "removed":
                file.unlink()
            else:
                file.rename(f"{file}.1")
            if how == "replaced":
                file.touch()
        service.post("/v1/traces", turn_of(2))
        service.turns()
    assert (lines_in(lines), stored_in(store)) == (1, 1)
    if how != "removed":
        assert lines_in(Path(f"{lines}.1")) == 1
    assert any("scores.db was moved, removed" in message for message in caplog.messages)


def test_journal_whose_folder_is_removed_keeps_later_requests(tmp_path: Path) -> None:
    lines = tmp_path / "scores.jsonl"
    with Sidecar(tmp_path, {"turn": {"decision_delay": "1h"}, "outlets": {"jsonl": str(lines)}}, journal=True) as sidecar:
        post(sidecar, turn_of(1))
        shutil.rmtree(tmp_path / "journal")
        post(sidecar, turn_of(2))
        sidecar.kill()
        assert "the journal continues in a new file" in sidecar.text()
        sidecar.start()
        until(lambda: sidecar.metric("agenteval_turns_open") == 1, "the second request is replayed")
        sidecar.stop()
    assert lines_in(lines) == 1
