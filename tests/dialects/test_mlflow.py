"""MLflow's spellings, and what they say."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.dialects import mlflow
from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.dialects.step import Step
from otel_agenteval.spans.record import SpanEvent, SpanRecord

SCOPE = "mlflow.tracing.provider"


def step(kind: Any = "UNKNOWN", name: str = "span", events: tuple[SpanEvent, ...] = (), **attributes: Any) -> Step:
    """A span as MLflow writes it: every value is JSON text."""
    values = {"mlflow.spanType": kind, **{key.replace("__", "."): value for key, value in attributes.items()}}
    record = SpanRecord(
        trace_id=1,
        span_id=2,
        name=name,
        scope=SCOPE,
        attributes={key: json.dumps(value) for key, value in values.items()},
        events=events,
    )
    return read(record)


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        pytest.param("CHAT_MODEL", "llm", id="a chat model is a model call"),
        pytest.param("LLM", "llm", id="so is a language model"),
        pytest.param("AGENT", "agent", id="an agent is an agent"),
        pytest.param("TOOL", "tool", id="a tool is a tool"),
        pytest.param("RETRIEVER", "retrieval", id="a retriever retrieves"),
        pytest.param("RERANKER", "rerank", id="a reranker reranks"),
        pytest.param("EMBEDDING", "embedding", id="an embedding is one"),
        pytest.param("WORKFLOW", "workflow", id="a workflow is one"),
        pytest.param("CHAIN", "chain", id="a chain is a chain"),
        pytest.param("UNKNOWN", "chain", id="a plain function can be the turn"),
        pytest.param("PARSER", "inner", id="a parser is never a turn"),
        pytest.param("GUARDRAIL", "guardrail", id="a guardrail is one"),
        pytest.param("MY_OWN", "chain", id="a type of one's own can be the turn"),
    ],
)
def test_role(kind: str, role: str) -> None:
    assert role_of({"mlflow.spanType": json.dumps(kind)}, SCOPE, "x") == role
    assert role_of({"mlflow.spanType": kind}, "elsewhere", "x") == role


@pytest.mark.parametrize(
    ("attributes", "scope", "name", "role"),
    [
        pytest.param({}, SCOPE, "x", "unknown", id="a span that has just started has not said yet"),
        pytest.param({"mlflow.spanInputs": "{}"}, "my.app", "x", "chain", id="inputs without a type"),
        pytest.param({"mlflow.spanType": 7}, SCOPE, "x", "chain", id="a type that is no text"),
        pytest.param(
            {"mlflow.spanType": '"CHAIN"', "metadata": '{"lc_agent_name": "helper"}'}, SCOPE, "helper", "agent", id="an agent's graph"
        ),
        pytest.param(
            {"mlflow.spanType": '"CHAIN"', "metadata": '{"lc_agent_name": "helper"}'}, SCOPE, "tools", "chain", id="a node of it"
        ),
        pytest.param(
            {"mlflow.spanType": '"AGENT"', "mlflow.openai.agent_run_root": "true"}, SCOPE, "AgentRunner.run", "workflow", id="a runner"
        ),
        pytest.param({"gen_ai.operation.name": "RETRIEVER"}, SCOPE, "RETRIEVER", "retrieval", id="a type in the operation's place"),
        pytest.param({"gen_ai.operation.name": "UNKNOWN"}, SCOPE, "UNKNOWN", "chain", id="a plain function in the operation's place"),
        pytest.param({"gen_ai.operation.name": "chat"}, SCOPE, "chat m", "llm", id="the convention's operation"),
        pytest.param({"gen_ai.operation.name": ["x"]}, SCOPE, "x", "chain", id="an operation that is no text"),
        pytest.param(
            {"gen_ai.operation.name": "CHAIN", "metadata": '{"lc_agent_name": "helper"}'}, SCOPE, "CHAIN", "agent",
            id="an agent's graph in the convention's form",
        ),
    ],
)  # fmt: skip
def test_role_from_more_than_the_type(attributes: dict[str, Any], scope: str, name: str, role: str) -> None:
    assert role_of(attributes, scope, name) == role


@pytest.mark.parametrize(
    ("usage", "counts"),
    [
        pytest.param({"input_tokens": 57, "output_tokens": 15, "total_tokens": 72}, (57, 15, None), id="three counts"),
        pytest.param({"input_tokens": 57, "output_tokens": 15}, (57, 15, None), id="no total"),
        pytest.param(
            {"input_tokens": 91, "output_tokens": 14, "total_tokens": 105, "cache_read_input_tokens": 64},
            (91, 14, 64),
            id="cached inside",
        ),
        pytest.param(
            {"input_tokens": 91, "output_tokens": 14, "cache_read_input_tokens": 64}, (91, 14, 64), id="cached, no total"
        ),
        pytest.param("many", (None, None, None), id="text is unknown"),
    ],
)
def test_usage(usage: Any, counts: tuple[int | None, ...]) -> None:
    found = step("CHAT_MODEL", mlflow__chat__tokenUsage=usage)
    assert (found.input_tokens, found.output_tokens, found.cached_tokens) == counts


def test_a_model_call() -> None:
    found = step(
        "CHAT_MODEL",
        mlflow__spanInputs={"messages": [{"role": "user", "content": "Hi"}], "system": "Be kind."},
        mlflow__spanOutputs={"choices": [{"message": {"role": "assistant", "content": "Hello"}}]},
        mlflow__llm__model="gpt-4o", mlflow__llm__provider="openai", mlflow__llm__cost={"total_cost": 0.25},
        mlflow__chat__tools=[{"type": "function", "function": {"name": "f"}}],
    )  # fmt: skip
    assert (found.model, found.provider, found.cost_usd) == ("gpt-4o", "openai", 0.25)
    assert [message.content for message in decode(found.input_messages, "user").messages] == ["Hi"]
    assert [message.content for message in decode(found.output_messages, "assistant").messages] == ["Hello"]
    assert [message.content for message in decode(found.system, "system").messages] == ["Be kind."]
    assert found.tool_definitions is not None


def test_a_run_of_openai_agents_has_the_response_in_plain_attributes() -> None:
    found = step(
        "CHAT_MODEL", model="gpt-4o", instructions="Be kind.",
        usage={"input_tokens": 9, "output_tokens": 3, "total_tokens": 12, "input_tokens_details": {"cached_tokens": 4}},
    )  # fmt: skip
    assert (found.model, found.system, found.input_tokens, found.output_tokens, found.cached_tokens) == (
        "gpt-4o",
        "Be kind.",
        9,
        3,
        4,
    )


def test_a_tool() -> None:
    found = step("TOOL", "get_weather", mlflow__spanInputs={"city": "Paris"}, mlflow__spanOutputs="18°C", tool_call_id="c1")
    assert (found.tool_name, found.tool_arguments, found.tool_result) == ("get_weather", '{"city": "Paris"}', "18°C")
    assert found.tool_call_id == "c1"
    assert found.error is None


def test_a_tool_whose_message_says_that_it_failed() -> None:
    found = step("TOOL", mlflow__spanOutputs={"content": "no", "type": "tool", "tool_call_id": "c1", "status": "error"})
    assert found.error is not None


def test_a_retriever() -> None:
    documents = [{"page_content": "30 days", "metadata": {"doc_uri": "refunds.md", "score": 0.5}, "id": None}]
    found = step("RETRIEVER", mlflow__spanInputs={"k": 2, "query": "refunds"}, mlflow__spanOutputs=documents)
    assert found.query == "refunds"
    assert [(d.id, d.content, d.score) for d in found.documents or ()] == [("refunds.md", "30 days", 0.5)]


@pytest.mark.parametrize(
    ("inputs", "said"),
    [
        pytest.param("Where is it?", "Where is it?", id="text"),
        pytest.param({"question": "Where is it?"}, "Where is it?", id="a known name"),
        pytest.param({"cust": "c-1", "wish": "Where is it?"}, "Where is it?", id="a name of one's own"),
        pytest.param({"messages": [{"role": "user", "content": "Where is it?"}]}, "Where is it?", id="messages"),
        pytest.param("", None, id="an empty text says nothing"),
        pytest.param(None, None, id="null says nothing"),
    ],
)
def test_what_a_function_was_asked(inputs: Any, said: str | None) -> None:
    messages = decode(step("AGENT", mlflow__spanInputs=inputs).input_value, "user").messages
    assert [message.content for message in messages] == ([said] if said is not None else [])


@pytest.mark.parametrize(
    ("outputs", "streamed", "said"),
    [
        pytest.param("It is\nhere.", False, "It is\nhere.", id="text"),
        pytest.param(["It is", " here."], True, "It is here.", id="the pieces of a generator"),
        pytest.param(["a", "b"], False, '["a", "b"]', id="a list that was given back at once"),
        pytest.param({"output_type": "str"}, False, None, id="the type of an answer is none"),
        pytest.param(None, False, None, id="null says nothing"),
    ],
)
def test_what_a_function_gave_back(outputs: Any, streamed: bool, said: str | None) -> None:
    events = (SpanEvent("mlflow.chunk.item.0", {}),) if streamed else ()
    assert step("AGENT", events=events, mlflow__spanOutputs=outputs).output_value == said


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param({"session__id": "s-1"}, id="the session, as JSON text"),
        pytest.param({"mlflow__trace__session": "s-1"}, id="the trace's session"),
        pytest.param({"mlflow__traceTag__session_id": "s-1"}, id="a tag"),
        pytest.param({"metadata": {"langgraph_step": 1, "thread_id": "s-1"}}, id="LangGraph's thread"),
        pytest.param({"mlflow__spanInputs": {"question": "Hi", "session_id": "s-1"}}, id="an argument of the function"),
        pytest.param({"mlflow__spanInputs": {"conv_id": "s-1"}}, id="an argument under a short name"),
        pytest.param({"kwargs": {"run_config": {"group_id": "s-1"}}}, id="a runner's group"),
    ],
)
def test_conversation(attributes: dict[str, Any]) -> None:
    assert step("AGENT", **attributes).conversation_id == "s-1"


def test_an_argument_of_a_tool_is_no_conversation() -> None:
    assert step("TOOL", mlflow__spanInputs={"session_id": "s-1"}).conversation_id is None


def test_the_convention_form_keeps_the_name_of_an_agents_graph() -> None:
    record = SpanRecord(
        trace_id=1, span_id=2, name="CHAIN", scope=SCOPE,
        attributes={"gen_ai.operation.name": "CHAIN", "metadata": '{"lc_agent_name": "helper", "thread_id": "t-1"}'},
    )  # fmt: skip
    found = read(record)
    assert (found.role, found.agent, found.conversation_id) == ("agent", "helper", "t-1")


@pytest.mark.parametrize("value", [None, 7, 1.5, True, b"x", [1], {"a": 1}, "", "{", '["', "[[[[", '"'], ids=repr)
@pytest.mark.parametrize("kind", [*mlflow.KINDS, None], ids=str)
def test_no_value_of_any_type_raises(kind: str | None, value: Any) -> None:
    keys = ("mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.chat.tokenUsage", "mlflow.llm.cost", "mlflow.llm.model", "metadata",
            "session.id", "kwargs", "usage", "tool_call_id", "instructions")  # fmt: skip
    record = SpanRecord(
        trace_id=1, span_id=2, name="x", scope=SCOPE, attributes={"mlflow.spanType": kind, **dict.fromkeys(keys, value)}
    )
    found = read(record)
    decode(found.input_value, "user")
    decode(found.output_value, "assistant")
