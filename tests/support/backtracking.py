"""Texts on which a regular expression may take more than linear time, found in the pattern's syntax tree.

A pattern becomes an automaton without counters: ``{2,80}`` is a loop, and assertions may always match. Assume that a word leads around
a loop, and also into the loop from the start of the search or from another loop. If the rest doesn't match, the engine then tries many
ways to divide the repetitions. This finds all slow patterns, and some fast ones. :mod:`.growth` measures the actual time.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

try:
    from re import _constants as c  # type: ignore[attr-defined]
    from re import _parser as parser  # type: ignore[attr-defined]
except ImportError:  # Python 3.10
    import sre_constants as c  # type: ignore[no-redef]
    import sre_parse as parser  # type: ignore[no-redef]

_ALWAYS = "aB0_ -.,:;\n\t/\\\"'<>(){}[]|@#=+*!?%&$~^`\u00e9\u00a0\u6f22\u0663\x00"
_MOST_PRODUCTS = 60_000
"""Maximum number of states in products of the automaton, per pattern."""
_EXPANDED = 3
"""Maximum number of repetitions that are expanded."""

Edges = list[tuple[int, int]]


class Automaton:
    """States by number. Each state has edges with a set of characters (a bit mask), and edges without a character."""

    def __init__(self, pattern: re.Pattern[Any], *, searched: bool) -> None:
        source = pattern.pattern
        self.is_bytes = isinstance(source, bytes)
        self.flags = pattern.flags
        tree = parser.parse(source, self.flags & ~re.DEBUG)
        found = {code for code in _codes(tree) if code < (256 if self.is_bytes else 0x110000)}
        base = {ord(sign) for sign in _ALWAYS if not self.is_bytes or ord(sign) < 256}
        self.alphabet = [chr(code) for code in sorted(found | base)]
        self.every = (1 << len(self.alphabet)) - 1
        self.edges: list[Edges] = []
        self.free: list[list[int]] = []
        self.start = self._state()
        inner = self._state()
        self.free[self.start].append(inner)
        if searched:
            self.edges[self.start].append((self.every, self.start))
        self.end = self._sequence(tree, inner, self.flags)

    def _state(self) -> int:
        self.edges.append([])
        self.free.append([])
        return len(self.edges) - 1

    def _sequence(self, items: Iterable[Any], at: int, flags: int) -> int:
        for op, argument in items:
            at = self._item(op, argument, at, flags)
        return at

    def _item(self, op: Any, argument: Any, at: int, flags: int) -> int:
        after = self._state()
        if op in (c.LITERAL, c.NOT_LITERAL, c.IN, c.ANY):
            self.edges[at].append((self._mask(op, argument, flags), after))
        elif op is c.BRANCH:
            for branch in argument[1]:
                self.free[self._sequence(branch, at, flags)].append(after)
        elif op is c.SUBPATTERN:
            _, on, off, inner = argument
            self.free[self._sequence(inner, at, (flags | on) & ~off)].append(after)
        elif op in _REPEATS:
            self._repeat(*argument, at, after, flags)
        elif op in (c.ASSERT, c.ASSERT_NOT):
            direction, inner = argument
            if direction > 0:
                self._sequence(inner, at, flags)  # a dead end, but the engine tries it
            self.free[at].append(after)
        elif op is getattr(c, "ATOMIC_GROUP", None):
            self.free[self._sequence(argument, at, flags)].append(after)
        elif op is c.GROUPREF_EXISTS:
            for branch in argument[1:]:
                self.free[self._sequence(branch or (), at, flags)].append(after)
        else:  # an anchor or a back-reference
            self.free[at].append(after)
            if op is c.AT and argument is c.AT_BEGINNING and flags & re.MULTILINE:
                self.edges[at].append((self._mask(c.LITERAL, 10, 0), after))
            if op is c.GROUPREF:
                self.edges[after].append((self.every, after))
        return after

    def _repeat(self, least: int, most: int, inner: Any, at: int, after: int, flags: int) -> None:
        for _ in range(min(least, _EXPANDED)):
            at = self._sequence(inner, at, flags)
        if most <= _EXPANDED:
            for _ in range(least, most):
                self.free[at].append(after)
                at = self._sequence(inner, at, flags)
        else:
            loop = self._state()
            self.free[at].append(loop)
            self.free[self._sequence(inner, loop, flags)].append(loop)
            at = loop
        self.free[at].append(after)

    def _mask(self, op: Any, argument: Any, flags: int) -> int:
        return sum(1 << i for i, sign in enumerate(self.alphabet) if _accepts(op, argument, sign, flags, self.is_bytes))

    def closed(self) -> list[Edges]:
        """Return the edges with characters from each state, including those behind free edges."""
        found: list[Edges] = []
        for state in range(len(self.edges)):
            seen, stack = {state}, [state]
            edges: dict[int, int] = {}
            while stack:
                at = stack.pop()
                for mask, to in self.edges[at]:
                    edges[to] = edges.get(to, 0) | mask
                new = [to for to in self.free[at] if to not in seen]
                seen.update(new)
                stack += new
            found.append([(mask, to) for to, mask in edges.items()])
        return found


_REPEATS = tuple(op for op in (c.MAX_REPEAT, c.MIN_REPEAT, getattr(c, "POSSESSIVE_REPEAT", None)) if op is not None)


def _codes(tree: Any) -> Iterator[int]:
    """Yield the characters in a pattern, the ends of its ranges, and their neighbors."""
    for item in tree:
        if isinstance(item, tuple) and len(item) == 2 and item[0] in (c.LITERAL, c.NOT_LITERAL):
            yield item[1]
        elif isinstance(item, tuple) and len(item) == 2 and item[0] is c.RANGE:
            yield from (item[1][0], item[1][1], item[1][1] + 1)
        elif isinstance(item, (tuple, list, parser.SubPattern)):
            yield from _codes(item)


def _accepts(op: Any, argument: Any, sign: str, flags: int, is_bytes: bool) -> bool:
    if op is c.ANY:
        return sign != "\n" or bool(flags & re.DOTALL)
    if op is c.NOT_LITERAL:
        return not _accepts(c.LITERAL, argument, sign, flags, is_bytes)
    signs = {sign, *(one for one in (sign.lower(), sign.upper()) if len(one) == 1)} if flags & re.IGNORECASE else {sign}
    if op is c.LITERAL:
        return argument in map(ord, signs)
    negated = argument[0][0] is c.NEGATE
    ascii_only = is_bytes or bool(flags & re.ASCII)
    held = any(_holds(kind, value, one, ascii_only) for kind, value in argument[negated:] for one in signs)
    return held is not negated


def _holds(kind: Any, value: Any, sign: str, ascii_only: bool) -> bool:
    if kind is c.LITERAL:
        return bool(ord(sign) == value)
    if kind is c.RANGE:
        return bool(value[0] <= ord(sign) <= value[1])
    name = str(value).rpartition("_")[2].lower()
    code = {"digit": "d", "space": "s", "word": "w"}[name]
    held = re.fullmatch(rf"\{code}", sign, re.ASCII if ascii_only else 0) is not None
    return held is not ("_NOT_" in str(value))


def attacks(pattern: re.Pattern[Any], *, searched: bool = True, most: int = 400) -> list[tuple[str, str, str]]:
    """Return texts that may be slow, as (prefix, repeated text, end)."""
    machine = Automaton(pattern, searched=searched)
    edges = machine.closed()
    ways = _ways_from(machine.start, edges, machine)
    loops = [(q, region) for region in _regions(edges) for q in _doors(region, edges)]
    found: dict[tuple[str, str, str], int] = {}
    budget = [_MOST_PRODUCTS]
    for q, region in loops:
        if q not in ways or q == machine.start:
            continue
        pumps = list(_rounds(q, region, edges, machine))
        if searched:
            pumps += _words((machine.start, q), (q, q), [None, region], edges, machine, budget)
        for p, before in loops:
            if p != machine.start and p in ways and p != q:
                pumps += _words((p, p, q), (p, q, q), [before, None, region], edges, machine, budget)
        ends = _ends(machine, edges, region)
        for pump in dict.fromkeys(pumps):
            for rank, filler in enumerate(("", *_fillers(q, edges, machine))):
                for end in ends:
                    for before_it in dict.fromkeys((ways[q], "") if searched else (ways[q],)):
                        found.setdefault((before_it, pump + filler, end), rank)
    return sorted(found, key=found.__getitem__)[:most]


def _regions(edges: Sequence[Edges]) -> list[frozenset[int]]:
    """Return the strongly connected components that have an edge."""
    index: dict[int, int] = {}
    low: dict[int, int] = {}
    stack: list[int] = []
    on: set[int] = set()
    found: list[frozenset[int]] = []
    for root in range(len(edges)):
        if root in index:
            continue
        work = [(root, iter([to for _, to in edges[root]]))]
        index[root] = low[root] = len(index)
        stack.append(root)
        on.add(root)
        while work:
            at, following = work[-1]
            for to in following:
                if to not in index:
                    index[to] = low[to] = len(index)
                    stack.append(to)
                    on.add(to)
                    work.append((to, iter([more for _, more in edges[to]])))
                    break
                if to in on:
                    low[at] = min(low[at], index[to])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[at])
                if low[at] == index[at]:
                    part = set()
                    while True:
                        one = stack.pop()
                        on.discard(one)
                        part.add(one)
                        if one == at:
                            break
                    if len(part) > 1 or any(to == at for _, to in edges[at]):
                        found.append(frozenset(part))
    return found


def _doors(region: frozenset[int], edges: Sequence[Edges]) -> list[int]:
    """Return some states of a loop as starting points."""
    outside = [to for at, ways in enumerate(edges) if at not in region for _, to in ways if to in region]
    return list(dict.fromkeys([*outside, *sorted(region)]))[:4]


def _first(mask: int, machine: Automaton) -> str:
    """Return a character of a mask, preferably a letter or digit."""
    signs = [sign for i, sign in enumerate(machine.alphabet) if mask >> i & 1]
    return next((sign for sign in signs if sign.isascii() and sign.isalnum()), signs[0])


def _ways_from(start: int, edges: Sequence[Edges], machine: Automaton) -> dict[int, str]:
    """Return the shortest text from a state to each other state."""
    ways = {start: ""}
    queue = deque([start])
    while queue:
        at = queue.popleft()
        for mask, to in edges[at]:
            if to not in ways and mask:
                ways[to] = ways[at] + _first(mask, machine)
                queue.append(to)
    return ways


def _rounds(q: int, region: frozenset[int], edges: Sequence[Edges], machine: Automaton) -> Iterator[str]:
    """Yield texts that lead once around a loop, one text per first step."""
    inside = [[(mask, to) for mask, to in ways if at in region and to in region] for at, ways in enumerate(edges)]
    for mask, to in inside[q][:8]:
        if not mask:
            continue
        back = _ways_from(to, inside, machine)
        if q in back:
            yield _first(mask, machine) + back[q]


def _words(
    begin: tuple[int, ...],
    goal: tuple[int, ...],
    within: Sequence[frozenset[int] | None],
    edges: Sequence[Edges],
    machine: Automaton,
    budget: list[int],
) -> list[str]:
    """Return the shortest text that leads from several states to others at the same time, each within its region."""
    seen: dict[tuple[int, ...], str] = {begin: ""}
    queue = deque([begin])
    while queue and budget[0] > 0:
        at = queue.popleft()
        for state, mask in _steps(at, within, edges):
            budget[0] -= 1
            if state == goal:
                return [seen[at] + _first(mask, machine)]
            if state not in seen:
                seen[state] = seen[at] + _first(mask, machine)
                queue.append(state)
    return []


def _steps(
    at: tuple[int, ...], within: Sequence[frozenset[int] | None], edges: Sequence[Edges]
) -> Iterator[tuple[tuple[int, ...], int]]:
    steps: list[tuple[tuple[int, ...], int]] = [((), -1)]
    for state, region in zip(at, within, strict=True):
        steps = [
            ((*so_far, to), both)
            for so_far, mask in steps
            for own, to in edges[state]
            if (both := own if mask < 0 else own & mask) and (region is None or to in region)
        ]
    yield from steps


def _fillers(q: int, edges: Sequence[Edges], machine: Automaton) -> list[str]:
    """Return characters of different kinds that a loop of one state accepts. The character before a word can decide whether it matches."""
    own = next((mask for mask, to in edges[q] if to == q), 0)
    return [sign for i, sign in enumerate(machine.alphabet) if own >> i & 1 and sign in " -\n._\"'/:,"]


def _ends(machine: Automaton, edges: Sequence[Edges], region: frozenset[int]) -> list[str]:
    """Return texts that end a repetition so that the rest doesn't match."""
    inside = 0
    for at in region:
        for mask, _ in edges[at]:
            inside |= mask
    odd = [sign for i, sign in enumerate(machine.alphabet) if not inside >> i & 1]
    return [
        "",
        *([next((s for s in odd if s in "\x00\n!|"), odd[0])] if odd else []),
        *([next(s for s in odd if s.isalnum())] if any(s.isalnum() for s in odd) else []),
    ]
