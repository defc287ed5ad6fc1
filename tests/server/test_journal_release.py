"""Every segment of the journal is released in time, even without further requests."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest
from opentelemetry.proto.collector.logs.v1.logs_service_pb2 import ExportLogsServiceRequest

import otel_agenteval as oa
from tests.server.test_watchdog import post
from tests.support.clock import FakeClock
from tests.support.servers import until
from tests.support.service import CHAT, Sidecar, request, turn_of
from tests.support.sidecar import Sidecar as Process

SECOND = 1_000_000_000


def log_of(trace: int, span: int = 1, name: str = "gen_ai.user.message", **attributes: float) -> bytes:
    """Return a request with one log record."""
    message = ExportLogsServiceRequest()
    record = message.resource_logs.add().scope_logs.add(scope={"name": "acme"}).log_records.add()
    record.trace_id, record.span_id = trace.to_bytes(16, "big"), span.to_bytes(8, "big")
    record.event_name = name
    record.body.string_value = "hello"
    for key, value in attributes.items():
        record.attributes.add(key=key).value.double_value = value
    return message.SerializeToString()


@pytest.fixture
def sidecar(tmp_path: Path, clock: FakeClock) -> Iterator[Sidecar]:
    config = {
        "serve": {"journal": str(tmp_path / "journal")},
        "turn": {"idle_timeout": "60s", "stitch_timeout": "30s", "max_duration": "10m", "decision_delay": "5s"},
        "feedback": {"wait": "60s"},
    }
    with Sidecar(config, clock=clock) as running:
        yield running


def is_released(sidecar: Sidecar) -> bool:
    """Return True if the journal is empty after due work is done."""
    journal, engine = sidecar.service.journal, sidecar.engine
    assert journal is not None
    engine.flush(60)
    journal.collect(engine.intake.held, partial(engine.flush, 60))
    return bool(journal.size == 0)


def test_log_record_without_span_releases_its_segment(sidecar: Sidecar, clock: FakeClock) -> None:
    assert sidecar.post("/v1/logs", log_of(7))[0] == 200
    clock.advance(59)
    assert not is_released(sidecar)
    clock.advance(1)
    assert is_released(sidecar)
    assert sidecar.engine.intake.late_log_records == 1


def test_log_record_of_a_closed_turn_releases_its_segment(sidecar: Sidecar, clock: FakeClock) -> None:
    assert sidecar.post("/v1/traces", turn_of(7))[0] == 200
    clock.advance(5)
    assert is_released(sidecar)
    assert sidecar.post("/v1/logs", log_of(7, 2))[0] == 200
    assert not is_released(sidecar)
    clock.advance(5)
    assert is_released(sidecar)


def test_feedback_without_turn_releases_its_segment(sidecar: Sidecar, clock: FakeClock) -> None:
    for _ in range(3):  # a sender that repeats itself doesn't extend the wait
        assert sidecar.post("/v1/logs", log_of(7, name="user_feedback", score=1.0))[0] == 200
        assert not is_released(sidecar)
        clock.advance(20)
    assert is_released(sidecar)


def call_of(trace: int, brings: str | None, asks: str) -> bytes:
    """Return a request with a model call that is a separate trace."""
    asked = [{"role": "user", "parts": [{"type": "text", "content": "hi"}]}]
    if brings is not None:
        asked += [
            {"role": "assistant", "parts": [{"type": "tool_call", "id": brings, "name": "t", "arguments": {}}]},
            {"role": "tool", "parts": [{"type": "tool_call_response", "id": brings, "response": "r"}]},
        ]
    said = [{"role": "assistant", "parts": [{"type": "tool_call", "id": asks, "name": "t", "arguments": {}}]}]
    attributes = {**CHAT, "gen_ai.input.messages": json.dumps(asked), "gen_ai.output.messages": json.dumps(said)}
    return request({"trace": trace, "attributes": attributes, "start": trace * SECOND, "end": trace * SECOND + 1})


def test_turn_that_goes_on_for_ever_releases_its_segment(sidecar: Sidecar, clock: FakeClock) -> None:
    """An endless loop of calls is one turn until ``turn.max_duration``, and then a new turn."""
    released = []
    for number in range(1, 41):
        brings = f"c{number - 1}" if number > 1 else None
        assert sidecar.post("/v1/traces", call_of(number, brings, f"c{number}"))[0] == 200
        clock.advance(20)
        if is_released(sidecar):
            released.append(number)
    (turn,) = [scored.turn for scored in sidecar.kept]
    assert (released, len(turn.llm_calls)) == ([31], 31)


def test_media_that_hang_release_their_segment(tmp_path: Path, clock: FakeClock) -> None:
    looks, opened = threading.Event(), threading.Event()

    @oa.metric(traits=("media",))
    def code_hang(turn: oa.Turn) -> float:
        """Hangs until the test ends."""
        looks.set()
        opened.wait(600)
        return 1.0

    parts = [{"type": "uri", "modality": "image", "uri": "data:image/png;base64,AAAA"}]
    attributes = {**CHAT, "gen_ai.input.messages": json.dumps([{"role": "user", "parts": parts}])}
    config = {
        "serve": {"journal": str(tmp_path / "journal")}, "turn": {"decision_delay": "5s"}, "metrics": ["code_hang"],
        "inline": {"metrics": []},
    }  # fmt: skip
    try:
        with Sidecar(config, clock=clock) as sidecar:
            assert sidecar.post("/v1/traces", request({"attributes": attributes}))[0] == 200
            clock.advance(5)
            sidecar.engine.worker.wake()
            assert looks.wait(60)
            clock.advance(600)
            assert is_released(sidecar)
    finally:
        opened.set()


@pytest.mark.slow
def test_early_log_lets_a_real_journal_be_emptied(tmp_path: Path) -> None:
    config = {"turn": {"decision_delay": "1s", "idle_timeout": "2s"}}
    with Process(tmp_path, config, journal=True) as sidecar:
        post(sidecar, log_of(7), "/v1/logs")  # nothing else wakes anything
        until(lambda: sidecar.metric("agenteval_journal_size_bytes") == 0, "the segment is deleted")
        assert sidecar.stop() == 0
        assert sidecar.ledger()["journal"]["segments"] == 0
