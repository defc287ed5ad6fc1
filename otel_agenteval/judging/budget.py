"""Bounds on what judges take: each question is admitted before it is asked, and corrected afterwards.

A question takes what its kind took lately the moment it is admitted, and what it really took replaces that afterwards: so questions that
are under way count. A process that is killed in between leaves its estimate behind, so a bound is reached early rather than late.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..config.budget import BudgetOptions, SpendingOptions
from ..core.clock import Clock
from .queues import Counter, Demand, SpendBook

_log = logging.getLogger("otel_agenteval")

WINDOWS: Mapping[str, float] = {"minute": 60.0, "hour": 3_600.0, "day": 86_400.0}
"""Seconds, by name."""
UNITS = ("usd", "tokens", "calls")
_FADING = 0.9


class Bound(NamedTuple):
    """The most that may be spent within any time of a length."""

    counter: Counter
    limit: float

    @property
    def window(self) -> str:
        """The name of its length."""
        return next(name for name, length in WINDOWS.items() if length == self.counter.window)


@dataclass(slots=True)
class Admission:
    """A question that was let through, or has to wait."""

    wait: float
    """Seconds until there may be room; 0 when it was let through."""
    at: float
    taken: Sequence[Demand] = field(default_factory=tuple)
    """What it took so far."""
    metric: str = ""


def bounds_of(options: BudgetOptions) -> list[Bound]:
    """The bounds that a configuration sets, for all metrics together and for single ones."""
    found = _bounds("", options)
    for metric, own in options.metrics.items():
        found += _bounds(metric, own)
    return found


def _bounds(account: str, options: SpendingOptions) -> list[Bound]:
    limits = (
        (Counter(account, unit, length), getattr(options, f"{unit}_per_{name}"))
        for unit in UNITS
        for name, length in WINDOWS.items()
    )
    return [Bound(counter, float(limit)) for counter, limit in limits if limit is not None]


def _roughly(seconds: float) -> str:
    """A time for people: whole seconds, or minutes where there are many."""
    return f"{math.ceil(seconds)} s" if seconds < 120 else f"{math.ceil(seconds / 60)} min"


class Budget:
    """Holds questions to bounds. Thread-safe.

    Args:
        bounds: on dollars, tokens and questions.
        book: keeps what was spent.
        clock: its wall time moves the windows.
        soft: share of each bound from which only jobs that matter more, and those that were begun, continue.
    """

    def __init__(self, bounds: Sequence[Bound], book: SpendBook, clock: Clock, soft: float = 0.8) -> None:
        self.bounds = tuple(bounds)
        self._accounts = {bound.counter.account for bound in bounds}
        self._book = book
        self._clock = clock
        self._soft = soft
        self._said: set[str] = set()
        """Metrics whose turns had to wait."""
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._usual: dict[tuple[str, str], float] = {}
        """By metric and unit: what its questions took lately, rather more than less."""

    def wants_prices(self, metric: str) -> bool:
        """Whether dollars are bounded for a metric: then only models whose price is known may be asked."""
        return self._concerns(metric) and any(bound.counter.unit == "usd" for bound in self._about(metric))

    def admit(self, metric: str, *, urgent: bool = False) -> Admission:
        """Take a question for a metric, if there is room.

        Args:
            metric: its name.
            urgent: whether it may use what is reserved for jobs that matter more, and for those that were begun.
        """
        at = self._now()
        if not self._concerns(metric):
            return Admission(0.0, at)
        with self._lock:
            demands = [self._demand(bound, metric, urgent) for bound in self._about(metric)]
        wait = self._book.take(demands, at) if demands else 0.0
        if wait and metric not in self._said:
            self._say(metric, wait)
        return Admission(wait, at, () if wait else demands, metric)

    def _say(self, metric: str, wait: float) -> None:
        self._said.add(metric)
        bounds = ", ".join(f"{bound.counter.unit}_per_{bound.window}: {bound.limit:g}" for bound in self._about(metric))
        _log.warning(
            "the judge's budget has no room for %s now (judge.budget: %s): its turns wait, for %s or longer. "
            'agenteval_judge_requests_total{outcome="gated"} counts how often; this is not logged again', metric, bounds, _roughly(wait),
        )  # fmt: skip

    def _concerns(self, metric: str) -> bool:
        return "" in self._accounts or metric in self._accounts

    def correct(self, admission: Admission, usd: float | None, tokens: int | None, calls: int) -> None:
        """What a question really took. None is unknown: it is then assumed to be as usual."""
        if not admission.metric:  # no bound is about it
            return
        spent = {"usd": usd, "tokens": tokens, "calls": calls}
        with self._lock:
            for unit, amount in spent.items():
                if amount is not None and calls:
                    key = (admission.metric, unit)
                    self._usual[key] = max(float(amount), self._usual.get(key, 0.0) * _FADING)
        changes = []
        for demand in admission.taken:
            really = spent[demand.counter.unit]
            if really is not None and really != demand.amount:
                changes.append((demand.counter, really - demand.amount))
        if changes:
            self._book.add(changes, admission.at)

    def remaining(self, unit: str) -> list[tuple[Bound, float]]:
        """What is left of each bound of a unit, at least 0."""
        at = self._now()
        return [
            (bound, max(0.0, bound.limit - self._book.used(bound.counter, at)))
            for bound in self.bounds
            if bound.counter.unit == unit
        ]

    def close(self) -> None:
        """Release the book."""
        self._book.close()

    def after_fork_in_child(self) -> None:
        """Locks of its own; what the parent spent still counts."""
        self._reset()
        self._book.after_fork_in_child()

    def _about(self, metric: str) -> list[Bound]:
        return [bound for bound in self.bounds if bound.counter.account in ("", metric)]

    def _demand(self, bound: Bound, metric: str, urgent: bool) -> Demand:
        unit = bound.counter.unit
        amount = 1.0 if unit == "calls" else self._usual.get((metric, unit), 0.0)
        return Demand(bound.counter, amount, bound.limit, bound.limit * (1.0 if urgent else self._soft))

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9
