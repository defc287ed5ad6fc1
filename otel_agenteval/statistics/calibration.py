"""How far a judge can be trusted, by labels of people, and what the rates that it reports are once its mistakes are counted.

What is looked for is what is *bad*: a judge finds a turn bad that people call bad (found), misses it, or raises a false alarm.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from .intervals import Z95, Interval, wilson
from .weighted import Estimate, Everyone, Sums, padded, vector


class Confusion(NamedTuple):
    """Labelled turns by what people and what the judge say of them."""

    found: int
    """Bad, and the judge says so."""
    missed: int
    """Bad, and the judge says good."""
    alarms: int
    """Good, and the judge says bad."""
    passed: int
    """Good, and the judge says so."""

    @classmethod
    def of(cls, pairs: Sequence[tuple[bool, bool]]) -> Confusion:
        """Of pairs: whether people call a turn good, and whether the judge does."""
        counts = {
            both: sum(pair == both for pair in pairs) for both in ((False, False), (False, True), (True, False), (True, True))
        }
        return cls(counts[False, False], counts[False, True], counts[True, False], counts[True, True])

    @property
    def n(self) -> int:
        """Turns with a label."""
        return sum(self)

    @property
    def bad(self) -> int:
        """Turns that people call bad."""
        return self.found + self.missed

    @property
    def good(self) -> int:
        """Turns that people call good."""
        return self.alarms + self.passed

    @property
    def agreement(self) -> float | None:
        """Share of the turns of which both say the same. Where nearly all are good, a judge that finds nothing agrees nearly always: see :attr:`kappa`."""
        return (self.found + self.passed) / self.n if self.n else None

    @property
    def kappa(self) -> float | None:
        """Cohen's kappa: agreement beyond chance; None where chance alone explains all."""
        if not self.n:
            return None
        said_bad = self.found + self.alarms
        chance = (self.bad * said_bad + self.good * (self.n - said_bad)) / self.n**2
        return None if chance >= 1 else ((self.found + self.passed) / self.n - chance) / (1 - chance)

    @property
    def recall(self) -> float | None:
        """Share of the bad turns that the judge finds (sensitivity); None without any."""
        return self.found / self.bad if self.bad else None

    @property
    def specificity(self) -> float | None:
        """Share of the good turns that the judge lets pass; None without any."""
        return self.passed / self.good if self.good else None

    @property
    def precision(self) -> float | None:
        """Share of the judge's alarms that are right, at the base rate of the labelled turns; None without an alarm."""
        said_bad = self.found + self.alarms
        return self.found / said_bad if said_bad else None

    def precision_at(self, bad_rate: float) -> float | None:
        """The same where another share of the turns is bad: among few bad ones, most alarms are false."""
        if self.recall is None or self.specificity is None:
            return None
        right, wrong = self.recall * bad_rate, (1 - self.specificity) * (1 - bad_rate)
        return right / (right + wrong) if right + wrong > 0 else None


def interval_of(share: float | None, n: int) -> Interval | None:
    """Wilson's 95 % interval of a share of n; None where there is none."""
    return None if share is None or not n else wilson(round(share * n), n)


def rogan_gladen(said_bad: float, n: float, confusion: Confusion) -> Estimate | None:
    """The true share of bad turns, from how many of n the judge calls bad and from what it finds and lets pass of labelled ones.

    The interval is that of Lang and Reiczigel (2014), which counts the uncertainty of all three; None where the judge does not distinguish bad from good, or
    labels of one kind are missing.
    """
    if not n or not confusion.bad or not confusion.good:
        return None
    z2 = Z95 * Z95
    recall, specificity = confusion.found / confusion.bad, confusion.passed / confusion.good
    if recall + specificity - 1 <= 0:
        return None
    observed = said_bad / n
    mean = (observed + specificity - 1) / (recall + specificity - 1)
    size, bad, good = n + z2, confusion.bad + 2, confusion.good + 2
    seen, finds, passes = (said_bad + z2 / 2) / size, (confusion.found + 1) / bad, (confusion.passed + 1) / good
    apart = finds + passes - 1
    if apart <= 0:
        return None
    share = (seen + passes - 1) / apart
    of_finding, of_passing = finds * (1 - finds) / bad, passes * (1 - passes) / good
    error = math.sqrt(seen * (1 - seen) / size + share * share * of_finding + (1 - share) ** 2 * of_passing) / apart
    moved = share + 2 * z2 * (share * of_finding - (1 - share) * of_passing)
    low, high = max(0.0, moved - Z95 * error), min(1.0, moved + Z95 * error)
    return Estimate(min(1.0, max(0.0, mean)), min(low, 1.0), max(high, 0.0), float(confusion.n))


def predicted_rate(labelled: Sequence[tuple[bool, float]], scores: Sequence[float]) -> Estimate | None:
    """The share of good turns by people's labels of some and the judge's scores of all (PPI++): right whatever the judge's mistakes, narrower the fewer it makes.

    Args:
        labelled: whether people call a turn good, and the judge's score of it, of turns that were chosen for labelling by chance.
        scores: the judge's, of all turns.
    """
    sums, everyone = Sums(), Everyone()
    for good, score in labelled:
        sums.add(vector(1.0, float(good), padded((score,))))
    sums.least, sums.most = 0.0, 1.0
    for score in scores:
        everyone.add(padded((score,)))
    return sums.estimate(everyone)


class Threshold(NamedTuple):
    """Where a score would have to lie to say what people say."""

    value: float
    """Scores from here on are good; up to here where lower scores are better."""
    confusion: Confusion


def fit_threshold(labelled: Sequence[tuple[bool, float]], *, lower_is_better: bool = False) -> Threshold | None:
    """The threshold with the highest sum of recall and specificity (Youden); of several the middle one. None where labels of one kind are missing.

    It is fitted to these labels, and will do a little worse on others.
    """
    goods = np.array([good for good, _ in labelled], bool)
    if goods.all() or not goods.any():
        return None
    sign = -1.0 if lower_is_better else 1.0
    scores = sign * np.array([score for _, score in labelled])
    values = np.unique(scores)
    candidates = np.concatenate([(values[1:] + values[:-1]) / 2, values[-1:]]) if values.size > 1 else values
    passes = scores[None, :] >= candidates[:, None]
    worth = (passes & goods).sum(axis=1) / goods.sum() + (~passes & ~goods).sum(axis=1) / (~goods).sum()
    best = candidates[np.flatnonzero(worth >= worth.max() - 1e-12)]
    chosen = float(best[best.size // 2])
    pairs = [(bool(good), bool(score >= chosen)) for good, score in zip(goods, scores, strict=True)]
    return Threshold(sign * chosen, Confusion.of(pairs))
