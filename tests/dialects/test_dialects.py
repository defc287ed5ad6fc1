"""Attributes of each dialect. The recordings (tests/turns/test_corpus.py) contain them together."""

from __future__ import annotations

import json

import pytest

import otel_agenteval as oa
from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.openinference import unflatten
from otel_agenteval.dialects.payloads import unwrap_result
from otel_agenteval.dialects.reader import is_genai_scope, read, role_of
from otel_agenteval.spans.record import LogPart
from tests.support.spans import agent, chat, span, tool, turn_of

CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
CALLED = {"gen_ai.request.model": "m", "gen_ai.usage.output_tokens": 1}


@pytest.mark.parametrize(
    ("attributes", "scope", "name", "role"),
    [
        ({"gen_ai.operation.name": "brand_new"}, "acme", "x", "chain"),
        ({"gen_ai.operation.name": "new", **CALLED}, "acme", "x", "llm"),
        ({"gen_ai.operation.name": ["chat"]}, "acme", "x", "chain"),
        ({"gen_ai.request.model": "m"}, "acme", "x", "llm"),
        ({"openinference.span.kind": "agent"}, "acme", "x", "agent"),
        ({"openinference.span.kind": "TOOL"}, "acme", "handoff to billing", "handoff"),
        ({"openinference.span.kind": 5}, "acme", "x", "unknown"),
        ({"traceloop.span.kind": "task"}, "acme", "x", "chain"),
        ({"traceloop.span.kind": "tool", "gen_ai.operation.name": "execute_tool"}, "acme", "x", "tool"),
        ({"llm.request.type": "chat"}, "acme", "x", "llm"),
        ({}, "openinference.instrumentation.langchain", "LangGraph", "unknown"),
        ({"http.method": "GET"}, "acme", "chat", None),
        ({}, "", "x", None),
    ],
)
def test_a_span_s_role(attributes, scope, name, role):
    assert role_of(attributes, scope, name) == role


@pytest.mark.parametrize(
    ("name", "metadata", "found"),
    [
        ("orders", {"ls_integration": "langgraph"}, "orders"),
        ("LangGraph", {"ls_integration": "langgraph"}, None),
        ("orders", {"ls_integration": "langgraph", "langgraph_node": "tools"}, None),
        ("orders", {}, None),
    ],
)
def test_graph_s_name_is_the_agent_s(name, metadata, found, tmp_path):
    """Report: turns of a compiled LangGraph graph had no agent, although the graph had a name."""
    root = {"openinference.span.kind": "CHAIN", "metadata": json.dumps(metadata)}
    model = {"openinference.span.kind": "LLM", "llm.output_messages.0.message.content": "Hi"}
    spans = [
        {
            "traceId": "1" * 32, "spanId": str(number) * 16, "name": named, "startTimeUnixNano": str(number), "endTimeUnixNano": str(9 - number),
            "attributes": [{"key": key, "value": {"stringValue": value}} for key, value in attributes.items()],
        }
        for number, named, attributes in ((1, name, root), (2, "ChatOpenAI", model))
    ]  # fmt: skip
    spans[1]["parentSpanId"] = spans[0]["spanId"]
    scoped = {"scope": {"name": "openinference.instrumentation.langchain"}, "spans": spans}
    (tmp_path / "spans.jsonl").write_text(json.dumps({"resourceSpans": [{"scopeSpans": [scoped]}]}))
    (turn,) = oa.load_turns(str(tmp_path / "spans.jsonl"))
    assert turn.agent == found


@pytest.mark.parametrize(
    ("scope", "known"),
    [
        ("openinference.instrumentation.openai", True), ("opentelemetry.instrumentation.genai.openai", True),
        ("opentelemetry.instrumentation.openai.v1", True), ("logfire.openai", True), ("strands.telemetry.tracer", True),
        ("com.anthropic.sdk.python", True), ("opentelemetry.instrumentation.requests", False), ("opentelemetry.instrumentation.fastapi", False),
        ("acme.ai", False), ("airflow", False),
    ],
)  # fmt: skip
def test_which_scopes_write_genai_spans(scope, known):
    assert is_genai_scope(scope) is known


@pytest.mark.parametrize(
    ("attributes", "field", "value"),
    [
        ({**CHAT, "gen_ai.response.model": "m-2"}, "model", "m-2"),
        ({**CHAT, "gen_ai.system": "openai"}, "provider", "openai"),
        ({**CHAT, "gen_ai.provider.name": "azure", "gen_ai.system": "openai"}, "provider", "azure"),
        ({**CHAT, "gen_ai.usage.prompt_tokens": 5}, "input_tokens", 5),
        ({**CHAT, "gen_ai.usage.completion_tokens": "7"}, "output_tokens", 7),
        ({**CHAT, "gen_ai.usage.input_tokens": -1}, "input_tokens", None),
        ({**CHAT, "gen_ai.usage.input_tokens": True}, "input_tokens", None),
        ({**CHAT, "gen_ai.usage.cache_read.input_tokens": 3}, "cached_tokens", 3),
        ({**CHAT, "gen_ai.usage.cache_read_input_tokens": 3}, "cached_tokens", 3),
        ({**CHAT, "gen_ai.usage.reasoning.output_tokens": 4}, "reasoning_tokens", 4),
        ({**CHAT, "gen_ai.response.finish_reasons": ("stop",)}, "finish_reason", "stop"),
        ({**CHAT, "gen_ai.response.finish_reasons": [""]}, "finish_reason", None),
        ({**CHAT, "gen_ai.response.time_to_first_chunk": 0.2}, "time_to_first_token_s", 0.2),
        ({**CHAT, "operation.cost": 0.1}, "cost_usd", 0.1),
        ({**CHAT, "operation.cost": float("inf")}, "cost_usd", None),
        ({"openinference.span.kind": "LLM", "llm.model_name": "m"}, "model", "m"),
        ({"openinference.span.kind": "LLM", "llm.token_count.prompt": 5}, "input_tokens", 5),
        ({"openinference.span.kind": "LLM", "llm.token_count.prompt_details.cache_read": 2}, "cached_tokens", 2),
        ({"openinference.span.kind": "LLM", "llm.cost.total": 0.5}, "cost_usd", 0.5),
        ({"openinference.span.kind": "TOOL", "session.id": "s"}, "conversation_id", "s"),
        ({"openinference.span.kind": "AGENT", "user.id": "u"}, "user_id", "u"),
        ({"traceloop.span.kind": "agent", "traceloop.entity.name": "bot"}, "agent", "bot"),
        ({**CHAT, "traceloop.association.properties.session_id": "s", "traceloop.entity.name": "x"}, "conversation_id", "s"),
    ],
)  # fmt: skip
def test_a_fact_in_each_spelling(attributes, field, value):
    assert getattr(read(span(1, attributes=attributes)), field) == value


def text(*parts, role="assistant"):
    return [(m.role, m.content) for m in decode(list(parts), role).messages]


@pytest.mark.parametrize(
    ("raw", "messages"),
    [
        pytest.param("hello", [("user", "hello")], id="bare text"),
        pytest.param(
            '[{"role":"user","parts":[{"type":"text","content":"a"},{"type":"text","content":"b"}]}]',
            [("user", "a\nb")],
            id="the convention",
        ),
        pytest.param([{"role": "human", "content": "a"}], [("user", "a")], id="chat completions"),
        pytest.param({"messages": [{"type": "ai", "data": {"content": "a"}}]}, [("assistant", "a")], id="LangChain dump"),
        pytest.param([{"text": "a"}], [("user", "a")], id="Bedrock blocks"),
        pytest.param([json.dumps({"role": "user", "content": "a"})], [("user", "a")], id="JSON texts in a list"),
        pytest.param('[{"role":"user","content":"{\\"q\\": 1}"}]', [("user", '{"q": 1}')], id="JSON that the user wrote"),
        pytest.param({"question": "a"}, [("user", "a")], id="a chain's input"),
        pytest.param(5, [("user", "5")], id="a number"),
        pytest.param(None, [], id="nothing"),
    ],
)
def test_messages_in_each_shape(raw, messages):
    assert [(m.role, m.content) for m in decode(raw, "user").messages] == messages


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        ("18", "18"),
        ('{"temp": 18}', '{"temp": 18}'),
        ('{"type": "tool", "data": {"content": "18"}}', "18"),
        ('[{"text": "18"}]', "18"),
        ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], "a\nb"),
        ({"temp": 18}, {"temp": 18}),
        pytest.param('[{"text": "a", "annotations": null}, {"text": "b"}]', "a\nb", id="texts without a type"),
        pytest.param([{"block_type": "text", "text": "18"}], "18", id="a block of LlamaIndex"),
        pytest.param({"tool_output": "18", "tool_call_id": "c1"}, "18", id="a result with its call's id"),
        pytest.param('[{"id": "d1", "text": "a"}]', '[{"id": "d1", "text": "a"}]', id="entries of data with a text are data"),
    ],
)
def test_results_come_out_of_what_frameworks_wrap_around_them(raw, value):
    assert unwrap_result(raw) == value


def test_flattened_attributes_with_gaps_are_closed_up():
    assert unflatten({"p.0.a": 1, "p.7.b.c": 2, "q.0": 3}, "p.") == [{"a": 1}, {"b": {"c": 2}}]
    assert unflatten({"q": 1}, "p.") is None


def test_result_is_unwrapped_from_event_with_choices():
    result = '{"choices": [{"message": {"role": "tool", "content": "18"}}]}'
    assert unwrap_result(result) == "18"
    assert unwrap_result('{"choices": [], "content": 1}') == '{"choices": [], "content": 1}'


def test_workflow_of_agentops_names_its_conversation():
    attributes = {"agentops.span.kind": "workflow", "group.id": "c-1"}
    assert read(span(1, 0, "Support", attributes, scope="openai-agents")).conversation_id == "c-1"


# --- content that AWS's distribution moves from spans to log records


def moved(given, made):
    sides = {"input": given, "output": made}
    body = {side: {"messages": [{"role": role, "content": content}]} for side, (role, content) in sides.items()}
    return [LogPart("acme.tracer", {"event.name": "acme.tracer"}, body, 1)]


def _as_text(**said):
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in said.items()])


QUESTION, ANSWER = ("user", "Weather in Rome?"), ("assistant", "21 degrees.")
ASKS = (
    "assistant",
    {"message": '[{"toolUse": {"toolUseId": "t", "name": "w", "input": {"c": "R"}}}]', "finish_reason": "tool_use"},
)


@pytest.mark.parametrize(
    ("spans", "calls"),
    [
        pytest.param(
            [
                span(1, attributes={"openinference.span.kind": "AGENT"}, logs=moved(("user", '{"q": 1}'), ("assistant", '{"a": 2}')), ms=90),
                span(2, 1, attributes={"openinference.span.kind": "LLM", "llm.model_name": "m"}, logs=moved(QUESTION, ANSWER)),
            ],
            [], id="an instrumentation of OpenInference",
        ),
        pytest.param(
            [
                agent(1, logs=moved(("user", {"content": '[{"text": "Weather in Rome?"}]'}), ("assistant", {"message": "21 degrees."}))),
                chat(2, 1, logs=moved(QUESTION, ASKS)),
                tool(3, 1, "w", at=20, attributes={"gen_ai.tool.call.id": "t"}, logs=moved(("tool", {"content": '{"c": "R"}'}), ("tool", {"message": "21"}))),
                chat(4, 1, at=40, logs=moved(QUESTION, ANSWER)),
            ],
            [("w", {"c": "R"}, "21")], id="the convention's span events",
        ),
        pytest.param(
            [
                span(1, name="x.workflow", attributes={"traceloop.span.kind": "workflow"}, logs=moved(("user", '{"inputs": {}}'), ANSWER), ms=90),
                chat(2, 1, logs=moved(QUESTION, ANSWER)),
            ],
            [], id="an instrumentation of OpenLLMetry",
        ),
        pytest.param(
            [
                agent(1, logs=moved(("user", _as_text(user=QUESTION[1])), ("assistant", _as_text(assistant=ANSWER[1])))),
                chat(2, 1, logs=moved(("user", _as_text(user=QUESTION[1])), ("assistant", _as_text(assistant=ANSWER[1])))),
            ],
            [], id="the convention's messages as text",
        ),
    ],
)  # fmt: skip
def test_content_in_log_records_is_the_span_s(spans, calls):
    turn = turn_of(*spans)
    assert (turn.input, turn.output) == (QUESTION[1], ANSWER[1])
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == calls
