"""Collect the numbers, dates, times of day and quantities in the given texts."""

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

import numpy as np

from ..texts import in_small_letters
from . import derive
from .claims import NUMBER, Claim, claims_in
from .reading import Day, GivenToken, given_token, tokens_in, with_ascii_digits
from .times import clocks_in, durations_in, epochs_in, offsets_in_stamps
from .units import Unit, in_base, quantities_in_fields, unit_after
from .words import may_have_words, small_words_in, values_of_words

_LIMIT = 400
_ISO = re.compile(r"([12](?<![0-9][12])[0-9]{3})(?:[-/]|\. ?)(0?[1-9]|1[0-2])(?:[-/]|\. ?)(0?[1-9]|[12][0-9]|3[01])(?![0-9])")


class GivenNumbers:
    """The numbers that the agent was given. Each kind is collected on first use. ``paths`` has the given texts, and the path of
    each in the turn. ``beside`` are other texts that contain numbers. ``now`` is when the turn started.
    """

    def __init__(
        self, paths: Mapping[str, str], beside: Sequence[str], results: Sequence[Any], calls: int, now: datetime.datetime | None
    ) -> None:
        self._sources = list(paths.items())
        texts = [*paths, *beside]
        self.texts = texts if all(map(str.isascii, texts)) else [with_ascii_digits(text) for text in texts]
        self._results = results
        self._calls = calls
        self.today = (now.date(),) if now is not None else ()
        """The day of the turn, or nothing if unknown."""
        self._now = now
        self._whole = "\n".join(self.texts)
        self.tokens = tokens_in(self._whole)

    @cached_property
    def _read(self) -> tuple[set[float], set[Day], set[int]]:
        tokens = list(map(given_token, self.tokens))
        values, days, minutes = (
            (set(chain.from_iterable(kind)) for kind in zip(*tokens, strict=True)) if tokens else (set(), set(), set())
        )
        return values, days, minutes

    @property
    def plain_values(self) -> set[float]:
        return self._read[0]

    @property
    def plain_days(self) -> set[Day]:
        return self._read[1]

    @cached_property
    def plain_dates(self) -> list[datetime.date]:
        return self.dates_of(self.plain_days)

    @property
    def plain_minutes(self) -> set[int]:
        return self._read[2]

    @cached_property
    def _plain_sorted(self) -> list[float]:
        return sorted(self.plain_values)

    def rounds_to(self, value: float, half: float, error: float = 1e-15) -> bool:
        """Return True if a value of a single word, rounded to the shown digits, is this value."""
        return _is_near(self._plain_sorted, value, half, error)

    @cached_property
    def _lowered(self) -> str:
        return in_small_letters(self._whole)

    @cached_property
    def _claims(self) -> list[Claim]:
        """The numbers as they are read in an answer, so that those of several words count (``4 200``, ``4.7 million``, ``5 May``)."""
        return claims_in(self._whole)

    @cached_property
    def _values(self) -> list[float]:
        """The values of all numbers, also in words, sorted."""
        worded = {value for _, _, value in values_of_words(self._lowered)} if may_have_words(self._lowered) else set()
        read = {value * claim.scale for claim in self._claims for value, _ in claim.readings}
        return sorted(self.plain_values | worded | read)

    def has(self, value: float, half: float, error: float = 1e-15) -> bool:
        """Return True if a value, also of several words, rounds to this value."""
        return _is_near(self._values, value, half, error)

    @cached_property
    def _epochs(self) -> list[datetime.datetime]:
        return list(islice(epochs_in(self._whole), _LIMIT))

    @cached_property
    def minutes(self) -> set[int]:
        """All times of day, and the time of the turn."""
        times = [*self._epochs, *([self._now] if self._now is not None else [])]
        return (
            self.plain_minutes
            | {minutes for _, _, minutes in islice(clocks_in(self._whole), _LIMIT)}
            | {each.hour * 60 + each.minute for each in times}
        )

    @cached_property
    def offsets(self) -> set[int]:
        """The offsets from UTC of the times of day, in minutes."""
        return offsets_in_stamps(self._whole) | ({0} if self._epochs else set())

    @cached_property
    def days(self) -> set[Day]:
        read = {day for claim in self._claims for day in claim.days}
        for year, month, day in _ISO.findall(self._whole):  # also in 88121,2026-11-17,84500 and in 2026. 11. 5.
            read.add((int(year), int(month), int(day)))
        return self.plain_days | read | {(each.year, each.month, each.day) for each in self._epochs}

    @cached_property
    def dates(self) -> list[datetime.date]:
        return self.dates_of(self.days)

    def dates_of(self, days: Iterable[Day]) -> list[datetime.date]:
        """Return days as dates. Without a year, they are in this year."""
        found = []
        this_year = self.today[0].year if self.today else 0
        for year, month, day in days:
            with contextlib.suppress(ValueError):
                found.append(datetime.date(year or this_year, month, day))
        return found[:_LIMIT]

    @cached_property
    def durations(self) -> list[tuple[float, float]]:
        """Durations in seconds, each with its smallest unit."""
        found = [(seconds, unit) for _, _, seconds, unit in islice(durations_in(self._whole), _LIMIT)]
        fields = [(value * step, step) for value, (dimension, step) in self._fields if dimension == "time"]
        worded = [
            (value * unit[1], unit[1])
            for _, end, value in small_words_in(self._lowered)
            if (unit := unit_after(self._lowered, end)) and unit[0] == "time"
        ]
        return list(dict.fromkeys((*found, *fields, *worded)))

    @cached_property
    def _fields(self) -> list[tuple[float, Unit]]:
        return list(quantities_in_fields(self._whole))

    @cached_property
    def quantities(self) -> dict[str, list[float]]:
        """The numbers with units, in the base unit of each dimension, sorted."""
        found: dict[str, set[float]] = defaultdict(set)
        beside = [
            (claim.scaled[0], unit)
            for claim in self._claims
            if claim.readings and (unit := unit_after(self._whole, claim.end)) is not None
        ]
        for value, unit in (*beside, *self._fields):
            found[unit[0]].update(in_base(value, unit))
        return {dimension: sorted(values) for dimension, values in found.items()}

    @cached_property
    def facts(self) -> derive.Facts:
        facts = derive.Facts(self._results)
        if self._calls:
            facts.counts.add(float(self._calls))
        return facts

    @cached_property
    def totals(self) -> derive.Array:
        return np.abs(np.fromiter(self.facts.totals, np.float64))

    def nearest(self, claim: Claim) -> tuple[str, str] | None:
        """Return the path and the text of the given number, date or time that differs least from a claim."""
        places = self._places
        if not places:
            return None
        if claim.days or claim.minutes >= 0:
            ranked = ((_distance(claim, given_token(number)), at) for at, (number, _) in enumerate(places))
            best = min(ranked)[1]
        else:
            values, owners = self._placed_values
            value = claim.scaled[0]
            distances = np.abs(value - values) / np.maximum(np.maximum(value, values), 1e-9)
            best = int(owners[distances.argmin()]) if len(values) else 0
        number, at = places[best]
        text, path = self._sources[at]
        if text is not self.texts[at]:  # with digits of another script
            number = next(text[each.start() : each.end()] for each in NUMBER.finditer(self.texts[at]) if each.group() == number)
        return path, number

    @cached_property
    def _places(self) -> list[tuple[str, int]]:
        """Return the numbers, dates and times in order, each with the index of the first text that contains it."""
        first: dict[str, int] = {}
        for at in range(len(self._sources)):
            for number in NUMBER.findall(self.texts[at]):
                first.setdefault(number, at)
        return list(first.items())

    @cached_property
    def _placed_values(self) -> tuple[derive.Array, derive.Array]:
        """Return the values of all numbers, and the index of each in :attr:`_places`."""
        pairs = [(value, at) for at, (number, _) in enumerate(self._places) for value in given_token(number).values]
        return np.array([value for value, _ in pairs]), np.array([at for _, at in pairs], np.int64)


def _is_near(values: Sequence[float], value: float, half: float, error: float) -> bool:
    """Return True if one of the sorted values, rounded to the shown digits, is this value."""
    slack = half * (1 + 1e-9) + abs(value) * error
    at = bisect_left(values, value - slack)
    return at < len(values) and values[at] <= value + slack


def _distance(claim: Claim, token: GivenToken) -> float:
    """Return how much something given differs from a date or time: at most 2, which is for something of another kind."""
    if claim.days:
        year, month, day = claim.days[0]
        return min(((month != m) / 2 + abs(day - d) / 64 + (year not in (0, y)) / 4 for y, m, d in token.days), default=2.0)
    return min((abs(claim.minutes - minutes) / 1440 for minutes in token.minutes), default=2.0)
