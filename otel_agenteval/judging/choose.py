"""Choice of the metrics to judge on a turn: conditions, sampling rules and quotas."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from ..core import forks
from ..core.clock import Clock
from ..core.feedback import METRIC as FEEDBACK
from ..core.score import Score, pass_rate
from ..core.tenancy import qualified
from ..evaluation import failed_turns
from ..evaluation.conditions import Known
from ..evaluation.references import excluded_by
from ..evaluation.scored_turn import ScoredTurn
from ..metrics.bound_metric import BoundMetric
from .baselines import History
from .judged_metrics import JudgedMetrics
from .judged_sample import JudgedSample
from .outcomes import NoScore
from .sampling import Chance, position

_LONG = math.log1p(20_000)
"""Answer length in characters above which the length proxy is 1."""
_REMEMBERED = 1_000
_CERTAIN = Chance(1.0, "rule")
INCOMPLETE = "incomplete_turn"


class PlanOptions(NamedTuple):
    seed: str = ""
    """Sampling seed. Processes with the same seed choose the same traces."""
    incomplete: bool = False


class MetricChoice(NamedTuple):
    """Result of :meth:`Chooser.choose` for one metric: its chance, or the reason why it can't be judged."""

    metric: BoundMetric
    key: str
    chance: Chance | None = None
    excluded: NoScore | Score | None = None


@dataclass(eq=False)
class Chooser:
    """Source of each judged metric's chance on a turn. Only the worker uses it."""

    _metrics: JudgedMetrics
    _sample: JudgedSample
    _options: PlanOptions
    _failed: Callable[[str, BaseException], None]
    _clock: Clock

    def __post_init__(self) -> None:
        self._history = History()
        self.reset()
        forks.in_child(self.reset)

    def reset(self) -> None:
        self._chances: OrderedDict[str, dict[str, Chance]] = OrderedDict()
        """Chances of recent turns, so that a revision is judged like the first version."""

    def position(self, scored: ScoredTurn) -> float:
        turn = scored.turn
        subject = turn.conversation_id or "" if scored.conversation else f"{scored.root.trace_id:032x}"
        return position(qualified(turn.tenant, subject), self._options.seed)

    def choose(self, scored: ScoredTurn) -> Iterator[MetricChoice]:
        """Yield the choice for each metric and composite, and remember their chances."""
        turn, whole = scored.turn, scored.conversation
        earlier = {} if scored.new else self._chances.get(scored.supersedes or turn.turn_id, {})
        known, now, proxies = self._known_of(scored), self._clock.time_ns() / 1e9, self._proxies(scored)
        chances = {}
        for metric in (*self._metrics.judged[whole], *self._metrics.composites[whole]):
            key = self._metrics.key(metric, conversation=whole)
            try:
                excluded = self._excluded(metric, scored)
                if excluded is None:
                    before = earlier.get(key)
                    if before is None:
                        chances[key] = self._metrics.rule(key).chance(turn, known, now)
                    else:
                        is_certain = self._is_certain_now(metric, key, before, scored, known)
                        chances[key] = _CERTAIN if is_certain else before
                    self._sample.record_turn(metric.name, key, scored, proxies)
            except Exception as error:
                self._failed("judging", error)
                excluded = NoScore.error(type(error).__name__)
                chances.pop(key, None)
            yield MetricChoice(metric, key, chances.get(key), excluded)
        self._remember(turn.turn_id, chances)

    def choose_again(self, scored: ScoredTurn) -> Iterator[MetricChoice]:
        """Yield the metrics that a rule chooses only now, because of new user feedback."""
        turn = scored.turn
        earlier = self._chances.get(turn.turn_id, {})
        self._remember(turn.turn_id, earlier)
        known, place = self._known_of(scored), self.position(scored)
        for metric in self._metrics.judged[False]:
            if self._excluded(metric, scored) is not None or metric.not_applicable(turn) is not None:
                continue
            key = self._metrics.key(metric, conversation=scored.conversation)
            before = earlier.get(key) or self._metrics.rule(key).chance(turn)  # the quota of a forgotten turn is unknown
            if self._is_certain_now(metric, key, before, scored, known):
                earlier[key] = _CERTAIN
                if place >= before.probability:
                    yield MetricChoice(metric, key, _CERTAIN)

    def _excluded(self, metric: BoundMetric, scored: ScoredTurn) -> NoScore | Score | None:
        """Return the outcome of a metric that no chance could give a score, or None."""
        turn = scored.turn
        selector = None if metric.when is None else excluded_by(metric.when, turn)
        if selector is not None:
            return NoScore.gated(f"when.{selector}")
        if not (turn.complete or self._options.incomplete or scored.conversation):
            return metric.left_out(INCOMPLETE)
        return None if failed_turns.decided(metric, turn) is not None else metric.not_applicable(turn)

    def _is_certain_now(self, metric: BoundMetric, key: str, before: Chance, scored: ScoredTurn, known: Known) -> bool:
        """Return True if a rule chooses the turn only now, because of new user feedback."""
        rule = self._metrics.rule(key).always_if
        if before.by == "rule" or rule is None or not any(score.metric == FEEDBACK for score in known.scores):
            return False
        if not rule.holds(scored.turn, known):
            return False
        if self.position(scored) < before.probability:
            self._sample.make_certain(metric.name, key, scored)
        return True

    def _known_of(self, scored: ScoredTurn) -> Known:
        compared: Mapping[str, object] = {}
        if self._metrics.compare and not scored.conversation:
            try:
                compared = self._history.compare(scored.turn, learn=scored.new)
            except Exception as error:
                self._failed("judging", error)
        return Known(scored.scores, compared, scored.events)

    def _proxies(self, scored: ScoredTurn) -> tuple[float, float, float] | None:
        """Return scores that narrow fleet estimates without bias: the share of computed verdicts that pass, whether the answer is a
        refusal, and its length. Each is from 0 to 1, or 0 if unknown.
        """
        if scored.conversation:
            return None
        try:
            outcomes = [score.summary.outcome for score in scored.scores]
            refusals = (score.value for score in scored.scores if score.metric == "code_refusal" and score.value is not None)
            return (
                pass_rate(outcomes.count("pass"), outcomes.count("fail")) or 0.0,
                float(next(refusals, 0.0)),
                min(1.0, math.log1p(len(scored.turn.output or "")) / _LONG),
            )
        except Exception as error:
            self._failed("judging", error)
            return None

    def _remember(self, turn_id: str, chances: dict[str, Chance]) -> None:
        self._chances[turn_id] = chances
        if len(self._chances) > _REMEMBERED:
            self._chances.popitem(last=False)
