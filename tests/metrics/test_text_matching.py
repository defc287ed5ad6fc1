from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa


def evaluate(metric: str, output: str | None, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn(output=output))


SCORES = [
    pytest.param("code_equals", {"value": "Paris"}, " Paris", False, id="equals does not trim"),
    pytest.param("code_equals", {"value": "é"}, "e\u0301", False, id="equals does not normalise"),
    pytest.param("code_equals", {"value": ""}, "", True, id="an empty output equals an empty value"),
    pytest.param("code_equals", {"value": 42.0}, "42", True, id="equals writes a whole number without its fraction"),
    pytest.param("code_equals", {"value": True}, "true", True, id="equals writes a boolean in small letters"),
    pytest.param("code_equals", {"value": '{"a":1}'}, '{"a": 1}', False, id="a text that is JSON stays text"),
    pytest.param("code_equals", {"value": {"a": 1, "b": [2]}}, ' {"b": [2.0], "a": 1} ', True, id="objects equal by structure"),
    pytest.param("code_equals", {"value": [1]}, "[true]", False, id="true is not 1"),
    pytest.param("code_equals", {"value": {}}, "[" * 100_000, False, id="what is nested too deep equals no object"),
    pytest.param("code_contains_all", {"value": "a , b ,, "}, "b and a", True, id="fields are trimmed, empty ones dropped"),
    pytest.param("code_contains_all", {"value": '" b"'}, "ab", False, id="quotes protect white space"),
    pytest.param("code_contains_all", {"value": '"say ""hi""",x'}, 'say "hi" x', True, id="a quote is doubled"),
    pytest.param("code_contains_all", {"value": r'"say \"hi\"",x'}, 'say "hi" x', True, id="a quote is escaped"),
    pytest.param("code_contains_all", {"value": r'"a\\b\c"'}, r"a\b\c", True, id="a backslash is escaped, or just stands there"),
    pytest.param("code_contains_all", {"value": 'a"b'}, 'a"b', True, id="a quote within a field is a character"),
    pytest.param("code_contains_all", {"value": [5.0, True]}, "5 is true", True, id="a list of numbers and booleans"),
    pytest.param(
        "code_starts_with", {"value": "RESULT:", "ignore_case": True}, "Result: ok", True, id="starts with, whatever case"
    ),
    pytest.param("code_starts_with", {"value": "Result"}, " Result", False, id="leading white space is not stripped"),
    pytest.param("code_contains", {"value": 5.0}, "I have 5", True, id="contains looks for a whole number without its fraction"),
    pytest.param("code_contains", {"value": "\n"}, "a\nb", True, id="contains does not trim what it looks for"),
    pytest.param("code_icontains", {"value": "ß"}, "STRASSE", False, id="icontains does not fold case"),
    pytest.param("code_regex_match", {"pattern": "PARIS", "flags": "i"}, "paris", True, id="regex flag i ignores it"),
    pytest.param("code_regex_match", {"pattern": "^b$", "flags": "m"}, "a\nb", True, id="regex flag m anchors at lines"),
    pytest.param("code_regex_match", {"pattern": "A.B", "flags": "si"}, "a\nb", True, id="regex flag s lets it"),
    pytest.param("code_regex_match", {"pattern": "^$"}, "", True, id="regex searches an empty output"),
    pytest.param("code_regex_match", {"pattern": "b"}, "a\ud800b", True, id="regex takes a lone surrogate"),
    pytest.param("code_regex_match", {"pattern": "(a+)+$"}, "a" * 90_000 + "b", False, id="regex does not backtrack"),
    pytest.param("code_word_count", {}, "", True, id="word count without bounds passes"),
    pytest.param("code_word_count", {"min": 2, "max": 2}, "two words", True, id="word count bounds are inclusive"),
    pytest.param("code_word_count", {"exact": 2, "max": 1}, "two words", True, id="exact wins over the bounds"),
    pytest.param("code_word_count", {"exact": 3}, "naïve 東京 ٣٤", True, id="words of any script"),
    pytest.param(
        "code_word_count", {"exact": 4}, "it's it\u2019s \u2018l\u2019homme\u2019 \u2014 dogs\u2019", True, id="apostrophes"
    ),
    pytest.param("code_word_count", {"exact": 3}, "well-known well\u2011known well\u00adknown", True, id="hyphens"),
    pytest.param("code_word_count", {"exact": 3, "tokenizer": "whitespace"}, "a - b", True, id="pieces between white space"),
    pytest.param("code_refusal", {}, "I can’t do that", True, id="a refusal with a typographic apostrophe"),
    pytest.param("code_refusal", {}, "", False, id="an empty output is no refusal"),
    pytest.param("code_refusal", {"phrases": ["No WAY"]}, "no way!", True, id="phrases of one's own, whatever their case"),
    pytest.param("code_refusal", {"phrases": ["don’t"]}, "don't", True, id="an apostrophe in one's own phrase"),
    pytest.param("code_refusal", {"phrases": [""]}, "anything", False, id="an empty phrase finds nothing"),
    pytest.param("code_refusal", {"phrases": ["a.c"]}, "abc", False, id="a phrase is no pattern"),
]


@pytest.mark.parametrize(("metric", "params", "output", "passed"), SCORES)
def test_scores(metric: str, params: dict[str, Any], output: str, passed: bool) -> None:
    score = evaluate(metric, output, **params)
    assert (score.status, score.value, score.passed) == ("ok", float(passed), passed)
    assert evaluate(metric, output, inverse=True, **params).passed is not passed


NO_SCORE = [
    pytest.param("code_contains", {"value": ""}, "x", "invalid_parameter", id="contains with an empty value"),
    pytest.param("code_starts_with", {"value": ""}, "x", "invalid_parameter", id="starts with an empty value"),
    pytest.param("code_equals", {}, "x", "missing_parameter", id="equals without a value"),
    pytest.param("code_contains", {}, "x", "missing_parameter", id="contains without a value"),
    pytest.param("code_regex_match", {}, "x", "missing_parameter", id="regex without a pattern"),
    pytest.param("code_regex_match", {"pattern": "("}, "x", "invalid_pattern", id="a pattern that is none"),
    pytest.param("code_regex_match", {"pattern": r"(a)\1"}, "x", "invalid_pattern", id="a pattern that RE2 does not take"),
    pytest.param("code_regex_match", {"pattern": "x", "timeout_ms": 1e-9}, "x", "timeout", id="a search that takes too long"),
]


@pytest.mark.parametrize(("metric", "params", "output", "error_type"), NO_SCORE)
def test_errors(metric: str, params: dict[str, Any], output: str, error_type: str) -> None:
    for inverse in (False, True):
        score = evaluate(metric, output, inverse=inverse, **params)
        assert (score.status, score.value, score.passed, score.error_type) == ("error", None, None, error_type)


NEEDED = {
    "code_equals": {"value": ""},
    "code_contains_all": {"value": []},
    "code_starts_with": {"value": "x"},
    "code_keyword_coverage": {"keywords": []},
    "code_levenshtein_similarity": {"expected": ""},
    "code_regex_match": {"pattern": "x"},
}


@pytest.mark.parametrize("metric", [*NEEDED, "code_word_count", "code_refusal"])
def test_does_not_apply_when_the_output_is_unknown(metric: str) -> None:
    score = evaluate(metric, None, **NEEDED.get(metric, {}))
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:output"})


def test_regex_shows_the_first_match_and_cuts_it() -> None:
    detail = evaluate("code_regex_match", "é" + "x" * 300, pattern="x+").detail
    assert detail == {"span": [1, 301], "matched": "x" * 100}


def test_regex_searches_only_the_beginning_of_a_long_output() -> None:
    score = evaluate("code_regex_match", "a" * 100_000 + "b", pattern="b")
    assert (score.value, score.detail) == (0.0, {"truncated": True})


def test_refusal_shows_the_first_phrase_of_the_list_not_of_the_text() -> None:
    score = evaluate("code_refusal", "I will not, because I can't assist")
    assert (score.detail, score.direction) == ({"matched": "i can't"}, "neutral")


@pytest.mark.parametrize("spelling", ["value", "expected_output", "expcted_output"])
@pytest.mark.parametrize("metric", ["trusys:contains", "trusys:equals", "trusys:contains-all"])
def test_trusys_spellings_of_the_value_are_taken(metric: str, spelling: str) -> None:
    assert evaluate(metric, "b", **{spelling: "b"}).passed is True


def test_equals_shows_the_beginning_of_both_sides() -> None:
    assert evaluate("code_equals", "y" * 300, value="x" * 300).detail == {"expected": "x" * 200, "actual": "y" * 200}
    assert evaluate("code_equals", "y", value={"a": [1, None]}).detail == {"expected": '{"a":[1,null]}', "actual": "y"}


@pytest.mark.parametrize(
    ("truth", "output", "passed"),
    [
        pytest.param(0, "0", True, id="the number 0 is a ground truth"),
        pytest.param(False, "false", True, id="false is a ground truth"),
        pytest.param({"a": 1}, '{ "a": 1.0 }', True, id="an object, by structure"),
        pytest.param([1], "1", False, id="a list"),
    ],
)
def test_equals_ground_truth(truth: Any, output: str, passed: bool) -> None:
    turn = oa.Turn(output=output, ground_truth=truth)
    assert oa.get_metric("code_equals_ground_truth").evaluate(turn).passed is passed
    assert oa.get_metric("code_equals_ground_truth", inverse=True).evaluate(turn).passed is not passed


@pytest.mark.parametrize("truth", [None, "", [], {}])
@pytest.mark.parametrize(
    ("metric", "need"),
    [
        ("code_equals_ground_truth", "ground_truth"),
        ("code_content_similarity", "criteria"),
        ("code_levenshtein_similarity", "criteria"),
    ],
)
def test_does_not_apply_without_anything_to_compare_with(metric: str, need: str, truth: Any) -> None:
    score = oa.get_metric(metric).evaluate(oa.Turn(output="x", ground_truth=truth))
    assert (score.status, score.detail) == ("skipped", {"reason": f"missing:{need}"})


@pytest.mark.parametrize("value", [[], "", " , ,", '""'])
@pytest.mark.parametrize("metric", ["code_contains_all", "code_contains_any"])
def test_nothing_to_look_for_passes_and_is_vacuous(metric: str, value: Any) -> None:
    score = evaluate(metric, "x", value=value)
    assert (score.value, score.passed, score.vacuous) == (1.0, True, True)


def test_contains_all_and_any_show_texts_in_the_configured_order() -> None:
    assert evaluate("code_contains_all", "b", value="c,b,a").detail == {"missing": ["c", "a"]}
    assert evaluate("code_contains_any", "a b", value="c,b,a").detail == {"matched": "b"}
    assert evaluate("code_contains_any", "x", value="c,b,a").detail == {"matched": None}


@pytest.mark.parametrize(
    ("metric", "params", "output", "value"),
    [
        pytest.param("code_keyword_coverage", {"keywords": ["a", "B"], "ignore_case": False}, "ab", 0.5, id="keywords with case"),
        pytest.param("code_keyword_coverage", {"keywords": ["a", "a", "b"]}, "aaa", 2 / 3, id="a keyword twice counts twice"),
        pytest.param("code_content_similarity", {"expected": "night"}, "nacht", 0.25, id="one pair in common"),
        pytest.param("code_content_similarity", {"expected": "aaaa"}, "aa", 0.5, id="a pair counts as often as both have it"),
        pytest.param("code_content_similarity", {"expected": ""}, "", 1.0, id="two empty texts are alike"),
        pytest.param("code_content_similarity", {"expected": "a"}, "ab", 0.0, id="one character has no pair"),
        pytest.param(
            "code_content_similarity", {"expected": "banana", "mode": "seed"}, "banana", 0.6, id="the seed's mode is not"
        ),
        pytest.param("code_content_similarity", {"expected": "a", "mode": "seed"}, "a", 1.0, id="the seed's mode has no NaN"),
        pytest.param("code_levenshtein_similarity", {"expected": "sitting"}, "kitten", 4 / 7, id="three edits of seven"),
        pytest.param("code_levenshtein_similarity", {"expected": "a😀"}, "a\ud800", 0.5, id="edits are of code points"),
        pytest.param("code_levenshtein_similarity", {"expected": 5.0}, "5", 1.0, id="edits of a number"),
    ],
)
def test_values(metric: str, params: dict[str, Any], output: str, value: float) -> None:
    score = evaluate(metric, output, **params)
    assert (score.status, score.value, score.passed) == ("ok", pytest.approx(value), None)
    assert evaluate(metric, output, inverse=True, **params).value == pytest.approx(1 - value)
    assert evaluate(metric, output, threshold=0.5, **params).passed is (value >= 0.5)


def test_keyword_coverage_shows_the_keywords_as_configured() -> None:
    assert evaluate("code_keyword_coverage", "ab", keywords=["C", "B", "A"]).detail == {"found": ["B", "A"], "missing": ["C"]}
    assert evaluate("code_keyword_coverage", "x", keywords=[]).vacuous is True


@pytest.mark.parametrize("metric", ["code_content_similarity", "code_levenshtein_similarity"])
def test_the_ground_truth_is_compared_with_when_nothing_is_configured(metric: str) -> None:
    turn = oa.Turn(output="Paris", ground_truth="Paris")
    assert oa.get_metric(metric).evaluate(turn).value == 1.0
    assert oa.get_metric(metric, expected="xxx").evaluate(turn).value == 0.0


@pytest.mark.parametrize(("output", "expected"), [("a" * 5_001, ""), ("", "a" * 5_001)])
def test_edits_of_long_texts_are_not_counted(output: str, expected: str) -> None:
    score = evaluate("code_levenshtein_similarity", output, expected=expected)
    assert (score.status, score.detail) == ("skipped", {"reason": "too_long"})
    assert evaluate("code_levenshtein_similarity", output[:5_000], expected=expected[:5_000]).detail == {"distance": 5_000}


@given(st.text("abcé"), st.text("abcé"))
def test_similarities_are_symmetric_and_1_only_for_what_has_the_same_parts(one: str, other: str) -> None:
    for name in ("code_content_similarity", "code_levenshtein_similarity"):
        value = evaluate(name, one, expected=other).value
        assert value == evaluate(name, other, expected=one).value
        assert evaluate(name, one, expected=one).value == 1
    assert (evaluate("code_levenshtein_similarity", one, expected=other).value == 1) is (one == other)


@given(st.lists(st.text().filter(bool)))
def test_fields_that_are_quoted_come_back_as_they_were(fields: list[str]) -> None:
    quoted = ", ".join('"' + field.replace("\\", "\\\\").replace('"', '""') + '"' for field in fields)
    assert evaluate("code_contains_all", "", value=quoted).detail["missing"] == [field for field in fields if field.strip()]
