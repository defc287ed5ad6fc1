from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

QUESTION, ANSWER = "When does the museum open?", "The museum opens at nine and closes at five."
RUBRIC = "Names an hour"


def turn(asked: str | None = QUESTION, answered: str | None = ANSWER) -> oa.Turn:
    return oa.Turn.from_dict({"input": asked, "output": answered})


JUDGES = [
    # metric, parameters, a good reply, its value, passed
    ("llm_coherence", {}, {"score": 69}, 0.69, False),
    ("llm_fluency", {}, {"score": " 70 "}, 0.7, True),
    ("llm_rubric", {"rubric": RUBRIC}, {"pass": True, "score": 0.2}, 0.2, True),
    ("llm_g_eval", {"criteria": RUBRIC, "steps": ["look"]}, {"score": 7, "reason": "x"}, 0.7, True),
    ("llm_aspect_critic", {"rubric": RUBRIC}, {"verdict": "Yes"}, 1.0, True),
    ("llm_custom_judge", {"rubric": RUBRIC}, {"score": 0.49}, 0.49, False),
]
BY_NAME = pytest.mark.parametrize(("name", "params", "reply", "value", "passed"), JUDGES, ids=[name for name, *_ in JUDGES])


@BY_NAME
def test_a_good_reply_is_scored_and_the_judge_saw_all_there_is(
    models: ScriptedModels, name: str, params: dict[str, Any], reply: Any, value: float, passed: bool
) -> None:
    score = models.score(name, turn(), reply, **params)
    assert (score.status, score.value, score.passed) == ("ok", pytest.approx(value), passed)
    assert ANSWER in models.asked[0]
    assert (QUESTION in models.asked[0]) is (name != "llm_fluency")
    assert (RUBRIC in models.asked[0]) is bool(params)
    for broken in ({}, {"score": None, "verdict": None}):
        failed = models.score(name, turn(), {**broken, "reason": "x"}, **params)
        assert (failed.status, failed.error_type, failed.value) == ("error", "invalid_reply", None)
    assert models.score(name, turn(answered=None), **params).detail == {"reason": "missing:output"}
    if params:
        assert models.score(name, turn(answered=""), reply, **params).status == "ok"
    else:
        assert models.score(name, turn(answered=" \n"), **params).detail == {"reason": "empty_output"}


@pytest.mark.parametrize("name", ["llm_coherence", "llm_g_eval"])
def test_the_question_is_needed_where_the_catalogue_says_so(models: ScriptedModels, name: str) -> None:
    params = {"criteria": "c"} if name == "llm_g_eval" else {}
    assert models.score(name, turn(asked=None), **params).detail == {"reason": "missing:input"}
    assert models.score("llm_fluency", turn(asked=None), {"score": 1}).status == "ok"


def test_details_are_what_the_judge_said(models: ScriptedModels) -> None:
    reply = {
        "score": 35, "hasLogicalFlow": "no", "hasContradictions": True, "contradictions": ["a, not a"],
        "structureQuality": "poor", "reasoning": "It turns round.", "extra": 1,
    }  # fmt: skip
    score = models.score("llm_coherence", turn(), reply)
    assert score.detail == {
        "has_logical_flow": False, "has_contradictions": True, "contradictions": ["a, not a"], "structure_quality": "poor",
        "reasoning": "It turns round.",
    }  # fmt: skip
    assert score.explanation == "It turns round."
    fluent = models.score("llm_fluency", turn(), {"score": 90, "grammarErrors": ["g"], "awkwardPhrases": ["p"]})
    assert (fluent.detail["grammar_errors"], fluent.detail["awkward_phrases"], fluent.explanation) == (["g"], ["p"], None)


@pytest.mark.parametrize(
    ("reply", "threshold", "value", "passed"),
    [
        pytest.param({"pass": True, "score": 0.8}, None, 0.8, True, id="both"),
        pytest.param({"pass": False, "score": 0.9}, None, 0.9, False, id="the verdict decides"),
        pytest.param({"pass": True, "score": 0.7}, 0.8, 0.7, False, id="the score misses the threshold"),
        pytest.param({"score": 0.49, "pass": None}, None, 0.49, False, id="no verdict, less than half"),
        pytest.param({"pass": "yes"}, None, 1.0, True, id="no score, passed"),
        pytest.param({"pass": 0, "score": None}, None, 0.0, False, id="no score, failed"),
    ],
)
def test_a_rubric_takes_verdict_or_score_or_both(
    models: ScriptedModels, reply: Any, threshold: float | None, value: float, passed: bool
) -> None:
    score = models.score("llm_rubric", turn(), reply, rubric="r", threshold=threshold)
    assert (score.value, score.passed, score.label) == (value, passed, "pass" if passed else "fail")


@pytest.mark.parametrize(("verdict", "passed"), [("TRUE", True), (1, True), ("Fail", False)])
def test_an_aspect_is_true_or_false_in_many_words(models: ScriptedModels, verdict: Any, passed: bool) -> None:
    assert models.score("llm_aspect_critic", turn(), {"verdict": verdict}, rubric="r").passed is passed
    assert models.score("llm_aspect_critic", turn(), {"verdict": verdict}, rubric="r", inverse=True).passed is not passed


# --- G-Eval


def test_the_steps_that_the_judge_found_are_what_it_scores_by(models: ScriptedModels) -> None:
    score = models.score(
        "llm_g_eval", turn(), {"steps": ["Look at the hour", " "]}, {"score": "6", "reason": "So."}, criteria=RUBRIC
    )
    assert (score.value, score.passed, score.explanation) == (0.6, False, "So.")
    assert score.detail == {"steps": ["Look at the hour"], "score": 6.0, "reason": "So."}
    steps, scoring = models.asked
    assert RUBRIC in steps
    assert all(text in scoring for text in (RUBRIC, "Look at the hour", QUESTION, ANSWER))
    replies = [{"steps": ["a"]}, {"score": 10, "reason": "first"}, {"steps": ["b"]}, {"score": 5, "reason": "second"}]
    averaged = models.score("llm_g_eval", turn(), *replies, criteria=["c1", "c2"])
    assert (averaged.value, averaged.explanation) == (0.75, "first\nsecond")
    assert [(one["criterion"], one["score"]) for one in averaged.detail["criteria"]] == [("c1", 10), ("c2", 5)]


@pytest.mark.parametrize(
    ("replies", "criteria"),
    [
        pytest.param([{"steps": "look"}], "c", id="steps that are no list"),
        pytest.param([{"steps": ["a"]}, {"score": 11, "reason": "x"}], "c", id="a score over the scale"),
        pytest.param([{"steps": ["a"]}, {"score": 5}], "c", id="no reason"),
        pytest.param([{"steps": ["a"]}, {"score": 5, "reason": "x"}, {"steps": None}], ["c", "d"], id="one of two criteria"),
    ],
)
def test_a_reply_that_g_eval_cannot_use_is_an_error(models: ScriptedModels, replies: list[Any], criteria: Any) -> None:
    assert models.score("llm_g_eval", turn(), *replies, criteria=criteria).error_type == "invalid_reply"
    assert models.score("llm_g_eval", turn(), criteria="c", steps=[" "]).error_type == "invalid_parameter"


# --- parameters


@pytest.mark.parametrize(("name", "params"), [(name, params) for name, params, *_ in JUDGES[2:]])
def test_what_to_judge_by_is_required_and_not_blank(models: ScriptedModels, name: str, params: dict[str, Any]) -> None:
    parameter = next(iter(params))
    assert models.score(name, turn(answered=None)).error_type == "missing_parameter"
    with pytest.raises(oa.ConfigError, match=f"{name}.{parameter}"):
        oa.get_metric(name, **{parameter: " "})
    with pytest.raises(oa.ConfigError):
        oa.get_metric(name, **{parameter: []})
