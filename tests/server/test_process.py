"""The real process: its signals, its journal, and ``kill -9``."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import threading
from functools import partial
from pathlib import Path

import grpc
import pytest
import yaml
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.server.journal_folder import JournalFolder
from otel_agenteval.server.responses import Refusal
from otel_agenteval.server.wal import Journal, Record
from tests.support.process import run
from tests.support.servers import until
from tests.support.service import Sidecar, turn_of
from tests.support.sidecar import Sidecar as Process


def results(file: Path) -> list[str]:
    """The result ids in a file of JSON lines, in their order."""
    if not file.exists():
        return []
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
    return [line["result_id"] for line in lines if line.get("result_id")]


def turns_in(file: Path) -> set[str]:
    if not file.exists():
        return set()
    lines = [json.loads(line) for line in file.read_text().splitlines() if line.endswith("}")]
    return {line["turn_id"] for line in lines}


def test_sigterm_drains_and_prints_the_ledger(tmp_path: Path) -> None:
    config = {"outlets": {"jsonl": str(tmp_path / "scores.jsonl")}, "turn": {"decision_delay": "1h"}}
    sidecar = Process(tmp_path, config)
    send(sidecar, [1, 2, 3])
    assert sidecar.stop() == 0
    ledger = sidecar.ledger()
    assert ledger["turns"]["closed"] == {"shutdown": 3}
    assert ledger["handed_over"] is True
    assert len(turns_in(tmp_path / "scores.jsonl")) == 3


def test_scores_that_no_disk_took_are_not_handed_over(tmp_path: Path) -> None:
    sidecar = Process(tmp_path, {"outlets": {"jsonl": str(tmp_path / "nowhere" / "scores")}, "turn": {"decision_delay": "1h"}})
    send(sidecar, [1])
    assert sidecar.stop() == 1
    ledger = sidecar.ledger()
    assert (ledger["handed_over"], ledger["outlet_errors"]) == (False, {"jsonl: FileNotFoundError": 1})
    assert f"outlet jsonl failed: FileNotFoundError: {tmp_path}/nowhere/scores: No such file or directory" in sidecar.text()
    assert re.search(rf"\d+ scores couldn't be written to {tmp_path}/nowhere/scores", sidecar.text())


def test_without_a_door_for_spans_it_does_not_start(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["serve", "--grpc", "off", "--http", "off"]) == 2
    assert "serve.grpc, serve.http" in capsys.readouterr().err


def test_sighup_reloads_and_a_fault_in_the_file_changes_nothing(tmp_path: Path) -> None:
    with Process(tmp_path, {"inline": {"metrics": ["code_latency"]}}) as sidecar:
        (file,) = tmp_path.glob("sidecar-*.yaml")
        file.write_text(yaml.safe_dump({"inline": {"metrics": ["code_nonsense"]}}))
        os.kill(sidecar.pid, signal.SIGHUP)
        until(lambda: "not reloaded" in sidecar.text(), "the fault is told", 20)
        file.write_text(yaml.safe_dump({"turn": {"decision_delay": "200ms"}, "inline": {"metrics": ["code_tool_call_count"]}}))
        os.kill(sidecar.pid, signal.SIGHUP)
        until(lambda: "configuration reloaded" in sidecar.text(), "it is reloaded", 20)
        send(sidecar, [1])
        until(lambda: sidecar.metric("agenteval_results_total", metric="code_tool_call_count") == 1, "it is scored", 20)
        assert sidecar.metric("agenteval_results_total", metric="code_latency") == 0


def test_a_fault_at_the_start_is_said_in_a_line(tmp_path: Path) -> None:
    done = run("import sys; from otel_agenteval.cli.main import main; sys.exit(main(['serve', '--grpc', '0.0.0.0:0']))")
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].startswith("otel-agenteval: serve.grpc: 0.0.0.0:0 is reachable from other machines")
    assert "Traceback" not in done.stderr


# --- the journal


@pytest.mark.slow
@pytest.mark.parametrize("journal", [True, False])
def test_kill_9_in_the_middle_loses_nothing_that_was_acknowledged_with_a_journal(journal: bool, tmp_path: Path) -> None:
    scores = tmp_path / "scores.jsonl"
    config = {"outlets": {"jsonl": str(scores)}, "turn": {"decision_delay": "2s"}}
    with Process(tmp_path, config, journal=journal) as sidecar:
        acknowledged: list[int] = []
        stop = threading.Event()

        def stream() -> None:
            number = 0
            while not stop.is_set() and number < 5_000:
                number += 1
                if export(sidecar, number):
                    acknowledged.append(number)

        thread = threading.Thread(target=stream)
        thread.start()
        # some turns are handed over, some are closed, some are open
        until(lambda: len(turns_in(scores)) >= 20, "scores leave", 60)
        sidecar.kill()
        stop.set()
        thread.join(30)
        sent = {f"{number:032x}-{1:016x}" for number in acknowledged}
        lost = sent - turns_in(scores)
        assert lost, "there was nothing to lose"
        sidecar.start()
        if journal:
            until(lambda: sent <= turns_in(scores), "every acknowledged turn is scored", 60)
            until(lambda: not list((tmp_path / "journal").rglob("*.requests")), "the journal is empty", 60)
        else:
            send(sidecar, [9_999])
            until(lambda: f"{9_999:032x}-{1:016x}" in turns_in(scores), "the next turn is scored", 60)
            assert lost - turns_in(scores) == lost
        assert sidecar.stop() == 0
        if journal:
            assert sidecar.ledger()["journal"]["replayed"] >= len(lost)
    # what was scored before and after the crash has the same ids: a store keyed by them has each once
    by_turn: dict[tuple[str, str], set[str]] = {}
    for line in scores.read_text().splitlines():
        said = json.loads(line) if line.endswith("}") else {}
        if said.get("result_id"):
            by_turn.setdefault((said["turn_id"], said["metric"]), set()).add(said["result_id"])
    assert {len(ids) for ids in by_turn.values()} == {1}


def read_back(folder: Path, *, keep: bool) -> tuple[list[bytes], int]:
    """The bodies in a journal, and at how many places it is broken."""
    journal = Journal(folder, 1 << 20)
    found: list[bytes] = []

    def take(record: Record) -> set[int]:
        found.append(record.body)
        return set()

    journal.replay(take)
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


def test_a_segment_is_kept_until_its_turns_have_left(tmp_path: Path) -> None:
    with Sidecar({"serve": {"journal": str(tmp_path)}}) as sidecar:
        sidecar.post("/v1/traces", turn_of(1))
        journal = sidecar.service.journal
        journal.collect(sidecar.engine.intake.held, lambda: True)
        assert journal.size > 0  # the turn is open
        engine = sidecar.engine
        with engine.assembler.lock:
            closed = engine.assembler.close_all("delay")
        engine.intake.take(closed)
        journal.collect(sidecar.engine.intake.held, lambda: False)
        assert journal.size > 0  # an outlet could not hand it over
        journal.collect(sidecar.engine.intake.held, partial(sidecar.engine.flush, 10))
        assert (journal.size, list(tmp_path.rglob("*.requests"))) == (0, [])
        assert sidecar.post("/v1/traces", turn_of(2))[0] == 200
        assert journal.size > 0


def test_a_full_journal_and_a_disk_that_fails_are_told_to_the_sender(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Sidecar({"serve": {"journal": str(tmp_path), "journal_bytes": "300B"}, "turn": {"decision_delay": "1h"}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        sidecar.post("/v1/traces", turn_of(2))
        assert sidecar.post("/v1/traces", turn_of(3))[0] == 503
        assert sidecar.get("/readyz")[0] == 503
    with Sidecar({"serve": {"journal": str(tmp_path)}}) as sidecar:

        def fails(_: int) -> None:
            raise OSError(28, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", fails)
            assert sidecar.post("/v1/traces", turn_of(1))[0] == 503
        assert sidecar.service.journal.failures == 1
        sidecar.service.journal.probe()
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        assert len(sidecar.turns()) == 1


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    first, second = JournalFolder(str(tmp_path)), JournalFolder(str(tmp_path))
    assert asyncio.run(first.acquire(0))
    with pytest.raises(ConfigError, match=r"serve\.journal: .* another process after 0 s"):
        asyncio.run(second.acquire(0))
    assert asyncio.run(second.acquire(60, lambda: True)) is False
    first.release()
    assert asyncio.run(second.acquire(0))
    second.release()
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match=r"serve\.journal: .*can.t be used"):
        asyncio.run(JournalFolder(str(tmp_path / "file")).acquire(0))


def test_requests_that_wait_for_the_disk_are_written_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal = Journal(tmp_path, 1 << 20)
    syncs = []
    first, go = threading.Event(), threading.Event()
    real = os.fdatasync

    def slow(file: int) -> None:
        syncs.append(file)
        first.set()
        assert go.wait(10)
        real(file)

    monkeypatch.setattr(os, "fdatasync", slow)
    entries = [journal.append("traces", b"1", False)]
    assert first.wait(10)
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
    with pytest.raises(Refusal, match="the journal"):
        journal.append("traces", b"1", False).wait()
    journal.close(delivered=True)


def test_the_default_keeps_no_journal() -> None:
    assert load_config({}).serve.journal is None


def export(sidecar: Process, number: int) -> bool:
    """One turn of a trace of this number, in one request; whether it was acknowledged."""

    with grpc.insecure_channel(sidecar.grpc) as channel:
        try:
            channel.unary_unary("/opentelemetry.proto.collector.trace.v1.TraceService/Export")(turn_of(number), timeout=5)
        except grpc.RpcError:
            return False
    return True


def send(sidecar: Process, numbers: list[int]) -> None:
    """Turns of traces of these numbers; all of them are acknowledged."""
    for number in numbers:
        until(lambda number=number: export(sidecar, number), "it is acknowledged", 20)  # type: ignore[misc]


def test_the_sdk_s_batches_arrive(tmp_path: Path) -> None:
    with Process(tmp_path, {"turn": {"decision_delay": "100ms"}}) as sidecar:
        provider = TracerProvider(resource=Resource({"service.name": "shop"}), shutdown_on_exit=False)
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=sidecar.grpc, insecure=True)))
        for _ in range(50):
            with provider.get_tracer("t").start_as_current_span("a", attributes={"gen_ai.operation.name": "invoke_agent"}):
                pass
        provider.shutdown()
        until(lambda: sidecar.metric("agenteval_turns_total") == 50, "all turns are evaluated", 30)
