"""Read units next to numbers and in field names, and durations."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from ..lists import table
from .reading import readings_of

_TABLE: dict[str, list[tuple[float, str]]] = table("units.json")
"""Factor to the base unit and the unit's words, by dimension."""
Unit = tuple[str, float]
"""Dimension, and factor to its base unit."""
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
"""Pattern for a number and the name of its field, from the end of the text to its start."""
_FIELD_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])")
_IN_NAMES = {"size": ("bytes", 1.0), "bytes": ("bytes", 1.0), "celsius": ("temperature", 1.0), "fahrenheit": ("temperature", 2.0)}
_UNCLEAR = frozenset(
    ["in", "to", "b", "d", "h", "l", "m", "t", "y", "an", "go", "mo"]
)  # units only in field names of several words


def unit_after(text: str, at: int) -> Unit | None:
    """Return ``(dimension, factor)`` of the unit after a number, or None."""
    if text[at : at + 1] in _ENDS:
        return None
    found = _UNIT.match(text, at)
    if found is None:
        return None
    word = found.group(1).replace(" ", "").replace(".", "")
    if word in _KUBERNETES:
        return "bytes", _KUBERNETES[word]
    return unit_of(word)


def unit_of(word: str) -> Unit | None:
    """Return the unit that a word names, or that it starts with in a script without spaces."""
    word = word.lower()
    if word in UNITS or word < "\u0e00":
        return UNITS.get(word)
    return next((UNITS[word[:length]] for length in (3, 2, 1) if word[:length] in UNITS), None)


def quantities_in_fields(text: str) -> Iterator[tuple[float, Unit]]:
    """Yield the numbers with a unit in the name of their field, the last first."""
    for number, name in _FIELD_VALUE.findall(text[::-1]):
        unit = _unit_in_name(name[::-1])
        if unit is not None:
            yield float(number[::-1]), unit


@lru_cache(maxsize=2_048)
def _unit_in_name(name: str) -> Unit | None:
    """Return the unit in the name of a field, such as ``distance_km``."""
    words = [word.lower() for word in _FIELD_WORD.findall(name)]
    for word in reversed(words):
        unit = _IN_NAMES.get(word) or (UNITS.get(word) if len(words) > 1 or word not in _UNCLEAR else None)
        if unit is not None:
            return unit
    return None


def in_base(value: float, unit: Unit) -> tuple[float, ...]:
    """Return a quantity in the base unit of its dimension. A kilobyte has 1000 or 1024 bytes."""
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
