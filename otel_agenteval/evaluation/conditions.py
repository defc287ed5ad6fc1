"""Parse and evaluate conditions on a turn, such as conditions in sampling rules.

    error or score.code_tool_success < 1 or duration_s > 30 or event.user_feedback

A condition can contain turn properties (``duration_s``), event names, score values, and the results of comparisons with earlier
turns (``slow``). If a value is unknown, a comparison with this value is false.
"""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import ConfigError, meant
from ..core.score import Score
from ..core.turn import Turn
from ..metrics.registry import builtin

SCORE_PREFIX = "score."
EVENT_PREFIX = "event."


class Fact(NamedTuple):
    """Turn property that a condition can use by name."""

    text: bool
    """True if the value is text, or False if the value is a number (1 for true, 0 for false)."""
    read: Callable[[Turn], Any] | None
    """Function that returns the value in a turn, or None if the value is unknown.

    ``read`` is None for comparisons with earlier turns, because :class:`Known` contains their results.
    """


class Known(NamedTuple):
    scores: Sequence[Score] = ()
    """Scores known before sampling: computed scores and user feedback or, for ``sample.cascade``, only the first metric's score."""
    compared: Mapping[str, Any] = {}
    """Results of comparisons with earlier turns, by name (see :class:`~otel_agenteval.judging.choose.History`)."""
    events: Collection[str] = ()


FACTS: Mapping[str, Fact] = {
    "error": Fact(False, lambda turn: turn.error is not None),
    "complete": Fact(False, lambda turn: turn.complete),
    "truncated": Fact(False, lambda turn: turn.truncated),
    "duration_s": Fact(False, lambda turn: turn.duration_s),
    "cost_usd": Fact(False, lambda turn: turn.cost_usd),
    "cost_estimated": Fact(False, lambda turn: turn.cost_estimated),
    "input_tokens": Fact(False, lambda turn: turn.usage.input_tokens if turn.usage else None),
    "output_tokens": Fact(False, lambda turn: turn.usage.output_tokens if turn.usage else None),
    "output_chars": Fact(False, lambda turn: None if turn.output is None else len(turn.output)),
    "empty_answer": Fact(False, lambda turn: None if turn.output is None else not turn.output.strip()),
    "tool_calls": Fact(False, lambda turn: None if turn.tool_calls is None else len(turn.tool_calls)),
    "tool_errors": Fact(
        False, lambda turn: None if turn.tool_calls is None else sum(1 for call in turn.tool_calls if call.error is not None)
    ),
    "llm_calls": Fact(False, lambda turn: turn.llm_call_count),
    "revision": Fact(False, lambda turn: turn.revision),
    "agent": Fact(True, lambda turn: turn.agent),
    "service": Fact(True, lambda turn: turn.service),
    "model": Fact(True, lambda turn: turn.llm_calls[-1].model if turn.llm_calls else None),
    "conversation_id": Fact(True, lambda turn: turn.conversation_id),
    "stop_kind": Fact(True, lambda turn: turn.stop_kind),
    "close_reason": Fact(True, lambda turn: turn.close_reason),
    "new_tool": Fact(False, None),
    "slow": Fact(False, None),
    "expensive": Fact(False, None),
}
_Lookup = Callable[[str], Any]
_Test = Callable[[_Lookup], Any]
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Lt: operator.lt, ast.LtE: operator.le, ast.Gt: operator.gt, ast.GtE: operator.ge, ast.Eq: operator.eq, ast.NotEq: operator.ne,
}  # fmt: skip
_CONSTANTS = {"true": 1, "false": 0}
_NAME = re.compile(r"[A-Za-z_][\w.]*")


class Condition:
    """Parsed condition on a turn, in Python syntax. It supports ``and``, ``or``, ``not``, parentheses, and comparisons.

    ``metrics`` contains the names that can follow ``score.``. An invalid condition raises a ConfigError that begins with ``where``.
    """

    def __init__(self, text: str, metrics: Collection[str], where: str) -> None:
        self._text = re.sub(r"\s", " ", text).lstrip()
        self._indent = len(text) - len(text.lstrip())
        self._where = where
        self._known = [*FACTS, *(f"{SCORE_PREFIX}{metric}" for metric in metrics)]
        self._names: set[str] = set()
        try:
            self._test = self._read(ast.parse(self._text, mode="eval").body)
        except SyntaxError as error:
            raise self._fault(error.offset or len(self._text) + 1, f"must be {_EXAMPLE}, got {text!r}: {error.msg}") from None
        except (ValueError, RecursionError, MemoryError):
            raise self._fault(1, f"must be {_EXAMPLE} without deep nesting") from None
        self.names: Collection[str] = frozenset(self._names)

    def holds(self, turn: Turn, known: Known) -> bool:
        def lookup(name: str) -> Any:
            if name.startswith(SCORE_PREFIX):
                metric = name.removeprefix(SCORE_PREFIX)
                return next((score.value for score in known.scores if score.metric == metric), None)
            if name.startswith(EVENT_PREFIX):
                return name.removeprefix(EVENT_PREFIX) in known.events
            read = FACTS[name].read
            return known.compared.get(name) if read is None else read(turn)

        return bool(self._test(lookup))

    def _read(self, node: ast.expr) -> _Test:
        match node:
            case ast.BoolOp(op=op, values=values):
                tests = [self._read(value) for value in values]
                combined = all if isinstance(op, ast.And) else any
                return lambda lookup: combined(test(lookup) for test in tests)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                inner = self._read(operand)
                return lambda lookup: not inner(lookup)
            case ast.Compare(left=left, ops=[op], comparators=[right]) if type(op) in _COMPARISONS:
                return self._comparison(left, _COMPARISONS[type(op)], right)
            case _:
                return self._operand(node)[1]

    def _comparison(self, left: ast.expr, compare: Callable[[Any, Any], bool], right: ast.expr) -> _Test:
        (left_is_text, left_value), (right_is_text, right_value) = self._operand(left), self._operand(right)
        if left_is_text != right_is_text:
            kind = "text" if left_is_text else "number"
            problem = f"must be a {kind} to compare with {ast.unparse(left)}, got {ast.unparse(right)!r}"
            raise self._fault(self._position(right), problem)

        def test(lookup: _Lookup) -> bool:
            a, b = left_value(lookup), right_value(lookup)
            return a is not None and b is not None and compare(a, b)

        return test

    def _operand(self, node: ast.expr) -> tuple[bool, _Test]:
        """Return (True if the operand is text, function that returns the operand's value)."""
        match node:
            case ast.Constant(value=str() | int() | float() as value):
                return isinstance(value, str), lambda lookup: value
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=int() | float() as number)):
                return False, lambda lookup: -number
            case ast.Name(id="true" | "false" as constant):
                return False, lambda lookup: _CONSTANTS[constant]
        name = ast.unparse(node)
        if not _NAME.fullmatch(name):
            raise self._fault(self._position(node), f"must be a name, number, or text, got {name!r}")
        self._names.add(name)
        if not (name.startswith(EVENT_PREFIX) or name in self._known):
            scores = self._known[len(FACTS) :]  # only one in ``judge_if``
            if len(scores) > 1 and (metric := name.removeprefix(SCORE_PREFIX)).startswith("code_") and metric in builtin():
                raise self._fault(self._position(node), f"{metric} isn't configured. Add it to metrics")
            scored = scores[0] if len(scores) == 1 else "score.NAME of a selected code_ metric"
            facts = f"{', '.join(FACTS)}, event.NAME, or {scored}"
            raise self._fault(self._position(node), f"unknown name {name!r}{meant(name, self._known)} (known: {facts})")
        return name in FACTS and FACTS[name].text, lambda lookup: lookup(name)

    def _position(self, node: ast.expr) -> int:
        """Return the 1-based position of a node, in characters. Python's ``col_offset`` counts bytes instead."""
        return len(self._text.encode()[: node.col_offset].decode()) + 1

    def _fault(self, position: int, problem: str) -> ConfigError:
        return ConfigError(f"{self._where}: position {position + self._indent}: {problem}")


_EXAMPLE = 'a condition such as "error or duration_s > 30"'
