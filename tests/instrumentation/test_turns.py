"""Turns out of live SDK spans: where they begin, when they end, what belongs to them."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
from opentelemetry import trace
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ConcurrentMultiSpanProcessor, SpanLimits, TracerProvider
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult
from opentelemetry.trace import SpanContext, TraceFlags

from tests.support.clock import FakeClock
from tests.support.rig import Rig, chat_attributes


class Dropping(Sampler):
    """Drops the spans of one name, or records them without exporting."""

    def __init__(self, name, decision):
        self._name = name
        self._decision = decision

    def should_sample(self, parent_context, trace_id, name, kind=None, attributes=None, links=None, trace_state=None):
        decision = self._decision if name == self._name else Decision.RECORD_AND_SAMPLE
        return SamplingResult(decision, attributes)

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


def test_each_of_two_turns_in_a_trace_has_its_events_on_its_own_root():
    with Rig() as rig:
        with rig.tracer.start_as_current_span("POST /chat"):
            rig.run("first")
            rig.run("second")
        first, second = (rig.score_events(f"invoke_agent {name}") for name in ("first", "second"))
        assert first.keys() == second.keys() != set()
        assert {event["agenteval.result.id"] for event in first.values()}.isdisjoint(
            event["agenteval.result.id"] for event in second.values()
        )
        assert rig.score_events("POST /chat") == {}


def test_agents_one_after_the_other_in_two_traces_are_two_turns():
    with Rig() as rig:
        rig.run("first")
        rig.run("second")
        assert len({turn.trace_id for turn in rig.turns()}) == 2


def test_an_agent_below_an_agent_belongs_to_its_turn():
    with Rig() as rig:
        with rig.agent("triage"):
            with rig.agent("billing"):
                rig.chat("refund", "Refunded.")
            rig.chat("help", "All done.")
        turn = rig.turn()
        assert turn.agent == "triage"
        assert [(run.name, run.parent) for run in turn.agent_runs] == [("triage", None), ("billing", "triage")]
        assert rig.score_events("invoke_agent billing") == {}


def test_an_application_span_with_model_calls_below_is_the_turn():
    with Rig() as rig:
        with rig.tracer.start_as_current_span("handle_message", attributes={"session.id": "conv-1"}):
            rig.chat("hello", calls=[{"id": "c1", "name": "search", "arguments": {}}])
            rig.chat("hello", "Hi there.")
        turn = rig.turn()
        assert (turn.conversation_id, turn.output, len(turn.llm_calls)) == ("conv-1", "Hi there.", 2)
        assert rig.score_events("handle_message")


def test_a_model_call_alone_is_its_own_turn():
    with Rig() as rig:
        rig.chat("hello", "Hi.")
        assert (rig.turn().output, rig.turn().duration_s is not None) == ("Hi.", True)
        assert rig.score_events("chat m-1")


def test_a_span_with_a_parent_in_another_process_is_a_local_root():
    remote = SpanContext(0xAB, 0xCD, is_remote=True, trace_flags=TraceFlags(1))
    with Rig() as rig:
        rig.run(context=trace.set_span_in_context(trace.NonRecordingSpan(remote)))
        turn = rig.turn()
        assert (turn.trace_id, turn.close_reason, turn.complete) == (f"{0xAB:032x}", "root_ended", True)
        assert rig.score_events("invoke_agent bot")


def test_traces_without_genai_give_nothing_and_leave_nothing():
    with Rig() as rig:
        for _ in range(3):
            with rig.tracer.start_as_current_span("GET /"):
                for _ in range(50):
                    rig.tracer.start_span("SELECT", attributes={"db.system": "postgresql"}).end()
        assert rig.turns() == []
        assert (rig.engine.assembler.open_turns, rig.engine.assembler.bytes) == (0, 0)
        assert rig.log_events() == []


def test_spans_of_our_own_scope_are_never_evaluated():
    with Rig() as rig:
        tracer = rig.provider.get_tracer("otel_agenteval")
        with tracer.start_as_current_span("invoke_agent judge", attributes={"gen_ai.operation.name": "invoke_agent"}):
            tracer.start_span("chat m-1", attributes=chat_attributes("is it good?", "yes")).end()
        assert rig.turns() == []
        assert rig.engine.assembler.open_turns == 0


def test_our_own_spans_inside_a_turn_are_not_part_of_it():
    with Rig() as rig:
        with rig.agent():
            rig.chat("hello", "Hi.")
            rig.provider.get_tracer("otel_agenteval").start_span("chat judge", attributes=chat_attributes("good?", "yes")).end()
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


def test_turns_in_interleaved_tasks_keep_their_own_spans():
    async def one(rig, i):
        with rig.agent(f"agent-{i}"):
            for step in range(3):
                await asyncio.sleep(0)
                rig.chat(f"q {i}", f"a {i}" if step == 2 else None)
                rig.tool(f"tool-{i}")

    async def all_of_them(rig):
        with rig.tracer.start_as_current_span("batch"):
            await asyncio.gather(*(one(rig, i) for i in range(20)))

    with Rig() as rig:
        asyncio.run(all_of_them(rig))
        turns = rig.turns()
        assert {(turn.agent, turn.output) for turn in turns} == {(f"agent-{i}", f"a {i}") for i in range(20)}
        assert all({call.name for call in turn.tool_calls} == {turn.agent.replace("agent", "tool")} for turn in turns)


def test_tools_in_parallel_threads_belong_to_the_turn_whose_context_they_got():
    with Rig() as rig:
        with rig.agent() as root:
            context = trace.set_span_in_context(root)
            with ThreadPoolExecutor(4) as pool:
                list(pool.map(lambda i: rig.tool(f"tool-{i}", context=context), range(8)))
        assert {call.name for call in rig.turn().tool_calls} == {f"tool-{i}" for i in range(8)}


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
        with rig.agent():
            stream = rig.start_chat("tell me", "The whole story.")
        assert rig.turns() == []
        stream.end()
        assert (rig.turn().output, rig.turn().complete, rig.turn().close_reason) == ("The whole story.", True, "root_ended")


def test_a_turn_that_closes_after_its_root_has_log_events_only():
    with Rig() as rig:
        with rig.agent():
            stream = rig.start_chat("tell me", "The whole story.")
        stream.end()
        logged = rig.log_events()
        assert logged
        assert rig.score_events("invoke_agent bot") == rig.score_events("chat m-1") == {}
        assert rig.count("agenteval.span_events") == {("root_already_ended",): len(logged)}


def test_a_log_event_points_at_the_root_also_after_its_end():
    with Rig() as rig:
        with rig.agent() as root:
            stream = rig.start_chat("tell me", "The whole story.")
        stream.end()
        context = root.get_span_context()
        assert {(record.trace_id, record.span_id) for record in rig.log_events()} == {(context.trace_id, context.span_id)}


def test_a_child_that_never_ends_is_waited_for_until_the_delay():
    clock = FakeClock()
    with Rig({"turn": {"decision_delay": "2s"}}, clock=clock) as rig:
        with rig.agent():
            rig.start_chat("tell me")
        clock.advance(1.9)
        assert rig.turns() == []
        clock.advance(0.2)
        assert (rig.turn().close_reason, rig.turn().complete) == ("delay", False)
        assert rig.engine.assembler.open_turns == 0


def test_what_is_open_at_shutdown_is_evaluated():
    with Rig() as rig:
        with rig.agent():
            rig.chat("hello", "Hi.")
            rig.processor.shutdown()
        (scored,) = rig.kept
        assert (scored.turn.close_reason, scored.turn.complete, scored.turn.output) == ("shutdown", False, "Hi.")


def test_a_processor_that_is_shut_down_twice_evaluates_once():
    with Rig() as rig:
        rig.run()
        rig.processor.shutdown()
        rig.processor.shutdown()
        assert len(rig.kept) == 1


# --- incomplete sight


def test_a_processor_added_in_the_middle_of_a_turn_sees_one_turn():
    clock = FakeClock()
    with Rig(attach=False, clock=clock) as rig:
        with rig.agent():
            open_before = rig.start_chat("hello")
            rig.attach()
            open_before.end()
            rig.tool("seen")
            rig.chat("hello", "Hi.")
        clock.advance(2.1)
        turn = rig.turn()
        assert (turn.agent, turn.output, len(turn.llm_calls)) == ("bot", "Hi.", 2)
        assert [call.name for call in turn.tool_calls] == ["seen"]
        assert rig.engine.assembler.open_turns == 0


def test_a_span_in_the_middle_that_is_dropped_does_not_break_the_turn():
    with Rig(sampler=Dropping("middle", Decision.DROP)) as rig:
        with rig.agent(), rig.tracer.start_as_current_span("middle"):
            rig.tool("below")
            rig.chat("hello", "Hi.")
        turn = rig.turn()
        assert (turn.agent, turn.output, [call.name for call in turn.tool_calls]) == ("bot", "Hi.", ["below"])


def test_spans_below_a_dropped_one_belong_to_the_agent_that_runs_below_the_request():
    with Rig(sampler=Dropping("middle", Decision.DROP)) as rig:
        with rig.tracer.start_as_current_span("POST /chat"), rig.agent(), rig.tracer.start_as_current_span("middle"):
            rig.chat("hello", "Hi.")
        assert (rig.turn().agent, rig.turn().output) == ("bot", "Hi.")


def test_a_turn_waits_for_an_open_span_below_a_dropped_one():
    with Rig(sampler=Dropping("middle", Decision.DROP)) as rig:
        with rig.agent(), rig.tracer.start_as_current_span("middle"):
            stream = rig.start_chat("hello", "Hi.")
        assert rig.turns() == []
        stream.end()
        assert (rig.turn().output, rig.turn().complete) == ("Hi.", True)


def test_spans_below_a_dropped_one_are_counted_as_orphans():
    with Rig(sampler=Dropping("middle", Decision.DROP)) as rig:
        with rig.agent(), rig.tracer.start_as_current_span("middle"):
            rig.chat("hello", "Hi.")
        assert rig.turn()
        assert rig.count("agenteval.spans.dropped")[("orphan_parent",)] == 1


def test_a_span_in_the_middle_that_is_only_recorded_does_not_break_the_turn():
    with Rig(sampler=Dropping("middle", Decision.RECORD_ONLY)) as rig:
        with rig.agent(), rig.tracer.start_as_current_span("middle"):
            rig.chat("hello", "Hi.")
        assert rig.turn().output == "Hi."
        assert "middle" not in rig.exported_names()


def test_an_agent_below_a_dropped_request_span_is_a_turn_of_its_own():
    with Rig(sampler=Dropping("POST /chat", Decision.DROP)) as rig:
        with rig.tracer.start_as_current_span("POST /chat"):
            rig.run(says="Hi.")
        assert (rig.turn().output, rig.turn().close_reason) == ("Hi.", "root_ended")
        assert rig.score_events("invoke_agent bot")


# --- late


def test_a_span_that_starts_after_the_turn_closed_is_late_and_its_age_is_counted():
    clock = FakeClock()
    with Rig(clock=clock) as rig:
        with rig.agent() as root:
            rig.chat("hello", "Hi.")
        clock.advance(7)
        rig.tracer.start_span(
            "execute_tool late", context=trace.set_span_in_context(root), attributes={"gen_ai.tool.name": "late"}
        ).end()
        assert rig.count("agenteval.late_spans") == {(): 1}
        assert rig.turns()
        age = rig.engine.telemetry.read("agenteval.late_span.age").distributions[()]
        assert age.sum == pytest.approx(7)


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


def test_a_turn_with_too_many_spans_is_evaluated_with_the_reason():
    with Rig({"turn": {"max_spans": 20}}) as rig:
        with rig.agent():
            for _ in range(30):
                rig.tool()
        turn = rig.turns()[0]
        assert (turn.close_reason, turn.complete) == ("span_limit", False)
        assert rig.count("agenteval.turns")[("bot", "shop", "span_limit", "false")] == 1
        assert rig.engine.assembler.open_turns == 0


def test_a_turn_with_too_many_bytes_is_evaluated_with_the_reason():
    with Rig({"turn": {"max_bytes": "64kB"}}) as rig:
        with rig.agent():
            for _ in range(20):
                rig.chat("x" * 10_000)
        assert rig.turns()[0].close_reason == "byte_limit"
        assert rig.engine.assembler.open_turns == 0


def test_past_the_number_of_open_turns_the_oldest_is_evaluated():
    with Rig({"turn": {"max_open": 2}}) as rig:
        spans = [
            rig.tracer.start_span(
                f"invoke_agent {i}", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"agent-{i}"}
            )
            for i in range(3)
        ]
        turn = rig.turn()
        assert (turn.agent, turn.close_reason, turn.complete) == ("agent-0", "evicted", False)
        for span in spans:
            span.end()


def test_past_the_total_of_bytes_the_oldest_is_evaluated():
    with Rig({"turn": {"total_bytes": "64kB"}}) as rig:
        roots = []
        for i in range(4):
            root = rig.tracer.start_span(
                f"invoke_agent {i}", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": f"agent-{i}"}
            )
            rig.chat("x" * 25_000, context=trace.set_span_in_context(root))
            roots.append(root)
        assert next((turn.agent, turn.close_reason) for turn in rig.turns()) == ("agent-0", "evicted")
        assert rig.engine.assembler.bytes < 64_000
        for root in roots:
            root.end()
        assert rig.engine.assembler.open_turns == 0


def test_an_attribute_of_ten_megabytes_makes_a_truncated_turn():
    with Rig() as rig:
        with rig.agent():
            rig.chat("x" * 10_000_000, "Short answer.")
        turn = rig.turns()[0]
        assert turn.truncated
        assert rig.engine.assembler.open_turns == 0
        assert rig.log_events()


def test_attributes_that_the_sdk_evicted_make_a_truncated_turn():
    with Rig(span_limits=SpanLimits(max_span_attributes=128)) as rig:
        with rig.agent() as root:
            rig.chat("hello", "Hi.")
            root.set_attributes(
                {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot", **{f"app.key.{i}": i for i in range(200)}}
            )
        assert rig.turn().truncated


def test_a_turn_whose_root_lost_its_role_to_the_limit_is_still_a_turn():
    with Rig(span_limits=SpanLimits(max_span_attributes=8)) as rig:
        with rig.agent() as root:
            rig.chat("hello", "Hi.")
            root.set_attributes({f"app.key.{i}": i for i in range(20)})
        assert (rig.turn().output, rig.turn().truncated) == ("Hi.", True)
