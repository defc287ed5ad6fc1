"""Words of a text, and what two lists of words have in common."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Literal

Tokenizer = Literal["ms", "word", "whitespace"]
"""``ms``: white space separates and every symbol or punctuation character is a word of its own, in capitals; ``word``: runs of
letters and digits, in lower case; ``whitespace``: everything between white space, in lower case."""

Gram = tuple[str, ...]

_WORD = re.compile(r"[^\W_]+")


def _word(text: str) -> list[str]:
    return [found.lower() for found in _WORD.findall(text)]


def _whitespace(text: str) -> list[str]:
    return text.lower().split()


_SPACE, _MARK, _NUMBER, _LETTER = range(4)
_ENTITY = re.compile(r"&(quot|amp|lt|gt|apos);")
_ENTITIES = {"quot": '"', "amp": "&", "lt": "<", "gt": ">", "apos": "'"}
_LINE_BREAK = re.compile(r"-\r?\n")


class _Kinds(dict[str, int]):
    """What a character is to the tokenizer ``ms``; filled as characters come."""

    def __missing__(self, char: str) -> int:
        category = unicodedata.category(char)[0]
        kind = _SPACE if char.isspace() else {"S": _MARK, "P": _MARK, "N": _NUMBER}.get(category, _LETTER)
        self[char] = kind
        return kind


_KINDS = _Kinds()


def _ms(text: str) -> list[str]:
    """The tokenizer ``ms``, in its finer points.

    A number at the start of a word takes the digits and punctuation that follow (``3.14,``) and ends the word; a hyphen at
    the end of a line joins what it divides; five HTML entities are the character that they stand for.
    """
    tokens: list[str] = []
    word: list[str] = []
    at, end = 0, len(text)
    while at < end:
        char = text[at]
        kind = _KINDS[char]
        if kind == _LETTER or (kind == _NUMBER and word):
            upper = char.upper()
            word.append(upper if len(upper) == 1 else char)
            at += 1
            continue
        broken = _LINE_BREAK.match(text, at) if char == "-" else None
        if broken is not None:
            at = broken.end()
            continue
        if word:
            tokens.append("".join(word))
            word.clear()
        if kind == _NUMBER:
            start = at
            at = _end_of_number(text, at)
            tokens.append(text[start:at])
            continue
        entity = _ENTITY.match(text, at) if char == "&" else None
        if kind == _MARK:
            tokens.append(_ENTITIES[entity[1]] if entity else char)
        at = entity.end() if entity else at + 1
    if word:
        tokens.append("".join(word))
    return tokens


def _end_of_number(text: str, at: int) -> int:
    while at < len(text) and (_KINDS[text[at]] == _NUMBER or unicodedata.category(text[at])[0] == "P"):
        at += 1
    return at


_TOKENIZERS: dict[str, Callable[[str], list[str]]] = {"ms": _ms, "word": _word, "whitespace": _whitespace}


def tokens_of(text: str, tokenizer: Tokenizer) -> list[str]:
    """The words of a text, in order."""
    return _TOKENIZERS[tokenizer](text)


def ngrams(tokens: Sequence[str], n: int) -> Counter[Gram]:
    """How often each run of ``n`` words occurs."""
    return Counter(zip(*(itertools.islice(tokens, start, None) for start in range(n)), strict=False))


def skip_bigrams(tokens: Sequence[str]) -> Counter[Gram]:
    """How often each pair of words occurs in this order, with any gap. Its size is the square of the number of words."""
    return Counter(itertools.combinations(tokens, 2))


def common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    """Length of the longest common subsequence.

    One bit per word of ``other``: a zero at place ``i`` says that the subsequence grows there. Every word of ``one`` updates
    all places with a few operations on whole numbers, which is far faster than a table.
    """
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
    """The word without ``ing``, ``ed``, ``es`` or ``s``, by the first rule that fits; no dictionary, English only."""
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
    """``runn`` → ``run``; two vowels stay."""
    return token[:-1] if token[-1] == token[-2] and token[-1] not in _VOWELS else token
