"""Parse numbers that are written in words of common languages, or in Chinese and Japanese numerals."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..screen import Look, ScreenedWords
from ..texts import in_small_letters, table, tree

_NAMES = table("number_words.json")
"""Number words by language. ``units`` start with zero. ``tens`` start with twenty, or with the placeholder ``_`` for ten."""


def _table() -> dict[str, float]:
    words: dict[str, float] = {}
    for names in _NAMES["languages"].values():
        tens = names["tens"]
        words |= {word: float(value) for value, word in enumerate(names["units"].split())}
        words |= {word: 10.0 * value for value, word in enumerate(tens.split(), start=1 if tens[0] == "_" else 2) if word != "_"}
        words |= {names["hundred"]: 100.0, names["thousand"]: 1000.0}
    for word, value in list(words.items()):  # Russian and Ukrainian genitive
        if word[-1] == "ь" and value >= 5:
            words[word[:-1] + "и"] = value
    for word in ["on", "null", "nul", "en", "to", "ti", "tres", "seratus", "mil"]:  # also words of another language
        del words[word]
    return {**words, "mil": 1000.0, "tres": 3.0, **_NAMES["others"]}


_WORDS = _table()
_WORD = re.compile(rf"\b{tree(_WORDS)}\b")
_FOLLOWED = re.compile(r"(?:[ \u00a0-]|(?<=[\u4e00-\u9fff]))[^\W\d_]")
_NO_CLAIM = frozenset(
    ["once", "elf", "seize", "score", "dozen", "dutzend", "sette", "mille", "cent", "cento", "fortnight"]
)  # words of another language, or idioms
_LINKS = ("", "and", "et", "y", "e")
_ALONE = frozenset(word for word, value in _WORDS.items() if value > 10) - _NO_CLAIM


_SCREENED = ScreenedWords((), screened=tuple(f" {word} " for word in _ALONE))


def may_have_words(text: str, look: Look | None = None) -> bool:
    """Return True if a text probably contains a number above ten in words. This check is much cheaper than a search."""
    if _SCREENED.may_be_in(look) and not _ALONE.isdisjoint(text.lower().replace("-", " ").split()):
        return True
    return not text.isascii() and _NUMERALS.search(text) is not None


def values_of_words(text: str) -> Iterator[tuple[int, int, float]]:
    """Yield ``(start, end, value)`` of each number in words. Adjacent words can form one number, as in "two hundred"."""
    parts: list[float] = []
    start = end = 0
    text = in_small_letters(text)
    for found in _WORD.finditer(text):
        value = _WORDS[found.group()]
        gap = text[end : found.start()] if parts else None
        if gap is not None and len(gap) <= 6 and gap.strip(" \u00a0-").lower() in _LINKS and _fits(parts, value):
            parts.append(value)
        else:
            if parts:
                yield start, end, _combined(parts)
            start, parts = found.start(), [value]
        end = found.end()
    if parts:
        yield start, end, _combined(parts)
    if not text.isascii():
        for found in _NUMERALS.finditer(text):
            total = digit = 0
            for numeral in found.group():
                power = _POWERS.get(numeral)
                total, digit = (total + (digit or 1) * power, 0) if power else (total, _DIGITS[numeral])
            yield found.start(), found.end(), float(total + digit)


def claims_in_words(text: str) -> Iterator[tuple[int, int, float]]:
    """Yield numbers above ten in words. Skip single words such as ``dozen`` or ``hundred``, and those that no word follows."""
    for start, end, value in values_of_words(text):
        word = text[start:end].lower()
        is_figure = word.isalpha() and (value in (1e2, 1e3, 1e6, 1e9) or not _FOLLOWED.match(text, end))
        if value > 10 and word not in _NO_CLAIM and not is_figure:
            yield start, end, value


_DIGITS = {numeral: value for value, numeral in enumerate("一二三四五六七八九", start=1)}
_POWERS = {"十": 10, "百": 100, "千": 1000}
_NUMERALS = re.compile(  # in Chinese and Japanese, such as 四十五
    "[二三四五六七八九十百千](?:(?<=[十百千])[一二三四五六七八九]|[百千][一二三四五六七八九]|十)[一二三四五六七八九十百千]*"
)


def _fits(parts: list[float], value: float) -> bool:
    last = parts[-1]
    if value < 1 or last < 1:
        return False
    if value >= 100 or (last == 10 and 7 <= value <= 9 and parts[-2:-1] in ([60.0], [80.0])):
        return True
    return last >= 100 or (last % 10 == 0 and last >= 20 and value < (20 if last in (60.0, 80.0) else 10))


def _combined(parts: list[float]) -> float:
    total = current = 0.0
    for value in parts:
        if value == 100:
            current = (current or 1) * 100
        elif value >= 1000:
            total += (current or 1) * value
            current = 0.0
        else:
            current += value
    return total + current
