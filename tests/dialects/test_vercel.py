"""The Vercel AI SDK's attributes, and the turns of its runs."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.payloads import unwrap_result
from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.spans.record import SpanEvent
from tests.support.spans import span, turn_of, turns_of

REQUEST = "ai.generateText.doGenerate"


def step_of(operation, attributes=None, **more):
    return read(span(1, name=operation, attributes={"ai.operationId": operation, **(attributes or {})}, scope="ai", **more))


@pytest.mark.parametrize(
    ("operation", "role"),
    [
        pytest.param("ai.generateText", "agent", id="a run"),
        pytest.param("ai.streamObject", "agent", id="a streamed run for an object"),
        pytest.param(REQUEST, "llm", id="a request"),
        pytest.param("ai.toolCall", "tool", id="a tool"),
        pytest.param("ai.embedMany.doEmbed", "embedding", id="the request of many embeddings"),
        pytest.param("ai.rerank.doRerank", "rerank", id="the request of a ranking"),
        pytest.param("ai.rerank", "inner", id="the span around a ranking"),
        pytest.param("ai.generateSpeech", None, id="speech is no part of a turn"),
        pytest.param(7, None, id="a wrong type"),
    ],
)
def test_an_operation_says_the_role_under_any_scope(operation, role):
    assert role_of({"ai.operationId": operation}, "acme.app", "span") == role


@pytest.mark.parametrize(
    ("attributes", "expected"),
    [
        pytest.param({"ai.usage.promptTokens": 9, "ai.usage.completionTokens": 2}, (9, 2, None, None), id="version 4"),
        pytest.param(
            {"ai.usage.inputTokens": 9, "ai.usage.outputTokens": 2, "ai.usage.cachedInputTokens": 4, "ai.usage.reasoningTokens": 1},
            (9, 2, 4, 1),
            id="version 5",
        ),
        pytest.param(
            {
                "ai.usage.inputTokens": 9, "ai.usage.outputTokens": 2, "ai.usage.inputTokenDetails.noCacheTokens": 5,
                "ai.usage.inputTokenDetails.cacheReadTokens": 4, "ai.usage.outputTokenDetails.reasoningTokens": 1,
                "ai.response.providerMetadata": '{"anthropic":{"usage":{"cache_read_input_tokens":4}}}',
            },
            (9, 2, 4, 1),
            id="version 6 counts what was cached as input",
        ),
        pytest.param(
            {"ai.usage.promptTokens": 9, "ai.usage.completionTokens": 2, "ai.response.providerMetadata": '{"openai":{"cachedPromptTokens":4}}'},
            (9, 2, 4, None),
            id="cached tokens in the provider's own fields",
        ),
        pytest.param(
            {
                "ai.usage.promptTokens": 9, "ai.usage.completionTokens": 2,
                "ai.response.providerMetadata": '{"anthropic":{"cacheReadInputTokens":4,"cacheCreationInputTokens":3}}',
            },
            (16, 2, 4, None),
            id="a provider that does not count them as input",
        ),
        pytest.param(
            {
                "ai.usage.inputTokens": 9, "ai.usage.outputTokens": 2, "ai.usage.cachedInputTokens": 4,
                "ai.response.providerMetadata": '{"anthropic":{"usage":{"cache_read_input_tokens":4},"cacheCreationInputTokens":0}}',
            },
            (13, 2, 4, None),
            id="nor does its usage in version 5",
        ),
        pytest.param({"ai.usage.promptTokens": "x", "ai.response.providerMetadata": '["cache"]'}, (None, None, None, None), id="wrong types"),
        pytest.param({"ai.response.providerMetadata": '{"cache": {'}, (None, None, None, None), id="cut metadata"),
    ],
)  # fmt: skip
def test_usage(attributes, expected):
    step = step_of(REQUEST, attributes)
    assert (step.input_tokens, step.output_tokens, step.cached_tokens, step.reasoning_tokens) == expected


def test_version_7_has_its_own_time_to_first_chunk():
    attributes = {"gen_ai.operation.name": "chat", "gen_ai.client.operation.time_to_first_chunk": 0.5}
    assert read(span(1, attributes=attributes, scope="gen_ai")).time_to_first_token_s == 0.5


@pytest.mark.parametrize(
    ("attributes", "text", "calls", "reasoning"),
    [
        pytest.param({"ai.response.text": "Paris"}, "Paris", [], None, id="a text"),
        pytest.param({"ai.response.object": '{"a":1}'}, '{"a":1}', [], None, id="an object"),
        pytest.param({"ai.response.text": ""}, "", [], None, id="nothing was said"),
        pytest.param({"ai.response.text": "So", "ai.response.reasoning": "Hm"}, "So", [], "Hm", id="thoughts apart"),
        pytest.param(
            {"ai.response.toolCalls": '[{"toolCallId":"c","toolName":"search","args":"{\\"q\\":1}"}]'},
            None, [("c", "search", '{"q":1}')], None, id="version 4 writes arguments as JSON text",
        ),
        pytest.param(
            {"ai.response.text": "", "ai.response.toolCalls": '[{"type":"tool-call","toolCallId":"c","toolName":"search","input":{"q":1}}]'},
            None, [("c", "search", {"q": 1})], None, id="a stream that only asked for a tool",
        ),
        pytest.param({"ai.response.toolCalls": "nonsense"}, None, [], None, id="unreadable requests"),
        pytest.param({"ai.response.toolCalls": 5}, None, [], None, id="a wrong type"),
    ],
)  # fmt: skip
def test_the_answer(attributes, text, calls, reasoning):
    (message,) = decode(step_of(REQUEST, attributes).output_messages, "assistant").messages
    assert (message.content, message.reasoning) == (text, reasoning)
    assert [(call.call_id, call.name, call.arguments) for call in message.tool_calls] == calls


def test_without_captured_outputs_the_answer_is_unknown():
    assert step_of(REQUEST, {"ai.response.finishReason": "stop"}).output_messages is None


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        pytest.param({"result": "sunny"}, "sunny", id="version 4"),
        pytest.param({"result": "no such city", "isError": True}, {"error": "no such city"}, id="an error in version 4"),
        pytest.param({"output": {"type": "text", "value": "sunny"}}, "sunny", id="a text"),
        pytest.param({"output": {"type": "json", "value": {"t": 18}}}, {"t": 18}, id="a value"),
        pytest.param({"output": {"type": "error-text", "value": "boom"}}, {"error": "boom"}, id="an error"),
        pytest.param({"output": {"type": "execution-denied", "reason": "no"}}, {"error": "no"}, id="a refusal"),
        pytest.param({"output": 3}, 3, id="a bare value"),
        pytest.param({}, None, id="nothing"),
    ],
)
def test_a_tool_s_result_before_the_model(part, expected):
    content = [{"type": "tool-result", "toolCallId": "c", "toolName": "weather", **part}]
    (message,) = decode(json.dumps([{"role": "tool", "content": content}]), "user").messages
    (result,) = message.tool_results
    assert (result.call_id, result.name, result.result) == ("c", "weather", expected)


@pytest.mark.parametrize(
    ("key", "conversation", "user"),
    [
        pytest.param("ai.telemetry.metadata.sessionId", "x", None, id="metadata"),
        pytest.param("ai.telemetry.metadata.thread_id", "x", None, id="a thread"),
        pytest.param("ai.settings.context.conversationId", "x", None, id="the context of version 7"),
        pytest.param("ai.telemetry.metadata.userId", None, "x", id="a user"),
        pytest.param("ai.telemetry.metadata.other", None, None, id="something else"),
    ],
)
def test_an_application_s_own_words_about_a_run(key, conversation, user):
    step = step_of("ai.generateText", {key: "x"})
    assert (step.conversation_id, step.user_id) == (conversation, user)


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        pytest.param('"sunny\\n"', "sunny\n", id="a text, written as JSON"),
        pytest.param('"so" and "so"', '"so" and "so"', id="quotes inside a text"),
        pytest.param('"', '"', id="a lone quote"),
    ],
)
def test_a_result_is_what_the_tool_returned(raw, expected):
    assert unwrap_result(raw) == expected


def test_a_ranking_puts_documents_in_order():
    step = step_of("ai.rerank.doRerank", {
        "ai.documents": ['"first"', '{"id":"d-2","text":"second"}'],
        "ai.ranking": ['{"index":1,"relevanceScore":0.9}', '{"index":0,"relevanceScore":0.2}', '{"index":9}', "5"],
    })  # fmt: skip
    assert [(document.id, document.content, document.score) for document in step.documents] == [
        ("d-2", "second", 0.9),
        (None, "first", 0.2),
    ]


def test_the_span_around_a_ranking_is_no_ranking_in_version_7_either():
    attributes = {"gen_ai.operation.name": "rerank", "ai.documents": ['"first"']}
    assert read(span(1, attributes=attributes, scope="gen_ai")).role == "inner"


def test_an_error_of_a_span_below_is_not_the_run_s():
    done = {"ai.response.finishReason": "stop", "openinference.span.kind": "AGENT"}
    assert step_of("ai.generateText", done, error="a tool failed").error is None
    raised = [SpanEvent("exception", {"exception.type": "AI_APICallError", "exception.message": "429"}, 0)]
    assert step_of("ai.generateText", {}, error="429", events=raised).error.type == "AI_APICallError"


# --- turns


def run(span_id, parent=0, *, reason="stop", text=None, calls=None, messages=None, at=0.0, scope="ai"):
    """Return a run with one request."""
    attributes = {"ai.model.id": "m", "ai.response.finishReason": reason}
    if text is not None:
        attributes["ai.response.text"] = text
    if calls is not None:
        attributes["ai.response.toolCalls"] = json.dumps(calls)
    outer = {"ai.prompt": json.dumps({"messages": messages})} if messages is not None else {}
    inner = {"ai.prompt.messages": json.dumps(messages)} if messages is not None else {}
    return [
        span(
            span_id, parent, "ai.generateText", {"ai.operationId": "ai.generateText", **attributes, **outer}, at=at, scope=scope
        ),
        span(span_id + 50, span_id, REQUEST, {"ai.operationId": REQUEST, **attributes, **inner}, at=at + 1, ms=8, scope=scope),
    ]


ASKED = {"role": "user", "content": "Weather in Paris?"}
CALLED = {
    "role": "assistant",
    "content": [{"type": "tool-call", "toolCallId": "c", "toolName": "weather", "input": {"city": "Paris"}}],
}
ANSWERED = {
    "role": "tool",
    "content": [{"type": "tool-result", "toolCallId": "c", "toolName": "weather", "output": {"type": "text", "value": "sunny"}}],
}


@pytest.mark.parametrize(
    ("first", "second", "turns"),
    [
        pytest.param({"reason": "tool-calls"}, {"at": 20}, 1, id="content was not captured"),
        pytest.param({"reason": "tool-calls"}, {"at": 9}, 1, id="JavaScript starts spans at whole milliseconds"),
        pytest.param({"reason": "stop"}, {"at": 20}, 2, id="the first run was over"),
        pytest.param({"reason": "tool-calls"}, {"at": 2}, 2, id="both ran at once"),
        pytest.param({"reason": "tool-calls"}, {"at": 20, "messages": [ASKED, CALLED, ANSWERED, ASKED]}, 2, id="a question"),
    ],
)
def test_runs_beside_each_other(first, second, turns):
    assert len(turns_of(span(1, ms=50), *run(2, 1, **first), *run(3, 1, **second))) == turns


def test_a_stream_that_was_given_up_is_one_call_of_unknown_size():
    attributes = {"ai.operationId": "ai.streamText", "ai.model.id": "m", "ai.prompt": '{"prompt":"Hello"}'}
    turn = turn_of(span(1, name="ai.streamText", attributes=attributes, scope="ai"))
    assert [(call.model, call.input_tokens) for call in turn.llm_calls] == [("m", None)]
    assert (turn.input, turn.output, turn.usage) == ("Hello", None, None)


def test_the_name_of_an_operation_is_no_agent_s():
    attributes = {"ai.operationId": "ai.generateText", "openinference.span.kind": "AGENT"}
    assert read(span(1, name="ai.generateText", attributes=attributes, scope="ai")).agent is None
