"""Simulated fleets with a known mean, and samples of them, for tests of estimates and ``benchmarks/estimates.py``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from otel_agenteval.statistics.weighted import PROXIES, Estimate, Everyone, Sums

_NORMAL_POINTS = np.sort(np.random.default_rng(7).normal(size=400_000))
_TROUBLED = 0.05
"""Share of the turns that a rule may select. They fail eight times as often."""


@dataclass(frozen=True)
class Fleet:
    """Turns of an hour, and how they are sampled."""

    name: str
    turns: int
    failing: float | None
    """Share of the turns that fail. None for scores between 0 and 1 with a mean of 0.6."""
    rate: float
    """Sampling rate of all turns."""
    rule: float = 0.0
    """Sampling rate of turns that a rule may select. 0 without a rule."""
    correlation: float = 0.0
    """Correlation of the proxy with the variable behind the score."""
    skewed: bool = False
    """True if most scores are near 1."""

    def draw(self, dice: Any) -> tuple[Any, Any, Any, Any]:
        """Return scores, proxies, sampling probabilities, and which turns were selected."""
        troubled = dice.random(self.turns) < _TROUBLED
        behind = dice.normal(size=self.turns)
        other = self.correlation * behind + np.sqrt(1 - self.correlation**2) * dice.normal(size=self.turns)
        if self.failing is None:
            scores, seen = _between(behind, self.skewed), _between(other, self.skewed)
        else:
            often = min(0.9, 8 * self.failing)
            seldom = max(0.0, (self.failing - _TROUBLED * often) / (1 - _TROUBLED))
            limits = np.where(
                troubled, *(_NORMAL_POINTS[int((1 - share) * (len(_NORMAL_POINTS) - 1))] for share in (often, seldom))
            )
            scores, seen = (behind <= limits).astype(float), 1 / (1 + np.exp(4 * (other - limits)))
        proxies = np.zeros((self.turns, PROXIES))
        proxies[:, 0], proxies[:, 1] = seen, troubled
        chances = np.where(troubled & (self.rule > 0), self.rule, self.rate)
        return scores, proxies, chances, dice.random(self.turns) < chances

    def truth(self) -> float:
        """Return the true mean over all possible turns."""
        return 1 - self.failing if self.failing is not None else float(_between(_NORMAL_POINTS, self.skewed).mean())

    def sums(self, dice: Any) -> tuple[Sums, Everyone, float]:
        """Return the sums of one hour, as estimates keep them, and the plain mean of the selected turns."""
        scores, proxies, chances, chosen = self.draw(dice)
        weights = 1 / chances[chosen]
        traces = np.column_stack(
            [weights, weights * scores[chosen], weights * scores[chosen] ** 2, weights[:, None] * proxies[chosen]]
        )
        sums, everyone = Sums(), Everyone()
        sums.total, sums.outer, sums.least, sums.most = traces.sum(axis=0), traces.T @ traces, 0.0, 1.0
        everyone.n, everyone.total, everyone.outer = float(self.turns), proxies.sum(axis=0), proxies.T @ proxies
        return sums, everyone, float(scores[chosen].mean()) if chosen.any() else float("nan")


def _between(behind: Any, skewed: bool) -> Any:
    return 1 - np.clip(np.exp(behind - 2.5), 0, 1) if skewed else np.clip(0.6 + 0.2 * behind, 0, 1)


FLEETS = (
    Fleet("random sample, 0.5 % fail", 40_000, 0.005, 0.1, correlation=0.8),
    Fleet("random sample, 2 % fail", 10_000, 0.02, 0.1, correlation=0.8),
    Fleet("random sample, 5 % fail", 4_000, 0.05, 0.1, correlation=0.8),
    Fleet("random sample, 10 % fail", 4_000, 0.1, 0.1, correlation=0.8),
    Fleet("random sample of 100 turns, 10 % fail", 1_000, 0.1, 0.1, correlation=0.8),
    Fleet("all errors and 2 % of other turns, 2 % fail", 20_000, 0.02, 0.02, rule=1.0, correlation=0.8),
    Fleet("all errors and 5 % of other turns, 5 % fail", 10_000, 0.05, 0.05, rule=1.0, correlation=0.8),
    Fleet("all errors and 5 % of other turns, 10 % fail", 10_000, 0.1, 0.05, rule=1.0, correlation=0.8),
    Fleet("values, random sample", 2_000, None, 0.1, correlation=0.7),
    Fleet("values, random sample of 50 turns", 500, None, 0.1, correlation=0.7),
    Fleet("values, all errors and 5 % of other turns", 4_000, None, 0.05, rule=1.0, correlation=0.7),
    Fleet("values, skewed", 2_000, None, 0.1, correlation=0.7, skewed=True),
    Fleet("values, proxies without information", 2_000, None, 0.1),
)


@dataclass
class Coverage:
    """How often intervals contain the true mean, and how wide they are."""

    plain: float
    predicted: float
    narrower: float
    """Share by which proxies narrow the intervals."""
    naive_bias: float
    """Error of the plain mean of the judged turns, in its own standard deviations."""


def coverage(fleet: Fleet, runs: int, seed: int = 1) -> Coverage:
    """Sample a fleet many times, and return the coverage of the intervals."""
    dice = np.random.default_rng(seed)
    truth, held, widths, naive = fleet.truth(), np.zeros(2), np.zeros(2), []
    for _ in range(runs):
        sums, everyone, average = fleet.sums(dice)
        naive.append(average)
        for place, estimate in enumerate((sums.estimate(), sums.estimate(everyone))):
            assert estimate is not None
            held[place] += _holds(estimate, truth)
            widths[place] += estimate.high - estimate.low
    off = (float(np.nanmean(naive)) - truth) / float(np.nanstd(naive))
    return Coverage(*(held / runs), 1 - widths[1] / widths[0], off)


def _holds(estimate: Estimate, truth: float) -> bool:
    return bool(estimate.low <= truth <= estimate.high)


def ever_missed(fleet: Fleet, runs: int, looks: int = 30, seed: int = 2) -> tuple[float, float]:
    """Return how often an interval misses the true mean in at least one of many checks: ordinary interval, confidence sequence."""
    dice = np.random.default_rng(seed)
    truth, missed = fleet.truth(), np.zeros(2)
    for _ in range(runs):
        total, all_, wrong = Sums(), Everyone(), np.zeros(2, bool)
        for _ in range(looks):
            sums, everyone, _ = fleet.sums(dice)
            total, all_ = total.plus(sums), all_.plus(everyone)
            for place, estimate in enumerate((total.estimate(all_), total.sequence(all_))):
                wrong[place] |= estimate is not None and not _holds(estimate, truth)
        missed += wrong
    return float(missed[0] / runs), float(missed[1] / runs)
