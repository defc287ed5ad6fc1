"""``judge.budget`` limits ``eval``, ``experiment`` and ``backfill`` like live turns."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config.loader import load_config
from otel_agenteval.judging.budgeted import CommandBudget
from tests.support.clock import FakeClock
from tests.support.judges import ScriptedModels
from tests.support.recordings import unpack

ANSWER = {"score": 80, "reasoning": "fits"}
TRACES = [f"pydantic_ai-native_v6/s{number}.jsonl" for number in (1, 2, 3, 4, 5)]


@pytest.fixture
def models() -> Iterator[ScriptedModels]:
    made = ScriptedModels()
    made.play(*[ANSWER] * 20)
    yield made
    made.close()


def configuration(models: ScriptedModels, folder: Path, **judge: Any) -> str:
    options = {"base_url": models.url, "model": "scripted", "max_concurrency": 1, **judge}
    file = folder / "agenteval.yaml"
    file.write_text(json.dumps({"judge": options, "inline": {"metrics": []}, "metrics": ["llm_relevance"]}))
    return str(file)


def outcomes(text: str) -> list[str]:
    return [row["error_type"] if row["status"] == "error" else row["status"] for row in map(json.loads, text.splitlines())]


def evaluated(models: ScriptedModels, folder: Path, capsys: Any, **judge: Any) -> tuple[list[str], str]:
    command = ["eval", *(str(unpack(trace, folder)) for trace in TRACES), "--config", configuration(models, folder, **judge)]
    assert main(command) == 0
    out, err = capsys.readouterr()
    return outcomes(out), err


def test_eval_asks_as_often_as_the_budget_allows(models: ScriptedModels, tmp_path: Path, capsys: Any) -> None:
    found, said = evaluated(models, tmp_path, capsys, budget={"calls_per_day": 3})
    assert len(models.requests) == 3
    assert sorted({*found}) == ["ok", "over_budget"]
    assert found.count("ok") == 3
    assert "judge.budget counts only this" in said


def test_spending_in_a_file_counts_in_the_next_run(models: ScriptedModels, tmp_path: Path, capsys: Any) -> None:
    queue = {"backend": "sqlite", "path": str(tmp_path / "queue.db")}
    for asked in (3, 0):
        models.play(*[ANSWER] * 20)
        _, said = evaluated(models, tmp_path, capsys, budget={"calls_per_day": 3}, queue=queue)
        assert len(models.requests) == asked
        assert "judge.budget counts only this" not in said


def test_experiment_asks_as_often_as_the_budget_allows(models: ScriptedModels, tmp_path: Path) -> None:
    cases = [{"input": f"question {number}"} for number in range(5)]
    config = configuration(models, tmp_path, budget={"calls_per_hour": 2})
    found = oa.evaluate(str.upper, cases, config=config)
    assert len(models.requests) == 2
    assert (found.summary()[0].n, found.summary()[0].errors) == (2, 3)


def test_unpriced_model_is_not_called_under_a_dollar_limit(models: ScriptedModels, tmp_path: Path, capsys: Any) -> None:
    found, _ = evaluated(models, tmp_path, capsys, budget={"usd_per_day": 1})
    assert {*found} == {"unpriced"}
    assert not models.requests


def test_limit_by_the_minute_is_waited_for(models: ScriptedModels) -> None:
    clock, waits = FakeClock(), []

    def sleep(seconds: float) -> None:
        waits.append(seconds)
        clock.advance(seconds)

    judge = {"base_url": models.url, "model": "scripted", "budget": {"calls_per_minute": 1}}
    budget = CommandBudget(load_config({"judge": judge}), clock, sleep)
    metric = oa.get_metric("llm_relevance")
    scores = [metric.evaluate(oa.Turn(input="?", output=str(n)), judge=budget.judge(models.judge)) for n in range(3)]
    assert [score.status for score in scores] == ["ok"] * 3
    assert len(models.requests) == 3
    assert 60 <= sum(waits) <= 130
