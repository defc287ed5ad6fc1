"""Check if dates, times of day and durations in an answer follow from the given ones."""

from __future__ import annotations

import calendar
import contextlib
import datetime
import re
from collections.abc import Iterable, Iterator
from functools import cached_property
from itertools import islice

from .claims import Claim, weekdays_beside
from .given import GivenNumbers
from .reading import Day
from .times import durations_in, offsets_named, says_local, shifted

_YEAR = 365.2425
_NEAR = 14
"""Days from today or a given date within which a date with its correct weekday needs no source."""
_LAST_DAY = datetime.date.max.toordinal()
_STEPS = 60
_FEW = 40
_SHIFTED = 4_000
_CLOCK_WITH_SECONDS = re.compile("(?<![0-9:])([0-2]?[0-9]):([0-5][0-9]):([0-5][0-9])")
_WEEK = re.compile(
    r"\b(?:week(?: number| no\.?)?|wk|cw|kw|kalenderwoche|woche|semaine(?: n°)?|semana|settimana|vecka|v\.|uge|uke|weeknummer|viikko|tydzień|tygodni\w+|"
    r"недел\w+|тижд\w+|týden|hafta|minggu(?: ke)?|tuần)[ \u00a0-]?$|第$",
    re.IGNORECASE,
)
_WEEK_BEHIND = re.compile(
    r"(?:(?:st|nd|rd|th|\.|-?[яй]|ª|º|e)? ?(?:week|kalenderwoche|woche|kw|недел|тижд|semana|tydzień|hafta)|[週周]|주차)",
    re.IGNORECASE,
)


class Timeline:
    """The dates, times and durations of an answer and of the given texts."""

    def __init__(self, text: str, claims: Iterable[Claim], given: GivenNumbers) -> None:
        self._text = text
        self._claims = claims
        self._given = given
        self._today = given.today

    # --- dates -----------------------------------------------------------------------------------------------------

    def holds_near_day(self, claim: Claim) -> bool:
        """Return True if a date is given in digits, ends a period, or is near today with its correct weekday."""
        if any(self._is_among(day, self._given.plain_days) or self._ends_period(day) for day in claim.days):
            return True
        near = [day for each in claim.days if (day := self._near(each, self._today)) is not None]
        if any(self._today is not None and abs((day - self._today).days) <= 1 for day in near):
            return True
        weekdays = weekdays_beside(self._text, claim)
        if not weekdays or self._displaces(claim):
            return False
        if any(day.weekday() in weekdays for day in near):
            return True
        bases = self._given.plain_dates if weekdays else ()
        return any(
            (day := self._near(each, base)) is not None and day.weekday() in weekdays for each in claim.days for base in bases
        )

    def holds_day(self, claim: Claim) -> bool:
        """Return True if a date is given, also in another time zone, or a stated duration before or after a given one."""
        if any(self._is_among(day, self._given.days) for day in claim.days):
            return True
        if any((month, day) in self._reached and year in {0, *self._reached[month, day]} for year, month, day in claim.days):
            return True
        return any(day[1:] in self._shifted_days for day in claim.days)

    def _displaces(self, claim: Claim) -> bool:
        """Return True if the day before or after is given, and the answer doesn't state it."""
        stated = {day[1:] for each in self._claims for day in each.days}
        near = [day for each in claim.days for base in self._given.plain_dates if (day := self._near(each, base)) is not None]
        return any(
            abs((day - base).days) == 1 and (base.month, base.day) not in stated and base != self._today
            for day in near
            for base in self._given.plain_dates
        )

    @staticmethod
    def _is_among(day: Day, given: set[Day]) -> bool:
        year, month, number = day
        if day in given or (0, month, number) in given:
            return True
        return not year and any(each[1] == month and each[2] == number for each in given)

    def _ends_period(self, day: Day) -> bool:
        """Return True for the first or last day of a month with a given day, and of any year."""
        year, month, number = day
        if day[1:] in ((12, 31), (1, 1)):
            return True
        if number != 1 and number != calendar.monthrange(year or 2025, month)[1]:
            return False
        known = {each[:2] for each in self._given.plain_days} | (
            {(self._today.year, self._today.month)} if self._today is not None else set()
        )
        return any(other == month and year in (0, given) for given, other in known)

    @staticmethod
    def _near(day: Day, base: datetime.date | None) -> datetime.date | None:
        """Return a day as a date if it's near another date."""
        if base is None:
            return None
        for year in (day[0],) if day[0] else (base.year, base.year + 1, base.year - 1):
            try:
                found = datetime.date(year, day[1], day[2])
            except ValueError:
                continue
            if abs((found - base).days) <= _NEAR:
                return found
        return None

    @cached_property
    def _reached(self) -> dict[tuple[int, int], set[int]]:
        """Return the years of the days that are a stated duration before or after a given day."""
        found: dict[tuple[int, int], set[int]] = {}
        steps = [each for each in self._durations if each[1] >= 3600][:_STEPS]
        lengths = {
            (round(seconds / unit), unit, int(seconds / 86400)) for seconds, unit in steps if 86400 <= seconds < 4000 * 86400
        }
        days = [*self._given.dates[:_FEW], *([self._today] if self._today is not None else [])]
        for ordinal in {ordinal for day in days for length in lengths for ordinal in self._moved(day, *length)}:
            if 0 < ordinal <= _LAST_DAY:
                later = datetime.date.fromordinal(ordinal)
                found.setdefault((later.month, later.day), set()).add(later.year)
        return found

    @staticmethod
    def _moved(day: datetime.date, units: int, unit: float, days: int) -> Iterator[int]:
        """Yield the ordinals of the days that are a duration before or after a day."""
        start, weekday = day.toordinal(), day.weekday()
        yield start + days
        yield start - days
        if unit == 86400 and days <= 60:  # working days
            for first, sign in ((min(weekday, 4), 1), (min(weekday, 5), -1)):
                weeks, rest = divmod(first + sign * days, 5)
                yield start + 7 * weeks + rest - weekday
        if unit > 2_000_000:
            months = units * (1 if unit < 3_000_000 else 12)
            for sign in (1, -1):
                year, month = divmod(day.year * 12 + day.month - 1 + sign * months, 12)
                if 1 <= year < 9999:
                    last = calendar.monthrange(year, month + 1)[1]
                    moved = datetime.date(year, month + 1, min(day.day, last)).toordinal()
                    yield moved
                    yield moved - 1
                    yield datetime.date(year, month + 1, last).toordinal()

    # --- times of day ----------------------------------------------------------------------------------------------

    def holds_clock(self, claim: Claim) -> bool:
        given, minutes = self._given, claim.minutes
        if given.now is not None and (given.now.hour * 60 + given.now.minute - minutes) % 1440 in (0, 1439):
            return True
        known = {each.minutes for each in given.clocks} | given.plain_minutes
        if minutes in known:
            return True
        if any(each is not None and (each - minutes) % 30 == 0 for each in known) and minutes in self._shifted_minutes:
            return True
        if minutes % 60 == 0 and minutes > 600 and ":" not in claim.text and minutes / 60 in given.plain_values:
            return True
        if minutes <= 720 and (minutes + 720) % 1440 in known and ":" in claim.text:
            return True  # 12-hour clock without a.m. or p.m.
        given_steps = {
            round(seconds / 60) for seconds, _ in given.durations if 0 < seconds < 259_200
        } - known  # "8h00" is no duration
        steps = given_steps | {round(seconds / 60) for seconds, _ in self._durations if 0 < seconds < 259_200} - known
        stated = {each.minutes for each in self._claims if each.minutes in known}
        if given.now is not None:
            stated.add(given.now.hour * 60 + given.now.minute)
        return any((start + sign * step) % 1440 == minutes for start in stated for step in steps for sign in (1, -1)) or any(
            (start + sign * step) % 1440 == minutes
            for start in known
            if start is not None
            for step in given_steps
            for sign in (1, -1)
        )

    @cached_property
    def _zones(self) -> set[tuple[int, int]]:
        return offsets_named("\n".join((self._text, *self._given.texts)))

    @cached_property
    def _durations(self) -> list[tuple[float, float]]:
        stated = [(seconds, unit) for _, _, seconds, unit in self._stated]
        return list(dict.fromkeys((*self._given.durations, *stated)))[: 2 * _STEPS]

    @cached_property
    def _shifted(self) -> list[tuple[int | None, tuple[int, int] | None]]:
        clocks = self._given.clocks
        if not clocks:
            return []
        moved = islice(shifted(clocks, self._zones, says_local(self._text)), _SHIFTED)
        return [(each.minutes, (each.month, each.day) if each.month and each.day else None) for each in moved]

    @cached_property
    def _shifted_minutes(self) -> set[int | None]:
        return {minutes for minutes, _ in self._shifted}

    @cached_property
    def _shifted_days(self) -> set[tuple[int, int] | None]:
        return {day for _, day in self._shifted}

    # --- durations -------------------------------------------------------------------------------------------------

    def duration_at(self, at: int) -> tuple[float, float] | None:
        return next(((seconds, unit) for start, end, seconds, unit in self._stated if start <= at < end), None)

    @cached_property
    def _stated(self) -> list[tuple[int, int, float, float]]:
        return list(durations_in(self._text))

    def holds_duration(self, seconds: float, unit: float) -> bool:
        """Return True if a duration is given, or lies between two given moments."""
        slack = unit * 0.5000001
        for given, _ in self._given.durations:
            if abs(given - seconds) <= slack or (60 < unit < 2_000_000 and 0 < given - seconds < unit):
                return True
        if any(abs(each - seconds) <= max(slack, 30 if unit >= 60 else 0) for each in self._spans(unit)):
            return True
        return unit >= 31_000_000 and self.holds_years(round(seconds / unit))

    def holds_year(self, year: float) -> bool:
        """Return True for a year that is a given number of years before or after a given one."""
        steps = {round(seconds / unit) for seconds, unit in self._durations if unit > 31_000_000}
        years = {each for each in self._given.plain_values if 1900 < each < 2200} | (
            {self._today.year} if self._today is not None else set()
        )
        return any(abs(each - year) in steps for each in years)

    def holds_day_of_month(self, claim: Claim) -> bool:
        """Return True for the day of a month with its correct weekday, near today or a given date (``Monday 21``)."""
        weekdays = weekdays_beside(self._text, claim)
        if not weekdays or not 1 <= claim.readings[0][0] <= 31:
            return False
        for base in (*self._given.plain_dates, *([self._today] if self._today is not None else [])):
            for month in (base.month, base.month % 12 + 1):
                found = self._near((0, month, int(claim.readings[0][0])), base)
                if found is not None and found.weekday() in weekdays:
                    return True
        return False

    def _spans(self, unit: float) -> Iterator[float]:
        """Yield the seconds between the given moments."""
        if unit <= 60:
            clocks = [found for text in self._given.texts for found in _CLOCK_WITH_SECONDS.findall(text)[:12]][:12]
            exact = list(dict.fromkeys(int(hour) * 3600 + int(minute) * 60 + int(second) for hour, minute, second in clocks))
            for i, start in enumerate(exact):
                yield from (float((end - start) % 86400) for end in exact[i + 1 :])
        dated = [(day, each) for each in self._given.moments if (day := each.date) is not None][:_FEW]
        for i, (first, one) in enumerate(dated):
            for second, other in dated[i + 1 :]:
                if one.minutes is not None and other.minutes is not None:
                    yield abs((second - first).days * 86400.0 + 60.0 * (other.minutes - one.minutes))
        if unit >= 86400:
            days = [*self._given.dates[:_FEW], *([self._today] if self._today is not None else [])]
            for i, start_day in enumerate(days):
                yield from (abs((day - start_day).days) * 86400.0 for day in days[i + 1 :])
        else:
            minutes = list(dict.fromkeys(each.minutes for each in self._given.clocks if each.minutes is not None))[:30]
            for i, begin in enumerate(minutes):
                for end in minutes[i + 1 :]:
                    yield (end - begin) % 1440 * 60.0
                    yield (begin - end) % 1440 * 60.0

    def holds_years(self, years: int) -> bool:
        """Return True for the full years between two given dates or years, or until today."""
        today = self._today  # the day of the turn, not of its evaluation
        days = [*self._given.dates[:_FEW], *([today] if today is not None else [])]
        for i, first in enumerate(days):
            for second in days[i + 1 :]:
                if int(abs((second - first).days) / _YEAR) == years:
                    return True
        known = sorted({int(value) for value in self._given.plain_values if 1500 <= value <= 2200 and value == int(value)})[:60]
        known += [today.year] if today is not None else []
        return any(abs(second - first) == years for i, first in enumerate(known) for second in known[i + 1 :])

    def holds_span(self, claim: Claim) -> bool:
        """Return True for the days or minutes between two dates or times of day in the same line, or from today."""
        value = claim.readings[0][0]
        begin, end = self._text.rfind("\n", 0, claim.at) + 1, self._text.find("\n", claim.end)
        line = [each for each in self._claims if begin <= each.at < (end if end >= 0 else len(self._text))]
        days = [self._today] if self._today is not None else []
        for each in line:
            year = each.days[0][0] or (self._today.year if self._today is not None else 0) if each.days else 0
            if year:
                with contextlib.suppress(ValueError):
                    days.append(datetime.date(year, *each.days[0][1:]))
        clocks = [each.minutes for each in line if each.minutes >= 0]
        return any(abs((day - other).days) == value for i, day in enumerate(days) for other in days[:i]) or any(
            (clock - other) % 1440 in (value, -value % 1440) for i, clock in enumerate(clocks) for other in clocks[:i]
        )

    def holds_week(self, claim: Claim) -> bool:
        """Return True if a number is called a week and is the week of a known date."""
        if (
            _WEEK.search(self._text, max(0, claim.at - 24), claim.at) is None
            and _WEEK_BEHIND.match(self._text, claim.end) is None
        ):
            return False
        days = [*self._given.dates, *([self._today] if self._today is not None else [])]
        return claim.readings[0][0] in {float(day.isocalendar()[1]) for day in days}
