"""Outlet for OpenTelemetry events: one log record per score, under the turn's root.

The event name is ``gen_ai.evaluation.result``. A log record can refer to a span that has ended, so this outlet can emit every
score, including a judged score minutes later. Messages of the turn are only written if configured.
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
    "no SDK LoggerProvider is set up, so scores that aren't span events are not exported as events; "
    "set up a LoggerProvider, or set outlets.log_events to off"
)


def usable(provider: object) -> bool:
    """Return True if a provider is an SDK's. The API's placeholders discard everything."""
    return callable(getattr(provider, "force_flush", None))


def context_of(root: Root) -> Context:
    """Return a context in which the evaluated root is the current span, open or not."""
    flags = TraceFlags(TraceFlags.SAMPLED if root.sampled else TraceFlags.DEFAULT)
    span_context = SpanContext(root.trace_id, root.span_id, is_remote=False, trace_flags=flags, trace_state=root.trace_state)
    return set_span_in_context(NonRecordingSpan(span_context))


def turn_attributes(scored: ScoredTurn, instance_id: str) -> dict[str, Any]:
    """Return the known attributes that all scores of a turn share."""
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
    """Return the attributes of a score's event. An error has no score attributes."""
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
    """Outlet that writes scores to a :func:`usable` provider. Skipped scores aren't written."""

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
        """Write the records, with instrumentation of the export suppressed."""
        token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
        try:
            _, fault = self.render(batch, self._emit_turn)
        finally:
            detach(token)
        if fault is not None:
            raise fault

    def announce(self, change: Change, root: Root) -> None:
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
        """Make the provider export. The SDK finishes a running export, beyond the timeout."""
        return bool(self._provider.force_flush(int(timeout * 1000)))  # type: ignore[attr-defined]  # the SDK's, see usable()

    def logger_of(self, root: Root) -> Logger:
        """Return the logger whose Resource describes the root's service."""
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
    """Return the outlet, which waits for its provider. None if ``outlets.otlp`` does its work."""
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
