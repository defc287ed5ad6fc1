"""Trusys' documented test cases, responses and metrics, as printed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.evaluation.selection import select_metrics

CASE = {
    "prompt": "What is 5 + 10?",
    "value": {
        "metrics": [
            {"metric": "equals", "expcted_output": "15"},
            {"metric": "greater-than", "expcted_output": 10},
            {"metric": "latency", "threshold": 2000},
        ]
    },
}
VERDICTS = {"code_equals": True, "code_greater_than": True, "code_latency_threshold": True}


def verdicts(case: dict[str, Any], answer: str, **config: Any) -> dict[str, bool | None]:
    result = oa.evaluate(lambda question: answer, [case], None if config else [], config=config or None)
    return {score.metric: score.passed for _, scores in result.scored for score in scores if score.status != "skipped"}


@pytest.mark.parametrize("config", [{}, {"preset": "trusys", "inline": {"metrics": []}}])
def test_printed_case_runs_as_printed(config: dict[str, Any]) -> None:
    assert verdicts(CASE, "15", **config) == VERDICTS
    assert verdicts(CASE, "16", **config) == {**VERDICTS, "code_equals": False}
    assert verdicts(CASE, "5", **config) == {**VERDICTS, "code_equals": False, "code_greater_than": False}


@pytest.mark.parametrize(
    "case",
    [
        {**CASE, "value": json.dumps(CASE["value"])},
        {"input": CASE["prompt"], "value": CASE["value"]},
        {"case_id": "sum", "prompt": CASE["prompt"], "references": {"value": CASE["value"]}},
        {"prompt": CASE["prompt"], **CASE["value"]},
        {"turns": [CASE]},
    ],
)  # fmt: skip
def test_metrics_in_value_are_never_ground_truth(case: dict[str, Any]) -> None:
    assert verdicts(case, "16") == {**VERDICTS, "code_equals": False}


def test_other_entries_of_value_are_columns() -> None:
    assert verdicts({"prompt": "?", "value": {"metrics": ["equals", "contains"], "expected_output": "16"}}, "16.") == {
        "code_equals": False,
        "code_contains": True,
    }


def test_value_without_metrics_stays_the_expected_value() -> None:
    assert verdicts({"prompt": "?", "value": {"sum": 15}, "metrics": ["json-equals"]}, '{"sum": 15}') == {
        "code_json_equals": True
    }


def test_metrics_in_two_places_are_refused() -> None:
    with pytest.raises(oa.ConfigError, match=r"case 1: must have metrics or value\.metrics, got both"):
        verdicts({**CASE, "metrics": ["is-json"]}, "15")


@pytest.mark.parametrize(
    ("preset", "name", "metric"),
    [
        ("trusys", "latency", "code_latency_threshold"),
        ("trusys", "not-latency", "code_latency_threshold"),
        ("agentunit", "latency", "code_latency_score"),
        ("agentunit", "role_adherence", "code_multiagent_role_adherence"),
        ("trusys", "role-adherence", "llm_role_adherence"),
    ],
)
def test_ambiguous_name_is_decided_by_the_preset(preset: str, name: str, metric: str) -> None:
    own = {"threshold_ms": 1} if "latency" in name else {}
    options = {"preset": preset, "inline": {"metrics": []}}
    assert select_metrics(oa.load_config({**options, "metrics": [{name: own}]}))[-1].metric.name == metric
    if own:
        case = {"prompt": "?", "metrics": [{name: own}]}
        assert metric in verdicts(case, "15", **options)


def test_ambiguous_name_without_a_system_is_refused() -> None:
    with pytest.raises(oa.ConfigError, match=r"latency: ambiguous name. Use one of agentunit:latency, trusys:latency"):
        verdicts({"prompt": "?", "metrics": [{"latency": {"threshold": 2000}}]}, "15")


def test_printed_case_runs_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "sums.py").write_text("def answer(question):\n    return '16'\n", "utf-8")
    (tmp_path / "cases.jsonl").write_text(json.dumps(CASE) + "\n", "utf-8")
    monkeypatch.chdir(tmp_path)
    assert main(["experiment", "sums:answer", "cases.jsonl", "--metrics", "code_empty_answer", "--format", "jsonl"]) == 0
    scores = {row["metric"]: row["passed"] for row in map(json.loads, capsys.readouterr().out.splitlines()) if "metric" in row}
    assert scores.items() >= {**VERDICTS, "code_equals": False}.items()
