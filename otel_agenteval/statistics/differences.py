"""Search for facts, and pairs of facts, that are more frequent among bad turns than among other turns.

A fact is the value of a turn's attribute, such as ``model = gpt-5`` or ``duration_s > 12``. A sampled turn counts for all the turns
that it represents. Turns of one conversation aren't independent, but Fisher's exact test requires independent turns. Each share is
therefore converted to a number of independent turns with the same variance. The expected share of reported facts that differ only
by chance is at most ``error`` (Benjamini and Hochberg 1995). The intervals are adjusted accordingly (Benjamini and Yekutieli 2005).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from .intervals import Interval, newcombe
from .tests import log_choose

ERROR = 0.02
FEW = 30
"""Findings based on fewer bad turns than this number are marked as uncertain."""
_MAX_FACTS = 400
_MAX_FACTS_IN_PAIRS = 60
_MAX_FINDINGS = 10
_MIN_TURNS = 3
_QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95)
_MAX_VALUES = 6  # numeric attributes with at most this many values are compared by value
_MIN_OVERLAP = 0.95  # two facts have "the same turns" if they share at least this share of their turns
_MIN_DRAWS = 15  # minimum number of draws with a fact, and of draws without it
_MAX_P_WITHIN = 0.01
_NORMAL = NormalDist()

Value = str | float | bool | Collection[str] | None


class TurnFact(NamedTuple):
    """Name and value of a turn's attribute. For a range of numbers, ``value`` begins with ``>`` or ``≤``."""

    attribute: str
    value: str

    def __str__(self) -> str:
        return f"{self.attribute} {self.value}" if self.value[:1] in ">≤" else f"{self.attribute} = {self.value}"


@dataclass(slots=True)
class Contrast:
    facts: tuple[TurnFact, ...]
    bad: float
    """Weighted share of the bad turns to which the facts apply."""
    rest: float
    """Weighted share of the other turns to which the facts apply."""
    interval: Interval
    p: float
    turns: tuple[int, int]
    also: list[TurnFact] = field(default_factory=list)
    effect: bool = False
    """True if the fact, such as a long duration, can be a consequence of the failure."""

    @property
    def few(self) -> bool:
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
    """Findings by descending lower end of the interval, with effects last. Findings that earlier findings explain are omitted."""
    tested: int
    same: list[TurnFact] = field(default_factory=list)
    """Facts that apply to nearly the same turns as ``bad``. Empty unless ``selected`` was passed to :func:`find_differences`."""


class _Table(NamedTuple):
    """Pairs ``(turns with a fact, all turns)`` for bad turns and for the rest, as numbers of independent turns."""

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
    """Find facts, and pairs of facts, that are more frequent among bad turns than among other turns.

    Args:
        turns: the attributes of each turn. In a collection of names, each name is a fact. Many different numbers become ranges (``> 12``).
        bad: True for each bad turn.
        weights: the number of turns that each turn represents, which is 1 / inclusion probability. The default is 1.
        draws: the sampling unit of each turn, such as its conversation. By default, each turn is a unit.
        effects: attributes that a failure itself can change. Their facts don't form pairs, and hide only findings about other effects.
        error: the maximum expected share of findings that differ only by chance.
        selected: True if ``bad`` marks a chosen group or run. Facts that apply to nearly the same turns are then moved to ``same``.
    """
    is_bad = np.asarray(bad, dtype=bool)
    counts = int(is_bad.sum()), int((~is_bad).sum())
    if min(counts) < _MIN_TURNS:
        return Differences(*counts, [], 0)
    search = _Search(turns, is_bad, weights, draws, effects)
    same_as_bad = search.leave_out_same() if selected else []
    tested = zip(search.facts, search.has_fact, strict=True)
    p_of_single: dict[tuple[TurnFact, ...], float] = {(fact,): _fisher_p(search.table_of(has_fact)) for fact, has_fact in tested}
    p_of_pair = search.pairs()
    error_of_each = error / 2 if p_of_pair else error
    significant = [*search.significant(p_of_single, error_of_each), *search.significant(p_of_pair, error_of_each)]
    significant.sort(key=lambda finding: (finding.effect, -finding.interval[0], len(finding.facts), finding.facts))
    findings: list[Contrast] = []
    explaining: list[Any] = []
    for finding in significant:
        has_facts = search.has_all(finding.facts)
        if len(findings) < _MAX_FINDINGS and (not explaining or search.p_within(has_facts, explaining) <= _MAX_P_WITHIN):
            findings.append(finding)
            explaining.append(has_facts)
    return Differences(*counts, findings, len(p_of_single) + len(p_of_pair), same_as_bad)


class _Search:
    """Facts of all turns. ``has_fact`` has a row per fact and a column per turn. A cell is True if the turn has the fact."""

    def __init__(
        self, turns: Sequence[Mapping[str, Value]], bad: Any, weights: Sequence[float] | None, draws: Sequence[Hashable] | None,
        effects: Collection[str],
    ) -> None:  # fmt: skip
        order = np.arange(len(turns))
        if draws is not None:  # so that turns of a draw are neighbors
            numbers: dict[Hashable, int] = {}
            number_of_turn = np.fromiter((numbers.setdefault(draw, len(numbers)) for draw in draws), np.int64, len(turns))
            order = np.argsort(number_of_turn, kind="stable")
            number_of_turn = number_of_turn[order]
            self.first_of_draw = np.flatnonzero(np.r_[True, number_of_turn[1:] != number_of_turn[:-1]])
        else:
            self.first_of_draw = order
        self.draws_are_turns = len(self.first_of_draw) == len(turns)
        self.draw_of_turn = np.repeat(np.arange(len(self.first_of_draw)), np.diff(np.r_[self.first_of_draw, len(turns)]))
        self.bad = bad[order]
        self.weights = np.ones(len(turns)) if weights is None else np.asarray(weights, dtype=float)[order]
        self.facts, self.has_fact, self.aliases = _facts(turns, order, self.bad, effects)
        self.effects = effects
        self.row_of = {fact: row for row, fact in enumerate(self.facts)}

    def leave_out_same(self) -> list[TurnFact]:
        """Remove and return the facts that apply to nearly the same turns as the bad turns."""
        is_same = (self.has_fact & self.bad).sum(1) >= _MIN_OVERLAP * (self.has_fact | self.bad).sum(1)
        same = [self.facts[row] for row in np.flatnonzero(is_same)]
        self.facts = [self.facts[row] for row in np.flatnonzero(~is_same)]
        self.has_fact = self.has_fact[~is_same]
        self.row_of = {fact: row for row, fact in enumerate(self.facts)}
        return [alias for fact in same for alias in (fact, *self.aliases[fact])]

    def has_all(self, facts: tuple[TurnFact, ...]) -> Any:
        return np.logical_and.reduce([self.has_fact[self.row_of[fact]] for fact in facts])

    def table_of(self, has_fact: Any, among: Any = None) -> _Table:
        """Return counts of independent turns, with the fact and in total, for bad and other turns. ``among`` limits the turns."""
        counts = []
        for side in (self.bad, ~self.bad):
            in_side = side if among is None else side & among
            weights = self.weights[in_side]
            weights_with_fact = weights * has_fact[in_side]
            if not self.draws_are_turns:  # add up each draw
                draws = self.draw_of_turn[in_side]
                draws = draws - draws[0] if len(draws) else draws
                weights, weights_with_fact = np.bincount(draws, weights), np.bincount(draws, weights_with_fact)
            counts.append(_as_independent(weights, weights_with_fact))
        return _Table(*counts)

    def pairs(self) -> dict[tuple[TurnFact, ...], float]:
        """Return each pair's p-value: the larger p-value of two tests, each of one fact among turns with the other fact."""
        facts = [fact for fact in self.facts if fact.attribute not in self.effects][:_MAX_FACTS_IN_PAIRS]
        has_fact = self.has_fact[[self.row_of[fact] for fact in facts]]
        weighted = has_fact * self.weights
        # weight of the turns with both facts i and j, for each i and j
        bad, rest = (
            weighted[:, side].astype(np.float32) @ has_fact[:, side].T.astype(np.float32) for side in (self.bad, ~self.bad)
        )
        ps: dict[tuple[TurnFact, ...], float] = {}
        for i, j in zip(*np.triu_indices(len(facts), 1), strict=True):
            if facts[i].attribute == facts[j].attribute or not bad[i, j]:
                continue
            p = 1.0
            # Cheap first: within each fact, the other fact must be more frequent among the bad turns.
            may_matter = all(
                bad[i, j] * rest[k, k] > rest[i, j] * bad[k, k] and _may_differ(bad[i, j], bad[k, k], rest[i, j], rest[k, k])
                for k in (i, j)
            )
            if may_matter and np.count_nonzero(has_fact[i] & has_fact[j] & self.bad) >= _MIN_TURNS:
                p_within_i = _fisher_p(self.table_of(has_fact[j], has_fact[i]))
                p = max(p_within_i, _fisher_p(self.table_of(has_fact[i], has_fact[j])))
            ps[facts[i], facts[j]] = p
        return ps

    def significant(self, ps: Mapping[tuple[TurnFact, ...], float], error: float) -> Iterator[Contrast]:
        """Yield the significant findings, with intervals that are corrected for the number of findings."""
        adjusted = _benjamini_hochberg(list(ps.values()))
        passing = [(facts, p) for facts, p in zip(ps, adjusted, strict=True) if p <= error]
        z = _NORMAL.inv_cdf(1 - error * len(passing) / max(len(ps), 1) / 2) if passing else 0.0
        for facts, p in passing:
            has_facts = self.has_all(facts)
            table = self.table_of(has_facts)
            (bad_with, bad_all), (rest_with, rest_all) = table
            turns = int(np.count_nonzero(has_facts & self.bad)), int(np.count_nonzero(has_facts & ~self.bad))
            also = [other for fact in facts for other in self.aliases[fact]]
            is_effect = facts[0].attribute in self.effects
            interval = newcombe(table[1], table[0], z=z)
            yield Contrast(facts, bad_with / bad_all, rest_with / rest_all, interval, p, turns, also, is_effect)

    def p_within(self, has_facts: Any, sets: Sequence[Any]) -> float:
        """Return a finding's one-sided p-value, stratified by earlier findings. ``sets`` has one mask per earlier finding."""
        stratum = np.zeros(len(has_facts), dtype=np.int64)
        for bit, in_set in enumerate(sets):
            stratum |= in_set.astype(np.int64) << bit
        _, stratum = np.unique(stratum, return_inverse=True)
        totals = np.bincount(stratum, self.weights)
        share_bad = np.bincount(stratum, self.weights * self.bad) / totals
        share_with = np.bincount(stratum, self.weights * has_facts) / totals
        terms = self.weights * (self.bad - share_bad[stratum]) * (has_facts - share_with[stratum])
        sums = np.bincount(self.draw_of_turn, terms)
        spread = math.sqrt(float((sums**2).sum()))
        return 1 - _NORMAL.cdf(float(sums.sum()) / spread) if spread else 1.0


def _as_independent(weights: Any, weights_with_fact: Any) -> tuple[float, float]:
    """Return the numbers of independent turns ``(with the fact, all)`` with the same share and variance as the weighted draws."""
    total = float(weights.sum())
    if not total:
        return 0.0, 0.0
    share = float(weights_with_fact.sum()) / total
    n = total**2 / float((weights**2).sum())
    variance = float(((weights_with_fact - share * weights) ** 2).sum()) / total**2
    if variance > 0:
        n_by_variance = share * (1 - share) / variance
        is_reliable = min(np.count_nonzero(weights_with_fact), np.count_nonzero(weights_with_fact < weights)) >= _MIN_DRAWS
        n = n_by_variance if is_reliable else min(n, n_by_variance)
    return share * n, n


def _fisher_p(table: _Table) -> float:
    """Return Fisher's one-sided p-value. With too few turns, or if the fact isn't more frequent among bad turns, return 1."""
    (x, n), (y, m) = table
    if not n or not m or x * m <= y * n or x < _MIN_TURNS - 1e-6:
        return 1.0
    # Fractions of turns are rounded so that the difference gets smaller.
    x, n, y, m = math.floor(x + 1e-6), math.floor(n + 1e-6), math.ceil(y - 1e-6), math.floor(m + 1e-6)
    if not n or not m:
        return 1.0
    with_fact = x + min(y, m)
    all_tables = log_choose(n + m, with_fact)
    p, term = 0.0, math.exp(log_choose(n, x) + log_choose(m, with_fact - x) - all_tables)
    for bad_with in range(x, min(n, with_fact) + 1):
        p += term
        if term < 1e-12 * p:
            break
        term *= (n - bad_with) * (with_fact - bad_with) / ((bad_with + 1) * (m - with_fact + bad_with + 1))
    return min(1.0, p)


def _may_differ(x: float, n: float, y: float, m: float) -> bool:
    """Return False if the shares ``x / n`` and ``y / m`` differ by at most two standard errors."""
    share = (x + y) / (n + m)
    return bool((x / n - y / m) ** 2 > 4 * share * (1 - share) * (1 / n + 1 / m))


def _benjamini_hochberg(ps: Sequence[float]) -> list[float]:
    order = np.argsort(ps, kind="stable")
    scaled = np.asarray(ps, dtype=float)[order] * len(ps) / np.arange(1, len(ps) + 1)
    adjusted = np.empty(len(ps))
    adjusted[order] = np.minimum.accumulate(np.append(scaled, 1.0)[::-1])[:0:-1]
    return adjusted.tolist()  # type: ignore[no-any-return]


# --- facts ---------------------------------------------------------------------------------------------------------


def _facts(
    turns: Sequence[Mapping[str, Value]], order: Any, bad: Any, effects: Collection[str]
) -> tuple[list[TurnFact], Any, dict[TurnFact, list[TurnFact]]]:
    """Return the bad turns' most frequent facts, a mask of the turns with each fact, and the aliases of each fact.

    Aliases of a fact are other facts that apply to nearly the same turns.
    """
    turns_of_name, numbers = _names_and_numbers(turns, order)
    has_by_fact: dict[TurnFact, Any] = {}
    for fact, indices in turns_of_name.items():
        if len(indices) >= _MIN_TURNS:
            has_by_fact[fact] = _mask(len(turns), indices)
    for attribute, pairs in numbers.items():
        with_number, values = np.array([index for index, _ in pairs]), np.array([value for _, value in pairs])
        for text, is_in_range in _ranges(values):
            has_by_fact[TurnFact(attribute, text)] = _mask(len(turns), with_number[is_in_range])
    bad_counts = Counter({fact: int(np.count_nonzero(has & bad)) for fact, has in has_by_fact.items() if not has.all()})
    facts = [fact for fact, count in bad_counts.most_common(_MAX_FACTS) if count >= _MIN_TURNS]
    # If several facts have the same turns, keep the first. Causes come before effects, and names before numbers.
    facts.sort(key=lambda fact: (fact.attribute in effects, fact.attribute in numbers))
    has_fact = np.array([has_by_fact[fact] for fact in facts]).reshape(len(facts), len(turns))
    firsts = _first_of_same_turns(has_fact)
    aliases: dict[TurnFact, list[TurnFact]] = {}
    for fact, first in zip(facts, firsts, strict=True):
        aliases.setdefault(facts[first], []).extend([fact] if fact != facts[first] else [])
    kept = sorted(set(firsts), key=lambda first: -bad_counts[facts[first]])
    return [facts[first] for first in kept], has_fact[kept], aliases


def _first_of_same_turns(has_fact: Any) -> list[int]:
    """For each fact, return the index of the first fact with nearly the same turns, which can be the fact itself."""
    both = has_fact.astype(np.float32) @ has_fact.T.astype(np.float32)
    sizes = np.diag(both)
    are_same = both >= _MIN_OVERLAP * (sizes[:, None] + sizes - both)
    firsts: list[int] = []
    for index in range(len(has_fact)):
        firsts.append(next((first for first in range(index) if are_same[index, first] and firsts[first] == first), index))
    return firsts


def _names_and_numbers(
    turns: Sequence[Mapping[str, Value]], order: Any
) -> tuple[dict[TurnFact, list[int]], dict[str, list[tuple[int, float]]]]:
    """Map each non-numeric fact to its turns, and each numeric attribute to (turn, value). A turn is an index in ``order``."""
    turns_of_name: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    numbers: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
    for index, place in enumerate(order):
        for attribute, value in turns[place].items():
            kind = value.__class__
            if kind is str:
                turns_of_name[attribute, value].append(index)
            elif kind is float or kind is int:
                numbers[attribute].append((index, value))
            elif isinstance(value, bool):
                turns_of_name[attribute, "yes" if value else "no"].append(index)
            else:
                for name in value or ():
                    turns_of_name[attribute, name].append(index)
    return {TurnFact(*fact): indices for fact, indices in turns_of_name.items()}, numbers


def _mask(length: int, indices: Any) -> Any:
    mask = np.zeros(length, dtype=bool)
    mask[indices] = True
    return mask


def _ranges(values: Any) -> Iterator[tuple[str, Any]]:
    """Yield ranges such as ``> 12``, each with a mask of its values. For few distinct values, yield single values instead."""
    distinct = np.unique(values)
    if len(distinct) <= _MAX_VALUES:
        for value in distinct:
            yield f"{value:.12g}", values == value
        return
    for quantile, exact in zip(_QUANTILES, np.quantile(values, _QUANTILES), strict=True):
        cut = float(f"{exact:.3g}")
        if quantile >= 0.5:
            yield f"> {cut:g}", values > cut
        if quantile <= 0.5:
            yield f"≤ {cut:g}", values <= cut
