"""Acknowledged turns are scored and delivered, or reported as lost, despite restarts and failing disks and receivers."""

from __future__ import annotations

import errno
import os
import resource
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from otel_agenteval.core.telemetry import Family
from otel_agenteval.evaluation.scored_turn import ScoredTurn
from otel_agenteval.metrics.registry import metric
from otel_agenteval.outlets.base import Outlet
from otel_agenteval.server.responses import Refusal
from otel_agenteval.server.wal import Journal
from tests.server.test_watchdog import post
from tests.support.clock import FakeClock
from tests.support.servers import free_port, until
from tests.support.service import AGENT, CHAT, Sidecar, request, turn_of
from tests.support.sidecar import Sidecar as Process

SLOW = (
    "import time, otel_agenteval as oa\n@oa.metric()\ndef code_slow(turn):\n    '''Slow.'''\n    time.sleep(0.02)\n    return 1.0"
)


# --- stops


def test_without_a_journal_a_stop_counts_what_it_has_no_time_for(tmp_path: Path) -> None:
    config = {
        "turn": {"decision_delay": "1h"}, "inline": {"metrics": ["code_slow"]}, "serve": {"drain_timeout": "1s"},
    }  # fmt: skip
    with Process(tmp_path, config, script=SLOW) as sidecar:
        for number in range(1, 121):
            post(sidecar, turn_of(number))
        assert sidecar.stop() == 1
        ledger = sidecar.ledger()
        lost = ledger["spans"]["not_used"]["shutdown"]
        assert ledger["spans"] == {"received": 240, "scored": 240 - lost, "held": 0, "not_used": {"shutdown": lost}}
        assert {"ok": 0, **ledger["results"]} == {"ok": 120 - lost // 2, "dropped": lost // 2}


# --- outlets that cannot hand over


def test_a_disk_that_takes_no_lines_holds_the_journal_back_and_nothing_is_lost(tmp_path: Path) -> None:
    lines = tmp_path / "later" / "scores.jsonl"
    config = {"serve": {"journal": str(tmp_path / "journal")}, "outlets": {"jsonl": str(lines)}}
    with Sidecar(config) as sidecar:
        journal = sidecar.service.journal
        assert journal is not None
        for number in range(1, 6):
            assert sidecar.post("/v1/traces", turn_of(number))[0] == 200
        engine = sidecar.engine
        with engine.assembler.lock:
            closed = engine.assembler.close_all("delay")
        engine.intake.take(closed)
        assert engine.evaluate_closed(60)
        journal.collect(engine.intake.held, partial(engine.flush, 60))
        assert journal.size > 0
        assert sidecar.service.ledger()["outlet_errors"].keys() == {"jsonl: FileNotFoundError"}
        account = sidecar.service.ledger()["outlets"]["jsonl"]
        assert (account["delivered"], account["waiting"], account["failed"]) == (0, account["made"], {})
        lines.parent.mkdir()
        journal.collect(engine.intake.held, partial(engine.flush, 60))
        assert journal.size == 0
        assert len(lines.read_text().splitlines()) == account["made"] > 0


def test_while_an_outlet_has_no_room_turns_wait_and_senders_have_to(tmp_path: Path) -> None:
    lines = tmp_path / "later" / "scores.jsonl"
    config = {
        "serve": {"journal": str(tmp_path / "journal")}, "outlets": {"jsonl": str(lines)}, "queue": {"max_bytes": "64kB"},
        "turn": {"decision_delay": "1ms", "total_bytes": "64kB"},
    }  # fmt: skip
    with Sidecar(config) as sidecar:
        (outlet,) = (outlet for outlet in sidecar.engine.outlets if outlet.name == "jsonl")
        outlet._max_waiting = 20_000
        acknowledged = 0
        while sidecar.post("/v1/traces", turn_of(acknowledged + 1))[0] == 200:
            acknowledged += 1
            sidecar.engine.worker.wake()
            assert acknowledged < 5_000
        assert outlet.full
        lines.parent.mkdir()
        ledger = sidecar.stop()
    assert ledger["handed_over"]
    assert ledger["spans"] == {"received": 2 * acknowledged, "scored": 2 * acknowledged, "held": 0, "not_used": {}}
    assert ledger["outlets"]["jsonl"]["failed"] == {}
    assert len({line.partition('"turn_id":"')[2][:49] for line in lines.read_text().splitlines()}) == acknowledged


def test_records_that_no_receiver_took_are_said_to_be_lost() -> None:
    otlp = {"endpoint": f"http://127.0.0.1:{free_port()}", "queue_bytes": "16kB"}
    config = {"outlets": {"otlp": otlp}, "turn": {"decision_delay": "10ms"}, "serve": {"drain_timeout": "1s"}}
    with Sidecar(config) as sidecar:
        for number in range(1, 101):
            assert sidecar.post("/v1/traces", turn_of(number))[0] == 200
        until(lambda: sidecar.service.ledger()["spans"]["held"] == 0, "every turn is evaluated")
        ledger = sidecar.stop()
    account = ledger["outlets"]["otlp"]
    assert account["made"] == account["delivered"] + account["waiting"] + sum(account["failed"].values()) > 0
    assert account["failed"]["queue_full"] > 0
    assert ledger["handed_over"] is False


# --- the ledger


class Broken(Outlet):
    """An outlet that always fails."""

    name = "broken"

    def emit(self, batch: list[ScoredTurn]) -> None:
        raise OSError(errno.EIO, "no")


def balance(ledger: dict[str, Any]) -> None:
    """Check every sum of the ledger."""
    spans = ledger["spans"]
    assert spans["held"] == 0
    assert spans["received"] == spans["scored"] + sum(spans["not_used"].values())
    for account in ledger["outlets"].values():
        assert account["made"] == account["delivered"] + account["waiting"] + sum(account["failed"].values())


def outcomes(family: Family) -> dict[str, int]:
    found: dict[str, int] = {}
    for (name, _, outcome), count in family.values.items():
        if outcome != "superseded":
            found[name] = found.get(name, 0) + int(count)
    return found


def late(trace: int, number: int) -> bytes:
    return request({"trace": trace, "id": number, "parent": 1, "attributes": CHAT})


TURNS = [turn_of(number) for number in range(1, 60)]
LONG_TURN = [turn_of(7), *(late(7, number) for number in range(3, 200))]


@pytest.mark.parametrize(
    ("config", "bodies"),
    [
        pytest.param({}, [turn_of(1)] * 5, id="sent again"),
        pytest.param({"turn": {"max_spans": 50}}, LONG_TURN, id="more spans than a turn may have"),
        pytest.param({"turn": {"max_bytes": "8kB"}}, LONG_TURN, id="more bytes than a turn may have"),
        pytest.param({"turn": {"max_open": 3}}, TURNS, id="more open turns than there may be"),
        pytest.param({"turn": {"total_bytes": "16kB"}}, TURNS, id="more bytes in all"),
        pytest.param({"queue": {"max_bytes": "32kB"}}, TURNS, id="a small queue"),
        pytest.param({}, [request({"attributes": {"http.method": "GET"}}, {"id": 2, "parent": 1})], id="no agent"),
        pytest.param({}, [request(*({"id": n, "parent": 99, "attributes": AGENT} for n in range(1, 9)))], id="no root"),
        pytest.param({"inline": {"metrics": ["code_raises", "code_latency"]}}, TURNS[:8], id="a metric fails"),
    ],
)
def test_the_ledger_adds_up(config: dict[str, Any], bodies: list[bytes], clock: FakeClock) -> None:
    evicts = {"max_open", "total_bytes"} & set(config.get("turn", {}))

    @metric()
    def code_raises(turn: Any) -> float:
        """Raises."""
        raise ZeroDivisionError

    with Sidecar(config, clock=clock) as sidecar:
        sidecar.engine.outlets.add(Broken())
        accepted = 0
        for number, body in enumerate(bodies):
            if evicts:  # admission would ask the sender to retry; a journal that is replayed cannot retry
                feed = sidecar.service.receiver.feed
                feed.pass_on(feed.read("traces", body, False))
                accepted += 1
            else:
                accepted += sidecar.post("/v1/traces", body)[0] == 200
            if number % 10 == 9:  # some turns close, and what comes after them is late
                clock.advance(11)
                assert sidecar.engine.evaluate_closed(60)
        clock.advance(400)
        sidecar.engine.evaluate_closed(60)
        ledger = sidecar.stop()
        balance(ledger)
        turns = int(sum(sidecar.engine.telemetry.read("agenteval.turns").values.values()))
        assert accepted == len(bodies)
        assert set(outcomes(sidecar.engine.telemetry.read("agenteval.results")).values()) <= {turns}
        assert ledger["handed_over"]


def test_turns_that_are_lost_are_counted_with_their_spans(clock: FakeClock) -> None:
    with Sidecar(clock=clock) as sidecar:

        def fails(group: Any) -> Any:
            if group.root.trace_id % 2:
                raise MemoryError
            return real(group)

        composer = sidecar.engine.pipeline.composer
        real, composer.read = composer.read, fails
        for number in range(1, 11):
            assert sidecar.post("/v1/traces", turn_of(number))[0] == 200
        ledger = sidecar.stop()
    balance(ledger)
    assert ledger["spans"] == {"received": 20, "scored": 10, "held": 0, "not_used": {"fault": 10}}
    assert (ledger["turns"]["closed"], ledger["handed_over"]) == ({"shutdown": 10}, False)


# --- the journal's disk


def open_files() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def test_writes_that_fail_leave_no_file_open_and_no_empty_segment(tmp_path: Path) -> None:
    journal = Journal(tmp_path, 1 << 30)
    kept(journal, b"good")
    size, files = journal.size, open_files()
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 10, hard))
    try:
        for _ in range(30):
            with pytest.raises(Refusal):
                journal.append("traces", b"x" * 4_096, False).wait()
        journal.probe()
        assert (journal.trouble != "", journal.failures, journal.size) == (True, 30, size)
        assert open_files() <= files
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    journal.probe()
    assert journal.trouble == ""
    kept(journal, b"again")
    assert journal.status()["segments"] == 2
    journal.close(delivered=False)
    found: list[bytes] = []
    journal = Journal(tmp_path, 1 << 30)
    journal.replay(lambda record: (found.append(record.body), set[int]())[1])
    assert (found, journal.broken) == ([b"good", b"again"], 0)
    journal.close(delivered=True)


def kept(journal: Journal, body: bytes) -> None:
    """Write a request that an open turn holds."""
    entry = journal.append("traces", body, False)
    entry.wait()
    entry.holds({1})


def test_a_disk_that_hangs_holds_little_and_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    go = threading.Event()
    real = os.fdatasync
    clock = FakeClock()
    journal = Journal(tmp_path, 1 << 30, clock)
    monkeypatch.setattr(os, "fdatasync", lambda file: (go.wait(600), real(file)))
    first = journal.append("traces", b"first", False)
    assert journal.trouble == ""
    until(lambda: clock.advance(1.5) or journal.trouble, "the disk is told to be slow")
    taken = 0
    while journal._pending_bytes < 31 << 20:
        entry = journal.append("traces", b"x" * (1 << 20), False)
        taken += 1
    assert taken < 40
    with pytest.raises(Refusal, match="the journal's disk is too slow"):
        journal.append("traces", b"x" * (1 << 20), False)
    journal.withdraw(entry)  # its sender was asked to retry
    assert entry not in journal._pending
    go.set()
    first.wait()
    journal.close(delivered=False)


def test_a_request_that_the_journal_cannot_keep_is_not_evaluated(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with Sidecar({"serve": {"journal": str(tmp_path)}}) as sidecar:

        def fails(_: int) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        with monkeypatch.context() as patch:
            patch.setattr(os, "fdatasync", fails)
            assert sidecar.post("/v1/traces", turn_of(1))[0] == 503
            assert sidecar.get("/readyz") == (503, "the journal can't be written\n")
        assert sidecar.turns() == []
        sidecar.service.journal.probe()
        assert sidecar.get("/readyz")[0] == 200
        assert sidecar.post("/v1/traces", turn_of(1))[0] == 200
        assert len(sidecar.turns()) == 1
