"""Calculate numbers from given numbers, such as counts, totals, averages, and ratios.

With enough given numbers, almost any number can be calculated. A calculated result therefore supports a number in the answer only
if a match by chance is unlikely.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache, lru_cache
from itertools import accumulate, islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...core import jsonio
from .reading import readings_of

Array = NDArray[np.float64]
CHANCE = 0.15
"""Maximum ratio of calculated results to all numbers of equal precision nearby. Above this ratio, a match might be chance."""
_POINTS = 15.0
"""Percentage points above and below a percentage. The more results are in this range, the likelier is a match by chance."""
_NODES = 20_000
_ROWS = 2_000
_PROSE = 2_000
"""Maximum length of a text whose numbers can form a pool."""
POOL, _POOLS = 10, 20
"""Maximum size of a pool (numbers to combine with each other), and maximum number of pools."""
_LONGEST = 40
"""Maximum number of values per column to calculate shares of, and per group to add up in runs."""
_DIGIT = re.compile("[0-9]")
_CELL = re.compile(r"[-−+]?[0-9]+(?:[.,'’\u00a0\u202f ][0-9]+)*")


class Facts:
    """Counts, totals, averages, ranges, and shares of the numbers in texts and JSON values.

    A *pool* contains related numbers that are combined with each other in calculations.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        self.counts: set[float] = set()
        self.totals: set[float] = set()
        self.shares: set[float] = set()
        self.pools: list[list[float]] = []
        for root in roots:
            self._add(root)

    def _add(self, root: Any) -> None:
        stack, seen = [root], 0
        while stack and seen < _NODES:
            value = stack.pop()
            seen += 1
            if isinstance(value, str):
                self._add_prose(value)
                value = parsed(value) if "\n" in value or value[:1] in ("{", "[", " ") else None
            rows = list(value.values()) if isinstance(value, dict) else value
            if isinstance(rows, list) and rows:
                self._add_rows(rows[:_ROWS])
                if rows is value or isinstance(rows[0], dict):
                    self.counts.add(float(len(rows)))
                stack += [each for each in rows[:_ROWS] if isinstance(each, (dict, list, str))]

    def _add_prose(self, text: str) -> None:
        """If a short text has few numbers, add them as one pool, because they are probably related."""
        if len(self.pools) < _POOLS and len(text) <= _PROSE and " " in text and _DIGIT.search(text) is not None:
            numbers = [number for line in text.splitlines() for number in numbers_of(line)]
            self._add_pool(numbers if len(numbers) <= POOL else ())

    def _add_pool(self, numbers: Iterable[float]) -> None:
        if len(self.pools) < _POOLS:
            distinct = list(dict.fromkeys(map(abs, numbers)))[:POOL]
            if distinct:
                self.pools.append(distinct)

    def _add_rows(self, rows: Sequence[Any]) -> None:
        numbers = [number for row in rows if (number := number_of(row)) is not None]
        self._add_pool(numbers)
        self._add_column(numbers)
        records = [row if isinstance(row, dict) else dict(enumerate(row)) for row in rows if isinstance(row, (dict, list))]
        if len(records) < 2:
            return
        for key in records[0]:
            column = (number_of(record.get(key)) for record in records)
            self._add_column([number for number in column if number is not None])

    def _add_column(self, column: list[float]) -> None:
        if len(column) < 2:
            return
        total = abs(sum(column))
        self.totals.update((total, total / len(column), max(column) - min(column)))
        if total:
            self.shares.update(abs(each) / total for each in column[:_LONGEST])


def parsed(text: str) -> Any:
    """Parse a text as JSON, JSON lines, or a table. Otherwise, return numbers per line or list item, or None for a single line."""
    start = text.lstrip()[:1]
    if start in ("{", "["):
        try:
            return jsonio.loads(text)
        except (ValueError, RecursionError):
            pass
    if "\n" not in text:
        return None
    lines = [line.strip() for line in text.splitlines()[: _ROWS + 1] if line.strip() and not set(line) <= set("|-: +=")]
    if start == "{":
        return [row for line in lines if (row := parsed(line)) is not None]
    return _table(lines) if len(lines) > 1 else None


def _table(lines: list[str]) -> list[Any]:
    for mark in ("\t", "|", ";", ","):
        head, *rows = [[cell.strip() for cell in line.strip("|").split(mark)] for line in lines]
        if len(head) > 1 and all(len(row) == len(head) for row in rows):
            return [dict(zip(head, row, strict=True)) for row in rows]
    marked = [line for line in lines if line[:1] in "-*•" or line[:1].isdigit()]
    return [numbers_of(line) for line in (marked if len(marked) > 1 else lines)]


def numbers_of(text: str) -> list[float]:
    return [reading[0][0] for found in _CELL.findall(text) for reading in readings_of(_plain(found))[:1]]


def _plain(cell: str) -> str:
    return re.sub(r"(?<=[0-9])[ \u00a0\u202f](?=[0-9]{3}(?![0-9]))", "", cell).lstrip("-−+").split(" ")[0]


def number_of(value: Any) -> float | None:
    """Return the number in a field, or None. The field can be a number or text such as ``€ 12.50``."""
    if isinstance(value, str):
        return _number_in(value) if len(value) <= 18 else None
    if isinstance(value, (int, float)):
        return float(value) if not isinstance(value, bool) and abs(value) < 1e15 else None
    return None


@lru_cache(maxsize=4_096)
def _number_in(text: str) -> float | None:
    cell = text.strip("$€£₽¥₹% ")
    if _CELL.fullmatch(cell) is None:
        return None
    readings = readings_of(_plain(cell))
    return readings[0][0][0] * (-1 if cell[0] in "-−" else 1) if len(readings) == 1 else None


# --- results of two numbers ------------------------------------------------------------------------------------------


@cache
def _pairs(count: int) -> NDArray[np.intp]:
    return np.array(np.triu_indices(count, 1))


_NO_NUMBERS = np.zeros(0)


def _percentages(a: Array, b: Array) -> tuple[Array, ...]:
    """For ``b`` up to 100, return ``b`` % of ``a``, ``a`` ± ``b`` %, and net amount and tax if ``a`` includes ``b`` % tax."""
    few = b <= 100
    a, b = a[few], b[few] / 100
    share, whole = a * b, a / (1 + b)
    return share, a - share, a + share, whole, a - whole


def sums_of_runs(groups: Iterable[Sequence[float]]) -> list[float]:
    """Return sums of runs of adjacent numbers in a group, and each group's average, without signs."""
    found: list[float] = []
    for group in groups:
        for first in range(min(len(group), _LONGEST) - 1):
            found += islice(accumulate(group[first:_LONGEST]), 1, None)
        found.append(sum(group) / len(group))
    return list(map(abs, found))


def results(pools: Iterable[Sequence[float]]) -> list[Array]:
    """Return results for each pair of numbers in a pool, such as sums, products, ratios, and relative changes."""
    pairs = [np.array(pool)[_pairs(len(pool))] for pool in pools if len(pool) > 1]
    if not pairs:
        return []
    one, other = np.concatenate(pairs, axis=1)
    a, b = np.concatenate((one, other)), np.concatenate((other, one))
    with np.errstate(divide="ignore", invalid="ignore"):
        change = abs(one - other)
        kinds = ((one + other, change), (one * other, a / b, 100 * a / b), _percentages(a, b), (change / one, change / other))
        return [np.concatenate(kind) for kind in kinds]


class Candidates:
    """Calculated results of several kinds, such as sums. Each kind has its own limit on the probability of a match by chance."""

    def __init__(self, kinds: Iterable[tuple[Array | list[float], float]]) -> None:
        self._kinds = [(np.asarray(results), chance) for results, chance in kinds]
        self._all = np.concatenate([_NO_NUMBERS, *(results for results, _ in self._kinds)])

    def support(self, readings: Iterable[tuple[float, float]], point: float = 0.0) -> bool:
        """Return True if a result matches a reading, probably not by chance. For percentages, ``point`` is the value of 1 %."""
        for value, half in readings:
            slack = half * (1 + 1e-9) + value * 1e-12
            if not value or not (np.abs(self._all - value) <= slack).any():
                continue
            low, high = (value - _POINTS * point, value + _POINTS * point) if point else (value / 2, value * 2)
            for results, chance in self._kinds:
                if (np.abs(results - value) <= slack).any():
                    near = results[(results >= low) & (results <= high)]
                    most = chance * (high - low) / (2 * half)
                    if near.size <= most or len(set(near.round(9).tolist())) <= most:
                        return True
        return False


# --- calculations that an answer shows -----------------------------------------------------------------------------

_OPERATOR = re.compile(r"[^0-9\n=≈→]{0,24}?([×✕*·⋅÷/+−–-]|\bx\b|\bmal\b)[^0-9\n=≈→]{0,8}")
_WIDEST_OPERATOR = 24 + len("mal") + 8


def results_shown(text: str, places: Sequence[tuple[int, int, float]]) -> list[float]:
    """Return results of written calculations: 56 and 58 for ``7 × 8 + 2``. ``places`` has each number's start, end, and value."""
    found: list[float] = []
    total = product = 0.0
    for i, (start, _, value) in enumerate(places):
        end = places[i - 1][1]
        operator = _OPERATOR.fullmatch(text, end, start) if i and start - end <= _WIDEST_OPERATOR else None
        if operator is None:
            total, product = 0.0, value
            continue
        sign = operator.group(1)
        if sign in "+−–-":
            total, product = total + product, value if sign == "+" else -value
        elif sign in "÷/":
            product = product / value if value else 0.0
        else:
            product *= value
        found.append(abs(total + product))
    return found
