"""What a metric that asks a model and its judge have to know of each other during one evaluation.

It is kept in a context variable and not passed as an argument, so that whatever wraps the judge (a budget, a panel, an application's
own judge) need not pass it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(slots=True)
class Evaluation:
    """What is known of one evaluation so far."""

    identity: str = ""
    """The metric's version and the hash of its parameters."""
    reads_all: bool = False
    """Whether the judge must read all of the material: a question that is too long is then asked in pieces."""
    piece: int = 0
    """The piece of each question that is asked about, counted from 0."""
    pieces: int = 1
    """The number of pieces, as far as it is known."""
    truncated: bool = False
    """Whether a judge saw only a part of the material."""
    _when_accepted: list[Callable[[], None]] = field(default_factory=list)

    def learn(self, pieces: int, truncated: bool) -> None:
        """Note how many pieces a question had, and whether it was cut."""
        self.pieces = max(self.pieces, pieces)
        self.truncated = self.truncated or truncated

    def next_piece(self) -> bool:
        """Go on to the next piece, if there is one."""
        self.piece += 1
        return self.piece < self.pieces

    def when_accepted(self, do: Callable[[], None]) -> None:
        """Register a callback for the moment at which the metric has accepted its replies."""
        self._when_accepted.append(do)

    def accept(self) -> None:
        """Call what :meth:`when_accepted` registered."""
        for do in self._when_accepted:
            do()


_CURRENT: ContextVar[Evaluation | None] = ContextVar("otel_agenteval_evaluation", default=None)


def current_evaluation() -> Evaluation | None:
    """The evaluation that this thread or task is in, or None."""
    return _CURRENT.get()


@contextmanager
def evaluating(identity: str, reads_all: bool) -> Iterator[Evaluation]:
    """While the block runs, this thread or task evaluates a metric."""
    evaluation = Evaluation(identity, reads_all)
    token = _CURRENT.set(evaluation)
    try:
        yield evaluation
    finally:
        _CURRENT.reset(token)
