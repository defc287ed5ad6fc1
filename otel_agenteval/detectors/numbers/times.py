"""Parse dates, times of day and durations in the formats of people and machines."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from ..lists import table
from ..texts import in_small_letters
from .units import UNITS

MONTHS: dict[str, int] = {name: month for names in table("months.json") for month, name in enumerate(names.split(), start=1)} | {
    "sept": 9,
    "mär": 3,
}
MONTHS |= {name.replace("ı", "i"): month for name, month in MONTHS.items() if "ı" in name}  # KASIM in lower case
_LONGEST_NAME = max(map(len, MONTHS))


def _tree(words: Iterable[str]) -> str:
    """Return a pattern for words that shares their common prefixes, the longest word first.

    It is many times as fast as a list of alternatives.
    """
    branches: dict[str, list[str]] = {}
    for word in words:
        branches.setdefault(word[:1], []).append(word[1:])
    ends = "" in branches
    inner = "|".join(re.escape(sign) + _tree(rests) for sign, rests in sorted(branches.items()) if sign)
    return f"(?:{inner}{'|' if ends else ''})" if inner else ""


_NAMES = _tree(MONTHS)
_ISO = re.compile(
    r"([12](?<![0-9][12])[0-9]{3})[-/.](0?[1-9]|1[0-2])[-/.](0?[1-9]|[12][0-9]|3[01])(?![0-9])"
    r"(?:[T ]([0-2]?[0-9]):([0-5][0-9])(?::[0-5][0-9](?:[.,][0-9]+)?)?\s?(Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_EASTERN = re.compile(r"(?:([12][0-9]{3})\s?[年년]\s?)?(1?[0-9])\s?[月월]\s?([1-3]?[0-9])\s?[日号號일]")
_DOTTED = re.compile(r"([0-9](?<![0-9.][0-9])(?:(?<=[0-3])[0-9])?)([./-])\s?([0-3]?[0-9])\2\s?((?:[12][0-9])?[0-9]{2})(?![0-9])")
_DAY_FIRST = re.compile(
    rf"([0-9](?<![0-9][0-9])(?:(?<=[0-3])[0-9])?)(?:st|nd|rd|th|er|º|ª|-?го|-ое)?\.?(?:\s(?:de|of|di|d[’']))?[ \u00a0-]?ב?({_NAMES})(?![^\W\d_])\.?,?(?:\s(?:de|of|del|של)?\s?([12][0-9]{{3}})(?![0-9]))?"
)
"""Pattern for lower-case text, like all patterns with names of months."""
_DAY_BEHIND = re.compile(r"([0-3]?[0-9])(?:st|nd|rd|th)?(?![0-9:])(?:\.?,?\s([12][0-9]{3})(?![0-9]))?")
_ROW = re.compile(r"\s[0-9]")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile("[0-9]")
_ENDINGS = frozenset(name[-2:] for name in MONTHS)
_VIETNAMESE = re.compile(r"([0-3]?[0-9]) tháng ([01]?[0-9])(?:(?: năm |/)([12][0-9]{3}))?", re.IGNORECASE)
_EPOCH = re.compile(r"(1(?<![0-9.]1)(?:[0-9]{9}|[0-9]{12}))(?![0-9.])")
_CLOCK = re.compile(
    r"([0-9](?<![0-9:][0-9])(?:(?<=[0-2])[0-9])?)(?:(?:[:.]|\s?h\s?|[時时點点]|시\s?)([0-5][0-9])(?![0-9]|[.,][0-9])(?::[0-5][0-9])?[分분]?|(?=\s?(?:[ap]\.?\s?m\b|uhr|o.clock|h\b|時|时|点|點|시)))"
    r"(?:\s?([ap])\.?\s?m\b)?(?:\s?(Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})(?![0-9]))?",
    re.IGNORECASE,
)
_AFTERNOON = re.compile(r"(?:下午|晚上|午後|오후|中午)\s?$")
_DURATION = re.compile(
    r"([0-9](?<![0-9.,:][0-9])[0-9]*(?:[.,][0-9]+)?)[ \u00a0\u202f-]?([^\W\d_]{1,14})(?:[ ,]{0,2}(?:and|und|et|y|e|og|och|и|و)?[ ,]{0,2}([0-9]{1,2})(?![0-9:]|[.,][0-9])[ \u00a0]?([^\W\d_]{1,14})?)?"
)
LIMIT = 60
"""Maximum number of moments in the given texts that are compared."""


@cache
def _offsets() -> dict[str, tuple[int, ...]]:
    """Return the UTC offsets in minutes of each time zone or city, in winter and in summer if they differ."""
    return {name: tuple(offsets) for offsets, names in table("time_zones.json") for name in names}


_LOCAL = re.compile(
    r"local time|your time|ortszeit|heure locale|hora local|ora locale|местн|現地|当地|现地|ihre zeit|deine zeit|yerel saat|местного|czasu lokalnego",
    re.IGNORECASE,
)


class Moment(NamedTuple):
    """A date, a time of day or both, with its position in the text."""

    start: int
    end: int
    year: int | None = None
    month: int | None = None
    day: int | None = None
    minutes: int | None = None
    offset: int | None = None

    @property
    def date(self) -> datetime.date | None:
        if self.year is None or self.month is None or self.day is None:
            return None
        try:
            return datetime.date(self.year, self.month, self.day)
        except ValueError:
            return None


def _offset(text: str | None) -> int | None:
    if not text:
        return None
    if text[0] not in "+-":
        return 0
    minutes = int(text[1:3]) * 60 + int(text[-2:])
    return -minutes if text[0] == "-" else minutes


def _year(text: str | None) -> int | None:
    if not text:
        return None
    return int(text) if len(text) == 4 else 2000 + int(text)


def dates_in(text: str) -> Iterator[Moment]:
    """Yield every date in a text. An ambiguous date is yielded in both readings."""
    if _DIGIT.search(text) is None:
        return
    for found in _ISO.finditer(text):
        year, month, day, hour, minute, zone = found.groups()
        minutes = int(hour) * 60 + int(minute) if hour else None
        yield Moment(found.start(), found.end(), int(year), int(month), int(day), minutes, _offset(zone))
    for found in _DOTTED.finditer(text):
        first, _, second, written = found.groups()
        for day, month in ((int(first), int(second)), (int(second), int(first))):
            if 1 <= month <= 12 and 1 <= day <= 31:
                yield Moment(found.start(), found.end(), _year(written), month, day)
    lowered = in_small_letters(text)
    for found in _DAY_FIRST.finditer(lowered):
        yield Moment(found.start(), found.end(), _year(found.group(3)), MONTHS[found.group(2)], int(found.group(1)))
    yield from _behind_months(lowered)
    if not text.isascii():
        for found in _EASTERN.finditer(text):
            yield Moment(found.start(), found.end(), _year(found.group(1)), int(found.group(2)), int(found.group(3)))
        for found in _VIETNAMESE.finditer(text):
            yield Moment(found.start(), found.end(), _year(found.group(3)), int(found.group(2)), int(found.group(1)))


def _behind_months(lowered: str) -> Iterator[Moment]:
    """Yield dates such as ``may 5`` or ``may 5th, 2026``.

    The search starts at the digits, because any word could be a month.
    """
    done = 0
    for row in _ROW.finditer(lowered):
        at = row.end() - 1
        start, month = _month_before(lowered, row.start())
        found = _DAY_BEHIND.match(lowered, at) if month and start >= done else None
        if found is not None:
            done = found.end()
            yield Moment(start, done, _year(found.group(2)), month, int(found.group(1)))


def _month_before(lowered: str, end: int) -> tuple[int, int]:
    """Return the start and number of the month whose name ends at ``end``.

    The number is 0 if there is no such name.
    """
    if lowered.endswith("the", 0, end) and lowered[end - 4 : end - 3].isspace():
        end -= 4
    if lowered[end - 1 : end] == ".":
        end -= 1
    if lowered[end - 2 : end] not in _ENDINGS:
        return end, 0
    for start in range(max(0, end - _LONGEST_NAME), end - 1):
        month = MONTHS.get(lowered[start:end])
        if month is not None and _LETTER.match(lowered[start - 1 : start]) is None:
            return start, month
    return end, 0


def epochs_in(text: str) -> Iterator[Moment]:
    """Yield numbers of seconds or milliseconds since 1970 as moments in UTC."""
    for found in _EPOCH.finditer(text):
        seconds = int(found.group()[:10])
        at = datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
        yield Moment(found.start(), found.end(), at.year, at.month, at.day, at.hour * 60 + at.minute, 0)


def clocks_in(text: str) -> Iterator[Moment]:
    for found in _CLOCK.finditer(text):
        hour, minute, half, zone = int(found.group(1)), int(found.group(2) or 0), found.group(3), found.group(4)
        if hour > 24:
            continue
        if half:
            hour = hour % 12 + (12 if half in "pP" else 0)
        elif hour < 12 and _AFTERNOON.search(text, max(0, found.start() - 3), found.start()):
            hour += 12
        yield Moment(found.start(), found.end(), minutes=(hour * 60 + minute) % 1440, offset=_offset(zone))


def durations_in(text: str) -> Iterator[tuple[int, int, float, float]]:
    """Yield ``(start, end, seconds, unit)`` of every duration.

    ``unit`` is the smallest written unit in seconds, divided by ten for each decimal place.
    """
    for found in _DURATION.finditer(text):
        first, word, second, smaller = found.groups()
        unit = _time_unit(word)
        if unit is None:
            continue
        end, seconds = found.end(2), float(first.replace(",", ".")) * unit
        if "." in first or "," in first:
            unit *= 10.0 ** -len(re.split("[.,]", first)[1])
        under = _time_unit(smaller) if smaller else None
        if second and unit == 3600 and (under is None or smaller in ("m", "M")):
            under = 60.0  # "2 h 35", "1h 45m"
            smaller = smaller if smaller in ("m", "M") else None
        if under is not None and under < unit:
            end, seconds, unit = found.end() if smaller else found.end(3), seconds + float(second) * under, under
        yield found.start(), end, seconds, unit


def _time_unit(word: str) -> float | None:
    word = word.lower()
    unit = UNITS.get(word)
    if unit is None and word and ord(word[0]) > 0xDFF:
        unit = next((UNITS[word[:n]] for n in (3, 2, 1) if word[:n] in UNITS), None)
    return unit[1] if unit is not None and unit[0] == "time" else None


def same_date(one: Moment, other: Moment) -> bool:
    """Return True if two dates can be the same day."""
    return (
        one.month == other.month and one.day == other.day and (one.year is None or other.year is None or one.year == other.year)
    )


def offsets_named(texts: Iterable[str]) -> set[int]:
    found: set[int] = set()
    for text in texts:
        lowered = text.lower()
        for name, offsets in _offsets().items():
            at = lowered.find(name)
            if at >= 0 and not (
                name.isascii()
                and (lowered[at - 1 : at].isalpha() or (len(name) < 5 and lowered[at + len(name) : at + len(name) + 1].isalpha()))
            ):
                found.update(offsets)
    return found


def says_local(text: str) -> bool:
    return _LOCAL.search(text) is not None


def shifted(moments: Iterable[Moment], zones: set[int], any_zone: bool) -> Iterator[Moment]:
    """Yield the moments with a time of day in other time zones: those in ``zones``, or all."""
    targets = set(range(-720, 841, 30)) if any_zone else zones
    for moment in moments:
        if moment.minutes is None:
            continue
        for source in {moment.offset} if moment.offset is not None else zones:
            for target in targets:
                if source is None or source == target:
                    continue
                days, minutes = divmod(moment.minutes - source + target, 1440)
                day = moment.date
                if day is None:
                    yield Moment(0, 0, minutes=minutes)
                    continue
                day += datetime.timedelta(days=days)
                yield Moment(0, 0, day.year, day.month, day.day, minutes)
