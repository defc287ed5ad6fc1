"""Small amounts, such as dollars of a turn, aren't shares between 0 and 1."""

from __future__ import annotations

import numpy as np
import pytest

from otel_agenteval.statistics.groups import Group, Side, compare_sides
from otel_agenteval.statistics.intervals import Z95


def test_an_interval_of_small_amounts_lies_around_their_mean() -> None:
    costs = np.random.default_rng(1).lognormal(-9, 0.5, 400)
    amounts, shares = Group(is_amount=True), Group()
    for number, cost in enumerate(costs):
        amounts.add(f"t{number}", float(cost))
        shares.add(f"t{number}", float(cost))
    found, other = amounts.estimate(), shares.estimate()
    assert found is not None
    assert other is not None
    half = Z95 * float(costs.std(ddof=1)) / 20
    assert (found.low, found.high) == pytest.approx((costs.mean() - half, costs.mean() + half))
    assert other.high - other.low > 5 * (found.high - found.low)


def test_a_difference_of_small_amounts_excludes_zero_if_it_is_clear() -> None:
    random = np.random.default_rng(2)
    sides = []
    for level in (-9.0, -8.7):
        side = Side(is_amount=True)
        for number, cost in enumerate(random.lognormal(level, 0.5, 400)):
            side.add(float(cost), f"{level}{number}")
        sides.append(side)
    found = compare_sides(*sides, is_rate=False)
    assert found is not None
    assert found.p < 0.001
    assert 0 < found.interval[0] < found.size < found.interval[1]
