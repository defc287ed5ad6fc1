"""How long turns have waited for more, where spans are read from a log instead of being sent to us."""

from __future__ import annotations

import time


class Patience:
    """A clock that goes only while we listen.

    A turn closes some time after its root was seen. The rest of it may lie in the log already while nobody here reads: offsets are
    being committed, partitions move, evaluation is behind, the process does not get a core, the broker is away. Turns do not grow
    old by that, so a stall of ours tears none of them.
    """

    def __init__(self) -> None:
        self._seconds = time.monotonic()

    def __call__(self) -> float:
        """Seconds from an arbitrary start, read by any thread."""
        return self._seconds

    def passes(self, seconds: float) -> None:
        """So long we listened, and what was there was taken. On one thread."""
        self._seconds += seconds
