"""Turns of live SDK spans: their start, their end, and their spans."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

from tests.support.clock import FakeClock
from tests.support.rig import Rig, chat_attributes


class Dropping(Sampler):
    """Drops the spans named ``middle``."""

    def should_sample(self, parent_context, trace_id, name, kind=None, attributes=None, links=None, trace_state=None):
        return SamplingResult(Decision.DROP if name == "middle" else Decision.RECORD_AND_SAMPLE, attributes)

    def get_description(self):
        return "dropping"


# --- where a turn begins


def test_an_agent_without_a_parent_is_a_turn():
    with Rig() as rig:
        rig.run(user="What is the capital of France?", says="Paris.")
        turn = rig.turn()
        assert (turn.agent, turn.input, turn.output) == ("bot", "What is the capital of France?", "Paris.")
        assert [call.name for call in turn.tool_calls] == ["search"]
        assert (turn.usage.input_tokens, turn.usage.output_tokens) == (10, 5)
        assert (turn.close_reason, turn.complete, turn.service) == ("root_ended", True, "shop")


def test_two_agents_under_one_application_span_are_two_turns():
    with Rig() as rig:
        with rig.tracer.start_as_current_span("POST /chat"):
            rig.run("first", says="One.")
            rig.run("second", says="Two.")
        assert [(turn.agent, turn.output) for turn in rig.turns()] == [("first", "One."), ("second", "Two.")]
        first, second = (
            {event["agenteval.result.id"] for event in rig.score_events(f"invoke_agent {name}").values()}
            for name in ("first", "second")
        )
        assert len(first) == len(second) > 0
        assert first.isdisjoint(second)
        assert rig.score_events("POST /chat") == {}


def test_a_model_call_alone_is_its_own_turn():
    with Rig() as rig:
        rig.chat("hello", "Hi.")
        assert (rig.turn().output, rig.turn().duration_s is not None) == ("Hi.", True)
        assert rig.score_events("chat m-1")


def test_spans_of_our_own_scope_are_in_no_turn():
    with Rig() as rig:
        tracer = rig.provider.get_tracer("otel_agenteval")
        with tracer.start_as_current_span("invoke_agent judge", attributes={"gen_ai.operation.name": "invoke_agent"}):
            tracer.start_span("chat m-1", attributes=chat_attributes("is it good?", "yes")).end()
        assert rig.turns() == []
        assert rig.engine.assembler.open_turns == 0
        with rig.agent():
            rig.chat("hello", "Hi.")
            tracer.start_span("chat judge", attributes=chat_attributes("good?", "yes")).end()
        assert [call.model for call in rig.turn().llm_calls] == ["m-1"]


# --- many at once


def test_turns_in_many_threads_keep_their_own_spans():
    with Rig({"queue": {"max_bytes": "256MiB"}}) as rig:
        start = threading.Barrier(8)

        def work(worker):
            start.wait()
            for i in range(10):
                with rig.tracer.start_as_current_span("handle"):
                    rig.run(f"agent-{worker}", user=f"q {worker}-{i}", says=f"a {worker}-{i}")

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(work, range(8)))
        turns = rig.turns()
        assert len(turns) == 80
        assert all(turn.input[2:] == turn.output[2:] and len(turn.llm_calls) == len(turn.tool_calls) == 1 for turn in turns)
        assert rig.engine.assembler.open_turns == 0


def test_a_concurrent_multi_processor_gives_the_same_turns_and_events():
    multi = ConcurrentMultiSpanProcessor(2)
    provider = TracerProvider(active_span_processor=multi, resource=Resource({}), shutdown_on_exit=False)
    with Rig(provider=provider) as rig:
        with rig.tracer.start_as_current_span("POST /chat"):
            rig.run("first", says="One.")
            rig.run("second", says="Two.")
        assert sorted(turn.output for turn in rig.turns()) == ["One.", "Two."]
        assert rig.count("agenteval.span_events").keys() == {("ending",)}
    multi._executor.shutdown()


# --- when it ends


def test_a_stream_that_ends_after_its_agent_closes_the_turn():
    with Rig() as rig:
        with rig.agent() as root:
            stream = rig.start_chat("tell me", "The whole story.")
        assert rig.turns() == []
        stream.end()
        assert (rig.turn().output, rig.turn().complete, rig.turn().close_reason) == ("The whole story.", True, "root_ended")
        logged, context = rig.log_events(), root.get_span_context()
        assert {(record.trace_id, record.span_id) for record in logged} == {(context.trace_id, context.span_id)}
        assert rig.score_events("invoke_agent bot") == rig.score_events("chat m-1") == {}
        assert rig.count("agenteval.span_events") == {("root_already_ended",): len(logged)}


def test_what_is_open_at_shutdown_is_evaluated_once():
    with Rig() as rig:
        with rig.agent():
            rig.chat("hello", "Hi.")
            rig.processor.shutdown()
            rig.processor.shutdown()
        (scored,) = rig.kept
        assert (scored.turn.close_reason, scored.turn.complete, scored.turn.output) == ("shutdown", False, "Hi.")


# --- incomplete sight


def test_a_span_in_the_middle_that_is_dropped_does_not_break_the_turn():
    with Rig(sampler=Dropping()) as rig:
        with rig.tracer.start_as_current_span("POST /chat"), rig.agent(), rig.tracer.start_as_current_span("middle"):
            rig.chat("hello", "Hi.")
        turn = rig.turn()
        assert (turn.agent, turn.output) == ("bot", "Hi.")
        assert rig.count("agenteval.spans.dropped")[("orphan_parent",)] == 1


def test_a_turn_waits_for_an_open_span_below_a_dropped_one():
    with Rig(sampler=Dropping()) as rig:
        with rig.agent(), rig.tracer.start_as_current_span("middle"):
            stream = rig.start_chat("hello", "Hi.")
        assert rig.turns() == []
        stream.end()
        assert (rig.turn().output, rig.turn().complete) == ("Hi.", True)


# --- late


def test_a_span_that_ends_after_a_forced_close_is_late_and_reopens_nothing():
    clock = FakeClock()
    with Rig({"turn": {"decision_delay": "2s"}}, clock=clock) as rig:
        with rig.agent():
            rig.chat("hello", "Hi.")
            stream = rig.start_chat("tell me")
        clock.advance(3)
        assert rig.turn().close_reason == "delay"
        stream.end()
        assert len(rig.turns()) == 1
        assert rig.count("agenteval.late_spans") == {(): 1}
        assert rig.engine.assembler.open_turns == 0


# --- bounds


def test_an_attribute_of_ten_megabytes_makes_a_truncated_turn():
    with Rig() as rig:
        with rig.agent():
            rig.chat("x" * 10_000_000, "Short answer.")
        turn = rig.turns()[0]
        assert turn.truncated
        assert rig.engine.assembler.open_turns == 0
        assert rig.log_events()


def test_a_turn_whose_root_lost_its_role_to_the_limit_is_still_a_turn():
    with Rig(span_limits=SpanLimits(max_span_attributes=8)) as rig:
        with rig.agent() as root:
            rig.chat("hello", "Hi.")
            root.set_attributes({f"app.key.{i}": i for i in range(20)})
        assert (rig.turn().output, rig.turn().truncated) == ("Hi.", True)


@pytest.mark.parametrize(("asked", "turns"), [("Name a river.", 1), (None, 1), ("Name a lake.", 2)])
def test_run_of_a_generator_whose_span_is_not_current(asked, turns):
    """traceroot-py 119, opik 1128: the model call is a trace of its own."""
    with Rig() as rig:
        run = rig.tracer.start_span("invoke_agent geo", attributes={"gen_ai.operation.name": "invoke_agent"})
        rig.chat("Name a river.", "Rhine.")
        if asked is not None:
            question = [{"role": "user", "parts": [{"type": "text", "content": asked}]}]
            run.set_attribute("gen_ai.input.messages", json.dumps(question))
        run.end()
        assert len(rig.turns()) == turns
