from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa

METRICS = ("code_equals_number", "code_greater_than", "code_less_than")


def evaluate(metric: str, output: str | None, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn(output=output))


@pytest.mark.parametrize(
    ("output", "number"),
    [
        pytest.param("42.", 42, id="a point and nothing after it"),
        pytest.param(".5", 0.5, id="a point and nothing before it"),
        pytest.param("+7", 7, id="a plus sign"),
        pytest.param("1,234,567.5", 1234567.5, id="groups of three"),
        pytest.param("€ 1,000", 1000, id="a currency symbol and a space"),
        pytest.param("$-5", -5, id="a sign after it"),
        pytest.param("15 %", 15, id="a percent sign after a space"),
        pytest.param("٤٢", 42, id="digits of another script"),
        pytest.param("it fell by -3 degrees", -3, id="the only number, negative"),
        pytest.param("- 5", 5, id="the dash of a list is no sign"),
        pytest.param('"42"', 42, id="a JSON text"),
    ],
)
def test_the_number_of_an_output(output: str, number: float) -> None:
    score = evaluate("code_equals_number", output, value=number)
    assert (score.status, score.value, score.passed) == ("ok", 1.0, True)
    assert score.detail == {"number": number, "value": number}
    assert evaluate("code_greater_than", output, value=number).passed is False
    assert evaluate("code_less_than", output, value=number).passed is False
    assert evaluate("code_greater_than", output, value=number - 1).passed is True
    assert evaluate("code_less_than", output, value=number + 1).passed is True


@pytest.mark.parametrize(
    "output",
    [
        pytest.param("", id="an empty output"),
        pytest.param("NaN", id="NaN"),
        pytest.param("5-10", id="two numbers with a dash between them"),
        pytest.param("1,23,45", id="groups that are not of three"),
        pytest.param("1e" + "9" * 30, id="an exponent beyond all bounds"),
    ],
)
@pytest.mark.parametrize("metric", METRICS)
def test_an_output_without_one_number_fails(metric: str, output: str) -> None:
    score = evaluate(metric, output, value=3)
    assert (score.status, score.value, score.passed) == ("ok", 0.0, False)
    assert score.detail == {"reason": "no_number", "number": None, "value": 3}


@pytest.mark.parametrize(
    ("extract", "output", "number"),
    [
        ("first", "5 + 10 = 15", 5),
        ("last", "5 + 10 = 15", 15),
        ("last", "none", None),
        ("only", "5 and 5", None),
        ("last", "5-10", 10),
        ("first", "-$5", -5),
    ],
)
def test_which_number_of_a_text_counts(extract: str, output: str, number: float | None) -> None:
    for metric in METRICS:
        assert evaluate(metric, output, value=1, extract=extract).detail["number"] == number


@pytest.mark.parametrize(
    ("output", "value", "tolerance", "passed"),
    [
        pytest.param("0.3", 0.2, 0.1, True, id="at the tolerance, which binary fractions miss"),
        pytest.param("0.30000001", 0.2, 0.1, False, id="just outside"),
        pytest.param("9007199254740993", 9007199254740992, 0, False, id="beyond what floats can tell apart"),
        pytest.param("1e-300", 0, 1e-300, True, id="a tiny tolerance"),
        pytest.param("1e308", 1e308, 5e-324, True, id="a huge number and a tiny tolerance"),
        pytest.param("1e400", 1e308, 1e308, False, id="beyond all floats"),
    ],
)
def test_tolerance(output: str, value: float, tolerance: float, passed: bool) -> None:
    assert evaluate("code_equals_number", output, value=value, tolerance=tolerance).passed is passed
    assert evaluate("code_equals_number", output, value=value, tolerance=tolerance, inverse=True).passed is not passed


def test_a_number_that_no_float_reaches_is_still_compared_and_shown_as_text() -> None:
    score = evaluate("code_greater_than", "1e400", value=1)
    assert (score.passed, score.detail) == (True, {"number": "1E+400", "value": 1})
    assert len(evaluate("code_less_than", "9" * 100_000, value=1).detail["number"]) == 40


@pytest.mark.parametrize(
    ("metric", "output", "explanation"),
    [
        ("code_equals_number", "1.500", "found 1.5, but the expected number is 1500"),
        ("code_equals_number", "none", "found no number, but the expected number is 1500"),
        ("code_equals_number", "1 or 2", "found several numbers, but the expected number is 1500"),
        ("code_equals_number", "1,500", None),
        ("code_greater_than", "1500", "found 1500, but the limit is 1500"),
    ],
)
def test_explanation_has_both_numbers(metric: str, output: str, explanation: str | None) -> None:
    assert evaluate(metric, output, value=1500).explanation == explanation


@pytest.mark.parametrize("spelling", ["value", "expected_output", "expcted_output"])
@pytest.mark.parametrize("metric", METRICS)
def test_names_and_spellings_of_other_catalogues_resolve(metric: str, spelling: str) -> None:
    name = f"trusys:{metric.removeprefix('code_').replace('_', '-')}"
    assert evaluate(name, "5").error_type == "missing_parameter"
    assert evaluate(name, None, value=1).detail == {"reason": "missing:output"}
    plain = evaluate(name, "5", **{spelling: "5"})
    negated = evaluate(name.replace("trusys:", "trusys:not-"), "5", **{spelling: "5"})
    assert (plain.metric, negated.metric) == (metric, metric)
    assert negated.passed is not plain.passed


@given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_number_equals_itself_however_it_is_written(number: float) -> None:
    assert evaluate("code_equals_number", repr(number), value=number).passed is True
    assert evaluate("code_equals_number", f"It is {number!r}", value=repr(number)).passed is True
