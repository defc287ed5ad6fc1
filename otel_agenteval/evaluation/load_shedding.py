"""Load shedding: what is left out while the worker is overloaded. First ``llm_`` metrics, then ``embed_``, then heavy ``code_`` ones.

The worker's thread prepares turns for judges and runs heavy metrics, so the fill of its queue decides: each level relieves it. A slow
or unreachable judge fills another queue, which has its own bound and order, and never sheds anything here.
"""

from __future__ import annotations

from collections.abc import Callable

LEVELS = ("llm", "embed", "heavy")
"""What levels 1, 2 and 3 leave out; each level also leaves out what the levels before it do."""
_ON = (0.5, 0.7, 0.85)
_LOWER = 0.25
"""How far the fill must drop below the one that switched a level on before the level is switched off."""
_HOLD = 5.0
"""Minimum duration of a level, in seconds."""


class Shedding:
    """The present level. Only the worker uses it.

    Args:
        now: monotonic seconds.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self.level = 0
        self._now = now
        self._since = 0.0

    def look(self, fill: float) -> int:
        """Update the level from the fill of the queue (0 to 1) and return it. It rises at once and falls one level at a time."""
        wanted = sum(fill >= on for on in _ON)
        if wanted > self.level:
            self.level, self._since = wanted, self._now()
        elif self.level and fill < _ON[self.level - 1] - _LOWER and self._now() - self._since >= _HOLD:
            self.level, self._since = self.level - 1, self._now()
        return self.level

    def leaves_out(self, what: str) -> bool:
        """Whether this kind of metric (``llm``, ``embed``, ``heavy``) is left out now."""
        return self.level > LEVELS.index(what)
