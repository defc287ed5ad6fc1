"""Turns of a framework without a dialect are scored, in this process and behind the sidecar, and the log reports how they were read."""

from __future__ import annotations

import json
import logging

from tests.support.clock import FakeClock
from tests.support.rig import Rig

MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Paris?"}]
ANSWER = {"role": "assistant", "content": "It is 18 °C."}


def run_agent(rig):
    tracer = rig.provider.get_tracer("fw.core")
    with tracer.start_as_current_span("run", attributes={"fw.thread": "t-1"}):
        with tracer.start_as_current_span("step") as step:
            step.set_attribute("fw.model", "gpt-4.1-mini")
            step.set_attribute("fw.input", json.dumps({"messages": MESSAGES}))
            step.set_attribute("fw.output", json.dumps({"message": ANSWER, "usage": {"inputTokens": 12, "outputTokens": 5}}))
        with rig.tracer.start_as_current_span("SELECT", attributes={"db.system": "postgresql"}):
            pass


def test_a_turn_of_this_process_closes_with_its_root():
    with Rig() as rig:
        run_agent(rig)
        turn = rig.turn()
        assert (turn.input, turn.output, turn.reading, turn.close_reason) == (
            "Weather in Paris?",
            "It is 18 °C.",
            "inferred",
            "root_ended",
        )
        assert len(turn.llm_calls) == 1
        assert rig.count("agenteval.turns.read") == {("fw.core", "inferred"): 1}
        assert rig.count("agenteval.unread_traces") == {}


def test_a_trace_that_looks_like_a_model_s_work_and_gives_no_turn_is_said_once(caplog):
    with Rig() as rig, caplog.at_level(logging.WARNING, "otel_agenteval"):
        for _ in range(3):
            with rig.provider.get_tracer("fw.archive").start_as_current_span("save") as span:
                span.set_attribute("archive.messages", json.dumps([MESSAGES[1], ANSWER]))
        assert rig.turns() == []
        assert rig.count("agenteval.unread_traces") == {("fw.archive", "turn"): 3}
    assert [
        message for message in caplog.messages if "'fw.archive'" in message and "agenteval.unread_traces" in message
    ] == caplog.messages
    assert len(caplog.messages) == 1


def test_rest_of_a_trace_with_a_turn_is_not_unread(caplog):
    with Rig() as rig, caplog.at_level(logging.WARNING, "otel_agenteval"):
        for number in range(3):
            archived = json.dumps([MESSAGES[1], {"role": "assistant", "content": f"Answer {number}"}])
            tracer = rig.provider.get_tracer("fw.web")
            with tracer.start_as_current_span("ask"):
                rig.run()
                tracer.start_span("save", attributes={"web.messages": archived}).end()
        assert len(rig.turns()) == 3
        assert rig.count("agenteval.unread_traces") == {}
    assert caplog.messages == []


def test_messages_in_log_records_of_this_process_are_read():
    with Rig() as rig:
        log = rig.logger_provider.get_logger("fw.log")
        with rig.provider.get_tracer("fw.core").start_as_current_span("call", attributes={"fw.model": "gpt-4.1-mini"}):
            log.emit(body={"role": "user", "content": "Weather in Paris?"}, timestamp=1)
            log.emit(body=json.dumps(ANSWER), timestamp=2)
            log.emit(body="connected", timestamp=3)
        turn = rig.turn()
        assert (turn.input, turn.output, turn.reading) == ("Weather in Paris?", "It is 18 °C.", "inferred")


def test_tool_whose_caller_is_unknown_is_counted_and_said_once(caplog):
    clock = FakeClock()
    with Rig(clock=clock) as rig, caplog.at_level(logging.WARNING, "otel_agenteval"):
        rig.run()
        for _ in range(4):
            tool = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "pay"}
            rig.provider.get_tracer("shop").start_span("pay", attributes=tool).end()
        assert rig.turns()
        clock.advance(60)  # a turn that contains them could still arrive
        rig.engine.intake.tick()
        assert rig.count("agenteval.unread_traces") == {("shop", "caller"): 4}
    assert sum("a tool's trace in the instrumentation scope 'shop'" in message for message in caplog.messages) == 1
