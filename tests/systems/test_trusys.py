"""Trusys' documented test cases, responses and metrics, in their printed form."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.evaluation.selection import select_metrics
from tests.support.judges import ScriptedModels

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
    with pytest.raises(oa.ConfigError, match=r"case 1: must have only one of metrics, value\.metrics"):
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


PRINTED_FILES = {
    "case.yaml": 'prompt: "What is the capital of France?"\nassert:\n  - type: contains\n    value: "Paris"\n',
    "cases.yaml": '- prompt: "What is the capital of France?"\n  assert: [{type: contains, value: Paris}]\n',
    "cases.json": json.dumps(
        {"items": [{"prompt": "?", "value": {"metrics": [{"metric": "contains", "value": "Paris"}]}}]}, indent=2
    ),
    "cases.csv": 'prompt,metrics\nWhat is the capital of France?,"[{""metric"": ""contains"", ""value"": ""Paris""}]"\n',
}


@pytest.mark.parametrize("name", PRINTED_FILES)
def test_printed_file_is_a_data_set(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(PRINTED_FILES[name], "utf-8")
    for answer, passed in (("It's Paris.", True), ("It's Lyon.", False)):
        found = oa.evaluate(lambda question, answer=answer: answer, tmp_path / name, [], config={"preset": "trusys"})
        assert [score.passed for _, scores in found.scored for score in scores] == [passed]


def test_variables_of_a_prompt_are_columns_of_the_case() -> None:
    """Each value of a variable is one case, with one row each, as in Trusys' two pages on prompts."""
    prompt, cities = "What is the capital of {{country}}?", {"France": "Paris", "Australia": "Canberra", "Japan": "Tokyo"}
    cases = [
        {"prompt": prompt, "country": country, "assert": [{"type": "contains", "value": city}]}
        for country, city in cities.items()
    ]
    asked: list[str] = []
    found = oa.evaluate(lambda question: asked.append(question) or cities[question[23:-1]], cases, [], concurrency=1)
    assert asked == [f"What is the capital of {country}?" for country in cities]
    assert [score.passed for _, scores in found.scored for score in scores] == [True] * 3


@pytest.mark.parametrize(
    ("case", "problem"),
    [
        ({"prompt": "?", "assert": [{"type": "contians", "value": "Paris"}]}, r"assert|metrics\[0\]: .*contains"),
        ({"prompt": "?", "assert": [{"value": "Paris"}]}, r"metrics\[0\]: the metric's name is missing"),
        ({"prompt": "?", "assert": 5}, r"metrics: use a list of NAME"),
    ],
)
def test_fault_in_a_printed_case_names_its_place(case: dict[str, Any], problem: str, tmp_path: Path) -> None:
    (tmp_path / "cases.json").write_text(json.dumps([{"prompt": "?", "assert": ["is-json"]}, case]))
    with pytest.raises(oa.ConfigError, match=rf"cases\.json: case 2: .*{problem}|cases\.json: case 2: {problem}"):
        oa.evaluate(str, tmp_path / "cases.json", [], config={"preset": "trusys"})


# --- the response envelope

ENVELOPE = {
    "output": "Paris is the capital.",
    "trusys": {
        "context": ["Paris is the capital of France."],
        "query": "capital of France",
        "tool_calls": [{"name": "search", "arguments": {"q": "France"}, "output": "Paris"}],
    },
}
DOTTED = {f"trusys.{part}": value for part, value in ENVELOPE["trusys"].items()}


def unwrapped(answer: Any, **facts: Any) -> oa.Turn:
    turn = oa.Turn(turn_id="t", output=json.dumps(answer), **facts)
    oa.score_turns(turn, [], config={"preset": "trusys"})
    return turn


@pytest.mark.parametrize(
    ("answer", "output"),
    [
        (ENVELOPE, "Paris is the capital."),
        ({"response": "Paris.", **DOTTED}, "Paris."),
        ({"answer": "Paris.", **ENVELOPE["trusys"]}, "Paris."),
        (DOTTED, json.dumps(DOTTED)),
    ],
)
def test_parts_of_the_response_are_read(answer: Any, output: str) -> None:
    turn = unwrapped(answer)
    assert (turn.output, turn.input, turn.context) == (output, "capital of France", ["Paris is the capital of France."])
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [("search", {"q": "France"}, "Paris")]
    assert turn.retrievals[0].query == "capital of France"


def test_facts_of_spans_precede_the_response() -> None:
    turn = unwrapped(
        ENVELOPE, input="Where?", context=["Lyon."], tool_calls=oa.Turn.from_dict({"tool_calls": [{"name": "lookup"}]}).tool_calls
    )
    assert (turn.input, turn.context, [call.name for call in turn.tool_calls]) == ("Where?", ["Lyon."], ["lookup"])


def test_tool_calls_of_the_response_are_scored() -> None:
    metric = {"trusys:tool-correctness": {"value": ["search"]}}
    for calls, passed in ((["search"], True), ([], False), ([{"function": {"name": "search", "arguments": "{}"}}], True)):
        answer = {"output": "Paris.", "trusys": {"tool_calls": calls}}
        result = oa.evaluate(lambda question, answer=answer: answer, [{"prompt": "?"}], [metric], config={"preset": "trusys"})
        assert result.scored[0][1][0].passed is passed


def test_unreadable_tool_calls_are_an_error() -> None:
    turn = oa.Turn(turn_id="t", output=json.dumps({"trusys": {"tool_calls": [{"nam": "search"}]}}))
    ((_, (score,)),) = oa.score_turns(turn, [{"trusys:tool-correctness": {"value": ["search"]}}], config={"preset": "trusys"})
    assert (score.status, score.error_type) == ("error", "invalid_tool_calls")
    assert "tool_calls[0]" in score.explanation


def test_absent_parts_are_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "otel_agenteval"):
        answers = [{"output": "Paris.", "trusys": {"context": ["France."]}}, {"output": "Lyon."}, {"other": 1}]
        oa.score_turns(
            [oa.Turn(turn_id=str(i), input="?", output=json.dumps(answer)) for i, answer in enumerate(answers)],
            [],
            config={"preset": "trusys"},
        )
    absent = [record.getMessage() for record in caplog.records if "JSON answer has no" in record.getMessage()]
    assert [text.partition(" or ")[0].rpartition(".")[2] for text in absent] == ["tool_calls", "context"]


# --- values and verdicts

CALL = {"references": {"transcript": "I was charged twice and want the money back."}}


@pytest.mark.parametrize(
    ("params", "label", "shown", "passed"),
    [
        ({}, "Billing", "billing", None),
        ({"expected": "billing"}, "Billing.", "billing", True),
        ({"value": ["refund", "billing"]}, "billing", "billing", True),
        ({"expected": "Technical Support"}, "billing", "billing", False),
        ({}, "card 4242 of a@b.de is charged twice by us", "card of a b de", None),
    ],
)
def test_call_category_is_free_without_categories(
    params: dict[str, Any], label: str, shown: str, passed: bool | None, models: ScriptedModels
) -> None:
    reply = {"reason": "it says so", "label": label, "confidence": 0.9}
    score = models.score("trusys:audio-call-category", oa.Turn.from_dict(CALL), reply, **params)
    assert (score.status, score.detail["label"], score.passed) == ("ok", shown, passed)


@pytest.mark.parametrize("label", ["", None, 5, "4242"])
def test_free_category_must_be_words(label: Any, models: ScriptedModels) -> None:
    score = models.score("trusys:audio-call-category", oa.Turn.from_dict(CALL), {"reason": "?", "label": label})
    assert score.error_type == "invalid_reply"


@pytest.mark.parametrize(
    ("arguments", "value", "passed"),
    [({"city": "Paris"}, 1.0, True), ({"city": "Rome"}, 0.0, False), ({"city": "Paris", "day": 1}, 0.5, True)],
)
def test_tool_correctness_compares_parameters(arguments: dict[str, Any], value: float, passed: bool) -> None:
    turn = oa.Turn.from_dict({"tool_calls": [{"name": "weather", "arguments": arguments}]})
    expected = [{"name": "weather", "input_parameters": {"city": "Paris"}}]
    for name in ("trusys:tool-correctness", "tool-correctness"):
        score = oa.get_metric(name, value=expected).evaluate(turn)
        assert (score.value, score.passed) == (value, passed)
    assert oa.get_metric("trusys:tool-correctness", value=["weather"]).evaluate(turn).value == 1.0
    assert oa.get_metric("code_tool_correctness", expected=expected).evaluate(turn).value == 1.0


def test_thresholds_of_the_preset_can_fail() -> None:
    for bound in select_metrics(oa.load_config({"preset": "trusys", "inline": {"metrics": []}})):
        worst = bound.scored(0.0, {})
        assert worst.passed is False or bound.threshold is None, bound


# --- what is different on purpose


def test_rouge_n_is_f1() -> None:
    turn = oa.Turn(output="the cat sat")
    value = {"value": "the cat sat on the mat", "n": 1}
    assert oa.get_metric("trusys:rouge-n", **value).evaluate(turn).value == pytest.approx(2 / 3)
    assert oa.get_metric("trusys:rouge-n", measure="recall", **value).evaluate(turn).value == pytest.approx(0.5)


def test_context_recall_is_that_of_the_expected_answer(models: ScriptedModels) -> None:
    turn = oa.Turn(
        input="?", output="unrelated", context=["Paris is the capital."], ground_truth="Paris, with two million people."
    )
    found = {"claims": ["Paris", "two million people"]}
    verdicts = [{"claim": "1", "reason": "", "verdict": "SUPPORTED"}, {"claim": "2", "reason": "", "verdict": "UNSUPPORTED"}]
    score = models.score("trusys:context-recall", turn, found, {"verdicts": verdicts})
    assert (score.value, score.detail["missing"]) == (0.5, ["two million people"])
    assert "unrelated" not in "".join(models.asked)
