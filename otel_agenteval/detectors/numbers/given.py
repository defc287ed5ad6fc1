"""Collect the numbers, dates, times of day and quantities in the given texts."""

from __future__ import annotations

import contextlib
import datetime
import re
from bisect import bisect_left
from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from ..texts import in_small_letters
from . import derive
from .claims import NUMBER, Claim
from .reading import Day, GivenToken, given_token, special_values, with_ascii_digits, words_in
from .times import Moment, clocks_in, dates_in, durations_in, epochs_in
from .units import UNITS, Unit, quantities_in_fields, unit_after, unit_before
from .words import cjk_value, may_have_numerals, may_have_words, small_words_in, values_of_words

_MARKS = ".,:/'-+"
_LIMIT = 400
_OCCURRENCES = 20


_RANGE = re.compile(
    r"([0-9](?<![0-9][0-9])[0-9]{0,3})(?![0-9])\s?(?:[-–—~]|to|bis|à|a|до|al)\s?[0-9]{1,4}[ \u00a0-]?([^\W\d_]{1,14})"
)
"""A range of durations, of which :func:`durations_in` reads the longer one."""


def worded_durations(lowered: str) -> list[tuple[float, float]]:
    """Return durations such as ``three months`` in seconds, each with its unit."""
    found = []
    for _, end, value in small_words_in(lowered):
        unit = unit_after(lowered, end)
        if unit is not None and unit[0] == "time":
            found.append((value * unit[1], unit[1]))
    return found


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
        self.today = now.date() if now is not None else None
        self.now = now
        self._whole = "\n".join(self.texts)
        self.words = {word.strip(_MARKS) for word in set(words_in(self._whole))}

    @cached_property
    def _tokens(self) -> tuple[set[float], set[Day], set[int]]:
        values: set[float] = set()
        days: set[Day] = set()
        minutes: set[int] = set()
        for word in self.words:
            token = given_token(word)
            if token.values:
                values.update(token.values)
                if token.days:
                    days.update(token.days)
                if token.minutes:
                    minutes.update(token.minutes)
        return values, days, minutes

    @property
    def plain_values(self) -> set[float]:
        return self._tokens[0]

    @property
    def plain_days(self) -> set[Day]:
        return self._tokens[1]

    @cached_property
    def plain_dates(self) -> list[datetime.date]:
        """The days in digits as dates. Without a year, they are in this year."""
        return self._dates_of(self.plain_days)

    @property
    def plain_minutes(self) -> set[int]:
        return self._tokens[2]

    @cached_property
    def _plain_sorted(self) -> list[float]:
        return sorted(self.plain_values)

    def rounds_to(self, value: float, half: float, error: float = 1e-15) -> bool:
        """Return True if a value of a single word, rounded to the shown digits, is this value."""
        return _is_near(self._plain_sorted, value, half, error)

    @cached_property
    def _worded(self) -> list[float]:
        """Return the values of numbers in words, sorted."""
        found: set[float] = set()
        if may_have_words(self._lowered):
            found.update(value for _, _, value in values_of_words(self._lowered))
        if may_have_numerals(self._whole):
            found.update(value for _, _, value in cjk_value(self._whole))
        return sorted(found)

    @cached_property
    def _special(self) -> list[float]:
        """Return the values of numbers such as ``4 200`` and ``4.7 million``, sorted."""
        return sorted(special_values([self._whole]))

    @cached_property
    def values(self) -> list[float]:
        return sorted({*self.plain_values, *self._special, *self._worded})

    @cached_property
    def _lowered(self) -> str:
        return in_small_letters(self._whole)

    def has(self, value: float, half: float, error: float = 1e-15) -> bool:
        """Return True if a value, also of several words, rounds to this value."""
        if self.rounds_to(value, half, error):
            return True
        if value == int(value) and (value <= 1000 or not value % 100) and _is_near(self._worded, value, half, error):
            return True
        return (value >= 1000 or value < 1 or not self._whole.isascii()) and _is_near(self._special, value, half, error)

    @cached_property
    def moments(self) -> list[Moment]:
        """All dates, and times with a date."""
        found: list[Moment] = []
        for text in self.texts:
            found += islice(dates_in(text), _LIMIT)
            found += islice(epochs_in(text), _LIMIT)
        return found

    @cached_property
    def clocks(self) -> list[Moment]:
        dated = [each for each in self.moments if each.minutes is not None]
        return dated + list(islice((each for each in clocks_in(self._whole) if each.offset is None), _LIMIT))

    @cached_property
    def days(self) -> set[Day]:
        return self.plain_days | {
            (each.year or 0, each.month, each.day) for each in self.moments if each.month is not None and each.day is not None
        }

    @cached_property
    def dates(self) -> list[datetime.date]:
        return self._dates_of(self.days)

    def _dates_of(self, days: set[Day]) -> list[datetime.date]:
        found = []
        for year, month, day in days:
            with contextlib.suppress(ValueError):
                found.append(datetime.date(year or (self.today.year if self.today is not None else 0), month, day))
        return found[:_LIMIT]

    @cached_property
    def durations(self) -> list[tuple[float, float]]:
        """Durations in seconds, each with its smallest unit."""
        text = self._whole
        found = [(seconds, unit) for _, _, seconds, unit in islice(durations_in(text), _LIMIT)]
        found += [
            (float(low) * step[1], step[1]) for low, word in _RANGE.findall(text) if (step := UNITS.get(word.lower())) is not None
        ]
        fields = [(value * step, step) for value, (dimension, step) in quantities_in_fields(text) if dimension == "time"]
        found += reversed(fields)
        return list(dict.fromkeys((*found, *worded_durations(self._lowered))))

    @cached_property
    def facts(self) -> derive.DerivedFacts:
        facts = derive.DerivedFacts()
        facts.add_all(self._results)
        if self._calls:
            facts.counts.add(float(self._calls))
        return facts

    @cached_property
    def totals(self) -> derive.Array:
        return np.abs(np.fromiter(self.facts.totals, np.float64))

    @cached_property
    def shares(self) -> derive.Array:
        return np.abs(np.fromiter(self.facts.shares, np.float64))

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

    def units_of(self, token: str, wanted: Unit | None = None) -> set[Unit | None]:
        """Return the units with which a number stands in the texts, at least until the wanted one."""
        found: set[Unit | None] = set()
        text, at = self._whole, self._whole.find(token)
        for _ in range(_OCCURRENCES):
            if at < 0:
                break
            end = at + len(token)
            if not (text[at - 1 : at].isdigit() or text[end : end + 1].isdigit()):
                unit = unit_after(text, end) or unit_before(text, at)
                found.add(unit)
                if unit is None or unit == wanted:
                    break
            at = text.find(token, end)
        return found


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
