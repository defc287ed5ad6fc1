"""Whether the dates, times of day and durations of an answer follow from those that the agent was given."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, islice

from .reading import Number
from .times import LIMIT, Moment, clocks_in, dates_in, durations_in, epochs_in, offsets_named, same_date, says_local, shifted
from .units import Quantity

_YEAR = 365.2425


class Timeline:
    """The moments of the given texts and of an answer."""

    def __init__(self, text: str, sources: Sequence[str], quantities: Sequence[Quantity], years: Iterable[float]) -> None:
        self._text = text
        self._sources = sources
        self._quantities = [each for each in quantities if each.dimension == "time"]
        self._years = [int(year) for year in years if 1500 <= year <= 2200 and year == int(year)][:LIMIT]

    def learn(self, quantities: Iterable[Quantity]) -> None:
        """Take durations that the answer states, and that are held, as given."""
        self._quantities += [each for each in quantities if each.dimension == "time"]

    @cached_property
    def _given_dates(self) -> list[Moment]:
        return list(islice(chain.from_iterable(chain(dates_in(text), epochs_in(text)) for text in self._sources), LIMIT))

    @cached_property
    def _given_clocks(self) -> list[Moment]:
        found = [moment for moment in self._given_dates if moment.minutes is not None]
        clocks = islice(chain.from_iterable(map(clocks_in, self._sources)), LIMIT)
        return found + [clock for clock in clocks if clock.offset is None]

    @cached_property
    def _shifted(self) -> list[Moment]:
        if not self._given_clocks:
            return []
        zones = offsets_named((self._text, *self._sources))
        return list(islice(shifted(self._given_clocks, zones, says_local(self._text)), 4_000))

    @cached_property
    def _answer(self) -> tuple[list[Moment], list[Moment], list[tuple[int, int, float, float]]]:
        return list(dates_in(self._text)), list(clocks_in(self._text)), list(durations_in(self._text))

    def holds(self, number: Number) -> bool | None:
        """Whether the date, time or duration that a number belongs to follows; None when it belongs to none."""
        at = number.at
        dates, clocks, durations = self._answer
        found: bool | None = None
        for date in dates:
            if date.start <= at < date.end:
                found = found or self._holds_date(date)
        for clock in clocks:
            if clock.start <= at < clock.end and found is None:
                found = found or self._holds_clock(clock) or None
        for start, end, seconds, unit in durations:
            if start <= at < end and self._holds_duration(seconds, unit, at):
                found = True
        return found

    def _holds_date(self, date: Moment) -> bool:
        if any(same_date(date, given) for given in chain(self._given_dates, self._shifted) if given.month is not None):
            return True
        if date.month is None or date.day is None:
            return False
        for given in self._given_dates:
            day = given.date
            if day is None:
                continue
            for each in self._quantities:
                days = each.value * each.factor / 86400
                if each.factor < 86400 or not 0 < days < 4000:
                    continue
                for later in self._moved(day, each, round(days)):
                    if same_date(date, Moment(0, 0, later.year, later.month, later.day)):
                        return True
        return False

    @staticmethod
    def _moved(day: datetime.date, step: Quantity, days: int) -> list[datetime.date]:
        moved = [day + datetime.timedelta(days=days), day - datetime.timedelta(days=days)]
        if step.factor == 86400 and days <= 60:  # working days
            later, left = day, days
            while left:
                later += datetime.timedelta(days=1)
                left -= later.weekday() < 5
            moved.append(later)
        if step.factor > 700_000:
            months = round(step.value * (1 if step.factor < 3_000_000 else 12))
            year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
            moved += [datetime.date(year, month + 1, min(day.day, 28) if day.day > 28 else day.day)] if year < 9999 else []
        return moved

    def _holds_clock(self, clock: Moment) -> bool:
        minutes = clock.minutes
        assert minutes is not None
        if any(given.minutes == minutes for given in chain(self._given_clocks, self._shifted)):
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
        if any(abs(each - seconds) <= max(slack, 30 if unit >= 60 else slack) for each in self._spans(unit)):
            return True
        return unit >= 31_000_000 and self._holds_years(round(seconds / unit))

    def _spans(self, unit: float) -> Iterable[float]:
        """Seconds between the given moments."""
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
        """Full years between two given dates or years, or up to today."""
        today = datetime.datetime.now(datetime.timezone.utc).date()
        days = [day for given in self._given_dates if (day := given.date) is not None][:40]
        for i, first in enumerate([*days, today]):
            for second in days[i + 1 :] if i < len(days) else days:
                if int(abs((second - first).days) / _YEAR) == years:
                    return True
        known = [*self._years, today.year]
        return any(abs(second - first) == years for i, first in enumerate(known) for second in known[i + 1 :])

    def holds_age(self, number: Number) -> bool:
        """Whether a whole number is the years between given dates."""
        value = number.readings[0][0]
        return value == int(value) and 10 < value < 130 and self._holds_years(int(value))
