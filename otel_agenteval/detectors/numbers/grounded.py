"""Find the numbers in an answer that don't follow from the given texts."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cached_property
from itertools import chain, islice

from ..grounding import GivenTexts
from ..places import Places
from ..screen import Look
from . import derive, units
from .claims import is_hedged, is_no_claim
from .moments import Timeline
from .reading import Number, is_named, mixed_numbers, spaced_numbers, values_of, with_ascii_digits
from .times import durations_in
from .words import claims_in_words, factors_in, may_have_numerals, may_have_words, values_of_words

_ASCII_DIGITS = frozenset("0123456789")
_DIGIT = re.compile("[0-9]")
_WRITTEN = 1e-15
"""Relative error of numbers that are written and not calculated, so that long ids differ."""
_PER_CENT_BEFORE = re.compile(r"(?:%|yüzde|百分之)\s?$", re.IGNORECASE)
_CENTS = re.compile(
    r" ?(?:cents?|ct|centimes?|céntimos?|centesimi|centavos?|cêntimos?|gr(?:oszy)?|öre|øre|коп\w*|kuruş)\b|¢|分", re.IGNORECASE
)
_PACE = re.compile("([0-9]{1,3}):([0-5][0-9])")
_PLAINLY_BEFORE = frozenset(" \n\t\":'([>$€£")
"""Characters before a number that aren't part of it."""
_PLAINLY_BEHIND = frozenset(" \n\t\"';)]}<%°")
"""Characters after a number that aren't part of it."""
_SEARCHED_UP_TO = 50  # numbers that are searched for one by one; more are compared with all values at once
_MAX_OCCURRENCES = 20  # occurrences that are checked as text before the value decides
_MAX_OPERANDS = 12  # more numbers could be combined to almost any result
_QUANTITIES = 400
_OPERANDS_IN_WORDS = frozenset((0.5, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0))
_FEW = 8
_EXAMINED = 100
"""At most this many numbers without an exact source are checked one by one. With more, all of them are ungrounded."""
_DERIVED_UP_TO = 60
_ROUNDS = 4


def word_numbers(text: str, look: Look | None = None) -> list[Number]:
    """Return the numbers above ten that an answer writes in words or in East Asian numerals.

    ``look`` is a screen of the same text, if available.
    """
    if not may_have_words(text, look) and not may_have_numerals(text):
        return []
    found = []
    for start, end, value in claims_in_words(text):
        readings: tuple[tuple[float, float], ...] = ((value, 0.5),)
        if text[max(0, start - 3) : start] == "百分之":
            readings = ((value, 0.5), (value / 100, 0.005))
        found.append(Number(text[start:end], readings, False, start))
    return found


def ungrounded_numbers(
    text: str,
    numbers: list[Number],
    small: list[Number],
    given: GivenTexts,
    *,
    asked: str,
    calls: int,
    start: datetime | None,
    derived: bool,
) -> list[str]:
    """Return the numbers, as written, that don't follow from the given texts.

    With ``derived``, results of calculations and counts follow too. In most answers, all numbers occur in a text, so one search
    per number is enough. Everything else is computed only for the remaining numbers.
    """
    left = list({(number.text, number.scale): number for number in numbers}.values()) if len(numbers) > 1 else numbers
    if len(left) > _SEARCHED_UP_TO:
        values = values_of(map(with_ascii_digits, given))
        left = [
            number for number in left if not any(derive.near(values, *reading, error=_WRITTEN) for reading in number.readings)
        ]
    for source in given if len(left) <= _SEARCHED_UP_TO else ():
        left = [number for number in left if not _is_written_in(number, source)]
        if not left:
            return []
    left = [number for number in left if not is_no_claim(number, text)]
    if len(left) > _EXAMINED:
        return list(dict.fromkeys(number.text for number in left))
    if left:
        left = _NumberEvidence(text, numbers, small, given, asked, calls, start).missing(left, derived)
    return list(dict.fromkeys(number.text for number in left))


def _is_written_in(number: Number, text: str) -> bool:
    """Return True if a text contains the number as in the answer or as in JSON.

    The answer can write ``142.50`` or ``1,200.75``, and JSON ``142.5`` or ``1200.75``.
    """
    token = number.text
    if number.scale > 1.0:
        return bool(number.after) and token + number.after in text  # "4.7 million" isn't "4.7 billion"
    if _stands_in(token, text):
        return True
    if token.isdigit() or number.scale != 1.0 or not (token[-1] == "0" or "," in token or "." in token):
        return False
    value = number.readings[0][0]  # comparing all values would find it too, but takes a hundred times as long
    return _stands_in(str(int(value)) if value.is_integer() else repr(value), text)


def _stands_in(token: str, text: str) -> bool:
    """Return True if the digits occur outside of a longer number or name."""
    at = text.find(token)
    for _ in range(_MAX_OCCURRENCES):
        if at < 0:
            return False
        end = at + len(token)
        if text[at - 1 : at] in _PLAINLY_BEFORE and text[end : end + 1] in _PLAINLY_BEHIND:
            return True
        before, after = text[max(0, at - 2) : at], text[end : end + 2]
        if not (_continues(before[::-1]) or _continues(after) or is_named(before)):
            return True
        at = text.find(token, end)
    return False


def _continues(beside: str) -> bool:
    """Return True if two adjacent characters, the nearest first, continue a number."""
    return beside[:1].isdigit() or (beside[:1] in (".", ",") and beside[1:].isdigit())


class _NumberEvidence:
    """The facts that can support a number. Each kind is computed on first use."""

    def __init__(
        self,
        text: str,
        numbers: list[Number],
        small: list[Number],
        given: GivenTexts,
        asked: str,
        calls: int,
        start: datetime | None,
    ) -> None:
        self._text = text
        self._numbers = numbers
        self._small = small
        self._sources = list(dict.fromkeys(map(with_ascii_digits, given)))  # the user's words occur twice
        self._question = asked
        self._calls = calls
        self._start = start
        self._shares_of: dict[tuple[int, float], bool] = {}
        self._exact_of: dict[tuple[int, str, float, bool], list[tuple[float, float]]] = {}

    def missing(self, left: list[Number], derived: bool) -> list[Number]:
        left = self._joined(left)
        if self._values or any(_DIGIT.search(source) is not None for source in self._sources):
            steps: list[Callable[[Number], bool]] = [self._is_given, self._is_converted, self._is_identifier]
            for holds in steps:
                left = [number for number in left if not holds(number)]
                if not left:
                    return []
            left = [
                number for number in left if self._timeline.holds(number) is not True and not self._timeline.holds_week(number)
            ]
        if not left or not derived:
            return left
        for _ in range(_ROUNDS):  # results may be operands of other results
            left = self._unlike_shown(left)
            rest = left[_DERIVED_UP_TO:]
            results = _Results(self, left)
            still = [number for number in left[:_DERIVED_UP_TO] if not self._is_derived_or_pace(number, results)]
            if len(still) + len(rest) == len(left):
                break
            left = still + rest
        return left

    def _unlike_shown(self, left: list[Number]) -> list[Number]:
        """Remove numbers with support, and conversions of other numbers in the answer."""
        missing = {number.at for number in left}
        shown = [
            units.Quantity(each.readings[0][0], *unit)
            for each in (*self._numbers, *self._small)
            if each.at not in missing and (unit := units.unit_of(each, self._text)) is not None
        ]
        if not shown:
            return left
        self._timeline.learn(shown)
        still = []
        for number in left:
            unit = units.unit_of(number, self._text)
            if unit is not None and any(units.holds(reading, unit, shown, ()) for reading in self._readings(number)):
                continue
            if self._timeline.holds(number) is not True:
                still.append(number)
        return still

    def _joined(self, left: list[Number]) -> list[Number]:
        """Join the parts of numbers such as ``4 200`` and ``34万2千``."""
        if not any(self._whole):
            return left
        found: dict[int, Number] = {}
        for number in left:
            joined = next((each for whole in self._whole for each in whole.at(number.at)), number)
            found.setdefault(joined.at, joined)
        return list(found.values())

    @cached_property
    def _whole(self) -> list[Places[Number]]:
        return [Places((each.at, each.end, each) for each in kind(self._text)) for kind in (spaced_numbers, mixed_numbers)]

    @cached_property
    def _values(self) -> list[float]:
        return values_of(self._sources)

    @cached_property
    def _quantities(self) -> list[units.Quantity]:
        found = [each for source in self._sources for each in units.quantities_in(source, _QUANTITIES)][: 2 * _QUANTITIES]
        lasting = islice((each for source in self._sources for each in durations_in(source)), _QUANTITIES)
        return found + [units.Quantity(seconds, "time", 1.0) for _, _, seconds, _ in lasting]

    @cached_property
    def _timeline(self) -> Timeline:
        at = bisect_left(self._values, 1500)
        return Timeline(self._text, self._sources, self._quantities, self._values[at : at + 400], self._start)

    @cached_property
    def _bare(self) -> list[float]:
        """Return the given numbers of unknown unit, or an empty list if there are many numbers."""
        known = {each.value for each in self._quantities}
        return [value for value in self._values if value not in known] if len(self._values) <= 40 else []

    @cached_property
    def _digits(self) -> str:
        return "\n".join(re.sub(r"(?<=[0-9])[ ()./-]{1,3}(?=[0-9])", "", source) for source in self._sources)

    @cached_property
    def _facts(self) -> derive.DerivedFacts:
        facts = derive.DerivedFacts()
        for source in self._sources:
            facts.add(source)
        if self._calls:
            facts.counts.add(float(self._calls))
        return facts

    def _readings(self, number: Number) -> list[tuple[float, float]]:
        """Return the possible values of a number, each with half its rounding interval."""
        readings = number.readings if number.scale <= 1.0 else number.readings[len(number.readings) // 2 :] or number.readings
        return [(value, max(half, self._rounding(value, half, number))) for value, half in readings]

    def _rounding(self, value: float, half: float, number: Number) -> float:
        """Return half a unit of the last digit that isn't zero: ``58 000`` can be 57 948.

        Numbers below 1000 count as rounded only behind a word such as ``about``. For a single digit, the result is at most 5 % of
        the value.
        """
        if half != 0.5 or value < 20 or value % 10 or (value < 1000 and not is_hedged(number, self._text)):
            return half
        digits = str(int(value))
        zeros = len(digits) - len(digits.rstrip("0"))
        if len(digits) - zeros < 2:
            return min(0.5 * 10.0**zeros, 0.05 * value)
        return 0.5 * 10.0**zeros

    def _is_given(self, number: Number) -> bool:
        readings = self._readings(number)
        if number.scale > 1.0 and number.text and self._names_scale:
            readings += number.readings[:1]
        if number.scale == 0.01:
            readings += [r for v, h in number.readings[:1] for r in ((1 - v / 100, h / 100), (100 - v, h))]
        if number.scale == 1.0 and _CENTS.match(self._text, number.end):
            readings += [(v / 100, h / 100) for v, h in number.readings[:1]]
        if "bp" in self._given_text or "basis" in self._given_text or "Basis" in self._given_text:
            readings += [(v * 100, h * 100) for v, h in number.readings[:1]]
        if any(half == 0.005 for _, half in readings):
            readings += [(v * 100, 0.4) for v, h in number.readings[:1] if h == 0.005 and v >= 1]
        return any(derive.near(self._values, *reading, error=_WRITTEN) for reading in readings)

    @cached_property
    def _asked(self) -> list[float]:
        asked = with_ascii_digits(self._question[:5_000])
        return list(dict.fromkeys((*values_of([asked])[:6], *factors_in(asked))))

    @cached_property
    def _worded(self) -> list[tuple[int, float]]:
        """Return the positions and values of small numbers, halves and doubles in words.

        They can be operands.
        """
        match = [(start, value) for start, _, value in values_of_words(self._text) if value in _OPERANDS_IN_WORDS]
        return [*match, *((0, factor) for factor in factors_in(self._text))][:_MAX_OPERANDS]

    @cached_property
    def _given_text(self) -> str:
        return "\n".join(source[:20_000] for source in self._sources)

    @cached_property
    def _names_scale(self) -> bool:
        return (
            re.search(
                r"(?:in|_) ?(?:millions?|mio|mn|m|thousands?|k|bn|billions?|tsd|crores?|lakhs?|млн|тыс)\b|[万億亿만억](?:元|円|원|人|명|_)?[\"')）:]",
                self._given_text,
                re.IGNORECASE,
            )
            is not None
        )

    def _is_converted(self, number: Number) -> bool:
        unit = units.unit_of(number, self._text)
        if unit is None:
            return False
        return any(units.holds(reading, unit, self._quantities, self._bare) for reading in self._readings(number))

    def _is_identifier(self, number: Number) -> bool:
        """Return True for a given identifier with other separators, or for its last digits."""
        begin, end = number.at, number.end
        text = self._text
        while begin > 0 and (text[begin - 1].isdigit() or text[begin - 1] in " ()./-") and number.at - begin < 30:
            begin -= 1
        while end < len(text) and (text[end].isdigit() or text[end] in " ()./-") and end - number.end < 30:
            end += 1
        digits = re.sub(r"[^0-9]", "", text[begin:end])
        own = re.sub(r"[^0-9]", "", number.text)
        if len(digits) >= 6 and _is_row_of(self._digits, digits, whole=True):
            return True
        ending = re.search(
            r"(?:\*{2,}|•{2,}|x{3,}|ending(?: in)?|ends in|endet (?:auf|mit)|endend|letzte\w*|last four|terminad[ao] en|se terminant par|…)\W{0,6}$",
            text[max(0, number.at - 30) : number.at],
            re.IGNORECASE,
        )
        return ending is not None and len(own) >= 3 and _is_row_of(self._digits, own, whole=False)

    def _is_derived_or_pace(self, number: Number, results: _Results) -> bool:
        """Return True if the number can be derived.

        Among dates and times, only a pace or duration (``5:30``) can be derived by calculation.
        """
        moment = self._timeline.moment_of(number)
        if moment is None:
            return self._is_derived(number, results)
        pace = _PACE.fullmatch(self._text[moment.start : moment.end])
        if pace is None:
            return False
        value = int(pace.group(1)) + int(pace.group(2)) / 60
        return self._is_derived(Number(pace.group(), ((value, 0.5 / 60), (value * 60, 0.5)), False, moment.start), results)

    def _is_derived(self, number: Number, results: _Results) -> bool:
        value, half = number.readings[0]
        if half == 0.5 and value in self._facts.counts:
            return True
        if self._timeline.holds_age(number) and units.unit_of(number, self._text) in (None, ("time", 31556952.0)):
            return True
        if self._follows(number, self._sums, 0.3) or self._follows(number, self._totals, 0.3):
            return True
        if self._is_share(number) and self._follows(number, self._shares, 0.4):
            return True
        if not results.has_operands:
            return False
        if any(self._follows(number, tier) for tier in results.of_shown) or self._follows_from_line(number, results.missing):
            return True
        if any(self._follows(number, tier, 0.25) for tier in self._of_rows):
            return True
        tried: list[list[float]] = []
        for tier in results.of_pools:
            if self._follows(number, tier, others=tried):
                return True
            tried.append(tier)
        return False

    def _follows_from_line(self, number: Number, missing: set[int]) -> bool:
        operands = self._shown_beside(number, missing)
        if not 1 < len(operands) <= 5:
            return False
        first, second, *more = derive.tiers([operands])
        if self._follows(number, first, 0.5) or self._follows(number, second, 0.5):
            return True
        return any(self._follows(number, tier, 0.3) for tier in more)

    def _is_share(self, number: Number) -> bool:
        key = number.at, number.scale
        known = self._shares_of.get(key)
        if known is None:
            known = number.scale == 0.01 or _PER_CENT_BEFORE.search(self._text, max(0, number.at - 9), number.at) is not None
            self._shares_of[key] = known
        return known

    def _follows(
        self, number: Number, candidates: Sequence[float], chance: float = derive.CHANCE, others: Sequence[Sequence[float]] = ()
    ) -> bool:
        """Return True if one of the candidates is the number. Percentages also match as ratios."""
        if not candidates:
            return False
        if self._is_share(number):
            readings = number.readings[:1]
            ratios = [(value * 0.01, half * 0.01) for value, half in readings]
            return derive.holds(candidates, ratios, chance, 0.01, others) or derive.holds(
                candidates, readings, chance, 1.0, others
            )
        return derive.holds(candidates, self._exact(number, ambiguous=not others), chance, 0.0, others)

    @cached_property
    def _of_rows(self) -> derive.Tiers:
        return derive.Tiers([row for row in self._facts.rows[:20] if len(row) <= 6], most=3)

    @cached_property
    def _sums(self) -> list[float]:
        return sorted(self._facts.sums)

    @cached_property
    def _shares(self) -> list[float]:
        return sorted(self._facts.shares)

    @cached_property
    def _totals(self) -> list[float]:
        return sorted(self._facts.totals)

    def _exact(self, number: Number, *, ambiguous: bool) -> list[tuple[float, float]]:
        """Return the possible values of a number, exact ones first and then rounded ones."""
        key = number.at, number.text, number.scale, ambiguous  # requested once per kind of result
        known = self._exact_of.get(key)
        if known is None:
            known = self._exact_of[key] = self._exactly(number, ambiguous=ambiguous)
        return known

    def _exactly(self, number: Number, *, ambiguous: bool) -> list[tuple[float, float]]:
        value, half = number.readings[-1] if number.scale > 1.0 else number.readings[0]
        if number.scale > 1.0 and not number.after and half > 0.5 and "." not in number.text:
            readings = [(value, 0.5), *([(value, half)] if is_hedged(number, self._text) else [])]  # 1万2千
        else:
            readings = [(value, half)]
        rounding = self._rounding(value, half, number)
        if rounding > half and (value % 1000 == 0 or is_hedged(number, self._text)):
            readings.append((value, rounding))
        if number.scale > 1.0 and self._names_scale:
            readings.append((value / number.scale, half / number.scale))
        if ambiguous and number.scale == 1.0:
            readings += number.readings[1:]
        unit = units.unit_of(number, self._text)
        if unit is not None and unit == ("time", 3600.0):
            readings.append((value * 60, half * 60))
        return readings

    def shows_others(self, missing: set[int]) -> bool:
        return any(each.at not in missing for each in (*self._numbers, *self._small))

    def shown(self, left: list[Number]) -> list[float]:
        missing = Places((number.at, number.end, number) for number in left)
        operands = [number for number in (*self._numbers, *self._small) if next(missing.at(number.at), None) is None]
        joined = self._joined(sorted(operands, key=lambda number: number.at))
        values = list(dict.fromkeys((each.readings[-1] if each.scale > 1 else each.readings[0])[0] for each in joined))
        return [*values, *(value for _, value in self._worded[:3] if value not in values)]

    def _shown_beside(self, number: Number, missing: set[int]) -> list[float]:
        """Return the supported numbers of the same line, which readers take for the operands."""
        begin = self._text.rfind("\n", 0, number.at) + 1
        end = self._text.find("\n", number.end)
        inside = [each for each in (*self._numbers, *self._small) if begin <= each.at < (end if end >= 0 else len(self._text))]
        joined = self._joined([each for each in inside if each.at not in missing])
        values = [each.readings[-1 if each.scale > 1 else 0][0] for each in joined]
        worded = [value for at, value in self._worded if begin <= at < (end if end >= 0 else len(self._text))]
        return list(dict.fromkeys((*values, *worded)))

    def pools(self, shown: Sequence[float]) -> list[list[float]]:
        """Return groups of related given numbers, extended by numbers in the question and answer."""
        pools = [self._with_operands(pool, shown) for pool in self._facts.pools[:20]]
        if len(self._operands) <= _FEW:
            pools.append(self._operands)
        return pools

    @cached_property
    def _operands(self) -> list[float]:
        """Return the possible operands in the short given texts."""
        lines = (line for source in self._sources if len(source) <= 2_000 for line in source.splitlines()[:100])
        found = chain.from_iterable(map(derive.operands_of, map(derive.without_moments, lines)))
        return list(dict.fromkeys(islice(found, 4 * _FEW)))

    def columns(self, shown: Sequence[float]) -> list[list[float]]:
        """Return groups of numbers of the same kind, extended like :meth:`pools`."""
        return [self._with_operands(pool, shown) for pool in self._facts.columns[:20]]

    def _with_operands(self, pool: Sequence[float], shown: Sequence[float]) -> list[float]:
        return list(dict.fromkeys((*pool, *self._asked, *(shown if len(shown) <= 4 else ()))))[:14]


class _Results:
    """Results that follow from the supported numbers of an answer and the given numbers."""

    def __init__(self, evidence: _NumberEvidence, left: list[Number]) -> None:
        self._evidence = evidence
        self._left = left

    @cached_property
    def missing(self) -> set[int]:
        return {each.at for each in self._left}

    @cached_property
    def has_operands(self) -> bool:
        return self._evidence.shows_others(self.missing) or any(self._evidence.pools(())) or any(self._evidence.columns(()))

    @cached_property
    def _shown(self) -> list[float]:
        return self._evidence.shown(self._left)

    @cached_property
    def of_shown(self) -> derive.Tiers:
        return derive.Tiers([self._shown[:_MAX_OPERANDS]])

    @cached_property
    def of_pools(self) -> derive.Tiers:
        return derive.Tiers(self._evidence.pools(self._shown), self._evidence.columns(self._shown))


def _is_row_of(text: str, digits: str, *, whole: bool) -> bool:
    """Return True if a row of digits in the text ends with these digits.

    With ``whole``, the row must equal them.
    """
    at = text.find(digits)
    while at >= 0:
        end = at + len(digits)
        if text[end : end + 1] not in _ASCII_DIGITS and not (whole and text[at - 1 : at] in _ASCII_DIGITS):
            return True
        at = text.find(digits, at + 1)
    return False


_TASK = re.compile(
    r"\b(?:summari|shorten|rewrite|rephrase|translate|extract|condense|proofread|turn this|key points|tl;?dr|zusammenfass|fasse|kürze|übersetz|schreib.{0,20}um|résum|"
    r"tradui|reformul|resum|traduc|riassum|traduci|samenvat|vertaal|streszcz|przetłumacz|сократи|перескаж|кратко|переведи|переклади|підсум|özetle|çevir|sammanfatta|ringkas|tóm tắt)"
    r"|要約|总结|摘要|概括|翻译|翻訳|요약|번역|لخص|ترجم|סכם|תרגם|सारांश|সারাংশ|สรุป",
    re.IGNORECASE,
)
_SHORTEST_MATERIAL = 120


def is_text_to_work_on(asked: str) -> bool:
    """Return True if a request contains a text with numbers, such as one to summarize or translate."""
    return (
        len(asked) >= _SHORTEST_MATERIAL
        and _TASK.search(asked) is not None
        and len(re.findall(r"[0-9]+", with_ascii_digits(asked[:20_000]))) >= 2
    )


def has_number(text: str) -> bool:
    return re.search(r"[0-9]{2}|[0-9][.,][0-9]", with_ascii_digits(text)) is not None
