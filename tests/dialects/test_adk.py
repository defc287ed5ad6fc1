"""Attributes of Google ADK's older and newer spans."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.payloads import unwrap_result
from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.spans.record import LogPart
from tests.support.spans import span, turn_of

SCOPE = "gcp.vertex.agent"
REQUEST = {
    "model": "openai/gpt-4o-mini",
    "config": {
        "system_instruction": "Be brief.",
        "tools": [{"function_declarations": [{"name": "get_weather", "parameters_json_schema": {"type": "object"}}]}],
    },
    "contents": [{"parts": [{"text": "Weather in Paris?"}], "role": "user"}],
}
ANSWER = {"parts": [{"text": "so: ", "thought": True}, {"text": "Sunny."}], "role": "model"}


def call_llm(span_id, parent_id=0, contents=None, content=None, **more):
    request = REQUEST if contents is None else {**REQUEST, "contents": contents}
    response = {"model_version": "gpt-4o-mini-2024-07-18", "content": content or ANSWER, "partial": False}
    attributes = {
        "gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "openai/gpt-4o-mini", "gcp.vertex.agent.session_id": "s-1",
        "gcp.vertex.agent.llm_request": json.dumps(request), "gcp.vertex.agent.llm_response": json.dumps(response),
    }  # fmt: skip
    return span(span_id, parent_id, "call_llm", {**attributes, **more.pop("attributes", {})}, scope=SCOPE, **more)


def tool(attributes, **more):
    common = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "get_weather"}
    return span(3, 1, "execute_tool get_weather", {**common, **attributes}, scope=SCOPE, **more)


@pytest.mark.parametrize(
    ("name", "attributes", "role"),
    [
        pytest.param("invocation", {}, "workflow", id="the bare span on top of the older layout holds a turn"),
        pytest.param("invoke_agent bot", {}, "agent", id="an agent says its role in its name before its attributes come"),
        pytest.param("agent_run [bot]", {}, "agent", id="an agent of the first versions"),
        pytest.param("call_llm", {}, "llm", id="a model call of the older layout"),
        pytest.param("invoke_node tidy", {"gen_ai.operation.name": "invoke_node"}, "inner", id="a graph's node is a step of it"),
        pytest.param(
            "invoke_workflow bot", {"gen_ai.operation.name": "invoke_workflow"}, "workflow", id="the newer layout's top"
        ),
        pytest.param("create_cache", {}, "unknown", id="anything else does not say what it is"),
    ],
)
def test_roles_by_name(name, attributes, role):
    assert role_of(attributes, SCOPE, name) == role


@pytest.mark.parametrize(
    ("attributes", "arguments", "result", "failed"),
    [
        pytest.param(
            {"gcp.vertex.agent.tool_call_args": '{"city": "Paris"}', "gcp.vertex.agent.tool_response": '{"result": "sunny"}'},
            '{"city": "Paris"}', '{"result": "sunny"}', False, id="the older layout's own attributes",
        ),
        pytest.param(
            {"gen_ai.tool.call.arguments": '{"city": "Paris"}', "gen_ai.tool.call.result": '{"result": "sunny"}'},
            '{"city": "Paris"}', '{"result": "sunny"}', False, id="the convention's attributes",
        ),
        pytest.param(
            {"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": "{}"}, None, None, False, id="left out",
        ),
        pytest.param(
            {"gcp.vertex.agent.tool_call_args": "{}", "gcp.vertex.agent.tool_response": '{"result": 1}'},
            "{}", '{"result": 1}', False, id="a tool without arguments",
        ),
        pytest.param(
            {"gcp.vertex.agent.tool_call_args": '{"a": 1}', "gcp.vertex.agent.tool_response": '{"result": "<not specified>"}'},
            '{"a": 1}', None, False, id="a placeholder is no result",
        ),
        pytest.param(
            {"gen_ai.tool.call.result": '{"status": "error", "error_message": "no such city"}'},
            None, '{"status": "error", "error_message": "no such city"}', True, id="a failure that the tool reports",
        ),
        pytest.param(
            {"gen_ai.tool.call.result": '{"status": "error", "code": 7}'},
            None, '{"status": "error", "code": 7}', False, id="a status alone may be the thing's own",
        ),
    ],
)  # fmt: skip
def test_a_tool_s_arguments_and_result(attributes, arguments, result, failed):
    step = read(tool(attributes))
    assert (step.role, step.tool_arguments, step.tool_result, step.error is not None) == ("tool", arguments, result, failed)


def test_a_reported_failure_says_what_and_why():
    step = read(tool({"gen_ai.tool.call.result": '{"error_type": "ValueError", "error_details": "bad id"}'}))
    assert step.error is not None
    assert (step.error.type, step.error.message) == ("ValueError", "bad id")


def test_a_call_id_that_stands_for_none_is_none():
    assert read(tool({"gen_ai.tool.call.id": "<not specified>"})).tool_call_id is None
    assert read(tool({"gen_ai.tool.call.id": "c1"})).tool_call_id == "c1"


def test_the_summary_of_parallel_calls_is_no_call():
    merged = {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"}
    assert read(span(3, name="execute_tool (merged)", attributes=merged, scope=SCOPE)).role == "inner"


def test_what_the_framework_says_in_the_user_s_place_is_not_the_user_s():
    text = "Continue processing previous requests as instructed. Exit or provide a summary if no more outputs are needed."
    [message] = decode([{"role": "user", "parts": [{"text": text}]}], "user").messages
    assert message.role == "system"


def test_left_out_content_is_unknown():
    decoded = decode([{"role": "user", "content": "<elided>"}], "user")
    assert decoded.hidden
    assert decoded.messages[0].content is None


def test_a_function_response_is_unwrapped():
    assert unwrap_result('{"id":"c1","name":"get_weather","response":{"result":"sunny"}}') == {"result": "sunny"}
    assert unwrap_result('{"response": "sunny"}') == '{"response": "sunny"}'


def test_a_call_that_holds_all_it_led_to_is_not_the_answering_one():
    hand_over = {
        "parts": [{"function_call": {"id": "c0", "args": {"agent_name": "b"}, "name": "transfer_to_agent"}}],
        "role": "model",
    }
    turn = turn_of(
        span(1, name="invocation", scope=SCOPE, ms=100),
        call_llm(2, 1, content=hand_over, at=1, ms=98),
        span(3, 2, "invoke_agent b", {"gen_ai.operation.name": "invoke_agent"}, scope=SCOPE, at=10, ms=80),
        call_llm(4, 3, at=11, ms=20),
    )
    assert turn.output == "Sunny."
    assert turn.tool_calls == []


def test_an_answer_given_as_an_output_tool_s_arguments():
    form = {"parts": [{"function_call": {"id": "c1", "args": {"age": 36}, "name": "set_model_response"}}], "role": "model"}
    attributes = {"gen_ai.tool.name": "set_model_response", "gen_ai.tool.call.arguments": '{"age": 36}'}
    turn = turn_of(span(1, name="invocation", scope=SCOPE, ms=100), call_llm(2, 1, content=form), tool(attributes, at=20))
    assert turn.output == '{"age": 36}'
    assert turn.tool_calls == []


def test_a_tool_that_raised_in_adk_for_js():
    """The tool's span has only a name. Its arguments are in the request."""
    asked = '{"content":{"role":"model","parts":[{"functionCall":{"name":"look","args":{"at":1},"id":"c1"}}]}}'
    turn = turn_of(
        span(1, name="invocation", scope="gcp.vertex.agent", ms=100),
        span(2, 1, name="call_llm", attributes={"gcp.vertex.agent.llm_response": asked}, scope="gcp.vertex.agent", at=1, ms=50),
        span(3, 2, name="execute_tool look", scope="gcp.vertex.agent", at=20),
        span(4, 2, name="execute_tool (merged)", scope="gcp.vertex.agent", at=40),
    )
    assert [(call.name, call.arguments, call.error is not None) for call in turn.tool_calls] == [("look", {"at": 1}, True)]


def details(at, given, made):
    tokens = {"gen_ai.usage.input_tokens": given, "gen_ai.usage.output_tokens": made}
    return LogPart("gen_ai.client.inference.operation.details", tokens, None, at)


@pytest.mark.parametrize(
    ("events", "tokens"),
    [
        pytest.param([(83, 19), (131, 23)], [(83, 19), (131, 23)], id="each call has an event"),
        pytest.param([(83, 19), (99, 23)], [(None, None), (131, 23)], id="the last event isn't of the span's call"),
        pytest.param([], [(None, None), (131, 23)], id="no events"),
    ],
)
def test_tokens_of_overwritten_calls_are_in_events(events, tokens):
    attributes = {
        "openinference.span.kind": "LLM", "llm.model_name": "gemini", "gen_ai.usage.input_tokens": 131, "gen_ai.usage.output_tokens": 23,
        "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "Weather?",
        "llm.input_messages.1.message.role": "assistant", "llm.input_messages.1.message.tool_calls.0.tool_call.id": "c1",
        "llm.input_messages.1.message.tool_calls.0.tool_call.function.name": "get_weather",
        "llm.input_messages.2.message.role": "tool", "llm.input_messages.2.message.tool_call_id": "c1",
        "llm.input_messages.2.message.content": "sunny",
        "llm.output_messages.0.message.role": "assistant", "llm.output_messages.0.message.content": "Sunny.",
    }  # fmt: skip
    logs = [details(place, *counts) for place, counts in enumerate(events)]
    turn = turn_of(span(1, 0, "invoke_agent bot", attributes, scope=SCOPE, logs=logs))
    assert [(call.input_tokens, call.output_tokens) for call in turn.llm_calls] == tokens
    assert turn.usage.input_tokens == sum(given or 0 for given, _ in tokens)
