"""When to try a failed request again: exponential backoff with jitter, and the header ``Retry-After``."""

from __future__ import annotations

import email.utils
import math
import random

from .clock import SYSTEM_CLOCK, Clock

LONGEST_WAIT = 3_600.0
"""Maximum seconds that a server may request."""


def backoff(failures: int, first: float, longest: float) -> float:
    """Return a pause in seconds, doubled from ``first`` to ``longest``. A random half spreads the attempts of many clients."""
    pause = min(longest, first * 2.0 ** min(max(0, failures - 1), 64))
    return pause * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret


def retry_after(header: str | None, clock: Clock = SYSTEM_CLOCK) -> float:
    """Return the seconds that a ``Retry-After`` header requests, as a number or a date, at most an hour, or 0."""
    try:
        asked = float(header or 0)
    except ValueError:
        try:
            asked = email.utils.parsedate_to_datetime(header or "").timestamp() - clock.time_ns() / 1e9
        except (ValueError, OverflowError):
            return 0.0
    return 0.0 if math.isnan(asked) else min(LONGEST_WAIT, max(0.0, asked))
