"""Pipeline from closed spans to turns, scores, and outlets.

    group  = composer.compose(closed)     # turns/composer.py: splits spans into turns
    scored = scorer.evaluate(group)       # ending_root.py: reads the turn and computes scores
    jobs   = judging.plan(scored)         # judging/plan.py: chooses judged metrics
    outlets.emit(scored)                  # outlets/fan_out.py: emits the scores

The worker runs all steps, unless another thread needs a root's events earlier (see :mod:`.ending_root`).
"""

from __future__ import annotations

import functools
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from ..core.lineage import has_other_workers
from ..core.tenancy import trace_name
from ..core.threads import OutOfTime, is_meant_for_host, own_work
from ..evaluation.evaluator import Evaluator
from ..evaluation.scored_turn import ScoredTurn
from ..metrics.bound_metric import log_exceptions
from ..outlets.fan_out import FanOut
from ..outlets.span_events import SpanEventOutlet
from ..turns.composer import Composer
from ..turns.conversations import Conversations, Ended, conversation_of, signals_in
from .ending_root import DeferredTurns, TurnScorer
from .feedback import FeedbackJoiner
from .hints import Hints
from .outcomes import TurnOutcomes
from .score_statistics import ScoreStatistics
from .watchdog import Watchdog
from .work import (
    ClosedSpans,
    DetectedChange,
    EndedConversation,
    EvaluatedTurn,
    GivenFeedback,
    GroupedSpans,
    JudgedTurns,
    TurnWithMedia,
    WorkItem,
)

if TYPE_CHECKING:
    from ..judging.dispatcher import Dispatcher
    from ..statistics.changes import Change

_log = logging.getLogger("otel_agenteval")

SetAside = Callable[[WorkItem, Callable[[], None], Callable[[], WorkItem]], None]
"""Function that runs work on another thread, and then queues an item (see :meth:`.worker.Worker.set_aside`)."""


@functools.cache
def warn_of_workers() -> None:
    """Warn if a conversation's turns might be spread over several processes. Called when the first conversation ends."""
    if has_other_workers():
        _log.warning(
            "conversation.metrics: this program has several worker processes, and each one scores only those turns of a "
            "conversation that it received; see docs/operate/scale.md#conversations"
        )


class Pipeline:
    """Pipeline from closed spans to emitted scores.

    A component is None if the configuration doesn't need it. ``fill`` returns the fill level of the worker's queue, from 0 to 1.
    ``explained`` adds details to a detected score change for the worse.
    """

    def __init__(
        self,
        composer: Composer,
        scorer: TurnScorer,
        evaluator: Evaluator,
        outlets: FanOut,
        span_events: SpanEventOutlet,
        outcomes: TurnOutcomes,
        feedback: FeedbackJoiner,
        statistics: ScoreStatistics,
        hints: Hints,
        conversations: Conversations | None,
        judging: Dispatcher | None,
        watchdog: Watchdog,
        set_aside: SetAside,
        fill: Callable[[], float],
        explained: Callable[[Change], Change] | None,
    ) -> None:
        self.composer = composer
        self.evaluator = evaluator
        self.span_events = span_events
        self.outcomes = outcomes
        self.feedback = feedback
        self.statistics = statistics
        self.conversations = conversations
        self.judging = judging
        self._scorer = scorer
        self._outlets = outlets
        self._hints = hints
        self._watchdog = watchdog
        self._set_aside = set_aside
        self._fill = fill
        self._explained = explained
        self._is_ending = False

    def end(self) -> None:
        self._is_ending = True

    def run(self, batch: list[WorkItem]) -> Sequence[WorkItem]:
        """Score and emit a batch. Remove each item from ``batch`` when its work starts. At shutdown, return unstarted items."""
        not_begun: list[WorkItem] = []
        self.evaluator.shedding.update(self._fill())
        with self._watchdog.batch(), own_work():
            while batch:
                done: list[ScoredTurn] = []
                try:
                    while batch:
                        item = batch.pop(0)
                        if self._is_ending:
                            not_begun.append(item)
                            continue
                        try:
                            self._watchdog.begin(item.trace_key)
                            if isinstance(item, ClosedSpans):
                                groups = self.composer.compose(item.closed)
                                self._watchdog.end()  # first, so that an interruption doesn't drop the turns queued next
                                batch[:0] = map(GroupedSpans, groups)
                            else:
                                found = self._score(item)
                                self._watchdog.end()
                                done += found
                        except OutOfTime:
                            if not self._is_ending:  # otherwise, the item is left behind
                                self._drop_overdue(item)
                        except BaseException as error:  # drop only this turn
                            self._watchdog.end()
                            if is_meant_for_host(error):  # on the application's thread. The next thread continues
                                batch.insert(0, item)
                                raise
                            self._outlets.count_error("pipeline", type(error).__name__)
                            self.outcomes.drop(item, "fault")
                finally:
                    batch += self._add_to_conversations(done)
                    self._deliver(done)
        return not_begun

    def _score(self, item: WorkItem) -> Sequence[ScoredTurn]:
        """Return an item's scored turns. After a KeyboardInterrupt, the worker calls this method again with this item."""
        match item:
            case DeferredTurns():
                item.evaluate()
                return item.release(self._finish)
            case GroupedSpans(group):
                scored = self._scorer.evaluate(group)
                self.span_events.root_already_ended(scored)
                return self._finish(scored)
            case TurnWithMedia(scored):
                self.evaluator.finish(scored)
                return (scored,)
            case EvaluatedTurn(scored):
                return self._finish(scored)
            case JudgedTurns(turns):
                return turns
            case EndedConversation(ended):
                return self._score_conversation(ended)
            case GivenFeedback(given, last):
                return self.feedback.take(given, last=last)
            case DetectedChange(change, root):
                self._outlets.announce(change, root)
                return ()
        raise TypeError(type(item).__name__)

    def _finish(self, scored: ScoredTurn) -> Sequence[ScoredTurn]:
        """Evaluate pending metrics, and return (turn,). If media must be opened, queue the turn for later, and return ()."""
        if self._is_ending or not self.evaluator.opens_media(scored):
            self.evaluator.finish(scored)
            return (scored,)
        item = TurnWithMedia(scored)

        def without_media() -> TurnWithMedia:
            copy = item.copy()
            self.evaluator.fail_media(copy.scored)
            return copy

        self._set_aside(item, partial(self.evaluator.finish_media, scored), without_media)
        return ()

    def _score_conversation(self, ended: Ended) -> Sequence[ScoredTurn]:
        judging = self.judging
        if not (self.evaluator.whole or (judging is not None and judging.metrics.names(conversation=True))):
            return ()  # it was only kept for its history
        warn_of_workers()
        late = ended.reason == "signals"  # no new turns, so only metrics of signals can change
        scored = ScoredTurn(
            ended.turn, ended.last, (), ended.supersedes, ended.supersedes is None and not late, conversation=True, final=not late
        )
        self.evaluator.evaluate_whole(scored, signals_only=late)
        is_scored = any(score.status != "skipped" for score in scored.scores)
        if late or is_scored or ended.supersedes is None or (judging is not None and judging.planner.may_score(ended.turn)):
            return (scored,) if scored.scores or not late else ()
        return ()  # it would replace scores of the earlier revision with none

    def _drop_overdue(self, item: WorkItem) -> None:
        name = trace_name(item.trace_key)
        _log.warning("trace %s: dropped a turn that took more CPU time than turn.max_work allows. Raise this limit", name)
        self._watchdog.set_aside(item.trace_key)
        self.outcomes.drop(item, "too_long")

    def _deliver(self, done: Sequence[ScoredTurn]) -> None:
        """Plan judge calls, emit scores, and acknowledge finished judge jobs."""
        for scored in done:
            self._outlets.name(scored)
        judging = self.judging
        if judging is None:
            self._emit(done)
            return
        done = judging.confirm(done)
        self._emit([*done, *self._plan(judging, done)])
        receipts = list({id(scored.receipt): scored.receipt for scored in done if scored.receipt is not None}.values())
        if receipts:
            if judging.lasting:
                self._outlets.catch_up()
            with judging.at_once():
                for receipt in receipts:
                    receipt.acknowledge()

    def _plan(self, judging: Dispatcher, done: Sequence[ScoredTurn]) -> list[ScoredTurn]:
        """Queue judge calls. Return turns with judged scores that don't need a call."""
        with judging.at_once():
            found = [made for scored in done if scored.final and scored.of_turn_itself for made in judging.plan(scored)]
            if judging.metrics.wants_feedback:
                later = [self._scorer.evaluate_again(scored) for scored in done if scored.is_feedback]
                found += [made for scored in later if scored is not None for made in judging.plan(scored, again=True)]
            return found

    def _add_to_conversations(self, done: Sequence[ScoredTurn]) -> list[WorkItem]:
        """Add scored turns to their conversations. Return the conversations that ended as a result.

        Turns are added before judge calls are planned, so that a turn's history depends only on start times.
        """
        store = self.conversations
        if store is None:
            return []
        turns = [scored for scored in done if scored.of_turn_itself and not scored.conversation]
        ended: list[Ended] = []
        for scored in turns:
            ended += store.add(scored.turn, scored.size, scored.root, (scored.first_id, *scored.absorbs))
        for scored in turns if store.gives_history else ():
            if scored.turn.conversation_id and not scored.turn.history:
                scored.turn.history = store.before(scored.turn)
        return [EndedConversation(one) for one in ended]

    def _emit(self, done: Sequence[ScoredTurn]) -> None:
        if not done:
            return
        self._announce_changes(self._outlets.emit(done))
        self._hints.check_scores(done)
        log_exceptions()
        for scored in done:
            if scored.of_turn_itself:
                self.outcomes.keep(scored.turn.turn_id, scored.scores)
                if not scored.conversation:
                    self.feedback.recent.keep(scored)
            elif scored.is_feedback:
                self.outcomes.add(scored.turn.turn_id, scored.scores)
            elif self.judging is not None:
                self.judging.sample.record_scores(scored)
            if self.conversations is not None and not scored.conversation:
                self.conversations.note(conversation_of(scored.turn), scored.turn.turn_id, signals_in(scored.scores))

    def _announce_changes(self, emitted: Sequence[ScoredTurn]) -> None:
        try:
            changes = self.statistics.changes_in(emitted)
        except Exception as error:  # the scores are already emitted
            self._outlets.count_error("changes", type(error).__name__)
            return
        for change, root in changes:
            if self._explained is None or change.verdict != "worse" or self._is_ending:
                self._outlets.announce(change, root)
            else:
                item = DetectedChange(change, root)
                self._set_aside(item, partial(item.explain, self._explained), partial(DetectedChange, change, root))
