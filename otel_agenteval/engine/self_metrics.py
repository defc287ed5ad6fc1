"""The engine's metrics about itself, kept as plain integers and read at collection."""

from __future__ import annotations

import platform
from collections import Counter
from typing import TYPE_CHECKING

from .. import __version__
from ..core import semconv

if TYPE_CHECKING:
    from .engine import Engine

_LOST_WITH_A_TURN = ("queue_full", "shutdown", "fault", "stuck", "too_long")
"""Reasons for which a computed metric is dropped with its turn."""
_TAKES_SPANS = ("on_start", "on_end", "export")
"""Places where an internal error loses a span."""


def watch_engine(engine: Engine) -> None:
    """Register the engine's metrics, with zero values for all known labels."""
    watch = engine.telemetry.watch
    assembler, worker = engine.assembler, engine.worker
    watch(semconv.SPANS_RECEIVED, lambda: [({}, assembler.received)])
    watch(semconv.SPANS_DROPPED, lambda: [({"reason": reason}, n) for reason, n in dropped(engine).items()])
    watch(semconv.FAULTS, lambda: [({"where": where}, n) for where, n in engine.failures.copy().items()])
    readings = engine.pipeline.composer.readings
    watch(
        semconv.TURNS_READ,
        lambda: [({"scope": scope, "reading": how}, n) for (scope, how), n in readings.turns.copy().items()],
    )
    watch(semconv.UNREAD_TRACES, lambda: [({"scope": scope}, n) for scope, n in readings.unread.copy().items()])
    watch(semconv.VALUES_LIMITED, lambda: [({"kind": kind}, n) for kind, n in readings.limited.copy().items()])
    watch(semconv.LATE_SPANS, lambda: [({}, assembler.late_spans)])
    watch(semconv.TURNS_OPEN, lambda: [({}, assembler.open_turns)])
    watch(semconv.QUEUE_SIZE, lambda: [({"queue": "worker"}, worker.bytes)])
    watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "worker"}, worker.max_bytes)])
    watch(semconv.LOAD_LEVEL, lambda: [({}, engine.pipeline.evaluator.shedding.level)])
    watch(
        semconv.SPAN_EVENTS,
        lambda: [({"outcome": outcome}, n) for outcome, n in engine.pipeline.span_events.outcomes.copy().items()],
    )
    watch(semconv.EMIT_ERRORS, lambda: [({"outlet": o, "reason": r}, n) for (o, r), n in engine.outlets.errors.copy().items()])
    watch(semconv.EMIT_WAITING, lambda: [({"outlet": name}, one.waiting) for name, one in engine.outlets.records().items()])
    watch(semconv.OUTLET_DELIVERING, lambda: [({"outlet": one.name}, not one.trouble) for one in engine.outlets])
    watch(semconv.BUILD_INFO, lambda: [({"version": __version__, "python": platform.python_version()}, 1)])
    expect = engine.telemetry.expect
    outlets = {"metrics", *(outlet.name for outlet in engine.outlets)}
    expect(semconv.SPANS_DROPPED)
    expect(semconv.FAULTS)
    expect(semconv.VALUES_LIMITED)
    expect(semconv.SPAN_EVENTS)
    expect(semconv.FEEDBACK)
    expect(semconv.EMIT_ERRORS, outlet=outlets)
    expect(semconv.EMIT_RECORDS, outlet=outlets)
    expect_metrics(engine)


def expect_metrics(engine: Engine) -> None:
    """Show zero values for all known labels that contain metrics."""
    expect = engine.telemetry.expect
    expect(semconv.DROPPED, metric=engine.pipeline.evaluator.names, reason=_LOST_WITH_A_TURN)
    if engine.judging is not None:
        judged = engine.judging.metrics
        expect(semconv.DROPPED, metric=[*judged.names(conversation=False), *judged.names(conversation=True)])


def dropped(engine: Engine) -> dict[str, int]:
    """Return unused spans by reason, and missing parents and log records."""
    found = Counter(unused_spans(engine))
    found["orphan_parent"] = engine.assembler.orphan_parents
    found["late_log_record"] = engine.late_log_records
    return {reason: count for reason, count in found.items() if count}


def unused_spans(engine: Engine) -> dict[str, int]:
    """Return the number of received spans without a score, by reason.

    Each span is counted once.
    """
    assembler = engine.assembler
    found = Counter(engine.pipeline.composer.spans.left_out)
    found["late"] += assembler.late.unused
    found["moved"] += assembler.moved
    found["pruned"] = assembler.pruned_spans
    found["duplicate"] = assembler.duplicates
    found["error"] = sum(engine.failures[where] for where in _TAKES_SPANS)
    return {reason: count for reason, count in found.items() if count}
