"""Form turn.v1, and scores as dicts."""

from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa

FULL = {
    "turn_id": "t-1", "trace_id": "0a", "conversation_id": "c", "user_id": "u", "service": "s", "service_version": "2", "agent": "a", "framework": "f",
    "start": "2026-11-21T02:57:01.000000Z", "duration_s": 1.5, "close_reason": "root_ended", "complete": True, "revision": 1,
    "error": {"type": "Boom", "message": "no"}, "input": "hi", "output": "ho", "system": "be brief",
    "messages": [{"role": "user", "content": "hi"}], "stop_kind": "completed",
    "llm_calls": [{"span_id": "1", "model": "m", "input_tokens": 3, "output_tokens": 0, "finish_reason": "stop"}],
    "tool_calls": [{"name": "t", "arguments": {"q": 1}, "result": {"ok": True}, "error": "late", "duration_s": 0.5}],
    "tool_definitions": [{"name": "t"}], "retrievals": [{"query": "q", "documents": [{"id": "d", "score": 0.5}]}],
    "context": ["text"], "retrieved_ids": ["d"], "agent_runs": [{"name": "a"}], "handoffs": [{"from": "a", "to": "b", "success": True}],
    "usage": {"input_tokens": 3, "output_tokens": 0, "total_tokens": 3}, "cost_usd": 0.5,
    "spans": [{"id": "1", "name": "root", "duration_s": 1.5, "attributes": {"k": "v"}}], "ground_truth": "x", "relevant_ids": ["d"],
    "metadata": {"k": 1}, "references": {"expected_tools": ["t"]},
}  # fmt: skip


def test_a_turn_survives_the_way_out_and_in():
    out = oa.Turn.from_dict(FULL).to_dict()
    assert out == FULL
    assert oa.Turn.from_dict(out).to_dict() == FULL


@pytest.mark.parametrize("empty", [None, "", [], {}])
def test_what_is_empty_is_unknown_and_left_out(empty):
    for key, kind in (("agent", str), ("context", list), ("metadata", dict)):
        if empty is None or isinstance(empty, kind):
            assert oa.Turn.from_dict({key: empty}).to_dict() == {}


@pytest.mark.parametrize("make", [oa.Turn.from_dict, lambda data: oa.Turn(**data)], ids=["from_dict", "the constructor"])
def test_a_field_that_no_turn_has_is_refused_with_the_nearest(make: Any) -> None:
    with pytest.raises(oa.ConfigError, match=r"^turn\.agnet: unknown key. Did you mean 'agent'"):
        make({"turn_id": "t1", "agnet": "bot"})
    with pytest.raises(oa.ConfigError, match=r"^turn\._builder: unknown key"):
        make({"_builder": "x"})


def test_three_empties_are_facts():
    facts = {"output": "", "tool_calls": [], "retrieved_ids": []}
    assert oa.Turn.from_dict(facts).to_dict() == facts


@pytest.mark.parametrize(
    ("given", "field", "expected"),
    [
        ({"llm_calls": 4}, "llm_call_count", 4),
        ({"llm_calls": [{"model": "m"}]}, "llm_call_count", 1),
        ({}, "llm_call_count", None),
        ({"error": "boom"}, "error", "boom"),
        ({"start": "2026-11-21T02:57:01+02:00"}, "start", "2026-11-21T00:57:01.000000Z"),
    ],
)
def test_other_forms_are_taken_too(given, field, expected):
    turn = oa.Turn.from_dict(given)
    found = getattr(turn, field)
    if field in ("error", "start"):
        found = turn.to_dict()[field]
    assert found == expected


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        ({"name": "t", "arguments": '{"q": 1}'}, {"name": "t", "arguments": {"q": 1}}),
        ({"name": "t", "arguments": "not json"}, {"name": "t"}),
        ({"name": "t", "arguments": {}}, {"name": "t", "arguments": {}}),
        ({"name": "t", "error": True}, {"name": "t", "error": True}),
        ({"name": "t", "error": False}, {"name": "t"}),
        ({"name": "t", "error": "boom"}, {"name": "t", "error": "boom"}),
    ],
)
def test_tool_calls_are_taken_as_instrumentations_write_them(call, expected):
    assert oa.Turn.from_dict({"tool_calls": [call]}).to_dict()["tool_calls"] == [expected]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"inptu": "x"}, r"turn\.inptu: unknown key. Did you mean 'input'"),
        (
            {"tool_calls": [{"name": "t", "argumens": {}}]},
            r"turn\.tool_calls\[0\]\.argumens: unknown key. Did you mean 'arguments'",
        ),
        ({"tool_calls": [{}]}, r"turn\.tool_calls\[0\]\.name: must be a name"),
        ({"tool_calls": {}}, r"turn\.tool_calls: must be a list"),
        ({"duration_s": "fast"}, r"turn\.duration_s: must be a finite number, got .fast"),
        ({"duration_s": float("nan")}, r"turn\.duration_s: .*got .nan"),
        ({"usage": {"input_tokens": -1}}, r"turn\.usage\.input_tokens: must be a whole number from 0"),
        ({"start": "yesterday"}, r"turn\.start: must be an ISO 8601 time"),
        ({"input": 5}, r"turn\.input: must be text, got .5"),
        ([], r"turn: must be an object, got list"),
    ],
)
def test_a_wrong_turn_is_refused_with_its_path(given, message):
    with pytest.raises(oa.ConfigError, match=message):
        oa.Turn.from_dict(given)


def test_a_field_that_does_not_exist_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no_such"):
        _ = oa.Turn().no_such


def test_a_score_survives_the_way_out_and_in():
    score = oa.get_metric("code_tool_success").evaluate(oa.Turn.from_dict({"tool_calls": [{"name": "t", "error": "x"}]}))
    assert oa.Score.from_dict(score.to_dict()) == score


def test_absent_keys_of_a_score_take_their_defaults():
    score = oa.Score.from_dict({"metric": "llm_x", "value": 1})
    assert (score.status, score.kind, score.type, score.passed, score.detail) == ("ok", "llm", "numeric", None, {})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"metric": "code_x", "valeu": 1}, r"score\.valeu: unknown key. Did you mean value"),
        ({"value": 1}, r"score\.metric: must be a metric name"),
        ({"metric": "code_x", "status": "fine"}, r"score\.status: must be one of ok, skipped, error, got .fine"),
        ({"metric": "code_x", "value": "1"}, r"score\.value: must be a number, got .1"),
        ({"metric": "code_x", "passed": "yes"}, r"score\.passed: .*got .yes"),
    ],
)
def test_a_wrong_score_is_refused(given, message):
    with pytest.raises(oa.ConfigError, match=message):
        oa.Score.from_dict(given)
