"""Search for what sets bad turns apart from the rest: facts, and pairs of facts, that are more frequent among the bad ones.

A fact is a value of an attribute of a turn, such as ``model = gpt-5`` or ``duration_s > 12``. Turns are weighted by how many
turns they stand for, and the turns of a conversation count as one draw. Each share is turned into a number of independent
turns with the same variance, for which Fisher's exact test holds. Of the reported facts, at most a share ``error`` is
expected to differ by chance (Benjamini and Hochberg 1995). Intervals have the matching coverage (Benjamini and Yekutieli 2005).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .intervals import Interval, wilson
from .tests import log_choose

ERROR = 0.02
FEW = 30
"""Number of bad turns below which a finding is marked as based on few turns."""
_MOST_FACTS = 400
_MOST_IN_PAIRS = 60
_MOST_FOUND = 10
_LEAST_TURNS = 3
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
_FEW_VALUES = 6  # numbers with at most this many values are compared by value
_SAME = 0.95
_RELIABLE = 15  # draws with and without a fact from which their variance is known well enough
_EXPLAINED = 0.01
_NORMAL = NormalDist()

Value = str | float | bool | Collection[str] | None


class TurnFact(NamedTuple):
    """A value of an attribute. ``value`` begins with ``>`` or ``≤`` if the fact is a range of numbers."""

    attribute: str
    value: str

    def __str__(self) -> str:
        return f"{self.attribute} {self.value}" if self.value[:1] in ">≤" else f"{self.attribute} = {self.value}"


@dataclass(slots=True)
class Contrast:
    """A fact or a pair of facts that is more frequent among bad turns."""

    facts: tuple[TurnFact, ...]
    bad: float
    """Share among the bad turns, weighted."""
    rest: float
    """Share among the other turns, weighted."""
    interval: Interval
    """Interval of ``bad - rest``."""
    p: float
    """p value, corrected for the number of facts."""
    turns: tuple[int, int]
    """Number of bad turns and of other turns with the facts."""
    also: list[TurnFact] = field(default_factory=list)
    """Facts that hold for nearly the same turns."""
    effect: bool = False
    """True if the failure itself can have caused the fact."""

    @property
    def few(self) -> bool:
        """True if fewer than :data:`FEW` bad turns have the facts."""
        return self.turns[0] < FEW

    @property
    def summary(self) -> str:
        few = ", few turns" if self.few else ""
        return f"{self} ({self.bad * 100:.3g} % of failed, {self.rest * 100:.3g} % of passed turns{few})"

    def __str__(self) -> str:
        return " and ".join(map(str, self.facts))


@dataclass(slots=True)
class Differences:
    bad: int
    rest: int
    findings: list[Contrast]
    """Possible effects last, then the largest difference first, by the lower end of the interval. Facts that a finding before
    them explains are left out."""
    tested: int
    same: list[TurnFact] = field(default_factory=list)
    """Facts of nearly the same turns as the bad ones, if the bad turns are ``selected`` by their facts."""


class _Shares(NamedTuple):
    """Two shares as ``(with the fact, all)``, in independent turns."""

    bad: tuple[float, float]
    rest: tuple[float, float]


def find_differences(
    turns: Sequence[Mapping[str, Value]],
    bad: Sequence[bool],
    *,
    weights: Sequence[float] | None = None,
    draws: Sequence[Hashable] | None = None,
    effects: Collection[str] = (),
    error: float = ERROR,
    selected: bool = False,
) -> Differences:
    """Find the facts, and pairs of facts of which each matters if the other one holds, that set bad turns apart.

    Args:
        turns: the attributes of each turn. A collection of names is one fact per name. Numbers are cut at quantiles.
        bad: True for each bad turn.
        weights: the number of turns that each turn stands for, which is 1 / inclusion probability. The default is 1.
        draws: what was drawn together, such as the conversation of each turn. By default, each turn is a draw.
        effects: attributes that a failure itself can change. They explain no other fact away, and are in no pair.
        error: largest expected share of findings that differ by chance.
        selected: True if the bad turns are a selection by other facts. Facts of nearly the same turns are then no findings.
    """
    is_bad = np.asarray(bad, dtype=bool)
    counts = int(is_bad.sum()), int((~is_bad).sum())
    if min(counts) < _LEAST_TURNS:
        return Differences(*counts, [], 0)
    search = _Search(turns, is_bad, weights, draws, effects)
    same = search.leave_out_same() if selected else []
    tested = zip(search.facts, search.has, strict=True)
    singles: dict[tuple[TurnFact, ...], float] = {(fact,): _p(search.shares(has)) for fact, has in tested}
    both = search.pairs()
    share = error / 2 if both else error
    found = [*search.significant(singles, share), *search.significant(both, share)]
    found.sort(key=lambda one: (one.effect, -one.interval[0], len(one.facts), one.facts))
    kept: list[Contrast] = []
    sets: list[Any] = []
    for one in found:
        has = search.rows_with(one.facts)
        if len(kept) < _MOST_FOUND and (not sets or search.p_within(has, sets) <= _EXPLAINED):
            kept.append(one)
            sets.append(has)
    return Differences(*counts, kept, len(singles) + len(both), same)


class _Search:
    def __init__(
        self,
        turns: Sequence[Mapping[str, Value]],
        bad: Any,
        weights: Sequence[float] | None,
        draws: Sequence[Hashable] | None,
        effects: Collection[str],
    ) -> None:
        order = np.arange(len(turns))
        if draws is not None:  # the turns of a draw follow each other
            numbers: dict[Hashable, int] = {}
            drawn = np.fromiter((numbers.setdefault(one, len(numbers)) for one in draws), dtype=np.int64, count=len(turns))
            order = np.argsort(drawn, kind="stable")
            drawn = drawn[order]
            self.draw = np.flatnonzero(np.r_[True, drawn[1:] != drawn[:-1]])
        else:
            self.draw = order
        self.alone = len(self.draw) == len(turns)
        self.draw_of = np.repeat(np.arange(len(self.draw)), np.diff(np.r_[self.draw, len(turns)]))
        self.bad = bad[order]
        self.weights = np.ones(len(turns)) if weights is None else np.asarray(weights, dtype=float)[order]
        self.facts, self.has, self.aliases = _facts(turns, order, self.bad, effects)
        self.effects = effects
        self.places = {fact: at for at, fact in enumerate(self.facts)}

    def leave_out_same(self) -> list[TurnFact]:
        """Leave out the facts of nearly the same turns as the bad ones, and return them."""
        same = (self.has & self.bad).sum(1) >= _SAME * (self.has | self.bad).sum(1)
        found = [
            other for fact, is_same in zip(self.facts, same, strict=True) if is_same for other in (fact, *self.aliases[fact])
        ]
        self.facts = [fact for fact, is_same in zip(self.facts, same, strict=True) if not is_same]
        self.has = self.has[~same]
        self.places = {fact: at for at, fact in enumerate(self.facts)}
        return found

    def rows_with(self, facts: tuple[TurnFact, ...]) -> Any:
        return np.logical_and.reduce([self.has[self.places[fact]] for fact in facts])

    def shares(self, has: Any, among: Any = None) -> _Shares:
        """Return the shares of a fact among the bad turns and the others, of all turns or of some."""
        sides = []
        for of in (self.bad, ~self.bad):
            side = of if among is None else of & among
            weights = self.weights[side]
            x = has[side]
            if self.alone:
                in_draw, with_fact = weights, weights * x
            else:
                of_draw = self.draw_of[side]
                of_draw = of_draw - of_draw[0] if len(of_draw) else of_draw
                in_draw, with_fact = np.bincount(of_draw, weights), np.bincount(of_draw, weights * x)
            sides.append(_as_independent(in_draw, with_fact))
        return _Shares(*sides)

    def pairs(self) -> dict[tuple[TurnFact, ...], float]:
        """Return the p value of each pair: the larger one of each fact's p values where the other fact holds."""
        places = [at for at, fact in enumerate(self.facts) if fact.attribute not in self.effects][:_MOST_IN_PAIRS]
        chosen, names = self.has[places], [self.facts[at] for at in places]
        weighted = chosen * self.weights
        with_bad, with_rest = (
            weighted[:, side].astype(np.float32) @ chosen[:, side].T.astype(np.float32) for side in (self.bad, ~self.bad)
        )
        found: dict[tuple[TurnFact, ...], float] = {}
        for i, j in zip(*np.triu_indices(len(chosen), 1), strict=True):
            facts = names[i], names[j]
            if facts[0].attribute == facts[1].attribute or not with_bad[i, j]:
                continue
            found[facts] = 1.0
            # Cheap first: within each fact, the other one must be more frequent among the bad turns.
            if (
                all(
                    with_bad[i, j] * with_rest[k, k] > with_rest[i, j] * with_bad[k, k]
                    and _may_differ(with_bad[i, j], with_bad[k, k], with_rest[i, j], with_rest[k, k])
                    for k in (i, j)
                )
                and np.count_nonzero(chosen[i] & chosen[j] & self.bad) >= _LEAST_TURNS
            ):
                found[facts] = max(_p(self.shares(chosen[j], chosen[i])), _p(self.shares(chosen[i], chosen[j])))
        return found

    def significant(self, ps: Mapping[tuple[TurnFact, ...], float], error: float) -> Iterator[Contrast]:
        """Yield the findings among tested facts, with intervals that fit the number of findings."""
        adjusted = _benjamini_hochberg(list(ps.values()))
        passing = [(facts, p) for facts, p in zip(ps, adjusted, strict=True) if p <= error]
        z = _NORMAL.inv_cdf(1 - error * len(passing) / max(len(ps), 1) / 2) if passing else 0.0
        for facts, p in passing:
            has = self.rows_with(facts)
            table = self.shares(has)
            (x, n), (y, m) = table
            turns = int(np.count_nonzero(has & self.bad)), int(np.count_nonzero(has & ~self.bad))
            also = [other for fact in facts for other in self.aliases[fact]]
            effect = facts[0].attribute in self.effects
            yield Contrast(facts, x / n, y / m, _difference(table, z), p, turns, also, effect)

    def p_within(self, has: Any, sets: Sequence[Any]) -> float:
        """Return the p value of a fact among turns that agree in which of the sets they belong to."""
        stratum = np.zeros(len(has), dtype=np.int64)
        for at, other in enumerate(sets):
            stratum |= other.astype(np.int64) << at
        _, stratum = np.unique(stratum, return_inverse=True)
        of = np.bincount(stratum, self.weights)
        mean_bad = np.bincount(stratum, self.weights * self.bad) / of
        mean_has = np.bincount(stratum, self.weights * has) / of
        terms = self.weights * (self.bad - mean_bad[stratum]) * (has - mean_has[stratum])
        sums = np.bincount(self.draw_of, terms)
        spread = math.sqrt(float((sums**2).sum()))
        return 1 - _NORMAL.cdf(float(sums.sum()) / spread) if spread else 1.0


def _as_independent(in_draw: Any, with_fact: Any) -> tuple[float, float]:
    """Return a share as ``(with the fact, all)`` of independent turns that would have its variance."""
    total = float(in_draw.sum())
    if not total:
        return 0.0, 0.0
    share = float(with_fact.sum()) / total
    n = total**2 / float((in_draw**2).sum())
    variance = float(((with_fact - share * in_draw) ** 2).sum()) / total**2
    if variance > 0:
        by_variance = share * (1 - share) / variance
        reliable = min(np.count_nonzero(with_fact), np.count_nonzero(with_fact < in_draw)) >= _RELIABLE
        n = by_variance if reliable else min(n, by_variance)
    return share * n, n


def _p(table: _Shares) -> float:
    """Return Fisher's one-sided p value that a fact is as frequent among the rest as among the bad turns."""
    (x, n), (y, m) = table
    if not n or not m or x * m <= y * n or x < _LEAST_TURNS - 1e-6:
        return 1.0
    # Parts of turns are rounded against a difference.
    x, n, y, m = math.floor(x + 1e-6), math.floor(n + 1e-6), math.ceil(y - 1e-6), math.floor(m + 1e-6)
    if not n or not m:
        return 1.0
    with_fact = x + min(y, m)
    whole = log_choose(n + m, with_fact)
    p, term = 0.0, math.exp(log_choose(n, x) + log_choose(m, with_fact - x) - whole)
    for i in range(x, min(n, with_fact) + 1):
        p += term
        if term < 1e-12 * p:
            break
        term *= (n - i) * (with_fact - i) / ((i + 1) * (m - with_fact + i + 1))
    return min(1.0, p)


def _may_differ(x: float, n: float, y: float, m: float) -> bool:
    """Return False if a difference of two shares is below two standard errors, even if all turns were independent."""
    share = (x + y) / (n + m)
    return bool((x / n - y / m) ** 2 > 4 * share * (1 - share) * (1 / n + 1 / m))


def _difference(table: _Shares, z: float) -> Interval:
    """Return Newcombe's interval of the difference of two shares."""
    (x, n), (y, m) = table
    p, q = x / n, y / m
    (p_low, p_high), (q_low, q_high) = wilson(x, n, z), wilson(y, m, z)
    return max(-1.0, p - q - math.hypot(p - p_low, q_high - q)), min(1.0, p - q + math.hypot(p_high - p, q - q_low))


def _benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    adjusted, least = [1.0] * len(ps), 1.0
    for rank, at in sorted(enumerate(sorted(range(len(ps)), key=lambda i: ps[i]), 1), reverse=True):
        least = min(least, ps[at] * len(ps) / rank)
        adjusted[at] = least
    return adjusted


# --- facts ---------------------------------------------------------------------------------------------------------


def _facts(
    turns: Sequence[Mapping[str, Value]], order: Any, bad: Any, effects: Collection[str]
) -> tuple[list[TurnFact], Any, dict[TurnFact, list[TurnFact]]]:
    """Return the facts of some bad turns, the most frequent first, which turns have them, and the facts of the same turns."""
    places, numbers = _places(turns, order)
    columns: dict[TurnFact, Any] = {}
    for fact, rows in places.items():
        if len(rows) >= _LEAST_TURNS:
            columns[fact] = _column(len(turns), rows)
    for attribute, known in numbers.items():
        at, values = np.array([row for row, _ in known]), np.array([value for _, value in known])
        for text, chosen in _ranges(values):
            columns[TurnFact(attribute, text)] = _column(len(turns), at[chosen])
    support = Counter({fact: int(np.count_nonzero(has & bad)) for fact, has in columns.items() if not has.all()})
    facts = [fact for fact, count in support.most_common(_MOST_FACTS) if count >= _LEAST_TURNS]
    # Of the same turns, a cause explains more than an effect, and a name more than a number.
    facts.sort(key=lambda fact: (fact.attribute in effects, fact.attribute in numbers))
    has = np.array([columns[fact] for fact in facts]).reshape(len(facts), len(turns))
    same = _same_turns(has)
    aliases: dict[TurnFact, list[TurnFact]] = {}
    for fact, first in zip(facts, same, strict=True):
        aliases.setdefault(facts[first], []).extend([fact] if fact != facts[first] else [])
    kept = sorted(set(same), key=lambda first: -support[facts[first]])
    return [facts[first] for first in kept], has[kept], aliases


def _same_turns(has: Any) -> list[int]:
    """Return for each fact the first one that holds for nearly the same turns, which may be itself."""
    both = has.astype(np.float32) @ has.T.astype(np.float32)
    sizes = np.diag(both)
    alike = both >= _SAME * (sizes[:, None] + sizes - both)
    first: list[int] = []
    for at in range(len(has)):
        first.append(next((other for other in range(at) if alike[at, other] and first[other] == other), at))
    return first


def _places(
    turns: Sequence[Mapping[str, Value]], order: Any
) -> tuple[dict[TurnFact, list[int]], dict[str, list[tuple[int, float]]]]:
    """Return the rows with each name, and the rows and values of each number."""
    places: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    numbers: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for row, place in enumerate(order):
        for attribute, value in turns[place].items():
            kind = value.__class__
            if kind is str:
                places[attribute, value].append(row)
            elif kind is float or kind is int:
                numbers[attribute].append((row, value))
            elif isinstance(value, bool):
                places[attribute, "yes" if value else "no"].append(row)
            else:
                for name in value or ():
                    places[attribute, name].append(row)
    return {TurnFact(*fact): rows for fact, rows in places.items()}, numbers


def _column(length: int, rows: Any) -> Any:
    column = np.zeros(length, dtype=bool)
    column[rows] = True
    return column


def _ranges(values: Any) -> Iterator[tuple[str, Any]]:
    """Yield ranges of numbers, each with the places of the values in it."""
    distinct = np.unique(values)
    if len(distinct) <= _FEW_VALUES:
        for value in distinct:
            yield f"{value:.6g}", values == value
        return
    for quantile, exact in zip(_QUANTILES, np.quantile(values, _QUANTILES), strict=True):
        cut = float(f"{exact:.3g}")
        if quantile >= 0.5:
            yield f"> {cut:g}", values > cut
        if quantile <= 0.5:
            yield f"≤ {cut:g}", values <= cut
