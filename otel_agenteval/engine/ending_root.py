"""Scores for an ending root: promised to its span, written at once, or created later.

Nothing is evaluated on the agent's thread. The ending root gets a list of events that refers to its turn, and the worker gets
the turn. If an exporter reads the root's events first, the exporter's thread evaluates the turn. Every turn is evaluated
once. Only if the SDK supports no other way, a turn is evaluated while the agent waits, within a time budget.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..core.threads import is_meant_for_host
from ..evaluation.evaluator import Evaluator
from ..evaluation.scored_turn import ScoredTurn
from ..outlets.fan_out import FanOut
from ..outlets.span_events import DeferredEvents, PromisedEvents, SpanEventOutlet
from ..turns.composer import Composer
from ..turns.roots import SpanGroup
from ..turns.state import Closed
from .scorer import TurnScorer
from .work import ClosedSpans, EvaluatedTurn, GroupedSpans, WorkItem

_INLINE_MAX_BYTES = 1024 * 1024
"""Size up to which a turn gets span events. A larger one would keep the agent of a synchronous exporter waiting."""
_SIZE_WITHOUT_CONTENT = 8 * 1024
_PATIENCE = 5.0
"""Seconds that a reader of events waits for another thread's evaluation."""

Put = Callable[[WorkItem], object]


class EndingRoots:
    """Source of the span events of roots that end in this process. ``needs_content`` is True if conversations or judges read a
    turn later. ``lose`` counts closed spans as dropped.
    """

    def __init__(
        self,
        scorer: TurnScorer,
        composer: Composer,
        span_events: SpanEventOutlet,
        outlets: FanOut,
        evaluator: Evaluator,
        needs_content: bool,
        lose: Callable[[Closed, str], None],
    ) -> None:
        self._scorer = scorer
        self._span_events = span_events
        self._outlets = outlets
        self._needs_content = needs_content
        self._evaluator = evaluator
        self.lose = lose
        self.compose = composer.compose

    def close(self, closed: Closed, span: Any, still_ending: bool, put: Put) -> None:
        """Pass ``closed`` to the worker, and scores to the span if it is the root. ``still_ending`` is True in ``_on_ending``."""
        # ``on_end`` gets a copy of the span that started.
        is_root = closed.root is span if still_ending else closed.root is not None and closed.root.context == span.context
        if not (is_root and closed.complete and closed.size <= _INLINE_MAX_BYTES and self._evaluator.metrics):
            put(ClosedSpans(closed))
            return
        if still_ending:
            deferred = DeferredTurns(self, closed, span)
            if self._span_events.defer(span, deferred.events):
                put(deferred)
                return
        self._evaluate_now(closed, span, still_ending, put)

    def _evaluate_now(self, closed: Closed, span: Any, still_ending: bool, put: Put) -> None:
        """Evaluate before the agent continues, and write the span events. After an interruption, the worker evaluates the rest."""
        groups = deque(self.compose(closed))
        try:
            while groups:
                scored = self._scorer.evaluate(groups[0], waited_for=True)
                self._span_events.write(span, groups[0].root, scored, still_ending)
                # The queue must not hold content that nothing needs.
                if not (scored.pending or self._needs_content or self._outlets.keeps_content):
                    scored.turn, scored.size = scored.turn.without_content(), _SIZE_WITHOUT_CONTENT
                groups.popleft()
                put(EvaluatedTurn(scored))
        finally:
            for group in groups:
                put(GroupedSpans(group))

    def evaluate(self, group: SpanGroup, span: Any) -> tuple[ScoredTurn, PromisedEvents | None]:
        """Return the scores of one turn, and the span events if the span is its root."""
        scored = self._scorer.evaluate(group)
        if group.root.span_id != span.context.span_id:
            self._span_events.root_already_ended(scored)
            return scored, None
        return scored, self._span_events.events_of(span, scored, group.root.end_ns)

    def count_error(self, error: BaseException) -> None:
        self._outlets.count_error("span_events", type(error).__name__)


class DeferredTurns:
    """Turns of an ended root, evaluated by the worker or by the first thread that reads the root's events."""

    __slots__ = (
        "_closed", "_done", "_evaluating_in", "_groups", "_lock", "_lost", "_missed", "_promised", "_roots", "_scored", "_span", "size",
        "trace_key",
    )  # fmt: skip

    def __init__(self, roots: EndingRoots, closed: Closed, span: Any) -> None:
        self._roots = roots
        self._closed: Closed | None = closed
        self._lost: Closed | None = closed
        """Spans to count as dropped if no scores result."""
        self._span = span
        self._groups: deque[SpanGroup] = deque()
        """Turns that aren't evaluated yet."""
        self._promised: PromisedEvents | None = None
        self._scored: list[ScoredTurn] = []
        self._done = False
        self._missed = False
        """True if a reader didn't get the events in time, so the span may have been exported without them."""
        self._evaluating_in: int | None = None
        self._lock = threading.Lock()
        self.size = closed.size
        self.trace_key = closed.trace_id

    def events(self) -> Sequence[Any] | None:
        """Return the root's events, or None. Only raises exceptions that are meant to end the caller's thread."""
        if self._evaluating_in != threading.get_ident():  # the evaluation itself may read the span's own events
            self._evaluate()
            self._missed = self._missed or not self._done
        if not self._done:
            return None
        return () if self._promised is None else self._promised()

    def take(self, finish: Callable[[ScoredTurn], Sequence[ScoredTurn]]) -> Sequence[ScoredTurn]:
        """Return the scored turns once, for the worker, or nothing if another thread is stuck or ``finish`` queued them again."""
        self._evaluate()
        if not self._done:
            self.drop("stuck")
        for scored in tuple(self._scored):
            if self._missed:
                scored.on_span = ()
            if not finish(scored):  # remove it at once, because this thread may be interrupted now
                self._scored = [one for one in self._scored if one is not scored]
        finished, self._scored = self._scored, []
        return finished

    def drop(self, reason: str) -> None:
        """Count the turns as dropped, unless they were counted before."""
        closed, self._lost = self._lost, None
        if closed is not None:
            self._roots.lose(closed, reason)

    def _evaluate(self) -> None:
        # A forked child can inherit a lock that no thread will release. It continues without these scores.
        if self._done or not self._lock.acquire(timeout=_PATIENCE):
            return
        interrupted = False
        span = self._span
        try:
            if self._done:  # by the thread that held the lock
                return
            self._evaluating_in = threading.get_ident()
            closed, self._closed = self._closed, None
            if closed is not None:
                self._groups.extend(self._roots.compose(closed))
            while self._groups:
                scored, promised = self._roots.evaluate(self._groups[0], self._span)
                self._groups.popleft()
                self._scored.append(scored)
                self._promised = promised or self._promised
            if self._lost is None:  # counted as dropped in the meantime
                self._scored = []
            self._lost = None
        except BaseException as error:
            interrupted = is_meant_for_host(error)
            if interrupted:  # the worker has this item in its queue and continues
                raise
            self._roots.count_error(error)
            self._scored = []
            self.drop("fault")
        finally:
            self._evaluating_in = None
            if not interrupted:
                self._span, self._done = None, True
            self._lock.release()
        events = getattr(span, "_events", None)
        if self._promised is not None and isinstance(events, DeferredEvents):
            events.promise(self._promised)  # so that the span doesn't keep this object until its export
