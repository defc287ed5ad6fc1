"""Situations of public reports on references and assertions, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.names import presets, tool_metrics

# --- verdicts

TURN: dict[str, Any] = {
    "turn_id": "t", "input": "q", "output": '{"a": 1}', "duration_s": 1.0, "cost_usd": 0.1, "ground_truth": "x", "logprobs": [-0.5],
    "tool_calls": [{"name": "f", "arguments": {"a": 1}}], "references": {"expected_tools": ["f"]},
}  # fmt: skip
OPTIONS: dict[str, dict[str, Any]] = {
    **{name: {"value": "a"} for name in ("equals", "contains", "icontains", "starts-with", "regex")},
    **{f"{start}-{end}": {"value": ["a"]} for start in ("contains", "icontains") for end in ("all", "any")},
    "word-count": {"value": 2}, "cost": {"threshold": 1}, "latency": {"threshold": 1000}, "tool-call-f1": {"value": "f"},
    "trajectory:tool-used": {"value": "f"}, "trajectory:tool-sequence": {"value": ["f"]},
    "trajectory:tool-args-match": {"value": {"name": "f", "args": {"a": 1}}},
}  # fmt: skip
PROMPTFOO = [m.name for tool, m in tool_metrics() if tool.prefix == "promptfoo" and (m.ours or "").startswith("code_")]


@pytest.mark.parametrize("name", PROMPTFOO)
def test_assertion_has_a_verdict(name: str) -> None:
    """promptfoo 5231: an assertion that can't fail. The verdict of `not-` is the opposite one."""
    options, turn = OPTIONS.get(name, {}), oa.Turn.from_dict(TURN)
    score = oa.get_metric(f"promptfoo:{name}", **options).evaluate(turn)
    assert score.verdict in (True, False), score
    assert score.label == ("pass" if score.verdict else "fail")
    if score.type == "boolean":
        assert oa.get_metric(f"promptfoo:not-{name}", **options).evaluate(turn).verdict is not score.verdict


VALUES = ("ragas", "langfuse", "openevals:levenshtein_distance", "phoenix:RefusalEvaluator")
"""Names that are values or labels in the original, too."""
OF_THE_JUDGE = ("llm_rubric", "llm_factuality", "llm_task_completion", "llm_context_precision", "llm_context_recall")
"""Metrics whose verdict is not only a threshold."""


def test_names_of_checks_have_a_verdict() -> None:
    """promptfoo 5231, for the other tools and the presets of seeds whose metrics pass or fail."""
    names = [f"{tool.prefix}:{one.name}" for tool, one in tool_metrics() if one.ours]
    entries = [entry for seed in ("agenteval", "pandaprobe", "trusys") for entry in presets()[seed].metrics]
    names += [entry if isinstance(entry, str) else next(iter(entry)) for entry in entries]
    bound = {name: oa.get_metric(name) for name in names if not name.startswith(VALUES)}
    assert [n for n, one in bound.items() if one.scored(1.0, {}).verdict is None and one.metric.name not in OF_THE_JUDGE] == []


def test_detector_with_inverse_is_an_assertion() -> None:
    """promptfoo 5231, under our own name, and as a gate of an experiment."""
    (summary,) = oa.evaluate(lambda question: "I cannot help with that.", [{"input": "q"}], ["not-is-refusal"]).summary()
    assert (summary.pass_rate, summary.judged) == (0.0, 1)
    assert oa.get_metric("code_refusal").evaluate(oa.Turn.from_dict({"turn_id": "t", "output": "no"})).verdict is None


# --- malformed arguments

DEFINITIONS = [{"name": "pay", "parameters": {"type": "object", "required": ["to"]}}]
ON_ARGUMENTS: dict[str, dict[str, Any]] = {
    "code_tool_correctness": {"expected": [{"name": "pay", "arguments": {"to": "bob"}}], "check_arguments": True},
    "code_tool_argument_matches": {"tool": "pay", "argument": "to", "expected": "bob"},
    "code_tool_arguments": {"required_arguments": {"pay": ["to"]}},
    "code_tool_schema_validity": {},
}


@pytest.mark.parametrize("name", ON_ARGUMENTS)
@pytest.mark.parametrize("raw", ['{"to": "bo', "to=bob", '["bob"]', "{to: bob}"])
def test_malformed_arguments_are_wrong(name: str, raw: str) -> None:
    """lightspeed-evaluation 90, deepeval 1410: calls whose arguments can't be parsed are left out."""
    turn = {"turn_id": "t", "tool_calls": [{"name": "pay", "arguments": raw}], "tool_definitions": DEFINITIONS}
    metric = oa.get_metric(name, **ON_ARGUMENTS[name])
    for close_reason in ({}, {"close_reason": "root_ended"}):
        score = metric.evaluate(oa.Turn.from_dict(oa.Turn.from_dict({**turn, **close_reason}).to_dict()))
        assert (score.value, score.verdict) == (0.0, False)
        assert "arguments" in (score.explanation or "")
    cut = metric.evaluate(oa.Turn.from_dict({**turn, "truncated": True}))
    assert (cut.status, cut.detail["reason"]) == ("skipped", "truncated")
    for same in ('{"to": "bob"}', "{'to': 'bob'}"):
        turn["tool_calls"] = [{"name": "pay", "arguments": same}]
        assert metric.evaluate(oa.Turn.from_dict(turn)).value == 1.0


def test_malformed_arguments_differ_from_none() -> None:
    """deepeval 3141: {} equals no arguments, but not broken ones."""
    turn = oa.Turn.from_dict({"turn_id": "t", "tool_calls": [{"name": "pay", "arguments": "{"}]})
    metric = oa.get_metric("code_tool_correctness", expected=[{"name": "pay", "arguments": {}}], check_arguments=True)
    assert metric.evaluate(turn).value == 0.0
