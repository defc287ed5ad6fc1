"""Groups of judges. A group can have separate judges for metrics or agents, a second opinion, or a panel.

The group always returns one judge's score, with that judge's reasons. A panel returns the median of all scores. If ``combine`` is
``majority``, a panel returns the median of the majority's scores. After a second opinion or a successful panel, the
detail ``judges`` lists each judge's result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import astuple, dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from ...core.score import Score
from ...core.turn import Turn
from ...metrics.bound_metric import BoundMetric, ChoosesJudges
from ...metrics.question import Answers, Question, current_evaluation
from .base import Account, JudgeModel, Total
from .judge import Judge

Combine = Literal["median", "majority"]


@dataclass(frozen=True, slots=True)
class Choice:
    """Judge for metrics and agents whose names match patterns, which can contain ``*``. An empty list matches all names."""

    judge: Judge
    metrics: Sequence[str] = ()
    agents: Sequence[str] = ()

    def fits(self, metric: str, agent: str) -> bool:
        return all(
            not patterns or any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns)
            for name, patterns in ((metric, self.metrics), (agent, self.agents))
        )


@dataclass(frozen=True, slots=True)
class SecondOpinion:
    judge: Judge
    margin: float
    """A score needs a second opinion if its distance from the threshold is at most this share of the scale."""
    tolerance: float
    """Two scores agree if they differ by at most this share of the scale."""


@dataclass(eq=False, repr=False)
class JudgeGroup(JudgeModel, ChoosesJudges):
    """Group of judges. The first matching :class:`Choice` overrides ``main``. A ``panel`` overrides ``main`` and all choices."""

    main: Judge
    choices: Sequence[Choice] = ()
    second: SecondOpinion | None = None
    panel: Sequence[Judge] = ()
    combine: Combine = "median"

    def __post_init__(self) -> None:
        self.model = self.main.model

    def __repr__(self) -> str:
        return f"JudgeGroup({self.main!r})"

    def evaluated(self, metric: BoundMetric, turn: Turn, wrap: Callable[[JudgeModel], Answers] = lambda judge: judge) -> Score:
        """Return a metric's score for a turn. ``wrap`` wraps each judge, for example to enforce a budget."""
        first = self._first(metric.metric.name, turn.agent or "")
        if self.panel:
            return _of_panel([(judge, metric.evaluate(turn, judge=wrap(judge))) for judge in self.panel], self.combine)
        score = metric.evaluate(turn, judge=wrap(first))
        second = self.second
        if second is None or second.judge is first or score.status != "ok" or score.value is None or score.threshold is None:
            return score
        scale = 1.0 if score.unit == "1" else max(1.0, abs(score.threshold))
        is_in_doubt = abs(score.value - score.threshold) <= second.margin * scale
        if not is_in_doubt:
            return score
        other = metric.evaluate(turn, judge=wrap(second.judge))
        opinions = [(first, score), (second.judge, other)]
        is_near = other.value is not None and abs(score.value - other.value) <= second.tolerance * scale
        if other.status != "ok" or (score.passed == other.passed and is_near):
            return _with_opinions(score, opinions, decided="first")
        return _with_opinions(other, opinions, decided="second")

    def _first(self, metric: str, agent: str) -> Judge:
        return next((choice.judge for choice in self.choices if choice.fits(metric, agent)), self.main)

    def server_of(self, metric: str, agent: str) -> str:
        first = self.main if self.panel else self._first(metric, agent)
        return "" if first.server is self.main.server else first.server.base_url

    # --- as the main judge

    def answer(self, question: Question) -> dict[str, Any]:
        evaluation = current_evaluation()
        return (self.main if evaluation is None else self._first(evaluation.metric, "")).answer(question)

    @property
    def priced(self) -> bool:
        return self.main.priced

    def judges(self) -> list[Judge]:
        second = [] if self.second is None else [self.second.judge]
        found = [self.main, *(choice.judge for choice in self.choices), *second, *self.panel]
        return list({id(judge): judge for judge in found}.values())

    def accounts(self) -> list[Account]:
        return [account for judge in self._servers() for account in judge.accounts()]

    def total(self) -> Total:
        totals = [astuple(judge.total()) for judge in self._servers()]
        return Total(*map(sum, zip(*totals, strict=True)))

    def clear_cache(self) -> None:
        for judge in self._servers():
            judge.clear_cache()

    def close(self) -> None:
        for judge in self._servers():
            judge.close()

    def _servers(self) -> list[Judge]:
        """Return one judge per server, because judges on the same server share connections and usage records."""
        return list({id(judge.server): judge for judge in self.judges()}.values())


def _of_panel(opinions: Sequence[tuple[Judge, Score]], combine: Combine) -> Score:
    scores = [score for _, score in opinions if score.status == "ok"]
    if 2 * len(scores) <= len(opinions):
        return next(score for _, score in opinions if score.status != "ok")
    if combine == "majority":  # the largest group of agreeing scores or, in a tie, the one that doesn't pass
        groups: dict[tuple[bool | None, str | None], list[Score]] = {}
        for score in scores:
            groups.setdefault((score.passed, score.label), []).append(score)
        scores = max(groups.values(), key=lambda group: (len(group), not group[0].passed))
    valued = sorted((score for score in scores if score.value is not None), key=lambda score: score.value or 0.0)
    if not valued:
        return _with_opinions(scores[0], opinions, decided=combine)
    cautious = (len(valued) - (valued[0].direction != "down")) // 2  # with two in the middle, the worse one
    return _with_opinions(valued[cautious], opinions, decided=combine)


def _with_opinions(score: Score, opinions: Sequence[tuple[Judge, Score]], decided: str) -> Score:
    score.detail["judges"] = [
        {"model": judge.name, "value": one.value, "passed": one.passed, **({"error": one.error_type} if one.error_type else {})}
        for judge, one in opinions
    ]
    score.detail["judged_by"] = decided
    return score
