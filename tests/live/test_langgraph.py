"""LangGraph agents (``langchain.agents.create_agent``) traced by OpenInference, against a scripted server on loopback."""

from __future__ import annotations

import asyncio
from contextlib import contextmanager

import pytest

pytest.importorskip("langchain")
pytest.importorskip("openinference.instrumentation.langchain")

import httpx
import openai
from langchain.agents import create_agent
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from openinference.instrumentation.langchain import LangChainInstrumentor

from tests.support.fake_llm import SCRIPTS
from tests.support.live import check_outlets


def question(script):
    return SCRIPTS[script][0]


@tool
def get_weather(city: str) -> str:
    """Current weather of a city."""
    return {
        "Paris": "18°C and sunny",
        "Tokyo": "24°C and rainy",
        "Cairo": "31°C and dry",
        "Quebec": "-6°C and snow",
        "Oslo": "3°C",
    }[city]


@tool
def run_report(name: str) -> str:
    """Run a report."""
    raise RuntimeError("database connection lost")


@contextmanager
def instrumented(live):
    instrumentor = LangChainInstrumentor()
    instrumentor.instrument(tracer_provider=live.provider)
    try:
        yield
    finally:
        instrumentor.uninstrument()


@pytest.fixture
def traced(live):
    """A set-up with LangChain instrumented, for the time of a test."""
    with instrumented(live):
        yield live


def make_agent(llm, **clients):
    model = ChatOpenAI(model="gpt-4o-mini", base_url=llm, api_key="none", max_retries=0, **clients)
    return create_agent(model, [get_weather, run_report], system_prompt="Answer shortly.", name="support_agent")


@pytest.fixture
def agent(llm):
    with httpx.Client() as client:
        yield make_agent(llm, http_client=client)


def inputs(script):
    return {"messages": [{"role": "user", "content": question(script)}]}


SETTINGS = {"configurable": {"thread_id": "conv-1"}, "metadata": {"session_id": "conv-1"}}


def test_the_turn_has_its_question_and_answer(traced, agent):
    answer = agent.invoke(inputs("s2"), SETTINGS)["messages"][-1].content
    turn = traced.turn()
    assert (turn.agent, turn.input, turn.output) == ("support_agent", question("s2"), answer)
    assert (turn.conversation_id, turn.framework, turn.close_reason, turn.complete) == ("conv-1", "langchain", "root_ended", True)


def test_the_turn_has_its_tools_with_arguments_and_results(traced, agent):
    agent.invoke(inputs("s3"), SETTINGS)
    calls = sorted(traced.turn().tool_calls, key=lambda call: call.arguments["city"])
    assert [(call.name, call.arguments, call.result) for call in calls] == [
        ("get_weather", {"city": "Paris"}, "18°C and sunny"), ("get_weather", {"city": "Tokyo"}, "24°C and rainy"),
    ]  # fmt: skip


def test_the_turn_has_its_model_calls_and_tokens(traced, agent):
    agent.invoke(inputs("s2"), SETTINGS)
    turn = traced.turn()
    assert [(call.input_tokens, call.output_tokens) for call in turn.llm_calls] == [(57, 15), (91, 14)]
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (148, 29)


def test_a_streamed_turn_is_the_same(traced, agent):
    parts = [
        message.content
        for message, _ in agent.stream(inputs("s2"), SETTINGS, stream_mode="messages")
        if type(message).__name__ == "AIMessageChunk"
    ]
    turn = traced.turn()
    assert turn.output == "".join(parts) == "It is 18°C and sunny in Paris right now."
    assert [call.name for call in turn.tool_calls] == ["get_weather"]


def test_a_tool_that_raises_fails_the_turn(traced, agent):
    with pytest.raises(RuntimeError, match="database connection lost"):
        agent.invoke(inputs("s12"), SETTINGS)
    turn = traced.turn()
    assert "database connection lost" in turn.error.message
    (call,) = turn.tool_calls
    assert (call.name, call.error.type) == ("run_report", "RuntimeError")
    assert {score.metric: score.value for score in traced.scored()[0].scores}["code_tool_success"] == 0.0


def test_a_model_call_that_fails_fails_the_turn(traced, agent):
    with pytest.raises(openai.RateLimitError):
        agent.invoke(inputs("s9"), SETTINGS)
    assert "RateLimitError" in traced.turn().error.type
    assert traced.turn().input == question("s9")


def test_agents_that_run_at_once_are_turns_of_their_own(traced, llm):
    async def both():
        async with httpx.AsyncClient() as client:
            with httpx.Client() as unused, traced.tracer.start_as_current_span("batch"):
                agent = make_agent(llm, http_client=unused, http_async_client=client)
                await asyncio.gather(agent.ainvoke(inputs("s15a"), SETTINGS), agent.ainvoke(inputs("s15b"), SETTINGS))

    asyncio.run(both())
    assert {(scored.turn.input, scored.turn.output) for scored in traced.scored()} == {
        (question("s15a"), "No, Cairo is 31°C and dry."), (question("s15b"), "Yes, Quebec has -6°C and snow."),
    }  # fmt: skip
    assert traced.engine.assembler.open_turns == 0


def test_two_turns_in_one_trace_are_two(traced, agent):
    with traced.tracer.start_as_current_span("POST /chat"):
        agent.invoke(inputs("s1"), SETTINGS)
        agent.invoke(inputs("s2"), SETTINGS)
    assert [scored.turn.input for scored in traced.scored()] == [question("s1"), question("s2")]


def test_its_scores_are_in_everything_that_leaves(live_in_any_order, agent):
    with instrumented(live_in_any_order):
        agent.invoke(inputs("s2"), SETTINGS)
    check_outlets(live_in_any_order)
