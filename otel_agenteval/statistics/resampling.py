"""Random numbers for intervals and tests: from one fixed seed, so that the same scores always give the same answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

_SEED = 20_260_101
RESAMPLES = 10_000
MANY = 1_000
"""Values past which the normal approximation is as good as resampling, and fast."""
_CELLS = 2_000_000  # of one block of resamples: bounds the memory


def blocks(width: int, stream: int = 0) -> Iterator[tuple[Any, int]]:
    """One generator, and how many resamples to draw from it at a time."""
    generator = np.random.default_rng((_SEED, stream))
    step, left = max(1, _CELLS // width), RESAMPLES
    while left > 0:
        yield generator, min(step, left)
        left -= step
