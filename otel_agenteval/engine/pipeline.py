"""The one chain: closed spans → turn → scores → outlets.

    group  = composer.compose(closed)     # turns/composer.py: which spans are one turn, and what it says
    scored = evaluator.evaluate(turn)     # evaluation/evaluator.py: what it is worth
    jobs   = judging.plan(scored)         # judging/planner.py: which judges are asked about it
    outlets.emit(scored)                  # outlets/fan_out.py: where it is said

All of it runs on the worker, with one exception: see :mod:`.ending_root` for threads that may have to wait for the scores of a root.
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
    """Composes, evaluates and judges what was closed, and emits the scores.

    Args:
        composer: makes turns of closed spans.
        evaluator: runs the metrics that are computed.
        outlets: emit the scores on the worker.
        span_events: writes on the ending root.
        outcomes: remembers the outcomes of recent turns.
        conversations: holds turns by conversation; None when nothing looks at more than one turn.
        judging: plans judges for turns whose scores are made; None when no metric asks a model.
        watchdog: limits the time that one item may take.
        fill: how full the worker's queue is, 0 to 1.
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
        """Adds what people say of turns."""
        self.fleet: Fleet
        """Knows what many turns say."""
        self.set_aside: Callable[[WorkItem, int, Callable[[], None], Callable[[], WorkItem]], None] | None = None
        """Has something done by another thread, then queues an item, see :meth:`.worker.Worker.set_aside`."""
        self.hints = Hints(())
        """What is logged once, for somebody who wonders."""
        self.ending = False
        """Whether no further turn is evaluated: the time is up."""

    @property
    def evaluates_conversations(self) -> bool:
        """Whether anything is evaluated when a conversation ends; some are held only for what was said before a turn."""
        return bool(self.evaluator.whole or (self.judging is not None and self.judging.metrics.names(conversation=True)))

    @property
    def wants_content(self) -> bool:
        """Whether anything asks for what was said in a turn, once its inline metrics are evaluated."""
        return bool(self.outlets.keeps_content or self.conversations is not None or self.judging is not None)

    def evaluate(self, group: Group, *, waited_for: bool = False) -> ScoredTurn:
        """Read the turn of a group and give it its scores, redacted."""
        scored = self.composer.read(group)
        if self.outlets.keeps_spans:
            scored.spans = tuple(group.members)
        self.evaluator.evaluate(scored, group.root.attributes, waited_for=waited_for)
        try:
            self.feedback.add_to(scored, group)
        except Exception as error:  # what was said is lost, the turn is not
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
        """Evaluate what was left over; nothing comes of it now where media are opened: that takes seconds, and is another thread's."""
        if self.set_aside is not None and not self.ending and self.evaluator.opens_media(scored):
            seen = SeenTurn(self, scored)
            self.set_aside(seen, scored.size, lambda: self.evaluator.finish_media(scored), seen.without_media)
            return ()
        self.evaluator.finish(scored)
        return (scored,)

    def run(self, batch: list[WorkItem]) -> Sequence[WorkItem]:
        """Score and emit a batch. Takes out of it what was begun; returns what was not begun because the end came."""
        self.watchdog.begin_batch()
        try:
            return self._run(batch)
        finally:
            self.watchdog.end_batch()

    def _run(self, batch: list[WorkItem]) -> Sequence[WorkItem]:
        done: list[ScoredTurn] = []
        not_begun: list[WorkItem] = []
        interrupt: BaseException | None = None
        self.evaluator.shedding.look(self._fill())
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
                if not self.ending:  # else it was counted as left behind
                    self._set_aside(item)
            except BaseException as error:  # one turn is lost, the others are not
                self.watchdog.end()
                if is_meant_for_host(error):  # it is the host's thread: what is done leaves, the others wait for the next thread
                    batch.insert(0, item)
                    interrupt = error
                else:
                    self.outlets.count_error("pipeline", type(error).__name__)
                    item.lose("fault")
        ended = self._add_to_conversations(done)
        self._deliver(done)
        if ended:
            not_begun += self._run(ended)
        if interrupt is not None:
            raise interrupt
        return not_begun

    def _set_aside(self, item: WorkItem) -> None:
        """Count an item that took too long, and log which one."""
        name = trace_name(item.trace_key)
        _log.warning("trace %s: dropped a turn that took more CPU time than turn.max_work (10 s by default)", name)
        self.watchdog.set_aside(item.trace_key)
        item.lose("too_long")

    def _deliver(self, done: Sequence[ScoredTurn]) -> None:
        """Plan judges for turns that are scored, emit them, and acknowledge the jobs of judged ones."""
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
        """Plan judges for turns. Returns the scores that could be made without asking a model."""
        assert self.judging is not None
        with self.judging.at_once():
            found = [made for scored in done if scored.final and scored.of_turn_itself for made in self.judging.plan(scored)]
            if self.judging.metrics.wants_feedback:
                again = [scored for one in done if one.said_later and (scored := self._read_again(one)) is not None]
                found += [made for scored in again for made in self.judging.plan_again(scored)]
            return found

    def _read_again(self, later: ScoredTurn) -> ScoredTurn | None:
        """A turn of which something was said later, with its inline scores and that one, as long as its spans are remembered."""
        found = self.composer.read_again(later.root.trace_key, later.root.span_id)
        if found is None:
            return None
        group, scored = found
        self.evaluator.evaluate(scored, group.root.attributes)
        scored.scores = [*scored.scores, *later.scores]
        scored.events = {EVENT_NAME, *(event.name for member in group.members for event in member.events)}
        self.outlets.redact(scored)
        return scored

    def _add_to_conversations(self, done: Sequence[ScoredTurn]) -> list[WorkItem]:
        """Put turns into their conversations, all of them before any is judged: what each looks back on follows from their times alone.

        Returns the conversations that had to make room.
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
            elif scored.said_later:
                self.outcomes.add(scored.turn.turn_id, scored.scores)
            elif self.judging is not None:
                self.judging.note(scored)
            if self.conversations is not None and not scored.conversation:
                self.conversations.note(conversation_of(scored.turn), scored.turn.turn_id, signals_in(scored.scores))

    def after_fork_in_child(self) -> None:
        """The parent owns what waits; the child gets locks of its own."""
        self.composer.after_fork_in_child()
        self.outcomes.reset()
        self.feedback.reset()
        self.fleet.after_fork_in_child()
        if self.judging is not None:
            self.judging.after_fork_in_child()
        if self.conversations is not None:
            self.conversations.forget()
