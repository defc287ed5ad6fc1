"""Everything behind the entry points: spans come in, turns are closed, evaluated, judged and emitted; and all of it comes to an end.

Entry points (span processor, log processor, exporter, server, Kafka) own no state of their own, and know nothing but this class.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..config.root import Config
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.telemetry import Telemetry
from ..core.threads import mark_as_ours
from ..evaluation.names import public_name
from ..evaluation.redaction import exporter_of
from ..evaluation.references import ReferenceSources
from ..outlets.base import Setup
from ..outlets.factory import outlets_from
from ..outlets.fan_out import FanOut
from ..outlets.memory import Kept, MemoryOutlet
from ..turns.assembler import Assembler
from ..turns.early_logs import EarlyLogs
from ..turns.live_roles import role_of_span
from ..turns.state import Limits
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
    from ..judging.dispatcher import Dispatcher

_log = logging.getLogger("otel_agenteval")

BEHIND_OTLP = 10.0
"""Seconds that ``turn.decision_delay: auto`` means where spans come in batches: exporters make them, and Collectors do."""
_EARLY_BYTES = 32 * 1024 * 1024
"""What log records may hold that come before their spans."""


def switched_on() -> bool:
    """Whether the environment lets us run: nothing starts under ``OTEL_SDK_DISABLED=true`` or ``OTEL_AGENTEVAL_ENABLED=false``."""
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    refused = os.environ.get("OTEL_AGENTEVAL_ENABLED", "").strip().lower() == "false"
    return not (disabled or refused)


class Engine(Intake):
    """One pipeline with its state.

    Args:
        config: what to evaluate and where scores go.
        decision_delay: seconds that ``turn.decision_delay: auto`` means behind this entry point.
        logger_provider: where log events go; None = the global one, looked up when the first score leaves.
        meter_provider: where OTLP metrics go, when they are on; None = the global one.
        clock: injected by tests.
        waited: the seconds by which turns and conversations wait for more, where they are not the clock's; None = the clock's.
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
        """False: the entry point that made this engine must do nothing, and no outlet is opened."""
        self.instance_id = str(uuid.uuid4())
        kinds = frozenset(config.privacy.redact)
        self.telemetry = Telemetry(clock, public=lambda name: public_name(name, kinds))
        self.failures: Counter[str] = Counter()
        self.late_log_records = 0
        """Log records whose span did not come in time."""
        self._decision_delay = decision_delay
        waited = waited or clock.monotonic
        self._keeps_all = False
        metrics = selected(config)
        self.assembler = Assembler(self._limits(config), role_of_span, waited)
        self.early_logs = EarlyLogs(_EARLY_BYTES, lambda: self.config.turn.idle_timeout, waited)
        setup = Setup(config, self.telemetry, lambda: self.instance_id, __version__, logger_provider, meter_provider)
        outlets = outlets_from(setup) if self.enabled else ()
        self.outlets = FanOut(outlets, self.telemetry, config.privacy.redact, exporter_of(config))
        """Where scores leave."""
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
        this = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _in_child(this))
        self.warm_up = WarmUp(self.pipeline.evaluator.warm_up, self.failed)
        """Prepares for the first turn."""
        if self.enabled:
            self.warm_up.start()

    def _limits(self, config: Config) -> Limits:
        wanted = config.turn
        return Limits(
            self._decision_delay if wanted.decision_delay == "auto" else wanted.decision_delay, wanted.idle_timeout,
            wanted.max_duration, wanted.max_open, wanted.max_spans, wanted.max_bytes, wanted.total_bytes,
        )  # fmt: skip

    @property
    def is_behind_otlp(self) -> bool:
        """Whether spans come in batches, after their ends."""
        return self._decision_delay >= BEHIND_OTLP

    @property
    def judging(self) -> Dispatcher | None:
        """The judged metrics; None when no metric asks a model."""
        return self.pipeline.judging

    def reload(self, config: Config) -> list[str]:
        """Go on with another configuration: metrics with their parameters, policies and samples, references, and bounds of turns.

        Returns the sections that differ and are read at the start only.

        Raises:
            ConfigError: it is not valid. Nothing has changed then.
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
            from ..judging.sampling import rules_of  # as where they are judged from now on

            rules_of(config, metrics.of_turns), rules_of(config, metrics.of_conversations)
            fixed.append("metrics that ask a judge or embedder")
        if self.pipeline.conversations is None and "conversation" not in fixed and metrics.history:
            fixed.append("metrics that look at what was said before")
        with self.assembler.lock:
            self.assembler.set_limits(self._limits(config))
        self.pipeline.evaluator.reload(metrics.computed, metrics.whole, references, config.inline.budget, config.inline.expected)
        self.pipeline.feedback.reload(config.feedback)
        expect_metrics(self)
        self.config = config
        return fixed

    # --- closing turns away from the agent's thread

    def start(self) -> None:
        """For a server: start at once what otherwise starts with the first turn, and work without pauses, as no agent runs here."""
        self.worker.courteous = False
        self.outlets.start()

    def work_here(self, start: Callable[[], object]) -> None:
        """Call ``start``, then score turns on the calling thread until the shutdown, each within ``turn.max_work``.

        The calling thread must be the main thread.
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
        """From now on, keep which turn is being scored, for the next process if this one does not survive it."""
        self.pipeline.watchdog.keep(in_hand)

    def reopen_fleet(self) -> None:
        """Read the state of the fleet's statistics again: another process had it until now."""
        self.pipeline.fleet.reopen()

    @property
    def unsent_jobs(self) -> int:
        """Judge jobs that wait in memory, because their queue can't be used."""
        return self.judging.queue.unsent if self.judging is not None else 0

    @property
    def judges(self) -> bool:
        """Whether a metric asks a model."""
        return self.judging is not None

    def start_judging(self, at_once: int) -> None:
        """Work on jobs from the queue, up to so many at once, also on those that other processes put there."""
        if self.judging is not None:
            self.judging.start(at_once)

    def set_tenant_labels(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        """From now on, the labels that scores of each tenant carry."""
        self.pipeline.composer.tenant_labels = labels

    def admits_by_room(self) -> None:
        """The receiver takes spans only while there is room for them. What was taken is then never dropped for lack of room."""
        self._keeps_all = True

    def keep_all(self) -> None:
        """What is not evaluated or delivered in time is on disk for the next process: no outlet drops a score for lack of room.

        While one of them has none, turns wait, and senders have to.
        """
        self._keeps_all = True
        self._end.left_behind = set()
        self.outlets.keep_all()

    def end_conversation(self, conversation_id: str) -> bool:
        """A conversation is over: its metrics are evaluated. False when it is not held."""
        store = self.pipeline.conversations
        if store is None:
            return False
        self.worker.drain(self.config.exit_timeout)  # its last turn may be on its way
        ended = store.end(conversation_id)
        self.take_ended(ended)
        return bool(ended)

    # --- questions

    def known_turns(self, short: str) -> list[str]:
        """Ids of recent turns that begin so."""
        return self.pipeline.outcomes.known(short)

    def why(self, turn_id: str) -> dict[str, str] | None:
        """For each metric its outcome on a recent turn; None when the turn is not remembered."""
        found = self.pipeline.outcomes.of(turn_id)
        judged = self.judging.outcomes.of(turn_id) if self.judging is not None else {}
        return {**(found or {}), **judged} if found is not None or judged else None

    def keep_turns(self, kept: Kept) -> MemoryOutlet:
        """Append every scored turn to a list of the caller's from now on; ``engine.outlets.remove`` ends that."""
        outlet = MemoryOutlet(kept)
        self.outlets.add(outlet)
        return outlet

    @property
    def spans_scored(self) -> int:
        """Spans of turns that were evaluated. Each span is counted once: here, or in :meth:`unused_spans`."""
        return self.pipeline.composer.spans.scored

    def progress(self) -> int | None:
        """A number that changes while the worker gets on; None while it has nothing to do."""
        worker = self.worker
        if worker.idle and not worker.waiting:
            return None
        return worker.looks + worker.handled + self.pipeline.evaluator.evaluations

    @property
    def accepted_baggage(self) -> Mapping[str, str]:
        """Baggage keys that are accepted, each with the reference that it sets."""
        return self.pipeline.evaluator.references.baggage

    def dropped(self) -> dict[str, int]:
        """Spans that were not used, by reason; and parents and log records that were missing."""
        return dropped(self)

    def unused_spans(self) -> dict[str, int]:
        """Received spans without a score, by reason. Each span is counted once."""
        return unused_spans(self)

    def failed(self, where: str, error: BaseException) -> None:
        """A fault of ours, kept away from the agent: counted, and logged the first time, without content."""
        self.failures[where] += 1
        if self.failures[where] == 1:
            _log.warning(
                "%s failed: %s (counted from now on)", where, type(error).__name__, exc_info=_log.isEnabledFor(logging.DEBUG)
            )

    # --- end of life

    def flush(self, timeout: float) -> bool:
        """Deliver everything that closed so far. Closes no open turn."""
        return self.worker.flush(timeout)

    def evaluate_closed(self, timeout: float) -> bool:
        """Wait until every turn that has closed so far is evaluated, whether or not its scores have left."""
        return self.worker.drain(timeout)

    def flush_outlets(self, timeout: float) -> bool:
        """Deliver the scores that there are, however many turns wait to be evaluated."""
        return self.worker.flush_outlets(timeout)

    def flush_jobs(self) -> bool:
        """Have the queue of judge jobs keep what was put into it; False if it cannot."""
        return self.judging is None or self.judging.queue.flush()

    def drain(self, timeout: float, *, judges: bool) -> bool:
        """As :meth:`flush`; with ``judges``, wait too until every judged metric of these turns has its outcome."""
        until = time.monotonic() + timeout
        done = self.worker.drain(timeout)
        if judges and self.judging is not None:
            done = self.judging.drain(until, self.worker.drain) and done
        return self.worker.flush(max(0.0, until - time.monotonic())) and done

    def register_exit(self) -> None:
        """At the first span: see :meth:`Ending.register`."""
        self._end.register()

    def shutdown(self) -> bool:
        """Evaluate what is open, deliver everything within ``exit_timeout``, release ports and files. Safe to call twice.

        False when time ran out before everything was delivered.
        """
        return self._end.shutdown(self)

    @property
    def delivered(self) -> bool:
        """After :meth:`shutdown`: whether what was evaluated left through every outlet."""
        return self._end.delivered

    @property
    def left_behind(self) -> set[int] | None:
        """After :meth:`shutdown`: the traces that were not evaluated, where the next process finds them again."""
        return self._end.left_behind

    def after_fork_in_child(self) -> None:
        """The parent owns open turns, queue and port; the child starts its worker when it needs one."""
        self.assembler.forget()
        self.early_logs.forget()
        self.telemetry.after_fork_in_child()
        self.pipeline.after_fork_in_child()
        self.late_log_records = 0
        self.failures.clear()
        self.worker.after_fork_in_child()
        self.instance_id = str(uuid.uuid4())
        self.outlets.after_fork_in_child()


def _in_child(this: weakref.ref[Engine]) -> None:
    engine = this()
    if engine is not None:
        engine.after_fork_in_child()
