"""OpenLLMetry's attributes from before the convention's attributes, and its decorators."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import span, turn_of


def model(span_id, parent_id, attributes, **more):
    return span(
        span_id, parent_id, "openai.chat", {"llm.request.type": "chat", "gen_ai.request.model": "m", **attributes}, **more
    )


@pytest.mark.parametrize(
    ("request_type", "role"),
    [("chat", "llm"), ("completion", "llm"), ("embedding", "embedding"), ("rerank", "rerank"), ("other", "llm"), (5, "llm")],
)
def test_the_request_type_says_the_role_of_a_model_s_span(request_type, role):
    assert role_of({"gen_ai.request.model": "m", "llm.request.type": request_type}, "acme", "x") == role


def test_indexed_prompts_and_completions_are_messages():
    turn = turn_of(model(1, 0, {
        "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief.", "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": "Weather?",
        "gen_ai.completion.0.role": "thinking", "gen_ai.completion.0.content": "Hm.", "gen_ai.completion.1.role": "unknown",
        "gen_ai.completion.1.content": "Sunny.", "llm.request.functions.0.name": "get_weather", "gen_ai.usage.prompt_tokens": 5,
    }))  # fmt: skip
    assert (turn.input, turn.output, turn.system, turn.reasoning) == ("Weather?", "Sunny.", "Be brief.", "Hm.")
    assert [definition["name"] for definition in turn.tool_definitions] == ["get_weather"]
    assert turn.usage.input_tokens == 5


def test_a_request_that_streaming_lost_is_read_back_from_the_next_prompt():
    turn = turn_of(
        span(1, name="handle", ms=100),
        model(2, 1, {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Weather?", "gen_ai.completion.0.role": "assistant"}),
        model(3, 1, {
            "gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Weather?", "gen_ai.prompt.1.role": "assistant",
            "gen_ai.prompt.1.content": json.dumps([{"type": "tool_use", "id": "c1", "name": "get_weather", "input": {"city": "Paris"}}]),
            "gen_ai.prompt.2.role": "user",
            "gen_ai.prompt.2.content": json.dumps([{"type": "tool_result", "tool_use_id": "c1", "content": "sunny"}]),
            "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "Sunny.",
        }, at=20),
    )  # fmt: skip
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [("get_weather", {"city": "Paris"}, "sunny")]


@pytest.mark.parametrize(
    ("entity", "conversation"),
    [
        pytest.param({"inputs": {}, "metadata": {"session_id": "s-1"}}, "s-1", id="a session"),
        pytest.param({"inputs": {}, "metadata": {"thread_id": "t-1"}}, "t-1", id="a thread"),
        pytest.param({"inputs": {}, "metadata": {"user_id": "u-1"}}, None, id="neither"),
        pytest.param({"inputs": {}, "metadata": "session_id"}, None, id="metadata of another type"),
    ],
)
def test_a_conversation_in_langchain_s_metadata(entity, conversation):
    step = read(
        span(1, 0, "LangGraph.workflow", {"traceloop.span.kind": "workflow", "traceloop.entity.input": json.dumps(entity)})
    )
    assert step.conversation_id == conversation


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param({"args": ["Weather?", ["get_weather"], [{"role": "user", "content": "Hi"}]], "kwargs": {}}, id="of several"),
        pytest.param({"args": [], "kwargs": {"question": "Weather?"}}, id="a keyword"),
    ],
)
def test_a_decorated_function_got(arguments):
    root = {"traceloop.span.kind": "workflow", "traceloop.entity.name": "x", "traceloop.entity.input": json.dumps(arguments)}
    call = model(2, 1, {"gen_ai.prompt.0.role": "user", "gen_ai.prompt.0.content": "Weather?"})
    assert turn_of(span(1, 0, "x.workflow", root, ms=100), call).input == "Weather?"
