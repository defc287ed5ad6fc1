"""For any telemetry: no crash, no exception, and every value is valid JSON."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from otel_agenteval.core.errors import NotASpan
from otel_agenteval.core.jsonio import dumps, loads, loads_cut, loads_or_text
from otel_agenteval.core.turn import Turn
from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.payloads import arguments_of, unwrap_result
from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.metrics.registry import catalog
from otel_agenteval.spans.otlp import OtlpLog, from_json
from otel_agenteval.spans.record import LogPart, SpanEvent
from tests.support.spans import agent, span, turns_of

KEYS = [
    "gen_ai.operation.name", "gen_ai.request.model", "gen_ai.response.model", "gen_ai.response.id", "gen_ai.response.finish_reasons",
    "gen_ai.input.messages", "gen_ai.output.messages", "gen_ai.system_instructions", "gen_ai.tool.definitions", "gen_ai.tool.name",
    "gen_ai.tool.call.id", "gen_ai.tool.call.arguments", "gen_ai.tool.call.result", "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens",
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.conversation.id", "gen_ai.agent.name", "gen_ai.retrieval.documents",
    "gen_ai.retrieval.query.text", "gen_ai.response.time_to_first_chunk", "operation.cost", "error.type", "final_result", "pydantic_ai.all_messages",
    "openinference.span.kind", "input.value", "output.value", "llm.model_name", "llm.token_count.prompt", "llm.input_messages.0.message.role",
    "llm.input_messages.0.message.content", "llm.input_messages.0.message.tool_calls.0.tool_call.function.arguments",
    "llm.output_messages.0.message.contents.0.message_content.text", "llm.output_messages.x", "llm.tools.0.tool.json_schema", "metadata",
    "retrieval.documents.0.document.content", "retrieval.documents.0.document.metadata", "tool.name", "session.id", "user.id",
    "traceloop.span.kind", "traceloop.entity.name", "traceloop.entity.input", "traceloop.entity.output", "gen_ai.prompt.0.role",
    "gen_ai.prompt.0.content", "gen_ai.completion.0.tool_calls.0.arguments", "llm.request.type", "llm.request.functions.0.name",
]  # fmt: skip
WORDS = st.sampled_from([
    "chat", "invoke_agent", "execute_tool", "retrieval", "LLM", "AGENT", "TOOL", "RETRIEVER", "CHAIN", "workflow", "tool", "user", "assistant",
    "stop", "length", "text", "tool_call", "tool_call_response", "[REDACTED]", "https://a.example/x", "4111 1111 1111 1111", "AKIAIOSFODNN7EXAMPLE",
])  # fmt: skip
TEXT = st.one_of(WORDS, st.text(max_size=40))
SCALARS = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), TEXT)
PART_KEYS = st.sampled_from(["role", "parts", "type", "content", "text", "name", "id", "arguments", "response", "result", "tool_calls", "function",
                             "data", "lc", "kwargs", "message", "parameters", "properties", "required", "score", "metadata"])  # fmt: skip
NESTED = st.recursive(
    SCALARS, lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(PART_KEYS, inner, max_size=4)), max_leaves=12
)
JSON_TEXT = NESTED.map(lambda value: json.dumps(value, default=str))
CUT = st.tuples(JSON_TEXT, st.integers(0, 60)).map(lambda pair: pair[0][: pair[1]])
VALUES = st.one_of(SCALARS, NESTED, JSON_TEXT, CUT)
ATTRIBUTES = st.dictionaries(st.sampled_from(KEYS), VALUES, max_size=10)
SCOPES = st.sampled_from(["acme.app", "pydantic-ai", "openinference.instrumentation.langchain", "opentelemetry.instrumentation.openai.v1"])  # fmt: skip
NAMES = st.sampled_from(["exception", "gen_ai.choice", "gen_ai.user.message", "gen_ai.client.inference.operation.details"])
EVENTS = st.lists(st.tuples(NAMES, ATTRIBUTES), max_size=2)

few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])


@st.composite
def traces(draw):
    records = [agent(1, attributes=draw(ATTRIBUTES))]
    for i in range(2, draw(st.integers(2, 5))):
        events = [SpanEvent(name, attributes) for name, attributes in draw(EVENTS)]
        logs = [LogPart(name, attributes, draw(VALUES)) for name, attributes in draw(EVENTS)]
        more = {"scope": draw(SCOPES), "events": events, "logs": logs, "error": draw(st.none() | TEXT)}
        records.append(span(i, draw(st.integers(0, i)), draw(TEXT), draw(ATTRIBUTES), at=i, **more))
    return records


@few
@given(traces())
def test_any_attributes_give_turns_and_scores_and_never_an_unexpected_error(records):
    metrics = [BoundMetric(metric, {}) for metric in catalog()]
    for turn in turns_of(*records):
        assert Turn.from_dict(json.loads(dumps(turn.to_dict()))).turn_id == turn.turn_id
        for metric in metrics:
            score = metric.evaluate(turn)
            assert score.status != "error" or score.error_type == "missing_parameter", score
            assert score.value is None or math.isfinite(score.value)
            json.loads(dumps(score.to_dict()))


@few
@given(VALUES)
def test_any_value_can_be_decoded_as_messages(value):
    for message in decode(value, "user").messages:
        assert isinstance(message.role, str)
        assert message.content is None or isinstance(message.content, str)
    unwrap_result(value)
    assert arguments_of(value) is None or isinstance(arguments_of(value), dict)


OTLP_KEYS = st.sampled_from([
    "resourceSpans", "scopeSpans", "spans", "attributes", "key", "value", "stringValue", "traceId", "spanId", "resourceLogs", "scopeLogs", "logRecords",
])  # fmt: skip


@few
@given(
    st.recursive(
        SCALARS,
        lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(OTLP_KEYS, inner, max_size=4)),
        max_leaves=20,
    )
)
def test_any_object_is_read_as_otlp_or_refused(value):
    try:
        found = list(from_json(value))
    except NotASpan:
        return
    assert all(item.__class__.__name__ in ("SpanRecord", "NotASpan") or isinstance(item, OtlpLog) for item in found)


@few
@given(st.text(max_size=200) | CUT)
def test_any_text_is_json_or_stays_text(text):
    value, cut = loads_or_text(text)
    assert cut or value == text or dumps(value)
    loads_cut(text)


@pytest.mark.parametrize("text", ['"Yes," she said.', "[1] says so, [2] doesn't.", '{"a": 1} is an object.', '"a" and "b"'])
def test_text_that_begins_with_json_stays_text(text):
    assert loads_or_text(text) == (text, False)


@pytest.mark.parametrize("number", [10**400, -(10**400), math.inf, math.nan])
def test_numbers_past_a_double_are_written_as_null(number):
    assert loads(dumps({"a": [number, 2**70]})) == {"a": [None, float(2**70)]}


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000, '"' + "\\" * 99_999, "[" * 100_000 + "]" * 100_000])
def test_hostile_depth_is_refused_and_not_recursed_into(text):
    assert loads_or_text(text)[0] is not None
    decode(text, "user")
