"""Which turns are judged, and with which probability each of them was.

A turn's place between 0 and 1 follows from its trace id alone, and is one for all metrics: what is judged at a low rate is a
subset of what is judged at a higher one. The hash keeps it apart from head samplers, which use the trace id's own bits. A turn is
judged when its place lies below a chance that is known before the place is looked at, so that chance is its probability:

    a condition holds (``always_if``)          1
    ``min_per_hour: m``, the k-th turn         at least m / k, so the first m of an hour for sure
    else                                       the rate, of the first selector that fits or the metric's own
    ``cascade``, judged after another metric   the chance of that one where its score is bad enough, else the lower of the two
"""

from __future__ import annotations

import hashlib
import re
from collections import OrderedDict
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from ..config.root import Config
from ..config.sampling import SampleOptions
from ..config.selector import Selector
from ..core.errors import ConfigError, nearest
from ..core.feedback import METRIC as FEEDBACK
from ..core.turn import Turn
from ..evaluation.conditions import Condition, Known
from ..evaluation.references import applies
from ..metrics.bound_metric import BoundMetric

_SALT = b"agenteval.sampling.v1"
_HOUR = 3600.0
_STRATA = 10_000
_THRESHOLD = re.compile(r"(?:^|;)th:([0-9a-f]{1,14})(?:;|$)")


def position(trace_id: str, seed: str = "") -> float:
    """Where a trace stands, from 0 up to 1: it is judged at every rate above that.

    Args:
        trace_id: 32 hex digits.
        seed: processes with the same one choose the same traces.
    """
    digest = hashlib.sha256(_SALT + seed.encode() + trace_id.encode()).digest()
    return int.from_bytes(digest[:7], "big") / 2**56


def upstream_probability(trace_state: Mapping[str, str] | None) -> float | None:
    """The probability with which a head sampler kept the trace, from ``ot=th:…`` of its trace state; None where that says nothing."""
    found = _THRESHOLD.search((trace_state.get("ot") if trace_state else None) or "")
    return None if found is None else 1 - int(found[1].ljust(14, "0"), 16) / 2**56


class Chance(NamedTuple):
    """The probability with which a turn is judged, and what decided it."""

    probability: float
    by: str
    """``rule``, ``quota``, ``rate``, ``budget``, or the metric that is judged before."""


class Cascade(NamedTuple):
    """Another metric is judged first."""

    after: str
    """Its name."""
    judge_if: Condition
    """Of its score: the turn is judged then; else the rate decides."""

    def chance(self, own: Chance, first: Chance, turn: Turn, known: Known) -> Chance:
        """The chance after the first metric was judged: a turn has one place for all metrics, so both have to let it through."""
        allowed = 1.0 if self.judge_if.holds(turn, known) else own.probability
        return Chance(min(first.probability, allowed), self.after)


class Rule:
    """Decides which turns one metric is judged on. Counts turns for its quota, so only one thread may use it.

    Args:
        rate: share of all turns, 0 to 1.
        always_if: condition of turns that are judged in any case.
        rates: rates of turns that selectors match; the first match wins.
        min_per_hour: turns of each stratum that are judged in an hour at least, as far as there are so many.
        strata: turns that are the same in these are one stratum.
        cascade: has another metric judged first.
    """

    __slots__ = ("_hours", "always_if", "cascade", "min_per_hour", "rate", "rates", "strata")

    def __init__(
        self,
        rate: float = 1.0,
        always_if: Condition | None = None,
        rates: Sequence[tuple[Selector | None, float]] = (),
        min_per_hour: int = 0,
        strata: Sequence[str] = ("agent",),
        cascade: Cascade | None = None,
    ) -> None:
        self.rate = rate
        self.always_if = always_if
        self.rates = tuple(rates)
        self.min_per_hour = min_per_hour
        self.strata = tuple(strata)
        self.cascade = cascade
        self._hours: OrderedDict[tuple[Any, ...], tuple[int, int]] = OrderedDict()
        """By stratum: the hour, and how many turns were seen in it."""

    def chance(self, turn: Turn, known: Known = Known(), at: float | None = None) -> Chance:  # noqa: B008 - it is never changed
        """P(judged | the turn was seen), and why. Counts the turn.

        Args:
            turn: the turn, or conversation.
            known: what else its condition may name.
            at: when it closed, in seconds since the Unix epoch: hours begin with those of UTC. Without, there is no quota.
        """
        quota = 0.0 if at is None else self._quota(turn, at)
        if self.always_if is not None and self.always_if.holds(turn, known):
            return Chance(1.0, "rule")
        rate = next((rate for when, rate in self.rates if applies(when, turn)), self.rate)
        return Chance(quota, "quota") if quota > rate else Chance(rate, "rate")

    def _quota(self, turn: Turn, at: float) -> float:
        """The chance that the quota leaves for the k-th turn of an hour, m / k: it is never 0, whatever the rate is.

        In an hour of n turns that makes about m * (1 + log(n / m)) of them.
        """
        if not self.min_per_hour:
            return 0.0
        stratum = (turn.tenant, *(_STRATUM[name](turn) for name in self.strata))
        hour, seen = self._hours.pop(stratum, (0, 0))
        seen = seen + 1 if hour == at // _HOUR else 1
        self._hours[stratum] = (int(at // _HOUR), seen)
        if len(self._hours) > _STRATA:
            self._hours.popitem(last=False)
        return min(1.0, self.min_per_hour / seen)


_STRATUM: Mapping[str, Any] = {
    "agent": lambda turn: turn.agent,
    "service": lambda turn: turn.service,
    "model": lambda turn: turn.llm_calls[-1].model if turn.llm_calls else None,
    "conversation": lambda turn: turn.conversation_id,
}

EVERY_TURN = Rule()
"""The rule of a metric for which none is configured."""


def rules_of(config: Config, evaluated: Sequence[BoundMetric]) -> dict[BoundMetric, Rule]:
    """The rules of all judged metrics among those that are evaluated, and of composites over such, in their order.

    Args:
        config: where errors say that something stands.
        evaluated: all metrics of turns, or of conversations: a condition may name the scores of those that are computed.

    Raises:
        ConfigError: a condition cannot be read, there is no such metric to judge first, or metrics wait for each other; with its path and,
            where it comes from a file, its line.
    """
    computed = [*(metric.name for metric in evaluated if not metric.asks), FEEDBACK]
    judged = [metric for metric in evaluated if metric.asks]
    found = {}
    for metric in judged:
        others = [other.name for other in judged if other.name != metric.name and other.metric.kind != "code"]
        wanted = metric.sample
        found[metric] = EVERY_TURN if wanted is None else rule_of(wanted.options, computed, config.where(wanted.path), others)
    _refuse_circles(config, found)
    return found


def rule_of(options: SampleOptions, metrics: Collection[str], where: str, judged: Collection[str] = ()) -> Rule:
    """The rule that a metric's ``sample`` describes.

    Args:
        options: as configured.
        metrics: names of the metrics whose scores its condition may name.
        where: what errors begin with.
        judged: names of the metrics that may be judged before it.

    Raises:
        ConfigError: a condition cannot be read, or there is no such metric to judge first: its position, and what is known.
    """
    always_if = None if options.always_if is None else Condition(options.always_if, metrics, f"{where}.always_if")
    cascade, wanted = None, options.cascade
    if wanted is not None:
        if wanted.after not in judged:
            raise ConfigError(f"{where}.cascade.after: {_unknown(wanted.after, judged)}")
        cascade = Cascade(wanted.after, Condition(wanted.judge_if, [wanted.after], f"{where}.cascade.judge_if"))
    rates = [(one.when, one.rate) for one in options.rates]
    return Rule(options.rate, always_if, rates, options.min_per_hour or 0, options.strata, cascade)


def _unknown(name: str, judged: Collection[str]) -> str:
    close = nearest(name, list(judged), 1) if judged else []
    if close:
        hint = f"did you mean {close[0]}? (judged metrics: {', '.join(judged)})"
    else:
        hint = "no other judged metric is configured"
    return f"{name!r} is not a judged metric of this configuration; {hint}"


def _refuse_circles(config: Config, rules: Mapping[BoundMetric, Rule]) -> None:
    """Metrics that wait for each other would never be judged."""
    first = {metric.name: rule.cascade.after for metric, rule in rules.items() if rule.cascade is not None}
    for metric in rules:
        chain = [metric.name]
        while chain[-1] in first:
            chain.append(first[chain[-1]])
            if chain[-1] == metric.name:
                where = config.where((*metric.sample.path, "cascade", "after"))
                raise ConfigError(
                    f"{where}: {' after '.join(chain)} is not allowed; it must name a metric that does not wait for this one"
                )
            if chain[-1] in chain[:-1]:
                break
