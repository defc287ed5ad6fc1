"""Read numbers in words, in the most frequent languages and in East Asian numerals."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache, lru_cache

from ..lists import table
from ..screen import Look, ScreenedWords
from ..texts import in_small_letters, tree

_NAMES = table("number_words.json")
"""Names of numbers. The units are those from zero to nineteen, and the tens start at twenty, or at ten behind a ``_``."""
_TURKISH_UNITS = _NAMES["languages"]["tr"]["units"].split()[1:10]


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
    del (
        words["on"],
        words["null"],
        words["nul"],
        words["en"],
        words["to"],
        words["ti"],
        words["tres"],
        words["seratus"],
        words["mil"],
    )
    words |= {f"on\u02bc{unit}": 10.0 + value for value, unit in enumerate(_TURKISH_UNITS, start=1)}
    return {**words, "mil": 1000.0, "tres": 3.0, **_NAMES["others"]}


_WORDS = _table()
_STEMS = ("zig", "tig", "hundert", "cento")
"""Parts of German, Dutch and Italian compounds, in addition to ``anta``, ``enta`` and ``ßig``."""
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)?")
_LINK = re.compile(r"[ \u00a0-]+(?:(?:and|et|y|e|och)[ \u00a0-])?")
_COMPOUND = re.compile(r"und|en|ën|och")
_FOLLOWED = re.compile(r"[ \u00a0-][^\W\d_]")
_TURKISH = re.compile(rf"\bon (?={'|'.join(_TURKISH_UNITS)})")
_NO_CLAIM = frozenset(
    ["once", "elf", "seize", "score", "dozen", "dutzend", "sette", "mille", "cent", "cento", "fortnight"]
)  # words of another language, or idioms
_ALONE = frozenset(word for word, value in _WORDS.items() if value > 10) - _NO_CLAIM


_SCREENED = ScreenedWords((), screened=(*(f" {word} " for word in _ALONE), *_STEMS, "anta", "enta", "ßig"))


def may_have_words(text: str, look: Look | None = None) -> bool:
    """Return True if a text may contain a number above ten in words. This is much cheaper than a search."""
    if not _SCREENED.may_be_in(look):
        return False
    text = text.lower()
    if not _ALONE.isdisjoint(text.replace("-", " ").split()):
        return True
    for stem in _STEMS:  # a generator would be slower than the search
        if stem in text:
            return True
    return ("nta" in text and ("anta" in text or "enta" in text)) or (not text.isascii() and "ßig" in text)


def values_of_words(text: str) -> Iterator[tuple[int, int, float]]:
    """Yield ``(start, end, value)`` of each number in words, with its longest reading."""
    parts: list[float] = []
    start = end = 0
    text = _lowered(text)
    for found in _WORD.finditer(text):
        value = _value(found.group())
        if value is None and not parts:
            continue
        if parts and (value is None or not _is_link(text, end, found.start())):
            if value is None and _is_link(text, end, found.start()) and found.group() in ("and", "et", "y", "e"):
                continue
            yield start, end, _combined(parts)
            parts = []
        if value is not None:
            if not parts:
                start = found.start()
            elif not _fits(parts, value):
                yield start, end, _combined(parts)
                parts, start = [], found.start()
            if value == 20 and parts and parts[-1] == 4:
                parts[-1] = 80.0  # quatre-vingt
            else:
                parts.append(value)
            end = found.end()
    if parts:
        yield start, end, _combined(parts)


def _lowered(text: str) -> str:
    lowered = in_small_letters(text).replace("’", "'")
    return _TURKISH.sub("on\u02bc", lowered) if "on " in lowered else lowered


def claims_in_words(text: str) -> Iterator[tuple[int, int, float]]:
    """Yield the numbers above ten in words, without single round words (``a hundred``), which are figures of speech."""
    for start, end, value in values_of_words(text):
        word = text[start:end].lower()
        if (
            value <= 10
            or word in _NO_CLAIM
            or (word.isalpha() and (value in (1e2, 1e3, 1e6, 1e9) or not _FOLLOWED.match(text, end)))
        ):
            continue  # small, a figure of speech, or a heading
        if value != 100 or not word.startswith("a "):
            yield start, end, value
    if may_have_numerals(text):
        for start, end, value in cjk_value(text):
            numerals = text[start:end]
            if value > 10 and end - start > 1 and numerals[-1] not in "万萬億亿千百" and numerals[0] not in "百千万":
                yield start, end, value


def _is_link(text: str, end: int, at: int) -> bool:
    return at - end <= 6 and text[end:at].strip(" \u00a0-").lower() in ("", "and", "et", "y", "e")


def _fits(parts: list[float], value: float) -> bool:
    last = parts[-1]
    if value < 1 or last < 1:
        return False
    if value >= 100 or (last == 10 and 7 <= value <= 9 and parts[-2:-1] in ([60.0], [80.0])):
        return True
    return (
        last >= 100
        or (last % 10 == 0 and last >= 20 and value < (20 if last in (60.0, 80.0) else 10))
        or (last == 4 and value == 20)
    )


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


@lru_cache(maxsize=4_096)
def _value(word: str) -> float | None:
    known = _WORDS.get(word)
    if known is not None or len(word) < 8 or len(word) > 60:
        return known
    if word.endswith("th") and word[:-2] in _WORDS:
        return _WORDS[word[:-2]]
    return _compound(word)


def _compound(word: str) -> float | None:
    """Read a compound without spaces, such as ``dreiundzwanzig`` or ``vijfentachtig``."""
    parts = _parts(word, 6)
    return _combined(parts) if parts is not None and len(parts) > 1 else None


def _parts(word: str, most: int) -> list[float] | None:
    if not word:
        return []
    if not most:
        return None
    for length in range(min(14, len(word)), 1, -1):
        value = _WORDS.get(word[:length])
        if value is None:
            value = _VOWEL.get(word[:length] + "i")  # trentuno, sessantotto
        if value is None or value < 1:
            continue
        rest = word[length:]
        link = _COMPOUND.match(rest)
        following = _parts(rest[link.end() :], most - 1) if link is not None and link.end() < len(rest) else None
        if following is None:
            following = _parts(rest, most - 1)
        if following is not None:
            return [value, *following]
    return None


_VOWEL = {word[:-1] + "i": value for word, value in _WORDS.items() if word.endswith(("anta", "enta", "venti")) and value < 100}


_ONES = "a an one ein eine einem einen einer eines un une uno una um uma één een ett jeden один одного одну bir satu một"


@cache
def _small_words() -> tuple[dict[str, float], re.Pattern[str]]:
    words = {word: value for word, value in _WORDS.items() if 1 <= value <= 12 or value == 0.5} | dict.fromkeys(
        _ONES.split(), 1.0
    )
    return words, re.compile(rf"""[\s("'*-]({tree(words)})(?:[ \u00a0-](?=[^\W\d_])|(?=[.?!]?$))""")


def small_words_in(lowered: str) -> Iterator[tuple[int, int, float]]:
    """Yield ``(start, end, value)`` of words for numbers up to twelve before another word, in a lower-case text."""
    words, pattern = _small_words()
    for found in pattern.finditer(" " + lowered):  # a leading mark makes the search much faster
        yield found.start(1) - 1, found.end(1) - 1, words[found.group(1)]


_CJK_DIGIT = {c: i for i, c in enumerate("〇一二三四五六七八九")} | {"零": 0, "两": 2, "兩": 2}
_CJK_UNIT = {"十": 10, "百": 100, "千": 1000}
_CJK_MYRIAD = {"万": 10**4, "萬": 10**4, "億": 10**8, "亿": 10**8}
_NUMERAL = "[〇零一二三四五六七八九两兩十百千万萬億亿]"
_CJK = re.compile(f"{_NUMERAL}(?:(?<=百)分之({_NUMERAL}+)|{_NUMERAL}*)")


def may_have_numerals(text: str) -> bool:
    """Return True if a text may contain a number above ten in Chinese or Japanese numerals."""
    return not text.isascii() and ("十" in text or "百" in text or "千" in text or "万" in text or "〇" in text or "零" in text)


def cjk_value(text: str) -> Iterator[tuple[int, int, float]]:
    """Yield ``(start, end, value)`` of Chinese or Japanese numerals, and after 百分之 also the share."""
    for found in _CJK.finditer(text):
        share = found.group(1)
        value = _cjk(share or found.group())
        if value is not None:
            start = found.end() - len(share or found.group())
            yield start, found.end(), float(value)
            if share:
                yield start, found.end(), value / 100


def _cjk(numerals: str) -> int | None:
    if len(numerals) > 20:
        return None
    if all(c in _CJK_DIGIT for c in numerals):
        return int("".join(str(_CJK_DIGIT[c]) for c in numerals))
    total = section = digit = 0
    for c in numerals:
        if c in _CJK_DIGIT:
            digit = _CJK_DIGIT[c]
        elif c in _CJK_UNIT:
            section, digit = section + (digit or 1) * _CJK_UNIT[c], 0
        else:
            total, section, digit = total + (section + digit or 1) * _CJK_MYRIAD[c], 0, 0
    return total + section + digit


_TENTHS = re.compile("([1-9一二三四五六七八九])(?:[.点]?([1-9一二三四五六七八九]))? ?([折成割])")


def factors_in(text: str) -> list[float]:
    """Return the factors that Chinese words express, such as 八折 (80 percent of a price) and 三成 (30 percent)."""
    found: list[float] = []
    for first, second, kind in _TENTHS.findall(text) if not text.isascii() else ():
        share = _tenth(first) / 10 + (_tenth(second) / 100 if second else 0)
        found += [share, 1 - share] if kind != "成" else [share]
    return found[:4]


def _tenth(digit: str) -> int:
    return _CJK_DIGIT.get(digit) or int(digit)
