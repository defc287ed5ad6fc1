"""Detection of changes in a series of scores, with a limited rate of false alarms.

The first scores of a series determine its usual level. Three detectors then check all later scores, using constant memory:

* ``cusum`` bets that the mean became lower or higher. Each score raises or lowers a bet's stake. A high stake triggers an alarm.
  While the mean is unchanged, no bet wins on average, so the stake exceeds a value A at most once in A scores on average. This
  holds for any distribution (an e-detector: Shin, Ramdas, and Rinaldo 2023). For zeros and ones, this detector is Page's CUSUM.
  Nearly constant series don't need a special case, because one failure among a thousand passes hardly raises the stake.
* ``ewma`` finds small, lasting shifts. This detector compares an exponentially weighted mean of batches with limits that chance
  alone rarely crosses (Lucas and Saccucci 1990).
* ``release`` compares a new ``service.version`` with the previous version (:mod:`.release`).

Scores from 0 to 1 are used unchanged. For other values (seconds, tokens), the rank among the first values is used instead.
"""

from __future__ import annotations

import math
import re
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any, Literal, NamedTuple

from .intervals import Z95, Interval, wilson_around
from .release import Moments, ReleaseWatch

Detector = Literal["cusum", "ewma", "release", "anchors"]
"""``anchors`` reports that a judge rates fixed cases differently than before (see ``judging/judge_bench/drift.py``)."""

_FRACTIONS = (0.02, 0.08, 0.25, 0.6)
"""Maximum share of the stake that each bet can lose. Small bets detect small shifts."""
_EFFECTIVE = 5.0
"""Effective sample size at which scores with weights other than 1 are combined into one observation."""
_SMOOTHING = 0.1
_BATCHES = (20, 40, 80, 160, 320, 640)
_EXPECTED_EVENTS = 5.0
"""Minimum expected count of the rarer outcome in a batch, so that the batch mean is approximately normal."""
_UNCERTAINTY = 1.0
"""Assumed uncertainty of the usual mean, in standard errors."""
_HARDLY_ANYTHING = 20.0
"""Mean stake below which a new release resets open bets."""
_GROWTH = 1.2
"""The bets' bounds are recomputed each time that the number of reference scores has grown by this factor."""
_LARGEST_REFERENCE = 10
"""Maximum number of reference scores, as a multiple of the initial number."""
_RANK_LEAST = 0.02
"""Smallest relevant shift of the mean rank. Without a change, the mean rank is 0.5."""
_EXEMPLARS = 3


class DetectorOptions(NamedTuple):
    false_alarm_every: float = 100_000.0
    """Average number of scores between two false alarms in a series."""
    least: float = 0.01
    """Smallest relevant change in the mean of scores from 0 to 1."""
    reference: int = 200
    """Number of initial scores that determine a series' usual level."""

    @property
    def stake(self) -> float:
        """Stake that triggers an alarm. Two directions and two detectors share the allowed false alarms, so the factor is 4."""
        return 4.0 * self.false_alarm_every


_TURN_ID = re.compile("(?:^|:)[0-9a-f]{32}-[0-9a-f]{16}$")


class ChangeExemplar(NamedTuple):
    turn_id: str

    @property
    def trace_id(self) -> str:
        """Trace ID, or "" for a conversation."""
        return self.turn_id[-49:-17] if _TURN_ID.search(self.turn_id) else ""

    @property
    def span_id(self) -> str:
        return self.turn_id[-16:] if _TURN_ID.search(self.turn_id) else ""


@dataclass(frozen=True, slots=True)
class Found:
    detector: Detector
    before: float
    """The usual mean, or the previous release's mean."""
    after: float
    difference: Interval
    """95 % interval of the difference. Only large changes are reported, so the true difference is often smaller."""
    since: float
    """Estimated start of the change, in seconds since the Unix epoch."""
    n: float
    """Effective sample size of the scores since the change."""
    exemplars: tuple[ChangeExemplar, ...] = ()
    version_before: str | None = None
    version: str | None = None

    @property
    def size(self) -> float:
        return self.after - self.before


class Series:
    """Change detector for one series of scores.

    If the series is ``bounded`` and its first scores are all from 0 to 1, scores are used unchanged. Otherwise, ranks replace the
    scores. If ``is_amount`` is true (seconds, dollars, and other amounts), releases are compared by logarithms.
    """

    __slots__ = (
        "_batch", "_batch_exemplars", "_batch_size", "_batch_total", "_bounded", "_ewma", "_high", "_known", "_low", "_open", "_options", "_part", "_ranks",
        "_releases", "_run", "_run_since", "_usual",
    )  # fmt: skip

    def __init__(self, options: DetectorOptions, *, bounded: bool = True, is_amount: bool = False) -> None:
        self._options = options
        self._bounded = bounded
        release_error = min(0.05, 2_000.0 / options.false_alarm_every)
        self._releases = ReleaseWatch(release_error, is_amount=is_amount)
        self._reset()

    def _reset(self) -> None:
        self._usual = Moments()
        self._ranks = array("d")
        """First values of the series. Once complete, the values are sorted or, if ranks aren't used, discarded."""
        self._known = 0.0
        """Effective sample size from which the bets' current bounds were computed. 0 until the usual level is known."""
        self._part = Moments()
        """Weighted scores that wait to be combined into one observation."""
        self._low, self._high = _Bets(), _Bets()
        self._open = Moments()
        """Values that aren't yet part of the usual level, because an open bet suggests a change of the level."""
        self._batch = Moments()
        self._batch_total = 0.0
        """Sum of the batch's values after conversion to the range from 0 to 1."""
        self._batch_size = _BATCHES[0]
        self._batch_exemplars: list[str] = []
        """Turn ID of the first score in each of the latest batches."""
        self._ewma: float | None = None
        self._run = Moments()
        """Values since the exponentially weighted mean was last near the usual level."""
        self._run_since = 0.0

    @property
    def usual(self) -> float:
        return self._usual.mean

    def add(
        self, value: float, at: float = 0.0, weight: float = 1.0, version: str | None = None, exemplar: str | None = None
    ) -> Found | None:
        """Add a score, and return the detected change or None. ``weight`` is 1 / sampling probability."""
        if version is not None:
            found = self._check_release(value, at, weight, version, exemplar)
            if found is not None:
                return found
        if not self._known:  # learn the usual level
            self._usual.add(value, weight)
            self._bounded = self._bounded and 0.0 <= value <= 1.0
            if len(self._ranks) < self._options.reference:
                self._ranks.append(value)
            if self._usual.n >= self._options.reference:
                self._ranks = array("d", () if self._bounded else sorted(self._ranks))
                self._set_bounds()
            return None
        part = self._part
        if weight == 1.0 and not part.weight:
            return self._check(value, at, exemplar)
        part.add(value, weight)
        if part.n < _EFFECTIVE:
            return None
        self._part = Moments()
        return self._check(part.mean, at, exemplar)

    # --- usual level

    def _set_bounds(self) -> None:
        usual = self._usual
        n = self._known = usual.n
        if self._bounded:
            # Wilson's limits, but with the observed variance if it is less than that of zeros and ones
            mean, variance = usual.mean, usual.variance(bounded=True)
            middle, wide = wilson_around(mean, variance / n, n, _UNCERTAINTY)
            least = self._options.least
            is_binary = variance > 0.5 * mean * (1 - mean)
            wanted = _EXPECTED_EVENTS / max(min(mean, 1 - mean), 0.5 / n) if is_binary else 0
        else:
            middle, least, wanted = 0.5, _RANK_LEAST, 0
            wide = _UNCERTAINTY * math.sqrt(1 / 6 / len(self._ranks))
        self._low.set_bound(middle - wide - least)
        self._high.set_bound(1.0 - (middle + wide + least))
        self._batch_size = next((size for size in _BATCHES if size >= wanted), _BATCHES[-1])

    # --- detectors

    def _check(self, raw: float, at: float, exemplar: str | None) -> Found | None:
        # Written inline for speed: this runs for every score.
        if self._bounded:
            value = 0.0 if raw < 0.0 else min(raw, 1.0)
        else:
            ranks = self._ranks
            value = (bisect_left(ranks, raw) + bisect_right(ranks, raw)) / (2 * len(ranks))
        batch = self._batch
        if not batch.weight:
            self._run_since = self._run_since or at
            if exemplar is not None:
                self._batch_exemplars = [*self._batch_exemplars[1 - _EXEMPLARS :], exemplar]
        batch.weight += 1.0
        batch.sum += raw
        batch.squares += raw * raw
        self._batch_total += value
        low, high = self._low, self._high
        if (low.stakes or value < low.bound) and low.add(value, raw, at, exemplar) >= self._options.stake:
            return self._report("cusum", low.run, low.since, low.exemplars)
        value = 1.0 - value
        if (high.stakes or value < high.bound) and high.add(value, raw, at, exemplar) >= self._options.stake:
            return self._report("cusum", high.run, high.since, high.exemplars)
        return self._end_batch() if batch.weight >= self._batch_size else None

    def _end_batch(self) -> Found | None:
        """Add the batch to the exponentially weighted mean. If this mean is then outside its limits, return a change."""
        batch, options = self._batch, self._options
        mean = self._batch_total / batch.weight
        batch.weight_squares = batch.weight  # each value has weight 1
        for moments in (self._open, self._run):
            moments.join(batch)
        self._batch, self._batch_total = Moments(), 0.0
        if not self._low.stakes and not self._high.stakes:
            if self._usual.n < _LARGEST_REFERENCE * options.reference:
                self._usual.join(self._open)
                if self._bounded and self._usual.n > _GROWTH * self._known:
                    self._set_bounds()
            self._open = Moments()
        if self._bounded:
            usual, variance, least, known = self._usual.mean, self._usual.variance(bounded=True), options.least, self._usual.n
        else:
            usual, variance, least, known = 0.5, 1 / 12, _RANK_LEAST, float(len(self._ranks))
        before = usual if self._ewma is None else self._ewma
        self._ewma = before + _SMOOTHING * (mean - before)
        deviation = math.sqrt(variance / self._batch_size * _SMOOTHING / (2 - _SMOOTHING))
        limit = _limit(options.stake / 2 / self._batch_size) * deviation + _UNCERTAINTY * math.sqrt(variance / known)
        distance = abs(self._ewma - usual)
        if distance > least + limit:
            bets = self._low if self._ewma < usual else self._high  # its examples are scores beyond the usual mean
            return self._report("ewma", self._run, self._run_since, bets.exemplars or self._batch_exemplars)
        if distance <= deviation:
            self._run, self._run_since, self._batch_exemplars = Moments(), 0.0, []
        return None

    def _report(self, detector: Detector, run: Moments, since: float, exemplars: Sequence[str]) -> Found:
        """Return a change from the usual level, and restart the series. Unless ranks are used, keep the values since the change."""
        usual, releases = self._usual, self._releases
        variance = sum(one.variance(bounded=self._bounded) / max(one.n, 1.0) for one in (usual, run))
        difference, wide = run.mean - usual.mean, Z95 * math.sqrt(variance)
        found = Found(
            detector, usual.mean, run.mean, (difference - wide, difference + wide), since, run.n, tuple(map(ChangeExemplar, exemplars)),
            releases.before if since >= releases.since else None, releases.version,
        )  # fmt: skip
        self._restart_from(run)
        return found

    def _check_release(self, value: float, at: float, weight: float, version: str, exemplar: str | None) -> Found | None:
        """Add a score. If the release differs significantly from the previous release, return the change and restart the series."""
        releases = self._releases
        if releases.add(value, weight, version, at, exemplar):
            for bets in (self._low, self._high):  # so that runs after the release don't include earlier scores
                if bets.stakes and sum(bets.stakes) / len(bets.stakes) < _HARDLY_ANYTHING:
                    bets.reset()
        tested = releases.test()
        if tested is None:
            return None
        difference, after, exemplars = tested
        if self._bounded and abs(difference.size) < self._options.least:
            return None
        found = Found(
            "release", difference.before.mean, difference.after.mean, difference.interval, releases.since, after.n,
            tuple(map(ChangeExemplar, exemplars)), releases.before, releases.version,
        )  # fmt: skip
        self._restart_from(after)
        return found

    def _restart_from(self, run: Moments) -> None:
        self._releases.reported = True
        self._reset()
        if self._bounded:
            self._usual.join(run)
            if run.n >= self._options.reference:
                self._set_bounds()

    # --- state across restarts

    def state(self) -> dict[str, Any]:
        """Return the state as plain values. Values since the weighted mean left its usual level aren't saved."""
        sides = self._low, self._high
        return {
            "bounded": self._bounded, "usual": self._usual.state(), "ranks": list(self._ranks), "known": self._known, "ewma": self._ewma,
            "open": self._open.state(), "block": self._batch.state(), "releases": self._releases.state(),
            "stakes": [bets.stakes for bets in sides], "runs": [(bets.run.state(), bets.since, bets.exemplars) for bets in sides],
        }  # fmt: skip

    @classmethod
    def of_state(cls, options: DetectorOptions, state: Mapping[str, Any]) -> Series:
        """Restore a series from the output of :meth:`state`. For an invalid state, raise an error."""
        found = cls(options, bounded=bool(state["bounded"]))
        found._usual = Moments(*map(float, state["usual"]))
        found._ranks = array("d", state["ranks"])
        if state["known"]:
            found._set_bounds()
            sides = found._low, found._high
            for bets, stakes, (run, since, exemplars) in zip(sides, state["stakes"], state["runs"], strict=True):
                if len(stakes) == len(bets.bets):
                    bets.stakes, bets.since = tuple(map(float, stakes)), float(since)
                    bets.run, bets.exemplars = Moments(*map(float, run)), [str(one) for one in exemplars]
        found._ewma, found._open = state["ewma"], Moments(*map(float, state["open"]))
        found._open.join(Moments(*map(float, state["block"])))
        found._releases.restore(state["releases"])
        return found


class _Bets:
    """Bets that the mean is below a bound. To bet that the mean is above a bound, pass 1 - value and 1 - bound."""

    __slots__ = ("bets", "bound", "exemplars", "run", "since", "stakes")

    def __init__(self) -> None:
        self.bound = 0.0
        self.bets: tuple[float, ...] = ()
        self.reset()

    def reset(self) -> None:
        self.stakes: tuple[float, ...] = ()
        """Stake of each bet. Empty while no bet is open."""
        self.run = Moments()
        self.since = 0.0
        self.exemplars: list[str] = []
        """Turn IDs of the latest values that increased the stakes."""

    def set_bound(self, bound: float) -> None:
        self.bound = bound
        # A bet of f / (1 - bound) leaves 1 - f of the stake when the value is 1.
        self.bets = tuple([fraction / (1.0 - bound) for fraction in _FRACTIONS]) if 0.0 < bound < 1.0 else ()

    def add(self, value: float, raw: float, at: float, exemplar: str | None) -> float:
        """Add a value. Return the mean stake, or 0 without open bets. ``raw`` is the unconverted score."""
        gain = self.bound - value
        if not self.bets:
            return 0.0
        if not self.stakes:
            self.since = at
            self.stakes = (1.0,) * len(self.bets)
        self.run.add(raw)
        if gain > 0.0 and exemplar is not None:
            self.exemplars = [*self.exemplars[1 - _EXEMPLARS :], exemplar]
        self.stakes = stakes = tuple(
            [max(1.0, stake) * (1.0 + bet * gain) for stake, bet in zip(self.stakes, self.bets, strict=True)]
        )
        if max(stakes) <= 1.0:
            self.reset()
            return 0.0
        return sum(stakes) / len(stakes)


_LIMITS = (
    (1.0, 1.0179), (1.5, 1.4381), (2.0, 1.8646), (2.25, 2.0967), (2.5, 2.3481), (2.75, 2.6227), (3.0, 2.9234), (3.25, 3.252), (3.5, 3.6095), (3.75, 3.9962), (4.0, 4.412), (4.25, 4.8565), (4.5, 5.3296), (4.75, 5.8308), (5.0, 6.3599), (5.25, 6.9166), (5.5, 7.5006), (6.0, 8.7502), (6.5, 10.1073), (7.0, 11.5707),
)  # fmt: skip
"""Limits of the exponentially weighted mean (EWMA), in standard deviations, each with log10 of the mean run length.

The run length is the number of steps until an EWMA with :data:`_SMOOTHING` crosses the limit by chance. Brook and Evans' Markov
chain gives the mean, as in ``tests/statistics/test_change.py``.
"""


@lru_cache(maxsize=64)
def _limit(batches: float) -> float:
    """Return the limit, in standard deviations, that an EWMA crosses by chance once per ``batches`` batches on average."""
    wanted = math.log10(max(batches, 1.0))
    for (low, before), (high, after) in pairwise(_LIMITS):
        if wanted <= after:
            return low + (high - low) * max(0.0, wanted - before) / (after - before)
    return _LIMITS[-1][0]
