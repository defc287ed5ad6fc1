"""Limits on the cost and number of judge calls.

Before a judge call, the budget reserves an estimated cost, which it derives from recent calls for the same metric. After the call,
the actual cost, if known, replaces this estimate. If the process is killed, a file or server keeps the estimate.
"""

from __future__ import annotations

import logging
import math
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..config.judge import BudgetOptions, SpendingOptions
from ..core import forks
from ..core.clock import Clock
from .queues import Counter, Demand, SpendBook

_log = logging.getLogger("otel_agenteval")

WINDOWS: Mapping[str, float] = {"hour": 3_600.0, "day": 86_400.0}
UNITS = ("usd", "calls")
_FADING = 0.9


class Bound(NamedTuple):
    counter: Counter
    limit: float

    @property
    def window(self) -> str:
        return next(name for name, length in WINDOWS.items() if length == self.counter.window)


@dataclass(slots=True)
class Admission:
    """Result of :meth:`JudgeBudget.admit`. The call is admitted if ``wait`` is 0."""

    wait: float
    """Estimated seconds until the budget allows the call, or 0 if the call was admitted."""
    at: float
    taken: Sequence[Demand] = field(default_factory=tuple)
    metric: str = ""


def bounds_of(options: BudgetOptions) -> list[Bound]:
    accounts: dict[str, SpendingOptions] = {"": options, **options.metrics}
    limits = (
        (Counter(account, unit, length), getattr(own, f"{unit}_per_{name}"))
        for account, own in accounts.items()
        for unit in UNITS
        for name, length in WINDOWS.items()
    )
    return [Bound(counter, float(limit)) for counter, limit in limits if limit is not None]


class JudgeBudget:
    """Budget for judge calls. Thread-safe. If a share (``soft``, 0 to 1) of a limit is used, only urgent calls are admitted.

    ``longest`` is the caller's maximum wait in seconds. This value affects only the logged warning.
    """

    def __init__(
        self, bounds: Sequence[Bound], book: SpendBook, clock: Clock, soft: float = 0.8, longest: float = math.inf
    ) -> None:
        self.bounds = tuple(bounds)
        self._book = book
        self._clock = clock
        self._soft, self._longest = soft, longest
        self._warned: set[str] = set()
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._usual_usd: dict[str, float] = {}
        """Estimated cost of a judge call in USD, by metric: the highest recent cost, reduced by 10 % with each later call."""

    def wants_prices(self, metric: str) -> bool:
        """Return True if a dollar limit applies to the metric. If so, the metric can call only models with a known price."""
        return any(bound.counter.unit == "usd" for bound in self._about(metric))

    def admit(self, metric: str, *, urgent: bool = False) -> Admission:
        """Reserve budget for one judge call. If a limit doesn't allow the call, reserve nothing and return the estimated wait."""
        at, about = self._clock.time_ns() / 1e9, self._about(metric)
        if not about:
            return Admission(0.0, at)
        share = 1.0 if urgent else self._soft
        with self._lock:
            usd = self._usual_usd.get(metric, 0.0)
        demands = [
            Demand(bound.counter, 1.0 if bound.counter.unit == "calls" else usd, bound.limit, bound.limit * share)
            for bound in about
        ]
        wait = self._book.spend(demands, at)
        if wait and metric not in self._warned:
            self._warned.add(metric)
            roughly = f"{math.ceil(wait)} s" if wait < 120 else f"{math.ceil(wait / 60)} min"
            full = next((one for one in demands if not one.fits(self._book.used(one.counter, at))), demands[0])
            limit = next(f"{one.counter.unit}_per_{one.window}: {one.limit:g}" for one in about if one.counter == full.counter)
            reached = limit if share == 1.0 else f"{share * 100:g} % (judge.budget.soft) of {limit}"
            its = "Its" if share == 1.0 else "Its non-urgent"
            more = ', and agenteval_judge_requests_total{outcome="gated"} counts these waits' if math.isinf(self._longest) else ""
            effect = f"{its} evaluations wait for about {roughly}{more}"
            if wait > self._longest:
                effect = f"For about {roughly}, its evaluations get the error over_budget"
            _log.warning("judge.budget: %s reached %s. %s. This warning is logged once per metric", metric, reached, effect)
        return Admission(wait, at, () if wait else demands, metric)

    def correct(self, admission: Admission, usd: float | None, calls: int) -> None:
        """Replace the reserved amounts with the actual cost and number of calls. If ``usd`` is None, keep the estimated cost."""
        if not admission.metric:  # no limit applies
            return
        spent = {"usd": usd, "calls": calls}
        if usd is not None and calls:
            with self._lock:
                self._usual_usd[admission.metric] = max(usd, self._usual_usd.get(admission.metric, 0.0) * _FADING)
        changes = [
            (demand.counter, really - demand.amount)
            for demand in admission.taken
            if (really := spent[demand.counter.unit]) is not None and really != demand.amount
        ]
        if changes:
            self._book.add(changes, admission.at)

    def remaining(self, unit: str) -> list[tuple[Mapping[str, str], float]]:
        """Return a pair (labels, remaining amount) for each limit in ``unit``, which is ``"usd"`` or ``"calls"``."""
        at = self._clock.time_ns() / 1e9
        bounds = [bound for bound in self.bounds if bound.counter.unit == unit]
        labels = [{"metric": bound.counter.account, "window": bound.window} for bound in bounds]
        left = [max(0.0, bound.limit - self._book.used(bound.counter, at)) for bound in bounds]
        return list(zip(labels, left, strict=True))

    def fault(self) -> Exception | None:
        """Return the exception if the spending can't be read."""
        try:
            self.remaining("usd")
            self.remaining("calls")
        except Exception as error:
            return error
        return None

    def close(self) -> None:
        self._book.close()

    def _about(self, metric: str) -> list[Bound]:
        return [bound for bound in self.bounds if bound.counter.account in ("", metric, metric.partition(".")[0])]
