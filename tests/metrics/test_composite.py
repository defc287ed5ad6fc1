"""Composites of other scores, evaluated on a turn or from existing scores, and their validation."""

from __future__ import annotations

import json
import types
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.bound_metric import get_metric, live_metric

COMBINING = [
    ("code_composite_mean", {}),
    ("code_weighted_score", {"weights": [1.0, 2.0]}),
    ("code_threshold_gate", {"threshold": 0.5}),
    ("code_not", {}),
    ("code_policy_must_always_pass", {}),
    ("code_policy_track_trend", {}),
]


def score(name: str, value: float | None = None, **fields: Any) -> oa.Score:
    return oa.Score.from_dict({"metric": name, "value": value, "status": "skipped" if value is None else "ok", **fields})


def failed(name: str, error_type: str = "boom") -> oa.Score:
    return score(name, None, status="error", error_type=error_type)


def combined(metric: str, *scores: oa.Score, **params: Any) -> oa.Score:
    return get_metric(metric, **params).combine(scores)


# --- the mean


@pytest.mark.parametrize(
    ("scores", "value"),
    [
        pytest.param([score("a", 0.5), score("b", 1.0)], 0.75, id="the values over their number"),
        pytest.param([score("a", 1.0, type="boolean"), score("b", 0.0, type="boolean")], 0.5, id="booleans count"),
        pytest.param([score("a", 0.1)] * 10, 0.1, id="sums are exact"),
    ],
)
def test_a_mean(scores: list[oa.Score], value: float) -> None:
    found = combined("code_composite_mean", *scores)
    assert (found.status, found.value, found.passed, found.type) == ("ok", value, None, "numeric")


@pytest.mark.parametrize("scores", [[], [score("a")], [score("a"), failed("b")]])
@pytest.mark.parametrize(("metric", "params"), [("code_composite_mean", {}), ("code_weighted_score", {"weights": None})])
def test_without_any_value_there_is_no_mean(metric: str, params: dict[str, Any], scores: list[oa.Score]) -> None:
    found = combined(metric, *scores, **{key: [1.0] * len(scores) for key in params})
    assert (found.status, found.value, found.detail["reason"]) == ("skipped", None, "all_inner_null")


@pytest.mark.parametrize(
    ("directions", "value", "threshold", "passed"),
    [
        pytest.param(("up", "up"), 0.7, 0.7, True, id="at the threshold"),
        pytest.param(("up", "up"), 0.69, 0.7, False, id="below it"),
        pytest.param(("down", "down"), 0.2, 0.2, True, id="at it, where less is better"),
        pytest.param(("down", "down"), 0.3, 0.2, False, id="above it, where less is better"),
        pytest.param(("neutral", "neutral"), 0.3, 0.2, True, id="where neither is better more passes"),
    ],
)
def test_a_mean_has_a_threshold_when_one_is_set(directions: Any, value: float, threshold: float, passed: bool) -> None:
    scores = [score(name, value, direction=direction) for name, direction in zip("ab", directions, strict=True)]
    for metric, params in (("code_composite_mean", {}), ("code_weighted_score", {"weights": [1, 1]})):
        found = combined(metric, *scores, threshold=threshold, **params)
        assert (found.passed, found.threshold) == (passed, threshold)


def test_what_is_vacuous_in_all_parts_is_vacuous() -> None:
    empty, full = score("a", 1.0, detail={"vacuous": True}), score("b", 1.0)
    for metric, params in COMBINING[:2]:
        assert combined(metric, empty, empty, **params).vacuous
        assert not combined(metric, empty, full, **params).vacuous
    assert combined("code_threshold_gate", empty, threshold=0.5).vacuous
    assert combined("code_not", empty).vacuous
    assert combined("code_policy_must_always_pass", score("a")).vacuous
    assert list(combined("code_composite_mean", empty, full, empty, empty).detail) == ["a", "b", "a#2", "a#3"]


# --- weights


@pytest.mark.parametrize(
    ("scores", "weights", "value", "used", "excluded"),
    [
        pytest.param(
            [score("a", 1.0), score("b", detail={"reason": "missing:cost"}), score("c", 0.0)], [1, 5, 3], 0.25, ["a", "c"],
            [{"name": "b", "reason": "missing:cost"}], id="the others' weights make up the whole",
        ),
        pytest.param(
            [score("a", 0.5), failed("b"), score("c"), score("d", 1.0, type="boolean")], [1, 1, 1, 1], 0.5, ["a"],
            [{"name": "b", "reason": "error"}, {"name": "c", "reason": "null"}, {"name": "d", "reason": "boolean"}],
            id="errors, nulls and booleans are left out",
        ),
        pytest.param([score("a", 0.8), score("b", 0.5)], [0, 0], 0.0, ["a", "b"], [], id="no weight at all"),
        pytest.param([score("a", 0.8), score("b", 0.5)], [-2, 1], -1.1, ["a", "b"], [], id="a negative sum divides by 1"),
    ],
)  # fmt: skip
def test_a_weighted_mean(scores: Any, weights: Any, value: float, used: Any, excluded: Any) -> None:
    found = combined("code_weighted_score", *scores, weights=weights)
    assert found.value == pytest.approx(value)
    assert found.detail == {"used": used, "excluded": excluded}


def test_booleans_can_be_weighed() -> None:
    scores = [score("a", 1.0, type="boolean"), score("b", 0.0)]
    assert combined("code_weighted_score", *scores, weights=[1, 1], include_booleans=True).value == 0.5


def test_weights_that_do_not_fit_are_an_error() -> None:
    two = score("a", 1.0), score("b", 1.0)
    assert combined("code_weighted_score", *two).error_type == "missing_parameter"
    for params in ({"weights": [1]}, {"entries": [{"metric": "code_latency", "weight": 1}] * 2, "weights": [1, 1]}):
        assert combined("code_weighted_score", *two, **params).error_type == "invalid_parameter"


@pytest.mark.parametrize("params", [{}, {"weights": []}, {"weights": [1]}, {"entries": []}])
def test_no_scores_need_no_weights(params: dict[str, Any]) -> None:
    found = combined("code_weighted_score", **params)
    assert (found.status, found.detail["reason"]) == ("skipped", "all_inner_null")


def test_entries_give_the_weights_of_scores_too() -> None:
    entries = [{"metric": "code_latency", "weight": 3}, {"metric": {"code_cost": {}}, "weight": 1}]
    found = combined("code_weighted_score", score("code_latency", 1.0), score("code_cost", 0.0), entries=entries)
    assert found.value == 0.75


# --- the gate


@pytest.mark.parametrize(
    ("inner", "params", "passed", "name"),
    [
        pytest.param({}, {}, True, "x >= 0.50", id="at the bound"),
        pytest.param({"value": 0.5 - 1e-12}, {}, True, "x >= 0.50", id="off by rounding"),
        pytest.param({"direction": "down"}, {}, True, "x <= 0.50", id="at the bound of what should be small"),
        pytest.param({"direction": "down", "value": 0.6}, {"direction": "up"}, True, "x >= 0.50", id="up by order"),
        pytest.param({}, {"inverse": True}, False, "x >= 0.50", id="the other way round"),
    ],
)
def test_a_gate(inner: dict[str, Any], params: dict[str, Any], passed: bool, name: str) -> None:
    given_score = score(**{"name": "x", "value": 0.5, **inner})
    found = combined("code_threshold_gate", given_score, threshold=0.5, **params)
    assert (found.passed, found.value, found.type) == (passed, float(passed), "boolean")
    assert found.detail == {"name": name, "inner_value": given_score.value}


@pytest.mark.parametrize("scores", [[], [score("x")], [failed("x")]])
def test_a_gate_before_nothing_is_skipped(scores: list[oa.Score]) -> None:
    found = combined("code_threshold_gate", *scores, threshold=0.5)
    assert (found.status, found.detail) == ("skipped", {"reason": "inner_null"})


# --- the opposite


def test_an_opposite_has_a_threshold_when_one_is_set() -> None:
    found = combined("code_not", score("x", 0.3), score("ignored", 0.1))
    assert (found.value, found.passed, found.detail) == (pytest.approx(0.7), None, {"name": "Not (x)", "inner_value": 0.3})
    assert combined("code_not", score("x", 0.3), threshold=0.7).passed is True
    assert combined("code_not", score("x", 0.4), threshold=0.7).passed is False


def test_what_has_no_opposite() -> None:
    assert combined("code_not", failed("x", "timeout")).error_type == "timeout"
    assert combined("code_not", score("x", 1.5)).error_type == "invalid_value"
    assert combined("code_not").detail["reason"] == "inner_null"


# --- from a turn

TURN = oa.Turn.from_dict({"output": "yes", "duration_s": 0.25})
LATENCY = {"metric": "code_latency", "weight": 1}
HAS_YES, HAS_NO = {"code_contains": {"value": "yes"}}, {"code_contains": {"value": "no"}}


@pytest.mark.parametrize(
    ("metric", "params", "value", "passed"),
    [
        pytest.param("code_composite_mean", {"metrics": [HAS_YES, HAS_NO, "code_cost"]}, 0.5, None, id="a mean"),
        pytest.param("code_weighted_score", {"entries": [LATENCY, {"metric": HAS_YES, "weight": 9}]}, 0.25, None, id="entries"),
        pytest.param("code_weighted_score", {"metrics": ["code_latency"], "weights": [2]}, 0.25, None, id="two lists"),
        pytest.param("code_threshold_gate", {"metric": "code_latency", "threshold": 0.3}, 1.0, True, id="a gate"),
        pytest.param("code_not", {"metric": HAS_YES}, 0.0, False, id="an opposite"),
        pytest.param("code_not", {"metric": {"trusys:icontains": {"expected_output": "NO"}}}, 1.0, True, id="a seed's name"),
        pytest.param("code_not", {"metric": {"code_latency": None}}, 0.75, None, id="a name with nothing behind it"),
        pytest.param("code_policy_track_trend", {}, 0.0, None, id="a trend of nothing"),
    ],
)
def test_a_turn_is_evaluated_by_the_inner_metrics(metric: str, params: Any, value: float, passed: bool | None) -> None:
    found = get_metric(metric, **params).evaluate(TURN)
    assert (found.status, found.value, found.passed) == ("ok", value, passed)


POLITE = oa.Turn.from_dict({"output": "I can't wait to help"})


@pytest.mark.parametrize(
    ("metric", "params", "value"),
    [
        ("code_not", {"metric": "code_refusal"}, 1.0),
        ("code_not", {"metric": {"code_refusal": {"inverse": False}}}, 1.0),
        ("code_not", {"metric": "hpd:RefusalEvaluator"}, 0.0),
        ("code_not", {"metric": {"code_composite_mean": {"metrics": ["code_refusal"]}}}, 1.0),
        ("code_weighted_score", {"entries": [{"metric": "code_refusal", "weight": 1}], "include_booleans": True}, 0.0),
    ],
)
def test_inner_metrics_have_their_defaults_of_a_configuration(metric: str, params: dict[str, Any], value: float) -> None:
    configured = live_metric(metric, params)
    assert configured.evaluate(POLITE).value == configured.but(params).evaluate(POLITE).value == value
    assert get_metric("code_not", metric="code_refusal").evaluate(POLITE).value == 0.0


def test_inner_thresholds_have_the_scale_of_the_configuration() -> None:
    (inner,) = live_metric("code_not", {"metric": {"code_tool_success": {"threshold": 70}}}, scale=100).inner
    assert inner.threshold == pytest.approx(0.7)


def test_inner_metrics_have_names_of_the_preset() -> None:
    """Without the preset, the name is ambiguous."""
    (inner,) = live_metric("code_not", {"metric": "ToolSuccessMetric"}, system="agentunit").inner
    assert inner.key == get_metric("agentunit:ToolSuccessMetric").key


def test_a_detector_without_a_verdict_violates_no_policy() -> None:
    found = live_metric("code_policy_must_always_pass", {"metrics": ["code_refusal", {"code_refusal": {"inverse": True}}]})
    assert (found.evaluate(POLITE).value, found.evaluate(POLITE).detail["violations"]) == (0.0, [])
    refused = found.evaluate(oa.Turn(output="I cannot do that."))
    assert (refused.value, refused.detail["violations"]) == (1.0, ["code_refusal"])


def test_the_opposite_of_a_detector_has_a_verdict() -> None:
    for output, passed in (("I can't wait to help", True), ("I cannot do that.", False)):
        assert (
            live_metric("code_not", {"metric": "code_refusal"}).evaluate(oa.Turn.from_dict({"output": output})).verdict is passed
        )


@pytest.mark.parametrize(("metric", "params"), [entry for entry in COMBINING if entry[0] != "code_policy_track_trend"])
def test_a_turn_without_inner_metrics_is_an_error(metric: str, params: dict[str, Any]) -> None:
    assert get_metric(metric, **params).evaluate(TURN).error_type == "missing_parameter"


@pytest.mark.parametrize(
    ("metric", "params", "message"),
    [
        ("code_composite_mean", {"metrics": ["code_latenc"]}, r"code_composite_mean\.metrics\.0: .*Did you mean"),
        ("code_composite_mean", {"metrics": [{"code_max_duration": {"max_secs": 1}}]}, r"code_max_duration\.max_secs: unknown parameter"),
        ("code_not", {"metric": {"code_latency": {}, "code_cost": {}}}, r"must be a metric name"),
        ("code_weighted_score", {"entries": [{"metric": "code_cost", "weight": 1, "w": 2}]}, r"code_weighted_score\.entries\.0\.w"),
        ("code_weighted_score", {"entries": [{"metric": "code_cost"}]}, r"code_weighted_score\.entries\.0\.weight"),
        ("code_threshold_gate", {"direction": "sideways"}, r"code_threshold_gate\.direction"),
        ("code_task_oracle", {"oracle": "lambda turn: 1"}, r"code_task_oracle\.oracle: .*module:function"),
        ("code_task_oracle", {"oracle": "no_such_module_anywhere:f"}, r"cannot be imported \(ModuleNotFoundError\)"),
    ],
)  # fmt: skip
def test_what_is_refused_when_it_is_built(metric: str, params: dict[str, Any], message: str) -> None:
    with pytest.raises(oa.ConfigError, match=message):
        get_metric(metric, **params)


def test_composites_without_end_are_refused_as_configuration() -> None:
    nested: Any = "code_latency"
    for _ in range(5_000):
        nested = {"code_not": {"metric": nested}}
    for build in (get_metric, lambda name, **params: live_metric(name, params)):
        with pytest.raises(oa.ConfigError):
            build("code_not", metric=nested)


# --- the oracle


def oracle_score(status: str) -> oa.Score:
    return oa.Score.from_dict({
        "metric": "mine", "status": status, "value": 0.4 if status == "ok" else None, "label": "so-so", "error_type": "odd",
        "passed": True if status == "ok" else None, "detail": {"reason": "tired"},
    })  # fmt: skip


@pytest.mark.parametrize(
    ("said", "status", "value", "passed", "error_type"),
    [
        pytest.param(True, "ok", 1.0, True, None, id="yes"),
        pytest.param(False, "ok", 0.0, False, None, id="no"),
        pytest.param(0.5, "ok", 0.5, None, None, id="a number"),
        pytest.param(None, "skipped", None, None, None, id="nothing"),
        pytest.param(oracle_score("ok"), "ok", 0.4, True, None, id="a score"),
        pytest.param(oracle_score("error"), "error", None, None, "odd", id="a score that is an error"),
        pytest.param(oa.skip("tired"), "skipped", None, None, None, id="a result"),
        pytest.param(float("nan"), "error", None, None, "invalid_value", id="no number"),
    ],
)
def test_what_an_oracle_may_say(said: Any, status: str, value: float | None, passed: bool | None, error_type: str | None) -> None:
    found = get_metric("code_task_oracle", oracle=lambda turn: said).evaluate(TURN)
    assert (found.status, found.value, found.passed, found.error_type) == (status, value, passed, error_type)
    if isinstance(said, oa.Score) and status != "error":
        assert found.detail["reason"] == "tired"


@pytest.mark.parametrize(
    "said", [oa.Score("mine", None, label="so-so", detail={"at": 3}), oa.Result(None, label="so-so", detail={"at": 3})]
)
def test_a_label_without_a_value_is_an_oracles_result(said: Any) -> None:
    found = get_metric("code_task_oracle", oracle=lambda turn: said).evaluate(TURN)
    assert (found.status, found.value, found.passed, found.label, found.detail) == ("ok", None, None, "so-so", {"at": 3})


@pytest.mark.parametrize("error", [ValueError("secret"), SystemExit("secret")])
def test_an_oracle_that_raises_is_an_error_without_content(error: BaseException) -> None:
    def oracle(turn: oa.Turn) -> bool:
        raise error

    found = get_metric("code_task_oracle", oracle=oracle).evaluate(TURN)
    assert (found.status, found.error_type) == ("error", type(error).__name__)
    assert "secret" not in json.dumps(found.to_dict())


def test_a_skipped_score_of_an_oracle_keeps_its_detail() -> None:
    said = oa.Score("mine", status="skipped", detail={"reason": "tired", "at": 3})
    assert get_metric("code_task_oracle", oracle=lambda turn: said).evaluate(TURN).detail == said.detail


def test_an_oracle_sees_the_turn_and_may_have_a_threshold() -> None:
    long = get_metric("code_task_oracle", oracle=lambda turn: len(turn.output), threshold=3)
    assert (long.evaluate(TURN).value, long.evaluate(TURN).passed) == (3.0, True)
    assert get_metric("code_task_oracle").evaluate(TURN).error_type == "missing_parameter"


def test_an_oracle_is_named_by_its_import_path(monkeypatch: pytest.MonkeyPatch) -> None:
    module = types.ModuleType("my_oracles")
    module.Checks = types.SimpleNamespace(fine=lambda turn: turn.output == "yes")  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "my_oracles", module)
    found = get_metric("code_task_oracle", oracle="my_oracles:Checks.fine")
    assert (found.evaluate(TURN).passed, repr(found.params["oracle"])) == (True, "my_oracles:Checks.fine")


def test_one_function_is_one_identity_however_often_it_is_bound() -> None:
    first, second = (get_metric("code_task_oracle", oracle=json.loads) for _ in range(2))
    assert first.signature_hash == second.signature_hash
    assert first.signature_hash != get_metric("code_task_oracle", oracle=json.dumps).signature_hash
