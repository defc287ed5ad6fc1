"""Check if dates, times and durations in an answer follow from those in the given texts."""

from __future__ import annotations

import calendar
import datetime
import re
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property
from itertools import chain, islice

from ..places import Places
from .reading import Number
from .times import LIMIT, Moment, clocks_in, dates_in, durations_in, epochs_in, offsets_named, same_date, says_local, shifted
from .units import Quantity

_YEAR = 365.2425
_DECIMAL = re.compile("[0-9]+[.][0-9]+")  # 17.50 is usually a price, not a time
_CLOCK_WITH_SECONDS = re.compile("(?<![0-9:])([0-2]?[0-9]):([0-5][0-9]):([0-5][0-9])")
_FEW_CLOCKS = 6
_RANGE_BEFORE = re.compile(r"(?<![0-9.,:/-])([0-3]?[0-9])\.?(?:\s?[-–—]\s?| (?:to|and|bis|und|au|et|al|y|e|do|по|и) )$")
_RANGE_BEHIND = re.compile(r"(?:\s?[-–—]\s?| (?:to|and) )([0-3]?[0-9])(?=[.,;!?)](?![0-9])|\n|$)")
_SECONDS = re.compile("[0-9]:[0-5][0-9]:(?!00)[0-5][0-9]")
_WEEK = re.compile(
    r"\b(?:week(?: number| no\.?)?|wk|cw|kw|kalenderwoche|woche|semaine(?: n°)?|semana|settimana|vecka|v\.|uge|uke|weeknummer|viikko|tydzień|tygodni\w+|"
    r"недел\w+|тижд\w+|týden|hafta|minggu(?: ke)?|tuần)[ \u00a0-]?$|第$",
    re.IGNORECASE,
)
_WEEK_BEHIND = re.compile(
    r"(?:(?:st|nd|rd|th|\.|-?[яй]|ª|º|e)? ?(?:week|kalenderwoche|woche|kw|недел|тижд|semana|tydzień|hafta)|[週周]|주차)",
    re.IGNORECASE,
)


_STEPS = 100
"""Maximum number of durations in the texts that are added to given dates."""
_Day = tuple[int | None, int | None]


def _by_day(moments: Iterable[Moment]) -> dict[_Day, list[Moment]]:
    found: dict[_Day, list[Moment]] = {}
    for moment in moments:
        if moment.month is not None:
            found.setdefault((moment.month, moment.day), []).append(moment)
    return found


def _placed(moments: Iterable[Moment]) -> Iterator[tuple[int, int, Moment]]:
    return ((moment.start, moment.end, moment) for moment in moments)


class Timeline:
    """The dates, times and durations of the given texts and of an answer."""

    def __init__(
        self,
        text: str,
        sources: Sequence[str],
        quantities: Sequence[Quantity],
        years: Iterable[float],
        now: datetime.datetime | None = None,
    ) -> None:
        self._text = text
        self._today = now.date() if now is not None else None
        self._sources = sources
        self._quantities = [each for each in quantities if each.dimension == "time"]
        self._years = [int(year) for year in years if 1500 <= year <= 2200 and year == int(year)][:LIMIT]

    def learn(self, quantities: Iterable[Quantity]) -> None:
        self._quantities = list(dict.fromkeys((*self._quantities, *(each for each in quantities if each.dimension == "time"))))
        self.__dict__.pop("_reached", None)

    @cached_property
    def _given_dates(self) -> list[Moment]:
        return list(islice(chain.from_iterable(chain(dates_in(text), epochs_in(text)) for text in self._sources), LIMIT))

    @cached_property
    def _given_clocks(self) -> list[Moment]:
        found = [moment for moment in self._given_dates if moment.minutes is not None]
        clocks = islice(chain.from_iterable(map(clocks_in, self._sources)), LIMIT)
        return found + [clock for clock in clocks if clock.offset is None]

    @cached_property
    def _has_seconds(self) -> bool:
        return any(_SECONDS.search(text) is not None for text in self._sources)

    @cached_property
    def _shifted(self) -> list[Moment]:
        if not self._given_clocks:
            return []
        zones = offsets_named((self._text, *self._sources))
        return list(islice(shifted(self._given_clocks, zones, says_local(self._text)), 4_000))

    @cached_property
    def _given_minutes(self) -> set[int | None]:
        return {given.minutes for given in chain(self._given_clocks, self._shifted)}

    @cached_property
    def _answer(self) -> tuple[Places[Moment], Places[Moment], Places[tuple[float, float]]]:
        dates = list(dates_in(self._text))
        for date in dates[:LIMIT]:
            before = _RANGE_BEFORE.search(self._text, max(0, date.start - 12), date.start)
            if before is not None:
                dates.append(date._replace(start=before.start(1), end=before.end(1), day=int(before.group(1))))
            behind = _RANGE_BEHIND.match(self._text, date.end)
            if behind is not None:
                dates.append(date._replace(start=behind.start(1), end=behind.end(1), day=int(behind.group(1))))
        durations = Places((start, end, (seconds, unit)) for start, end, seconds, unit in durations_in(self._text))
        return Places(_placed(dates)), Places(_placed(clocks_in(self._text))), durations

    def holds(self, number: Number) -> bool | None:
        """Return True if the date, time or duration that contains a number follows.

        Returns None if the number isn't part of one.
        """
        at = number.at
        dates, clocks, durations = self._answer
        found: bool | None = None
        for date in dates.at(at):
            found = found or self._holds_date(date)
        for clock in clocks.at(at):
            if found is None:
                found = self._holds_clock(clock) or None
        if any(self._holds_duration(seconds, unit, at) for seconds, unit in durations.at(at)):
            found = True
        return found

    def moment_of(self, number: Number) -> Moment | None:
        dates, clocks, _ = self._answer
        return next(
            (
                each
                for each in chain(dates.at(number.at), clocks.at(number.at))
                if not _DECIMAL.fullmatch(self._text, each.start, each.end)
            ),
            None,
        )

    def holds_week(self, number: Number) -> bool:
        """Return True if a number is called a week and is the week of a known date.

        Known dates are given, or stated in the answer and supported.
        """
        if (
            _WEEK.search(self._text, max(0, number.at - 24), number.at) is None
            and _WEEK_BEHIND.match(self._text, number.end) is None
        ):
            return False
        stated = (date for date in islice(self._answer[0], LIMIT) if self._holds_date(date))
        days = (given.date for given in (*self._given_dates, *stated))
        return number.readings[0][0] in {float(day.isocalendar()[1]) for day in days if day is not None}

    def _holds_date(self, date: Moment) -> bool:
        day = date.month, date.day
        return any(same_date(date, other) for other in chain(self._given_days.get(day, ()), self._reached.get(day, ())))

    @cached_property
    def _given_days(self) -> dict[_Day, list[Moment]]:
        return _by_day(chain(self._given_dates, self._shifted))

    @cached_property
    def _reached(self) -> dict[_Day, list[Moment]]:
        """Return the days that are a stated duration before or after a given day."""
        found: set[datetime.date] = set()
        steps = dict.fromkeys(each for each in self._quantities if each.factor >= 86400)
        for given in self._given_dates:
            if (day := given.date) is not None:
                for each in islice(steps, _STEPS):
                    days = each.value * each.factor / 86400
                    if 0 < days < 4000:
                        found.update(self._moved(day, each, round(days)))
        return _by_day(Moment(0, 0, later.year, later.month, later.day) for later in found)

    @staticmethod
    def _moved(day: datetime.date, step: Quantity, days: int) -> list[datetime.date]:
        moved = [day + datetime.timedelta(days=days), day - datetime.timedelta(days=days)]
        if step.factor == 86400 and days <= 60:  # working days
            start = min(day.weekday(), 4)  # after a weekend, the first working day is Monday
            weeks, rest = divmod(start + days, 5)
            moved.append(day + datetime.timedelta(days=7 * weeks + rest - day.weekday()))
        if step.factor > 700_000:
            months = round(step.value * (1 if step.factor < 3_000_000 else 12))
            year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
            if 1 <= year < 9999:
                after = datetime.date(year, month + 1, min(day.day, calendar.monthrange(year, month + 1)[1]))
                moved += [after, after - datetime.timedelta(days=1)]
        return moved

    def _holds_clock(self, clock: Moment) -> bool:
        minutes = clock.minutes
        assert minutes is not None
        if minutes in self._given_minutes:
            return True
        steps = [each.value * each.factor / 60 for each in self._quantities if 0 < each.value * each.factor < 86400]
        return any(
            (given.minutes + sign * step) % 1440 == minutes
            for given in self._given_clocks
            if given.minutes is not None
            for step in steps[:20]
            for sign in (1, -1)
        )

    def _holds_duration(self, seconds: float, unit: float, at: int) -> bool:
        slack = unit * 0.5000001
        for each in self._quantities:
            given = each.value * each.factor
            if abs(given - seconds) <= slack or (
                unit > 60 and 0 <= given - seconds < unit and given != seconds and unit < 2_000_000
            ):
                return True
        if any(
            abs(each - seconds) <= max(slack, 60 if unit == 60 and self._has_seconds else 30 if unit >= 60 else 0)
            for each in self._spans(unit)
        ):
            return True
        return unit >= 31_000_000 and self._holds_years(round(seconds / unit))

    @cached_property
    def _exact_spans(self) -> list[float]:
        found = islice(chain.from_iterable(_CLOCK_WITH_SECONDS.findall(text[:20_000]) for text in self._sources), 2 * _FEW_CLOCKS)
        clocks = list(dict.fromkeys(int(hour) * 3600 + int(minute) * 60 + int(second) for hour, minute, second in found))
        return [float((end - start) % 86400) for i, start in enumerate(clocks) for end in clocks[i + 1 :]]

    def _spans(self, unit: float) -> Iterable[float]:
        """Yield the seconds between the given moments."""
        if self._has_seconds:
            yield from self._exact_spans
        dates = [(given.date, given) for given in self._given_dates]
        known = [(day, given) for day, given in dates if day is not None][:40]
        for i, (first, one) in enumerate(known):
            for second, other in known[i + 1 :]:
                days = abs((second - first).days) * 86400.0
                if one.minutes is not None and other.minutes is not None:
                    yield abs((second - first).days * 86400.0 + 60.0 * (other.minutes - one.minutes))
                if unit >= 86400:
                    yield days
        if unit < 86400:
            clocks = [given.minutes for given in self._given_clocks if given.minutes is not None][:30]
            for i, start in enumerate(clocks):
                for end in clocks[i + 1 :]:
                    yield ((end - start) % 1440) * 60.0

    def _holds_years(self, years: int) -> bool:
        """Return True for the full years between two given dates or years, or until today."""
        today = self._today  # the day of the turn, not of its evaluation
        days = [day for given in self._given_dates if (day := given.date) is not None][:40]
        days += [today] if today is not None else []
        for i, first in enumerate(days):
            for second in days[i + 1 :]:
                if int(abs((second - first).days) / _YEAR) == years:
                    return True
        known = [*self._years, today.year] if today is not None else self._years
        return any(abs(second - first) == years for i, first in enumerate(known) for second in known[i + 1 :])

    def holds_age(self, number: Number) -> bool:
        """Return True if a whole number is the number of years between given dates."""
        value = number.readings[0][0]
        return value == int(value) and 10 < value < 130 and self._holds_years(int(value))
