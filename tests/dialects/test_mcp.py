"""MCP spans by the convention, OpenLLMetry and Logfire become one tool call."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.reader import role_of
from tests.support.spans import agent, span, tool, turn_of

TRACELOOP = "opentelemetry.instrumentation.mcp.instrumentation"
REQUEST = {"method": "tools/call", "params": {"name": "get_weather", "arguments": {"city": "Paris"}}}
RESULT = {"content": [{"type": "text", "text": "sunny"}], "isError": False}


def mcp(span_id, parent_id, name="tools/call get_weather", attributes=None, **more):
    return span(span_id, parent_id, name, {"mcp.method.name": "tools/call", **(attributes or {})}, **more)


@pytest.mark.parametrize(
    ("attributes", "scope", "name", "role"),
    [
        ({"mcp.method.name": "tools/call", "gen_ai.tool.name": "t"}, "fastmcp", "tools/call t", "tool"),
        ({"mcp.method.name": "tools/call"}, "mcp-python-sdk", "MCP send tools/call t", "tool"),
        ({"mcp.method.name": "tools/call"}, "fastmcp", "delegate t", None),
        ({"mcp.method.name": "tools/list"}, "mcp-python-sdk", "tools/list", None),
        ({"mcp.method.name": "initialize"}, "acme", "initialize", None),
        ({"mcp.method.name": ["tools/call"]}, "acme", "tools/call t", None),
        ({"traceloop.span.kind": "session"}, TRACELOOP, "mcp.client.session", "setup"),
        ({"traceloop.span.kind": "server"}, TRACELOOP, "mcp.server", "setup"),
        ({"traceloop.span.kind": "tool"}, TRACELOOP, "t.tool", "tool"),
        ({}, TRACELOOP, "tools/call.mcp", "tool"),
        ({}, TRACELOOP, "ResponseStreamWriter", "unknown"),
        ({"rpc.method": "tools/call"}, "logfire.mcp", "MCP request: tools/call t", "tool"),
        ({}, "logfire.mcp", "MCP server handle request: tools/call", "tool"),
        ({}, "acme", "tools/call.mcp", None),
    ],
)
def test_a_span_s_role(attributes, scope, name, role):
    assert role_of(attributes, scope, name) == role


@pytest.mark.parametrize(
    ("attributes", "scope", "name"),
    [
        pytest.param(
            {"traceloop.entity.input": json.dumps(REQUEST), "traceloop.entity.output": json.dumps(RESULT)},
            "opentelemetry.instrumentation.mcp.instrumentation", "tools/call.mcp", id="OpenLLMetry before it knew tools",
        ),
        pytest.param(
            {"traceloop.span.kind": "tool", "traceloop.entity.input": json.dumps({"tool_name": "get_weather", "arguments": {"city": "Paris"}}),
             "traceloop.entity.output": json.dumps({"result": "sunny"})},
            "opentelemetry.instrumentation.mcp.instrumentation", "get_weather.tool", id="OpenLLMetry",
        ),
        pytest.param({"request": json.dumps(REQUEST), "response": json.dumps(RESULT)}, "logfire.mcp", "MCP request: tools/call get_weather", id="Logfire"),
        pytest.param({"request": json.dumps(REQUEST), "response": json.dumps(RESULT)}, "logfire.mcp", "MCP server handle request: tools/call", id="Logfire's server"),
    ],
)  # fmt: skip
def test_one_call_is_read_from(attributes, scope, name):
    turn = turn_of(agent(1), span(2, 1, name, attributes, scope=scope))
    assert [(made.name, made.arguments, made.result, made.error) for made in turn.tool_calls] == [
        ("get_weather", {"city": "Paris"}, "sunny", None)
    ]


@pytest.mark.parametrize("flag", ["isError", "is_error"])
def test_a_result_can_say_that_the_tool_failed(flag):
    output = json.dumps({"content": [], flag: True})
    turn = turn_of(agent(1), span(2, 1, "tools/call.mcp", {"traceloop.entity.output": output}, scope=TRACELOOP))
    assert turn.tool_calls[0].error is not None


def test_the_framework_s_the_client_s_the_sdk_s_and_the_server_s_span_are_one_call():
    turn = turn_of(
        agent(1),
        tool(2, 1, "get_weather", attributes={"gen_ai.tool.call.id": "c1"}),
        mcp(3, 2, attributes={"gen_ai.tool.name": "get_weather"}),
        mcp(4, 3, "MCP send tools/call get_weather"),
        mcp(5, 4, attributes={"gen_ai.tool.name": "get_weather", "error.type": "tool_error"}),
    )
    assert [(made.name, made.call_id) for made in turn.tool_calls] == [("get_weather", "c1")]
    assert turn.tool_calls[0].error is not None


@pytest.mark.parametrize("known", ["mcp__acme__get_weather", "acme_get_weather", "acme.get_weather", "acme/get_weather"])
def test_a_client_may_know_the_tool_by_a_longer_name(known):
    turn = turn_of(agent(1), tool(2, 1, known), mcp(3, 2, attributes={"gen_ai.tool.name": "get_weather"}))
    assert [made.name for made in turn.tool_calls] == [known]


def test_a_tool_that_calls_another_server_s_tool_is_two_calls():
    turn = turn_of(agent(1), tool(2, 1, "plan_trip"), mcp(3, 2, attributes={"gen_ai.tool.name": "get_weather"}))
    assert [made.name for made in turn.tool_calls] == ["plan_trip", "get_weather"]


@pytest.mark.parametrize("known", ["mcp__acme__get_weather", "acme_get_weather", "get_weather"])
def test_an_mcp_span_beside_the_tool_is_the_same_call(known):
    told = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": '{"city": "Paris"}'}
    turn = turn_of(
        agent(1), tool(2, 1, known, attributes=told), mcp(3, 1, at=2, ms=3, attributes={"gen_ai.tool.name": "get_weather"})
    )
    assert [made.name for made in turn.tool_calls] == [known]


@pytest.mark.parametrize("known", ["plan_trip", "get_weather_tomorrow", "mcp__acme__get_city"])
def test_an_mcp_span_beside_another_tool_is_a_call(known):
    told = {"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": '{"city": "Paris"}'}
    turn = turn_of(
        agent(1), tool(2, 1, known, attributes=told), mcp(3, 1, at=2, ms=3, attributes={"gen_ai.tool.name": "get_weather"})
    )
    assert [made.name for made in turn.tool_calls] == [known, "get_weather"]


@pytest.mark.parametrize(
    ("known", "at", "calls"),
    [
        ("mcp__acme__get_weather", 2, 1),
        ("acme_get_weather", 9, 1),
        ("get_weather", 0, 1),
        ("plan_trip", 2, 2),
        ("mcp__acme__get_weather", 30, 2),
        ("get_weather_tomorrow", 2, 2),
    ],
)
def test_a_failed_mcp_span_beside_the_failed_tool_is_the_same_call(known, at, calls):
    failed = {"error.type": "tool_error"}
    outer = tool(2, 1, known, attributes={"gen_ai.tool.call.id": "c1", **failed})
    turn = turn_of(agent(1), outer, mcp(3, 1, at=at, ms=3, attributes={"gen_ai.tool.name": "get_weather", **failed}))
    assert len(turn.tool_calls) == calls
