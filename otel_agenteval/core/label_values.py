"""Decides which values of a label get a series of their own, when there is room for only some of them.

If the first values kept their places for ever, a burst of names that are never seen again would take every place. So a place is kept by
use. While places are free, each value gets one at once. After that a value has to be seen repeatedly. It then takes the place of a value
that was unused for :data:`IDLE`, or that was seen once, or that was seen half as often and not recently. All counts are halved at times,
so that they say how often a value was seen recently.

Not thread-safe: the owner serialises the calls.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

IDLE = 3_600.0
"""Seconds without use after which any other value may take a place."""
_RECENT = 60.0
"""Seconds after its last use in which a value that was seen repeatedly keeps its place, even from one that is seen more often."""
_CANDIDATES = 10
"""How many values without a place are remembered, per place."""
_MEMORY = 10
"""How many sightings, per place, until all counts are halved."""

Value = TypeVar("Value", bound=Hashable)


class _Place:
    """How a value that has a place is used."""

    __slots__ = ("count", "used")

    def __init__(self, used: float, count: int) -> None:
        self.used = used
        self.count = count


class LabelValues(Generic[Value]):
    """Places for values of one kind.

    Args:
        places: how many values may have one.
    """

    __slots__ = ("_candidates", "_limit", "_places", "_sightings")

    def __init__(self, places: int) -> None:
        self._limit = places
        self._places: OrderedDict[Value, _Place] = OrderedDict()
        """By last use: the first has been unused for longest."""
        self._candidates: OrderedDict[int, int] = OrderedDict()
        """How often values without a place were seen, by hash: a name may be long, and two names that share a count do no harm."""
        self._sightings = 0

    def __contains__(self, value: Value) -> bool:
        return value in self._places

    @property
    def full(self) -> bool:
        """Whether a new value would need the place of another."""
        return len(self._places) >= self._limit

    def use(self, value: Value, now: float, sightings: int = 1) -> None:
        """Note the use of a value that has a place. Does nothing for any other value.

        Args:
            value: the value.
            now: monotonic seconds.
            sightings: how many more times it was seen; 0 for another use in what was counted before.
        """
        place = self._places.get(value)
        if place is not None:
            place.used = now
            place.count += sightings
            self._places.move_to_end(value)
            self._note(sightings)

    def ask(self, value: Value, now: float, sightings: int = 1) -> tuple[bool, Value | None]:
        """Ask for a place for a value that has none. Arguments as for :meth:`use`.

        Returns:
            Whether it has one now, and the value that lost its own for it.
        """
        self._note(sightings)
        if not self.full:
            self._places[value] = _Place(now, sightings)
            return True, None
        key = hash(value)
        count = self._candidates.pop(key, 0) + sightings
        leaving = self._weaker_than(count, now)
        if leaving is None:
            self._candidates[key] = count
            if len(self._candidates) > self._limit * _CANDIDATES:
                self._candidates.popitem(last=False)
            return False, None
        del self._places[leaving]
        self._places[value] = _Place(now, count)
        return True, leaving

    def clear(self) -> None:
        """Forget everything."""
        self._places.clear()
        self._candidates.clear()
        self._sightings = 0

    def _weaker_than(self, count: int, now: float) -> Value | None:
        """The value that loses its place to one that was seen ``count`` times; None if there is none."""
        if not self._places:  # there are no places at all
            return None
        oldest = next(iter(self._places))
        if now - self._places[oldest].used > IDLE:
            return oldest
        if count < 2:  # most of what a burst brings is never seen again
            return None
        weakest, place = min(self._places.items(), key=lambda item: item[1].count)
        if place.count <= 1 or (2 * place.count <= count and now - place.used > _RECENT):
            return weakest
        return None

    def _note(self, sightings: int) -> None:
        self._sightings += sightings
        if self._sightings > self._limit * _MEMORY:
            self._sightings = 0
            for place in self._places.values():
                place.count //= 2
            self._candidates = OrderedDict([(key, count // 2) for key, count in self._candidates.items() if count > 1])
