"""Everything one door needs, put together from a configuration: assembler, pipeline, worker, outlets, and their end of life.

The doors (span processor, log processor, exporter) own no state of their own.
"""

from __future__ import annotations

import atexit
import logging
import os
import platform
import threading
import time
import uuid
import weakref
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from .. import __version__
from ..config.root import Config
from ..core import semconv
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.telemetry import Telemetry
from ..dialects.reader import role_in, role_of
from ..evaluation.load_shedding import Shedding
from ..evaluation.redaction import exporter_of
from ..evaluation.references import ReferenceSources
from ..evaluation.selection import select_conversation_metrics, select_metrics
from ..metrics.bound_metric import BoundMetric
from ..outlets.base import Setup, Verdict
from ..outlets.factory import outlets_from
from ..outlets.fan_out import FanOut
from ..outlets.span_events import SpanEventOutlet
from ..spans.record import LogPart, SpanRecord
from ..spans.sdk import attributes_of, scope_of
from ..spans.wire import Part, WireSpan
from ..turns.assembler import Assembler
from ..turns.conversations import Conversations, Ended
from ..turns.early_logs import EarlyLogs
from ..turns.roots import Group
from ..turns.state import Closed, Limits
from .pipeline import ConversationMetrics, Pipeline
from .status import Status
from .worker import Worker

if TYPE_CHECKING:
    from ..judging.dispatcher import Dispatcher

_log = logging.getLogger("otel_agenteval")

BEHIND_OTLP = 10.0
"""Seconds that ``turn.decision_delay: auto`` means where spans come in batches: exporters make them, and Collectors do."""
_EARLY_BYTES = 32 * 1024 * 1024
"""What log records may hold that come before their spans."""
_SHARE_OF_JUDGES = 0.8
_SHARE_OF_OUTLETS = 0.25
"""Of the time that an end may take: for handing over what was evaluated in the rest of it."""
_SHARE_OF_QUEUE = 0.5
"""Of the worker's queue, that turns may take which only waited for their time: they can wait for room too."""

_LOST_WITH_A_TURN = ("queue_full", "shutdown", "fault", "stuck")
"""Why a metric that is computed gave nothing: its turn was lost."""
_TAKES_SPANS = ("on_start", "on_end", "export")
"""Where a fault of ours costs a span."""


def switched_on() -> bool:
    """Whether the environment lets us run: nothing starts under ``OTEL_SDK_DISABLED=true`` or ``OTEL_AGENTEVAL_ENABLED=false``."""
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    refused = os.environ.get("OTEL_AGENTEVAL_ENABLED", "").strip().lower() == "false"
    return not (disabled or refused)


def _trace_of(item: Any) -> int | None:
    """The trace of what was closed and waits to be evaluated; None for everything else."""
    if item.__class__ is Closed:
        trace: int = item.trace_id
        return trace
    return item.root.trace_id if item.__class__ is Group else None


def role_of_span(span: Any) -> str | None:
    """A span's role from what it says now, as far as turn roots are concerned."""
    if span is None:
        return None
    if span.__class__ is SpanRecord:
        return role_in(span)
    if span.__class__ is WireSpan:
        return role_in(span.record())
    scope = scope_of(span)
    return None if scope == semconv.SCOPE else role_of(attributes_of(span), scope, span.name)


class Engine:
    """One pipeline with its state.

    Args:
        config: what to evaluate and where scores go.
        decision_delay: seconds that ``turn.decision_delay: auto`` means behind this door.
        logger_provider: where log events go; None = the global one, looked up when the first score leaves.
        meter_provider: where OTLP metrics go, when they are on; None = the global one.
        clock: injected by tests.
        waited: seconds by which turns and conversations wait for more, where that is not the time that passes; None = the clock's.
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
        """False: the door that made this engine must do nothing, and no outlet is opened."""
        self.instance_id = str(uuid.uuid4())
        self.telemetry = Telemetry(clock)
        self.lock = threading.Lock()
        """Guards the assembler. Held for microseconds, never during evaluation or I/O."""
        self._decision_delay = decision_delay
        waited = waited or clock.monotonic
        self.assembler = Assembler(self._limits(config), role_of_span, waited)
        self.references = ReferenceSources(config)
        self.span_events = SpanEventOutlet(config.outlets.span_events)
        self.failures: Counter[str] = Counter()
        of_turns, of_conversations = select_metrics(config), select_conversation_metrics(config)
        metrics, judged = _split(of_turns)
        whole, judged_whole = _split(of_conversations)
        self.shedding = Shedding(clock.monotonic)
        setup = Setup(config, self.telemetry, lambda: self.instance_id, __version__, logger_provider, meter_provider)
        outlets = outlets_from(setup) if self.enabled else ()
        self.outlets = FanOut(outlets, self.telemetry, config.privacy.redact, exporter_of(config))
        """Where scores leave."""
        self.judging = self._judging(of_turns, of_conversations, clock) if judged or judged_whole else None
        self.pipeline = Pipeline(
            metrics,
            self.outlets,
            self.telemetry,
            self.span_events,
            config.inline.budget,
            self.references,
            self._conversations(whole, judged_whole, judged, waited),
            config.turn.stitch_timeout,
            waited,
            self.judging,
            self.shedding,
            lambda: self.worker.bytes / self.worker.max_bytes,
        )
        self.pipeline.warm_up()
        self.worker = Worker(
            self.pipeline.handle, self.tick, self.outlets.flush, config.queue.max_bytes, self.outlets.can_emit, self.failed
        )
        self._keeps_all = False
        self.delivered = False
        """After :meth:`shutdown`: whether what was evaluated left through every outlet."""
        self.left_behind: set[int] | None = None
        """After :meth:`shutdown`: the traces that were not evaluated, where the next process finds them again."""
        self.spans_received = 0
        self.late_log_records = 0
        """Log records whose span did not come in time."""
        self.status = Status(self)
        self.early_logs = EarlyLogs(_EARLY_BYTES, config.turn.idle_timeout, waited)
        self._watch()
        self._closed = False
        self._exit_registered = False
        self._exit_until: float | None = None
        this = weakref.ref(self)
        os.register_at_fork(after_in_child=lambda: _in_child(this))

    def _limits(self, config: Config) -> Limits:
        wanted = config.turn
        return Limits(
            self._decision_delay if wanted.decision_delay == "auto" else wanted.decision_delay, wanted.idle_timeout,
            wanted.max_duration, wanted.max_open, wanted.max_spans, wanted.max_bytes, wanted.total_bytes,
        )  # fmt: skip

    def reload(self, config: Config) -> list[str]:
        """Go on with another configuration: metrics with their parameters, policies and samples, references, and bounds of turns.

        Returns the sections that differ and are read at the start only.

        Raises:
            ConfigError: it is not valid. Nothing has changed then.
        """
        of_turns, of_conversations = select_metrics(config), select_conversation_metrics(config)
        metrics, judged = _split(of_turns)
        whole, judged_whole = _split(of_conversations)
        references = ReferenceSources(config)
        fixed = [
            name
            for name in ("judge", "embedder", "privacy", "outlets", "queue", "conversation")
            if getattr(config, name) != getattr(self.config, name)
        ]
        if self.judging is not None:
            self.judging.metrics.reload(config, of_turns, of_conversations)
        elif judged or judged_whole:
            from ..judging.sampling import rules_of  # as where they are judged from now on

            rules_of(config, of_turns), rules_of(config, of_conversations)
            fixed.append("metrics that ask a judge or embedder")
        if self.pipeline.conversations is None and "conversation" not in fixed and _look_back(judged):
            fixed.append("metrics that look at what was said before")
        with self.lock:
            self.assembler.set_limits(self._limits(config))
        self.references = references
        self.pipeline.reload(metrics, whole, config.inline.budget, references)
        self._expect_of_metrics()
        self.config = config
        return fixed

    def _judging(self, of_turns: list[BoundMetric], of_conversations: list[BoundMetric], clock: Clock) -> Dispatcher:
        from ..judging.factory import judging_from  # only who judges pays for queues, providers and budgets

        def put(verdict: Verdict, size: int) -> bool:
            return self.worker.put(verdict, size)

        return judging_from(
            self.config,
            of_turns,
            of_conversations,
            self.telemetry,
            put,
            self.failed,
            clock,
            self.shedding,
            self.outlets.note_outcome,
        )

    def _conversations(
        self,
        metrics: list[BoundMetric],
        judged: list[BoundMetric],
        of_turns: list[BoundMetric],
        now: Callable[[], float],
    ) -> ConversationMetrics | None:
        """Conversations are held for metrics over whole ones, and for judged ones that look at what was said before a turn."""
        wanted = self.config.conversation
        history = _look_back(of_turns)
        if not (metrics or judged or history):
            return None
        store = Conversations(wanted.idle_timeout, wanted.max_open, wanted.max_turns, wanted.max_bytes, now)
        return ConversationMetrics(store, metrics, bool(judged), history)

    def start(self) -> None:
        """For a server: begin at once what else begins with the first turn, and use a process in which no agent runs."""
        self.worker.courteous = False
        self.outlets.start()

    def start_judging(self, at_once: int) -> None:
        """Work on jobs from the queue, up to so many at once, also on those that other processes put there."""
        if self.judging is not None:
            self.judging.start(at_once)

    # --- the way in

    def receive_spans(self, parts: Iterable[tuple[int, Part]]) -> None:
        """Spans that came after their end: by trace key, those of one trace in one batch."""
        assembler, early = self.assembler, self.early_logs
        closed: list[Closed] = []
        with self.lock:
            for trace_id, part in parts:
                self.spans_received += len(part.spans)
                closed += assembler.add_received(trace_id, part.spans, part.size, part.local_root)
                if early and trace_id in early:
                    for span_id, log, size in early.pop(trace_id):
                        assembler.add_log(trace_id, span_id, log, size)
        self.take(closed)
        if self.worker.idle:
            self.worker.wake()

    def receive_log(self, trace_id: int, span_id: int, part: LogPart, size: int = 0, *, early: bool = False) -> None:
        """Content of a span in a log record. One whose span is not known is late, or waits for it where logs can be ``early``."""
        with self.lock:
            if not self.assembler.add_log(trace_id, span_id, part, size):
                self.late_log_records += self.early_logs.add(trace_id, span_id, part, size) if early else 1

    def count_drop(self, reason: str, spans: int) -> None:
        """Spans were received, and nothing comes of them."""
        with self.lock:
            self.spans_received += spans
            self.pipeline.spans_left_out[reason] += spans

    def set_tenant_labels(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        """From now on, the labels that scores of each tenant carry."""
        self.pipeline.tenant_labels = labels

    # --- closing turns away from the agent's thread

    def admits_by_room(self) -> None:
        """Spans come in only while there is room for them (whoever takes them looks): what was taken is never dropped for lack of it."""
        self._keeps_all = True

    def keep_all(self) -> None:
        """What is not evaluated or handed over in time is on disk for the next process: no outlet drops a score for lack of room.

        While one of them has none, turns wait, and who sends has to.
        """
        self._keeps_all = True
        self.left_behind = set()
        self.outlets.keep_all()

    def take(self, closed: Iterable[Closed], *, must: bool = False) -> None:
        """Give closed turns to the worker, which evaluates them. What does not fit its queue is counted, unless it ``must`` be taken."""
        for item in closed:
            if item.spans or item.sole or item.late:
                self._queue(item, item.size, must=must)

    def _queue(self, item: Closed | Group | Ended, size: int, *, must: bool = False) -> None:
        if not self.worker.put(item, size, must=must or self._keeps_all):
            self.pipeline.lose(item, "queue_full")

    def tick(self) -> bool:
        """Close what has waited long enough; whether anything still waits."""
        with self.lock:
            closed = self.assembler.tick(self.worker.max_bytes * _SHARE_OF_QUEUE - self.worker.bytes)
            waiting = self.assembler.waiting
        self.take(closed)
        self._take_groups(self.pipeline.due())
        store = self.pipeline.conversations
        if store is not None:
            self._end(store.due())
        if self.judging is not None:
            self.judging.start()
        for _ in range(len(self.assembler.late_ages)):
            self.telemetry.observe(semconv.LATE_SPAN_AGE, self.assembler.late_ages.popleft())
        return waiting or self.pipeline.waiting > 0 or bool(store)

    @property
    def waits(self) -> bool:
        """Whether anything may become due as time passes."""
        return self.assembler.waiting or self.pipeline.waiting > 0 or bool(self.pipeline.conversations)

    def held(self, trace_ids: set[int]) -> set[int]:
        """Those of some traces of which something is not evaluated yet, except what is in the worker's queue."""
        with self.lock:
            found = self.assembler.held(trace_ids)
            found |= {trace_id for trace_id in trace_ids if trace_id in self.early_logs}
        return found | (trace_ids & self.pipeline.waiting_traces())

    def forget_traces(self, trace_ids: set[int]) -> None:
        """Drop all that is known of some traces whose spans were received, also what waits to be evaluated: somebody else does that."""

        def forget() -> None:
            with self.lock:
                self.assembler.forget_traces(trace_ids)
                for trace_id in trace_ids:
                    self.early_logs.pop(trace_id)
            self.pipeline.forget_traces(trace_ids)

        def unwanted(item: Any) -> bool:
            if _trace_of(item) not in trace_ids:
                return False
            self.pipeline.leave(item, "moved")
            return True

        self.worker.discard(unwanted, forget)

    def end_conversation(self, conversation_id: str) -> bool:
        """A conversation is over: its metrics are evaluated. False when it is not held."""
        store = self.pipeline.conversations
        if store is None:
            return False
        self.worker.drain(self.config.exit_timeout)  # its last turn may be on its way
        ended = store.end(conversation_id)
        self._end(ended)
        return bool(ended)

    def _end_conversations(self, timeout: float) -> None:
        store = self.pipeline.conversations
        if store is not None:
            self.worker.drain(timeout)
            self._end(store.end_all())

    def _end(self, ended: Iterable[Ended]) -> None:
        for one in ended:
            self._queue(one, 0)

    def _take_groups(self, groups: Iterable[Group], *, must: bool = False) -> None:
        for group in groups:
            self._queue(group, group.size, must=must)

    def failed(self, where: str, error: BaseException) -> None:
        """A fault of ours, kept away from the agent: counted, and logged the first time, without content."""
        self.failures[where] += 1
        if self.failures[where] == 1:
            _log.warning(
                "%s failed: %s (counted from now on)", where, type(error).__name__, exc_info=_log.isEnabledFor(logging.DEBUG)
            )

    def progress(self) -> int | None:
        """A number that changes while the worker gets on; None while it has nothing to do."""
        worker = self.worker
        if worker.idle and not worker.waiting:
            return None
        return worker.looks + worker.handled + self.pipeline.evaluations

    # --- end of life

    def flush(self, timeout: float) -> bool:
        """Hand over everything that closed so far. Closes no open turn."""
        return self.worker.flush(timeout)

    def evaluate_closed(self, timeout: float) -> bool:
        """Wait until every turn that has closed so far is evaluated, whether or not its scores have left."""
        return self.worker.drain(timeout)

    def flush_outlets(self, timeout: float) -> bool:
        """Hand over the scores that there are, however many turns wait to be evaluated."""
        return self.worker.flush_outlets(timeout)

    def flush_jobs(self) -> bool:
        """Have the queue of judge jobs keep what was put into it; False if it cannot."""
        return self.judging is None or self.judging.queue.flush()

    def drain(self, timeout: float, *, judges: bool) -> bool:
        """As :meth:`flush`; with ``judges``, wait too until every judged metric of these turns is settled."""
        until = time.monotonic() + timeout
        done = self.worker.drain(timeout)
        if judges and self.judging is not None:
            done = self.judging.drain(until, self.worker.drain) and done
        return self.worker.flush(max(0.0, until - time.monotonic())) and done

    def _end_judging(self, until: float) -> None:
        """Use most of the time that is left for what waits; what stays behind is counted, unless its queue outlives us."""
        if self.judging is not None:
            left = max(0.0, until - time.monotonic())
            self.judging.drain(time.monotonic() + left * _SHARE_OF_JUDGES, self.worker.drain, patient=False)
            self.judging.stop(lambda: self.worker.drain(max(0.0, until - time.monotonic())))

    def shutdown(self) -> bool:
        """Evaluate what is open, hand everything over within ``exit_timeout``, release ports and files. Safe to call twice.

        False when time ran out before everything was handed over.
        """
        if self._closed:
            return True
        self._closed = True
        self.outlets.begin_exit()
        if self._exit_registered:
            atexit.unregister(self._at_exit)
        self._close_open("shutdown")
        at_exit = self._exit_until is not None  # then providers may be gone already, and a part of the time is
        timeout = self.config.exit_timeout if self._exit_until is None else max(0.0, self._exit_until - time.monotonic())
        until = time.monotonic() + timeout
        evaluate_until = until - timeout * _SHARE_OF_OUTLETS
        self._end_conversations(_left(evaluate_until))
        self.worker.drain(_left(evaluate_until))
        self._end_judging(evaluate_until)
        store = self.pipeline.conversations
        if store is not None:  # what judges said last of their turns
            self._end(store.end_late())
        self.worker.drain(_left(evaluate_until))
        self.pipeline.ending = True
        left = self.worker.give_up(_left(until) / 2)  # the outlets get the rest
        for item in left:
            self._leave(item)
        self.delivered = self.worker.stop(_left(until), outlets=not at_exit)
        done = self.delivered and not left
        if not done and not at_exit:
            _log.warning("not all scores were handed over within %.3g s", self.config.exit_timeout)
        self.outlets.close()
        return done

    def _leave(self, item: Any) -> None:
        """There was no time for something: the next process evaluates it, or nobody does."""
        if self.left_behind is None:
            self.pipeline.lose(item, "shutdown")
        else:
            self.left_behind |= self.pipeline.leave(item, "left_for_next_start")

    def register_exit(self) -> None:
        """At the first span: handlers run last-in first-out, so this one runs before those of providers that exist by now."""
        self._exit_registered = True
        this = weakref.ref(self)
        self._at_exit = lambda: _at_exit(this)
        atexit.register(self._at_exit)

    def exit(self) -> None:
        """At interpreter exit: starts no thread, and takes no longer than ``exit_timeout``."""
        self.worker.may_start = False
        if self.judging is not None:
            self.judging.may_start = False
        self._exit_until = time.monotonic() + self.config.exit_timeout
        self.outlets.begin_exit()
        self._close_open("exit")
        self._end_conversations(self.config.exit_timeout)
        self.worker.drain(max(0.0, self._exit_until - time.monotonic()))
        self._end_judging(self._exit_until)
        done = self.worker.drain(max(0.0, self._exit_until - time.monotonic()))
        if not (self.outlets.end_exit(max(0.0, self._exit_until - time.monotonic())) and done):
            _log.warning("not all scores were handed over within %.3g s at exit", self.config.exit_timeout)

    def _close_open(self, reason: Any) -> None:
        with self.lock:
            closed = self.assembler.close_all(reason)
        self._take_groups(self.pipeline.stop_waiting(), must=True)
        self.take(closed, must=True)

    def after_fork_in_child(self) -> None:
        """The parent owns open turns, queue and port; the child starts its worker when it needs one."""
        self.lock = threading.Lock()
        self.assembler.forget()
        self.early_logs.forget()
        self.telemetry.after_fork_in_child()
        self.pipeline.after_fork_in_child()
        self.spans_received = self.late_log_records = self.pipeline.spans_scored = 0
        for counted in (self.failures, self.span_events.outcomes, self.pipeline.spans_left_out):
            counted.clear()
        self.worker.after_fork_in_child()
        self.instance_id = str(uuid.uuid4())
        self.outlets.after_fork_in_child()

    # --- self-telemetry: plain integers here, read at collection

    def _watch(self) -> None:
        watch = self.telemetry.watch
        assembler, worker = self.assembler, self.worker
        watch(semconv.SPANS_RECEIVED, lambda: [({}, self.spans_received)])
        watch(semconv.SPANS_DROPPED, lambda: [({"reason": reason}, n) for reason, n in self.dropped().items()])
        watch(semconv.FAULTS, lambda: [({"where": where}, n) for where, n in self.failures.copy().items()])
        watch(semconv.LATE_SPANS, lambda: [({}, assembler.late_spans)])
        watch(semconv.TURNS_OPEN, lambda: [({}, assembler.open_turns)])
        watch(semconv.QUEUE_SIZE, lambda: [({"queue": "worker"}, worker.bytes)])
        watch(semconv.QUEUE_CAPACITY, lambda: [({"queue": "worker"}, worker.max_bytes)])
        watch(semconv.LOAD_LEVEL, lambda: [({}, self.shedding.level)])
        watch(semconv.SPAN_EVENTS, lambda: [({"outcome": outcome}, n) for outcome, n in self.span_events.outcomes.copy().items()])
        watch(semconv.EMIT_ERRORS, lambda: [({"outlet": o, "reason": r}, n) for (o, r), n in self.outlets.errors.copy().items()])
        watch(semconv.BUILD_INFO, lambda: [({"version": __version__, "python": platform.python_version()}, 1)])
        self._expect()

    def _expect(self) -> None:
        """Show what may be counted from the start."""
        expect = self.telemetry.expect
        outlets = {"metrics", *(outlet.name for outlet in self.outlets)}
        expect(semconv.SPANS_DROPPED)
        expect(semconv.FAULTS)
        expect(semconv.SPAN_EVENTS)
        expect(semconv.EMIT_ERRORS, outlet=outlets)
        expect(semconv.EMIT_RECORDS, outlet=outlets)
        self._expect_of_metrics()

    def _expect_of_metrics(self) -> None:
        """The same, for what is counted by metric."""
        expect, pipeline = self.telemetry.expect, self.pipeline
        expect(semconv.DROPPED, metric=[metric.name for metric in (*pipeline.metrics, *pipeline.heavy)], reason=_LOST_WITH_A_TURN)
        if self.judging is not None:
            judged = self.judging.metrics
            expect(semconv.DROPPED, metric=[*judged.names(conversation=False), *judged.names(conversation=True)])

    def dropped(self) -> dict[str, int]:
        """Spans that were not used, by reason; and parents and log records that were missing."""
        found = Counter(self.unused_spans())
        found["orphan_parent"] = self.assembler.orphan_parents
        found["late_log_record"] = self.late_log_records
        return {reason: count for reason, count in found.items() if count}

    def unused_spans(self) -> dict[str, int]:
        """Received spans that no score came of, by reason: each of them once."""
        found = Counter(self.pipeline.spans_left_out)
        found["late"] += self.assembler.late_unused
        found["moved"] += self.assembler.moved
        found["pruned"] = self.assembler.pruned_spans
        found["duplicate"] = self.assembler.duplicates
        found["error"] = sum(self.failures[where] for where in _TAKES_SPANS)
        return {reason: count for reason, count in found.items() if count}


def _left(until: float) -> float:
    """Seconds until then."""
    return max(0.0, until - time.monotonic())


def _look_back(judged: list[BoundMetric]) -> bool:
    """Whether a judged metric of turns looks at what was said before them: conversations are held for it."""
    return any("history" in metric.metric.reads for metric in judged)


def _split(metrics: list[BoundMetric]) -> tuple[list[BoundMetric], list[BoundMetric]]:
    """Those that are computed, and those that ask somebody."""
    computed = [metric for metric in metrics if metric.metric.kind == "code"]
    return computed, [metric for metric in metrics if metric.metric.kind != "code"]


def _in_child(this: weakref.ref[Engine]) -> None:
    engine = this()
    if engine is not None:
        engine.after_fork_in_child()


def _at_exit(this: weakref.ref[Engine]) -> None:
    engine = this()
    if engine is not None:
        try:
            engine.exit()
        except Exception as error:
            engine.failed("exit", error)
