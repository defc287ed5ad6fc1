"""LangChain.js spans by OpenLLMetry and OpenInference that the recordings don't contain."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.reader import read
from tests.support.spans import chat, span, turn_of

SCOPE = "@traceloop/instrumentation-langchain"


def one(span_id, operation, parent_id=0, name="one", **more):
    attributes = {"gen_ai.operation.name": operation, "traceloop.span.kind": "workflow", **more.pop("attributes", {})}
    return span(span_id, parent_id, name=f"{operation} {name}", attributes=attributes, scope=SCOPE, **more)


def message(kind, **fields):
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", kind], "kwargs": fields}


@pytest.mark.parametrize(
    ("output", "agent"),
    [
        pytest.param({"messages": [message("AIMessage", name="bot"), message("ToolMessage", name="look")]}, "bot", id="its own"),
        pytest.param({"messages": [{"type": "ai", "name": "bot"}, "odd"]}, "bot", id="a plain message"),
        pytest.param({"messages": [message("AIMessage", content='the "name"')]}, None, id="none"),
        pytest.param({"name": "x"}, None, id="no messages"),
    ],
)
def test_which_agent(output, agent):
    """The agent's name is in the model's message."""
    step = read(one(1, "workflow", name="LangGraph", attributes={"traceloop.entity.output": json.dumps(output)}))
    assert step.agent == agent


def test_a_tool_that_failed_is_named_by_its_request():
    """The tool's span has a class name. Its arguments identify the request."""
    given = {"traceloop.entity.input": '{"args":["{\\"at\\":1}"]}', "traceloop.entity.name": "DynamicStructuredTool"}
    asked = [{"id": "c1", "name": "other", "arguments": {"at": 2}}, {"id": "c2", "name": "look", "arguments": {"at": 1}}]
    root = span(1, 0, "x.workflow", {"traceloop.span.kind": "workflow"}, scope="@traceloop/node-server-sdk", ms=100)
    unnamed = {"traceloop.entity.name": "DynamicTool", "traceloop.span.kind": "task"}
    turn = turn_of(
        root,
        chat(2, 1, user="Look!", calls=asked, at=1),
        one(3, "execute_tool", 1, attributes={**given, "traceloop.span.kind": "task"}, at=20, error="Error: no"),
        one(4, "execute_tool", 1, attributes=unnamed, at=40),
    )
    assert [(call.name, call.call_id, call.error is not None) for call in turn.tool_calls] == [
        ("look", "c2", True),
        ("DynamicTool", None, False),
    ]


def test_a_tool_s_message_says_that_it_failed():
    """The message's status and name show the failure."""
    output = json.dumps(message("ToolMessage", status="error", name="look", content="no", tool_call_id="c1"))
    step = read(
        one(1, "execute_tool", name="Tool", attributes={"traceloop.entity.output": output, "traceloop.span.kind": "task"})
    )
    assert (step.tool_name, step.tool_call_id, step.tool_result, step.error is not None) == ("look", "c1", "no", True)
