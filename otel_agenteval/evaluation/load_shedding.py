"""Skip metrics when the worker is overloaded (load shedding).

It first skips ``llm_`` metrics, then also ``embed_`` metrics, then also heavy ``code_`` metrics. The fill of the
worker's queue decides, because the worker's thread prepares turns for judges and runs heavy metrics. A slow or
unreachable judge fills another queue, which has its own limit and sheds nothing here.
"""

from __future__ import annotations

from collections.abc import Callable

LEVELS = ("llm", "embed", "heavy")
"""Kinds of metrics that levels 1, 2 and 3 skip, in addition to the levels before."""
_ON = (0.5, 0.7, 0.85)
_LOWER = 0.25
"""A level ends only when the fill is this far below the value that started it."""
_HOLD = 5.0
"""Minimum duration of a level, in seconds."""


class Shedding:
    """The current level. Only the worker uses it. ``now`` returns monotonic seconds."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.level = 0
        self._now = now
        self._since = 0.0

    def update(self, fill: float) -> int:
        """Return the level at a fill of the queue (0 to 1). It rises at once and falls one step at a time."""
        wanted = sum(fill >= on for on in _ON)
        if wanted > self.level:
            self.level, self._since = wanted, self._now()
        elif self.level and fill < _ON[self.level - 1] - _LOWER and self._now() - self._since >= _HOLD:
            self.level, self._since = self.level - 1, self._now()
        return self.level

    def skips(self, what: str) -> bool:
        """Return True if this kind of metric (``llm``, ``embed`` or ``heavy``) is skipped now."""
        return self.level > LEVELS.index(what)
