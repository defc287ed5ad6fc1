"""Look up ranges of a text by position."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import Generic, TypeVar

T = TypeVar("T")


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


class Taken:
    """Ranges of a text that don't overlap."""

    def __init__(self) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []

    def take(self, start: int, end: int) -> bool:
        """Add a range and return True, or return False if it overlaps an earlier one."""
        at = bisect_right(self._ends, start)
        if at < len(self._starts) and self._starts[at] < end:
            return False
        self._starts.insert(at, start)
        self._ends.insert(at, end)
        return True
