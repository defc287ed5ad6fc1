"""Judge and embedder of a command, within ``judge.budget``.

The live pipeline lets jobs wait for the budget (:mod:`.session`). A command waits for a limit that ends within a minute, and
gives scores an error beyond any other limit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from ..config.root import Config
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import JudgeError
from ..core.score import Score
from ..core.telemetry import Telemetry
from ..core.turn import Turn
from ..metrics.bound_metric import BoundMetric, ChoosesJudges
from ..metrics.evaluation_context import current_evaluation
from ..metrics.question import Answers, Question
from .budget import JudgeBudget, bounds_of
from .models import Embedder, InProcessEmbedder, Judge, JudgeGroup
from .models.base import EmbedderModel, JudgeModel
from .queues import spend_book_from
from .session import Models, OverBudget, Session

T = TypeVar("T")
LONGEST_WAIT = 61.0
"""Seconds that a command waits for its budget."""


class CommandBudget:
    """Wraps the models of a command in the configured budget, whose spending is in the queue's file or server."""

    def __init__(self, config: Config, clock: Clock = SYSTEM_CLOCK, sleep: Callable[[float], None] = time.sleep) -> None:
        options = config.judge
        bounds = bounds_of(options.budget)
        self._budget = JudgeBudget(bounds, spend_book_from(options.queue), clock, options.budget.soft) if bounds else None
        self.lasts = options.queue.backend != "memory"
        """False if the next run starts with an unused budget."""
        self._telemetry = Telemetry()
        self._sleep = sleep

    @property
    def is_limited(self) -> bool:
        return self._budget is not None

    def judge(self, judge: Judge | JudgeGroup | None) -> Any:
        """Return the judge within the budget, or itself without one."""
        if judge is None or self._budget is None:
            return judge
        return _BudgetedGroup(self, judge) if isinstance(judge, JudgeGroup) else _BudgetedJudge(self, judge)

    def embedder(self, embedder: Embedder | InProcessEmbedder | None) -> Any:
        """Return the embedder within the budget, or itself without one. One in this process is free."""
        if self._budget is None or not isinstance(embedder, Embedder):
            return embedder
        return _BudgetedEmbedder(self, embedder)

    def close(self) -> None:
        if self._budget is not None:
            self._budget.close()

    def ask(self, models: Models, call: Callable[[Session], T]) -> T:
        """Call a model as soon as the budget has room. Raises a JudgeError, also for a limit longer than :data:`LONGEST_WAIT`."""
        assert self._budget is not None
        evaluation = current_evaluation()
        metric = evaluation.metric if evaluation is not None else ""
        while True:
            session = Session(models, self._budget, self._telemetry, metric, urgent=True)
            try:
                return call(session)
            except OverBudget:
                if session.broken is not None:
                    raise JudgeError(f"judge.budget: can't be read: {type(session.broken).__name__}", "over_budget") from None
                if session.wait > LONGEST_WAIT:
                    raise JudgeError(f"judge.budget: {metric} reached a limit", "over_budget") from None
                self._sleep(session.wait)


class _BudgetedJudge(Answers):
    def __init__(self, budget: CommandBudget, judge: JudgeModel) -> None:
        self._budget = budget
        self._judge = judge
        self.model = judge.model

    def answer(self, question: Question) -> dict[str, Any]:
        return self._budget.ask(Models(judge=self._judge), lambda session: session.answer(question))


class _BudgetedGroup(_BudgetedJudge, ChoosesJudges):
    _judge: JudgeGroup

    def evaluated(self, metric: BoundMetric, turn: Turn) -> Score:
        return self._judge.evaluated(metric, turn, lambda judge: _BudgetedJudge(self._budget, judge))


class _BudgetedEmbedder:
    def __init__(self, budget: CommandBudget, embedder: EmbedderModel) -> None:
        self._budget = budget
        self._embedder = embedder
        self.model = embedder.model

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return self._budget.ask(Models(embedder=self._embedder), lambda session: session.embed(texts))
