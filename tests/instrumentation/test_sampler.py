"""record_all: spans that a head sampler drops are evaluated, but not exported."""

from __future__ import annotations

import pytest
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased, TraceIdRatioBased

import otel_agenteval as oa
from tests.support.rig import Rig


def test_without_it_a_dropped_turn_is_not_seen():
    with Rig(sampler=ALWAYS_OFF) as rig:
        rig.run()
        assert rig.turns() == []


@pytest.mark.parametrize(
    "sampler", [ALWAYS_OFF, ParentBased(ALWAYS_OFF), TraceIdRatioBased(0.0)], ids=["off", "parent based", "ratio 0"]
)
def test_a_dropped_turn_is_evaluated_and_not_exported(sampler):
    with Rig(sampler=oa.record_all(sampler)) as rig:
        rig.run(says="Paris.")
        assert (rig.turn().output, [call.name for call in rig.turn().tool_calls]) == ("Paris.", ["search"])
        assert rig.exported_names() == []
        assert {bool(record.trace_flags.sampled) for record in rig.log_events()} == {False}
        distributions = rig.engine.telemetry.read("agenteval.turn.duration").distributions.values()
        assert [kept for found in distributions for kept in found.exemplars if kept is not None] == []


def test_traces_without_genai_stay_dropped():
    with Rig(sampler=oa.record_all(ALWAYS_OFF)) as rig:
        with rig.tracer.start_as_current_span("GET /") as span:
            assert not span.is_recording()
            assert not rig.tracer.start_span("SELECT").is_recording()
        assert rig.engine.assembler.received == 0


def test_what_the_sampler_keeps_is_exported_as_before():
    with Rig(sampler=oa.record_all(ALWAYS_ON)) as rig:
        rig.run()
        assert len(rig.exported_names()) == 3
        assert rig.score_events("invoke_agent bot")


def test_an_application_span_below_a_recorded_agent_is_recorded():
    with Rig(sampler=oa.record_all(ALWAYS_OFF)) as rig:
        with rig.agent(), rig.tracer.start_as_current_span("helper") as helper:
            assert helper.is_recording()
            rig.chat("hello", "Hi.")
        assert rig.turn().output == "Hi."


def test_an_agent_below_a_dropped_request_is_evaluated():
    with Rig(sampler=oa.record_all(ParentBased(ALWAYS_OFF))) as rig:
        with rig.tracer.start_as_current_span("POST /chat"):
            rig.run(says="Hi.")
        assert (rig.turn().output, rig.turn().close_reason) == ("Hi.", "root_ended")
        assert rig.exported_names() == []


def test_agents_are_recognised_by_their_names_too():
    with Rig(sampler=oa.record_all(ALWAYS_OFF)) as rig:
        assert rig.tracer.start_span("invoke_agent bot").is_recording()
        assert not rig.tracer.start_span("checkout").is_recording()


def test_its_description_names_the_wrapped_sampler():
    assert oa.record_all(ALWAYS_OFF).get_description() == "AgentEvalRecordAll{AlwaysOffSampler}"
