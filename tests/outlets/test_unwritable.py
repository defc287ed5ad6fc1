"""An unwritable path is logged at the start, in a process and in the sidecar. The check creates no file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.files import fault_of_file, fault_of_folder
from otel_agenteval.engine.builder import engine_from
from tests.support.service import Sidecar, turn_of


def judged(**options: Any) -> dict[str, Any]:
    return {"judge": {"base_url": "http://127.0.0.1:1/v1", "model": "m", **options}, "metrics": ["llm_relevance"]}


PLACES: dict[str, Callable[[str], dict[str, Any]]] = {
    "outlets.jsonl": lambda path: {"outlets": {"jsonl": path}},
    "outlets.otlp_file": lambda path: {"outlets": {"otlp_file": path}},
    "outlets.store.path": lambda path: {"outlets": {"store": path}},
    "outlets.otlp.spool.directory": lambda path: {
        "outlets": {"otlp": {"endpoint": "http://127.0.0.1:1", "spool": {"directory": path}}}
    },
    "judge.queue.path": lambda path: judged(queue={"backend": "sqlite", "path": path}),
    "judge.cache.path": lambda path: judged(cache={"path": path}),
}


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if "until this is fixed" in record.getMessage()]


@pytest.mark.parametrize("place", PLACES)
def test_each_path_is_logged_once_with_its_place_in_the_configuration(
    place: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "file").touch()
    for name in ("new", "file/below"):
        engine_from(load_config(PLACES[place](str(tmp_path / name)))).shutdown()
    [said] = warnings(caplog)
    assert place in said
    assert str(tmp_path / "file") in said


def test_looking_makes_nothing(tmp_path: Path) -> None:
    assert fault_of_file(tmp_path / "a") is None
    assert fault_of_folder(tmp_path / "b" / "c") is None
    assert list(tmp_path.iterdir()) == []


def test_what_is_wrong_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "file"
    file.touch()
    assert "is a folder" in str(fault_of_file(tmp_path))
    assert str(tmp_path / "no") in str(fault_of_file(tmp_path / "no" / "x"))
    assert "isn't a folder" in str(fault_of_folder(file / "x"))
    assert fault_of_file("/dev/null") is None
    full = os.statvfs_result((4096, 4096, 1000, 0, 0, 100, 100, 100, 0, 255))
    monkeypatch.setattr(os, "statvfs", lambda path: full)
    assert "full" in str(fault_of_file(file))
    assert "full" in str(fault_of_folder(tmp_path / "new"))
    monkeypatch.setattr(os, "access", lambda path, mode: False)  # tests may run as root, who may everything
    assert fault_of_file(file) == f"{file} isn't writable"
    assert fault_of_file(tmp_path / "new") == f"folder {tmp_path} isn't writable"


def test_the_sidecar_says_it_and_takes_spans_all_the_same(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with Sidecar({"outlets": {"jsonl": str(tmp_path / "nowhere" / "scores")}}) as sidecar:
        [said] = warnings(caplog)
        assert said.startswith(f"outlets.jsonl: folder {tmp_path / 'nowhere'} ")
        assert sidecar.get("/readyz")[0] == 200
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
