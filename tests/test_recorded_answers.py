"""Recorded answers in a dataset are scored without an agent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main

Capture = pytest.CaptureFixture[str]
CSV = 'input,output,ground_truth\nWhat is 2+2?,4,4\n"Capital of France, please?",Lyon,Paris\n'


def scores_of(capsys: Capture, *args: str) -> list[dict[str, object]]:
    assert main(["experiment", "recorded", *args, "--format", "jsonl"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_answers_of_a_csv_file_are_scored(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "qa.csv"
    file.write_text(CSV)
    rows = scores_of(capsys, str(file), "--metrics", "code_equals_ground_truth,code_latency")
    assert [(row["value"], row["status"]) for row in rows if row["metric"] == "code_equals_ground_truth"] == [
        (1.0, "ok"),
        (0.0, "ok"),
    ]
    assert {row["status"] for row in rows if row["metric"] == "code_latency"} == {"skipped"}  # nobody knows how long they took


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "frage;antwort;ground_truth\n2+2?;4;4\n"),
        ("a.jsonl", '{"frage": "2+2?", "antwort": 4, "ground_truth": "4"}\n'),
        ("a.yaml", 'cases: [{frage: "2+2?", antwort: "4", ground_truth: 4}]'),
    ],
)
def test_columns_can_have_any_name(name: str, text: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / name).write_text(text)
    columns = ["--columns", "input=frage,output=antwort", "--metrics", "code_equals_ground_truth"]
    assert [row["passed"] for row in scores_of(capsys, str(tmp_path / name), *columns)] == [True]


def test_answers_in_memory_are_scored() -> None:
    ((turn, (score,)),) = oa.evaluate(None, [{"input": "Hi", "output": "Ho", "tool": "x"}], ["code_word_count"]).scored
    assert (turn.input, turn.output, turn.duration_s, turn.start, score.value) == ("Hi", "Ho", None, None, 1.0)


def test_a_task_can_read_its_case() -> None:
    found = oa.evaluate(lambda asked, case: f"{asked} {case['city']}", [{"input": "To", "city": "Rome"}], ["code_word_count"])
    assert found.scored[0][0].output == "To Rome"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["eval", "qa.csv"], "score them with `otel-agenteval experiment recorded qa.csv`"),
        (["ui", "qa.csv"], "score them with `otel-agenteval experiment recorded qa.csv`"),
        (["eval", "other.csv"], "`otel-agenteval experiment recorded other.csv --columns output=answer`"),
        (
            ["experiment", "recorded", "other.csv"],
            "other.csv: must have a column output, got question, answer. Name the column of the answers: --columns output=answer",
        ),
        (["experiment", "recorded", "qa.csv", "--columns", "output=reply"], "--columns: output=reply: must be NAME=COLUMN"),
        (["experiment", "recorded", "qa.csv", "--columns", "output"], "--columns: output=: must be NAME=COLUMN"),
    ],
)
def test_errors_name_the_command_or_the_column(
    args: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("qa.csv").write_text(CSV)
    Path("other.csv").write_text("question,answer\nhi,ho\n")
    assert main(args) in (1, 2)
    assert says in capsys.readouterr().err


def test_comparison_is_printed_if_no_report_has_it(tmp_path: Path, capsys: Capture) -> None:
    """Report: a comparison with ``--baseline`` and ``--format jsonl`` wasn't shown."""
    (tmp_path / "qa.csv").write_text(CSV)
    before, after = tmp_path / "a.jsonl", tmp_path / "b.jsonl"
    run = ["experiment", "recorded", str(tmp_path / "qa.csv"), "--metrics", "code_equals_ground_truth", "--format", "jsonl"]
    assert main([*run, "--out", str(before)]) == 0
    assert "against" not in capsys.readouterr().err
    assert main([*run, "--out", str(after), "--baseline", str(before)]) == 0
    assert "against a.jsonl" in capsys.readouterr().err
    assert main([*run, "--out", str(after), "--baseline", str(before), "--format", "table"]) == 0
    found = capsys.readouterr()
    assert "against a.jsonl" in found.out
    assert "against" not in found.err
