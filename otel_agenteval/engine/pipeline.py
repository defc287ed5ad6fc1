"""The pipeline: closed spans → turn → scores → outlets.

    group  = composer.compose(closed)     # turns/composer.py: splits spans into turns and reads them
    scored = evaluator.evaluate(turn)     # evaluation/evaluator.py: computes scores
    jobs   = judging.plan(scored)         # judging/plan.py: chooses judged metrics
    outlets.emit(scored)                  # outlets/fan_out.py: emits the scores

All steps run on the worker, except for threads that wait for a root's scores (:mod:`.ending_root`).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..core.feedback import EVENT_NAME
from ..core.feedback import METRIC as FEEDBACK
from ..core.tenancy import trace_name
from ..core.threads import OutOfTime, is_meant_for_host
from ..evaluation.evaluator import Evaluator
from ..evaluation.scored_turn import ScoredTurn
from ..outlets.fan_out import FanOut
from ..outlets.span_events import SpanEventOutlet
from ..turns.composer import Composer
from ..turns.conversations import Conversations, conversation_of, signals_in
from ..turns.roots import Group
from .feedback import FeedbackJoiner
from .fleet import Fleet
from .hints import Hints
from .outcomes import TurnOutcomes
from .watchdog import Watchdog
from .work import EndedConversation, SeenTurn, WorkItem

if TYPE_CHECKING:
    from ..judging.dispatcher import Dispatcher

_log = logging.getLogger("otel_agenteval")


class Pipeline:
    """Steps that compose, evaluate and judge closed turns, and emit the scores.

    Args:
        composer: composes turns from closed spans.
        evaluator: runs the computed metrics.
        outlets: emit the scores on the worker.
        span_events: writes scores to the ending root.
        outcomes: remembers the outcomes of recent turns.
        conversations: holds turns by conversation. None if no metric needs more than one turn.
        judging: plans judge calls for scored turns. None without judged metrics.
        watchdog: limits the time of one item.
        fill: returns the fill level of the worker's queue, 0 to 1.
    """

    def __init__(
        self,
        composer: Composer,
        evaluator: Evaluator,
        outlets: FanOut,
        span_events: SpanEventOutlet,
        outcomes: TurnOutcomes,
        conversations: Conversations | None,
        judging: Dispatcher | None,
        watchdog: Watchdog,
        fill: Callable[[], float] = lambda: 0.0,
    ) -> None:
        self.composer = composer
        self.evaluator = evaluator
        self.outlets = outlets
        self.span_events = span_events
        self.outcomes = outcomes
        self.conversations = conversations
        self.judging = judging
        self.watchdog = watchdog
        self._fill = fill
        self.feedback: FeedbackJoiner
        """Adds user feedback to turns."""
        self.fleet: Fleet
        """Statistics over many turns."""
        self.set_aside: Callable[[WorkItem, int, Callable[[], None], Callable[[], WorkItem]], None] | None = None
        """Runs work on another thread, then queues an item, see :meth:`.worker.Worker.set_aside`."""
        self.hints = Hints(())
        """Log messages about missing scores."""
        self.ending = False
        """True if the time is up and no further turn is evaluated."""

    @property
    def evaluates_conversations(self) -> bool:
        """True if any metric evaluates whole conversations.

        Otherwise, conversations are only held for their history.
        """
        return bool(self.evaluator.whole or (self.judging is not None and self.judging.metrics.names(conversation=True)))

    @property
    def wants_content(self) -> bool:
        """True if a turn's content is needed after its inline metrics.

        Outlets, conversations or judges may need it.
        """
        return bool(self.outlets.keeps_content or self.conversations is not None or self.judging is not None)

    def evaluate(self, group: Group, *, waited_for: bool = False) -> ScoredTurn:
        """Read the turn of a group and add its redacted scores."""
        scored = self.composer.read(group)
        if self.outlets.keeps_spans:
            scored.spans = tuple(group.members)
        self.evaluator.evaluate(scored, group.root.attributes, waited_for=waited_for)
        try:
            self.feedback.add_to(scored, group)
        except Exception as error:  # only the feedback is lost
            self.outlets.count_error("feedback", type(error).__name__)
        self.composer.keep(group, scored)
        self.hints.look_at_group(scored, group)
        self.outlets.redact(scored)
        if self.judging is not None and self.judging.metrics.wants_events:
            scored.events = {event.name for member in group.members for event in member.events}
            if any(score.metric == FEEDBACK for score in scored.scores):
                scored.events.add(EVENT_NAME)
        return scored

    # --- on the worker

    def finish(self, scored: ScoredTurn) -> Sequence[ScoredTurn]:
        """Evaluate metrics that were deferred.

        If they open media, which takes seconds, another thread does it, and the result is empty.
        """
        if self.set_aside is not None and not self.ending and self.evaluator.opens_media(scored):
            seen = SeenTurn(self, scored)
            self.set_aside(seen, scored.size, lambda: self.evaluator.finish_media(scored), seen.without_media)
            return ()
        self.evaluator.finish(scored)
        return (scored,)

    def run(self, batch: list[WorkItem]) -> Sequence[WorkItem]:
        """Score and emit a batch, and remove started items from it.

        Returns items that weren't started because the engine is ending.
        """
        self.watchdog.begin_batch()
        try:
            return self._run(batch)
        finally:
            self.watchdog.end_batch()

    def _run(self, batch: list[WorkItem]) -> Sequence[WorkItem]:
        done: list[ScoredTurn] = []
        not_begun: list[WorkItem] = []
        interrupt: BaseException | None = None
        self.evaluator.shedding.update(self._fill())
        while batch and interrupt is None:
            item = batch.pop(0)
            if self.ending:
                not_begun.append(item)
                continue
            try:
                self.watchdog.begin(item.trace_key)
                parts = item.split()
                found = item.score() if parts == (item,) else ()
                self.watchdog.end()
                if parts == (item,):
                    done += found
                else:
                    batch[:0] = parts
            except OutOfTime:
                if not self.ending:  # at the end, it is counted as left behind
                    self._set_aside(item)
            except BaseException as error:  # drop only this turn
                self.watchdog.end()
                if is_meant_for_host(
                    error
                ):  # on the application's thread: emit finished turns, leave the others to the next thread
                    batch.insert(0, item)
                    interrupt = error
                else:
                    self.outlets.count_error("pipeline", type(error).__name__)
                    item.drop("fault")
        ended = self._add_to_conversations(done)
        self._deliver(done)
        if ended:
            not_begun += self._run(ended)
        if interrupt is not None:
            raise interrupt
        return not_begun

    def _set_aside(self, item: WorkItem) -> None:
        """Drop an item that took too long, and log its trace."""
        name = trace_name(item.trace_key)
        _log.warning("trace %s: dropped a turn that took more CPU time than turn.max_work (10 s by default)", name)
        self.watchdog.set_aside(item.trace_key)
        item.drop("too_long")

    def _deliver(self, done: Sequence[ScoredTurn]) -> None:
        """Plan judge calls for scored turns, emit scores, and acknowledge the jobs of judged ones."""
        for scored in done:
            self.outlets.name(scored)
        judging = self.judging
        if judging is None:
            self.emit(done)
            return
        done = judging.confirm(done)
        self.emit([*done, *self._plan(done)])
        receipts = list({id(scored.receipt): scored.receipt for scored in done if scored.receipt is not None}.values())
        if receipts:
            if judging.lasting:
                self.outlets.catch_up()
            with judging.at_once():
                for receipt in receipts:
                    receipt.acknowledge()

    def _plan(self, done: Sequence[ScoredTurn]) -> list[ScoredTurn]:
        """Plan judge calls. Return the scores that needed no judge call."""
        assert self.judging is not None
        with self.judging.at_once():
            found = [made for scored in done if scored.final and scored.of_turn_itself for made in self.judging.plan(scored)]
            if self.judging.metrics.wants_feedback:
                again = [scored for one in done if one.is_feedback and (scored := self._read_again(one)) is not None]
                found += [made for scored in again for made in self.judging.plan_again(scored)]
            return found

    def _read_again(self, later: ScoredTurn) -> ScoredTurn | None:
        """Return a turn with later feedback and its inline scores, or None.

        None if its spans aren't remembered anymore.
        """
        found = self.composer.read_again(later.root.trace_key, later.root.span_id)
        if found is None:
            return None
        group, scored = found
        self.evaluator.evaluate(scored, group.root.attributes)
        scored.add_scores(later.scores)
        scored.events = {EVENT_NAME, *(event.name for member in group.members for event in member.events)}
        self.outlets.redact(scored)
        return scored

    def _add_to_conversations(self, done: Sequence[ScoredTurn]) -> list[WorkItem]:
        """Add turns to their conversations before any is judged.

        A turn's history then only depends on start times. Returns the conversations that were ended to make room.
        """
        store = self.conversations
        if store is None:
            return []
        turns = [scored for scored in done if scored.of_turn_itself and not scored.conversation]
        ended = [
            one
            for scored in turns
            for one in store.add(scored.turn, scored.size, scored.root, (scored.first_id, *scored.absorbs))
        ]
        for scored in turns if store.gives_history else ():
            if scored.turn.conversation_id and not scored.turn.history:
                scored.turn.history = store.before(scored.turn)
        return [EndedConversation(self, one) for one in ended]

    def emit(self, done: Sequence[ScoredTurn]) -> None:
        """Send scored turns through every outlet, and remember their outcomes."""
        if not done:
            return
        self.outlets.emit(done)
        self.hints.look(done)
        for scored in done:
            if scored.of_turn_itself:
                self.outcomes.keep(scored.turn.turn_id, scored.scores)
                if not scored.conversation:
                    self.feedback.recent.keep(scored)
            elif scored.is_feedback:
                self.outcomes.add(scored.turn.turn_id, scored.scores)
            elif self.judging is not None:
                self.judging.sample.add(scored)
            if self.conversations is not None and not scored.conversation:
                self.conversations.note(conversation_of(scored.turn), scored.turn.turn_id, signals_in(scored.scores))
