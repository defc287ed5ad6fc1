"""smolagents' spellings, as OpenInference writes them → one step."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import arguments_of
from otel_agenteval.dialects.reader import read
from otel_agenteval.spans.record import SpanEvent
from tests.support.spans import span, turn_of, turns_of

SCOPE = "openinference.instrumentation.smolagents"


def run(span_id=1, parent_id=0, name="support.run", *, task="What is due today?", output="Nothing.", **more):
    attributes = {
        "openinference.span.kind": "AGENT",
        "input.value": json.dumps({"task": task, "stream": False}),
        "output.value": output,
    }
    return span(span_id, parent_id, name, attributes, scope=SCOPE, **{"ms": 100.0, **more})


def call(span_id, parent_id, arguments, **more):
    attributes = {"openinference.span.kind": "TOOL", "tool.name": "search", "input.value": json.dumps(arguments), **more}
    return span(span_id, parent_id, "SimpleTool", attributes, scope=SCOPE)


def model(span_id, parent_id, messages, **more):
    attributes = {"openinference.span.kind": "LLM", "llm.model_name": "m-1"}
    for i, (role, text) in enumerate(messages):
        attributes[f"llm.input_messages.{i}.message.role"] = role
        attributes[f"llm.input_messages.{i}.message.contents.0.message_content.type"] = "text"
        attributes[f"llm.input_messages.{i}.message.contents.0.message_content.text"] = text
    return span(span_id, parent_id, "OpenAIModel.generate", attributes, scope=SCOPE, **more)


@pytest.mark.parametrize(
    ("name", "agent"),
    [
        pytest.param("support.run", "support", id="an agent's name stands before the method"),
        pytest.param("BillingAgent.run", "BillingAgent", id="also when it reads like a class"),
        pytest.param("ToolCallingAgent.run", None, id="the framework's own class is no name"),
        pytest.param("CodeAgent.run", None, id="nor is that of an agent that writes code"),
    ],
)
def test_an_agent_s_name(name, agent):
    assert read(run(name=name)).agent == agent


def test_the_user_s_words_are_the_task_of_this_run():
    record = run()
    record.attributes["smolagents.task"] = "the task of the run before"
    assert turn_of(record).input == "What is due today?"


@pytest.mark.parametrize(
    ("output", "answer"),
    [
        pytest.param("Nothing.", "Nothing.", id="a run gives back its answer"),
        pytest.param("ActionStep(n=1)FinalAnswerStep(output='It\\'s \"done\".')", 'It\'s "done".', id="a streamed run, the text of its last object"),
        pytest.param("ActionStep(n=1)FinalAnswerStep(output={'a': 1})", '{"a":1}', id="an object"),
        pytest.param("ActionStep(n=1)FinalAnswerStep(output=<Image>)", "<Image>", id="what is no literal stays text"),
        pytest.param("ToolCall(name='search')ActionStep(n=1)", None, id="a run that broke off has none"),
    ],
)  # fmt: skip
def test_the_answer(output, answer):
    assert turn_of(run(output=output)).output == answer


def test_a_streamed_run_that_failed_says_ok_and_records_the_exception():
    failed = run(
        output="", events=[SpanEvent("exception", {"exception.type": "AgentGenerationError", "exception.message": "500"}, 0)]
    )
    assert turn_of(failed).error.type == "AgentGenerationError"
    assert turn_of(run()).error is None


@pytest.mark.parametrize(
    ("arguments", "wanted"),
    [
        pytest.param({"args": [], "sanitize_inputs_outputs": True, "kwargs": {"query": "a"}}, {"query": "a"}, id="by name"),
        pytest.param({"args": ["a"], "sanitize_inputs_outputs": False, "kwargs": {}}, {"query": "a"}, id="by position"),
        pytest.param({"args": ["a"], "kwargs": {"top": 3}}, {"query": "a", "top": 3}, id="both"),
        pytest.param({"args": [], "kwargs": {}}, {}, id="none"),
    ],
)
def test_a_tool_s_arguments(arguments, wanted):
    step = read(
        call(2, 1, arguments, **{"tool.parameters": json.dumps({"query": {"type": "string"}, "top": {"type": "integer"}})})
    )
    assert (step.tool_name, arguments_of(step.tool_arguments)) == ("search", wanted)


@pytest.mark.parametrize("parameters", [None, "[]", "{", 5])
def test_positions_without_names_stay_as_they_are(parameters):
    step = read(call(2, 1, {"args": ["a"], "kwargs": {}}, **({"tool.parameters": parameters} if parameters is not None else {})))
    assert isinstance(arguments_of(step.tool_arguments), dict)


def test_a_run_whose_own_span_was_never_sent_is_still_one_turn():
    first = span(2, 9, "Step 1", {"openinference.span.kind": "CHAIN", "output.value": "18 degrees"}, scope=SCOPE)
    second = span(3, 9, "Step 2", {"openinference.span.kind": "CHAIN"}, at=20, scope=SCOPE, error="AgentGenerationError: 500")
    question = [("system", "Be short."), ("user", "New task:\nHow warm is it?")]
    again = [*question, ("tool-call", "Calling tools"), ("tool-response", "Observation: 18 degrees")]
    turns = turns_of(first, second, model(4, 2, question), model(5, 3, again, at=21, error="500"))
    assert [(turn.input, turn.error.type) for turn in turns] == [("How warm is it?", "AgentGenerationError")]


@pytest.mark.parametrize("value", [None, 5, True, [], ["a"], "", "{", '{"task": 5}', "[1]"])
def test_strange_values_never_raise(value):
    record = run(output=value)
    record.attributes["input.value"] = value
    turn_of(record).to_dict()
