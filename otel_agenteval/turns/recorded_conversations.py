"""Build conversations from recorded turns, with the same content as live ones. Turns arrive by start time
(:func:`~.recordings.load_turns`), so the history of each is known. Conversations end after the last turn.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ..config.turn import ConversationOptions
from ..core.score import Score
from ..core.turn import Turn
from ..metrics.bound_metric import BoundMetric, asked_in
from .conversations import Conversations, Ended, conversation_of, signals_in


def looks_back(metrics: Iterable[BoundMetric]) -> bool:
    """Return True if a judged metric reads the earlier turns of a conversation. Other metrics receive each turn alone."""
    return any("history" in metric.metric.reads for metric in asked_in(list(metrics)))


def of_conversations(metric: BoundMetric) -> bool:
    """Return True if a built-in metric scores a whole conversation instead of an answer with its history."""
    return metric.metric.family == "conversation_session" and "output" not in metric.metric.needs


class RecordedConversations:
    """Conversations of recorded turns. ``history`` is True if turns receive the earlier turns (see :func:`looks_back`), ``whole``
    if whole conversations are evaluated. Timeout and memory limits don't apply.
    """

    def __init__(self, options: ConversationOptions, *, history: bool, whole: bool) -> None:
        self.wanted = whole or history
        """True if any metric reads more than one turn."""
        self._ends = whole
        self._store = Conversations(float("inf"), sys.maxsize, options.max_turns, sys.maxsize, lambda: 0.0, gives_history=history)

    def take(self, turn: Turn) -> None:
        """Add a turn with its references to its conversation, and set the turn's history."""
        if not self.wanted or not turn.conversation_id:
            return
        self._store.add(turn, 0, (turn.turn_id or "").rpartition("-")[2])
        if self._store.gives_history and not turn.history:
            turn.history = self._store.before(turn)

    def note(self, turn: Turn, scores: Iterable[Score]) -> None:
        """Keep those scores of a turn that are signals of its conversation."""
        if self._ends:
            self._store.note(conversation_of(turn), turn.turn_id or "", signals_in(scores))

    def ended(self) -> list[Ended]:
        """Return all conversations by start time, with the last turn's root span id as ``last``."""
        return sorted(self._store.end_all(), key=lambda one: (str(one.turn.start), one.turn.turn_id)) if self._ends else []
