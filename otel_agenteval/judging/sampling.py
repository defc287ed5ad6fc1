"""Sampling of the turns to judge, with each turn's inclusion probability.

Each turn has one position between 0 and 1 for all metrics. A metric is judged if the turn's position is below the metric's chance.
Therefore, turns judged at a low rate are a subset of turns judged at a higher rate. The position is a hash of the seed, the tenant,
and the trace ID (or conversation ID). It is independent of head samplers, which use bits of the trace ID. A metric's chance::

    the ``always_if`` condition holds   1
    ``min_per_hour: m``                 at least m / k, but at most 1, for the agent's k-th turn of an hour in this process
    neither                             the rate of the first matching selector, or the metric's rate
    ``cascade`` after another metric    the other metric's chance if ``judge_if`` holds, otherwise the lower of both chances
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ..config.metrics import SampleOptions, Selector
from ..config.root import Config
from ..core.errors import ConfigError, nearest
from ..core.feedback import METRIC as FEEDBACK
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.conditions import Condition, Known
from ..evaluation.references import applies
from ..metrics.bound_metric import BoundMetric

_SALT = b"agenteval.sampling.v1"
_HOUR = 3600.0
_AGENTS = 10_000
_THRESHOLD = re.compile(r"(?:^|;)th:([0-9a-f]{1,14})(?:;|$)")


def position(trace_id: str, seed: str = "") -> float:
    """Return a trace's sampling position, from 0 to below 1. The position depends only on ``trace_id`` and ``seed``."""
    digest = hashlib.sha256(_SALT + seed.encode() + trace_id.encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def upstream_probability(trace_state: Mapping[str, str] | None) -> float | None:
    """Return the head sampler's probability, or None if the trace state has no ``ot=th:…``."""
    found = _THRESHOLD.search((trace_state.get("ot") if trace_state else None) or "")
    return None if found is None else 1 - int(found[1].ljust(14, "0"), 16) / 2**56


class Chance(NamedTuple):
    """Probability that a turn is judged, and the rule that set this probability."""

    probability: float
    by: str
    """``rule`` (``always_if``), ``quota`` (``min_per_hour``), ``rate``, or a cascade's first metric. Empty if no rule applies."""


class Cascade(NamedTuple):
    """Rule that judges another metric first. That metric's score decides whether this metric is judged."""

    after: str
    judge_if: Condition
    """Condition on the first metric's score. If it holds, this metric is judged. Otherwise, this metric's own rate applies."""

    def chance(self, own: Chance, first: Chance, turn: Turn, score: Score) -> Chance:
        """Return the second metric's chance, based on the first metric's score. The result is at most the first metric's chance."""
        known = Known([score] if score.status == "ok" else [])
        allowed = 1.0 if self.judge_if.holds(turn, known) else own.probability
        return Chance(min(first.probability, allowed), self.after)


@dataclass(slots=True, eq=False)
class SamplingRule:
    """Sampling rule for one metric. Not thread-safe, because the rule counts turns for the hourly quota.

    ``rate`` is the share of turns to judge (0..1). The first matching selector in ``rates`` overrides ``rate``. Turns that match
    ``always_if`` have the chance 1, as do an agent's first ``min_per_hour`` turns of each hour in this process.
    """

    rate: float = 1.0
    always_if: Condition | None = None
    rates: Sequence[tuple[Selector | None, float]] = ()
    min_per_hour: int = 0
    cascade: Cascade | None = None
    _hours: OrderedDict[tuple[str | None, str | None], tuple[int, int]] = field(default_factory=OrderedDict, init=False)
    """Mapping from (tenant, agent) to the latest hour with turns and the number of turns in that hour."""

    def chance(self, turn: Turn, known: Known = Known(), at: float | None = None) -> Chance:  # noqa: B008 - it is never changed
        """Return the probability that a turn is judged. If the Unix time ``at`` is set, count the turn in the hourly quota."""
        quota = 0.0
        if self.min_per_hour and at is not None:
            agent = turn.tenant, turn.agent
            hour, seen = self._hours.pop(agent, (0, 0))
            seen = seen + 1 if hour == at // _HOUR else 1
            self._hours[agent] = (int(at // _HOUR), seen)
            if len(self._hours) > _AGENTS:
                self._hours.popitem(last=False)
            quota = min(1.0, self.min_per_hour / seen)  # chooses about m * (1 + log(n / m)) of n turns
        if self.always_if is not None and self.always_if.holds(turn, known):
            return Chance(1.0, "rule")
        rate = next((rate for when, rate in self.rates if applies(when, turn)), self.rate)
        return Chance(quota, "quota") if quota > rate else Chance(rate, "rate")


EVERY_TURN = SamplingRule()


def rules_of(config: Config, evaluated: Sequence[BoundMetric]) -> dict[BoundMetric, SamplingRule]:
    """Return the sampling rule of each judged metric and composite, in configured order.

    Conditions can refer to user feedback and to computed metrics in ``evaluated``. Raises a ConfigError for an invalid condition,
    an unknown metric in a cascade, or a circular cascade.
    """
    computed = [*(metric.name for metric in evaluated if not metric.asks), FEEDBACK]
    judged = [metric for metric in evaluated if metric.asks]
    found = {}
    for metric in judged:
        others = [other.name for other in judged if other.name != metric.name and not other.inner]
        wanted = metric.sample
        found[metric] = EVERY_TURN if wanted is None else rule_of(wanted.options, computed, config.where(wanted.path), others)
    _refuse_circles(config, found)
    return found


def rule_of(options: SampleOptions, metrics: Collection[str], where: str, judged: Collection[str] = ()) -> SamplingRule:
    """Return the rule for a ``sample`` option. The condition ``always_if`` can refer to scores of ``metrics``, and ``cascade``
    can refer to a metric in ``judged``. For other names, raise a ConfigError.
    """
    always_if = None if options.always_if is None else Condition(options.always_if, metrics, f"{where}.always_if")
    cascade, wanted = None, options.cascade
    if wanted is not None:
        if wanted.after not in judged:
            close = nearest(wanted.after, list(judged), 1) if judged else []
            known = f"Did you mean {close[0]}? (judged metrics: {', '.join(judged)})" if close else ""
            raise ConfigError(
                f"{where}.cascade.after: must be another judged metric of this configuration, got {wanted.after!r}. "
                f"{known or 'No other judged metric is configured'}"
            )
        cascade = Cascade(wanted.after, Condition(wanted.judge_if, [wanted.after], f"{where}.cascade.judge_if"))
    rates = [(one.when, one.rate) for one in options.rates]
    return SamplingRule(options.rate, always_if, rates, options.min_per_hour or 0, cascade)


def _refuse_circles(config: Config, rules: Mapping[BoundMetric, SamplingRule]) -> None:
    """Raise a ConfigError if cascades form a cycle, because the metrics in a cycle would wait for each other."""
    first = {metric.name: rule.cascade.after for metric, rule in rules.items() if rule.cascade is not None}
    for metric in rules:
        chain = [metric.name]
        while chain[-1] in first:
            chain.append(first[chain[-1]])
            if chain[-1] == metric.name:
                where = config.where((*metric.sample.path, "cascade", "after"))
                raise ConfigError(f"{where}: cascades must not be circular, got {' after '.join(chain)}")
            if chain[-1] in chain[:-1]:
                break
