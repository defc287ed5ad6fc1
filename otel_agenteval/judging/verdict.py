"""A judged score on its way back to the worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from ..evaluation.scored_turn import ScoredTurn
from .queues import Job


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judged score. The worker's queue takes it as one of its items (see ``engine/work.py``)."""

    scored: ScoredTurn
    job: Job
    """The job that made it. It may be emitted as long as no other process has claimed that."""
    finish: Callable[[], None]
    """Called once it was emitted."""
    keep: Callable[[], None]
    """Called when it may not be emitted: what was paid for is remembered."""
    composites: Sequence[ScoredTurn] = ()
    """What was made of the score, and is emitted with it."""
    size: int = 0

    @property
    def trace_key(self) -> int:
        """The key of the turn's trace."""
        return self.scored.root.trace_key

    def split(self) -> Sequence[Verdict]:
        """It is one item."""
        return (self,)

    def score(self) -> Sequence[ScoredTurn]:
        """The turn with its judged score, which is acknowledged through its receipt; composites too."""
        found = (self.scored, *self.composites)
        for scored in found:
            scored.receipt = self
        return found

    def acknowledge(self) -> None:
        """The score was emitted: the job is done."""
        self.finish()

    def lose(self, reason: str) -> None:
        """Nothing is lost: the job comes back from its queue, or was counted there."""

    def leave(self, reason: str) -> set[int]:
        """Nothing is left behind but the job, which is in its queue."""
        return set()

    def is_of(self, trace_ids: set[int]) -> bool:
        """A judged score is not what was closed of a trace."""
        return False
