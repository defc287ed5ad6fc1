"""A path that cannot be written is logged at the start, in a process and in the sidecar, and the check creates nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.sqlite import open_file
from otel_agenteval.core.writable import fault_of_file, fault_of_folder
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.outlets.store.sqlite import SCHEMA
from tests.support.rig import Rig
from tests.support.service import Sidecar, turn_of

PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "outlets.jsonl": lambda path: {"outlets": {"jsonl": path}},
    "outlets.store.path": lambda path: {"outlets": {"store": path}},
    "outlets.otlp.spool.directory": lambda path: {
        "outlets": {"otlp": {"endpoint": "http://127.0.0.1:1", "spool": {"directory": path}}}
    },
    "judge.queue.path": lambda path: {
        "judge": {"base_url": "http://127.0.0.1:1/v1", "model": "m", "queue": {"backend": "sqlite", "path": path}},
        "metrics": [{"llm_relevance": {}}],
    },
    "judge.cache.path": lambda path: {
        "judge": {"base_url": "http://127.0.0.1:1/v1", "model": "m", "cache": {"path": path}},
        "metrics": [{"llm_relevance": {}}],
    },
}


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "until this is fixed" in record.getMessage()]


@pytest.mark.parametrize("place", PLACES)
def test_each_path_is_logged_once_with_its_place_in_the_configuration(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    engine = engine_from(load_config(PLACES[place](str(tmp_path / "file" / "below"))))
    engine.shutdown()
    [said] = warnings(caplog)
    assert place in said
    assert str(tmp_path / "file") in said


@pytest.mark.parametrize("place", PLACES)
def test_nothing_is_said_of_a_path_that_can_be_written(place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    engine = engine_from(load_config(PLACES[place](str(tmp_path / "new"))))
    engine.shutdown()
    assert warnings(caplog) == []


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert fault_of_file(tmp_path / "a") is None
    assert fault_of_folder(tmp_path / "b" / "c") is None
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    assert fault_of_file(tmp_path) == f"{tmp_path} is a folder, not a file"
    assert fault_of_file(tmp_path / "no" / "x") == f"folder {tmp_path / 'no'} doesn't exist"
    assert fault_of_folder(tmp_path / "file" / "x") == f"{tmp_path / 'file'} isn't a folder"
    assert fault_of_file("/dev/null") is None
    full = os.statvfs_result((4096, 4096, 1000, 0, 0, 100, 100, 100, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    assert fault_of_file(tmp_path / "file") == f"the disk of {tmp_path / 'file'} is full"
    assert fault_of_folder(tmp_path / "new") == f"the disk of {tmp_path} is full"
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # tests may run as root, who may everything
    assert fault_of_file(tmp_path / "file") == f"{tmp_path / 'file'} isn't writable"
    assert fault_of_file(tmp_path / "new") == f"folder {tmp_path} isn't writable"


def test_the_sidecar_says_it_and_takes_spans_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Sidecar({"outlets": {"jsonl": str(tmp_path / "nowhere" / "scores")}}) as sidecar:
        [said] = warnings(caplog)
        assert said.startswith(f"outlets.jsonl: folder {tmp_path / 'nowhere'} ")
        assert sidecar.get("/readyz")[0] == 200
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200


def test_a_store_that_a_later_version_wrote_is_logged_before_the_first_turn(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "scores.db"
    with closing(open_file(path, SCHEMA)) as db:
        db.execute(f"PRAGMA user_version = {SCHEMA.version + 1}")
    with Rig({"outlets": {"store": str(path)}}):
        [said] = warnings(caplog)
    assert said.startswith("outlets.store.path: ")


def test_an_application_hears_it_before_its_first_turn(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Rig({"outlets": {"jsonl": str(tmp_path / "nowhere" / "scores")}}):
        assert len(warnings(caplog)) == 1
