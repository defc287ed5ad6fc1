"""The time that turns have waited for more spans, where spans are read from a log instead of being sent."""

from __future__ import annotations

import time


class Patience:
    """A clock that runs only while messages are read.

    A turn closes some time after its root was seen. Its other spans may be in the log already while this process does not read: offsets
    are being committed, partitions move, evaluation is behind, the process does not get a core, the broker is away. Turns do not grow
    older meanwhile, so such a pause tears none of them.
    """

    def __init__(self) -> None:
        self._seconds = time.monotonic()

    def __call__(self) -> float:
        """Seconds from an arbitrary start, read by any thread."""
        return self._seconds

    def passes(self, seconds: float) -> None:
        """Add the seconds of reading after which everything that was there is taken. Called on one thread."""
        self._seconds += seconds
