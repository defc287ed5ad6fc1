"""Composites over judged scores: what they are made of, and with which probability.

A composite is made once every inner metric has its outcome: a score, or a reason why there is none. All of a turn's metrics are drawn by
one place of the turn (see :mod:`.sampling`), so the inner ones are not independent: those of a lower chance are judged on a subset of the turns
of those of a higher one. All of them are judged with the *lowest* of their chances, which is therefore the composite's. Where one
score alone fails it (``one_fails``), it fails whatever became of the others: with the *highest* chance among the scores that do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ..core.score import GATED, Score
from ..evaluation.evaluator import about
from ..evaluation.scored_turn import Judged, ScoredTurn
from ..metrics.bound_metric import BoundMetric, why_missing
from .job import Inner, judged_turn, key_of, upstream_of
from .outcomes import NoScore
from .sampling import Chance

NEVER = Chance(0.0, "")
"""Of a metric that does not apply to a turn."""
ALWAYS = Chance(1.0, "rate")
"""Of a metric that is computed."""
_REASONS = {"gated": GATED, "error": "error_of_ours"}


def unevaluated(metric: str, outcome: NoScore) -> Score:
    """The score that stands for one which there is not."""
    return Score(metric, status="skipped", detail={"reason": _REASONS.get(outcome.label, outcome.label), "by": outcome.text})


def leaves(metric: BoundMetric) -> Iterator[BoundMetric]:
    """The metrics that a composite is made of in the end."""
    for one in metric.inner:
        if one.inner:
            yield from leaves(one)
        else:
            yield one


def parts(metric: BoundMetric) -> Iterator[BoundMetric]:
    """The metrics that a composite is made of, and those composites that it is made of by way of others."""
    for one in metric.inner:
        yield one
        yield from parts(one)


def missing_in(metric: BoundMetric, found: Mapping[str, Inner], *, conversation: bool) -> dict[str, str]:
    """What a composite is missing by now, each with the reason."""
    known = (found.get(key_of(one, conversation=conversation)) for one in parts(metric))
    return {one.score.metric: why for one in known if one is not None and (why := why_missing(one.score)) is not None}


def can_be_made(metric: BoundMetric, found: Mapping[str, Inner], *, conversation: bool) -> bool:
    """Whether what is missing by now leaves anything to be asked for."""
    if metric.metric.one_fails or any(one.inner and one.metric.one_fails for one in metric.inner):
        return True
    return not missing_in(metric, found, conversation=conversation)


def result_of(metric: BoundMetric, own: Chance, found: Mapping[str, Inner], *, conversation: bool) -> Inner | None:
    """A composite's score, with its probability; None while an inner outcome is not there.

    Args:
        metric: the composite.
        own: the chance that its own sample leaves it.
        found: the outcomes of the metrics that it is made of, by key.
        conversation: whether they are about a conversation.
    """

    def known(one: BoundMetric) -> tuple[Score, Chance] | None:
        at = found.get(key_of(one, conversation=conversation))
        if at is not None or not one.inner:
            return None if at is None else (at.score, at.chance)
        inner = [known(each) for each in one.inner]
        there = [each for each in inner if each is not None]
        return None if len(there) < len(inner) else _over(one, there)

    pieces = [known(one) for one in metric.inner]
    there = [piece for piece in pieces if piece is not None]
    made = None if len(there) < len(pieces) else _over(metric, there)
    if made is None:
        return None
    costs = [at.cost_usd for one in leaves(metric) if (at := found.get(key_of(one, conversation=conversation))) is not None]
    spent = [cost for cost in costs if cost is not None]
    return Inner(made[0], min(own, made[1]), sum(spent) if spent else None)


def _over(metric: BoundMetric, inner: Sequence[tuple[Score, Chance]]) -> tuple[Score, Chance]:
    score = metric.over([one for one, _ in inner])
    return score, _decisive(metric, score, inner)


def _decisive(metric: BoundMetric, score: Score, parts: Sequence[tuple[Score, Chance]]) -> Chance:
    """The chance of what decided a score."""
    if metric.metric.one_fails and score.passed is False:
        failing = [chance for part, chance in parts if metric.combine([part]).passed is False]
        if failing:
            return max(failing)
    return min(chance for _, chance in parts)


def scored_or_not(made: Inner, scored: ScoredTurn, content: Mapping[str, str], *, asked: bool) -> ScoredTurn | NoScore:
    """A composite on its way out, or why it is missing inner scores."""
    score = made.score
    if score.status == "skipped" and why_missing(score) is not None:
        return NoScore.missing(score.detail["missing"])
    judged = Judged("code", made.chance.probability, None, made.cost_usd, made.chance.by, upstream_of(scored.root), asked=asked)
    return judged_turn(scored, about(score, scored.turn), judged, content=content)
