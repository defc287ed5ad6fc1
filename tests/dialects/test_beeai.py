from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.reader import read
from tests.support.spans import agent, chat, span, turn_of

JAVASCRIPT = "@arizeai/openinference-instrumentation-beeai"


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


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param('{"input": {"city": "Oslo"}, "options": null}', {"city": "Oslo"}, id="arguments beside options"),
        pytest.param('{"input": "Oslo", "unit": "C"}', '{"input": "Oslo", "unit": "C"}', id="an argument of that name"),
    ],
)
def test_arguments(given, expected):
    attributes = {
        "openinference.span.kind": "TOOL",
        "metadata.class_name": "FunctionTool",
        "tool.name": "x",
        "input.value": given,
    }
    step = read(span(1, name="x", attributes=attributes, scope="openinference.instrumentation.beeai"))
    assert step.tool_arguments == expected
