"""Judged score on its way back to the worker."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from ..evaluation.scored_turn import ScoredTurn
from .queues import Job


@dataclass(frozen=True, slots=True)
class Verdict:
    """A judged score, and the next step of its job."""

    scored: ScoredTurn
    job: Job
    """The job of the score. The score can be emitted unless another process has claimed the job."""
    finish: Callable[[], None]
    keep: Callable[[], None]
    """Called if the score can't be emitted, to keep the paid replies."""
    composites: Sequence[ScoredTurn] = ()

    def turns(self) -> Sequence[ScoredTurn]:
        """Return the judged turn and composites. Their receipt acknowledges the job."""
        return [replace(scored, receipt=self) for scored in (self.scored, *self.composites)]

    def acknowledge(self) -> None:
        self.finish()
