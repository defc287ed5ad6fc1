"""Situations of public reports on running beside other programs. Each docstring names the reports. See docs/internals/public-reports.md."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from otel_agenteval.cli.main import main
from tests.support.otlp_json import write_lines
from tests.support.service import turn_of


def recorded(folder: Path, turns: int = 1) -> Path:
    """A file with recorded turns."""
    requests = [ExportTraceServiceRequest.FromString(turn_of(number)) for number in range(1, turns + 1)]
    return write_lines(requests, folder / "traces.jsonl")


# --- command line


@pytest.mark.parametrize("closed", [("stdout",), ("stderr",), ("stdin", "stdout", "stderr")], ids="+".join)
def test_commands_run_without_standard_streams(closed: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """nab 990, crudini 82: a service manager starts the command with closed streams, which are None in Python."""
    file, out = str(recorded(tmp_path)), tmp_path / "out.jsonl"
    for name in closed:
        monkeypatch.setattr(sys, name, None)
    assert main(["eval", file, "--format", "jsonl", "--out", str(out)]) == 0
    assert out.read_text()
    assert main(["metrics"]) == 0
    assert main(["turns", str(tmp_path / "missing")]) == 2
    for name in closed:
        getattr(sys, name).close()


def test_closed_standard_input_is_empty(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Sibling of nab 990: ``turns -`` has nothing to read."""
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["turns", "-"]) == 2
    assert "no spans found" in capsys.readouterr().err
    sys.stdin.close()


@pytest.mark.parametrize(
    "arguments", [("metrics",), ("turns", "FILE"), ("eval", "FILE", "--format", "jsonl", "--out", "/dev/full")]
)
def test_full_disk_is_one_line(
    arguments: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """vcztools 141, GaNDLF 581: no space is left for the output."""
    file = str(recorded(tmp_path))
    with Path("/dev/full").open("w", encoding="utf-8") as full:
        monkeypatch.setattr(sys, "stdout", full)
        code = main([file if one == "FILE" else one for one in arguments])
    assert (code, capsys.readouterr().err) == (2, "otel-agenteval: can't write the output: No space left on device\n")
