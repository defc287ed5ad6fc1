from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa


def evaluate(metric: str, output: str | None, **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn(output=output))


SCORES = [
    pytest.param("code_contains", {"value": "Paris"}, "In Paris.", True, id="contains finds a part"),
    pytest.param("code_contains", {"value": "paris"}, "In Paris.", False, id="contains has case"),
    pytest.param("code_contains", {"value": 5.0}, "I have 5", True, id="contains looks for a whole number without its fraction"),
    pytest.param("code_contains", {"value": True}, "it is true", True, id="contains looks for a boolean in small letters"),
    pytest.param("code_contains", {"value": "\n"}, "a\nb", True, id="contains does not trim what it looks for"),
    pytest.param("code_icontains", {"value": "PARIS"}, "In Paris.", True, id="icontains has no case"),
    pytest.param("code_icontains", {"value": "ß"}, "STRASSE", False, id="icontains does not fold case"),
    pytest.param("code_regex_match", {"pattern": r"\d+"}, "year 2026", True, id="regex searches anywhere"),
    pytest.param("code_regex_match", {"pattern": "PARIS"}, "paris", False, id="regex has case"),
    pytest.param("code_regex_match", {"pattern": "PARIS", "flags": "i"}, "paris", True, id="regex flag i ignores it"),
    pytest.param("code_regex_match", {"pattern": "^b$"}, "a\nb", False, id="regex anchors mean the text"),
    pytest.param("code_regex_match", {"pattern": "^b$", "flags": "m"}, "a\nb", True, id="regex flag m anchors at lines"),
    pytest.param("code_regex_match", {"pattern": "a.b"}, "a\nb", False, id="regex dot takes no newline"),
    pytest.param("code_regex_match", {"pattern": "A.B", "flags": "si"}, "a\nb", True, id="regex flag s lets it"),
    pytest.param("code_regex_match", {"pattern": "^$"}, "", True, id="regex searches an empty output"),
    pytest.param("code_regex_match", {"pattern": "b"}, "a\ud800b", True, id="regex takes a lone surrogate"),
    pytest.param("code_regex_match", {"pattern": "(a+)+$"}, "a" * 90_000 + "b", False, id="regex does not backtrack"),
    pytest.param("code_word_count", {}, "", True, id="word count without bounds passes"),
    pytest.param("code_word_count", {"min": 2, "max": 2}, "two words", True, id="word count bounds are inclusive"),
    pytest.param("code_word_count", {"min": 3}, "two words", False, id="too few words"),
    pytest.param("code_word_count", {"exact": 2, "max": 1}, "two words", True, id="exact wins over the bounds"),
    pytest.param("code_word_count", {"exact": 3}, "naïve 東京 ٣٤", True, id="words of any script"),
    pytest.param("code_word_count", {"exact": 1}, "dogs' -", True, id="punctuation is no word"),
    pytest.param("code_word_count", {"exact": 3, "tokenizer": "whitespace"}, "a - b", True, id="pieces between white space"),
    pytest.param("code_refusal", {}, "I CANNOT do that", True, id="a refusal in capitals"),
    pytest.param("code_refusal", {}, "I can’t do that", True, id="a refusal with a typographic apostrophe"),
    pytest.param("code_refusal", {}, "Of course, here it is", False, id="no refusal"),
    pytest.param("code_refusal", {}, "", False, id="an empty output is no refusal"),
    pytest.param("code_refusal", {"phrases": ["No WAY"]}, "no way!", True, id="phrases of one's own, whatever their case"),
    pytest.param("code_refusal", {"phrases": ["no way"]}, "I cannot", False, id="phrases of one's own replace the list"),
    pytest.param("code_refusal", {"phrases": ["don’t"]}, "don't", True, id="an apostrophe in one's own phrase"),
    pytest.param("code_refusal", {"phrases": []}, "I cannot", False, id="no phrases find nothing"),
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
    pytest.param("code_icontains", {"value": ""}, "x", "invalid_parameter", id="icontains with an empty value"),
    pytest.param("code_contains", {}, "x", "missing_parameter", id="contains without a value"),
    pytest.param("code_icontains", {}, "x", "missing_parameter", id="icontains without a value"),
    pytest.param("code_regex_match", {}, "x", "missing_parameter", id="regex without a pattern"),
    pytest.param("code_regex_match", {"pattern": "("}, "x", "invalid_pattern", id="a pattern that is none"),
    pytest.param("code_regex_match", {"pattern": "\ud800"}, "x", "invalid_pattern", id="a pattern that is no text"),
    pytest.param("code_regex_match", {"pattern": r"(a)\1"}, "x", "invalid_pattern", id="a pattern that RE2 does not take"),
    pytest.param("code_regex_match", {"pattern": "x", "timeout_ms": 1e-9}, "x", "timeout", id="a search that takes too long"),
]


@pytest.mark.parametrize(("metric", "params", "output", "error_type"), NO_SCORE)
def test_errors(metric: str, params: dict[str, Any], output: str, error_type: str) -> None:
    for inverse in (False, True):
        score = evaluate(metric, output, inverse=inverse, **params)
        assert (score.status, score.value, score.passed, score.error_type) == ("error", None, None, error_type)


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        ("code_contains", {"value": "x"}),
        ("code_icontains", {"value": "x"}),
        ("code_regex_match", {"pattern": "x"}),
        ("code_word_count", {}),
        ("code_refusal", {}),
    ],
)
def test_does_not_apply_when_the_output_is_unknown(metric: str, params: dict[str, Any]) -> None:
    score = evaluate(metric, None, **params)
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:output"})


@pytest.mark.parametrize(
    ("metric", "params"),
    [
        pytest.param("code_regex_match", {"pattern": "x", "flags": "x"}, id="an unknown flag"),
        pytest.param("code_regex_match", {"pattern": "x", "timeout_ms": 0}, id="no time at all"),
        pytest.param("code_word_count", {"min": -1}, id="fewer words than none"),
        pytest.param("code_word_count", {"tokenizer": "lines"}, id="an unknown tokenizer"),
        pytest.param("code_contains", {"value": ["x"]}, id="a list"),
    ],
)
def test_values_that_are_not_allowed_are_refused_when_the_metric_is_built(metric: str, params: dict[str, Any]) -> None:
    with pytest.raises(oa.ConfigError):
        oa.get_metric(metric, **params)


def test_regex_shows_the_first_match_and_cuts_it() -> None:
    detail = evaluate("code_regex_match", "é" + "x" * 300, pattern="x+").detail
    assert detail == {"span": [1, 301], "matched": "x" * 100}


def test_regex_searches_only_the_beginning_of_a_long_output() -> None:
    score = evaluate("code_regex_match", "a" * 100_000 + "b", pattern="b")
    assert (score.value, score.detail) == (0.0, {"truncated": True})


def test_refusal_shows_the_first_phrase_of_the_list_not_of_the_text() -> None:
    score = evaluate("code_refusal", "I will not, because I can't assist")
    assert (score.detail, score.direction) == ({"matched": "i can't"}, "neutral")


def test_contains_shows_what_it_looked_for() -> None:
    assert evaluate("code_contains", "x", value=5.0).detail == {"value": "5"}


@pytest.mark.parametrize("spelling", ["value", "expected_output", "expcted_output"])
@pytest.mark.parametrize("metric", ["trusys:contains", "trusys:icontains"])
def test_trusys_spellings_of_the_value_are_taken(metric: str, spelling: str) -> None:
    assert evaluate(metric, "abc", **{spelling: "b"}).passed is True


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("trusys:contains", "code_contains"),
        ("hpd:OutputContainsEvaluator", "code_contains"),
        ("trusys:icontains", "code_icontains"),
        ("hpd:CaseInsensitiveContainsEvaluator", "code_icontains"),
        ("hpd:OutputMatchesRegexEvaluator", "code_regex_match"),
        ("hpd:WordCountEvaluator", "code_word_count"),
        ("hpd:RefusalEvaluator", "code_refusal"),
    ],
)
def test_names_of_other_catalogues_resolve(alias: str, name: str) -> None:
    assert oa.get_metric(alias).name == name


def test_a_negated_name_inverts() -> None:
    assert evaluate("trusys:not-icontains", "abc", value="B").passed is False
