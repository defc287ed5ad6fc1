"""Reading and evaluation of one turn, on the thread that first needs its scores."""

from __future__ import annotations

from collections.abc import Callable

from ..core.feedback import EVENT_NAME
from ..core.feedback import METRIC as FEEDBACK
from ..core.threads import own_work
from ..evaluation.evaluator import Evaluator
from ..evaluation.scored_turn import ScoredTurn
from ..outlets.fan_out import FanOut
from ..turns.composer import Composer
from ..turns.roots import SpanGroup
from .feedback import FeedbackJoiner
from .hints import Hints


class TurnScorer:
    """Evaluator of composed turns. ``wants_events`` returns True if a sampling condition reads the names of span events."""

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
        """Read the turn of a group and add its redacted scores."""
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
        """Return a turn with later feedback and its inline scores. None if its spans aren't remembered anymore."""
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
