"""When a series of scores has changed: by how much, since when, and how seldom that is said without cause.

A series learns what is usual from its first scores. From then on three detectors look at each score, in a memory that does not grow:

* ``cusum``: bets against the usual mean. Each score multiplies a stake by what a bet on a lower (or higher) mean would have won; while the mean is what it was, no bet wins on average, whatever
  the scores look like, so that a stake of A says without cause at most once in A scores (an e-detector: Shin, Ramdas and Rinaldo 2023; with ones and zeros it is Page's CUSUM). Near-constant series
  need no case of their own: one failure among a thousand passes wins little.
* ``ewma``: an exponentially weighted mean of batches, against limits for the wanted run length (Lucas and Saccucci 1990). It finds small, lasting shifts.
* ``release``: once ``service.version`` changes, the scores of the new version against those of the one before, with a confidence sequence, so that looking after every score is allowed.

Scores from 0 to 1 are taken as they are. Of anything else (seconds, tokens) it is the rank among the first ones that counts.
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

Detector = Literal["cusum", "ewma", "release", "anchors"]
"""``anchors``: a judge that says something else of the same cases (:mod:`otel_agenteval.judging.judge_bench.drift`)."""

_FRACTIONS = (0.02, 0.08, 0.25, 0.6)
"""Of the highest stake that cannot lose everything: small shifts need small bets."""
_EFFECTIVE = 5.0
"""Effective scores that are one observation, where scores have different weights."""
_SMOOTHING = 0.1
_BATCHES = (20, 40, 80, 160, 320, 640)
_EXPECTED_EVENTS = 5.0
"""Rare events that a batch should have, so that its mean is nearly normal."""
_LEAST_SPREAD = 0.02
_SURE = 1.0
"""Standard errors by which the usual mean is taken to be uncertain."""
_HARDLY_ANYTHING = 20.0
"""A stake that chance alone makes in one of so many series."""
_GROWTH = 1.2
_LARGEST_REFERENCE = 10
"""How many times its first size what is usual may grow to."""
_RANK_LEAST = 0.02
"""How far the mean rank must move to count: it is 0.5 while nothing changes."""
_EXEMPLARS = 3


class Options(NamedTuple):
    """How sensitive detectors are."""

    false_alarm_every: float = 100_000.0
    """Scores of a series in which one change without cause may be reported."""
    least: float = 0.01
    """The smallest change of a mean of scores from 0 to 1 that counts."""
    reference: int = 200
    """Scores that a series learns from."""

    @property
    def stake(self) -> float:
        """At which a bet alarms: two directions and two detectors share what is allowed."""
        return 4.0 * self.false_alarm_every

    @property
    def release_error(self) -> float:
        """Share of releases of a series after which a change may be reported without cause."""
        return min(0.05, 1_000.0 / self.false_alarm_every)


class Exemplar(NamedTuple):
    """A turn that shows a change."""

    turn_id: str

    @property
    def trace_id(self) -> str:
        """Of its root, in hex."""
        return self.turn_id.rpartition(":")[2].partition("-")[0]

    @property
    def span_id(self) -> str:
        """The same."""
        return self.turn_id.rpartition("-")[2]


@dataclass(frozen=True, slots=True)
class Found:
    """A change of one series."""

    detector: Detector
    before: float
    """The mean that was usual, or that of the release before."""
    after: float
    """The mean since."""
    difference: Interval
    """The 95 % interval of the difference. It was chosen for being large, so the truth is often nearer to nothing."""
    since: float
    """When it began, as far as can be told, in seconds since the Unix epoch."""
    n: float
    """Effective scores since."""
    exemplars: tuple[Exemplar, ...] = ()
    version_before: str | None = None
    version: str | None = None

    @property
    def size(self) -> float:
        """By how much the mean moved."""
        return self.after - self.before


class Moments:
    """Weighted sums of values."""

    __slots__ = ("squares", "sum", "weight", "weight_squares")

    def __init__(self, weight: float = 0.0, weight_squares: float = 0.0, sum: float = 0.0, squares: float = 0.0) -> None:  # noqa: A002
        self.weight = weight
        self.weight_squares = weight_squares
        self.sum = sum
        self.squares = squares

    def add(self, value: float, weight: float = 1.0) -> None:
        """One more."""
        self.weight += weight
        self.weight_squares += weight * weight
        self.sum += weight * value
        self.squares += weight * value * value

    def join(self, other: Moments) -> None:
        """All of others."""
        self.weight += other.weight
        self.weight_squares += other.weight_squares
        self.sum += other.sum
        self.squares += other.squares

    @property
    def n(self) -> float:
        """Effective values (Kish)."""
        return self.weight * self.weight / self.weight_squares if self.weight_squares else 0.0

    @property
    def mean(self) -> float:
        """Of the values; 0 of none."""
        return self.sum / self.weight if self.weight else 0.0

    def variance(self, *, bounded: bool) -> float:
        """Of one value. Of values from 0 to 1 never less than what a near-constant series may still do."""
        n = self.n
        found = max(0.0, self.squares / self.weight - self.mean**2) if self.weight else 0.0
        found *= n / (n - 1) if n > 1 else 2.0
        if not bounded:
            return found
        likely = (self.mean * n + 0.5) / (n + 1)
        binary = likely * (1 - likely)
        return max(found, binary * (_LEAST_SPREAD if found > 1e-12 else 1.0))

    def state(self) -> list[float]:
        """For keeping."""
        return [self.weight, self.weight_squares, self.sum, self.squares]


class _Side:
    """Bets that the mean is lower than a bound; for a higher one, values and bound are turned round."""

    __slots__ = ("bets", "bound", "exemplars", "run", "since", "stakes")

    def __init__(self) -> None:
        self.bound = 0.0
        self.bets: tuple[float, ...] = ()
        self.rest()

    def rest(self) -> None:
        """Nothing speaks for a change."""
        self.stakes: tuple[float, ...] = ()
        self.run = Moments()
        self.since = 0.0
        self.exemplars: list[str] = []

    def set_bound(self, bound: float) -> None:
        """Bet against another bound."""
        self.bound = bound
        # A bet of f / (1 - bound) leaves 1 - f of the stake when the value is 1.
        self.bets = tuple([fraction / (1.0 - bound) for fraction in _FRACTIONS]) if 0.0 < bound < 1.0 else ()

    def see(self, value: float, raw: float, at: float, exemplar: str | None) -> float:
        """The mean of the stakes after one more value."""
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
    """One series of scores.

    Args:
        options: how sensitive.
        bounded: whether scores are from 0 to 1; one that is not makes ranks of all.
    """

    __slots__ = (
        "_block", "_block_ranks", "_block_size", "_bounded", "_ewma", "_exemplars", "_high", "_known", "_low", "_open", "_options", "_part", "_previous", "_ranks", "_release",
        "_release_since", "_reported", "_run", "_run_since", "_usual", "_version", "_version_before",
    )  # fmt: skip

    def __init__(self, options: Options, *, bounded: bool = True) -> None:
        self._options = options
        self._bounded = bounded
        self._version: str | None = None
        self._version_before: str | None = None
        self._previous: Moments | None = None
        """Of the version before."""
        self._release = Moments()
        self._release_since = 0.0
        self._reported = False
        """Whether a change with this release was reported."""
        self._learn()

    def _learn(self) -> None:
        """Begin to learn what is usual."""
        self._usual = Moments()
        self._ranks = array("d")
        """The first values, in order once they are all there; kept where ranks count."""
        self._known = 0.0
        """Effective values when the bounds were computed; 0 while it learns."""
        self._part = Moments()
        """Weighted values that are to be one observation."""
        self._low, self._high = _Side(), _Side()
        self._open = Moments()
        """What came since no bet was open: once none is, it is usual. Good and bad alike, else what is usual would look better than it is."""
        self._block = Moments()
        """The observations since the last look of what looks at batches."""
        self._block_ranks = 0.0
        self._block_size = _BATCHES[0]
        self._ewma: float | None = None
        self._run = Moments()
        """What came since the weighted mean was where it usually is."""
        self._run_since = 0.0
        self._exemplars: list[str] = []

    @property
    def usual(self) -> float:
        """The mean that is usual; of nothing 0."""
        return self._usual.mean

    @property
    def is_learning(self) -> bool:
        """Whether it does not know yet what is usual."""
        return not self._known

    def see(
        self, value: float, at: float = 0.0, weight: float = 1.0, version: str | None = None, exemplar: str | None = None
    ) -> Found | None:
        """One more score: a change that it shows, if any.

        Args:
            value: the score.
            at: seconds since the Unix epoch.
            weight: what it stands for: one over the probability that it was made with.
            version: of the service that made the turn.
            exemplar: the id of the turn.
        """
        if version is not None and version is not self._version and version != self._version:
            self._begin_release(version, at)
        if not self._known:
            self._release.add(value, weight)
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

    # --- what is usual

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
            # Wilson's limits, with the variance that was observed where that is less than that of ones and zeros
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
        """What led to no alarm is usual too."""
        if self._usual.n < _LARGEST_REFERENCE * self._options.reference:
            self._usual.join(run)
            if self._bounded and self._usual.n > _GROWTH * self._known:
                self._set_bounds()

    def _rank(self, value: float) -> float:
        ranks = self._ranks
        return (bisect_left(ranks, value) + bisect_right(ranks, value)) / (2 * len(ranks))

    # --- detectors

    def _observe(self, raw: float, at: float, exemplar: str | None) -> Found | None:
        # Written out flat: this is done for each score.
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
        """Look at the weighted mean, and at the release."""
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
            return self._found("ewma", self._run, self._run_since, self._exemplars)
        if away <= own:
            self._run, self._run_since, self._exemplars = Moments(), 0.0, []
        return self._compare_release()

    def _flush_block(self) -> None:
        self._block.weight_squares = self._block.weight  # each counts as one
        for moments in (self._release, self._open, self._run):
            moments.join(self._block)
        self._block, self._block_ranks = Moments(), 0.0

    def _found(self, detector: Detector, run: Moments, since: float, exemplars: Sequence[str]) -> Found:
        """A change; what came since it began is what is usual from now on."""
        released = since >= self._release_since if self._version_before is not None else False
        found = Found(
            detector, self._usual.mean, run.mean, self._difference(self._usual, run, Z95), since, run.n, _exemplars_of(exemplars),
            self._version_before if released else None, self._version,
        )  # fmt: skip
        self._flush_block()
        self._learn_anew(run)
        return found

    def _learn_anew(self, run: Moments) -> None:
        self._reported = True
        self._learn()
        if self._bounded:
            self._usual.join(run)
            if run.n >= self._options.reference:
                self._set_bounds()

    def _difference(self, before: Moments, after: Moments, z: float) -> Interval:
        spread = sum(one.variance(bounded=self._bounded) / max(one.n, 1.0) for one in (before, after))
        middle, wide = after.mean - before.mean, z * math.sqrt(spread)
        return middle - wide, middle + wide

    # --- releases

    def _begin_release(self, version: str, at: float) -> None:
        self._flush_block()
        for side in (self._low, self._high):  # so that what begins now begins with the release
            if side.stakes and sum(side.stakes) / len(side.stakes) < _HARDLY_ANYTHING:
                side.rest()
        if self._version is not None:
            self._previous, self._version_before = self._release, self._version
            self._release_since = at
        self._version, self._release, self._reported = version, Moments(), False

    def _compare_release(self) -> Found | None:
        before, after = self._previous, self._release
        if before is None or self._reported or min(before.n, after.n) < _BATCHES[0]:
            return None
        low, high = self._difference(before, after, _always_valid(min(before.n, after.n), self._options.release_error))
        least = self._options.least if self._bounded else 0.0
        if low <= least and high >= -least:
            return None
        return self._found_release(before, after)

    def _found_release(self, before: Moments, after: Moments) -> Found:
        found = Found(
            "release", before.mean, after.mean, self._difference(before, after, Z95), self._release_since, after.n,
            _exemplars_of(self._exemplars), self._version_before, self._version,
        )  # fmt: skip
        self._learn_anew(after)
        return found

    # --- kept over restarts

    def state(self) -> dict[str, Any]:
        """What it knows, as plain values. Runs that had begun are forgotten: they begin again."""
        return {
            "bounded": self._bounded, "usual": self._usual.state(), "ranks": list(self._ranks), "known": self._known, "ewma": self._ewma,
            "open": self._open.state(), "block": self._block.state(), "version": self._version, "version_before": self._version_before, "release": self._release.state(), "release_since": self._release_since,
            "previous": None if self._previous is None else self._previous.state(), "reported": self._reported,
            "stakes": [self._low.stakes, self._high.stakes], "runs": [(side.run.state(), side.since, side.exemplars) for side in (self._low, self._high)],
        }  # fmt: skip

    @classmethod
    def of_state(cls, options: Options, state: Mapping[str, Any]) -> Series:
        """The series that :meth:`state` came from.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
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
        found._version, found._version_before = state["version"], state["version_before"]
        found._release, found._release_since = Moments(*map(float, state["release"])), float(state["release_since"])
        found._previous = None if state["previous"] is None else Moments(*map(float, state["previous"]))
        found._reported = bool(state["reported"])
        return found


def _exemplars_of(turn_ids: Sequence[str]) -> tuple[Exemplar, ...]:
    return tuple([Exemplar(turn_id) for turn_id in turn_ids[-_EXEMPLARS:]])


def _always_valid(n: float, error: float) -> float:
    """By how many standard errors an interval must be wide to hold at every look (see :meth:`.weighted.Sums.sequence`)."""
    tuned = (-2 * math.log(error) + math.log(-2 * math.log(error) + 1)) / 300.0
    size = max(n, 1.0) * tuned
    return math.sqrt(2 * (size + 1) / size * math.log(math.sqrt(size + 1) / error))


_LIMITS = (
    (1.0, 1.0179), (1.5, 1.4381), (2.0, 1.8646), (2.25, 2.0967), (2.5, 2.3481), (2.75, 2.6227), (3.0, 2.9234), (3.25, 3.252), (3.5, 3.6095), (3.75, 3.9962), (4.0, 4.412), (4.25, 4.8565), (4.5, 5.3296), (4.75, 5.8308), (5.0, 6.3599), (5.25, 6.9166), (5.5, 7.5006), (6.0, 8.7502), (6.5, 10.1073), (7.0, 11.5707),
)  # fmt: skip
"""Standard deviations, and the decimal logarithm of the mean number of steps until an EWMA with :data:`_SMOOTHING` leaves them: Brook and Evans' Markov chain, which
``tests/statistics/test_change.py`` runs."""


@lru_cache(maxsize=64)
def _limit(batches: float) -> float:
    """How many standard deviations an EWMA may move, so that it leaves them once in so many batches."""
    wanted = math.log10(max(batches, 1.0))
    for (low, before), (high, after) in pairwise(_LIMITS):
        if wanted <= after:
            return low + (high - low) * max(0.0, wanted - before) / (after - before)
    return _LIMITS[-1][0]
