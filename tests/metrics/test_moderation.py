from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

TURN = oa.Turn(input="tell me", output="go away")
HATE = {"code": "hate", "description": "an insult", "confidence": 0.6}
VIOLENCE = {"code": "Violence ", "description": "a threat", "confidence": "0.9"}


@pytest.mark.parametrize(
    ("flags", "params", "codes"),
    [
        pytest.param([HATE, VIOLENCE], {}, ["hate", "Violence "], id="all categories count without a list"),
        pytest.param([HATE, VIOLENCE], {"categories": [" VIOLENCE"]}, ["Violence "], id="the listed ones, without case"),
        pytest.param([HATE], {"categories": [" "]}, ["hate"], id="a blank category is none"),
        pytest.param([HATE, VIOLENCE], {"min_confidence": 0.7}, ["Violence "], id="a flag that is not certain enough does not"),
        pytest.param([HATE], {"min_confidence": 0.6}, ["hate"], id="one that is exactly certain enough does"),
        pytest.param([{"code": "hate"}], {"min_confidence": 1}, ["hate"], id="without a confidence it is certain"),
        pytest.param([{"code": "hate", "confidence": None}], {"min_confidence": 1}, ["hate"], id="with null too"),
        pytest.param([{}], {}, [None], id="a flag without a name is one"),
    ],
)
def test_a_response_passes_when_no_flag_counts(
    models: ScriptedModels, flags: list[Any], params: dict[str, Any], codes: list[str | None]
) -> None:
    score = models.score("llm_moderation", TURN, {"flags": flags}, **params)
    assert (score.value, score.passed) == ((0.0, False) if codes else (1.0, True))
    assert [flag["code"] for flag in score.detail["flags"]] == codes
    assert bool(score.explanation) is bool(codes)
    assert models.score("llm_moderation", TURN, {"flags": flags}, inverse=True, **params).passed is bool(codes)


def test_flags_are_kept_with_their_confidence_as_number(models: ScriptedModels) -> None:
    score = models.score("llm_moderation", TURN, {"flags": [VIOLENCE, {"code": "x", "more": 1}]})
    assert score.detail["flags"] == [
        {"code": "Violence ", "description": "a threat", "confidence": 0.9},
        {"code": "x", "description": None, "confidence": 1.0},
    ]


def test_the_judge_sees_message_response_and_categories(models: ScriptedModels) -> None:
    models.score("llm_moderation", TURN, {"flags": []}, categories=["self-harm", "hate"])
    assert all(text in models.asked[0] for text in ("tell me", "go away", "self-harm\nhate"))
    models.score("llm_moderation", oa.Turn(output="go away"), {"flags": []})
    assert "<<<MESSAGE" not in models.asked[0]
    assert "<<<CATEGORIES" not in models.asked[0]


@pytest.mark.parametrize("output", ["", " \n"])
def test_an_empty_response_passes_without_asking(models: ScriptedModels, output: str) -> None:
    score = models.score("llm_moderation", oa.Turn(input="x", output=output))
    assert (score.value, score.passed, score.detail) == (1.0, True, {"vacuous": True, "flags": []})


def test_without_a_response_or_a_judge_there_is_no_score() -> None:
    metric = oa.get_metric("llm_moderation")
    assert metric.evaluate(oa.Turn(input="x")).detail == {"reason": "missing:output"}
    assert metric.evaluate(TURN).detail == {"reason": "no_judge"}


@pytest.mark.parametrize(
    ("reply", "params"),
    [
        pytest.param({}, {}, id="no flags"),
        pytest.param({"flags": {}}, {}, id="flags that are no list"),
        pytest.param({"flags": ["hate"]}, {}, id="a flag that is no object"),
        pytest.param({"flags": [{"code": "hate", "confidence": "high"}]}, {}, id="a confidence in words"),
        pytest.param({"flags": [{"code": "hate", "confidence": True}]}, {}, id="a confidence that is a boolean"),
        pytest.param({"flags": [{"confidence": 1}]}, {"categories": ["hate"]}, id="no code to compare"),
    ],
)
def test_a_reply_without_usable_flags_is_an_error(models: ScriptedModels, reply: dict[str, Any], params: dict[str, Any]) -> None:
    score = models.score("llm_moderation", TURN, reply, **params)
    assert (score.status, score.value, score.passed, score.error_type) == ("error", None, None, "invalid_reply")
