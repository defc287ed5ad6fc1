"""Simulated series of scores, to measure false alarms and delays of change detection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from otel_agenteval.statistics.change import DetectorOptions, Found, Series

LENGTH = 20_000
OPTIONS = DetectorOptions()


class Kind(NamedTuple):
    """A distribution of scores, before and after a change of a given size."""

    name: str
    draw: Callable[[Any, float, int], Any]
    changes: tuple[float, ...]
    bounded: bool = True
    probability: float = 1.0
    """Sampling probability of a score."""


def _fails(rate: float) -> Callable[[Any, float, int], Any]:
    return lambda random, change, n: (random.random(n) >= rate + change).astype(float)


def _skewed(random: Any, change: float, n: int) -> Any:
    mean = 0.85 - change
    return random.beta(12 * mean, 12 * (1 - mean), n)


def _seconds(random: Any, change: float, n: int) -> Any:
    return random.lognormal(1.0, 0.7, n) * (1.0 + change)


KINDS = (
    Kind("never fails", _fails(0.0), (0.02, 0.1)),
    Kind("0.5 % fail", _fails(0.005), (0.03, 0.1)),
    Kind("5 % fail", _fails(0.05), (0.05, 0.1, 0.3)),
    Kind("30 % fail", _fails(0.3), (0.1, 0.3)),
    Kind("scores around 0.85", _skewed, (0.05, 0.1)),
    Kind("seconds, skewed", _seconds, (0.2, 0.5), bounded=False),
    Kind("5 % fail, one in ten is judged", _fails(0.05), (0.1, 0.3), probability=0.1),
)


def run(
    kind: Kind, change: float, after: int, length: int, random: Any, options: DetectorOptions = OPTIONS
) -> tuple[int, Found] | None:
    """Return the number of scores up to the first report, and the report. The change begins after ``after`` scores."""
    values = (
        kind.draw(random, 0.0, length)
        if not change
        else np.concatenate([kind.draw(random, 0.0, after), kind.draw(random, change, length - after)])
    )
    weight = 1.0 / kind.probability
    series = Series(options, bounded=kind.bounded)
    for place, value in enumerate(values.tolist()):
        found = series.add(value, float(place), weight)
        if found is not None:
            return place + 1, found
    return None


def false_alarms(kind: Kind, series: int, random: Any, options: DetectorOptions = OPTIONS) -> tuple[int, float]:
    """Return the number of false alarms, and the number of scores."""
    alarms = scores = 0
    for _ in range(series):
        found = run(kind, 0.0, 0, LENGTH, random, options)
        alarms += found is not None
        scores += LENGTH if found is None else found[0]
    return alarms, scores


def delays(kind: Kind, change: float, series: int, random: Any) -> tuple[list[int], int]:
    """Return the numbers of scores from a change to its report, and the number of series with an early report or none."""
    found, missed = [], 0
    for _ in range(series):
        first = run(kind, change, 2_000, 2_000 + LENGTH, random)
        if first is None or first[0] <= 2_000:
            missed += 1
        else:
            found.append(first[0] - 2_000)
    return found, missed


def power(
    rate: float, drop: float, series: int, random: Any, *, released: bool, before: int = 500, most: int = 6_000
) -> list[int | None]:
    """Return the number of turns until a drop of the pass rate is reported, for each series. None if ``most`` turns don't suffice.

    The drop begins after ``before`` turns and, with ``released``, with a new version.
    """
    found: list[int | None] = []
    while len(found) < series:
        values = [
            *(random.random(before) < rate).astype(float).tolist(),
            *(random.random(most) < rate - drop).astype(float).tolist(),
        ]
        one = Series(OPTIONS)
        at = next((
            place for place, value in enumerate(values)
            if one.add(value, float(place), 1.0, ("1" if place < before else "2") if released else None)
        ), None)  # fmt: skip
        if at is None or at >= before:
            found.append(None if at is None else at - before + 1)
    return found
