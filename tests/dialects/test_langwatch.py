"""LangWatch's spellings, and what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.dialects.content import decode, unwrap_result
from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.dialects.step import Step, without_provider
from otel_agenteval.spans.record import SpanRecord


def step(name: str = "span", **attributes: Any) -> Step:
    return read(
        SpanRecord(
            trace_id=1, span_id=2, name=name, scope="langwatch", start_ns=1_000, end_ns=2_000,
            attributes={key.replace("__", "."): value for key, value in attributes.items()},
        )
    )  # fmt: skip


def typed(kind: str, value: Any, **layout: Any) -> str:
    return json.dumps({"type": kind, "value": value}, **layout)


@pytest.mark.parametrize(
    ("attributes", "name", "role"),
    [
        pytest.param({"langwatch.span.type": "llm"}, "x", "llm", id="a model call"),
        pytest.param({"langwatch.span.type": "rag"}, "x", "retrieval", id="rag retrieves"),
        pytest.param({"langwatch.span.type": "span"}, "x", "chain", id="an untyped function can be the turn"),
        pytest.param({"langwatch.span.type": "component"}, "x", "chain", id="so can a component"),
        pytest.param({"langwatch.span.type": "evaluation"}, "x", "guardrail", id="an evaluation is no part of the answer"),
        pytest.param({"langwatch.span.type": 3}, "x", "chain", id="a type that is no text"),
        pytest.param({"langwatch.output": "{}"}, "x", "chain", id="an output alone"),
        pytest.param({"langwatch.labels": "[]"}, "x", "unknown", id="a span that has just started has not said yet"),
        pytest.param(
            {"langwatch.span.type": "chain", "langwatch.input": typed("json", {"messages": [{"role": "user", "content": "hi"}]})},
            "travel_specialist",
            "agent",
            id="a graph with a name of its own is an agent",
        ),
        pytest.param(
            {"langwatch.span.type": "chain", "langwatch.input": typed("json", {"messages": [{"role": "user", "content": "hi"}]})},
            "LangGraph",
            "chain",
            id="a graph without a name is none",
        ),
    ],
)
def test_role(attributes: dict[str, Any], name: str, role: str) -> None:
    assert role_of(attributes, "langwatch", name) == role


def test_the_typescript_sdk_writes_no_blanks_and_types_what_python_does_not() -> None:
    found = step(
        langwatch__span__type="llm",
        langwatch__input=typed("list", [{"type": "text", "value": "hi"}], separators=(",", ":")),
        langwatch__metrics=typed("json", {"promptTokens": 7, "completionTokens": 3, "cost": 0.5}, separators=(",", ":")),
        gen_ai__request__model="gpt-4.1-mini",
        langwatch__thread__id="t-1",
        langwatch__user__id="u-1",
    )
    assert (found.input_tokens, found.output_tokens, found.cost_usd, found.model) == (7, 3, 0.5, "gpt-4.1-mini")
    assert (found.conversation_id, found.user_id) == ("t-1", "u-1")
    assert decode(found.input_messages, "user").messages[0].content == "hi"


def test_calls_that_langchain_keeps_beside_a_message_are_the_messages() -> None:
    call = {"id": "c-1", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    message = {"role": "assistant", "content": "", "function_call": {"tool_calls": [call]}}
    found = step(langwatch__span__type="llm", langwatch__output=typed("json", [[message]]))
    assert decode(found.output_messages, "assistant").messages[0].tool_calls[0].name == "get_weather"


def test_a_model_that_streams_says_when_it_began_to_answer() -> None:
    times = json.dumps({"started_at": 1_000, "first_token_at": 1_250, "finished_at": 2_000})
    assert step(langwatch__span__type="llm", langwatch__timestamps=times).time_to_first_token_s == 0.25


@pytest.mark.parametrize("key", ["thread_id", "threadId", "session_id"])
def test_a_conversation_is_named_in_the_metadata(key: str) -> None:
    assert step(langwatch__span__type="span", metadata=json.dumps({key: "t-1"})).conversation_id == "t-1"


@pytest.mark.parametrize(
    ("contexts", "found"),
    [
        pytest.param(json.dumps([{"document_id": "d", "chunk_id": "c", "content": "x"}]), [("d", "x")], id="Python's"),
        pytest.param(typed("json", [{"chunk_id": "c", "content": {"a": 1}}]), [("c", '{"a":1}')], id="TypeScript's"),
        pytest.param(json.dumps(["x"]), [(None, "x")], id="texts only"),
        pytest.param("x", None, id="none"),
    ],
)
def test_documents(contexts: str, found: Any) -> None:
    documents = step(langwatch__span__type="rag", langwatch__contexts=contexts).documents
    assert (documents and [(item.id, item.content) for item in documents]) == found


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        ("openai/gpt-4.1-mini", ("openai", "gpt-4.1-mini")),
        ("unknown/m", (None, "m")),
        ("meta-llama/Llama-3", (None, "meta-llama/Llama-3")),
        ("m", (None, "m")),
        (None, (None, None)),
    ],
)
def test_a_provider_before_a_model_is_no_part_of_its_name(model: str | None, parts: tuple[str | None, str | None]) -> None:
    assert without_provider(model) == parts


def test_a_tool_of_langchain_js_gives_a_message_that_is_typed_twice() -> None:
    message = {"lc": 1, "type": "constructor", "id": ["langchain_core", "messages", "ToolMessage"], "kwargs": {"content": "3 °C"}}
    found = step(langwatch__span__type="tool", langwatch__output=typed("text", typed("text", message)))
    assert unwrap_result(found.tool_result) == "3 °C"
