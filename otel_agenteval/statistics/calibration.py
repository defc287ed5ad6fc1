"""Calibration of a judge with human labels, and correction of pass rates for the judge's errors.

The positive class is *bad*. If people labeled a turn as bad, the judge either finds or misses this turn. If people labeled a turn
as good, the judge either passes this turn or raises a false alarm.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple

import numpy as np

from ..core import jsonio
from ..core.clock import Clock
from ..core.errors import ConfigError
from ..core.semconv import ESTIMATE_PASSES, ESTIMATE_PASSES_HIGH, ESTIMATE_PASSES_LOW
from ..core.telemetry import Telemetry
from .estimates import SINCE_START, Estimates
from .intervals import Z95, Interval, wilson
from .weighted import Estimate, Everyone, Sums, padded, vector


class Confusion(NamedTuple):
    """Confusion matrix: number of labeled turns for each pair (human verdict, judge verdict)."""

    found: int
    """Number of bad turns that the judge also calls bad."""
    missed: int
    """Number of bad turns that the judge calls good."""
    alarms: int
    """Number of good turns that the judge calls bad."""
    passed: int
    """Number of good turns that the judge also calls good."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[bool, bool]]) -> Confusion:
        """Count ``(human verdict, judge verdict)`` pairs. A verdict of True means a good turn."""
        counts = Counter(pairs)
        return cls(counts[False, False], counts[False, True], counts[True, False], counts[True, True])

    @property
    def n(self) -> int:
        return sum(self)

    @property
    def bad(self) -> int:
        return self.found + self.missed

    @property
    def good(self) -> int:
        return self.alarms + self.passed

    @property
    def agreement(self) -> float | None:
        """Share of turns on which people and the judge agree. If few turns are bad, even a useless judge can have a high share."""
        return (self.found + self.passed) / self.n if self.n else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa, the agreement beyond chance. None without turns, or if all verdicts are the same."""
        if not self.n:
            return None
        called_bad = self.found + self.alarms
        chance = (self.bad * called_bad + self.good * (self.n - called_bad)) / self.n**2
        return None if chance >= 1 else ((self.found + self.passed) / self.n - chance) / (1 - chance)

    @property
    def recall(self) -> float | None:
        """Share of bad turns that the judge calls bad (sensitivity). None without bad turns."""
        return self.found / self.bad if self.bad else None

    @property
    def specificity(self) -> float | None:
        """Share of good turns that the judge calls good. None without good turns."""
        return self.passed / self.good if self.good else None

    @property
    def precision(self) -> float | None:
        """Share of bad turns among the turns that the judge calls bad. None if the judge never calls a turn bad."""
        called_bad = self.found + self.alarms
        return self.found / called_bad if called_bad else None

    def precision_at(self, bad_rate: float) -> float | None:
        if self.recall is None or self.specificity is None:
            return None
        right, wrong = self.recall * bad_rate, (1 - self.specificity) * (1 - bad_rate)
        return right / (right + wrong) if right + wrong > 0 else None


def interval_of(share: float | None, n: int) -> Interval | None:
    return None if share is None or not n else wilson(round(share * n), n)


def rogan_gladen(called_bad: float, n: float, confusion: Confusion) -> Estimate | None:
    """Estimate the true share of bad turns, corrected for the judge's error rates.

    The 95 % interval (Lang and Reiczigel 2014) accounts for the uncertainty of the observed rate and of both error rates. Return
    None without turns, without labels of both verdicts, or if the judge can't tell bad from good turns.
    """
    if not n or not confusion.bad or not confusion.good:
        return None
    z2 = Z95 * Z95
    recall, specificity = confusion.found / confusion.bad, confusion.passed / confusion.good
    if recall + specificity - 1 <= 0:
        return None
    observed = called_bad / n
    mean = (observed + specificity - 1) / (recall + specificity - 1)
    size, bad, good = n + z2, confusion.bad + 2, confusion.good + 2
    seen, finds, passes = (called_bad + z2 / 2) / size, (confusion.found + 1) / bad, (confusion.passed + 1) / good
    apart = finds + passes - 1
    if apart <= 0:
        return None
    share = (seen + passes - 1) / apart
    of_finding, of_passing = finds * (1 - finds) / bad, passes * (1 - passes) / good
    error = math.sqrt(seen * (1 - seen) / size + share * share * of_finding + (1 - share) ** 2 * of_passing) / apart
    moved = share + 2 * z2 * (share * of_finding - (1 - share) * of_passing)
    low, high = max(0.0, moved - Z95 * error), min(1.0, moved + Z95 * error)
    return Estimate(min(1.0, max(0.0, mean)), min(low, 1.0), max(high, 0.0), float(confusion.n))


def predicted_rate(labeled: Sequence[tuple[bool, float]], scores: Sequence[float]) -> Estimate | None:
    """Estimate the share of good turns from the judge's scores and some human labels (PPI++), or return None without labels.

    Labeled turns must be chosen at random. Judge errors then widen the interval, but don't bias the estimate.
    """
    sums, everyone = Sums(), Everyone()
    for good, score in labeled:
        sums.add(vector(1.0, float(good), padded((score,))))
    sums.widen(0.0, 1.0)
    for score in scores:
        everyone.add(padded((score,)))
    return sums.estimate(everyone)


class Threshold(NamedTuple):
    value: float
    """Threshold: scores at or above this value are good. If lower scores are better, scores at or below this value are good."""
    confusion: Confusion


def fit_threshold(
    labeled: Sequence[tuple[bool, float]], current: float | None = None, *, lower_is_better: bool = False
) -> Threshold | None:
    """Return the threshold with the highest sum of recall and specificity (Youden's index).

    If ``current`` is among the best thresholds, return ``current``. Otherwise, return the middle of a range of best
    thresholds. If all labels have the same verdict, return None. The threshold is fitted to these labels, so expect slightly
    worse results on other labels.
    """
    goods = np.array([good for good, _ in labeled], bool)
    if goods.all() or not goods.any():
        return None
    sign = -1.0 if lower_is_better else 1.0
    scores = sign * np.array([score for _, score in labeled])
    values = np.unique(scores)
    own = [] if current is None else [sign * current]
    passes = scores[None, :] >= np.concatenate([values[min(1, values.size - 1) :], own])[:, None]
    worth = (passes & goods).sum(axis=1) / goods.sum() + (~passes & ~goods).sum(axis=1) / (~goods).sum()
    is_best = worth >= worth.max() - 1e-12
    if own and is_best[-1]:
        chosen = own[0]
    else:
        places = np.flatnonzero(is_best)
        tied = max(np.split(places, np.flatnonzero(np.diff(places) > 1) + 1), key=len)
        chosen = float(values[tied[0]] + values[min(tied[-1] + 1, values.size - 1)]) / 2
    pairs = [(bool(good), bool(score >= chosen)) for good, score in zip(goods, scores, strict=True)]
    return Threshold(sign * chosen, Confusion.of(pairs))


# --- live pass rates

Method = Literal["raw", "rogan_gladen", "ppi"]


class PassRate(NamedTuple):
    metric: str
    agent: str
    window: str
    method: Method
    estimate: Estimate


def read_calibration(path: str, where: str) -> dict[str, Confusion]:
    """Read each metric's confusion matrix from the output of ``otel-agenteval calibrate --format json``, or raise ConfigError."""
    try:
        found = jsonio.loads(Path(path).read_bytes())
        return {str(one["metric"]): Confusion(**{name: int(n) for name, n in one["confusion"].items()}) for one in found}
    except OSError as error:
        raise ConfigError(f"{where}: {path}: cannot be read: {error.strerror}") from None
    except (ValueError, KeyError, TypeError, AttributeError):
        raise ConfigError(f"{where}: {path}: must be the output of `otel-agenteval calibrate --format json`") from None


class Corrected:
    def __init__(self, confusions: Mapping[str, Confusion], window: float, clock: Clock) -> None:
        self.confusions = confusions
        self.verdicts = Estimates(window, clock)
        """Pass-rate estimates. Each score is 1 (passed) or 0 (failed)."""

    def read(self) -> Iterator[PassRate]:
        for window, estimates in (("1h", self.verdicts.read()), (SINCE_START, self.verdicts.read_since_start())):
            for (metric, agent), raw in estimates.items():
                for method, found in corrected(raw, self.confusions[metric]).items():
                    yield PassRate(metric, agent, window, method, found)

    def watch(self, telemetry: Telemetry) -> None:
        for name, field in ((ESTIMATE_PASSES, "mean"), (ESTIMATE_PASSES_LOW, "low"), (ESTIMATE_PASSES_HIGH, "high")):
            telemetry.watch(name, partial(self._gauges, field))

    def _gauges(self, field: str) -> Iterator[tuple[Mapping[str, str], float]]:
        for one in self.read():
            labels = {"metric": one.metric, "agent": one.agent, "window": one.window, "method": one.method}
            yield labels, getattr(one.estimate, field)

    def state(self) -> Any:
        return self.verdicts.state()

    def restore(self, state: Any, passed: float = 0.0) -> None:
        """Restore the output of :meth:`state`, except for metrics that are no longer calibrated."""
        self.verdicts.restore([one for one in state if one[0] in self.confusions], passed)


def corrected(raw: Estimate, confusion: Confusion) -> dict[Method, Estimate]:
    """Return the uncorrected pass rate (``raw``) and, if the labels allow it, one or two corrected pass rates.

    ``rogan_gladen`` corrects for the judge's error rates. ``ppi`` (prediction-powered inference) adds the mean difference between
    human and judge verdicts. Both methods require labels of randomly chosen turns.
    """
    found: dict[Method, Estimate] = {"raw": raw}
    bad = rogan_gladen((1 - raw.mean) * raw.n_eff, raw.n_eff, confusion)
    if bad is not None:
        found["rogan_gladen"] = Estimate(1 - bad.mean, 1 - bad.high, 1 - bad.low, raw.n_eff)
    n = confusion.n
    if n > 1:
        apart = (confusion.alarms - confusion.missed) / n  # human pass rate minus the judge's pass rate
        spread = ((confusion.alarms + confusion.missed) / n - apart * apart) * n / (n - 1)
        error = math.hypot((raw.high - raw.low) / (2 * Z95), math.sqrt(max(spread, 0.25 / n) / n))
        mean = min(1.0, max(0.0, raw.mean + apart))
        found["ppi"] = Estimate(mean, max(0.0, mean - Z95 * error), min(1.0, mean + Z95 * error), raw.n_eff)
    return found
