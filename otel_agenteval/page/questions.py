"""Current prompt of a judged metric for a stored turn, built from its content."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..core.errors import AgentEvalError, JudgeError
from ..core.turn import Turn
from ..judging.models.base import JudgeModel
from ..judging.models.prompt import SYSTEM, prompt_of
from ..metrics.bound_metric import get_metric
from ..metrics.question import Question
from .parameters import Problem


class _Asked(JudgeModel):
    """Judge that records its first prompt and never answers."""

    model = "nobody"

    def __init__(self) -> None:
        self.question: str | None = None
        self.stage: str | None = None

    def answer(self, question: Question) -> dict[str, Any]:
        if self.question is None:
            self.question, self.stage = prompt_of(question).text, question.stage
        raise JudgeError("nobody is asked")


def question_about(content: Mapping[str, Any], metric: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return the first prompt that a judged metric would send about a turn. Later prompts depend on the replies. ``content`` is
    the turn in the form ``turn.v1``. Raises Problem if the metric is unknown, the content is invalid, or the metric sends no
    prompt about this turn.
    """
    try:
        bound = get_metric(metric, **parameters)
        turn = Turn.from_dict(dict(content))
    except AgentEvalError as error:
        raise Problem(404, str(error)) from None
    judge = _Asked()
    score = bound.evaluate(turn, judge=judge)
    if judge.question is None:
        raise Problem(
            404,
            f"{metric}: makes no judge call for this turn: {score.status} {score.detail.get('reason', score.error_type or '')}",
        )
    return {"metric": metric, "version": bound.metric.version, "stage": judge.stage, "system": SYSTEM, "question": judge.question}
