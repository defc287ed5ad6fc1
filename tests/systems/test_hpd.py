"""HPD-Agent's documented evaluators, in their printed form."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from tests.support.judges import ScriptedModels


@pytest.mark.parametrize("query", [{"nameEquals": "search"}, {}, {"not": {"nameEquals": "search"}}])
def test_span_query_without_spans_is_skipped(query: dict[str, Any]) -> None:
    result = oa.evaluate(lambda question: "!", [{"input": "?"}], [{"hpd:HasMatchingSpanEvaluator": {"query": query}}])
    (score,) = result.scored[0][1]
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:spans"})


def test_span_query_fails_if_no_span_matches() -> None:
    turn = oa.Turn.from_dict({"spans": [{"id": "1", "name": "book"}]})
    for name, passed in (("book", True), ("search", False)):
        assert oa.get_metric("hpd:HasMatchingSpanEvaluator", query={"nameEquals": name}).evaluate(turn).passed is passed


@pytest.mark.parametrize(
    "options", [{"Alpha": 0.5, "Gamma": 0.0}, {"alpha": 0.5, "gamma": 0}, SimpleNamespace(alpha=0.5, gamma=0.0)]
)
def test_meteor_takes_its_options(options: Any) -> None:
    turn = oa.Turn(output="the cat sat on the mat")
    score = oa.get_metric("hpd:MeteorEvaluator", references=["the cat is on the mat"], options=options).evaluate(turn)
    plain = oa.get_metric("code_meteor", references=["the cat is on the mat"], alpha=0.5, gamma=0).evaluate(turn)
    assert score.value == plain.value == pytest.approx(5 / 6, abs=1e-4)


def test_unknown_option_of_meteor_is_refused() -> None:
    with pytest.raises(oa.ConfigError, match="delta: unknown parameter"):
        oa.get_metric("hpd:MeteorEvaluator", references=["a"], options={"Delta": 1})
    with pytest.raises(oa.ConfigError, match="must be an object"):
        oa.get_metric("hpd:MeteorEvaluator", references=["a"], options=0.9)


# --- datasets, as printed

CAPITAL = """\
dataset_id: capital-smoke
version: "1"
evaluators:
  - EqualsGroundTruth
  - OutputContains: Paris
cases:
  - case_id: france-capital
    name: france-capital
    version: "1"
    input: What is the capital of France?
    ground_truth: Paris
    metadata:
      area: geography
"""
BENCH = """\
dataset_id: support-bench
version: 2026.02
cases:
  - case_id: geo-001
    name: capital
    version: "1"
    input: What is the capital of France?
    ground_truth: Paris
"""


def file_with(folder: Path, text: str, name: str = "cases.yaml") -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


@pytest.mark.parametrize(("answer", "passed", "status"), [("Paris", True, 0), ("Lyon", False, 1)])
def test_printed_data_set_decides_the_exit_status(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], answer: str, passed: bool, status: int
) -> None:
    path = file_with(tmp_path, CAPITAL)
    result = oa.evaluate(lambda asked: answer, path, ["code_empty_answer"], config={"preset": "hpd"})
    ((turn, scores),) = result.scored
    assert {score.metric: score.passed for score in scores if score.metric != "code_empty_answer"} == {
        "code_equals_ground_truth": passed,
        "code_contains": passed,
    }
    assert (turn.references["case_id"], turn.metadata) == ("france-capital", {"area": "geography"})
    assert bool(result.failures) is not passed
    module = f"hpd_{answer.lower()}"
    file_with(tmp_path, f"def answer(asked):\n    return {answer!r}\n", f"{module}.py")
    monkeypatch.chdir(tmp_path)
    command = ["experiment", f"{module}:answer", "cases.yaml", "--preset", "hpd", "--metrics", "code_empty_answer", "--gate"]
    assert main(command) == status
    assert main([*command, "--format", "html", "--out", "eval-report.html"]) == status
    assert "code_contains" in (tmp_path / "eval-report.html").read_text("utf-8")
    capsys.readouterr()


def test_data_set_without_evaluators_takes_those_of_the_run(tmp_path: Path) -> None:
    evaluators = ["hpd:EqualsGroundTruthEvaluator", {"hpd:OutputContainsEvaluator": {"value": "Paris"}}]
    result = oa.evaluate(lambda asked: "Paris", file_with(tmp_path, BENCH), evaluators, concurrency=4)
    assert [(one.metric, one.pass_rate) for one in result.summary()] == [
        ("code_equals_ground_truth", 1.0),
        ("code_contains", 1.0),
    ]
    assert result.trials[0].case_id == "geo-001"


@pytest.mark.parametrize(
    ("evaluator", "metric", "passed"),
    [
        ("EqualsGroundTruth", "code_equals_ground_truth", True),
        ("EqualsGroundTruthEvaluator", "code_equals_ground_truth", True),
        ({"OutputContains": "Paris"}, "code_contains", True),
        ({"OutputEquals": "Paris "}, "code_equals", False),
        ({"OutputMatchesRegex": "^P"}, "code_regex_match", True),
        ({"ContainsAny": ["Paris", "Lyon"]}, "code_contains_any", True),
        ({"ContainsAll": ["France", "Paris"]}, "code_contains_all", False),
        ({"IContains": "paris"}, "code_icontains", True),
        ({"StartsWith": "Par"}, "code_starts_with", True),
        ({"StartsWith": {"value": "par", "ignore_case": True}}, "code_starts_with", True),
        ({"WordCount": {"min": 1, "max": 8}}, "code_word_count", True),
        ({"WordCount": 2}, "code_word_count", False),
        ({"Levenshtein": "Paris"}, "code_levenshtein_similarity", None),
        ({"ContentSimilarity": "Paris"}, "code_content_similarity", None),
        ({"KeywordCoverage": ["Paris", "France"]}, "code_keyword_coverage", None),
        ("Refusal", "code_refusal", False),
        ("JsonValidity", "code_is_json", False),
        ("XmlValidity", "code_is_xml", False),
        ("HtmlShape", "code_html_shape", False),
        ({"HtmlShape": ["main"]}, "code_html_shape", False),
        ("SqlShape", "code_sql_shape", False),
        ("Latency", "code_latency", None),
        ({"MaxDuration": 60}, "code_max_duration", True),
        ({"TextF1": "Paris"}, "code_text_f1", True),
        ({"Bleu": ["Paris"]}, "code_bleu", True),
        ({"Gleu": ["Paris"]}, "code_gleu", True),
        ({"Rouge": {"reference": "Paris", "variant": "RougeS"}}, "code_rouge", None),
        ({"Meteor": {"references": ["Paris"], "alpha": 0.9, "beta": 3.0, "gamma": 0.5}}, "code_meteor", None),
        ({"Not": {"OutputContains": "secret"}}, "code_not", True),
    ],
    ids=str,
)
def test_short_form_of_an_evaluator_is_read(tmp_path: Path, evaluator: Any, metric: str, passed: bool | None) -> None:
    case = {"name": "capital", "input": "?", "ground_truth": "Paris", "evaluators": [evaluator]}
    path = file_with(tmp_path, json.dumps({"cases": [case]}), "cases.json")
    ((_, scores),) = oa.evaluate(lambda asked: "Paris", path, ["code_empty_answer"]).scored
    score = next(score for score in scores if score.metric == metric)
    assert (score.status, score.passed) == ("ok", passed)


@pytest.mark.parametrize(
    ("evaluator", "value"),
    [
        ({"ToolWasCalled": "Search"}, 1.0),
        ("NoToolsCalled", 0.0),
        ({"ToolCallOrder": ["Search", "Fetch"]}, 1.0),
        ({"ToolCallF1": ["Search", "Summarize"]}, 0.5),
        ({"ToolCallCount": {"tool": "Search", "count": 2}}, 0.0),
        ({"ToolArgumentMatches": {"tool": "Search", "argument": "query", "expected": "cats"}}, 1.0),
        ({"ToolResultContains": {"tool": "Search", "expected": "dogs"}}, 0.0),
        ({"MaxIterations": 2}, 1.0),
        ({"MaxTokens": 100}, 0.0),
        ({"MaxInputTokens": 100}, 1.0),
        ({"MaxOutputTokens": 10}, 0.0),
        ({"MaxCost": 0.01}, 1.0),
    ],
    ids=str,
)
def test_short_form_of_a_tool_or_limit_is_read(tmp_path: Path, evaluator: Any, value: float) -> None:
    text = json.dumps({"cases": [{"input": "?", "evaluators": [evaluator]}]})
    turn = oa.Turn.from_dict({
        "turn_id": "t", "input": "?", "tool_calls": [{"name": "Search", "arguments": {"query": "cats"}, "result": "cats"}, {"name": "Fetch"}],
        "llm_calls": [{"model": "a"}, {"model": "a"}], "usage": {"input_tokens": 90, "output_tokens": 20, "total_tokens": 110}, "cost_usd": 0.005,
    })  # fmt: skip
    config = {"preset": "hpd", "inline": {"metrics": []}, "references": {"dataset": str(file_with(tmp_path, text, "cases.json"))}}
    ((_, scores),) = oa.score_turns(turn, ["code_empty_answer"], config=config)
    assert [score.value for score in scores if score.metric != "code_empty_answer"] == [value]


def test_evaluators_of_a_case_add_to_those_of_the_file(tmp_path: Path) -> None:
    text = "evaluators: [EqualsGroundTruth]\ncases:\n  - input: a\n    ground_truth: x\n    evaluators: [NoToolsCalled, {OutputContains: x}]\n  - input: b\n    ground_truth: y\n"
    result = oa.evaluate(lambda asked: "x", file_with(tmp_path, text), ["code_empty_answer"])
    assert [[score.metric for score in scores[1:]] for _, scores in result.scored] == [
        ["code_equals_ground_truth", "code_no_tools_called", "code_contains"],
        ["code_equals_ground_truth"],
    ]


def test_unknown_evaluator_is_refused(tmp_path: Path) -> None:
    with pytest.raises(oa.ConfigError, match=r"cases.yaml:3: metrics\[0\]: unknown metric 'CapitalIsRight'"):
        oa.evaluate(lambda asked: "x", file_with(tmp_path, "evaluators: [CapitalIsRight]\ncases:\n  - input: a\n"))


def test_input_can_be_an_object(tmp_path: Path) -> None:
    text = "cases:\n  - name: object-input\n    input:\n      query: cats\n      max_results: 3\n"
    seen: list[Any] = []
    oa.evaluate(lambda asked: seen.append(asked) or "!", file_with(tmp_path, text), ["code_empty_answer"])
    assert seen == [{"query": "cats", "max_results": 3}]


# --- numbers and keys, as printed


@pytest.mark.parametrize("key", ["cost_usd", "turn_cost_usd", "estimated_cost_usd", "cost"])
def test_cost_is_read_from_the_named_keys(key: str) -> None:
    for cost, passed in ((0.5, True), (1.5, False)):
        turn = oa.Turn.from_dict({"output": "!", "metadata": {key: cost}})
        assert oa.get_metric("hpd:MaxCostEvaluator", maxCostUsd=1).evaluate(turn).passed is passed
    unknown = oa.get_metric("hpd:MaxCostEvaluator", maxCostUsd=1).evaluate(oa.Turn(output="!"))
    assert (unknown.status, unknown.detail["reason"]) == ("skipped", "missing:cost")


def test_latency_is_in_seconds_with_milliseconds_beside() -> None:
    score = oa.get_metric("hpd:LatencyEvaluator").evaluate(oa.Turn(output="!", duration_s=1.5))
    assert (score.value, score.detail["latency-ms"]) == (1.5, 1500.0)


SAFETY = (
    "ContentHarm", "HateHarassment", "ViolenceSafety", "SelfHarmSafety", "SexualContentSafety", "PromptInjection", "JailbreakAttempt",
    "SensitiveDataLeak", "ProtectedMaterial", "CodeSecurityRisk", "UngroundedSensitiveAttribute", "PolicyCompliance",
)  # fmt: skip
REPLY = {
    "score": 4.9, "passed": True, "category": "x", "severity": "medium", "confidence": 0.9, "reason": "x", "evidence": ["e"],
    "recommended_action": "warn",
}  # fmt: skip


@pytest.mark.parametrize("name", SAFETY)
def test_safety_evaluator_has_a_severity_and_a_verdict(name: str, models: ScriptedModels) -> None:
    turn, params = oa.Turn(input="a", output="b"), {"policyText": "Never."} if name == "PolicyCompliance" else {}
    for reply, passed in ((REPLY, True), ({**REPLY, "score": 5}, False), ({**REPLY, "recommended_action": "block"}, False)):
        severity = models.score(f"hpd:{name}Evaluator", turn, reply, **params)
        verdict = models.score(f"hpd:{name}Evaluator.Passed", turn, reply, **params)
        assert (severity.value, severity.passed, verdict.value) == (reply["score"], passed, float(passed))
        keys = ("severity", "confidence", "recommended_action", "evidence")
        assert {key: severity.detail[f"safety-{key.replace('_', '-')}"] for key in keys} == {key: reply[key] for key in keys}
        assert severity.detail["safety-passed"] is passed
    too_high = models.score(f"hpd:{name}Evaluator", turn, {**REPLY, "score": 8}, **params)
    assert too_high.status == "error"


def test_autonomy_has_four_signals_and_ends_at_ten() -> None:
    turn = oa.Turn.from_dict(
        {"output": "!", "duration_s": 1, "stop_kind": "completed", "tool_calls": [], "llm_calls": [{"model": "a"}]}
    )
    many = turn.but({"llm_calls": turn.llm_calls * 50, "duration_s": 5000})
    low, high = (oa.get_metric("hpd:TurnAutonomyEvaluator").evaluate(one) for one in (turn, many))
    assert (low.value, high.value, high.detail.keys()) == (3.5, 7.8, {"iterations", "denied_rate", "stop", "duration"})


def test_weighted_score_leaves_out_what_has_no_value() -> None:
    inner = [
        {"metric": {"hpd:ToolCallF1Evaluator": {"expectedTools": ["a"]}}, "weight": 3},
        {"metric": {"hpd:RougeEvaluator": {"reference": "x"}}, "weight": 1},
    ]
    metric = oa.get_metric("hpd:WeightedScoreEvaluator", entries=inner)
    assert metric.evaluate(oa.Turn(output="x")).value == 1
    assert metric.evaluate(oa.Turn.from_dict({"output": "x", "tool_calls": []})).value == pytest.approx(0.25)


def test_repetitions_are_counted() -> None:
    result = oa.evaluate(lambda asked: "Paris", [{"case_id": "a", "input": "?", "ground_truth": "Paris"}],
                         ["hpd:EqualsGroundTruthEvaluator"], repetitions=3)  # fmt: skip
    assert (result.summary()[0].n, result.summary()[0].pass_rate, len(result.frame())) == (3, 1.0, 3)


def test_judge_times_out_after_thirty_seconds_by_default() -> None:
    assert oa.Config().judge.timeout == 30
    assert oa.Config(judge={"timeout": "120s"}).judge.timeout == 120


def test_evaluator_for_one_run_is_chosen_by_an_attribute() -> None:
    selected = {"hpd:OutputContainsEvaluator": {"value": "approved"}, "when": {"attribute": {"eval.extra": "true"}}}
    span = {"id": "1", "name": "invoke_agent", "attributes": {"eval.extra": "true"}}
    turns = [oa.Turn.from_dict({"turn_id": "t-1", "output": "approved", "spans": [span] * with_span}) for with_span in (1, 0)]
    config = {"inline": {"metrics": []}, "metrics": [selected]}
    assert [[score.passed for score in scores] for _, scores in oa.score_turns(turns, config=config)] == [[True], []]


def test_report_prints_the_share_that_passed() -> None:
    cases = [{"case_id": "france-capital", "input": "?", "ground_truth": "Paris"}]
    result = oa.evaluate(lambda asked: "Paris", cases, ["hpd:EqualsGroundTruthEvaluator"])
    assert ["code_equals_ground_truth", "1", "1", "needs", "5", "cases", "100", "%"] in [
        line.split() for line in str(result).splitlines()
    ]
    assert json.loads(result.frame().to_json(orient="records"))[0]["metric"] == "code_equals_ground_truth"
