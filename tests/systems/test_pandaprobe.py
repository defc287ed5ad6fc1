"""PandaProbe's documented metrics, in their printed form."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
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


def trace(number: int, answer: str) -> dict[str, Any]:
    return {
        "trace_id": f"a1b2c3d4-000{number}-4000-8000-000000000001",
        "name": "support-agent",
        "status": "COMPLETED",
        "session_id": "session-abc-123",
        "input": {"messages": [{"role": "user", "content": "Where is my order?"}]},
        "output": {"messages": [{"role": "assistant", "content": answer}]},
        "started_at": f"2026-03-29T10:0{number}:00Z",
        "ended_at": f"2026-03-29T10:0{number}:04Z",
        "spans": [],
    }


@pytest.mark.parametrize("files", [1, 2])
def test_exported_session_has_its_signals_and_metrics(
    files: int, models: ScriptedModels, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    models.play(REPLY, REPLY, vectors={"Where is my order?": [1.0, 0.0], "Ask later.": [0.6, 0.8]})
    answer = models.answer

    def answer_on_confidence(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        others = path.endswith("/chat/completions") and "how confident the agent was" not in str(body["messages"][-1]["content"])
        return (400, {"error": {"message": "no reply"}}) if others else answer(path, body)

    monkeypatch.setattr(models, "answer", answer_on_confidence)
    traces = [trace(1, "Ask later."), trace(2, "Ask later.")]
    exported = [{"session_id": "session-abc-123", "traces": traces}] if files == 1 else traces
    for number, content in enumerate(exported):
        (tmp_path / f"{number}.json").write_text(json.dumps(content))
    model = {"base_url": models.url, "model": "scripted", "api_key": "test"}
    config = tmp_path / "agenteval.json"
    config.write_text(json.dumps({"inline": {"metrics": []}, "judge": model, "embedder": model}))
    names = "pandaprobe:agent_reliability,pandaprobe:agent_consistency"
    paths = [str(tmp_path / f"{number}.json") for number in range(files)]
    assert main(["eval", *paths, "--config", str(config), "--metrics", names, "--format", "jsonl"]) == 0
    rows = {row["metric"]: row for row in map(json.loads, capsys.readouterr().out.splitlines()) if "metric" in row}
    # The second trace repeats the first one, so that its risk is 1.
    reliability = rows["code_agent_reliability"]
    assert (reliability["value"], reliability["detail"]["aggregation"]["max_risk"]) == pytest.approx((0.0, 1.0))
    uncertain = [0.6 * (1 + 0.4), 0.6 * (1 + 1 + 0.4)]
    instability = (sum(one**2 for one in uncertain) / 2) ** 0.5
    assert rows["code_agent_consistency"]["detail"]["raw_instability"] == pytest.approx(instability)


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
    assert "Add its server to judge.servers, and choose the model in judge.choose" in score.explanation


@pytest.mark.parametrize("own", [{}, {"model": "anthropic/claude"}, {"model": "claude"}])
def test_model_of_another_provider_works_with_its_server(own: dict[str, str], models: ScriptedModels) -> None:
    judge = {
        "base_url": models.url, "model": "scripted", "api_key": "test", "servers": {"anthropic": {"base_url": models.url, "api_key": "test"}},
        "choose": [{"metric": "llm_confidence", "model": "anthropic/claude"}],
    }  # fmt: skip
    models.play(REPLY)
    config = {"inline": {"metrics": []}, "judge": judge}
    oa.evaluate(lambda question: "Perhaps.", [{"input": "?"}], [{"pandaprobe:confidence": own}], config=config)
    assert models.requests[0]["model"] == "claude"
    assert "max_tokens" in models.requests[0], "the form of Anthropic's messages"


@pytest.mark.parametrize("name", ["agent_reliability", "agent_consistency", "coherence", "loop_detection"])
def test_model_without_effect_warns_once(name: str, caplog: pytest.LogCaptureFixture) -> None:
    conversions._warn_once.cache_clear()
    for _ in range(2):
        oa.get_metric(f"pandaprobe:{name}", model="gpt-5.4")
    assert len(caplog.records) == 1
    assert "model has no effect" in caplog.text
    assert name in caplog.text
