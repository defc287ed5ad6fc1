"""Next steps after the outcome of a judge job: jobs of metrics that waited, and composites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..core.score import Score
from ..evaluation.scored_turn import Judged, ScoredTurn
from .composites import result_of, scored_or_not, unevaluated
from .job import ContentFilter, Decision, Gathering, InnerOutcome, Payload, Waiting, flattened, is_inner, unmarked
from .judged_metrics import JudgedMetrics
from .judged_sample import JudgedSample
from .outcomes import NoScore
from .queues import Job

_NOT_CONFIGURED = NoScore.dropped("not_configured")


@dataclass(frozen=True, slots=True)
class FollowUp:
    metric: str
    outcome: NoScore | None = None
    job: Job | None = None


class NextSteps(NamedTuple):
    follow_ups: Sequence[FollowUp]
    composites: Sequence[ScoredTurn]


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Source of the next steps after each job. Thread-safe."""

    _metrics: JudgedMetrics
    _sample: JudgedSample
    _content: ContentFilter

    def after_score(self, payload: Payload, scored: ScoredTurn, score: Score, judged: Judged) -> NextSteps:
        """Return the next steps after a score, which decides about the metrics that waited for it."""
        judge: list[Waiting] = []
        ended: list[tuple[Waiting, NoScore]] = []
        value = "no value" if score.value is None else f"{score.value:g}"
        for waiting in payload.then:
            metric = self._metrics.by_key(waiting.key)
            cascade = None if metric is None else self._metrics.rule(waiting.key).cascade
            if metric is None or cascade is None:
                ended += [(one, _NOT_CONFIGURED) for one in flattened([waiting])]
                continue
            chance = cascade.chance(waiting.chance, payload.chance, scored.turn, score)
            if payload.position < chance.probability:
                judge.append(replace(waiting, chance=chance, decided=Decision(score.metric, score.value)))
                self._sample.record_choice(metric.name, waiting.key, scored, chance)
            else:
                outcome = NoScore.sampled_out(chance.probability, f" after {score.metric}: {value}")
                passed_on = outcome.passed_on_by(metric.name)
                ended.append((replace(waiting, chance=chance), outcome))
                ended += [(replace(one, chance=chance), passed_on) for one in flattened(waiting.then)]
        cost = judged.cost_usd if is_inner(payload.key) else None
        return self._next_steps(payload, scored, InnerOutcome(score, payload.chance, cost), judge, ended)

    def without_score(self, payload: Payload, scored: ScoredTurn, reason: str) -> NextSteps:
        """Return the next steps after a job that can't be done, which ends all metrics that waited for it."""
        outcome = NoScore.dropped(reason)
        own = Waiting(payload.key, payload.metric, payload.chance)
        ended = [(one, outcome) for one in (*flattened(payload.then), own)]
        return self._next_steps(payload, scored, InnerOutcome(unevaluated(payload.metric, outcome), payload.chance), (), ended)

    def _next_steps(
        self,
        payload: Payload,
        scored: ScoredTurn,
        own: InnerOutcome,
        judge: Sequence[Waiting],
        ended: Sequence[tuple[Waiting, NoScore]],
    ) -> NextSteps:
        gathering = payload.gathering
        planned = [*judge, *(() if gathering is None else gathering.next)]
        removed = [one for one in planned if self._metrics.by_key(one.key) is None]
        judge = [one for one in planned if one not in removed]
        ended = [*ended, *((one, _NOT_CONFIGURED) for one in flattened(removed))]
        found = [FollowUp(one.metric, outcome) for one, outcome in ended if not is_inner(one.key)]
        composites: list[ScoredTurn] = []
        if gathering is not None:
            known = {**gathering.found, unmarked(payload.key): own}
            known |= {unmarked(one.key): InnerOutcome(unevaluated(one.metric, outcome), one.chance) for one, outcome in ended}
            incomplete: list[Waiting] = []
            for one in gathering.composites:
                made = self._composite(one, known, payload, scored)
                if made is None and judge:
                    incomplete.append(one)
                elif isinstance(made, ScoredTurn):
                    composites.append(made)
                else:
                    found.append(FollowUp(one.metric, made or _NOT_CONFIGURED))
            gathering = Gathering(incomplete, known, judge[1:]) if incomplete else None
            if gathering is not None:  # the first job carries the others
                judge = judge[:1]
        for one in judge:
            metric = self._metrics.by_key(one.key)
            assert metric is not None  # the others were removed
            following = replace(
                payload, key=one.key, metric=one.metric, chance=one.chance, decided=one.decided, then=one.then, gathering=gathering,
            )  # fmt: skip
            found.append(FollowUp(one.metric, job=following.job(metric)))
        return NextSteps(found, composites)

    def _composite(
        self, waiting: Waiting, known: Mapping[str, InnerOutcome], payload: Payload, scored: ScoredTurn
    ) -> ScoredTurn | NoScore | None:
        metric = self._metrics.by_key(waiting.key)
        made = None if metric is None else result_of(metric, waiting.chance, known, conversation=scored.conversation)
        if metric is None or made is None:
            return None
        found = scored_or_not(made, scored, self._content.exported(scored.turn), called_model=True)
        if isinstance(found, ScoredTurn) or payload.position < made.chance.probability:
            self._sample.record_choice(metric.name, waiting.key, scored, made.chance)
        return found
