"""Outlet for OpenTelemetry events: one log record per score, linked to the root span of the turn.

The event name is ``gen_ai.evaluation.result``. A log record can refer to an ended span. Therefore, this outlet can export all
scores, even a judge's score minutes later. Records contain the turn's messages only if ``privacy.export_content`` is set.
"""

from __future__ import annotations

import datetime
import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from opentelemetry._logs import SeverityNumber, get_logger_provider
from opentelemetry.context import _SUPPRESS_INSTRUMENTATION_KEY, Context, attach, detach, set_value
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

from ..config.types import LogEvents
from ..core import semconv
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.score import Score
from ..evaluation.scored_turn import Root, ScoredTurn
from .accounting import answering_call
from .base import Outlet, Setup

if TYPE_CHECKING:
    from opentelemetry._logs import LoggerProvider

    from ..config.root import Config
    from ..statistics.changes import Change

_log = logging.getLogger("otel_agenteval")

_NO_PROVIDER = (
    "outlets.log_events: no SDK LoggerProvider is configured, so scores aren't exported as log events; "
    "configure a LoggerProvider, or set the option to off"
)


def usable(provider: object) -> bool:
    """Return True if an SDK created ``provider``. Without an SDK, the API uses placeholder providers, which discard all data."""
    return callable(getattr(provider, "force_flush", None))


@contextmanager
def uninstrumented() -> Iterator[None]:
    """Suppress instrumentation in the ``with`` block, so that the block's exports don't create spans."""
    token = attach(set_value(_SUPPRESS_INSTRUMENTATION_KEY, True))
    try:
        yield
    finally:
        detach(token)


def context_of(root: Root) -> Context:
    """Return a context in which ``root``, the turn's root span, is the current span, even if this span has ended."""
    flags = TraceFlags(TraceFlags.SAMPLED if root.sampled else TraceFlags.DEFAULT)
    span_context = SpanContext(root.trace_id, root.span_id, is_remote=False, trace_flags=flags, trace_state=root.trace_state)
    return set_span_in_context(NonRecordingSpan(span_context))


def is_notable(score: Score) -> bool:
    return score.status == "error" or (score.status == "ok" and (score.policy == "gate" or score.verdict is False))


def severity_number(score: Score) -> int:
    summary = score.summary
    if summary.severity == "critical":
        return 17
    return 13 if summary.severity == "warning" or summary.outcome in ("fail", "error") else 9


def scores_to_log(scored: ScoredTurn, mode: LogEvents) -> list[Score]:
    """Return the scores that ``mode`` selects, except skipped scores. ``auto`` omits scores that are events on an exported span."""
    if mode == "notable":
        return [score for score in scored.scores if is_notable(score)]
    if mode == "off":
        return []
    carried = scored.on_span if mode == "auto" else ()
    return [score for place, score in enumerate(scored.scores) if score.status != "skipped" and place not in carried]


def log_mode(wanted: LogEvents, config: Config) -> LogEvents:
    """Return the ``wanted`` mode. If log events contain turn content, return ``all`` instead of ``auto``."""
    return "all" if wanted == "auto" and config.privacy.export_content else wanted


def turn_attributes(scored: ScoredTurn, instance_id: str) -> dict[str, Any]:
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
    """Return a score's event attributes. For a score with an error, ``error.type`` replaces the result."""
    attributes = {
        semconv.EVALUATION_NAME: score.metric,
        **shared,
        semconv.RESULT_ID: score.result_id,
        semconv.METRIC_KIND: score.kind,
        semconv.METRIC_VERSION: score.version,
        semconv.POLICY: score.policy,
    }
    if score.threshold is not None:
        attributes[semconv.THRESHOLD] = float(score.threshold)
    add_result(attributes, score)
    if score.explanation:
        attributes[semconv.EXPLANATION] = score.explanation
    return attributes


def add_result(found: dict[str, Any], score: Score) -> None:
    if score.status == "error":
        found[semconv.ERROR_TYPE] = score.error_type or "_OTHER"
        return
    if score.value is not None:
        found[semconv.SCORE_VALUE] = float(score.value)
    if score.label is not None:
        found[semconv.SCORE_LABEL] = score.label
    summary = score.summary
    if summary.verdict is not None:
        found[semconv.PASSED] = summary.verdict
    if summary.severity is not None:
        found[semconv.SEVERITY] = summary.severity


def change_attributes(change: Change, instance_id: str) -> dict[str, Any]:
    found = change.found
    low, high = found.difference
    since = datetime.datetime.fromtimestamp(found.since, datetime.timezone.utc)
    known = {
        semconv.EVALUATION_NAME: change.metric,
        semconv.AGENT_NAME: change.agent or None,
        semconv.TENANT: change.tenant,
        semconv.CHANGE_VERDICT: change.verdict,
        semconv.CHANGE_DETECTOR: found.detector,
        semconv.CHANGE_BEFORE: found.before,
        semconv.CHANGE_AFTER: found.after,
        semconv.CHANGE_DIFFERENCE: found.size,
        semconv.CHANGE_LOW: low,
        semconv.CHANGE_HIGH: high,
        semconv.CHANGE_SINCE: since.isoformat(timespec="seconds").replace("+00:00", "Z"),
        semconv.CHANGE_N: round(found.n, 1),
        semconv.CHANGE_TURNS: [exemplar.turn_id for exemplar in found.exemplars] or None,
        semconv.CHANGE_TRACES: [*filter(None, (one.trace_id for one in found.exemplars))] or None,
        semconv.CHANGE_VERSION_BEFORE: found.version_before,
        semconv.CHANGE_VERSION: found.version,
        semconv.CHANGE_FACTS: list(change.facts) or None,
        semconv.INSTANCE_ID: instance_id,
    }
    return {name: value for name, value in known.items() if value is not None}


class LogEventOutlet(Outlet):
    """Outlet that sends the scores that ``mode`` selects as log events to a :func:`usable` LoggerProvider."""

    name = "log_events"
    flushed_at_exit = False

    def __init__(
        self, provider: LoggerProvider, instance_id: str, version: str, clock: Clock = SYSTEM_CLOCK, mode: LogEvents = "all"
    ) -> None:
        self.instance_id = instance_id
        self._provider = provider
        self._clock = clock
        self._mode = mode
        self._logger = provider.get_logger(semconv.SCOPE, version)

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        with uninstrumented():
            _, fault = self.render(batch, self._emit_turn)
        if fault is not None:
            raise fault

    def announce(self, change: Change, root: Root) -> None:
        now = self._clock.time_ns()
        with uninstrumented():
            self._logger.emit(
                timestamp=now,
                observed_timestamp=now,
                context=context_of(root),
                severity_number=SeverityNumber.WARN if change.verdict == "worse" else SeverityNumber.INFO,
                event_name=semconv.CHANGE_EVENT,
                body=change.title,
                attributes=change_attributes(change, self.instance_id),
            )

    def flush(self, timeout: float) -> bool:
        """Flush the provider. The SDK waits for an export in progress, even if that export takes longer than ``timeout``."""
        return bool(self._provider.force_flush(int(timeout * 1000)))  # type: ignore[attr-defined]  # the SDK's, see usable()

    def _emit_turn(self, scored: ScoredTurn) -> None:
        written = scores_to_log(scored, self._mode)
        if not written:
            return
        context = context_of(scored.root)
        shared = turn_attributes(scored, self.instance_id)
        now = self._clock.time_ns()
        for score in written:
            self._logger.emit(
                timestamp=now,
                observed_timestamp=now,
                context=context,
                severity_number=SeverityNumber(severity_number(score)),
                event_name=semconv.EVENT,
                attributes=event_attributes(score, shared),
            )


class LateOutlet(Outlet):
    """Placeholder that creates the actual outlet when the application's provider becomes :func:`usable`.

    Until the provider is usable, the placeholder calls the function ``provider`` for each batch. At the first batch for which
    ``is_missed`` returns True, the placeholder logs the text ``missing`` once.
    """

    flushed_at_exit = False

    def __init__(
        self,
        name: str,
        provider: Callable[[], Any],
        make: Callable[[Any], Outlet],
        missing: str,
        is_missed: Callable[[Sequence[ScoredTurn]], bool] = lambda batch: True,
    ) -> None:
        self.name = name
        self._provider = provider
        self._make = make
        self._missing = missing
        self._is_missed = is_missed
        self._logged = False
        self._outlet: Outlet | None = None

    @property
    def trouble(self) -> str:
        return self._outlet.trouble if self._outlet is not None else ""

    def _found(self) -> Outlet | None:
        if self._outlet is None:
            provider = self._provider()
            self._outlet = self._make(provider) if usable(provider) else None
        return self._outlet

    def emit(self, batch: Sequence[ScoredTurn]) -> None:
        outlet = self._found()
        if outlet is not None:
            outlet.emit(batch)
        elif not self._logged and self._is_missed(batch):
            self._logged = True
            _log.info("%s", self._missing)

    def announce(self, change: Change, root: Root) -> None:
        outlet = self._found()
        if outlet is not None:
            outlet.announce(change, root)

    def flush(self, timeout: float) -> bool:
        return self._outlet.flush(timeout) if self._outlet is not None else True

    def close(self) -> None:
        if self._outlet is not None:
            self._outlet.close()

    def after_fork_in_child(self) -> None:
        """Discard the actual outlet, so that the forked child creates an outlet with a new instance ID."""
        self._outlet = None


def outlet_from(wanted: LogEvents, setup: Setup) -> Outlet | None:
    """Return the outlet. If ``wanted`` is ``auto`` and ``outlets.otlp`` already sends these log events, return None."""
    otlp = setup.config.outlets.otlp
    if wanted == "auto" and otlp is not None and otlp.log_events in ("auto", "all"):
        return None
    mode = log_mode(wanted, setup.config)
    return LateOutlet(
        LogEventOutlet.name,
        get_logger_provider if setup.logger_provider is None else lambda: setup.logger_provider,
        lambda provider: LogEventOutlet(provider, setup.instance_id(), setup.version, mode=mode),
        _NO_PROVIDER,
        lambda batch: any(scores_to_log(scored, mode) for scored in batch),
    )
