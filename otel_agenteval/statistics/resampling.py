"""Random numbers for intervals and tests, with a fixed seed so that results are reproducible."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

_SEED = 20_260_101
RESAMPLES = 10_000
MANY = 1_000
"""Number of values above which the normal approximation is as accurate as resampling."""
_CELLS = 2_000_000  # per block of resamples, to limit memory


def blocks(width: int, stream: int = 0) -> Iterator[tuple[Any, int]]:
    """Yield a generator and the number of resamples to draw from it, block by block."""
    generator = np.random.default_rng((_SEED, stream))
    step, left = max(1, _CELLS // width), RESAMPLES
    while left > 0:
        yield generator, min(step, left)
        left -= step
