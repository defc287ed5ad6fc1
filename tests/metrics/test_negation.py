from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa


def evaluate(metric: str, output: str | None, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn(output=output))


@pytest.mark.parametrize(
    ("metric", "params", "output", "passed"),
    [
        pytest.param("code_not_equals", {"value": "a"}, "a ", True, id="another text"),
        pytest.param("code_not_equals", {"value": "a"}, "a", False, id="the very text"),
        pytest.param("code_not_equals", {"value": ""}, "", False, id="an empty output equals an empty value"),
        pytest.param("code_not_equals", {"value": 5.0}, "5", False, id="a number as it is written"),
        pytest.param("code_not_equals", {"value": {"a": 1}}, '{"a": 1.0}', False, id="an equal object"),
        pytest.param("code_not_equals", {"value": {"a": 1}}, '{"a": 2}', True, id="another object"),
        pytest.param("code_not_equals", {"value": [1]}, "no JSON", True, id="no JSON at all"),
        pytest.param("code_not_contains", {"value": "b"}, "abc", False, id="a text that occurs"),
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


@pytest.mark.parametrize("metric", ["code_not_equals", "code_not_contains"])
def test_does_not_apply_when_the_output_is_unknown(metric: str) -> None:
    score = evaluate(metric, None, value="x")
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:output"})


@pytest.mark.parametrize("spelling", ["value", "expected_output", "expcted_output"])
@pytest.mark.parametrize("name", ["equals", "contains"])
def test_the_name_of_another_catalogue_is_the_plain_check_inverted(name: str, spelling: str) -> None:
    for value in ("b", "x"):
        ours = evaluate(f"code_not_{name}", "b", **{spelling: value})
        for alias in (f"trusys:not-{name}", f"not-{name}"):
            theirs = evaluate(alias, "b", **{spelling: value})
            assert (theirs.metric, theirs.value, theirs.passed) == (f"code_{name}", ours.value, ours.passed)


@given(st.text("ab", max_size=4), st.text("ab", min_size=1, max_size=2))
def test_a_negation_is_the_plain_check_turned_around(output: str, value: str) -> None:
    for plain in ("code_equals", "code_contains"):
        one = evaluate(plain, output, value=value)
        other = evaluate(plain.replace("code_", "code_not_"), output, value=value)
        assert (other.passed, other.detail) == (not one.passed, one.detail)
