"""One evaluation of a metric that asks: what its judge has to know of it, and what the metric has to know of what was asked.

It goes by the thread or task, and not by arguments: what stands between a metric and its judge (a budget, a panel, an application's
own judge) need not pass it on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field


@dataclass(slots=True)
class Evaluation:
    """What is known of it so far."""

    identity: str = ""
    """Version and hash of the parameters of the metric."""
    reads_all: bool = False
    """Whether its judge must have read all of the material: where a question is too long it is asked in pieces."""
    piece: int = 0
    """Which piece of each question is asked about, from 0 on."""
    pieces: int = 1
    """How many there are, as far as is known."""
    truncated: bool = False
    """Whether a judge did not see all of the material."""
    _when_accepted: list[Callable[[], None]] = field(default_factory=list)

    def learn(self, pieces: int, truncated: bool) -> None:
        """A question had so many pieces, or was cut."""
        self.pieces = max(self.pieces, pieces)
        self.truncated = self.truncated or truncated

    def next_piece(self) -> bool:
        """Go on to the next piece, if there is one."""
        self.piece += 1
        return self.piece < self.pieces

    def when_accepted(self, do: Callable[[], None]) -> None:
        """Do something once the metric took the replies it got."""
        self._when_accepted.append(do)

    def accept(self) -> None:
        """The metric took them."""
        for do in self._when_accepted:
            do()


_CURRENT: ContextVar[Evaluation | None] = ContextVar("otel_agenteval_evaluation", default=None)


def current_evaluation() -> Evaluation | None:
    """The one under way in this thread or task; None outside of one."""
    return _CURRENT.get()


@contextmanager
def evaluating(identity: str, reads_all: bool) -> Iterator[Evaluation]:
    """Inside, in this thread or task, a metric is evaluated."""
    evaluation = Evaluation(identity, reads_all)
    token = _CURRENT.set(evaluation)
    try:
        yield evaluation
    finally:
        _CURRENT.reset(token)
