"""The script for the fault table in the documentation runs and counts correctly."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from functools import partial

import pytest

from scripts import fault_matrix
from tests.support.hangs import Hang
from tests.support.process import ROOT, environment


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "refuses"),
    [
        ("SIGKILL during a burst", True),
        ("sidecar stopped while it replays its journal", False),
        ("sidecar killed, then started with 2 processes instead of 1", True),
        ("sidecar killed, then started with 2 processes instead of 3", True),
        ("parent of 2 processes killed during a burst", False),
        ("journal's disk is full for a while", True),
        ("journal's disk is full before the first turn", True),
        ("sidecar restarts on a full journal disk", True),
        ("store's database is read-only for a while", False),
        ("store rejects some other turns", False),
        ("judge queue's file is locked for 25 seconds", False),
        ("Collector in front of the sidecar restarts", False),
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


@pytest.mark.slow
@pytest.mark.parametrize(
    ("row", "cells"),
    [
        ("hang: pipe for JSON lines is silent", ("200", "200")),
        ("reload: whole file emptied", ("401", "401", "401", "401", "no")),
        ("memory: unread responses from the metrics port", ("100",)),
    ],
)
def test_row_of_another_table_holds(row: str, cells: Sequence[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert fault_matrix.main(["--quick", "--only", row]) == 0
    assert capsys.readouterr().out.startswith(f"| {row} | {' | '.join(cells)} |")


@pytest.mark.parametrize("well", [True, False])
def test_row_of_another_table_fails_unless_everything_holds(monkeypatch: pytest.MonkeyPatch, well: bool) -> None:
    hang = Hang(10, 10, 10, 10, 1.0, well, 1.0, 0)
    monkeypatch.setattr(fault_matrix, "hang", lambda *_: hang)
    assert fault_matrix.main(["--only", "hang: judge server is silent"]) == (0 if well else 1)


def test_rows_that_are_not_played_keep_their_figures() -> None:
    page = fault_matrix.PAGE.read_text(encoding="utf-8")
    first, other = "| system clock jumps back an hour | 1 |\n", "| memory: idle connections to the gRPC port | 2 |\n"
    changed = fault_matrix.written(
        page, {"system clock jumps back an hour": first, "memory: idle connections to the gRPC port": other}
    )
    before, after = page.splitlines(keepends=True), changed.splitlines(keepends=True)
    assert [line for line in after if line not in before] == [first, other]
    assert len(after) == len(before)
    assert (
        fault_matrix.written(changed, {"system clock jumps back an hour": "| system clock jumps back an hour | not run: why |\n"})
        == changed
    )


def test_pages_rows_are_those_of_the_script() -> None:
    assert set(fault_matrix.ROWS) <= set(fault_matrix.lines_of(fault_matrix.PAGE.read_text(encoding="utf-8")))


@pytest.mark.parametrize(("lost", "silence"), [(1, 0.1), (0, 6.0)])
def test_row_that_loses_turns_or_health_fails(monkeypatch: pytest.MonkeyPatch, lost: int, silence: float) -> None:
    found = fault_matrix.Outcome(10, 10, 0, 10, 10 - lost, lost, 50, silence)
    monkeypatch.setitem(
        fault_matrix.ROWS, "system clock jumps back an hour", partial(fault_matrix.play_fault, lambda bench: found)
    )
    assert fault_matrix.main(["--only", "system clock jumps back an hour"]) == 1
