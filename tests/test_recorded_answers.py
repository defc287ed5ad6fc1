"""Recorded answers in a dataset are scored without an agent."""

from __future__ import annotations

import json
import shlex
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


@pytest.mark.parametrize("answer", ["answer", "response"])
@pytest.mark.parametrize("truth", ["reference", "expected", "ground_truth"])
def test_columns_have_names_of_other_tools(answer: str, truth: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.csv").write_text(f"question,{answer},{truth}\n2+2?,4,4\nCapital?,Lyon,Paris\nHi,,Ho\n")
    rows = scores_of(capsys, str(tmp_path / "a.csv"), "--metrics", "code_equals_ground_truth")
    assert [row["passed"] for row in rows] == [True, False, False]
    ((turn, _),) = oa.evaluate(None, [{"input": "Hi", "answer": "a", "output": "b"}], ["code_word_count"]).scored
    assert (turn.output, turn.ground_truth) == ("b", "a")


def test_missing_column_is_refused_at_once() -> None:
    with pytest.raises(oa.ConfigError, match=r"must have a column output, got reply\. Rename the column"):
        oa.evaluate(None, [{"input": "Hi", "reply": "Ho"}], ["code_word_count"])


def test_a_task_can_read_its_case() -> None:
    found = oa.evaluate(lambda asked, case: f"{asked} {case['city']}", [{"input": "To", "city": "Rome"}], ["code_word_count"])
    assert found.scored[0][0].output == "To Rome"


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["eval", "qa.csv"], "score them with `otel-agenteval experiment recorded qa.csv`"),
        (["ui", "qa.csv"], "score them with `otel-agenteval experiment recorded qa.csv`"),
        (["eval", "other.csv"], "`otel-agenteval experiment recorded other.csv --columns output=actual_output`"),
        (
            ["experiment", "recorded", "other.csv"],
            "other.csv: must have a column output, got question, actual_output. Name the column of the answers: --columns output=actual_output",
        ),
        (
            ["experiment", "recorded", "qa.csv", "--columns", "output=reply"],
            "--columns: output=reply: column 'reply' not found. Columns in the dataset: ",
        ),
        (["experiment", "recorded", "qa.csv", "--columns", "output"], "--columns: output=: must be NAME=COLUMN"),
    ],
)
def test_errors_name_the_command_or_the_column(
    args: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("qa.csv").write_text(CSV)
    Path("other.csv").write_text("question,actual_output\nhi,ho\n")
    assert main(args) in (1, 2)
    assert says in capsys.readouterr().err


RENAMED = ["--columns", "input=Frage,output=Antwort"]


@pytest.mark.parametrize(
    ("name", "text", "args", "says"),
    [
        ("a.csv", "Frage,Antwort\na,b\n", [], "a.csv: no column input. Columns: Frage, Antwort. Name them, for example --columns input=Frage,output=Antwort"),
        ("a.csv", "output,Frage\na,b\n", [], "for example --columns input=Frage"),
        ("a.csv", "Frage,Antwort\na,b\n,c\n", RENAMED, "a.csv:3: the column input is empty"),
        ("a.csv", "input,output\na,b\n,c\n", [], "a.csv:3: the column input is empty"),
        ("a.csv", "Frage,Antwort,value\na,b,1\nc,4,many\n", RENAMED, "a.csv:3: code_equals_number.value: must be"),
        ("a.csv", "input,output\n", [], "a.csv: no rows"),
        ("a.csv", "", [], "a.csv: no rows"),
        ("a.csv", "", RENAMED, "a.csv: no rows"),
        ("a.csv", "input,output\nh\xf6,b\n", [], 'a.csv: isn\'t UTF-8 text. Save it as UTF-8 ("CSV UTF-8" in Excel)'),
        ("a.xlsx", "a b\n", [], "a.xlsx: use .jsonl, .json, .yaml, .csv, .tsv, or .parquet, got .xlsx"),
        ("a.txt", "{a\n", [], "a.txt:1: must be one JSON object per line"),
        ("a.jsonl", "a b\n", [], "a.jsonl:1: must be one JSON object per line"),
    ],
)  # fmt: skip
def test_unusable_table_has_a_fix(
    name: str, text: str, args: list[str], says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(name).write_text(text, "latin-1")
    assert main(["experiment", "recorded", name, *args, "--metrics", "code_equals_number"]) == 2
    assert says in capsys.readouterr().err


def test_file_instead_of_a_task_has_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Capture) -> None:
    monkeypatch.chdir(tmp_path)
    Path("num.csv").write_text(CSV)
    for args in (["num.csv"], ["num.csv", "num.csv"]):
        with pytest.raises(SystemExit):
            main(["experiment", *args])
        assert "To score recorded answers: otel-agenteval experiment recorded num.csv" in capsys.readouterr().err


def test_expected_number_can_have_a_decimal_comma(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.csv").write_text('input,output,value\na,"Es sind 1234,56.","1234,56"\n')
    assert [row["passed"] for row in scores_of(capsys, str(tmp_path / "a.csv"), "--metrics", "code_equals_number")] == [True]


def test_missing_parameter_has_a_fix_and_one_line(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "a.csv").write_text("input,output\na,b\n")
    names = "code_equals_number,llm_custom_judge,code_field_accuracy,llm_relevance"
    assert main(["experiment", "recorded", str(tmp_path / "a.csv"), "--metrics", names]) == 0
    lines = [line for line in capsys.readouterr().err.splitlines() if "required parameter" in line or "no judge" in line]
    put = "into the column value, or pass --columns value=COLUMN"
    for name, how in (
        ("code_equals_number", f"Put the expected value {put}"),
        ("llm_custom_judge", f"Put the rubric {put}"),
        ("code_field_accuracy", "Set metrics: [{code_field_accuracy: {field: …}}] in the configuration"),
        ("llm_relevance", "Set judge.base_url"),
    ):
        (line,) = [line for line in lines if name in line.partition(". ")[0]]
        assert how in line


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


@pytest.mark.parametrize(
    ("policy", "more", "says"),
    [
        ("gate", [], "1 gate score failed (1 blank answer)"),
        ("trend", ["--fail-on-regression", "all"], "regression of code_text_f1: share with a value 100 % → 50 %"),
    ],
)
def test_blank_answers_fail_the_gate(policy: str, more: list[str], says: str, tmp_path: Path, capsys: Capture) -> None:
    """Report: a version that answered nothing passed, because blank answers are skipped."""
    config, before, after = (tmp_path / name for name in ("a.yaml", "a.jsonl", "b.jsonl"))
    config.write_text(f"metrics: [{{code_text_f1: {{}}, policy: {policy}}}]")
    blank = 1 if policy == "gate" else 8
    cases = [{"case_id": number, "input": "2+2?", "output": "4", "ground_truth": "4"} for number in range(16)]
    for file, rows in ((before, cases), (after, [{**case, "output": " "} for case in cases[:blank]] + cases[blank:])):
        (tmp_path / "qa.jsonl").write_text("\n".join(map(json.dumps, rows)))
        run = ["experiment", "recorded", str(tmp_path / "qa.jsonl"), "--config", str(config), "--metrics", "code_text_f1"]
        options = ["--gate", "--baseline", str(before), *more] if file is after else []
        assert main([*run, "--format", "jsonl", "--out", str(file), *options]) == int(file is after)
    said = capsys.readouterr().err
    assert says in said
    assert f"{blank} of 16 cases have no value (0 before)" in " ".join(said.split())


def test_columns_are_repeatable_and_can_contain_a_comma(tmp_path: Path, capsys: Capture) -> None:
    file = tmp_path / "a.csv"
    file.write_text('Frage,Antwort,"Ideal, kurz"\n2+2?,4,4\n', encoding="utf-8")
    columns = ["--columns", "input=Frage,output=Antwort", "--columns", "ground_truth=Ideal, kurz"]
    assert [row["passed"] for row in scores_of(capsys, str(file), *columns, "--metrics", "code_equals_ground_truth")] == [True]


def test_metric_that_skips_most_cases_is_named(tmp_path: Path, capsys: Capture) -> None:
    file = str(tmp_path / "a.csv")
    for skipped, is_named in ((2, True), (1, False)):
        rows = ["a,b,b", "c,d,d", "e,f,f"]
        (tmp_path / "a.csv").write_text("\n".join(["input,output,ground_truth", *rows[skipped:], *["x,y,"] * skipped]))
        assert main(["experiment", "recorded", file, "--metrics", "code_equals_ground_truth"]) == 0
        assert (f"{skipped} of 3" in capsys.readouterr().err) is is_named


def test_recognized_columns_get_no_other_name(tmp_path: Path, capsys: Capture) -> None:
    """Report: the hint for the column ``reference`` suggested ``references``."""
    (tmp_path / "a.csv").write_text("input,output,reference,contextt\na,b,c,d\n")
    (tmp_path / "a.yaml").write_text("metrics: [{code_contains: {value: '{{reference}}'}}]")
    for args, is_read in ((["--metrics", "code_refusal"], False), (["--config", str(tmp_path / "a.yaml")], True)):
        assert main(["experiment", "recorded", str(tmp_path / "a.csv"), *args]) == 0
        said = capsys.readouterr().err
        assert ("'reference'" in said, "'references'" in said, "Did you mean 'context'" in said) == (not is_read, False, True)


@pytest.mark.parametrize("column", ["ground_truth", "expected"])
def test_unused_ground_truth_is_reported_with_a_metric(column: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "qa.csv").write_text(f"input,output,{column}\n2+2?,4,4\n")
    run = ["experiment", "recorded", str(tmp_path / "qa.csv"), "--metrics"]
    assert main([*run, "code_empty_answer"]) == 0
    said = capsys.readouterr().err
    assert f"'{column}'" in said
    assert "code_equals_ground_truth" in said
    assert main([*run, "code_equals_ground_truth"]) == 0
    assert f"'{column}'" not in capsys.readouterr().err
    header = f"Question,Model answer,{column}"
    (tmp_path / "qa.csv").write_text(f"{header.replace(column, 'Gold')}\n2+2?,4,4\n")
    assert main([*run, "code_equals_ground_truth"]) == 2
    hint = capsys.readouterr().err.partition("--columns ")[2]
    assert main([*run, "code_equals_ground_truth", "--columns", *shlex.split(hint)]) == 0
    assert "✓ 1 passed" in capsys.readouterr().out


@pytest.mark.parametrize("header", ["output", "output,ground_truth"])
def test_hint_suggests_no_other_known_column_as_input(header: str, tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "qa.csv").write_text(f"{header}\n{','.join('4' for _ in header.split(','))}\n")
    assert main(["experiment", "recorded", str(tmp_path / "qa.csv")]) == 2
    said = capsys.readouterr().err
    assert "Add a column input" in said
    assert "--columns" not in said
