"""Find national identity numbers and IBANs in a text.

Each kind of number has a shape, check digits and words that stand before it: ``data/identity_numbers.yaml``. A random number has
valid check digits one time in ten or less, and answers contain many numbers. So most kinds count only after a word that names
them. Kinds without words have such a special shape that they need none. One search finds all of those. The others are found in
three steps, from cheap to expensive, because a search for each of 40 shapes would be slow:

1. A candidate is anything with four digits that the other texts don't contain.
2. A word before the candidate, of any kind.
3. The shapes of the kinds with this word. The first number behind the word counts, also if it isn't the candidate.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from ..core.files import load_yaml
from .identity_checks import CHECKS, Check
from .lists import FOLDER, table
from .texts import lazy


class _NumberKind(NamedTuple):
    name: str
    """``ssn``, ``national_id``, ``passport`` or ``driver_license``."""
    words: tuple[str, ...]
    word: re.Pattern[str]
    shape: str
    number: re.Pattern[str]
    """The shape with its boundaries."""
    is_valid: Check


@cache
def _kinds(*, named: bool) -> tuple[_NumberKind, ...]:
    """Return the kinds that count after a word, or those that need none."""
    return tuple(
        _NumberKind(
            row.get("kind", "national_id"),
            words := tuple(row.get("words", ())),
            lazy("|".join(words)),
            row["shape"],
            lazy(f"(?<![A-Za-z0-9])(?:{row['shape']})(?![A-Za-z0-9])(?!-[0-9])"),
            CHECKS[row.get("check", "none")],
        )
        for row in load_yaml(FOLDER / "identity_numbers.yaml")
        if bool(row.get("words")) == named
    )


def _unnamed_shapes() -> str:
    shapes = "|".join(f"({kind.shape})" for kind in _kinds(named=False))
    return f"(?<![A-Za-z0-9])(?<![0-9][.,/:-])(?:{shapes})(?![A-Za-z0-9])(?![.,:/-][0-9])"


def _any_word(*, ascii_only: bool) -> str:
    words = dict.fromkeys(word for kind in _kinds(named=True) for word in kind.words)
    used = [word for word in words if not ascii_only or re.sub(r"\[[^]]*\]", "", word).isascii()]
    bounded = "|".join(word.removeprefix(r"\b") for word in used if word.startswith(r"\b"))
    return "|".join([rf"\b(?:{bounded})", *(word for word in used if not word.startswith(r"\b"))])  # one test of the boundary


_UNNAMED = lazy(_unnamed_shapes)
"""Numbers that need no word, with a group for each kind."""
_ANY_WORD = lazy(lambda: _any_word(ascii_only=False))
_ANY_ASCII_WORD = lazy(lambda: _any_word(ascii_only=True))
_CANDIDATE = lazy(r"(?<![A-Za-z0-9])[A-Z]{0,6}[- ]?[0-9](?:[ .,\-/]{0,2}[A-Z0-9]){3,24}")
_LEAST_DIGITS = 4
_AROUND_DIGITS = " .,-/ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_REACH = 60
"""Maximum number of characters between the word and its number."""
_LONGEST_NUMBER = 30
_LONGEST_WORD = 40


def identity_numbers(text: str, given: str = "") -> Iterable[tuple[str, int, int, bool]]:
    """Yield ``(kind, start, end, is_valid)`` of numbers, by shape or the word before, that aren't in ``given`` as written."""
    for found in _UNNAMED.finditer(text):
        kind = _kinds(named=False)[(found.lastindex or 1) - 1]
        if kind.is_valid(_without_separators(found.group())):
            yield kind.name, found.start(), found.end(), True
    lowered = text.lower()
    if len(lowered) != len(text):  # a few letters have a longer lower-case form
        lowered = text
    any_word = _ANY_ASCII_WORD if lowered.isascii() else _ANY_WORD
    tried: set[int] = set()
    skipped: dict[str, bool] = {}  # a number that is repeated is searched once, because the other text can be long
    for found in _CANDIDATE.finditer(text):
        candidate = found.group()
        if candidate not in skipped:
            skipped[candidate] = sum(map(str.isdigit, candidate)) < _LEAST_DIGITS or candidate.strip(_AROUND_DIGITS) in given
        if skipped[candidate]:
            continue
        for word in any_word.finditer(lowered, max(0, found.start() - _REACH), found.end()):
            if word.end() not in tried:
                tried.add(word.end())
                yield from _first_number_after(text, lowered, word.end())


def _first_number_after(text: str, lowered: str, word_end: int) -> Iterator[tuple[str, int, int, bool]]:
    """Yield the first number after a word that is valid for its kind, or else the first that only has a kind's shape."""
    before = lowered[max(0, word_end - _LONGEST_WORD) : word_end]
    last_start = min(len(text), word_end + _REACH)
    invalid: tuple[str, int, int, bool] | None = None
    for kind in _kinds(named=True):
        if not any(word.end() == len(before) for word in kind.word.finditer(before)):
            continue
        found = kind.number.search(text, word_end, last_start + _LONGEST_NUMBER)
        if found is None or found.start() > last_start:
            continue
        if kind.is_valid(_without_separators(found.group())):
            yield kind.name, found.start(), found.end(), True
            return
        invalid = invalid or (kind.name, found.start(), found.end(), False)
    if invalid is not None:
        yield invalid


_SEPARATORS = lazy(r"[\W_]+")


def _without_separators(text: str) -> str:
    return _SEPARATORS.sub("", text).upper()


# --- bank accounts

_IBAN = lazy(r"(?<![A-Za-z0-9])[A-Z]{2}[0-9]{2}(?:[ \u00a0-]?[A-Z0-9]{4}){2,7}(?:[ \u00a0-]?[A-Z0-9]{1,3})?(?![A-Za-z0-9])")


def ibans(text: str) -> Iterable[tuple[int, int]]:
    """Yield the start and end of each IBAN with its country's length and valid check digits."""
    known = table("ibans.json")
    lengths, samples = known["lengths"], known["samples"]
    for found in _IBAN.finditer(text):
        start = found.start()
        letters = _without_separators(found.group())  # can be more than the IBAN, if a number follows it
        length = lengths.get(letters[:2], 0)
        iban = letters[:length]
        if not length or len(letters) < length or iban in samples:
            continue
        if int("".join(str(int(sign, 36)) for sign in iban[4:] + iban[:4])) % 97 == 1:
            end = start
            for _ in range(length):
                while not text[end].isalnum():
                    end += 1
                end += 1
            yield start, end
