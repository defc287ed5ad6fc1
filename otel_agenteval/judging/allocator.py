"""Allocation of the judge budget to metrics and agents (``judge.budget.allocate``).

The allocator sets each stratum's sampling rate. Turns chosen by a rule are always judged, so their cost is subtracted from
the budget first. Each turn is drawn at the rate in force when it arrives, so the probability of each score is correct. The
formula is in :mod:`otel_agenteval.statistics.allocation`.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ..config.budget import BudgetOptions
from ..core import forks
from ..core.clock import Clock
from ..core.label_values import LabelValues
from ..core.semconv import ALLOCATED_RATE, ALLOCATED_TURNS, OTHER
from ..core.telemetry import Telemetry
from ..statistics.allocation import FadingMoments, Stratum, allocate

_HOUR = 3_600.0
_EVERY = 60.0
_SOON = 20
"""Number of turns after which the first hour's plan is updated early."""
_STRATA = 1_000
_SAFE = 0.95
"""Share of the budget that is planned. The rest absorbs variations in cost."""
_LEAST_OF_DRAWS = 0.2
"""Minimum share of the budget for random draws, however much rules spend."""
_FADING = 0.95


@dataclass(slots=True, eq=False)
class _Known:
    at: float
    seen: float = 0.0
    """Turns within about the last hour, with older turns fading out."""
    hour: int = -1
    in_hour: int = 0
    scores: FadingMoments = field(default_factory=FadingMoments)
    cost: float | None = None
    most: float = 1.0
    rate: float | None = None
    turns: float = 0.0

    def fade(self, now: float) -> None:
        self.seen *= math.exp((self.at - now) / _HOUR)
        self.at = now

    def see(self, now: float, hour: int, most: float) -> None:
        self.fade(now)
        self.seen += 1.0
        self.most = most
        self.in_hour = self.in_hour + 1 if self.hour == hour else 1
        self.hour = hour

    def spend(self, cost: float) -> None:
        self.cost = cost if self.cost is None else self.cost * _FADING + cost * (1 - _FADING)

    def plan(self, turns: float, seen: float) -> None:
        self.turns = turns
        self.rate = min(1.0, turns / seen) if seen > 0 else 1.0


class Allocator:
    """Planner of sampling rates for each metric and agent. Thread-safe."""

    def __init__(self, options: BudgetOptions, clock: Clock) -> None:
        wanted = options.allocate
        assert wanted is not None
        in_dollars = options.usd_per_hour is not None
        limit = options.usd_per_hour if in_dollars else float(options.calls_per_hour or 0)
        self._budget = (limit or 0.0) * options.soft * _SAFE
        self._in_dollars = in_dollars
        self._least, self._power = float(wanted.least), wanted.power
        self._clock = clock
        self.reset()
        forks.in_child(self.reset)

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._strata: dict[tuple[str, str], _Known] = {}
        self._places: LabelValues[tuple[str, str]] = LabelValues(_STRATA)
        self._started = self._forced_at = self._clock.monotonic()
        self._forced = 0.0
        """Amount that turns chosen by a rule spent within about the last hour."""
        self._due = self._started
        self._new = 0

    def rate(self, metric: str, agent: str, most: float) -> float:
        """Count a turn and return its sampling rate, at most the configured rate ``most``."""
        now = self._clock.monotonic()
        with self._lock:
            known = self._of(metric, agent, now)
            known.see(now, int(self._clock.time_ns() // 3_600_000_000_000), most)
            self._new += 1
            if now >= self._due or (self._new >= _SOON and now - self._started < _HOUR):
                self._plan(now)
            planned = most if known.rate is None else known.rate
            # The first turns of each hour are judged, and no later turn has probability 0, see :meth:`.sampling.SamplingRule._quota`.
            return min(most, max(planned, self._least / known.in_hour if self._least < known.in_hour else 1.0))

    def judged(self, metric: str, agent: str, value: float, cost: float | None, *, forced: bool) -> None:
        """Record a judged turn. A cost of None is unknown, and ``forced`` means that a rule chose it."""
        now = self._clock.monotonic()
        with self._lock:
            known = self._of(metric, agent, now)
            known.scores.add(value)
            spent = cost if self._in_dollars else 1.0
            if spent is None:
                return
            known.spend(spent)
            if forced:
                self._forced = self._forced * math.exp((self._forced_at - now) / _HOUR) + spent
                self._forced_at = now

    def _of(self, metric: str, agent: str, now: float) -> _Known:
        key = metric, agent
        if key in self._places:
            self._places.use(key, now)
        else:
            admitted, leaving = self._places.ask(key, now)
            if leaving is not None:
                self._strata.pop(leaving, None)
            if not admitted:
                key = metric, OTHER
        return self._strata.setdefault(key, _Known(now))

    def _plan(self, now: float) -> None:
        self._due, self._new = now + _EVERY, 0
        costs = [known.cost for known in self._strata.values() if known.cost is not None]
        usual = sum(costs) / len(costs) if costs else None
        if usual is None:  # no cost is known yet: use the configured rates within the budget's limits
            return
        passed = 1.0 - math.exp(-max(now - self._started, 1.0) / _HOUR)  # share of the fading hour that was observed
        strata = {}
        for key, known in self._strata.items():
            known.fade(now)
            strata[key] = Stratum(known.seen / passed, known.scores.spread, known.cost or usual, known.most)
        forced = self._forced * math.exp((self._forced_at - now) / _HOUR) / passed
        budget = max(self._budget * _LEAST_OF_DRAWS, self._budget - forced)
        for key, turns in allocate(strata, budget, self._least, self._power).items():
            self._strata[key].plan(turns, strata[key].turns)

    def watch(self, telemetry: Telemetry) -> None:
        telemetry.watch(ALLOCATED_RATE, lambda: self._gauges(lambda known: known.rate or 0.0))
        telemetry.watch(ALLOCATED_TURNS, lambda: self._gauges(lambda known: known.turns))

    def _gauges(self, value: Callable[[_Known], float]) -> Iterator[tuple[Mapping[str, str], float]]:
        with self._lock:
            strata = list(self._strata.items())
        for (metric, agent), known in strata:
            if known.rate is not None:
                yield {"metric": metric, "agent": agent}, value(known)
