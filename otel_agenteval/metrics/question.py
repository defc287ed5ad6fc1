"""Judge calls, and the state that a judged metric and its judge share during one evaluation.

The state is in a context variable, so that wrappers around a judge, such as a budget or panel, don't have to pass the state on.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any

from ..core.contexts import setting


@dataclass(frozen=True, slots=True)
class Question:
    """One judge call. Its fields are the arguments of :meth:`Answers.ask`."""

    stage: str
    task: str
    data: Mapping[str, Any]
    reply: str
    criteria: Mapping[str, str | Sequence[str]] | None = None
    media: Sequence[str] = ()
    schema: Mapping[str, Any] | None = None


class Answers(ABC):
    """Base class of judges. Metrics call :meth:`ask`, and subclasses implement :meth:`answer`."""

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

        If the reply is unreadable, the model is called a second time.

        Args:
            stage: Name of the call in errors and statistics, such as ``score``.
            task: Trusted instructions: what to judge, how, and the meaning of each level. Must not contain content from the turn.
            data: Untrusted material by name: texts, or values that are sent as JSON.
            reply: Requested JSON object, with a hint for each value. Put the reason before the verdict.
            criteria: The user's criteria by name, such as a rubric, policy, role, labels, or steps. Trusted and never truncated.
            media: URIs of images and other media, for models that accept them.
            schema: JSON Schema of the reply, for servers that enforce schemas. The default is derived from ``reply``.

        Raises:
            JudgeError: For example, if the model can't be called, declines, or returns two unreadable replies.
        """
        evaluation = _CURRENT.get()
        if evaluation is not None and media:
            evaluation.media_not_shown = ""
        if evaluation is not None and evaluation.media_not_shown:
            data = {**data, "attachments": f"{evaluation.media_not_shown} (not shown to you)"}
        return self.answer(Question(stage, task, data, reply, criteria, media, schema))

    @abstractmethod
    def answer(self, question: Question) -> dict[str, Any]:
        """Make one judge call and return the reply, as described in :meth:`ask`."""


@dataclass(slots=True)
class EvaluationState:
    """State that a judged metric and its judge share during one evaluation."""

    metric: str = ""
    identity: str = ""
    """The metric's version and the hash of its parameters."""
    reads_all: bool = False
    """True if the judge must read all of its input. If the input is too long for one judge call, it is judged in pieces."""
    model: str | None = None
    """Model that the metric requests from the judge's server."""
    piece: int = 0
    """Index, from 0, of the input piece that the next judge call reads."""
    pieces: int = 1
    """Number of input pieces known so far."""
    truncated: bool = False
    """True if a judge read only part of its input."""
    media_not_shown: str = ""
    """The turn's media, such as ``image × 1``, if the metric doesn't send them to the judge."""
    _when_accepted: list[Callable[[], None]] = field(default_factory=list)

    def learn(self, pieces: int, truncated: bool) -> None:
        self.pieces = max(self.pieces, pieces)
        self.truncated = self.truncated or truncated

    def next_piece(self) -> bool:
        """Advance to the next piece of an input that is too long for one judge call. Return False if there are no more pieces."""
        self.piece += 1
        return self.piece < self.pieces

    def when_accepted(self, do: Callable[[], None]) -> None:
        """Register a callback that runs after the metric has computed its score from the judge's replies."""
        self._when_accepted.append(do)

    def accept(self) -> None:
        for do in self._when_accepted:
            do()


_CURRENT: ContextVar[EvaluationState | None] = ContextVar("otel_agenteval_evaluation", default=None)


def current_evaluation() -> EvaluationState | None:
    return _CURRENT.get()


@contextmanager
def evaluating(metric: str, identity: str, reads_all: bool, model: str | None = None) -> Iterator[EvaluationState]:
    """Set the current evaluation of this thread or task during the ``with`` block."""
    evaluation = EvaluationState(metric, identity, reads_all, model)
    with setting(_CURRENT, evaluation):
        yield evaluation
