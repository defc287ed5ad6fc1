"""Conversations of recorded turns: the same wholes, histories and signals that the live store gives, whatever lies in which file.

Turns come by their start time (:func:`~.recordings.load_turns` sorts those of all files), so what was said before a turn is known when
it is looked at. A conversation is whole once all turns were taken: there are no pauses in a recording.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable

from ..config.conversation import ConversationOptions
from ..core.score import Score
from ..core.turn import Turn
from ..metrics.bound_metric import BoundMetric, asked_in
from .conversations import Conversations, Ended, conversation_of, signals_in


def looks_back(metrics: Iterable[BoundMetric]) -> bool:
    """Whether one of some metrics of turns is asked about what was said before them. It is what judges look at: others see a turn alone."""
    return any("history" in metric.metric.reads for metric in asked_in(list(metrics)))


class RecordedConversations:
    """Takes recorded turns, in the order of their start.

    Args:
        options: as configured; pauses and bounds of memory are those of a process that runs, and do not count here.
        history: whether turns get what was said before them (see :func:`looks_back`).
        whole: whether conversations are wanted as wholes.
    """

    def __init__(self, options: ConversationOptions, *, history: bool, whole: bool) -> None:
        self.wanted = whole or history
        """Whether anything looks at more than one turn."""
        self._ends = whole
        self._store = Conversations(float("inf"), sys.maxsize, options.max_turns, sys.maxsize, lambda: 0.0, gives_history=history)

    def take(self, turn: Turn) -> None:
        """Put a turn, whose references are attached, into its conversation, and give it what was said before."""
        if not self.wanted or not turn.conversation_id:
            return
        self._store.add(turn, 0, (turn.turn_id or "").rpartition("-")[2])
        if self._store.gives_history and not turn.history:
            turn.history = self._store.before(turn)

    def note(self, turn: Turn, scores: Iterable[Score]) -> None:
        """Scores of a turn, of which some may be signals of its conversation."""
        if self._ends:
            self._store.note(conversation_of(turn), turn.turn_id or "", signals_in(scores))

    def ended(self) -> list[Ended]:
        """All conversations, by their start; ``last`` is the id of the last turn's root."""
        return sorted(self._store.end_all(), key=lambda one: (str(one.turn.start), one.turn.turn_id)) if self._ends else []
