"""LangGraph agents (``langchain.agents.create_agent``) traced by OpenInference, against a scripted server on loopback."""

from __future__ import annotations

import pytest

pytest.importorskip("langchain")
pytest.importorskip("openinference.instrumentation.langchain")

import httpx

from tests.support.agents import langchain_traced, langgraph_agent, said, settings_of
from tests.support.fake_llm import SCRIPTS
from tests.support.live import check_outlets

SETTINGS = settings_of("conv-1")


def get_weather(city: str) -> str:
    """Current weather of a city."""
    return {"Paris": "18°C and sunny", "Tokyo": "24°C and rainy"}[city]


def run_report(name: str) -> str:
    """Run a report."""
    raise RuntimeError("database connection lost")


@pytest.fixture
def agent(llm):
    with httpx.Client() as client:
        yield langgraph_agent(llm, [get_weather, run_report], http_client=client)


def asked(script):
    return said(SCRIPTS[script][0])


def test_the_turn_has_everything_that_the_agent_did(live, agent):
    with langchain_traced(live):
        answer = agent.invoke(asked("s3"), SETTINGS)["messages"][-1].content
    turn = live.turn()
    assert (turn.agent, turn.input, turn.output) == ("support_agent", SCRIPTS["s3"][0], answer)
    assert (turn.conversation_id, turn.framework, turn.close_reason, turn.complete) == ("conv-1", "langchain", "root_ended", True)
    assert sorted((call.name, call.arguments["city"], call.result) for call in turn.tool_calls) == [
        ("get_weather", "Paris", "18°C and sunny"), ("get_weather", "Tokyo", "24°C and rainy"),
    ]  # fmt: skip
    assert [(call.input_tokens, call.output_tokens) for call in turn.llm_calls] == [(58, 32), (124, 27)]
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (182, 59)


def test_a_tool_that_raises_fails_the_turn(live, agent):
    with langchain_traced(live), pytest.raises(RuntimeError, match="database connection lost"):
        agent.invoke(asked("s12"), SETTINGS)
    turn = live.turn()
    assert "database connection lost" in turn.error.message
    (call,) = turn.tool_calls
    assert (call.name, call.error.type) == ("run_report", "RuntimeError")
    assert {score.metric: score.value for score in live.scored()[0].scores}["code_tool_success"] == 0.0


def test_its_scores_are_in_everything_that_leaves(live_in_any_order, agent):
    with langchain_traced(live_in_any_order):
        agent.invoke(asked("s2"), SETTINGS)
    check_outlets(live_in_any_order)
