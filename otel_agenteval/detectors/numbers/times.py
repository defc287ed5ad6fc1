"""Read months, times of day, durations and time zones in the formats of people and machines."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator
from functools import cache

from ..lists import table
from ..texts import tree
from .reading import readings_of
from .units import unit_of

MONTHS: dict[str, int] = {name: month for names in table("months.json") for month, name in enumerate(names.split(), start=1)} | {
    "sept": 9,
    "mär": 3,
}
MONTHS |= {name.replace("ı", "i"): month for name, month in MONTHS.items() if "ı" in name}  # KASIM in lower case
_EPOCH = re.compile(r"(1(?<![0-9.]1)(?:[0-9]{9}|[0-9]{12}))(?![0-9.])")
_CLOCK = re.compile(
    r"([0-9](?<![0-9:][0-9])(?:(?<=[0-2])[0-9])?)(?=[:.\sho時时點点시apu])(?:(?:[:.]|\s?h\s?|[時时點点]|시\s?)([0-5][0-9])(?![0-9]|[.,][0-9])(?::[0-5][0-9])?[分분]?|(?=\s?(?:[ap]\.?\s?m\b|uhr|o.clock|h\b|時|时|点|點|시)))"
    r"(?:\s?([ap])\.?\s?m\b)?",
    re.IGNORECASE,
)
_AFTERNOON = re.compile(r"(?:下午|晚上|午後|오후|中午)\s?$")
_DURATION = re.compile(r"([0-9](?<![0-9.,:][0-9])[0-9]*(?![0-9])(?:[.,][0-9]+)*)[ \u00a0\u202f-]?([^\W\d_]{1,14})")
_AND = re.compile(r"[ ,\u00a0]{0,2}(?:and|und|et|y|e|og|och|и|و)?[ ,\u00a0]{0,2}")


def epochs_in(text: str) -> Iterator[datetime.datetime]:
    """Yield numbers of seconds or milliseconds since 1970 as times in UTC."""
    for found in _EPOCH.finditer(text):
        yield datetime.datetime.fromtimestamp(int(found.group()[:10]), datetime.timezone.utc)


def clocks_in(text: str) -> Iterator[tuple[int, int, int]]:
    """Yield the start, end and minutes of each time of day."""
    for found in _CLOCK.finditer(text):
        hour, minute, half = int(found.group(1)), int(found.group(2) or 0), found.group(3)
        if hour > 24:
            continue
        if half:
            hour = hour % 12 + (12 if half in "pP" else 0)
        elif hour < 12 and _AFTERNOON.search(text, max(0, found.start() - 3), found.start()):
            hour += 12
        yield found.start(), found.end(), (hour * 60 + minute) % 1440


def durations_in(text: str) -> Iterator[tuple[int, int, float, float]]:
    """Yield ``(start, end, seconds, unit)``. ``unit`` is the smallest written unit in seconds, over ten per decimal."""
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


@cache
def _zones() -> tuple[dict[str, tuple[int, int]], re.Pattern[str], re.Pattern[str]]:
    """Return the UTC offsets in minutes, in winter and in summer, of zones and cities, and two patterns for their names."""
    every = {name.strip(): (offsets[0], offsets[-1]) for offsets, names in table("time_zones.json") for name in names}
    every |= {name: (summer, winter) for name, (winter, summer) in every.items() if winter >= _SOUTHERN}
    words, others = (tree(name for name in every if name.isascii() is plain) for plain in (True, False))
    return every, re.compile(rf"\b{words}\b"), re.compile(others)  # one pattern would be much slower


_SOUTHERN = 570
"""Offset from which zones are on the southern hemisphere, where it is summer in December, or have no summer time."""


_STAMP = re.compile(r"[0-9]T[0-2][0-9]:[0-5][0-9](?::[0-5][0-9](?:[.,][0-9]+)?)?(?:Z|([+-])([0-9]{2}):?([0-9]{2}))")


def offsets_in_stamps(text: str) -> set[int]:
    """Return the UTC offsets in minutes of times such as ``2026-12-01T18:00:00+01:00``."""
    return {
        (int(hours or 0) * 60 + int(minutes or 0)) * (-1 if sign == "-" else 1) for sign, hours, minutes in _STAMP.findall(text)
    }


def offsets_named(text: str) -> set[tuple[int, int]]:
    """Return the UTC offsets in minutes, in winter and in summer, of the zones and cities in a text."""
    every, words, others = _zones()
    text = text.lower()
    return {every[name] for names in (words, others) for name in names.findall(text)}
