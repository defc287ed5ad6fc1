"""The engine: all state between the entry points and the outlets, from start to shutdown.

Entry points (span processor, log processor, exporter, server, Kafka) have no state of their own, and only use this class.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from collections import Counter
from collections.abc import Callable, Mapping, MutableSequence
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..config.root import Config
from ..core import forks
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.telemetry import Telemetry
from ..core.threads import mark_as_ours
from ..evaluation.names import public_name
from ..evaluation.redaction import exporter_of
from ..evaluation.references import ReferenceSources
from ..outlets.base import MemoryOutlet, Setup
from ..outlets.factory import outlets_from
from ..outlets.fan_out import FanOut
from ..turns.assembler import Assembler
from ..turns.early_logs import EarlyLogs
from ..turns.live_roles import role_of_span
from ..turns.state import TurnLimits
from .ending import Ending
from .factory import pipeline_from
from .intake import Intake
from .selected import selected
from .self_metrics import dropped, expect_metrics, unused_spans, watch_engine
from .status import Status
from .warm_up import WarmUp
from .watchdog import InHand
from .worker import Worker

if TYPE_CHECKING:
    from ..evaluation.scored_turn import ScoredTurn
    from ..judging.dispatcher import Dispatcher

_log = logging.getLogger("otel_agenteval")

BEHIND_OTLP = 10.0
"""Seconds of ``turn.decision_delay: auto`` for spans that exporters and Collectors batch."""
_EARLY_BYTES = 32 * 1024 * 1024
"""Bytes that log records can use while they wait for their spans."""


def switched_on() -> bool:
    """Return False under ``OTEL_SDK_DISABLED=true`` or ``OTEL_AGENTEVAL_ENABLED=false``."""
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    refused = os.environ.get("OTEL_AGENTEVAL_ENABLED", "").strip().lower() == "false"
    return not (disabled or refused)


class Engine(Intake):
    """One pipeline with its state.

    Args:
        config: metrics, outlets and all other options.
        decision_delay: seconds of ``turn.decision_delay: auto`` for this entry point.
        logger_provider: provider for log events. None uses the global one, resolved at the first score.
        meter_provider: provider for OTLP metrics, if enabled. None uses the global one.
        clock: replaced by tests.
        waited: returns monotonic seconds for the deadlines of turns and conversations. None uses the clock.
    """

    def __init__(
        self,
        config: Config,
        *,
        decision_delay: float = 2.0,
        logger_provider: Any = None,
        meter_provider: Any = None,
        clock: Clock = SYSTEM_CLOCK,
        waited: Callable[[], float] | None = None,
    ) -> None:
        self.config = config
        self.enabled = switched_on()
        """If False, the entry point must do nothing, and no outlet is opened."""
        self.instance_id = str(uuid.uuid4())
        kinds = frozenset(config.privacy.redact)
        self.telemetry = Telemetry(clock, public=lambda name: public_name(name, kinds))
        self.failures: Counter[str] = Counter()
        self.late_log_records = 0
        """Number of log records whose span didn't arrive in time."""
        self._decision_delay = decision_delay
        waited = waited or clock.monotonic
        self._keeps_all = False
        metrics = selected(config)
        self.assembler = Assembler(self._limits(config), role_of_span, waited)
        self.early_logs = EarlyLogs(_EARLY_BYTES, lambda: self.config.turn.idle_timeout, waited)
        setup = Setup(config, self.telemetry, lambda: self.instance_id, __version__, logger_provider, meter_provider)
        outlets = outlets_from(setup) if self.enabled else ()
        self.outlets = FanOut(outlets, self.telemetry, config.privacy.redact, exporter_of(config))
        """All outlets."""
        self.pipeline = pipeline_from(self, metrics, clock, waited)
        self.worker = Worker(
            self.pipeline.run,
            self.tick,
            self.outlets.flush,
            config.queue.max_bytes,
            self.outlets.can_emit,
            self.failed,
            clock.monotonic,
        )
        watch_engine(self)
        self._end = Ending(self)
        self.status = Status(self)
        for discard in (self.assembler.forget, self.early_logs.forget, self.pipeline.composer.after_fork_in_child):
            forks.in_child(discard)
        if self.pipeline.conversations is not None:
            forks.in_child(self.pipeline.conversations.forget)
        forks.in_child(self._begin_in_child)
        forks.in_child(self.outlets.after_fork_in_child, forks.Step.OUTLETS)
        self.warm_up = WarmUp(self.pipeline.evaluator.warm_up, self.failed)
        """Preparation for the first turn."""
        if self.enabled:
            self.warm_up.start()

    def _limits(self, config: Config) -> TurnLimits:
        wanted = config.turn
        return TurnLimits(
            self._decision_delay if wanted.decision_delay == "auto" else wanted.decision_delay, wanted.idle_timeout,
            wanted.max_duration, wanted.max_open, wanted.max_spans, wanted.max_bytes, wanted.total_bytes,
        )  # fmt: skip

    @property
    def is_behind_otlp(self) -> bool:
        """True if spans arrive in batches after they ended."""
        return self._decision_delay >= BEHIND_OTLP

    @property
    def judging(self) -> Dispatcher | None:
        """Dispatcher of judge jobs. None without judged metrics."""
        return self.pipeline.judging

    def reload(self, config: Config) -> list[str]:
        """Apply another configuration.

        This covers metrics, their parameters, policies and samples, references, and limits of turns. Returns changed sections
        that are only read at startup.

        Raises:
            ConfigError: the configuration is invalid. Nothing has changed.
        """
        metrics, references = selected(config), ReferenceSources(config)
        fixed = [
            name
            for name in ("judge", "embedder", "privacy", "outlets", "queue", "conversation", "statistics")
            if getattr(config, name) != getattr(self.config, name)
        ]
        if self.judging is not None:
            self.judging.metrics.reload(config, metrics.of_turns, metrics.of_conversations)
        elif metrics.any_judged:
            from ..judging.sampling import rules_of  # the same checks as with a judge

            rules_of(config, metrics.of_turns), rules_of(config, metrics.of_conversations)
            fixed.append("judged metrics")
        if self.pipeline.conversations is None and "conversation" not in fixed and metrics.history:
            fixed.append("metrics that read the history")
        with self.assembler.lock:
            self.assembler.set_limits(self._limits(config))
        self.pipeline.evaluator.reload(metrics.computed, metrics.whole, references, config.inline.budget, config.inline.expected)
        self.pipeline.feedback.reload(config.feedback)
        expect_metrics(self)
        self.config = config
        return fixed

    # --- work outside the agent's thread

    def start(self) -> None:
        """Start outlets immediately and work without pauses, for a server without an agent."""
        self.worker.courteous = False
        self.outlets.start()

    def work_here(self, start: Callable[[], object]) -> None:
        """Call ``start``, then score turns on the calling thread until the shutdown.

        The calling thread must be the main thread. Each turn is limited to ``turn.max_work``.
        """
        mark_as_ours()
        self.pipeline.watchdog.start()
        try:
            self.worker.run_here(start)
        finally:
            self.pipeline.watchdog.stop()

    def end_work(self) -> None:
        """Let :meth:`work_here` return."""
        self.worker.stop(0)

    def keep_in_hand(self, in_hand: InHand) -> None:
        """Record the turn that is being scored, for the next process after a crash."""
        self.pipeline.watchdog.keep(in_hand)

    def reopen_fleet(self) -> None:
        """Read the state of fleet statistics again, after another process released it."""
        self.pipeline.fleet.reopen()

    @property
    def unsent_jobs(self) -> int:
        """Number of judge jobs that wait in memory, because their queue can't be used."""
        return self.judging.queue.unsent if self.judging is not None else 0

    @property
    def judges(self) -> bool:
        """True if any metric is judged."""
        return self.judging is not None

    def start_judging(self, at_once: int) -> None:
        """Process jobs from the queue, up to ``at_once`` at the same time.

        This includes jobs that other processes queued.
        """
        if self.judging is not None:
            self.judging.start(at_once)

    def set_tenant_labels(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        """Set the labels for the scores of each tenant."""
        self.pipeline.composer.tenant_labels = labels

    def admits_by_room(self) -> None:
        """Never drop received spans for lack of room, because the receiver checks the room first."""
        self._keeps_all = True

    def keep_all(self) -> None:
        """Never drop scores for lack of room, because the journal keeps unprocessed requests.

        While an outlet is full, turns wait, and senders are asked to retry.
        """
        self._keeps_all = True
        self._end.left_behind = set()
        self.outlets.keep_all()

    def end_conversation(self, conversation_id: str) -> bool:
        """End a conversation and evaluate its metrics. Return False if it isn't held."""
        store = self.pipeline.conversations
        if store is None:
            return False
        self.worker.drain(self.config.exit_timeout)  # its last turn may still be queued
        ended = store.end(conversation_id)
        self.take_ended(ended)
        return bool(ended)

    # --- questions

    def known_turns(self, short: str) -> list[str]:
        """Return the ids of recent turns that begin with ``short``."""
        return self.pipeline.outcomes.known(short)

    def why(self, turn_id: str) -> dict[str, str] | None:
        """Return each metric's outcome on a recent turn. None if the turn isn't remembered."""
        found = self.pipeline.outcomes.of(turn_id)
        judged = self.judging.outcomes.of(turn_id) if self.judging is not None else {}
        return {**(found or {}), **judged} if found is not None or judged else None

    def keep_turns(self, kept: MutableSequence[ScoredTurn]) -> MemoryOutlet:
        """Append every scored turn to the caller's list. ``engine.outlets.remove`` ends that."""
        outlet = MemoryOutlet(kept)
        self.outlets.add(outlet)
        return outlet

    @property
    def spans_scored(self) -> int:
        """Number of spans in evaluated turns.

        Each span is counted here or in :meth:`unused_spans`.
        """
        return self.pipeline.composer.spans.scored

    def progress(self) -> int | None:
        """Return a number that changes while the worker makes progress. None if it is idle."""
        worker = self.worker
        if worker.idle and not worker.waiting:
            return None
        return worker.looks + worker.handled + self.pipeline.evaluator.evaluations

    @property
    def accepted_baggage(self) -> Mapping[str, str]:
        """Accepted baggage keys, with the reference that each one sets."""
        return self.pipeline.evaluator.references.baggage

    def dropped(self) -> dict[str, int]:
        """Return unused spans by reason, and missing parents and log records."""
        return dropped(self)

    def unused_spans(self) -> dict[str, int]:
        """Return the number of received spans without a score, by reason.

        Each span is counted once.
        """
        return unused_spans(self)

    def failed(self, where: str, error: BaseException) -> None:
        """Count an internal error of a component, and log the first one without content."""
        self.failures[where] += 1
        if self.failures[where] == 1:
            _log.warning(
                "%s failed: %s (further failures are only counted)",
                where,
                type(error).__name__,
                exc_info=_log.isEnabledFor(logging.DEBUG),
            )

    # --- end of life

    def flush(self, timeout: float) -> bool:
        """Deliver the scores of all closed turns. Open turns stay open."""
        return self.worker.flush(timeout)

    def evaluate_closed(self, timeout: float) -> bool:
        """Wait until all closed turns are evaluated, without waiting for delivery."""
        return self.worker.drain(timeout)

    def flush_outlets(self, timeout: float) -> bool:
        """Deliver all finished scores, however many turns wait for evaluation."""
        return self.worker.flush_outlets(timeout)

    def flush_jobs(self) -> bool:
        """Make the judge queue store all jobs. Return False if it can't."""
        return self.judging is None or self.judging.queue.flush()

    def drain(self, timeout: float, *, judges: bool) -> bool:
        """Deliver the scores of all closed turns. With ``judges``, wait for judged metrics too."""
        until = time.monotonic() + timeout
        done = self.worker.drain(timeout)
        if judges and self.judging is not None:
            done = self.judging.drain(until, self.worker.drain) and done
        return self.worker.flush(max(0.0, until - time.monotonic())) and done

    def register_exit(self) -> None:
        """Register the exit handler at the first span, see :meth:`Ending.register`."""
        self._end.register()

    def shutdown(self) -> bool:
        """Evaluate open turns, deliver their scores, and release ports and files.

        Takes at most ``exit_timeout``. Returns False if time ran out before everything was delivered. Safe to call twice.
        """
        return self._end.shutdown(self)

    @property
    def delivered(self) -> bool:
        """After :meth:`shutdown`, True if every outlet delivered all scores."""
        return self._end.delivered

    @property
    def left_behind(self) -> set[int] | None:
        """After :meth:`shutdown`, unevaluated traces that the next process finds again."""
        return self._end.left_behind

    def _begin_in_child(self) -> None:
        """Start from zero in a forked child, as an instance of its own."""
        self.late_log_records = 0
        self.failures.clear()
        self.instance_id = str(uuid.uuid4())
