"""The examples run as they stand, and show what they say."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from otel_agenteval.cli.demo import SCENES
from tests.support.recordings import unpack
from tests.support.servers import program, until
from tests.support.sidecar import Sidecar

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("one_line_setup.py", ["code_ungrounded_numbers 0.0 info", "code_empty_answer 1.0 pass"]),
        ("custom_metric.py", ["code_answer_is_short 0.0 5 words, 3 are allowed", "attached: True"]),
        ("references.py", ["code_tool_selection 1.0 pass", "code_tool_selection 0.5 fail"]),
        (
            "pydantic_ai_agent.py",
            ["code_ungrounded_numbers 0.6666666666666667 info", "code_tool_success 1.0 pass", "code_turn_error 1.0 pass"],
        ),
        ("langgraph_agent.py", ["code_repeated_tool_calls 0.0 fail", "code_tool_success 1.0 pass", "code_empty_answer 1.0 pass"]),
    ],
)
def test_an_example_shows_what_it_promises(name: str, shown: list[str], tmp_path: Path) -> None:
    done = run(name, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in shown if line not in done.stdout.splitlines()] == []


def test_a_reference_holds_only_for_the_turns_inside(tmp_path: Path) -> None:
    printed = run("references.py", folder=tmp_path).stdout
    assert printed.count("code_tool_selection") == printed.count("code_tool_call_f1") == 2


def test_the_gate_lets_good_recordings_through(tmp_path: Path) -> None:
    done = run("gate_recorded.py", str(unpack("pydantic_ai-native_v6/s2.jsonl", tmp_path)), folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 turns, 0 rules broken\n", "")


def test_the_gate_stops_a_loop_and_names_it(tmp_path: Path) -> None:
    done = run("gate_recorded.py", str(unpack("pydantic_ai-native_v6/s13.jsonl", tmp_path)), folder=tmp_path)
    assert done.returncode == 1
    assert "code_repeated_tool_calls" in done.stdout


def test_the_gate_says_that_a_file_is_missing(tmp_path: Path) -> None:
    done = run("gate_recorded.py", "nowhere.jsonl", folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "gate_recorded: nowhere.jsonl: file not found\n")


def test_the_gate_fails_without_turns(tmp_path: Path) -> None:
    assert run("gate_recorded.py", folder=tmp_path).returncode == 1
    (tmp_path / "empty.jsonl").write_text("")
    assert run("gate_recorded.py", "empty.jsonl", folder=tmp_path).returncode == 1


@pytest.fixture
def sidecar(tmp_path: Path) -> Iterator[Sidecar]:
    with Sidecar(tmp_path, {"outlets": {"jsonl": str(tmp_path / "scores.jsonl")}}) as running:
        yield running


def scores_of(folder: Path, metric: str) -> list[float]:
    file = folder / "scores.jsonl"
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()] if file.exists() else []
    return sorted(line["value"] for line in lines if line["metric"] == metric)


def test_the_agent_behind_a_sidecar_is_scored_there(sidecar: Sidecar, tmp_path: Path) -> None:
    done = run("sidecar_agent.py", "--endpoint", sidecar.http, "--turns", str(len(SCENES)), "--every", "0", folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{len(SCENES)} turns sent to {sidecar.http}\n", "")
    until(lambda: len(scores_of(tmp_path, "code_secret_leak")) == len(SCENES), "every turn is scored")
    assert scores_of(tmp_path, "code_secret_leak").count(0.0) == 1


def test_the_agent_in_node_is_scored_by_the_sidecar(sidecar: Sidecar, tmp_path: Path) -> None:
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": sidecar.http, "PATH": os.environ["PATH"]}
    command = [program("node-with-otel"), EXAMPLES / "node" / "agent.js"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "Trains leave at 06:28 and 08:28.\nTrains leave at 09:15.\n"
    until(lambda: len(scores_of(tmp_path, "code_tool_success")) == 2, "both turns are scored")
    assert scores_of(tmp_path, "code_tool_success") == [0.0, 1.0]
    assert sidecar.metric("agenteval_turns_total", agent="timetable", service_name="trains-node") == 2


def test_the_node_example_names_every_package_that_it_needs() -> None:
    needed = set(re.findall(r'require\("([^"]+)"\)', (EXAMPLES / "node" / "agent.js").read_text(encoding="utf-8")))
    package = json.loads((EXAMPLES / "node" / "package.json").read_text(encoding="utf-8"))
    assert package["dependencies"].keys() == needed


def test_every_example_is_run_here_and_listed() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    examples = [*EXAMPLES.rglob("*.py"), *EXAMPLES.glob("*/*.js")]
    assert len(examples) >= 8
    assert [path.name for path in examples if f'"{path.name}"' not in text] == []
    assert [path.name for path in examples if f"({path.relative_to(EXAMPLES)})" not in listed] == []
