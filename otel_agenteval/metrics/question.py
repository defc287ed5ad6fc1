"""Judge calls as values, for judges that pass them on, cache them or count them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .evaluation_context import current_evaluation


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
        evaluation = current_evaluation()
        if evaluation is not None and media:
            evaluation.media_not_shown = ""
        if evaluation is not None and evaluation.media_not_shown:
            data = {**data, "attachments": f"{evaluation.media_not_shown} (not shown to you)"}
        return self.answer(Question(stage, task, data, reply, criteria, media, schema))

    @abstractmethod
    def answer(self, question: Question) -> dict[str, Any]:
        """Answer one question, see :meth:`ask`."""
