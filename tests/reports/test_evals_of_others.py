"""Public reports on datasets, experiments, metrics and judges, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.display import escaped
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.evaluation.datasets import cases_in


def score_of(metric: str, params: dict[str, Any] | None = None, **facts: Any) -> oa.Score:
    """Return the score of one turn."""
    turn = oa.Turn.from_dict({"turn_id": "t", "input": "How much?", **facts})
    ((_, (score,)),) = oa.score_turns([turn], [{metric: params or {}}])
    return score


def asked(*cases: dict[str, Any]) -> list[Any]:
    """Return the inputs that an experiment's task receives."""
    found: list[Any] = []
    oa.evaluate(lambda text, history=None: found.append(text) or "Lima", list(cases), ["code_empty_answer"], concurrency=1)
    return found


# --- placeholders


@pytest.mark.parametrize(
    ("case", "texts"),
    [
        ({"input": "Is {{answer}} right?", "answer": "Lima"}, ["Is Lima right?"]),
        ({"input": "Is {{response}} right?", "response": "Lima"}, ["Is Lima right?"]),
        ({"input": "Use {{documents}}.", "documents": ["a"]}, ['Use ["a"].']),
        ({"input": "Use {{tools}}.", "tools": "search"}, ["Use search."]),
        ({"input": "{{answer}}?", "answer": "Lima", "ground_truth": "Quito"}, ["Lima?"]),
        ({"customer": "Ana", "turns": [{"input": "I am {{customer}}."}, {"input": "{{n}}!", "n": 7}]}, ["I am Ana.", "7!"]),
        ({"customer": "Ana", "turns": [{"role": "user", "content": "I am {{customer}}."}]}, ["I am Ana."]),
        ({"input": "Is {{answer}} right?"}, ["Is {{answer}} right?"]),
        ({"turns": ["I am {{customer}}."]}, ["I am {{customer}}."]),
        ({"turns": ["Explain {{turns}} and {{user}} in Jinja."]}, ["Explain {{turns}} and {{user}} in Jinja."]),
        ({"input": "Use {answer} and {{ other }}.", "answer": "Lima"}, ["Use {answer} and {{ other }}."]),
    ],
    ids=str,
)  # fmt: skip
def test_placeholder_is_a_column_of_the_data_set(case: dict[str, Any], texts: list[str]) -> None:
    """promptfoo 224, 2284: variables weren't replaced in later turns, or in columns with a second meaning."""
    assert asked(case) == texts


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ([{"type": "text", "text": "Lima"}], "Lima"),
        ([{"text": "It is"}, {"text": "Lima"}], "It is\nLima"),
        ("Lima", "Lima"),
        ([{"type": "text", "text": "Lima"}, {"type": "image_url", "image_url": {"url": "a.png"}}], None),
    ],
)
def test_parts_of_a_message_are_one_text(content: Any, text: str | None) -> None:
    """agentv 1035, strands evals 133: the answer was compared with the list of a message's text parts."""
    turns = [{"role": "user", "content": content}, {"role": "assistant", "content": content}]
    assert asked({"turns": turns}) == [content if text is None else text]
    result = oa.evaluate(lambda question, history: text or "Lima", [{"turns": turns}], ["code_equals_ground_truth"])
    assert result.summary()[0].passed == (text is not None)


def test_description_of_a_user_does_not_contain_itself() -> None:
    seen: list[str] = []
    case = {"user": "{{name}} wants a template that greets {{user}}.", "name": "Ana"}
    oa.evaluate(
        lambda text: "Hi", [case], ["code_empty_answer"], simulate=lambda messages, case: seen.append(case["user"]) or None
    )
    assert seen == ["Ana wants a template that greets {{user}}."]


@pytest.mark.parametrize("value", ["{{answer}}", "{{expected}}", "{{ground_truth}}"])
def test_placeholder_in_a_parameter_has_the_name_in_the_dataset(value: str) -> None:
    """promptfoo 7861, 606: a placeholder was compared as it is, so that a negated check always passed."""
    case = {"input": "q", "answer" if "answer" in value else "expected": "Lima", "metrics": [{"code_contains": {"value": value}}]}
    ((_, scores),) = oa.evaluate(lambda question: "Lima, Peru", [case], ["code_empty_answer"]).scored
    assert [score.passed for score in scores] == [True, True]


@pytest.mark.parametrize("metric", ["code_equals_ground_truth", "code_icontains"])
@pytest.mark.parametrize("column", ["expected", "answer", "expected_output"])
def test_notice_names_only_columns_that_no_metric_reads(
    column: str, metric: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The columns of braintrust and Phoenix led to a notice about ``expected_output``, which isn't in the dataset."""
    path = tmp_path / "cases.jsonl"
    path.write_text(json.dumps({"input": "q", "output": "Lima", column: "Lima", "colour": "red"}))
    main(["experiment", "recorded", str(path), "--metrics", metric, "--format", "jsonl"])
    notices = [line for line in capsys.readouterr().err.splitlines() if "of the dataset" in line]
    assert [line.split("'")[1] for line in notices] == ["colour"]


# --- files


def rows(path: Path, data: bytes) -> list[dict[str, Any]]:
    path.write_bytes(data)
    return [{"input": case.input, **case.references} for case in cases_in(path)]


READ = {"input": "q, 1", "ground_truth": "Lima"}


@pytest.mark.parametrize(
    ("name", "data", "wanted"),
    [
        ("a.csv", 'input, ground_truth\n"q, 1", Lima\n', [READ]),
        ("a.csv", '"input", "ground_truth"\n"q, 1", "Lima"\n', [READ]),
        ("a.csv", 'input; ground_truth\nq, 1; "Lima"\n', [READ]),
        ("a.csv", "input, ground_truth, note\nq,  Lima,x\n", [{"input": "q", "ground_truth": "Lima", "note": "x"}]),
        ("a.csv", "input,ground_truth\nq, Lima\n", [{"input": "q", "ground_truth": " Lima"}]),
        ("a.csv", "input,ground_truth, note\nq, Lima, x\n", [{"input": "q", "ground_truth": " Lima", "note": " x"}]),
        ("a.csv", "input\n q\n", [{"input": " q"}]),
        ("a.jsonl", '{"input": "q, 1", "ground_truth": "Lima", "weight": NaN}\n', [READ]),
        ("a.json", '[{"input": "q, 1", "ground_truth": "Lima", "weight": NaN}]', [READ]),
        ("a.jsonl", '{"input": "NaN", "ground_truth": "NaN"}\n', [{"input": "NaN", "ground_truth": "NaN"}]),
        ("a.jsonl", r'{"input": "a \"NaN\" \\", "w": [NaN], "NaN": 1}', [{"input": 'a "NaN" \\', "w": [None], "NaN": 1}]),
        ("a.jsonl", '\n{"input": "q, 1", "ground_truth": "Lima"}\n \n\t\r\n', [READ]),
        ("a.csv", 'input,ground_truth\n"q, 1","Lima"', [READ]),
        ("a.csv", 'input\n5" pipe\n"a ""b"""\n"a\r\nb"\n', [{"input": text} for text in ('5" pipe', 'a "b"', "a\r\nb")]),
    ],
    ids=str,
)  # fmt: skip
def test_file_is_read_as_its_author_meant(name: str, data: str, wanted: list[dict[str, Any]], tmp_path: Path) -> None:
    """cpython 154744, degust 46, d3 978, graphrag 2424, PyRIT 1479: spaces after commas, Python's NaN, and blank lines."""
    assert rows(tmp_path / name, data.encode()) == wanted


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ('"q,Lima\nr,Lima\n', 2),
        ('q,"Lima\n\nr,Lima\n', 2),
        ('q,Lima\nr,"', 3),
        ('q,"Lima\u201d\nr,Lima\n', 2),
        ('"q ""1"",Lima\nr,Lima', 2),
    ],
)
def test_quote_that_is_not_closed_is_refused(text: str, line: int, tmp_path: Path) -> None:
    """FastCSV 173, rust-csv 252, csvw 52: all later lines became part of one cell, without an error."""
    with pytest.raises(ConfigError, match=rf"a\.csv:{line}: a quote isn't closed"):
        rows(tmp_path / "a.csv", f"input,ground_truth\n{text}".encode())


@pytest.mark.parametrize(
    "line",
    [
        '{"input": nan}', "{'input': 'q'}", '{"input": "NaN",}', '{"input": "q"} NaN', '{"input": "q", "w": -NaN}', '{"input": "q", "w": NaNa}',
        '{"input": "NaN", "w": Infinity}', '{"input": "NaN", "w": ' + "[" * 210 + "]" * 210 + "}", '{"input": "NaN',
    ],
)  # fmt: skip
def test_line_that_is_not_json_is_refused(line: str, tmp_path: Path) -> None:
    """rai-toolkit 88: the error has the file and the line."""
    with pytest.raises(ConfigError, match=r"a\.jsonl:2: must be one JSON object per line"):
        rows(tmp_path / "a.jsonl", f'{{"input": "p"}}\n{line}\n'.encode())


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.csv"])
def test_compressed_file_is_named(name: str, tmp_path: Path) -> None:
    """phoenix 10820: the error was about the encoding."""
    with pytest.raises(ConfigError, match="got a compressed file; decompress it"):
        rows(tmp_path / name, gzip.compress(b'{"input": "q"}'))


@pytest.mark.parametrize("column", ["contexts", "documents", "retrieved_contexts", "retrieval_context"])
def test_context_is_read_in_the_columns_of_other_tools(column: str, tmp_path: Path) -> None:
    """Giskard 1924: the reference texts were used instead of the retrieved ones."""
    assert rows(tmp_path / "a.jsonl", json.dumps({"input": "q", column: ["a", "b"]}).encode()) == [
        {"input": "q", "context": ["a", "b"]}
    ]
    both = rows(tmp_path / "b.jsonl", json.dumps({"input": "q", column: ["a"], "context": ["b"]}).encode())
    assert both == [{"input": "q", column: ["a"], "context": ["b"]}]


# --- metric functions


def verdict_with_reason(turn: oa.Turn) -> oa.Result:
    return oa.Result(turn.output == "Lima", explanation="compared")


def verdict_of_numpy(turn: oa.Turn) -> oa.Result:
    return oa.Result(np.bool_(turn.output == "Lima"))


async def coroutine(turn: oa.Turn) -> bool:
    await asyncio.sleep(0)
    return turn.output == "Lima"


async def coroutine_with_reason(turn: oa.Turn) -> oa.Result:
    return oa.Result(turn.output == "Lima", explanation="compared")


async def leaves(turn: oa.Turn) -> bool:
    raise SystemExit(3)


def test_coroutine_that_exits_is_an_error_and_later_ones_run() -> None:
    """The event loop of all coroutines ended, so that the experiment and all later ones waited without end."""
    ((_, (score,)),) = oa.evaluate(lambda question: "Lima", [{"input": "q"}], [leaves], timeout=60).scored
    assert score.status == "error"
    (summary,) = oa.evaluate(lambda question: "Lima", [{"input": "q"}], [coroutine], timeout=60).summary()
    assert summary.pass_rate == 1.0


async def nested(turn: oa.Turn) -> bool:
    return oa.evaluate(coroutine_task, [{"input": "Lima"}], [coroutine]).summary()[0].pass_rate == 1.0


async def nested_twice(turn: oa.Turn) -> bool:
    return oa.evaluate(lambda question: "Lima", [{"input": "q"}], [nested]).summary()[0].pass_rate == 1.0


async def scored_in_place(turn: oa.Turn) -> bool:
    return oa.score_turns([turn], [coroutine])[0][1][0].passed is True


async def coroutine_task(question: str) -> str:
    return question


@pytest.mark.parametrize("metric", [nested, nested_twice, scored_in_place])
@pytest.mark.parametrize("task", [lambda question: "Lima", coroutine_task])
def test_coroutine_can_run_an_experiment_with_coroutines(metric: Any, task: Any) -> None:
    """deepeval 2952: a metric that blocked the event loop waited without end for another coroutine."""
    (summary,) = oa.evaluate(task, [{"input": "Lima"}], [metric], timeout=60).summary()
    assert summary.pass_rate == 1.0


@pytest.mark.parametrize("missing", [pd.NA, pd.NaT])
def test_missing_value_of_pandas_is_not_applicable(missing: Any) -> None:
    def given(turn: oa.Turn) -> Any:
        return missing

    ((_, (score,)),) = oa.evaluate(lambda question: "a", [{"input": "q"}], [given]).scored
    assert (score.status, score.detail) == ("skipped", {"reason": "not_applicable"})


@pytest.mark.parametrize("function", [verdict_with_reason, verdict_of_numpy, coroutine, coroutine_with_reason])
@pytest.mark.parametrize(("answer", "rate"), [("Lima", 1.0), ("Quito", 0.0)])
def test_verdict_of_a_function_counts(function: Any, answer: str, rate: float) -> None:
    """phoenix 9746, langsmith-sdk 605, ag2 3190: coroutines weren't awaited, and verdicts with a reason were only values."""
    (summary,) = oa.evaluate(lambda question: answer, [{"input": "q"}], [function]).summary()
    assert (summary.pass_rate, summary.n) == (rate, 1)
    (summary,) = asyncio.run(oa.evaluate_async(lambda question: answer, [{"input": "q"}], [function])).summary()
    assert summary.pass_rate == rate


@pytest.mark.parametrize("result", [oa.Result(1.0), oa.Result(0), oa.Result(True, passed=False), oa.Result(None, label="calm")])
def test_other_results_are_unchanged(result: oa.Result) -> None:
    """A number isn't a verdict, and ``passed`` overrules the value."""

    def given(turn: oa.Turn) -> oa.Result:
        return result

    ((_, (score,)),) = oa.evaluate(lambda question: "a", [{"input": "q"}], [given]).scored
    assert (score.passed, score.label) == (result.passed, result.label or {None: None, False: "fail"}[result.passed])


# --- numbers


@pytest.mark.parametrize(
    ("output", "number"),
    [
        (r"So \boxed{8,000}.", 8000), (r"The answer is \boxed{\$9{,}500}.", 9500), (r"\boxed{10\,000}", 10000), (r"1{,}234{,}567.5", 1234567.5),
        ("about 3.0 × 10^8 m/s", 3e8), (r"$3 \times 10^{8}$", 3e8), ("1.6·10⁻¹⁹ C", 1.6e-19), ("2*10**3", 2000), ("3.0 × 10^−8", 3e-8),
        ("5 x 10 boxes", 10), ("2 * 10 = 20", 20), ("10^8", 8), ("x² = 9", 9), ("5 m² cost 20", 20), ("{1,2,3}", 3), ("{1},{500}", 500),
        (r"1\, 2", 2), ("4 × 100", 100), ("the 10² rule", 10), (r"a scale of 1\:500", 500), (r"from 1\;200\;300", 300), ("12 × 10^3.5", 3.5),
    ],
)  # fmt: skip
def test_number_in_latex_and_powers(output: str, number: float) -> None:
    """opencompass 2647, AISBench 359, moodle-qtype_stack 498: ``9{,}500`` was 500, and ``3 × 10^8`` was 8."""
    assert score_of("code_equals_number", {"value": number, "extract": "last"}, output=output).passed is True


def grounded(output: str, result: Any) -> float | None:
    return score_of(
        "code_ungrounded_numbers", output=output, tool_calls=[{"name": "get", "arguments": {}, "result": result}]
    ).value


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("It costs $19.99.", {"amount": 1999, "currency": "usd"}), ("Refund: 45.50 EUR.", {"refund": {"amount": 4550}}), ("EUR 45.50", {"amount": 4550}),
        ("It costs €10.00.", {"amount": {"currency": "EUR", "value": 1000}}), ("It costs $19.99.", "unitAmount=1999"), ("It is 1.5 × 10^11 m.", {"distance": 150000000000}),
        ("Das macht 1.234,56 €.", {"total_cents": 123456}), ("It is £0.99.", {"amount": 99}), ("That is $20.00.", {"unit_amount": 2000}),
        ("p = 2.3e-05", {"p": 2.3e-05}), ("The mass is 1.5e-4 kg.", {"mass": 0.00015}), ("It is 6.02 × 10^23.", {"n": 6.02e23}), ("It is 0.00015.", {"m": "1.5e-4"}),
    ],
)  # fmt: skip
def test_amount_in_cents_and_power_of_ten_are_given(output: str, result: Any) -> None:
    """langwatch 7287, tool-eval-bench 100, 117: amounts that APIs return in cents, and numbers with an exponent."""
    assert grounded(output, result) == 1.0


@pytest.mark.parametrize(
    ("output", "result"),
    [
        ("It costs $20.24.", {"year": 2024, "price": 18.5}), ("It costs $20.24.", "A report of 2024."), ("You paid $5.00.", {"status": 500}),
        ("The BMI is 24.50, BMI 24.50.", {"kcal": 2450}), ("It costs $20.24.", {"price_date": "2024-01-02"}), ("It costs $19.99 million.", {"amount": 1999}),
        ("It costs $19.98.", {"amount": 1999}), ("It costs $1,999.99.", {"amount": 1999}), ("The rating is 4.55.", {"reviews": 455}),
        ("It weighs 45.50 kg.", {"n": 4550}), ("It costs $455.00.", {"n": 4550}), ("p = 2.3e-06", {"p": 2.3e-05}), ("It is 6.02 × 10^22.", {"n": 6.02e23}),
    ],
)  # fmt: skip
def test_other_amounts_are_not_given(output: str, result: Any) -> None:
    """The opposites: other digits, and numbers that aren't money."""
    assert grounded(output, result) != 1.0


def test_finding_contains_the_whole_number() -> None:
    calls = [{"name": "get", "arguments": {}, "result": {"p": 2.3e-05}}]
    for output, texts in {"p = 2.3e-06": ["2.3e-06"], "p = 4.5 × 10^12": ["4.5 × 10^12"], "p = 2.3e-05": []}.items():
        detail = score_of("code_ungrounded_numbers", output=output, tool_calls=calls).detail or {}
        found = [(output[one["start"] : one["end"]], one["text"]) for one in detail.get("findings", [])]
        assert found == [(text, text) for text in texts]


# --- reports


JOINED = ["نمی‌دانم", "👩‍👩‍👧", "❤️‍🔥", "क्‍ष", "ශ්‍රී", "🐻‍❄️", "👩🏽‍💻", "🙂‍↔️"]
APART = ["a\u200db", "pass\u200cword", "نمی\u200c", "ب\u200c\u200cب", "а\u200cб", "a\u200bb", "x\u202ey"]
APART += [
    "密\u200d码",
    "비\u200d밀",
    "ế\u200dạ",
    "Ｐ\u200dＡ",
    "𝐩\u200d𝐚",
    "ა\u200dბ",
    "ﬁ\u200dﬂ",
    "👩\u200c👩",
    "─\u200d─",
    "ب\u202eب",
    "ب\u200bب",
    "👩\u200da",
]


@pytest.mark.parametrize("form", ["table", "markdown", "html", "junit"])
def test_report_keeps_the_joiners_of_a_script(form: str, tmp_path: Path) -> None:
    """OmniRoute 12186, defuddle 103: Persian words and emoji were broken, because joiners are invisible."""
    data, report, config = tmp_path / "cases.jsonl", tmp_path / "report", tmp_path / "config.yaml"
    data.write_text(json.dumps({"input": "q", "output": " ".join([*JOINED, "a\u200db"]), "ground_truth": "x"}))
    config.write_text("metrics: [{code_equals_ground_truth: {}, policy: gate}]")
    main(["experiment", "recorded", str(data), "--config", str(config), "--format", form, "--out", str(report)])
    text = report.read_text(encoding="utf-8")
    assert [word for word in JOINED if word not in text] == []


def test_terminal_shows_joiners_only_where_they_join() -> None:
    """The opposites: joiners that hide in Latin words, or that are doubled, are shown."""
    assert [word for word in JOINED if escaped(word) != word] == []
    assert [word for word in APART if escaped(word) == word] == []


# --- embeddings


class Words:
    """Embedder whose vectors have one dimension per first letter."""

    def embed(self, texts: Sequence[str]) -> list[Any]:
        return [np.eye(26)[ord(text.lower()[0]) - 97 if text[:1].isalpha() else 25] for text in texts]


@pytest.mark.parametrize(
    ("truth", "value"),
    [(["banana", "avocado"], 1.0), (["banana", "cherry"], 0.0), ("avocado", 1.0), ("banana", 0.0), (["avocado"], 1.0), ([{"a": 1}], 0.0), ([1, 2], 0.0)],
)  # fmt: skip
def test_similarity_to_the_best_of_several_truths(truth: Any, value: float) -> None:
    """lm-evaluation-harness 1303: the target is a list of accepted answers."""
    turn = oa.Turn.from_dict({"turn_id": "t", "output": "apple", "ground_truth": truth})
    assert oa.get_metric("embed_answer_similarity").evaluate(turn, embedder=Words()).value == value
