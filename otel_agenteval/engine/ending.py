"""End of an engine, by explicit shutdown or interpreter exit. Both are limited in time."""

from __future__ import annotations

import atexit
import logging
import time
import weakref
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .engine import Engine

_log = logging.getLogger("otel_agenteval")

_SHARE_OF_JUDGES = 0.8
_SHARE_OF_OUTLETS = 0.25
"""Share of the time limit that is reserved for delivery of finished scores."""


class Ending:
    """End of an engine, which happens once.

    Args:
        engine: the engine to end.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = weakref.ref(engine)
        self._closed = False
        self._registered = False
        self._exit_until: float | None = None
        self.delivered = False
        """After the shutdown, True if every outlet delivered all scores."""
        self.left_behind: set[int] | None = None
        """After the shutdown, traces that weren't evaluated and that the next process finds again.

        None if nothing is kept for the next process.
        """

    def register(self) -> None:
        """Register the exit handler at the first span.

        Handlers run in reverse order, so this one runs before those of providers that exist by then.
        """
        self._registered = True
        atexit.register(self._at_exit)

    def _at_exit(self) -> None:
        engine = self._engine()
        if engine is not None:
            try:
                self.exit(engine)
            except Exception as error:
                _log.warning("otel-agenteval couldn't finish at exit: %s", type(error).__name__)

    def shutdown(self, engine: Engine) -> bool:
        """Evaluate open turns, deliver their scores, and release ports and files.

        Takes at most ``exit_timeout``. Returns False if time ran out before everything was delivered. Safe to call twice.
        """
        if self._closed:
            return True
        self._closed = True
        engine.warm_up.cancel()
        engine.outlets.begin_exit()
        if self._registered:
            atexit.unregister(self._at_exit)
        self._close_open(engine, "shutdown")
        at_exit = self._exit_until is not None  # then providers may be gone, and part of the time is used up
        timeout = engine.config.exit_timeout if self._exit_until is None else _left(self._exit_until)
        until = time.monotonic() + timeout
        evaluate_until = until - timeout * _SHARE_OF_OUTLETS
        self._end_conversations(engine, _left(evaluate_until))
        engine.worker.drain(_left(evaluate_until))
        engine.release_feedback()
        self._end_judging(engine, evaluate_until)
        store = engine.pipeline.conversations
        if store is not None:  # after the last judged scores
            engine.take_ended(store.end_late())
        engine.worker.drain(_left(evaluate_until))
        engine.pipeline.ending = True
        left = engine.worker.give_up(_left(until) / 2)  # the outlets get the rest of the time
        engine.pipeline.watchdog.end_work()
        for item in left:
            self._leave(item)
        self.delivered = engine.worker.stop(_left(until), outlets=not at_exit)
        done = self.delivered and not left
        if not done and not at_exit:
            _log.warning("not all scores were delivered within %.3g s; increase exit_timeout", engine.config.exit_timeout)
        engine.pipeline.fleet.close()
        engine.outlets.close()
        return done

    def _leave(self, item: Any) -> None:
        """Leave an unprocessed item to the next process, or count it as dropped."""
        if self.left_behind is None:
            item.drop("shutdown")
        else:
            self.left_behind |= item.hand_over("left_for_next_start")

    def exit(self, engine: Engine) -> None:
        """End the engine at interpreter exit, without new threads and within ``exit_timeout``."""
        engine.warm_up.cancel()
        engine.worker.may_start = False
        if engine.judging is not None:
            engine.judging.start_no_threads()
        self._exit_until = until = time.monotonic() + engine.config.exit_timeout
        engine.outlets.begin_exit()
        self._close_open(engine, "exit")
        self._end_conversations(engine, engine.config.exit_timeout)
        engine.worker.drain(_left(until))
        engine.release_feedback()
        self._end_judging(engine, until)
        done = engine.worker.drain(_left(until))
        engine.pipeline.fleet.save()
        if not (engine.outlets.end_exit(_left(until)) and done):
            _log.warning("not all scores were delivered within %.3g s at exit; increase exit_timeout", engine.config.exit_timeout)

    @staticmethod
    def _close_open(engine: Engine, reason: Any) -> None:
        with engine.assembler.lock:
            closed = engine.assembler.close_all(reason)
        engine.pipeline.hints.look_at_spans(engine.assembler.received if not closed else 0)
        engine.take_groups(engine.pipeline.composer.stop_waiting(), must=True)
        engine.take(closed, must=True)

    @staticmethod
    def _end_conversations(engine: Engine, timeout: float) -> None:
        store = engine.pipeline.conversations
        if store is not None:
            engine.worker.drain(timeout)
            engine.take_ended(store.end_all())

    @staticmethod
    def _end_judging(engine: Engine, until: float) -> None:
        """Use most of the remaining time for waiting judge jobs.

        Remaining jobs are counted as dropped, unless their queue outlives the process.
        """
        judging, worker = engine.judging, engine.worker
        if judging is not None:
            judging.drain(time.monotonic() + _left(until) * _SHARE_OF_JUDGES, worker.drain, patient=False)
            judging.stop(lambda: worker.drain(_left(until)))


def _left(until: float) -> float:
    return max(0.0, until - time.monotonic())
