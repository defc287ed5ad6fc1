"""Special forms of the instrumentations for model SDKs."""

from __future__ import annotations

import json

import pytest

from otel_agenteval import load_turns
from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read
from otel_agenteval.spans.record import SpanEvent
from tests.support.spans import span

GOOGLE = "openinference.instrumentation.google_genai"
AZURE = "azure.core.tracing.ext.opentelemetry_span"


def model(attributes, scope, events=()):
    return span(1, 0, "call", attributes, scope=scope, events=[SpanEvent(name, said, 0) for name, said in events])


def messages(raw, role="user"):
    return [(message.role, message.content) for message in decode(raw, role).messages]


def azure(*events, **more):
    said = [(name, {"gen_ai.system": "az.ai.inference", "gen_ai.event.content": json.dumps(content)}) for name, content in events]
    return read(model({"gen_ai.operation.name": "chat", "gen_ai.system": "az.ai.inference", **more}, AZURE, said))


def test_azure_s_answer_is_unknown_without_content():
    step = azure(("gen_ai.choice", {"finish_reason": "stop", "index": 0}))
    assert decode(step.output_messages, "assistant").hidden


def test_a_failed_call_answered_nothing():
    step = azure(("gen_ai.assistant.message", {"role": "assistant", "content": "before"}), **{"error.type": "HttpResponseError"})
    assert step.output_messages == []


def test_google_s_calls_are_known_without_the_history_that_came_with_the_answer():
    called = {
        "message.tool_calls.0.tool_call.function.name": "weather",
        "message.tool_calls.0.tool_call.function.arguments": "{}",
    }
    step = read(model({"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "user", **called}, GOOGLE))
    assert step.overwritten
    assert [call.name for call in decode(step.input_messages, "user").messages[-1].tool_calls] == ["weather"]


@pytest.mark.parametrize("text", ['{"a": 1}\n\n{"b"', "so so", '{"a": 1}'])
def test_what_the_user_said_after_two_calls_stays_what_he_said(text):
    calls = {f"llm.input_messages.0.message.tool_calls.{i}.tool_call.function.name": "weather" for i in range(2)}
    said = {"llm.input_messages.1.message.role": "user", "llm.input_messages.1.message.content": text}
    step = read(model({"openinference.span.kind": "LLM", "llm.input_messages.0.message.role": "model", **calls, **said}, GOOGLE))
    assert messages(step.input_messages)[-1] == ("user", text)


def test_a_stream_that_nobody_followed_said_nothing():
    given = {
        "openinference.span.kind": "LLM",
        "output.value": "<groq.Stream object at 0x7fe1f138ea50>",
        "llm.invocation_parameters": '{"model": "m-1"}',
    }
    step = read(model(given, "openinference.instrumentation.groq"))
    assert step.output_messages is None
    assert step.model == "m-1"


def test_log_records_without_a_time_of_their_own_are_told_apart_by_when_they_were_seen(tmp_path):
    ids = {"traceId": "0" * 31 + "1", "spanId": "0" * 15 + "1"}
    attributes = [{"key": "gen_ai.operation.name", "value": {"stringValue": "chat"}}]
    chat = {**ids, "name": "chat", "startTimeUnixNano": "1", "endTimeUnixNano": "9", "attributes": attributes}
    body = {"kvlistValue": {"values": [{"key": "content", "value": {"stringValue": "again"}}]}}
    logs = [{**ids, "observedTimeUnixNano": str(time), "eventName": "gen_ai.user.message", "body": body} for time in (2, 3)]
    path = tmp_path / "one.jsonl"
    scope = {"name": "opentelemetry.instrumentation.google_genai"}
    lines = [
        {"resourceSpans": [{"scopeSpans": [{"scope": scope, "spans": [chat]}]}]},
        {"resourceLogs": [{"scopeLogs": [{"scope": scope, "logRecords": logs}]}]},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    (turn,) = load_turns([str(path)])
    assert [message.content for message in turn.messages] == ["again", "again"]
