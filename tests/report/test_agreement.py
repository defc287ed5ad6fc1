"""Agreement of two raters, against figures from textbooks and by hand."""

from __future__ import annotations

import pytest

from otel_agenteval.statistics.agreement import cohen_kappa, kappa_interval, spearman


def pairs(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """Both raters' levels, from how often each pair of levels came."""
    cells = [(i, j) for i, row in enumerate(table) for j, count in enumerate(row) for _ in range(count)]
    return [i for i, _ in cells], [j for _, j in cells]


@pytest.mark.parametrize(
    ("table", "kappa"),
    [
        pytest.param([[20, 5], [10, 15]], 0.4, id="the usual example: 35 of 50 agree, 25 by chance"),
        pytest.param([[45, 15], [25, 15]], 0.1304, id="60 of 100 agree, raters of like habits"),
        pytest.param([[25, 35], [5, 35]], 0.2593, id="60 of 100 agree, raters of unlike habits"),
        pytest.param([[7, 0, 0], [0, 8, 0], [0, 0, 9]], 1.0, id="all agree"),
        pytest.param([[0, 5], [5, 0]], -1.0, id="none agrees"),
        pytest.param([[5, 5], [5, 5]], 0.0, id="as by chance"),
    ],
)
def test_kappa(table: list[list[int]], kappa: float) -> None:
    assert cohen_kappa(*pairs(table)) == pytest.approx(kappa, abs=1e-4)


def test_there_is_no_kappa_of_nothing_or_of_one_level() -> None:
    assert cohen_kappa([], []) is None
    assert cohen_kappa([1, 1, 1], [1, 1, 1]) is None
    assert kappa_interval([1, 1], [1, 1]) is None


def test_the_interval_of_kappa_is_about_that_of_the_formula_and_always_the_same() -> None:
    first, second = pairs([[20, 5], [10, 15]])
    found = kappa_interval(first, second)
    assert found == kappa_interval(first, second)
    # Fleiss' large sample standard error of this table is 0.1272: 0.15 to 0.65
    assert found == pytest.approx((0.15, 0.65), abs=0.03)
    assert kappa_interval(*pairs([[7, 0], [0, 9]])) == (1.0, 1.0)


def test_the_rank_correlation() -> None:
    assert spearman([106, 100, 86, 101, 99, 103, 97, 113, 112, 110], [7, 27, 2, 50, 28, 29, 20, 12, 6, 17]) == pytest.approx(
        -29 / 165
    )
    assert spearman([1, 2, 3], [10, 100, 1000]) == pytest.approx(1)
    assert spearman([1, 2, 2, 3], [1, 2, 3, 4]) == pytest.approx(0.9486832980505138)
    assert spearman([1, 1], [1, 2]) is None
    assert spearman([1], [1]) is None
