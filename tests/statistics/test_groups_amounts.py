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


def side_of(conversations: list[list[float]], name: str) -> Side:
    side = Side(is_amount=True)
    for number, values in enumerate(conversations):
        for value in values:
            side.add(value, f"{name}{number}")
    return side


@pytest.mark.parametrize("conversations", [1, 2, 3])
def test_few_conversations_show_no_difference_of_amounts(conversations: int) -> None:
    """Report: three turns of one conversation before and after, and latency was ``better`` with p < 0.001."""
    before = side_of([[4.0 + number, 5.0, 6.0] for number in range(conversations)], "a")
    after = side_of([[1.0 + number, 1.5, 2.0] for number in range(conversations)], "b")
    found = compare_sides(before, after, is_rate=False)
    assert found is not None
    assert found.p > 0.05
    assert found.interval[0] < found.size < found.interval[1]
    assert found.detectable > 0


def test_few_conversations_rarely_show_a_difference_by_chance() -> None:
    random = np.random.default_rng(3)
    ps = []
    for _ in range(40):
        sides = [side_of([[*random.lognormal(level, 0.3, 4)] for level in random.normal(0, 1, 4)], name) for name in "ab"]
        found = compare_sides(*sides, is_rate=False)
        assert found is not None
        ps.append(found.p)
    assert sum(p < 0.05 for p in ps) <= 6


def test_enough_conversations_show_a_clear_difference() -> None:
    random = np.random.default_rng(4)
    sides = [side_of([[*random.lognormal(level, 0.2, 3)] for _ in range(20)], str(level)) for level in (0.0, 0.5)]
    found = compare_sides(*sides, is_rate=False)
    assert found is not None
    assert found.p < 0.001
    assert found.interval[0] > 0
