"""The examples run as they stand, and show what they say."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.recordings import unpack

EXAMPLES = Path(__file__).parent.parent / "examples"


def run(name: str, *arguments: str, folder: Path) -> subprocess.CompletedProcess[str]:
    env = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    command = [sys.executable, "-W", "error", str(EXAMPLES / name), *arguments]
    return subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("one_line_setup.py", ["code_ungrounded_numbers 0.0 fail", "code_empty_answer 1.0 pass"]),
        ("custom_metric.py", ["code_answer_is_short 0.0 5 words, 3 are allowed", "attached: True"]),
        ("references.py", ["code_tool_selection 1.0 pass", "code_tool_selection 0.5 fail"]),
    ],
)
def test_an_example_shows_what_it_promises(name: str, shown: list[str], tmp_path: Path) -> None:
    done = run(name, folder=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert [line for line in shown if line not in done.stdout.splitlines()] == []


def test_a_reference_holds_only_for_the_turns_inside(tmp_path: Path) -> None:
    assert len(run("references.py", folder=tmp_path).stdout.splitlines()) == 2


def test_the_gate_lets_good_recordings_through(tmp_path: Path) -> None:
    done = run("gate_recorded.py", str(unpack("pydantic_ai-native_v6/s2.jsonl", tmp_path)), folder=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "1 turns, 0 rules broken\n", "")


def test_the_gate_stops_a_loop_and_names_it(tmp_path: Path) -> None:
    done = run("gate_recorded.py", str(unpack("pydantic_ai-native_v6/s13.jsonl", tmp_path)), folder=tmp_path)
    assert done.returncode == 1
    assert "code_repeated_tool_calls" in done.stdout


def test_the_gate_says_that_a_file_is_missing(tmp_path: Path) -> None:
    done = run("gate_recorded.py", "nowhere.jsonl", folder=tmp_path)
    assert (done.returncode, done.stderr) == (1, "gate_recorded: nowhere.jsonl: cannot be read: No such file or directory\n")


def test_every_example_is_run_here() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    assert [path.name for path in EXAMPLES.glob("*.py") if f'"{path.name}"' not in text] == []
