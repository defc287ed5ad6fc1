"""Situations of public reports on running beside other programs. Each docstring names the reports. See docs/internals/public-reports.md."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from prometheus_client import CollectorRegistry, generate_latest

from otel_agenteval.cli.main import main
from otel_agenteval.core import semconv
from otel_agenteval.core.errors import StoreError
from otel_agenteval.core.telemetry import Telemetry
from otel_agenteval.outlets.prometheus import PrometheusOutlet
from otel_agenteval.outlets.store.reader import StoreReader, Wanted
from tests.outlets.test_webhook import Receiver, Rigged, gate
from tests.support.otlp_json import write_lines
from tests.support.service import Sidecar, turn_of


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


# --- stores and /metrics


def stored(path: str) -> None:
    """Store one turn in a file."""
    with Sidecar({"outlets": {"store": path}}) as sidecar:
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        sidecar.turns()


@pytest.mark.parametrize("name", ["file:a.db", "file:b.db?mode=memory", "c#1.db", "d?mode=ro.db", "e%41.db"])
def test_names_of_store_files_arent_addresses(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """ALEAPP 711, mulder 86, memU 503: SQLite reads a part of the file name as a URI, and opens another file."""
    monkeypatch.chdir(tmp_path)
    stored(name)
    assert [file.name for file in Path().iterdir()] == [name]
    with StoreReader(name) as store:
        assert len(store.turns(Wanted())) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_store_in_read_only_folder_can_be_read() -> None:
    """grafana-sqlite-datasource 167, deja-vu 2702: a store in WAL mode is mounted without permission to write."""
    with tempfile.TemporaryDirectory() as name:  # other users can't enter a folder of pytest
        file, unfinished = Path(name, "scores.db"), Path(name, "unfinished.db")
        stored(str(file))
        unfinished.write_bytes(file.read_bytes())
        Path(f"{unfinished}-wal").write_bytes(b"x")  # rows may wait there
        for path in (file, unfinished, Path(name)):
            path.chmod(0o555)
        os.seteuid(65534)
        try:
            with StoreReader(str(file)) as store:
                assert len(store.turns(Wanted())) == 1
            with pytest.raises(StoreError, match="can't be read"):
                StoreReader(str(unfinished))
            with pytest.raises(StoreError, match="file not found"):
                StoreReader(f"{name}/missing.db")
        finally:
            os.seteuid(0)


@pytest.mark.parametrize("most", [1, 1_000])
def test_registry_that_the_application_emptied_is_no_failure(most: int) -> None:
    """client_python 815, prometheus_flask_exporter 17: tests unregister all collectors before the next start."""
    registry, telemetry = CollectorRegistry(), Telemetry()
    outlet = PrometheusOutlet(telemetry, registry=registry)
    for collector in list(registry._collector_to_names)[:most]:
        registry.unregister(collector)
    outlet.close()
    again = PrometheusOutlet(telemetry, registry=registry)
    telemetry.add(semconv.TURNS, agent="bot", service_name="shop", close_reason="root_ended", complete="true")
    assert b"agenteval_turns_total" in generate_latest(registry)
    again.close()
    again.close()
    assert generate_latest(registry) == b""


# --- webhooks


@pytest.fixture
def hooked() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


def test_repeated_webhook_message_has_the_same_id(hooked: Receiver) -> None:
    """documenso 3204, EcoTask-backend 59: the receiver took a message, but its answer got lost, so the message comes again."""
    rig = Rigged(hooked)
    rig.emit(gate())
    hooked.answers = [503]
    assert not rig.outlet.flush(60)
    rig.outlet.begin_exit()  # which flushes in spite of the failure
    rig.flush()
    rig.clock.advance(5)
    rig.emit(gate())  # an equal one, but later
    rig.flush()
    first, again, later = (json.loads(raw)["id"] for raw in hooked.raw)
    assert first == again != later
    rig.outlet.close()


def test_message_with_a_further_notice_has_another_id(hooked: Receiver) -> None:
    """Sibling of documenso 3204: what was merged meanwhile must not be taken for a repetition."""
    rig = Rigged(hooked)
    rig.emit(gate())
    hooked.answers = [503]
    assert not rig.outlet.flush(60)
    rig.emit(gate())
    rig.outlet.begin_exit()
    rig.flush()
    first, merged = (json.loads(raw) for raw in hooked.raw)
    assert (first["id"] != merged["id"], merged["notices"][0]["count"]) == (True, 2)
    rig.outlet.close()
