"""Clock for turns that wait for more spans while spans are read from Kafka."""

from __future__ import annotations

import time


class Patience:
    """A clock that advances only while messages are read.

    A turn closes some time after its root arrived. Its other spans may be in Kafka while this process doesn't read, for
    example during a commit, a rebalance or an outage. The clock stops during such a pause, so the pause never splits a turn.
    """

    def __init__(self) -> None:
        self._seconds = time.monotonic()

    def __call__(self) -> float:
        """Return seconds since an arbitrary start. Any thread can call this."""
        return self._seconds

    def passes(self, seconds: float) -> None:
        """Advance the clock by seconds of reading. Only the reading thread calls this."""
        self._seconds += seconds
