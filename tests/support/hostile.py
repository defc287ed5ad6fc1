"""Texts of any length that could be slow to process: repeated pieces with a beginning, and an end that doesn't match."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from tests.support.backtracking import c, parser

SIGNS = "aA0é漢٣\u200b \n\t.,:;-_/\\\"'`<>(){}[]|@#=+*!?%&~$^\x00"
_LONGEST_SAMPLE = 80


class Hostile(NamedTuple):
    before: str
    again: str
    end: str

    def text(self, size: int) -> str:
        """Return a text of about ``size`` characters."""
        return self.before + self.again * (size // len(self.again)) + self.end


def hostile(seed: int, pieces: Sequence[str]) -> Iterator[Hostile]:
    """Yield endless texts that consist of whole and cut pieces, punctuation, and both."""
    chance = random.Random(seed)

    def sign() -> str:
        return chance.choice(SIGNS)

    def piece() -> str:
        one = chance.choice(pieces)
        return one if chance.random() < 0.7 else one[: chance.randrange(len(one)) + 1]

    while True:
        again = chance.choice((
            sign, lambda: sign() + sign(), piece, lambda: piece() + sign(), lambda: sign() + piece(), lambda: piece() + piece(),
            lambda: piece() + sign() + piece(),
        ))()  # fmt: skip
        yield Hostile(chance.choice(("", "", sign(), piece(), piece())), again, chance.choice(("", sign(), piece())))


def sample(pattern: re.Pattern[str], seed: int) -> str:
    """Return a text that a pattern may match, from its own words and characters of its classes."""
    chance = random.Random(seed)
    return "".join(_signs(parser.parse(pattern.pattern, pattern.flags), chance))[:_LONGEST_SAMPLE]


def _signs(items: Any, chance: random.Random) -> Iterator[str]:
    for op, argument in items:
        if op is c.LITERAL:
            yield chr(argument)
        elif op in (c.NOT_LITERAL, c.ANY):
            yield chance.choice(SIGNS)
        elif op is c.IN:
            yield _of_class(argument, chance)
        elif op is c.BRANCH:
            yield from _signs(chance.choice(argument[1]), chance)
        elif op is c.SUBPATTERN:
            yield from _signs(argument[-1], chance)
        elif op in (c.MAX_REPEAT, c.MIN_REPEAT):
            least, most, inner = argument
            for _ in range(chance.randint(least, max(least, min(most, least + 2)))):
                yield from _signs(inner, chance)


def _of_class(argument: Any, chance: random.Random) -> str:
    kind, value = chance.choice(argument)
    if kind is c.LITERAL:
        return chr(value)
    if kind is c.RANGE:
        return chr(chance.randint(*value))
    return chance.choice({"digit": "07٣", "word": "aZ_é漢", "space": " \t\n"}.get(str(value).rpartition("_")[2].lower(), SIGNS))
