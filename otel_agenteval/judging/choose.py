"""Selection of the judged metrics to evaluate for a turn, based on conditions, sampling rules, and quotas.

:class:`Chooser` calculates, for each metric, the probability that a turn is judged. :class:`JudgedSample` records the judged turns
for fleet estimates. :class:`History` compares a turn with the agent's earlier turns, for use in conditions.
"""

from __future__ import annotations

import bisect
import math
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..config.root import Config
from ..core import forks
from ..core.clock import Clock
from ..core.feedback import EVENT_NAME
from ..core.feedback import METRIC as FEEDBACK
from ..core.score import Score, pass_rate
from ..core.tenancy import qualified
from ..core.turn import Turn
from ..evaluation.conditions import EVENT_PREFIX, SCORE_PREFIX, Known
from ..evaluation.evaluator import decided_without_judge
from ..evaluation.references import excluded_by
from ..evaluation.scored_turn import ScoredTurn
from ..metrics.bound_metric import BoundMetric, asked_in
from ..statistics.calibration import Corrected
from ..statistics.estimates import Estimates, group_of
from .job import is_inner, key_of
from .outcomes import NoScore
from .sampling import EVERY_TURN, Chance, SamplingRule, position, rules_of

_LONG = math.log1p(20_000)
"""Logarithm of 20,000 characters. An answer of this length or more has the length proxy 1 (:meth:`Chooser._proxies`)."""
_REMEMBERED = 1_000
_CERTAIN = Chance(1.0, "rule")


class MetricChoice(NamedTuple):
    """Result of :meth:`Chooser.choose` for one metric: the probability of a judge evaluation, or the reason to skip the metric."""

    metric: BoundMetric
    key: str
    chance: Chance | None = None
    excluded: NoScore | Score | None = None


@dataclass(eq=False)
class Chooser:
    """Sampler that calculates, for each metric, the probability that a turn is judged. Used only on the worker thread."""

    _metrics: JudgedMetrics
    _sample: JudgedSample
    _seed: str
    """Sampling seed. Processes with the same seed and rates sample the same traces, except for hourly quotas."""
    _incomplete: bool
    _failed: Callable[[str, BaseException], None]
    _clock: Clock

    def __post_init__(self) -> None:
        self._history = History()
        self.reset()
        forks.in_child(self.reset)

    def reset(self) -> None:
        self._chances: OrderedDict[str, dict[str, Chance]] = OrderedDict()
        """Judging probabilities of recent turns, by turn ID and then by metric key. Later revisions reuse these probabilities."""

    def position(self, scored: ScoredTurn) -> float:
        turn = scored.turn
        subject = turn.conversation_id or "" if scored.conversation else f"{scored.root.trace_id:032x}"
        return position(qualified(turn.tenant, subject), self._seed)

    def choose(self, scored: ScoredTurn) -> Iterator[MetricChoice]:
        """Yield one :class:`MetricChoice` for each judged metric and composite. A later revision reuses the turn's known
        probabilities, unless the turn has user feedback and ``always_if`` is true now.
        """
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
                        chances[key] = _CERTAIN if self._is_certain_now(metric, key, before, scored, known) else before
                    self._sample.record_turn(metric.name, key, scored, proxies)
            except Exception as error:
                self._failed("judging", error)
                excluded = NoScore.error(type(error).__name__)
                chances.pop(key, None)
            yield MetricChoice(metric, key, chances.get(key), excluded)
        self._remember(turn.turn_id, chances)

    def choose_again(self, scored: ScoredTurn) -> Iterator[MetricChoice]:
        """Yield choices for metrics that sampling excluded, if new user feedback makes their ``always_if`` condition true."""
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
        turn = scored.turn
        selector = None if metric.when is None else excluded_by(metric.when, turn)
        if selector is not None:
            return NoScore.gated(f"when.{selector}")
        if not (turn.complete or self._incomplete or scored.conversation):
            return metric.left_out("incomplete_turn")
        return None if decided_without_judge(metric, turn) is not None else metric.not_applicable(turn)

    def _is_certain_now(self, metric: BoundMetric, key: str, before: Chance, scored: ScoredTurn, known: Known) -> bool:
        """Return True if ``always_if`` now selects a turn with user feedback. If the turn was already sampled, set its weight to 1."""
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
        """Return three values (proxies) that make fleet estimates more precise. For a conversation or after an error, return None.

        The proxies are known for judged and other turns. They are the pass rate of the computed metrics, the score of
        ``code_refusal``, and the answer length on a logarithmic scale. Each value is in the range 0..1. Unknown values are 0.
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


# --- the judged metrics, and the turns that they judge


class JudgedMetrics:
    def __init__(self, config: Config, of_turns: Sequence[BoundMetric], of_conversations: Sequence[BoundMetric]) -> None:
        self._by_key: Mapping[str, BoundMetric] = {}
        self._rules: Mapping[str, SamplingRule] = {}
        self._newest: Mapping[str, str] = {}
        """Mapping from a metric's key without the version to the metric's latest key."""
        self.reload(config, of_turns, of_conversations)

    def reload(self, config: Config, of_turns: Sequence[BoundMetric], of_conversations: Sequence[BoundMetric]) -> None:
        """Replace the metrics. Waiting jobs of removed metrics still run. If a rule is invalid, change nothing and raise ConfigError."""
        rules = {False: rules_of(config, of_turns), True: rules_of(config, of_conversations)}
        keyed = {
            key_of(metric, conversation=whole): (metric, rule) for whole, some in rules.items() for metric, rule in some.items()
        }
        # key True: metrics of conversations, key False: metrics of turns
        self.judged = {whole: tuple(one for one in some if not one.inner) for whole, some in rules.items()}
        self.composites = {whole: tuple(one for one in some if one.inner) for whole, some in rules.items()}
        self.inner = {}
        for whole, some in self.judged.items():
            configured = {metric.key for metric in some}
            asked = asked_in(self.composites[whole])
            self.inner[whole] = tuple({one.key: one for one in asked if one.key not in configured}.values())
        for whole, some in self.inner.items():
            keyed |= {key_of(one, conversation=whole, inner=True): (one, EVERY_TURN) for one in some}
        self._rules = {**self._rules, **{key: rule for key, (_, rule) in keyed.items()}}
        self._by_key = {**self._by_key, **{key: metric for key, (metric, _) in keyed.items()}}
        self._newest = {key.rpartition(" ")[0]: key for key in self._by_key}
        named = {name for rule in self._rules.values() if rule.always_if is not None for name in rule.always_if.names}
        self.compare = not COMPARISONS.isdisjoint(named)
        self.wants_events = any(name.startswith(EVENT_PREFIX) for name in named)
        self.wants_feedback = not named.isdisjoint((f"{SCORE_PREFIX}{FEEDBACK}", f"{EVENT_PREFIX}{EVENT_NAME}"))

    def names(self, *, conversation: bool) -> list[str]:
        return [metric.name for metric in (*self.judged[conversation], *self.composites[conversation])]

    def key(self, metric: BoundMetric, *, conversation: bool) -> str:
        return key_of(metric, conversation=conversation, inner=any(metric is one for one in self.inner[conversation]))

    def by_key(self, key: str) -> BoundMetric | None:
        """Return the metric with this key, or None. If the key's version is unknown, return the metric's latest version."""
        return self._by_key.get(self._current_key(key))

    def rule(self, key: str) -> SamplingRule:
        return self._rules[self._current_key(key)]

    def _current_key(self, key: str) -> str:
        return key if key in self._by_key else self._newest.get(key.rpartition(" ")[0], key)


@dataclass(frozen=True)
class JudgedSample:
    """Collector of judged turns for fleet estimates. Ignores conversations, and metrics that only composites use."""

    estimates: Estimates
    corrected: Corrected | None = None

    def record_turn(self, metric: str, key: str, scored: ScoredTurn, proxies: tuple[float, float, float] | None) -> None:
        """Record a turn's proxies (:meth:`Chooser._proxies`), even if sampling excludes the turn. If they are None, do nothing."""
        for estimates in self._estimates_of(metric, key, scored) if proxies is not None else ():
            estimates.add_proxies(metric, scored.turn.agent or "", scored.first_id, proxies or ())

    def record_choice(self, metric: str, key: str, scored: ScoredTurn, chance: Chance) -> None:
        """Record a planned judge call. If the call fails, judged turns of the same sampling group stand in for this turn."""
        for estimates in self._estimates_of(metric, key, scored):
            estimates.choose(metric, scored.turn.agent or "", chance.probability, group_of(chance.by), scored.first_id)

    def make_certain(self, metric: str, key: str, scored: ScoredTurn) -> None:
        """Set a sampled turn's weight in fleet estimates to 1, because an ``always_if`` rule now selects the turn."""
        for estimates in self._estimates_of(metric, key, scored):
            estimates.make_certain(metric, scored.first_id)

    def record_scores(self, scored: ScoredTurn) -> None:
        judged, turn = scored.judged, scored.turn
        if judged is None:
            return
        agent, trace = turn.agent or "", qualified(turn.tenant, f"{scored.root.trace_id:032x}")
        group = group_of(judged.decided_by) if judged.called_model else "itself"
        for score in scored.scores:
            if score.status != "ok" or score.value is None or score.vacuous:
                continue
            for estimates in self._estimates_of(score.metric, "", scored):
                value = score.value if estimates is self.estimates else score.verdict
                if value is not None:
                    estimates.add(
                        score.metric, agent, trace, scored.first_id, float(value), judged.probability, group, turn.revision, scored.absorbs,
                    )  # fmt: skip

    def _estimates_of(self, metric: str, key: str, scored: ScoredTurn) -> tuple[Estimates, ...]:
        if scored.conversation or is_inner(key):
            return ()
        if self.corrected is None or metric not in self.corrected.confusions:
            return (self.estimates,)
        return (self.estimates, self.corrected.verdicts)


# --- comparisons with earlier turns

COMPARISONS = frozenset(("new_tool", "slow", "expensive"))
_AGENTS = 1_000
_TOOLS = 10_000
_TURNS = 200
_LEAST = 20
_SHARE = 0.95


class _Amounts:
    __slots__ = ("_last", "_sorted")

    def __init__(self) -> None:
        self._last: deque[float] = deque()
        self._sorted: list[float] = []

    def exceeds(self, amount: float | None) -> bool | None:
        if amount is None or len(self._sorted) < _LEAST:
            return None
        return amount > self._sorted[math.ceil(len(self._sorted) * _SHARE) - 1]

    def add(self, amount: float | None) -> None:
        if amount is None or not math.isfinite(amount):
            return
        if len(self._last) == _TURNS:
            del self._sorted[bisect.bisect_left(self._sorted, self._last.popleft())]
        self._last.append(amount)
        bisect.insort(self._sorted, amount)


class History:
    """Turn durations, turn costs, and called tools of each agent, as seen by this process. Not thread-safe.

    If a comparison is impossible, its result is None. Conditions treat None as false.
    """

    def __init__(self) -> None:
        self._amounts: OrderedDict[str, tuple[_Amounts, _Amounts]] = OrderedDict()
        self._tools: set[tuple[str, str]] = set()

    def compare(self, turn: Turn, *, learn: bool = True) -> dict[str, Any]:
        """Compare a turn with the agent's earlier turns. If ``learn`` is true, add the turn to the history.

        - ``slow``, ``expensive``: True if the turn's duration or cost is above the 95th percentile of the agent's last 200 turns.
          None if the value is unknown for this turn, or known for fewer than 20 earlier turns.
        - ``new_tool``: True if the agent calls a tool for the first time. None if tool calls are unknown or the history is full.
        """
        agent = qualified(turn.tenant, turn.agent or "")
        durations, costs = self._amounts.pop(agent) if agent in self._amounts else (_Amounts(), _Amounts())
        self._amounts[agent] = (durations, costs)
        if len(self._amounts) > _AGENTS:
            self._amounts.popitem(last=False)
        called = {(agent, call.name) for call in turn.tool_calls or ()}
        new = None if len(self._tools) >= _TOOLS or turn.tool_calls is None else not called <= self._tools
        found = {"new_tool": new, "slow": durations.exceeds(turn.duration_s), "expensive": costs.exceeds(turn.cost_usd)}
        if learn:
            durations.add(turn.duration_s)
            costs.add(turn.cost_usd)
            if len(self._tools) < _TOOLS:
                self._tools |= called
        return found
