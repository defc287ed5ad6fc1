"""Reliability of judges, compared with scikit-learn and statsmodels, and with simulations of known truth."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score, precision_score, recall_score, roc_curve
from statsmodels.stats.proportion import proportion_confint

from otel_agenteval.statistics.calibration import Confusion, fit_threshold, interval_of, predicted_rate, rogan_gladen
from otel_agenteval.statistics.tests import cohen_kappa, kappa_interval, spearman

RUNS = 2_000


def drawn(seed: int, n: int = 300) -> list[tuple[bool, bool]]:
    dice = np.random.default_rng(seed)
    good = dice.random(n) < 0.8
    return [(bool(one), bool(one if right else not one)) for one, right in zip(good, dice.random(n) < 0.85, strict=True)]


@pytest.mark.parametrize("seed", range(2))
def test_they_are_those_of_scikit_learn(seed: int) -> None:
    pairs = drawn(seed)
    people, judge = ([not one for one in side] for side in zip(*pairs, strict=True))  # what is looked for is what is bad
    found = Confusion.of(pairs)
    assert found.kappa == pytest.approx(cohen_kappa_score(people, judge))
    assert found.precision == pytest.approx(precision_score(people, judge))
    assert found.recall == pytest.approx(recall_score(people, judge))
    assert interval_of(found.recall, found.bad) == pytest.approx(proportion_confint(found.found, found.bad, method="wilson"))


def test_what_cannot_be_known_is_none() -> None:
    nothing = Confusion.of([])
    assert (nothing.agreement, nothing.kappa, nothing.recall, nothing.specificity, nothing.precision) == (None,) * 5
    all_good = Confusion.of([(True, True)] * 10)
    assert (all_good.kappa, all_good.recall, all_good.precision, all_good.specificity) == (None, None, None, 1.0)
    assert rogan_gladen(3, 10, all_good) is None
    assert rogan_gladen(3, 10, Confusion(5, 5, 5, 5)) is None, "it does not distinguish"


def test_most_alarms_are_false_where_little_is_bad() -> None:
    found = Confusion(90, 10, 10, 90)
    assert found.precision == 0.9
    assert found.precision_at(0.01) == pytest.approx(0.009 / (0.009 + 0.099))


@pytest.mark.parametrize(("bad", "recall", "specificity"), [(0.05, 0.8, 0.95), (0.2, 0.7, 0.9), (0.5, 0.9, 0.7)])
def test_a_corrected_rate_holds_the_truth_and_the_judge_s_own_does_not(bad: float, recall: float, specificity: float) -> None:
    dice = np.random.default_rng(11)
    held, naive, runs = 0, 0, 500
    for _ in range(runs):
        labels = Confusion(*(int(one) for one in _labelled(dice, recall, specificity)))
        n = 2_000
        said = int(dice.binomial(n, bad * recall + (1 - bad) * (1 - specificity)))
        found = rogan_gladen(said, n, labels)
        assert found is not None
        held += found.low <= bad <= found.high
        low, high = proportion_confint(said, n, method="wilson")
        naive += low <= bad <= high
    assert 0.93 <= held / runs <= 0.985
    assert naive / runs < 0.5


def _labelled(dice: np.random.Generator, recall: float, specificity: float) -> tuple[int, int, int, int]:
    """Return 60 bad and 140 good labeled turns."""
    found, passed = dice.binomial(60, recall), dice.binomial(140, specificity)
    return found, 60 - found, 140 - passed, passed


@pytest.mark.slow
def test_labels_helped_by_the_judge_hold_the_truth_and_are_narrower_than_labels_alone() -> None:
    dice = np.random.default_rng(12)
    held, width, alone = 0, 0.0, 0.0
    for _ in range(RUNS):
        good = dice.random(3_000) < 0.7
        judge = np.where(dice.random(3_000) < 0.9, good, ~good).astype(float)
        chosen = dice.choice(3_000, 200, replace=False)
        found = predicted_rate([(bool(good[one]), float(judge[one])) for one in chosen], list(judge))
        assert found is not None
        held += found.low <= 0.7 <= found.high
        width += found.high - found.low
        low, high = proportion_confint(int(good[chosen].sum()), 200, method="wilson")
        alone += high - low
    assert 0.935 <= held / RUNS <= 0.97
    assert width < 0.75 * alone


@pytest.mark.parametrize("lower", [False, True])
def test_the_threshold_is_the_one_with_the_most_recall_and_specificity(lower: bool) -> None:
    dice = np.random.default_rng(13)
    good = dice.random(400) < 0.6
    scores = np.clip(dice.normal(np.where(good, 0.7, 0.4), 0.15), 0, 1)
    given = 1 - scores if lower else scores
    found = fit_threshold(list(zip(map(bool, good), map(float, given), strict=True)), lower_is_better=lower)
    assert found is not None
    false_alarms, passes, _ = roc_curve(good, scores)
    assert found.confusion.recall is not None
    assert found.confusion.specificity is not None
    assert found.confusion.recall + found.confusion.specificity == pytest.approx(1 + (passes - false_alarms).max())
    assert 0.4 < (1 - found.value if lower else found.value) < 0.7
    assert fit_threshold([(True, 0.5)] * 3) is None


@pytest.mark.parametrize(("current", "value"), [(0.7, 0.7), (0.5, 0.5), (0.2, 0.6), (0.9, 0.6), (None, 0.6)])
@pytest.mark.parametrize("lower", [False, True])
def test_current_threshold_is_kept_if_no_other_is_better(current: float | None, value: float, lower: bool) -> None:
    """Report: ``calibrate`` suggested another threshold with the same confusion matrix."""
    sign = -1 if lower else 1
    labeled = [(good, sign * score) for good, score in [(False, 0.3), (False, 0.4), (True, 0.8), (True, 0.9)]]
    found = fit_threshold(labeled, None if current is None else sign * current, lower_is_better=lower)
    assert found is not None
    assert found.value == pytest.approx(sign * value)
    assert found.confusion == Confusion(2, 0, 0, 2)
    middle = fit_threshold([(False, 0.1), (True, 0.2), (False, 0.3), (True, 0.4)])
    assert middle is not None
    assert middle.value == pytest.approx(0.15)


# --- agreement of two raters, against figures from textbooks and by hand


def pairs(table: list[list[int]]) -> tuple[list[int], list[int]]:
    """Return the levels of both raters from the frequency of each pair of levels."""
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
