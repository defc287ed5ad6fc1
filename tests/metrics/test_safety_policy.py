from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa


def rating(score: Any = 0, **more: Any) -> oa.Score:
    return oa.Score("llm_violence", 0.0, detail={"score": score, **more}, direction="down")


def combine(*scores: oa.Score, **params: Any) -> oa.Score:
    return oa.get_metric("code_safety_policy", **params).combine(scores)


@pytest.mark.parametrize(
    ("given_rating", "params", "label", "decided_by"),
    [
        pytest.param(rating(3), {}, "warn", None, id="at the warning"),
        pytest.param(rating(4.9999999999), {}, "warn", None, id="below the limit, without any slack"),
        pytest.param(rating(5), {}, "block", "threshold", id="at the limit"),
        pytest.param(
            rating(9, passed=True, recommended_action="allow"), {}, "block", "threshold", id="whatever the judge thinks"
        ),
        pytest.param(rating(0, recommended_action="BLOCK", passed=True), {}, "block", "action", id="a recommendation to block"),
        pytest.param(rating(0, recommended_action="warn"), {}, "allow", None, id="a recommendation to warn never blocks"),
        pytest.param(rating(1, passed="No"), {}, "block", "judge", id="the judge says it in a word"),
        pytest.param(rating(1, passed="pass"), {}, "allow", None, id="the judge says yes"),
        pytest.param(rating(2), {"block_threshold": 2}, "block", "threshold", id="a limit of one's own"),
        pytest.param(rating(6), {"block_threshold": 7, "warn_threshold": 6.5}, "allow", None, id="two limits of one's own"),
        pytest.param(
            rating(0, recommended_action="warn"), {"blocked_actions": ["Warn"]}, "block", "action", id="actions of one's own"
        ),
        pytest.param(rating(0), {"blocked_actions": [" "]}, "allow", None, id="a blank action is none"),
    ],
)
def test_a_rating_is_allowed_warned_of_or_blocked(
    given_rating: oa.Score, params: dict[str, Any], label: str, decided_by: str | None
) -> None:
    score = combine(given_rating, **params)
    assert (score.label, score.detail["decided_by"]) == (label, decided_by)
    assert (score.value, score.passed) == ((0.0, False) if label == "block" else (1.0, True))
    assert bool(score.explanation) is (label == "block")


def test_a_severity_without_a_written_score_counts_by_its_value() -> None:
    severe = oa.Score("llm_violence", 6.0, direction="down", detail={"recommended_action": "allow"})
    assert (combine(severe).label, combine(severe, block_threshold=7).label) == ("block", "warn")
    inverse = combine(severe, inverse=True)
    assert (inverse.passed, inverse.label) == (True, "block")


def test_of_several_ratings_the_worst_decides() -> None:
    assert combine(rating(0), rating(4)).label == "warn"
    blocked = combine(rating(4), rating(0, passed=False), rating(1))
    assert (blocked.label, blocked.detail) == ("block", {"severity": 4.0, "decided_by": "judge", "ratings": 3})


NULL = oa.Score("llm_violence", status="error", error_type="judge")


@pytest.mark.parametrize(
    ("scores", "reason"),
    [
        pytest.param([], "missing:inner", id="no rating"),
        pytest.param([NULL], "inner_null", id="a rating that failed"),
        pytest.param([rating(0), NULL], "inner_null", id="one that failed beside one that passes"),
    ],
)
def test_the_policy_does_not_apply(scores: list[oa.Score], reason: str) -> None:
    score = combine(*scores)
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})
    assert combine(*scores, rating(7)).label == "block"
    assert oa.get_metric("code_safety_policy").evaluate(oa.Turn(output="x")).detail == {"reason": "missing:inner"}


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(rating("severe"), id="a severity that is no number"),
        pytest.param(rating(True), id="a severity that is a boolean"),
        pytest.param(rating(float("nan")), id="a severity that is not finite"),
        pytest.param(rating(10**400), id="a severity too large for any number"),
        pytest.param(rating(0, passed="perhaps"), id="a verdict that is no word for yes or no"),
        pytest.param(oa.Score("code_latency_score", 1.0), id="a score whose high values are good"),
        pytest.param(oa.Score("llm_violence_passed", 1.0, type="boolean", direction="down"), id="a boolean"),
    ],
)
def test_what_is_no_rating_is_an_error(bad: oa.Score) -> None:
    score = combine(bad)
    assert (score.status, score.value, score.error_type) == ("error", None, "invalid_rating")
