from __future__ import annotations

from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.model import ErrorInfo, ToolCall


def call(name: str, **known: Any) -> dict[str, Any]:
    return {"name": name, **known}


def evaluate(
    metric: str, calls: list[dict[str, Any]] | None, references: dict[str, Any] | None = None, **params: Any
) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict({"tool_calls": calls, "references": references or {}}))


SUCCESS = [
    pytest.param([call("a"), call("b", error=True)], {}, 0.5, id="a call with a bare error failed"),
    pytest.param([call("a", error={"type": "timeout"})], {}, 0.0, id="a call with an error type failed"),
    pytest.param([call("a", permission_denied=True)], {}, 1.0, id="a denied call is no failure by default"),
    pytest.param(
        [call("a", permission_denied=True), call("b")], {"count_denied": True}, 0.5, id="a denied call can count as failed"
    ),
    pytest.param([], {}, 1.0, id="no calls is 1"),
    pytest.param([], {"empty_value": 0.0}, 0.0, id="no calls is what empty_value says"),
]


@pytest.mark.parametrize(("calls", "params", "value"), SUCCESS)
def test_tool_success_scores(calls: list[dict[str, Any]], params: dict[str, Any], value: float) -> None:
    score = evaluate("code_tool_success", calls, **params)
    assert score.value == value
    assert score.passed is (value >= 0.7)
    assert score.vacuous is (not calls)


def test_tool_success_names_the_calls_that_failed_by_type_before_message() -> None:
    failing = [
        call("a", error={"type": "TimeoutError", "message": "it took\nlong"}),
        call("b", error="x" * 999),
        call("c", error=True),
        call("d"),
    ]
    detail = evaluate("code_tool_success", failing).detail
    assert (detail["total"], detail["successful"]) == (4, 1)
    assert detail["failed"] == [
        {"name": "a", "error": "TimeoutError"},
        {"name": "b", "error": "x" * 200},
        {"name": "c", "error": "error"},
    ]


@pytest.mark.parametrize(
    ("calls", "params"),
    [
        pytest.param(None, {}, id="the calls are unknown"),
        pytest.param([], {"empty_value": None}, id="there are none and the value for that is null"),
    ],
)
def test_tool_success_does_not_apply_when(calls: Any, params: dict[str, Any]) -> None:
    score = evaluate("code_tool_success", calls, **params)
    assert (score.status, score.detail) == ("skipped", {"reason": "missing:tool_calls"})


def test_tool_success_refuses_an_empty_value_outside_0_to_1() -> None:
    with pytest.raises(oa.ConfigError, match="empty_value"):
        oa.get_metric("code_tool_success", empty_value=2)


EFFICIENCY = [
    pytest.param([call("a", duration_s=1), call("b")], {}, 1.0, id="few quick calls cost nothing"),
    pytest.param([call("a"), call("a")], {}, 0.95, id="a repeated name costs 5 points"),
    pytest.param([call("a"), call("A")], {}, 1.0, id="names in another case are other names"),
    pytest.param([call(str(i)) for i in range(12)], {}, 0.9, id="two calls over the limit cost 20 points of one half"),
    pytest.param([call(str(i)) for i in range(40)], {}, 0.5, id="calls never cost more than their half"),
    pytest.param([call("a", duration_s=20), call("b", duration_s=14)], {}, 0.9, id="durations add up"),
    pytest.param([call("a", duration_s=1e6)], {}, 0.5, id="time never costs more than its half"),
    pytest.param([call("a")] * 40, {}, 0.0, id="the value stops at 0"),
    pytest.param(
        [call("a", arguments={"q": 1, "p": 2}), call("a", arguments={"p": 2, "q": 1}), call("a", arguments={"q": 3})],
        {"duplicate_key": "name_args"},
        0.95,
        id="with name_args only equal arguments repeat, whatever the order of keys",
    ),
    pytest.param([call("a"), call("a")], {"duplicate_key": "name_args"}, 1.0, id="unknown arguments are never the same"),
]


@pytest.mark.parametrize(("calls", "params", "value"), EFFICIENCY)
def test_tool_efficiency_scores(calls: list[dict[str, Any]], params: dict[str, Any], value: float) -> None:
    assert evaluate("code_tool_efficiency", calls, **params).value == pytest.approx(value)


def test_tool_efficiency_says_what_was_repeated() -> None:
    detail = evaluate("code_tool_efficiency", [call("a", duration_s=1.5), call("b"), call("a"), call("a")]).detail
    assert detail == {"call_count": 4, "total_duration_s": 1.5, "duplicates": {"a": 3}}


def test_tool_efficiency_is_vacuous_without_calls_and_skipped_when_they_are_unknown() -> None:
    assert (evaluate("code_tool_efficiency", []).value, evaluate("code_tool_efficiency", []).vacuous) == (1.0, True)
    assert evaluate("code_tool_efficiency", None).detail == {"reason": "missing:tool_calls"}


@pytest.mark.parametrize(
    "arguments", [{1: "a", "b": 2}, {"s": {1, 2}}, {"o": object()}], ids=["mixed keys", "a set", "an object"]
)
def test_tool_efficiency_takes_arguments_that_are_no_json(arguments: Any) -> None:
    turn = oa.Turn(tool_calls=[ToolCall("a", arguments), ToolCall("a", arguments)])
    assert oa.get_metric("code_tool_efficiency", duplicate_key="name_args").evaluate(turn).value == 0.95


ARGUMENTS = [
    pytest.param(
        [call("Mail", arguments={"to": "x"})], {"mail": ["TO", "cc"]}, {}, 0.5, id="tool and argument names have no case"
    ),
    pytest.param([call("mail", arguments={"to": None})], {"mail": ["to"]}, {}, 1.0, id="a null argument was given"),
    pytest.param(
        [call("mail", arguments={"to": " "})], {"mail": ["to"]}, {"non_empty": True}, 0.0, id="a blank one not, if so asked"
    ),
    pytest.param([call("mail", arguments={"n": 0})], {"mail": ["n"]}, {"non_empty": True}, 1.0, id="0 is not empty"),
    pytest.param([call("mail", arguments="not json")], {"mail": ["to"]}, {}, 0.0, id="unknown arguments are all missing"),
    pytest.param([call("mail", arguments='{"to": 1}')], {"mail": ["to"]}, {}, 1.0, id="arguments as JSON text are read"),
    pytest.param(
        [call("mail", arguments={"to": 1}), call("mail")],
        {"mail": ["to"]},
        {},
        0.5,
        id="every call of a configured tool is checked",
    ),
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


def test_tool_arguments_is_vacuous_when_no_configured_tool_was_called() -> None:
    assert evaluate("code_tool_arguments", [call("a")], required_arguments={"b": ["x"]}).vacuous


SCHEMA_TURN = {
    "tool_definitions": [
        {"name": "Mail", "parameters": {"type": "object", "properties": {"to": {"type": "string"}}, "required": ["to"]}}
    ],
}


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
    turn = oa.Turn.from_dict({"tool_calls": [call("mail", arguments=arguments), call("other")], **SCHEMA_TURN})
    score = oa.get_metric("code_tool_arguments", schemas=True).evaluate(turn)
    assert (score.value, score.detail["total_checks"]) == (value, 1)


def test_tool_arguments_does_not_apply_without_calls_or_criteria() -> None:
    assert evaluate("code_tool_arguments", None, required_arguments={}).detail == {"reason": "missing:tool_calls"}
    assert evaluate("code_tool_arguments", []).detail == {"reason": "missing:criteria"}


def test_tool_arguments_says_so_when_the_reference_is_no_object() -> None:
    assert evaluate("code_tool_arguments", [], {"required_arguments": ["to"]}).error_type == "invalid_reference"


SELECTION = [
    pytest.param(["a", "b"], ["A", "B"], {}, 1.0, id="names have no case"),
    pytest.param(["a", "b"], ["a"], {}, 0.5, id="a missed tool costs its share"),
    pytest.param(["a"], ["a", "x", "y", "x"], {}, 0.8, id="each distinct extra tool costs once"),
    pytest.param(["a"], ["x", "a"], {"extra_penalty": 0}, 1.0, id="extra tools can be free"),
    pytest.param(["a", "a"], ["a"], {}, 1.0, id="a tool listed twice needs one call"),
    pytest.param(["a", "b"], ["b", "a"], {}, 1.0, id="order does not count by default"),
    pytest.param(["a", "b"], ["b", "a"], {"strict_order": True}, 0.8, id="the wrong order costs if so asked"),
    pytest.param(["a", "b"], ["x", "a", "b"], {"strict_order": True}, 0.7, id="another call first is out of order"),
    pytest.param(["a", "b"], ["a", "b", "x"], {"strict_order": True}, 0.9, id="another call after is in order"),
    pytest.param(["a", "b"], ["b"], {"strict_order": True}, 0.5, id="order is not looked at when a tool was missed"),
    pytest.param(["a"], [*"abcdefghijkl"], {"strict_order": True}, 0.0, id="the value stops at 0"),
    pytest.param([], ["x", "y"], {}, 0.8, id="nothing expected leaves only penalties"),
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
    assert detail == {"matched": ["search"], "missed": ["Book"], "extra": ["X"], "strict_order": False}


def test_the_parameter_wins_over_the_reference_even_when_it_is_empty() -> None:
    assert evaluate("code_tool_selection", [], {"expected_tools": ["a"]}, expected_tools=[]).value == 1.0


@pytest.mark.parametrize("metric", ["code_tool_selection", "code_tool_correctness"])
def test_expectations_are_needed_from_somewhere(metric: str) -> None:
    assert evaluate(metric, None).detail == {"reason": "missing:tool_calls"}
    assert evaluate(metric, []).detail == {"reason": "missing:expected_tools"}
    assert evaluate(metric, [], {"expected_tools": 5}).error_type == "invalid_reference"
    assert evaluate(metric, [call("a")], {"expected_tools": "a"}).value == 1.0


def expects(name: str, **known: Any) -> dict[str, Any]:
    return {"name": name, **known}


CORRECTNESS = [
    pytest.param(["a", "b"], [call("b"), call("x"), call("a")], {}, 1.0, id="any order and other calls are fine"),
    pytest.param(["a", "a"], [call("a")], {}, 0.5, id="each expectation needs a call of its own"),
    pytest.param(["a"], [call("A")], {}, 0.0, id="names have case"),
    pytest.param(
        [expects("a", arguments={"x": 1})], [call("a", arguments={"x": 2})], {}, 1.0, id="arguments do not count by default"
    ),
    pytest.param(
        [expects("a", arguments={"x": 1})],
        [call("a", arguments={"x": 2}), call("a", arguments={"x": 1.0})],
        {"check_arguments": True},
        1.0,
        id="the best call counts, and 1 is 1.0",
    ),
    pytest.param(
        [expects("a", arguments={"x": {"y": 1, "z": 2}})],
        [call("a", arguments={"x": {"y": 1, "z": 3}})],
        {"check_arguments": True},
        0.5,
        id="nested arguments count by their own similarity",
    ),
    pytest.param(
        [expects("a", arguments={"x": 1})], [call("a", arguments={"x": True})], {"check_arguments": True}, 0.0, id="true is not 1"
    ),
    pytest.param(
        [expects("a", arguments={"x": 1})], [call("a")], {"check_arguments": True}, 0.0, id="unknown arguments match nothing"
    ),
    pytest.param(
        ["a"], [call("a", arguments={"x": 1})], {"check_arguments": True}, 1.0, id="arguments that are not stated are free"
    ),
    pytest.param(
        [expects("a", output={"n": 1})], [call("a", result='{"n": 1}')], {"check_output": True}, 1.0, id="outputs compare as JSON"
    ),
    pytest.param([expects("a", output="x")], [call("a", result="y")], {"check_output": True}, 0.0, id="another output is 0"),
    pytest.param(
        [expects("a", output=1)], [call("a", result="oops")], {"check_output": True}, 0.0, id="an output that is no JSON is 0"
    ),
    pytest.param(["a", "b"], [call("b"), call("a")], {"ordered": True}, 0.5, id="ordered takes the longest common subsequence"),
    pytest.param(["a", "b"], [call("a"), call("x"), call("b")], {"ordered": True}, 1.0, id="ordered allows calls between"),
    pytest.param(["a", "b"], [call("a"), call("b")], {"exact_match": True}, 1.0, id="exact is all"),
    pytest.param(["a", "b"], [call("b"), call("a")], {"exact_match": True}, 0.0, id="exact needs the same places"),
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


@pytest.mark.parametrize(
    "metric", ["code_tool_success", "code_tool_efficiency", "code_tool_selection", "code_tool_arguments", "code_tool_correctness"]
)
@pytest.mark.parametrize("odd", [None, 5, b"x", "", "\ud800"], ids=["no name", "a number", "bytes", "empty", "a lone surrogate"])
def test_odd_names_and_results_are_no_error(metric: str, odd: Any) -> None:
    calls = [ToolCall(odd, {"x": odd}, result=odd, error=ErrorInfo()), ToolCall(odd, None, result={odd: odd})]
    turn = oa.Turn(tool_calls=calls, references={"expected_tools": [odd, {"name": odd}], "required_arguments": {odd: [odd]}})
    assert oa.get_metric(metric).evaluate(turn).status == "ok"


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("agenteval:code_tool_success", "code_tool_success"),
        ("agenteval:ToolSuccessMetric", "code_tool_success"),
        ("agentunit:tool_success", "code_tool_success"),
        ("agentunit:ToolSuccessMetric", "code_tool_success"),
        ("agenteval:ToolEfficiencyMetric", "code_tool_efficiency"),
        ("agenteval:ToolArgumentsMetric", "code_tool_arguments"),
        ("agenteval:ToolSelectionMetric", "code_tool_selection"),
        ("trusys:tool-correctness", "code_tool_correctness"),
    ],
)
def test_names_of_other_catalogues_resolve(alias: str, name: str) -> None:
    assert oa.get_metric(alias).name == name
