"""Judge calls as values that judges can forward, cache or count, and the state of the evaluation that makes them.

The state is a context variable instead of an argument, so that wrappers of a judge (a budget, a panel, an application's own
judge) don't have to pass it on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Question:
    """Judge call of a metric. The arguments of :meth:`Answers.ask` describe the fields."""

    stage: str
    task: str
    data: Mapping[str, Any]
    reply: str
    criteria: Mapping[str, str | Sequence[str]] | None = None
    media: Sequence[str] = ()
    schema: Mapping[str, Any] | None = None


class Answers(ABC):
    """Base class of judges. A subclass answers questions, and metrics call :meth:`ask`."""

    def ask(
        self,
        stage: str,
        task: str,
        data: Mapping[str, Any],
        reply: str,
        *,
        criteria: Mapping[str, str | Sequence[str]] | None = None,
        media: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Make one judge call and return the model's JSON object.

        An unreadable reply is requested once more.

        Args:
            stage: a name for the call in errors and accounts.
            task: what to judge, how, and the meaning of each level. It is trusted, so it must not contain anything of a turn.
            data: the material by name: texts, or values to send as JSON. It isn't trusted.
            reply: the requested JSON object, with a hint for each value, and the reason before the verdict.
            criteria: the user's criteria by name: a rubric, a policy, a role, labels, steps. They are trusted and never
                truncated.
            media: URIs of images and other media, for models that accept them.
            schema: the reply's JSON schema, for servers that enforce one. The default is derived from ``reply``. Other
                servers are asked for JSON.

        Raises:
            JudgeError: the model couldn't be called or declined, or two replies were unreadable.
        """
        evaluation = _CURRENT.get()
        if evaluation is not None and media:
            evaluation.media_not_shown = ""
        if evaluation is not None and evaluation.media_not_shown:
            data = {**data, "attachments": f"{evaluation.media_not_shown} (not shown to you)"}
        return self.answer(Question(stage, task, data, reply, criteria, media, schema))

    @abstractmethod
    def answer(self, question: Question) -> dict[str, Any]:
        """Answer one question, see :meth:`ask`."""


@dataclass(slots=True)
class EvaluationState:
    """State that a judged metric and its judge share during one evaluation."""

    metric: str = ""
    identity: str = ""
    """The metric's version and the hash of its parameters."""
    reads_all: bool = False
    """True if the judge must read all of the material. Input that is too long is then judged in pieces."""
    model: str | None = None
    """Model that the metric chooses at the judge's server."""
    piece: int = 0
    """Index, from 0, of the piece of each input that the next judge call reads."""
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
        """Register a callback that runs as soon as the metric has accepted its replies."""
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
