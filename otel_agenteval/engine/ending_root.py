"""What the end of a root closes: its scores are promised to the span, or written on it at once, or made later.

On the agent's thread nothing is evaluated: the ending root gets a list of events that knows its turn, and the worker gets the turn. If
an exporter reads the root's events before the worker does, the exporter's thread evaluates. Every turn is evaluated once. Only where an
SDK leaves no other way is a turn evaluated while the agent waits, within a time budget.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from ..core.threads import is_meant_for_host
from ..evaluation.scored_turn import ScoredTurn
from ..turns.roots import Group
from ..turns.state import Closed
from .work import ClosedSpans, EvaluatedTurn, GroupedSpans, Work, WorkItem

if TYPE_CHECKING:
    from .pipeline import Pipeline

_INLINE_MAX_BYTES = 1024 * 1024
"""A turn that holds more is evaluated by the worker only, without span events: a synchronous exporter would keep the agent waiting for it."""
_SIZE_WITHOUT_CONTENT = 8 * 1024
_PATIENCE = 5.0
"""Seconds that a reader of events waits for another thread that is evaluating."""

Put = Callable[[WorkItem], object]


def close_root(chain: Pipeline, closed: Closed, span: Any, still_ending: bool, put: Put) -> None:
    """Give the worker what the end of a span closed, and the span its scores if it is the root.

    Args:
        chain: evaluates.
        closed: what the end of the span closed.
        span: the span that is ending, or has just ended.
        still_ending: whether the SDK is inside ``_on_ending``.
        put: queues an item for the worker.
    """
    # ``on_end`` gets a copy of the span that started.
    is_root = closed.root is span if still_ending else closed.root is not None and closed.root.context == span.context
    if not (is_root and closed.complete and closed.size <= _INLINE_MAX_BYTES and chain.evaluator.metrics):
        put(ClosedSpans(chain, closed))
        return
    if still_ending:
        deferred = DeferredTurns(chain, closed, span)
        if chain.span_events.defer(span, deferred.events):
            put(deferred)
            return
    _evaluate_now(chain, closed, span, still_ending, put)


def _evaluate_now(chain: Pipeline, closed: Closed, span: Any, still_ending: bool, put: Put) -> None:
    """Evaluate while the agent waits, and write the span events. If its thread is interrupted, the worker evaluates what is left."""
    groups = deque(chain.composer.compose(closed))
    try:
        while groups:
            scored = chain.evaluate(groups[0], waited_for=True)
            chain.span_events.write(span, groups[0].root, scored, still_ending)
            if not (scored.pending or chain.wants_content):  # else what waits would hold the content of every turn
                scored.turn, scored.size = scored.turn.without_content(), _SIZE_WITHOUT_CONTENT
            groups.popleft()
            put(EvaluatedTurn(chain, scored))
    finally:
        for group in groups:
            put(GroupedSpans(chain, group))


class DeferredTurns(Work):
    """What the end of a root closed, to be evaluated by the worker, or by the thread that reads the root's events before it."""

    __slots__ = (
        "_chain",
        "_closed",
        "_done",
        "_evaluating_in",
        "_events",
        "_groups",
        "_lock",
        "_lost",
        "_missed",
        "_scored",
        "_span",
        "size",
        "trace_key",
    )

    def __init__(self, chain: Pipeline, closed: Closed, span: Any) -> None:
        self._chain = chain
        self._closed: Closed | None = closed
        self._lost: Closed | None = closed
        """What is counted when no scores come of it."""
        self._span = span
        self._groups: deque[Group] = deque()
        """Those of its turns that are not evaluated yet."""
        self._events: Sequence[Any] = ()
        self._scored: list[ScoredTurn] = []
        self._done = False
        self._missed = False
        """Whether somebody read the events and did not get them in time: the span may have left without."""
        self._evaluating_in: int | None = None
        self._lock = threading.Lock()
        self.size = closed.size
        self.trace_key = closed.trace_id

    def events(self) -> Sequence[Any] | None:
        """The events of the root, or None while they cannot be had. Raises nothing but what is meant to end the caller's thread."""
        if self._evaluating_in != threading.get_ident():  # else the evaluation itself reads the span's own events
            self._evaluate()
            self._missed = self._missed or not self._done
        return self._events if self._done else None

    def score(self) -> Sequence[ScoredTurn]:
        """The scored turns, for the worker, once. None of them if another thread does not finish evaluating them in time."""
        self._evaluate()
        if not self._done:
            self.lose("stuck")
        for scored in tuple(self._scored):
            if self._missed:
                scored.on_span = ()
            if not self._chain.finish(scored):  # it comes back by itself, also where this thread is interrupted now
                self._scored = [one for one in self._scored if one is not scored]
        finished, self._scored = self._scored, []
        return finished

    def lose(self, reason: str) -> None:
        """Count what was closed as lost, unless it was."""
        closed, self._lost = self._lost, None
        if closed is not None:
            self._chain.outcomes.lose_closed(closed, reason)

    def _evaluate_one(self, group: Group) -> tuple[ScoredTurn, Sequence[Any]]:
        """The scores of one of the turns, and the events if the span is its root."""
        scored = self._chain.evaluate(group)
        if group.root.span_id != self._span.context.span_id:
            self._chain.span_events.root_already_ended(scored)
            return scored, ()
        return scored, self._chain.span_events.events_of(self._span, scored, group.root.end_ns)

    def _evaluate(self) -> None:
        # A forked child can inherit a lock that no thread will release: it goes on without these scores.
        if self._done or not self._lock.acquire(timeout=_PATIENCE):
            return
        interrupted = False
        try:
            if self._done:  # by the thread that had the lock
                return
            self._evaluating_in = threading.get_ident()
            closed, self._closed = self._closed, None
            if closed is not None:
                self._groups.extend(self._chain.composer.compose(closed))
            while self._groups:
                scored, events = self._evaluate_one(self._groups[0])
                self._groups.popleft()
                self._scored.append(scored)
                self._events = events or self._events
            if self._lost is None:  # counted meanwhile
                self._scored = []
            self._lost = None
        except BaseException as error:
            interrupted = is_meant_for_host(error)
            if interrupted:  # the worker has this in its queue, and goes on with it
                raise
            self._chain.outlets.count_error("span_events", type(error).__name__)
            self._scored = []
            self.lose("fault")
        finally:
            self._evaluating_in = None
            if not interrupted:
                self._span, self._done = None, True
            self._lock.release()
