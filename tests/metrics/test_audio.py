from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.core import semconv
from otel_agenteval.outlets import span_events
from otel_agenteval.outlets import turn_text as table
from tests.support.judges import ScriptedModels


def evaluate(said: Any, heard: str | None, **params: Any) -> oa.Score:
    return oa.get_metric("code_audio_transcription_quality", **params).evaluate(oa.Turn(ground_truth=said, output=heard))


def distance(one: list[str] | str, other: list[str] | str) -> int:
    """Return the edit distance of two sequences by the full table, to compare with the fast version."""
    row = list(range(len(other) + 1))
    for i, left in enumerate(one, 1):
        above, row = row, [i]
        for j, right in enumerate(other, 1):
            row.append(min(above[j] + 1, row[-1] + 1, above[j - 1] + (left != right)))
    return row[-1]


@pytest.mark.parametrize(
    ("said", "heard", "wer"),
    [
        pytest.param("one", "one two three four", 3.0, id="more errors than words"),
        pytest.param("one two", "", 1.0, id="nothing heard"),
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
        pytest.param(None, "x", "missing:ground_truth", id="no reference"),
        pytest.param(" \n", "x", "missing:ground_truth", id="a reference without a word"),
        pytest.param("x", "y" * 50_001, "too_long", id="a transcript too long to align"),
        pytest.param("y " * 25_001, "x", "too_long", id="a reference too long to align"),
    ],
)
def test_does_not_apply(said: str | None, heard: str | None, reason: str) -> None:
    score = evaluate(said, heard)
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})


def test_without_the_extra_the_score_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jiwer", None)
    score = evaluate("a", "a")
    assert (score.status, score.error_type) == ("error", "MissingExtra")
    assert "otel-agenteval[audio]" in (score.explanation or "")


# --- judges

JUDGES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    # metric, parameters, a reply that passes
    ("llm_audio_sentiment", {"expected": "positive"}, {"label": "positive"}),
    ("llm_audio_call_category", {"categories": ["billing", "support"], "expected": "billing"}, {"label": "billing"}),
    ("llm_audio_call_category", {"categories": ["1", "2"], "expected": "1"}, {"label": "1"}),
    ("llm_audio_language", {"expected": "en"}, {"language": "en-US"}),
    ("llm_audio_interruption_handling", {}, {"interruptions": [{"at_s": 3, "handled": True}]}),
    ("llm_audio_false_intent_identification", {}, {"detected": False}),
]
BY_NAME = pytest.mark.parametrize(
    ("name", "params", "reply"), JUDGES, ids=[f"{name}-{place}" for place, (name, *_) in enumerate(JUDGES)]
)


def recorded(uri: str = "call-1", **known: Any) -> oa.Turn:
    return oa.Turn.from_dict({"attachments": [{"modality": "audio", "uri": uri, **known}]})


@BY_NAME
def test_a_recording_is_judged(models: ScriptedModels, name: str, params: Any, reply: Any) -> None:
    score = models.score(name, recorded(), {**reply, "reason": "So."}, **params)
    assert (score.status, score.value, score.passed) == ("ok", 1.0, True)
    assert score.explanation == ("So." if name != "llm_audio_interruption_handling" else None)
    assert "call-1" in models.asked[0]


@BY_NAME
def test_without_a_recording_or_a_judge_nothing_is_scored(models: ScriptedModels, name: str, params: Any, reply: Any) -> None:
    for turn in (oa.Turn(input="hello", output="hello"), oa.Turn.from_dict({"attachments": [{"modality": "image", "uri": "i"}]})):
        assert models.score(name, turn, **params).detail == {"reason": "missing:audio"}
    assert oa.get_metric(name, **params).evaluate(recorded()).detail == {"reason": "no_judge"}


@BY_NAME
def test_a_transcript_is_enough_and_is_shown(models: ScriptedModels, name: str, params: Any, reply: Any) -> None:
    turn = oa.Turn.from_dict({"references": {"transcript": "I was charged twice"}})
    assert models.score(name, turn, reply, **params).passed is True
    assert "I was charged twice" in models.asked[0]
    models.score(name, recorded(transcript="Good morning"), reply, **params)
    assert "Good morning" in models.asked[0]


@BY_NAME
@pytest.mark.parametrize("broken", [{}, {"label": 1, "language": 1, "interruptions": {}, "detected": "perhaps"}])
def test_a_reply_without_what_is_read_is_an_error(
    models: ScriptedModels, broken: Any, name: str, params: Any, reply: Any
) -> None:
    assert models.score(name, recorded(), broken, **params).error_type == "invalid_reply"


def test_sound_goes_to_the_judge_with_its_data(models: ScriptedModels) -> None:
    turn = oa.Turn.from_dict({"attachments": [{"modality": "audio", "mime_type": "audio/wav", "data": "UklGRiQAAABXQVZF"}]})
    models.score("llm_audio_language", turn, {"language": "en"}, expected="en")
    text, sound = models.requests[0]["messages"][-1]["content"]
    assert sound == {"type": "input_audio", "input_audio": {"data": "UklGRiQAAABXQVZF", "format": "wav"}}
    assert "UklGRg" not in text["text"]


def test_the_judge_is_not_told_which_language_is_expected(models: ScriptedModels) -> None:
    score = models.score("llm_audio_language", recorded(), {"language": "qaa-Latn"}, expected="qaa")
    assert score.passed is True
    assert "qaa" not in models.asked[0]


@pytest.mark.parametrize(
    ("params", "label", "passed"),
    [
        pytest.param({"expected": ["neutral", "positive"]}, "neutral", True, id="one of several"),
        pytest.param({"expected": "positive", "inverse": True}, "negative", True, id="anything but"),
        pytest.param({"expected": "calm", "labels": ["calm", "angry"]}, "Calm", True, id="labels of one's own"),
    ],
)
def test_the_sentiment_is_one_of_those_expected(models: ScriptedModels, params: Any, label: str, passed: bool) -> None:
    score = models.score("llm_audio_sentiment", recorded(), {"label": label, "confidence": "0.9"}, **params)
    assert (score.value, score.passed, score.label) == (float(passed), passed, "pass" if passed else "fail")
    assert score.detail == {"label": label.strip().lower(), "confidence": 0.9, "reason": None}


@pytest.mark.parametrize(
    ("name", "params"), [("llm_audio_sentiment", {}), ("llm_audio_call_category", {"categories": ["Billing", "negative"]})]
)
def test_a_label_with_nothing_expected_is_only_a_label(models: ScriptedModels, name: str, params: Any) -> None:
    score = models.score(name, recorded(), {"label": "NEGATIVE", "confidence": "sure"}, **params)
    assert (score.status, score.value, score.passed, score.label) == ("ok", None, None, "negative")
    assert (score.detail["label"], score.detail["confidence"]) == ("negative", None)


def test_outlets_show_a_label_without_a_value(models: ScriptedModels) -> None:
    score = models.score("llm_audio_sentiment", recorded(), {"label": "negative"})
    attributes = span_events.attributes(score, None)
    assert attributes[semconv.SCORE_LABEL] == "negative"
    assert semconv.SCORE_VALUE not in attributes
    assert "audio_sentiment negative" in table.render_turn(recorded(), [score])


@pytest.mark.parametrize(("name", "params"), [(name, params) for name, params, _ in JUDGES[:2]])
def test_a_label_that_nobody_offered_is_an_error(models: ScriptedModels, name: str, params: Any) -> None:
    assert models.score(name, recorded(), {"label": "sales"}, **params).error_type == "invalid_reply"
    assert models.score(name, recorded(), **{**params, "expected": "sales"}).error_type == "invalid_parameter"


@pytest.mark.parametrize(
    ("expected", "match", "language", "passed"),
    [
        ("en-GB", "primary", "en-US", True),
        (["de", "pt_BR"], "primary", "pt-PT", True),
        ("en-us", "exact", "en_US", True),
        ("en", "primary", "eng", False),
    ],
)
def test_a_language_is_compared_by_its_tag(
    models: ScriptedModels, expected: Any, match: str, language: str, passed: bool
) -> None:
    score = models.score("llm_audio_language", recorded(), {"language": f" {language}"}, expected=expected, match=match)
    assert (score.passed, score.detail["language"]) == (passed, language)


@pytest.mark.parametrize("language", ["English", "", "e", "en US", None, ["en"]])
def test_a_language_without_a_tag_is_an_error(models: ScriptedModels, language: Any) -> None:
    assert models.score("llm_audio_language", recorded(), {"language": language}, expected="en").error_type == "invalid_reply"


@pytest.mark.parametrize(("handled", "value", "passed"), [([True, "no", "yes", 1], 0.75, True), (["0", "fail"], 0, False)])
def test_the_share_of_handled_interruptions_counts(
    models: ScriptedModels, handled: list[Any], value: float, passed: bool
) -> None:
    given_ones = [{"at_s": -1, "handled": one, "reason": "r"} for one in handled]
    score = models.score("llm_audio_interruption_handling", recorded(), {"interruptions": given_ones})
    assert (score.value, score.passed, score.detail) == (value, passed, {"interruptions": given_ones})
    assert score.explanation


@pytest.mark.parametrize("entries", [[{"at_s": 1}], [{"handled": "perhaps"}], [True], None, "none"])
def test_interruptions_that_cannot_be_read_are_an_error(models: ScriptedModels, entries: Any) -> None:
    score = models.score("llm_audio_interruption_handling", recorded(), {"interruptions": entries})
    assert score.error_type == "invalid_reply"


@pytest.mark.parametrize(
    ("expected", "detected", "passed"),
    [(None, "no", True), (None, True, False), (True, "yes", True), (True, False, False), (False, False, True), (False, 1, False)],
)
def test_false_intent_passes_when_it_is_as_expected(models: ScriptedModels, expected: Any, detected: Any, passed: bool) -> None:
    reply = {"detected": detected, "evidence": ["I am your bank"]}
    score = models.score("llm_audio_false_intent_identification", recorded(), reply, expected=expected)
    assert (score.passed, score.detail["evidence"]) == (passed, ["I am your bank"])
