"""Check if dates, times of day and durations in an answer follow from the given ones."""

from __future__ import annotations

import datetime
from collections.abc import Collection, Iterable
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .claims import Claim, weekdays_beside
from .given import GivenNumbers
from .reading import Day
from .times import durations_in, offsets_named

_DAY = 86_400
_MONTH = 2_000_000
"""Seconds above which a unit is a month or a year."""
_YEAR = 31_000_000
_NEAR = 14
"""Days from today or a given date within which a date with its correct weekday needs no source."""
_FEW = 40
_MOST_DURATIONS = 60
_LONGEST = 4_000 * _DAY
_WORKING_DAYS = 60


class Timeline:
    """The dates, times of day and durations of an answer and of the given texts."""

    def __init__(self, text: str, claims: Iterable[Claim], given: GivenNumbers) -> None:
        self._text = text
        self._given = given
        self._stated = list(durations_in(text))
        self._claims = claims

    # --- dates -----------------------------------------------------------------------------------------------------

    def holds_near_day(self, claim: Claim) -> bool:
        """Return True if a date is given in digits, is yesterday, today or tomorrow, or is near and has its correct weekday."""
        given = self._given
        if any(_is_given_day(day, given.plain.days) for day in claim.days):
            return True
        if any(abs((day - today).days) <= 1 for today in given.today for day in _dates_near(claim.days, today)):
            return True
        weekdays = weekdays_beside(self._text, claim)
        bases = (*given.plain_dates, *given.today) if weekdays else ()
        return any(day.weekday() in weekdays for base in bases for day in _dates_near(claim.days, base))

    def holds_day(self, claim: Claim) -> bool:
        """Return True if a date is given, or is a given or stated duration before or after a given one."""
        return any(_is_given_day(day, self._given.days) or day in self._reachable_days for day in claim.days)

    @cached_property
    def _durations(self) -> list[tuple[float, float]]:
        stated = [(seconds, unit) for _, _, seconds, unit in self._stated]
        return list(dict.fromkeys((*self._given.durations, *stated)))[: 2 * _MOST_DURATIONS]

    @cached_property
    def _reachable_days(self) -> set[Day]:
        """Return the days that are a duration before or after a given day or today, and the first and last of the same month.

        Each is also there without its year.
        """
        days = np.array([*self._given.dates[:_FEW], *self._given.today], "datetime64[D]")
        lengths = {
            (round(seconds / unit), unit) for seconds, unit in self._durations if unit >= 3600 and _DAY <= seconds < _LONGEST
        }
        moved = [each for count, unit in lengths for sign in (1, -1) for each in _days_moved(days, sign * count, unit)]
        months = days.astype("datetime64[M]")
        moved += [months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]") - 1]
        found = {day for some in moved for day in some.tolist() if isinstance(day, datetime.date)}
        return {(year, day.month, day.day) for day in found for year in (0, day.year)}

    # --- times of day ----------------------------------------------------------------------------------------------

    def holds_clock(self, claim: Claim) -> bool:
        """Return True if a time is given, also in a named time zone, or is a duration before or after a given one."""
        given, minutes = self._given, claim.minutes
        if minutes in given.minutes or (minutes <= 720 and ":" in claim.text and (minutes + 720) % 1440 in given.minutes):
            return True
        if minutes % 60 == 0 and minutes > 600 and ":" not in claim.text and minutes / 60 in given.plain.values:
            return True
        steps = {round(seconds / 60) % 1440 for seconds, _ in self._durations} - given.minutes
        moved = {(minutes - each) % 1440 for each in given.minutes}
        return any(each in steps or 1440 - each in steps or each in self._zone_shifts for each in moved)

    @cached_property
    def _zone_shifts(self) -> set[int]:
        """Return the differences in minutes between the time zones that the texts name."""
        zones = offsets_named("\n".join((self._text, *self._given.texts))) | {(each, each) for each in self._given.offsets}
        month = self._given.today[0].month if self._given.today else None
        seasons = (0, 1) if month in (None, 4, 10) else (int(4 < month < 10),)
        return {(one[season] - other[season]) % 1440 for one in zones for other in zones for season in seasons}

    # --- durations -------------------------------------------------------------------------------------------------

    def duration_at(self, at: int) -> tuple[float, float] | None:
        return next(((seconds, unit) for start, end, seconds, unit in self._stated if start <= at < end), None)

    def holds_duration(self, seconds: float, unit: float) -> bool:
        """Return True if a duration is given, or lies between two known dates or times of day."""
        slack = unit * 0.5000001
        for given, _ in self._given.durations:
            if abs(given - seconds) <= slack:
                return True
        if unit < _DAY:
            return any(abs(each * 60 - seconds) <= max(slack, 30) for each in self._minutes_between)
        if unit >= _YEAR and any(int(days / 365.2425) == round(seconds / unit) for days in self._days_between):
            return True
        return any(abs(days * _DAY - seconds) <= slack for days in self._days_between)

    @cached_property
    def _days_between(self) -> set[int]:
        given = self._given
        stated = given.dates_of(day for claim in self._claims for day in claim.days)
        days = [*given.dates[:_FEW], *given.today, *stated[:_FEW]]
        return {abs((one - other).days) for one, other in combinations(days, 2)}

    @cached_property
    def _minutes_between(self) -> set[int]:
        minutes = [*self._given.minutes][:_FEW]
        return {(one - other) % 1440 for one in minutes for other in minutes if one != other}


def _is_given_day(day: Day, given: Collection[Day]) -> bool:
    year, month, number = day
    if day in given or (0, month, number) in given:
        return True
    return not year and any(each[1] == month and each[2] == number for each in given)


def _dates_near(days: Iterable[Day], base: datetime.date) -> list[datetime.date]:
    """Return the days that are near a date, as dates."""
    found = []
    for year, month, day in days:
        for each in (year,) if year else (base.year, base.year + 1, base.year - 1):
            try:
                date = datetime.date(each, month, day)
            except ValueError:
                continue
            if abs((date - base).days) <= _NEAR:
                found.append(date)
    return found


def _days_moved(days: NDArray[np.datetime64], count: int, unit: float) -> list[NDArray[np.datetime64]]:
    """Return the days that are a number of days, weeks, months or years after some days, or before them if it's negative."""
    found = [days + int(count * unit / _DAY)]
    if unit == _DAY and abs(count) <= _WORKING_DAYS:
        found.append(np.busday_offset(days, count, "backward" if count > 0 else "forward"))
    if unit > _MONTH:
        starts = days.astype("datetime64[M]")
        months = starts + count * (12 if unit >= _YEAR else 1)
        last = (months + 1).astype("datetime64[D]") - 1
        found.append(np.minimum(months.astype("datetime64[D]") + (days - starts.astype("datetime64[D]")), last))
    return found
