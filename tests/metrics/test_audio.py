from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa


def evaluate(said: Any, heard: str | None, **params: Any) -> oa.Score:
    return oa.get_metric("code_audio_transcription_quality", **params).evaluate(oa.Turn(ground_truth=said, output=heard))


def distance(one: list[str] | str, other: list[str] | str) -> int:
    """Edits between two sequences, by the plain table: the oracle."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        above, row = row, [i]
        for j, right in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
    return row[-1]


@pytest.mark.parametrize(
    ("said", "heard", "wer"),
    [
        pytest.param("hello world", "hello world", 0.0, id="the same"),
        pytest.param("one two three four", "one two four", 0.25, id="a word left out"),
        pytest.param("one two", "one and two", 0.5, id="a word put in"),
        pytest.param("one two", "one too", 0.5, id="another word"),
        pytest.param("one", "one two three four", 3.0, id="more errors than words"),
        pytest.param("one two", "", 1.0, id="nothing heard"),
        pytest.param("one two", " \n", 1.0, id="blanks heard"),
        pytest.param("one  two\n three", "one two\tthree", 0.0, id="any white space parts words"),
        pytest.param("Hello, world", "hello world", 0.5, id="case and punctuation count"),
        pytest.param(42, "42", 0.0, id="a number as the reference"),
    ],
)
def test_the_word_error_rate_counts(said: Any, heard: str, wer: float) -> None:
    score = evaluate(said, heard)
    assert score.detail["wer"] == pytest.approx(wer)
    assert score.detail["accuracy"] == pytest.approx(1 - wer)
    assert (score.value, score.passed) == (pytest.approx(max(0.0, 1 - wer)), None)


WORDS = st.lists(st.sampled_from(["a", "b", "ab", "ba", "é"]), max_size=12).map(" ".join)


@given(WORDS.filter(bool), WORDS)
def test_both_rates_are_the_edits_over_the_length_of_the_reference(said: str, heard: str) -> None:
    detail = evaluate(said, heard).detail
    assert detail["wer"] == pytest.approx(distance(said.split(), heard.split()) / len(said.split()))
    assert detail["cer"] == pytest.approx(distance(said, heard) / len(said))


def test_case_can_be_left_out_and_characters_can_count() -> None:
    assert evaluate("Hello World", "hello world", normalize="lower").value == 1.0
    score = evaluate("abcd efgh", "abcx efgh", use_wer=False)
    assert (score.value, score.detail["wer"]) == (pytest.approx(8 / 9), 0.5)
    assert score.detail["accuracy"] == score.value


@pytest.mark.parametrize(
    ("said", "heard", "reason"),
    [
        pytest.param("x", None, "missing:transcript", id="nobody knows what was heard"),
        pytest.param(None, None, "missing:transcript", id="nothing is known"),
        pytest.param(None, "x", "missing:ground_truth", id="no reference"),
        pytest.param("", "x", "missing:ground_truth", id="an empty reference"),
        pytest.param(" \n", "x", "missing:ground_truth", id="a reference without a word"),
        pytest.param("x", "y" * 50_001, "too_long", id="a transcript too long to align"),
        pytest.param("y " * 25_001, "x", "too_long", id="a reference too long to align"),
    ],
)
def test_does_not_apply(said: str | None, heard: str | None, reason: str) -> None:
    score = evaluate(said, heard)
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})


@pytest.mark.parametrize("reference", [["a", "b"], {"text": "a"}], ids=str)
def test_a_reference_must_be_one_text(reference: Any) -> None:
    score = evaluate(reference, "a")
    assert (score.status, score.error_type) == ("error", "invalid_reference")


def test_without_the_extra_the_score_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jiwer", None)
    score = evaluate("a", "a")
    assert (score.status, score.error_type) == ("error", "MissingExtra")
    assert "otel-agenteval[audio]" in (score.explanation or "")


def test_parameters_are_checked_when_the_metric_is_built() -> None:
    with pytest.raises(oa.ConfigError):
        oa.get_metric("code_audio_transcription_quality", normalize="upper")


@given(st.none() | st.text() | st.integers() | st.lists(st.text(), max_size=2), st.none() | st.text(), st.booleans())
def test_any_turn_gives_one_answer_in_range_and_is_not_changed(said: Any, heard: str | None, use_wer: bool) -> None:
    turn = oa.Turn(ground_truth=said, output=heard)
    untouched = repr(turn.to_dict())
    metric = oa.get_metric("code_audio_transcription_quality", use_wer=use_wer)
    score = metric.evaluate(turn)
    assert score == metric.evaluate(turn)
    assert score.error_type in (None, "invalid_reference")
    assert score.value is None or 0 <= score.value <= 1
    assert repr(turn.to_dict()) == untouched


@pytest.mark.parametrize("alias", ["agentunit:audio_transcription_quality", "agentunit:AudioTranscriptionMetric"])
def test_names_of_the_other_catalogue_resolve(alias: str) -> None:
    assert oa.get_metric(alias).name == "code_audio_transcription_quality"
