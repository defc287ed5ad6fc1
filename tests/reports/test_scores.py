"""Public reports on scores of tools, detectors and files of scores, rebuilt in our own words. Each docstring names the reports."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.main import main
from otel_agenteval.config import yaml
from otel_agenteval.detectors.texts import with_plain_apostrophes
from otel_agenteval.report.compare import compare
from otel_agenteval.report.run import Run


def scored(metric: str, output: str = "Done.", *, facts: dict[str, Any] | None = None, **params: Any) -> oa.Score:
    """Return the score of one turn."""
    turn = oa.Turn.from_dict({"turn_id": "t", "input": "q", "output": output, **(facts or {})})
    ((_, (score,)),) = oa.score_turns([turn], [{metric: params}])
    return score


# --- tool calls

TRANSFER = {"name": "transfer", "arguments": {"amount": 10, "to": "bob"}}


@pytest.mark.parametrize(
    ("calls", "params", "reason"),
    [
        ([{"amount": 9, "to": "bob"}], {}, "transfer has other arguments: amount"),
        ([{"amount": 9, "to": "bob"}], {"exact_match": True}, "transfer has other arguments: amount"),
        ([{"amount": 9, "to": "bob"}], {"ordered": True}, "transfer has other arguments: amount"),
        ([{"to": "bob", "memo": "x"}], {}, "transfer has other arguments: amount, memo"),
        ([{}], {}, "transfer has other arguments: amount, to"),
        ([{"amount": 1, "to": "eve"}, {"amount": 10, "to": "eve"}], {}, "transfer has other arguments: to"),
        ([], {}, "called none"),
    ],
)
def test_explanation_names_the_arguments_that_differ(calls: list[dict[str, Any]], params: dict[str, Any], reason: str) -> None:
    """agentevals 66: a failed comparison doesn't say what differs, here "expected transfer; called transfer"."""
    facts = {"tool_calls": [{"name": "transfer", "arguments": arguments} for arguments in calls]}
    score = scored("code_tool_correctness", facts=facts, expected=[TRANSFER], check_arguments=True, **params)
    assert str(score.explanation).endswith(reason)


def test_explanation_names_no_arguments_that_are_equal() -> None:
    """agentevals 66, for correct arguments in another order, and without a comparison of arguments."""
    for expected, params in (([TRANSFER, "log"], {"check_arguments": True}), ([{**TRANSFER, "arguments": {"x": 1}}, "log"], {})):
        score = scored("code_tool_correctness", facts={"tool_calls": [TRANSFER]}, expected=expected, **params)
        assert score.explanation == "expected transfer, log; called transfer"


@pytest.mark.parametrize(
    ("result", "failed"),
    [
        ({"success": False, "message": "quota exceeded"}, True),
        ('{"status": "error", "message": "no such table"}', True),
        ({"ok": False, "error": "channel_not_found"}, True),
        ({"ok": False, "code": 429}, True),
        ({"isError": False, "content": []}, False),
        ({"error": None, "text": "page"}, False),  # hermes-agent 91233
        ({"status": "dispatched", "code": 202}, False),
        ({"status": "error", "jobs": [3]}, False),
        ({"success": False}, False),
        ({"success": True, "message": "Error logs deleted"}, False),
        ("Error handling: wrap the call", False),  # hive-mind 887
        # n8n 1200, apollo-mcp-server 96
        ({"errors": [{"message": "Unknown field", "locations": [{"line": 2, "column": 5}]}]}, True),
        ('{"data": null, "errors": [{"message": "timeout"}]}', True),
        ({"errors": [{"message": "no access", "extensions": {"code": "FORBIDDEN"}}], "data": None}, True),
        ({"data": {"user": None, "rows": 3}, "errors": [{"message": "no access", "path": ["user"]}]}, False),
        ({"data": None, "errors": []}, False),
        ({"errors": [{"message": "missing semicolon", "line": 3}], "file": "a.js"}, False),
        ({"errors": ["line 3: missing semicolon"]}, False),
    ],
)
def test_result_that_only_describes_a_failure_is_one(result: Any, failed: bool) -> None:
    """hermes-agent 5516, 91233, Vibe-Trading 601, hive-mind 887, n8n 1200: a tool that answers with a failure was successful."""
    calls = [{"name": "t", "arguments": {}, "result": result}]
    assert scored("code_tool_success", facts={"tool_calls": calls}).value == (0.0 if failed else 1.0)


SCHEMAS: list[tuple[dict[str, Any], dict[str, Any], float]] = [
    ({"s": {"type": "string", "nullable": True}}, {"s": None}, 1.0),
    ({"s": {"type": "string", "nullable": True}}, {"s": 3}, 0.0),
    ({"s": {"const": {"type": "STRING"}}}, {"s": {"type": "STRING"}}, 1.0),
    ({"s": {"type": "string", "nullable": False}}, {"s": None}, 0.0),
    ({"s": {"type": "STRING", "enum": ["a"], "nullable": True}}, {"s": None}, 1.0),
    ({"s": {"type": "STRING", "enum": ["a"], "nullable": True}}, {"s": "b"}, 0.0),
    ({"n": {"type": "INTEGER"}}, {"n": "3"}, 0.0),
    ({"n": {"type": "ARRAY", "items": {"type": "INTEGER"}}}, {"n": [3, None]}, 0.0),
    ({"n": {"type": "ARRAY", "items": {"type": "INTEGER", "nullable": True}}}, {"n": [3, None]}, 1.0),
    ({"type": {"type": "STRING"}, "nullable": {"type": "BOOLEAN"}}, {"type": "STRING", "nullable": True}, 1.0),
    ({"n": {"type": "integer"}}, {"n": "42"}, 0.0),  # hermes-agent 5265: text isn't a number
]


@pytest.mark.parametrize(("properties", "arguments", "value"), SCHEMAS)
@pytest.mark.parametrize("kind", ["object", "OBJECT"])
def test_schemas_of_gemini_are_read(properties: dict[str, Any], arguments: dict[str, Any], value: float, kind: str) -> None:
    """litellm (Go) 9, smolagents 2496: ``nullable`` refused null, and types in upper case accepted everything."""
    schema = {"type": kind, "properties": properties}
    tools = {"tool_definitions": [{"name": "t", "parameters": schema}], "tool_calls": [{"name": "t", "arguments": arguments}]}
    assert scored("code_tool_schema_validity", facts=tools).value == value
    assert scored("code_is_json", json.dumps(arguments), schema=schema).value == value
    assert scored("code_schema_conformance", json.dumps(arguments), schema=json.dumps(schema)).value == value


# --- detectors


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("iban gb57bukb20201578341296", True),
        ("Please transfer it to de44500105178394620157 today.", True),
        ("it69 x030 6909 6061 0000 0063 417 is the account", True),
        ("pay nl64 abna 0417 1643 01 from my account", True),
        ("IBAN DE44 5001 0517 8394 6201 57 COBADEFF", True),  # presidio 806: capitals follow
        ("Use AB12 from DE44 5001 0517 8394 6201 57", True),  # a code and a word before the number
        ("iban gb57bukb20201578341297", False),
        ("gB57bUkB20201578341296", False),
        ("span de3f5a01e7b2c4d6f8091a", False),
    ],
)
def test_iban_in_lower_case_is_found(text: str, found: bool) -> None:
    """openhuman 4813, python-validators 471, presidio 806: a bank account in lower case isn't personal data."""
    assert ("iban" in scored("code_pii_leakage", text).detail["types"]) is found


# --- files


@pytest.mark.parametrize("text", ["00544", "010", "-07", "00", "007.5", "08:30", "0x1F", "off"])
def test_leading_zeros_in_yaml_stay(text: str, tmp_path: Path) -> None:
    """home-assistant/core 12787, WireViz 213, js-yaml 601: a ZIP code or id in YAML loses its zero."""
    Path(tmp_path, "c.yaml").write_text(f"- case_id: {text}\n  input: {text}\n  ground_truth: {text}\n")
    result = oa.evaluate(str, tmp_path / "c.yaml", ["code_equals_ground_truth"])
    assert [(trial.case_id, trial.scored[0][0].input) for trial in result.trials] == [(text, text)]
    assert result.summary()[0].passed == 1


def test_digits_in_yaml_written_for_other_readers() -> None:
    """js-yaml 601, for what we write, and for an explicit tag."""
    texts = ["089", "09e1", "10", "a1"]
    written = yaml.dump(texts)
    assert written.split() == ["-", "'089'", "-", "'09e1'", "-", "'10'", "-", "a1"]
    assert yaml.load(written + "- !!int 010\n", "", {})[0] == [*texts, 10]


def test_numbers_in_yaml_stay_numbers(tmp_path: Path) -> None:
    """js-yaml 601, for values without a leading zero."""
    Path(tmp_path, "c.yaml").write_text(
        "- {input: q, metrics: [{code_word_count: {max: 0}}, {code_text_f1: {threshold: 0.5}}]}\n"
    )
    assert len(oa.evaluate(str, tmp_path / "c.yaml", ["code_empty_answer"]).scored[0][1]) == 3


def row(number: int, passed: bool, **more: Any) -> dict[str, Any]:
    kept = {"status": "ok", "kind": "code", "unit": "1", "direction": "up", "type": "boolean", "version": "1"}
    return {"turn_id": f"t{number}", "metric": "code_contains", "value": float(passed), "passed": passed, **kept, **more}


def run_of(rows: list[dict[str, Any]], path: Path) -> Run:
    path.write_text("".join(json.dumps(one) + "\n" for one in rows))
    return Run.read(str(path))


OLD, NEW = [row(number, False, revision=1) for number in range(9)], [row(number, True, revision=2) for number in range(9)]


@pytest.mark.parametrize(
    "rows",
    [
        [*OLD, *NEW],
        [*NEW, *OLD],
        [*(row(number, False) for number in range(9)), *(row(number, True) for number in range(9))],
        [*OLD, *({**one, "turn_id": f"n{one['turn_id']}", "supersedes": one["turn_id"]} for one in NEW)],
    ],
    ids=["later revisions", "earlier revisions last", "scored again", "other turns replace them"],
)
def test_replaced_scores_in_a_file_do_not_count(rows: list[dict[str, Any]], tmp_path: Path) -> None:
    """browseruse-agent-bench 93, agentv 1110, verifiers 1564: a turn that was scored again counted twice."""
    run = run_of(rows, tmp_path / "s.jsonl")
    assert [one.passed for one in run.rows] == [True] * 9
    assert len(run.turns) == 9


def test_score_that_the_newer_revision_lacks_does_not_count(tmp_path: Path) -> None:
    """browseruse-agent-bench 93, for a metric that was skipped the second time."""
    run = run_of([row(1, False), {**row(1, False), "metric": "code_equals"}, row(1, True, revision=2)], tmp_path / "s.jsonl")
    assert [(one.series.label, one.passed) for one in run.rows] == [("code_contains", True)]


def test_feedback_of_several_users_counts(tmp_path: Path) -> None:
    """browseruse-agent-bench 93, for scores that don't replace each other."""
    run = run_of([row(1, passed, metric="code_user_feedback") for passed in (True, False)], tmp_path / "s.jsonl")
    assert [one.passed for one in run.rows] == [True, False]


def test_labels_and_baselines_use_the_newest_scores(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """browseruse-agent-bench 93, in the commands."""
    path, labels = tmp_path / "s.jsonl", tmp_path / "l.jsonl"
    before = run_of([*OLD, *NEW], path)
    labels.write_text("".join(json.dumps({"turn_id": one["turn_id"], "label": "pass"}) + "\n" for one in NEW))
    assert main(["calibrate", str(labels), "--scores", str(path), "--format", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["confusion"] == {"found": 0, "missed": 0, "alarms": 0, "passed": 9}
    (change,) = compare(before, run_of(NEW, tmp_path / "n.jsonl"), "s.jsonl").changes
    assert (change.before, change.after, change.counts) == (1.0, 1.0, (9, 9))


# --- metrics of cases

CHECKS: list[dict[str, Any]] = [{"type": "equals", "value": "never"}]


def conversation_of(**more: Any) -> list[dict[str, Any]]:
    return [{"turns": [{"input": "a", **more}, {"input": "b"}]}]


@pytest.mark.parametrize("column", ["metrics", "assert", "evaluators"])
def test_turn_of_a_conversation_has_metrics_of_its_own(column: str) -> None:
    """agentv 870, promptfoo 4321: checks under a name that isn't read are dropped, and the case passes."""
    for case in ([{"input": "a", column: CHECKS}], conversation_of(**{column: CHECKS})):
        summary = next(one for one in oa.evaluate(lambda text: "x", case, []).summary() if one.metric == "code_equals")
        assert (summary.passed, summary.judged) == (0, 1)


@pytest.mark.parametrize(
    ("column", "meant"),
    [("asserts", "assert"), ("assertions", "assert"), ("metric", "metrics"), ("evaluator", "evaluators")],
)
def test_misspelled_column_of_metrics_is_refused(column: str, meant: str) -> None:
    """agentv 870, e2a 823: a misspelled column of checks is ignored."""
    for case in ([{"input": "a", column: CHECKS}], conversation_of(**{column: CHECKS})):
        with pytest.raises(oa.ConfigError, match=rf"case 1: (turns\[0\]: )?{column}: unknown column.* Did you mean {meant}\?"):
            oa.evaluate(lambda text: "x", case, ["code_empty_answer"])


@pytest.mark.parametrize("value", ["exact", ["a", "b"], {"a": 1}, 3, [{"url": "a"}], [{"name": "cpu", "score": 1}]])
def test_own_column_with_a_similar_name_is_read(value: Any) -> None:
    """agentv 870, for a column of the user's own."""
    case = [{"input": "{{assertions}}", "assertions": value}]
    assert oa.evaluate(lambda text: "x", case, ["code_empty_answer"]).summary()[0].passed == 1


def test_turn_with_metrics_in_two_columns_is_refused() -> None:
    """agentv 870, with both names."""
    with pytest.raises(oa.ConfigError, match=r"turns\[0\]: must have only one of metrics, assert"):
        oa.evaluate(lambda text: "x", conversation_of(metrics=["code_empty_answer"], **{"assert": CHECKS}), [])


@pytest.mark.parametrize(
    "entry",
    [
        {"type": "not-contains", "value": "file://banned.txt"},
        {"type": "not-icontains-any", "value": ["secret", "file://banned.txt"]},
        {"type": "not-contains-any", "value": "{{list}}"},
        {"type": "llm-rubric", "value": "file://rubric.md"},
        {"promptfoo:not-contains": {"value": "file://banned.txt"}},
    ],
)
def test_file_in_a_value_is_refused(entry: dict[str, Any]) -> None:
    """promptfoo 606, 2692: the address of a file is compared as text, so an answer with a banned word passes."""
    case = {"input": "a", "assert": [entry], "list": "file://banned.txt"}
    with pytest.raises(oa.ConfigError, match=r"metrics\[0\]: file://\w+\.\w+: file paths aren't supported as values"):
        oa.evaluate(lambda text: "a banned word", [case], [])


def test_address_of_a_file_in_an_argument_of_a_tool_is_compared() -> None:
    """promptfoo 606, for a tool that reads a file."""
    value = {"name": "read", "args": {"uri": "file:///notes.md"}}
    case = {"input": "a", "assert": [{"type": "trajectory:tool-args-match", "value": value}]}
    assert oa.evaluate(lambda text: "x", [case], []).summary()[0].metric == "code_tool_argument_matches"


@pytest.mark.parametrize("kind", ["contains", "not-contains", "not-contains-any", "not-equals"])
def test_placeholder_without_a_column_is_refused(kind: str) -> None:
    """promptfoo 606, for a placeholder in a negated check."""
    with pytest.raises(oa.ConfigError, match=r"unknown column in \{\{"):
        oa.evaluate(lambda text: "a banned word", [{"input": "a", "assert": [{"type": kind, "value": "{{banned}}"}]}], [])


@pytest.mark.parametrize("lacking", [{}, {"banned": None}, {"value": "x"}, {"metrics": ["code_empty_answer"]}])
def test_placeholder_without_a_value_in_one_case_is_skipped(lacking: dict[str, Any]) -> None:
    """langfuse-workshop 30, phoenix 5240: a variable without a value gave a plausible score, and negated checks always passed."""
    cases = [{"input": "a", "banned": "rude"}, {"input": "b", **lacking}]
    result = oa.evaluate(lambda text: "a rude word", cases, [{"code_not_contains": {"value": "{{banned}}"}}])
    first, second = (scores[0] for _, scores in result.scored)
    assert (first.passed, second.status, second.detail["reason"]) == (False, "skipped", "missing:banned")


def test_placeholder_without_a_value_is_skipped_in_one_turn_or_own_metric() -> None:
    """langfuse-workshop 30, for turns and for a case's own metrics. Braces that name no column are compared."""
    turns = [{"input": "a", "banned": "rude"}, {"input": "b"}]
    for cases, metrics in (
        ([{"turns": turns}], [{"code_not_contains": {"value": "{{banned}}"}}]),
        ([{**turn, "metrics": [{"code_not_contains": {"value": "{{banned}}"}}]} for turn in turns], []),
    ):
        result = oa.evaluate(lambda text: "a rude word", cases, metrics)
        assert [score.status for _, scores in result.scored for score in scores] == ["ok", "skipped"]
    literal = oa.evaluate(lambda text: "Hi {{name}}", [*turns], [{"code_contains": {"value": "{{name}}"}}])
    assert literal.summary()[0].passed == 2


@pytest.mark.parametrize("value", ["file://", "See file://banned.txt"])
def test_text_with_the_address_of_a_file_is_compared(value: str) -> None:
    """promptfoo 606, for an answer that mustn't contain such an address."""
    case = {"input": "a", "assert": [{"type": "not-contains", "value": value}]}
    assert oa.evaluate(lambda text: f"{value}.", [case], []).summary()[0].passed == 0


@pytest.mark.parametrize(
    ("text", "passes"),
    [
        ("SELECT 1; -- the number of rows", True),
        ("SELECT 1; /* done */", True),
        ("SELECT 1; -- first\nSELECT 2;", True),
        ("-- only a comment", False),
        ("; -- nothing", False),
        ("SELECT 1; -- first\nand then a word", False),
    ],
)
def test_comment_behind_a_statement_is_sql(text: str, passes: bool) -> None:
    """altimate-code 991: a comment behind the semicolon makes a statement invalid."""
    assert scored("code_is_sql", text).passed is passes


# --- refusals


@pytest.mark.parametrize("apostrophe", ["'", "\u2019", "\u02bc", "\u00b4", "\u2032", "`"])
def test_apostrophe_of_a_refusal_can_be_any(apostrophe: str) -> None:
    """ai-scanner 144, hermes-agent 79337: accents, primes and backticks hid the refusal."""
    for text in ("I can't do that.", "I'm sorry, but I can't help you with the 2 accounts.", "Sorry, I won't write this."):
        output = text.replace("'", apostrophe)
        assert scored("code_refusal", output, method="answer").value == 1.0
        assert scored("code_refusal", output, method="phrases").value == 1.0


@pytest.mark.parametrize(
    "output", ["Run `make test` or `ls`, it can't hurt.", "The wall is 6\u2032 high and 3\u2032 wide.", "Le `g\u00e9n`."]
)
def test_other_backticks_and_primes_are_no_apostrophes(output: str) -> None:
    """ai-scanner 144, the opposite."""
    assert with_plain_apostrophes(output) == output
    assert scored("code_refusal", output, method="answer").value == 0.0


def test_place_of_a_refusal_stays() -> None:
    """ai-scanner 144: the finding quotes the answer's own characters."""
    (finding,) = scored("code_refusal", "Hello. I can\u00b4t do that.", method="answer").detail["findings"]
    assert (finding["start"], finding["end"]) == (7, 23)
