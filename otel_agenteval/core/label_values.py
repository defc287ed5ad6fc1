"""Selection of the label values that get their own time series, up to a limited number.

If the first values kept their series forever, a burst of one-time names would use up the limit. Therefore, a value keeps its series
only while it is used:

- Until the limit is reached, every new value gets a series.
- After that, a new value replaces the least recently used value if this value was unused for :data:`IDLE` seconds.
- A new value that was seen repeatedly can also replace the least frequent value in two cases: the least frequent value was seen at
  most once, or it was seen at most half as often as the new value and not in the last minute.

The counts are halved from time to time, so that they reflect recent use. Not thread-safe, so callers need a lock.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass
from typing import Generic, TypeVar

IDLE = 3_600.0
"""Seconds without use after which any new value can replace a value."""
_RECENT = 60.0
"""Minimum seconds for which a repeatedly seen value keeps its series after its last use."""
_CANDIDATES = 10
"""Maximum number of values without a series for which sightings are counted, as a multiple of the limit."""
_MEMORY = 10
"""Number of sightings after which all counts are halved, as a multiple of the limit."""

Value = TypeVar("Value", bound=Hashable)


@dataclass(slots=True)
class _Place:
    used: float
    count: int


class LabelValues(Generic[Value]):
    """Limited set of label values. New values replace values that are rarely used or weren't used recently."""

    __slots__ = ("_candidates", "_limit", "_places", "_sightings")

    def __init__(self, places: int) -> None:
        self._limit = places
        self._places: OrderedDict[Value, _Place] = OrderedDict()
        """Values with a series, least recently used first."""
        self._candidates: OrderedDict[int, int] = OrderedDict()
        """Sightings of values without a series, by hash to save memory. Values with the same hash harmlessly share a count."""
        self._sightings = 0

    def __contains__(self, value: Value) -> bool:
        return value in self._places

    @property
    def full(self) -> bool:
        return len(self._places) >= self._limit

    def use(self, value: Value, now: float, sightings: int = 1) -> None:
        """Record that a value in the set was used at ``now`` (monotonic seconds). Add ``sightings`` to the value's count."""
        place = self._places.get(value)
        if place is not None:
            place.used = now
            self._places.move_to_end(value)
            if sightings:
                place.count += sightings
                self._count(sightings)

    def ask(self, value: Value, now: float, sightings: int = 1) -> tuple[bool, Value | None]:
        """Try to add a value. On success, return True and the replaced value (or None). Otherwise, return False and None."""
        self._count(sightings)
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
        self._places.clear()
        self._candidates.clear()
        self._sightings = 0

    def _weaker_than(self, count: int, now: float) -> Value | None:
        """Return the value that a new value with ``count`` sightings can replace, or None."""
        if not self._places:  # the limit is 0
            return None
        oldest = next(iter(self._places))
        if now - self._places[oldest].used > IDLE:
            return oldest
        if count < 2:  # most values of a burst are never seen again
            return None
        weakest, place = min(self._places.items(), key=lambda item: item[1].count)
        return weakest if place.count <= 1 or (2 * place.count <= count and now - place.used > _RECENT) else None

    def _count(self, sightings: int) -> None:
        self._sightings += sightings
        if self._sightings > self._limit * _MEMORY:
            self._sightings = 0
            for place in self._places.values():
                place.count //= 2
            self._candidates = OrderedDict([(key, count // 2) for key, count in self._candidates.items() if count > 1])
