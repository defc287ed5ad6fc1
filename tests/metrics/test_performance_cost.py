from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa


def evaluate(metric: str, turn: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict(turn))


def test_latency_is_in_seconds_with_milliseconds_beside_it() -> None:
    score = evaluate("code_latency", {"duration_s": 1.25})
    assert (score.value, score.unit, score.direction, score.passed) == (1.25, "s", "down", None)
    assert score.detail == {"latency_ms": 1250}


def test_latency_has_a_threshold_when_one_is_set() -> None:
    assert evaluate("code_latency", {"duration_s": 2}, threshold=2).passed is True
    assert evaluate("code_latency", {"duration_s": 2.1}, threshold=2).passed is False


@pytest.mark.parametrize(
    ("metric", "turn", "limit", "passed"),
    [
        pytest.param("code_max_duration", {"duration_s": 2.0}, {"max_seconds": 2}, True, id="a duration at the limit passes"),
        pytest.param("code_max_duration", {"duration_s": 2.01}, {"max_seconds": 2}, False, id="a duration over it does not"),
        pytest.param("code_max_duration", {"duration_s": 0}, {"max_seconds": 0}, True, id="a duration of 0 is known"),
        pytest.param("code_max_tokens", {"usage": {"total_tokens": 10}}, {"max_tokens": 10}, True, id="tokens at the limit pass"),
        pytest.param("code_max_tokens", {"usage": {"input_tokens": 11}}, {"max_tokens": 10}, False, id="tokens over it do not"),
        pytest.param("code_max_tokens", {"usage": {"total_tokens": 0}}, {"max_tokens": 0}, True, id="no tokens is a number"),
    ],
)
def test_limits_are_inclusive(metric: str, turn: dict[str, Any], limit: dict[str, Any], passed: bool) -> None:
    score = evaluate(metric, turn, **limit)
    assert (score.passed, score.value, score.type) == (passed, float(passed), "boolean")
    assert score.detail["limit"] == next(iter(limit.values()))
    assert evaluate(metric, turn, inverse=True, **limit).passed is not passed


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        pytest.param({"input_tokens": 7, "output_tokens": 5, "total_tokens": 20}, 20, id="the total as reported wins"),
        pytest.param({"input_tokens": 7, "output_tokens": 5, "total_tokens": 0}, 12, id="a total of 0 is no total"),
        pytest.param({"output_tokens": 5}, 5, id="one side is enough"),
    ],
)
def test_token_usage_scores(usage: dict[str, int], tokens: int) -> None:
    score = evaluate("code_token_usage", {"usage": usage})
    assert (score.value, score.unit, score.passed) == (tokens, "{token}", None)
    assert score.detail == {
        "prompt_tokens": usage.get("input_tokens"),
        "completion_tokens": usage.get("output_tokens"),
        "total_tokens": tokens,
    }
    assert evaluate("code_max_tokens", {"usage": usage}, max_tokens=1).detail == {"observed": tokens, "limit": 1}


TOOLS = [{"name": "a", "cost_usd": 0.5}, {"name": "b"}]


@pytest.mark.parametrize(
    ("turn", "params", "detail"),
    [
        pytest.param({"cost_usd": 1}, {}, {"cost": 1, "model_cost": 1, "tool_cost": 0}, id="unknown tool calls add nothing"),
        pytest.param(
            {"cost_usd": 1, "tool_calls": TOOLS}, {}, {"cost": 1.5, "model_cost": 1, "tool_cost": 0.5}, id="tool costs add up"
        ),
        pytest.param(
            {"cost_usd": 1, "tool_calls": TOOLS},
            {"include_tool_costs": False},
            {"cost": 1, "model_cost": 1, "tool_cost": 0},
            id="tool costs can be left out",
        ),
        pytest.param(
            {"tool_calls": TOOLS}, {}, {"cost": 0.5, "model_cost": 0, "tool_cost": 0.5}, id="tool costs alone are a cost"
        ),
        pytest.param({"cost_usd": 0}, {}, {"cost": 0, "model_cost": 0, "tool_cost": 0}, id="free is a cost"),
        pytest.param(
            {"metadata": {"cost": 3, "turn_cost_usd": 2}},
            {},
            {"cost": 2, "model_cost": 2, "tool_cost": 0},
            id="metadata in its order",
        ),
        pytest.param(
            {"cost_usd": 1, "cost_estimated": True},
            {},
            {"cost": 1, "model_cost": 1, "tool_cost": 0, "estimated": True},
            id="an estimate says so",
        ),
    ],
)
def test_cost_scores(turn: dict[str, Any], params: dict[str, Any], detail: dict[str, Any]) -> None:
    score = evaluate("code_cost", turn, **params)
    assert (score.value, score.unit, score.direction) == (detail["cost"], "USD", "down")
    assert score.detail == detail


@pytest.mark.parametrize(
    ("metric", "params", "turn", "reason"),
    [
        pytest.param("code_latency", {}, {}, "missing:duration", id="latency of an open turn"),
        pytest.param("code_max_duration", {"max_seconds": 1}, {}, "missing:duration", id="duration of an open turn"),
        pytest.param("code_token_usage", {}, {}, "missing:usage", id="tokens without usage"),
        pytest.param(
            "code_token_usage", {}, {"usage": {"cached_tokens": 3}}, "missing:usage", id="tokens of which only a part is known"
        ),
        pytest.param("code_max_tokens", {"max_tokens": 1}, {"usage": {}}, "missing:usage", id="a token limit without numbers"),
        pytest.param("code_cost", {}, {"tool_calls": [{"name": "b"}]}, "missing:cost", id="no cost anywhere"),
        pytest.param(
            "code_cost", {}, {"metadata": {"cost": "cheap", "cost_usd": True}}, "missing:cost", id="metadata that is no number"
        ),
        pytest.param("code_cost", {"include_tool_costs": False}, {"tool_calls": TOOLS}, "missing:cost", id="only costs left out"),
    ],
)
def test_does_not_apply(metric: str, params: dict[str, Any], turn: dict[str, Any], reason: str) -> None:
    score = evaluate(metric, turn, **params)
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})


@pytest.mark.parametrize("metric", ["code_max_duration", "code_max_tokens"])
def test_a_limit_is_required_when_evaluated_and_checked_when_built(metric: str) -> None:
    assert evaluate(metric, {}).error_type == "missing_parameter"
    with pytest.raises(oa.ConfigError):
        oa.get_metric(metric, **{"max_seconds" if metric == "code_max_duration" else "max_tokens": -1})


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("hpd:LatencyEvaluator", "code_latency"),
        ("hpd:MaxDurationEvaluator", "code_max_duration"),
        ("hpd:MaxTokensEvaluator", "code_max_tokens"),
        ("agentunit:token_usage", "code_token_usage"),
        ("agentunit:TokenUsageMetric", "code_token_usage"),
        ("agentunit:cost", "code_cost"),
        ("agentunit:CostMetric", "code_cost"),
    ],
)
def test_names_of_other_catalogues_resolve(alias: str, name: str) -> None:
    assert oa.get_metric(alias).name == name
