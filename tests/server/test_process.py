"""The real process: signals, journal, and ``kill -9``."""

from __future__ import annotations

import asyncio
import io
import json
import os
import signal
import sys
import threading
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
import yaml

from otel_agenteval.cli.main import main
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.server.journal_folder import JournalFolder
from otel_agenteval.server.process import print_line
from otel_agenteval.server.responses import Refusal
from otel_agenteval.server.wal import Journal, Record
from tests.support.servers import until
from tests.support.service import Sidecar, turn_of
from tests.support.sidecar import Sidecar as Process

TRACES = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"


def test_sighup_reloads_and_sigterm_drains_and_prints_the_ledger(tmp_path: Path) -> None:
    scores = tmp_path / "scores.jsonl"
    config = {"outlets": {"jsonl": str(scores)}, "turn": {"decision_delay": "1h"}, "inline": {"metrics": ["code_latency"]}}
    with Process(tmp_path, config) as sidecar:
        (file,) = tmp_path.glob("sidecar-*.yaml")
        file.write_text(yaml.safe_dump({**config, "inline": {"metrics": ["code_nonsense"]}}))
        os.kill(sidecar.pid, signal.SIGHUP)
        until(lambda: "not reloaded" in sidecar.text(), "the fault is told")
        file.write_text(yaml.safe_dump({**config, "inline": {"metrics": ["code_turn_error"]}}))
        os.kill(sidecar.pid, signal.SIGHUP)
        until(lambda: "configuration reloaded" in sidecar.text(), "it is reloaded")
        with grpc.insecure_channel(sidecar.grpc) as channel:
            for number in (1, 2, 3):
                channel.unary_unary(TRACES)(turn_of(number), timeout=60)
        assert sidecar.stop() == 0
    ledger = sidecar.ledger()
    assert (ledger["turns"]["closed"], ledger["handed_over"]) == ({"shutdown": 3}, True)
    lines = [json.loads(line) for line in scores.read_text().splitlines()]
    assert Counter(line["metric"] for line in lines) == {"code_turn_error": 3}


@pytest.mark.parametrize(
    ("options", "named"), [("--grpc=off --http=off", "serve.grpc, serve.http"), ("--grpc=0.0.0.0:0", "serve.grpc: 0.0.0.0:0")]
)
def test_a_fault_at_the_start_is_one_line(options: str, named: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", *options.split()]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert named in line


# --- the journal


def read_back(folder: Path, *, keep: bool) -> tuple[list[bytes], int]:
    """Return the bodies in a journal, and the number of damaged places."""
    journal = Journal(folder, 1 << 20)
    found: list[bytes] = []

    def take(record: Record) -> set[int]:
        found.append(record.body)
        return set()

    journal.replay(take, lambda _: set())  # each place is counted once, not in each round
    journal.close(delivered=not keep)
    return found, journal.broken


def test_a_journal_gives_back_what_was_in_it_and_stops_at_a_torn_end(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 1 << 20)
    bodies = [turn_of(number) for number in range(1, 4)]
    for body in bodies:
        entry = journal.append("traces", body, False)
        entry.wait()
        entry.holds({1})
    journal.append("logs", b"{}", True).wait()
    journal.close(delivered=False)
    (file,) = tmp_path.glob("*.requests")
    for cut, expected in ((0, 4), (1, 3), (5, 3), (12, 2)):
        data = file.read_bytes()
        file.write_bytes(data[: len(data) - cut] if cut else data)
        found, broken = read_back(tmp_path, keep=True)
        file.write_bytes(data)
        assert found[:3] == bodies[: len(found)]
        assert (len(found), broken) == (expected, 0 if cut == 0 else 1)
    flipped = bytearray(file.read_bytes())
    flipped[len(flipped) // 2] ^= 1
    file.write_bytes(flipped)
    found, broken = read_back(tmp_path, keep=False)
    assert (len(found) < 3, broken) == (True, 1)
    assert not list(tmp_path.glob("*.requests"))


@pytest.mark.parametrize("tenants", [[], [{"name": "a", "token": "t"}]], ids=["alone", "tenant"])
def test_a_segment_is_kept_until_its_turns_have_left(tmp_path: Path, tenants: list[Any]) -> None:
    headers = {"Authorization": "Bearer t"}
    with Sidecar({"serve": {"journal": str(tmp_path), "tenants": tenants}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1), headers)[0] == 200
        journal = sidecar.service.journal
        journal.collect(sidecar.engine.intake.held, lambda: True)
        assert journal.size > 0  # the turn is open
        sidecar.turns()
        journal.collect(sidecar.engine.intake.held, lambda: False)
        assert journal.size > 0  # an outlet could not hand it over
        journal.collect(sidecar.engine.intake.held, partial(sidecar.engine.flush, 60))
        assert (journal.size, list(tmp_path.rglob("*.requests"))) == (0, [])
        assert sidecar.post("/v1/traces", turn_of(2), headers)[0] == 200
        assert journal.size > 0


def test_a_full_journal_is_told_to_the_sender(tmp_path: Path) -> None:
    with Sidecar({"serve": {"journal": str(tmp_path), "journal_bytes": "300B"}, "turn": {"decision_delay": "1h"}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        sidecar.post("/v1/traces", turn_of(2))
        assert sidecar.post("/v1/traces", turn_of(3))[0] == 503
        assert sidecar.get("/readyz")[0] == 503


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    first, second = JournalFolder(str(tmp_path)), JournalFolder(str(tmp_path))
    assert asyncio.run(first.acquire(0))
    with pytest.raises(ConfigError, match=r"serve\.journal: "):
        asyncio.run(second.acquire(0))
    assert asyncio.run(second.acquire(600, lambda: True)) is False
    first.release()
    assert asyncio.run(second.acquire(0))
    second.release()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"serve\.journal: "):
        asyncio.run(JournalFolder(str(tmp_path / "file")).acquire(0))


def test_requests_that_wait_for_the_disk_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, 1 << 20)
    syncs = []
    first, go = threading.Event(), threading.Event()
    real = os.fdatasync

    def slow(file: int) -> None:
        syncs.append(file)
        first.set()
        assert go.wait(60)
        real(file)

    monkeypatch.setattr(os, "fdatasync", slow)
    entries = [journal.append("traces", b"1", False)]
    assert first.wait(60)
    entries += [journal.append("traces", b"2", False) for _ in range(50)]
    go.set()
    for entry in entries:
        entry.wait()
        entry.holds(set())
    assert len(syncs) == 2
    journal.close(delivered=True)


def test_a_segment_that_cannot_be_made_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "j"
    journal = Journal(folder, 1 << 20)
    folder.rmdir()
    with pytest.raises(Refusal):
        journal.append("traces", b"1", False).wait()
    journal.close(delivered=True)


def test_a_line_is_printed_in_one_write(monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[bytes] = []

    class Pipe(io.RawIOBase):
        def writable(self) -> bool:
            return True

        def write(self, data: Any) -> int:
            written.append(bytes(data))
            return len(data)

    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(Pipe(), write_through=True))  # type: ignore[type-var]  # as with PYTHONUNBUFFERED
    print_line("listening: http=127.0.0.1:1")
    assert [data for data in written if data] == [b"listening: http=127.0.0.1:1\n"]
