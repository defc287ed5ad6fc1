"""Status of a running engine: fill levels, progress, and span counts. The module also registers the engine's own metrics.

Reading the status doesn't have side effects.
"""

from __future__ import annotations

import logging
import platform
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from ..core import forks, semconv
from ..core.errors import MissingExtra, Unusable
from ..core.telemetry import Telemetry
from ..core.version import __version__
from ..outlets.fan_out import FanOut
from ..turns.assembler import Assembler
from ..turns.composer import Composer
from .intake import Intake
from .pipeline import Pipeline
from .worker import Worker

_TAKES_SPANS = ("on_start", "on_end", "export")
"""Components in which an internal error drops a span."""


class OpenTurns(NamedTuple):
    """Number and size of open turns, and the limits. Above a limit, the engine closes turns early."""

    turns: int
    most_turns: int
    bytes: int
    most_bytes: int

    def fill(self, size: int = 0, turns: int = 0) -> float:
        """Return the higher fill level (bytes or turns) as if ``size`` and ``turns`` were added. Above 1, turns close early."""
        return max((self.bytes + size) / self.most_bytes, (self.turns + turns) / self.most_turns)


class TenantTurns(NamedTuple):
    open: int
    new: int
    """Number of traces passed to :meth:`Status.turns_of` that would open a turn."""
    next_close: float
    """Seconds until the deadline of the oldest open turn, or 0 if no turn is open."""


class EngineSpans(NamedTuple):
    """Span counts: ``received`` is the sum of ``scored``, ``unused``, and ``held``."""

    received: int
    scored: int
    unused: dict[str, int]
    open_turns: int

    @property
    def held(self) -> int:
        """Number of spans whose turn is open or waits for evaluation."""
        return self.received - self.scored - sum(self.unused.values())


class Checkpoint(NamedTuple):
    """Point in the engine's work. The engine passes this point when all turns that closed earlier are evaluated."""

    queued: int
    """Number of items queued before the checkpoint. The checkpoint is passed when this number of items is handled."""
    held: set[int]
    """Traces passed to :meth:`Status.checkpoint` that had data outside the queue at that time, such as an open turn."""


class Status:
    def __init__(
        self, assembler: Assembler, intake: Intake, composer: Composer, worker: Worker, errors: Mapping[str, int]
    ) -> None:
        self._assembler = assembler
        self._intake = intake
        self._composer = composer
        self._worker = worker
        self._errors = errors

    @property
    def open_turns(self) -> OpenTurns:
        assembler = self._assembler
        return OpenTurns(assembler.open_turns, assembler.limits.max_open, assembler.bytes, assembler.max_bytes)

    def is_open(self, trace_id: int) -> bool:
        return self._assembler.is_open(trace_id)

    def turns_of(self, tenant: int, trace_ids: Iterable[int] = ()) -> TenantTurns:
        """Return how many turns of a tenant are open, how many of ``trace_ids`` would open one, and when the next turn closes."""
        assembler = self._assembler
        with assembler.lock:
            new = sum(not assembler.knows(trace_id) for trace_id in trace_ids)
            return TenantTurns(assembler.open_turns_of(tenant), new, assembler.next_close_of(tenant))

    @property
    def waiting_turns(self) -> int:
        return len(self._worker.queue)

    def queue_fill(self, added: int = 0) -> float:
        return (self._worker.queue.bytes + added) / self._worker.queue.max_bytes

    def checkpoint(self, trace_ids: set[int]) -> Checkpoint:
        return Checkpoint(*self._worker.mark(lambda: self._intake.held(trace_ids)))

    def has_passed(self, checkpoint: Checkpoint) -> bool:
        return self._worker.queue.has_handled(checkpoint.queued)

    def spans(self) -> EngineSpans:
        with self._assembler.lock:
            return EngineSpans(
                self._assembler.received, self._composer.spans.scored, self.unused_spans(), self._assembler.open_turns
            )

    def unused_spans(self) -> dict[str, int]:
        """Return the number of received spans that weren't scored, by reason. Each span counts once."""
        found = Counter(self._composer.spans.left_out)
        found["late"] += self._assembler.late.unused
        found["moved"] += self._assembler.moved
        found["pruned"] = self._assembler.pruned_spans
        found["duplicate"] = self._assembler.duplicates
        found["error"] = sum(self._errors.get(where, 0) for where in _TAKES_SPANS)
        return {reason: count for reason, count in found.items() if count}

    def dropped(self) -> dict[str, int]:
        """Return the numbers of unscored spans (by reason), of missing parents, and of late log records."""
        found = self.unused_spans()
        also = {"orphan_parent": self._assembler.orphan_parents, "late_log_record": self._intake.late_log_records}
        return {**found, **{reason: count for reason, count in also.items() if count}}


# --- the engine's own metrics, which are plain integers that are read at collection

_log = logging.getLogger("otel_agenteval")

_LOST_WITH_A_TURN = ("queue_full", "shutdown", "fault", "stuck", "too_long")
"""Reasons for dropping a turn, which also drops the scores of the turn's computed metrics."""


class InternalErrors:
    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self.counts.clear()

    def report(self, where: str, error: BaseException) -> None:
        """Count an internal error. Log only each component's first error, with content only at level DEBUG."""
        self.counts[where] += 1
        if self.counts[where] == 1:
            kind = str(error) if isinstance(error, (MissingExtra, Unusable)) else type(error).__name__
            exc_info = _log.isEnabledFor(logging.DEBUG)
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
    """Register the metrics about the engine itself. Known label values start at zero."""
    watch = telemetry.watch
    watch(semconv.SPANS_RECEIVED, lambda: [({}, assembler.received)])
    watch(semconv.SPANS_DROPPED, lambda: [({"reason": reason}, n) for reason, n in status.dropped().items()])
    watch(semconv.FAULTS, lambda: [({"where": where}, n) for where, n in errors.copy().items()])
    readings = pipeline.composer.readings
    watch(
        semconv.TURNS_READ, lambda: [({"scope": scope, "reading": how}, n) for (scope, how), n in readings.turns.copy().items()]
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
    """Export the drop counters of turn metrics and judged metrics from the start, with the value 0."""
    telemetry.expect(semconv.DROPPED, metric=pipeline.evaluator.names, reason=_LOST_WITH_A_TURN)
    if pipeline.judging is not None:
        judged = pipeline.judging.metrics
        telemetry.expect(semconv.DROPPED, metric=[*judged.names(conversation=False), *judged.names(conversation=True)])
