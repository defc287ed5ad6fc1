"""Detects changes in a series of scores, with their size, their start, and a limited false alarm rate.

A series learns its usual level from its first scores. From then on, three detectors check each score with constant memory:

* ``cusum`` bets against the usual mean. Each score multiplies a stake by the payoff of a bet on a lower or higher mean. As long
  as the mean stays the same, no bet wins on average. A stake therefore reaches A without cause at most once in A scores, for any
  distribution (an e-detector: Shin, Ramdas and Rinaldo 2023). For zeros and ones, it is Page's CUSUM. Nearly constant series
  need no special case, because one failure among a thousand passes wins little.
* ``ewma`` compares an exponentially weighted mean of batches with limits for the wanted run length (Lucas and Saccucci 1990).
  It finds small, lasting shifts.
* ``release`` compares the scores of a new ``service.version`` with those of the version before (:mod:`.release`).

Scores from 0 to 1 are used as they are. Other scores (seconds, tokens) are replaced by their ranks among the first ones.
"""

from __future__ import annotations

import math
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from .intervals import Z95, Interval
from .moments import Moments
from .release import ReleaseWatch

Detector = Literal["cusum", "ewma", "release", "anchors"]
"""``anchors`` means that a judge rates the same cases differently (:mod:`otel_agenteval.judging.judge_bench.drift`)."""

_FRACTIONS = (0.02, 0.08, 0.25, 0.6)
"""Bets, as fractions of the highest bet that can't lose everything. Small shifts need small bets."""
_EFFECTIVE = 5.0
"""Effective scores that form one observation, if scores have different weights."""
_SMOOTHING = 0.1
_BATCHES = (20, 40, 80, 160, 320, 640)
_EXPECTED_EVENTS = 5.0
"""Expected rare events in a batch, so that its mean is nearly normal."""
_SURE = 1.0
"""Assumed uncertainty of the usual mean, in standard errors."""
_HARDLY_ANYTHING = 20.0
"""A stake that chance alone produces in one of this many series."""
_GROWTH = 1.2
_LARGEST_REFERENCE = 10
"""Maximum growth of the reference, as a multiple of its first size."""
_RANK_LEAST = 0.02
"""Smallest relevant shift of the mean rank, which is 0.5 without changes."""
_EXEMPLARS = 3


class DetectorOptions(NamedTuple):
    false_alarm_every: float = 100_000.0
    """Number of scores in a series per expected false alarm."""
    least: float = 0.01
    """Smallest relevant change of a mean of scores from 0 to 1."""
    reference: int = 200
    """Number of scores that a series learns from."""

    @property
    def stake(self) -> float:
        """Stake for an alarm. Two directions and two detectors share the allowed false alarms."""
        return 4.0 * self.false_alarm_every

    @property
    def release_error(self) -> float:
        """Probability that a release of a series triggers a false alarm."""
        return min(0.05, 2_000.0 / self.false_alarm_every)


class ChangeExemplar(NamedTuple):
    """A turn that illustrates a change."""

    turn_id: str

    @property
    def trace_id(self) -> str:
        return self.turn_id.rpartition(":")[2].partition("-")[0]

    @property
    def span_id(self) -> str:
        return self.turn_id.rpartition("-")[2]


@dataclass(frozen=True, slots=True)
class Found:
    detector: Detector
    before: float
    """The usual mean, or the mean of the previous release."""
    after: float
    difference: Interval
    """The 95 % interval of the difference.

    A change is reported because it is large, so the true difference is often smaller.
    """
    since: float
    """Estimated start of the change, in seconds since the Unix epoch."""
    n: float
    """Effective number of scores since the change."""
    exemplars: tuple[ChangeExemplar, ...] = ()
    version_before: str | None = None
    version: str | None = None

    @property
    def size(self) -> float:
        return self.after - self.before


class _Side:
    """Bets that the mean is lower than a bound, or higher if values and bound are mirrored."""

    __slots__ = ("bets", "bound", "exemplars", "run", "since", "stakes")

    def __init__(self) -> None:
        self.bound = 0.0
        self.bets: tuple[float, ...] = ()
        self.rest()

    def rest(self) -> None:
        self.stakes: tuple[float, ...] = ()
        self.run = Moments()
        self.since = 0.0
        self.exemplars: list[str] = []

    def set_bound(self, bound: float) -> None:
        self.bound = bound
        # A bet of f / (1 - bound) leaves 1 - f of the stake when the value is 1.
        self.bets = tuple([fraction / (1.0 - bound) for fraction in _FRACTIONS]) if 0.0 < bound < 1.0 else ()

    def see(self, value: float, raw: float, at: float, exemplar: str | None) -> float:
        """Add a value, and return the mean of the stakes."""
        gain = self.bound - value
        if not self.bets:
            return 0.0
        if not self.stakes:
            self.since = at
            self.stakes = (1.0,) * len(self.bets)
        self.run.add(raw)
        if gain > 0.0 and exemplar is not None:
            self.exemplars = [*self.exemplars[1 - _EXEMPLARS :], exemplar]
        stakes = tuple([(max(1.0, stake)) * (1.0 + bet * gain) for stake, bet in zip(self.stakes, self.bets, strict=True)])
        self.stakes = stakes
        if max(stakes) <= 1.0:
            self.rest()
            return 0.0
        return sum(stakes) / len(stakes)


class Series:
    """Change detection for one series of scores. A score outside 0 to 1 makes a ``bounded`` series use ranks.

    ``is_amount`` is true for seconds, dollars and other amounts, whose releases are compared on a logarithm.
    """

    __slots__ = (
        "_block", "_block_ranks", "_block_size", "_bounded", "_ewma", "_exemplars", "_high", "_known", "_low", "_open", "_options", "_part", "_ranks", "_releases",
        "_run", "_run_since", "_usual",
    )  # fmt: skip

    def __init__(self, options: DetectorOptions, *, bounded: bool = True, is_amount: bool = False) -> None:
        self._options = options
        self._bounded = bounded
        self._releases = ReleaseWatch(options.release_error, is_amount=is_amount)
        self._learn()

    def _learn(self) -> None:
        self._usual = Moments()
        self._ranks = array("d")
        """The first values, sorted when all have arrived. Kept only for series that use ranks."""
        self._known = 0.0
        self._part = Moments()
        self._low, self._high = _Side(), _Side()
        self._open = Moments()
        """Values since bets were open. When no bet is left, they become part of the usual level. Good and bad values count alike, to avoid a bias."""
        self._block = Moments()
        self._block_ranks = 0.0
        self._block_size = _BATCHES[0]
        self._ewma: float | None = None
        self._run = Moments()
        """Values since the weighted mean was last at its usual level."""
        self._run_since = 0.0
        self._exemplars: list[str] = []

    @property
    def usual(self) -> float:
        return self._usual.mean

    def see(
        self, value: float, at: float = 0.0, weight: float = 1.0, version: str | None = None, exemplar: str | None = None
    ) -> Found | None:
        """Add a score, and return the change that it reveals. ``weight`` is one divided by the sampling probability."""
        if version is not None:
            if self._releases.see(value, weight, version, at, exemplar):
                for side in (self._low, self._high):  # so that new runs start with the release
                    if side.stakes and sum(side.stakes) / len(side.stakes) < _HARDLY_ANYTHING:
                        side.rest()
            found = self._of_release() if self._releases.before is not None else None
            if found is not None:
                return found
        if not self._known:
            self._learn_from(value, weight)
            return None
        part = self._part
        if weight == 1.0 and not part.weight:
            return self._observe(value, at, exemplar)
        part.add(value, weight)
        if part.n < _EFFECTIVE:
            return None
        self._part = Moments()
        return self._observe(part.mean, at, exemplar)

    # --- usual level

    def _learn_from(self, value: float, weight: float) -> None:
        usual = self._usual
        usual.add(value, weight)
        self._bounded = self._bounded and 0.0 <= value <= 1.0
        if len(self._ranks) < self._options.reference:
            self._ranks.append(value)
        if usual.n >= self._options.reference:
            self._ranks = array("d", () if self._bounded else sorted(self._ranks))
            self._set_bounds()

    def _set_bounds(self) -> None:
        usual, options = self._usual, self._options
        self._known = usual.n
        if self._bounded:
            mean, least = usual.mean, options.least
            # Wilson's limits, but with the observed variance if it is less than that of zeros and ones
            spread, z2 = usual.variance(bounded=True), _SURE * _SURE
            middle = (mean + z2 / (2 * usual.n)) / (1 + z2 / usual.n)
            wide = _SURE * math.sqrt(spread / usual.n + z2 / (4 * usual.n * usual.n)) / (1 + z2 / usual.n)
        else:
            middle, least, wide = 0.5, _RANK_LEAST, _SURE * math.sqrt(1 / 6 / len(self._ranks))
        self._low.set_bound(middle - wide - least)
        self._high.set_bound(1.0 - (middle + wide + least))
        likely = min(mean, 1 - mean) if self._bounded else 0.5
        likely = max(likely, 0.5 / usual.n)
        is_binary = self._bounded and usual.variance(bounded=True) > 0.5 * mean * (1 - mean)
        wanted = _EXPECTED_EVENTS / likely if is_binary else 0
        self._block_size = next((size for size in _BATCHES if size >= wanted), _BATCHES[-1])

    def _join_usual(self, run: Moments) -> None:
        """Add values that led to no alarm to the usual level."""
        if self._usual.n < _LARGEST_REFERENCE * self._options.reference:
            self._usual.join(run)
            if self._bounded and self._usual.n > _GROWTH * self._known:
                self._set_bounds()

    def _rank(self, value: float) -> float:
        ranks = self._ranks
        return (bisect_left(ranks, value) + bisect_right(ranks, value)) / (2 * len(ranks))

    # --- detectors

    def _observe(self, raw: float, at: float, exemplar: str | None) -> Found | None:
        # Written inline for speed: this runs for every score.
        if self._bounded:
            value = 0.0 if raw < 0.0 else min(raw, 1.0)
        else:
            value = self._rank(raw)
        block = self._block
        if not block.weight:
            self._begin_block(at, exemplar)
        block.weight += 1.0
        block.sum += raw
        block.squares += raw * raw
        self._block_ranks += value
        low, high = self._low, self._high
        if (low.stakes or value < low.bound) and low.see(value, raw, at, exemplar) >= self._options.stake:
            return self._found("cusum", low.run, low.since, low.exemplars)
        value = 1.0 - value
        if (high.stakes or value < high.bound) and high.see(value, raw, at, exemplar) >= self._options.stake:
            return self._found("cusum", high.run, high.since, high.exemplars)
        return self._end_block() if block.weight >= self._block_size else None

    def _begin_block(self, at: float, exemplar: str | None) -> None:
        self._run_since = self._run_since or at
        if exemplar is not None:
            self._exemplars = [*self._exemplars[1 - _EXEMPLARS :], exemplar]

    def _end_block(self) -> Found | None:
        mean = self._block_ranks / self._block.weight
        self._flush_block()
        if not self._low.stakes and not self._high.stakes:
            self._join_usual(self._open)
            self._open = Moments()
        if self._bounded:
            usual, spread, least = self._usual.mean, self._usual.variance(bounded=True), self._options.least
            known = self._usual.n
        else:
            usual, spread, least, known = 0.5, 1 / 12, _RANK_LEAST, float(len(self._ranks))
        before = usual if self._ewma is None else self._ewma
        self._ewma = before + _SMOOTHING * (mean - before)
        own = math.sqrt(spread / self._block_size * _SMOOTHING / (2 - _SMOOTHING))
        away = abs(self._ewma - usual)
        if away > least + _limit(self._options.stake / 2 / self._block_size) * own + _SURE * math.sqrt(spread / known):
            side = self._low if self._ewma < usual else self._high  # its examples are scores beyond the usual mean
            return self._found("ewma", self._run, self._run_since, side.exemplars or self._exemplars)
        if away <= own:
            self._run, self._run_since, self._exemplars = Moments(), 0.0, []
        return None

    def _flush_block(self) -> None:
        self._block.weight_squares = self._block.weight  # each counts as one
        for moments in (self._open, self._run):
            moments.join(self._block)
        self._block, self._block_ranks = Moments(), 0.0

    def _found(self, detector: Detector, run: Moments, since: float, exemplars: Sequence[str]) -> Found:
        """Return a change. Values since its start become the new usual level."""
        releases = self._releases
        found = Found(
            detector, self._usual.mean, run.mean, self._difference(run), since, run.n, _exemplars_of(exemplars),
            releases.before if since >= releases.since else None, releases.version,
        )  # fmt: skip
        self._flush_block()
        self._learn_anew(run)
        return found

    def _of_release(self) -> Found | None:
        """Return a difference from the version before. The new version's scores become the usual level."""
        tested = self._releases.test()
        if tested is None:
            return None
        difference, after, exemplars = tested
        if self._bounded and abs(difference.size) < self._options.least:
            return None
        found = Found(
            "release", difference.before.mean, difference.after.mean, difference.interval, self._releases.since, after.n,
            _exemplars_of(exemplars), self._releases.before, self._releases.version,
        )  # fmt: skip
        self._flush_block()
        self._learn_anew(after)
        return found

    def _learn_anew(self, run: Moments) -> None:
        self._releases.reported = True
        self._learn()
        if self._bounded:
            self._usual.join(run)
            if run.n >= self._options.reference:
                self._set_bounds()

    def _difference(self, after: Moments) -> Interval:
        """Return the 95 % interval of a mean's difference from the usual one."""
        usual = self._usual
        spread = sum(one.variance(bounded=self._bounded) / max(one.n, 1.0) for one in (usual, after))
        middle, wide = after.mean - usual.mean, Z95 * math.sqrt(spread)
        return middle - wide, middle + wide

    # --- state across restarts

    def state(self) -> dict[str, Any]:
        """Return the state as plain values. Runs of the weighted mean start again."""
        return {
            "bounded": self._bounded, "usual": self._usual.state(), "ranks": list(self._ranks), "known": self._known, "ewma": self._ewma,
            "open": self._open.state(), "block": self._block.state(), "releases": self._releases.state(),
            "stakes": [self._low.stakes, self._high.stakes], "runs": [(side.run.state(), side.since, side.exemplars) for side in (self._low, self._high)],
        }  # fmt: skip

    @classmethod
    def of_state(cls, options: DetectorOptions, state: Mapping[str, Any]) -> Series:
        """Return a series from :meth:`state`, or raise a KeyError, TypeError or ValueError."""
        found = cls(options, bounded=bool(state["bounded"]))
        found._usual = Moments(*map(float, state["usual"]))
        found._ranks = array("d", state["ranks"])
        if state["known"]:
            found._set_bounds()
            for side, stakes, (run, since, exemplars) in zip(
                (found._low, found._high), state["stakes"], state["runs"], strict=True
            ):
                if len(stakes) == len(side.bets):
                    side.stakes, side.since = tuple(map(float, stakes)), float(since)
                    side.run, side.exemplars = Moments(*map(float, run)), [str(one) for one in exemplars]
        found._ewma, found._open = state["ewma"], Moments(*map(float, state["open"]))
        found._open.join(Moments(*map(float, state["block"])))
        found._releases.restore(state["releases"])
        return found


def _exemplars_of(turn_ids: Sequence[str]) -> tuple[ChangeExemplar, ...]:
    return tuple([ChangeExemplar(turn_id) for turn_id in turn_ids[-_EXEMPLARS:]])


_LIMITS = (
    (1.0, 1.0179), (1.5, 1.4381), (2.0, 1.8646), (2.25, 2.0967), (2.5, 2.3481), (2.75, 2.6227), (3.0, 2.9234), (3.25, 3.252), (3.5, 3.6095), (3.75, 3.9962), (4.0, 4.412), (4.25, 4.8565), (4.5, 5.3296), (4.75, 5.8308), (5.0, 6.3599), (5.25, 6.9166), (5.5, 7.5006), (6.0, 8.7502), (6.5, 10.1073), (7.0, 11.5707),
)  # fmt: skip
"""Limits of an EWMA with :data:`_SMOOTHING` in standard deviations, and log10 of the mean run length.

The run length is the number of steps until the EWMA crosses the limit by chance. It is computed with Brook and Evans' Markov
chain, as in ``tests/statistics/test_change.py``.
"""


@lru_cache(maxsize=64)
def _limit(batches: float) -> float:
    """Return the limit in standard deviations that an EWMA crosses once per this many batches."""
    wanted = math.log10(max(batches, 1.0))
    for (low, before), (high, after) in pairwise(_LIMITS):
        if wanted <= after:
            return low + (high - low) * max(0.0, wanted - before) / (after - before)
    return _LIMITS[-1][0]
