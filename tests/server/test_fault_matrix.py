"""The script behind the table of faults in the documentation: it runs, and it counts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from scripts import fault_matrix
from tests.support.process import ROOT, environment


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "refuses"),
    [
        ("SIGKILL during a burst", True),
        ("stop during a replay", False),
        ("killed, and started with 2 processes instead of 1", True),
        ("killed, and started with 2 processes instead of 3", True),
        ("parent of 2 processes killed during a burst", False),
        ("journal: disk full for a while", True),
        ("store: database read-only for a while", False),
        ("store: rows that it cannot hold", False),
        ("judge queue's file locked for 25 seconds, judged scores", False),
        ("Collector in front restarted", False),
    ],
)
def test_a_row_brings_its_fault_about_and_nothing_that_was_acknowledged_is_lost(row: str, refuses: bool) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "fault_matrix.py"), "--quick", "--only", row]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=600, check=False)
    [line] = done.stdout.splitlines() or [done.stderr]
    if "not run" in line:
        pytest.skip(line)
    name, sent, accepted, refused, scored, delivered, lost, *_ = (cell.strip() for cell in line.strip("|").split("|"))
    assert name == row
    assert sent == accepted == scored == delivered != "0", done.stdout
    assert lost == "0"
    assert int(refused) > 0 or not refuses, "the fault was not felt"


@pytest.mark.parametrize(("lost", "silence"), [(1, 0.1), (0, 6.0)])
def test_row_that_loses_turns_or_health_fails(monkeypatch: pytest.MonkeyPatch, lost: int, silence: float) -> None:
    found = fault_matrix.Outcome(10, 10, 0, 10, 10 - lost, lost, 50, silence)
    monkeypatch.setitem(fault_matrix.ROWS, "clock jumps back an hour", (lambda bench: found, True))  # type: ignore[arg-type]
    assert fault_matrix.main(["--only", "clock jumps back an hour"]) == 1
