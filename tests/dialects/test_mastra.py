"""Mastra's spellings → one step, and its loops → calls, beside what the recordings hold."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import START, span, turn_of


def one(span_id, kind, parent_id=0, attributes=None, **more):
    attributes = {"mastra.span.type": kind, **(attributes or {})}
    return span(span_id, parent_id, name=kind, attributes=attributes, scope="@mastra/otel-exporter", **more)


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        pytest.param("agent_run", "agent", id="an agent"),
        pytest.param("workflow_run", "chain", id="a workflow, which need not have an agent"),
        pytest.param("MODEL_STEP", "llm", id="a request"),
        pytest.param("mcp_tool_call", "tool", id="a tool of a server"),
        pytest.param("workflow_step", "inner", id="a step"),
        pytest.param("what_is_new", "inner", id="what is new"),
        pytest.param(7, None, id="a wrong type"),
    ],
)
def test_roles(kind, role):
    """The type of a span says what it is; what says nothing is unknown."""
    assert role_of({"mastra.span.type": kind}, "@mastra/otel-exporter", "one") == (role or "unknown")


def test_a_loop_is_no_call():
    """Its calls get what only the loop says: model, the first prompt, how the last one ended; the tokens are the loop's."""
    loop = {"gen_ai.request.model": "m", "gen_ai.provider.name": "p.chat", "gen_ai.usage.input_tokens": 9, "gen_ai.usage.output_tokens": 4,
            "gen_ai.response.finish_reasons": '["error"]', "input": json.dumps({"messages": [{"role": "user", "content": "Hi"}]})}  # fmt: skip
    turn = turn_of(
        one(1, "agent_run", ms=100),
        one(2, "model_generation", 1, loop, at=1, ms=90),
        one(3, "model_step", 2, {"output": '{"text": "", "toolCalls": []}'}, at=2, ms=10),
        one(4, "model_step", 2, at=20, ms=10),
    )
    assert [(call.model, call.provider, call.error is not None) for call in turn.llm_calls] == [
        ("m", "p", False),
        ("m", "p", True),
    ]
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.input) == (9, 4, "Hi")


def test_a_failed_call_has_no_answer():
    """The empty text beside the failure is none."""
    failed = {
        "gen_ai.response.finish_reasons": '["error"]',
        "gen_ai.output.messages": '[{"role": "assistant", "parts": [{"type": "text", "content": ""}]}]',
    }
    turn = turn_of(one(1, "agent_run", ms=100), one(2, "model_generation", 1, failed, at=1))
    assert (turn.output, turn.error is not None) == (None, True)


def test_a_generation_without_steps_is_a_call():
    """Nothing else tells of the request."""
    turn = turn_of(one(1, "agent_run", ms=100), one(2, "model_generation", 1, {"gen_ai.usage.input_tokens": 3}, at=1))
    assert [call.input_tokens for call in turn.llm_calls] == [3]


@pytest.mark.parametrize(
    ("given", "texts"),
    [
        pytest.param({"messages": [{"role": "user", "content": "Hi"}]}, ["Hi"], id="messages"),
        pytest.param({"body": {"input": [{"role": "user", "content": "Hi"}]}}, ["Hi"], id="a provider's body"),
        pytest.param(
            [{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "[tool: look]"}], ["Hi", None], id="shortened"
        ),
        pytest.param({}, [], id="nothing"),
    ],
)
def test_prompts(given, texts):
    """A step's prompt in its forms."""
    step = read(one(1, "model_step", attributes={"mastra.model_step.input": json.dumps(given)}))
    assert [message.content for message in decode(step.input_messages, "user").messages] == texts


@pytest.mark.parametrize(
    ("gave", "content", "calls"),
    [
        pytest.param({"text": "Hello", "toolCalls": []}, "Hello", [], id="a text"),
        pytest.param({"text": "", "object": {"a": 1}}, '{"a":1}', [], id="an object"),
        pytest.param(
            {"text": "", "toolCalls": [{"toolName": "look", "args": {"at": 1}}]}, None, [("look", {"at": 1})], id="a tool"
        ),
        pytest.param(
            {"toolCalls": [{"payload": {"toolName": "look", "input": {}}}]}, None, [("look", {})], id="a tool in an event"
        ),
    ],
)
def test_answers(gave, content, calls):
    """An answer's text, object and requests for tools."""
    step = read(one(1, "model_step", attributes={"mastra.model_step.output": json.dumps({**gave, "reasoningText": "why"})}))
    (message,) = decode(step.output_messages, "assistant").messages
    assert (message.content, message.reasoning) == (content, "why")
    assert [(call.name, call.arguments) for call in message.tool_calls] == calls


def test_other_answers_are_taken_as_they_are():
    """A text, or an object of an unknown form."""
    step = read(one(1, "agent_run", attributes={"mastra.agent_run.output": "Hello"}))
    assert decode(step.output_messages, "assistant").messages[0].content == "Hello"


@pytest.mark.parametrize(
    ("attributes", "conversation"),
    [
        pytest.param({"mastra.metadata.sessionId": "s"}, "s", id="an application's session"),
        pytest.param({"mastra.metadata.sessionId": "s", "gen_ai.conversation.id": "t"}, "t", id="the memory's thread first"),
        pytest.param({"threadId": "t"}, "t", id="before version 1"),
        pytest.param({}, None, id="none"),
    ],
)
def test_conversation(attributes, conversation):
    """The thread of the memory, or what the application said."""
    assert read(one(1, "agent_run", attributes=attributes)).conversation_id == conversation


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        pytest.param("2026-01-01T00:00:01Z", 1.0, id="a time"),
        pytest.param("soon", None, id="none"),
        pytest.param("2020-01-01", None, id="past"),
    ],
)
def test_first_token(time, seconds):
    """When the answer began is written as a time of day."""
    assert START == 1_767_225_600_000_000_000
    step = read(one(1, "model_inference", attributes={"mastra.completion_start_time": time}))
    assert step.time_to_first_token_s == seconds


def test_a_tool_that_says_that_it_failed():
    """Whatever the status."""
    step = read(one(1, "tool_call", attributes={"gen_ai.tool.success": False, "gen_ai.tool.name": "look", "input": "{}"}))
    assert step.error is not None
