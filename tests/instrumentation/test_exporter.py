"""Our span exporter, for setups without span processors: ended spans arrive in batches and in any order."""

from __future__ import annotations

from collections import deque

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor

import otel_agenteval as oa
from otel_agenteval.engine.engine import BEHIND_OTLP
from tests.support.rig import Rig, chat_attributes

QUIET = {"outlets": {"prometheus": None, "log_events": False}}


class Door:
    """A provider with our exporter, and the turns that the exporter evaluated."""

    def __init__(self, delay="0ms", make=BatchSpanProcessor, **options):
        self.exporter = oa.AgentEvalSpanExporter({**QUIET, "turn": {"decision_delay": delay}})
        self.kept = deque()
        self.exporter.engine.keep_turns(self.kept)
        self.provider = TracerProvider(shutdown_on_exit=False, **options)
        self.provider.add_span_processor(make(self.exporter))
        self.tracer = self.provider.get_tracer("app")

    def run(self, name="bot", says="Hi."):
        attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}
        with self.tracer.start_as_current_span(f"invoke_agent {name}", attributes=attributes):
            self.tracer.start_span("chat m-1", attributes=chat_attributes("hello", says)).end()

    def turns(self):
        assert self.provider.force_flush()
        assert self.exporter.force_flush()
        return [scored.turn for scored in self.kept]


@pytest.fixture
def door():
    door = Door()
    yield door
    door.provider.shutdown()


def test_turns_in_a_batch_are_told_apart(door):
    with door.tracer.start_as_current_span("POST /chat"):
        for i in range(2):
            door.run(f"agent-{i}", says=f"answer {i}")
    door.run("agent-2", says="answer 2")
    turns = door.turns()
    assert {(turn.agent, turn.input, turn.output) for turn in turns} == {(f"agent-{i}", "hello", f"answer {i}") for i in range(3)}
    assert {(turn.close_reason, turn.complete) for turn in turns} == {("delay", True)}


def test_a_turn_waits_for_the_decision_delay():
    door = Door(delay="1h")
    door.run()
    assert door.turns() == []
    door.provider.shutdown()
    assert [scored.turn.close_reason for scored in door.kept] == ["shutdown"]


def test_spans_that_are_exported_one_by_one_are_one_turn():
    door = Door(delay="1h", make=SimpleSpanProcessor)
    door.run(says="Hi there.")
    door.provider.shutdown()
    (scored,) = door.kept
    assert (scored.turn.agent, scored.turn.output) == ("bot", "Hi there.")


def test_beside_a_span_processor_it_does_nothing():
    exporter = oa.AgentEvalSpanExporter(QUIET)
    with Rig(before=[SimpleSpanProcessor(exporter)]) as rig:
        rig.run()
        assert len(rig.turns()) == 1
        assert (exporter.engine.assembler.received, exporter.engine.assembler.open_turns) == (0, 0)


def test_it_waits_as_long_as_a_sidecar_and_makes_no_span_events():
    exporter = oa.AgentEvalSpanExporter({**QUIET, "outlets": {**QUIET["outlets"], "span_events": "all"}})
    try:
        assert exporter.engine.assembler.limits.decision_delay == BEHIND_OTLP == 10.0
        assert exporter.engine.pipeline.span_events.mode == "off"
    finally:
        exporter.shutdown()


def test_after_shutdown_it_takes_no_more(door):
    door.exporter.shutdown()
    door.run()
    door.provider.force_flush()
    assert door.exporter.engine.assembler.open_turns == 0
