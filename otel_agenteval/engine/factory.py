"""Factory that creates a pipeline from a configuration."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..core.clock import Clock
from ..evaluation.evaluator import Evaluator
from ..evaluation.load_shedding import Shedding
from ..evaluation.references import ReferenceSources
from ..outlets.span_events import SpanEventOutlet
from ..turns.composer import REVISABLE_BYTES, Composer
from ..turns.conversations import Conversations
from .feedback import FeedbackJoiner
from .fleet import Fleet
from .hints import Hints
from .outcomes import TurnOutcomes
from .pipeline import Pipeline
from .recent_turns import RecentTurns
from .selected import Selected
from .watchdog import Watchdog

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..judging.dispatcher import Dispatcher
    from ..judging.verdict import Verdict
    from .engine import Engine
    from .work import WorkItem


_RECENT, _RECENT_IN_PROCESS = 20_000, 1_000
"""Number of scored turns that are remembered for later user feedback."""
_REVISABLE_IN_PROCESS = 3 * 2**20
"""Bytes of past turns that are remembered in an agent's process.

Few spans arrive late there, and the memory is the agent's.
"""


def pipeline_from(engine: Engine, metrics: Selected, clock: Clock, waited: Callable[[], float]) -> Pipeline:
    """Return an engine's pipeline with its metrics, judges, references and conversations.

    Raises:
        ConfigError: a part of the configuration is invalid.
    """
    config, shedding = engine.config, Shedding(clock.monotonic)
    judging = _judging_from(engine, metrics, clock, shedding) if metrics.any_judged else None
    revisable = REVISABLE_BYTES if engine.is_behind_otlp else _REVISABLE_IN_PROCESS
    composer = Composer(config.turn.stitch_timeout, waited, revisable, config.turn.max_duration)
    evaluator = Evaluator(
        metrics.computed, metrics.whole, ReferenceSources(config), config.inline.budget, shedding, config.inline.expected
    )

    def names(conversation: bool) -> Sequence[str]:
        computed = [metric.name for metric in evaluator.whole] if conversation else evaluator.names
        return [*computed, *(judging.metrics.names(conversation=conversation) if judging is not None else ())]

    inline = config.inline.metrics
    named = {entry.name for _, entry in config.metric_entries()} | (set() if isinstance(inline, str) else set(inline))
    pipeline = Pipeline(
        composer, evaluator, engine.outlets, SpanEventOutlet(config.outlets.span_events),
        TurnOutcomes(engine.telemetry, composer, names, engine.outlets.count_error), _conversations_from(engine, metrics, waited), judging,
        Watchdog(lambda: engine.config.turn.max_work),
        lambda: engine.worker.bytes / engine.worker.max_bytes,
    )  # fmt: skip

    def set_aside(item: WorkItem, size: int, work: Callable[[], None], late: Callable[[], WorkItem]) -> None:
        engine.worker.set_aside(item, size, work, late)  # the worker is created after the pipeline

    pipeline.set_aside = set_aside
    recent = RecentTurns(_RECENT if engine.is_behind_otlp else _RECENT_IN_PROCESS)
    pipeline.feedback = FeedbackJoiner(config.feedback, composer, recent, engine.telemetry, waited)
    kept = {} if judging is None else {"estimates": judging.sample.estimates, "verdicts": judging.sample.corrected}
    pipeline.fleet = Fleet(config.statistics, kept, engine.telemetry, clock)
    engine.outlets.look_for_changes = pipeline.fleet.look
    pipeline.hints = Hints(named & set(evaluator.names))
    return pipeline


def _judging_from(engine: Engine, metrics: Selected, clock: Clock, shedding: Shedding) -> Dispatcher:
    from ..judging.factory import judging_from  # only imported if a metric is judged

    def put(verdict: Verdict, size: int) -> bool:
        return engine.worker.put(verdict, size)

    return judging_from(
        engine.config, metrics.of_turns, metrics.of_conversations, engine.telemetry, put, engine.failed, clock, shedding,
        engine.outlets.note_outcome,
    )  # fmt: skip


def _conversations_from(engine: Engine, metrics: Selected, waited: Callable[[], float]) -> Conversations | None:
    """Return the store of conversations.

    None if no metric needs whole conversations or the history.
    """
    if not metrics.conversations:
        return None
    wanted = engine.config.conversation
    return Conversations(wanted.idle_timeout, wanted.max_open, wanted.max_turns, wanted.max_bytes, waited, metrics.history)
