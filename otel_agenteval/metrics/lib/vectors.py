"""How close vectors are to each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from ...core.errors import MetricError

Vector = Sequence[float]


def _pair(one: Vector, other: Vector) -> tuple[numpy.ndarray, numpy.ndarray]:
    left, right = numpy.asarray(one, dtype=float), numpy.asarray(other, dtype=float)
    if left.shape != right.shape or left.ndim != 1:
        raise MetricError("invalid_answer", "the embedder gave vectors of different lengths")
    return left, right


def _direction(vector: numpy.ndarray) -> numpy.ndarray | None:
    """The vector with length 1, or None for one without a direction."""
    largest = numpy.max(numpy.abs(vector), initial=0.0)
    if largest == 0:
        return None
    scaled: numpy.ndarray = vector / largest  # so that no square is too large or too small for a float
    scaled /= numpy.linalg.norm(scaled)
    return scaled


def cosine(one: Vector, other: Vector) -> float:
    """From -1 to 1; 0 when either vector is zero."""
    left, right = (_direction(vector) for vector in _pair(one, other))
    if left is None or right is None:
        return 0.0
    return float(min(1.0, max(-1.0, left @ right)))


def dot(one: Vector, other: Vector) -> float:
    """The sum of the products."""
    left, right = _pair(one, other)
    return float(left @ right)


def distance(one: Vector, other: Vector) -> float:
    """The length of the difference (Euclid)."""
    left, right = _pair(one, other)
    return float(numpy.linalg.norm(left - right))


def share(similarity: float) -> float:
    """A similarity as a score: what points away counts as unrelated."""
    return min(1.0, max(0.0, similarity))
