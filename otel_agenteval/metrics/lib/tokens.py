"""Split texts into words and compare lists of words."""

from __future__ import annotations

import itertools
import re
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Literal

from ...detectors.texts import lazy

Tokenizer = Literal["ms", "word", "whitespace"]
"""Name of a tokenizer.

* ``ms`` splits at whitespace, makes most emoji, symbols, and punctuation characters separate words, and returns upper case.
* ``word`` returns runs of letters and digits in lower case or, if the text has none, its symbols.
* ``whitespace`` splits at whitespace and returns lower case.

All tokenizers keep combining marks with their letters, and normalize equivalent Unicode forms of a letter. They split scripts
without spaces into characters (Chinese, Japanese) or syllables (Thai, Lao, Khmer, Burmese).
"""

Gram = tuple[str, ...]

_NOT_LATIN = lazy("[\xad\u0300-\u1dff\u200b-\u200f\u202a-\u202e\u2060-\u2069\u20d0-\u218f\u2c00-\U0010ffff]")
"""Characters that :func:`normalized` may change."""
_UNSEEN = lazy(
    "[\xad\u061c\u0640\u200c-\u200f\u202a-\u202e\u2060-\u2069\u20e3\ufe00-\ufe0f\ufeff\U000e0100-\U000e01ef]"
    "(?<![\u2000-\u2fff\ufe0f\U0001f000-\U0001faff]\u200d)"
)
"""Invisible characters that only change how their neighbors are drawn, including zero-width joiners outside emoji."""
_COMPATIBLE = lazy("[\ufb00-\ufdff\ufe70-\uffee]+")
"""Full-width and half-width characters, ligatures, and positional forms of Arabic letters."""
_SPACELESS = lazy(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u9fff\ua9e0-\ua9ef\uaa60-\uaa7a\uf900-\ufaff\U00016fe0-\U0001b16f\U00020000-\U0003ffff]"
)
_SIGN = lazy(
    "&(?:quot|amp|lt|gt|apos);|[\U0001f1e6-\U0001f1ff]{2}|\\S(?:[\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]|\u200d[^\\w\\s])*"
)
"""Pattern for an HTML entity, a flag, or a character with its emoji modifiers."""
_ENTITIES = {"&quot;": '"', "&amp;": "&", "&lt;": "<", "&gt;": ">", "&apos;": "'"}
_LINE_BREAK = re.compile(r"-\r?\n")
_MS = re.compile(r"N[NP_-]*|[LMC](?:[LMCN]|-\r?\n)*|[SP_]|-(?!\r?\n)")
"""Pattern for a word of the tokenizer ``ms``, in a string that contains the kind (see ``_Kinds``) of each character."""


@lazy
def _word() -> str:
    codes = (*range(0x300, 0x3100), *range(0xA600, 0xAC00), *range(0xFB00, 0xFE30))
    marks = "".join(char for char in map(chr, codes) if unicodedata.category(char) in ("Mn", "Mc"))
    return f"\\w[\\w{marks}\U00010a00-\U00016fff\U0001e000-\U0001e94a]*"


@lazy
def _syllable() -> str:
    han = "[\u3005-\u3007\u3021-\u3029\u3031-\u3035\u303b\u3041-\u30ff\u3105-\u312f\u31a0-\u31ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
    han += "\U00016fe0-\U00018cff\U0001aff0-\U0001b16f\U00020000-\U0003ffff][\u3099\u309a]?"
    first, letter, o = "[\u0e40-\u0e42\u0ec0-\u0ec2]", "[\u0e01-\u0e2e\u0e81-\u0eae\u0edc-\u0edf]", "[\u0e2d\u0ead]"
    sign = "[\u0e30-\u0e3a\u0e45\u0e47-\u0e4e\u0eb0-\u0ebd\u0ec8-\u0ece]"
    open_ = f"[\u0e43\u0e44\u0ec3\u0ec4]{letter}{sign}*|{letter}{sign}*[\u0e30\u0e33\u0eb0\u0eb3]"
    final = f"(?![\u0e01\u0e02\u0e04\u0e15\u0e1b\u0e1c\u0e1e][\u0e23\u0e25\u0e27]{sign}){letter}(?!{sign})"
    thai = f"{open_}|(?:{first}{letter}{sign}*|{letter}(?:{sign}+|(?={o}(?!{sign}))))(?:{o}(?!{sign}))?(?:{final})?|{letter}"
    letter, sign = "[\u1780-\u17b3\u17dc]", "[\u17b4-\u17d1\u17d3\u17dd]"
    khmer = f"{letter}(?:\u17d2{letter}|{sign})*(?:{letter}\u17cb|(?<={sign}){letter}(?!{sign}|\u17d2))?"
    letter = "[\u1000-\u102a\u103f\u1050-\u1055\u105a-\u105d\u1061\u1065\u1066\u106e-\u1070\u1075-\u1081\u108e\ua9e0-\ua9ef\uaa60-\uaa7a]"
    sign = "[\u102b-\u1038\u103a-\u103e\u1056-\u1059\u105e-\u1060\u1062-\u1064\u1067-\u106d\u1071-\u1074\u1082-\u108d\u108f\u109a-\u109d]"
    burmese = f"{letter}(?:\u1039{letter}|{sign}|{letter}(?=\u1037?\u103a|\u1039))*"
    return f"({han}|{thai}|{khmer}|{burmese})"


class _Kinds(dict[str, str]):
    """Map of characters to kinds, usually the first letter of their Unicode category."""

    def __missing__(self, char: str) -> str:
        self[char] = " " if char.isspace() else unicodedata.category(char)[0]
        return self[char]


_KINDS = _Kinds(zip("-_\r\n", "-_\r\n", strict=True))


def _ms_tokens(text: str) -> Iterator[str]:
    """Split a text with the tokenizer ``ms``.

    A token that starts with a digit includes the digits and punctuation that follow (``3.14,``), but not letters. A word that is
    hyphenated at the end of a line becomes one token. Five HTML entities are decoded.
    """
    kinds = "".join(map(_KINDS.__getitem__, text))
    done = 0
    for found in _MS.finditer(kinds):
        start, end = found.span()
        if start < done:  # in an emoji or entity
            if end <= done:
                continue
            start = done
        word = text[start:end]
        if kinds[start] in "LMC":
            yield _upper(_LINE_BREAK.sub("", word) if "-" in word else word)
        elif (word == "&" or word > "\u2100") and kinds[start] != "N" and (sign := _SIGN.match(text, start)):
            done = sign.end()
            yield _ENTITIES.get(sign[0], sign[0])
        else:
            yield word


def _upper(word: str) -> str:
    """Return a word in upper case, but keep letters such as ``ß`` that would become two letters."""
    upper = word.upper()
    return upper if len(upper) == len(word) else "".join(char.upper() if len(char.upper()) == 1 else char for char in word)


def normalized(text: str) -> str:
    """Remove invisible characters, normalize letters, and split scripts without spaces."""
    if text.isascii() or _NOT_LATIN.search(text) is None:
        return text
    text = _UNSEEN.sub("", text).replace("\u200b", " ")
    text = unicodedata.normalize("NFC", _COMPATIBLE.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text))
    return " ".join(_syllable.split(text)) if _SPACELESS.search(text) else text


def words_in(text: str) -> list[str]:
    return _word.findall(normalized(text))


def long_words(text: str, least: int) -> frozenset[str]:
    """Return lower-case words of at least ``least`` characters, and words of any length in scripts without spaces."""
    return frozenset(word for word in words_in(text.lower()) if len(word) >= least or _syllable.match(word))


def tokens_of(text: str, tokenizer: Tokenizer) -> list[str]:
    text = normalized(text)
    if tokenizer == "ms":
        return list(_ms_tokens(text))
    text = text.lower()
    if tokenizer == "whitespace":
        return text.split()
    return _word.findall(text.replace("_", " ")) or _SIGN.findall(text)


def ngrams(tokens: Sequence[str], n: int) -> Counter[Gram]:
    return Counter(zip(*(itertools.islice(tokens, start, None) for start in range(n)), strict=False))


def common_subsequence(one: Sequence[str], other: Sequence[str]) -> int:
    places: dict[str, int] = {}
    for place, token in enumerate(other):
        places[token] = places.get(token, 0) | 1 << place
    full = (1 << len(other)) - 1
    row = full
    for token in one:
        matched = row & places.get(token, 0)
        row = ((row + matched) | (row - matched)) & full
    return len(other) - row.bit_count()


def stem(token: str) -> str:
    """Remove ``ing``, ``ed``, ``es``, or ``s`` from the end of a long enough English word."""
    length = len(token)
    if length > 5 and token.endswith("ing"):
        return _single_end(token[:-3])
    if length > 4 and token.endswith("ed"):
        return _single_end(token[:-2])
    if length > 4 and token.endswith("es"):
        return token[:-2]
    return token[:-1] if length > 3 and token.endswith("s") else token


def _single_end(token: str) -> str:
    return token[:-1] if token[-1] == token[-2] and token[-1] not in "aeiou" else token
