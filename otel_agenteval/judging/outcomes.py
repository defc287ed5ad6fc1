"""Outcomes of judged metrics and their composites. Recent turns' outcomes are kept.

The counter ``agenteval.results`` counts judged metrics' outcomes on a turn's first revision.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

from ..core import forks
from ..core.score import GATED, Score
from ..core.semconv import DROPPED, RESULTS
from ..core.telemetry import Telemetry
from ..evaluation.evaluator import about
from ..evaluation.scored_turn import ScoredTurn
from ..metrics.bound_metric import BoundMetric, why_missing
from .job import InnerOutcome, NewerPayload, Payload, is_inner, judged_by, judged_turn, key_of
from .queues import Job
from .sampling import Chance

_REMEMBERED = 1_000


class NoScore(NamedTuple):
    label: str
    text: str
    """Outcome as text, such as ``gated: when.agent``."""
    reason: str | None = None
    """Value of the label ``reason`` in the counter for dropped results, or None if the result wasn't dropped."""

    @classmethod
    def gated(cls, by: str) -> NoScore:
        return cls(GATED, f"gated: {by}")

    @classmethod
    def sampled_out(cls, probability: float, after: str = "") -> NoScore:
        return cls("sampled_out", f"sampled out (p={probability:g}){after}")

    @classmethod
    def dropped(cls, reason: str) -> NoScore:
        return cls("dropped", f"dropped: {reason}", reason)

    @classmethod
    def error(cls, name: str) -> NoScore:
        return cls("error", f"error: {name}")

    @classmethod
    def missing(cls, metrics: Mapping[str, str]) -> NoScore:
        return cls("skipped", f"skipped: missing {', '.join(f'{name} ({why})' for name, why in metrics.items())}")

    def passed_on_by(self, metric: str) -> NoScore:
        return self._replace(text=f"{self.text}, as {metric} was")


class Outcomes:
    """Store and counter for judged metrics' outcomes. Thread-safe. ``record`` must also be thread-safe."""

    def __init__(self, telemetry: Telemetry, record: Callable[[str, str, str], None] | None = None) -> None:
        self._telemetry = telemetry
        self._record = record
        self.reset()
        forks.in_child(self.reset)

    def reset(self) -> None:
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, dict[str, str]] = OrderedDict()

    def of(self, turn_id: str) -> dict[str, str]:
        with self._lock:
            return dict(self._recent.get(turn_id, {}))

    def report(self, turn_id: str, metric: str, outcome: str) -> None:
        if self._record is not None:
            self._record(turn_id, metric, outcome)
        with self._lock:
            self._recent.setdefault(turn_id, {})[metric] = outcome
            if len(self._recent) > _REMEMBERED:
                self._recent.popitem(last=False)

    def end(self, metric: str, scored: ScoredTurn, outcome: NoScore) -> None:
        """Record why a metric has no score. Later revisions of the same turn aren't counted again."""
        if scored.new:
            self._count(metric, scored.turn.agent or "", outcome)
        self.report(scored.turn.turn_id, metric, outcome.text)

    def wait(self, jobs: Sequence[Job]) -> None:
        for job in jobs:
            payload = Payload.decode(job.payload)
            for one in payload.waits:
                if not is_inner(one.key):
                    text = "waiting" if one.key == payload.key else f"waiting for {payload.metric}"
                    self.report(payload.turn_id, one.metric, text)
            for composite in payload.gathering.composites if payload.gathering is not None else ():
                self.report(payload.turn_id, composite.metric, f"waiting for {', '.join(one.metric for one in payload.waits)}")

    def drop(self, jobs: Sequence[Job], reason: str) -> None:
        """Count metrics of jobs that won't run, and metrics that wait for them, as dropped. Count composites as skipped."""
        outcome = NoScore.dropped(reason)
        for job in jobs:
            try:
                payload = Payload.decode(job.payload)
            except (NewerPayload, ValueError, KeyError, TypeError):  # the turn is unknown
                continue
            missing = NoScore.missing({one.metric: outcome.text for one in payload.waits})
            composites = payload.gathering.composites if payload.gathering is not None else ()
            ended = [(one.metric, outcome) for one in payload.waits if not is_inner(one.key)]
            for metric, its in (*ended, *((one.metric, missing) for one in composites)):
                if payload.new:
                    self._count(metric, payload.agent, its)
                self.report(payload.turn_id, metric, its.text)

    def _count(self, metric: str, agent: str, outcome: NoScore) -> None:
        self._telemetry.add(RESULTS, metric=metric, agent=agent, outcome=outcome.label)
        if outcome.reason is not None:
            self._telemetry.add(DROPPED, metric=metric, reason=outcome.reason)


# --- composites of judged scores: their inner metrics, results, and inclusion probabilities
#
# A composite is computed when every inner metric has an outcome: a score, or a reason for no score. All metrics of a turn use
# the same draw (see :mod:`.sampling`), so the turns judged at a low rate are a subset of those at a higher rate. Therefore, the
# composite's probability is the lowest of its own and its inner metrics' probabilities.
#
# If one failing score decides the composite (``one_fails``), the other scores don't matter. Then the highest probability among the
# failing scores replaces that of the inner metrics.

NEVER = Chance(0.0, "")
ALWAYS = Chance(1.0, "rate")
_REASONS = {"gated": GATED, "error": "error_of_ours"}


def unevaluated(metric: str, outcome: NoScore) -> Score:
    return Score(metric, status="skipped", detail={"reason": _REASONS.get(outcome.label, outcome.label), "by": outcome.text})


def leaves(metric: BoundMetric) -> Iterator[BoundMetric]:
    return (one for one in parts(metric) if not one.inner)


def parts(metric: BoundMetric) -> Iterator[BoundMetric]:
    for one in metric.inner:
        yield one
        yield from parts(one)


def missing_in(metric: BoundMetric, found: Mapping[str, InnerOutcome], *, conversation: bool) -> dict[str, str]:
    known = (found.get(key_of(one, conversation=conversation)) for one in parts(metric))
    return {one.score.metric: why for one in known if one is not None and (why := why_missing(one.score)) is not None}


def can_be_made(metric: BoundMetric, found: Mapping[str, InnerOutcome], *, conversation: bool) -> bool:
    if "one_fails" in metric.metric.traits or any(one.inner and "one_fails" in one.metric.traits for one in metric.inner):
        return True
    return not missing_in(metric, found, conversation=conversation)


def result_of(metric: BoundMetric, own: Chance, found: Mapping[str, InnerOutcome], *, conversation: bool) -> InnerOutcome | None:
    """Return a composite's score and judging probability, or None if an inner metric has no outcome yet."""

    def known(one: BoundMetric) -> tuple[Score, Chance] | None:
        at = None if one is metric else found.get(key_of(one, conversation=conversation))
        if at is not None:
            return at.score, at.chance
        inner = [result for each in one.inner if (result := known(each)) is not None]
        if not inner or len(inner) < len(one.inner):
            return None
        score = one.over([each for each, _ in inner])
        return score, _decisive(one, score, inner)

    made = known(metric)
    if made is None:
        return None
    costs = [at.cost_usd for one in leaves(metric) if (at := found.get(key_of(one, conversation=conversation))) is not None]
    spent = [cost for cost in costs if cost is not None]
    return InnerOutcome(made[0], min(own, made[1]), sum(spent) if spent else None)


def _decisive(metric: BoundMetric, score: Score, parts: Sequence[tuple[Score, Chance]]) -> Chance:
    if "one_fails" in metric.metric.traits and score.passed is False:
        failing = [chance for part, chance in parts if metric.combine([part]).passed is False]
        if failing:
            return max(failing)
    return min(chance for _, chance in parts)


def scored_or_not(
    made: InnerOutcome, scored: ScoredTurn, content: Mapping[str, str], *, called_model: bool
) -> ScoredTurn | NoScore:
    score = made.score
    if score.status == "skipped" and why_missing(score) is not None:
        return NoScore.missing(score.detail["missing"])
    judged = judged_by(score.kind, made.chance, scored.root, cost_usd=made.cost_usd, called_model=called_model)
    return judged_turn(scored, about(score, scored.turn), judged, content=content)
