"""Semantic Kernel's spellings → one step."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.spans.record import LogPart
from tests.support.spans import agent, chat, span, turn_of

SCOPE = "semantic_kernel.utils.telemetry.model_diagnostics.decorators"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        pytest.param("chat gpt-4o-mini", "llm", id="a model call, before its attributes are set"),
        pytest.param("text_completions gpt-4o-mini", "llm", id="a completion"),
        pytest.param("invoke_agent bot", "agent", id="an agent"),
        pytest.param("AutoFunctionInvocationLoop", "inner", id="the loop around calls stands for no turn"),
        pytest.param("something new", "unknown", id="what it does not say is open"),
    ],
)
def test_a_span_s_name_says_its_role(name, role):
    assert role_of({}, SCOPE, name) == role


@pytest.mark.parametrize(
    ("reason", "expected"),
    [
        pytest.param("FinishReason.STOP", "stop", id="a member of an enumeration"),
        pytest.param("FinishReason.TOOL_CALLS,FinishReason.STOP", "tool_calls", id="of several choices the first"),
        pytest.param("stop", "stop", id="plain"),
        pytest.param(3, None, id="a wrong type"),
    ],
)
def test_a_finish_reason(reason, expected):
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.response.finish_reason": reason}
    assert read(span(1, name="chat m", attributes=attributes, scope=SCOPE)).finish_reason == expected


@pytest.mark.parametrize(
    ("said", "answered", "expected"),
    [
        pytest.param(
            '{"role": "user", "content": "Hello"}',
            '{"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop"}',
            ("Hello", "Hi"),
            id="messages as JSON text",
        ),
        pytest.param("Hello", "Hi", ("Hello", "Hi"), id="bare texts"),
        pytest.param({"content": "Hello"}, {"message": {"content": "Hi"}}, ("Hello", "Hi"), id="values"),
    ],
)
def test_content_in_a_log_record_s_body(said, answered, expected):
    logs = [LogPart("gen_ai.user.message", {}, said), LogPart("gen_ai.choice", {}, answered)]
    turn = turn_of(agent(1), chat(2, 1, scope=SCOPE, logs=logs))
    assert (turn.input, turn.output) == expected


def test_a_function_that_the_application_called_is_no_tool_call():
    root = span(1, name="execute_tool chat-ask", attributes={"gen_ai.tool.name": "chat-ask"}, ms=90)
    turn = turn_of(root, chat(2, 1, user="Hello", says="Hi", scope=SCOPE))
    assert (turn.input, turn.output, turn.tool_calls) == ("Hello", "Hi", [])


def test_a_hand_off_is_no_tool_call_whatever_plugin_it_is_in():
    call = {"id": "c1", "name": "Handoff-transfer_to_billing", "arguments": json.dumps({})}
    turn = turn_of(
        agent(1, name="triage"),
        chat(2, 1, user="Refund me.", calls=[call], scope=SCOPE),
        span(3, 1, "execute_tool Handoff-transfer_to_billing", {"gen_ai.tool.name": "Handoff-transfer_to_billing"}, at=20),
    )
    assert turn.tool_calls == []
    assert [(handoff.from_, handoff.to) for handoff in turn.handoffs] == [("triage", "billing")]
