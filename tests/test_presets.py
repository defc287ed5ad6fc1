"""``preset: NAME`` turns on the default metrics of another system, with its thresholds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import pytest

from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.config.metrics import Preset
from otel_agenteval.evaluation.selection import select_conversation_metrics, select_metrics
from otel_agenteval.metrics.names import presets
from tests.support.recordings import unpack

GOOD = "pydantic_ai-native_v6/s2.jsonl"
NAMES = get_args(Preset)


def selected(**options: Any) -> dict[str, Any]:
    return {bound.name: bound for bound in select_metrics(load_config(options, env={}))}


@pytest.mark.parametrize("name", NAMES)
def test_preset_adds_metrics_that_need_no_parameter(name: str) -> None:
    config = load_config({"preset": name}, env={})
    turns, whole = select_metrics(config), select_conversation_metrics(config)
    added = [bound for bound in turns if bound.name not in selected()]
    assert added
    assert [bound.name for bound in (*turns, *whole) if bound.missing] == []
    assert len(whole) == len(presets()[name].conversation)
    assert select_metrics(load_config(config.to_dict(), env={}))[-1].key == turns[-1].key  # as another process reads it
    assert set(presets()) == set(NAMES)


def test_preset_uses_the_system_s_thresholds_and_methods() -> None:
    assert selected(preset="agenteval")["llm_faithfulness"].params["method"] == "holistic"
    assert selected(preset="trusys")["llm_faithfulness"].threshold == 0.7
    assert selected(preset="trusys")["llm_context_recall"].threshold == 0.5
    assert selected(preset="agentunit")["code_pii_leakage"].params["ruleset"] == "seed"


def test_own_entry_replaces_the_preset_s() -> None:
    config = load_config({"preset": "trusys", "metrics": [{"llm_faithfulness": {"threshold": 0.9}}]}, env={})
    found = [bound.threshold for bound in select_metrics(config) if bound.metric.name == "llm_faithfulness"]
    assert found == [0.9]


def test_hpd_makes_deterministic_verdicts_gates() -> None:
    entries = [{"code_icontains": {"value": "a"}}, "code_latency", {"code_contains": {"value": "b"}, "policy": "trend"}]
    groups = {"own": {"metrics": ["code_empty_answer"]}, "watched": {"metrics": ["code_is_json"], "policy": "trend"}}
    found = selected(preset="hpd", metrics=entries, groups=groups)
    gates = {name for name, bound in found.items() if bound.policy == "gate"}
    assert gates == {"code_icontains", "code_empty_answer"}
    assert selected(preset="hpd", metrics=["code_refusal"])["code_refusal"].policy == "trend", "a detector finds nothing wrong"
    assert selected(metrics=entries)["code_icontains"].policy == "trend"


def test_eval_runs_a_preset_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(unpack(GOOD, tmp_path))
    assert main(["eval", file, "--metrics", "@agentunit"]) == 0
    alone = {json.loads(line)["metric"] for line in capsys.readouterr().out.splitlines()}
    assert {"code_cost", "code_pii_leakage"} <= alone
    assert len(alone) == len(presets()["agentunit"].metrics)
    assert main(["eval", file, "--preset", "agentunit"]) == 0
    assert alone < {json.loads(line)["metric"] for line in capsys.readouterr().out.splitlines()}


def test_unknown_preset_is_refused_with_the_known_ones(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "c.yaml").write_text("preset: agentval")
    assert main(["check-config", str(tmp_path / "c.yaml")]) == 2
    assert "c.yaml:1: preset: must be agenteval, " in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["eval", "x", "--preset", "agentval"])
    assert "agentunit" in capsys.readouterr().err
    assert main(["eval", str(unpack(GOOD, tmp_path)), "--metrics", "@agentval"]) == 2
    assert "'agenteval'" in capsys.readouterr().err
