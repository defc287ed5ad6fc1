"""BeeAI's runs and their events → steps."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import agent, chat, span, turn_of

SCOPE = "openinference.instrumentation.beeai"


@pytest.mark.parametrize(
    ("kind", "more", "role"),
    [
        pytest.param("TOOL", {"metadata.class_name": "FunctionTool"}, "tool", id="a tool"),
        pytest.param("TOOL", {"metadata.path": "tool.custom.x.error"}, "inner", id="what happened to it"),
        pytest.param("AGENT", {"metadata.path": "agent.react.retry"}, "inner", id="what happened to an agent"),
        pytest.param("TOOL", {}, "tool", id="nothing more is known"),
    ],
)
def test_an_event_is_no_run(kind, more, role):
    assert role_of({"openinference.span.kind": kind, **more}, SCOPE, "error") == role


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param('{"input": {"city": "Oslo"}, "options": null}', {"city": "Oslo"}, id="arguments beside options"),
        pytest.param('{"input": "Oslo", "unit": "C"}', '{"input": "Oslo", "unit": "C"}', id="an argument of that name"),
        pytest.param("Oslo", "Oslo", id="a text"),
    ],
)
def test_arguments(given, expected):
    attributes = {
        "openinference.span.kind": "TOOL",
        "metadata.class_name": "FunctionTool",
        "tool.name": "x",
        "input.value": given,
    }
    assert read(span(1, name="x", attributes=attributes, scope=SCOPE)).tool_arguments == expected


def test_several_results_in_one_message():
    prefix = "llm.input_messages.0.message"
    attributes = {"openinference.span.kind": "LLM", "metadata.class_name": "OpenAIChatModel", f"{prefix}.role": "tool"}
    for place in (0, 1):
        attributes[f"{prefix}.contents.{place}.message.tool_call_id"] = f"call-{place}"
        attributes[f"{prefix}.contents.{place}.message_content.text"] = f"result {place}"
    (message,) = decode(read(span(1, attributes=attributes, scope=SCOPE)).input_messages, "user").messages
    assert [(result.call_id, result.result) for result in message.tool_results] == [
        ("call-0", "result 0"),
        ("call-1", "result 1"),
    ]


JAVASCRIPT = "@arizeai/openinference-instrumentation-beeai"


@pytest.mark.parametrize(
    ("kind", "event", "role"),
    [
        ("LLM", "start", "llm"), ("LLM", "success", "llm"), ("LLM", "finish", "inner"), ("TOOL", "start", "inner"),
        ("TOOL", "success", "tool"), ("TOOL", "error", "tool"), ("AGENT", "start", "inner"), (None, "error", "inner"),
    ],
)  # fmt: skip
def test_role_of_javascript_event_depends_on_its_name(kind, event, role):
    attributes = {"target": f"a.b.{event}", "traceId": "x", **({"openinference.span.kind": kind} if kind else {})}
    assert role_of(attributes, JAVASCRIPT, f"a.b.{event}-1") == role


def test_failed_model_call_has_its_error_in_javascript():
    attributes = {
        "openinference.span.kind": "LLM", "target": "backend.openai.chat.error", "traceId": "x",
        "exception.type": "RetryError", "exception.message": "rate limit",
    }  # fmt: skip
    step = read(span(1, 0, "backend.openai.chat.error-1", attributes, scope=JAVASCRIPT))
    assert (step.answer_only, step.error.type, step.error.message) == (True, "RetryError", "rate limit")


@pytest.mark.parametrize(("name", "tools"), [("final_answer", []), ("get_weather", ["get_weather"])])
def test_unnamed_output_tool_is_no_call(name, tools):
    arguments = {"response": "Sunny."}
    attributes = {
        "openinference.span.kind": "TOOL", "target": "tool.dynamic.x.success", "traceId": "x",
        "tool.parameters": json.dumps(arguments), "output.value": '{"result": "sent"}',
    }  # fmt: skip
    request = chat(2, 1, user="Weather?", calls=[{"id": "c1", "name": name, "arguments": arguments}])
    turn = turn_of(agent(1), request, span(3, 1, "tool.dynamic.x.success-1", attributes, scope=JAVASCRIPT, at=20))
    assert [call.name for call in turn.tool_calls] == tools
