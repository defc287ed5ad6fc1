"""Find the numbers in an answer that don't follow from the given texts.

A number of an answer (a claim) can be given: as written, rounded, in another unit or notation. Or it can be calculated: from
other numbers of the answer, which have support themselves, or from given ones. Cheap checks come first.
"""

from __future__ import annotations

import re
from functools import cached_property
from itertools import combinations_with_replacement

from ..screen import Look
from ..texts import in_small_letters
from . import derive
from .claims import Claim, is_no_claim
from .given import GivenNumbers
from .moments import Timeline
from .reading import Reading
from .units import unit_after
from .words import claims_in_words, may_have_words, small_words_in

_PACE = re.compile("([0-9]{1,3}):([0-5][0-9])")
_IDENTIFIER = re.compile("[0-9](?:[ ()./-]{0,3}[0-9])*")
_EXAMINED = 100
"""At most this many numbers without an exact source are checked one by one. With more, all of them are ungrounded."""
_ROUNDS = 3
"""Maximum length of a chain of results that are operands of others."""
_MOST_OPERANDS = 24
_MOST_WORDED = 12
_LONGEST_LINE = 8
"""Maximum number of a line's numbers that are combined."""
_LARGEST_POOL = 12
_FEW = 4
"""Maximum number of the answer's numbers that are combined with each group of given ones. More would match anything."""
_PERIODS = (12.0, 1 / 12, 7.0, 1 / 7, 52.0, 365.0)
"""Factors between amounts for a day, a week, a month and a year."""
_CHANCE_OF_TOTAL, _CHANCE_OF_SHARE, _CHANCE_IN_LINE = 0.3, 0.4, 0.2
"""Chances above :data:`derive.CHANCE` for results that answers often state: totals, shares and changes, results within a line."""
_WINDOW = 30
"""Characters around a number that can belong to the same identifier."""
_LEAST_IDENTIFIER = 6
_LEAST_ROUNDED, _MOST_ROUNDED_OFF = 1000, 0.05


def word_claims(text: str, look: Look | None = None) -> list[Claim]:
    """Return the numbers above ten that an answer writes in words."""
    if not may_have_words(text, look):
        return []
    return [Claim(text[start:end], start, end, ((value, 0.5),)) for start, end, value in claims_in_words(text)]


class AnswerNumbers:
    """The claims of an answer, and their support. ``derived`` accepts results of calculations."""

    def __init__(self, text: str, claims: list[Claim], given: GivenNumbers, asked: str, derived: bool) -> None:
        self.text = text
        self.claims = claims
        self.given = given
        self._asked = asked
        self._derived = derived

    def ungrounded(self) -> list[Claim]:
        """Return the claims that don't follow from the given texts."""
        left = [claim for claim in self.claims if claim.scale > 1.0 or claim.text not in self.given.tokens]
        left = [claim for claim in left if not (claim.readings and claim.is_small)]
        left = [claim for claim in left if not self._is_given_exactly(claim)]
        if len(left) > _EXAMINED:
            return left
        left = [claim for claim in left if not is_no_claim(claim, self.text) and not self._is_given(claim)]
        for _ in range(_ROUNDS if self._derived and left else 0):  # results may be operands of other results
            arithmetic = Arithmetic(self, {claim.at for claim in left})
            still = [claim for claim in left if not arithmetic.support(_as_number(claim))]
            if len(still) == len(left):
                break
            left = still
        return left

    # --- the same value --------------------------------------------------------------------------------------------

    def _is_given_exactly(self, claim: Claim) -> bool:
        given = self.given
        if (claim.days and self.timeline.holds_near_day(claim)) or claim.minutes in given.plain.minutes:
            return True
        if not claim.readings:
            return False
        value, half = claim.readings[0]
        if claim.scale <= 1.0 and value in given.plain.values:
            return True
        if half == 0.5 and claim.scale == 1.0 and any(abs(value - today.year) <= 1 for today in given.today):
            return True
        return any(given.rounds_to(*each) for each in self._readings(claim))

    def _is_given(self, claim: Claim) -> bool:
        """Return True for numbers in words or of several words, moments, durations, quantities in another unit, and identifiers."""
        duration = self.timeline.duration_at(claim.at)
        if duration is not None and self.timeline.holds_duration(*duration):
            return True
        if (claim.days and self.timeline.holds_day(claim)) or (claim.minutes >= 0 and self.timeline.holds_clock(claim)):
            return True
        if not claim.readings:
            return False
        readings = self._readings(claim)
        if any(self.given.has(*each) for each in readings):
            return True
        unit = unit_after(self.text, claim.end)
        if unit is not None and any(self.given.has_quantity(*each, unit) for each in readings):
            return True
        return self._is_identifier(claim)

    def _readings(self, claim: Claim) -> list[Reading]:
        """Return the possible values of a number, each with half its rounding interval."""
        readings = [*claim.readings, *claim.scaled] if claim.scale <= 1.0 else claim.scaled
        if claim.scale == 0.01:  # 20 % less is 0.8 times, or 80 %
            value, half = claim.readings[0]
            readings += [(1 - value / 100, half / 100), (100 - value, half)]
        return [(value, max(half, self._rounding(value, half))) for value, half in readings]

    @staticmethod
    def _rounding(value: float, half: float) -> float:
        """Return half a unit of the last digit that isn't zero: ``58 000`` can be 57 948.

        Numbers below 1000 don't count as rounded. The result is at most 5 % of the value.
        """
        if half != 0.5 or value < _LEAST_ROUNDED or value % 10:
            return half
        digits = str(int(value))
        zeros = len(digits) - len(digits.rstrip("0"))
        return min(0.5 * 10.0**zeros, _MOST_ROUNDED_OFF * value)

    @cached_property
    def timeline(self) -> Timeline:
        return Timeline(self.text, self.claims, self.given)

    @cached_property
    def _digits(self) -> str:
        return "\n".join(re.sub(r"(?<=[0-9])[ ()./-]{1,3}(?=[0-9])", "", text) for text in self.given.texts)

    def _is_identifier(self, claim: Claim) -> bool:
        """Return True for a given identifier with other separators."""
        runs = _IDENTIFIER.finditer(self.text, max(0, claim.at - _WINDOW), claim.end + _WINDOW)
        run = next((found.group() for found in runs if found.start() <= claim.at < found.end()), "")
        digits = re.sub("[^0-9]", "", run).lstrip("0")
        return len(digits) >= _LEAST_IDENTIFIER and re.search(rf"{digits}(?![0-9])", self._digits) is not None

    # --- for arithmetic --------------------------------------------------------------------------------------------

    def is_share(self, claim: Claim) -> bool:
        return claim.scale == 0.01 or self.text[max(0, claim.at - 2) : claim.at].rstrip()[-1:] == "%"

    @cached_property
    def rows(self) -> list[tuple[list[tuple[int, float]], list[float]]]:
        """Return the position and value of each number in each line, and the numbers that it has in words."""
        rows: list[tuple[list[tuple[int, float]], list[float]]] = []
        end = -1
        for claim in self.claims:
            if claim.at > end:  # on another line
                end = self.text.find("\n", claim.at)
                end = end if end >= 0 else len(self.text)
                begin = self.text.rfind("\n", 0, claim.at)
                rows.append(([], [value for at, value in self.worded if begin < at < end]))
            if claim.readings:
                value = claim.readings[0][0] * max(claim.scale, 1.0)
                before = self.text[max(0, claim.at - 2) : claim.at]
                is_negative = before[-1:] in ("-", "−") and before[:1] in " |(*-−"
                rows[-1][0].append((claim.at, -value if is_negative else value))
        return rows

    @cached_property
    def shown_results(self) -> list[float]:
        places = [(each.at, each.end + len(each.after), each.scaled[0][0] if each.readings else 0.0) for each in self.claims]
        return derive.results_shown(self.text, places)

    @cached_property
    def worded(self) -> list[tuple[int, float]]:
        """Return the positions and values of small numbers, halves and doubles in words."""
        return [(start, value) for start, _, value in small_words_in(in_small_letters(self.text)) if value != 1][:_MOST_WORDED]

    @cached_property
    def factors(self) -> list[float]:
        """Return small numbers that the request or the answer names, such as ``for 3 people``."""
        words = [value for _, _, value in small_words_in(in_small_letters(self._asked[:2_000]))]
        figures = [claim.readings[0][0] for claim in self.claims if claim.readings and claim.is_small]
        worded = [value for _, value in self.worded]
        return [value for value in dict.fromkeys((*words, *figures, *worded)) if 2 <= value <= 12]

    @cached_property
    def products(self) -> set[float]:
        return {*self.factors, *(one * other for one, other in combinations_with_replacement(self.factors, 2))}


class Arithmetic:
    """Results that follow from supported and given numbers. Claims without support (``missing``) can't be operands."""

    def __init__(self, answer: AnswerNumbers, missing: set[int]) -> None:
        self._answer = answer
        self._given = answer.given
        rows = [([value for at, value in row if at not in missing], worded) for row, worded in answer.rows]
        self._rows = [each for each in rows if each[0]]
        values = dict.fromkeys([abs(value) for row, _ in self._rows for value in row if value])
        self._operands = list(values)[:_MOST_OPERANDS]

    def support(self, claim: Claim) -> bool:
        """Return True if a number follows from numbers of the answer or from given ones."""
        answer = self._answer
        duration = answer.timeline.duration_at(claim.at)
        if duration is not None and self._answer_results.support(((duration[0] / 60, 0.5),)):
            return True
        if not claim.readings or claim.is_small:
            return False
        value, half = claim.readings[0]
        if half == 0.5 and value in self._given.facts.counts:
            return True
        if any(abs(each - value) <= half + value * 1e-9 for value, half in claim.scaled for each in answer.shown_results):
            return True
        return self._follows(claim, self._answer_results) or self._follows(claim, self._given_results) or self._is_multiple(claim)

    def _follows(self, claim: Claim, candidates: derive.Candidates) -> bool:
        """Return True if one of the candidates is the number. Percentages also match as ratios."""
        if not self._answer.is_share(claim):
            return candidates.support(claim.scaled)
        value, half = claim.readings[0]
        return candidates.support(((value / 100, half / 100),), 0.01) or candidates.support(((value, half),), 1.0)

    @cached_property
    def _answer_results(self) -> derive.Candidates:
        """Return sums of numbers in a line or column, and results of numbers in the same line."""
        pools = [list(dict.fromkeys((*map(abs, row), *worded)))[:_LONGEST_LINE] for row, worded in self._rows]
        # 2 × 5.00 and 3 × 4.00: the sum of the products of pairs
        products = [sum(a * b for a, b in zip(row[::2], row[1::2], strict=False)) for row, _ in self._rows if len(row) > 3]
        return derive.Candidates(
            [
                (products, _CHANCE_OF_TOTAL),
                (derive.sums_of_runs(self._groups), derive.CHANCE),
                (derive.changes(self._groups), _CHANCE_OF_SHARE),
                *((kind, _CHANCE_IN_LINE) for kind in derive.results(pools)),
            ]
        )

    @cached_property
    def _groups(self) -> list[list[float]]:
        """Return the numbers of each line and column."""
        rows = [row for row, _ in self._rows]
        longest = min(max(map(len, rows), default=0), _LONGEST_LINE)
        columns = [[row[at] for row in rows if at < len(row)] for at in range(longest)]
        if len(set(map(len, rows))) > 1:  # the last columns of lines with different beginnings
            columns += [[row[at] for row in rows if -at <= len(row)] for at in range(-longest, 0)]
        return [group for group in (*rows, *columns) if len(group) > 1]

    @cached_property
    def _given_results(self) -> derive.Candidates:
        """Return totals of given numbers, and results of two numbers of the answer or of the same record or text."""
        extra = self._operands if len(self._operands) <= _FEW else []
        pools = self._given.facts.pools
        if sum(map(len, pools)) <= derive.POOL:  # few enough to combine numbers of different records
            pools = [*pools, [number for pool in pools for number in pool]]
        pools = [list(dict.fromkeys((*pool, *extra)))[:_LARGEST_POOL] for pool in pools]
        kinds = (*derive.results([self._operands]), *derive.results(pools))
        return derive.Candidates(
            [
                (list(self._given.facts.totals), _CHANCE_OF_TOTAL),
                (list(self._given.facts.shares), _CHANCE_OF_SHARE),
                *((kind, derive.CHANCE) for kind in kinds),
            ]
        )

    def _is_multiple(self, claim: Claim) -> bool:
        """Return True for a given number times one or two small numbers that the user or the answer names."""
        value, half = claim.scaled[0]
        return half <= value / 100 and any(
            self._is_given_or_operand(value / product, half / product * 0.02) for product in (*self._answer.products, *_PERIODS)
        )

    def _is_given_or_operand(self, value: float, half: float) -> bool:
        return self._given.has(value, half) or any(abs(each - value) <= half + value * 1e-9 for each in self._operands)


def _as_number(claim: Claim) -> Claim:
    """Return a pace or a duration such as ``5:30`` as a number, and other claims unchanged."""
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
_SHORTEST_MATERIAL = 120


def is_text_to_work_on(asked: str) -> bool:
    """Return True if a request contains a text with numbers, such as one to summarize or translate."""
    return len(asked) >= _SHORTEST_MATERIAL and _TASK.search(asked) is not None and len(re.findall(r"\d+", asked[:20_000])) >= 2


def has_number(text: str) -> bool:
    return re.search(r"\d{2}|\d[.,]\d", text) is not None
