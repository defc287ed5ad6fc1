"""Datasets in JSON and YAML, and columns of other tools."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.evaluation.datasets import cases_in

CASES = [
    {"case_id": "fr", "input": "France?", "ground_truth": "Paris"},
    {"case_id": "pe", "input": "Peru?", "ground_truth": "Lima"},
]
AS_YAML = "- case_id: fr\n  input: France?\n  ground_truth: Paris\n- case_id: pe\n  input: Peru?\n  ground_truth: Lima\n"


def turns(source: Any, *metrics: Any) -> list[oa.Turn]:
    return [turn for turn, _ in oa.evaluate(lambda asked: "Paris", source, metrics or ["code_empty_answer"]).scored]


def passed(source: Any, *metrics: Any, config: Any = None) -> list[dict[str, Any]]:
    """Return the verdicts of each case by metric."""
    scored = oa.evaluate(lambda asked: "Paris", source, metrics or ["code_empty_answer"], config=config).scored
    return [{score.metric: score.passed for score in scores if score.metric != "code_empty_answer"} for _, scores in scored]


def written(folder: Path, name: str, text: str) -> Path:
    (folder / name).write_text(text, "utf-8")
    return folder / name


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("c.json", json.dumps(CASES)),
        ("c.json", "\ufeff" + json.dumps(CASES, indent=2)),
        ("c.json", json.dumps({"version": 1, "cases": CASES}, indent=2)),
        ("c.json", json.dumps({"data": CASES})),
        ("c.json", json.dumps({"examples": CASES})),
        ("c.json", json.dumps({"samples": CASES})),
        ("c.json", json.dumps({"testCases": CASES})),
        ("c.json", json.dumps({"test_cases": CASES})),
        ("c.json", "\n".join(map(json.dumps, CASES))),
        ("c.jsonl", json.dumps(CASES)),
        ("c.yaml", AS_YAML),
        ("c.yml", "# comment\ndata:\n" + "".join(f"  {line}\n" for line in AS_YAML.splitlines())),
        ("c.yaml", json.dumps({"cases": CASES})),
    ],
)
def test_cases_are_read_from_every_form(tmp_path: Path, name: str, text: str) -> None:
    found = turns(written(tmp_path, name, text))
    assert [(turn.references["case_id"], turn.input, turn.ground_truth) for turn in found] == [
        ("fr", "France?", "Paris"),
        ("pe", "Peru?", "Lima"),
    ]


def test_yaml_keeps_texts_as_written(tmp_path: Path) -> None:
    text = "- input: no\n  ground_truth: 2026-11-21\n  note: '${env:HOME} costs $5'\n  level: off\n"
    (turn,) = turns(written(tmp_path, "c.yaml", text))
    assert (turn.input, turn.ground_truth) == ("no", "2026-11-21")
    assert (turn.references["note"], turn.references["level"]) == ("${env:HOME} costs $5", "off")


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("c.json", '[{"input": "a"}, {"inp', "c.json: must be JSON; "),
        ("c.json", '[{"input": "a"}, 7]', "c.json: case 2: must be an object, got int"),
        (
            "c.json",
            '{"cases": 7}',
            "c.json: must be a list of cases, or an object with a list of cases under one of cases, data, ",
        ),
        ("c.json", '{"input": "a"}\n{"inp\n{"input": "b"}', "c.json:2: must be one JSON object per line; "),
        ("c.yaml", "cases:\n  - input: a\n  - b\n", "c.yaml:3: must be an object, got str"),
        ("c.yaml", "hello\n", "c.yaml: must be a list of cases"),
        ("c.yaml", "", "at least one case"),
        ("c.yaml", "- input: [1\n", "c.yaml:2: not YAML: "),
        ("c.yaml", "- input: a\n  input: b\n", "c.yaml:2: .*duplicate key"),
        ("c.yaml", "- id: x\n  input: a\n- id: x\n  input: b\n", "c.yaml:3: duplicate case_id 'x', already used in .*c.yaml:1"),
        ("c.yaml", "evaluators: EqualsGroundTruth\ncases:\n  - input: a\n", "evaluators must be a list"),
        (
            "c.yaml",
            "evaluators: [OutputContans]\ncases:\n  - input: a\n",
            r"c.yaml:3: metrics\[0\]: unknown metric 'OutputContans'",
        ),
        ("c.yaml", "- inpt: a\n", "c.yaml:1: a case must have .*Did you mean input instead of 'inpt'"),
        (
            "c.yaml",
            "- input: a\n  evaluators: [{MaxTokens: many}]\n",
            r"c.yaml:1: metrics\[0\]: code_max_tokens.max_tokens: must be",
        ),
        ("c.yaml", "- input: a\n  evaluators: []\n  metrics: []\n", "must have only one of metrics, evaluators"),
    ],
)
def test_faults_of_a_file_name_the_place(tmp_path: Path, name: str, text: str, message: str) -> None:
    with pytest.raises(oa.ConfigError, match=message):
        turns(written(tmp_path, name, text))


def test_expected_value_has_several_names() -> None:
    for column in ("expected", "answer", "response", "expected_output"):
        assert passed([{"question": "?", column: "Paris"}], "code_contains", "code_equals_ground_truth") == [
            {"code_contains": True, "code_equals_ground_truth": True}
        ]


def test_turns_of_a_conversation_have_the_same_names() -> None:
    case = {
        "case_id": "talk",
        "turns": [{"question": "a", "answer": "Paris", "documents": ["d"]}, {"input": "b", "expected": "Lima"}],
    }
    result = oa.evaluate(lambda asked: "Paris", [case], ["code_equals_ground_truth", "code_contains"])
    assert [[score.passed for score in scores] for _, scores in result.trials[0].scored[:2]] == [[True, True], [False, False]]
    assert result.trials[0].scored[0][0].context == ["d"]


def test_recorded_answer_is_no_expectation() -> None:
    case = {"user_input": "?", "response": "Lima", "answer": "Lima", "ground_truth": "Paris"}
    assert turns([case])[0].ground_truth == "Paris"
    assert turns([{"user_input": "?", "response": "Lima", "reference": "Paris"}])[0].ground_truth == "Paris"
    assert passed([{**case, "value": "Par"}], "code_contains") == [{"code_contains": True}]


def test_expected_tools_have_precedence_over_an_expected_answer() -> None:
    turn = {"input": "?", "output": "!", "tool_calls": [{"name": "search"}, {"name": "book"}]}
    for references in (
        {"expected": "Paris", "expected_tools": ["search", "book"]},
        {"expected": ["search", "book"]},
        {"expected": "search; book"},
    ):
        ((_, scores),) = oa.score_turns(oa.Turn.from_dict({**turn, "references": references}), ["code_tool_call_order"])
        assert scores[0].passed is True


def test_definitions_of_tools_are_not_expected() -> None:
    definitions = [{"type": "function", "function": {"name": "search"}}]
    assert "expected_tools" not in turns([{"input": "?", "tools": definitions}])[0].references
    assert turns([{"input": "?", "tools": ["search"]}])[0].references["expected_tools"] == ["search"]


def test_bars_of_a_cell_separate_texts(tmp_path: Path) -> None:
    text = 'input,context,documents\na,One.|Two.,\nb,cat log | grep x,\nc,"[""a|b""]",\nd,,Three.|Four.\n'
    found = turns(written(tmp_path, "c.csv", text))
    assert [turn.context for turn in found] == [["One.", "Two."], ["cat log | grep x"], ["a|b"], ["Three.", "Four."]]


# --- files of tools that nobody named: pydantic-evals, DeepEval, question answering


def test_pydantic_evals_file_is_read_as_it_is(tmp_path: Path) -> None:
    text = """\
name: capitals
cases:
  - name: simple
    inputs: What is the capital of France?
    expected_output: Paris
    metadata: {difficulty: easy}
    evaluators:
      - EqualsExpected
      - Contains: {value: Par}
evaluators:
  - MaxDuration: 2.0
"""
    path = written(tmp_path, "capitals.yaml", text)
    assert passed(path) == [{"code_max_duration": True, "code_equals_ground_truth": True, "code_contains_all": True}]
    assert turns(path)[0].metadata == {"difficulty": "easy"}


def test_goldens_of_deepeval_are_read_as_they_are(tmp_path: Path) -> None:
    goldens = [{"input": "France?", "actual_output": None, "expected_output": "Paris", "context": ["Its capital is Paris."]}]
    path = written(tmp_path, "goldens.json", json.dumps(goldens, indent=4))
    assert passed(path, "code_equals_ground_truth", "code_contains") == [
        {"code_equals_ground_truth": True, "code_contains": True}
    ]
    assert turns(path)[0].context == ["Its capital is Paris."]


def test_questions_with_answers_are_read_as_they_are(tmp_path: Path) -> None:
    document = {"version": "1.1", "data": [{"id": 7, "question": "France?", "contexts": ["Its capital."], "answer": "Paris"}]}
    path = written(tmp_path, "questions.json", json.dumps(document))
    (turn,) = turns(path)
    assert (turn.references["case_id"], turn.input, turn.ground_truth, turn.context) == (
        "7",
        "France?",
        "Paris",
        ["Its capital."],
    )


def test_single_value_is_the_first_parameter() -> None:
    entries = [{"code_contains": "Par"}, {"code_contains_any": ["Lima", "Paris"]}, {"code_word_count": 1}, {"code_max_tokens": 9}]
    found = passed([{"input": "?", "metrics": entries}])
    assert found == [{"code_contains": True, "code_contains_any": True, "code_word_count": True, "code_max_tokens": None}]
    with pytest.raises(oa.ConfigError, match=r"code_no_tools_called\.inverse: must be"):
        passed([{"input": "?", "metrics": [{"code_no_tools_called": "search"}]}])


def test_labels_and_references_are_read_from_yaml(tmp_path: Path) -> None:
    path = written(tmp_path, "c.yaml", AS_YAML)
    turn = oa.Turn(turn_id="t", input="Peru?", output="Lima")
    ((_, (score,)),) = oa.score_turns(turn, ["code_equals_ground_truth"], config={"references": {"dataset": str(path)}})
    assert score.passed is True


@pytest.mark.parametrize("row", ['q5,"a5,a5\nq6,a6,a6\n', '"q5" again,a5,a5\n', 'q5,"a5,a5\nq6,"a6",a6\n'])
def test_an_open_quote_in_a_csv_file_is_an_error(row: str, tmp_path: Path) -> None:
    (tmp_path / "cases.csv").write_text(f"input,output,ground_truth\nq4,a4,a4\n{row}", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"cases\.csv:3: a quote isn't closed"):
        list(cases_in(tmp_path / "cases.csv", "dataset"))


def test_lists_in_a_data_frame_are_read_as_in_the_csv_file(tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    path = tmp_path / "ragas.csv"
    path.write_text("""user_input,retrieved_contexts,reference\nWhy?,"['a', 'b']",Because [of c]\n""", encoding="utf-8")
    (in_file,) = cases_in(path, "dataset")
    (in_frame,) = cases_in(pandas.read_csv(path), "dataset")
    assert in_frame.references == in_file.references
    assert in_frame.references["context"] == ["a", "b"]


@pytest.mark.parametrize("truth", ["ground_truth", "reference", "value", "expected"])
def test_empty_truth_is_not_filled_with_the_old_answer(truth: str, tmp_path: Path) -> None:
    """Report: a task's answers were compared with the old answers if the cell in ``ground_truth`` was empty."""
    path = written(tmp_path, "c.csv", f"question,answer,{truth}\nFrance?,Nice,Paris\nPeru?,Lima,\n")
    assert [(turn.ground_truth, turn.references.get("expected_output")) for turn in turns(path)][1] == (None, None)
    path = written(tmp_path, "d.csv", f"question,answer,{truth}\nFrance?,Nice,\n")
    assert turns(path)[0].ground_truth is None
