"""Parse and evaluate conditions on a turn, as sampling rules use them.

    error or score.code_tool_success < 1 or duration_s > 30 or event.user_feedback

A condition can contain facts of the turn, values of the scores that were computed when it closed, and comparisons
with earlier turns. A comparison with an unknown value is false.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..core.errors import ConfigError, nearest
from ..core.score import Score
from ..core.turn import Turn

_DEEPEST = 50
SCORE_PREFIX = "score."
EVENT_PREFIX = "event."


class Fact(NamedTuple):
    """A name that a condition may contain."""

    text: bool
    """True if the value is text. Otherwise, it is a number, and true counts as 1."""
    read: Callable[[Turn], Any] | None
    """Returns the value, or None if it is unknown.

    The function is None if the turn doesn't contain the fact; see :class:`Known`.
    """


class Known(NamedTuple):
    """Values that a condition may contain in addition to facts of the turn."""

    scores: Sequence[Score] = ()
    """Scores that were computed when the turn closed."""
    compared: Mapping[str, Any] = {}
    """Comparisons with earlier turns; see :class:`~otel_agenteval.judging.baselines.History`."""
    events: Collection[str] = ()
    """Names of the events on the turn's spans."""


def _tool_errors(turn: Turn) -> int | None:
    return None if turn.tool_calls is None else sum(1 for call in turn.tool_calls if call.error is not None)


FACTS: Mapping[str, Fact] = {
    "error": Fact(False, lambda turn: turn.error is not None),
    "complete": Fact(False, lambda turn: turn.complete),
    "truncated": Fact(False, lambda turn: turn.truncated),
    "duration_s": Fact(False, lambda turn: turn.duration_s),
    "cost_usd": Fact(False, lambda turn: turn.cost_usd),
    "input_tokens": Fact(False, lambda turn: turn.usage.input_tokens if turn.usage else None),
    "output_tokens": Fact(False, lambda turn: turn.usage.output_tokens if turn.usage else None),
    "output_chars": Fact(False, lambda turn: None if turn.output is None else len(turn.output)),
    "empty_answer": Fact(False, lambda turn: None if turn.output is None else not turn.output.strip()),
    "tool_calls": Fact(False, lambda turn: None if turn.tool_calls is None else len(turn.tool_calls)),
    "tool_errors": Fact(False, _tool_errors),
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
"""Facts of a turn that conditions may contain."""
_OLD_NAMES = {"dear": "expensive"}

Lookup = Callable[[str], Any]
_Test = Callable[[Lookup], Any]


class Condition:
    """A condition on a turn with ``and``, ``or``, ``not``, parentheses and comparisons.

    Names, numbers and texts can be compared.

    Args:
        text: the text of the condition.
        metrics: names of the metrics allowed after ``score.``.
        where: prefix for error messages.

    Raises:
        ConfigError: the condition is invalid.
    """

    def __init__(self, text: str, metrics: Collection[str], where: str) -> None:
        reader = _Reader(text, metrics, where)
        self._test = reader.read()
        self.names: Collection[str] = frozenset(reader.names)
        """The names that the condition contains."""

    def holds(self, turn: Turn, known: Known) -> bool:
        """Return True if the condition is true for a turn."""

        def lookup(name: str) -> Any:
            if name.startswith(SCORE_PREFIX):
                metric = name.removeprefix(SCORE_PREFIX)
                return next((score.value for score in known.scores if score.metric == metric), None)
            if name.startswith(EVENT_PREFIX):
                return name.removeprefix(EVENT_PREFIX) in known.events
            read = FACTS[name].read
            return known.compared.get(name) if read is None else read(turn)

        return bool(self._test(lookup))


# --- parser --------------------------------------------------------------------------------------------------------

_TOKEN = re.compile(
    r"\s*(?:(?P<name>[A-Za-z_][\w.]*)|(?P<number>-?[0-9]+(?:\.[0-9]+)?)|(?P<text>'[^']*'|\"[^\"]*\")|(?P<sign><=|>=|==|!=|<|>|\(|\)))"
)
_COMPARISONS: Mapping[str, Callable[[Any, Any], bool]] = {
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
}  # fmt: skip
_CONSTANTS = {"true": 1, "false": 0}
_WORDS = ("and", "or", "not")


class _Token(NamedTuple):
    kind: str
    """``name``, ``number``, ``text``, ``sign`` or ``end``."""
    text: str
    at: int
    """Position of the first character, starting at 1."""


class _Operand(NamedTuple):
    text: bool
    value: _Test
    token: _Token


class _Reader:
    """A recursive descent parser for or, and, not, comparisons and operands."""

    def __init__(self, text: str, metrics: Collection[str], where: str) -> None:
        self._where = where
        self._metrics = metrics
        self._tokens = self._tokens_of(text)
        self.names: set[str] = set()
        self._next = 0
        self._depth = 0

    def read(self) -> _Test:
        test = self._or()
        if self._token.kind != "end":
            raise self._fault("and, or, or the end")
        return test

    def _tokens_of(self, text: str) -> list[_Token]:
        found, end = [], 0
        text = text.rstrip()
        while end < len(text):
            match = _TOKEN.match(text, end)
            if match is None or match.lastgroup is None:
                start = end + len(text[end:]) - len(text[end:].lstrip())
                raise ConfigError(
                    f"{self._where}: position {start + 1}: must be a name, number, text or sign, got {text[start]!r}"
                )
            found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup) + 1))
            end = match.end()
        return [*found, _Token("end", "the end", len(text) + 1)]

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _fault(self, allowed: str, token: _Token | None = None) -> ConfigError:
        token = token or self._token
        return ConfigError(f"{self._where}: position {token.at}: must be {allowed}, got {token.text!r}")

    def _takes(self, text: str) -> bool:
        if self._token.text != text or self._token.kind not in ("name", "sign"):
            return False
        self._next += 1
        return True

    def _or(self) -> _Test:
        tests = [self._and()]
        while self._takes("or"):
            tests.append(self._and())
        return tests[0] if len(tests) == 1 else lambda lookup: any(test(lookup) for test in tests)

    def _and(self) -> _Test:
        tests = [self._not()]
        while self._takes("and"):
            tests.append(self._not())
        return tests[0] if len(tests) == 1 else lambda lookup: all(test(lookup) for test in tests)

    def _not(self) -> _Test:
        self._depth += 1
        if self._depth > _DEEPEST:
            raise self._fault(f"nested at most {_DEEPEST} levels deep")
        try:
            if self._takes("not"):
                inner = self._not()
                return lambda lookup: not inner(lookup)
            if self._takes("("):
                inner = self._or()
                if not self._takes(")"):
                    raise self._fault("and, or, or )")
                return inner
            return self._comparison()
        finally:
            self._depth -= 1

    def _comparison(self) -> _Test:
        left = self._operand()
        compare = _COMPARISONS.get(self._token.text) if self._token.kind == "sign" else None
        if compare is None:
            return left.value
        self._next += 1
        right = self._operand()
        if left.text != right.text:
            raise self._fault(f"a {'text' if left.text else 'number'} to compare with {left.token.text}", right.token)

        def test(lookup: Lookup) -> bool:
            a, b = left.value(lookup), right.value(lookup)
            return a is not None and b is not None and compare(a, b)

        return test

    def _operand(self) -> _Operand:
        token = self._token
        if token.kind in ("sign", "end") or token.text in _WORDS:
            raise self._fault("a name, number or text")
        self._next += 1
        if token.kind == "name" and token.text not in _CONSTANTS:
            return self._named(token)
        value: Any = token.text[1:-1] if token.kind == "text" else _CONSTANTS.get(token.text)
        if token.kind == "number":
            value = float(token.text)
        return _Operand(token.kind == "text", lambda lookup: value, token)

    def _named(self, token: _Token) -> _Operand:
        name = _OLD_NAMES.get(token.text, token.text)
        self.names.add(name)
        if name.startswith(EVENT_PREFIX) and name != EVENT_PREFIX:
            return _Operand(False, lambda lookup: lookup(name), token)
        known = [*FACTS, *(f"{SCORE_PREFIX}{metric}" for metric in self._metrics)]
        if name not in known:
            facts = f"{', '.join(FACTS)}, event.NAME, or score.NAME of a selected code_ metric"
            raise ConfigError(
                f"{self._where}: position {token.at}: unknown name {token.text!r}. Did you mean {nearest(name, known, 1)[0]}? "
                f"(known: {facts})"
            )
        return _Operand(name in FACTS and FACTS[name].text, lambda lookup: lookup(name), token)
