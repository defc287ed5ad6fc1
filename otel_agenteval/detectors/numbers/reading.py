"""Parse numbers, dates, times of day, durations, and units in texts."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import lru_cache
from itertools import chain
from typing import NamedTuple

from ..texts import table

Reading = tuple[float, float]
"""A possible value, and half its rounding interval: ``(4.2, 0.05)`` for ``4.2``."""
Day = tuple[int, int, int]
"""Year (0 if unknown), month, and day."""

_ZEROS = "\u0660\u06f0\u0966\u09e6\u0a66\u0ae6\u0be6\u0c66\u0ce6\u0d66\u0e50\u0ed0\u1040\uff10"
_TO_ASCII = {ord(zero) + digit: str(digit) for zero in _ZEROS for digit in range(10)}
_TO_ASCII |= {0x066B: ".", 0x066C: ",", 0x066A: "%", 0xFF0C: ",", 0xFF0E: ".", 0xFF05: "%", 0xFF1A: ":", 0x2009: "\u202f", 0x2212: "-"}  # fmt: skip
_FOREIGN = re.compile("[" + "".join(f"{z}-{chr(ord(z) + 9)}" for z in _ZEROS) + "\u066a-\u066c\uff05\uff0c\uff1a\u2009\u2212]")
_TRANSLATED = re.compile("[" + "".join(map(chr, _TO_ASCII)).replace("-", "\\-") + "]")
_MAX_DIGITS = 300  # more digits overflow a float


def with_ascii_digits(text: str) -> str:
    """Replace digits of 14 other scripts with 0 to 9, and normalize separators. The text's length stays the same."""
    if text.isascii():
        return text
    try:
        text.encode("latin-1")  # much faster than searching
    except UnicodeEncodeError:
        if _FOREIGN.search(text) is not None:
            return _TRANSLATED.sub(lambda found: _TO_ASCII[ord(found.group())], text)  # faster than str.translate
    return text


# --- given texts ---------------------------------------------------------------------------------------------------


TOKEN = re.compile(r"[0-9](?<![a-oq-wyz_0-9][0-9])[0-9]*(?:[.,:/'+-][0-9]+)*")
"""Pattern for digits with separators. Digits after ``_`` or a lower-case letter except ``p`` and ``x`` (``web12``) don't match."""


class Meanings(NamedTuple):
    """Possible meanings of digits with separators, such as ``11/12``."""

    values: Collection[float] = ()
    days: Collection[Day] = ()
    minutes: Collection[int] = ()
    """Times of day, in minutes since midnight."""


_DATE = re.compile(r"([0-9]{1,4})([-/.])([0-9]{1,2})(?:\2([0-9]{2}(?:[0-9]{2})?))?")
_CLOCK_TOKEN = re.compile(r"(?<![0-9:+])([0-9]{1,2}):([0-5][0-9])(?![0-9])")


@lru_cache(maxsize=16_384)
def meanings_of(token: str) -> Meanings:
    if token.isdigit():
        return Meanings((float(token[:_MAX_DIGITS]),))
    minutes = tuple(int(hour) % 24 * 60 + int(minute) for hour, minute in _CLOCK_TOKEN.findall(token) if int(hour) <= 24)
    days = days_of(token) or tuple(day for part in token.split("-") for day in days_of(part))
    values: list[float] = []
    for part in re.split("[-/:+]", token):
        values += _values_of(part)
        if "," in part:  # may also be a list of numbers without spaces
            values += chain.from_iterable(map(_values_of, part.split(",")))
    return Meanings(tuple(values), days, minutes)


def _values_of(token: str) -> list[float]:
    return [value for readings in readings_of(token) for value, _ in readings]


@lru_cache(maxsize=4_096)
def days_of(token: str) -> tuple[Day, ...]:
    """Return the days that digits with separators can mean. ``11/12`` can be November 12 or December 11."""
    if (found := _DATE.fullmatch(token)) is None:
        return ()
    first, _, second, third = found.groups()
    orders: tuple[Day, ...] = ()
    if len(first) == 4:
        orders = ((int(first), int(second), int(third)),) if third else ()
    elif len(first) > 2:
        return ()
    else:
        year = 0 if not third else int(third) + (2000 if len(third) == 2 else 0)
        orders = ((year, int(second), int(first)), (year, int(first), int(second)))
    return tuple((year, month, day) for year, month, day in orders if 1 <= month <= 12 and 1 <= day <= 31)


@lru_cache(maxsize=4_096)
def readings_of(token: str) -> tuple[tuple[Reading, ...], ...]:
    """Return the numbers in digits with separators, each with its possible readings. ``1,234`` can be 1234 or 1.234."""
    if not token or len(token) > _MAX_DIGITS:
        return ()
    if token.isdigit():
        return (((float(token), 0.5),),)
    groups = re.split(r"[^0-9]", token)
    if not all(groups):
        return tuple(((float(group), 0.5),) for group in groups if group)
    if len(groups) == 2 and len(groups[1]) != 3 and "." in token:
        return (((float(token), 0.5 * 10.0 ** -len(groups[1])),),)
    marks = [sign for sign in token if not sign.isdigit()]
    *whole, last = groups
    decimal = marks[-1] in ".," and (len(marks) == 1 or (marks[-1] not in marks[:-1] and _in_thousands(whole)))
    readings = []
    if _in_thousands(groups) and len(set(marks)) == 1:
        readings.append((float("".join(groups)), 0.5))
    if decimal:
        readings.append((float(f"{''.join(whole)}.{last}"), 0.5 * 10.0 ** -len(last)))
    return (tuple(readings),) if readings else tuple(((float(group), 0.5),) for group in groups)


def _in_thousands(groups: list[str]) -> bool:
    """Return True if digit groups form one number: ``1 234 567`` or the Indian ``12 34 567``."""
    first, *rest = groups
    return not rest or (len(first) <= 3 and first[0] != "0" and len(rest[-1]) == 3 and all(2 <= len(g) <= 3 for g in rest[:-1]))


# --- months and times of day ----------------------------------------------------------------------------------------

MONTHS: dict[str, int] = {name: month for names in table("months.json") for month, name in enumerate(names.split(), start=1)} | {
    "sept": 9,
    "mär": 3,
}
MONTHS |= {name.replace("ı", "i"): month for name, month in MONTHS.items() if "ı" in name}  # KASIM in lower case
_CLOCK = re.compile(
    r"([0-9](?<![0-9:][0-9])(?:(?<=[0-2])[0-9])?)(?=[:.\sho時时點点시apu])(?:(?:[:.]|\s?h\s?|[時时點点]|시\s?)([0-5][0-9])(?![0-9]|[.,][0-9])(?::[0-5][0-9])?[分분]?|(?=\s?(?:[ap]\.?\s?m\b|uhr|o.clock|h\b|時|时|点|點|시)))"
    r"(?:\s?([ap])\.?\s?m\b)?",
    re.IGNORECASE,
)
_AFTERNOON = re.compile(r"(?:下午|晚上|午後|오후|中午)\s?$")


def clocks_in(text: str) -> Iterator[tuple[int, int, int]]:
    """For each time of day in digits, yield the start and end offsets, and the minutes since midnight."""
    for found in _CLOCK.finditer(text):
        hour, minute, half = int(found.group(1)), int(found.group(2) or 0), found.group(3)
        if hour > 24:
            continue
        if half:
            hour = hour % 12 + (12 if half in "pP" else 0)
        elif hour < 12 and _AFTERNOON.search(text, max(0, found.start() - 3), found.start()):
            hour += 12
        yield found.start(), found.end(), (hour * 60 + minute) % 1440


# --- words after numbers -------------------------------------------------------------------------------------------

SCALES: dict[str, float] = {
    form: scale
    for scale, words in table("number_scales.json")
    for word in words.split()
    for form in (word, unicodedata.normalize("NFC", word))
}
_CASED = {"k": "kK", "m": "Mm", "b": "Bb", "cr": "Cc"}
_GLUED = frozenset("万萬億亿兆千만억조천")
_PER_CENT = (
    "%|percent\\b|per cent\\b|prozent|procent|pour cent|por cien|per cento|процент|відсот|yüzde|persen|प्रतिशत|퍼센트|パーセント"
)
_SCALE_STARTS = {start for word in (*SCALES, *_PER_CENT.split("|")) for start in (word[0], word[0].upper())}
_BEFORE_SCALE = {" ", "\u00a0", "\u202f", "-"}
_AFTER = re.compile(
    rf"[ \u00a0\u202f-]?(?:({_PER_CENT})|([^\W\d_](?:[^\W\d_]|[\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e\u064b-\u0652]){{0,11}}))",
    re.IGNORECASE,
)


def scale_after(text: str, at: int) -> tuple[float, str]:
    """Return the factor and text of a scaling word or sign after a number (0.01 and ``%``), or 1.0 and an empty text."""
    first = text[at : at + 1]
    if first in _BEFORE_SCALE:
        first = text[at + 1 : at + 2]
    return _scale_of(text[at : at + 16]) if first in _SCALE_STARTS else (1.0, "")


@lru_cache(maxsize=2048)
def _scale_of(following: str) -> tuple[float, str]:
    if (found := _AFTER.match(following)) is None:
        return 1.0, ""
    if found.group(1):
        return 0.01, found.group()
    word = found.group(2)
    if word[0] in _GLUED:
        return SCALES.get(word[0], 1.0), following[: found.start(2) + 1]
    cased = _CASED.get(word.lower())
    if cased is not None and (word[0] not in cased or (word == "m" and found.start(2))):
        return 1.0, ""
    scale = SCALES.get(word.lower(), 1.0)
    return scale, found.group() if scale != 1.0 else ""


# --- forms of numbers -----------------------------------------------------------------------------------------------

_DIGIT = re.compile(r"[0-9]")
_CJK = r"\u2e80-\u9fff\uac00-\ud7af"
_JOINED = rf"[^\W{_CJK}]"
"""Pattern for a character that continues a word. Chinese, Japanese, and Korean characters don't match."""
_LETTER = rf"[^\W\d_{_CJK}]"
_SIGN = r"[$€£¥₹%‰°]"
_SIGN_BEFORE = re.compile(rf"{_SIGN}[ \u00a0]?\Z")
_BESIDE_AFTER = re.compile(rf"[ \u00a0]?(?:{_SIGN}|{_LETTER}{{1,30}}|[{_CJK}])")
_WORD_BEFORE = re.compile(rf"{_LETTER}{{1,30}}[ \u00a0]?\Z")
_BESIDE = 31


def form_of(text: str, start: int, end: int) -> str:
    """Return a number's form: ``#`` for each digit, and adjacent text. Examples: ``### kcal``, ``Article ##``."""
    before = text[max(0, start - _BESIDE) : start]
    left, right = _SIGN_BEFORE.search(before), None
    if left is None:
        right = _BESIDE_AFTER.match(text, end)
        left = _WORD_BEFORE.search(before) if right is None and text[start:end].isdigit() else None
    return _DIGIT.sub("#", f"{left[0] if left else ''}{text[start:end]}{right[0] if right else ''}")


def without_forms(text: str, forms: Sequence[str]) -> str:
    """Replace all matches of the forms (see :func:`form_of`) with spaces. The text's length stays the same."""
    return _pattern_of(tuple(forms)).sub(lambda found: " " * len(found[0]), text)


@lru_cache(maxsize=64)
def _pattern_of(forms: tuple[str, ...]) -> re.Pattern[str]:
    alternatives = "|".join(re.escape(form).replace(r"\#", "[0-9]") for form in sorted(forms, key=len, reverse=True) if form)
    return re.compile(rf"(?<!{_JOINED})(?<![0-9][.,:/-])(?:{alternatives or '(?!)'})(?!{_JOINED}|[.,:/-][0-9])")


# --- units next to numbers and in field names

_TABLE: dict[str, list[tuple[float, str]]] = table("units.json")
"""Units by dimension, each with its factor to the base unit and its words."""
Unit = tuple[str, float]
"""Dimension, and factor to the base unit, such as ``("time", 60.0)`` for minutes."""
UNITS: dict[str, Unit] = {
    word: (dimension, factor) for dimension, rows in _TABLE.items() for factor, words in rows for word in words.split()
}
_BINARY = {1e3: 1024.0, 1e6: 1024.0**2, 1e9: 1024.0**3, 1e12: 1024.0**4}
_ENDS = frozenset(("", "\n", ".", ",", ";", ":", ")", "|", "%", "*", '"', "]", "}"))
_KUBERNETES = {"Ki": 1024.0, "Mi": 1024.0**2, "Gi": 1024.0**3, "Ti": 1024.0**4}
_UNIT = re.compile(
    r"[ \u00a0\u202f-]?((?:km|m|[kmg]bit|mb)/[hs]\b|sq\.? ?(?:ft|m|km)\b|square (?:feet|met(?:er|re)s|kilomet(?:er|re)s)\b|°\s?[CF]\b|[℃℉]|(?:km|ft|m)[²³23]|[^\W\d_](?:[^\W\d_]|[\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e\u064b-\u0652])*)",
    re.IGNORECASE,
)
_FIELD_VALUE = re.compile(r"([0-9](?<![0-9:-][0-9])[0-9]*(?:\.[0-9]+)?)['\"]?\s?[:=]\s{0,2}['\"]?\\?([A-Za-z_]{1,40})")
"""Pattern for a field's number and name in reversed text, in which the number comes first."""
_FIELD_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_IN_NAMES = {"size": ("bytes", 1.0), "bytes": ("bytes", 1.0), "celsius": ("temperature", 1.0), "fahrenheit": ("temperature", 2.0)}
_UNCLEAR = frozenset(
    ["in", "to", "b", "d", "h", "l", "m", "t", "y", "an", "go", "mo"]
)  # units only in field names with several words


def unit_after(text: str, at: int) -> Unit | None:
    if text[at : at + 1] in _ENDS:
        return None
    if (found := _UNIT.match(text, at)) is None:
        return None
    word = found.group(1).replace(" ", "").replace(".", "")
    return ("bytes", _KUBERNETES[word]) if word in _KUBERNETES else unit_of(word)


def unit_of(word: str) -> Unit | None:
    """Return the unit that a word names, or None. In scripts without spaces, other text can follow the unit."""
    word = word.lower()
    if word in UNITS or word < "\u0e00":
        return UNITS.get(word)
    return next((UNITS[word[:length]] for length in (3, 2, 1) if word[:length] in UNITS), None)


def quantities_in_fields(text: str) -> Iterator[tuple[float, Unit]]:
    """Yield the number and unit of each field whose name contains a unit (``distance_km``), starting with the last field."""
    for number, name in _FIELD_VALUE.findall(text[::-1]):
        if (unit := _unit_in_name(name[::-1])) is not None:
            yield float(number[::-1]), unit


@lru_cache(maxsize=2_048)
def _unit_in_name(name: str) -> Unit | None:
    """Return the unit in a field name, such as ``distance_km``, or None."""
    words = [word.lower() for word in _FIELD_WORD.findall(name)]
    for word in reversed(words):
        unit = _IN_NAMES.get(word) or (UNITS.get(word) if len(words) > 1 or word not in _UNCLEAR else None)
        if unit is not None:
            return unit
    return None


def in_base(value: float, unit: Unit) -> tuple[float, ...]:
    """Convert a quantity to base units. For units such as kilobytes, return two results, because 1 kB can be 1000 or 1024 bytes."""
    dimension, factor = unit
    if dimension == "temperature":
        return (_TO_CELSIUS[factor](value),)
    if dimension == "bytes" and factor in _BINARY:
        return value * factor, value * _BINARY[factor]
    return (value * factor,)


_TO_CELSIUS: dict[float, Callable[[float], float]] = {1.0: lambda t: t, 2.0: lambda t: (t - 32) / 1.8, 3.0: lambda t: t - 273.15}


# --- durations --------------------------------------------------------------------------------------------------------

_DURATION = re.compile(r"([0-9](?<![0-9.,:][0-9])[0-9]*(?![0-9])(?:[.,][0-9]+)*)[ \u00a0\u202f-]?([^\W\d_]{1,14})")
_AND = re.compile(r"[ ,\u00a0]{0,2}(?:and|und|et|y|e|og|och|и|و)?[ ,\u00a0]{0,2}")


def durations_in(text: str) -> Iterator[tuple[int, int, float, float]]:
    """Yield ``(start, end, seconds, unit)`` of durations. ``unit`` is the precision in seconds, such as 360 for ``2.5 h``."""
    start, end, seconds, unit = 0, 0, 0.0, 0.0
    for found in _DURATION.finditer(text):
        number, word = found.groups()
        dimension, step = ("time", 60.0) if word in ("m", "M") and unit == 3600.0 else unit_of(word) or ("", 0.0)
        readings = readings_of(number) if dimension == "time" else ()
        if len(readings) != 1:
            continue
        value, half = readings[0][0]
        if 0 < step < unit and _AND.fullmatch(text, end, found.start()) is not None:
            end, seconds, unit = found.end(2), seconds + value * step, step
        else:
            if unit:
                yield start, end, seconds, unit
            start, end, seconds, unit = found.start(), found.end(2), value * step, step * 2 * half
    if unit:
        yield start, end, seconds, unit
