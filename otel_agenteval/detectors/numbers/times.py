"""Parse dates, times of day and durations in the formats of people and machines."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable, Iterator
from functools import cache, lru_cache
from typing import NamedTuple

from ..lists import table
from ..texts import in_small_letters, tree
from .reading import readings_of
from .units import UNITS

MONTHS: dict[str, int] = {name: month for names in table("months.json") for month, name in enumerate(names.split(), start=1)} | {
    "sept": 9,
    "mär": 3,
}
MONTHS |= {name.replace("ı", "i"): month for name, month in MONTHS.items() if "ı" in name}  # KASIM in lower case
_LONGEST_NAME = max(map(len, MONTHS))


_NAMES = tree(MONTHS)
_ISO = re.compile(
    r"([12](?<![0-9][12])[0-9]{3})(?:[-/]|\. ?)(0?[1-9]|1[0-2])(?:[-/]|\. ?)(0?[1-9]|[12][0-9]|3[01])(?![0-9])"
    r"(?:[T ]([0-2]?[0-9]):([0-5][0-9])(?::[0-5][0-9](?:[.,][0-9]+)?)?\s?(Z|UTC|[+-][0-9]{2}:?[0-9]{2})?)?"
)
_MONTH_SIGN = re.compile("[月월]")
_EASTERN = re.compile(r"(?:([12][0-9]{3})\s?[年년]\s?)?(1?[0-9])\s?[月월]\s?([1-3]?[0-9])\s?[日号號일]")
_DOTTED = re.compile(r"([0-9](?<![0-9.][0-9])(?:(?<=[0-3])[0-9])?)([./-])\s?([0-3]?[0-9])\2\s?((?:[12][0-9])?[0-9]{2})(?![0-9])")
_DAY_FIRST = re.compile(
    rf"([0-9](?<![0-9][0-9])(?:(?<=[0-3])[0-9])?)(?=[\s.-]|[^\W\d_])(?:st|nd|rd|th|er|º|ª|-?го|-ое)?\.?(?:\s(?:de|of|di|d[’']))?[ \u00a0-]?ב?({_NAMES})(?![^\W\d_])\.?,?(?:\s(?:de|of|del|של)?\s?([12][0-9]{{3}})(?![0-9]))?"
)
"""Pattern for lower-case text, like all patterns with names of months."""
_DAY_BEHIND = re.compile(r"([0-3]?[0-9])(?:st|nd|rd|th)?(?![0-9:])(?:\.?,?\s([12][0-9]{3})(?![0-9]))?")
_LAST_LETTERS = "".join(sorted({name[-1] for name in MONTHS}))
_ROW = re.compile(rf"\s(?<=[{_LAST_LETTERS}.]\s)[0-9]")
_LETTER = re.compile(r"[^\W\d_]")
_DIGIT = re.compile("[0-9]")
_ENDINGS = frozenset(name[-2:] for name in MONTHS)
_VIETNAMESE = re.compile(r"([0-9](?:(?<=[0-3])[0-9])?) tháng ([01]?[0-9])(?:(?: năm |/)([12][0-9]{3}))?", re.IGNORECASE)
_EPOCH = re.compile(r"(1(?<![0-9.]1)(?:[0-9]{9}|[0-9]{12}))(?![0-9.])")
_CLOCK = re.compile(
    r"([0-9](?<![0-9:][0-9])(?:(?<=[0-2])[0-9])?)(?=[:.\sho時时點点시apu])(?:(?:[:.]|\s?h\s?|[時时點点]|시\s?)([0-5][0-9])(?![0-9]|[.,][0-9])(?::[0-5][0-9])?[分분]?|(?=\s?(?:[ap]\.?\s?m\b|uhr|o.clock|h\b|時|时|点|點|시)))"
    r"(?:\s?([ap])\.?\s?m\b)?(?:\s?(Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2})(?![0-9]))?",
    re.IGNORECASE,
)
_AFTERNOON = re.compile(r"(?:下午|晚上|午後|오후|中午)\s?$")
_DURATION = re.compile(
    r"([0-9](?<![0-9.,:][0-9])[0-9]*(?![0-9])(?:[.,][0-9]+)*)[ \u00a0\u202f-]?([^\W\d_]{1,14})(?:[ \u00a0]?([0-9]{1,2})(?![0-9:.,%]|[ \u00a0]?[^\W\d_]))?"
)
_SECONDS = re.compile(r"\s?[0-9]{1,2}(?:\.[0-9]+)?\s?s\b")
_AND = re.compile(r"[ ,\u00a0]{0,2}(?:and|und|et|y|e|og|och|и|و)?[ ,\u00a0]{0,2}")
LIMIT = 60
"""Maximum number of moments in the given texts that are compared."""


@cache
def _offsets() -> tuple[dict[str, tuple[int, int]], list[tuple[str, str, tuple[int, int]]]]:
    """Return the UTC offsets in minutes, in January and in July, of zones and cities.

    Names of one ASCII word are in the dictionary. Other names are in the list, each with the ASCII letters that it starts with.
    """
    every = {name: (offsets[0], offsets[-1]) for offsets, names in table("time_zones.json") for name in names}
    every |= {name: (summer, winter) for name, (winter, summer) in every.items() if winter >= _SOUTHERN}
    plain = {name: offsets for name, offsets in every.items() if name.isascii() and name.isalpha()}
    others = {name.strip(): offsets for name, offsets in every.items() if name not in plain}
    return plain, [(_START.match(name).group(), name, offsets) for name, offsets in others.items()]  # type: ignore[union-attr]


_START = re.compile("[a-z]*")
_SOUTHERN = 570
"""Offset from which zones are on the southern hemisphere, where it is summer in December, or have no summer time."""
_LETTERS = bytes(code if 97 <= code <= 122 else code + 32 if 65 <= code <= 90 else 32 for code in range(256))
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
        yield from dates_in_characters(text)


def dates_in_characters(text: str) -> Iterator[Moment]:
    """Yield dates such as ``2026年5月3日``, and Vietnamese ones."""
    done = 0
    for sign in _MONTH_SIGN.finditer(text):
        found = _EASTERN.search(text, max(done, sign.start() - 10), sign.end() + 5)
        if found is not None:
            done = found.end()
            yield Moment(found.start(), done, _year(found.group(1)), int(found.group(2)), int(found.group(3)))
    for found in _VIETNAMESE.finditer(text) if "tháng" in text.lower() else ():
        yield Moment(found.start(), found.end(), _year(found.group(3)), int(found.group(2)), int(found.group(1)))


def _behind_months(lowered: str) -> Iterator[Moment]:
    """Yield dates such as ``may 5`` or ``may 5th, 2026``. The search starts at the digits, because any word could be a month."""
    done = 0
    for row in _ROW.finditer(lowered):
        at = row.end() - 1
        start, month = _month_before(lowered, row.start())
        found = _DAY_BEHIND.match(lowered, at) if month and start >= done else None
        if found is not None:
            done = found.end()
            yield Moment(start, done, _year(found.group(2)), month, int(found.group(1)))


def _month_before(lowered: str, end: int) -> tuple[int, int]:
    """Return the start and number (or 0) of the month whose name ends at ``end``."""
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
    """Yield ``(start, end, seconds, unit)``. ``unit`` is the smallest written unit in seconds, over ten per decimal."""
    start, end, seconds, unit = 0, 0, 0.0, 0.0
    for found in _DURATION.finditer(text):
        number, word, minutes = found.groups()
        is_minutes = word in ("m", "M") and (unit == 3600.0 or _SECONDS.match(text, found.end(2)) is not None)
        step = 60.0 if is_minutes else _time_unit(word)
        readings = readings_of(number) if step is not None else ()
        if step is None or len(readings) != 1:
            continue
        value, half = readings[0][0]
        if 0 < step < unit and _AND.fullmatch(text, end, found.start()) is not None:
            end, seconds, unit = found.end(2), seconds + value * step, step
        else:
            if unit:
                yield start, end, seconds, unit
            start, end, seconds, unit = found.start(), found.end(2), value * step, step * 2 * half
        if minutes and unit == 3600.0:  # "2 h 35"
            end, seconds, unit = found.end(3), seconds + float(minutes) * 60, 60.0
    if unit:
        yield start, end, seconds, unit


@lru_cache(maxsize=1024)
def _time_unit(word: str) -> float | None:
    word = word.lower()
    unit = UNITS.get(word)
    if unit is None and word and ord(word[0]) > 0xDFF:
        unit = next((UNITS[word[:n]] for n in (3, 2, 1) if word[:n] in UNITS), None)
    return unit[1] if unit is not None and unit[0] == "time" else None


def offsets_named(text: str) -> set[tuple[int, int]]:
    """Return the UTC offsets in minutes, in January and in July, of the zones and cities in a text."""
    plain, others = _offsets()
    words = set(text.encode("ascii", "replace").translate(_LETTERS).decode("ascii").split())
    found = {plain[word] for word in words & plain.keys()}
    lowered = text.lower()
    may_start = words if text.isascii() else {"", *words}
    return found | {offsets for start, name, offsets in others if start in may_start and name in lowered}


def says_local(text: str) -> bool:
    return _LOCAL.search(text) is not None


def shifted(moments: Iterable[Moment], zones: set[tuple[int, int]], any_zone: bool) -> Iterator[Moment]:
    """Yield the moments with a time of day in other time zones: those in ``zones``, or all."""
    targets = {(offset, offset) for offset in range(-720, 841, 30)} if any_zone else zones
    for moment in moments:
        if moment.minutes is None:
            continue
        sources = {(moment.offset, moment.offset)} if moment.offset is not None else zones
        seasons = (0, 1) if moment.month in (None, 4, 10) else (int(4 < moment.month < 10),)
        for change in {target[season] - source[season] for source in sources for target in targets for season in seasons} - {0}:
            days, minutes = divmod(moment.minutes + change, 1440)
            day = moment.date
            if day is None:
                yield Moment(0, 0, minutes=minutes)
                continue
            day += datetime.timedelta(days=days)
            yield Moment(0, 0, day.year, day.month, day.day, minutes)
