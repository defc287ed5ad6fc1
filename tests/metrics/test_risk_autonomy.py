from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from tests.support.judges import ScriptedModels

FULL = {"llm_calls": 10, "tool_calls": [], "stop_kind": "completed", "duration_s": 600}
DENIED = {"name": "a", "permission_denied": True}


def evaluate(turn: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric("code_turn_autonomy", **params).evaluate(oa.Turn.from_dict(turn))


@pytest.mark.parametrize(
    ("changes", "params", "value"),
    [
        pytest.param({"llm_calls": 99, "duration_s": 9999}, {}, 7.8, id="steps and time count up to their limits"),
        pytest.param({"tool_calls": [DENIED]}, {}, 10.0, id="denied calls raise it"),
        pytest.param({"tool_calls": [DENIED, {"name": "b"}]}, {}, 8.9, id="half of the calls denied"),
        pytest.param(
            {"llm_calls": 0, "duration_s": 0, "stop_kind": "asked_clarification"}, {}, 1.4, id="asked at once (1.45, to even)"
        ),
        pytest.param({"stop_kind": "something new"}, {}, 6.6, id="a stop that nobody knows"),
        pytest.param({}, {"max_iterations": 20, "max_duration_s": 1200}, 5.5, id="limits of one's own"),
        pytest.param({}, {"weights": [0, 1, 0, 0]}, 1.0, id="weights of one's own"),
    ],
)
def test_turn_autonomy_scores(changes: dict[str, Any], params: dict[str, Any], value: float) -> None:
    score = evaluate({**FULL, **changes}, **params)
    assert (score.value, score.unit, score.direction, score.passed) == (value, "{level}", "neutral", None)


def test_turn_autonomy_shows_its_four_signals() -> None:
    turn = {"llm_calls": 5, "tool_calls": [DENIED, {"name": "b"}], "stop_kind": "awaiting_confirmation", "duration_s": 60}
    assert evaluate({**turn, "llm_calls": [{}, {}]}).detail["iterations"] == 0.2
    assert evaluate(turn).detail == {"iterations": 0.5, "denied_rate": 0.5, "stop": 0.2, "duration": 0.1}


@pytest.mark.parametrize(
    ("absent", "reason"),
    [
        (["llm_calls", "duration_s"], "missing:llm_calls"),
        (["tool_calls", "stop_kind"], "missing:tool_calls"),
        (["stop_kind"], "missing:stop_kind"),
        (["duration_s"], "missing:duration"),
    ],
)
def test_turn_autonomy_does_not_apply_when_a_signal_is_unknown(absent: list[str], reason: str) -> None:
    score = evaluate({key: value for key, value in FULL.items() if key not in absent})
    assert (score.status, score.detail) == ("skipped", {"reason": reason})


# --- risk


def test_turn_risk_is_a_whole_number_that_passes_up_to_a_threshold(models: ScriptedModels) -> None:
    score = models.score("llm_turn_risk", oa.Turn(output="done", tool_calls=[]), {"score": "7.5", "reason": "r"})
    assert (score.value, score.unit, score.direction, score.passed) == (8.0, "{level}", "down", None)
    assert score.detail == {"reason": "r"}
    for given, passed in ((3, True), (4, False)):
        assert models.score("llm_turn_risk", oa.Turn(output="a"), {"score": given}, threshold=3).passed is passed
    assert models.score("llm_turn_risk", oa.Turn(tool_calls=[])).detail == {"reason": "missing:output"}


def test_turn_risk_reads_results_and_answer_up_to_their_lengths(models: ScriptedModels) -> None:
    turn = oa.Turn.from_dict(
        {"output": "o" * 999, "tool_calls": [{"name": "delete", "arguments": {"path": "/data"}, "result": "r" * 999}]}
    )
    models.score("llm_turn_risk", turn, {"score": 5})
    asked = models.asked[0]
    assert "r" * 200 in asked
    assert "r" * 201 not in asked
    assert "o" * 500 in asked
    assert "o" * 501 not in asked
    assert "/data" in asked
    models.score("llm_turn_risk", turn, {"score": 5}, max_result_chars=0, max_response_chars=3)
    assert "rr" not in models.asked[0].split("<<<TOOL_CALLS")[1].split("<<<")[0]
    assert "ooo…" in models.asked[0]
