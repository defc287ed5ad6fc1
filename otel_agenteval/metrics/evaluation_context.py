"""State that a judged metric and its judge share during one evaluation.

It is a context variable instead of an argument, so that wrappers of a judge (a budget, a panel, an application's own judge)
don't have to pass it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(slots=True)
class EvaluationState:
    metric: str = ""
    """Name of the metric's scores."""
    identity: str = ""
    """The metric's version and the hash of its parameters."""
    reads_all: bool = False
    """True if the judge must read all of the material. Input that is too long is then judged in pieces."""
    model: str | None = None
    """Model that the metric chooses at the judge's server."""
    piece: int = 0
    """Index of the current piece of each input, from 0."""
    pieces: int = 1
    """Number of pieces, as far as known."""
    truncated: bool = False
    """True if a judge read only a part of the material."""
    media_not_shown: str = ""
    """The turn's media, such as ``image × 1``, if the metric doesn't send them."""
    _when_accepted: list[Callable[[], None]] = field(default_factory=list)

    def learn(self, pieces: int, truncated: bool) -> None:
        self.pieces = max(self.pieces, pieces)
        self.truncated = self.truncated or truncated

    def next_piece(self) -> bool:
        """Advance to the next piece, and return True if there is one."""
        self.piece += 1
        return self.piece < self.pieces

    def when_accepted(self, do: Callable[[], None]) -> None:
        """Register a callback for the time at which the metric has accepted its replies."""
        self._when_accepted.append(do)

    def accept(self) -> None:
        for do in self._when_accepted:
            do()


_CURRENT: ContextVar[EvaluationState | None] = ContextVar("otel_agenteval_evaluation", default=None)


def current_evaluation() -> EvaluationState | None:
    return _CURRENT.get()


@contextmanager
def evaluating(metric: str, identity: str, reads_all: bool, model: str | None = None) -> Iterator[EvaluationState]:
    """Make an evaluation current in this thread or task for the duration of the block."""
    evaluation = EvaluationState(metric, identity, reads_all, model)
    token = _CURRENT.set(evaluation)
    try:
        yield evaluation
    finally:
        _CURRENT.reset(token)
