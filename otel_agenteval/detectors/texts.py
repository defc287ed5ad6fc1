"""Functions and collections for texts that several detectors share."""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, AnyStr, Generic, TypeVar, cast

T = TypeVar("T")


def in_small_letters(text: str) -> str:
    """Return the text in lower case with the same length, also for the Turkish İ, of which the first character is used."""
    lowered = text.lower()
    return lowered if len(lowered) == len(text) else text.replace("\u0130", "i").lower()


def has_any(text: AnyStr, pieces: Sequence[AnyStr]) -> bool:
    for piece in pieces:  # a generator would be slower than the search
        if piece in text:
            return True
    return False


def tree(words: Iterable[str]) -> str:
    """Return a pattern with shared prefixes, the longest word first, which is many times as fast as a list of alternatives."""
    branches: dict[str, list[str]] = {}
    for word in words:
        branches.setdefault(word[:1], []).append(word[1:])
    ends = "" in branches
    inner = "|".join(re.escape(sign) + tree(rests) for sign, rests in sorted(branches.items()) if sign)
    return f"(?:{inner}{'|' if ends else ''})" if inner else ""


# --- patterns


class _Lazy:
    """A pattern that is compiled on first use, because most processes need only a few of them."""

    def __init__(self, pattern: str | Callable[[], str], flags: int) -> None:
        self._pattern, self._flags = pattern, flags

    @cached_property
    def _compiled(self) -> re.Pattern[str]:
        return re.compile(self._pattern if isinstance(self._pattern, str) else self._pattern(), self._flags)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._compiled, name)
        setattr(self, name, found)
        return found


def lazy(pattern: str | Callable[[], str], flags: int = 0) -> re.Pattern[str]:
    """Return a pattern that is made, by the function if given, and compiled on first use."""
    return cast("re.Pattern[str]", _Lazy(pattern, flags))


# --- ranges of a text


class Places(Generic[T]):
    """A collection of objects, each with a range in a text."""

    def __init__(self, things: Iterable[tuple[int, int, T]]) -> None:
        self._things = sorted(things, key=lambda thing: thing[0])
        self._starts = [start for start, _, _ in self._things]
        self._widest = max((end - start for start, end, _ in self._things), default=0)

    def __iter__(self) -> Iterator[T]:
        return (thing for _, _, thing in self._things)

    def __len__(self) -> int:
        return len(self._things)

    def at(self, place: int) -> Iterator[T]:
        first = bisect_left(self._starts, place - self._widest)
        for start, end, thing in self._things[first : bisect_right(self._starts, place)]:
            if start <= place < end:
                yield thing


class DistinctRanges:
    """Ranges of a text that don't overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def add(self, start: int, end: int) -> bool:
        """Add a range and return True, or return False if it overlaps an earlier one."""
        at = bisect_right(self._ends, start)
        if at < len(self._starts) and self._starts[at] < end:
            return False
        self._starts.insert(at, start)
        self._ends.insert(at, end)
        return True
