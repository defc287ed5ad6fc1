"""What waits for the worker: something that gives scored turns, or is lost for a reason.

    ClosedSpans      spans that were closed away from the agent's thread: not composed yet
    GroupedSpans     the spans of one turn: not evaluated yet
    EvaluatedTurn    a turn that was evaluated where it closed, with what the time budget left over
    SeenTurn         the same, once another thread opened its media
    EndedConversation    a whole conversation

Two more kinds are made elsewhere: turns whose scores an ending root was promised (:mod:`.ending_root`), and judged scores that come
back (:mod:`otel_agenteval.judging.verdict`).
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
    """One thing that waits for the worker."""

    @property
    def size(self) -> int:
        """Bytes that it is taken to hold."""

    @property
    def trace_key(self) -> int:
        """The key of its trace, see :mod:`otel_agenteval.core.tenancy`."""

    def split(self) -> Sequence[WorkItem]:
        """The items that it consists of, each of which is scored or lost by itself; mostly just this one."""

    def score(self) -> Sequence[ScoredTurn]:
        """The scored turns that come of it. Called once more when the thread was interrupted meanwhile."""

    def lose(self, reason: str) -> None:
        """It will not be scored: every metric of its turns is counted as dropped. Raises nothing."""

    def leave(self, reason: str) -> set[int]:
        """Another process will score it: its spans are counted, its metrics are not. Returns the keys of its traces."""

    def is_of(self, trace_ids: set[int]) -> bool:
        """Whether it is what was closed of one of these traces, and nothing else."""


class Work:
    """What most items have in common."""

    __slots__ = ()
    size: int = 0

    def split(self: WorkItem) -> Sequence[WorkItem]:
        """See :class:`WorkItem`."""
        return (self,)

    def leave(self, reason: str) -> set[int]:
        """See :class:`WorkItem`."""
        return set()

    def is_of(self, trace_ids: set[int]) -> bool:
        """See :class:`WorkItem`."""
        return False


class ClosedSpans(Work):
    """Spans that the assembler closed: the turns in them are composed on the worker."""

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
        """The turns in them."""
        chain = self._chain
        return [GroupedSpans(chain, group) for group in chain.composer.compose(self._closed)]

    def score(self) -> Sequence[ScoredTurn]:
        """Nothing by itself: see :meth:`split`."""
        return ()

    def lose(self, reason: str) -> None:
        """See :class:`WorkItem`."""
        self._chain.outcomes.lose_closed(self._closed, reason)

    def leave(self, reason: str) -> set[int]:
        """See :class:`WorkItem`."""
        self._chain.composer.count_closed(self._closed, reason)
        return {self._closed.trace_id}

    def is_of(self, trace_ids: set[int]) -> bool:
        """See :class:`WorkItem`."""
        return self._closed.trace_id in trace_ids


class GroupedSpans(Work):
    """The spans of one turn whose root has ended long ago: no span event can be written."""

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

    def lose(self, reason: str) -> None:
        """See :class:`WorkItem`."""
        self._chain.outcomes.lose_group(self._group, reason)

    def leave(self, reason: str) -> set[int]:
        """See :class:`WorkItem`."""
        count_group(self._group, reason)
        return {record.trace_id for record in self._group.members}

    def is_of(self, trace_ids: set[int]) -> bool:
        """See :class:`WorkItem`."""
        return self._group.root.trace_id in trace_ids


class EvaluatedTurn(Work):
    """A turn that was evaluated on the agent's thread, as far as the time budget went."""

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

    def lose(self, reason: str) -> None:
        """See :class:`WorkItem`."""
        self._chain.outcomes.lose(self._scored.turn, reason, new=self._scored.new)

    def leave(self, reason: str) -> set[int]:
        """See :class:`WorkItem`."""
        return {self._scored.root.trace_key}


class SeenTurn(EvaluatedTurn):
    """A turn whose media were opened by another thread; where that failed, they are opened here."""

    __slots__ = ()

    def score(self) -> Sequence[ScoredTurn]:
        """See :class:`WorkItem`."""
        self._chain.evaluator.finish(self._scored)
        return (self._scored,)

    def without_media(self) -> SeenTurn:
        """The same turn, whose media weren't opened in time. The thread that still tries has the other one."""
        scored = replace(self._scored)
        self._chain.evaluator.leave_out_media(scored)
        return SeenTurn(self._chain, scored)


class EndedConversation(Work):
    """A conversation that is over."""

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
        late = ended.reason == "signals"  # nothing else was said: only what looks at signals can change
        scored = ScoredTurn(
            ended.turn, ended.last, (), ended.supersedes, ended.supersedes is None and not late, conversation=True, final=not late
        )
        self._chain.evaluator.evaluate_whole(scored, signals_only=late)
        return (scored,) if scored.scores or not late else ()

    def lose(self, reason: str) -> None:
        """See :class:`WorkItem`."""
        self._chain.outcomes.lose_conversation(self._ended.turn, reason, new=self._ended.supersedes is None)
