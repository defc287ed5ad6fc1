"""Mastra's attributes and loops that the recordings don't contain."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read
from tests.support.spans import START, span


def one(span_id, kind, parent_id=0, attributes=None, **more):
    attributes = {"mastra.span.type": kind, **(attributes or {})}
    return span(span_id, parent_id, name=kind, attributes=attributes, scope="@mastra/otel-exporter", **more)


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
    """An answer can be text, an object or tool requests."""
    step = read(one(1, "model_step", attributes={"mastra.model_step.output": json.dumps({**gave, "reasoningText": "why"})}))
    (message,) = decode(step.output_messages, "assistant").messages
    assert (message.content, message.reasoning) == (content, "why")
    assert [(call.name, call.arguments) for call in message.tool_calls] == calls


def test_other_answers_are_taken_as_they_are():
    """A text, or an object of an unknown form, is the answer."""
    step = read(one(1, "agent_run", attributes={"mastra.agent_run.output": "Hello"}))
    assert decode(step.output_messages, "assistant").messages[0].content == "Hello"


@pytest.mark.parametrize(
    ("time", "seconds"),
    [
        pytest.param("2026-01-01T00:00:01Z", 1.0, id="a time"),
        pytest.param("soon", None, id="none"),
        pytest.param("2020-01-01", None, id="past"),
    ],
)
def test_first_token(time, seconds):
    """The start of the answer is a timestamp instead of a duration."""
    assert START == 1_767_225_600_000_000_000
    step = read(one(1, "model_inference", attributes={"mastra.completion_start_time": time}))
    assert step.time_to_first_token_s == seconds


def test_a_tool_that_says_that_it_failed():
    """The result shows the failure, whatever the span's status is."""
    step = read(one(1, "tool_call", attributes={"gen_ai.tool.success": False, "gen_ai.tool.name": "look", "input": "{}"}))
    assert step.error is not None
