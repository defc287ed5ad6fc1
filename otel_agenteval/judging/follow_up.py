"""Next steps after the outcome of a judge job: jobs of metrics that waited, and composites."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..core.score import Score
from ..evaluation.scored_turn import Judged, ScoredTurn
from .composites import result_of, scored_or_not, unevaluated
from .content import ContentFilter
from .job import Decision, Gathering, InnerOutcome, Payload, Waiting, flattened, is_inner, unmarked
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
class _Waited:
    judge: list[Waiting] = field(default_factory=list)
    ended: list[tuple[Waiting, NoScore]] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Source of the next steps after each job. Thread-safe."""

    _metrics: JudgedMetrics
    _sample: JudgedSample
    _content: ContentFilter

    def after_score(self, payload: Payload, scored: ScoredTurn, score: Score, judged: Judged) -> NextSteps:
        waited = _Waited()
        for one in payload.then:
            self._decide(one, payload, scored, score, waited)
        cost = judged.cost_usd if is_inner(payload.key) else None
        return self._next_steps(payload, scored, InnerOutcome(score, payload.chance, cost), waited)

    def without_score(self, payload: Payload, scored: ScoredTurn, reason: str) -> NextSteps:
        outcome = NoScore.dropped(reason)
        own = Waiting(payload.key, payload.metric, payload.chance)
        waited = _Waited(ended=[(one, outcome) for one in (*flattened(payload.then), own)])
        return self._next_steps(payload, scored, InnerOutcome(unevaluated(payload.metric, outcome), payload.chance), waited)

    def _decide(self, waiting: Waiting, payload: Payload, scored: ScoredTurn, score: Score, waited: _Waited) -> None:
        """Judge a metric that waited for a score, or end it with all metrics that wait for it."""
        metric = self._metrics.by_key(waiting.key)
        cascade = None if metric is None else self._metrics.rule(waiting.key).cascade
        if metric is None or cascade is None:
            waited.ended.extend((one, _NOT_CONFIGURED) for one in flattened([waiting]))
            return
        chance = cascade.chance(waiting.chance, payload.chance, scored.turn, score)
        if payload.position < chance.probability:
            waited.judge.append(replace(waiting, chance=chance, decided=Decision(score.metric, score.value)))
            self._sample.choose(metric.name, waiting.key, scored, chance)
            return
        value = "no value" if score.value is None else f"{score.value:g}"
        outcome = NoScore.sampled_out(chance.probability, f" after {score.metric}: {value}")
        waited.ended.append((replace(waiting, chance=chance), outcome))
        waited.ended.extend((replace(one, chance=chance), outcome.passed_on_by(metric.name)) for one in flattened(waiting.then))

    def _next_steps(self, payload: Payload, scored: ScoredTurn, this: InnerOutcome, waited: _Waited) -> NextSteps:
        gathering = payload.gathering
        judge, ended = self._configured([*waited.judge, *(() if gathering is None else gathering.next)], waited.ended)
        found = [FollowUp(one.metric, outcome) for one, outcome in ended if not is_inner(one.key)]
        composites: list[ScoredTurn] = []
        if gathering is not None:
            known = {**gathering.found, unmarked(payload.key): this}
            known |= {unmarked(one.key): InnerOutcome(unevaluated(one.metric, outcome), one.chance) for one, outcome in ended}
            waiting: list[Waiting] = []
            for one in gathering.composites:
                made = self._composite(one, known, payload, scored)
                if made is None and judge:
                    waiting.append(one)
                elif isinstance(made, ScoredTurn):
                    composites.append(made)
                else:
                    found.append(FollowUp(one.metric, made or _NOT_CONFIGURED))
            gathering = Gathering(waiting, known, judge[1:]) if waiting else None
            if gathering is not None:  # the first job carries the others
                judge = judge[:1]
        found += [FollowUp(one.metric, job=self._job(one, payload, gathering)) for one in judge]
        return NextSteps(found, composites)

    def _configured(
        self, judge: Sequence[Waiting], ended: Sequence[tuple[Waiting, NoScore]]
    ) -> tuple[list[Waiting], list[tuple[Waiting, NoScore]]]:
        """End the metrics to judge that are no longer configured, with all metrics that wait for them."""
        removed = [one for one in judge if self._metrics.by_key(one.key) is None]
        kept = [one for one in judge if one not in removed]
        return kept, [*ended, *((one, _NOT_CONFIGURED) for one in flattened(removed))]

    def _job(self, waiting: Waiting, payload: Payload, gathering: Gathering | None) -> Job:
        metric = self._metrics.by_key(waiting.key)
        assert metric is not None  # see _configured
        following = replace(
            payload, key=waiting.key, metric=waiting.metric, chance=waiting.chance, decided=waiting.decided, then=waiting.then,
            gathering=gathering,
        )  # fmt: skip
        return following.job(metric.left_out(""), metric)

    def _composite(
        self, waiting: Waiting, known: Mapping[str, InnerOutcome], payload: Payload, scored: ScoredTurn
    ) -> ScoredTurn | NoScore | None:
        metric = self._metrics.by_key(waiting.key)
        made = None if metric is None else result_of(metric, waiting.chance, known, conversation=scored.conversation)
        if metric is None or made is None:
            return None
        found = scored_or_not(made, scored, self._content.exported(scored.turn), called_model=True)
        if isinstance(found, ScoredTurn) or payload.position < made.chance.probability:
            self._sample.choose(metric.name, waiting.key, scored, made.chance)
        return found
