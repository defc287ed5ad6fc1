"""Find numbers in an answer that don't follow from the given texts.

A number in an answer (a *claim*) is supported if a given text contains it, possibly in another notation or unit, or with more
digits. A calculation from given numbers or other supported claims can support it too. Cheap checks run first. A *reading* is
a possible value with half its rounding interval. For example, 4.2 means 4.15 to 4.25, so its reading is ``(4.2, 0.05)``.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from ..screen import Look
from . import derive
from .claims import Claim, is_no_claim
from .given import GivenNumbers
from .reading import Day, Reading, durations_in, unit_after
from .words import claims_in_words, may_have_words

_PACE = re.compile("([0-9]{1,3}):([0-5][0-9])")  # 5:30
_IDENTIFIER = re.compile("[0-9](?:[ ()./-]{0,3}[0-9])*")  # 030/12 34 56
_MAX_CHECKED = 100
"""Maximum number of claims without an exact match to check one by one. If there are more, all are unsupported."""
_MAX_CHAIN = 3
"""Maximum length of a chain of calculations that each use the preceding result."""
_MAX_OPERANDS = 24
_MAX_LINE = 8
"""Maximum number of values per line to combine in pairs or by column."""
_MAX_POOL = 12
_MAX_EXTRA = 4
"""Maximum number of values in an answer to combine with given numbers. With more values, almost any number would match."""
_CHANCE_OF_TOTAL, _CHANCE_OF_SHARE, _CHANCE_IN_LINE = 0.3, 0.4, 0.2
"""Limits that replace :data:`derive.CHANCE` for given totals, given shares, and pairs within a line, which answers often state."""
_MONEY = re.compile(r"(?:[$€£¥₹₽₺]|\b[A-Z]{3})\s?#|#\s?(?:[$€£¥₹₽₺]|[A-Z]{3}\b)")  # currency next to an amount (#)
_WINDOW = 30
"""Number of characters before and after a number to search for the rest of an identifier."""
_MIN_IDENTIFIER_DIGITS = 6
_MIN_ROUNDED, _MAX_ROUNDING_SHARE = 1000, 0.05


def word_claims(text: str, look: Look | None = None) -> list[Claim]:
    found = claims_in_words(text) if may_have_words(text, look) else ()
    return [Claim(text[start:end], start, end, ((value, 0.5),)) for start, end, value in found]


@dataclass(eq=False)
class AnswerNumbers:
    """Claims of an answer. If ``derived`` is True, calculated results can support a claim too."""

    text: str
    claims: list[Claim]
    given: GivenNumbers
    derived: bool

    def ungrounded(self) -> list[Claim]:
        unsupported = [claim for claim in self.claims if claim.scale > 1.0 or claim.text not in self.given.tokens]
        unsupported = [claim for claim in unsupported if not (claim.readings and claim.is_small)]
        unsupported = [claim for claim in unsupported if not self._is_given_exactly(claim)]
        if len(unsupported) > _MAX_CHECKED:
            return unsupported
        unsupported = [claim for claim in unsupported if not is_no_claim(claim, self.text) and not self._is_given(claim)]
        for _ in range(_MAX_CHAIN if self.derived and unsupported else 0):  # results may be operands of other results
            arithmetic = Arithmetic(self, {claim.at for claim in unsupported})
            remaining = [claim for claim in unsupported if not arithmetic.supports(_as_number(claim))]
            if len(remaining) == len(unsupported):
                break
            unsupported = remaining
        return unsupported

    # --- the same value --------------------------------------------------------------------------------------------

    def _is_given_exactly(self, claim: Claim) -> bool:
        given = self.given
        if (claim.days and self.timeline.has_given_or_near_day(claim)) or claim.minutes in given.plain.minutes:
            return True
        if not claim.readings:
            return False
        value, half = claim.readings[0]
        if claim.scale <= 1.0 and value in given.plain.values:
            return True
        if half == 0.5 and claim.scale == 1.0 and any(abs(value - today.year) <= 1 for today in given.today):
            return True
        return any(given.rounds_to(value, half) for value, half in self._readings(claim))

    def _is_given(self, claim: Claim) -> bool:
        """Return True if a claim is given in another form, such as in words, in another unit, or as a date or duration."""
        duration = self.timeline.duration_at(claim.at)
        if duration is not None and self.timeline.has_duration(*duration):
            return True
        if (claim.days and self.timeline.has_reachable_day(claim)) or (claim.minutes >= 0 and self.timeline.has_clock(claim)):
            return True
        if not claim.readings:
            return False
        value, half = claim.readings[0]
        beside = f"{self.text[max(0, claim.at - 4) : claim.at]}#{self.text[claim.end : claim.end + 4]}"
        if half == 0.005 and claim.scale == 1.0 and _MONEY.search(beside) and round(value * 100) in self.given.amounts:
            return True
        readings = self._readings(claim)
        if any(self.given.has(value, half) for value, half in readings) or self._is_identifier(claim):
            return True
        unit = unit_after(self.text, claim.end)
        return unit is not None and any(self.given.has_quantity(value, half, unit) for value, half in readings)

    def _readings(self, claim: Claim) -> list[Reading]:
        readings = [*claim.readings, *claim.scaled] if claim.scale <= 1.0 else claim.scaled
        if claim.scale == 0.01:  # 20 % less is 0.8 times, or 80 %
            value, half = claim.readings[0]
            readings += [(1 - value / 100, half / 100), (100 - value, half)]
        return [(value, max(half, self._rounding(value, half))) for value, half in readings]

    @staticmethod
    def _rounding(value: float, half: float) -> float:
        """Return half the rounding interval: 500 for ``58 000``, but at most 5 % of the value. Values below 1000 keep ``half``."""
        if half != 0.5 or value < _MIN_ROUNDED or value % 10:
            return half
        digits = str(int(value))
        zeros = len(digits) - len(digits.rstrip("0"))
        return min(0.5 * 10.0**zeros, _MAX_ROUNDING_SHARE * value)

    @cached_property
    def timeline(self) -> Timeline:
        return Timeline(self.text, self.claims, self.given)

    @cached_property
    def _texts_without_separators(self) -> str:
        return "\n".join(re.sub(r"(?<=[0-9])[ ()./-]{1,3}(?=[0-9])", "", text) for text in self.given.texts)

    def _is_identifier(self, claim: Claim) -> bool:
        """Return True if a given text contains the identifier with other separators: ``030-123456`` for ``030/12 34 56``."""
        identifiers = _IDENTIFIER.finditer(self.text, max(0, claim.at - _WINDOW), claim.end + _WINDOW)
        identifier = next((match.group() for match in identifiers if match.start() <= claim.at < match.end()), "")
        digits = re.sub("[^0-9]", "", identifier).lstrip("0")
        return (
            len(digits) >= _MIN_IDENTIFIER_DIGITS and re.search(rf"{digits}(?![0-9])", self._texts_without_separators) is not None
        )

    # --- for arithmetic --------------------------------------------------------------------------------------------

    @cached_property
    def rows(self) -> list[list[tuple[int, float]]]:
        """Position and value of the answer's claims with a value, grouped by line. Lines without claims are omitted."""
        rows: list[list[tuple[int, float]]] = []
        line_end = -1
        for claim in self.claims:
            if claim.at > line_end:  # on another line
                line_end = self.text.find("\n", claim.at)
                line_end = line_end if line_end >= 0 else len(self.text)
                rows.append([])
            if claim.readings:
                value = claim.readings[0][0] * max(claim.scale, 1.0)
                before = self.text[max(0, claim.at - 2) : claim.at]
                is_negative = before[-1:] in ("-", "−") and before[:1] in " |(*-−"
                rows[-1].append((claim.at, -value if is_negative else value))
        return rows

    @cached_property
    def shown_results(self) -> list[float]:
        values = [claim.scaled[0][0] if claim.readings else 0.0 for claim in self.claims]
        numbers = [(claim.at, claim.end + len(claim.after), value) for claim, value in zip(self.claims, values, strict=True)]
        return derive.results_shown(self.text, numbers)


# --- dates, times of day and durations -------------------------------------------------------------------------------

_SECONDS_OF_DAY = 86_400
_SECONDS_OF_MONTH = 2_000_000
"""Units with more seconds than this are months or years."""
_SECONDS_OF_YEAR = 31_000_000
_MAX_DAYS = 40
_MAX_DURATIONS = 60
_MAX_DURATION = 4_000 * _SECONDS_OF_DAY
_MAX_WORKING_DAYS = 60


class Timeline:
    """Dates, times of day, and durations in an answer and in the given texts."""

    def __init__(self, text: str, claims: Iterable[Claim], given: GivenNumbers) -> None:
        self._text = text
        self._given = given
        self._stated_durations = list(durations_in(text))
        self._claims = claims

    # --- dates -----------------------------------------------------------------------------------------------------

    def has_given_or_near_day(self, claim: Claim) -> bool:
        today = np.array(self._given.today, "datetime64[D]")
        near_days = _days_of([today - 1, today, today + 1])
        return any(_is_given_day(day, self._given.plain.days) or day in near_days for day in claim.days)

    def has_reachable_day(self, claim: Claim) -> bool:
        """Return True if a claim's date is given or can be calculated, for example as 14 days after a given date."""
        return any(_is_given_day(day, self._given.days) or day in self._reachable_days for day in claim.days)

    @cached_property
    def _durations(self) -> list[tuple[float, float]]:
        stated = [(seconds, unit) for _, _, seconds, unit in self._stated_durations]
        return list(dict.fromkeys((*self._given.durations, *stated)))[: 2 * _MAX_DURATIONS]

    @cached_property
    def _reachable_days(self) -> set[Day]:
        """Days at a known interval from today or a given day, and the first and last days of their months."""
        days = np.array([*self._given.dates[:_MAX_DAYS], *self._given.today], "datetime64[D]")
        long_ones = [(seconds, unit) for seconds, unit in self._durations if _SECONDS_OF_DAY <= seconds < _MAX_DURATION]
        lengths = {(round(seconds / unit), unit) for seconds, unit in long_ones if unit >= 3600}
        reachable: list[NDArray[np.datetime64]] = []
        for count, unit in lengths:
            reachable += (*_days_moved(days, count, unit), *_days_moved(days, -count, unit))
        months = days.astype("datetime64[M]")
        reachable += [months.astype("datetime64[D]"), (months + 1).astype("datetime64[D]") - 1]
        return _days_of(reachable)

    # --- times of day ----------------------------------------------------------------------------------------------

    def has_clock(self, claim: Claim) -> bool:
        """Return True if the claim's time is known, or is at a known interval from a known time."""
        given, minutes = self._given, claim.minutes
        if minutes in given.minutes or (minutes <= 720 and ":" in claim.text and (minutes + 720) % 1440 in given.minutes):
            return True
        if minutes % 60 == 0 and minutes > 600 and ":" not in claim.text and minutes / 60 in given.plain.values:
            return True
        durations = {round(seconds / 60) % 1440 for seconds, _ in self._durations} - given.minutes
        differences = {(minutes - given_minutes) % 1440 for given_minutes in given.minutes}
        return any(difference in durations or 1440 - difference in durations for difference in differences)

    # --- durations -------------------------------------------------------------------------------------------------

    def duration_at(self, at: int) -> tuple[float, float] | None:
        return next(((seconds, unit) for start, end, seconds, unit in self._stated_durations if start <= at < end), None)

    def has_duration(self, seconds: float, unit: float) -> bool:
        """Return True if a duration is given or is the time between two known dates or times."""
        tolerance = unit * 0.5000001
        if any(abs(given_seconds - seconds) <= tolerance for given_seconds, _ in self._given.durations):
            return True
        if unit < _SECONDS_OF_DAY:
            return any(abs(minutes * 60 - seconds) <= max(tolerance, 30) for minutes in self._minutes_between)
        if unit >= _SECONDS_OF_YEAR and any(int(days / 365.2425) == round(seconds / unit) for days in self._days_between):
            return True
        return any(abs(days * _SECONDS_OF_DAY - seconds) <= tolerance for days in self._days_between)

    @cached_property
    def _days_between(self) -> set[int]:
        given = self._given
        stated = given.dates_of(day for claim in self._claims for day in claim.days)
        days = [*given.dates[:_MAX_DAYS], *given.today, *stated[:_MAX_DAYS]]
        return {abs((one - other).days) for one, other in combinations(days, 2)}

    @cached_property
    def _minutes_between(self) -> set[int]:
        minutes = [*self._given.minutes][:_MAX_DAYS]
        return {(one - other) % 1440 for one in minutes for other in minutes if one != other}


def _days_of(dates: Iterable[NDArray[np.datetime64]]) -> set[Day]:
    """Convert dates to ``(year, month, day)``. Each date is also added with the year 0, which matches claims without a year."""
    days = {day for array in dates for day in array.tolist() if isinstance(day, datetime.date)}
    return {(year, day.month, day.day) for day in days for year in (0, day.year)}


def _is_given_day(day: Day, given: Collection[Day]) -> bool:
    year, month, number = day
    is_given = day in given or (0, month, number) in given
    return is_given or (not year and any((other_month, other) == (month, number) for _, other_month, other in given))


def _days_moved(days: NDArray[np.datetime64], count: int, unit: float) -> list[NDArray[np.datetime64]]:
    """Return dates moved by ``count`` units. Days can also mean working days, and months can follow the calendar."""
    moved = [days + int(count * unit / _SECONDS_OF_DAY)]
    if unit == _SECONDS_OF_DAY and abs(count) <= _MAX_WORKING_DAYS:
        moved.append(np.busday_offset(days, count, "backward" if count > 0 else "forward"))
    if unit > _SECONDS_OF_MONTH:
        old_months = days.astype("datetime64[M]")
        new_months = old_months + count * (12 if unit >= _SECONDS_OF_YEAR else 1)
        same_days = new_months.astype("datetime64[D]") + (days - old_months.astype("datetime64[D]"))
        last_days = (new_months + 1).astype("datetime64[D]") - 1  # one month after January 31 is February 28
        moved.append(np.minimum(same_days, last_days))
    return moved


# --- arithmetic ------------------------------------------------------------------------------------------------------


class Arithmetic:
    """Results calculated from given numbers and the answer's supported claims. ``missing``: positions of unsupported claims."""

    def __init__(self, answer: AnswerNumbers, missing: set[int]) -> None:
        self._answer = answer
        self._given = answer.given
        rows = ([value for at, value in row if at not in missing] for row in answer.rows)
        self._rows = [row for row in rows if row]
        distinct_values = dict.fromkeys([abs(value) for row in self._rows for value in row if value])
        self._operands = list(distinct_values)[:_MAX_OPERANDS]

    def supports(self, claim: Claim) -> bool:
        """Return True if a claim can be calculated from given numbers or the answer's other numbers."""
        answer = self._answer
        duration = answer.timeline.duration_at(claim.at)
        if duration is not None and self._answer_results.support(((duration[0] / 60, 0.5),)):
            return True
        if not claim.readings or claim.is_small:
            return False
        value, half = claim.readings[0]
        if half == 0.5 and value in self._given.facts.counts:
            return True
        if any(abs(result - value) <= half + value * 1e-9 for value, half in claim.scaled for result in answer.shown_results):
            return True
        return self._follows(claim, self._answer_results) or self._follows(claim, self._given_results)

    def _follows(self, claim: Claim, candidates: derive.Candidates) -> bool:
        """Return True if a candidate matches the claim. For a percentage such as 20 %, the ratio 0.2 matches too."""
        is_share = claim.scale == 0.01 or self._answer.text[max(0, claim.at - 2) : claim.at].rstrip()[-1:] == "%"
        if not is_share:
            return candidates.support(claim.scaled)
        value, half = claim.readings[0]
        return candidates.support(((value / 100, half / 100),), 0.01) or candidates.support(((value, half),), 1.0)

    @cached_property
    def _answer_results(self) -> derive.Candidates:
        pools = [list(dict.fromkeys(map(abs, row)))[:_MAX_LINE] for row in self._rows]
        sums = (derive.sums_of_runs(self._lines_and_columns), derive.CHANCE)
        return derive.Candidates([sums, *((results, _CHANCE_IN_LINE) for results in derive.results(pools))])

    @cached_property
    def _lines_and_columns(self) -> list[list[float]]:
        rows = self._rows
        width = min(max(map(len, rows), default=0), _MAX_LINE)
        columns = [[row[index] for row in rows if index < len(row)] for index in range(width)]
        if len(set(map(len, rows))) > 1:  # the last columns of lines with different beginnings
            columns += [[row[index] for row in rows if -index <= len(row)] for index in range(-width, 0)]
        return [group for group in (*rows, *columns) if len(group) > 1]

    @cached_property
    def _given_results(self) -> derive.Candidates:
        """Totals and shares of given numbers, and results for pairs of numbers in the answer or a pool of given numbers."""
        extra = self._operands if len(self._operands) <= _MAX_EXTRA else []
        pools = self._given.facts.pools
        if sum(map(len, pools)) <= derive.POOL:  # few enough to combine numbers of different records
            pools = [*pools, [number for pool in pools for number in pool]]
        pools = [list(dict.fromkeys((*pool, *extra)))[:_MAX_POOL] for pool in pools]
        all_results = (*derive.results([self._operands]), *derive.results(pools))
        return derive.Candidates(
            [
                (list(self._given.facts.totals), _CHANCE_OF_TOTAL),
                (list(self._given.facts.shares), _CHANCE_OF_SHARE),
                *((results, derive.CHANCE) for results in all_results),
            ]
        )


def _as_number(claim: Claim) -> Claim:
    """Convert a claim such as ``5:30`` to a number, because it can be a pace or duration. Return other claims unchanged."""
    pace = _PACE.fullmatch(claim.text) if claim.minutes >= 0 else None
    if pace is None:
        return claim
    value = int(pace.group(1)) + int(pace.group(2)) / 60
    return claim._replace(readings=((value, 0.5 / 60), (value * 60, 0.5)), minutes=-1)


_TASK = re.compile(
    r"\b(?:summari|shorten|rewrite|rephrase|translate|extract|condense|proofread|turn this|key points|tl;?dr|zusammenfass|fasse|kürze|übersetz|schreib.{0,20}um|résum|"
    r"tradui|reformul|resum|traduc|riassum|traduci|samenvat|vertaal|streszcz|przetłumacz|сократи|перескаж|кратко|переведи|переклади|підсум|özetle|çevir|sammanfatta|ringkas|tóm tắt)"
    r"|要約|总结|摘要|概括|翻译|翻訳|요약|번역|لخص|ترجم|סכם|תרגם|सारांश|সারাংশ|สรุป",
    re.IGNORECASE,
)
_MIN_MATERIAL = 120


def is_text_to_work_on(asked: str) -> bool:
    """Return True if a request contains a text with numbers and a task such as translation."""
    return len(asked) >= _MIN_MATERIAL and _TASK.search(asked) is not None and len(re.findall(r"\d+", asked[:20_000])) >= 2


def has_number(text: str) -> bool:
    return re.search(r"\d{2}|\d[.,]\d", text) is not None
