"""The completion script, in a real bash on a terminal: what the tab key makes of what was typed."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from otel_agenteval.cli.main import main

pytest.importorskip("shtab")


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("completion") / "otel-agenteval.bash"
    with file.open("w", encoding="utf-8") as text, contextlib.redirect_stdout(text):
        assert main(["completion", "bash"]) == 0
    return file


def run_as(typed: str, script: Path, folder: Path) -> list[str]:
    """The arguments that the command gets when this is typed into a bash; a tab is the tab key."""
    ours, theirs = pty.openpty()
    shell = subprocess.Popen(
        ["bash", "--norc", "--noprofile", "-i"], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True, cwd=folder,
        env={**os.environ, "INPUTRC": os.devnull, "TERM": "dumb"},
    )  # fmt: skip
    os.close(theirs)
    record = "otel-agenteval() { printf '%s\\n' \"$@\" > ran; }"
    os.write(ours, f"source {script}; {record}\notel-agenteval {typed}\nexit\n".encode())
    try:
        while os.read(ours, 65_536):  # to the end, or bash would wait for room
            pass
    except OSError:  # so a terminal ends whose other side is closed
        pass
    finally:
        os.close(ours)
        shell.wait(120)
    return (folder / "ran").read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize(
    ("typed", "ran"),
    [
        pytest.param(
            "eval tra\t --fo\t jun\t", ["eval", "traces.jsonl", "--format", "junit"], id="a file, an option and its value"
        ),
        pytest.param("explain code_latenc\t", ["explain", "code_latency"], id="the name of a metric"),
        pytest.param("judge p\t --max\t 0.5", ["judge", "probe", "--max-rate", "0.5"], id="a command of a command"),
    ],
)
def test_the_tab_key_completes(typed: str, ran: list[str], script: Path, tmp_path: Path) -> None:
    (tmp_path / "traces.jsonl").touch()
    assert [word.rstrip("/") for word in run_as(typed, script, tmp_path)] == ran


def test_without_its_extra_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion", "bash"]) == 2
    assert "pip install 'otel-agenteval[completion]'" in capsys.readouterr().err
