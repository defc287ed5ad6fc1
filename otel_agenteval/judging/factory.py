"""Judging as a configuration asks for it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress

from ..config.keypath import KeyPath
from ..config.root import Config
from ..core.clock import Clock
from ..core.errors import ConfigError, nearest
from ..core.sqlite import fault_of
from ..core.telemetry import Telemetry
from ..evaluation.load_shedding import Shedding
from ..evaluation.redaction import exporter_of
from ..metrics.bound_metric import BoundMetric
from ..outlets.base import Verdict
from ..statistics.estimates import Estimates
from .budget import WINDOWS, Budget, bounds_of
from .dispatcher import Judging
from .job import SCORE_BYTES
from .models import embedder_from, judge_from, seal_from
from .outcomes import Fates
from .planner import Offers
from .queues import outages_from, queue_from, spend_book_from
from .queues.sealed import SealedQueue
from .session import Models

_log = logging.getLogger("otel_agenteval")

_LEASES = 10
"""For how many leases a job is held whose metric comes to no end."""


def judging_from(
    config: Config,
    metrics: Sequence[BoundMetric],
    conversation_metrics: Sequence[BoundMetric],
    telemetry: Telemetry,
    put: Callable[[Verdict, int], bool],
    failed: Callable[[str, BaseException], None],
    clock: Clock,
    shedding: Shedding,
    note_outcome: Callable[[str, str, str], None] | None = None,
) -> Judging:
    """What a configuration asks for. ``put`` hands a score of so many bytes to the worker;
    ``note_outcome`` is called, on any thread, with turn id, metric, and what became of it.

    Raises:
        ConfigError: a bound for a metric that is not judged.
    """
    wanted = config.judge
    queue = wanted.queue
    _warn_of(config, ("judge", "queue", "path"), queue.path, "judged metrics are dropped")
    _warn_of(config, ("judge", "cache", "path"), wanted.cache.path, "no verdict is kept")
    _refuse_bounds(config, {metric.name for metric in (*metrics, *conversation_metrics)})
    jobs = queue_from(queue, clock)
    if queue.backend != "memory":
        seal = seal_from(config)
        jobs = jobs if seal is None else SealedQueue(jobs, seal, clock)
    fates = Fates(telemetry, note_outcome)
    estimates = Estimates(WINDOWS["hour"], clock)
    offers = Offers(
        metrics,
        conversation_metrics,
        seed=wanted.seed or "",
        redact=config.privacy.redact,
        incomplete=wanted.incomplete == "judge",
        exported=exporter_of(config),
        shedding=shedding,
        fates=fates,
        estimates=estimates,
        failed=failed,
        clock=clock,
    )
    return Judging(
        offers,
        fates,
        lambda: Models(judge_from(config), embedder_from(config)),
        jobs,
        Budget(bounds_of(wanted.budget), spend_book_from(queue), clock, wanted.budget.soft),
        telemetry,
        lambda verdict: put(verdict, SCORE_BYTES),
        failed,
        attempts=wanted.attempts,
        threads=wanted.max_concurrency,
        lease=queue.lease,
        longest=max(_LEASES * queue.lease, 2 * max(wanted.deadline, config.embedder.deadline)),
        max_age=queue.max_age,
        audit=wanted.cache.audit if wanted.cache.path is not None else 0.0,
        clock=clock,
        works=queue.work,
        lasting=queue.backend != "memory",
        outages=outages_from(queue),
        estimates=estimates,
    )


def _warn_of(config: Config, where: KeyPath, path: str | None, until: str) -> None:
    """Tell of a file that cannot be used. The agent goes on all the same, and so do we once it can."""
    fault = None
    if path is not None:
        with suppress(OSError):
            fault = fault_of(path)
    if fault is not None:
        _log.warning("%s: %s; %s until that is mended", config.where(where), fault, until)


def _refuse_bounds(config: Config, judged: Collection[str]) -> None:
    for name in config.judge.budget.metrics:
        if name not in judged:
            close = nearest(name, list(judged), 1)
            hint = f"did you mean {close[0]}?" if close else "none is configured"
            raise ConfigError(
                f"{config.where(('judge', 'budget', 'metrics', name))}: not a judged metric of this configuration; {hint}"
            )
