"""Evaluate turns when their root span ends in this process, and add the scores to the root span as span events.

Usually, the agent's thread doesn't evaluate anything. It queues the turn for the worker, and gives the root span a lazy list of
events. If an exporter reads this list before the worker evaluates the turn, the exporter's thread evaluates it. The worker
then skips it. If the SDK doesn't support lazy events, the agent waits for the evaluation, which has a time budget.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from ..core.feedback import EVENT_NAME
from ..core.feedback import METRIC as FEEDBACK
from ..core.threads import is_meant_for_host, own_work
from ..evaluation.evaluator import Evaluator
from ..evaluation.scored_turn import ScoredTurn
from ..outlets.fan_out import FanOut
from ..outlets.span_events import DeferredEvents, PromisedEvents, SpanEventOutlet
from ..turns.composer import Composer
from ..turns.roots import SpanGroup
from ..turns.state import Closed
from .feedback import FeedbackJoiner
from .hints import Hints
from .work import ClosedSpans, EvaluatedTurn, GroupedSpans, WorkItem


class TurnScorer:
    """Evaluator of composed turns. ``wants_events`` returns True if the judges' sampling conditions refer to span event names."""

    def __init__(
        self,
        composer: Composer,
        evaluator: Evaluator,
        feedback: FeedbackJoiner,
        outlets: FanOut,
        hints: Hints,
        wants_events: Callable[[], bool],
    ) -> None:
        self._composer = composer
        self._evaluator = evaluator
        self._feedback = feedback
        self._outlets = outlets
        self._hints = hints
        self._wants_events = wants_events

    def evaluate(self, group: SpanGroup, *, waited_for: bool = False) -> ScoredTurn:
        scored = self._composer.read(group)
        if self._outlets.keeps_spans:
            scored.spans = tuple(group.members)
        with own_work():
            self._evaluator.evaluate(scored, group.root.attributes, waited_for=waited_for)
        try:
            self._feedback.add_to(scored, group)
        except Exception as error:  # only the feedback is lost
            self._outlets.count_error("feedback", type(error).__name__)
        self._composer.keep(group, scored)
        self._hints.check_turn()
        self._outlets.redact(scored)
        if self._wants_events():
            scored.events = _events_in(group)
            if any(score.metric == FEEDBACK for score in scored.scores):
                scored.events.add(EVENT_NAME)
        return scored

    def evaluate_again(self, later: ScoredTurn) -> ScoredTurn | None:
        """Evaluate a turn again after user feedback arrives. Return None if the turn's spans aren't in memory anymore."""
        found = self._composer.read_again(later.root.trace_key, later.root.span_id)
        if found is None:
            return None
        group, scored = found
        self._evaluator.evaluate(scored, group.root.attributes)
        scored.add_scores(later.scores)
        scored.events = _events_in(group) | {EVENT_NAME}
        self._outlets.redact(scored)
        return scored


def _events_in(group: SpanGroup) -> set[str]:
    return {event.name for member in group.members for event in member.events}


_INLINE_MAX_BYTES = 1024 * 1024
"""Maximum bytes of a turn that gets span events. For larger turns, an agent with a synchronous exporter would wait too long."""
_SIZE_WITHOUT_CONTENT = 8 * 1024
_PATIENCE = 5.0
"""Maximum seconds that a thread waits for another thread's evaluation of the same turns."""

Put = Callable[[WorkItem], object]


class EndingRoots:
    """Handler for turns whose root span ends in this process.

    ``needs_content`` is True if conversations or judges need a turn's messages later. ``lose`` counts spans as dropped.
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
        self.scorer = scorer
        self.composer = composer
        self.span_events = span_events
        self.outlets = outlets
        self.lose = lose
        self._evaluator = evaluator
        self._needs_content = needs_content

    def close(self, closed: Closed, span: Any, still_ending: bool, put: Put) -> None:
        """Queue closed spans for the worker. If ``span`` is their root, also add the scores as span events, if possible.

        ``still_ending`` is True if the span can still receive events, because the SDK called ``_on_ending``.
        """
        # ``on_end`` gets a copy of the span that started.
        is_root = closed.root is span if still_ending else closed.root is not None and closed.root.context == span.context
        if not (is_root and closed.complete and closed.size <= _INLINE_MAX_BYTES and self._evaluator.metrics):
            put(ClosedSpans(closed))
            return
        if still_ending:
            deferred = DeferredTurns(self, closed, span)
            if self.span_events.defer(span, deferred.events):
                put(deferred)
                return
        self._evaluate_now(closed, span, still_ending, put)

    def _evaluate_now(self, closed: Closed, span: Any, still_ending: bool, put: Put) -> None:
        """Evaluate turns and write span events on the agent's thread, which waits for the result.

        If an exception interrupts this method, the worker evaluates the remaining turns.
        """
        groups = deque(self.composer.compose(closed))
        try:
            while groups:
                scored = self.scorer.evaluate(groups[0], waited_for=True)
                self.span_events.write(span, groups[0].root, scored, still_ending)
                # Don't queue content that isn't needed.
                if not (scored.pending or self._needs_content or self.outlets.keeps_content):
                    scored.turn, scored.size = scored.turn.without_content(), _SIZE_WITHOUT_CONTENT
                groups.popleft()
                put(EvaluatedTurn(scored))
        finally:
            for group in groups:
                put(GroupedSpans(group))


class DeferredTurns:
    """Turns of one ended root span. The worker evaluates these turns, unless another thread reads the root's events earlier."""

    __slots__ = (
        "_evaluating_in", "_groups", "_is_done", "_is_dropped", "_lock", "_promised", "_scored", "_services", "_span", "_was_missed",
        "closed", "size", "trace_key",
    )  # fmt: skip

    def __init__(self, services: EndingRoots, closed: Closed, span: Any) -> None:
        self._services = services
        self.closed: Closed | None = closed
        self._span = span
        self._groups: deque[SpanGroup] | None = None
        """Turns that aren't evaluated yet, or None until the spans are composed."""
        self._scored: list[ScoredTurn] = []
        self._promised: PromisedEvents | None = None
        self._is_done = False
        self._is_dropped = False
        """True if the turns were counted as dropped. In this case, their scores must not be counted."""
        self._was_missed = False
        """True if a thread didn't get the events in time. The span might have been exported without these events."""
        self._evaluating_in: int | None = None
        self._lock = threading.Lock()
        self.size = closed.size
        self.trace_key = closed.trace_id

    def events(self) -> Sequence[Any] | None:
        """Return the root's events, or None if they aren't ready. Raise only exceptions meant for the host, such as KeyboardInterrupt."""
        if self._evaluating_in != threading.get_ident():  # the evaluation itself may read these events
            self.evaluate()
            self._was_missed = self._was_missed or not self._is_done
        if not self._is_done:
            return None
        return () if self._promised is None else self._promised()

    def release(self, finish: Callable[[ScoredTurn], Sequence[ScoredTurn]]) -> Sequence[ScoredTurn]:
        """Return each scored turn once. If ``finish`` returns an empty sequence (it queued the turn for later), omit this turn.

        If another thread is still evaluating these turns, count them as dropped.
        """
        if not self._is_done:
            self.drop("stuck")
        for scored in tuple(self._scored):
            if self._was_missed:
                scored.on_span = ()
            if not finish(scored):  # remove it at once, because this thread may be interrupted now
                self._scored = [one for one in self._scored if one is not scored]
        finished, self._scored = self._scored, []
        return finished

    def drop(self, reason: str) -> None:
        """Count the turns as dropped, unless they were already evaluated or dropped."""
        closed = self.closed
        if closed is not None and not self._is_dropped:
            self._is_dropped = True
            self._services.lose(closed, reason)

    def evaluate(self) -> None:
        """Evaluate the turns once. The next call continues an interrupted evaluation. Return after 5 s if another thread is stuck."""
        # A forked child can inherit a lock that no thread will release. It continues without these scores.
        if self._is_done or not self._lock.acquire(timeout=_PATIENCE):
            return
        services = self._services
        try:
            if self._is_done:  # by the thread that held the lock
                return
            self._evaluating_in = threading.get_ident()
            if self._groups is None:
                assert self.closed is not None
                self._groups = deque(services.composer.compose(self.closed))
            while self._groups:
                group = self._groups[0]
                scored = services.scorer.evaluate(group)
                if group.root.span_id == self._span.context.span_id:
                    self._promised = services.span_events.events_of(self._span, scored, group.root.end_ns)
                else:
                    services.span_events.root_already_ended(scored)
                self._groups.popleft()
                self._scored.append(scored)
            self._end()
        except BaseException as error:
            if is_meant_for_host(error):  # the worker has this item in its queue and continues
                raise
            services.outlets.count_error("span_events", type(error).__name__)
            self.drop("fault")
            self._end()
        finally:
            self._evaluating_in = None
            self._lock.release()

    def _end(self) -> None:
        self.closed = None  # the worker can't count the turns as dropped anymore
        if self._is_dropped:
            self._scored = []
        events = getattr(self._span, "_events", None)
        self._is_done, self._span = True, None
        if self._promised is not None and isinstance(events, DeferredEvents):
            events.promise(self._promised)  # otherwise, the span would keep this object until its export
