"""Planning of judge jobs for a turn, with cascades, composites, and load shedding."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from ..core.clock import Clock
from ..core.score import SHED, Score, outcome_of
from ..core.turn import Turn
from ..evaluation.evaluator import about, decided_without_judge, score_one
from ..evaluation.limits import Shedding
from ..evaluation.references import applies
from ..evaluation.scored_turn import ScoredTurn
from ..metrics.bound_metric import BoundMetric
from .choose import Chooser, JudgedMetrics, JudgedSample, MetricChoice
from .job import (
    ContentFilter,
    Decision,
    Gathering,
    InnerOutcome,
    Payload,
    Waiting,
    flattened,
    is_inner,
    judged_by,
    judged_turn,
    key_of,
    unmarked,
)
from .models.prompt import SYSTEM
from .outcomes import (
    ALWAYS,
    NEVER,
    NoScore,
    Outcomes,
    can_be_made,
    leaves,
    missing_in,
    parts,
    result_of,
    scored_or_not,
    unevaluated,
)
from .queues import Job
from .sampling import Chance

_ABSENT = frozenset(("no_judge", "no_embedder"))
_Composite = tuple[BoundMetric, Chance]
"""Composite metric, and its judging probability from the ``sample`` option."""


@dataclass(eq=False)
class Planner:
    metrics: JudgedMetrics
    chooser: Chooser
    sample: JudgedSample
    content: ContentFilter
    outcomes: Outcomes
    shedding: Shedding
    failed: Callable[[str, BaseException], None]
    clock: Clock

    def plan(
        self, scored: ScoredTurn, can_ask: Callable[[BoundMetric], bool], *, again: bool = False
    ) -> tuple[list[ScoredTurn], list[Job]]:
        """Plan a turn's judge jobs. Return the scores that don't need a judge call, and the planned jobs. Never raises.

        The turn must already have its inline scores. Skipped scores are added to ``scored``. If ``again`` is true, plan only
        metrics that a sampling rule newly selects because of user feedback.
        """
        draft = _Draft(self, scored, can_ask)
        try:
            if any(text and text.startswith(SYSTEM[:60]) for text in (scored.turn.system, scored.turn.input)):
                return [], []  # a gateway recorded a judge call as a turn
            for choice in self.chooser.choose_again(scored) if again else self.chooser.choose(scored):
                draft.add(choice)
        except Exception as error:
            self.failed("judging", error)
        draft.plan_metrics()
        if not again:
            draft.plan_composites()
        return draft.answered, [payload.job(metric) for payload, metric in draft.calls]

    def may_score(self, conversation: Turn) -> bool:
        metrics = (*self.metrics.judged[True], *self.metrics.inner[True])
        scores = [score_one(metric, conversation) for metric in metrics if applies(metric.when, conversation)]
        return any(score.status != "skipped" or score.detail.get("reason") in _ABSENT for score in scores)


class _Draft:
    def __init__(self, planner: Planner, scored: ScoredTurn, can_ask: Callable[[BoundMetric], bool]) -> None:
        self._planner = planner
        self._metrics, self._outcomes, self._content = planner.metrics, planner.outcomes, planner.content
        self._scored = scored
        self._is_conversation = scored.conversation
        self._can_ask = can_ask
        self._position = planner.chooser.position(scored)
        self._chosen: list[BoundMetric] = []
        self._chances: dict[str, Chance] = {}
        """Judging probabilities by metric key, before ``sample.cascade`` changes a probability based on another metric's score."""
        self._composites: dict[str, _Composite] = {}
        self._dependents: dict[str, list[BoundMetric]] = {}
        """Mapping from a metric's key to the metrics that wait for this metric."""
        self._known: dict[str, InnerOutcome] = {}
        """Outcomes that composites can use without a judge call. The keys are metric keys without the prefix ``inner``."""
        self._body = b""
        self.calls: list[tuple[Payload, BoundMetric]] = []
        self.answered: list[ScoredTurn] = []

    def add(self, choice: MetricChoice) -> None:
        metric, key, chance, excluded = choice
        try:
            if chance is not None:
                self._chances[key] = chance
                if metric.inner:
                    self._composites[key] = metric, chance
                else:
                    self._chosen.append(metric)
            elif isinstance(excluded, NoScore):
                self._end(key, metric.name, excluded)
            elif excluded is not None:
                self._skip(key, excluded, NEVER)
        except Exception as error:
            self._planner.failed("judging", error)
            self._end(key, metric.name, NoScore.error(type(error).__name__))

    def _key(self, metric: BoundMetric) -> str:
        return self._metrics.key(metric, conversation=self._is_conversation)

    def _end(self, key: str, name: str, outcome: NoScore, chance: Chance = NEVER) -> None:
        if not is_inner(key):
            self._outcomes.end(name, self._scored, outcome)
        self._remember(key, unevaluated(name, outcome), chance)

    def _skip(self, key: str, score: Score, chance: Chance) -> None:
        if not is_inner(key):
            self._scored.add_scores([score])
        self._remember(key, score, chance)

    def _remember(self, key: str, score: Score, chance: Chance) -> None:
        if self._metrics.composites[self._is_conversation]:
            self._known[unmarked(key)] = InnerOutcome(self._content.score(score, self._scored), chance)

    # --- metrics

    def plan_metrics(self) -> None:
        first: list[BoundMetric] = []
        for metric in self._chosen:
            cascade = self._metrics.rule(self._key(metric)).cascade
            others = self._metrics.judged[self._is_conversation]
            before = cascade and next((other for other in others if other.name == cascade.after), None)
            if before is None or self._chances[self._key(metric)].by == "rule" or not self._can_ask(metric):
                first.append(metric)
            else:
                self._dependents.setdefault(self._key(before), []).append(metric)
        for metric in first:
            self._judge(metric, self._chances[self._key(metric)])
        for key in self._dependents.keys() - self._chances.keys():  # their first metric doesn't apply to this turn
            for metric in self._dependents.pop(key):
                self._judge(metric, self._chances[self._key(metric)])

    def _judge(self, metric: BoundMetric, chance: Chance, decision: Decision | None = None) -> None:
        """If a judge call is needed, create a job, which includes metrics that wait for the score. Otherwise, record an outcome."""
        scored, key, can_ask = self._scored, self._key(metric), self._can_ask(metric)
        try:
            decided = decided_without_judge(metric, scored.turn) if can_ask else None
            canceled = decided is not None and decided.status == "skipped"
            if can_ask and not canceled and self._leave_out(metric, key, chance):
                return
            score = score_one(metric, scored.turn, scored.sources) if decided is None else about(decided, scored.turn)
            if score.status == "skipped":
                if can_ask and score.detail.get("reason") in _ABSENT:
                    self._body = self._body or self._content.redacted_json(scored)
                    now = self._planner.clock.time_ns() / 1e9
                    payload = Payload.for_metric(metric, scored, chance, self._position, now, self._body, key)
                    self.calls.append((replace(payload, decided=decision, then=self._take_waiting(key)), metric))
                    self._planner.sample.record_choice(metric.name, key, scored, chance)
                    return
                self._skip(key, score, chance)
            else:
                if not is_inner(key):
                    self._answer(metric, chance, decision, score)
                self._remember(key, score, chance)
        except Exception as error:  # a turn that can't be redacted isn't sent
            self._planner.failed("judging", error)
            for lost in (Waiting(key, metric.name, chance), *flattened(self._take_waiting(key))):
                self._end(lost.key, lost.metric, NoScore.error(type(error).__name__), lost.chance)
            return
        first = chance if can_ask else Chance(1.0, "")
        for waiting in self._dependents.pop(key, ()):
            its_key = self._key(waiting)
            cascade = self._metrics.rule(its_key).cascade
            if cascade is not None:
                its_chance = cascade.chance(self._chances[its_key], first, scored.turn, score)
                self._judge(waiting, its_chance, Decision(score.metric, score.value))

    def _leave_out(self, metric: BoundMetric, key: str, chance: Chance) -> bool:
        shed, drawn = self._planner.shedding.skips(metric.metric.kind), self._position < chance.probability
        if drawn and not shed:
            return False
        if shed:
            if drawn:
                self._planner.sample.record_choice(metric.name, key, self._scored, chance)
            outcome = dependents_outcome = NoScore.dropped(SHED)
        else:
            outcome = NoScore.sampled_out(chance.probability)
            dependents_outcome = outcome.passed_on_by(metric.name)
        self._end(key, metric.name, outcome, chance)
        for one in flattened(self._take_waiting(key)):
            self._end(one.key, one.metric, dependents_outcome, one.chance if shed else chance)
        return True

    def _answer(self, metric: BoundMetric, chance: Chance, decision: Decision | None, score: Score) -> None:
        scored = self._scored
        if decision is not None:
            score.detail["decided_by"] = decision._asdict()
        judged = judged_by(metric.metric.kind, chance, scored.root, called_model=False)
        self.answered.append(judged_turn(scored, score, judged, content=self._content.exported(scored.turn, scored.redactor)))
        self._outcomes.report(scored.turn.turn_id, metric.name, outcome_of(score))

    def _take_waiting(self, key: str) -> tuple[Waiting, ...]:
        found = []
        for metric in self._dependents.pop(key, ()):
            its_key = self._key(metric)
            found.append(Waiting(its_key, metric.name, self._chances[its_key], self._take_waiting(its_key)))
        return tuple(found)

    # --- composites

    def plan_composites(self) -> None:
        """Plan the inner metrics of composites. If all inner outcomes are known, compute the composite."""
        try:
            drawn = []
            for key, (metric, own) in self._composites.items():
                if self._position < own.probability:
                    drawn.append((metric, own))
                else:
                    self._end(key, metric.name, NoScore.sampled_out(own.probability), own)
            whole = self._is_conversation
            made = [metric for metric, _ in drawn if can_be_made(metric, self._known, conversation=whole)]
            needed = {leaf.key for metric in made for leaf in leaves(metric)}
            for metric in self._metrics.inner[whole]:
                if metric.key in needed:  # judged only as a part of these composites
                    chances = [
                        own for one, own in self._composites.values() if any(leaf.key == metric.key for leaf in leaves(one))
                    ]
                    self._judge(metric, max(chances))
            self._gather([(metric, own) for metric, own in drawn if not self._finish_composite(metric, own)])
        except Exception as error:
            self._planner.failed("judging", error)
            for metric, _ in self._composites.values():
                self._outcomes.end(metric.name, self._scored, NoScore.error(type(error).__name__))

    def _finish_composite(self, metric: BoundMetric, own: Chance) -> bool:
        """Record a composite's result. If the composite still waits for a judged inner metric, return False."""
        scored, conversation = self._scored, self._is_conversation
        for leaf in leaves(metric):
            key = key_of(leaf, conversation=conversation)
            if leaf.metric.kind == "code" and key not in self._known:
                there = next((score for score in scored.scores if score.facts.identity == leaf._facts.identity), None)
                score = score_one(leaf, scored.turn, scored.sources) if there is None else there
                self._known[key] = InnerOutcome(self._content.score(score, scored), ALWAYS)
        if not can_be_made(metric, self._known, conversation=conversation):
            found: ScoredTurn | NoScore = NoScore.missing(missing_in(metric, self._known, conversation=conversation))
        else:
            made = result_of(metric, own, self._known, conversation=conversation)
            if made is None:
                return False
            found = scored_or_not(made, scored, self._content.exported(scored.turn, scored.redactor), called_model=False)
        if isinstance(found, NoScore):
            self._outcomes.end(metric.name, scored, found)
        else:
            self.answered.append(found)
            self._outcomes.report(scored.turn.turn_id, metric.name, outcome_of(found.scores[0]))
        return True

    def _gather(self, waiting: Sequence[_Composite]) -> None:
        """Chain the jobs for each composite's inner metrics, so that the last job contains all inner outcomes."""
        conversation, chained = self._is_conversation, set()
        groups = []
        for metric, own in waiting:
            keys = {key_of(leaf, conversation=conversation) for leaf in leaves(metric)}
            calls = {place for place, (call, _) in enumerate(self.calls) if any(unmarked(one.key) in keys for one in call.waits)}
            groups.append(_Group(calls, [(metric, own)]))
        for group in _joined(groups):
            first, *others = sorted(group.calls)
            chained.update(others)
            payload, metric = self.calls[first]
            after = [self.calls[other][0] for other in others]
            keys = {key_of(part, conversation=conversation) for one, _ in group.composites for part in parts(one)}
            gathering = Gathering(
                [Waiting(self._key(one), one.name, own) for one, own in group.composites],
                {key: found for key, found in self._known.items() if key in keys},
                [Waiting(one.key, one.metric, one.chance, one.then, one.decided) for one in after],
            )
            self.calls[first] = replace(payload, gathering=gathering), metric
        self.calls = [call for number, call in enumerate(self.calls) if number not in chained]


class _Group(NamedTuple):
    calls: set[int]
    composites: list[_Composite]


def _joined(composites: Iterable[_Group]) -> list[_Group]:
    groups: list[_Group] = []
    for one in composites:
        joined = [group for group in groups if group.calls & one.calls]
        groups = [group for group in groups if not group.calls & one.calls]
        calls = one.calls.union(*(group.calls for group in joined))
        groups.append(_Group(calls, [*(each for group in joined for each in group.composites), *one.composites]))
    return groups
