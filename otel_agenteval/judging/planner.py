"""Plans which metrics are judged on a turn: by rules, rates and quotas, by cascades, and by what is switched off at the moment."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..core.clock import Clock
from ..core.score import SHED, Score
from ..core.tenancy import qualified
from ..core.turn import Turn
from ..evaluation.conditions import Known
from ..evaluation.evaluator import score_one
from ..evaluation.load_shedding import Shedding
from ..evaluation.references import excluded_by
from ..evaluation.scored_turn import Judged, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from ..statistics.estimates import Estimates, group_of
from .baselines import History
from .content import Content
from .job import Decision, Payload, Waiting, judged_turn, key_of, names_in, upstream_of
from .judged_metrics import JudgedMetrics
from .outcomes import NoScore, Outcomes, outcome_of
from .queues import Job
from .sampling import Cascade, Chance, position

_REMEMBERED = 1_000
_ABSENT = frozenset(("no_judge", "no_embedder"))
INCOMPLETE = "incomplete_turn"
"""Why a metric is skipped on a turn that was closed too early."""


class PlanOptions(NamedTuple):
    """What the configuration says about planning."""

    seed: str = ""
    """Of the sampling: processes with the same one choose the same traces."""
    incomplete: bool = False
    """Whether turns are judged that are not complete."""


@dataclass(slots=True)
class Plan:
    """What is judged on one turn."""

    scored: ScoredTurn
    place: float
    """Its place in the draw."""
    can_ask: Callable[[BoundMetric], bool]
    """Whether there is a model for a metric."""
    chances: dict[str, Chance] = field(default_factory=dict)
    """By key of the metric: its own, whatever is judged before it."""
    after: dict[str, list[BoundMetric]] = field(default_factory=dict)
    """By key of the metric that is judged first: those that wait for it."""
    body: bytes = b""
    """The turn as it leaves, once a job needs it."""
    answered: list[ScoredTurn] = field(default_factory=list)
    """Scores that took no question."""
    jobs: list[Job] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class FollowUp:
    """What follows for a metric that waited for a score: a job, or no score."""

    metric: str
    outcome: NoScore | None = None
    job: Job | None = None


class Planner:
    """Plans turns. Used on the worker, but for :meth:`follow_ups`.

    Args:
        metrics: what is judged.
        content: what of a turn may leave.
        outcomes: learns of each metric that gives no score.
        estimates: learns for which turns a model is to be asked.
        shedding: what is left out at the moment, for lack of time.
        options: as configured.
        failed: called with faults of ours.
        clock: dates jobs.
    """

    def __init__(
        self,
        metrics: JudgedMetrics,
        content: Content,
        outcomes: Outcomes,
        estimates: Estimates,
        shedding: Shedding,
        options: PlanOptions,
        failed: Callable[[str, BaseException], None],
        clock: Clock,
    ) -> None:
        self.metrics = metrics
        self.content = content
        self.estimates = estimates
        self._outcomes = outcomes
        self._shedding = shedding
        self._options = options
        self._failed = failed
        self._clock = clock
        self._history = History()
        self._reset()

    def _reset(self) -> None:
        self._chances: OrderedDict[str, dict[str, Chance]] = OrderedDict()
        """Of recent turns: what is judged once is judged again when it is revised."""

    def after_fork_in_child(self) -> None:
        """Forget the turns: they are the parent's."""
        self._reset()
        self.estimates.after_fork_in_child()

    def plan(self, scored: ScoredTurn, can_ask: Callable[[BoundMetric], bool]) -> Plan:
        """What is judged on a turn that has its inline scores, and the scores that take no question. Never raises.

        A reason why there is no score is added to the turn's own scores.
        """
        plan = Plan(scored, position(_subject(scored), self._options.seed), can_ask)
        first: list[BoundMetric] = []
        for metric in self._draw(plan):
            before = self._before(metric, scored)
            if before is None or plan.chances[_key(metric, scored)].by == "rule" or not can_ask(metric):
                first.append(metric)
            else:
                plan.after.setdefault(_key(before, scored), []).append(metric)
        for metric in first:
            self._consider(metric, plan)
        for key in plan.after.keys() - plan.chances.keys():  # what they wait for is not for this turn
            for metric in plan.after.pop(key):
                self._consider(metric, plan)
        return plan

    def _draw(self, plan: Plan) -> list[BoundMetric]:
        """The metrics that the turn is for, once their chances are known; the others are gated."""
        scored, turn = plan.scored, plan.scored.turn
        drawn = []
        known = self._known(scored)
        earlier = self._chances.get(scored.supersedes or turn.turn_id, {}) if not scored.new else {}
        now = self._clock.time_ns() / 1e9
        for metric in self.metrics.all(conversation=scored.conversation):
            key = _key(metric, scored)
            try:
                excluded = None if metric.when is None else excluded_by(metric.when, turn)
                if excluded is not None:
                    self._outcomes.end(metric.name, scored, NoScore.gated(f"when.{excluded}"))
                    continue
                if not (turn.complete or self._options.incomplete or scored.conversation):
                    scored.scores = [*scored.scores, metric.left_out(INCOMPLETE)]
                    continue
                nothing = metric.not_applicable(turn)
                if nothing is not None:  # it takes no part in the draw: no chance could give it a score
                    scored.scores = [*scored.scores, nothing]
                    continue
                plan.chances[key] = earlier.get(key) or self.metrics.rule(key).chance(turn, known, now)
                drawn.append(metric)
            except Exception as error:
                self._failed("judging", error)
                self._outcomes.end(metric.name, scored, NoScore.error(type(error).__name__))
        self._chances[turn.turn_id] = plan.chances
        if len(self._chances) > _REMEMBERED:
            self._chances.popitem(last=False)
        return drawn

    def _known(self, scored: ScoredTurn) -> Known:
        """What conditions may name beside the turn itself."""
        compared = {}
        if self.metrics.compare and not scored.conversation:
            try:
                compared = self._history.compare(scored.turn, learn=scored.new)
            except Exception as error:
                self._failed("judging", error)
        return Known(scored.scores, compared, scored.events)

    def _before(self, metric: BoundMetric, scored: ScoredTurn) -> BoundMetric | None:
        """The metric that is judged before this one."""
        cascade = self.metrics.rule(_key(metric, scored)).cascade
        if cascade is None:
            return None
        others = self.metrics.all(conversation=scored.conversation)
        return next((other for other in others if other.name == cascade.after), None)

    def _consider(self, metric: BoundMetric, plan: Plan, chance: Chance | None = None, decided: Decision | None = None) -> None:
        """Leave a metric out, answer it without a question, or make it a job, together with those that wait for it."""
        scored = plan.scored
        key = _key(metric, scored)
        chance = chance or plan.chances[key]
        can_ask = plan.can_ask(metric)
        try:
            if can_ask and self._leaves_out(metric, plan, chance):
                return
            score = score_one(metric, scored.turn, scored.sources)
            if can_ask and score.status == "skipped" and score.detail.get("reason") in _ABSENT:
                self._queue(metric, plan, chance, decided, score)
                return
            if score.status == "skipped":
                scored.scores = [*scored.scores, score]
            else:
                self._answer(metric, plan, chance, decided, score)
        except Exception as error:  # nothing leaves a turn that could not be redacted
            self._failed("judging", error)
            for name in (metric.name, *self._names_after(key, plan)):
                self._outcomes.end(name, scored, NoScore.error(type(error).__name__))
            return
        first = chance if can_ask else Chance(1.0, "")
        for one in plan.after.pop(key, ()):
            its = _key(one, scored)
            cascade = self.metrics.rule(its).cascade
            if cascade is not None:
                self._consider(one, plan, *_decide(cascade, plan.chances[its], first, scored.turn, score))

    def _leaves_out(self, metric: BoundMetric, plan: Plan, chance: Chance) -> bool:
        """Whether a model could be asked and is not, for lack of time or by the draw."""
        scored, key = plan.scored, _key(metric, plan.scored)
        if self._shedding.leaves_out(metric.metric.kind):
            if plan.place < chance.probability:
                self._note_choice(metric, scored, chance)
            for name in (metric.name, *self._names_after(key, plan)):
                self._outcomes.end(name, scored, NoScore.dropped(SHED))
            return True
        if plan.place >= chance.probability:
            outcome = NoScore.sampled_out(chance.probability)
            self._outcomes.end(metric.name, scored, outcome)
            for name in self._names_after(key, plan):
                self._outcomes.end(name, scored, outcome.as_was(metric.name))
            return True
        return False

    def _queue(self, metric: BoundMetric, plan: Plan, chance: Chance, decided: Decision | None, score: Score) -> None:
        """A model has to be asked."""
        scored = plan.scored
        plan.body = plan.body or self.content.written(scored)
        payload = Payload.of(metric, scored, chance, plan.place, self._clock.time_ns() / 1e9, plan.body)
        payload = replace(payload, decided=decided, then=self._waiting(payload.key, plan))
        plan.jobs.append(payload.job(score, metric))
        self._note_choice(metric, scored, chance)

    def _answer(self, metric: BoundMetric, plan: Plan, chance: Chance, decided: Decision | None, score: Score) -> None:
        """The turn answers for itself, as an empty one does."""
        scored = plan.scored
        if decided is not None:
            score.detail["decided_by"] = decided._asdict()
        judged = Judged(metric.metric.kind, chance.probability, None, None, chance.by, upstream_of(scored.root), asked=False)
        plan.answered.append(judged_turn(scored, score, judged, content=self.content.exported(scored.turn, scored.redactor)))
        self._outcomes.report(scored.turn.turn_id, metric.name, outcome_of(score))

    def _waiting(self, key: str, plan: Plan) -> tuple[Waiting, ...]:
        """The metrics that wait for one, with those that wait for them. They are no longer in the plan then."""
        found = []
        for metric in plan.after.pop(key, ()):
            its = _key(metric, plan.scored)
            found.append(Waiting(its, metric.name, plan.chances[its], self._waiting(its, plan)))
        return tuple(found)

    def _names_after(self, key: str, plan: Plan) -> Iterator[str]:
        return names_in(self._waiting(key, plan))

    def _note_choice(self, metric: BoundMetric, scored: ScoredTurn, chance: Chance) -> None:
        """A model is to be asked: if it gives no answer, the answers to like questions stand for it."""
        if not scored.conversation:
            agent, group = scored.turn.agent or "", group_of(chance.by)
            self.estimates.choose(metric.name, agent, chance.probability, group, scored.first_id)

    def follow_ups(self, payload: Payload, scored: ScoredTurn, score: Score) -> list[FollowUp]:
        """What follows for the metrics that wait for the score of a job. Called on any thread."""
        return [found for one in payload.then for found in self._follow_up(one, payload, scored, score)]

    def _follow_up(self, waiting: Waiting, payload: Payload, scored: ScoredTurn, score: Score) -> list[FollowUp]:
        metric = self.metrics.by_key(waiting.key)
        cascade = None if metric is None else self.metrics.rule(waiting.key).cascade
        if metric is None or cascade is None:
            return [FollowUp(name, NoScore.dropped("not_configured")) for name in names_in([waiting])]
        chance, decided = _decide(cascade, waiting.chance, payload.chance, scored.turn, score)
        if payload.place < chance.probability:
            its = replace(payload, key=waiting.key, metric=metric.name, chance=chance, decided=decided, then=waiting.then)
            self._note_choice(metric, scored, chance)
            return [FollowUp(metric.name, job=its.job(metric.left_out(""), metric))]
        value = "no value" if score.value is None else f"{score.value:g}"
        outcome = NoScore.sampled_out(chance.probability, f" after {score.metric}: {value}")
        rest = [FollowUp(name, outcome.as_was(metric.name)) for name in names_in(waiting.then)]
        return [FollowUp(metric.name, outcome), *rest]

    def note_sent(self, scored: ScoredTurn) -> None:
        """A judged score was sent out: the estimates learn of it. On the worker."""
        judged, turn = scored.judged, scored.turn
        if judged is None or scored.conversation:
            return
        for score in scored.scores:
            if score.status == "ok" and score.value is not None and not score.vacuous:
                trace = qualified(turn.tenant, f"{scored.root.trace_id:032x}")
                group = group_of(judged.decided_by) if judged.asked else "itself"
                self.estimates.add(
                    score.metric, turn.agent or "", trace, scored.first_id, score.value, judged.probability, group,
                    turn.revision, scored.absorbs,
                )  # fmt: skip


def _key(metric: BoundMetric, scored: ScoredTurn) -> str:
    return key_of(metric, conversation=scored.conversation)


def _subject(scored: ScoredTurn) -> str:
    """What a turn's place follows from."""
    turn = scored.turn
    return qualified(turn.tenant, turn.conversation_id or "" if scored.conversation else f"{scored.root.trace_id:032x}")


def _decide(cascade: Cascade, own: Chance, first: Chance, turn: Turn, score: Score) -> tuple[Chance, Decision]:
    """The chance of a metric after the score that it waits for, and what its own score says about that."""
    scores = [score] if score.status == "ok" else []
    return cascade.chance(own, first, turn, Known(scores)), Decision(score.metric, score.value)
