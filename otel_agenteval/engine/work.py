"""Items in the worker's queue, which are scored, or dropped for a reason.

    ClosedSpans          closed spans that aren't composed yet
    GroupedSpans         spans of one turn that isn't evaluated yet
    EvaluatedTurn        a turn evaluated where it closed, with metrics that exceeded the time budget left
    SeenTurn             a turn whose media another thread opened
    EndedConversation    a whole conversation

Two more kinds are defined elsewhere: turns whose scores were promised to an ending root (:mod:`.ending_root`), and judged scores
(:mod:`otel_agenteval.judging.verdict`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ..evaluation.scored_turn import ScoredTurn
from ..turns.composer import count_group
from ..turns.conversations import Ended
from ..turns.roots import Group
from ..turns.state import Closed

if TYPE_CHECKING:
    from .pipeline import Pipeline


class WorkItem(Protocol):
    """Item in the worker's queue."""

    @property
    def size(self) -> int:
        """Estimated bytes in memory."""

    @property
    def trace_key(self) -> int:
        """Key of its trace, see :mod:`otel_agenteval.core.tenancy`."""

    def split(self) -> Sequence[WorkItem]:
        """Return the items to score or drop separately. Usually only this one."""

    def score(self) -> Sequence[ScoredTurn]:
        """Return the scored turns. Called again if the thread was interrupted."""

    def drop(self, reason: str) -> None:
        """Count every metric of its turns as dropped. Never raises."""

    def hand_over(self, reason: str) -> set[int]:
        """Count its spans, but not its metrics, because another process will score it.

        Returns its trace keys.
        """

    def is_of(self, trace_ids: set[int]) -> bool:
        """Return True if it contains nothing but one of these traces."""


class Work:
    """Base class with defaults for items."""

    __slots__ = ()
    size: int = 0

    def split(self: WorkItem) -> Sequence[WorkItem]:
        """See :class:`WorkItem`."""
        return (self,)

    def hand_over(self, reason: str) -> set[int]:
        """See :class:`WorkItem`."""
        return set()

    def is_of(self, trace_ids: set[int]) -> bool:
        """See :class:`WorkItem`."""
        return False


class ClosedSpans(Work):
    """Closed spans, from which the worker composes turns."""

    __slots__ = ("_chain", "_closed", "size")

    def __init__(self, chain: Pipeline, closed: Closed) -> None:
        self._chain = chain
        self._closed = closed
        self.size = closed.size

    @property
    def trace_key(self) -> int:
        """See :class:`WorkItem`."""
        return self._closed.trace_id

    def split(self) -> Sequence[WorkItem]:
        """Return one item per turn."""
        chain = self._chain
        return [GroupedSpans(chain, group) for group in chain.composer.compose(self._closed)]

    def score(self) -> Sequence[ScoredTurn]:
        """Return nothing, because :meth:`split` returns the turns."""
        return ()

    def drop(self, reason: str) -> None:
        """See :class:`WorkItem`."""
        self._chain.outcomes.lose_closed(self._closed, reason)

    def hand_over(self, reason: str) -> set[int]:
        """See :class:`WorkItem`."""
        self._chain.composer.count_closed(self._closed, reason)
        return {self._closed.trace_id}

    def is_of(self, trace_ids: set[int]) -> bool:
        """See :class:`WorkItem`."""
        return self._closed.trace_id in trace_ids


class GroupedSpans(Work):
    """Spans of one turn whose root ended earlier, so that span events can't be written."""

    __slots__ = ("_chain", "_group", "size")

    def __init__(self, chain: Pipeline, group: Group) -> None:
        self._chain = chain
        self._group = group
        self.size = group.size

    @property
    def trace_key(self) -> int:
        """See :class:`WorkItem`."""
        return self._group.root.trace_id

    def score(self) -> Sequence[ScoredTurn]:
        """See :class:`WorkItem`."""
        scored = self._chain.evaluate(self._group)
        self._chain.span_events.root_already_ended(scored)
        return self._chain.finish(scored)

    def drop(self, reason: str) -> None:
        """See :class:`WorkItem`."""
        self._chain.outcomes.lose_group(self._group, reason)

    def hand_over(self, reason: str) -> set[int]:
        """See :class:`WorkItem`."""
        count_group(self._group, reason)
        return {record.trace_id for record in self._group.members}

    def is_of(self, trace_ids: set[int]) -> bool:
        """See :class:`WorkItem`."""
        return self._group.root.trace_id in trace_ids


class EvaluatedTurn(Work):
    """Turn that was evaluated on the agent's thread within the time budget."""

    __slots__ = ("_chain", "_scored", "size")

    def __init__(self, chain: Pipeline, scored: ScoredTurn) -> None:
        self._chain = chain
        self._scored = scored
        self.size = scored.size

    @property
    def trace_key(self) -> int:
        """See :class:`WorkItem`."""
        return self._scored.root.trace_key

    def score(self) -> Sequence[ScoredTurn]:
        """See :class:`WorkItem`."""
        return self._chain.finish(self._scored)

    def drop(self, reason: str) -> None:
        """See :class:`WorkItem`."""
        self._chain.outcomes.lose(self._scored.turn, reason, new=self._scored.new)

    def hand_over(self, reason: str) -> set[int]:
        """See :class:`WorkItem`."""
        return {self._scored.root.trace_key}


class SeenTurn(EvaluatedTurn):
    """Turn whose media another thread opened. If that failed, they are opened here."""

    __slots__ = ()

    def score(self) -> Sequence[ScoredTurn]:
        """See :class:`WorkItem`."""
        self._chain.evaluator.finish(self._scored)
        return (self._scored,)

    def without_media(self) -> SeenTurn:
        """Return a copy whose media weren't opened in time. The other thread keeps the original."""
        scored = replace(self._scored)
        self._chain.evaluator.fail_media(scored)
        return SeenTurn(self._chain, scored)


class EndedConversation(Work):
    """Conversation that has ended."""

    __slots__ = ("_chain", "_ended")

    def __init__(self, chain: Pipeline, ended: Ended) -> None:
        self._chain = chain
        self._ended = ended

    @property
    def trace_key(self) -> int:
        """See :class:`WorkItem`."""
        return int(self._ended.last.trace_key)

    def score(self) -> Sequence[ScoredTurn]:
        """See :class:`WorkItem`."""
        ended = self._ended
        if not self._chain.evaluates_conversations:
            return ()
        late = ended.reason == "signals"  # no new turns, so only metrics of signals can change
        scored = ScoredTurn(
            ended.turn, ended.last, (), ended.supersedes, ended.supersedes is None and not late, conversation=True, final=not late
        )
        self._chain.evaluator.evaluate_whole(scored, signals_only=late)
        return (scored,) if scored.scores or not late else ()

    def drop(self, reason: str) -> None:
        """See :class:`WorkItem`."""
        self._chain.outcomes.lose_conversation(self._ended.turn, reason, new=self._ended.supersedes is None)
