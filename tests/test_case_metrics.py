"""Dataset cases with their own metrics and expected values."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas
import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.errors import ConfigError
from tests.support.recordings import unpack

APP = "def answer(asked):\n    return 'Paris, for 42 euros' if 'France' in asked else '[1, 2]'\n"
FRANCE = {"case_id": "fr", "input": "What is the capital of France?"}
PERU = {"case_id": "pe", "input": "What is the capital of Peru?"}


def answer(asked: str) -> str:
    return "Paris, for 42 euros" if "France" in asked else "[1, 2]"


def scores(france: dict[str, Any], peru: dict[str, Any], metrics: Any = (), config: Any = None) -> dict[str, dict[str, oa.Score]]:
    """Return the scores of both cases by name."""
    found = oa.evaluate(answer, [{**FRANCE, **france}, {**PERU, **peru}], metrics, config=config)
    return {trial.case_id: {score.metric: score for score in trial.scored[0][1]} for trial in found.trials}


def test_case_adds_metrics_to_those_of_the_run() -> None:
    found = scores(
        {"metrics": ["code_word_count", {"trusys:contains": {"value": "Paris"}}]},
        {"assert": [{"type": "is-json"}, {"metric": "contains", "value": "Lima"}]},
        ["code_refusal"],
    )
    assert [*found["fr"]] == ["code_refusal", "code_word_count", "code_contains"]
    assert [*found["pe"]] == ["code_refusal", "code_is_json", "code_contains"]
    assert (found["fr"]["code_contains"].passed, found["pe"]["code_contains"].passed) == (True, False)
    assert found["pe"]["code_is_json"].passed is True


def test_parameters_of_a_case_win_over_those_of_the_run() -> None:
    run = {"inline": {"metrics": []}, "metrics": [{"code_word_count": {"min": 3, "max": 9}, "policy": "gate"}]}
    found = scores({"metrics": [{"code_word_count": {"min": 5}}]}, {}, None, run)
    france, peru = (found[case]["code_word_count"] for case in ("fr", "pe"))
    assert (france.passed, france.policy) == (False, "gate")
    assert france.metric == peru.metric
    assert scores({"metrics": [{"code_word_count": {"max": 2}}]}, {}, None, run)["fr"]["code_word_count"].passed is False


def test_value_sets_the_parameter_that_is_open() -> None:
    run = ["code_contains", {"code_icontains": {"value": "[1"}}, "code_rouge_n", "code_refusal"]
    found = scores({"value": "Paris"}, {"expected_output": "Lima", "references": ["one"]}, run)
    assert (found["fr"]["code_contains"].passed, found["pe"]["code_contains"].passed) == (True, False)
    assert (found["fr"]["code_icontains"].passed, found["pe"]["code_icontains"].passed) == (False, True)
    assert found["fr"]["code_rouge_n"].detail.get("reference_from") is None
    assert found["pe"]["code_rouge_n"].detail["reference_from"] == {"references": "expect"}


def test_value_is_the_ground_truth_of_a_case_without_one() -> None:
    found = scores({"value": "Paris, for 42 euros"}, {"value": "Lima", "ground_truth": "[1, 2]"}, ["code_equals_ground_truth"])
    assert [score["code_equals_ground_truth"].passed for score in found.values()] == [True, True]


def test_metric_listed_twice_has_stable_suffixes() -> None:
    entries = [{"code_contains": {"value": "Paris"}}, {"code_contains": {"value": "42"}}]
    first, second = (scores({"metrics": given}, {}, ["code_refusal"])["fr"] for given in (entries, entries[::-1]))
    assert {*first} == {*second}
    assert sum(name.startswith("code_contains.v") for name in first) == 2
    named = [{**entries[0], "name": "city"}, {"code_contains.price": {"value": "42"}}]
    assert [*scores({"metrics": named}, {})["fr"]] == ["code_contains.city", "code_contains.price"]


def test_policy_over_gates_combines_those_of_a_case() -> None:
    gate = {"code_contains": {"value": "["}, "policy": "gate"}
    run = {"inline": {"metrics": []}, "metrics": [gate, "code_policy_must_always_pass"]}
    france = {"metrics": [{"code_contains": {"value": "Paris"}}]}
    found = scores(france, {"metrics": [{"code_is_xml": {}, "policy": "gate"}]}, None, run)
    assert {case: all_of["code_policy_must_always_pass"].passed for case, all_of in found.items()} == {"fr": True, "pe": False}


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ({"metrics": ["code_contians"]}, r"case 1: metrics\[0\]: unknown metric 'code_contians'. Did you mean code_contains"),
        ({"metrics": ["is-json", {"code_contains": {"valu": "x"}}]}, r"case 1: metrics\[1\]: code_contains.valu: .*'value'"),
        ({"metrics": ["code_contains"]}, "code_contains: value is required"),
        ({"metrics": 3}, "case 1: metrics: use a list .* got 3"),
        ({"metrics": [{"is-json": {}, "when": {"agent": "a"}}]}, r"metrics\[0\]: when: "),
        ({"metrics": [{"is-json": {}, "name": "a b"}]}, r"metrics\[0\]: name: must be a word"),
        ({"metrics": ["is-json"], "assert": ["is-xml"]}, "case 1: must have only one of metrics, assert"),
        ({"assert": [{"value": "Paris"}]}, r"metrics\[0\]: the metric's name is missing"),
        (
            {"metrics": [{"contains": {"value": one}, "name": "same"} for one in "ab"]},
            r"metrics\[1\]: two metrics have the name .*same",
        ),
        ({"value": "many"}, "case 1: code_equals_number.value: must be an allowed value, got 'many'"),
    ],
)
def test_invalid_metric_of_a_case_is_refused_first(case: dict[str, Any], problem: str) -> None:
    with pytest.raises(ConfigError, match=problem):
        oa.evaluate(pytest.fail, [{**FRANCE, **case}], ["code_equals_number"])


def test_type_of_an_assertion_is_promptfoos_name() -> None:
    asserts = [{"type": "latency", "threshold": 60_000}, {"type": "contains", "value": "Paris", "metric": "city"}]
    found = scores({"assert": asserts}, {}, ["code_refusal"])["fr"]
    assert found["code_latency_threshold"].passed is True
    assert found["code_contains.city"].passed is True
    with pytest.raises(ConfigError, match=r"weight: .*code_weighted_score"):
        oa.evaluate(pytest.fail, [{**FRANCE, "assert": [{"type": "contains", "value": "a", "weight": 2}]}], [])


@pytest.mark.parametrize("given", [{"task": "app:answer"}, {"simulate": "a patient user"}])
def test_task_that_cannot_be_called_is_refused_first(given: dict[str, Any]) -> None:
    with pytest.raises(ConfigError, match=f"{next(iter(given))}: must be a function"):
        oa.evaluate(**{"task": pytest.fail, "dataset": [FRANCE], "metrics": ["code_refusal"], **given})


def test_columns_of_a_frame_and_of_csv_have_metrics(tmp_path: Path) -> None:
    rows = [{**FRANCE, "metrics": "code_contains, is-json", "value": "Paris"}, {**PERU, "metrics": None, "value": None}]
    frame = pandas.DataFrame(rows)
    frame.to_csv(tmp_path / "cases.csv", index=False)
    for dataset in (frame, tmp_path / "cases.csv"):
        first, second = oa.evaluate(answer, dataset, ["code_refusal"]).trials
        assert [score.metric for score in first.scored[0][1]] == ["code_refusal", "code_contains", "code_is_json"]
        assert [score.metric for score in second.scored[0][1]] == ["code_refusal"]


def test_eval_evaluates_the_metrics_of_a_case(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recording = str(unpack("pydantic_ai-native_v6/s2.jsonl", tmp_path))
    (turn,) = oa.load_turns([recording])
    case = {"input": turn.input, "value": turn.output, "metrics": [{"code_word_count": {"min": 1}}]}
    (tmp_path / "cases.jsonl").write_text(json.dumps(case))
    (tmp_path / "c.yaml").write_text(json.dumps({"references": {"dataset": str(tmp_path / "cases.jsonl")}}))
    assert main(["eval", recording, "--config", str(tmp_path / "c.yaml"), "--metrics", "code_equals"]) == 0
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(line["metric"], line["passed"]) for line in found] == [("code_equals", True), ("code_word_count", True)]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "case_app.py").write_text(APP)
    return tmp_path


def test_experiment_has_one_row_for_a_metric_of_cases(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    cases = [
        {**FRANCE, "metrics": [{"code_contains": {"value": "Paris"}, "policy": "gate"}]},
        {**PERU, "metrics": [{"code_contains": {"value": "Lima"}}]},
    ]
    (project / "cases.jsonl").write_text("\n".join(map(json.dumps, cases)))
    command = ["experiment", "case_app:answer", "cases.jsonl", "--metrics", "code_refusal", "--gate"]
    assert main([*command, "--format", "jsonl", "--out", "scores.jsonl"]) == 1
    lines = [json.loads(line) for line in (project / "scores.jsonl").read_text().splitlines()]
    of_cases = [line for line in lines if line["metric"] == "code_contains"]
    found = [(line["case_id"], line["passed"], line["policy"]) for line in of_cases]
    assert found == [("fr", True, "gate"), ("pe", False, "gate")]
    assert not any("parameters_hash" in line for line in of_cases)
    capsys.readouterr()
    assert main([*command, "--format", "markdown", "--baseline", "scores.jsonl"]) == 1
    out, err = capsys.readouterr()
    assert "parameters have changed" not in out
    assert "required parameter" not in err


def test_experiment_names_file_and_line_of_a_fault(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "cases.jsonl").write_text(json.dumps(FRANCE) + "\n" + json.dumps({**PERU, "metrics": ["code_contians"]}))
    assert main(["experiment", "case_app:answer", "cases.jsonl"]) == 2
    assert "cases.jsonl:2: metrics[0]: unknown metric 'code_contians'" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("column", "hint"), [("metric", "'metrics'"), ("groundtruth", "'ground_truth'"), ("xyz", ""), ("value", "")]
)
def test_unread_column_has_a_similar_name(column: str, hint: str, project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "cases.jsonl").write_text(json.dumps({**FRANCE, column: "Paris"}))
    assert main(["experiment", "case_app:answer", "cases.jsonl", "--metrics", "code_refusal"]) == 0
    (line,) = [line for line in capsys.readouterr().err.splitlines() if f"the column {column!r}" in line]
    assert hint in line
    assert ("Did you mean" in line) is bool(hint)


def test_turns_of_a_case_have_metrics_of_their_own() -> None:
    case = {
        "metrics": ["code_word_count", {"code_conversation_completeness": {"threshold": 0.5}}],
        "turns": [{"input": "France?", "value": "Paris"}, {"input": "Peru?", "metrics": ["is-json"]}],
    }
    (trial,) = oa.evaluate(answer, [case], ["code_contains"]).trials
    first, second, conversation = ({score.metric: score for score in found} for _, found in trial.scored)
    assert first["code_contains"].passed is True
    assert second["code_contains"].detail["reason"] == "missing:value"
    assert ([*first][1:], [*second][1:]) == (["code_word_count"], ["code_is_json"])
    assert [*conversation] == ["code_conversation_completeness"]
