"""No exception of otel-agenteval, a metric or an outlet reaches the agent."""

from __future__ import annotations

import logging
import threading
from types import SimpleNamespace

import pytest

import otel_agenteval as oa
from otel_agenteval import AgentEvalLogProcessor, AgentEvalSpanExporter
from otel_agenteval.outlets.base import Outlet
from tests.support.rig import Rig
from tests.support.servers import until


class BrokenOutlet(Outlet):
    name = "broken"

    def emit(self, batch):
        raise OSError("disk full of SECRETS")

    def flush(self, timeout):
        raise OSError("disk full")

    def close(self):
        raise OSError("disk full")


class Hostile:
    """An object whose methods all raise."""

    def __getattr__(self, name):
        raise RuntimeError(name)


BROKEN_SPANS = pytest.mark.parametrize(
    "span",
    [
        None, object(), Hostile(),
        SimpleNamespace(context=None, parent=None, attributes=None, name=None, instrumentation_scope=None),
        SimpleNamespace(context=SimpleNamespace(trace_id="x", span_id=[]), parent=None, attributes=7, name=3, instrumentation_scope=None),
    ],
    ids=["None", "an object", "one that raises", "one without ids", "one with ids of the wrong type"],
)  # fmt: skip


# --- metrics


@pytest.fixture
def failing_metric():
    @oa.metric(unit="1")
    def code_raises(turn: oa.Turn) -> float | None:
        """Fails on every turn."""
        raise ValueError(f"cannot read {turn.output}")

    return "code_raises"


def test_a_metric_that_raises_is_an_error_and_no_score(failing_metric):
    with Rig({"inline": {"metrics": [failing_metric, "code_empty_answer", "code_cost"]}}) as rig:
        rig.run()
        first, second, _ = rig.scored()[0].scores
        assert (first.status, first.value, first.error_type) == ("error", None, "ValueError")
        assert second.status == "ok"
        (record,) = [record for record in rig.log_events() if record.attributes["gen_ai.evaluation.name"] == failing_metric]
        for event in (record.attributes, rig.score_events("invoke_agent bot")[failing_metric]):
            assert event["error.type"] == "ValueError"
            assert not any(key.startswith("gen_ai.evaluation.score") for key in event)
        assert rig.count("agenteval.results")[(failing_metric, "bot", "error")] == 1
        why = rig.engine.why(rig.turn().turn_id)
        assert (why[failing_metric], why["code_empty_answer"]) == ("error: ValueError", "scored")
        assert why["code_cost"].startswith("skipped: ")


# --- outlets


def test_an_outlet_that_fails_is_counted_logged_once_and_the_others_still_run(caplog):
    with Rig() as rig, caplog.at_level(logging.DEBUG, "otel_agenteval"):
        rig.engine.outlets.add(BrokenOutlet(), first=True)
        for _ in range(2):
            rig.run()
            assert rig.processor.force_flush() is False
        assert len(rig.kept) == 2
        assert rig.engine.telemetry.read("agenteval.emit.errors").values[("broken", "OSError")] >= 2
        assert rig.exported_names() == ["execute_tool search", "chat m-1", "invoke_agent bot"] * 2
        (message,) = [record.getMessage() for record in caplog.records if "broken" in record.getMessage()]
        assert "OSError" in message
        assert "SECRETS" not in caplog.text


def test_an_outlet_that_fails_to_close_does_not_stop_the_shutdown():
    with Rig() as rig:
        rig.engine.outlets.add(BrokenOutlet(), first=True)
        rig.run()
        rig.processor.shutdown()
        assert rig.engine.telemetry.read("agenteval.emit.errors").values[("broken", "OSError")] >= 1


# --- broken spans and records


@BROKEN_SPANS
def test_a_broken_span_does_not_reach_the_host(span):
    with Rig() as rig:
        rig.processor.on_start(span)
        rig.processor._on_ending(span)
        rig.processor.on_end(span)
        rig.run()
        assert rig.turn()


def test_a_broken_span_is_counted_and_logged_once_without_content(caplog):
    with Rig() as rig, caplog.at_level(logging.WARNING, "otel_agenteval"):
        rig.run()
        for _ in range(5):
            rig.processor.on_start(Hostile())
        assert len(caplog.records) == 1
        assert rig.engine.failures["on_start"] == 5
        assert rig.count("agenteval.spans.dropped")[("error",)] == 5


@BROKEN_SPANS
def test_a_broken_span_does_not_fail_an_export(span):
    exporter = AgentEvalSpanExporter({"outlets": {"prometheus": None, "log_events": False}})
    assert exporter.export([span]).name == "SUCCESS"
    exporter.shutdown()


@pytest.mark.parametrize(
    "record",
    [
        None, object(), Hostile(), SimpleNamespace(log_record=Hostile()),
        SimpleNamespace(log_record=SimpleNamespace(event_name=7, attributes={}, body=None, span_id=1, trace_id=1, timestamp=0)),
        SimpleNamespace(log_record=SimpleNamespace(event_name="gen_ai.choice", attributes=7, body=None, span_id=1, trace_id=1, timestamp=0)),
    ],
    ids=["None", "an object", "one that raises", "one whose record raises", "a name that is a number", "attributes that are a number"],
)  # fmt: skip
def test_a_broken_log_record_does_not_reach_the_host(record):
    with Rig() as rig:
        AgentEvalLogProcessor(rig.processor).on_emit(record)
        rig.run()
        assert rig.turn()


@pytest.mark.parametrize(
    "key",
    [
        "gen_ai.operation.name", "gen_ai.agent.name", "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.usage.input_tokens",
        "gen_ai.tool.definitions", "gen_ai.system_instructions", "gen_ai.response.finish_reasons", "gen_ai.conversation.id",
    ],
)  # fmt: skip
def test_attributes_of_any_value_do_not_reach_the_host(key, caplog):
    with Rig() as rig:
        for value in (None, 7, "", "{", [1, 2], b"\xff", float("nan"), True, "x" * 100_000):
            before = len(rig.turns())
            with rig.agent() as root:
                span = rig.start_chat("hello", "Hi.")
                for target in (root, span):
                    target.set_attribute(key, value)
                span.end()
            assert len(rig.turns()) <= before + 1
            assert (rig.engine.failures, rig.engine.assembler.open_turns) == ({}, 0), value
        assert not [record for record in caplog.records if record.name.startswith("otel_agenteval")]


def test_the_log_processor_outlives_its_span_processor():
    with Rig(attach=False) as rig:
        processor = AgentEvalLogProcessor(oa.AgentEvalSpanProcessor({"outlets": {"prometheus": None}}))
        processor.on_emit(Hostile())
        rig.logger_provider.add_log_record_processor(processor)
        rig.logger_provider.get_logger("app").emit(event_name="gen_ai.choice", body="x")
        assert processor.force_flush()


# --- after the end


def test_after_shutdown_the_processor_does_nothing_more():
    with Rig() as rig:
        rig.run("before")
        rig.processor.shutdown()
        rig.run("after")
        assert rig.processor.force_flush(60_000)
        assert [scored.turn.agent for scored in rig.kept] == ["before"]
        assert rig.score_events("invoke_agent after") == {}
        assert rig.engine.assembler.open_turns == 0


def test_metric_that_hangs_does_not_hold_up_the_others():
    hangs = threading.Event()

    @oa.metric()
    def code_hangs_once(turn):
        """Waits on its first turn."""
        if turn.output == "first":
            hangs.wait(60)
        return 1.0

    config = {"inline": {"metrics": ["code_hangs_once", "code_refusal"]}, "turn": {"max_work": "100ms"}}
    with Rig(config) as rig:
        for says in ("first", "second"):
            rig.run(says=says)
        found = [{score.metric: score for score in scored.scores} for scored in rig.scored()]
        assert [scores["code_refusal"].status for scores in found] == ["ok", "ok"]
        assert [scores["code_hangs_once"].error_type for scores in found] == ["timeout", "timeout"]
        assert set(rig.engine.hung_metrics()) == {"code_hangs_once"}
        hangs.set()
        until(lambda: [rig.run(), rig.scored()] and not rig.engine.hung_metrics(), "it answers again")
