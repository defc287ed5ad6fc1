"""Similarity metrics: which texts are embedded, and the resulting scores."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.core.errors import MetricError
from otel_agenteval.metrics.embed.embeddings import cosine
from tests.support.judges import ScriptedModels

EAST, NORTH, WEST, HALFWAY, NOWHERE = [1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.6, 0.8], [0.0, 0.0]
VECTORS = {"east": EAST, "north": NORTH, "west": WEST, "halfway": HALFWAY, "nowhere": NOWHERE}


def turn(**known: Any) -> oa.Turn:
    return oa.Turn.from_dict(known)


def embedded(models: ScriptedModels) -> list[list[str]]:
    return [body["input"] for body in models.requests]


# --- the cosine


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        pytest.param(EAST, NOWHERE, 0.0, id="a zero vector"),
        pytest.param([1e-300, 0.0], [1e-300, 1e-300], math.sqrt(0.5), id="too small to be squared"),
        pytest.param([1e300, 0.0], [1e300, 1e300], math.sqrt(0.5), id="too large to be squared"),
    ],
)
def test_the_cosine_of_two_vectors(one: list[float], other: list[float], expected: float) -> None:
    assert cosine(one, other) == pytest.approx(expected)


def test_vectors_of_different_lengths_do_not_compare() -> None:
    with pytest.raises(MetricError, match="different lengths"):
        cosine([1.0], [1.0, 2.0])


@given(st.lists(st.tuples(st.floats(-9, 9), st.floats(-9, 9)), min_size=1, max_size=5))
def test_the_cosine_is_what_numpy_says(pairs: list[tuple[float, float]]) -> None:
    one, other = ([pair[side] for pair in pairs] for side in (0, 1))
    lengths = numpy.linalg.norm(one) * numpy.linalg.norm(other)
    assert -1 <= cosine(one, other) <= 1
    if lengths > 1e-6:
        assert cosine(one, other) == pytest.approx(float(numpy.dot(one, other) / lengths))


# --- answer, question, context and truth


@pytest.mark.parametrize(
    ("truth", "value", "raw", "grade"), [("halfway", 0.6, 0.6, "Satisfactory"), ("west", 0, -1, "Very Poor")]
)
def test_answer_and_truth(models: ScriptedModels, truth: str, value: float, raw: float, grade: str) -> None:
    score = models.score("embed_answer_similarity", turn(output="east", ground_truth=truth), vectors=VECTORS)
    assert (score.value, score.passed) == (pytest.approx(value), False)
    assert score.detail == {"cosine_similarity": pytest.approx(raw), "interpretation": grade}
    assert len(models.requests) == 1


@pytest.mark.parametrize("name", ["embed_response_context", "embed_query_context"])
def test_a_context_is_embedded_as_one_text(models: ScriptedModels, name: str) -> None:
    about = turn(input="east", output="east", context=["north", "south"])
    score = models.score(name, about, vectors={**VECTORS, "north\n---\nsouth": HALFWAY})
    assert (score.value, score.passed, score.detail) == (pytest.approx(0.6), True, {"cosine_similarity": pytest.approx(0.6)})
    assert embedded(models) == [["east", "north\n---\nsouth"]]


@pytest.mark.parametrize(
    ("name", "aggregate", "value"),
    [("embed_response_context", "max", 0.6), ("embed_query_context", "max", 0.6), ("embed_query_context", "mean", 0.0)],
)
def test_a_context_can_be_embedded_chunk_by_chunk(models: ScriptedModels, name: str, aggregate: str, value: float) -> None:
    about = turn(input="east", output="east", context=["west", " ", "halfway"])
    score = models.score(name, about, vectors=VECTORS, aggregate=aggregate)
    assert score.value == pytest.approx(value)
    assert embedded(models) == [["east", "west", "halfway"]]


@pytest.mark.parametrize(
    ("name", "known", "reason"),
    [
        ("embed_answer_similarity", {"ground_truth": "a"}, "missing:output"),
        ("embed_answer_similarity", {"output": " ", "ground_truth": "a"}, "empty_output"),
        ("embed_response_context", {"output": "", "context": ["a"]}, "empty_output"),
        ("embed_query_context", {"input": "", "context": ["a"]}, "missing:input"),
    ],
)
def test_what_is_missing_is_said_and_nobody_is_asked(models: ScriptedModels, name: str, known: Any, reason: str) -> None:
    assert models.score(name, turn(**known)).detail == {"reason": reason}
    assert models.requests == []


# --- a configured text


@pytest.mark.parametrize(
    ("params", "value", "passed"),
    [
        pytest.param({"value": "east", "threshold": 0.6}, 0.6, True, id="at the threshold"),
        pytest.param({"value": "west", "threshold": -0.6}, 0.0, True, id="compared as it is, shown from 0 on"),
        pytest.param({"value": ["east", "north"], "threshold": 0.5}, 0.6, True, id="the first that passes, not the best"),
        pytest.param({"value": ["west", "east"]}, 0.6, False, id="none passes: the best"),
        pytest.param({"value": "east", "inverse": True, "threshold": 0.6}, 0.4, True, id="far enough at the threshold"),
        pytest.param({"value": ["west", "halfway"], "inverse": True}, 0.0, False, id="must be far from all"),
        pytest.param({"value": "west", "metric": "dot"}, -0.6, False, id="dot can be negative"),
        pytest.param({"value": "nowhere", "metric": "euclidean", "threshold": 1}, 0.5, True, id="distance at the threshold"),
        pytest.param({"value": "nowhere", "metric": "euclidean", "inverse": True, "threshold": 1}, 0.5, True, id="far"),
    ],
)
def test_likeness_to_a_text_of_one_s_own(models: ScriptedModels, params: Any, value: float, passed: bool) -> None:
    score = models.score("embed_similar", turn(output="halfway"), vectors=VECTORS, **params)
    assert (score.value, score.passed) == (pytest.approx(value), passed)
    assert len(models.requests) == 1


@pytest.mark.parametrize("value", ["", " ", [], [""]])
def test_a_text_to_compare_with_must_be_one(value: Any) -> None:
    with pytest.raises(oa.ConfigError, match=r"embed_similar\.value"):
        oa.get_metric("embed_similar", value=value)


def test_a_text_to_compare_with_is_required_and_has_other_names(models: ScriptedModels) -> None:
    assert models.score("embed_similar", turn()).error_type == "missing_parameter"
    assert models.score("embed_similar", turn(output="east"), vectors=VECTORS, expected_output="east").passed is True
    assert models.score("embed_similar", turn(output=""), value="east").detail == {"reason": "empty_output"}
    assert models.score("embed_similar", turn(), value="east").detail == {"reason": "missing:output"}


# --- within a conversation


@pytest.mark.parametrize(("answered", "value", "gap"), [("halfway", 0.6, 0.4), ("west", 0.0, 1.0)])
def test_coherence_is_likeness_of_question_and_answer(models: ScriptedModels, answered: str, value: float, gap: float) -> None:
    score = models.score("embed_coherence", turn(input="east", output=answered), vectors=VECTORS)
    assert (score.value, score.passed, score.detail) == (pytest.approx(value), value >= 0.5, {"coherence_gap": gap})


@pytest.mark.parametrize(
    "known", [{}, {"input": "a"}, {"output": "a"}, {"input": " ", "output": "a"}, {"input": "a", "output": "\n"}]
)
def test_coherence_of_nothing_is_vacuous(models: ScriptedModels, known: Any) -> None:
    score = models.score("embed_coherence", turn(**known))
    assert (score.value, score.passed, score.vacuous, score.detail["note"]) == (1.0, True, True, "empty_input_or_output")
    assert models.requests == []


SAID = "I cannot find the booking"
LOOP = {SAID: EAST, "The booking is found": HALFWAY, "Weather is sunny": NORTH, "Yes": EAST}


def looped(models: ScriptedModels, *earlier: Any, output: str | None = SAID, **params: Any) -> oa.Score:
    history = [{"output": text} for text in earlier]
    return models.score("embed_loop_detection", turn(output=output, history=history), vectors=LOOP, **params)


def test_likeness_is_that_of_meaning_times_that_of_words(models: ScriptedModels) -> None:
    score = looped(models, "The booking is found")
    # cannot, find, booking against booking, found: 1 of 4 words
    assert score.value == pytest.approx(1 - 0.6 * 0.25)
    comparison = {"trace_index": 0, "cosine_similarity": 0.6, "jaccard_similarity": 0.25, "hybrid_score": 0.15}
    assert score.detail == {"window_size": 1, "max_hybrid": 0.15, "comparisons": [comparison]}


def test_only_the_last_answers_count_and_empty_ones_keep_their_place(models: ScriptedModels) -> None:
    score = looped(models, SAID, "Weather is sunny", "", "The booking is found")
    assert [one["trace_index"] for one in score.detail["comparisons"]] == [1, 3]
    assert score.detail["window_size"] == 2
    wider = looped(models, SAID, "Weather is sunny", None, "The booking is found", window=4)
    assert (wider.value, [one["trace_index"] for one in wider.detail["comparisons"]]) == (pytest.approx(0.0), [0, 1, 3])


def test_stop_words_can_be_one_s_own(models: ScriptedModels) -> None:
    assert looped(models, "Yes", output="Yes").value == 0.0
    assert looped(models, "Yes", output="Yes", stop_words=["YES"]).value == 1.0


@pytest.mark.parametrize(
    ("output", "earlier"),
    [
        pytest.param(None, [SAID], id="an unknown answer"),
        pytest.param(SAID, ["", None, " "], id="no earlier answer"),
        pytest.param(SAID, [SAID, "", "", ""], id="no earlier answer in the window"),
    ],
)
def test_without_anything_to_compare_there_is_no_loop(models: ScriptedModels, output: str | None, earlier: list[Any]) -> None:
    score = looped(models, *earlier, output=output)
    assert (score.value, score.passed, score.vacuous) == (1.0, True, True)
    assert models.requests == []


# --- all of them

ALL = [
    ("embed_answer_similarity", {}), ("embed_response_context", {}), ("embed_query_context", {"aggregate": "mean"}),
    ("embed_similar", {"value": "east", "metric": "euclidean"}), ("embed_coherence", {}), ("embed_loop_detection", {}),
]  # fmt: skip
FULL = {"input": "east", "output": "north", "ground_truth": "east", "context": ["east"], "history": [{"output": "west"}]}


@pytest.mark.parametrize(("name", "params"), ALL)
def test_without_an_embedder_nothing_is_scored(name: str, params: Any) -> None:
    score = oa.get_metric(name, **params).evaluate(turn(**FULL))
    assert (score.status, score.detail) == ("skipped", {"reason": "no_embedder"})


@pytest.mark.parametrize(("name", "params"), ALL)
def test_an_embedder_that_refuses_is_an_error(models: ScriptedModels, name: str, params: Any) -> None:
    score = models.score(name, turn(**FULL), vectors={}, **params)
    assert (score.status, score.value) == ("error", None)
