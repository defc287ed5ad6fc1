"""What a judge is asked about a stored turn: the question as it is written today, from the content that was kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..core.errors import AgentEvalError, JudgeError
from ..core.turn import Turn
from ..judging.models.base import JudgeModel
from ..judging.models.prompt import SYSTEM, question_of
from ..metrics.bound_metric import get_metric
from .parameters import Problem


class _Asked(JudgeModel):
    """A judge that notes its first question, and answers none."""

    model = "nobody"

    def __init__(self, most: int | None) -> None:
        self._most = most
        self.question: str | None = None
        self.stage: str | None = None

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
        if self.question is None:
            self.question, self.stage = question_of(task, data, reply, media, self._most, criteria).text, stage
        raise JudgeError("nobody is asked")


def question_about(
    content: Mapping[str, Any], metric: str, parameters: Mapping[str, Any], most_tokens: int | None = None
) -> dict[str, Any]:
    """The first question that a judged metric asks about a turn; later ones depend on the answers.

    Args:
        content: the turn, in form ``turn.v1``.
        metric: its name.
        parameters: of the metric, as the configuration has them.
        most_tokens: of a question.

    Raises:
        Problem: there is no such metric, the content is no turn, or nothing is asked about it.
    """
    try:
        bound = get_metric(metric, **parameters)
        turn = Turn.from_dict(dict(content))
    except AgentEvalError as error:
        raise Problem(404, str(error)) from None
    judge = _Asked(most_tokens)
    score = bound.evaluate(turn, judge=judge)
    if judge.question is None:
        raise Problem(
            404, f"{metric} asks nothing about this turn: {score.status} {score.detail.get('reason', score.error_type or '')}"
        )
    return {"metric": metric, "version": bound.metric.version, "stage": judge.stage, "system": SYSTEM, "question": judge.question}
