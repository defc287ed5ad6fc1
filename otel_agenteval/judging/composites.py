"""Composites of judged scores: their inner metrics, results and inclusion probabilities.

A composite is computed when every inner metric has an outcome: a score, or a reason without one. All metrics of a turn use
the same draw (see :mod:`.sampling`), so the turns judged at a low rate are a subset of those at a higher rate. Therefore, the
composite's probability is the lowest of its inner metrics.

If one failing score decides the composite (``one_fails``), the other scores don't matter. Then the probability is the highest
among the failing scores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.score import GATED, Score
from ..evaluation.evaluator import about
from ..evaluation.scored_turn import ScoredTurn
from ..metrics.bound_metric import BoundMetric, why_missing
from .job import InnerOutcome, judged_by, judged_turn, key_of
from .outcomes import NoScore
from .sampling import Chance

NEVER = Chance(0.0, "")
"""Chance of a metric that doesn't apply to a turn."""
ALWAYS = Chance(1.0, "rate")
_REASONS = {"gated": GATED, "error": "error_of_ours"}


def unevaluated(metric: str, outcome: NoScore) -> Score:
    return Score(metric, status="skipped", detail={"reason": _REASONS.get(outcome.label, outcome.label), "by": outcome.text})


def leaves(metric: BoundMetric) -> Iterator[BoundMetric]:
    """Return the metrics at the bottom of a composite: those that aren't composites themselves."""
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
    """Return a composite's score and probability, or None if an inner outcome is missing."""

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
    """Return a composite's scored turn, or the reason why inner scores are missing."""
    score = made.score
    if score.status == "skipped" and why_missing(score) is not None:
        return NoScore.missing(score.detail["missing"])
    judged = judged_by(score.kind, made.chance, scored.root, cost_usd=made.cost_usd, called_model=called_model)
    return judged_turn(scored, about(score, scored.turn), judged, content=content)
