"""Collect numbers, dates, times of day, and quantities in the texts that the agent received."""

from __future__ import annotations

import contextlib
import datetime
import re
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from itertools import chain, islice
from typing import Any

from . import derive
from .claims import NUMBER, Claim, claims_in
from .reading import (
    TOKEN,
    Day,
    Meanings,
    Unit,
    clocks_in,
    durations_in,
    in_base,
    meanings_of,
    quantities_in_fields,
    unit_after,
    with_ascii_digits,
)
from .words import values_of_words

_LIMIT = 400
_ISO = re.compile(r"([12](?<![0-9][12])[0-9]{3})(?:[-/]|\. ?)(0?[1-9]|1[0-2])(?:[-/]|\. ?)(0?[1-9]|[12][0-9]|3[01])(?![0-9])")
"""Pattern for dates next to other numbers, or with spaces: ``88121,2026-11-17,84500``, ``2026. 11. 5.``"""
_AMOUNT = re.compile(r"(?i:amount|cents|cost|fee|price|total)\w{0,20}\W{0,2}[:=]\W{0,2}(?:{\D{0,40})?(\d{1,15})(?![.,:-]?\d)")


class GivenNumbers:
    """Numbers in the texts that the agent received (given numbers). Most kinds are collected on first use.

    ``paths`` maps given texts to their paths in the turn. ``others`` are given texts without a path. ``now`` is the turn's start.
    """

    def __init__(
        self, paths: Mapping[str, str], others: Sequence[str], results: Sequence[Any], calls: int, now: datetime.datetime | None
    ) -> None:
        self._sources = list(paths.items())
        texts = [*paths, *others]
        self.texts = texts if all(map(str.isascii, texts)) else [with_ascii_digits(text) for text in texts]
        self._results = results
        self._calls = calls
        self.today = (now.date(),) if now is not None else ()
        """Date of the turn, or an empty tuple if unknown."""
        self._now = now
        self._whole = "\n".join(self.texts)
        self.tokens = set(TOKEN.findall(self._whole))

    @cached_property
    def plain(self) -> Meanings:
        tokens = list(map(meanings_of, self.tokens))
        return Meanings(*(set(chain.from_iterable(kind)) for kind in zip(*tokens, strict=True)))

    @cached_property
    def _plain_sorted(self) -> list[float]:
        return sorted(self.plain.values)

    def rounds_to(self, value: float, half: float) -> bool:
        """Return True if a given number in digits rounds to ``value``. ``half`` is half the rounding interval (0.05 for 4.2)."""
        return _is_near(self._plain_sorted, value, half)

    @cached_property
    def _claims(self) -> list[Claim]:
        """Given numbers, dates, and times, including ``4 200``, ``4.7 million``, and ``5 May``."""
        return claims_in(self._whole)

    @cached_property
    def _worded(self) -> list[tuple[int, int, float]]:
        return list(values_of_words(self._whole))

    @cached_property
    def _values(self) -> list[float]:
        read = {value * claim.scale for claim in self._claims for value, _ in claim.readings}
        return sorted({*self.plain.values, *read, *(value for _, _, value in self._worded)})

    def has(self, value: float, half: float) -> bool:
        """Return True if a given number, such as ``42``, ``4.7 million``, or ``twelve``, rounds to ``value``."""
        return _is_near(self._values, value, half)

    @cached_property
    def amounts(self) -> set[int]:
        """Whole numbers in fields such as ``unit_amount``. In payment APIs, these numbers can be cents."""
        return set(map(int, _AMOUNT.findall(self._whole)))

    @cached_property
    def minutes(self) -> set[int]:
        """Given times of day, and the turn's start, in minutes since midnight."""
        read = (minutes for _, _, minutes in islice(clocks_in(self._whole), _LIMIT))
        now = (self._now.hour * 60 + self._now.minute,) if self._now is not None else ()
        return {*self.plain.minutes, *read, *now}

    @cached_property
    def days(self) -> set[Day]:
        read = (day for claim in self._claims for day in claim.days)
        stamps = ((int(year), int(month), int(day)) for year, month, day in _ISO.findall(self._whole))
        return {*self.plain.days, *read, *stamps}

    @cached_property
    def dates(self) -> list[datetime.date]:
        return self.dates_of(self.days)

    def dates_of(self, days: Iterable[Day]) -> list[datetime.date]:
        """Convert valid days to dates, up to a limit. Days without a year get the turn's year, if known."""
        found = []
        this_year = self.today[0].year if self.today else 0
        for year, month, day in days:
            with contextlib.suppress(ValueError):
                found.append(datetime.date(year or this_year, month, day))
        return found[:_LIMIT]

    @cached_property
    def durations(self) -> list[tuple[float, float]]:
        """Given durations and their precisions in seconds. The precision of ``2 h`` is 3600."""
        found = [(seconds, unit) for _, _, seconds, unit in islice(durations_in(self._whole), _LIMIT)]
        fields = [(value * step, step) for value, (dimension, step) in self._fields if dimension == "time"]
        units = ((value, unit_after(self._whole, end)) for _, end, value in self._worded)
        worded = [(value * unit[1], unit[1]) for value, unit in units if unit is not None and unit[0] == "time"]
        return list(dict.fromkeys((*found, *fields, *worded)))

    @cached_property
    def _fields(self) -> list[tuple[float, Unit]]:
        return list(quantities_in_fields(self._whole))

    def has_quantity(self, value: float, half: float, unit: Unit) -> bool:
        """Return True if a quantity is given, possibly in another unit: ``2 km`` matches ``2000 m``."""
        known = self._quantities.get(unit[0], ())
        both = zip(in_base(value, unit), in_base(value + half, unit), strict=True)
        return any(_is_near(known, base, abs(upper - base)) for base, upper in both)

    @cached_property
    def _quantities(self) -> dict[str, list[float]]:
        """Sorted given quantities in base units, by dimension such as ``time``."""
        found: dict[str, set[float]] = defaultdict(set)
        beside = ((claim.scaled[0][0], unit_after(self._whole, claim.end)) for claim in self._claims if claim.readings)
        for value, unit in (*beside, *self._fields):
            if unit is not None:
                found[unit[0]].update(in_base(value, unit))
        return {dimension: sorted(values) for dimension, values in found.items()}

    @cached_property
    def facts(self) -> derive.Facts:
        facts = derive.Facts(self._results)
        if self._calls:
            facts.counts.add(float(self._calls))
        return facts

    def nearest(self, claim: Claim) -> tuple[str, str] | None:
        """Return the path and text of the closest given number of the claim's kind, or of the first given number, or None."""
        if not self._places:
            return None
        if claim.days:
            kind, position = 1, 31.0 * claim.days[0][1] + claim.days[0][2]
        else:
            kind, position = (2, float(claim.minutes)) if claim.minutes >= 0 else (0, claim.scaled[0][0])
        positions = self._positions[kind]
        at = bisect_left(positions, (position, -1))
        beside = positions[max(0, at - 1) : at + 1] or [(0.0, 0)]
        number, at = self._places[min(beside, key=lambda each: abs(position - each[0]) / max(position, each[0], 1e-9))[1]]
        text, path = self._sources[at]
        if text is not self.texts[at]:  # with digits of another script
            number = next(text[each.start() : each.end()] for each in NUMBER.finditer(self.texts[at]) if each.group() == number)
        return path, number

    @cached_property
    def _places(self) -> list[tuple[str, int]]:
        first: dict[str, int] = {}
        for at in range(len(self._sources)):
            for number in NUMBER.findall(self.texts[at]):
                first.setdefault(number, at)
        return list(first.items())

    @cached_property
    def _positions(self) -> tuple[list[tuple[float, int]], ...]:
        """Sorted values, days, and times of day, each with the index of its number in :attr:`_places`."""
        read = [(meanings_of(number), at) for at, (number, _) in enumerate(self._places)]
        return (
            sorted((value, at) for meanings, at in read for value in meanings.values),
            sorted((31.0 * month + day, at) for meanings, at in read for _, month, day in meanings.days),
            sorted((float(minutes), at) for meanings, at in read for minutes in meanings.minutes),
        )


def _is_near(values: Sequence[float], value: float, half: float) -> bool:
    slack = half * (1 + 1e-9) + abs(value) * 1e-9
    at = bisect_left(values, value - slack)
    return at < len(values) and values[at] <= value + slack
