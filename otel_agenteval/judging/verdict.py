"""Judged score on its way back to the worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..evaluation.scored_turn import ScoredTurn
from .queues import Job


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judged score, as an item of the worker's queue (see ``engine/work.py``)."""

    scored: ScoredTurn
    job: Job
    """The job of the score. The score can be emitted unless another process has claimed the job."""
    finish: Callable[[], None]
    keep: Callable[[], None]
    """Called if the score can't be emitted, to keep the paid replies."""
    composites: Sequence[ScoredTurn] = ()
    """Composites that were computed from the score and are emitted with it."""
    size: int = 0

    @property
    def trace_key(self) -> int:
        return self.scored.root.trace_key

    def split(self) -> Sequence[Verdict]:
        return (self,)

    def score(self) -> Sequence[ScoredTurn]:
        """Return the judged turn and composites. Their receipt acknowledges the job."""
        return [replace(scored, receipt=self) for scored in (self.scored, *self.composites)]

    def acknowledge(self) -> None:
        self.finish()

    def drop(self, reason: str) -> None:
        """Do nothing: the queue redelivers the job or has counted it."""

    def hand_over(self, reason: str) -> set[int]:
        return set()

    def is_of(self, trace_ids: set[int]) -> bool:
        return False
