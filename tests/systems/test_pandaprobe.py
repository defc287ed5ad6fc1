"""PandaProbe's documented metrics, as printed."""

from __future__ import annotations

import pytest

import otel_agenteval as oa
from otel_agenteval.metrics.names import conversions
from tests.support.judges import ScriptedModels

SESSION = {"traces": [{"trace_id": "a", "signals": {"confidence": 0.9}}, {"trace_id": "b", "signals": {"confidence": 0.2}}]}


@pytest.mark.parametrize(("threshold", "success"), [(None, False), (0.1, True)])
def test_details_have_threshold_and_success(threshold: float | None, success: bool, models: ScriptedModels) -> None:
    own = {} if threshold is None else {"threshold": threshold}
    reply = {"reason": "vague", "score": 0.4, "confidence": 0.4}
    score = models.score("pandaprobe:confidence", oa.Turn(input="?", output="Perhaps."), reply, **own)
    assert score.passed is success
    assert score.detail.items() >= {"threshold": threshold or 0.5, "success": success}.items()
    session = oa.get_metric("pandaprobe:agent_reliability", **own).evaluate(oa.Turn(session=SESSION))
    assert session.detail["success"] is session.passed
    assert "success" not in oa.get_metric("code_agent_reliability", **own).evaluate(oa.Turn(session=SESSION)).detail


def test_skipped_metric_has_no_success() -> None:
    assert oa.get_metric("pandaprobe:confidence").evaluate(oa.Turn()).detail.keys() == {"reason"}


TURN = {"input": "?", "output": "Perhaps."}
REPLY = {"reason": "vague", "score": 0.4, "confidence": 0.4}


def test_model_of_a_metric_chooses_the_judge(models: ScriptedModels) -> None:
    for name, model in (("other-model", "other-model"), ("scripted", "scripted"), (None, "scripted")):
        own = {} if name is None else {"model": name}
        assert models.score("pandaprobe:confidence", oa.Turn.from_dict(TURN), REPLY, **own).status == "ok"
        assert models.requests[-1]["model"] == model
    assert models.judge.model == "scripted"


def test_model_works_in_an_experiment_and_the_configuration(models: ScriptedModels) -> None:
    models.play(REPLY, REPLY)
    config = {
        "preset": "pandaprobe",
        "inline": {"metrics": []},
        "judge": {"base_url": models.url, "model": "configured", "api_key": "test"},
    }
    for metric in ("pandaprobe:confidence", {"pandaprobe:confidence": {"model": "other"}}):
        result = oa.evaluate(lambda question: "Perhaps.", [{"input": "?"}], [metric], config=config)
        assert result.scored[0][1][0].status == "ok"
    assert [request["model"] for request in models.requests] == ["configured", "other"]


def test_metrics_with_other_models_are_other_series() -> None:
    one, other, plain = (oa.get_metric("pandaprobe:confidence", **own) for own in ({"model": "a"}, {"model": "b"}, {}))
    assert len({one.key, other.key, plain.key}) == 3
    assert one.but({**one.params, "threshold": 0.7}).judge_model == "a"


@pytest.mark.parametrize("model", [5, ""])
def test_model_must_be_a_name(model: object) -> None:
    with pytest.raises(oa.ConfigError, match=r"model: must be the name of a model"):
        oa.get_metric("pandaprobe:confidence", model=model)
    with pytest.raises(oa.ConfigError, match=r"judge\.choose"):
        oa.get_metric("llm_confidence", model="a")


def test_model_of_another_provider_is_an_error(models: ScriptedModels) -> None:
    score = models.score("pandaprobe:confidence", oa.Turn.from_dict(TURN), model="anthropic/claude")
    assert (score.status, score.error_type) == ("error", "ConfigError")
    assert "provider openai" in score.explanation


@pytest.mark.parametrize("name", ["agent_reliability", "agent_consistency", "coherence", "loop_detection"])
def test_model_without_effect_warns_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    conversions._warn_once.cache_clear()
    for _ in range(2):
        oa.get_metric(f"pandaprobe:{name}", model="gpt-5.4")
    assert len(caplog.records) == 1
    assert "model has no effect" in caplog.text
    assert name in caplog.text
