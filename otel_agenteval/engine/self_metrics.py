"""The engine's metrics about itself, kept as plain integers and read at collection."""

from __future__ import annotations

import logging
import platform
from collections import Counter

from ..core import forks, semconv
from ..core.errors import MissingExtra
from ..core.telemetry import Telemetry
from ..core.version import __version__
from ..outlets.fan_out import FanOut
from ..turns.assembler import Assembler
from .pipeline import Pipeline
from .status import Status
from .worker import Worker

_log = logging.getLogger("otel_agenteval")

_LOST_WITH_A_TURN = ("queue_full", "shutdown", "fault", "stuck", "too_long")
"""Reasons for which a computed metric is dropped with its turn."""


class InternalErrors:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self.counts.clear()

    def report(self, where: str, error: BaseException) -> None:
        """Count an error of a component, and log the first one without content."""
        self.counts[where] += 1
        if self.counts[where] == 1:
            kind, exc_info = (
                str(error) if isinstance(error, MissingExtra) else type(error).__name__,
                _log.isEnabledFor(logging.DEBUG),
            )
            _log.warning("%s failed: %s (further failures are only counted)", where, kind, exc_info=exc_info)


def watch_engine(
    telemetry: Telemetry,
    status: Status,
    assembler: Assembler,
    worker: Worker,
    pipeline: Pipeline,
    outlets: FanOut,
    errors: Counter[str],
) -> None:
    """Register the engine's metrics, with zero values for all known labels."""
    watch = telemetry.watch
    watch(semconv.SPANS_RECEIVED, lambda: [({}, assembler.received)])
    watch(semconv.SPANS_DROPPED, lambda: [({"reason": reason}, n) for reason, n in status.dropped().items()])
    watch(semconv.FAULTS, lambda: [({"where": where}, n) for where, n in errors.copy().items()])
    readings = pipeline.composer.readings
    watch(
        semconv.TURNS_READ,
        lambda: [({"scope": scope, "reading": how}, n) for (scope, how), n in readings.turns.copy().items()],
    )
    watch(
        semconv.UNREAD_TRACES,
        lambda: [({"scope": scope, "missing": missing}, n) for (scope, missing), n in readings.unread.copy().items()],
    )
    watch(semconv.VALUES_LIMITED, lambda: [({"kind": kind}, n) for kind, n in readings.limited.copy().items()])
    watch(semconv.LATE_SPANS, lambda: [({}, assembler.late_spans)])
    watch(semconv.TURNS_OPEN, lambda: [({}, assembler.open_turns)])
    watch(semconv.QUEUE_SIZE, lambda: [({"queue": "worker"}, worker.queue.bytes)])
    watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "worker"}, worker.queue.max_bytes)])
    watch(semconv.LOAD_LEVEL, lambda: [({}, pipeline.evaluator.shedding.level)])
    span_events = pipeline.span_events.outcomes
    watch(semconv.SPAN_EVENTS, lambda: [({"outcome": outcome}, n) for outcome, n in span_events.copy().items()])
    watch(semconv.EMIT_ERRORS, lambda: [({"outlet": o, "reason": r}, n) for (o, r), n in outlets.errors.copy().items()])
    watch(semconv.EMIT_WAITING, lambda: [({"outlet": name}, one.waiting) for name, one in outlets.records().items()])
    watch(semconv.OUTLET_DELIVERING, lambda: [({"outlet": one.name}, not outlets.trouble_of(one)) for one in outlets])
    watch(semconv.BUILD_INFO, lambda: [({"version": __version__, "python": platform.python_version()}, 1)])
    for name in (semconv.SPANS_DROPPED, semconv.FAULTS, semconv.VALUES_LIMITED, semconv.SPAN_EVENTS, semconv.FEEDBACK):
        telemetry.expect(name)
    names = {"metrics", *(outlet.name for outlet in outlets)}
    telemetry.expect(semconv.EMIT_ERRORS, outlet=names)
    telemetry.expect(semconv.EMIT_RECORDS, outlet=names)
    expect_metrics(telemetry, pipeline)


def expect_metrics(telemetry: Telemetry, pipeline: Pipeline) -> None:
    """Show zero values for all known labels that contain metrics."""
    telemetry.expect(semconv.DROPPED, metric=pipeline.evaluator.names, reason=_LOST_WITH_A_TURN)
    if pipeline.judging is not None:
        judged = pipeline.judging.metrics
        telemetry.expect(semconv.DROPPED, metric=[*judged.names(conversation=False), *judged.names(conversation=True)])
