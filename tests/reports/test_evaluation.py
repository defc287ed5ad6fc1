"""Situations of public reports on other evaluation tools, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

import collections
import itertools
import json
import threading
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.evaluation.datasets import cases_in

CASES = [{"case_id": str(number), "input": f"q{number}", "ground_truth": "Lima"} for number in range(6)]
EQUALS = ["code_equals_ground_truth"]


def summary_of(task: Any, cases: Any, metrics: list[str], repetitions: int = 1) -> Any:
    (summary,) = oa.evaluate(task, cases, metrics, repetitions=repetitions).summary()
    return summary


# --- trials without an answer


@pytest.mark.parametrize(("raising", "rate", "hat"), [((2, 3), 1 / 3, 0.0), ((1, 2, 3), 0.0, 0.0), ((), 1.0, 1.0)])
def test_trial_that_raises_fails(raising: tuple[int, ...], rate: float, hat: float) -> None:
    """pydantic-ai 7928, devops-bench 193, stella 6025: trials that raise leave the denominator."""
    seen: collections.Counter[str] = collections.Counter()
    lock = threading.Lock()

    def task(question: str) -> str:
        with lock:
            seen[question] += 1
            number = seen[question]
        if number in raising:
            raise TimeoutError("the model timed out")
        return "Lima"

    summary = summary_of(task, CASES, EQUALS, repetitions=3)
    assert summary.pass_rate == pytest.approx(rate)
    assert (summary.pass_hat_k, summary.errors, summary.judged) == (hat, 6 * len(raising), 18)


def test_conversation_that_raises_in_its_second_turn_fails() -> None:
    """pydantic-ai 7928, as a conversation."""

    def task(text: str, history: list[Any]) -> str:
        if history:
            raise TimeoutError("the model timed out")
        return "Which order?"

    turns = [{"input": "Money back", "ground_truth": "Which order?"}, {"input": "Order 7.", "ground_truth": "Refunded."}]
    assert summary_of(task, [{"case_id": f"c{number}", "turns": turns} for number in range(5)], EQUALS).pass_rate == 0.0


def test_baseline_is_compared_with_trials_that_raised() -> None:
    """stella 6025: 100 % before and 100 % now, although three of four cases raised."""

    def broken(question: str) -> str:
        if question != "q0":
            raise TimeoutError("the model timed out")
        return "Lima"

    before, now = (oa.evaluate(task, CASES, EQUALS) for task in (lambda question: "Lima", broken))
    (change,) = now.compare(before).changes
    assert (change.measure, change.before, change.after) == ("pass rate", 1.0, pytest.approx(1 / 6))


def test_reports_show_trials_that_raised(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """pydantic-ai 7928, devops-bench 193: JUnit and Markdown without a failure."""
    monkeypatch.chdir(tmp_path)
    Path("flaky_app.py").write_text(
        "def flaky(q):\n    if q != 'q0': raise TimeoutError('upstream timed out')\n    return 'Lima'\n"
    )
    Path("cases.jsonl").write_text("".join(json.dumps(case) + "\n" for case in CASES[:4]))
    Path("gate.yaml").write_text("metrics:\n  - code_equals_ground_truth: {}\n    policy: gate\n")
    files = ["--format", "junit", "--out", "junit.xml", "--format", "markdown", "--out", "summary.md"]
    arguments = ["experiment", "flaky_app:flaky", "cases.jsonl", "--config", "gate.yaml", "--metrics", *EQUALS, "--gate", *files]
    assert main(arguments) == 1
    root, markdown = ET.parse("junit.xml").getroot(), Path("summary.md").read_text()
    assert int(root.attrib["errors"]) == 3
    assert "every gate passed" not in markdown
    assert "upstream timed out" in markdown
    assert "25 % (1 of 4)" in markdown


@pytest.mark.parametrize("metric", ["code_equals_ground_truth", "code_empty_answer"])
@pytest.mark.parametrize("nothing", [None, ""])
def test_task_without_an_answer_fails(metric: str, nothing: str | None) -> None:
    """pipeshub-ai 3187, pydantic-ai 7936: a task that returns None passes."""
    assert summary_of(lambda question: "Lima" if question == "q0" else nothing, CASES, [metric]).pass_rate == pytest.approx(1 / 6)


# --- references


RIGHT, WRONG = {"amount": 10, "to": "bob"}, {"amount": 9000, "to": "eve"}
OPENAI = {"id": "c1", "type": "function", "function": {"name": "transfer", "arguments": json.dumps(RIGHT)}}
SPELLINGS = [{"name": "transfer", key: RIGHT} for key in ("arguments", "input_parameters", "args", "input", "parameters")]
SPELLINGS += [OPENAI, {"name": "transfer", "arguments": json.dumps(RIGHT)}, {"tool": "transfer", "args": str(RIGHT)}]


def correctness(expected: list[Any], calls: list[Any], **more: Any) -> oa.Score:
    turn = oa.Turn.from_dict({"turn_id": "t", "tool_calls": [{"name": "transfer", "arguments": call} for call in calls]})
    return oa.get_metric("code_tool_correctness", expected=expected, check_arguments=True, **more).evaluate(turn)


@pytest.mark.parametrize("entry", SPELLINGS, ids=str)
@pytest.mark.parametrize("exact", [False, True])
def test_expected_call_is_read_in_the_spellings_of_other_tools(entry: dict[str, Any], exact: bool) -> None:
    """deepeval 1410, lightspeed-evaluation 90, mlflow 19413: arguments under another key aren't compared."""
    assert [correctness([entry], [call], exact_match=exact).value for call in (RIGHT, WRONG)] == [1.0, 0.0]


@pytest.mark.parametrize("entry", [{"name": "transfer", "argument": RIGHT}, {"arguments": RIGHT}, {"name": "t", "args": "{"}])
def test_expected_call_that_cannot_be_read_is_an_error(entry: Any) -> None:
    """deepeval 1410: a misspelled key scores 1.0."""
    score = correctness([entry], [WRONG])
    assert (score.status, score.error_type) == ("error", "invalid_reference")
    assert "expected_tools[0]" in (score.explanation or "")


def test_no_expected_arguments_equal_none_recorded() -> None:
    """deepeval 3141: {} and no arguments differ."""
    assert correctness([{"name": "transfer", "arguments": {}}], [None]).value == 1.0


def likeness(one: dict[str, Any], other: dict[str, Any]) -> float:
    return sum(one[key] == other[key] for key in one.keys() & other.keys()) / len(one.keys() | other.keys())


@pytest.mark.parametrize(
    ("expected", "calls"),
    [
        ([{"a": 1, "b": 1}, {"a": 1, "b": 2}], [{"a": 1, "b": 2}, {"a": 2, "b": 2}]),
        ([{"a": 1, "b": 1, "c": 1}, {"a": 1, "b": 1, "c": 2}], [{"a": 1, "b": 1, "c": 2}, {"a": 1, "b": 5, "c": 5}]),
        ([{"q": 1, "n": 1}, {"q": 1, "n": 2}, {"q": 2, "n": 2}], [{"q": 1, "n": 2}, {"q": 2, "n": 2}, {"q": 1, "n": 9}]),
        ([{"q": 1, "n": 1}, {"q": 1, "n": 2}, {"q": 2, "n": 2}], [{"q": 1, "n": 2}]),
        ([{"q": 1}], [{"q": 2}, {"q": 1}, {"q": 1}]),
    ],
)
def test_calls_are_paired_so_that_the_score_is_the_highest(expected: list[Any], calls: list[Any]) -> None:
    """deepeval 3338, ragas 1658: the score depends on the order of the expected calls."""
    filled = [*calls, *[{}] * (len(expected) - len(calls))]
    best = max(sum(map(likeness, expected, chosen)) for chosen in itertools.permutations(filled, len(expected))) / len(expected)
    for order in itertools.permutations(expected):
        value = correctness([{"name": "transfer", "arguments": one} for one in order], calls).value
        assert value == pytest.approx(best)


@pytest.mark.parametrize(
    ("form", "wrong"),
    [("date", "2026-02-30"), ("date-time", "yesterday"), ("email", "nobody"), ("ipv4", "300.1.1.1"), ("uuid", "123")],
)
def test_schema_checks_formats(form: str, wrong: str) -> None:
    """promptfoo 314, 3716: format isn't checked without $schema."""
    schema = {"type": "object", "properties": {"x": {"type": "string", "format": form}}}
    turn = oa.Turn(output=json.dumps({"x": wrong}))
    for metric in ("code_is_json", "code_schema_conformance", "code_contains_json"):
        assert oa.get_metric(metric, schema=schema).evaluate(turn).passed is False


# --- files


def rows(folder: Path, name: str, data: bytes) -> list[Any]:
    file = folder / name
    file.write_bytes(data)
    return list(cases_in(str(file)))


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("excel.csv", b"\xef\xbb\xbfinput,ground_truth\nq,Lima\n"),
        ("lines.jsonl", b'\xef\xbb\xbf{"input": "q", "ground_truth": "Lima"}\n'),
        ("semicolons.CSV", b"input;ground_truth\r\nq;Lima\r\n"),
        ("declared.csv", b"sep=|\ninput|ground_truth\nq|Lima\n"),
        ("tabs.tsv", b"input\tground_truth\nq\tLima\n"),
        ("spaces.csv", b"input, ground_truth\nq,Lima\n"),
    ],
)
def test_file_of_a_spreadsheet_is_read(name: str, data: bytes, tmp_path: Path) -> None:
    """promptfoo 2230, opik 4766: the first column is lost behind a byte order mark."""
    (case,) = rows(tmp_path, name, data)
    assert (case.input, case.references["ground_truth"]) == ("q", "Lima")


def test_cells_are_read_as_pandas_writes_them(tmp_path: Path) -> None:
    """promptfoo 3069, inspect_ai 5275: lists and long cells."""
    text = 'input,relevant_ids,ground_truth,context\nq,"[\'a\', \'b\']","""Lima""",' + "x" * 150_000 + "\n"
    (case,) = rows(tmp_path, "cases.csv", text.encode())
    assert (case.references["relevant_ids"], case.references["ground_truth"]) == (["a", "b"], '"Lima"')
    assert len(case.references["context"]) == 150_000


@pytest.mark.parametrize(
    ("name", "data", "place"),
    [
        ("cut.csv", b"input,ground_truth\nq,Lima\np,Lima, Peru\n", "cut.csv:3"),
        ("after.csv", b'input,ground_truth\n"a\nb",x\nq,Lima,Peru\n', "after.csv:4"),
        ("twice.csv", b"input,ground_truth,input\n", "twice.csv:1"),
        ("utf16.csv", "input,ground_truth\nq,Lima\n".encode("utf-16"), "UTF-8"),
        ("typo.jsonl", b'{"imput": "q"}\n', "typo.jsonl:1"),
    ],
)
def test_file_that_would_lose_data_is_refused(name: str, data: bytes, place: str, tmp_path: Path) -> None:
    """promptfoo 3069, promptpex 63, datasette-lite 84: the rest of a row is dropped silently."""
    with pytest.raises(oa.ConfigError, match=place):
        rows(tmp_path, name, data)
