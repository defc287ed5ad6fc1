"""Planner that chooses the metrics to judge on each turn.

It applies sampling rules, cascades and load shedding.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..core.clock import Clock
from ..core.feedback import METRIC as FEEDBACK
from ..core.score import SHED, Score
from ..core.tenancy import qualified
from ..core.turn import Turn
from ..evaluation import failed_turns
from ..evaluation.conditions import Known
from ..evaluation.evaluator import about, score_one
from ..evaluation.load_shedding import Shedding
from ..evaluation.references import excluded_by
from ..evaluation.scored_turn import Judged, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from ..statistics.corrected import Corrected
from ..statistics.estimates import Estimates, group_of
from .allocator import Allocator
from .baselines import History
from .composites import ALWAYS, NEVER, can_be_made, leaves, missing_in, parts, result_of, scored_or_not, unevaluated
from .content import Content
from .job import Decision, Gathering, Inner, Payload, Waiting, all_in, is_inner, judged_turn, key_of, unmarked, upstream_of
from .judged_metrics import JudgedMetrics
from .outcomes import NoScore, Outcomes, outcome_of
from .proxies import proxies_of
from .queues import Job
from .sampling import Cascade, Chance, position

_REMEMBERED = 1_000
_CERTAIN = Chance(1.0, "rule")
_ABSENT = frozenset(("no_judge", "no_embedder"))
INCOMPLETE = "incomplete_turn"
"""Reason for a skipped metric on a turn that isn't complete."""


class PlanOptions(NamedTuple):
    """Configured options for planning."""

    seed: str = ""
    """Sampling seed. Processes with the same seed choose the same traces."""
    incomplete: bool = False
    """True if incomplete turns are judged."""


@dataclass(slots=True)
class Plan:
    """Judge evaluations and outcomes of one turn."""

    scored: ScoredTurn
    place: float
    """The turn's position in the draw."""
    can_ask: Callable[[BoundMetric], bool]
    """Returns True if a model is configured for a metric."""
    chances: dict[str, Chance] = field(default_factory=dict)
    """Each metric's own chance by key, independent of metrics that are judged first."""
    after: dict[str, list[BoundMetric]] = field(default_factory=dict)
    """Metrics that wait for another one, by that metric's key."""
    body: bytes = b""
    """The redacted turn for jobs, set for the first job."""
    answered: list[ScoredTurn] = field(default_factory=list)
    """Scores without a judge call."""
    asked: list[tuple[Payload, BoundMetric]] = field(default_factory=list)
    """Evaluations that call a model."""
    jobs: list[Job] = field(default_factory=list)
    final: dict[str, Inner] = field(default_factory=dict)
    """Outcomes known at once, by unmarked key. Composites use them."""
    composites: dict[str, tuple[BoundMetric, Chance]] = field(default_factory=dict)
    """The turn's composites by key, with the chance from their own ``sample``."""


@dataclass(frozen=True, slots=True)
class FollowUp:
    """Next step for a metric that waited for a score: a job, or an outcome without a score."""

    metric: str
    outcome: NoScore | None = None
    job: Job | None = None


class Following(NamedTuple):
    """Next steps after the outcome of a job."""

    follow_ups: list[FollowUp]
    composites: list[ScoredTurn]


class Planner:
    """Planner of judge jobs. The worker uses it, and judge threads call :meth:`follow_ups`.

    Args:
        metrics: the judged metrics.
        content: redacts turns.
        outcomes: records each metric without a score.
        estimates: records the turns for which a model is called.
        shedding: the current load-shedding state.
        options: the configured options.
        failed: called with internal errors.
        clock: the clock for jobs.
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
        self.allocator: Allocator | None = None
        """Sets sampling rates, if ``judge.budget.allocate`` is configured."""
        self.corrected: Corrected | None = None
        """Estimates of verdicts corrected by calibration, if configured."""
        self._history = History()
        self._reset()

    def _reset(self) -> None:
        self._chances: OrderedDict[str, dict[str, Chance]] = OrderedDict()
        """Chances of recent turns, so that a revision is judged like the first version."""

    def after_fork_in_child(self) -> None:
        """Forget all turns, because they are the parent's."""
        self._reset()
        self.estimates.after_fork_in_child()
        if self.corrected is not None:
            self.corrected.verdicts.after_fork_in_child()
        if self.allocator is not None:
            self.allocator.reset()

    def plan(self, scored: ScoredTurn, can_ask: Callable[[BoundMetric], bool]) -> Plan:
        """Plan a turn that has its inline scores. Never raises.

        The plan contains jobs and the scores that need no judge call. Reasons for missing scores are added to the turn's own
        scores.
        """
        plan = Plan(scored, position(_subject(scored), self._options.seed), can_ask)
        first: list[BoundMetric] = []
        drawn = self._draw(plan)
        for metric in drawn:
            before = self._before(metric, scored)
            if metric.metric.kind == "code":
                plan.composites[self._key(metric, scored)] = metric, plan.chances[self._key(metric, scored)]
            elif before is None or plan.chances[self._key(metric, scored)].by == "rule" or not can_ask(metric):
                first.append(metric)
            else:
                plan.after.setdefault(self._key(before, scored), []).append(metric)
        for metric in first:
            self._consider(metric, plan)
        for key in plan.after.keys() - plan.chances.keys():  # their first metric doesn't apply to this turn
            for metric in plan.after.pop(key):
                self._consider(metric, plan)
        try:
            self._plan_composites(plan)
        except Exception as error:
            self._failed("judging", error)
            for metric, _ in plan.composites.values():
                self._outcomes.end(metric.name, scored, NoScore.error(type(error).__name__))
        plan.jobs = [payload.job(metric.left_out(""), metric) for payload, metric in plan.asked]
        return plan

    # --- composites

    def _plan_composites(self, plan: Plan) -> None:
        """Plan the inner metrics of composites, and compute composites that are complete."""
        scored, whole = plan.scored, plan.scored.conversation
        drawn = {key: found for key, found in plan.composites.items() if plan.place < found[1].probability}
        for metric, own in (found for key, found in plan.composites.items() if key not in drawn):
            self._end(self._key(metric, scored), metric.name, plan, NoScore.sampled_out(own.probability), own)
        wanted = [metric for metric, _ in drawn.values() if can_be_made(metric, plan.final, conversation=whole)]
        wanted_keys = {one.key for metric in wanted for one in leaves(metric)}
        for metric in self.metrics.inner(conversation=whole):
            if metric.key in wanted_keys:
                needing = [own for one, own in plan.composites.values() if any(each.key == metric.key for each in leaves(one))]
                self._consider(metric, plan, max(needing))
        waiting: list[tuple[BoundMetric, Chance]] = []
        for metric, own in drawn.values():
            for one in leaves(metric):
                self._take_computed(one, plan)
            if not can_be_made(metric, plan.final, conversation=whole):
                self._outcomes.end(metric.name, scored, NoScore.missing(missing_in(metric, plan.final, conversation=whole)))
                continue
            made = result_of(metric, own, plan.final, conversation=whole)
            if made is None:
                waiting.append((metric, own))
            else:
                self._end_composite(metric, made, plan)
        self._gather(waiting, plan)

    def _take_computed(self, metric: BoundMetric, plan: Plan) -> None:
        """Add the redacted score of an inner metric that calls no model."""
        key = key_of(metric, conversation=plan.scored.conversation)
        if metric.metric.kind != "code" or key in plan.final:
            return
        scored = plan.scored
        there = next((score for score in scored.scores if score.facts.identity == metric._facts.identity), None)
        score = score_one(metric, scored.turn, scored.sources) if there is None else there
        plan.final[key] = Inner(self.content.score(score, scored), ALWAYS)

    def _end_composite(self, metric: BoundMetric, made: Inner, plan: Plan) -> None:
        """Record a composite that doesn't wait for a judge."""
        scored = plan.scored
        found = scored_or_not(made, scored, self.content.exported(scored.turn, scored.redactor), asked=False)
        if isinstance(found, NoScore):
            self._outcomes.end(metric.name, scored, found)
        else:
            plan.answered.append(found)
            self._outcomes.report(scored.turn.turn_id, metric.name, outcome_of(found.scores[0]))

    def _gather(self, waiting: Sequence[tuple[BoundMetric, Chance]], plan: Plan) -> None:
        """Chain the jobs that composites wait for, so that the last job has all outcomes."""
        whole = plan.scored.conversation
        groups: list[tuple[set[int], list[tuple[BoundMetric, Chance]]]] = []
        for metric, own in waiting:
            keys = {key_of(one, conversation=whole) for one in leaves(metric)}
            needs = {at for at, (payload, _) in enumerate(plan.asked) if any(unmarked(one.key) in keys for one in payload.waits)}
            joined = [group for group in groups if group[0] & needs]
            groups = [group for group in groups if not group[0] & needs]
            groups.append(
                (needs.union(*(group[0] for group in joined)), [*(one for group in joined for one in group[1]), (metric, own)])
            )
        followers: set[int] = set()
        for needs, composites in groups:
            at, *others = sorted(needs)
            followers.update(others)
            keys = {key_of(one, conversation=whole) for metric, _ in composites for one in parts(metric)}
            gathering = Gathering(
                [Waiting(self._key(metric, plan.scored), metric.name, own) for metric, own in composites],
                {key: found for key, found in plan.final.items() if key in keys},
                [Waiting(p.key, p.metric, p.chance, p.then, p.decided) for p in (plan.asked[other][0] for other in others)],
            )
            plan.asked[at] = replace(plan.asked[at][0], gathering=gathering), plan.asked[at][1]
        plan.asked = [one for at, one in enumerate(plan.asked) if at not in followers]

    # --- judged metrics

    def _key(self, metric: BoundMetric, scored: ScoredTurn) -> str:
        return self.metrics.key(metric, conversation=scored.conversation)

    def _end(self, key: str, name: str, plan: Plan, outcome: NoScore, chance: Chance = NEVER) -> None:
        """Record a metric without a score."""
        if not is_inner(key):
            self._outcomes.end(name, plan.scored, outcome)
        self._note_final(key, plan, unevaluated(name, outcome), chance)

    def _note_final(self, key: str, plan: Plan, score: Score, chance: Chance) -> None:
        """Keep an outcome if the configuration has composites."""
        if self.metrics.composites(conversation=plan.scored.conversation):
            plan.final[unmarked(key)] = Inner(self.content.score(score, plan.scored), chance)

    def _draw(self, plan: Plan) -> list[BoundMetric]:
        """Return the metrics that apply to the turn and set their chances. Record the others."""
        scored, turn = plan.scored, plan.scored.turn
        drawn = []
        known = self._known(scored)
        earlier = self._chances.get(scored.supersedes or turn.turn_id, {}) if not scored.new else {}
        now = self._clock.time_ns() / 1e9
        composites = self.metrics.composites(conversation=scored.conversation)
        proxies = None if scored.conversation else self._proxies(scored)
        for metric in (*self.metrics.all(conversation=scored.conversation), *composites):
            key = self._key(metric, scored)
            try:
                excluded = None if metric.when is None else excluded_by(metric.when, turn)
                if excluded is not None:
                    self._end(key, metric.name, plan, NoScore.gated(f"when.{excluded}"))
                    continue
                if not (turn.complete or self._options.incomplete or scored.conversation):
                    left_out = metric.left_out(INCOMPLETE)
                    scored.scores = [*scored.scores, left_out]
                    self._note_final(key, plan, left_out, NEVER)
                    continue
                nothing = None if failed_turns.decided(metric, turn) is not None else metric.not_applicable(turn)
                if nothing is not None:  # not part of the draw: no chance could give it a score
                    if not is_inner(key):
                        scored.scores = [*scored.scores, nothing]
                    self._note_final(key, plan, nothing, NEVER)
                    continue
                plan.chances[key] = earlier.get(key) or self._allocated(
                    metric, key, scored, self.metrics.rule(key).chance(turn, known, now)
                )
                if key in earlier and self._is_certain_now(metric, key, earlier[key], plan, known):
                    plan.chances[key] = _CERTAIN
                drawn.append(metric)
                if proxies is not None and not is_inner(key):
                    for estimates in self._estimates_of(metric.name):
                        estimates.see(metric.name, turn.agent or "", scored.first_id, proxies)
            except Exception as error:
                self._failed("judging", error)
                self._end(key, metric.name, plan, NoScore.error(type(error).__name__))
        self._chances[turn.turn_id] = plan.chances
        if len(self._chances) > _REMEMBERED:
            self._chances.popitem(last=False)
        return drawn

    def _allocated(self, metric: BoundMetric, key: str, scored: ScoredTurn, chance: Chance) -> Chance:
        """Return the chance from the budget's allocation. Rules and quotas keep theirs."""
        if self.allocator is None or chance.by != "rate" or scored.conversation or is_inner(key) or metric.metric.kind == "code":
            return chance
        return Chance(self.allocator.rate(metric.name, scored.turn.agent or "", chance.probability), "budget")

    def _is_certain_now(self, metric: BoundMetric, key: str, before: Chance, plan: Plan, known: Known) -> bool:
        """Return True if a rule chooses the turn because of new user feedback.

        If the turn was already drawn, it then stands only for itself in the estimates.
        """
        rule, scored = self.metrics.rule(key), plan.scored
        if before.by == "rule" or rule.always_if is None or not any(score.metric == FEEDBACK for score in known.scores):
            return False
        if not rule.always_if.holds(scored.turn, known):
            return False
        if plan.place < before.probability and not is_inner(key):
            for estimates in self._estimates_of(metric.name):
                estimates.make_certain(metric.name, scored.first_id)
        return True

    def plan_again(self, scored: ScoredTurn, can_ask: Callable[[BoundMetric], bool]) -> Plan:
        """Plan a turn again after new user feedback. Never raises.

        This adds jobs for metrics whose rules now choose the turn and that weren't judged before.
        """
        turn = scored.turn
        plan = Plan(scored, position(_subject(scored), self._options.seed), can_ask)
        earlier = self._chances.setdefault(turn.turn_id, {})
        if len(self._chances) > _REMEMBERED:
            self._chances.popitem(last=False)
        try:
            known = self._known(scored)
            for metric in self.metrics.all(conversation=False) if turn.complete or self._options.incomplete else ():
                key = self._key(metric, scored)
                before = earlier.get(key) or self.metrics.rule(key).chance(turn)  # the quota of a forgotten turn is unknown
                if (metric.when is not None and excluded_by(metric.when, turn) is not None) or metric.not_applicable(
                    turn
                ) is not None:
                    continue
                if not self._is_certain_now(metric, key, before, plan, known):
                    continue
                earlier[key] = plan.chances[key] = _CERTAIN
                if plan.place >= before.probability:
                    self._consider(metric, plan)
        except Exception as error:
            self._failed("judging", error)
        plan.jobs = [payload.job(metric.left_out(""), metric) for payload, metric in plan.asked]
        return plan

    def _proxies(self, scored: ScoredTurn) -> tuple[float, float, float] | None:
        try:
            return proxies_of(scored)
        except Exception as error:
            self._failed("judging", error)
            return None

    def _known(self, scored: ScoredTurn) -> Known:
        """Return the facts that conditions can name in addition to the turn."""
        compared = {}
        if self.metrics.compare and not scored.conversation:
            try:
                compared = self._history.compare(scored.turn, learn=scored.new)
            except Exception as error:
                self._failed("judging", error)
        return Known(scored.scores, compared, scored.events)

    def _before(self, metric: BoundMetric, scored: ScoredTurn) -> BoundMetric | None:
        """Return the metric that a cascade judges before this one."""
        cascade = self.metrics.rule(self._key(metric, scored)).cascade
        if cascade is None:
            return None
        others = self.metrics.all(conversation=scored.conversation)
        return next((other for other in others if other.name == cascade.after), None)

    def _consider(self, metric: BoundMetric, plan: Plan, chance: Chance | None = None, decided: Decision | None = None) -> None:
        """Skip a metric, score it without a judge call, or make it a job.

        The same applies to metrics that wait for it.
        """
        scored = plan.scored
        key = self._key(metric, scored)
        chance = chance or plan.chances[key]
        can_ask = plan.can_ask(metric)
        try:
            by_itself = failed_turns.decided(metric, scored.turn) if can_ask else None
            cancelled = by_itself is not None and by_itself.status == "skipped"
            if can_ask and not cancelled and self._leaves_out(metric, plan, chance):
                return
            score = score_one(metric, scored.turn, scored.sources) if by_itself is None else about(by_itself, scored.turn)
            if can_ask and score.status == "skipped" and score.detail.get("reason") in _ABSENT:
                self._queue(metric, plan, chance, decided)
                return
            if score.status != "skipped" and not is_inner(key):
                self._answer(metric, plan, chance, decided, score)
            elif not is_inner(key):
                scored.scores = [*scored.scores, score]
            self._note_final(key, plan, score, chance)
        except Exception as error:  # a turn that can't be redacted isn't sent
            self._failed("judging", error)
            for lost in (Waiting(key, metric.name, chance), *self._those_after(key, plan)):
                self._end(lost.key, lost.metric, plan, NoScore.error(type(error).__name__), lost.chance)
            return
        first = chance if can_ask else Chance(1.0, "")
        for one in plan.after.pop(key, ()):
            its = self._key(one, scored)
            cascade = self.metrics.rule(its).cascade
            if cascade is not None:
                self._consider(one, plan, *_decide(cascade, plan.chances[its], first, scored.turn, score))

    def _leaves_out(self, metric: BoundMetric, plan: Plan, chance: Chance) -> bool:
        """Record and return True if a model isn't called because of load shedding or the draw."""
        scored, key = plan.scored, self._key(metric, plan.scored)
        this = Waiting(key, metric.name, chance)
        if self._shedding.leaves_out(metric.metric.kind):
            if plan.place < chance.probability:
                self._note_choice(metric, scored, chance)
            for one in (this, *self._those_after(key, plan)):
                self._end(one.key, one.metric, plan, NoScore.dropped(SHED), one.chance)
            return True
        if plan.place >= chance.probability:
            outcome = NoScore.sampled_out(chance.probability)
            self._end(key, metric.name, plan, outcome, chance)
            for one in self._those_after(key, plan):
                self._end(one.key, one.metric, plan, outcome.as_was(metric.name), chance)
            return True
        return False

    def _queue(self, metric: BoundMetric, plan: Plan, chance: Chance, decided: Decision | None) -> None:
        """Add a job for a metric that needs a model."""
        scored = plan.scored
        plan.body = plan.body or self.content.written(scored)
        key, now = self._key(metric, scored), self._clock.time_ns() / 1e9
        payload = Payload.of(metric, scored, chance, plan.place, now, plan.body, key)
        payload = replace(payload, decided=decided, then=self._waiting(payload.key, plan))
        plan.asked.append((payload, metric))
        self._note_choice(metric, scored, chance)

    def _answer(self, metric: BoundMetric, plan: Plan, chance: Chance, decided: Decision | None, score: Score) -> None:
        """Record a score without a judge call, such as the score of an empty turn."""
        scored = plan.scored
        if decided is not None:
            score.detail["decided_by"] = decided._asdict()
        judged = Judged(metric.metric.kind, chance.probability, None, None, chance.by, upstream_of(scored.root), asked=False)
        plan.answered.append(judged_turn(scored, score, judged, content=self.content.exported(scored.turn, scored.redactor)))
        self._outcomes.report(scored.turn.turn_id, metric.name, outcome_of(score))

    def _waiting(self, key: str, plan: Plan) -> tuple[Waiting, ...]:
        """Remove and return the metrics that wait for a metric, including nested ones."""
        found = []
        for metric in plan.after.pop(key, ()):
            its = self._key(metric, plan.scored)
            found.append(Waiting(its, metric.name, plan.chances[its], self._waiting(its, plan)))
        return tuple(found)

    def _those_after(self, key: str, plan: Plan) -> Iterator[Waiting]:
        return all_in(self._waiting(key, plan))

    def _note_choice(self, metric: BoundMetric, scored: ScoredTurn, chance: Chance) -> None:
        """Record a planned judge call in the estimates.

        If it isn't answered, similar turns stand in for it.
        """
        if not scored.conversation and not is_inner(self._key(metric, scored)):
            agent, group = scored.turn.agent or "", group_of(chance.by)
            for estimates in self._estimates_of(metric.name):
                estimates.choose(metric.name, agent, chance.probability, group, scored.first_id)

    def follow_ups(self, payload: Payload, scored: ScoredTurn, score: Score, judged: Judged) -> Following:
        """Return the next steps for all metrics that wait for a job's score. Called on any thread."""
        cost = judged.cost_usd if is_inner(payload.key) else None
        asked: list[Waiting] = []
        ended: list[tuple[Waiting, NoScore]] = []
        for one in payload.then:
            self._follow(one, payload, scored, score, asked, ended)
        return self._following(payload, scored, Inner(score, payload.chance, cost), asked, ended)

    def follow_without_score(self, payload: Payload, scored: ScoredTurn, reason: str) -> Following:
        """Return the next steps if a job can't run and composites wait for it.

        Called on any thread.
        """
        outcome = NoScore.dropped(reason)
        ended = [(one, outcome) for one in all_in(payload.then)]
        if not is_inner(payload.key):
            ended.append((Waiting(payload.key, payload.metric, payload.chance), outcome))
        return self._following(payload, scored, Inner(unevaluated(payload.metric, outcome), payload.chance), [], ended)

    def _follow(
        self,
        waiting: Waiting,
        payload: Payload,
        scored: ScoredTurn,
        score: Score,
        asked: list[Waiting],
        ended: list[tuple[Waiting, NoScore]],
    ) -> None:
        """Judge a metric that waited for a score, or end it with all metrics that wait for it."""
        metric = self.metrics.by_key(waiting.key)
        cascade = None if metric is None else self.metrics.rule(waiting.key).cascade
        if metric is None or cascade is None:
            ended += [(one, NoScore.dropped("not_configured")) for one in all_in([waiting])]
            return
        chance, decided = _decide(cascade, waiting.chance, payload.chance, scored.turn, score)
        if payload.place < chance.probability:
            asked.append(replace(waiting, chance=chance, decided=decided))
            self._note_choice(metric, scored, chance)
            return
        value = "no value" if score.value is None else f"{score.value:g}"
        outcome = NoScore.sampled_out(chance.probability, f" after {score.metric}: {value}")
        ended.append((replace(waiting, chance=chance), outcome))
        ended += [(replace(one, chance=chance), outcome.as_was(metric.name)) for one in all_in(waiting.then)]

    def _following(
        self, payload: Payload, scored: ScoredTurn, this: Inner, asked: list[Waiting], ended: Sequence[tuple[Waiting, NoScore]]
    ) -> Following:
        found = [FollowUp(one.metric, outcome) for one, outcome in ended]
        gathering, composites = payload.gathering, []
        if gathering is not None:
            known = {**gathering.found, unmarked(payload.key): this}
            known |= {unmarked(one.key): Inner(unevaluated(one.metric, outcome), one.chance) for one, outcome in ended}
            asked = [*asked, *gathering.next]
            for one in [one for one in asked if self.metrics.by_key(one.key) is None]:
                asked.remove(one)
                outcome = NoScore.dropped("not_configured")
                known |= {unmarked(each.key): Inner(unevaluated(each.metric, outcome), each.chance) for each in all_in([one])}
                found += [FollowUp(each.metric, outcome) for each in all_in([one]) if not is_inner(each.key)]
            still: list[Waiting] = []
            for one in gathering.composites:
                made = self._composite(one, known, payload, scored)
                if made is None and asked:
                    still.append(one)
                elif isinstance(made, ScoredTurn):
                    composites.append(made)
                else:
                    found.append(FollowUp(one.metric, made or NoScore.dropped("not_configured")))
            gathering = Gathering(still, known, asked[1:]) if still else None
            if gathering is not None:
                asked = asked[:1]
        for one in asked:
            its = replace(
                payload,
                key=one.key,
                metric=one.metric,
                chance=one.chance,
                decided=one.decided,
                then=one.then,
                gathering=gathering,
            )
            metric = self.metrics.by_key(one.key)
            if metric is None:
                found.append(FollowUp(one.metric, NoScore.dropped("not_configured")))
            else:
                found.append(FollowUp(one.metric, job=its.job(metric.left_out(""), metric)))
        return Following(found, composites)

    def _composite(
        self, waiting: Waiting, known: Mapping[str, Inner], payload: Payload, scored: ScoredTurn
    ) -> ScoredTurn | NoScore | None:
        """Return a composite or a reason without a score, or None if an outcome is missing."""
        metric = self.metrics.by_key(waiting.key)
        made = None if metric is None else result_of(metric, waiting.chance, known, conversation=scored.conversation)
        if metric is None or made is None:
            return None
        found = scored_or_not(made, scored, self.content.exported(scored.turn), asked=True)
        if isinstance(found, ScoredTurn) or payload.place < made.chance.probability:
            self._note_choice(metric, scored, made.chance)
        return found

    def note_sent(self, scored: ScoredTurn) -> None:
        """Record an emitted judged score in the estimates. On the worker."""
        judged, turn = scored.judged, scored.turn
        if judged is None or scored.conversation:
            return
        for score in scored.scores:
            if score.status == "ok" and score.value is not None and not score.vacuous:
                trace = qualified(turn.tenant, f"{scored.root.trace_id:032x}")
                group = group_of(judged.decided_by) if judged.asked else "itself"
                if self.allocator is not None and judged.asked:
                    forced = judged.decided_by == "rule"
                    self.allocator.judged(score.metric, turn.agent or "", score.value, judged.cost_usd, forced=forced)
                for estimates in self._estimates_of(score.metric):
                    value = score.value if estimates is self.estimates else score.verdict
                    if value is not None:
                        estimates.add(
                            score.metric, turn.agent or "", trace, scored.first_id, float(value), judged.probability, group,
                            turn.revision, scored.absorbs,
                        )  # fmt: skip

    def _estimates_of(self, metric: str) -> tuple[Estimates, ...]:
        """Return the estimates of a metric's scores and, if it is calibrated, of its verdicts."""
        corrected = self.corrected
        return (
            (self.estimates,) if corrected is None or metric not in corrected.confusions else (self.estimates, corrected.verdicts)
        )


def _subject(scored: ScoredTurn) -> str:
    """Return the id from which a turn's position in the draw is computed."""
    turn = scored.turn
    return qualified(turn.tenant, turn.conversation_id or "" if scored.conversation else f"{scored.root.trace_id:032x}")


def _decide(cascade: Cascade, own: Chance, first: Chance, turn: Turn, score: Score) -> tuple[Chance, Decision]:
    """Return a metric's chance after the score that it waited for, and the decision."""
    scores = [score] if score.status == "ok" else []
    return cascade.chance(own, first, turn, Known(scores)), Decision(score.metric, score.value)
