"""Genkit's spellings → one step, beside what the recordings hold."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import span, turn_of


def step_of(kind, subtype=None, *, name="one", given=None, gave=None, **more):
    attributes = {"genkit:type": kind, "genkit:name": name, **{key.replace("_", ":"): value for key, value in more.items()}}
    if subtype is not None:
        attributes["genkit:metadata:subtype"] = subtype
    for key, value in (("genkit:input", given), ("genkit:output", gave)):
        if value is not None:
            attributes[key] = json.dumps(value)
    return read(span(1, name=name, attributes=attributes, scope="genkit-tracer"))


@pytest.mark.parametrize(
    ("attributes", "role"),
    [
        pytest.param({"genkit:type": "action", "genkit:metadata:subtype": "flow"}, "chain", id="a flow"),
        pytest.param({"genkit:type": "flow"}, "chain", id="a flow of older versions"),
        pytest.param({"genkit:type": "flowStep"}, "inner", id="a step of a flow"),
        pytest.param({"genkit:type": "action", "genkit:metadata:subtype": "model"}, "llm", id="a request"),
        pytest.param({"genkit:type": "action", "genkit:metadata:subtype": "tool.v2"}, "tool", id="a tool that may give media"),
        pytest.param({"genkit:type": "util"}, "agent", id="a run"),
        pytest.param({"genkit:type": "util", "genkit:path": "/{f,t:flow}/{generate,t:util}"}, "agent", id="a flow's run"),
        pytest.param(
            {"genkit:type": "util", "genkit:path": "/{generate,t:util}/{t,t:action}/{generate,t:util}"},
            "agent",
            id="a run in a tool",
        ),
        pytest.param(
            {"genkit:type": "util", "genkit:path": "/{generate,t:util}/{generate,t:util}"}, "inner", id="a run that goes on"
        ),
        pytest.param({"genkit:type": "util", "genkit:path": "/{p,t:dotprompt}/{generate,t:util}"}, "inner", id="a prompt's run"),
        pytest.param({"genkit:type": "promptTemplate"}, "inner", id="filling in a prompt"),
        pytest.param({"genkit:type": "action", "genkit:metadata:subtype": "indexer"}, "chain", id="what is new"),
        pytest.param({"genkit:type": "action", "genkit:metadata:subtype": "evaluator"}, "guardrail", id="an evaluator"),
    ],
)
def test_roles(attributes, role):
    """Type and subtype say what a span is, the path whether a run is part of another."""
    assert role_of(attributes, "genkit-tracer", "one") == role


def test_a_request_of_an_older_version():
    """Plugins used to give candidates, names have the plugin before them."""
    answer = {"role": "model", "content": [{"reasoning": "why"}, {"text": "Hello "}, {"text": "you"}]}
    gave = {
        "candidates": [{"message": answer, "finishReason": "stop"}],
        "usage": {"inputTokens": 7, "outputTokens": 2, "cachedContentTokens": 3, "thoughtsTokens": 1},
        "custom": {"modelVersion": "gemini-2.5-flash-001", "responseId": "r1"},
    }
    step = step_of("action", "model", name="googleai/gemini-2.5-flash", given={"messages": []}, gave=gave)
    assert (step.provider, step.model, step.response_id, step.finish_reason) == ("googleai", "gemini-2.5-flash-001", "r1", "stop")
    assert (step.input_tokens, step.output_tokens, step.cached_tokens, step.reasoning_tokens) == (7, 2, 3, 1)
    message = decode(step.output_messages, "assistant").messages[0]
    assert (message.role, message.content, message.reasoning) == ("assistant", "Hello you", "why")


def test_parts_of_messages():
    """Data, media, and tools with their references."""
    content = [{"data": {"a": 1}}, {"media": {"url": "https://x.test/a.png", "contentType": "image/png"}}, {"custom": {}}, "odd"]
    messages = [
        {"role": "user", "content": content},
        {"role": "model", "content": [{"toolRequest": {"ref": "1", "name": "look", "input": {"at": 2}}}]},
        {"role": "tool", "content": [{"toolResponse": {"ref": "1", "name": "look", "output": {"seen": 3}}}]},
        {"role": "model", "content": "done"},
    ]
    step = step_of("util", given={"messages": messages, "tools": [{"name": "look", "inputSchema": {"type": "object"}}]})
    user, asked, told, done = decode(step.input_messages, "user").messages
    assert (user.content, user.attachments[0]["uri"], done.content) == ('{"a":1}', "https://x.test/a.png", "done")
    assert (asked.tool_calls[0].name, asked.tool_calls[0].arguments) == ("look", {"at": 2})
    assert (told.tool_results[0].call_id, told.tool_results[0].result) == ("1", {"seen": 3})


def test_what_a_model_was_given():
    """Tool definitions have their schema under another key."""
    given = {"messages": [], "tools": [{"name": "look", "inputSchema": {"type": "object"}}]}
    model = span(2, name="p/m", parent_id=1, attributes={"genkit:type": "action", "genkit:metadata:subtype": "model",
                 "genkit:input": json.dumps(given)}, scope="genkit-tracer")  # fmt: skip
    flow = span(1, name="f", attributes={"genkit:type": "action", "genkit:metadata:subtype": "flow"}, scope="genkit-tracer")
    turn = turn_of(flow, model)
    assert [tool["parameters"] for tool in turn.tool_definitions] == [{"type": "object"}]


@pytest.mark.parametrize(
    ("more", "conversation"),
    [
        pytest.param({"given": {"message": "Hi", "sessionId": "s1"}}, "s1", id="in a flow's input"),
        pytest.param({"genkit_metadata_context": '{"threadId": "s2"}'}, "s2", id="in its context"),
        pytest.param({"genkit_sessionId": "s3"}, "s3", id="a chat's"),
        pytest.param({"given": {"message": "my sessionId"}}, None, id="only spoken of"),
        pytest.param({"given": "my sessionId"}, None, id="in a text"),
    ],
)
def test_conversation(more, conversation):
    """An application hands its session to a flow, or sets it as context."""
    assert step_of("action", "flow", **more).conversation_id == conversation


def test_failures():
    """State says it also where the status does not."""
    assert step_of("action", "tool", genkit_state="error").error is not None
    assert step_of("action", "tool", genkit_state="success").error is None
    gave = {"finishReason": "failed", "error": {"status": "INTERNAL", "message": "500"}, "sessionId": "s"}
    agent = step_of("action", "agent", name="helper", gave=gave)
    assert (agent.error.type, agent.error.message, agent.conversation_id, agent.agent) == ("INTERNAL", "500", "s", "helper")


def test_tools():
    """A tool's name comes without its plugin; one that may give media wraps its output."""
    step = step_of("action", "tool.v2", name="mcp/look", given={"at": 1}, gave={"output": {"seen": 2}, "content": []})
    assert (step.tool_name, step.tool_result) == ("look", {"seen": 2})


def test_retrieval():
    """A query is a document, documents have parts."""
    documents = [{"content": [{"text": "one "}, {"text": "two"}], "metadata": {"id": "d1", "score": 0.5}}]
    step = step_of("action", "retriever", given={"query": {"content": [{"text": "what?"}]}}, gave={"documents": documents})
    assert step.query == "what?"
    assert [(item.id, item.content, item.score) for item in step.documents] == [("d1", "one two", 0.5)]
    plain = step_of("action", "retriever", given="what?", gave=[])
    assert (plain.query, plain.documents) == ("what?", None)
    assert step_of("action", "embedder", name="googleai/embedding-1").model == "embedding-1"
