"""Public reports on metrics, datasets and references, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

import dataclasses
import json
import math
import unicodedata
import xml.etree.ElementTree as ET
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pydantic
import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.turn import ToolCall
from otel_agenteval.metrics.lib.code import code_blocks

EQUALS = ["code_equals_ground_truth"]


def scored(metric: str, output: Any = None, *, facts: dict[str, Any] | None = None, **params: Any) -> oa.Score:
    """Return the score of one turn."""
    turn = oa.Turn.from_dict({"turn_id": "t", "output": output, **(facts or {})})
    ((_, (score,)),) = oa.score_turns([turn], [{metric: params}])
    return score


def evaluated(output: Any, metric: Any = "code_equals_ground_truth", **case: Any) -> oa.Score:
    """Return the score of an experiment with one case."""
    ((_, (score,)),) = oa.evaluate(lambda question: output, [{"input": "q", **case}], [metric]).scored
    return score


# --- tasks and references


class Model(pydantic.BaseModel):
    ok: bool = True


class ModelWithText(Model):
    def __str__(self) -> str:
        return "an answer"


@dataclasses.dataclass
class Data:
    ok: bool = True


@dataclasses.dataclass
class Answer(Data):
    def __str__(self) -> str:
        return "an answer"


ANSWERS = [
    (True, True), (False, False), (np.bool_(True), True), (5.0, 5.0), (5.0, 5), (5, 5.0), (np.float64(5), 5), (0.0, 0), (0, 0),
    (1e21, 1e21), (("a", 1), ["a", 1]), (np.array([1, 2]), [1, 2]), (Model(), {"ok": True}), (Data(), {"ok": True}),
    ([Model()], [{"ok": True}]), ({"a": np.int64(3)}, {"a": 3}), (Answer(), "an answer"), (ModelWithText(), "an answer"), (ValueError("no"), "no"),
]  # fmt: skip


@pytest.mark.parametrize(("output", "wanted"), ANSWERS, ids=repr)
def test_answer_of_a_task_is_written_like_a_reference(output: Any, wanted: Any) -> None:
    """promptfoo 1352, agenta 2347: a task that returned False didn't match the expected False."""
    assert evaluated(output, ground_truth=wanted).passed is True
    assert evaluated("another", ground_truth=wanted).passed is False


def test_history_has_the_answers_as_text() -> None:
    """agenta 2347, for the history of a conversation."""
    seen: list[Any] = []

    def task(text: str, history: list[Any]) -> Any:
        seen.extend(message["content"] for message in history)
        return {"ok": True}

    oa.evaluate(task, [{"turns": [{"input": "a"}, {"input": "b"}]}], ["code_empty_answer"])
    assert seen == ["a", '{"ok":true}']


@pytest.mark.parametrize(
    "metric", ["code_equals_ground_truth", "code_json_equals", "code_text_f1", "code_levenshtein_similarity"]
)
def test_empty_text_is_no_reference_for_any_metric(metric: str) -> None:
    """langchain 7303: an empty answer was wrong where an empty text was expected."""
    assert evaluated("", metric, ground_truth="").status == "skipped"
    assert evaluated("", {"code_equals": {"value": ""}}).passed is True


@pytest.mark.parametrize("document", ["{}", "[]", '{"tags":[]}', '{"n":{},"e":[]}', "0", "false", '"x"'])
def test_equal_json_is_equal(document: str) -> None:
    """future-agi 1610, promptfoo 799: empty objects and lists weren't equal to themselves."""
    for wanted in (document, json.loads(document)):
        assert scored("code_json_equals", f" {document}\n", value=wanted).value == 1.0
    assert scored("code_json_equals", '{"b": 1}', value=json.loads(document)).value == 0.0


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA])
def test_missing_cell_is_no_reference(missing: Any) -> None:
    """mlflow 20420, 12269: missing values in a column, and an index with gaps."""
    frame = pd.DataFrame({"input": ["1", "2"], "ground_truth": [1, missing]}, index=[0.5, 7])
    assert [score.label for _, (score,) in oa.evaluate(str, frame, EQUALS).scored] == ["pass", None]


BLANK = ["", " ", "\n", None]


@pytest.mark.parametrize("blank", BLANK)
@pytest.mark.parametrize("metric", ["code_bleu", "promptfoo:bleu", "code_gleu", "code_text_f1"])
def test_blank_reference_is_missing(metric: str, blank: str | None) -> None:
    """promptfoo 10411, opik 8485: a blank reference scored 1e-7 or raised."""
    for references in ([blank], [blank, blank], []):
        assert evaluated("the cat sat on the mat", metric, ground_truth=references).status == "skipped"
    one, beside = (evaluated("the cat", metric, ground_truth=["the cat sat on the mat", *more]) for more in ([], [blank]))
    assert one.value == beside.value


@pytest.mark.parametrize("variant", ["rougeL", "rouge1", "rouge2", "rougeS"])
def test_text_with_repeated_words_is_equal_to_itself(variant: str) -> None:
    """promptfoo 10256, huggingface/evaluate 229: below 1 for repeated words; the best of several references counts."""
    text = "the cat sat on the mat the cat"
    assert scored("code_rouge", text, variant=variant, measure="f1", reference=["other words", text]).value == 1.0
    assert evaluated(text, "code_rouge", ground_truth="  ").value == 0.0


@pytest.mark.parametrize("metric", ["code_levenshtein_similarity", "code_content_similarity", "code_text_f1"])
def test_best_of_several_ground_truths_counts(metric: str) -> None:
    """huggingface/evaluate 229, for similarities of texts."""
    assert evaluated("Lima", metric, ground_truth=["The city of Lima", "Lima"]).value == 1.0
    assert evaluated("Lima", metric, ground_truth=["Lima", "Oslo, Norway"]).value == 1.0


def test_composed_and_decomposed_letters_are_one_word() -> None:
    """deepeval 3096."""
    assert scored("code_text_f1", "café Zürich", ground_truth=unicodedata.normalize("NFD", "café Zürich")).value == 1.0


# --- assertions


@pytest.mark.parametrize("blank", ["", " ", "\t\n"])
def test_blank_entry_of_a_list_matches_nothing(blank: str) -> None:
    """future-agi 1610: a keyword list with a blank entry passed every text, and its negation none."""
    assert scored("code_contains_any", "unrelated  text\n", value=["foo", blank]).passed is False
    assert scored("promptfoo:not-contains-any", "unrelated  text", value=["foo", blank]).passed is True
    assert scored("code_contains_all", "a foo", value=[blank, "foo"]).passed is True
    assert scored("code_keyword_coverage", "unrelated text", keywords=["foo", blank]).value == 0.0
    assert scored("code_contains_any", "text", value=[blank]).vacuous
    assert scored("code_contains_any", "text", value=f"foo,{blank},").passed is False


@pytest.mark.parametrize(
    ("name", "value", "output", "passed"),
    [
        ("not-equals", {"a": 1}, "plain text", True),  # promptfoo 9626
        ("not-equals", {"a": 1}, '{"a": 1.0}', False),
        ("not-contains-json", {"required": ["name"]}, 'see {"name": "Ann"}', False),  # promptfoo 8069
        ("not-contains-json", {"required": ["name"]}, 'see {"id": 3}', True),
        ("not-contains-json", {"required": ["name"]}, 'see {"id": 3} and {"name": "Ann"}', False),
        ("contains-all", '"hello, world",foo', "hello, world and foo", True),  # promptfoo 8041
        ("icontains-any", '"hello, world",zzz', "hello world", False),
    ],
)
def test_assertion_of_promptfoo(name: str, value: Any, output: str, passed: bool) -> None:
    """promptfoo 9626, 8069, 8041: negations and quoted lists."""
    key = "schema" if "json" in name else "value"
    assert scored(f"promptfoo:{name}", output, **{key: value}).passed is passed


@pytest.mark.parametrize(
    ("params", "value", "passed"),
    [
        ({"metric": {"code_text_f1": {"threshold": 0.5}}}, 1 / 3, False),
        ({"metric": {"code_text_f1": {"threshold": 0.7}}}, 1 / 3, True),
        ({"metric": "code_text_f1"}, 1 / 3, False),
        ({"metric": "code_text_f1", "threshold": 0.3}, 1 / 3, True),
        ({"metric": "code_content_similarity"}, 0.25, None),
    ],
)
def test_negated_number_has_the_opposite_verdict(params: dict[str, Any], value: float, passed: bool | None) -> None:
    """promptfoo 10120: the negation of a graded metric kept its score, or could not fail."""
    turn = oa.Turn.from_dict({"output": "a b c", "ground_truth": "a b d"})
    score = oa.get_metric("code_not", **params).evaluate(turn)
    assert score.value == pytest.approx(value)
    assert score.passed is passed


@pytest.mark.parametrize(
    ("metric", "facts", "passed"),
    [
        ("code_recall_at_k", {"retrieved_ids": ["b"], "relevant_ids": ["a"]}, True),
        ("code_tool_correctness", {"tool_calls": [], "references": {"expected_tools": ["a"]}}, True),
        ("promptfoo:cost", {"cost_usd": 0.01}, False),
        ("promptfoo:cost", {"cost_usd": 0.0}, True),
        ("promptfoo:latency", {"duration_s": 1.5}, False),
        ("promptfoo:latency", {"duration_s": 0.0}, True),  # promptfoo 1668
    ],
)
def test_threshold_of_zero_is_a_threshold(metric: str, facts: dict[str, Any], passed: bool) -> None:
    """promptfoo 9736, 1668: a threshold or a latency of 0 counted as unset."""
    assert scored(metric, facts=facts, threshold=0).passed is passed


def test_value_equal_to_the_threshold_passes() -> None:
    """inspect_ai 1963, azure-ai-docs 393: also if the sum isn't exact."""
    assert scored("code_max_cost", facts={"cost_usd": 0.1 + 0.2}, max_cost_usd=0.3).passed is True
    calls = {"tool_calls": [{"name": name} for name in "axyz"], "references": {"expected_tools": ["a"]}}
    assert scored("code_tool_selection", facts=calls, threshold=0.7).passed is True


@pytest.mark.parametrize("path", ["staus", "$.staus", "$$$[[[bogus", "items[5].name", "status.x"])
def test_path_that_leads_nowhere_fails(path: str) -> None:
    """future-agi 1610: a misspelled path passed."""
    output = '{"status": "ok", "items": [{"name": "a"}]}'
    for wanted in ("error", None):
        assert scored("code_field_accuracy", output, field=path, expected=wanted).passed is False
    assert scored("code_array_length", output, path=path, min=0).passed is False


@pytest.mark.parametrize(
    ("output", "number"),
    [
        # inspect_ai 3916, 4744: signs, decimals and punctuation
        ("The answer is 25", 25), ("the result is -5 exactly", -5), ("33.14", 33.14), ("(42).", 42), ("[42]", 42), ("**42**!", 42),
        ("The answer is 72, in total, so", 72), ("20%", 20), ("Of 100 people, 20%", 20),  # helm 4337, inspect_ai 1622
        ("$29.00", 29), ("#### 1,234.50", 1234.5), ("(3.14)", 3.14),  # lm-evaluation-harness 3254, inspect_ai 4636
        ("\u22125", -5), ("it is \u22125.5 today", -5.5), ("\uff0d5", -5), ("5\u201310", 10), ("x = -5", -5),
        ("a change of -$29", -29), ("lost \u2212€1,200 today", -1200), ("p = .05", 0.05), ("about -.5", -0.5),
        ("1\xa0234", 1234), ("it costs 1\u202f234\u202f567 €", 1234567), ("CHF 1'234.50", 1234.5), ("1\u2019234", 1234),
    ],
)  # fmt: skip
def test_number_in_a_text(output: str, number: float) -> None:
    """inspect_ai 3916, 4744, 4636, helm 4337, lm-evaluation-harness 3254: a sign, digit or suffix was lost."""
    assert scored("code_equals_number", output, value=number, extract="last").passed is True
    assert scored("code_equals_number", output, value=-number, extract="last").passed is False


@pytest.mark.parametrize("output", ["<42", "The answer is < 42.", "x <= 42", "at least: >=42", "It is ≥ $42", "x > 42", "≤42"])
def test_limit_is_not_equal_to_its_number(output: str) -> None:
    """inspect_ai 4744 (review): a range such as ``<42`` counted as the exact answer."""
    assert scored("code_equals_number", output, value=42).passed is False
    assert scored("code_less_than", output, value=50).passed is True


@pytest.mark.parametrize(
    "output", ["<answer>42</answer>", "> 42", "So:\n> 42", "=> 42", "x -> 42", "<42>", "→ 42", "x = 42", "~42", "42 < x"]
)
def test_tag_arrow_or_quote_is_no_limit(output: str) -> None:
    """inspect_ai 4744 (review), for other uses of the signs."""
    assert scored("code_equals_number", output, value=42).passed is True


HYPHENS = [
    ("It is COVID-19.", "only", 19), ("Our top-10 list", "only", 10), ("Read pages 3-5.", "last", 5), ("2026-03-05", "last", 5),
    ("Boeing 737-800", "last", 800), ("GPT-4", "first", 4), ("pre-2020", "only", 2020), ("$5-$10", "last", 10),
    ("10%-20%", "last", 20), ("(555)-1234", "last", 1234), ("\ucf54\ub85c\ub098-19", "only", 19),
    # signs
    ("(\u22125)", "only", -5), ("x=-5", "only", -5), ("5 - 3", "last", 3), ("_-5_", "only", -5), ("it is $-5", "only", -5),
    ("[-1,-2]", "last", -2), ("\u6e29\u5ea6\u662f-5\u5ea6", "only", -5), ("3--5", "last", -5), ("it is 1e-5", "only", 1e-5),
]  # fmt: skip


@pytest.mark.parametrize(("output", "extract", "number"), HYPHENS)
def test_hyphen_after_a_letter_or_digit_is_no_sign(output: str, extract: str, number: float) -> None:
    """hayaku 244, portia 40, Tplyr 193: a hyphen in a name, range or date made the number negative."""
    assert scored("code_equals_number", output, value=number, extract=extract).passed is True


NOTATIONS = [
    ("0,125", "only", 0.125), ("0,500", "only", 0.5), ("00,125", "only", 0.125), ("-0,750", "only", -0.75), ("4,2 Grad", "first", 4.2),
    ("4,2 Grad", "last", 4.2), ("1.234,56 \u20ac", "last", 1234.56), ("\u20b912,34,567", "last", 1234567),
    ("in 2024,12 people", "last", 12), ("ports 8080,8443", "last", 8443), ("[Answer]-5", "last", -5), ("OID 1.100.200", "last", 200),
    ("2\u202f602,5 km", "only", 2602.5), ("CHF 1\u2019234,50", "only", 1234.5),
    # ambiguous, and lists
    ("1,234", "only", 1234), ("1.234", "only", 1.234), ("(4,2)", "first", 4), ("[1,2]", "last", 2), ("(0,125)", "last", 125),
    ("1,2,3", "last", 3), ("0.5,1.5", "last", 1.5), ("v3.12.1", "first", 3.12), ("on 24.12.2026", "last", 2026), ("in 2026, 5", "last", 5),
    ("5'10", "last", 10), ("(1999,99)", "last", 99), ("12,34,56", "last", 56), ("52.5200,13.4050", "last", 13.405),
    # decimal commas after several digits
    ("123,45", "only", 123.45), ("1000,00", "only", 1000), ("1999,99 \u20ac", "only", 1999.99), ("12345,67", "only", 12345.67),
    ("Der Preis ist 1999,99 \u20ac.", "only", 1999.99), ("-1234,567", "only", -1234.567), ("12,3456", "only", 12.3456),
    ("8080,8443", "only", 8080.8443), ("EUR 2024,50", "only", 2024.5), ("123,456", "only", 123456),
]  # fmt: skip


@pytest.mark.parametrize(("output", "extract", "number"), NOTATIONS)
def test_number_in_another_notation(output: str, extract: str, number: float) -> None:
    """EvoSkill 55, sakai 344: a part of the number was compared, or ``0,125`` as 125."""
    assert scored("code_equals_number", output, value=number, extract=extract).passed is True


def test_configured_number_can_have_a_minus_sign() -> None:
    """inspect_ai 4636, for the configured number."""
    assert scored("code_equals_number", "-5", value="\u22125").passed is True
    assert scored("code_equals_number", "4.2", value="4,2").passed is True
    assert scored("code_equals_number", "1234.56", value="1234,56 \u20ac").passed is True


BIG, NEXT = 100000000000000000000001, 100000000000000000000002


@pytest.mark.parametrize("reference", [lambda number: {"wei": number}, lambda number: json.dumps({"wei": number})])
def test_integers_over_64_bits_keep_their_digits(reference: Any) -> None:
    """jsonlintpro 4 and 15, cudf-spark 15988, sirix 1003: numbers that share 16 digits were equal."""
    output, const = f'{{"wei":{BIG}}}', {"properties": {"wei": {"const": NEXT}}}
    for number, passed in ((BIG, True), (NEXT, False)):
        assert scored("code_json_equals", output, value=reference(number)).passed is passed
        assert scored("code_json_equals", f"[1,{output}]", value=[{"wei": number}, 1], ignore_list_order=True).passed is passed
        assert scored("code_equals", output, value={"wei": number}).passed is passed
        for expected in (number, str(number)):
            assert scored("code_field_accuracy", output, field="wei", expected=expected).passed is passed
        const["properties"]["wei"]["const"] = number
        assert scored("code_schema_conformance", output, schema=const).passed is passed
        assert scored("code_contains_json", f"see {output}", schema=const).passed is passed


@pytest.mark.parametrize(
    ("output", "value", "passed"),
    [
        ('{"a":1e23}', {"a": 10**23}, True),
        (f'{{"a":{10**23}}}', {"a": 1e23}, True),
        ('{"a":9007199254740993}', {"a": 9007199254740992.0}, False),
        ('{"a":18446744073709551615}', {"a": 2**64 - 1}, True),
        ('{"a":0.1234567890123456789012}', {"a": 0.1234567890123456789012}, True),
        ('["\\ud83d", 12345678901234567890123]', '["\\ud83d", 12345678901234567890123]', True),
    ],
)
def test_other_numbers_are_equal_as_before(output: str, value: Any, passed: bool) -> None:
    """jsonlintpro 4, the opposite: floats, 64 bits, and text that is repaired."""
    assert scored("code_json_equals", output, value=value).passed is passed


def test_turn_has_floats_for_integers_over_64_bits() -> None:
    """jsonlintpro 4, for the arguments of a call, because no outlet can write such integers."""
    facts = {"tool_calls": [{"name": "pay", "arguments": {"wei": BIG}}]}
    assert scored("code_tool_argument_matches", "x", facts=facts, tool="pay", argument="wei", expected=BIG).passed is True
    metric = {"code_json_equals": {"ignore_list_order": True}}
    assert evaluated(f"[1,{BIG}]", metric, ground_truth=[BIG, 1]).passed is True
    assert evaluated(f"[1,{BIG}]", metric, ground_truth=f"[{BIG},1]").passed is True
    assert evaluated(f"[1,{BIG}]", metric, ground_truth=f"[{NEXT},1]").passed is False


FENCE = "```"


@pytest.mark.parametrize(
    ("output", "blocks"),
    [
        (f"- {FENCE}py\n  if x:\n    y()\n  {FENCE}\n", ["if x:\n  y()\n"]),
        (f"1. {FENCE}py\n   x = 1\n   {FENCE}\n2. {FENCE}py\n   y = 2\n   {FENCE}", ["x = 1\n", "y = 2\n"]),
        (f"> {FENCE}py\n> if x:\n>   y()\n> {FENCE}\nDone.", ["if x:\n  y()\n"]),
        (f">> {FENCE}py\n>> >>> x\n>> {FENCE}", [">>> x\n"]),
        (f"> - {FENCE}py\n>   x = 1\n>   {FENCE}", ["x = 1\n"]),
        (f"> {FENCE}py\n> x = 1\nThe quotation ends.\n{FENCE}\ny = 2\n{FENCE}", ["x = 1\n", "y = 2\n"]),
        # contents of a block, and text
        (f"{FENCE}md\n- {FENCE}\n> {FENCE}\n{FENCE}", [f"- {FENCE}\n> {FENCE}\n"]),
        (f"{FENCE}\n> a quotation\n- an item\n{FENCE}", ["> a quotation\n- an item\n"]),
        (f"- {FENCE}inline{FENCE} code\n-{FENCE}\nnot a list", []),
    ],
)
def test_code_block_in_a_list_or_quotation(output: str, blocks: list[str]) -> None:
    """doccmd 838, smolagents 2652: a fence on the line of a list marker wasn't found."""
    assert [block.text for block in code_blocks(output)] == blocks


@pytest.mark.parametrize(
    ("output", "blocks"),
    [
        (f"def f():\n    return 1\n{FENCE}", ["def f():\n    return 1\n"]),
        (f"def f():\n    return 1\n{FENCE}\n\n", ["def f():\n    return 1\n"]),
        ("import os\n\n\nprint(os.name)\n~~~\n", ["import os\n\n\nprint(os.name)\n"]),
        (f"Use the function f.\n{FENCE}", []),
        (f"x = 1\n{FENCE}\n{FENCE}", []),
        (f"x = 1\n{FENCE}py\n", []),
        (f"x = 1\n{FENCE}\ny = 2\n", ["y = 2\n\n"]),
    ],
)
def test_prompt_can_open_the_code_block(output: str, blocks: list[str]) -> None:
    """lm-evaluation-harness 3710: a prompt ends with an opening fence, so the output only closes the block."""
    assert [block.text for block in code_blocks(output)] == blocks


# --- retrieval and tools


@pytest.mark.parametrize(
    ("retrieved", "relevant", "recall", "mrr"),
    [
        (["a", "a", "x"], ["a"], 1.0, 1.0),  # trulens 2746
        (["a", "a"], ["a", "b"], 0.5, 1.0),
        (["a"], ["a", "b", "c", "d"], 0.25, 1.0),  # mlflow 24553, haystack 12255
        (["x", "x", "z"], ["x_2"], 0.0, 0.0),  # mlflow 25965
        (["x", "y", "c", "a"], ["a", "b", "c"], 2 / 3, 1 / 3),  # haystack 7758
        ([], ["a"], 0.0, 0.0),  # ragas 583, spiceai 12277
        ([], [], None, None),
    ],
)
def test_retrieval(retrieved: list[str], relevant: list[str], recall: float | None, mrr: float | None) -> None:
    """trulens 2746, mlflow 24553 and 25965, haystack 12255 and 7758, ragas 583, spiceai 12277."""
    facts = {"retrieved_ids": retrieved, "relevant_ids": relevant}
    for metric, value in (("code_recall_at_k", recall), ("code_mrr", mrr)):
        assert scored(metric, facts=facts).value == (None if value is None else pytest.approx(value))


@pytest.mark.parametrize(
    ("called", "expected", "params", "value"),
    [
        ("aaa", "a", {}, 1.0),  # ragas 2079
        ("ab", "a", {"exact_match": True}, 0.0),  # ragas 1893
        ("adca", "abca", {"ordered": True}, 0.75),  # adk-python 1591
        ("ab", "ba", {"ordered": True}, 0.5),
    ],
)
def test_tool_calls(called: str, expected: str, params: dict[str, Any], value: float) -> None:
    """ragas 2079, 1893, adk-python 1591, 2757: repeated and further calls, order, and arguments that don't matter."""
    calls = [{"name": name, "arguments": {"token": number}} for number, name in enumerate(called)]
    wanted = [{"name": name, "arguments": {"token": "changes"}} for name in expected]
    facts = {"tool_calls": calls, "references": {"expected_tools": wanted}}
    assert scored("code_tool_correctness", facts=facts, **params).value == value


@pytest.mark.parametrize("cell", ["a;b", "a, b", "a|b", '"[""a"", ""b""]"', "\"['a', 'b']\""])
def test_cell_can_list_tools(cell: str, tmp_path: Path) -> None:
    """deepeval 3083: names with separators were one tool of that name, or refused without the place."""
    quoted = cell if cell[0] == '"' else f'"{cell}"'
    Path(tmp_path, "c.csv").write_text(f"input,expected_tools\nq,{quoted}\n")
    ((turn, _),) = oa.evaluate(str, tmp_path / "c.csv", ["code_empty_answer"]).scored
    turn.tool_calls = [ToolCall(name=name) for name in "ab"]
    assert [oa.get_metric(f"code_tool_{name}").evaluate(turn).value for name in ("correctness", "call_f1", "selection")] == [
        1.0
    ] * 3


# --- cases and reports


def test_case_id_must_be_unique(tmp_path: Path) -> None:
    """inspect_ai 972, sgl-eval 39: two cases with one id overwrote each other, or the error named no place."""
    Path(tmp_path, "c.jsonl").write_text('{"case_id": "a", "input": "1"}\n\n{"case_id": 7, "input": "2"}\n{"case_id": "7"}\n')
    path = str(tmp_path / "c.jsonl")
    with pytest.raises(ConfigError, match=r"c\.jsonl:4: duplicate case_id '7', already used in .*c\.jsonl:3"):
        oa.evaluate(str, path, EQUALS)
    with pytest.raises(ConfigError, match=r"c\.jsonl:4: .*c\.jsonl:3"):
        oa.score_turns([], EQUALS, config={"references": {"dataset": path}})
    (other,) = oa.evaluate(str, [{"input": "b"}], EQUALS).trials
    trials = oa.evaluate(str, [{"case_id": other.case_id, "input": "a"}, {"input": "b"}], EQUALS).trials
    assert [trial.case_id for trial in trials] == [other.case_id, f"{other.case_id}-2"]


def test_case_ids_of_a_float_column_are_whole_numbers() -> None:
    """letta-evals 256: ids changed on the way to the report."""
    frame = pd.DataFrame({"case_id": [7, 8, None], "input": ["a", "b", "c"]})
    assert [trial.case_id for trial in oa.evaluate(str, frame, ["code_empty_answer"]).trials[:2]] == ["7", "8"]


def test_cases_with_one_question_stay_apart(tmp_path: Path) -> None:
    """omni-skill 38: cases with equal texts and different expectations were merged."""
    cases = [{"case_id": truth, "input": "same", "ground_truth": truth} for truth in ("yes", "no")]
    assert oa.evaluate(lambda question: "yes", cases, EQUALS).summary()[0].mean == 0.5
    Path(tmp_path, "c.jsonl").write_text(
        "".join(json.dumps(case) + "\n" for case in [*cases, {"input": "q", "ground_truth": "yes"}])
    )
    given: list[dict[str, Any]] = [{"input": "same"}, {"input": "same", "references": {"case_id": "no"}}, {"input": "q"}]
    turns = [oa.Turn.from_dict({"turn_id": str(number), "output": "yes", **facts}) for number, facts in enumerate(given)]
    scores = oa.score_turns(turns, EQUALS, config={"references": {"dataset": str(tmp_path / "c.jsonl")}})
    assert [score.label for _, (score,) in scores] == [None, "fail", "pass"]


def test_case_without_a_score_is_neither_zero_nor_a_pass() -> None:
    """LightRAG 4040, azure-sdk-for-python 38367, promptfoo 10960: unscored cases changed the mean, or counted as passed."""

    def rate(turn: oa.Turn) -> float:
        return {"a": 0.8, "b": 0.4}.get(str(turn.input), math.nan)

    own, contains = oa.evaluate(
        str, [{"input": "a", "value": "a"}, {"input": "b"}, {"input": "c"}], [rate, "code_contains"]
    ).summary()
    assert (own.n, own.errors, own.mean) == (2, 1, 0.6000000000000001)
    assert (contains.passed, contains.judged, contains.skipped) == (1, 1, 2)


def test_separators_inside_texts_split_no_line(tmp_path: Path) -> None:
    """marin 8042, PyRIT 1479: U+2028 split a JSON line, and blank lines stopped the reading."""
    texts = ["a\u2028b", "c\u2029d", "e\x85f", "g\x0bh", "i\x1cj"]
    lines = [json.dumps({"input": text, "ground_truth": text}, ensure_ascii=False) for text in texts]
    Path(tmp_path, "c.jsonl").write_text("\n" + "\n\n  \n".join(lines) + "\r\n", encoding="utf-8", newline="")
    assert oa.evaluate(str, tmp_path / "c.jsonl", EQUALS).summary()[0].passed == len(texts)


def test_documents_come_back_from_a_file_as_they_were(tmp_path: Path) -> None:
    """deepeval 3299: documents with a separator inside were split."""
    documents = ["cat log | grep ERROR", "| Plan |\n| --- |\n| Pro |", "a, b; c"]
    pd.DataFrame([{"input": "q", "context": documents}]).to_csv(tmp_path / "c.csv", index=False)
    ((turn, _),) = oa.evaluate(str, tmp_path / "c.csv", ["code_empty_answer"]).scored
    assert turn.context == documents


def test_reports_name_what_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """promptfoo 1595, pydantic-ai 5244: a failed check of several texts didn't name the missing ones."""
    monkeypatch.chdir(tmp_path)
    Path("echo_app.py").write_text("def echo(q):\n    return q\n")
    case = {"input": "яблоки и груши", "metrics": [{"code_contains_all": {"value": ["яблоки", "сливы", "figs"]}}]}
    Path("cases.jsonl").write_text(json.dumps(case))
    Path("gate.yaml").write_text("metrics:\n  - code_contains_all: {}\n    policy: gate\n")
    kinds = ("junit", "markdown", "html")
    arguments = [
        "experiment",
        "echo_app:echo",
        "cases.jsonl",
        "--config",
        "gate.yaml",
        "--metrics",
        "code_contains_all",
        "--gate",
    ]
    for content in ([], ["--no-content"]):
        assert main([*arguments, *content, *(part for kind in kinds for part in ("--format", kind, "--out", kind))]) == 1
        assert [("missing сливы, figs" in Path(kind).read_text()) for kind in kinds] == [not content] * 3
    assert ET.parse("junit").getroot().get("failures") == "1"
