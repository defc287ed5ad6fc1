"""pydantic-ai with its own OpenTelemetry output: no instrumentation package, no network."""

from __future__ import annotations

import asyncio

import pytest

pytest.importorskip("pydantic_ai")

from pydantic_ai import Agent, ModelRetry
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import FunctionModel
from pydantic_ai.models.instrumented import InstrumentationSettings
from pydantic_ai.models.test import TestModel
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
    """Answers with the step that comes after those in the history."""
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


def test_the_turn_has_its_question_and_answer(live, agent):
    assert agent(live).run_sync(QUESTION).output == ANSWER
    turn = live.turn()
    assert (turn.agent, turn.input, turn.output) == ("weather", QUESTION, ANSWER)
    assert (turn.framework, turn.service, turn.close_reason, turn.complete) == ("pydantic-ai", "support", "root_ended", True)


def test_the_turn_has_its_tools_with_arguments_and_results(live, agent):
    agent(live).run_sync(QUESTION)
    calls = {call.call_id: call for call in live.turn().tool_calls}
    assert {call_id: (call.name, call.arguments) for call_id, call in calls.items()} == {
        "call_1": ("get_weather", {"city": "Paris"}),
        "call_2": ("get_weather", {"city": "Atlantis"}),
    }
    assert calls["call_1"].result == "Paris: sunny"


def test_the_tool_that_failed_is_the_only_failed_one(live, agent):
    agent(live).run_sync(QUESTION)
    turn = live.turn()
    assert {call.call_id for call in turn.tool_calls if call.error is not None} == {"call_2"}
    assert turn.error is None


def test_half_of_the_tools_succeeded(live, agent):
    agent(live).run_sync(QUESTION)
    (scored,) = live.scored()
    assert {score.metric: score.value for score in scored.scores}["code_tool_success"] == 0.5


def test_the_turn_has_its_model_calls_and_tokens(live, agent):
    agent(live).run_sync(QUESTION)
    turn = live.turn()
    assert [(call.model, call.input_tokens, call.output_tokens) for call in turn.llm_calls] == [
        ("scripted-1", 50, 20),
        ("scripted-1", 90, 12),
    ]
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == (140, 32)


def test_the_turn_has_system_text_and_tool_definitions(live, agent):
    agent(live).run_sync(QUESTION)
    turn = live.turn()
    assert turn.system == "Be brief."
    assert [definition["name"] for definition in turn.tool_definitions] == ["get_weather"]


def test_its_scores_are_in_everything_that_leaves(live_in_any_order, agent):
    agent(live_in_any_order).run_sync(QUESTION)
    check_outlets(live_in_any_order)


def test_a_model_that_calls_every_tool_by_itself(live, agent):
    agent(live, TestModel(custom_output_text="All done."), retries=3).run_sync("Try everything.")
    turn = live.turn()
    assert (turn.input, turn.output) == ("Try everything.", "All done.")
    assert [call.name for call in turn.tool_calls] == ["get_weather"]


def test_a_run_that_fails_is_a_turn_with_an_error(live, agent):
    def broken(messages, info):
        raise RuntimeError("the model is down")

    with pytest.raises(RuntimeError, match="the model is down"):
        agent(live, FunctionModel(broken)).run_sync(QUESTION)
    turn = live.turn()
    assert (turn.error.type, turn.error.message) == ("RuntimeError", "the model is down")
    assert turn.input == QUESTION


def test_agents_that_run_at_once_are_turns_of_their_own(live, agent):
    def echo(messages, info):
        return ModelResponse(parts=[TextPart(f"You said {messages[0].parts[-1].content}")])

    async def run_all():
        bot = agent(live, FunctionModel(echo))
        with live.tracer.start_as_current_span("batch"):
            await asyncio.gather(*(bot.run(f"number {i}") for i in range(5)))

    asyncio.run(run_all())
    assert {(scored.turn.input, scored.turn.output) for scored in live.scored()} == {
        (f"number {i}", f"You said number {i}") for i in range(5)
    }
    assert live.engine.assembler.open_turns == 0


def test_the_second_question_of_a_conversation_has_its_own_input(live, agent):
    def answer(messages, info):
        return ModelResponse(parts=[TextPart(f"answer {len(messages)}")])

    bot = agent(live, FunctionModel(answer))
    first = bot.run_sync("first question", conversation_id="conv-1")
    bot.run_sync("second question", message_history=first.all_messages(), conversation_id="conv-1")
    turns = [scored.turn for scored in live.scored()]
    assert [(turn.input, turn.output, turn.conversation_id) for turn in turns] == [
        ("first question", "answer 1", "conv-1"), ("second question", "answer 3", "conv-1"),
    ]  # fmt: skip


def test_an_agent_used_as_a_tool_is_part_of_the_turn(live):
    settings = InstrumentationSettings(tracer_provider=live.provider)
    billing = Agent(TestModel(custom_output_text="Refunded."), name="billing", capabilities=[Instrumentation(settings)])

    async def ask_billing(request: str) -> str:
        """Ask the billing team."""
        return (await billing.run(request)).output

    triage = Agent(
        TestModel(custom_output_text="All done."), name="triage", tools=[ask_billing], capabilities=[Instrumentation(settings)]
    )
    triage.run_sync("I was charged twice.")
    turn = live.turn()
    assert (turn.agent, turn.output) == ("triage", "All done.")
    assert [(run.name, run.parent) for run in turn.agent_runs] == [("triage", None), ("billing", "triage")]
