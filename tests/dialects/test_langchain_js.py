"""LangChain.js as OpenLLMetry and OpenInference write it, beside what the recordings hold."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import chat, span, turn_of

SCOPE = "@traceloop/instrumentation-langchain"


def one(span_id, operation, parent_id=0, name="one", **more):
    attributes = {"gen_ai.operation.name": operation, "traceloop.span.kind": "workflow", **more.pop("attributes", {})}
    return span(span_id, parent_id, name=f"{operation} {name}", attributes=attributes, scope=SCOPE, **more)


def message(kind, **fields):
    return {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", kind], "kwargs": fields}


@pytest.mark.parametrize(
    ("operation", "name", "role"),
    [
        pytest.param("workflow", "RunnableSequence", "chain", id="a chain is no workflow"),
        pytest.param("workflow", "CompiledStateGraph", "agent", id="a graph is an agent"),
        pytest.param("invoke_agent", "Support", "agent", id="what calls itself one"),
        pytest.param("execute_tool", "DynamicStructuredTool", "tool", id="a tool"),
        pytest.param("chat", "gpt", "llm", id="a request"),
    ],
)
def test_roles(operation, name, role):
    """The operation says what a span is, and of a chain its class."""
    attributes = {
        "gen_ai.operation.name": operation,
        "traceloop.span.kind": "workflow" if operation != "execute_tool" else "task",
    }
    if operation == "chat":
        del attributes["traceloop.span.kind"]
    assert role_of(attributes, SCOPE, f"{operation} {name}") == role


@pytest.mark.parametrize(
    ("output", "agent"),
    [
        pytest.param(
            {"messages": [message("HumanMessage"), message("AIMessage", name="bot"), message("ToolMessage", name="look")]},
            "bot",
            id="its own",
        ),
        pytest.param({"messages": [{"type": "ai", "name": "bot"}, "odd"]}, "bot", id="a plain message"),
        pytest.param({"messages": [message("AIMessage", content='the "name"')]}, None, id="none"),
        pytest.param({"name": "x"}, None, id="no messages"),
    ],
)
def test_which_agent(output, agent):
    """The name stands in what the model said."""
    step = read(one(1, "workflow", name="LangGraph", attributes={"traceloop.entity.output": json.dumps(output)}))
    assert step.agent == agent


def test_a_tool_that_failed_is_named_by_its_request():
    """Its span has the name of a class; the arguments tell which request it was."""
    given = {"traceloop.entity.input": '{"args":["{\\"at\\":1}"]}', "traceloop.entity.name": "DynamicStructuredTool"}
    asked = [{"id": "c1", "name": "other", "arguments": {"at": 2}}, {"id": "c2", "name": "look", "arguments": {"at": 1}}]
    turn = turn_of(
        span(
            1,
            name="concierge.workflow",
            attributes={"traceloop.span.kind": "workflow"},
            scope="@traceloop/node-server-sdk",
            ms=100,
        ),
        chat(2, 1, user="Look!", calls=asked, at=1),
        one(
            3,
            "execute_tool",
            1,
            name="DynamicStructuredTool",
            attributes={**given, "traceloop.span.kind": "task"},
            at=20,
            error="Error: no",
        ),
        one(
            4,
            "execute_tool",
            1,
            name="DynamicTool",
            attributes={"traceloop.entity.name": "DynamicTool", "traceloop.span.kind": "task"},
            at=40,
        ),
    )
    assert [(call.name, call.call_id, call.error is not None) for call in turn.tool_calls] == [
        ("look", "c2", True),
        ("DynamicTool", None, False),
    ]


def test_a_tool_s_message_says_that_it_failed():
    """Its status, and what it is called."""
    output = json.dumps(message("ToolMessage", status="error", name="look", content="no", tool_call_id="c1"))
    step = read(
        one(1, "execute_tool", name="Tool", attributes={"traceloop.entity.output": output, "traceloop.span.kind": "task"})
    )
    assert (step.tool_name, step.tool_call_id, step.tool_result, step.error is not None) == ("look", "c1", "no", True)


def test_an_agent_s_graph_in_openinference():
    """It says only in its metadata that it is one."""
    attributes = {"openinference.span.kind": "CHAIN", "metadata": '{"lc_agent_name":"bot"}'}
    scope = "@arizeai/openinference-instrumentation-langchain"
    assert role_of(attributes, scope, "bot") == "agent"
    assert role_of(attributes, scope, "tools") == "chain"
    assert role_of({**attributes, "metadata": 7}, scope, "bot") == "chain"


def test_a_call_without_its_request_for_a_tool():
    """Its messages hold texts only: those of the provider's SDK below it say what was asked for."""
    asked = [{"id": "c1", "name": "look", "arguments": {}}]
    turn = turn_of(
        chat(1, user="Look!", says="", scope=SCOPE, ms=100),
        chat(2, 1, user="Look!", calls=asked, at=1, scope="@traceloop/instrumentation-openai"),
    )
    assert [call.name for message in turn.messages for call in message.tool_calls] == ["look"]


def test_run_alone_in_its_trace_has_calls_from_messages():
    used = {"usage_metadata": {"input_tokens": 10, "output_tokens": 2}, "response_metadata": {"model_name": "gpt-4o"}}
    asked = [{"id": "c1", "name": "look", "args": {"at": 1}, "type": "tool_call"}]
    said = [
        message("HumanMessage", content="Look!"),
        message("AIMessage", content="", tool_calls=asked, **used),
        message("ToolMessage", content="A cat.", name="look", tool_call_id="c1"),
        message("AIMessage", content="There is a cat.", **used),
    ]
    turn = turn_of(one(1, "workflow", name="LangGraph", attributes={"traceloop.entity.output": json.dumps({"messages": said})}))
    assert (turn.output, len(turn.llm_calls), turn.usage.input_tokens, turn.usage.output_tokens) == ("There is a cat.", 2, 20, 4)
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [("look", {"at": 1}, "A cat.")]
