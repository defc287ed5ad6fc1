"""Turns created in the process equal the turns of a file with the same telemetry.

The output of a real OTLP exporter is written as OTLP/JSON lines while agents run, and then read.
"""

from __future__ import annotations

import asyncio
import time
from contextlib import contextmanager, nullcontext

import pytest

pytest.importorskip("langchain")
pytest.importorskip("pydantic_ai")

import httpx
import openai
from opentelemetry import trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import DeltaToolCall, FunctionModel
from pydantic_ai.usage import RequestUsage

from otel_agenteval import load_turns
from tests.support.agents import (
    MODEL,
    answer_tools,
    asker,
    begin,
    definitions,
    langchain_traced,
    langgraph_agent,
    openai_traced,
    pydantic_agent,
    said,
    settings_of,
    tool_loop,
)
from tests.support.clock import FakeClock
from tests.support.fake_llm import SCRIPTS
from tests.support.live import Live
from tests.support.otlp_json import write_lines
from tests.support.rig import chat_attributes

_REVISED = ("complete", "revision", "supersedes")


def question(script):
    return SCRIPTS[script][0]


class Both:
    """Telemetry whose turns are read from the process, and from the file of its exports."""

    def __init__(self, folder):
        self.clock = FakeClock()
        self.live = Live(clock=self.clock)
        self._folder = folder

    def wait(self, seconds):
        """Advance our clock, and evaluate turns that are due."""
        self.clock.advance(seconds)
        assert self.live.handle.flush()

    def made(self):
        """Return the last revision of every turn, after everything has arrived."""
        assert self.live.handle.flush()
        for seconds in (3, 40, 400):
            self.wait(seconds)
        last = {}
        for scored in self.live.kept:
            last.pop(scored.supersedes, None)
            last[scored.turn.turn_id] = scored.turn
        assert self.live.engine.assembler.open_turns == self.live.engine.pipeline.composer.waiting == 0
        assert self.live.engine.assembler.bytes == 0
        return last

    def check(self, turns=1, *, forced=False):
        """Return the turns by start, after checking that both ways agree. ``forced`` turns were closed while a span was open."""
        made = self.made()
        self.live.flush()
        assert self.live.logger_provider.force_flush()
        file = write_lines(self.live.receiver.requests, self._folder / "sent.jsonl")
        read = {turn.turn_id: turn for turn in load_turns(file, report=pytest.fail)}
        loose = {turn_id for turn_id, turn in made.items() if forced or turn.revision > 1}
        assert made.keys() == read.keys()
        for turn_id, turn in made.items():
            assert differences(turn, read[turn_id], turn_id in loose) == []
        assert len(made) == turns
        return [made[turn_id] for turn_id in read]


def differences(turn, other, revised):
    """Return the differences of two turns as (path, first value, second value)."""
    left_out = ("close_reason", *(_REVISED if revised else ()))
    return [found for found in unlike(turn.to_dict(), other.to_dict()) if found[0] not in left_out]


def unlike(one, other, path=""):
    if isinstance(one, dict) and isinstance(other, dict):
        for key in one | other:
            yield from unlike(one.get(key), other.get(key), f"{path}.{key}".lstrip("."))
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for index, (first, second) in enumerate(zip(one, other, strict=True)):
            yield from unlike(first, second, f"{path}.{index}")
    elif one != other:
        yield path, one, other


@pytest.fixture
def both(tmp_path):
    both = Both(tmp_path)
    yield both
    both.live.close()


def tools_of(turn):
    return [(call.name, call.arguments, call.result) for call in turn.tool_calls]


PARIS = ("get_weather", {"city": "Paris"}, "18°C and sunny")
TOKYO = ("get_weather", {"city": "Tokyo"}, "24°C and rainy")


def get_weather(city: str) -> str:
    """Current weather of a city."""
    return {"Paris": "18°C and sunny", "Tokyo": "24°C and rainy", "Lima": "21°C and foggy", "Oslo": "3°C"}[city]


def run_report(name: str) -> str:
    """Run a report."""
    raise RuntimeError("database connection lost")


# --- pydantic-ai


def scripted(*steps):
    """Return a model with the reply that follows the steps in the history, complete or streamed."""
    messages = [
        step
        if isinstance(step, Exception)
        else ModelResponse(
            parts=[TextPart(step)] if isinstance(step, str) else [ToolCallPart(*call) for call in step],
            usage=RequestUsage(input_tokens=50 + index, output_tokens=20),
        )
        for index, step in enumerate(steps)
    ]

    def next_of(history):
        step = messages[sum(isinstance(message, ModelResponse) for message in history)]
        if isinstance(step, Exception):
            raise step
        return step

    async def stream(history, info):
        for index, part in enumerate(next_of(history).parts):
            if isinstance(part, TextPart):
                for word in part.content.split(" "):
                    yield f"{word} "
            else:
                yield {index: DeltaToolCall(part.tool_name, part.args_as_json_str(), tool_call_id=part.tool_call_id)}

    return FunctionModel(lambda history, info: next_of(history), stream_function=stream, model_name="scripted-1")


ONE = [("get_weather", {"city": "Paris"}, "call_1")]
TWO = [*ONE, ("get_weather", {"city": "Tokyo"}, "call_2")]


def test_pydantic_ai_with_parallel_tools(both):
    agent = pydantic_agent(both.live, scripted(TWO, "Sunny, and rainy."), tools=[get_weather])
    agent.run_sync("Weather?", conversation_id="conv-1")
    (turn,) = both.check()
    assert sorted(tools_of(turn), key=str) == [PARIS, TOKYO]
    assert (turn.conversation_id, turn.output) == ("conv-1", "Sunny, and rainy.")


def test_pydantic_ai_with_an_agent_as_a_tool(both):
    billing = pydantic_agent(both.live, scripted("Refunded."), "billing")

    async def ask_billing(request: str) -> str:
        """Ask the billing team."""
        return (await billing.run(request)).output

    steps = [[("ask_billing", {"request": "Refund it."}, "call_1")], "All done."]
    pydantic_agent(both.live, scripted(*steps), "triage", tools=[ask_billing]).run_sync("I was charged twice.")
    (turn,) = both.check()
    assert [(run.name, run.parent) for run in turn.agent_runs] == [("triage", None), ("billing", "triage")]


def test_pydantic_ai_that_streams(both):
    agent = pydantic_agent(both.live, scripted(ONE, "It is sunny now."), tools=[get_weather])

    async def run():
        async with agent.run_stream("Weather?") as result:
            return [text async for text in result.stream_text(delta=True, debounce_by=None)]

    assert len(asyncio.run(run())) > 1
    (turn,) = both.check()
    assert (tools_of(turn), turn.output.strip()) == ([PARIS], "It is sunny now.")


@pytest.mark.parametrize("failing", ["model", "tool"])
def test_pydantic_ai_with_a_failure(both, failing):
    steps = [ONE, RuntimeError("down")] if failing == "model" else [[("run_report", {"name": "nightly"}, "call_1")], "Done."]
    with pytest.raises(RuntimeError):
        pydantic_agent(both.live, scripted(*steps), tools=[get_weather, run_report]).run_sync("Weather?")
    (turn,) = both.check()
    assert (turn.error if failing == "model" else turn.tool_calls[0].error).type == "RuntimeError"
    assert failing == "tool" or tools_of(turn) == [PARIS]


def test_pydantic_ai_without_content(both):
    agent = pydantic_agent(both.live, scripted(ONE, "Sunny."), content=False, tools=[get_weather])
    agent.run_sync("Weather?")
    (turn,) = both.check()
    assert (turn.input, turn.output, [call.name for call in turn.tool_calls]) == (None, None, ["get_weather"])


# --- the OpenAI SDK in a loop by hand

OFFERED = definitions({"get_weather": "city"})
TOOLS = {"get_weather": get_weather}
ON_SPANS, ON_LOGS, OFF = "SPAN_ONLY", "EVENT_ONLY", "NO_CONTENT"


@pytest.fixture
def client(llm):
    with openai.OpenAI(base_url=llm, api_key="none", max_retries=0) as client:
        yield client


@pytest.fixture(params=[ON_SPANS, ON_LOGS, OFF], ids=["content on spans", "content in log records", "content off"])
def capture(request):
    return request.param


@contextmanager
def handling(both, **attributes):
    with both.live.tracer.start_as_current_span("handle_message", attributes={"session.id": "conv-1", **attributes}) as span:
        yield span


def known(capture, value):
    return None if capture == OFF else value


@pytest.mark.parametrize(("script", "stream"), [("s1", False), ("s3", True), ("s18", False), ("s19", True)])
def test_the_openai_sdk_in_a_loop_below_a_span(both, client, capture, script, stream):
    with openai_traced(both.live, capture), handling(both):
        answer = tool_loop(asker(client, OFFERED, stream=stream), question(script), TOOLS)
    (turn,) = both.check()
    assert (turn.input, turn.output) == (known(capture, question(script)), known(capture, answer))


def test_the_openai_sdk_in_a_loop_without_a_span(both, client, capture):
    with openai_traced(both.live, capture):
        tool_loop(asker(client, OFFERED), question("s3"), TOOLS)
    (turn,) = both.check()
    assert (len(turn.llm_calls), turn.input) == (2, known(capture, question("s3")))


def test_two_loops_without_a_span_that_take_turns(both, client, capture):
    if capture == OFF:
        pytest.skip("without content nothing tells such loops apart")
    ask = asker(client, OFFERED)
    with openai_traced(both.live, capture):
        histories = [begin(question(script)) for script in ("s2", "s3")]
        for _ in range(2):
            for history in histories:
                message = ask(history)
                history += [message, *answer_tools(message, TOOLS)]
    first, second = both.check(2)
    assert (tools_of(first), tools_of(second)) == ([PARIS], [PARIS, TOKYO])


@pytest.mark.parametrize("script", ["s9", "s9b"])
@pytest.mark.parametrize("below", [True, False], ids=["below a span", "without a span"])
def test_the_openai_sdk_with_a_call_that_fails(both, client, capture, script, below):
    around = handling(both) if below else nullcontext()
    with openai_traced(both.live, capture), pytest.raises(openai.APIStatusError), around:
        tool_loop(asker(client, OFFERED), question(script), TOOLS)
    alone = capture == OFF and not below and script == "s9b"  # a failed call without content or tokens fits no other
    assert both.check(2 if alone else 1)[-1].error is not None


def open_stream(client):
    """Return a stream after its first chunk."""
    stream = client.chat.completions.create(model=MODEL, messages=begin(question("s20")), stream=True)
    next(iter(stream))
    return stream


def test_a_stream_of_the_openai_sdk_that_is_closed_long_after_its_request_was_handled(both, client, capture):
    with openai_traced(both.live, capture):
        with handling(both):
            tool_loop(asker(client, OFFERED), question("s2"), TOOLS)
            stream = open_stream(client)
        both.wait(3)
        assert [scored.turn.close_reason for scored in both.live.kept] == ["delay"]
        stream.close()
        (turn,) = both.check()
    assert (turn.revision, len(turn.llm_calls)) == (2, 3)


def test_a_stream_of_the_openai_sdk_that_is_never_closed(both, client, capture):
    with openai_traced(both.live, capture):
        with handling(both):
            tool_loop(asker(client, OFFERED), question("s2"), TOOLS)
            stream = open_stream(client)
        (turn,) = both.check(forced=True)
        assert (turn.close_reason, turn.complete, len(turn.llm_calls)) == ("delay", False, 2)
        stream.close()


# --- LangGraph traced by OpenInference


@pytest.fixture
def http():
    with httpx.Client() as client:
        yield client


SETTINGS = settings_of("conv-1")


@pytest.fixture
def agent(llm, http):
    return langgraph_agent(llm, [get_weather, run_report], http_client=http)


@pytest.mark.parametrize("content", [True, False], ids=["with content", "without content"])
def test_langgraph_with_tools(both, agent, content):
    with langchain_traced(both.live, content=content):
        agent.invoke(said(question("s3")), SETTINGS)
    (turn,) = both.check()
    assert (turn.conversation_id, len(turn.tool_calls)) == ("conv-1", 2)
    assert turn.input == (question("s3") if content else None)


@pytest.mark.parametrize(("script", "error"), [("s12", RuntimeError), ("s9", openai.RateLimitError)], ids=["tool", "model"])
def test_langgraph_with_a_failure(both, agent, script, error):
    with langchain_traced(both.live), pytest.raises(error):
        agent.invoke(said(question(script)), SETTINGS)
    (turn,) = both.check()
    assert error.__name__ in turn.error.type
    assert [call.error.type for call in turn.tool_calls] == (["RuntimeError"] if script == "s12" else [])


# --- parents of this process that look remote, as those of a context that was carried as text


def carried(span):
    """Return the span's context after it was injected and extracted."""
    known = span.get_span_context()
    remote = SpanContext(known.trace_id, known.span_id, is_remote=True, trace_flags=TraceFlags(1))
    return trace.set_span_in_context(NonRecordingSpan(remote))


@pytest.fixture
def tracer(both):
    return both.live.tracer


def agent_span(tracer, name="bot", **more):
    return tracer.start_as_current_span(
        f"invoke_agent {name}", attributes={"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": name}, **more
    )


def chat_span(tracer, user="hello", says="Hi.", **more):
    tracer.start_span("chat m-1", attributes=chat_attributes(user, says), **more).end()


def test_a_model_call_whose_parent_looks_remote_and_has_ended_is_part_of_the_turn(both, tracer):
    with agent_span(tracer) as root:
        with tracer.start_as_current_span("step") as step:
            pass
        chat_span(tracer, "hello", "Hi.", context=carried(step))
        assert root.is_recording()
    (turn,) = both.check()
    assert (len(turn.llm_calls), turn.close_reason) == (1, "root_ended")


def test_an_agent_whose_parent_looks_remote_is_part_of_the_turn_above_it(both, tracer):
    with agent_span(tracer, "triage") as root, agent_span(tracer, "billing", context=carried(root)):
        chat_span(tracer)
    (turn,) = both.check()
    assert [(run.name, run.parent) for run in turn.agent_runs] == [("triage", None), ("billing", "triage")]


def test_an_agent_whose_parent_is_a_request_that_looks_remote_is_a_turn(both, tracer):
    with handling(both) as request:
        for name in ("first", "second"):
            with agent_span(tracer, name, context=carried(request)):
                chat_span(tracer)
    turns = both.check(2)
    assert [(turn.agent, turn.conversation_id, turn.close_reason) for turn in turns] == [
        ("first", "conv-1", "root_ended"), ("second", "conv-1", "root_ended"),
    ]  # fmt: skip


def test_a_model_call_whose_parent_looks_remote_keeps_its_turn_open(both, tracer):
    with agent_span(tracer) as root:
        chat_span(tracer, "hello", "Wait.")
        stream = tracer.start_span("chat m-1", attributes=chat_attributes("hello", "Hi."), context=carried(root))
    assert both.live.scored() == []
    stream.end()
    (turn,) = both.check()
    assert (len(turn.llm_calls), turn.output, turn.close_reason, turn.complete) == (2, "Hi.", "root_ended", True)


@pytest.mark.parametrize("looks_remote", [False, True], ids=["a local parent", "a parent that looks remote"])
def test_a_model_call_after_its_turn_revises_it_while_the_request_goes_on(both, tracer, looks_remote):
    with handling(both):
        with agent_span(tracer, "first") as root:
            chat_span(tracer, "hello", "Hi.")
        with agent_span(tracer, "second"):
            chat_span(tracer, "hello", "Hi.")
        chat_span(tracer, "summarise", "Summary.", context=carried(root) if looks_remote else trace.set_span_in_context(root))
    first, second = both.check(2)
    assert (first.revision, len(first.llm_calls), first.conversation_id) == (2, 2, "conv-1")
    assert (second.revision, len(second.llm_calls), second.conversation_id) == (1, 1, "conv-1")


def test_two_calls_from_another_process_in_one_trace_are_two_turns(both, tracer):
    caller = SpanContext(0xAB, 0xCD, is_remote=True, trace_flags=TraceFlags(1))
    for name in ("first", "second"):
        with agent_span(tracer, name, context=trace.set_span_in_context(NonRecordingSpan(caller))):
            chat_span(tracer)
    assert [(turn.agent, turn.close_reason, turn.revision) for turn in both.check(2)] == [
        ("first", "root_ended", 1), ("second", "root_ended", 1),
    ]  # fmt: skip


def test_a_late_part_of_one_of_two_chains_below_a_span_revises_that_one_alone(both, tracer):
    with handling(both):
        for name in ("first", "second"):
            chain = {"openinference.span.kind": "CHAIN", "input.value": name}
            with tracer.start_as_current_span(name, attributes=chain) as root:
                chat_span(tracer, name, f"{name}.")
        chat_span(tracer, "summarise", "Summary.", context=trace.set_span_in_context(root))
        both.wait(3)
    first, second = both.check(2)
    assert [(turn.input, len(turn.llm_calls), turn.conversation_id) for turn in (first, second)] == [
        ("first", 1, "conv-1"), ("second", 2, "conv-1"),
    ]  # fmt: skip


def test_a_request_below_one_that_is_over_is_a_turn_of_its_own(both, tracer):
    earlier = time.time_ns() - 10**9  # what a clock's step could explain is no leak
    first = tracer.start_span("handle_message", start_time=earlier)
    chat_span(tracer, "one", "One.", context=trace.set_span_in_context(first), start_time=earlier)
    first.end(earlier + 10**8)
    with tracer.start_as_current_span("handle_message", context=trace.set_span_in_context(first)):
        chat_span(tracer, "two", "Two.")
    assert [(turn.input, turn.output, turn.close_reason) for turn in both.check(2)] == [
        ("one", "One.", "root_ended"), ("two", "Two.", "root_ended"),
    ]  # fmt: skip


def test_a_model_call_below_a_request_that_is_over_revises_its_turn(both, tracer):
    with handling(both) as request:
        chat_span(tracer, "one", "One.")
    chat_span(tracer, "one", "Two.", context=carried(request))  # another question would be another turn
    (turn,) = both.check()
    assert (turn.revision, len(turn.llm_calls), turn.conversation_id) == (2, 2, "conv-1")


def test_a_log_record_after_its_turn_revises_it_while_the_request_goes_on(both, tracer):
    messages = '[{"role": "user", "parts": [{"type": "text", "content": "hello"}]}]'
    with handling(both):
        with agent_span(tracer):
            call = tracer.start_span("chat m-1", attributes=chat_attributes(None, "Hi."))
            call.end()
        both.live.logger_provider.get_logger("acme").emit(
            event_name="gen_ai.client.inference.operation.details",
            attributes={"gen_ai.operation.name": "chat", "gen_ai.input.messages": messages},
            context=trace.set_span_in_context(call),
        )
        both.wait(3)
    (turn,) = both.check()
    assert (turn.revision, turn.input) == (2, "hello")
