"""Start, run, and stop all components between entry points and outlets.

Entry points (span processor, log processor, exporter, server, Kafka consumer) pass spans, log records, and feedback to the
engine's :class:`~.intake.Intake`. :mod:`.builder` creates engines.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping, MutableSequence
from typing import TYPE_CHECKING, Any

from ..config.root import Config
from ..config.types import truth_of
from ..core import forks
from ..core.extras import PATIENCE, late_imports
from ..core.telemetry import Telemetry
from ..core.threads import borrowed, started
from ..evaluation.references import ReferenceSources
from ..outlets.base import MemoryOutlet
from ..outlets.fan_out import FanOut
from ..turns.assembler import Assembler
from ..turns.state import TurnLimits
from .intake import Intake
from .pipeline import Pipeline
from .selected import selected
from .status import InternalErrors, Status, expect_metrics
from .watchdog import InHand, Watchdog
from .work import DetectedChange, WorkItem
from .worker import Worker

if TYPE_CHECKING:
    from ..evaluation.scored_turn import ScoredTurn
    from ..judging.dispatcher import Dispatcher

_log = logging.getLogger("otel_agenteval")

BEHIND_OTLP = 10.0
"""Value of ``turn.decision_delay: auto`` in seconds, for spans that exporters or Collectors send in batches."""
_SHARE_OF_JUDGES = 0.8
_SHARE_OF_OUTLETS = 0.25
"""Share of the shutdown time limit reserved for delivering finished scores."""


def switched_on() -> bool:
    """Return False if the environment has ``OTEL_SDK_DISABLED=true`` or ``OTEL_AGENTEVAL_ENABLED=false``."""
    disabled = os.environ.get("OTEL_SDK_DISABLED", "").strip().lower() == "true"
    return not disabled and truth_of(os.environ.get("OTEL_AGENTEVAL_ENABLED", "")) is not False


def check_models(config: Config) -> None:
    if config.judge.options_given or config.embedder.options_given:
        from ..judging.models import embedder_from, judge_from  # only imported if one of them is configured

        for model in (judge_from(config), embedder_from(config)):
            if model is not None:
                model.close()


def limits_of(config: Config, decision_delay: float) -> TurnLimits:
    """Return the configured turn limits. ``decision_delay`` (seconds) replaces the option's value ``auto``."""
    wanted = config.turn
    return TurnLimits(
        decision_delay if wanted.decision_delay == "auto" else wanted.decision_delay, wanted.idle_timeout, wanted.max_duration,
        wanted.max_open, wanted.max_spans, wanted.max_bytes, wanted.total_bytes,
    )  # fmt: skip


class Engine:
    """All components of a running evaluation, from start to shutdown. Use :func:`~.builder.engine_from` to create an engine."""

    def __init__(
        self,
        config: Config,
        decision_delay: float,
        enabled: bool,
        instance_id: Callable[[], str],
        telemetry: Telemetry,
        errors: InternalErrors,
        outlets: FanOut,
        assembler: Assembler,
        intake: Intake,
        pipeline: Pipeline,
        watchdog: Watchdog,
        worker: Worker,
        status: Status,
        warm_up: WarmUp,
    ) -> None:
        self.config = self._at_start = config
        self.enabled = enabled
        """If False, the entry points must not do anything, and outlets aren't opened."""
        self.telemetry = telemetry
        self.failures = errors.counts
        self.failed = errors.report
        self.outlets = outlets
        self.assembler = assembler
        self.intake = intake
        self.pipeline = pipeline
        self.worker = worker
        self.status = status
        self.warm_up = warm_up
        self.delivered = False
        """True after a shutdown in which every outlet delivered all scores."""
        self.left_behind: set[int] | None = None
        """After shutdown, keys of traces that the next process must evaluate, or None if :meth:`keep_all` wasn't called."""
        self._decision_delay = decision_delay
        self._instance_id = instance_id
        self._watchdog = watchdog
        self.closed = False
        self._at_exit: Any = None
        self._exit_until: float | None = None

    @property
    def instance_id(self) -> str:
        return self._instance_id()

    @property
    def judging(self) -> Dispatcher | None:
        return self.pipeline.judging

    def reload(self, config: Config) -> list[str]:
        """Apply changed metrics (with parameters, policies, and samples), references, feedback options, and turn limits. Return the
        names of settings whose changes since the start take effect only after a restart. If ConfigError is raised, nothing changes.
        """
        metrics, references = selected(config), ReferenceSources(config)
        check_models(config)
        fixed = [
            name
            for name in ("judge", "embedder", "privacy", "outlets", "queue", "conversation", "statistics")
            if getattr(config, name) != getattr(self._at_start, name)
        ]
        if config.turn.stitch_timeout != self._at_start.turn.stitch_timeout:
            fixed.append("turn.stitch_timeout")
        if self.judging is not None:
            self.judging.metrics.reload(config, metrics.of_turns, metrics.of_conversations)
        elif metrics.any_judged:
            from ..judging.sampling import rules_of  # the same checks as with a judge

            rules_of(config, metrics.of_turns), rules_of(config, metrics.of_conversations)
            fixed.append("judged metrics")
        if self.pipeline.conversations is None and "conversation" not in fixed and metrics.history:
            fixed.append("metrics that read the history")
        with self.assembler.lock:
            self.assembler.set_limits(limits_of(config, self._decision_delay))
        self.pipeline.evaluator.reload(metrics.computed, metrics.whole, references, config.inline.budget, config.inline.expected)
        self.pipeline.feedback.reload(config.feedback)
        expect_metrics(self.telemetry, self.pipeline)
        self.config = config
        return fixed

    def start(self) -> None:
        """Start the outlets. From now on, the worker doesn't pause between batches, because a server's process has no agent."""
        self.worker.is_courteous = False
        self.outlets.start()

    def work_here(self, start: Callable[[], object]) -> None:
        """Call ``start``, then score turns on this thread, the main thread. Limit each turn to ``turn.max_work`` CPU seconds."""
        with borrowed():
            self._watchdog.start()
            try:
                self.worker.run_here(start)
            finally:
                self._watchdog.stop()

    def end_work(self) -> None:
        self.worker.stop(0)

    def keep_in_hand(self, in_hand: InHand) -> None:
        """Record in ``in_hand`` which turn is being scored. After a crash, the next process reads this record."""
        self._watchdog.keep(in_hand)

    def reopen_statistics(self) -> None:
        """Load the saved statistics again after another process has released the statistics file."""
        self.pipeline.statistics.reopen()

    def hung_metrics(self) -> dict[str, str]:
        return foreign.hung() if (foreign := self.pipeline.evaluator.foreign) is not None else {}

    def silent_models(self) -> dict[str, str]:
        """Map ``judge`` and ``embedder`` to an error message if the model doesn't answer. Omit other models."""
        return self.judging.runner.silent_models() if self.judging is not None else {}

    @property
    def unsent_jobs(self) -> int:
        """Number of judge jobs in memory that aren't written to the job queue yet."""
        return self.judging.queue.unsent if self.judging is not None else 0

    def start_judging(self, at_once: int) -> None:
        """Process up to ``at_once`` judge jobs from the queue at the same time, including other processes' jobs."""
        if self.judging is not None:
            self.judging.start(at_once)

    def set_tenant_labels(self, labels: Mapping[str, Mapping[str, str]]) -> None:
        self.pipeline.composer.set_tenant_labels(labels)

    def keep_all(self) -> None:
        """Don't drop data if the worker's queue or an outlet is full, but make turns and senders wait. For a journal or Kafka."""
        self.intake.keep_all()
        self.left_behind = set()
        self.outlets.keep_all()

    def end_conversation(self, conversation_id: str) -> bool:
        """End a conversation now, and queue it for evaluation. Return False if no conversation with this ID is open."""
        if (store := self.pipeline.conversations) is None:
            return False
        self.evaluate_closed(self.config.exit_timeout)  # its last turn may still be queued
        ended = store.end(conversation_id)
        self.intake.take_ended(ended)
        return bool(ended)

    def known_turns(self, short: str) -> list[str]:
        return self.pipeline.outcomes.known(short)

    def why(self, turn_id: str) -> dict[str, str] | None:
        """Return each metric's outcome on a recent turn, or None if unknown. ``turn_id`` can contain the ID of any span in the turn."""
        found = self.pipeline.outcomes.of(turn_id)
        if found is None:
            turn_id = self.pipeline.feedback.turn_of(turn_id) or turn_id
            found = self.pipeline.outcomes.of(turn_id)
        judged = self.judging.outcomes.of(turn_id) if self.judging is not None else {}
        return {**(found or {}), **judged} if found is not None or judged else None

    def keep_turns(self, kept: MutableSequence[ScoredTurn]) -> MemoryOutlet:
        """Append every scored turn to ``kept``. To stop, call ``engine.outlets.remove`` with the returned outlet."""
        outlet = MemoryOutlet(kept)
        self.outlets.add(outlet)
        return outlet

    def progress(self) -> int | None:
        """Return a number that changes while the worker makes progress, or None if the worker is idle."""
        if (worker := self.worker).idle and not worker.queue:
            return None
        return worker.looks + worker.queue.handled + self.pipeline.evaluator.evaluations

    def flush(self, timeout: float) -> bool:
        """Evaluate all closed turns, and deliver their scores, but don't wait for judges. Return False if something else remains."""
        return self.worker.flush(timeout)

    def evaluate_closed(self, timeout: float) -> bool:
        """Wait until all closed turns are evaluated, but not until their scores are delivered. Return False if a turn remains."""
        return self.worker.flush(timeout, outlets=False)

    def flush_outlets(self, timeout: float) -> bool:
        """Deliver the scores that outlets buffer, even if some turns still wait for evaluation. Return False if a score remains."""
        return self.worker.flush(timeout, items=False)

    def flush_jobs(self) -> bool:
        """Write all judge jobs to the job queue. Return False if this fails."""
        return self.judging is None or self.judging.queue.flush()

    def drain(self, timeout: float, *, judges: bool) -> bool:
        """Deliver all closed turns' scores, including judged scores if ``judges`` is True. Return False if something remains."""
        until = time.monotonic() + timeout
        done = self.evaluate_closed(timeout)
        if judges and self.judging is not None:
            done = self.judging.drain(until, self.evaluate_closed) and done
        return self.worker.flush(max(0.0, until - time.monotonic())) and done

    def register_exit(self) -> None:
        """Register the exit handler. Call this at the first span, so that the handler runs before the handlers of SDK providers."""
        this, limit, process = weakref.ref(self), self.config.exit_timeout + PATIENCE, os.getpid()

        def at_exit() -> None:
            if (engine := this()) is not None and engine._at_exit is at_exit and not engine.closed:
                engine._at_exit = None
                try:
                    engine.exit()
                except Exception as error:
                    _log.warning("otel-agenteval couldn't finish at exit: %s", type(error).__name__)

        def in_child(**_: Any) -> None:
            if os.getpid() == process and (thread := started(at_exit, "otel-agenteval-exit")) is not None:
                thread.join(limit)  # the parent waits for the child, but not for a server or an import that hangs

        atexit.unregister(self._at_exit)  # a forked child inherits the parent's handler
        self._at_exit = at_exit
        atexit.register(at_exit)
        # forked children of multiprocessing (until Python 3.12) and Celery end without atexit
        forking, celery = sys.modules.get("multiprocessing"), sys.modules.get("celery.signals")
        method = forking is not None and forking.parent_process() and forking.get_start_method(allow_none=True)
        if sys.version_info < (3, 13) and method in ("fork", "forkserver"):
            sys.modules["multiprocessing.util"].Finalize(None, in_child, exitpriority=0)
        if celery is not None:
            celery.worker_process_shutdown.connect(in_child, weak=False)

    def shutdown(self, timeout: float | None = None) -> bool:
        """Evaluate open turns, deliver their scores, and release ports and files. Further calls only return True.

        The default timeout is ``exit_timeout``. Return False if something isn't delivered.
        """
        if self.closed:
            return True
        self.closed = True
        self.warm_up.cancel()
        self.outlets.begin_exit()
        atexit.unregister(self._at_exit)
        failing = self.outlets.failing()  # later, an outlet could also fail because the time ran out
        self.intake.close_all("shutdown")
        limit = "exit_timeout" if timeout is None else "serve.drain_timeout"
        at_exit = self._exit_until is not None  # in this case, providers may be gone, and some time is already used
        if timeout is None:
            timeout = self.config.exit_timeout if self._exit_until is None else _left(self._exit_until)
        until = time.monotonic() + timeout
        evaluate_until = until - timeout * _SHARE_OF_OUTLETS
        self._end_conversations(_left(evaluate_until))
        self.evaluate_closed(_left(evaluate_until))
        self.intake.release_feedback()
        self._end_judging(evaluate_until)
        if self.pipeline.conversations is not None:  # after the last judged scores
            self.intake.take_ended(self.pipeline.conversations.end_late())
        self.evaluate_closed(_left(evaluate_until))
        self.pipeline.end()
        left = self.worker.give_up(_left(until) / 2)  # the outlets get the rest of the time
        self._watchdog.end_work()
        for item in left:
            self._leave(item)
        self.delivered = self.worker.stop(_left(until), outlets=not at_exit)
        done = self.delivered and not left
        if not done and not at_exit:
            self._warn_of_rest(until, failing, f"within {timeout:.3g} s; increase {limit}")
        self.pipeline.composer.readings.finish()
        self.pipeline.statistics.close()
        self.outlets.close()
        return done

    def _leave(self, item: WorkItem) -> None:
        if isinstance(item, DetectedChange):
            self.outlets.announce(item.change, item.root)
        elif self.left_behind is None:
            self.pipeline.outcomes.drop(item, "shutdown")
        else:
            self.left_behind |= self.pipeline.outcomes.hand_over(item, "left_for_next_start")

    def exit(self) -> None:
        """Evaluate and deliver everything at interpreter exit, without new threads and within ``exit_timeout``."""
        self.warm_up.cancel()
        self.worker.may_start = False
        self.outlets.start_no_threads()
        if self.judging is not None:
            self.judging.may_start = False
        timeout = self.config.exit_timeout
        self._exit_until = until = time.monotonic() + timeout
        failing = self.outlets.failing()
        self.outlets.begin_exit()
        self.intake.close_all("exit")
        self._end_conversations(timeout)
        self.evaluate_closed(_left(until))
        self.intake.release_feedback()
        self._end_judging(until)
        done = self.evaluate_closed(_left(until))
        self.pipeline.composer.readings.finish()
        self.pipeline.statistics.save()
        if not (self.outlets.flush(_left(until), at_exit=True) and done):
            self._warn_of_rest(until, failing, f"within {timeout:.3g} s at exit; increase exit_timeout")

    def _warn_of_rest(self, until: float, failed_before: str, time_ran_out: str) -> None:
        reason = failed_before if not _left(until) else self.outlets.failing() or "some turns or scores still wait"
        _log.warning("not all scores were delivered %s", f"before shutdown: {reason}" if reason else time_ran_out)

    def _end_conversations(self, timeout: float) -> None:
        if (store := self.pipeline.conversations) is not None:
            self.evaluate_closed(timeout)
            self.intake.take_ended(store.end_all())

    def _end_judging(self, until: float) -> None:
        """Use most of the remaining time for queued judge jobs. Drop unfinished jobs, unless the job queue is persistent."""
        if self.judging is not None:
            self.judging.drain(time.monotonic() + _left(until) * _SHARE_OF_JUDGES, self.evaluate_closed, patient=False)
            self.judging.stop(lambda: self.evaluate_closed(_left(until)), self.left_behind)


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())


# --- preparation for the first turn: imports, compiled patterns and small models
#
# A short-lived thread runs steps of a few milliseconds with pauses between them. It starts after a short delay, so that
# short programs have no overhead. If a turn arrives first, the turn waits only for the imports that it needs.
#
# The interpreter's exit waits for the current step, because native code must not lose its thread. A fork also waits. See
# :func:`~otel_agenteval.core.extras.late_imports`.

WARM_UP_DELAY = 0.2


class WarmUp:
    """Thread that runs ``steps`` once. If a step raises an exception, the thread passes the exception to ``failed`` and ends."""

    def __init__(self, steps: Callable[[], Iterable[object]], failed: Callable[[str, BaseException], None]) -> None:
        self._steps = steps
        self._failed = failed
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._is_running = False
        forks.in_child(self._begin_in_child, forks.Step.THREADS)

    def start(self) -> None:
        self._is_running = True
        atexit.register(self.stop)  # first, because the thread unregisters it when it ends
        self._thread = started(self._run, "otel-agenteval-start")
        if self._thread is None:
            self._ended()

    def stop(self) -> None:
        self.cancel()
        thread = self._thread
        if thread is not None and thread is not threading.current_thread():
            thread.join(PATIENCE)

    def cancel(self) -> None:
        self._stop.set()

    def _begin_in_child(self) -> None:
        """Restart the warm-up in a forked child process if the parent's warm-up was still running."""
        if not self._is_running:
            return
        self._stop = threading.Event()
        self._thread = None
        atexit.unregister(self.stop)
        self.start()

    def _run(self) -> None:
        try:
            if not self._stop.wait(WARM_UP_DELAY):
                self._work(iter(self._steps()))
        except BaseException as error:
            self._failed("warm_up", error)
        finally:
            self._ended()

    def _ended(self) -> None:
        self._is_running = False
        atexit.unregister(self.stop)

    def _work(self, steps: Iterator[object]) -> None:
        while not self._stop.is_set():
            with late_imports():
                begun = time.perf_counter()
                if next(steps, self) is self:
                    return
                spent = time.perf_counter() - begun
            self._stop.wait(spent)  # give the agent the same time
