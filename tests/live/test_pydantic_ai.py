"""pydantic-ai with its own OpenTelemetry output, without an instrumentation package or network."""

from __future__ import annotations

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.usage import RequestUsage

from tests.support.live import check_outlets

QUESTION = "What is the weather in Paris and in Atlantis?"
ANSWER = "Paris is sunny; Atlantis is unknown."
STEPS = [
    ModelResponse(
        parts=[
            ToolCallPart("get_weather", {"city": "Paris"}, tool_call_id="call_1"),
            ToolCallPart("get_weather", {"city": "Atlantis"}, tool_call_id="call_2"),
        ],
        usage=RequestUsage(input_tokens=50, output_tokens=20),
        finish_reason="tool_call",
    ),
    ModelResponse(parts=[TextPart(ANSWER)], usage=RequestUsage(input_tokens=90, output_tokens=12), finish_reason="stop"),
]


def scripted(messages, info):
    """Return the reply that follows the steps in the history."""
    return STEPS[sum(isinstance(message, ModelResponse) for message in messages)]


def get_weather(city: str) -> str:
    """Current weather of a city."""
    if city == "Atlantis":
        raise ModelRetry("no such city")
    return f"{city}: sunny"


@pytest.fixture(params=[5, 6], ids=["format 5", "format 6"])
def version(request):
    return request.param


@pytest.fixture
def agent(version):
    def make(live, model=None, **more):
        settings = InstrumentationSettings(tracer_provider=live.provider, version=version)
        return Agent(
            model or FunctionModel(scripted, model_name="scripted-1"), name="weather", instructions="Be brief.", tools=[get_weather],
            capabilities=[Instrumentation(settings)], **more,
        )  # fmt: skip

    return make


def test_the_turn_has_everything_that_the_agent_did(live, agent):
    assert agent(live).run_sync(QUESTION).output == ANSWER
    turn = live.turn()
    assert (turn.agent, turn.input, turn.output, turn.system) == ("weather", QUESTION, ANSWER, "Be brief.")
    assert (turn.framework, turn.service, turn.close_reason, turn.complete) == ("pydantic-ai", "support", "root_ended", True)
    calls = {call.call_id: call for call in turn.tool_calls}
    assert {call_id: (call.name, call.arguments, call.error is not None) for call_id, call in calls.items()} == {
        "call_1": ("get_weather", {"city": "Paris"}, False),
        "call_2": ("get_weather", {"city": "Atlantis"}, True),
    }
    assert (calls["call_1"].result, turn.error) == ("Paris: sunny", None)
    assert [definition["name"] for definition in turn.tool_definitions] == ["get_weather"]
    assert [(call.model, call.input_tokens, call.output_tokens) for call in turn.llm_calls] == [
        ("scripted-1", 50, 20),
        ("scripted-1", 90, 12),
    ]
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (140, 32)
    assert {score.metric: score.value for score in live.scored()[0].scores}["code_tool_success"] == 0.5


@pytest.mark.parametrize("version", [6], indirect=True)
def test_its_scores_are_in_everything_that_leaves(live_in_any_order, agent):
    agent(live_in_any_order).run_sync(QUESTION)
    check_outlets(live_in_any_order)
