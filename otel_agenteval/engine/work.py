"""Items of the worker's queue, run by :class:`~.pipeline.Pipeline`. One more kind is :class:`~.ending_root.DeferredTurns`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Protocol

from ..evaluation.scored_turn import Root, ScoredTurn
from ..turns.conversations import Ended
from ..turns.roots import SpanGroup
from ..turns.state import Closed
from .feedback import TurnFeedback

if TYPE_CHECKING:
    from ..statistics.changes import Change


class WorkItem(Protocol):
    """Item of the worker's queue."""

    @property
    def size(self) -> int:
        """Estimated bytes in memory."""

    @property
    def trace_key(self) -> int:
        """Key of its trace, see :mod:`otel_agenteval.core.tenancy`."""


@dataclass(slots=True)
class ClosedSpans:
    """Closed spans that aren't composed yet."""

    closed: Closed

    @property
    def size(self) -> int:
        return self.closed.size

    @property
    def trace_key(self) -> int:
        return self.closed.trace_id


@dataclass(slots=True)
class GroupedSpans:
    """Spans of one turn whose root ended earlier, so that span events can't be written."""

    group: SpanGroup

    @property
    def size(self) -> int:
        return self.group.size

    @property
    def trace_key(self) -> int:
        return self.group.root.trace_id


@dataclass(slots=True)
class EvaluatedTurn:
    """Turn that was evaluated on the thread that closed it. Metrics that exceeded the time budget are left."""

    scored: ScoredTurn

    @property
    def size(self) -> int:
        return self.scored.size

    @property
    def trace_key(self) -> int:
        return self.scored.root.trace_key


class TurnWithMedia(EvaluatedTurn):
    """Turn whose media another thread opened. If that failed, they are opened here."""

    __slots__ = ()

    def copy(self) -> TurnWithMedia:
        """Return a copy, while another thread may still change the original."""
        return TurnWithMedia(replace(self.scored))


@dataclass(slots=True)
class JudgedTurns:
    """Judged scores of one turn, and composites of them."""

    turns: Sequence[ScoredTurn]
    size: int

    @property
    def trace_key(self) -> int:
        return self.turns[0].root.trace_key


@dataclass(slots=True)
class DetectedChange:
    """Change for the worse that another thread explains from the score store."""

    change: Change
    root: Root
    size = 1024

    @property
    def trace_key(self) -> int:
        return self.root.trace_key

    def explain(self, explained: Callable[[Change], Change]) -> None:
        self.change = explained(self.change)


@dataclass(slots=True)
class EndedConversation:
    ended: Ended
    size = 0

    @property
    def trace_key(self) -> int:
        return int(self.ended.last.trace_key)


@dataclass(slots=True)
class GivenFeedback:
    given: TurnFeedback
    last: bool = False
    """True if the feedback has waited long enough for its turn."""
    size = 1024

    @property
    def trace_key(self) -> int:
        return self.given.trace_key
