"""LiteLLM's attributes that its recordings don't contain."""

from __future__ import annotations

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import chat, span, turn_of

REQUEST = {"gen_ai.request.model": "gpt-4o", "llm.request.type": "completion", "hidden_params": "{}"}


def test_the_spelling_before_1_80():
    step = read(
        span(
            1, name="litellm_request", scope="litellm",
            attributes={
                **REQUEST, "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Weather in Oslo?",
                "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.finish_reason": "tool_calls",
                "gen_ai.completion.0.function_call.name": "get_weather", "gen_ai.completion.0.function_call.arguments": '{"city": "Oslo"}',
                "gen_ai.completion.1.function_call.name": "get_time", "gen_ai.completion.1.function_call.arguments": "{}",
                "gen_ai.usage.prompt_tokens": 10, "gen_ai.usage.completion_tokens": 5,
            },
        )
    )  # fmt: skip
    (answer,) = decode(step.output_messages, "assistant").messages
    assert [call.name for call in answer.tool_calls] == ["get_weather", "get_time"]
    assert (step.input_tokens, step.output_tokens) == (10, 5)
    assert decode(step.input_messages, "user").messages[0].content == "Weather in Oslo?"


@pytest.mark.parametrize(
    ("raw", "said", "tokens"),
    [
        pytest.param(
            {
                "llm.anthropic.messages": "[{'role': 'user', 'content': 'Hi'}]", "llm.anthropic.content": "[{'type': 'text', 'text': 'Hello'}]",
                "llm.anthropic.usage": "{'input_tokens': 7, 'output_tokens': 2}",
            },
            "Hello", (7, 2), id="Anthropic",
        ),
        pytest.param(
            {
                "llm.gemini.contents": "[{'role': 'user', 'parts': [{'text': 'Hi'}]}]",
                "llm.gemini.candidates": "[{'content': {'role': 'model', 'parts': [{'text': 'Hello'}]}}]",
                "llm.gemini.usageMetadata": "{'promptTokenCount': 7, 'candidatesTokenCount': 2}",
            },
            "Hello", (7, 2), id="Google",
        ),
        pytest.param(
            {
                "llm.openai.input": "[{'role': 'user', 'content': 'Hi'}]",
                "llm.openai.output": "[{'type': 'message', 'role': 'assistant', 'content': [{'type': 'output_text', 'text': 'Hello'}]}]",
                "llm.openai.usage": "{'input_tokens': 7, 'output_tokens': 2}",
            },
            "Hello", (7, 2), id="the Responses API",
        ),
        pytest.param(
            {
                "llm.bedrock.messages": "[{'role': 'user', 'content': [{'text': 'Hi'}]}]",
                "llm.bedrock.output": "{'message': {'role': 'assistant', 'content': [{'text': 'Hello'}]}}",
                "llm.bedrock.usage": "{'inputTokens': 7, 'outputTokens': 2}",
            },
            "Hello", (7, 2), id="Bedrock",
        ),
    ],
)  # fmt: skip
def test_a_raw_request_below_an_application_s_span(raw, said, tokens):
    request = span(2, 1, name="raw_gen_ai_request", scope="litellm", attributes=raw)
    turn = turn_of(span(1, name="handle_request", scope="shop", attributes={}), request)
    assert (turn.input, turn.output) == ("Hi", said)
    assert (turn.usage.input_tokens, turn.usage.output_tokens) == tokens


def test_a_literal_that_was_cut_is_no_message():
    step = read(
        span(1, name="raw_gen_ai_request", scope="litellm", attributes={"llm.openai.messages": "[{'role': 'user', 'content"})
    )
    assert [message.content for message in decode(step.input_messages, "user").messages if message.role == "assistant"] == []


def test_a_raw_request_knows_better():
    """The raw request has the complete messages. The surrounding span can lack some."""
    turn = turn_of(
        chat(1, user="Look!", says="", scope="shop", ms=100),
        span(
            2, 1, name="raw_gen_ai_request", scope="litellm", at=1,
            attributes={"llm.openai.choices": "[{'message': {'role': 'assistant', 'content': 'There.'}}]"},
        ),
    )  # fmt: skip
    assert turn.output == "There."


@pytest.mark.parametrize(
    ("attributes", "scope", "name", "role"),
    [
        pytest.param({**REQUEST, "llm.request.type": "aembedding"}, "litellm", "litellm_request", "embedding", id="an embedding"),
        pytest.param(
            {**REQUEST, "llm.request.type": "anthropic_messages"}, "litellm", "x", "llm", id="a type that begins with a"
        ),
        pytest.param({"service": "redis", "call_type": "set"}, "litellm", "redis", "unknown", id="a service of its proxy"),
        pytest.param({**REQUEST, "gen_ai.system": "openai"}, "shop", "POST /ask", "workflow", id="an application's span"),
        pytest.param({**REQUEST, "gen_ai.operation.name": "invoke_agent"}, "pydantic-ai", "x", "agent", id="a framework's span"),
    ],
)
def test_what_a_span_is(attributes, scope, name, role):
    assert role_of(attributes, scope, name) == role


def test_gateways_own_spans_are_no_calls():
    """litellm 35193: the second callback writes the request's model on all spans of a request."""
    model, key, identity = {"gen_ai.request.model": "gpt-4o"}, {"litellm.call_id": "c1"}, {"litellm.api_key.hash": "h"}
    turn = turn_of(
        span(1, 0, "POST /v1/chat/completions", {**model, **key}, scope="opentelemetry.instrumentation.fastapi", ms=90),
        span(2, 1, "auth /v1/chat/completions", scope="litellm"),
        span(3, 1, "route gpt-4o", {**model, **identity}, scope="litellm"),
        span(5, 1, "POST", {**model, **identity}, scope="opentelemetry.instrumentation.httpx"),
        chat(4, 1, user="Hi", says="Hello", scope="litellm", at=20, attributes={**key, "litellm.cost.total": 0.25}),
    )
    assert [(call.span_id, call.cost_usd) for call in turn.llm_calls] == [(f"{4:016x}", 0.25)]
    assert role_of({**model, **identity, "gen_ai.operation.name": "embeddings"}, "litellm", "embeddings gpt-4o") == "embedding"
