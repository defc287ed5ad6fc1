"""Construction of the :class:`~.dispatcher.Dispatcher` from a configuration."""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence

from ..config.root import Config
from ..core import semconv
from ..core.clock import Clock
from ..core.files import warn_of_fault
from ..core.pacing import CircuitBreakers
from ..core.telemetry import Telemetry
from ..evaluation.limits import Shedding
from ..evaluation.redaction import exporter_of
from ..evaluation.scored_turn import ScoredTurn
from ..metrics.bound_metric import BoundMetric
from ..statistics.calibration import Corrected, read_calibration
from ..statistics.estimates import Estimates
from .budget import JudgeBudget, bounds_of
from .choose import Chooser, JudgedMetrics, JudgedSample
from .dispatcher import Dispatcher
from .job import SCORE_BYTES, ContentFilter
from .leases import HeldLeases
from .models import embedder_from, judge_from
from .models.cache import SCHEMA as CACHE_SCHEMA
from .outcomes import Outcomes
from .plan import Planner
from .queues import JobQueue, outages_from, queue_from, spend_book_from
from .queues.sqlite import SCHEMA as QUEUE_SCHEMA
from .runner import FollowUps, JobOptions, JobRunner
from .session import Models

_ESTIMATE_WINDOW = 3_600.0
_LEASES = 10
"""A process extends a job's lease for this many lease durations or, if longer, twice the judge's or embedder's deadline."""

_log = logging.getLogger("otel_agenteval")


def judging_from(
    config: Config,
    of_turns: Sequence[BoundMetric],
    of_conversations: Sequence[BoundMetric],
    telemetry: Telemetry,
    put: Callable[[Sequence[ScoredTurn], int], bool],
    failed: Callable[[str, BaseException], None],
    clock: Clock,
    shedding: Shedding,
    record_outcome: Callable[[str, str, str], None] | None = None,
) -> Dispatcher:
    """Return the configured dispatcher. ``put`` receives scores and their size in bytes, and adds the scores to the worker's queue.
    If that queue is full, ``put`` returns False. ``record_outcome`` receives a turn ID, a metric, and an outcome, and must be safe
    to call on any thread.
    """
    wanted = config.judge
    for name, path, schema, consequence in (
        ("queue", wanted.queue.path, QUEUE_SCHEMA, "judge jobs are queued in memory"),
        ("cache", wanted.cache.path, CACHE_SCHEMA, "replies aren't cached"),
    ):
        if path is not None:
            warn_of_fault(config.where(("judge", name, "path")), path, schema.fault_of, consequence)
    metrics = JudgedMetrics(config, of_turns, of_conversations)
    longest = max(_LEASES * wanted.queue.lease, 2 * max(wanted.deadline, config.embedder.deadline))
    leases = HeldLeases(queue_from(wanted.queue, clock, failed), wanted.queue.lease, longest, clock, failed)
    if wanted.queue.backend == "memory" and bounds_of(wanted.budget):
        _log.warning(
            "judge.budget: applies only to this process, and a restart resets the spending. To share and keep the spending, set "
            "judge.queue to {backend: sqlite, path: FILE}"
        )
    budget = JudgeBudget(bounds_of(wanted.budget), spend_book_from(wanted.queue), clock, wanted.budget.soft)
    outcomes = Outcomes(telemetry, record_outcome)
    calibration, corrected = config.statistics.calibration, None
    if calibration is not None:
        confusions = read_calibration(calibration, config.where(("statistics", "calibration")))
        corrected = Corrected(confusions, _ESTIMATE_WINDOW, clock)
    sample = JudgedSample(Estimates(_ESTIMATE_WINDOW, clock), corrected)
    sample.estimates.watch(telemetry)
    if corrected is not None:
        corrected.watch(telemetry)
    content = ContentFilter(config.privacy.redact, exporter_of(config))
    chooser = Chooser(metrics, sample, wanted.seed or "", wanted.incomplete == "judge", failed, clock)
    planner = Planner(metrics, chooser, sample, content, outcomes, shedding, failed, clock)
    options = JobOptions(
        attempts=wanted.attempts, threads=wanted.max_concurrency, max_age=wanted.queue.max_age,
        audit=wanted.cache.audit if wanted.cache.path is not None else 0.0, works=wanted.queue.work,
        lasting=wanted.queue.backend != "memory",
    )  # fmt: skip
    breakers = CircuitBreakers(clock, outages_from(wanted.queue))
    follow_ups = FollowUps(metrics, sample, content)
    runner = JobRunner(
        metrics, follow_ups, content, lambda: Models(judge_from(config), embedder_from(config)), budget, telemetry, breakers, outcomes,
        options, failed, clock,
    )  # fmt: skip
    _watch(telemetry, leases.queue, budget, works=wanted.queue.work)
    return Dispatcher(
        planner, runner, leases, outcomes, lambda verdict: put(verdict.turns(), SCORE_BYTES), failed, options, clock
    )


def _watch(telemetry: Telemetry, queue: JobQueue, budget: JudgeBudget, *, works: bool) -> None:
    for name in (semconv.JUDGE_REQUESTS, semconv.JUDGE_CACHE) if works else ():
        telemetry.expect(name)
    telemetry.watch(semconv.QUEUE_SIZE, lambda: [({"queue": "judge"}, queue.bytes)])
    telemetry.watch(semconv.QUEUE_HELD, lambda: [({"queue": "judge"}, queue.unsent)])
    telemetry.watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "judge"}, queue.max_bytes)])
    for name, unit in ((semconv.BUDGET_REMAINING, "usd"), (semconv.BUDGET_CALLS, "calls")):
        telemetry.watch(name, functools.partial(budget.remaining, unit))
