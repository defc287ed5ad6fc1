"""What the agent did with its tools. A failed call is still a call. That no calls were made is a fact; unknown calls are skipped."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any, Literal

from annotated_types import Ge, Le, MinLen

from ...core import jsonio
from ...core.errors import MetricError
from ...core.turn import ErrorInfo, ToolCall, Turn
from ..lib import spans as span_queries
from ..lib.excerpt import excerpt
from ..lib.references import reference
from ..lib.schema import violations
from ..lib.tools import (
    Expectation,
    entry_name,
    expected_and_called,
    expected_entries,
    match_at_places,
    match_in_any_order,
    match_in_order,
)
from ..lib.values import canonical, json_equal, rendered
from ..registry import Result, metric, skip, vacuous

Share = Annotated[float, Ge(0), Le(1)]
ToolName = Annotated[str, MinLen(1)]
Count = Annotated[int, Ge(0)]
TextOrNumber = str | bool | int | float
ExpectedTools = list[str | dict[str, Any]]

_SHOWN = 200
"""Characters of an error message in ``detail``."""
_SHOWN_ISSUES = 100
_SHOWN_NAMES = 100


def _lower(name: Any) -> str:
    return name.lower() if isinstance(name, str) else str(name).lower()


@metric(
    needs=("tool_calls",),
    references=("expected_tools",),
    threshold=0.7,
    aliases=("agenteval:code_tool_selection", "agenteval:ToolSelectionMetric"),
)
def code_tool_selection(
    turn: Turn,
    *,
    expected_tools: ExpectedTools | None = None,
    strict_order: bool = False,
    extra_penalty: Share = 0.10,
    order_penalty: Share = 0.20,
) -> Result:
    """Share of the expected tools that were called, minus a penalty for each tool that was not expected.

    Names compare without case. An expected tool counts when it was called anywhere in the turn; a name that is listed twice
    counts twice but one call is enough for both. Each distinct unexpected tool costs ``extra_penalty``. Nothing expected
    and nothing called is 1; with nothing expected only the penalties count. The value never falls below 0.

    Parameters:
        expected_tools: names (or objects with ``name``); default the turn's reference ``expected_tools``. Skipped with
            ``missing:expected_tools`` when there is neither.
        strict_order: whether the first calls must be the expected tools one by one. Only checked when all of them were called;
            a single other call before them is then out of order.
        extra_penalty: cost of an unexpected tool.
        order_penalty: cost of the wrong order.

    Detail: ``matched``, ``missed``, ``extra`` (names), ``strict_order``.

    Source: AgentEval code_tool_selection.
    """
    entries = expected_entries(turn, expected_tools, "expected_tools")
    if entries is None:
        return skip("missing:expected_tools")
    calls = turn.tool_calls or []
    expected = [(_lower(name), name) for name in map(entry_name, entries)]
    wanted = {key for key, _ in expected}
    called = {_lower(call.name): call.name for call in reversed(calls)}  # reversed: the first spelling is kept
    matched = [name for key, name in expected if key in called]
    missed = [name for key, name in expected if key not in called]
    extra = list(dict.fromkeys(called[key] for call in calls if (key := _lower(call.name)) not in wanted))
    value = max(0.0, (len(matched) / len(expected) if expected else 1.0) - extra_penalty * len(extra))
    if strict_order and not missed and [_lower(call.name) for call in calls[: len(expected)]] != [key for key, _ in expected]:
        value = max(0.0, value - order_penalty)
    detail = {"matched": matched, "missed": missed, "extra": extra, "strict_order": strict_order}
    return Result(value, explanation=expected_and_called(entries, turn, value), detail=detail)


def _is_empty(value: Any) -> bool:
    return value is None or (isinstance(value, str) and not value.strip()) or (isinstance(value, (list, dict)) and not value)


@metric(
    needs=("tool_calls",),
    references=("required_arguments",),
    threshold=0.7,
    aliases=("agenteval:code_tool_arguments", "agenteval:ToolArgumentsMetric"),
)
def code_tool_arguments(
    turn: Turn,
    *,
    required_arguments: dict[str, list[str]] | None = None,
    non_empty: bool = False,
    schemas: bool = False,
) -> Result:
    """Share of the required arguments that the tool calls gave.

    Every call of a configured tool is checked for each of its required names; tool and argument names compare without case.
    An argument is given when its key is there, whatever its value. Arguments that are unknown are all missing. Without a
    call of a configured tool it is 1 and vacuous.

    Parameters:
        required_arguments: ``{tool: [argument, …]}``; default the turn's reference ``required_arguments``. Skipped with
            ``missing:criteria`` when there is neither and ``schemas`` is off.
        non_empty: whether null, blank text and empty lists and objects count as missing.
        schemas: whether each call of a tool that the turn has a definition of is also checked, as one further check, against
            the JSON Schema of its parameters; needs the extra ``[structured]``.

    Detail: ``total_checks``, ``passed_checks``, ``issues`` (texts such as ``SendEmail: missing 'to'``, at most 100).

    Source: AgentEval code_tool_arguments.
    """
    given = reference(turn, required_arguments, "required_arguments")
    if given is None and not schemas:
        return skip("missing:criteria")
    required = _required_names(given or {})
    definitions = _parameter_schemas(turn) if schemas else {}
    total, issues = 0, []
    for call in turn.tool_calls or ():
        name = _lower(call.name)
        names = required.get(name, ())
        total += len(names)
        issues += _missing_arguments(call, names, non_empty)
        if name in definitions:
            total += 1
            found = violations(definitions[name], call.arguments, feature="code_tool_arguments with schemas")
            if found:
                issues.append(f"{call.name}: {found[0]['path']} {found[0]['message']}")
    if not total:
        return vacuous(1.0, total_checks=0, passed_checks=0, issues=[])
    passed = total - len(issues)
    return Result(passed / total, detail={"total_checks": total, "passed_checks": passed, "issues": issues[:_SHOWN_ISSUES]})


def _required_names(given: Any) -> dict[str, list[str]]:
    if not isinstance(given, dict):
        raise MetricError("invalid_reference", f"required_arguments must be an object, not {type(given).__name__}")
    required: dict[str, list[str]] = {}
    for tool, names in given.items():
        listed = names if isinstance(names, (list, tuple)) else () if names is None else (names,)
        required.setdefault(_lower(tool), []).extend(map(str, listed))
    return required


def _parameter_schemas(turn: Turn) -> dict[str, dict[str, Any]]:
    """Lower-cased tool name → JSON Schema of its parameters, of the definitions that have one."""
    return {
        _lower(definition.get("name")): definition["parameters"]
        for definition in turn.tool_definitions
        if isinstance(definition.get("parameters"), dict)
    }


def _missing_arguments(call: ToolCall, names: list[str] | tuple[()], non_empty: bool) -> list[str]:
    if not names:
        return []
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    present = {_lower(key) for key, value in arguments.items() if not (non_empty and _is_empty(value))}
    return [f"{call.name}: missing '{name}'" for name in names if _lower(name) not in present]


def _error_text(error: ErrorInfo | None) -> str:
    if error is None:
        return "permission_denied"
    return excerpt(error.type or error.message or "error", _SHOWN)


@metric(
    needs=("tool_calls",),
    threshold=0.7,
    inline=True,
    groups=("quality",),
    aliases=(
        "agenteval:code_tool_success",
        "agentunit:tool_success",
        "agenteval:ToolSuccessMetric",
        "agentunit:ToolSuccessMetric",
    ),
)
def code_tool_success(turn: Turn, *, empty_value: Share | None = 1.0, count_denied: bool = False) -> Result:
    """Share of tool calls that did not end in an error.

    A call failed when its span has an error (status ERROR, ``error.type``) or its result was marked as one. A call without
    a status counts as a success.

    Parameters:
        empty_value: the value, marked vacuous, of a turn without tool calls; null to skip such turns.
        count_denied: whether a call that was denied permission counts as failed.

    Detail: ``total``, ``successful``, ``failed`` ``[{name, error}]``.

    Sources: AgentEval code_tool_success, AgentUnit tool_success.
    """
    calls = turn.tool_calls
    if not calls:
        return skip("missing:tool_calls") if empty_value is None else vacuous(empty_value, total=0, successful=0, failed=[])
    failed = [
        {"name": call.name, "error": _error_text(call.error)}
        for call in calls
        if call.error is not None or (count_denied and call.permission_denied)
    ]
    total = len(calls)
    successful = total - len(failed)
    why = (
        f"{len(failed)} of {total} calls failed: {', '.join(dict.fromkeys(str(call['name']) for call in failed))}"
        if failed
        else None
    )
    return Result(successful / total, explanation=why, detail={"total": total, "successful": successful, "failed": failed})


@metric(
    needs=("tool_calls",),
    threshold=0.7,
    groups=("quality",),
    aliases=("agenteval:code_tool_efficiency", "agenteval:ToolEfficiencyMetric"),
)
def code_tool_efficiency(
    turn: Turn,
    *,
    max_calls: Annotated[int, Ge(0)] = 10,
    max_duration_s: Annotated[float, Ge(0)] = 30,
    duplicate_key: Literal["name", "name_args"] = "name",
) -> Result:
    """How sparingly tools were used: few calls, little time, no repeats.

    Out of 100: the mean of 100 minus 10 for each call over ``max_calls`` and of 100 minus 5 for each second over
    ``max_duration_s`` (neither below 0), minus 5 for each repeat; the value is that divided by 100, at least 0. The time is
    the sum of the calls' durations, so parallel calls add up; a call without timing takes 0 s. Without calls it is 1 and vacuous.

    Parameters:
        max_calls: calls that cost nothing.
        max_duration_s: seconds that cost nothing.
        duplicate_key: what a repeat is: ``name``, the same tool again (case-sensitive), or ``name_args``, the same tool with
            the same arguments, which suits agents that search more than once. Unknown arguments are never the same.

    Detail: ``call_count``, ``total_duration_s``, ``duplicates`` ``{name: calls}`` of the tools that were repeated (with
    ``name_args``: the calls that equal another).

    Source: AgentEval code_tool_efficiency.
    """
    calls = turn.tool_calls
    if not calls:
        return vacuous(1.0, call_count=0, total_duration_s=0.0, duplicates={})
    count = len(calls)
    total = 0.0
    for call in calls:
        total += call.duration_s or 0.0
    repeats, duplicates = _repeats(calls, duplicate_key == "name_args")
    call_points = 100 if count <= max_calls else max(0, 100 - 10 * (count - max_calls))
    time_points = 100 if total <= max_duration_s else max(0.0, 100 - 5 * (total - max_duration_s))
    value = max(0.0, (call_points + time_points) / 2 - 5 * repeats) / 100
    return Result(value, detail={"call_count": count, "total_duration_s": total, "duplicates": duplicates})


def _repeats(calls: list[ToolCall], with_arguments: bool) -> tuple[int, dict[str, int]]:
    """How many calls repeat an earlier one, and for each repeated name how many calls are alike."""
    seen: dict[Any, int] = {}
    for call in calls:
        key: Any = call.name
        if with_arguments:
            key = (key, id(call) if call.arguments is None else canonical(call.arguments))
        seen[key] = seen.get(key, 0) + 1
    if len(seen) == len(calls):
        return 0, {}
    duplicates: dict[str, int] = {}
    for key, alike in seen.items():
        if alike > 1:
            name = key[0] if with_arguments else key
            duplicates[name] = duplicates.get(name, 0) + alike
    return len(calls) - len(seen), duplicates


@metric(needs=("tool_calls",), references=("expected", "expected_tools"), threshold=0.5, aliases=("trusys:tool-correctness",))
def code_tool_correctness(
    turn: Turn,
    *,
    expected: ExpectedTools | None = None,
    check_arguments: bool = False,
    check_output: bool = False,
    exact_match: bool = False,
    ordered: bool = False,
) -> Result:
    """How much of the expected tool calls was made, optionally with the right arguments and outputs.

    For each expected call, in their order, the best match among the calls that are still unused counts: 1 for the same name
    (case-sensitive), times the similarity of the arguments when they are checked, 0 when outputs are checked and differ. The
    value is the sum over the number of expected calls; other calls cost nothing. The similarity of two argument objects is 1
    when they are equal, else the share of their keys together that both have with equal values, nested objects by their own
    similarity. What an expected call does not state is not compared. Nothing expected and nothing called is 1; nothing
    expected but calls made is 0.

    Parameters:
        expected: names or ``{name, arguments?, output?}``; default the turn's reference ``expected``, else
            ``expected_tools``. Skipped with ``missing:expected_tools`` when there is neither.
        check_arguments: whether arguments are compared.
        check_output: whether outputs are compared (as JSON).
        exact_match: 1 when there are as many calls as expected ones and each matches wholly at its place, else 0.
        ordered: whether the order counts: the value is the heaviest common subsequence over the number expected.

    Detail: ``expected_count``, ``call_count``; ``scores`` of the expected calls, in their order, unless ``exact_match`` or
    ``ordered``.

    Source: Trusys tool-correctness.
    """
    entries = expected_entries(turn, expected, "expected", "expected_tools")
    if entries is None:
        return skip("missing:expected_tools")
    calls = turn.tool_calls or []
    wanted = [Expectation.read(entry, check_arguments=check_arguments, check_output=check_output) for entry in entries]
    detail: dict[str, Any] = {"expected_count": len(wanted), "call_count": len(calls)}
    if not wanted:
        return Result(0.0 if calls else 1.0, detail=detail)
    if exact_match:
        value = float(match_at_places(wanted, calls))
    elif ordered:
        value = match_in_order(wanted, calls) / len(wanted)
    else:
        scores = match_in_any_order(wanted, calls)
        value, detail = sum(scores) / len(wanted), {**detail, "scores": scores}
    return Result(value, explanation=expected_and_called(entries, turn, value), detail=detail)


def _called(turn: Turn) -> dict[str, Any]:
    """The detail ``called``: the distinct names that were called, in the order of their first calls."""
    return {"called": list(dict.fromkeys(call.name for call in turn.tool_calls or ()))[:_SHOWN_NAMES]}


def _calls_of(turn: Turn, tool: str) -> list[ToolCall]:
    return [call for call in turn.tool_calls or () if call.name == tool]


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:ToolWasCalledEvaluator",))
def code_tool_was_called(turn: Turn, *, tool: ToolName) -> Result:
    """Whether a tool was called at least once.

    Names compare exactly, with case. A call that failed is a call. Without any calls it is 0; unknown calls are skipped.

    Parameters:
        tool: required; the tool's name.

    Detail: ``called``, the distinct names that were called (at most 100).

    Source: HPD ToolWasCalledEvaluator.
    """
    return Result(any(call.name == tool for call in turn.tool_calls or ()), detail=_called(turn))


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:ToolCallCountEvaluator",))
def code_tool_call_count(
    turn: Turn,
    *,
    tool: ToolName,
    count: Count | None = None,
    min: Count | None = None,  # noqa: A002 - the catalogue's parameter name
    max: Count | None = None,  # noqa: A002 - the catalogue's parameter name
) -> Result:
    """Whether a tool was called as often as it should be.

    Names compare exactly, with case; calls of other tools do not matter, calls that failed count. A count of 0 passes when
    the tool was never called.

    Parameters:
        tool: required; the tool's name.
        count: the exact number of calls; it wins over ``min`` and ``max``.
        min, max: bounds, inclusive. One of the three is required.

    Detail: ``actual``, the number of calls.

    Source: HPD ToolCallCountEvaluator.
    """
    if count is None and min is None and max is None:
        raise MetricError("missing_parameter", "code_tool_call_count: count, min or max is required")
    actual = len(_calls_of(turn, tool))
    if count is not None:
        passed = actual == count
    else:
        passed = (min is None or actual >= min) and (max is None or actual <= max)
    return Result(passed, detail={"actual": actual})


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:ToolArgumentMatchesEvaluator",))
def code_tool_argument_matches(turn: Turn, *, tool: ToolName, argument: str, expected: Any) -> Result:
    """Whether some call of a tool had the expected value for an argument.

    One call that matches is enough. Names of tool and argument compare exactly, with case; only the keys of the arguments
    themselves are looked at, not those of objects inside. A call without the key, or whose arguments are unknown, does
    not match.

    Parameters:
        tool: required; the tool's name.
        argument: required; the argument's name.
        expected: required. A text is compared with the argument's text, or with its compact JSON when it is not a text: ``5``
            matches 5, ``true`` and ``True`` match true, ``null`` matches null. Any other value compares as JSON: 1 equals
            1.0, true does not equal 1, and 5 does not match the text ``5``.

    Detail: ``calls``, how many calls of the tool were compared.

    Source: HPD ToolArgumentMatchesEvaluator.
    """
    calls = _calls_of(turn, tool)
    passed = any(
        argument in call.arguments and _is_value(call.arguments[argument], expected)
        for call in calls
        if isinstance(call.arguments, dict)
    )
    return Result(passed, detail={"calls": len(calls)})


def _is_value(actual: Any, expected: Any) -> bool:
    if not isinstance(expected, str) or isinstance(actual, str):
        return json_equal(actual, expected)
    if isinstance(actual, bool):
        return expected in ("true", "True") if actual else expected in ("false", "False")
    return jsonio.dumps(actual) == expected


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:ToolResultContainsEvaluator",))
def code_tool_result_contains(turn: Turn, *, tool: ToolName, expected: TextOrNumber, ignore_case: bool = False) -> Result:
    """Whether the result of some call of a tool contains a text.

    One call is enough. Names compare exactly, with case. A result that is not a text is searched as compact JSON
    (``{"city":"Paris"}``), a missing result as the empty text. Without a call of the tool it is 0.

    Parameters:
        tool: required; the tool's name.
        expected: required; a number is looked for as it is written in JSON (``5.0`` as ``5``).
        ignore_case: whether both sides are lower-cased first.

    Detail: ``calls``, how many calls of the tool there were.

    Source: HPD ToolResultContainsEvaluator.
    """
    wanted = rendered(expected)
    calls = _calls_of(turn, tool)
    if ignore_case:
        wanted = wanted.lower()
        passed = any(wanted in jsonio.text_of(call.result).lower() for call in calls)
    else:
        passed = any(wanted in jsonio.text_of(call.result) for call in calls)
    return Result(passed, detail={"calls": len(calls)})


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:NoToolsCalledEvaluator",))
def code_no_tools_called(turn: Turn) -> Result:
    """Whether no tool was called. A call that failed is a call.

    Unknown calls are skipped with ``missing:tool_calls``, because they do not mean that there were none.

    Detail: ``called``, the distinct names that were called (at most 100).

    Source: HPD NoToolsCalledEvaluator.
    """
    return Result(not turn.tool_calls, detail=_called(turn))


@metric(needs=("tool_calls",), references=("expected", "expected_tools"), boolean=True, aliases=("hpd:ToolCallOrderEvaluator",))
def code_tool_call_order(turn: Turn, *, expected: ExpectedTools | None = None) -> Result:
    """Whether the expected tools were called in their order.

    Other calls may come before, between and after them; a name that is listed twice needs two calls. Names compare exactly,
    with case. Nothing expected is 1 and vacuous.

    Parameters:
        expected: names (or objects with ``name``); default the turn's reference ``expected``, else ``expected_tools``.
            Skipped with ``missing:expected_tools`` when there is neither.

    Detail: ``matched_prefix``, how many of the expected tools were met, from the first on.

    Source: HPD ToolCallOrderEvaluator.
    """
    entries = expected_entries(turn, expected, "expected", "expected_tools")
    if entries is None:
        return skip("missing:expected_tools")
    if not entries:
        return vacuous(True, matched_prefix=0)
    names = [entry_name(entry) for entry in entries]
    met = 0
    for call in turn.tool_calls or ():
        if met < len(names) and call.name == names[met]:
            met += 1
    is_met = met == len(names)
    return Result(is_met, explanation=expected_and_called(entries, turn, float(is_met)), detail={"matched_prefix": met})


@metric(needs=("tool_calls",), references=("expected_tools",), aliases=("hpd:ToolCallF1Evaluator",))
def code_tool_call_f1(
    turn: Turn, *, expected_tools: ExpectedTools | None = None, mode: Literal["multiset", "set"] = "multiset"
) -> Result:
    """How well the called tools agree with the expected ones, in any order: F1 of precision and recall.

    ``2PR / (P + R)`` with P the share of the calls that were expected and R the share of the expected calls that were made;
    each expected entry is met by one call of that name. Names compare exactly, with case. Nothing expected and nothing
    called is 1; only one of them is 0. Only trends, unless a ``threshold`` is set.

    Parameters:
        expected_tools: names (or objects with ``name``); default the turn's reference ``expected_tools``. Skipped with
            ``missing:expected_tools`` when there is neither.
        mode: ``set`` counts each name once, however often it was expected or called.

    Detail: ``precision``, ``recall``.

    Source: HPD ToolCallF1Evaluator.
    """
    entries = expected_entries(turn, expected_tools, "expected_tools")
    if entries is None:
        return skip("missing:expected_tools")
    wanted = Counter(entry_name(entry) for entry in entries)
    called = Counter(call.name for call in turn.tool_calls or ())
    if mode == "set":
        wanted, called = Counter(wanted.keys()), Counter(called.keys())
    if not wanted and not called:
        return Result(1.0, detail={"precision": 1.0, "recall": 1.0})
    met = (wanted & called).total()
    precision = met / called.total() if called else 0.0
    recall = met / wanted.total() if wanted else 0.0
    value = 2 * precision * recall / (precision + recall) if met else 0.0
    explanation = expected_and_called(entries, turn, value)
    return Result(value, explanation=explanation, detail={"precision": precision, "recall": recall})


@metric(boolean=True, aliases=("hpd:HasMatchingSpanEvaluator", "hpd:SpanQuery"))
def code_has_matching_span(turn: Turn, *, query: dict[str, Any]) -> Result:
    """Whether some span of the turn meets a query: its name, attributes, duration, place and relatives.

    All spans are tried, with their actual children and ancestors within the turn. All conditions of a query must hold; a query
    without conditions matches every span. Without spans it is 0.

    | condition | holds when |
    |---|---|
    | ``name_equals``, ``name_contains`` | the name is, or contains, the text, with case |
    | ``name_matches_regex`` | the pattern occurs in the name (RE2, extra ``[text]``) |
    | ``has_attributes`` | each attribute is there with the value: as the same text (``200`` is 200), booleans as booleans |
    | ``has_attribute_keys`` | each attribute is there |
    | ``min_duration_s``, ``max_duration_s`` | the duration is known and within the bound, inclusive |
    | ``min_child_count``, ``max_child_count`` | so many children, inclusive |
    | ``min_depth``, ``max_depth`` | so many ancestors, inclusive |
    | ``some_child_matches``, ``all_children_match``, ``no_child_matches`` | the children match this query |
    | ``some_descendant_matches``, ``all_descendants_match``, ``no_descendant_matches`` | the descendants do |
    | ``stop_recursing_when`` | of the three above: a span that matches it is left out, and all below it |
    | ``some_ancestor_matches``, ``all_ancestors_match``, ``no_ancestor_matches`` | the ancestors do |
    | ``not`` | this query does not match |
    | ``and``, ``or`` | all, or any, of these queries match; ``or`` allows no condition beside it |

    ``all_…`` holds where there is nothing to match. A condition that is null is ignored. An unknown condition, a value that it
    does not allow, or ``or`` beside another condition is an error.

    Parameters:
        query: required; an object of conditions, at most 50 levels deep.

    Detail: ``matches``, how many spans matched; ``span_id`` and ``span_name`` of the first one.

    Sources: HPD HasMatchingSpanEvaluator, HPD SpanQuery.
    """
    asked = span_queries.checked(query)
    spans = turn.spans
    answers = span_queries.matching(asked, span_queries.Forest(spans))
    detail: dict[str, Any] = {"matches": sum(answers)}
    if True in answers:
        first = spans[answers.index(True)]
        detail |= {"span_id": first.id, "span_name": excerpt(first.name or "", _SHOWN)}
    return Result(bool(detail["matches"]), detail=detail)
