"""The examples run unchanged, and print their documented output."""

from __future__ import annotations

import json
import os
import runpy
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_agenteval.cli.demo import SCENES
from tests.support.recordings import unpack
from tests.support.servers import program, until
from tests.support.sidecar import Sidecar

Capture = pytest.CaptureFixture[str]
EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *arguments: object, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    env["OTEL_AGENTEVAL_EXIT_TIMEOUT"] = "60s"  # for busy machines
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("one_line_setup.py", ["code_ungrounded_urls 0.0 fail", "code_empty_answer 1.0 pass"]),
        ("custom_metric.py", ["code_answer_is_short 0.0 5 words, 3 are allowed", "attached: True"]),
        ("references.py", ["code_tool_selection 1.0 pass", "code_tool_selection 0.5 fail"]),
        (
            "pydantic_ai_agent.py",
            ["code_tool_success 1.0 pass", "code_turn_error 1.0 pass"],
        ),
        ("langgraph_agent.py", ["code_repeated_tool_calls 0.0 fail", "code_tool_success 1.0 pass", "code_empty_answer 1.0 pass"]),
    ],
)
def test_an_example_shows_what_it_promises(name: str, shown: list[str], tmp_path: Path) -> None:
    done = run(name, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    printed = done.stdout.splitlines()
    assert [line for line in shown if line not in printed] == []
    assert name != "references.py" or sum(line.startswith("code_tool_selection") for line in printed) == 2


def gate(monkeypatch: pytest.MonkeyPatch, *files: object) -> object:
    """Return the exit status of the gate, or its error message."""
    monkeypatch.setattr(sys, "argv", ["gate_recorded.py", *map(str, files)])
    with pytest.raises(SystemExit) as left:
        runpy.run_path(str(EXAMPLES / "gate_recorded.py"), run_name="__main__")
    return left.value.code


def test_the_gate_stops_a_loop_and_names_it(tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    assert gate(monkeypatch, unpack("pydantic_ai-native_v6/s2.jsonl", tmp_path)) == 0
    assert capsys.readouterr() == ("turns: 1, broken rules: 0\n", "")
    assert gate(monkeypatch, unpack("pydantic_ai-native_v6/s13.jsonl", tmp_path)) == 1
    assert "code_repeated_tool_calls" in capsys.readouterr().out


def test_the_gate_fails_without_turns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert "at least one file" in str(gate(monkeypatch))
    assert "nowhere.jsonl: file not found" in str(gate(monkeypatch, "nowhere.jsonl"))
    (tmp_path / "empty.jsonl").write_text("")
    assert gate(monkeypatch, tmp_path / "empty.jsonl") == 1


@pytest.fixture(scope="module")
def sidecar(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Sidecar, Path]]:
    """Run a sidecar, and return the file with its scores."""
    folder = tmp_path_factory.mktemp("sidecar")
    with Sidecar(folder, {"outlets": {"jsonl": str(folder / "scores.jsonl")}}) as running:
        yield running, folder / "scores.jsonl"


def scores_in(file: Path, metric: str, service: str) -> list[float]:
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    return sorted(line["value"] for line in lines if (line["metric"], line["service"]) == (metric, service))


def test_the_agent_behind_a_sidecar_is_scored_there(sidecar: tuple[Sidecar, Path], tmp_path: Path) -> None:
    running, scores = sidecar
    done = run("sidecar_agent.py", "--endpoint", running.http, "--turns", str(len(SCENES)), "--every", "0", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{len(SCENES)} turns sent to {running.http}\n", "")
    until(lambda: len(scores_in(scores, "code_secret_leak", "trains")) == len(SCENES), "every turn is scored")
    assert scores_in(scores, "code_secret_leak", "trains").count(0.0) == 1


def test_the_agent_in_node_is_scored_by_the_sidecar(sidecar: tuple[Sidecar, Path], tmp_path: Path) -> None:
    running, scores = sidecar
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": running.http, "PATH": os.environ["PATH"]}
    command = [program("node-with-otel"), EXAMPLES / "node" / "agent.js"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Trains leave at 06:28 and 08:28.\nTrains leave at 09:15.\n"
    until(lambda: len(scores_in(scores, "code_tool_success", "trains-node")) == 2, "both turns are scored")
    assert scores_in(scores, "code_tool_success", "trains-node") == [0.0, 1.0]
    assert running.metric("agenteval_turns_total", agent="timetable", service_name="trains-node") == 2
