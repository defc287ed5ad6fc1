"""Read units next to numbers or in field names, and convert between them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from ..lists import table
from .reading import _TOKEN, Number, _readings, mixed_numbers, spaced_numbers

_TABLE: dict[str, list[tuple[float, str]]] = table("units.json")
"""Factor to the base unit and the unit's words, by dimension."""
UNITS = {word: (dimension, factor) for dimension, rows in _TABLE.items() for factor, words in rows for word in words.split()}
_BINARY = {1e3: 1024.0, 1e6: 1024.0**2, 1e9: 1024.0**3, 1e12: 1024.0**4}
_UNIT = re.compile(
    r"[ \u00a0\u202f-]?((?:km|m|[kmg]bit|mb)/[hs]\b|sq\.? ?(?:ft|m|km)\b|square (?:feet|met(?:er|re)s|kilomet(?:er|re)s)\b|°\s?[CF]\b|[℃℉]|(?:km|ft|m)[²³23]|[^\W\d_](?:[^\W\d_]|[\u0900-\u0903\u093a-\u094f\u0981-\u0983\u09bc-\u09cd\u0e31-\u0e4e\u064b-\u0652])*)",
    re.IGNORECASE,
)
_FIELD = re.compile(r"([A-Za-z_]{1,60})\\?['\"]?\s{0,2}[:=]\s{0,2}['\"]?(?:[$€£]\s?)?$")
_FIELD_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_IN_NAMES = {"size": ("bytes", 1.0), "bytes": ("bytes", 1.0), "celsius": ("temperature", 1.0), "fahrenheit": ("temperature", 2.0)}
_UNCLEAR = frozenset(
    ["in", "to", "b", "d", "h", "l", "m", "t", "y", "an", "go", "mo"]
)  # units only in field names of several words


class Quantity(NamedTuple):
    """A number with a unit. The factor converts to the base unit of the dimension."""

    value: float
    dimension: str
    factor: float


def unit_after(text: str, at: int) -> tuple[str, float] | None:
    """Return ``(dimension, factor)`` of the unit after a number, or None."""
    found = _UNIT.match(text, at)
    if found is None:
        return None
    word = found.group(1).lower().replace(" ", "").replace(".", "")
    unit = UNITS.get(word)
    if unit is None and not word.isascii():  # no space between words
        for length in (3, 2, 1):
            unit = UNITS.get(word[:length]) if not word[:1].isascii() and ord(word[0]) > 0xDFF else None
            if unit is not None:
                return unit
    return unit


def unit_before(text: str, at: int) -> tuple[str, float] | None:
    """Return the unit in the field name before a number (``"distance_km": 12``), or None."""
    found = _FIELD.search(text, max(0, at - 70), at)
    if found is None:
        return None
    words = [word.lower() for word in _FIELD_WORD.findall(found.group(1))]
    for word in reversed(words):
        unit = _IN_NAMES.get(word) or (UNITS.get(word) if len(words) > 1 or word not in _UNCLEAR else None)
        if unit is not None:
            return unit
    return None


_RANGE = re.compile(r"(?:\s?[-–—]\s?| (?:to|or|bis|oder|à|ou|a|o|do|lub|до|или|tot) )[0-9]+")


def _unit_of_range(text: str, at: int) -> tuple[str, float] | None:
    found = _RANGE.match(text, at)
    return unit_after(text, found.end()) if found is not None else None


def quantities_in(text: str, limit: int) -> Iterator[Quantity]:
    """Yield at most ``limit`` numbers of a text that have a unit."""
    for count, found in enumerate(_TOKEN.finditer(text)):
        if count >= limit:
            return
        unit = unit_after(text, found.end()) or _unit_of_range(text, found.end()) or unit_before(text, found.start())
        if unit is not None:
            for readings in _readings(found.group()):
                for value, _ in readings:
                    yield Quantity(value, *unit)
    for number in (*spaced_numbers(text), *mixed_numbers(text)):
        unit = unit_after(text, number.end)
        if unit is not None:
            yield Quantity(number.readings[0][0], *unit)


def holds(number: tuple[float, float], unit: tuple[str, float], given: Iterable[Quantity], bare: Iterable[float]) -> bool:
    """Return True if a given quantity, converted to the number's unit, rounds to the number.

    ``bare`` are given numbers without a unit.
    """
    value, half = number
    dimension, factor = unit
    slack = half * 1.000001
    alike = [each for each in given if each.dimension == dimension]
    if dimension == "temperature":
        return any(abs(_degrees(each, factor) - value) <= slack for each in alike)
    scales = _scales(dimension, factor)
    if any(
        abs(each.value * other / scale - value) <= slack
        for each in alike
        for other in _scales(dimension, each.factor)
        for scale in scales
    ):
        return True
    if half > 0.02 * value or dimension not in _WITHOUT_UNIT:
        return False
    likely = _WITHOUT_UNIT[dimension]
    return any(
        abs(each * other / scale - value) <= slack for scale in scales for each in bare for other in likely if other != scale
    )


_WITHOUT_UNIT = {
    "bytes": (1.0, 1e3, 1024.0),
    "time": (1.0, 1e-3, 60.0),
    "length": tuple(factor for factor, _ in _TABLE["length"]),
    "mass": tuple(factor for factor, _ in _TABLE["mass"]),
}


def _scales(dimension: str, factor: float) -> tuple[float, ...]:
    """Return the meanings of a unit: a kilobyte has 1000 or 1024 bytes."""
    return (factor, _BINARY[factor]) if dimension == "bytes" and factor in _BINARY else (factor,)


def _degrees(given: Quantity, unit: float) -> float:
    celsius = {1.0: given.value, 2.0: (given.value - 32) / 1.8, 3.0: given.value - 273.15}[given.factor]
    return {1.0: celsius, 2.0: celsius * 1.8 + 32, 3.0: celsius + 273.15}[unit]


def unit_of(number: Number, text: str) -> tuple[str, float] | None:
    return unit_after(text, number.end)
