"""What is left out while the worker cannot follow: first ``llm_`` metrics, then ``embed_``, then heavy ``code_`` ones.

Preparing a turn for a judge, and heavy metrics, are work of the worker's thread. So the fill of the worker's queue is what
decides: each rung of the ladder lowers it. A judge that is slow or dead fills another queue, which has a bound and an order of
its own, and never switches anything off here.
"""

from __future__ import annotations

from collections.abc import Callable

LEVELS = ("llm", "embed", "heavy")
"""What level 1, 2 and 3 leave out, each with those before it."""
_ON = (0.5, 0.7, 0.85)
_LOWER = 0.25
"""How far below the fill that switched a level on it is switched off."""
_HOLD = 5.0
"""Seconds that a level lasts at least."""


class Shedding:
    """The present level. Looked at by the worker alone.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.level = 0
        self._now = now
        self._since = 0.0

    def look(self, fill: float) -> int:
        """The level at this fill of the queue, from 0 to 1: up at once, down one by one."""
        wanted = sum(fill >= on for on in _ON)
        if wanted > self.level:
            self.level, self._since = wanted, self._now()
        elif self.level and fill < _ON[self.level - 1] - _LOWER and self._now() - self._since >= _HOLD:
            self.level, self._since = self.level - 1, self._now()
        return self.level

    def leaves_out(self, what: str) -> bool:
        """Whether this kind of metric (``llm``, ``embed``, ``heavy``) is left out now."""
        return self.level > LEVELS.index(what)
