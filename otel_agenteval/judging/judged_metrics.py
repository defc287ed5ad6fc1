"""The judged metrics and composites of a configuration, with their sampling rules."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..config.root import Config
from ..core.feedback import EVENT_NAME, METRIC
from ..evaluation.conditions import EVENT_PREFIX, SCORE_PREFIX
from ..metrics.bound_metric import BoundMetric, asked_in
from .baselines import COMPARISONS
from .job import key_of
from .sampling import EVERY_TURN, SamplingRule, rules_of


class JudgedMetrics:
    """Index of the judged metrics of turns and conversations. Thread-safe to read."""

    def __init__(self, config: Config, of_turns: Sequence[BoundMetric], of_conversations: Sequence[BoundMetric]) -> None:
        self._by_key: Mapping[str, BoundMetric] = {}
        self._rules: Mapping[str, SamplingRule] = {}
        self._newest: Mapping[str, str] = {}
        """The last key by the key without its version."""
        self.reload(config, of_turns, of_conversations)

    def reload(self, config: Config, of_turns: Sequence[BoundMetric], of_conversations: Sequence[BoundMetric]) -> None:
        """Use other metrics from the next turn on. Waiting jobs keep their metrics and rules. A ConfigError changes nothing."""
        rules = {False: rules_of(config, of_turns), True: rules_of(config, of_conversations)}
        keyed = {
            key_of(metric, conversation=whole): (metric, rule) for whole, some in rules.items() for metric, rule in some.items()
        }
        # by True for metrics of conversations, and False for those of turns
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
        self.wants_feedback = not named.isdisjoint((f"{SCORE_PREFIX}{METRIC}", f"{EVENT_PREFIX}{EVENT_NAME}"))

    def names(self, *, conversation: bool) -> list[str]:
        return [metric.name for metric in (*self.judged[conversation], *self.composites[conversation])]

    def key(self, metric: BoundMetric, *, conversation: bool) -> str:
        return key_of(metric, conversation=conversation, inner=any(metric is one for one in self.inner[conversation]))

    def by_key(self, key: str) -> BoundMetric | None:
        """Return a job's metric, maybe in a later version, or None if this process never had it."""
        return self._by_key.get(self._current_key(key))

    def rule(self, key: str) -> SamplingRule:
        return self._rules[self._current_key(key)]

    def _current_key(self, key: str) -> str:
        return key if key in self._by_key else self._newest.get(key.rpartition(" ")[0], key)
