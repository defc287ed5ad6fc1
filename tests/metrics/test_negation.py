from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa


def evaluate(metric: str, output: str | None, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn(output=output))


@pytest.mark.parametrize(
    ("metric", "params", "output", "passed"),
    [
        pytest.param("code_not_equals", {"value": 5.0}, "5", False, id="a number as it is written"),
        pytest.param("code_not_equals", {"value": {"a": 1}}, '{"a": 1.0}', False, id="an equal object"),
        pytest.param("code_not_equals", {"value": [1]}, "no JSON", True, id="no JSON at all"),
        pytest.param("code_not_contains", {"value": "B"}, "abc", True, id="a text that occurs in another case"),
        pytest.param("code_not_contains", {"value": "b"}, "", True, id="an empty output contains nothing"),
        pytest.param("code_not_contains", {"value": 5.0}, "5", False, id="a number that occurs"),
    ],
)
def test_scores(metric: str, params: dict[str, Any], output: str, passed: bool) -> None:
    score = evaluate(metric, output, **params)
    assert (score.status, score.value, score.passed, score.type) == ("ok", float(passed), passed, "boolean")
    assert evaluate(metric, output, inverse=True, **params).passed is not passed


@pytest.mark.parametrize(
    ("metric", "params", "error_type"),
    [
        ("code_not_equals", {}, "missing_parameter"),
        ("code_not_contains", {}, "missing_parameter"),
        ("code_not_contains", {"value": ""}, "invalid_parameter"),
    ],
)
@pytest.mark.parametrize("inverse", [False, True])
def test_errors_are_not_negated(metric: str, params: dict[str, Any], error_type: str, inverse: bool) -> None:
    score = evaluate(metric, "x", inverse=inverse, **params)
    assert (score.status, score.value, score.passed, score.error_type) == ("error", None, None, error_type)
