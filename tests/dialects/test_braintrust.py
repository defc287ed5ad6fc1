from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from otel_agenteval.dialects.step import Step
from otel_agenteval.spans.record import SpanRecord


def step(scope: str = "braintrust", **attributes: Any) -> Step:
    marked = {f"braintrust.{key.replace('__', '.')}": value for key, value in attributes.items()}
    return read(SpanRecord(trace_id=1, span_id=2, name="search", scope=scope, start_ns=1_000, end_ns=2_000, attributes=marked))


MODEL = {"braintrust.input_json": "[]", "braintrust.metadata": '{"model": "m"}'}


@pytest.mark.parametrize(
    ("attributes", "scope", "role"),
    [
        pytest.param({"braintrust.span_attributes": '{"name": "x", "type": "tool"}'}, "my.app", "tool", id="a tool"),
        pytest.param({"braintrust.span_attributes": '{"type": "score"}'}, "my.app", "guardrail", id="a score"),
        pytest.param({"braintrust.input_json": "[]"}, "my.app", "chain", id="an input alone"),
        pytest.param({"braintrust.parent": "project_name:x"}, "my.app", None, id="what stands on every span"),
        pytest.param({"braintrust.metrics.prompt_tokens": 3}, "my.app", "llm", id="tokens in an attribute of their own"),
        pytest.param(MODEL, "braintrust", "llm", id="the SDK's own span with a model"),
        pytest.param(MODEL, "my.app", "chain", id="any other with a model"),
    ],
)
def test_role(attributes: dict[str, Any], scope: str, role: str | None) -> None:
    assert role_of(attributes, scope, "x") == role


def test_a_call_of_the_model() -> None:
    found = step(
        span_attributes='{"type":"llm"}',
        metadata='{"provider":"openai","model":"m","thread_id":"t-1","tools":[{"name":"search"}]}',
        metrics='{"prompt_tokens":10,"completion_tokens":3,"prompt_cached_tokens":4,"completion_reasoning_tokens":1,"time_to_first_token":0.5}',
        input_json='[{"role":"user","content":"hi"}]',
        output_json='[{"finish_reason":"stop","index":0,"message":{"role":"assistant","content":"hello"}}]',
    )
    assert (found.model, found.provider, found.conversation_id, found.tool_definitions) == (
        "m",
        "openai",
        "t-1",
        [{"name": "search"}],
    )
    assert (found.input_tokens, found.output_tokens, found.cached_tokens, found.reasoning_tokens) == (10, 3, 4, 1)
    assert found.time_to_first_token_s == 0.5
    assert decode(found.output_messages, "assistant").messages[0].content == "hello"
    assert found.error is None


def test_a_response_without_an_answer_is_a_failed_call() -> None:
    assert step(span_attributes='{"type":"llm"}', input_json="[]", metrics='{"time_to_first_token":0.1}').error is not None


def test_what_stands_in_attributes_of_its_own() -> None:
    found = step("my.app", metrics__prompt_tokens=3, metadata__model="m", metadata__session_id="t-1", metadata__user_id="u-1")
    assert (found.input_tokens, found.model, found.conversation_id, found.user_id) == (3, "m", "t-1", "u-1")


@pytest.mark.parametrize(("key", "value"), [("output_json", json.dumps("done")), ("output", "done")])
def test_a_tool_gives_a_text_in_json_or_bare(key: str, value: str) -> None:
    found = step(span_attributes='{"type":"tool"}', input_json='{"query":"x"}', **{key: value})
    assert (found.tool_name, found.tool_arguments, found.tool_result) == ("search", '{"query":"x"}', "done")
