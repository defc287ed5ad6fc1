"""Which turns are judged: a share of them that any process would choose alike, and those that a condition names.

A turn's place between 0 and 1 follows from its trace id alone, and is one for all metrics: what is judged at a low rate is a
subset of what is judged at a higher one. The hash keeps it apart from head samplers, which use the trace id's own bits.

    error or score.code_tool_success < 1 or duration_s > 30

Conditions know facts of the turn, and values of the scores that were made when it closed. What is not known meets no comparison.
"""

from __future__ import annotations

import hashlib
import operator
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

from .config import SampleOptions
from .errors import ConfigError, nearest
from .model import Turn
from .score import Score

_SALT = b"agenteval.sampling.v1"
_DEEPEST = 50
SCORE_PREFIX = "score."


def position(trace_id: str, seed: str = "") -> float:
    """Where a trace stands, from 0 up to 1: it is judged at every rate above that.

    Args:
        trace_id: 32 hex digits.
        seed: processes with the same one choose the same traces.
    """
    digest = hashlib.sha256(_SALT + seed.encode() + trace_id.encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


class Fact(NamedTuple):
    """Something that a condition may name."""

    text: bool
    """Whether it is text; else it is a number, true being 1."""
    read: Callable[[Turn], Any]
    """Its value, None while it is not known."""


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
}
"""Facts of a turn that conditions may name."""

Lookup = Callable[[str], Any]
_Test = Callable[[Lookup], Any]


class Rule:
    """Which turns one metric is judged on.

    Args:
        rate: share of all turns, 0 to 1.
        always_if: condition of turns that are judged in any case.
    """

    __slots__ = ("_always", "rate")

    def __init__(self, rate: float = 1.0, always_if: Condition | None = None) -> None:
        self.rate = rate
        self._always = always_if

    def probability(self, turn: Turn, scores: Sequence[Score]) -> float:
        """P(judged | the turn was seen): 1 where the condition holds, else the rate."""
        return 1.0 if self._always is not None and self._always.holds(turn, scores) else self.rate


EVERY_TURN = Rule()
"""What holds where nothing is configured."""


def rule_of(options: SampleOptions, metrics: Collection[str], where: str) -> Rule:
    """The rule that a metric's ``sample`` says.

    Args:
        options: as configured.
        metrics: names of the metrics whose scores its condition may name.
        where: what errors begin with.

    Raises:
        ConfigError: the condition cannot be read: its position, and what is known.
    """
    return Rule(options.rate, None if options.always_if is None else Condition(options.always_if, metrics, f"{where}.always_if"))


class Condition:
    """A condition on a turn: ``and``, ``or``, ``not``, brackets, comparisons of names, numbers and texts.

    Args:
        text: what is written.
        metrics: names of the metrics that ``score.NAME`` may stand for.
        where: what errors begin with.

    Raises:
        ConfigError: it cannot be read.
    """

    def __init__(self, text: str, metrics: Collection[str], where: str) -> None:
        self._test = _Reader(text, metrics, where).read()

    def holds(self, turn: Turn, scores: Sequence[Score]) -> bool:
        """Whether it holds on a turn with these scores."""

        def lookup(name: str) -> Any:
            if name.startswith(SCORE_PREFIX):
                metric = name.removeprefix(SCORE_PREFIX)
                return next((score.value for score in scores if score.metric == metric), None)
            return FACTS[name].read(turn)

        return bool(self._test(lookup))


# --- reading a condition -------------------------------------------------------------------------------------------

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
    """Position of its first character, from 1."""


class _Operand(NamedTuple):
    text: bool
    value: _Test
    token: _Token


class _Reader:
    """Recursive descent: or, and, not, comparison, operand."""

    def __init__(self, text: str, metrics: Collection[str], where: str) -> None:
        self._where = where
        self._metrics = metrics
        self._tokens = self._tokens_of(text)
        self._next = 0
        self._depth = 0

    def read(self) -> _Test:
        test = self._or()
        if self._token.kind != "end":
            raise self._fault("and, or, or the end is expected")
        return test

    def _tokens_of(self, text: str) -> list[_Token]:
        found, end = [], 0
        text = text.rstrip()
        while end < len(text):
            match = _TOKEN.match(text, end)
            if match is None or match.lastgroup is None:
                start = end + len(text[end:]) - len(text[end:].lstrip())
                raise ConfigError(
                    f"{self._where}: position {start + 1}: {text[start]!r} is not allowed; a name, number, text or sign is"
                )
            found.append(_Token(match.lastgroup, match[match.lastgroup], match.start(match.lastgroup) + 1))
            end = match.end()
        return [*found, _Token("end", "the end", len(text) + 1)]

    @property
    def _token(self) -> _Token:
        return self._tokens[self._next]

    def _fault(self, allowed: str, token: _Token | None = None) -> ConfigError:
        token = token or self._token
        return ConfigError(f"{self._where}: position {token.at}: {token.text!r}: {allowed}")

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
            raise self._fault(f"nested deeper than {_DEEPEST}")
        try:
            if self._takes("not"):
                inner = self._not()
                return lambda lookup: not inner(lookup)
            if self._takes("("):
                inner = self._or()
                if not self._takes(")"):
                    raise self._fault("and, or, or ) is expected")
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
            raise self._fault(
                f"a {'text' if left.text else 'number'} is expected, to compare with {left.token.text}", right.token
            )

        def test(lookup: Lookup) -> bool:
            a, b = left.value(lookup), right.value(lookup)
            return a is not None and b is not None and compare(a, b)

        return test

    def _operand(self) -> _Operand:
        token = self._token
        if token.kind in ("sign", "end") or token.text in _WORDS:
            raise self._fault("a name, a number or a text is expected")
        self._next += 1
        if token.kind == "name" and token.text not in _CONSTANTS:
            return self._named(token)
        value: Any = token.text[1:-1] if token.kind == "text" else _CONSTANTS.get(token.text)
        if token.kind == "number":
            value = float(token.text)
        return _Operand(token.kind == "text", lambda lookup: value, token)

    def _named(self, token: _Token) -> _Operand:
        name = token.text
        known = [*FACTS, *(f"{SCORE_PREFIX}{metric}" for metric in self._metrics)]
        if name not in known:
            facts = f"{', '.join(FACTS)}, and score.NAME of a code_ metric that is evaluated"
            raise self._fault(f"unknown name; did you mean {nearest(name, known, 1)[0]}? (known: {facts})", token)
        return _Operand(name in FACTS and FACTS[name].text, lambda lookup: lookup(name), token)
