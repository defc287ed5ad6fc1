"""Several judges: another model for some metrics or agents, a second opinion where the first is in doubt, or a panel.

Whichever judges are asked, a score is always one that a judge gave as a whole, with its reasons; nothing is mixed. Of a panel it is the median
judge's, or the median one's of the majority. What each of them said stands in the score's detail, as ``judges``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from ...core.score import Score
from ...core.turn import Turn
from ...metrics.bound_metric import BoundMetric, ChoosesJudges
from ...metrics.registry import Asks
from .accounts import Account, Total
from .base import JudgeModel
from .judge import Judge

Combine = Literal["median", "majority"]


@dataclass(frozen=True, slots=True)
class Choice:
    """The judge of some metrics, or of some agents' turns; patterns may hold ``*``."""

    judge: Judge
    metrics: Sequence[str] = ()
    agents: Sequence[str] = ()

    def fits(self, metric: str, agent: str) -> bool:
        """Whether it is for this metric on a turn of this agent."""
        return all(
            not patterns or any(fnmatchcase(name, pattern) for pattern in patterns)
            for name, patterns in ((metric, self.metrics), (agent, self.agents))
        )


@dataclass(frozen=True, slots=True)
class Second:
    """The judge that is asked too where a score is in doubt."""

    judge: Judge
    margin: float
    """How near to its threshold a score is in doubt, as a share of the threshold's scale."""
    tolerance: float
    """How far two scores may be apart and still agree, as a share of the scale."""


class Bench(JudgeModel, ChoosesJudges):
    """Decides which judges are asked, and makes one score of what they say. Takes the place of a judge anywhere.

    Args:
        main: judges where nothing else is said.
        choices: the first that fits wins.
        second: asked where the score is in doubt.
        panel: asked in place of the others where it is not empty.
        combine: how a panel finds its score.
    """

    def __init__(
        self,
        main: Judge,
        choices: Sequence[Choice] = (),
        second: Second | None = None,
        panel: Sequence[Judge] = (),
        combine: Combine = "median",
    ) -> None:
        self.main = main
        self.model = main.model
        self._choices = choices
        self._second = second
        self._panel = panel
        self._combine: Combine = combine

    def __repr__(self) -> str:
        return f"Bench({self.main!r})"

    def evaluated(self, metric: BoundMetric, turn: Turn, through: Callable[[JudgeModel], Asks] = lambda judge: judge) -> Score:
        """A metric's score on a turn.

        Args:
            metric: asks a judge.
            turn: what is judged.
            through: what stands before a judge, such as a budget.
        """
        first = self._first(metric.name, turn.agent or "")
        if self._panel:
            return _of_panel([(judge, metric.evaluate(turn, judge=through(judge))) for judge in self._panel], self._combine)
        score = metric.evaluate(turn, judge=through(first))
        if self._second is None or self._second.judge is first or not _in_doubt(score, self._second.margin):
            return score
        other = metric.evaluate(turn, judge=through(self._second.judge))
        said = [(first, score), (self._second.judge, other)]
        if other.status != "ok" or _agree(score, other, self._second.tolerance):
            return _with_opinions(score, said, decided="first")
        return _with_opinions(other, said, decided="second")

    def _first(self, metric: str, agent: str) -> Judge:
        return next((choice.judge for choice in self._choices if choice.fits(metric, agent)), self.main)

    def server_of(self, metric: str, agent: str) -> str:
        """Another server's address where another one than the main judge's is asked first; else nothing."""
        first = self.main if self._panel else self._first(metric, agent)
        return "" if first.server is self.main.server else first.server.transport.base_url

    # --- as the main judge

    def ask(self, stage: str, task: str, data: Mapping[str, Any], reply: str, **more: Any) -> dict[str, Any]:
        """One question, to the main judge."""
        return self.main.ask(stage, task, data, reply, **more)

    @property
    def priced(self) -> bool:
        """Whether what the main judge costs is known."""
        return self.main.priced

    def judges(self) -> list[Judge]:
        """All judges that may be asked, each once."""
        second = [] if self._second is None else [self._second.judge]
        found = [self.main, *(choice.judge for choice in self._choices), *second, *self._panel]
        return list({id(judge): judge for judge in found}.values())

    def accounts(self) -> list[Account]:
        """The last requests to all of them."""
        return [account for judge in self._servers() for account in judge.accounts()]

    def total(self) -> Total:
        """The sum over all requests to all of them."""
        totals = [judge.total() for judge in self._servers()]
        return Total(*(sum(values) for values in zip(*map(_fields, totals), strict=True)))

    def clear_cache(self) -> None:
        """Forget all replies."""
        for judge in self._servers():
            judge.clear_cache()

    def close(self) -> None:
        """Release connections."""
        for judge in self._servers():
            judge.close()

    def _servers(self) -> list[Judge]:
        """One judge of each server: models at the same one share connections and accounts."""
        return list({id(judge.server): judge for judge in self.judges()}.values())


def _fields(total: Total) -> tuple[Any, ...]:
    return (
        total.requests, total.failed, total.attempts, total.input_tokens, total.output_tokens, total.cost_usd, total.unpriced,
    )  # fmt: skip


def _scale(score: Score) -> float:
    return 1.0 if score.unit == "1" else max(1.0, abs(score.threshold or 1.0))


def _in_doubt(score: Score, margin: float) -> bool:
    if score.status != "ok" or score.value is None or score.threshold is None:
        return False
    return abs(score.value - score.threshold) <= margin * _scale(score)


def _agree(one: Score, other: Score, tolerance: float) -> bool:
    if one.passed != other.passed or one.value is None or other.value is None:
        return False
    return abs(one.value - other.value) <= tolerance * _scale(one)


def _of_panel(said: Sequence[tuple[Judge, Score]], combine: Combine) -> Score:
    """The panel's score: the median one, or that of the majority. An error if not more than half of them gave one."""
    scores = [score for _, score in said if score.status == "ok"]
    if 2 * len(scores) <= len(said):
        return next(score for _, score in said if score.status != "ok")
    if combine == "majority":
        scores = _majority(scores)
    valued = sorted((score for score in scores if score.value is not None), key=_value)
    if not valued:
        return _with_opinions(scores[0], said, decided=combine)
    cautious = (len(valued) - 1) // 2 if valued[0].direction != "down" else len(valued) // 2  # of two in the middle the worse one
    return _with_opinions(valued[cautious], said, decided=combine)


def _value(score: Score) -> float:
    return score.value or 0.0


def _majority(scores: Sequence[Score]) -> list[Score]:
    """The largest group of scores that agree; of equally large ones the one that does not pass."""
    groups: dict[tuple[bool | None, str | None], list[Score]] = {}
    for score in scores:
        groups.setdefault((score.passed, score.label), []).append(score)
    return max(groups.values(), key=lambda group: (len(group), not group[0].passed))


def _with_opinions(score: Score, said: Sequence[tuple[Judge, Score]], decided: str) -> Score:
    score.detail["judges"] = [
        {"model": judge.model, "value": one.value, "passed": one.passed, **({"error": one.error_type} if one.error_type else {})}
        for judge, one in said
    ]
    score.detail["judged_by"] = decided
    return score
