"""Build an engine from a configuration."""

from __future__ import annotations

import logging
import os
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any

from ..config.loader import load_config, variable_of
from ..config.root import Config
from ..config.types import truth_of
from ..core import forks
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import ConfigError
from ..core.telemetry import Telemetry
from ..core.version import __version__
from ..evaluation.evaluator import Evaluator
from ..evaluation.limits import ForeignMetrics, Shedding
from ..evaluation.names import public_name
from ..evaluation.redaction import exporter_of
from ..evaluation.references import ReferenceSources
from ..outlets.base import Setup
from ..outlets.fan_out import FanOut, outlets_from
from ..outlets.span_events import SpanEventOutlet
from ..turns.assembler import Assembler
from ..turns.composer import REVISABLE_BYTES, Composer
from ..turns.conversations import Conversations
from ..turns.late_data import EarlyLogs, role_of_span
from .ending_root import DeferredTurns, EndingRoots, TurnScorer
from .engine import BEHIND_OTLP, Engine, WarmUp, check_models, limits_of, switched_on
from .feedback import FeedbackJoiner, RecentTurns
from .hints import Hints, name_missing_models, name_missing_packages
from .intake import Intake
from .outcomes import TurnOutcomes
from .pipeline import Pipeline
from .score_statistics import ScoreStatistics
from .selected import selected
from .status import InternalErrors, Status, watch_engine
from .watchdog import Watchdog
from .work import ClosedSpans, JudgedTurns
from .worker import Worker

if TYPE_CHECKING:
    from ..judging.dispatcher import Dispatcher
    from ..statistics.changes import Change

_log = logging.getLogger("otel_agenteval")

_RECENT, _RECENT_IN_PROCESS = 20_000, 1_000
"""Maximum number of scored turns to remember for user feedback: behind OTLP or an exporter, and behind a span processor."""
_REVISABLE_IN_PROCESS = 3 * 2**20
"""Maximum bytes of evaluated turns to keep in case late spans arrive behind a span processor, where late spans are rare."""
_EARLY_BYTES = 32 * 1024 * 1024
"""Maximum total bytes of log records that wait for their spans."""


class _InstanceId:
    """Random ID of an engine. A forked child process's engine gets a new ID."""

    def __init__(self) -> None:
        self._renew()
        forks.in_child(self._renew)

    def _renew(self) -> None:
        self._id = str(uuid.uuid4())

    def __call__(self) -> str:
        return self._id


def _explained(path: str, change: Change) -> Change:
    from ..report.differences import explained  # imports numpy

    return explained(path, change)


def without_environment(
    config: Config | Mapping[str, Any] | str | None, error: ConfigError, overrides: Mapping[str, Any] | None = None
) -> Config:
    """Load the configuration without environment variables, and log that scoring is off.

    Call this function after ``load_config`` raised ``error``. An invalid environment variable must not stop an agent.

    Raises ConfigError if the environment didn't cause the error, or if ``strict`` is true.
    """
    own = load_config(config, env={}, overrides=overrides)
    selected(own)
    try:
        is_alone = load_config(config, overrides=overrides) == own
    except ConfigError:
        is_alone = False
    if is_alone or own.strict or truth_of(os.environ.get(variable_of(("strict",)))):
        raise error
    _log.error("otel-agenteval is off: %s", "; ".join(str(error).splitlines()))
    return own


def engine_from(
    config: Config,
    *,
    decision_delay: float = 2.0,
    logger_provider: Any = None,
    meter_provider: Any = None,
    clock: Clock = SYSTEM_CLOCK,
    waited: Callable[[], float] | None = None,
    enabled: bool = True,
) -> Engine:
    """Return an engine with all components. Raises ConfigError if the configuration is invalid. ``decision_delay`` (seconds) is
    used for ``turn.decision_delay: auto``. If a provider is None, the global provider is used from the first score on. ``waited``
    returns the time in seconds for turn and conversation deadlines. If ``enabled`` is False, outlets aren't opened.
    """
    metrics = selected(config)
    waited = waited or clock.monotonic
    is_behind_otlp = decision_delay >= BEHIND_OTLP
    enabled = enabled and switched_on()
    instance_id = _InstanceId()
    errors = InternalErrors()
    shedding = Shedding(clock.monotonic)
    redacted = frozenset(config.privacy.redact)
    telemetry = Telemetry(clock, public=lambda name: public_name(name, redacted))
    setup = Setup(config, telemetry, instance_id, __version__, logger_provider, meter_provider, clock)
    outlets = FanOut(outlets_from(setup) if enabled else (), telemetry, config.privacy.redact, exporter_of(config))

    # before the components that put items into its queue
    worker = Worker(outlets.flush, config.queue.max_bytes, outlets.can_emit, errors.report, clock.monotonic)

    judging: Dispatcher | None = None
    if metrics.any_judged:
        from ..judging.factory import judging_from  # only imported if a metric is judged

        judging = judging_from(
            config, metrics.of_turns, metrics.of_conversations, telemetry, lambda turns, size: worker.put(JudgedTurns(turns, size), size),
            errors.report, clock, shedding, outlets.record_outcome,
        )  # fmt: skip
        name_missing_models([*metrics.of_turns, *metrics.of_conversations], judging.runner.models)
    else:
        check_models(config)

    assembler = Assembler(limits_of(config, decision_delay), role_of_span, waited)
    early_logs = EarlyLogs(_EARLY_BYTES, lambda: engine.config.turn.idle_timeout, waited)
    revisable = REVISABLE_BYTES if is_behind_otlp else _REVISABLE_IN_PROCESS
    composer = Composer(
        config.turn.stitch_timeout, waited, revisable, config.turn.max_duration, assembler.open_spans,
        lambda: (closed for item in worker.unhandled() if isinstance(item, ClosedSpans | DeferredTurns) and (closed := item.closed)),
    )  # fmt: skip
    watchdog = Watchdog(lambda: engine.config.turn.max_work)
    foreign = ForeignMetrics(lambda: 1.5 * engine.config.turn.max_work, lambda: watchdog.within if watchdog.watches else None)
    evaluator = Evaluator(
        metrics.computed, metrics.whole, ReferenceSources(config), config.inline.budget, shedding, config.inline.expected, foreign
    )
    conversations: Conversations | None = None
    if metrics.conversations:
        wanted = config.conversation
        conversations = Conversations(
            wanted.idle_timeout, wanted.max_open, wanted.max_turns, wanted.max_bytes, waited, metrics.history
        )
        forks.in_child(conversations.forget)

    def metric_names(conversation: bool) -> Sequence[str]:
        computed = [metric.name for metric in evaluator.whole] if conversation else evaluator.names
        return [*computed, *(judging.metrics.names(conversation=conversation) if judging is not None else ())]

    inline = config.inline.metrics
    configured = {entry.metric for _, entry in config.metric_entries()} | (set() if isinstance(inline, str) else set(inline))
    hints = Hints(configured & set(evaluator.names))
    name_missing_packages([*metrics.of_turns, *metrics.of_conversations], inline)
    recent = RecentTurns(_RECENT if is_behind_otlp else _RECENT_IN_PROCESS)
    feedback = FeedbackJoiner(config.feedback, composer, recent, telemetry, waited, config.outlets.store is not None)
    outcomes = TurnOutcomes(telemetry, composer, metric_names, outlets.count_error)
    kept = {} if judging is None else {"estimates": judging.sample.estimates, "verdicts": judging.sample.corrected}
    statistics = ScoreStatistics(config.statistics, kept, telemetry, clock)
    span_events = SpanEventOutlet(config.outlets.span_events)
    scorer = TurnScorer(
        composer, evaluator, feedback, outlets, hints, lambda: judging is not None and judging.metrics.wants_events
    )
    store = config.outlets.store
    pipeline = Pipeline(
        composer, scorer, evaluator, outlets, span_events, outcomes, feedback, statistics, hints, conversations, judging, watchdog,
        worker.set_aside, lambda: worker.queue.fill, None if store is None else partial(_explained, store.path),
    )  # fmt: skip
    needs_content = conversations is not None or judging is not None
    roots = EndingRoots(scorer, composer, span_events, outlets, evaluator, needs_content, outcomes.lose_closed)
    intake = Intake(assembler, early_logs, roots, pipeline, worker, hints, telemetry)
    worker.connect(pipeline.run, intake.tick)
    status = Status(assembler, intake, composer, worker, errors.counts)
    watch_engine(telemetry, status, assembler, worker, pipeline, outlets, errors.counts)
    for discard in (assembler.forget, early_logs.forget, composer.after_fork_in_child):
        forks.in_child(discard)
    forks.in_child(outlets.after_fork_in_child, forks.Step.OUTLETS)
    warm_up = WarmUp(lambda: chain(evaluator.warm_up(), outlets.warm_up()), errors.report)
    if enabled:
        warm_up.start()
    engine = Engine(
        config, decision_delay, enabled, instance_id, telemetry, errors, outlets, assembler, intake, pipeline, watchdog, worker, status,
        warm_up,
    )  # fmt: skip
    return engine
