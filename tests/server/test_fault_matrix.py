"""The script behind the table of faults in the documentation: it runs, it counts, and the table is whole."""

from __future__ import annotations

import re
import subprocess
import sys

import pytest

from scripts import fault_matrix
from tests.support.process import ROOT, environment


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "refuses"),
    [
        ("SIGKILL during a burst", True), ("journal: disk full for a while", True), ("killed, and started with 2 processes instead of 1", True),
        ("parent of 2 processes killed during a burst", False), ("store: database read-only for a while", False),
        ("store: rows that it cannot hold", False), ("judge queue's file locked for 25 seconds, judged scores", False),
    ],
)  # fmt: skip
def test_a_row_brings_its_fault_about_and_nothing_that_was_acknowledged_is_lost(row: str, refuses: bool) -> None:
    command = [sys.executable, str(ROOT / "scripts" / "fault_matrix.py"), "--quick", "--only", row]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=180, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    [line] = done.stdout.splitlines()
    if "not run" in line:
        pytest.skip(line)
    name, sent, accepted, refused, scored, delivered, lost, memory, silence = (
        cell.strip() for cell in line.strip("|").split("|")
    )
    assert name == row
    assert (sent, accepted, scored, delivered, lost) == ("200", "200", "200", "200", "0")
    assert int(refused) > 0 or not refuses, "the fault was not felt"
    assert int(memory.removesuffix(" MB")) > 30
    assert 0 < float(silence.removesuffix(" s")) < fault_matrix.SILENT_AT_MOST


def test_the_table_in_the_documentation_has_every_row_and_says_that_nothing_is_lost() -> None:
    text = fault_matrix.PAGE.read_text(encoding="utf-8")
    table = text.partition(fault_matrix.BEGIN)[2].partition(fault_matrix.END)[0]
    assert table.startswith(fault_matrix.HEAD)
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.removeprefix(fault_matrix.HEAD).splitlines()]
    assert [line[0] for line in lines] == list(fault_matrix.ROWS)
    promised = {name for name, (_, keeps) in fault_matrix.ROWS.items() if keeps}
    assert {line[0] for line in lines if line[6] == "0"} >= promised
    assert all(re.fullmatch(r"\d+ MB", line[7]) for line in lines)
    assert all(float(line[8].removesuffix(" s")) < fault_matrix.SILENT_AT_MOST for line in lines)


@pytest.mark.parametrize(("lost", "silence"), [(1, 0.1), (0, 6.0)])
def test_row_that_loses_turns_or_health_fails(monkeypatch: pytest.MonkeyPatch, lost: int, silence: float) -> None:
    found = fault_matrix.Outcome(10, 10, 0, 10, 10 - lost, lost, 50, silence)
    monkeypatch.setitem(fault_matrix.ROWS, "clock jumps back an hour", (lambda bench: found, True))  # type: ignore[arg-type]
    assert fault_matrix.main(["--only", "clock jumps back an hour"]) == 1
