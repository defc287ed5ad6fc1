"""Langfuse's spellings, and what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.dialects import langfuse
from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.dialects.step import Step
from otel_agenteval.spans.record import ERROR, SpanRecord

NANOSECONDS = 1_700_000_000_000_000_000


def record(name: str = "span", **attributes: Any) -> SpanRecord:
    return SpanRecord(
        trace_id=1, span_id=2, name=name, scope="langfuse-sdk", start_ns=NANOSECONDS, end_ns=NANOSECONDS + 1,
        attributes={f"langfuse.observation.{key.replace('__', '.')}": value for key, value in attributes.items()},
    )  # fmt: skip


def step(name: str = "span", **attributes: Any) -> Step:
    return read(record(name, **attributes))


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        pytest.param("generation", "llm", id="a generation is a model call"),
        pytest.param("embedding", "embedding", id="an embedding is one"),
        pytest.param("agent", "agent", id="an agent is an agent"),
        pytest.param("tool", "tool", id="a tool is a tool"),
        pytest.param("retriever", "retrieval", id="a retriever retrieves"),
        pytest.param("chain", "chain", id="a chain is a chain"),
        pytest.param("span", "chain", id="an untyped function can be the turn"),
        pytest.param("evaluator", "guardrail", id="an evaluator is no part of the answer"),
        pytest.param("event", "inner", id="an event is never a turn"),
        pytest.param("brand-new", "chain", id="a type from the future can be the turn"),
        pytest.param(7, "chain", id="a type that is no text is taken like an unknown one"),
    ],
)
def test_role(kind: Any, role: str) -> None:
    assert role_of({"langfuse.observation.type": kind}, "langfuse-sdk", "x") == role


@pytest.mark.parametrize(
    ("attributes", "scope", "role"),
    [
        pytest.param({}, "langfuse-sdk", "unknown", id="the SDK's span that has just started has not said yet"),
        pytest.param({"langfuse.observation.input": "hi"}, "my.app", "chain", id="a plain span with Langfuse's input is a chain"),
        pytest.param({"langfuse.observation.model.name": "m"}, "my.app", "llm", id="a plain span with a model is a model call"),
        pytest.param({"langfuse.trace.name": "x"}, "my.app", None, id="a trace's name alone says nothing"),
        pytest.param(
            {"langfuse.observation.input": "hi", "gen_ai.operation.name": "chat"},
            "my.app",
            "llm",
            id="the convention knows better",
        ),
    ],
)
def test_role_without_a_type(attributes: dict[str, Any], scope: str, role: str | None) -> None:
    assert role_of(attributes, scope, "x") == role


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        pytest.param({"input": 57, "output": 15}, (57, 15, None, None), id="two counts"),
        pytest.param({"input": 27, "output": 14, "total": 105, "input_cache_read": 64}, (91, 14, 64, None), id="LangChain takes cached out"),
        pytest.param({"input": 27, "output": 14, "cache_read_input_tokens": 64}, (91, 14, 64, None), id="kinds exclude each other"),
        pytest.param(
            {"input": 91, "output": 14, "total": 105, "cache_read_input_tokens": 64}, (91, 14, 64, None), id="the total says they do not"
        ),
        pytest.param(
            {"input": 26, "output": 9, "total": 99, "output_reasoning": 64, "input_audio": 0}, (26, 73, None, 64), id="reasoning taken out"
        ),
        pytest.param(
            {"input": 5, "output": 2, "total": 17, "input_cache_creation": 10, "input_ephemeral_5m_input_tokens": 10}, (15, 2, None, None),
            id="one count under two names is one count",
        ),
        pytest.param({"input": 9, "output": 2, "input_priority": 9}, (9, 2, None, None), id="a priority tier is no kind"),
        pytest.param(
            {"prompt_tokens": 91, "completion_tokens": 14, "total_tokens": 105, "prompt_tokens_details": {"cached_tokens": 64}},
            (91, 14, 64, None), id="OpenAI chat completions",
        ),
        pytest.param(
            {"input_tokens": 26, "output_tokens": 73, "total_tokens": 99, "output_tokens_details": {"reasoning_tokens": 64}},
            (26, 73, None, 64), id="OpenAI Responses",
        ),
        pytest.param({"input": -3, "output": "many"}, (None, None, None, None), id="nonsense is unknown"),
        pytest.param([1, 2], (None, None, None, None), id="a list is unknown"),
    ],
)  # fmt: skip
def test_usage(usage: Any, counts: tuple[int | None, ...]) -> None:
    found = step(type="generation", usage_details=json.dumps(usage))
    assert (found.input_tokens, found.output_tokens, found.cached_tokens, found.reasoning_tokens) == counts


@pytest.mark.parametrize(
    ("costs", "cost"),
    [
        pytest.param('{"total": 0.5, "input": 0.2}', 0.5, id="the total"),
        pytest.param('{"input": 0.25, "output": 0.5}', 0.75, id="the sum of the kinds"),
        pytest.param("{}", None, id="nothing is unknown"),
        pytest.param("free", None, id="text is unknown"),
    ],
)
def test_cost(costs: str, cost: float | None) -> None:
    assert step(type="generation", cost_details=costs).cost_usd == cost


@pytest.mark.parametrize(
    ("given", "arguments"),
    [
        pytest.param('{"args": [], "kwargs": {"city": "Paris"}}', {"city": "Paris"}, id="keywords"),
        pytest.param('{"args": ["Paris"], "kwargs": {}}', "Paris", id="one value has lost its name"),
        pytest.param('{"args": ["gift", 100], "kwargs": {}}', ["gift", 100], id="several have lost theirs"),
        pytest.param('{"city": "Paris"}', '{"city": "Paris"}', id="an object stays as it is"),
        pytest.param('{"args": 7', '{"args": 7', id="a cut call stays as it is"),
        pytest.param(None, None, id="not captured"),
    ],
)
def test_tool_arguments(given: Any, arguments: Any) -> None:
    found = step("get_weather", type="tool", input=given, output="sunny")
    assert (found.tool_name, found.tool_arguments, found.tool_result) == ("get_weather", arguments, "sunny")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        pytest.param("Where is it?", "Where is it?", id="text"),
        pytest.param(
            '{"args": ["Where is it?", "conv-1"], "kwargs": {}}', "Where is it?", id="the first argument of several words"
        ),
        pytest.param(
            '{"args": ["conv-1"], "kwargs": {"q": "Where is it?"}}', "Where is it?", id="an identifier is not what was said"
        ),
        pytest.param('{"args": ["hello"], "kwargs": {}}', "hello", id="one word, if there is nothing else"),
        pytest.param('{"user_text": "Where is it?", "n": 3}', "Where is it?", id="an object with names of its own"),
        pytest.param(
            '{"args": [[{"role": "user", "content": "Where is it?"}], "be kind"], "kwargs": {}}', "Where is it?", id="messages"
        ),
        pytest.param(
            '{"args": ["And now?", [{"role": "assistant", "content": "Hi."}]], "kwargs": {}}',
            "And now?",
            id="not the history of them",
        ),
        pytest.param('{"args": [], "kwargs": {}}', None, id="no argument says nothing"),
    ],
)
def test_what_a_function_was_asked(given: str, said: str | None) -> None:
    messages = decode(step(type="agent", input=given).input_value, "user").messages
    assert [message.content for message in messages] == ([said] if said is not None else [])


@pytest.mark.parametrize(
    ("given", "query"),
    [
        pytest.param("refunds", "refunds", id="text"),
        pytest.param('{"args": ["refunds"], "kwargs": {}}', "refunds", id="the argument of a call"),
        pytest.param('{"args": [], "kwargs": {"k": 3, "query": "refunds"}}', "refunds", id="a keyword"),
        pytest.param('{"k": 3, "query": "refunds"}', "refunds", id="an object's query"),
        pytest.param('"refunds"', "refunds", id="JSON text"),
        pytest.param(None, None, id="not captured"),
    ],
)
def test_retrieval(given: Any, query: str | None) -> None:
    found = step(type="retriever", input=given, output='[{"id": "d1", "page_content": "30 days", "metadata": {"score": 0.5}}]')
    assert found.query == query
    assert [(d.id, d.content, d.score) for d in found.documents or ()] == [("d1", "30 days", 0.5)]


def test_metadata_is_text_or_json_text() -> None:
    for thread in ('"t-1"', "t-1"):
        found = step(
            type="generation", metadata__thread_id=thread, metadata__ls_provider='"openai"', metadata__finish_reason='"stop"'
        )
        assert (found.conversation_id, found.provider, found.finish_reason) == ("t-1", "openai", "stop")


def test_the_session_goes_before_the_thread() -> None:
    span = record(type="agent", metadata__thread_id="t-1")
    span.attributes.update({"session.id": "s-1", "user.id": "u-1"})
    assert (read(span).conversation_id, read(span).user_id) == ("s-1", "u-1")


def test_what_the_trace_says_goes_before_the_function() -> None:
    span = record(type="span", input='{"args": [1]}', output="{}")
    span.attributes.update({"langfuse.trace.input": "Hi there", "langfuse.trace.output": "Hello"})
    assert (read(span).input_value, read(span).output_value) == ("Hi there", "Hello")


@pytest.mark.parametrize(
    ("level", "failed"),
    [
        pytest.param("ERROR", True, id="an error failed"),
        pytest.param("WARNING", False, id="a warning did not"),
        pytest.param("DEFAULT", False, id="neither did a hand-off"),
    ],
)
def test_level(level: str, failed: bool) -> None:
    assert (step(type="agent", level=level, status_message="no").error is not None) is failed


def test_status_says_what_failed() -> None:
    span = record(type="tool", level="ERROR")
    span.status, span.status_message = ERROR, "ValueError: no such order"
    error = read(span).error
    assert error is not None
    assert (error.type, error.message) == ("ValueError", "ValueError: no such order")


@pytest.mark.parametrize(
    ("started", "seconds"),
    [
        pytest.param('"2023-11-14T22:13:20.500000Z"', 0.5, id="JSON text"),
        pytest.param("2023-11-14T22:13:20.250000+00:00", 0.25, id="bare text"),
        pytest.param("soon", None, id="no moment"),
        pytest.param(12, None, id="no text"),
    ],
)
def test_time_to_first_token(started: Any, seconds: float | None) -> None:
    assert step(type="generation", completion_start_time=started).time_to_first_token_s == seconds


def test_tool_definitions_among_the_messages_are_no_messages() -> None:
    definition = {"type": "function", "function": {"name": "get_weather", "parameters": {}}}
    given = json.dumps([{"role": "user", "content": "Hi there"}, {"role": "tool", "content": definition}])
    found = step(type="generation", input=given)
    assert [message.role for message in decode(found.input_messages, "user").messages] == ["user"]
    assert found.tool_definitions == given


@pytest.mark.parametrize("value", [None, 7, 1.5, True, b"x", [1], {"a": 1}, "", "{", '{"args": {}}', "[[[["], ids=repr)
@pytest.mark.parametrize("kind", [*langfuse.KINDS, None], ids=str)
def test_no_value_of_any_type_raises(kind: str | None, value: Any) -> None:
    keys = ("input", "output", "usage_details", "cost_details", "level", "completion_start_time", "metadata__thread_id",
            "metadata__tool_call_id", "model__name")  # fmt: skip
    found = step(type=kind, **dict.fromkeys(keys, value))
    decode(found.input_value, "user")
    decode(found.output_value, "assistant")
