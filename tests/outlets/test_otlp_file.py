"""The file of a turn's spans gives the same turn again."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import pytest
from opentelemetry._logs import LogRecord
from opentelemetry.trace import set_span_in_context

import otel_agenteval as oa
from otel_agenteval.core.semconv import EVENT
from tests.support.process import output_of
from tests.support.rig import Rig, chat_attributes


def rig_with(file: Path, **privacy: Any) -> Rig:
    return Rig({"outlets": {"otlp_file": str(file)}, "privacy": privacy})


def a_turn(rig: Rig, user: str = "What is the capital of France?") -> None:
    rig.run(user=user)
    assert rig.processor.force_flush()


def test_the_file_gives_the_turns_that_were_scored(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    with rig_with(file, redact=[]) as rig:
        for user in ("Sind Straßen naß?", "and now? \ud83d\ude00", "x" * 5_000):
            a_turn(rig, user)
        wanted = rig.turns()
    faults: list[str] = []
    found = list(oa.load_turns(file, report=faults.append))
    assert faults == []
    assert [turn.turn_id for turn in found] == [turn.turn_id for turn in wanted]
    for again, turn in zip(found, wanted, strict=True):
        assert (again.agent, again.input, again.output, again.service) == (turn.agent, turn.input, turn.output, "shop")
        assert (again.usage, again.llm_calls, again.spans, again.start) == (turn.usage, turn.llm_calls, turn.spans, turn.start)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert EVENT not in file.read_text()


def test_what_stands_in_log_records_is_written_too(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    with rig_with(file) as rig:
        logger = rig.logger_provider.get_logger("acme.app")
        with rig.agent():
            attributes = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-1"}
            with rig.tracer.start_as_current_span("chat m-1", attributes=attributes) as span:
                body = chat_attributes("Where is Lima?", "In Peru.")
                logger.emit(
                    LogRecord(
                        context=set_span_in_context(span), event_name="gen_ai.client.inference.operation.details",
                        attributes={key: value for key, value in body.items() if "messages" in key},
                    )
                )  # fmt: skip
        wanted = rig.turn()
        assert (wanted.input, wanted.output) == ("Where is Lima?", "In Peru.")
    (found,) = oa.load_turns(file)
    assert (found.input, found.output) == ("Where is Lima?", "In Peru.")


def test_what_may_not_leave_is_taken_out(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    with rig_with(file) as rig:
        with rig.agent(attributes={"note": ["ada@example.org"], "app.password": "hunter-two-22"}):
            rig.chat("I am ada@example.org", "Noted, ada@example.org and bob@example.org.")
        assert rig.processor.force_flush()
    written = file.read_text()
    assert "ada@" not in written
    assert "hunter" not in written
    (turn,) = oa.load_turns(file)
    assert (turn.input, turn.output) == ("I am [EMAIL_1]", "Noted, [EMAIL_1] and [EMAIL_2].")


def test_the_childs_turns_stand_beside_the_parents(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    output_of(
        """
import os, sys
from opentelemetry.sdk.trace import TracerProvider
import otel_agenteval as oa
provider = TracerProvider()
handle = oa.instrument(tracer_provider=provider, config={"outlets": {"prometheus": None, "otlp_file": sys.argv[1]}})
turn(provider.get_tracer("app"), "before")
handle.flush(10)
pid = os.fork()
turn(provider.get_tracer("app"), "child" if pid == 0 else "parent")
handle.flush(10)
if pid == 0:
    os._exit(0)
os.waitpid(pid, 0)
print(1)
""",
        str(file),
    )
    assert sorted(str(turn.agent) for turn in oa.load_turns(file)) == ["before", "child", "parent"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no disk that is always full")
def test_a_full_disk_is_counted_and_what_waits_is_written_later(tmp_path: Path) -> None:
    file = tmp_path / "spans.jsonl"
    file.symlink_to("/dev/full")
    with rig_with(file) as rig:
        rig.run()
        assert not rig.processor.force_flush()
        assert rig.count("agenteval.emit.errors")[("otlp_file", "OSError")] >= 1
        file.unlink()
        assert rig.processor.force_flush()
    assert [json.loads(line).keys() for line in file.read_text().splitlines()] == [{"resourceSpans"}]
