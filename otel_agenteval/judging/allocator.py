"""Spreads what judges may spend over metrics and agents, by what is known of each (:mod:`otel_agenteval.statistics.allocation`).

It sets the share of the turns that are drawn. What a rule chooses is judged whatever it costs, and what that takes is taken off first. Each turn is drawn with the share that is in
force when it comes, so every score's probability is right.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Mapping

from ..config.budget import BudgetOptions
from ..core.clock import Clock
from ..core.label_values import LabelValues
from ..core.semconv import ALLOCATED_RATE, ALLOCATED_TURNS, OTHER
from ..core.telemetry import Telemetry
from ..statistics.allocation import Moments, Stratum, allocate

_HOUR = 3_600.0
_EVERY = 60.0
"""Seconds between two plans."""
_SOON = 20
"""Turns after which a plan is made anew while little is known."""
_STRATA = 1_000
_SAFE = 0.95
"""Share of what may be spent that is planned: costs vary."""
_LEAST_OF_DRAWS = 0.2
"""Share of the budget that stays for draws, however much rules take."""
_FADING = 0.95


class _Known:
    """What is known of a metric and agent."""

    __slots__ = ("at", "cost", "hour", "in_hour", "most", "rate", "scores", "seen", "turns")

    def __init__(self, now: float) -> None:
        self.seen = 0.0
        """Turns of about the last hour: older ones fade."""
        self.at = now
        self.hour = -1
        self.in_hour = 0
        self.scores = Moments()
        self.cost: float | None = None
        """Of judging a turn, lately."""
        self.most = 1.0
        self.rate: float | None = None
        """The share that is planned; None before there is a plan."""
        self.turns = 0.0
        """Planned for an hour."""

    def fade(self, now: float) -> None:
        self.seen *= math.exp((self.at - now) / _HOUR)
        self.at = now


class Allocator:
    """Plans the share of each stratum's turns. Thread-safe.

    Args:
        options: with ``allocate``, and a bound for an hour.
        clock: moves it.
    """

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

    def reset(self) -> None:
        """In a forked child: nothing was seen yet."""
        self._lock = threading.Lock()
        self._strata: dict[tuple[str, str], _Known] = {}
        self._places: LabelValues[tuple[str, str]] = LabelValues(_STRATA)
        self._started = self._forced_at = self._clock.monotonic()
        self._forced = 0.0
        """What rules took, of about the last hour."""
        self._due = self._started
        self._new = 0

    def rate(self, metric: str, agent: str, most: float) -> float:
        """The share with which a turn is drawn, which is seen by this; ``most`` is the configured one."""
        now = self._clock.monotonic()
        with self._lock:
            known = self._of(metric, agent, now)
            known.fade(now)
            known.seen += 1.0
            known.most = most
            hour = int(self._clock.time_ns() // 3_600_000_000_000)
            known.in_hour = known.in_hour + 1 if known.hour == hour else 1
            known.hour = hour
            self._new += 1
            if now >= self._due or (self._new >= _SOON and now - self._started < _HOUR):
                self._plan(now)
            planned = most if known.rate is None else known.rate
            # The first turns of each hour are judged, and none is certain to be left out: see :meth:`.sampling.Rule._quota`.
            return min(most, max(planned, self._least / known.in_hour if self._least < known.in_hour else 1.0))

    def judged(self, metric: str, agent: str, value: float, cost: float | None, *, forced: bool) -> None:
        """A turn was judged.

        Args:
            metric: the metric.
            agent: who answered.
            value: the score.
            cost: in dollars; None if it is not known.
            forced: whether a rule chose it.
        """
        now = self._clock.monotonic()
        with self._lock:
            known = self._of(metric, agent, now)
            known.scores.add(value)
            spent = cost if self._in_dollars else 1.0
            if spent is None:
                return
            known.cost = spent if known.cost is None else known.cost * _FADING + spent * (1 - _FADING)
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
        if usual is None:  # nothing is known of what a question costs: the configured shares, within the budget's own bounds
            return
        passed = 1.0 - math.exp(-max(now - self._started, 1.0) / _HOUR)  # of an hour that fades, so much was seen
        strata = {}
        for key, known in self._strata.items():
            known.fade(now)
            strata[key] = Stratum(known.seen / passed, known.scores.spread, known.cost or usual, known.most)
        forced = self._forced * math.exp((self._forced_at - now) / _HOUR) / passed
        budget = max(self._budget * _LEAST_OF_DRAWS, self._budget - forced)
        for key, turns in allocate(strata, budget, self._least, self._power).items():
            known, seen = self._strata[key], strata[key].turns
            known.turns = turns
            known.rate = min(1.0, turns / seen) if seen > 0 else 1.0

    def watch(self, telemetry: Telemetry) -> None:
        """Show the plan."""

        def reader(value: Callable[[_Known], float | None]) -> Callable[[], Iterator[tuple[Mapping[str, str], float]]]:
            def read() -> Iterator[tuple[Mapping[str, str], float]]:
                with self._lock:
                    strata = list(self._strata.items())
                for (metric, agent), known in strata:
                    found = value(known)
                    if found is not None:
                        yield {"metric": metric, "agent": agent}, found

            return read

        telemetry.watch(ALLOCATED_RATE, reader(lambda known: known.rate))
        telemetry.watch(ALLOCATED_TURNS, reader(lambda known: None if known.rate is None else known.turns))
