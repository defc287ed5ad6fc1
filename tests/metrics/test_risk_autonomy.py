from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa

FULL = {"llm_calls": 10, "tool_calls": [], "stop_kind": "completed", "duration_s": 600}
DENIED = {"name": "a", "permission_denied": True}


def evaluate(turn: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric("code_turn_autonomy", **params).evaluate(oa.Turn.from_dict(turn))


@pytest.mark.parametrize(
    ("changes", "params", "value"),
    [
        pytest.param({}, {}, 7.8, id="long, many steps, finished; nothing denied"),
        pytest.param({"llm_calls": 99, "duration_s": 9999}, {}, 7.8, id="steps and time count up to their limits"),
        pytest.param({"tool_calls": [DENIED]}, {}, 10.0, id="denied calls raise it"),
        pytest.param({"tool_calls": [DENIED, {"name": "b"}]}, {}, 8.9, id="half of the calls denied"),
        pytest.param(
            {"llm_calls": 0, "duration_s": 0, "stop_kind": "asked_clarification"}, {}, 1.4, id="asked at once (1.45, to even)"
        ),
        pytest.param({"stop_kind": "requested_credentials"}, {}, 6.6, id="stopped for credentials"),
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
    assert evaluate(turn).detail == {"iterations": 0.5, "denied_rate": 0.5, "stop": 0.2, "duration": 0.1}


def test_turn_autonomy_counts_the_calls_when_they_are_known_one_by_one() -> None:
    assert evaluate({**FULL, "llm_calls": [{}, {}]}).detail["iterations"] == 0.2


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


@pytest.mark.parametrize(
    "params", [{"max_iterations": 0}, {"max_duration_s": 0}, {"weights": [1]}, {"weights": [-1, 0, 0, 0]}], ids=str
)
def test_values_that_are_not_allowed_are_refused_when_the_metric_is_built(params: dict[str, Any]) -> None:
    with pytest.raises(oa.ConfigError):
        oa.get_metric("code_turn_autonomy", **params)


def test_the_name_of_the_other_catalogue_resolves() -> None:
    assert oa.get_metric("hpd:TurnAutonomyEvaluator").name == "code_turn_autonomy"
