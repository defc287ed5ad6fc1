"""Turns in the form ``turn.v1``, and scores as dicts."""

from __future__ import annotations

import re
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


def test_what_is_empty_is_unknown_and_left_out_except_three_facts():
    for key, empty in (("agent", ""), ("context", []), ("metadata", {})):
        assert oa.Turn.from_dict({key: empty}).to_dict() == oa.Turn.from_dict({key: None}).to_dict() == {}
    facts = {"output": "", "tool_calls": [], "retrieved_ids": []}
    assert oa.Turn.from_dict(facts).to_dict() == facts


@pytest.mark.parametrize("make", [oa.Turn.from_dict, lambda data: oa.Turn(**data)], ids=["from_dict", "the constructor"])
def test_objects_of_a_turn_can_be_dictionaries(make: Any) -> None:
    turn = make({"tool_calls": [{"name": "find", "arguments": {"q": "x"}}], "usage": {"input_tokens": 3}, "error": {"type": "E"}})
    assert (turn.tool_calls[0].name, turn.usage.input_tokens, turn.error.type) == ("find", 3, "E")
    with pytest.raises(oa.ConfigError, match="nmae"):
        make({"tool_calls": [{"nmae": "find"}]})


@pytest.mark.parametrize("make", [oa.Turn.from_dict, lambda data: oa.Turn(**data)], ids=["from_dict", "the constructor"])
def test_a_field_that_no_turn_has_is_refused_with_the_nearest(make: Any) -> None:
    with pytest.raises(oa.ConfigError, match=r"^turn\.agnet: .*'agent'"):
        make({"turn_id": "t1", "agnet": "bot"})
    with pytest.raises(oa.ConfigError, match=r"^turn\._builder: "):
        make({"_builder": "x"})


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
        ({"name": "t", "arguments": "not json", "error": False}, {"name": "t", "malformed": True}),
        ({"name": "t", "arguments": {}}, {"name": "t", "arguments": {}}),
        ({"name": "t", "error": True}, {"name": "t", "error": True}),
        ({"name": "t", "error": "boom"}, {"name": "t", "error": "boom"}),
    ],
)
def test_tool_calls_are_taken_as_instrumentations_write_them(call, expected):
    assert oa.Turn.from_dict({"tool_calls": [call]}).to_dict()["tool_calls"] == [expected]


@pytest.mark.parametrize(
    ("given", "path"),
    [
        ({"tool_calls": [{"name": "t", "argumens": {}}]}, "turn.tool_calls[0].argumens"),
        ({"tool_calls": [{}]}, "turn.tool_calls[0]"),
        ({"spans": [{"name": "a"}]}, "turn.spans[0]"),
        ({"tool_calls": {}}, "turn.tool_calls"),
        ({"duration_s": "fast"}, "turn.duration_s"),
        ({"duration_s": float("nan")}, "turn.duration_s"),
        ({"usage": {"input_tokens": -1}}, "turn.usage.input_tokens"),
        ({"start": "yesterday"}, "turn.start"),
        ({"input": 5}, "turn.input"),
        ([], "turn"),
    ],
)
def test_a_wrong_turn_is_refused_with_its_path(given, path):
    with pytest.raises(oa.ConfigError, match=rf"^{re.escape(path)}: "):
        oa.Turn.from_dict(given)


@pytest.mark.parametrize(
    ("value", "shown"), [(5, "5"), (True, "True"), (["a"], "['a']"), (list(range(99)), repr(list(range(99)))[:80])]
)
def test_a_wrong_value_is_shown_as_repr_up_to_80_characters(value, shown):
    with pytest.raises(oa.ConfigError, match=rf"^turn\.input: must be text, got {re.escape(shown)}$"):
        oa.Turn.from_dict({"turn_id": "t", "input": value})


def test_a_score_survives_the_way_out_and_in_and_absent_keys_take_defaults():
    score = oa.get_metric("code_tool_success").evaluate(oa.Turn.from_dict({"tool_calls": [{"name": "t", "error": "x"}]}))
    assert oa.Score.from_dict(score.to_dict()) == score
    score = oa.Score.from_dict({"metric": "llm_x", "value": 1})
    assert (score.status, score.kind, score.type, score.passed, score.detail) == ("ok", "llm", "numeric", None, {})


@pytest.mark.parametrize(
    ("given", "key"),
    [
        ({"valeu": 1}, "valeu"),
        ({"metric": None}, "metric"),
        ({"status": "fine"}, "status"),
        ({"value": "1"}, "value"),
        ({"passed": "yes"}, "passed"),
    ],
)
def test_a_wrong_score_is_refused(given, key):
    with pytest.raises(oa.ConfigError, match=rf"^score\.{key}: "):
        oa.Score.from_dict({"metric": "code_x", **given})
