"""Compare a turn's tool calls with expected tools, and find repeated calls that return nothing new."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ...core import jsonio, literals
from ...core.errors import MetricError
from ...core.forms import a_mapping, anything, keyed, wrong
from ...core.turn import ToolCall, Turn, is_no_object
from ...detectors.numbers.words import values_of_words
from .values import canonical, json_equal, readable, reference

_DEEPEST_SIMILARITY = 50
"""Nesting depth up to which arguments are compared key by key."""
_FAILURE = re.compile(r"\s*(?:(?i:error|fatal)|[A-Z]\w{0,40}(?:Error|Exception))\s?:|\s*Traceback \(most recent call last\)")
_ABOUT_FAILURES = frozenset(
    ("error", "isError", "is_error", "status", "code", "message", "detail", "details", "success", "ok", "type")
)
"""Keys that describe a call's outcome. All other keys of a result are data."""
_OF_GRAPHQL = frozenset(("locations", "extensions"))


def failure_in(result: Any) -> str | None:
    """Return the key or the text that reports a failure in a tool's result, or None.

    Examples of failures are ``{"isError": true}``, ``"ValueError: bad id"``, ``{"error": "not found"}``, and ``{"ok": false,
    "code": 404}``. If a result has a key that isn't in ``_ABOUT_FAILURES``, only ``isError``, ``is_error``, and ``errors`` (in a
    GraphQL response without ``data``) report a failure.
    """
    if isinstance(result, str):
        text = result[:200]
        if text.lstrip()[:1] == "{":
            try:
                return failure_in(jsonio.loads(result))
            except ValueError:
                return None
        found = _FAILURE.match(text)
        return found.group().strip(" \n:") if found else None
    if isinstance(result, dict):
        signs = {key: result.get(key) is True for key in ("isError", "is_error")}
        if result.keys() <= _ABOUT_FAILURES:
            signs |= {"error": bool(result.get("error")), "status": result.get("status") == "error"}
            # without other keys, success or ok can be the answer
            signs |= {key: result.get(key) is False and len(result) > 1 for key in ("success", "ok")}
        errors = result.get("errors")
        if (
            isinstance(errors, list) and errors and result.get("data") is None
        ):  # of GraphQL, but not the errors that a checker found
            signs["errors"] = "data" in result or any(isinstance(one, dict) and one.keys() & _OF_GRAPHQL for one in errors)
        return next((key for key, is_true in signs.items() if is_true), None)
    return None


def expected_entries(turn: Turn, given: Sequence[Any] | None, *names: str) -> list[Any] | None:
    """Return the expected tools from ``given`` or, if it is None, from the turn's references. Return None if neither is set.

    Each entry is a name, or an object with ``name`` and optional ``arguments`` and ``output``. ``_call`` lists alternative names of
    these keys. A string can list several names, separated by commas, semicolons, or vertical bars.

    Raises:
        MetricError: If the reference or an entry can't be read.
    """
    if (entries := reference(turn, given, *names)) is None:
        return None
    if isinstance(entries, str):  # from a dataset
        entries = [name.strip() for name in re.split("[,;|]", entries) if name.strip()]
    elif isinstance(entries, Mapping):
        entries = [entries]
    if not isinstance(entries, (list, tuple, set, frozenset)):
        raise MetricError("invalid_reference", f"{names[0]}: must be a tool or a list of tools, got {type(entries).__name__}")
    found = []
    for number, entry in enumerate(entries):
        call = entry
        if isinstance(entry, Mapping) and isinstance(entry.get("function"), Mapping):  # a tool call in a message of OpenAI's API
            call = {**{key: value for key, value in entry.items() if key != "function"}, **entry["function"]}
        found.append(call if isinstance(call, str) else readable(_call, call, f"{names[0]}[{number}]"))
    return found


def _tool_name(given: Any, path: str) -> str:
    if not isinstance(given, str) or not given:
        raise wrong(path, given, "the name of a tool")
    return given


_call = keyed(
    {
        "name": _tool_name,
        "arguments": lambda given, path: a_mapping(literals.python_value(given) if isinstance(given, str) else given, path),
        "output": anything,
    },
    {
        "name": ("tool", "tool_name", "function_name", "function"),
        "arguments": ("args", "input", "input_parameters", "parameters", "tool_input", "tool_args", "kwargs"),
        "output": ("result", "tool_output"),
    },
    required=("name",),
    ignored=("id", "call_id", "tool_call_id", "type", "index", "description", "reasoning"),
)
"""Reads expected calls with the keys of otel-agenteval, LangChain, Anthropic, DeepEval, or OpenAI."""
_DELEGATES = re.compile(r"delegate_|ask_question_to_")
"""Prefixes of frameworks' built-in tools that delegate to another agent."""
_ASKS = re.compile(r"(?:ask|call|consult|invoke|run|use)_(?:the_)?")
"""Prefix of a tool's name before the name of the called agent, such as ``ask_`` in ``ask_billing``."""


def without_delegation(turn: Turn, entries: Sequence[Any]) -> list[ToolCall]:
    calls = turn.tool_calls or []
    expected = {_normalized(entry_name(entry)) for entry in entries}
    if all(_normalized(call.name) in expected for call in calls):
        return calls
    agents = {_normalized(run.name) for run in turn.agent_runs if run.name}
    # tool spans that are agent runs, or the nearest tool span above an agent run
    tools = {call.span_id for call in calls if call.span_id}
    parents = {span.id: span.parent for span in turn.spans} if turn.agent_runs else {}
    seen: set[str] = set()
    for run in turn.agent_runs:
        at = run.span_id
        while at is not None and at not in seen:
            seen.add(at)
            at = parents.get(at) if at not in tools else None
    ran = seen & tools

    def delegates(call: ToolCall) -> bool:
        name = _normalized(call.name)
        return call.span_id in ran or _DELEGATES.match(name) is not None or name in agents or _ASKS.sub("", name, 1) in agents

    return [call for call in calls if _normalized(call.name) in expected or not delegates(call)]


def _normalized(name: Any) -> str:
    return str(name).strip().lower().replace(" ", "_").replace("-", "_")


def lacks_arguments(turn: Turn, call: ToolCall) -> str | None:
    """Return the skip reason if a call's arguments are unknown, or None.

    In a turn that wasn't rebuilt from spans, missing arguments mean that the call had no arguments.
    """
    if call.arguments is not None:
        return None
    if wrote_no_object(turn, call):
        return "truncated" if turn.truncated else None
    return "missing:arguments" if turn.close_reason is not None else None


def lacks_result(turn: Turn, call: ToolCall) -> bool:
    """Return True if a call in a turn rebuilt from spans has neither a result nor an error."""
    return call.result is None and call.error is None and turn.close_reason is not None


def wrote_no_object(turn: Turn, call: ToolCall) -> bool:
    found: set[str | None] | None = turn.shared.get("calls without an object")
    if found is None:
        requests = [request for message in turn.messages for request in message.tool_calls if request.call_id]
        found = turn.shared["calls without an object"] = {one.call_id for one in requests if is_no_object(one.arguments)}
    return call.arguments is None and (call.malformed or call.call_id in found)


def why_malformed(turn: Turn, calls: Iterable[ToolCall]) -> str | None:
    names = dict.fromkeys(call.name for call in calls if wrote_no_object(turn, call))
    return f"the recorded arguments of {', '.join(names)} aren't a JSON object" if names else None


def entry_name(entry: Any) -> str:
    return entry if isinstance(entry, str) else str(entry["name"])


_MOST_NAMES = 12


def expected_and_called(entries: Sequence[Any], turn: Turn, value: float, wanted: Sequence[Expectation] = ()) -> str | None:
    """Explain a value below 1: list the expected tools, the called tools, and arguments that differ."""
    if value >= 1:
        return None
    calls = turn.tool_calls or ()
    names = f"expected {_listed([entry_name(entry) for entry in entries])}; called {_listed([call.name for call in calls])}"
    return "; ".join(filter(None, (names, *dict.fromkeys(one.difference(calls) for one in wanted))))


def _listed(names: Sequence[str]) -> str:
    shown: list[str] = []
    for name, run in itertools.groupby(names):
        count = sum(1 for _ in run)
        shown.append(name if count == 1 else f"{name} ×{count}")
    return ", ".join([*shown[:_MOST_NAMES], *(["…"] if len(shown) > _MOST_NAMES else [])]) or "none"


@dataclass(frozen=True, slots=True)
class Expectation:
    name: str
    arguments: Any
    output: Any
    compares_arguments: bool
    compares_output: bool

    def by_name(self) -> Expectation:
        return replace(self, compares_arguments=False, compares_output=False)

    def lacks(self, turn: Turn, calls: Sequence[ToolCall]) -> str | None:
        """Return the skip reason if a call to this tool lacks data to compare, or None."""
        for call in calls:
            if call.name == self.name:
                if self.compares_arguments and (self.arguments or call.malformed) and (why := lacks_arguments(turn, call)):
                    return why
                if self.compares_output and lacks_result(turn, call):
                    return "missing:result"
        return None

    @classmethod
    def read(cls, entry: Any, *, check_arguments: bool, check_output: bool) -> Expectation:
        """Create an expectation from a tool's name or an object. If ``arguments`` or ``output`` is missing, it isn't compared."""
        given = entry if isinstance(entry, Mapping) else {}
        return cls(
            entry_name(entry),
            given.get("arguments"),
            given.get("output"),
            compares_arguments=check_arguments and given.get("arguments") is not None,
            compares_output=check_output and "output" in given,
        )

    def difference(self, calls: Sequence[ToolCall]) -> str | None:
        nearest = max((call for call in calls if call.name == self.name), key=self.match, default=None)
        if nearest is None or not self.compares_arguments or nearest.malformed:
            return None
        actual = nearest.arguments or {}
        names = [name for name in {**self.arguments, **actual} if not json_equal(self.arguments.get(name), actual.get(name))]
        return f"{self.name} has other arguments: {_listed(names)}" if names else None

    def match(self, call: ToolCall) -> float:
        if call.name != self.name or (self.compares_output and not _same_output(self.output, call.result)):
            return 0.0
        if not self.compares_arguments:
            return 1.0
        return 0.0 if call.malformed else _similarity(self.arguments, {} if call.arguments is None else call.arguments)


def _same_output(expected: Any, result: Any) -> bool:
    """Return True if the result, or the value of its only key, equals the expected output.

    For example, Google's SDKs wrap a tool's output as ``{"result": …}``, and Amazon's as ``[{"json": …}]``.
    """
    if json_equal(expected, result):
        return True
    if isinstance(result, str):
        result = literals.python_value(result)
        if not isinstance(expected, str) and json_equal(expected, result):
            return True
    if isinstance(result, list) and len(result) == 1:
        result = result[0]
    is_wrapped = isinstance(result, Mapping) and len(result) == 1 and json_equal(expected, *result.values())
    return is_wrapped and failure_in(result) is None


def _similarity(expected: Any, actual: Any, depth: int = 0) -> float:
    if json_equal(expected, actual):
        return 1.0
    if not isinstance(expected, Mapping) or not isinstance(actual, Mapping) or depth > _DEEPEST_SIMILARITY:
        return 0.0
    shared = expected.keys() & actual.keys()
    return sum(_similarity(expected[key], actual[key], depth + 1) for key in shared) / len(expected.keys() | actual.keys())


_MOST_STEPS = 2_000_000
"""Maximum steps of the optimal pairing. Above this limit, the best pairs are chosen greedily."""


def match_in_any_order(expectations: Sequence[Expectation], calls: Sequence[ToolCall]) -> list[float]:
    values = [[expectation.match(call) for call in calls] for expectation in expectations]
    if not calls or len(expectations) * len(calls) * min(len(expectations), len(calls)) > _MOST_STEPS:
        found, free = [0.0] * len(values), set(range(len(calls)))
        ranked = ((value, row, column) for row, line in enumerate(values) for column, value in enumerate(line) if value)
        for value, row, column in sorted(ranked, reverse=True):
            if column in free and not found[row]:
                found[row] = value
                free.remove(column)
        return found
    if len(expectations) > len(calls):
        pairs = {row: column for column, row in enumerate(_pairing(list(map(list, zip(*values, strict=True)))))}
    else:
        pairs = dict(enumerate(_pairing(values)))
    return [line[pairs[number]] if number in pairs else 0.0 for number, line in enumerate(values)]


def _pairing(values: Sequence[Sequence[float]]) -> list[int]:
    """Pair each row with one column, so that the sum of the values is highest (Kuhn-Munkres). Requires columns >= rows."""
    import numpy as np

    cost = -np.array(values)
    rows, columns = cost.shape
    of_row, of_column, row_of = np.zeros(rows), np.zeros(columns), np.full(columns, -1)  # potentials, and the pairs so far
    for row in range(rows):
        least, before, seen = np.full(columns, np.inf), np.full(columns, -1), np.zeros(columns, bool)
        at, at_row = -1, row
        while at_row >= 0:
            reach = cost[at_row] - of_row[at_row] - of_column
            better = ~seen & (reach < least)
            least[better], before[better] = reach[better], at
            at = int(np.where(seen, np.inf, least).argmin())
            step = least[at]
            of_row[row] += step
            of_row[row_of[seen]] += step
            of_column[seen] -= step
            least[~seen] -= step
            seen[at] = True
            at_row = int(row_of[at])
        while at >= 0:
            row_of[at] = row if before[at] < 0 else row_of[before[at]]
            at = int(before[at])
    return [int(np.flatnonzero(row_of == row)[0]) for row in range(rows)]


def match_in_order(expectations: Sequence[Expectation], calls: Sequence[ToolCall]) -> float:
    row = [0.0] * (len(calls) + 1)
    for expectation in expectations:
        previous, row = row, [0.0]
        for column, call in enumerate(calls):
            row.append(max(previous[column + 1], row[column], previous[column] + expectation.match(call)))
    return row[-1]


# --- repeated calls that return nothing new

_WAITS = re.compile(r"(?:^|[^a-z])(?:sleep|wait|delay|pause)(?:[^a-z]|$)", re.IGNORECASE)
_SLEEPS = re.compile(r"\bsleep[ (]{1,2}[0-9]")
"""Command in a call's arguments, such as ``sleep 5``. ``_WAITS`` matches names of tools that wait."""
_GESTURES = re.compile(
    r"press|keystroke|key_?(?:down|up)|scroll|swipe|screenshot|snapshot|(?:^|_)(?:key|tab|tap|click|type|wait|next|back)(?:$|_)",
    re.IGNORECASE,
)
"""Names of tools that operate a screen, such as ``scroll``. Equal calls to such a tool can have different effects."""
_PASSES = re.compile(
    r"\b(?:pending|running|queued|waiting|processing|in[ _-]?progress|provisioning|starting|building|creating|scheduled)\b",
    re.IGNORECASE,
)
"""Words for temporary states, such as ``pending``. A call that returns such a word can be repeated."""
_STATE_UP_TO = 300
"""Maximum characters of a result that only describes a state."""
_DIGITS = re.compile("[0-9]+")


class Circle(NamedTuple):
    name: str
    calls: int
    last: int
    """Position of the last equal call among the turn's calls."""
    size: int


def circles_in(calls: Sequence[ToolCall], names: Collection[str], most: int, asked: str, *, finished: bool) -> list[Circle]:
    """Return groups of more than ``most`` equal calls that returned nothing new, largest first.

    Only calls to tools in ``names`` count. A group is ignored if the user's text (``asked``) contains its number of calls, as in
    "5 times", or if the tool operates a screen. If the turn is ``finished``, repeated calls that wait for a state are ignored too.
    """
    keys = [None if call.arguments is None else (call.name, canonical(call.arguments)) for call in calls]
    if all(count <= most for key, count in Counter(keys).items() if key is not None):
        return []  # true for most turns, and checked before the results are compared
    outcomes = [_outcome(call) for call in calls]
    latest = dict(zip(keys, outcomes, strict=True))
    seen: set[tuple[Any, str]] = set()
    before: dict[Any, str] = {}
    counts: dict[Any, int] = {}
    found: dict[Any, Circle] = {}
    for place, (key, outcome, call) in enumerate(zip(keys, outcomes, calls, strict=True)):
        if _WAITS.search(call.name) or _SLEEPS.search(jsonio.text_of(call.arguments)[:_STATE_UP_TO]):
            counts.clear()
        elif key is None or (key, outcome) not in seen:
            seen.add((key, outcome))
            counts = {key: 1}
        elif call.error is None and outcome != before[key]:  # the state changed back
            counts[key] = 1
        else:
            counts[key] = counts.get(key, 1) + 1
            if counts[key] > most and call.name in names and not _is_polling(call, outcome, latest[key], finished):
                found[key] = Circle(call.name, counts[key], place, len(jsonio.text_of(call.arguments)))
        before[key] = outcome
    words = asked[:10_000] if found else ""
    wanted = {value for _, _, value in values_of_words(words)} | {float(one) for one in _DIGITS.findall(words) if len(one) < 4}
    circles = [circle for circle in found.values() if circle.calls not in wanted and not _operates_screen(calls[circle.last])]
    return sorted(circles, key=lambda circle: -circle.calls)


def _operates_screen(call: ToolCall) -> bool:
    """Return True if the tool's name, or the action in its arguments, is that of a tool that operates a screen."""
    action = call.arguments.get("action") if isinstance(call.arguments, Mapping) else None
    action = action.get("type") if isinstance(action, Mapping) else action
    return _GESTURES.search(f"{call.name}_{action}" if action.__class__ is str else call.name) is not None


def _outcome(call: ToolCall) -> str:
    if call.error is not None:
        return f"error {call.error.type} {call.error.message}"
    return "" if call.result is None else canonical(call.result)


def _is_polling(call: ToolCall, outcome: str, latest: str, finished: bool) -> bool:
    is_state = call.error is None and len(outcome) <= _STATE_UP_TO and _PASSES.search(outcome) is not None
    return outcome != latest or (finished and is_state)
