"""Which judged metrics a turn is asked about: by rules, rates and quotas, by cascades, and by what is switched off just now."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..core import jsonio
from ..core.clock import Clock
from ..core.score import GATED, SHED, Score
from ..core.tenancy import qualified
from ..core.turn import Turn
from ..evaluation.conditions import EVENT_PREFIX, Known
from ..evaluation.load_shedding import Shedding
from ..evaluation.redaction import Exporter, Redactor
from ..evaluation.references import excluded_by, tell_sources
from ..evaluation.scored_turn import Judged, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from ..statistics.estimates import Estimates, group_of
from .baselines import History
from .job import about, body_in, head_of, job_of, key_of, names_in, rendered, upstream_of
from .outcomes import Fates, fate_of
from .queues import Job
from .sampling import EVERY_TURN, Chance, position

_RING = 1_000
_ABSENT = frozenset(("no_judge", "no_embedder"))
INCOMPLETE = "incomplete_turn"
"""Why a metric is skipped on a turn that was closed too early."""
_COMPARED = frozenset(("new_tool", "slow", "dear"))


@dataclass(slots=True)
class Offer:
    """One turn, while its judged metrics are decided on."""

    scored: ScoredTurn
    place: float
    """In the draw."""
    can_ask: Callable[[BoundMetric], bool]
    """Whether there is somebody whom a metric asks."""
    chances: dict[str, Chance] = field(default_factory=dict)
    """By key of the metric: its own, whatever is asked before it."""
    after: dict[str, list[BoundMetric]] = field(default_factory=dict)
    """By key of the metric that is asked first: those that wait for it."""
    body: bytes = b""
    said: list[ScoredTurn] = field(default_factory=list)
    """Scores that could be made without asking."""
    jobs: list[Job] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Next:
    """What becomes of a metric that waited for a score: a job, or an outcome."""

    metric: str
    outcome: str = ""
    fate: str = ""
    reason: str | None = None
    job: Job | None = None


class Offers:
    """Decides on turns. Used on the worker, but for :meth:`following`.

    Args:
        metrics: ``llm_`` and ``embed_`` metrics of turns.
        conversation_metrics: those of whole conversations.
        seed: of the sampling.
        redact: what is taken out of a turn before it becomes a job.
        incomplete: whether turns are judged that are not complete.
        exported: what log events say of a turn's content; None is nothing.
        shedding: what is left out for the moment.
        fates: told what becomes of each metric.
        estimates: told which turns somebody is to be asked about.
        failed: told of faults of ours.
        clock: dates jobs.
    """

    def __init__(
        self,
        metrics: Sequence[BoundMetric],
        conversation_metrics: Sequence[BoundMetric],
        *,
        seed: str,
        redact: Collection[str],
        incomplete: bool,
        exported: Exporter | None,
        shedding: Shedding,
        fates: Fates,
        estimates: Estimates,
        failed: Callable[[str, BaseException], None],
        clock: Clock,
    ) -> None:
        self._by_key: dict[str, BoundMetric] = {}
        self._seed = seed
        self._redact = redact
        self._incomplete = incomplete
        self._exported = exported
        self._shedding = shedding
        self._fates = fates
        self._estimates = estimates
        self._failed = failed
        self._clock = clock
        self._history = History()
        self.reload(metrics, conversation_metrics)
        self.reset()

    def reset(self) -> None:
        """Forget the turns: they are the parent's."""
        self._chances: OrderedDict[str, dict[str, Chance]] = OrderedDict()
        """Of recent turns: what is judged once is judged again when it is revised."""

    def reload(self, metrics: Sequence[BoundMetric], conversation_metrics: Sequence[BoundMetric]) -> None:
        """Judge by these metrics from the next turn on. Jobs of others that wait are done as they were meant."""
        self._metrics = {False: list(metrics), True: list(conversation_metrics)}
        chosen = {key_of(metric, conversation=whole): metric for whole, some in self._metrics.items() for metric in some}
        self._by_key = {**self._by_key, **chosen}
        conditions = [
            metric.sample.always_if.names for metric in self._by_key.values() if metric.sample and metric.sample.always_if
        ]
        self._compares = any(not _COMPARED.isdisjoint(names) for names in conditions)
        self.wants_events = any(name.startswith(EVENT_PREFIX) for names in conditions for name in names)
        """Whether a condition of the sampling asks for events on the turn's spans."""

    def names(self, *, conversation: bool) -> list[str]:
        """Names of the judged metrics of turns, or of conversations."""
        return [metric.name for metric in self._metrics[conversation]]

    def content_of(self, turn: Turn, redactor: Redactor | None = None) -> Mapping[str, str]:
        """What goes out of a turn's content with its scores."""
        return {} if self._exported is None else self._exported(turn, redactor)

    def metric_of(self, key: str) -> BoundMetric | None:
        """The metric that a job names."""
        return self._by_key.get(key)

    def decide(self, scored: ScoredTurn, can_ask: Callable[[BoundMetric], bool]) -> Offer:
        """What is to be judged on a turn that has its inline scores, and what can be said at once. Never raises."""
        offer = Offer(scored, position(_subject(scored), self._seed), can_ask)
        first: list[BoundMetric] = []
        for metric in self._draw(offer):
            before = self._before(metric, scored.conversation)
            if before is None or offer.chances[_key(metric, scored)].by == "rule" or not can_ask(metric):
                first.append(metric)
            else:
                offer.after.setdefault(_key(before, scored), []).append(metric)
        for metric in first:
            self._consider(metric, offer)
        for key in offer.after.keys() - offer.chances.keys():  # what they wait for is not for this turn
            for metric in offer.after.pop(key):
                self._consider(metric, offer)
        return offer

    def _draw(self, offer: Offer) -> list[BoundMetric]:
        """The metrics that the turn is for, once their chances are known; the others are gated."""
        scored, turn = offer.scored, offer.scored.turn
        drawn = []
        try:
            compared = self._history.compare(turn, learn=scored.new) if self._compares and not scored.conversation else {}
        except Exception as error:
            self._failed("judging", error)
            compared = {}
        known = Known(scored.scores, compared, scored.events)
        earlier = self._chances.get(scored.supersedes or turn.turn_id, {}) if not scored.new else {}
        now = self._clock.time_ns() / 1e9
        for metric in self._metrics[scored.conversation]:
            key = _key(metric, scored)
            try:
                excluded = None if metric.when is None else excluded_by(metric.when, turn)
                if excluded is not None:
                    self._fates.end(metric.name, scored, GATED, f"gated: when.{excluded}")
                    continue
                if not (turn.complete or self._incomplete or scored.conversation):
                    scored.scores = [*scored.scores, metric.left_out(INCOMPLETE)]
                    continue
                offer.chances[key] = earlier.get(key) or (metric.sample or EVERY_TURN).chance(turn, known, now)
                drawn.append(metric)
            except Exception as error:
                self._failed("judging", error)
                self._fates.end(metric.name, scored, "error", f"error: {type(error).__name__}")
        self._chances[turn.turn_id] = offer.chances
        if len(self._chances) > _RING:
            self._chances.popitem(last=False)
        return drawn

    def _before(self, metric: BoundMetric, conversation: bool) -> BoundMetric | None:
        """The metric that is asked before this one."""
        cascade = metric.sample.cascade if metric.sample is not None else None
        if cascade is None:
            return None
        return next((other for other in self._metrics[conversation] if other.name == cascade.after), None)

    def _consider(
        self, metric: BoundMetric, offer: Offer, chance: Chance | None = None, decided: dict[str, Any] | None = None
    ) -> None:
        """One metric: left out, said, or made a job, together with those that wait for it."""
        scored = offer.scored
        key = _key(metric, scored)
        chance = chance or offer.chances[key]
        can_ask = offer.can_ask(metric)
        try:
            if can_ask and self._shedding.leaves_out(metric.metric.kind):
                if offer.place < chance.probability:
                    self._chosen(metric, scored, chance)
                for name in (metric.name, *names_in(self._waiting(key, offer))):
                    self._fates.end(name, scored, "dropped", f"dropped: {SHED}", SHED)
                return
            if can_ask and offer.place >= chance.probability:
                said = f"sampled out (p={chance.probability:g})"
                self._fates.end(metric.name, scored, "sampled_out", said)
                for name in names_in(self._waiting(key, offer)):
                    self._fates.end(name, scored, "sampled_out", f"{said}, as {metric.name} was")
                return
            score = about(metric.evaluate(scored.turn), scored.turn)
            if score.status == "skipped" and score.detail.get("reason") in _ABSENT and can_ask:
                offer.body = offer.body or self._written(scored)
                head = head_of(
                    metric, scored, chance, offer.place, self._clock.time_ns() / 1e9, decided, self._waiting(key, offer)
                )
                offer.jobs.append(job_of(score, head, metric, chance, offer.body))
                self._chosen(metric, scored, chance)
                return
            if score.status == "skipped":
                scored.scores = [*scored.scores, score]
            else:
                tell_sources(metric, score, scored.sources)
                if decided is not None:
                    score.detail["decided_by"] = decided
                judged = Judged(
                    metric.metric.kind, chance.probability, None, None, chance.by, upstream_of(scored.root), asked=False
                )
                offer.said.append(rendered(scored, score, judged, content=self.content_of(scored.turn, scored.redactor)))
                self._fates.tell(scored.turn.turn_id, metric.name, fate_of(score))
        except Exception as error:  # nothing leaves a turn that could not be redacted
            self._failed("judging", error)
            for name in (metric.name, *names_in(self._waiting(key, offer))):
                self._fates.end(name, scored, "error", f"error: {type(error).__name__}")
            return
        asked = chance if can_ask else Chance(1.0, "")
        for one in offer.after.pop(key, ()):
            own = offer.chances[_key(one, scored)]
            followed, why = _decision(one, own, asked, scored.turn, score)
            self._consider(one, offer, followed, why)

    def _waiting(self, key: str, offer: Offer) -> list[dict[str, Any]]:
        """The metrics that wait for one, with those that wait for them, as a job holds them."""
        found = []
        for metric in offer.after.pop(key, ()):
            its = _key(metric, offer.scored)
            found.append(
                {"key": its, "metric": metric.name, "chance": list(offer.chances[its]), "then": self._waiting(its, offer)}
            )
        return found

    def _chosen(self, metric: BoundMetric, scored: ScoredTurn, chance: Chance) -> None:
        """Somebody is to be asked: if there is no answer, those to the like questions stand for it."""
        if not scored.conversation:
            agent, group = scored.turn.agent or "", group_of(chance.by)
            self._estimates.choose(metric.name, agent, chance.probability, group, scored.first_id)

    def _written(self, scored: ScoredTurn) -> bytes:
        """The turn as it leaves for a queue and a judge."""
        content = scored.turn.to_dict()
        if self._redact:
            content = (scored.redactor or Redactor(self._redact)).turn(content)
        return jsonio.dumps(content).encode()

    def following(self, job: Job, head: Mapping[str, Any], origin: ScoredTurn, score: Score) -> list[Next]:
        """What becomes of the metrics that wait for this score."""
        found = []
        for one in head["then"]:
            metric = self._by_key.get(one["key"])
            if metric is None or metric.sample is None or metric.sample.cascade is None:
                found += [
                    Next(name, "dropped", "dropped: not_configured", "not_configured")
                    for name in (one["metric"], *names_in(one["then"]))
                ]
                continue
            chance, why = _decision(metric, Chance(*one["chance"]), Chance(*head["chance"]), origin.turn, score)
            if head["place"] < chance.probability:
                its = {
                    **head_of(metric, origin, chance, head["place"], head["at"], why, one["then"]),
                    "sources": head["sources"],
                }
                self._chosen(metric, origin, chance)
                found.append(Next(metric.name, job=job_of(metric.left_out(""), its, metric, chance, body_in(job))))
                continue
            value = "no value" if score.value is None else f"{score.value:g}"
            said = f"sampled out (p={chance.probability:g}) after {score.metric}: {value}"
            found.append(Next(metric.name, "sampled_out", said))
            found += [Next(name, "sampled_out", f"{said}, as {metric.name} was") for name in names_in(one["then"])]
        return found


def _key(metric: BoundMetric, scored: ScoredTurn) -> str:
    return key_of(metric, conversation=scored.conversation)


def _subject(scored: ScoredTurn) -> str:
    """What a turn's place follows from."""
    turn = scored.turn
    return qualified(turn.tenant, turn.conversation_id or "" if scored.conversation else f"{scored.root.trace_id:032x}")


def _decision(metric: BoundMetric, own: Chance, first: Chance, turn: Turn, score: Score) -> tuple[Chance, dict[str, Any]]:
    """The chance of a metric after the score that it waits for, and what is said of that on its own score."""
    scores = [score] if score.status == "ok" else []
    chance = metric.sample.cascade.chance(own, first, turn, Known(scores))
    return chance, {"metric": score.metric, "value": score.value}
