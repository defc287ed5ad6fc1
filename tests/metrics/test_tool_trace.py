from __future__ import annotations

from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa
from otel_agenteval.core.turn import ErrorInfo, SpanInfo, ToolCall


def call(name: str, **known: Any) -> dict[str, Any]:
    return {"name": name, **known}


def evaluate(
    metric: str, calls: list[dict[str, Any]] | None, references: dict[str, Any] | None = None, **params: Any
) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict({"tool_calls": calls, "references": references or {}}))


SUCCESS = [
    pytest.param([call("a"), call("b", error=True)], {}, 0.5, id="a call with a bare error failed"),
    pytest.param([call("a", error={"type": "timeout"})], {}, 0.0, id="a call with an error type failed"),
    pytest.param([call("a", permission_denied=True)], {}, 1.0, id="a declined call does not count by default"),
    pytest.param([call("a", permission_denied=True), call("b")], {"count_denied": True}, 0.5, id="a denied call can fail"),
    pytest.param([], {}, 1.0, id="no calls is 1"),
    pytest.param([], {"empty_value": 0.0}, 0.0, id="no calls is what empty_value says"),
]


def test_one_failure_without_repair_fails_on_request() -> None:
    broken = call("pay", arguments={"order": 7}, error={"type": "timeout"})
    fine, again = call("search", result="found"), call("pay", arguments={"order": 7}, result="paid")
    assert evaluate("code_tool_success", [broken, fine, fine, fine]).passed is True
    assert evaluate("code_tool_success", [broken, fine, fine, fine], repair_all=True).passed is False
    assert evaluate("code_tool_success", [broken, again], repair_all=True).passed is True
    assert evaluate("code_tool_success", [broken, again], repair_all=True, threshold=0.7).passed is False


@pytest.mark.parametrize(("calls", "params", "value"), SUCCESS)
def test_tool_success_scores(calls: list[dict[str, Any]], params: dict[str, Any], value: float) -> None:
    score = evaluate("code_tool_success", calls, **params)
    assert score.value == value
    assert score.passed is (value >= 0.7)
    assert score.vacuous is (score.detail["total"] == 0)


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ('{"isError": true}', 0.0),
        ({"error": "no such order"}, 0.0),
        ({"status": "error", "error": {"code": 404}}, 0.0),
        ("Error: connect ECONNREFUSED 10.0.0.7:5432", 0.0),
        ("Traceback (most recent call last):\n  File ...", 0.0),
        ({"error": None, "rows": []}, 1.0),
        ({"error": "rounding", "mean": 0.2}, 1.0),
        ("3 errors: see the log", 1.0),
        ("Terror: a history of the 1790s", 1.0),
    ],
    ids=str,
)
def test_a_result_can_report_a_failure(result: Any, value: float) -> None:
    assert evaluate("code_tool_success", [call("a", result=result)]).value == value


FAILED_QUERY = call("sql", arguments={"q": "select sum(a) from bills where y = 2026"}, error="timeout")


@pytest.mark.parametrize(
    ("later", "params", "passed"),
    [
        pytest.param(call("sql", arguments={"q": "select sum(a) from bills where y = 2026 limit 9"}, result="7"), {}, True, id="retry"),
        pytest.param(call("sql", arguments={"q": "show tables"}, result="t"), {}, False, id="another question"),
        pytest.param(call("csv", arguments={"q": "select sum(a) from bills"}, result="7"), {}, False, id="another tool"),
        pytest.param(call("sql", arguments={"q": "select sum(a) from bills"}, result=""), {}, False, id="nothing found"),
        pytest.param(
            call("sql", arguments={"q": "select sum(a) from bills"}, result="7"), {"threshold": 0.7}, False, id="own threshold"
        ),
    ],
)  # fmt: skip
def test_a_repaired_failure_does_not_fail_the_turn(later: dict[str, Any], params: dict[str, Any], passed: bool) -> None:
    score = evaluate("code_tool_success", [FAILED_QUERY, later], **params)
    assert (score.value, score.passed) == (0.5, passed)


def test_tool_success_names_the_calls_that_failed_by_type_before_message() -> None:
    errors = ({"type": "TimeoutError", "message": "it took\nlong"}, "x" * 999, True)
    detail = evaluate("code_tool_success", [*(call("a", error=error) for error in errors), call("b")]).detail
    assert (detail["total"], detail["successful"]) == (4, 1)
    assert detail["failed"] == [{"name": "a", "error": shown} for shown in ("TimeoutError", "x" * 200, "error")]


def test_no_calls_or_unknown_calls_have_no_success_and_no_efficiency() -> None:
    unknown = {"reason": "missing:tool_calls"}
    assert evaluate("code_tool_success", None).detail == unknown
    assert evaluate("code_tool_success", [], empty_value=None).detail == unknown
    assert evaluate("code_tool_efficiency", None).detail == unknown
    assert (evaluate("code_tool_efficiency", []).value, evaluate("code_tool_efficiency", []).vacuous) == (1.0, True)


def asks(arguments: Any) -> dict[str, Any]:
    return call("a", arguments=arguments)


BY_ARGUMENTS = {"duplicate_key": "name_args"}
EFFICIENCY = [
    pytest.param([call("a"), call("A")], {}, 1.0, id="names in another case are other names"),
    pytest.param([call(str(i)) for i in range(40)], {}, 0.5, id="calls never cost more than their half"),
    pytest.param([call("a", duration_s=20), call("b", duration_s=14)], {}, 0.9, id="durations add up"),
    pytest.param([call("a", duration_s=1e6)], {}, 0.5, id="time never costs more than its half"),
    pytest.param([call("a")] * 40, {}, 0.0, id="the value stops at 0"),
    pytest.param(
        [asks({"q": 1, "p": 2}), asks({"p": 2, "q": 1}), asks({"q": 3})], BY_ARGUMENTS, 0.95, id="equal arguments repeat"
    ),
    pytest.param([call("a"), call("a")], BY_ARGUMENTS, 1.0, id="unknown arguments are never the same"),
]


@pytest.mark.parametrize(("calls", "params", "value"), EFFICIENCY)
def test_tool_efficiency_scores(calls: list[dict[str, Any]], params: dict[str, Any], value: float) -> None:
    assert evaluate("code_tool_efficiency", calls, **params).value == pytest.approx(value)


def test_tool_efficiency_says_what_was_repeated() -> None:
    detail = evaluate("code_tool_efficiency", [call("a", duration_s=1.5), call("b"), call("a"), call("a")]).detail
    assert detail == {"call_count": 4, "total_duration_s": 1.5, "duplicates": {"a": 3}}


@pytest.mark.parametrize(
    "arguments", [{1: "a", "b": 2}, {"s": {1, 2}}, {"o": object()}], ids=["mixed keys", "a set", "an object"]
)
def test_tool_efficiency_takes_arguments_that_are_no_json(arguments: Any) -> None:
    turn = oa.Turn(tool_calls=[ToolCall("a", arguments), ToolCall("a", arguments)])
    assert oa.get_metric("code_tool_efficiency", **BY_ARGUMENTS).evaluate(turn).value == 0.95


ARGUMENTS = [
    pytest.param([call("Mail", arguments={"to": "x"})], {"mail": ["TO", "cc"]}, {}, 0.5, id="names have no case"),
    pytest.param([call("mail", arguments={"to": None})], {"mail": ["to"]}, {}, 1.0, id="a null argument was given"),
    pytest.param([call("mail", arguments={"to": " "})], {"mail": ["to"]}, {"non_empty": True}, 0.0, id="a blank one is empty"),
    pytest.param([call("mail", arguments={"n": 0})], {"mail": ["n"]}, {"non_empty": True}, 1.0, id="0 is not empty"),
    pytest.param([call("mail", arguments="not json")], {"mail": ["to"]}, {}, 0.0, id="unknown arguments are all missing"),
    pytest.param([call("mail", arguments={"to": 1}), call("mail")], {"mail": ["to"]}, {}, 0.5, id="every call is checked"),
    pytest.param([call("other")], {"mail": ["to"]}, {}, 1.0, id="other tools are not checked"),
]


@pytest.mark.parametrize(("calls", "required", "params", "value"), ARGUMENTS)
def test_tool_arguments_scores(calls: list[Any], required: dict[str, Any], params: dict[str, Any], value: float) -> None:
    score = evaluate("code_tool_arguments", calls, required_arguments=required, **params)
    assert score.value == value
    assert evaluate("code_tool_arguments", calls, {"required_arguments": required}, **params) == score


def test_tool_arguments_names_each_missing_argument() -> None:
    score = evaluate("code_tool_arguments", [call("Mail", arguments={"to": 1})], required_arguments={"mail": ["to", "cc", "bcc"]})
    assert score.detail == {"total_checks": 3, "passed_checks": 1, "issues": ["Mail: missing 'cc'", "Mail: missing 'bcc'"]}


FROM_SPANS = {"close_reason": "root_ended"}
ARGUMENT_PARAMS = {
    "code_tool_arguments": {"required_arguments": {"mail": ["to"]}},
    "code_tool_argument_matches": {"tool": "mail", "argument": "to", "expected": "x"},
    "code_tool_correctness": {"expected": [{"name": "mail", "arguments": {"to": "x"}}], "check_arguments": True},
}
NO_JSON = [{"role": "assistant", "tool_calls": [{"call_id": "1", "name": "mail", "arguments": "to: x"}]}]


@pytest.mark.parametrize("metric", ARGUMENT_PARAMS)
@pytest.mark.parametrize(
    ("turn", "found"),
    [
        pytest.param({"tool_calls": [call("mail")], **FROM_SPANS}, "missing:arguments", id="not recorded"),
        pytest.param({"tool_calls": [call("mail")]}, 0.0, id="of a written turn"),
        pytest.param({"tool_calls": [call("mail"), call("mail", arguments={"to": "x"})], **FROM_SPANS}, 1.0, id="another call"),
        pytest.param({"tool_calls": [call("mail", call_id="1")], "messages": NO_JSON, **FROM_SPANS}, 0.0, id="no JSON"),
        pytest.param(
            {"tool_calls": [call("mail", call_id="2")], "messages": NO_JSON, **FROM_SPANS}, "missing:arguments", id="other"
        ),
    ],
)
def test_unrecorded_arguments_skip_metrics(metric: str, turn: dict[str, Any], found: Any) -> None:
    score = oa.get_metric(metric, **ARGUMENT_PARAMS[metric]).evaluate(oa.Turn.from_dict(turn))
    assert (score.detail.get("reason") if score.status == "skipped" else score.value) == found


RESULT_PARAMS = {
    "code_tool_result_contains": {"tool": "mail", "expected": "sent"},
    "code_tool_correctness": {"expected": [{"name": "mail", "output": "sent"}], "check_output": True},
}


@pytest.mark.parametrize("metric", RESULT_PARAMS)
@pytest.mark.parametrize(
    ("turn", "found"),
    [
        pytest.param({"tool_calls": [call("mail")], **FROM_SPANS}, "missing:result", id="not recorded"),
        pytest.param({"tool_calls": [call("mail")]}, 0.0, id="of a written turn"),
        pytest.param({"tool_calls": [call("mail"), call("mail", result="sent")], **FROM_SPANS}, 1.0, id="another call"),
        pytest.param({"tool_calls": [call("mail", result="lost")], **FROM_SPANS}, 0.0, id="another result"),
        pytest.param({"tool_calls": [call("mail", error="full")], **FROM_SPANS}, 0.0, id="failed"),
        pytest.param({"tool_calls": [call("other")], **FROM_SPANS}, 0.0, id="another tool"),
    ],
)
def test_unrecorded_results_skip_metrics(metric: str, turn: dict[str, Any], found: Any) -> None:
    score = oa.get_metric(metric, **RESULT_PARAMS[metric]).evaluate(oa.Turn.from_dict(turn))
    assert (score.detail.get("reason") if score.status == "skipped" else score.value) == found


@pytest.mark.parametrize("exact_match", [True, False])
def test_tool_correctness_fails_without_arguments_if_the_names_differ(exact_match: bool) -> None:
    turn = oa.Turn.from_dict({"tool_calls": [call("mail")], **FROM_SPANS})
    expected = [{"name": "post", "arguments": {"to": "x"}}]
    metric = oa.get_metric("code_tool_correctness", expected=expected, check_arguments=True, exact_match=exact_match)
    assert metric.evaluate(turn).value == 0.0


DELEGATIONS = [
    pytest.param(call("consult", span_id="2"), [{"name": "billing", "span_id": "3"}], id="an agent runs below the tool"),
    pytest.param(call("consult", span_id="2"), [{"name": "consult", "span_id": "2"}], id="the tool is an agent run"),
    pytest.param(call("billing_agent"), [{"name": "Billing Agent"}], id="the tool has the agent's name"),
    pytest.param(call("ask_billing"), [{"name": "billing"}], id="the tool asks the agent"),
    pytest.param(call("delegate_task_to_member"), [], id="a framework's own tool"),
]
NESTED = [{"id": "1"}, {"id": "2", "parent": "1"}, {"id": "3", "parent": "2"}]
EXACTLY = {"code_tool_call_f1": {}, "code_tool_selection": {"strict_order": True}, "code_tool_correctness": {"exact_match": True}}


@pytest.mark.parametrize("metric", EXACTLY)
@pytest.mark.parametrize(("delegation", "agents"), DELEGATIONS)
def test_calls_of_agents_count_only_if_expected(metric: str, delegation: dict[str, Any], agents: list[Any]) -> None:
    def value(*expected: str) -> float | None:
        runs = [{"name": "triage", "span_id": "1"}, *agents]
        known = {"tool_calls": [delegation, call("refund", span_id="4")], "agent_runs": runs, "spans": NESTED}
        turn = oa.Turn.from_dict({**known, "references": {"expected_tools": list(expected)}})
        return oa.get_metric(metric, **EXACTLY[metric]).evaluate(turn).value

    assert value("refund") == 1.0
    assert value(delegation["name"], "refund") == 1.0
    assert (value(delegation["name"]) or 0.0) < 1.0


@pytest.mark.parametrize(("delegation", "agents"), DELEGATIONS)
def test_a_forbidden_tool_is_reported_if_it_runs_an_agent(delegation: dict[str, Any], agents: list[Any]) -> None:
    turn = oa.Turn.from_dict({"tool_calls": [delegation, call("refund")], "agent_runs": agents, "spans": NESTED})
    for forbidden, value, violations in ((delegation["name"].upper(), 0.0, [delegation["name"]]), ("pay", 1.0, [])):
        score = oa.get_metric("code_tool_selection", expected_tools=["refund"], forbidden_tools=[forbidden]).evaluate(turn)
        assert (score.value, score.detail["violations"]) == (value, violations)


def test_agents_as_tools_need_no_definition() -> None:
    calls = [call("ask_billing"), call("refund")]
    turn = {"tool_calls": calls, "agent_runs": [{"name": "billing"}], "tool_definitions": [{"name": "refund"}]}
    assert oa.get_metric("code_unknown_tool").evaluate(oa.Turn.from_dict(turn)).value == 1.0
    turn["tool_calls"] = [*calls, call("ask_sales")]
    assert oa.get_metric("code_unknown_tool").evaluate(oa.Turn.from_dict(turn)).detail["unknown"] == ["ask_sales"]


@pytest.mark.parametrize("name", ["get_billing", "refund_billing", "billings"])
def test_calls_that_contain_an_agents_name_are_calls(name: str) -> None:
    turn = oa.Turn.from_dict({"tool_calls": [call("refund"), call(name)], "agent_runs": [{"name": "billing"}]})
    assert oa.get_metric("code_tool_correctness", expected=["refund"], exact_match=True).evaluate(turn).value == 0.0


@pytest.mark.parametrize(
    ("result", "value"),
    [
        ({"result": "sent"}, 1.0),
        ('{"result": "sent"}', 1.0),
        ('[{"json": "sent"}]', 1.0),
        ({"result": "sent", "id": 5}, 0.0),
        ("{'func': 'sent'}", 1.0),
        ({"error": "sent"}, 0.0),
        ("[{", 0.0),
    ],
)
def test_tool_correctness_compares_outputs_in_a_wrapper(result: Any, value: float) -> None:
    calls = [call("mail", result=result)]
    expected = [{"name": "mail", "output": "sent"}]
    assert evaluate("code_tool_correctness", calls, expected=expected, check_output=True).value == value


MAIL_SCHEMA = {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        pytest.param({"to": "x"}, 1.0, id="of the schema"),
        pytest.param({"to": 5}, 0.0, id="of the wrong type"),
        pytest.param({}, 0.0, id="missing"),
        pytest.param(None, 0.0, id="unknown"),
    ],
)
def test_tool_arguments_checks_the_tools_own_schema_if_so_asked(arguments: Any, value: float) -> None:
    definitions = [{"name": "Mail", "parameters": MAIL_SCHEMA}]
    turn = oa.Turn.from_dict({"tool_calls": [call("mail", arguments=arguments), call("other")], "tool_definitions": definitions})
    score = oa.get_metric("code_tool_arguments", schemas=True).evaluate(turn)
    assert (score.value, score.detail["total_checks"]) == (value, 1)


def test_tool_arguments_does_not_apply_without_calls_or_criteria() -> None:
    assert evaluate("code_tool_arguments", None, required_arguments={}).detail == {"reason": "missing:tool_calls"}
    assert evaluate("code_tool_arguments", []).detail == {"reason": "missing:criteria"}
    assert evaluate("code_tool_arguments", [], {"required_arguments": ["to"]}).error_type == "invalid_reference"
    assert evaluate("code_tool_arguments", [call("a")], required_arguments={"b": ["x"]}).vacuous


SELECTION = [
    pytest.param(["a", "b"], ["a"], {}, 0.5, id="a missed tool costs its share"),
    pytest.param(["a"], ["x", "a"], {"extra_penalty": 0}, 1.0, id="extra tools can be free"),
    pytest.param(["a", "a"], ["a"], {}, 1.0, id="a tool listed twice needs one call"),
    pytest.param(["a", "b"], ["b", "a"], {"strict_order": True}, 0.8, id="the wrong order costs if so asked"),
    pytest.param(["a", "b"], ["x", "a", "b"], {"strict_order": True}, 0.7, id="another call first is out of order"),
    pytest.param(["a", "b"], ["a", "b", "x"], {"strict_order": True}, 0.9, id="another call after is in order"),
    pytest.param(["a", "b"], ["b"], {"strict_order": True}, 0.5, id="order is not looked at when a tool was missed"),
    pytest.param(["a"], [*"abcdefghijkl"], {"strict_order": True}, 0.0, id="the value stops at 0"),
    pytest.param([{"name": "a"}], ["a"], {}, 1.0, id="an expectation can be an object"),
]


@pytest.mark.parametrize(("expected", "called", "params", "value"), SELECTION)
def test_tool_selection_scores(expected: list[Any], called: list[str], params: dict[str, Any], value: float) -> None:
    calls = [call(name) for name in called]
    score = evaluate("code_tool_selection", calls, expected_tools=expected, **params)
    assert score.value == pytest.approx(value)
    assert evaluate("code_tool_selection", calls, {"expected_tools": expected}, **params) == score


def test_tool_selection_says_which_tools_matched_were_missed_and_came_on_top() -> None:
    detail = evaluate("code_tool_selection", [call("Search"), call("X"), call("x")], expected_tools=["search", "Book"]).detail
    assert detail == {"matched": ["search"], "missed": ["Book"], "extra": ["X"], "violations": [], "strict_order": False}


@pytest.mark.parametrize("metric", ["code_tool_selection", "code_tool_correctness", "code_tool_call_order", "code_tool_call_f1"])
def test_expectations_are_needed_from_somewhere(metric: str) -> None:
    assert evaluate(metric, None).detail == {"reason": "missing:tool_calls"}
    assert evaluate(metric, []).detail == {"reason": "missing:expected_tools"}
    assert evaluate(metric, [], {"expected_tools": 5}).error_type == "invalid_reference"
    assert evaluate(metric, [call("a")], {"expected_tools": "a"}).value == 1.0
    parameter = "expected_tools" if metric in ("code_tool_selection", "code_tool_call_f1") else "expected"
    assert evaluate(metric, [], {"expected_tools": ["a"]}, **{parameter: []}).value == 1.0


ARGUMENTS_TOO, OUTPUTS_TOO = {"check_arguments": True}, {"check_output": True}
CORRECTNESS = [
    pytest.param(["a", "b"], [call("b"), call("x"), call("a")], {}, 1.0, id="any order and other calls are fine"),
    pytest.param(["a", "a"], [call("a")], {}, 0.5, id="each expectation needs a call of its own"),
    pytest.param(
        [asks({"x": 1})], [asks({"x": 2}), asks({"x": 1.0})], ARGUMENTS_TOO, 1.0, id="the best call counts, and 1 is 1.0"
    ),
    pytest.param([asks({"x": {"y": 1, "z": 2}})], [asks({"x": {"y": 1, "z": 3}})], ARGUMENTS_TOO, 0.5, id="nested arguments"),
    pytest.param([asks({"x": 1})], [asks({"x": True})], ARGUMENTS_TOO, 0.0, id="true is not 1"),
    pytest.param([asks({"x": 1})], [call("a")], ARGUMENTS_TOO, 0.0, id="unknown arguments match nothing"),
    pytest.param(["a"], [asks({"x": 1})], ARGUMENTS_TOO, 1.0, id="arguments that are not stated are free"),
    pytest.param([call("a", output={"n": 1})], [call("a", result='{"n": 1}')], OUTPUTS_TOO, 1.0, id="outputs compare as JSON"),
    pytest.param([call("a", output=1)], [call("a", result="oops")], OUTPUTS_TOO, 0.0, id="an output that is no JSON"),
    pytest.param(["a", "b"], [call("b"), call("a")], {"ordered": True}, 0.5, id="ordered takes the longest common subsequence"),
    pytest.param(["a", "b"], [call("a"), call("x"), call("b")], {"ordered": True}, 1.0, id="ordered allows calls between"),
    pytest.param(["a"], [call("a"), call("b")], {"exact_match": True}, 0.0, id="exact needs the same number"),
]


@pytest.mark.parametrize(("expected", "calls", "params", "value"), CORRECTNESS)
def test_tool_correctness_scores(expected: list[Any], calls: list[Any], params: dict[str, Any], value: float) -> None:
    score = evaluate("code_tool_correctness", calls, expected=expected, **params)
    assert (score.value, score.passed) == (value, value >= 0.5)
    assert evaluate("code_tool_correctness", calls, {"expected": expected}, **params) == score


def test_tool_correctness_compares_arguments_nested_deeper_than_it_walks() -> None:
    deep: Any = 1
    for _ in range(5_000):
        deep = {"x": deep}
    expected = [{"name": "a", "arguments": {"x": deep, "y": 2}}]
    turn = oa.Turn(tool_calls=[ToolCall("a", {"x": deep, "y": 1})], references={"expected": expected})
    assert oa.get_metric("code_tool_correctness", check_arguments=True).evaluate(turn).value == 0.5


def test_tool_was_called_takes_a_call_that_failed() -> None:
    assert evaluate("code_tool_was_called", [call("a", error=True), call("b")], tool="a").passed is True
    assert evaluate("code_tool_was_called", [call("A"), call("a ")], tool="a").passed is False
    assert evaluate("code_tool_was_called", [call("a")], tool="a", inverse=True).passed is False


@pytest.mark.parametrize("metric", ["code_tool_was_called", "code_no_tools_called"])
def test_the_names_that_were_called_are_told_once_and_not_without_end(metric: str) -> None:
    params = {"tool": "x"} if metric == "code_tool_was_called" else {}
    assert evaluate(metric, [call("b"), call("a"), call("b")], **params).detail == {"called": ["b", "a"]}
    assert len(evaluate(metric, [call(str(i)) for i in range(10_000)], **params).detail["called"]) == 100


COUNT = [
    pytest.param({"count": 2}, 2, True, id="the exact number"),
    pytest.param({"min": 2}, 2, True, id="the least number"),
    pytest.param({"min": 1, "max": 2}, 3, False, id="within both bounds or not"),
    pytest.param({"min": 5, "count": 1}, 1, True, id="the exact number wins over bounds"),
]


@pytest.mark.parametrize(("params", "made", "passed"), COUNT)
def test_tool_call_count_scores(params: dict[str, int], made: int, passed: bool) -> None:
    score = evaluate("code_tool_call_count", [*[call("a")] * made, call("b"), call("A")], tool="a", **params)
    assert (score.passed, score.detail) == (passed, {"actual": made})


MATCHES = [
    pytest.param("paris", "paris", True, id="the same text"),
    pytest.param(5, "5", True, id="a number as text"),
    pytest.param(True, "true", True, id="true as JSON text"),
    pytest.param(False, "False", True, id="false as .NET text"),
    pytest.param(None, "null", True, id="null as text"),
    pytest.param([1, {"a": None}], '[1,{"a":null}]', True, id="a list as compact JSON"),
    pytest.param("5", 5, False, id="a number does not match text"),
    pytest.param(1, True, False, id="true does not match 1"),
    pytest.param({"b": [1], "a": 2}, {"a": 2, "b": [1.0]}, True, id="objects compare as JSON"),
]


@pytest.mark.parametrize(("actual", "expected", "passed"), MATCHES)
def test_tool_argument_matches_scores(actual: Any, expected: Any, passed: bool) -> None:
    calls = [call("s", arguments={"q": actual})]
    assert evaluate("code_tool_argument_matches", calls, tool="s", argument="q", expected=expected).passed is passed


@pytest.mark.parametrize(
    ("calls", "passed"),
    [
        pytest.param([call("s", arguments={"q": 1}), call("s", arguments={"q": 2})], True, id="any one call"),
        pytest.param([call("s", arguments={"deep": {"q": 2}})], False, id="a key further inside"),
        pytest.param([call("s", arguments="{q: 2"), call("s")], False, id="unknown arguments"),
        pytest.param([call("s", arguments='{"q": 2}')], True, id="arguments as JSON text"),
        pytest.param([call("s", arguments={})], False, id="a missing argument"),
    ],
)
def test_tool_argument_matches_looks_at_calls_of_the_tool(calls: list[Any], passed: bool) -> None:
    score = evaluate("code_tool_argument_matches", calls, tool="s", argument="q", expected=2)
    assert (score.passed, score.detail) == (passed, {"calls": sum(made["name"] == "s" for made in calls)})


CONTAINS = [
    pytest.param("found PARIS", "Paris", {"ignore_case": True}, True, id="unless asked otherwise"),
    pytest.param({"city": "PARIS"}, '"CITY":"paris"', {"ignore_case": True}, True, id="an object whatever the case"),
    pytest.param('{"city": "Paris"}', '"city":"Paris"', {}, False, id="JSON text stays as it is"),
    pytest.param({"city": "Zürich"}, "Zürich", {}, True, id="JSON with letters of its own"),
    pytest.param(42, 42.0, {}, True, id="a number in a number"),
]


@pytest.mark.parametrize(("result", "expected", "params", "passed"), CONTAINS)
def test_tool_result_contains_scores(result: Any, expected: Any, params: dict[str, Any], passed: bool) -> None:
    calls = [call("s", result="nothing"), call("t", result=expected), call("s", result=result)]
    score = evaluate("code_tool_result_contains", calls, tool="s", expected=expected, **params)
    assert (score.passed, score.detail) == (passed, {"calls": 2})


ORDER = [
    pytest.param(["a", "b"], [call("a"), call("x"), call("b"), call("a")], True, 2, id="others between and after"),
    pytest.param(["a", "b", "a"], [call("a"), call("a"), call("b"), call("a")], True, 3, id="greedy from the left"),
    pytest.param([{"name": "a"}], [call("a")], True, 1, id="objects with a name"),
]


@pytest.mark.parametrize(("expected", "calls", "passed", "prefix"), ORDER)
def test_tool_call_order_scores(expected: list[Any], calls: list[Any], passed: bool, prefix: int) -> None:
    score = evaluate("code_tool_call_order", calls, expected=expected)
    assert (score.passed, score.detail) == (passed, {"matched_prefix": prefix})
    assert evaluate("code_tool_call_order", calls, {"expected_tools": expected}) == score


F1 = [
    pytest.param(["a", "b"], ["a", "c", "d"], {}, (1 / 3, 1 / 2), id="some were expected"),
    pytest.param(["a", "a"], ["a", "a", "b"], {"mode": "set"}, (1 / 2, 1.0), id="without repeats as sets"),
    pytest.param(["a"], [], {}, (0.0, 0.0), id="nothing called"),
]


@pytest.mark.parametrize(("expected", "names", "params", "found"), F1)
def test_tool_call_f1_scores(expected: list[str], names: list[str], params: Any, found: tuple[float, float]) -> None:
    score = evaluate("code_tool_call_f1", [call(name) for name in names], expected_tools=expected, **params)
    precision, recall = found
    assert score.detail == {"precision": precision, "recall": recall}
    assert score.value == pytest.approx(2 * precision * recall / (precision + recall) if precision else 0.0)
    assert score.passed is None


REQUIRED = {
    "code_tool_was_called": {"tool": "a"},
    "code_tool_call_count": {"tool": "a", "count": 1},
    "code_tool_argument_matches": {"tool": "a", "argument": "x", "expected": 1},
    "code_tool_result_contains": {"tool": "a", "expected": "x"},
    "code_no_tools_called": {},
}


@pytest.mark.parametrize("metric", REQUIRED)
def test_unknown_calls_are_skipped_and_missing_parameters_an_error(metric: str) -> None:
    params = REQUIRED[metric]
    assert evaluate(metric, None, **params).detail == {"reason": "missing:tool_calls"}
    for name in params:
        rest = {key: value for key, value in params.items() if key != name}
        assert evaluate(metric, [call("a")], **rest).error_type == "missing_parameter"


# --- spans

SPANS = [
    {"id": "1", "name": "invoke_agent planner", "duration_s": 9.0, "attributes": {"gen_ai.operation.name": "invoke_agent"}},
    {"id": "2", "parent": "1", "name": "chat", "duration_s": 2.0, "attributes": {"stream": True, "reasons": ["stop"]}},
    {"id": "3", "parent": "1", "name": "execute_tool search", "duration_s": 6.0, "attributes": {"code": 200, "cached": "true"}},
    {"id": "4", "parent": "3", "name": "HTTP GET", "duration_s": 5.5, "attributes": {"url.path": "/v1"}},
    {"id": "5", "parent": "4", "name": "connect"},
]


def matches(query: dict[str, Any], spans: list[dict[str, Any]] | None = None) -> int:
    turn = oa.Turn.from_dict({"spans": SPANS if spans is None else spans})
    score = oa.get_metric("code_has_matching_span", query=query).evaluate(turn)
    assert score.status == "ok", score.explanation
    assert score.passed is (score.detail["matches"] > 0)
    return score.detail["matches"]


STOP = {"stop_recursing_when": {"name_equals": "HTTP GET"}}
QUERIES = [
    pytest.param({}, 5, id="no condition matches every span"),
    pytest.param({"name_equals": "chat"}, 1, id="a name"),
    pytest.param({"name_matches_regex": "(?i)http"}, 1, id="a pattern anywhere"),
    pytest.param({"has_attributes": {"code": 200}}, 1, id="a number"),
    pytest.param({"has_attributes": {"code": "200"}}, 1, id="a number as text"),
    pytest.param({"has_attributes": {"cached": True}}, 1, id="text as a boolean"),
    pytest.param({"has_attributes": {"stream": 1}}, 0, id="a number is no boolean"),
    pytest.param({"has_attributes": {"reasons": ["stop"]}}, 1, id="a list"),
    pytest.param({"has_attributes": {"code": 200, "cached": "no"}}, 0, id="all attributes are needed"),
    pytest.param({"has_attribute_keys": ["code", "cached"]}, 1, id="keys"),
    pytest.param({"min_duration_s": 5.5}, 3, id="a duration at the lower bound"),
    pytest.param({"max_duration_s": 5.5}, 2, id="a duration at the upper bound, where it is known"),
    pytest.param({"min_duration_s": 0}, 4, id="an unknown duration has no bound"),
    pytest.param({"min_child_count": 2}, 1, id="two children"),
    pytest.param({"some_descendant_matches": {"name_equals": "connect"}, **STOP}, 1, id="a span that stops hides what is below"),
    pytest.param({"some_descendant_matches": {"name_equals": "HTTP GET"}, **STOP}, 0, id="a span that stops is left out itself"),
    pytest.param({"all_descendants_match": {"name_contains": "tool"}, **STOP}, 3, id="what is left out need not match"),
    pytest.param({"stop_recursing_when": {"name_equals": "chat"}}, 5, id="stopping alone is no condition"),
    pytest.param({"not": {"name_contains": "e"}}, 2, id="not"),
    pytest.param({"and": []}, 5, id="and of nothing"),
    pytest.param({"or": [{"name_equals": "chat"}, {"name_equals": "connect"}]}, 2, id="or"),
    pytest.param({"or": []}, 0, id="or of nothing"),
    pytest.param({"or": [{"name_equals": "chat"}], "name_equals": None}, 1, id="null is no condition"),
]


@pytest.mark.parametrize(("query", "count"), QUERIES)
def test_a_span_query_matches(query: dict[str, Any], count: int) -> None:
    assert matches(query) == count
    assert matches({"and": [query]}) == count
    assert matches({"not": query}) == 5 - count
    assert matches(query, SPANS[::-1]) == count


def test_the_first_span_that_matches_is_named() -> None:
    score = oa.get_metric("code_has_matching_span", query={"name_contains": "t"}).evaluate(oa.Turn.from_dict({"spans": SPANS}))
    assert score.detail == {"matches": 4, "span_id": "1", "span_name": "invoke_agent planner"}
    assert oa.get_metric("code_has_matching_span", query={}).evaluate(oa.Turn()).detail == {"matches": 0}


BAD_QUERIES = [
    pytest.param({"name": "x"}, "query.name", id="an unknown condition"),
    pytest.param({"not": {"and": [{}, {"depth": 1}]}}, "query.not.and[1].depth", id="an unknown condition far below"),
    pytest.param({"or": [{}], "min_depth": 1}, "query.or", id="or beside another condition"),
    pytest.param({"name_contains": 5}, "query.name_contains", id="a name that is no text"),
    pytest.param({"min_depth": True}, "query.min_depth", id="a bound that is no number"),
    pytest.param({"max_duration_s": float("nan")}, "query.max_duration_s", id="a bound that is not a number"),
    pytest.param({"has_attribute_keys": "x"}, "query.has_attribute_keys", id="keys that are no list"),
    pytest.param({"name_matches_regex": "(?=x)"}, "pattern", id="a pattern that cannot be searched in bounded time"),
    pytest.param({5: 1}, "query.5", id="a condition that is no text"),
]


@pytest.mark.parametrize("spans", [SPANS, []], ids=["spans", "no spans"])
@pytest.mark.parametrize(("query", "where"), BAD_QUERIES)
def test_a_query_that_cannot_be_asked_is_an_error(query: Any, where: str, spans: list[Any]) -> None:
    turn = oa.Turn.from_dict({"spans": spans})
    try:
        score = oa.get_metric("code_has_matching_span", query=query).evaluate(turn)
    except oa.ConfigError:
        assert query == {5: 1}
        return
    assert (score.status, score.error_type) == ("error", "invalid_pattern" if where == "pattern" else "invalid_query")
    assert score.explanation.startswith(where)


def test_a_query_can_be_deep_but_not_without_end() -> None:
    query: dict[str, Any] = {}
    for _ in range(50):
        query = {"not": query}
    assert matches(query) == 5
    score = oa.get_metric("code_has_matching_span", query={"not": query}).evaluate(oa.Turn())
    assert score.error_type == "invalid_query"


@pytest.mark.parametrize(
    ("parents", "depths"),
    [
        pytest.param({"a": "a"}, {"a": 0}, id="a span that is its own parent"),
        pytest.param({"a": "b", "b": "a"}, {"a": 0, "b": 1}, id="two spans in a circle"),
        pytest.param({"t": "a", "a": "c", "b": "a", "c": "b"}, {"t": 1, "a": 0, "b": 1, "c": 2}, id="a span below a circle"),
        pytest.param({"a": "gone", "b": "a"}, {"a": 0, "b": 1}, id="a parent that is not there"),
        pytest.param({"b": "a", "a": None}, {"a": 0, "b": 1}, id="a child before its parent"),
    ],
)
def test_broken_trees_have_depths(parents: dict[str, str | None], depths: dict[str, int]) -> None:
    spans = [{"id": name, "name": name, "parent": parent} for name, parent in parents.items()]
    for name, depth in depths.items():
        assert matches({"name_equals": name, "min_depth": depth, "max_depth": depth}, spans) == 1


@pytest.mark.parametrize("shape", ["a chain", "a star", "a circle"])
def test_many_spans_are_asked_in_one_pass(shape: str) -> None:
    def parent(index: int) -> str:
        return {"a chain": str(index - 1), "a star": "0", "a circle": str((index - 1) % 10_000)}[shape]

    spans = [SpanInfo(str(index), parent(index), "x" if index else "top") for index in range(10_000)]
    deepest = {"some_descendant_matches": {"name_equals": "x"}}
    for _ in range(8):
        deepest = {"some_descendant_matches": deepest, "no_ancestor_matches": {"name_equals": "y"}}
    score = oa.get_metric("code_has_matching_span", query=deepest).evaluate(oa.Turn(spans=spans))
    assert score.passed is (shape != "a star")


@given(st.lists(st.tuples(st.integers(0, 8), st.sampled_from("ab")), min_size=1, max_size=9))
def test_relatives_are_those_of_a_graph_library(rows: list[tuple[int, str]]) -> None:
    tree = networkx.DiGraph()
    spans = []
    for index, (parent, name) in enumerate(rows):
        above = parent if parent < index else None
        spans.append({"id": str(index), "name": name, "parent": None if above is None else str(above)})
        tree.add_node(index)
        if above is not None:
            tree.add_edge(above, index)
    named = {index for index, (_, name) in enumerate(rows) if name == "a"}
    relations = {"child": tree.successors, "descendant": lambda n: networkx.descendants(tree, n), "ancestor": lambda n: networkx.ancestors(tree, n)}  # fmt: skip
    for word, plural in (("child", "all_children_match"), ("descendant", "all_descendants_match"), ("ancestor", "all_ancestors_match")):  # fmt: skip
        found = {node: set(relations[word](node)) for node in tree}
        asked = {"name_equals": "a"}
        assert matches({f"some_{word}_matches": asked}, spans) == sum(bool(near & named) for near in found.values())
        assert matches({plural: asked}, spans) == sum(near <= named for near in found.values())
        assert matches({f"no_{word}_matches": asked}, spans) == sum(not near & named for near in found.values())


@pytest.mark.parametrize(
    "metric", ["code_tool_success", "code_tool_efficiency", "code_tool_selection", "code_tool_arguments", "code_tool_correctness"]
)
@pytest.mark.parametrize("odd", [None, 5, b"x", "\ud800"], ids=["no name", "a number", "bytes", "a lone surrogate"])
def test_odd_names_and_results_are_no_error(metric: str, odd: Any) -> None:
    calls = [ToolCall(odd, {"x": odd}, result=odd, error=ErrorInfo()), ToolCall(odd, None, result={odd: odd})]
    turn = oa.Turn(tool_calls=calls, references={"expected_tools": ["x"], "required_arguments": {odd: [odd]}})
    assert oa.get_metric(metric).evaluate(turn).status == "ok"


@pytest.mark.parametrize(
    ("metric", "parameter"),
    [("code_tool_selection", "expected_tools"), ("code_tool_correctness", "expected"), ("code_tool_call_order", "expected"), ("code_tool_call_f1", "expected_tools")],
)  # fmt: skip
def test_what_was_expected_and_what_was_called_is_said_where_they_differ(metric: str, parameter: str) -> None:
    calls = [{"name": name} for name in ("search", "search", "pay")]
    turn = oa.Turn.from_dict({"turn_id": "t", "tool_calls": calls})
    missed = oa.get_metric(metric, **{parameter: ["book", {"name": "search"}]}).evaluate(turn)
    assert missed.explanation == "expected book, search; called search ×2, pay"
    met = oa.get_metric(metric, **{parameter: ["search", "search", "pay"]}).evaluate(turn)
    assert (met.value, met.explanation) == (1.0, None)
    none = oa.get_metric(metric, **{parameter: ["book"]}).evaluate(oa.Turn.from_dict({"turn_id": "t", "tool_calls": []}))
    assert none.explanation == "expected book; called none"
