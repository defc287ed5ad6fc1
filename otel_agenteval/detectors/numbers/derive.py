"""Derive numbers from given ones: counts, totals, averages, differences, products, ratios.

From many given numbers, almost any number can be derived. So each kind of result is a separate tier, with the most natural kind
first. A tier supports a number only if its candidates of similar size would rarely match by chance.
"""

from __future__ import annotations

import json
import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from itertools import chain, islice, pairwise
from typing import Any

from .reading import _readings
from .times import clocks_in, dates_in

CHANCE = 0.15
"""Share of the numbers of similar size that the candidates may cover. Above it, a match proves nothing."""
_POINTS = 15.0
"""Percentage points around a percentage within which candidates count as rivals."""
_PROSE = 20_000
_NODES = 20_000
_ROWS = 2_000
_POOL = 14
_TRIPLES = 7
_POOLS = 40
_COUNTS = 300


class DerivedFacts:
    """Results that follow from the structure of the given texts."""

    def __init__(self) -> None:
        self.counts: set[float] = set()
        self.sums: set[float] = set()
        self.totals: set[float] = set()
        self.shares: set[float] = set()
        self.rows: list[list[float]] = []
        self.pools: list[list[float]] = []
        self.columns: list[list[float]] = []

    def add(self, text: str) -> None:
        value = parsed(text)
        if value is not None:
            self._walk(value)
        if text.lstrip()[:1] not in ("{", "["):
            self._prose(text)

    def _prose(self, text: str) -> None:
        """Read the numbers of sentences, and of lines with numbers of the same kind."""
        lines = [found for line in without_moments(text[:_PROSE]).splitlines() if (found := operands_of(line))]
        if len(lines) > 1 and len({len(line) for line in lines}) == 1:
            for column in zip(*lines, strict=True):
                self._column(list(column))
            if len(lines[0]) > 1:
                self._products([dict(zip("abcde", line, strict=False)) for line in lines], list("abcde"[: len(lines[0])]))
                self.rows += [line[:_POOL] for line in lines[:_POOLS]]
        numbers = list(dict.fromkeys(number for line in lines for number in line))
        pools = self.columns if len(lines) > 2 and len(numbers) == len(lines) else self.pools
        if 1 <= len(numbers) <= _POOL and len(pools) < _POOLS:
            pools.append(numbers)

    def _walk(self, root: Any) -> None:
        stack, seen = [root], 0
        while stack and seen < _NODES:
            value = stack.pop()
            seen += 1
            children = self._read(value)
            rows = [child for child in children if isinstance(child, dict)]
            if len(rows) > 1:
                self._rows(rows[:_ROWS])
            stack.extend(child for child in children if isinstance(child, (dict, list, str)))

    def _read(self, value: Any) -> list[Any]:
        """Read a value, and return the values in it."""
        if isinstance(value, dict):
            self._record(value)
            return list(value.values())
        if isinstance(value, list):
            self.counts.add(float(len(value)))
            self._column([float(item) for item in value if _is_number(item)])
            return value[:_ROWS]
        if isinstance(value, str) and len(value) > 2 and (value.lstrip()[:1] in ("{", "[") or "\n" in value):
            inner = parsed(value)
            return [] if inner is None else [inner]
        return []

    def _record(self, record: dict[str, Any]) -> None:
        numbers = [number for value in record.values() if (number := _number(value)) is not None]
        if isinstance(next(iter(record.values()), None), dict):
            self.counts.add(float(len(record)))
        if 2 <= len(numbers) <= 40:
            self.totals.update((sum(numbers), sum(numbers) / len(numbers)))
            self._parts(numbers)
        if numbers and len(self.pools) < _POOLS:
            self.pools.append(list(dict.fromkeys(numbers))[:_POOL])
            self.rows.append(self.pools[-1])

    def _rows(self, rows: list[dict[str, Any]]) -> None:
        self.counts.add(float(len(rows)))
        columns: dict[str, list[float]] = defaultdict(list)
        kinds: dict[str, Counter[Any]] = defaultdict(Counter)
        for row in rows:
            for key, value in row.items():
                number = _number(value)
                if number is not None:
                    columns[key].append(number)
                if isinstance(value, (str, bool, int)) and len(str(value)) <= 60:
                    kinds[key][value] += 1
        for column in columns.values():
            self._column(column)
        for key, kind in kinds.items():
            self._count(kind, len(rows))
            if 1 < len(kind) <= 12 and len(kind) < len(rows):
                self._groups(rows, key, list(columns))
        self._products(rows, list(columns))

    def _count(self, kind: Counter[Any], rows: int) -> None:
        """Add how many values a field has, and how many rows have and lack each value."""
        if 1 < len(kind) <= rows // 2 + 1:
            self.counts.add(float(len(kind)))
        if len(kind) <= _COUNTS:
            self.counts.update(map(float, kind.values()))
            self.counts.update(float(rows - count) for count in kind.values() if count > 1 or len(kind) <= 3)
            self._parts(kind.values())

    def _groups(self, rows: list[dict[str, Any]], key: str, columns: list[str]) -> None:
        """Add the totals and shares of the rows that have the same value in a field."""
        for column in columns[:6]:
            groups: dict[Any, list[float]] = defaultdict(list)
            for row in rows if column != key else ():
                number, kind = _number(row.get(column)), row.get(key)
                if number is not None and isinstance(kind, (str, bool, int)):
                    groups[kind].append(number)
            if groups:
                self._parts([sum(group) for group in groups.values()])
            for group in groups.values():
                self.totals.update((sum(group), sum(group) / len(group)))

    def _parts(self, parts: Collection[float]) -> None:
        """Add the shares of a whole, and the relative changes from each part to the next."""
        total = sum(parts)
        if total > 0 and min(parts) >= 0 and len(parts) <= 40:
            self.shares.update(part / total for part in parts)
            self.shares.update((later - first) / first for first, later in pairwise(parts) if first)

    def _products(self, rows: list[dict[str, Any]], columns: list[str]) -> None:
        for i, one in enumerate(columns[:5]):
            for other in columns[i + 1 : 5]:
                pairs = [(_number(row.get(one)), _number(row.get(other))) for row in rows]
                known = [(a, b, a * b) for a, b in pairs if a is not None and b is not None]
                if len(known) > 1:
                    total = sum(each[2] for each in known)
                    self.totals.add(total)
                    self.totals.update(total / weight for weight in map(sum, list(zip(*known, strict=True))[:2]) if weight)

    def _column(self, column: list[float]) -> None:
        if len(column) < 2:
            return
        total, ordered = sum(column), sorted(column)
        middle = len(ordered) // 2
        median = ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2
        self.sums.add(total)
        self._parts(column)
        self.totals.update((total / len(column), median, ordered[-1] - ordered[0]))
        self.totals.update((total - column[0], 2 * column[0] - total) if len(column) > 2 else ())
        if len(self.columns) < _POOLS:
            self.columns.append(list(dict.fromkeys(column))[:_POOL])


def parsed(text: str) -> Any:
    """Parse a text as JSON, or its lines as rows of a table or list. Return None otherwise."""
    if text.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            pass
    lines = [line.strip() for line in text.splitlines()[: _ROWS + 1] if line.strip() and not set(line) <= set("|-: +=")]
    if len(lines) < 2:
        return None
    table = _table(lines)
    if table is not None:
        return table
    if lines[0].startswith("{"):
        return [row for line in lines if (row := parsed(line)) is not None]
    marked = [line for line in lines if line[:1] in "-*•" or line[:1].isdigit()]
    return marked if len(marked) > 1 else lines


def _table(lines: list[str]) -> list[dict[str, str]] | None:
    for mark in ("\t", "|", ";", ","):
        head, *rows = [[cell.strip() for cell in line.strip("|").split(mark)] for line in lines]
        if len(head) > 1 and all(len(row) == len(head) for row in rows):
            return [dict(zip(head, row, strict=True)) for row in rows]
    return None


def _is_number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and abs(value) < 1e15


def _number(value: Any) -> float | None:
    if _is_number(value):
        return float(value)
    if isinstance(value, str) and 0 < len(value) <= 16 and value[-1].isdigit():
        try:
            number = float(value.lstrip("$€£ "))
        except ValueError:
            return None
        return number if abs(number) < 1e15 else None
    return None


_OPERAND = re.compile(r"[0-9]+(?:[.,][0-9]+)*")
_DIGIT_GROUPS = re.compile(r"(?<=[0-9])[ \u00a0\u202f](?=[0-9]{3}(?![0-9]))")
_DAY = re.compile(r"[0-9]{1,2}[./][0-9]{1,2}\.(?![0-9])|[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:\.[0-9]+)?)?")
_YEAR = re.compile(r"(?<![0-9.,])(?:19|20)[0-9]{2}(?![0-9]|[.,][0-9]| ?[€$£₽]| ?(?:EUR|USD|PLN|kWh|kg|km)\b)")


def without_moments(text: str) -> str:
    """Replace the dates, times of day and years of a text with spaces."""
    signs = list(text)
    for start, end in {(each.start, each.end) for each in chain(dates_in(text), clocks_in(text))}:
        if _OPERAND.fullmatch(text, start, end) is None or text.count(".", start, end) != 1:  # 17.50 is usually a price
            signs[start:end] = " " * (end - start)
    text = "".join(signs)
    return _YEAR.sub("    ", _DAY.sub(lambda found: " " * len(found.group()), text))


def operands_of(line: str) -> list[float]:
    """Return the numbers of a line that can be operands.

    Dates, times and numbers in a label before a colon are left out.
    """
    if not any(map(str.isdigit, line)):
        return []
    label, colon, value = line.partition(":")
    if colon and _OPERAND.search(value) is not None and label.rstrip()[-1:].isdigit():
        line = value
    line = _DIGIT_GROUPS.sub("", line)
    found: list[float] = []
    for token in _OPERAND.finditer(line):
        before = line[max(0, token.start() - 1) : token.start()]
        if not (before.isalpha() and before.isascii()):
            found += [value for readings in _readings(token.group())[:1] for value, _ in readings]
    return found


def holds(
    candidates: Sequence[float],
    readings: Iterable[tuple[float, float]],
    chance: float = CHANCE,
    point: float = 0.0,
    others: Iterable[Sequence[float]] = (),
) -> bool:
    """Return True if a candidate matches the number and a match by chance is unlikely.

    ``candidates`` are sorted. ``point`` is the size of one percent if the number is a percentage. ``others`` are candidates that
    were tried before, which count half.
    """
    for signed, half in readings:
        value = abs(signed)
        if not value or not near(candidates, value, half):
            continue
        low, high = value / 2, value * 2
        if point:
            low, high = max(0.0, value - _POINTS * point), value + _POINTS * point
        rivals = _between(candidates, low, high) + sum(_between(other, low, high) for other in others) / 2
        if (rivals * 2 * half) / (high - low) <= chance:
            return True
    return False


def _between(values: Sequence[float], low: float, high: float) -> int:
    return bisect_right(values, high) - bisect_left(values, low)


def near(values: Sequence[float], value: float, half: float, error: float = 1e-12) -> bool:
    """Return True if one of the sorted values, rounded to the shown digits, is this value.

    Args:
        values: sorted.
        value: the shown value.
        half: half a unit of its last digit.
        error: relative error of calculated values.
    """
    slack = half * (1 + 1e-9) + abs(value) * error
    at = bisect_left(values, value - slack)
    return at < len(values) and values[at] <= value + slack


def tiers(mixed: Sequence[Sequence[float]], alike: Sequence[Sequence[float]] = ()) -> Iterator[list[float]]:
    """Yield the sorted results of each tier.

    The tiers are sums and differences, products and ratios, shares, amounts per period, and results of three operands. ``alike``
    are numbers of the same kind, which nobody multiplies and divides with each other.
    """
    pools = [*mixed, *alike]
    yield _distinct(result for pool in pools for result in _sums(pool))
    yield _distinct(result for pool in pools for result in _products(pool))
    yield _distinct(result for pool in pools for result in _shares(pool))
    yield _distinct(value for pool in pools for a in pool if a >= 1 for value in (a * 12, a / 12, a * 52, a * 7, a / 7, a * 365))
    yield _distinct(result for pool in mixed if len(pool) <= _TRIPLES for result in _threes(pool))


class Tiers:
    """A lazy form of :func:`tiers` for many numbers, which computes each tier only once."""

    def __init__(self, pools: Sequence[Sequence[float]], alike: Sequence[Sequence[float]] = (), most: int = 5) -> None:
        self._known: list[list[float]] = []
        self._rest = islice(tiers(pools, alike), most)

    def __iter__(self) -> Iterator[list[float]]:
        at = 0
        while True:
            if at == len(self._known):
                following = next(self._rest, None)
                if following is None:
                    return
                self._known.append(following)
            yield self._known[at]
            at += 1


def _distinct(values: Iterable[float]) -> list[float]:
    return sorted({abs(value) for value in values})


def _sums(pool: Sequence[float]) -> Iterator[float]:
    for i, a in enumerate(pool):
        for b in pool[i + 1 :]:
            yield a + b
            yield a - b


def _products(pool: Sequence[float]) -> Iterator[float]:
    for i, a in enumerate(pool):
        for b in pool[i + 1 :]:
            yield a * b
            if a and b:
                yield a / b
                yield b / a


def _shares(pool: Sequence[float]) -> Iterator[float]:
    for a in pool:
        for b in pool:
            if not a or a == b:
                continue
            yield (b - a) / a
            yield 1 - b / a
            if 0 < b <= 100:
                yield a / (b * b)
                yield from (a * b / 100, a * (1 - b / 100), a * (1 + b / 100), a / (1 + b / 100), a - a / (1 + b / 100))
            if 0 < b < 1:
                yield from (a * (1 - b), a * (1 + b))


def _threes(pool: Sequence[float]) -> Iterator[float]:
    for i, a in enumerate(pool):
        for j, b in enumerate(pool):
            for k, c in enumerate(pool):
                if i < j and k not in (i, j):
                    yield from (a + b + c, a + b - c, (a + b) * c, a * b * c, a * b + c, a * b - c, (a - b) * c)
                    if 0 < c <= 100:
                        yield from (
                            a * b * c / 100,
                            a * b * (1 - c / 100),
                            a * b * (1 + c / 100),
                            (a + b) * c / 100,
                            (a - b) * c / 100,
                        )
                        yield from ((a + b) * (1 - c / 100), (a + b) * (1 + c / 100))
                    if c:
                        yield from (a * b / c, (a + b) / c, (a - b) / c)
