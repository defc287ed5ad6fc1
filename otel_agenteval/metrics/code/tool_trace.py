"""These metrics evaluate the agent's tool calls, including failed calls. Metrics that check expected tools or arguments also count
calls that were declined or await approval. ``code_tool_efficiency`` and, by default, ``code_tool_success`` ignore these calls. For
missing calls, use [`llm_tool_correctness`](agentic_judges.md#llm_tool_correctness). In a turn without ``close_reason``, a call
without ``arguments`` or ``result`` has none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from annotated_types import Ge, MinLen

from ...core import jsonio
from ...core.errors import MetricError
from ...core.fact_forms import one_or_more
from ...core.forms import a_mapping, anything, keyed, wrong
from ...core.turn import ToolCall, Turn
from ..lib import spans as span_queries
from ..lib.schema import violations
from ..lib.tokens import words_in
from ..lib.tools import (
    Expectation,
    entry_name,
    expected_and_called,
    expected_entries,
    failure_in,
    lacks_arguments,
    lacks_result,
    match_in_any_order,
    match_in_order,
    why_malformed,
    without_delegation,
)
from ..lib.values import Share, canonical, excerpt, json_equal, readable, reference
from ..registry import Result, metric, skip, vacuous
from .text_matching import TextOrNumber, in_range

ToolName = Annotated[str, MinLen(1)]
Count = Annotated[int, Ge(0)]
ExpectedTools = list[str | dict[str, Any]]

_SHOWN = 200
"""Maximum number of characters of an error message in ``detail``."""
_SHOWN_ISSUES = 100
_COMPARED = 2_000
"""Maximum number of characters of each argument to compare with a later call."""
_SHOWN_NAMES = 100


def _lower(name: Any) -> str:
    return str(name).lower()


@metric(
    needs=("tool_calls",),
    references=("expected_tools",),
    threshold=0.7,
    version="2",
    aliases=("agenteval:code_tool_selection", "agenteval:ToolSelectionMetric"),
)
def code_tool_selection(
    turn: Turn,
    *,
    expected_tools: ExpectedTools | None = None,
    forbidden_tools: list[str] | None = None,
    strict_order: bool = False,
    extra_penalty: Share = 0.10,
    order_penalty: Share = 0.20,
) -> Result:
    """Share of the expected tools that were called, minus a penalty for each unexpected tool.

    The metric ignores the case of tool names. If ``expected_tools`` contains a tool twice, one call counts for both entries, but
    doesn't meet ``strict_order``. Tools that run another agent are ignored unless they are expected or forbidden.

    If the list of expected tools is empty, the value is 1 minus the penalties. The value is at least 0, and 0 if a forbidden tool
    was called.

    Parameters:
        expected_tools: Tool names, or objects with ``name``. The default is the turn's reference ``expected_tools``. If there is no
            list of expected tools, the metric is skipped as ``missing:expected_tools``.
        forbidden_tools: Names of tools that must not be called.
        strict_order: If true, the turn's first calls should be the expected calls, in order. If all expected tools were called, but
            the first calls differ, the value is reduced by ``order_penalty``.
        extra_penalty: Penalty for each unexpected tool, even if it was called several times.
        order_penalty: Penalty for a wrong order, if ``strict_order`` is true.

    Detail: ``strict_order``, and lists of ``matched``, ``missed``, ``extra`` (unexpected), and ``violations`` (forbidden) tools.
    """
    if (entries := expected_entries(turn, expected_tools, "expected_tools")) is None:
        return skip("missing:expected_tools")
    calls = without_delegation(turn, [*entries, *(forbidden_tools or ())])
    expected = [(_lower(name), name) for name in map(entry_name, entries)]
    wanted = {key for key, _ in expected}
    called = {_lower(call.name): call.name for call in reversed(calls)}  # reversed, to keep the first spelling
    matched = [name for key, name in expected if key in called]
    missed = [name for key, name in expected if key not in called]
    extra = list(dict.fromkeys(called[key] for call in calls if (key := _lower(call.name)) not in wanted))
    value = max(0.0, (len(matched) / len(expected) if expected else 1.0) - extra_penalty * len(extra))
    if strict_order and not missed and [_lower(call.name) for call in calls[: len(expected)]] != [key for key, _ in expected]:
        value = max(0.0, value - order_penalty)
    violations = [called[key] for key in map(_lower, forbidden_tools or ()) if key in called]
    detail = {"matched": matched, "missed": missed, "extra": extra, "violations": violations, "strict_order": strict_order}
    return Result(0.0 if violations else value, explanation=expected_and_called(entries, turn, value), detail=detail)


@metric(
    needs=("tool_calls",),
    uses=("metadata",),
    references=("required_arguments",),
    threshold=0.7,
    aliases=("agenteval:code_tool_arguments", "agenteval:ToolArgumentsMetric"),
)
def code_tool_arguments(
    turn: Turn, *, required_arguments: dict[str, list[str]] | None = None, non_empty: bool = False, schemas: bool = False
) -> Result:
    """Share of required arguments that the agent's tool calls contain.

    The metric checks each call to a tool that has required arguments, and ignores the case of names. By default, an argument counts
    as provided if its key exists, even with an empty value. If a call's arguments aren't a JSON object, all of its required
    arguments count as missing.

    The metric ignores a call if its arguments weren't recorded, or if they aren't valid JSON because the turn's content was
    truncated. If all calls to tools with required arguments are ignored, the metric is skipped as ``missing:arguments`` or
    ``truncated``. If there is nothing to check, the value is 1 (vacuous).

    Parameters:
        required_arguments: Required arguments by tool: ``{tool: [argument, …]}``. The default is the turn's reference
            ``required_arguments`` or, if missing or empty, ``required_params`` in its metadata. A JSON Schema can replace a list.
            If all are missing or empty, and ``schemas`` is false, the score is skipped as ``missing:criteria``.
        non_empty: If true, an argument is also missing if its value is null, blank text, or an empty list or object.
        schemas: If true, the metric also checks each call against ``parameters``, the JSON Schema in the tool's definition. This
            adds one check per call. Requires the extra ``[structured]``.

    Detail: ``total_checks``, ``passed_checks``, and ``issues`` (at most 100 messages such as ``SendEmail: missing 'to'``).
    """
    given = reference(turn, required_arguments, "required_arguments") or turn.metadata.get("required_params")
    if given is None and not schemas:
        return skip("missing:criteria")
    required = readable(_required, given or {}, "required_arguments")
    definitions = {
        _lower(definition.get("name")): definition["parameters"]
        for definition in (turn.tool_definitions if schemas else ())
        if isinstance(definition.get("parameters"), dict)
    }
    total, issues, unknown = 0, [], None
    for call in turn.tool_calls or ():
        name = _lower(call.name)
        names = required.get(name, ())
        if (names or name in definitions) and (why := lacks_arguments(turn, call)):
            unknown = why
            continue
        total += len(names)
        issues += _missing_arguments(call, names, non_empty)
        if name in definitions:
            total += 1
            found = violations(definitions[name], call.arguments, feature="code_tool_arguments with schemas")
            if found:
                issues.append(f"{call.name}: {found[0]['path']} {found[0]['message']}")
    if not total:
        return skip(unknown) if unknown else vacuous(1.0, total_checks=0, passed_checks=0, issues=[])
    passed = total - len(issues)
    detail = {"total_checks": total, "passed_checks": passed, "issues": issues[:_SHOWN_ISSUES]}
    return Result(passed / total, explanation=why_malformed(turn, turn.tool_calls or ()) if issues else None, detail=detail)


def _missing_arguments(call: ToolCall, names: Sequence[str], non_empty: bool) -> list[str]:
    arguments = call.arguments if isinstance(call.arguments, dict) else {}
    present = {
        _lower(key)
        for key, value in arguments.items()
        if not non_empty or (value.strip() if isinstance(value, str) else value not in (None, [], {}))
    }
    return [f"{call.name}: missing '{name}'" for name in names if _lower(name) not in present]


def _required(given: Any, path: str) -> dict[str, list[str]]:
    """Return each tool's required arguments. For each tool, ``given`` contains argument names or a JSON Schema."""

    def argument(given: Any, path: str) -> str:
        if isinstance(given, (Mapping, list, tuple)):
            raise wrong(path, given, "text")
        return str(given)

    of_schema = keyed({"required": anything}, required=("required",), ignore_others=True)
    required: dict[str, list[str]] = {}
    for tool, names in a_mapping(given, path).items():
        at = f"{path}.{tool}"
        listed = of_schema(names, at)["required"] if isinstance(names, Mapping) else names
        required.setdefault(_lower(tool), []).extend([] if listed is None else one_or_more(argument)(listed, at))
    return required


@metric(
    needs=("tool_calls",),
    threshold=0.7,
    groups=("default", "quality"),
    aliases={
        f"{seed}:{name}": {"threshold": 0.7}  # in these catalogs, a repaired failure still counts as a failure
        for seed, own in (("agenteval", "code_tool_success"), ("agentunit", "tool_success"))
        for name in (own, "ToolSuccessMetric")
    },
)
def code_tool_success(
    turn: Turn,
    *,
    empty_value: Share | None = 1.0,
    count_denied: bool = False,
    repair_all: bool = False,
    threshold: float | None = None,
) -> Result:
    """Share of tool calls that didn't end in an error.

    A call failed if its span has an error (status ERROR or ``error.type``), or if its result is one of these:

    - an object with ``isError: true``
    - an object that only describes a failure, such as ``{"status": "error"}`` or ``{"success": false, "message": …}``
    - GraphQL ``errors`` with null ``data``, or without ``data`` if an error has ``locations`` or ``extensions``
    - text such as ``Error: …``

    A turn passes if the value is at least 0.7. It also passes if the agent repaired every failure with a later, successful call
    to the same tool with similar arguments, unless that call returned ``""``. This second rule doesn't apply if you set
    ``threshold``, or use an AgentEval or AgentUnit name.

    Parameters:
        empty_value: Value if no tool call counts. This value is vacuous. If null, the score is skipped.
        count_denied: If true, declined calls count as failed. By default, declined calls are ignored.
        repair_all: If true, the turn fails if the agent didn't repair every failure, even if the value reaches the threshold.

    Detail: ``total``, ``successful``, ``failed`` (``[{name, error}]``), and ``repaired`` (number of repaired failures, if above 0).
    """
    calls = [call for call in turn.tool_calls or () if call.ran or (count_denied and call.state == "declined")]
    if not calls:
        return skip("missing:tool_calls") if empty_value is None else vacuous(empty_value, total=0, successful=0, failed=[])
    failed: list[dict[str, Any]] = []
    succeeded: list[ToolCall] = []
    repaired = 0
    for call in reversed(calls):
        if (why := failure_of_call(call, count_denied)) is None:
            succeeded.append(call)
        else:
            failed.insert(0, {"name": call.name, "error": excerpt(why, _SHOWN)})
            repaired += any(is_repaired(call, later) for later in succeeded)
    total = len(calls)
    detail: dict[str, Any] = {"total": total, "successful": total - len(failed), "failed": failed}
    if not failed:
        return Result(1.0, detail=detail)
    names = ", ".join(dict.fromkeys(str(call["name"]) for call in failed))
    explanation = f"{len(failed)} of {total} calls failed: {names}"
    if repaired:
        detail["repaired"] = repaired
        explanation += f" ({repaired} repaired by a later call)"
    passed = None
    if repair_all and repaired < len(failed):
        passed = False
    elif threshold is None and repaired == len(failed):
        passed = True
    return Result(1 - len(failed) / total, passed=passed, explanation=explanation, detail=detail)


def is_repaired(call: ToolCall, later: ToolCall) -> bool:
    if later.name != call.name or later.result == "":
        return False
    wanted = _words_of(call.arguments)
    return later.arguments == call.arguments or 3 * len(wanted & _words_of(later.arguments)) >= max(len(wanted), 1)


def _words_of(arguments: Any) -> set[str]:
    values = arguments.values() if isinstance(arguments, dict) else [arguments]
    return set(words_in(" ".join(jsonio.text_of(value)[:_COMPARED] for value in values)))


def failure_of_call(call: ToolCall, count_denied: bool = False) -> str | None:
    if call.error is not None:
        return call.error.type or call.error.message or "error"
    if count_denied and call.state == "declined":
        return "permission_denied"
    return failure_in(call.result)


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
    optimal_calls: Annotated[int, Ge(0)] | None = None,
) -> Result:
    """Efficiency of tool use. Many, long, or repeated calls lower the value.

    The value is the mean of the following two numbers, minus 0.05 for each repeated call, but at least 0:

    - 1 minus 0.1 for each call over ``max_calls``, at least 0
    - 1 minus 0.05 for each second over ``max_duration_s``, at least 0

    The metric adds up the durations of all calls, even if calls ran in parallel. A call with an unknown duration counts as 0 s. If
    no tool ran, the value is 1 (vacuous).

    Parameters:
        max_calls: Maximum number of calls without a penalty.
        max_duration_s: Maximum total duration without a penalty, in seconds.
        duplicate_key: With ``name``, each call to a tool after the first is a repeated call. With ``name_args``, the arguments must
            also be equal.
        optimal_calls: If set, the value is this number divided by the number of calls (at most 1), without penalties.

    Detail: ``call_count``, ``total_duration_s``, and ``duplicates``. For each tool with repeated calls, ``duplicates`` contains the
    number of these calls, including the first.
    """
    if not (calls := [call for call in turn.tool_calls or () if call.ran]):
        return vacuous(1.0, call_count=0, total_duration_s=0.0, duplicates={})
    count = len(calls)
    total = sum((call.duration_s or 0.0 for call in calls), 0.0)
    by_name = duplicate_key == "name"
    seen = Counter(
        (call.name, None if by_name else id(call) if call.arguments is None else canonical(call.arguments)) for call in calls
    )
    duplicates: Counter[str] = Counter()
    for (name, _), alike in seen.items():
        if alike > 1:
            duplicates[name] += alike
    call_points = 100 if count <= max_calls else max(0, 100 - 10 * (count - max_calls))
    time_points = 100 if total <= max_duration_s else max(0.0, 100 - 5 * (total - max_duration_s))
    value = max(0.0, (call_points + time_points) / 2 - 5 * (count - len(seen))) / 100
    value = value if optimal_calls is None else min(1.0, optimal_calls / count)
    return Result(value, detail={"call_count": count, "total_duration_s": total, "duplicates": dict(duplicates)})


@metric(
    needs=("tool_calls",),
    references=("expected", "expected_tools"),
    threshold=0.5,
    aliases={"trusys:tool-correctness": {"check_arguments": True}},
)
def code_tool_correctness(
    turn: Turn,
    *,
    expected: ExpectedTools | None = None,
    check_arguments: bool = False,
    check_output: bool = False,
    exact_match: bool = False,
    ordered: bool = False,
) -> Result:
    """Share of the expected tool calls that the agent made.

    The metric pairs each expected call with a different actual call of the same tool (case-sensitive), so that the total score of
    all pairs is as high as possible. The value is this total divided by the number of expected calls. Additional calls don't lower
    the value. If no call is expected, the value is 1 if no tool was called, and otherwise 0. Tools that run another agent are
    ignored unless they are expected.

    The score of a pair is 1 or, with ``check_arguments``, the similarity of the arguments. With ``check_output``, the score is 0 if
    the outputs differ. If an expected call lacks ``arguments`` or ``output``, the metric doesn't compare this key.

    The similarity of two objects is the number of keys with equal values, divided by the number of distinct keys in either object.
    The same rule applies to nested objects. If arguments aren't a JSON object, their similarity is 0.

    If the value depends on unrecorded arguments or results, the metric is skipped as ``missing:arguments`` or ``missing:result``. If the value
    depends on arguments that are malformed because the turn's content was truncated, the metric is skipped as ``truncated``.

    Parameters:
        expected: Tool names, or objects ``{name, arguments?, output?}``. The default is the turn's reference ``expected_tools`` or
            ``expected``. If there is no list of expected tools, the metric is skipped as ``missing:expected_tools``.
        check_arguments: If true, the metric also compares arguments.
        check_output: If true, the metric also compares outputs, as JSON. If the actual output is an object with a single key, such
            as ``{"result": …}``, this key's value can match instead.
        exact_match: If true, the value is 1 for exactly the expected calls in this order, and otherwise 0.
        ordered: If true, only calls in the expected order can form pairs.

    Detail: ``expected_count``, ``call_count``, and ``scores`` (the score of each expected call, omitted with ``exact_match`` or ``ordered``).

    If you use the metric name ``trusys:tool-correctness``, the default of ``check_arguments`` is true.
    """
    if (entries := expected_entries(turn, expected, "expected_tools", "expected")) is None:
        return skip("missing:expected_tools")
    calls = without_delegation(turn, entries)
    wanted = [Expectation.read(entry, check_arguments=check_arguments, check_output=check_output) for entry in entries]
    detail: dict[str, Any] = {"expected_count": len(wanted), "call_count": len(calls)}
    if not wanted:
        return Result(0.0 if calls else 1.0, detail=detail)

    def value_of(wanted: list[Expectation]) -> float:
        if exact_match:
            return float(len(wanted) == len(calls) and all(one.match(call) == 1 for one, call in zip(wanted, calls, strict=True)))
        if ordered:
            return match_in_order(wanted, calls) / len(wanted)
        scores = detail["scores"] = match_in_any_order(wanted, calls)
        return math.fsum(scores) / len(wanted)

    names = value_of([one.by_name() for one in wanted])
    value = value_of(wanted)
    lacking = next(filter(None, (one.lacks(turn, calls) for one in wanted)), None) if value < names else None
    if lacking is not None:
        return skip(lacking)
    malformed = why_malformed(turn, calls) if value < names else None
    return Result(value, explanation=malformed or expected_and_called(entries, turn, value, wanted), detail=detail)


def _called_names(turn: Turn) -> dict[str, Any]:
    return {"called": list(dict.fromkeys(call.name for call in turn.tool_calls or ()))[:_SHOWN_NAMES]}


def _calls_of(turn: Turn, tool: str) -> list[ToolCall]:
    return [call for call in turn.tool_calls or () if call.name == tool]


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:ToolWasCalledEvaluator",))
def code_tool_was_called(turn: Turn, *, tool: ToolName) -> Result:
    """Check that a tool was called at least once.

    The tool's name must match exactly. Without tool calls, the metric fails.

    Parameters:
        tool: Name of the tool.

    Detail: ``called`` (distinct names of the called tools, at most 100).
    """
    return Result(any(call.name == tool for call in turn.tool_calls or ()), detail=_called_names(turn))


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:ToolCallCountEvaluator",))
def code_tool_call_count(
    turn: Turn,
    *,
    tool: ToolName,
    count: Count | None = None,
    min: Count | None = None,  # noqa: A002 - the catalog's parameter name
    max: Count | None = None,  # noqa: A002 - the catalog's parameter name
) -> Result:
    """Check that a tool was called the expected number of times.

    The tool's name must match exactly. To check that the tool wasn't called, set ``count`` to 0. If you don't set ``count``,
    ``min``, or ``max``, the score is an error.

    Parameters:
        tool: Name of the tool.
        count: Exact number of calls. Overrides ``min`` and ``max``.
        min: Minimum number of calls.
        max: Maximum number of calls.

    Detail: ``actual`` (number of calls).
    """
    if count is None and min is None and max is None:
        raise MetricError("missing_parameter", "code_tool_call_count: set count, min, or max")
    actual = len(_calls_of(turn, tool))
    return Result(in_range(actual, count, min, max), detail={"actual": actual})


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:ToolArgumentMatchesEvaluator",))
def code_tool_argument_matches(turn: Turn, *, tool: ToolName, argument: str, expected: Any) -> Result:
    """Check that an argument has the expected value in at least one call to a tool.

    The names of the tool and the argument must match exactly. Only top-level arguments are compared. A call doesn't match if the
    argument is missing or if the arguments aren't a JSON object.

    If no call matches, but the arguments of a call weren't recorded, the metric is skipped as ``missing:arguments``. If these
    arguments are malformed because the turn's content was truncated, the metric is skipped as ``truncated``.

    Parameters:
        tool: Name of the tool.
        argument: Name of the argument.
        expected: Expected value. A string also matches a value with this compact JSON text: ``"5"`` matches 5, ``"true"`` and
            ``"True"`` match true, and ``"null"`` matches null. Other values must be equal as JSON: 1 matches 1.0, but not true or ``"1"``.

    Detail: ``calls`` (number of calls to the tool).
    """
    calls = _calls_of(turn, tool)
    given = [call.arguments for call in calls if isinstance(call.arguments, dict)]
    passed = any(argument in arguments and _equals_expected(arguments[argument], expected) for arguments in given)
    unknown = None if passed else next(filter(None, (lacks_arguments(turn, call) for call in calls)), None)
    if unknown is not None:
        return skip(unknown)
    return Result(passed, explanation=None if passed else why_malformed(turn, calls), detail={"calls": len(calls)})


def _equals_expected(actual: Any, expected: Any) -> bool:
    if not isinstance(expected, str) or isinstance(actual, str):
        return json_equal(actual, expected)
    if isinstance(actual, bool):
        return expected in ("true", "True") if actual else expected in ("false", "False")
    return jsonio.dumps(actual) == expected


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:ToolResultContainsEvaluator",))
def code_tool_result_contains(turn: Turn, *, tool: ToolName, expected: TextOrNumber, ignore_case: bool = False) -> Result:
    """Check that at least one result of a tool contains a given string.

    The tool's name must match exactly. A result that isn't a string is searched as compact JSON (``{"city":"Paris"}``). If the tool
    wasn't called, the metric fails. If no result contains the string, and a result wasn't recorded, the metric is skipped as
    ``missing:result``.

    Parameters:
        tool: Name of the tool.
        expected: String to search for. A number is converted to JSON text (``5.0`` to ``5``).
        ignore_case: If true, case is ignored.

    Detail: ``calls`` (number of calls to the tool).
    """
    wanted = jsonio.rendered(expected)
    calls = _calls_of(turn, tool)
    results = [jsonio.text_of(call.result) for call in calls]
    passed = any(wanted.lower() in text.lower() if ignore_case else wanted in text for text in results)
    if not passed and any(lacks_result(turn, call) for call in calls):
        return skip("missing:result")
    return Result(passed, detail={"calls": len(results)})


@metric(needs=("tool_calls",), boolean=True, aliases=("hpd:NoToolsCalledEvaluator",))
def code_no_tools_called(turn: Turn) -> Result:
    """Check that no tool was called.

    Detail: ``called`` (distinct names of the called tools, at most 100).
    """
    return Result(not turn.tool_calls, detail=_called_names(turn))


@metric(needs=("tool_calls",), references=("expected", "expected_tools"), boolean=True, aliases=("hpd:ToolCallOrderEvaluator",))
def code_tool_call_order(turn: Turn, *, expected: ExpectedTools | None = None) -> Result:
    """Check that the expected tools were called in the expected order.

    Other calls can occur before, between, and after the expected calls. Names must match exactly. If ``expected`` contains a name
    twice, the tool must be called twice. If no tool is expected, the value is 1 (vacuous).

    Parameters:
        expected: Tool names, or objects with ``name``. The default is the turn's reference ``expected_tools`` or ``expected``. If
            there is no list of expected tools, the metric is skipped as ``missing:expected_tools``.

    Detail: ``matched_prefix`` (number of expected tools that were called in order before the first missing tool).
    """
    if (entries := expected_entries(turn, expected, "expected_tools", "expected")) is None:
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
    """F1 score of the called tools compared with the expected tools, in any order.

    The value is ``2PR / (P + R)``. P (precision) is the share of the calls that were expected. R (recall) is the share of the
    expected calls that the agent made. A call can match only one expected call. Names must match exactly. Tools that run another
    agent are ignored unless they are expected.

    If no tool is expected, the value is 1 without tool calls, and otherwise 0. If tools are expected but none was called, the value
    is 0.

    Parameters:
        expected_tools: Tool names, or objects with ``name``. The default is the turn's reference ``expected_tools``. If there is no
            list of expected tools, the metric is skipped as ``missing:expected_tools``.
        mode: With ``set``, each name counts once, even if it is expected or called several times.

    Detail: ``precision`` and ``recall``.
    """
    if (entries := expected_entries(turn, expected_tools, "expected_tools")) is None:
        return skip("missing:expected_tools")
    wanted = Counter(entry_name(entry) for entry in entries)
    called = Counter(call.name for call in without_delegation(turn, entries))
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


@metric(
    boolean=True, aliases={"hpd:HasMatchingSpanEvaluator": {"without_spans": "skip"}, "hpd:SpanQuery": {"without_spans": "skip"}}
)
def code_has_matching_span(turn: Turn, *, query: dict[str, Any], without_spans: Literal["fail", "skip"] = "fail") -> Result:
    """Check that at least one span of the turn matches a query.

    A query contains conditions for a span's name, attributes, duration, depth, ancestors, children, and descendants. A span
    matches if all conditions are true. By default, the metric fails if the turn doesn't contain spans.

    | condition | true if |
    |---|---|
    | ``name_equals``, ``name_contains`` | the name equals or contains this string (case-sensitive) |
    | ``name_matches_regex`` | this RE2 pattern matches somewhere in the name (requires the extra ``[text]``) |
    | ``has_attributes`` | each attribute has the given value (the string ``200`` also matches 200) |
    | ``has_attribute_keys`` | each of these attributes exists |
    | ``min_duration_s``, ``max_duration_s`` | the duration is known, and is at least (or at most) this number of seconds |
    | ``min_child_count``, ``max_child_count`` | the number of children is at least (or at most) this number |
    | ``min_depth``, ``max_depth`` | the number of ancestors is at least (or at most) this number |
    | ``some_child_matches``, ``all_children_match``, ``no_child_matches`` | at least one, all, or none of the children match this query |
    | ``some_descendant_matches``, ``all_descendants_match``, ``no_descendant_matches`` | at least one, all, or none of the descendants match this query |
    | ``some_ancestor_matches``, ``all_ancestors_match``, ``no_ancestor_matches`` | at least one, all, or none of the ancestors match this query |
    | ``not`` | the span doesn't match this query |
    | ``and`` | the span matches all of these queries |
    | ``or`` | the span matches any of these queries. ``or`` can't be combined with other conditions of its query |

    Descendant conditions ignore each descendant that matches the query ``stop_recursing_when``, and all spans below it. A
    condition such as ``all_children_match`` is true if the span doesn't have children. Null conditions are ignored. If a condition
    is unknown, a value is invalid, or ``or`` is combined with another condition of its query, the score is an error.

    Parameters:
        query: Object with conditions, nested at most 50 levels deep.
        without_spans: With ``skip``, a turn without spans is skipped as ``missing:spans``. If you use an HPD-Agent name for this
            metric, the default is ``skip``.

    Detail: ``matches`` (number of matching spans), and the ``span_id`` and ``span_name`` of the first match.
    """
    asked = span_queries.checked_query(query)
    spans = turn.spans
    if not spans and without_spans == "skip":
        return skip("missing:spans")
    answers = span_queries.matching_spans(asked, span_queries.Forest(spans))
    detail: dict[str, Any] = {"matches": sum(answers)}
    if True in answers:
        first = spans[answers.index(True)]
        detail |= {"span_id": first.id, "span_name": excerpt(first.name or "", _SHOWN)}
    return Result(bool(detail["matches"]), detail=detail)
