"""Compute the similarity and distance of vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy

from ...core.errors import MetricError

Vector = Sequence[float]


def _pair(one: Vector, other: Vector) -> tuple[numpy.ndarray, numpy.ndarray]:
    left, right = numpy.asarray(one, dtype=float), numpy.asarray(other, dtype=float)
    if left.shape != right.shape or left.ndim != 1:
        raise MetricError("invalid_answer", "embedder: returned vectors of different lengths")
    return left, right


def _direction(vector: numpy.ndarray) -> numpy.ndarray | None:
    """Return the vector scaled to length 1, or None for a zero vector."""
    largest = numpy.max(numpy.abs(vector), initial=0.0)
    if largest == 0:
        return None
    scaled: numpy.ndarray = vector / largest  # avoids overflow and underflow of the squares
    scaled /= numpy.linalg.norm(scaled)
    return scaled


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine similarity from -1 to 1, or 0 if either vector is zero."""
    left, right = (_direction(vector) for vector in _pair(one, other))
    if left is None or right is None:
        return 0.0
    return float(min(1.0, max(-1.0, left @ right)))


def dot(one: Vector, other: Vector) -> float:
    left, right = _pair(one, other)
    return float(left @ right)


def distance(one: Vector, other: Vector) -> float:
    left, right = _pair(one, other)
    return float(numpy.linalg.norm(left - right))


def share(similarity: float) -> float:
    """Return a similarity as a score from 0 to 1. Negative similarities become 0."""
    return min(1.0, max(0.0, similarity))
