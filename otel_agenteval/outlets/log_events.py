"""Scores as OpenTelemetry events: one log record ``gen_ai.evaluation.result`` each, under the evaluated turn's root.

A log record can point at a span long after that span ended. So every score can leave through this outlet, also one that a judge gave
minutes later. Nothing of the turn's messages is written; an explanation is the metric's own sentence.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from opentelemetry._logs import SeverityNumber, get_logger_provider
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, attach, detach, set_value
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from ..core import semconv
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.score import Score
from ..evaluation.scored_turn import Root, ScoredTurn
from .accounting import answering_call
from .base import Outlet, Setup
from .change_event import change_attributes
from .late_outlet import LateOutlet
from .selection import LogEvents, log_mode, scores_to_log

if TYPE_CHECKING:
    from opentelemetry._logs import Logger, LoggerProvider

    from ..statistics.changes import Change

_NO_PROVIDER = (
    "no SDK LoggerProvider is set up, so scores that their span does not carry leave no event (outlets.log_events: off says that "
    "this is meant); span events and metrics work without"
)


def usable(provider: object) -> bool:
    """Whether a Logger- or MeterProvider is an SDK's: the placeholders of the API lead nowhere, and cannot be flushed."""
    return callable(getattr(provider, "force_flush", None))


def context_of(root: Root) -> Context:
    """A context in which the evaluated root is the current span, whether or not it is still open."""
    flags = TraceFlags(TraceFlags.SAMPLED if root.sampled else TraceFlags.DEFAULT)
    span_context = SpanContext(root.trace_id, root.span_id, is_remote=False, trace_flags=flags, trace_state=root.trace_state)
    return set_span_in_context(NonRecordingSpan(span_context))


def turn_attributes(scored: ScoredTurn, instance_id: str) -> dict[str, Any]:
    """The attributes that all scores of a turn share. What is unknown is left out."""
    turn = scored.turn
    call = answering_call(turn)
    shared: dict[str, Any] = {
        semconv.RESPONSE_ID: call.response_id if call is not None else None,
        semconv.CONVERSATION_ID: turn.conversation_id,
        semconv.AGENT_NAME: turn.agent,
        **scored.root.labels,
        semconv.TENANT: scored.root.tenant,
        semconv.TURN_ID: turn.turn_id,
        semconv.TURN_SUPERSEDES: scored.supersedes,
        semconv.TURN_REVISION: turn.revision,
        semconv.TURN_CLOSE_REASON: turn.close_reason,
        semconv.TURN_COMPLETE: turn.complete,
        semconv.INSTANCE_ID: instance_id,
        **scored.content,
    }
    if scored.judged is not None:
        shared |= {
            semconv.SAMPLE_PROBABILITY: scored.judged.probability,
            semconv.UPSTREAM_PROBABILITY: scored.judged.upstream,
            semconv.DECIDED_BY: scored.judged.decided_by,
            semconv.JUDGE_MODEL: scored.judged.model,
            semconv.JUDGE_COST: scored.judged.cost_usd,
            semconv.JUDGE_INPUT_TRUNCATED: scored.judged.input_truncated or None,
        }
    return {key: value for key, value in shared.items() if value is not None}


def event_attributes(score: Score, shared: dict[str, Any]) -> dict[str, Any]:
    """All attributes of one score's event. An error has ``error.type`` and nothing that could be read as a score."""
    attributes = {
        semconv.EVALUATION_NAME: score.metric,
        **shared,
        semconv.RESULT_ID: score.result_id,
        semconv.METRIC_KIND: score.kind,
        semconv.METRIC_VERSION: score.version,
        semconv.POLICY: score.policy,
    }
    if score.explanation:
        attributes[semconv.EXPLANATION] = score.explanation
    if score.threshold is not None:
        attributes[semconv.THRESHOLD] = float(score.threshold)
    if score.status == "error":
        attributes[semconv.ERROR_TYPE] = score.error_type or "_OTHER"
        return attributes
    if score.value is not None:
        attributes[semconv.SCORE_VALUE] = float(score.value)
    if score.label is not None:
        attributes[semconv.SCORE_LABEL] = score.label
    if score.verdict is not None:
        attributes[semconv.PASSED] = score.verdict
    return attributes


class LogEventOutlet(Outlet):
    """Writes scores to a LoggerProvider of the SDK (see :func:`usable`); skipped scores are not written.

    Args:
        provider: where the records go. They carry the provider's Resource, which in-process is the evaluated root's too.
        instance_id: tells the engines of a fleet apart, ``agenteval.instance.id``.
        version: of this package, for the scope.
        clock: dates the records.
        mode: which scores leave, see :func:`~otel_agenteval.outlets.selection.scores_to_log`.
    """

    name = "log_events"
    flushed_at_exit = False

    def __init__(
        self,
        provider: LoggerProvider,
        instance_id: str,
        version: str,
        clock: Clock = SYSTEM_CLOCK,
        mode: LogEvents = "all",
    ) -> None:
        self.instance_id = instance_id
        self._provider = provider
        self._clock = clock
        self._mode = mode
        self._logger = provider.get_logger(semconv.SCOPE, version)

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        """Write the records. A processor that exports at once does so here, with instrumentation suppressed."""
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            _, fault = self.render(batch, self._emit_turn)
        finally:
            detach(token)
        if fault is not None:
            raise fault

    def announce(self, change: Change, root: Root) -> None:
        """Write one record, under the turn that showed the change."""
        now = self._clock.time_ns()
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            self.logger_of(root).emit(
                timestamp=now,
                observed_timestamp=now,
                context=context_of(root),
                severity_number=SeverityNumber.WARN if change.verdict == "worse" else SeverityNumber.INFO,
                event_name=semconv.CHANGE_EVENT,
                body=change.title,
                attributes=change_attributes(change, self.instance_id),
            )
        finally:
            detach(token)

    def flush(self, timeout: float) -> bool:
        """Ask the provider to export now. The SDK may take longer than ``timeout`` seconds: it ends its running export."""
        return bool(self._provider.force_flush(int(timeout * 1000)))  # type: ignore[attr-defined]  # the SDK's, see usable()

    def logger_of(self, root: Root) -> Logger:
        """The logger whose Resource stands for the root's service: in one process there is one."""
        return self._logger

    def _emit_turn(self, scored: ScoredTurn) -> None:
        written = scores_to_log(scored, self._mode)
        if not written:
            return
        logger = self.logger_of(scored.root)
        context = context_of(scored.root)
        shared = turn_attributes(scored, self.instance_id)
        now = self._clock.time_ns()
        for score in written:
            logger.emit(
                timestamp=now,
                observed_timestamp=now,
                context=context,
                severity_number=SeverityNumber.WARN if score.status == "error" else SeverityNumber.INFO,
                event_name=semconv.EVENT,
                attributes=event_attributes(score, shared),
            )


def outlet_from(wanted: LogEvents, setup: Setup) -> Outlet | None:
    """Log events through the provider of the setup, as soon as there is one; ``auto`` leaves them to ``outlets.otlp``, if that sends them."""
    otlp = setup.config.outlets.otlp
    if wanted == "auto" and otlp is not None and otlp.log_events in ("auto", "all"):
        return None
    mode = log_mode(wanted, setup.config)

    def make() -> Outlet | None:
        provider = get_logger_provider() if setup.logger_provider is None else setup.logger_provider
        return LogEventOutlet(provider, setup.instance_id(), setup.version, mode=mode) if usable(provider) else None

    def is_missed(batch: Sequence[ScoredTurn]) -> bool:
        return any(scores_to_log(scored, mode) for scored in batch)

    return LateOutlet(LogEventOutlet.name, make, _NO_PROVIDER, is_missed)
