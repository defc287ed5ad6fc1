"""Split texts into words and compare lists of words."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

Tokenizer = Literal["ms", "word", "whitespace"]
"""Name of a tokenizer.

``ms`` splits at white space and makes each symbol or punctuation character a separate word, in upper case. ``word`` returns runs
of letters and digits, in lower case. ``whitespace`` splits at white space, in lower case.
"""

Gram = tuple[str, ...]

_WORD = re.compile(r"[^\W_]+")


_SPACE, _MARK, _NUMBER, _LETTER = range(4)
_ENTITY = re.compile(r"&(quot|amp|lt|gt|apos);")
_ENTITIES = {"quot": '"', "amp": "&", "lt": "<", "gt": ">", "apos": "'"}
_LINE_BREAK = re.compile(r"-\r?\n")


class _Kinds(dict[str, int]):
    def __missing__(self, char: str) -> int:
        category = unicodedata.category(char)[0]
        kind = _SPACE if char.isspace() else {"S": _MARK, "P": _MARK, "N": _NUMBER}.get(category, _LETTER)
        self[char] = kind
        return kind


_KINDS = _Kinds()


def _ms(text: str) -> Iterator[str]:
    """Split a text with the tokenizer ``ms``.

    A number at the start of a word includes the digits and punctuation that follow (``3.14,``), and ends the word. A hyphen at
    the end of a line joins the two parts of the word. Five HTML entities are decoded.
    """
    word = ""
    at = 0
    while at < len(text):
        char = text[at]
        kind = _KINDS[char]
        if kind == _LETTER or (kind == _NUMBER and word):
            upper = char.upper()
            word += upper if len(upper) == 1 else char
            at += 1
            continue
        if char == "-" and (line_break := _LINE_BREAK.match(text, at)):
            at = line_break.end()
            continue
        if word:
            yield word
            word = ""
        if kind == _NUMBER:
            start, at = at, _end_of_number(text, at)
            yield text[start:at]
            continue
        entity = _ENTITY.match(text, at) if char == "&" else None
        if kind == _MARK:
            yield _ENTITIES[entity[1]] if entity else char
        at = entity.end() if entity else at + 1
    if word:
        yield word


def _end_of_number(text: str, at: int) -> int:
    while at < len(text) and (_KINDS[text[at]] == _NUMBER or unicodedata.category(text[at])[0] == "P"):
        at += 1
    return at


def tokens_of(text: str, tokenizer: Tokenizer) -> list[str]:
    if tokenizer == "ms":
        return list(_ms(text))
    return text.lower().split() if tokenizer == "whitespace" else [found.lower() for found in _WORD.findall(text)]


def ngrams(tokens: Sequence[str], n: int) -> Counter[Gram]:
    return Counter(zip(*(itertools.islice(tokens, start, None) for start in range(n)), strict=False))


def skip_bigrams(tokens: Sequence[str]) -> Counter[Gram]:
    return Counter(itertools.combinations(tokens, 2))


def common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence, with one bit per word of ``other``."""
    places: dict[str, int] = {}
    for place, token in enumerate(other):
        places[token] = places.get(token, 0) | 1 << place
    full = (1 << len(other)) - 1
    row = full
    for token in one:
        matched = row & places.get(token, 0)
        row = ((row + matched) | (row - matched)) & full
    return len(other) - row.bit_count()


_VOWELS = "aeiou"


def stem(token: str) -> str:
    """Return an English word without ``ing``, ``ed``, ``es`` or ``s``, by the first rule that fits."""
    length = len(token)
    if length > 5 and token.endswith("ing"):
        return _single_end(token[:-3])
    if length > 4 and token.endswith("ed"):
        return _single_end(token[:-2])
    if length > 4 and token.endswith("es"):
        return token[:-2]
    if length > 3 and token.endswith("s"):
        return token[:-1]
    return token


def _single_end(token: str) -> str:
    """Reduce a double consonant at the end: ``runn`` → ``run``."""
    return token[:-1] if token[-1] == token[-2] and token[-1] not in _VOWELS else token
