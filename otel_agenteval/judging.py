"""Judged metrics on live turns: sampled, queued, asked within the budget, and sent out like any other score.

The worker offers each turn with its inline scores. What is to be judged becomes a job that holds the turn in form ``turn.v1``;
threads of our own claim jobs, ask, and hand each score back to the worker, which renders it. A job is settled once its score
was rendered, so that what is lost in between comes back from a queue that survives.

Every metric of every turn ends in one way that is counted, whatever fails: see :meth:`Judging.fates`.
"""

from __future__ import annotations

import functools
import random
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.trace import TraceState

from . import jsonio
from .asking import Asking, GivenUp, Models, Outage, Outages, is_transient
from .budget import WINDOWS, Budget, bounds_of
from .clock import Clock
from .conditions import EVENT_PREFIX, Known
from .config import Config
from .emit.base import Judged, Root, ScoredTurn, Verdict
from .encryption import SealedQueue
from .errors import ConfigError, nearest
from .estimates import Estimates
from .history import History
from .judge import asking_anew, embedder_from, judge_from, seal_from
from .model import Turn
from .names import (
    BUDGET_CALLS,
    BUDGET_REMAINING,
    BUDGET_TOKENS,
    DROPPED,
    QUEUE_CAPACITY,
    QUEUE_SIZE,
    RESULTS,
)
from .privacy import redacted
from .queues import Job, JobQueue, outages_from, queue_from, spend_book_from
from .references import excluded_by, tell_sources
from .registry import BoundMetric
from .sampling import EVERY_TURN, Chance, position, upstream_probability
from .score import GATED, SHED, Score
from .shedding import Shedding
from .telemetry import Telemetry

_AUDIT_SEED = "audit"
_POLL = 0.5
"""Seconds between two looks at jobs that are not due yet."""
_IDLE = 30.0
_QUIET_LOOKS = 4
_RING = 1_000
_RENDERED = 10_000
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0
_PAUSE_UNASKED = 15.0
"""Seconds until a job is looked at again that the rate left no room for."""
_PAUSE_FULL = 1.0
_THREADS_PER_CLAIM = 8
_ABSENT = frozenset(("no_judge", "no_embedder"))
_COMPARED = frozenset(("new_tool", "slow", "dear"))
SCORE_BYTES = 8 * 1024
"""What a judged score is taken to hold in the worker's queue."""


@dataclass(slots=True)
class _Offer:
    """One turn, while its judged metrics are decided on."""

    scored: ScoredTurn
    place: float
    chances: dict[str, Chance] = field(default_factory=dict)
    """By key of the metric: its own, whatever is asked before it."""
    after: dict[str, list[BoundMetric]] = field(default_factory=dict)
    """By key of the metric that is asked first: those that wait for it."""
    body: bytes = b""
    said: list[ScoredTurn] = field(default_factory=list)
    """Scores that could be made without asking."""
    jobs: list[Job] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Next:
    """What becomes of a metric that waited for a score: a job, or an outcome."""

    metric: str
    outcome: str = ""
    fate: str = ""
    reason: str | None = None
    job: Job | None = None


class Judging:
    """Everything between a scored turn and its judged scores.

    Args:
        metrics: ``llm_`` and ``embed_`` metrics of turns.
        conversation_metrics: those of whole conversations.
        models: makes those who are asked; again in a forked child.
        queue: where jobs wait.
        budget: what may be asked.
        telemetry: counts what becomes of each metric on each turn.
        deliver: hands a score to the worker; False when it has no room.
        failed: told of faults of ours.
        attempts: tries per job while the models fail.
        threads: jobs at once.
        lease: seconds that a job may take.
        max_age: seconds that a job may wait.
        seed: of the sampling.
        redact: what is taken out of a turn before it becomes a job.
        audit: share of jobs whose questions are asked although the judge knows the answer.
        clock: dates jobs and retries.
        works: whether jobs are done here; else others take them from the queue.
        lasting: whether the queue outlives this process.
        outages: what processes tell each other about models that are down.
        shedding: what is left out for the moment.
        estimates: gets every judged score.
    """

    def __init__(
        self,
        metrics: Sequence[BoundMetric],
        conversation_metrics: Sequence[BoundMetric],
        models: Callable[[], Models],
        queue: JobQueue,
        budget: Budget,
        telemetry: Telemetry,
        deliver: Callable[[Verdict], bool],
        failed: Callable[[str, BaseException], None],
        *,
        attempts: int,
        threads: int,
        lease: float,
        max_age: float,
        seed: str,
        redact: Collection[str],
        audit: float = 0.0,
        clock: Clock,
        works: bool = True,
        lasting: bool = False,
        outages: Outages | None = None,
        shedding: Shedding,
        estimates: Estimates,
    ) -> None:
        self._audit = audit
        self._redact = redact
        self._metrics = {False: list(metrics), True: list(conversation_metrics)}
        self._by_key = {_key(whole, metric): metric for whole, some in self._metrics.items() for metric in some}
        self._make_models = models
        self._models = models()
        self.queue = queue
        self.lasting = lasting
        self.budget = budget
        self.estimates = estimates
        self._telemetry = telemetry
        self._deliver = deliver
        self._failed = failed
        self._attempts = attempts
        self._max_threads = threads
        self._lease = lease
        self._max_age = max_age
        self._seed = seed
        self._clock = clock
        self._shedding = shedding
        self._others = outages
        self._read_conditions()
        self._history = History()
        self.may_start = works
        """False too at interpreter exit, when no thread can be started any more."""
        self.on_fate: Callable[[str, str, str], None] | None = None
        """Told, on any thread, what became of a metric on a turn: turn id, metric, fate."""
        self._stopping = False
        self._reset()
        self._watch()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        """Notified when there may be something to do."""
        self._settled = threading.Event()
        self._threads: list[threading.Thread] = []
        self._busy: set[int] = set()
        """Threads that are doing a job."""
        self._outages = {kind: Outage(self._clock, kind, self._others) for kind in ("llm", "embed")}
        self._fates: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._chances: OrderedDict[str, dict[str, Chance]] = OrderedDict()
        """Of recent turns: what is judged once is judged again when it is revised."""
        self._telling = threading.Lock()
        self._settling = threading.Lock()
        self._claiming = threading.Lock()
        self._claimed: deque[Job] = deque()
        """Jobs that are claimed and not begun."""
        self._rendered: OrderedDict[str, None] = OrderedDict()
        """Jobs whose score was sent out, so that a lease that ended too early makes no second one."""
        self._given_up = False
        self._made: list[Job] | None = None
        """Jobs to be put, and jobs that are settled, while they are gathered."""
        self._done: list[str] | None = None

    def names(self, *, conversation: bool) -> list[str]:
        """Names of the judged metrics of turns, or of conversations."""
        return [metric.name for metric in self._metrics[conversation]]

    def reload(self, metrics: Sequence[BoundMetric], conversation_metrics: Sequence[BoundMetric]) -> None:
        """Judge by other metrics from the next turn on. Jobs that wait are done as they were meant."""
        chosen = {False: list(metrics), True: list(conversation_metrics)}
        self._by_key = {**self._by_key, **{_key(whole, metric): metric for whole, some in chosen.items() for metric in some}}
        self._metrics = chosen
        self._read_conditions()

    def _read_conditions(self) -> None:
        """What the conditions of sampling ask for: it is found out only where one does."""
        named = [metric.sample.always_if.names for metric in self._by_key.values() if metric.sample and metric.sample.always_if]
        self._compares = any(not _COMPARED.isdisjoint(names) for names in named)
        self.wants_events = any(name.startswith(EVENT_PREFIX) for names in named for name in names)
        """Whether a condition asks for events on the turn's spans."""

    # --- on the worker

    def offer(self, scored: ScoredTurn) -> list[ScoredTurn]:
        """Queue what is to be judged on a turn that has its inline scores.

        What can be said without asking is said at once: it is returned if it is a score, and stands with the turn's own scores if
        it is a reason why there is none. Never raises.
        """
        offer = _Offer(scored, position(_subject(scored), self._seed))
        first: list[BoundMetric] = []
        for metric in self._draw(offer):
            before = self._before(metric, scored.conversation)
            if (
                before is None
                or offer.chances[_key(scored.conversation, metric)].by == "rule"
                or not self._models.can_ask(metric)
            ):
                first.append(metric)
            else:
                offer.after.setdefault(_key(scored.conversation, before), []).append(metric)
        for metric in first:
            self._consider(metric, offer)
        for key in offer.after.keys() - offer.chances.keys():  # what they wait for is not for this turn
            for metric in offer.after.pop(key):
                self._consider(metric, offer)
        self._put(offer.jobs)
        return offer.said

    def _draw(self, offer: _Offer) -> list[BoundMetric]:
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
        now = self._now()
        for metric in self._metrics[scored.conversation]:
            key = _key(scored.conversation, metric)
            try:
                excluded = None if metric.when is None else excluded_by(metric.when, turn)
                if excluded is not None:
                    self._end(metric.name, scored, GATED, f"gated: when.{excluded}")
                    continue
                offer.chances[key] = earlier.get(key) or (metric.sample or EVERY_TURN).chance(turn, known, now)
                drawn.append(metric)
            except Exception as error:
                self._failed("judging", error)
                self._end(metric.name, scored, "error", f"error: {type(error).__name__}")
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
        self, metric: BoundMetric, offer: _Offer, chance: Chance | None = None, decided: dict[str, Any] | None = None
    ) -> None:
        """One metric: left out, said, or made a job, together with those that wait for it."""
        scored = offer.scored
        key = _key(scored.conversation, metric)
        chance = chance or offer.chances[key]
        can_ask = self._models.can_ask(metric)
        try:
            if can_ask and self._shedding.leaves_out(metric.metric.kind):
                for name in (metric.name, *_names(self._waiting(key, offer))):
                    self._end(name, scored, "dropped", f"dropped: {SHED}", SHED)
                return
            if can_ask and offer.place >= chance.probability:
                said = f"sampled out (p={chance.probability:g})"
                self._end(metric.name, scored, "sampled_out", said)
                for name in _names(self._waiting(key, offer)):
                    self._end(name, scored, "sampled_out", f"{said}, as {metric.name} was")
                return
            score = _about(metric.evaluate(scored.turn), scored.turn)
            if score.status == "skipped" and score.detail.get("reason") in _ABSENT and can_ask:
                offer.body = offer.body or self._written(scored.turn)
                head = self._head(metric, scored, chance, offer.place, decided, self._waiting(key, offer))
                offer.jobs.append(_job(score, head, metric, chance, offer.body))
                return
            if score.status == "skipped":
                scored.scores = [*scored.scores, score]
            else:
                tell_sources(metric, score, scored.sources)
                if decided is not None:
                    score.detail["decided_by"] = decided
                judged = Judged(metric.metric.kind, chance.probability, None, None, chance.by, _upstream(scored.root))
                offer.said.append(_rendered(scored, score, judged))
                self._tell(scored.turn.turn_id, metric.name, _fate(score))
        except Exception as error:  # nothing leaves a turn that could not be redacted
            self._failed("judging", error)
            for name in (metric.name, *_names(self._waiting(key, offer))):
                self._end(name, scored, "error", f"error: {type(error).__name__}")
            return
        asked = chance if can_ask else Chance(1.0, "")
        for one in offer.after.pop(key, ()):
            own = offer.chances[_key(scored.conversation, one)]
            followed, why = _decision(one, own, asked, scored.turn, score)
            self._consider(one, offer, followed, why)

    def _waiting(self, key: str, offer: _Offer) -> list[dict[str, Any]]:
        """The metrics that wait for one, with those that wait for them, as a job holds them."""
        found = []
        for metric in offer.after.pop(key, ()):
            its = _key(offer.scored.conversation, metric)
            found.append(
                {"key": its, "metric": metric.name, "chance": list(offer.chances[its]), "then": self._waiting(its, offer)}
            )
        return found

    def _written(self, turn: Turn) -> bytes:
        """The turn as it leaves for a queue and a judge."""
        return jsonio.dumps(redacted(turn.to_dict(), self._redact) if self._redact else turn.to_dict()).encode()

    def _head(
        self,
        metric: BoundMetric,
        scored: ScoredTurn,
        chance: Chance,
        place: float,
        decided: dict[str, Any] | None,
        then: Sequence[Mapping[str, Any]],
    ) -> dict[str, Any]:
        root, turn = scored.root, scored.turn
        return {
            "key": _key(scored.conversation, metric), "metric": metric.name, "turn_id": turn.turn_id, "revision": turn.revision, "agent": turn.agent or "",
            "conversation": scored.conversation, "new": scored.new, "supersedes": scored.supersedes, "at": self._now(), "place": place,
            "chance": list(chance), "decided": decided, "then": then, "sources": dict(scored.sources), "trace_id": f"{root.trace_id:032x}",
            "span_id": f"{root.span_id:016x}", "sampled": root.sampled, "trace_state": root.trace_state.to_header() if root.trace_state else "",
            "resource": dict(root.resource),
        }  # fmt: skip

    def _put(self, jobs: Sequence[Job]) -> None:
        if self._made is not None:
            self._made += jobs
            return
        if not jobs:
            return
        if self._stopping:
            self._drop(jobs, "shutdown")
            return
        for job in jobs:
            head = _head_of(job)
            self._tell(head["turn_id"], head["metric"], "waiting")
            for name in _names(head["then"]):
                self._tell(head["turn_id"], name, f"waiting for {head['metric']}")
        try:
            self._drop(self.queue.put_many(jobs), "queue_full")
        except Exception as error:  # its disk
            self._failed("judge_queue", error)
            self._drop(jobs, "queue_error")
        if self.may_start and len(self._threads) < self._max_threads:
            self.start(self._depth())
        self._wake()

    def _depth(self) -> int:
        """Jobs in the queue; 1 while it cannot be read."""
        try:
            return self.queue.depth
        except Exception as error:
            self._failed("judge_queue", error)
            return 1

    def start(self, jobs: int = 1) -> None:
        """Make sure that there are threads for so many jobs, as far as they are allowed. On the worker's thread."""
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if self._models == Models():
            return
        while self.may_start and not self._stopping and len(self._threads) < min(self._max_threads, jobs):
            thread = threading.Thread(target=self._run, name="otel-agenteval-judge", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # the interpreter is going down
                self.may_start = False
                return
            self._threads.append(thread)

    # --- on threads of our own

    def _run(self) -> None:
        changed = self._changed
        while not self._stopping:
            busy = False
            try:
                busy = self.step()
            except Exception as error:  # the queue's disk
                self._failed("judge_queue", error)
            if not busy:
                with changed:
                    if not self._stopping:
                        changed.wait(_POLL if self.queue.is_shared or self._depth() else _IDLE)
        self._release()  # a question under way when all was released has made a new connection

    def step(self) -> bool:
        """Do one job that is due, in this thread; False when there is none."""
        job = self._next()
        if job is None:
            return False
        self._busy.add(threading.get_ident())
        try:
            self._try(job)
        finally:
            self._busy.discard(threading.get_ident())
        return True

    def _next(self) -> Job | None:
        """A job that is due. Where there are many threads, one of them claims some for all: a file serves one of them at a time."""
        while True:
            with suppress(IndexError):
                return self._claimed.popleft()
            with self._claiming:
                if self._claimed:
                    continue
                if self._stopping:
                    return None
                found = self.queue.claim(max(1, len(self._threads) // _THREADS_PER_CLAIM), self._lease)
                if not found:
                    return None
                self._claimed.extend(found)

    def _give_back(self) -> None:
        """What was claimed and not begun is due at once again."""
        with self._claiming:
            while self._claimed:
                self._again(self._claimed.popleft(), 0.0, counted=False)

    def _try(self, job: Job) -> None:
        try:
            self._do(job)
        except Exception as error:
            self._failed("judging", error)
            if job.attempts < self._attempts:
                self._again(job, _pause(job.attempts))
            else:
                self.queue.dead(job.id, type(error).__name__)
                self._drop([job], "fault")

    def _do(self, job: Job) -> None:
        head = _head_of(job)
        metric = self._by_key.get(head["key"])
        if metric is None or not self._models.can_ask(metric):
            self._discard(job, "not_configured")
            return
        if self._now() - head["at"] > self._max_age:
            self._discard(job, "too_old")
            return
        outage = self._outages[metric.metric.kind]
        wait, trying = outage.enter()
        if wait is None:  # somebody tries; whoever has the oldest job goes next
            self._again(job, 0.0, counted=False)
            with self._changed:
                self._changed.wait(_POLL)
        elif wait:
            self._tell(head["turn_id"], metric.name, "waiting: circuit_open")
            self._again_at(job, outage.until, counted=False)
        else:
            self._judge(job, head, metric, outage, trying)

    def _judge(self, job: Job, head: dict[str, Any], metric: BoundMetric, outage: Outage, trying: bool) -> None:
        asking = Asking(self._models, self.budget, self._telemetry, metric.name, job.priority > 0)
        try:
            turn = Turn.written(jsonio.loads(job.payload.partition(b"\n")[2]))
            asked: Any = GivenUp() if job.attempts > self._attempts else asking
            start = time.perf_counter()
            with asking_anew() if self._audit and position(job.id, _AUDIT_SEED) < self._audit else nullcontext():
                score = _about(metric.evaluate(turn, judge=asked, embedder=asked), turn)
            seconds = time.perf_counter() - start
        finally:
            outage.leave(trying, asking.answered, down=asking.fault == "circuit_open")
            if trying:
                self._wake()
        if asking.wait:
            self._tell(turn.turn_id, metric.name, "waiting: budget")
            self._again(job, asking.wait, counted=False)
        elif score.status == "error" and asking.fault == "circuit_open":
            self._tell(turn.turn_id, metric.name, "waiting: circuit_open")
            self._again_at(job, outage.until, counted=False)
        elif score.status == "error" and asking.fault == "rate_limited":
            self._again(job, _PAUSE_UNASKED * random.uniform(0.5, 1.5), counted=False)  # noqa: S311 - jitter, no secret
        elif score.status == "error" and is_transient(asking.fault) and (trying or job.attempts < self._attempts):
            self._tell(turn.turn_id, metric.name, f"waiting: {asking.fault}")
            if trying:  # it is not the job's fault
                self._again_at(job, outage.until, counted=False)
            else:
                self._again(job, _pause(job.attempts))
        else:
            tell_sources(metric, score, head["sources"])
            if head["decided"] is not None and score.status == "ok":
                score.detail["decided_by"] = head["decided"]
            root = Root(
                int(head["trace_id"], 16), int(head["span_id"], 16), head["sampled"],
                TraceState.from_header([head["trace_state"]]) if head["trace_state"] else None, head["resource"],
            )  # fmt: skip
            origin = ScoredTurn(turn, root, (), head["supersedes"], head["new"], conversation=head["conversation"])
            judged = asking.judged(metric, Chance(*head["chance"]), _upstream(root))
            self._hand_over(job, _rendered(origin, score, judged, seconds), self._following(job, head, turn, origin, score))

    def _following(self, job: Job, head: Mapping[str, Any], turn: Turn, origin: ScoredTurn, score: Score) -> list[_Next]:
        """What becomes of the metrics that wait for this score."""
        found = []
        for one in head["then"]:
            metric = self._by_key.get(one["key"])
            if metric is None or metric.sample is None or metric.sample.cascade is None:
                found += [
                    _Next(name, "dropped", "dropped: not_configured", "not_configured")
                    for name in (one["metric"], *_names(one["then"]))
                ]
                continue
            chance, why = _decision(metric, Chance(*one["chance"]), Chance(*head["chance"]), turn, score)
            if head["place"] < chance.probability:
                its = {
                    **self._head(metric, origin, chance, head["place"], why, one["then"]),
                    "sources": head["sources"],
                    "at": head["at"],
                }
                found.append(
                    _Next(metric.name, job=_job(metric.left_out(""), its, metric, chance, job.payload.partition(b"\n")[2]))
                )
                continue
            value = "no value" if score.value is None else f"{score.value:g}"
            said = f"sampled out (p={chance.probability:g}) after {score.metric}: {value}"
            found.append(_Next(metric.name, "sampled_out", said))
            found += [_Next(name, "sampled_out", f"{said}, as {metric.name} was") for name in _names(one["then"])]
        return found

    def _hand_over(self, job: Job, scored: ScoredTurn, following: Sequence[_Next]) -> None:
        score = scored.scores[0]

        def begin() -> bool:
            with self._settling:
                if self._given_up:
                    return False
                again = job.id in self._rendered
                self._rendered[job.id] = None
                if len(self._rendered) > _RENDERED:
                    self._rendered.popitem(last=False)
            if again:
                self._ack(job, None)
            return not again

        def settle() -> None:
            self._put([one.job for one in following if one.job is not None])
            self._ack(job, score)
            self._tell(scored.turn.turn_id, score.metric, _fate(score))
            for one in following:
                if one.job is None:
                    self._end(one.metric, scored, one.outcome, one.fate, one.reason)
            if not self._settled.is_set():
                self._settled.set()

        if self._stopping:
            return  # it was counted as dropped, or comes back from the queue
        if not self._deliver(Verdict(scored, begin, settle)):
            self._again(job, _PAUSE_FULL, counted=False)
        if not self._settled.is_set():
            self._settled.set()

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """While turns are offered or verdicts settled: the queue is told of all at the end, and not once for each. On the worker."""
        self._made, self._done = [], []
        try:
            yield
        finally:
            made, self._made = self._made, None
            done, self._done = self._done, None
            self._put(made)  # what follows a job is there before it goes
            try:
                if done:
                    self.queue.ack_many(done)
            except Exception as error:  # they come back after their leases
                self._failed("judge_queue", error)
            self._settled.set()

    def _ack(self, job: Job, score: Score | None) -> None:
        try:
            if score is not None and score.status == "error":
                self.queue.dead(job.id, score.error_type or "")
            elif self._done is not None:
                self._done.append(job.id)
            else:
                self.queue.ack(job.id)
        except Exception as error:  # it comes back after its lease, and its score again under the same id
            self._failed("judge_queue", error)

    def _discard(self, job: Job, reason: str) -> None:
        self.queue.dead(job.id, reason)
        self._drop([job], reason)

    def _again(self, job: Job, pause: float, *, counted: bool = True) -> None:
        self._again_at(job, self._now() + pause, counted=counted)

    def _again_at(self, job: Job, at: float, *, counted: bool = True) -> None:
        self.queue.retry_at(job.id, at, counted=counted)

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # --- what became of it

    def note(self, scored: ScoredTurn) -> None:
        """A judged score was sent out: the estimates learn of it."""
        judged, turn = scored.judged, scored.turn
        if judged is None or scored.conversation:
            return
        for score in scored.scores:
            if score.status == "ok" and score.value is not None and not score.vacuous:
                trace = f"{scored.root.trace_id:032x}"
                self.estimates.add(score.metric, turn.agent or "", trace, turn.turn_id, score.value, judged.probability)

    def fates(self, turn_id: str) -> dict[str, str]:
        """For each judged metric what became of it on a recent turn."""
        with self._telling:
            return dict(self._fates.get(turn_id, {}))

    def _tell(self, turn_id: str, metric: str, fate: str) -> None:
        if self.on_fate is not None:
            self.on_fate(turn_id, metric, fate)
        with self._telling:
            self._fates.setdefault(turn_id, {})[metric] = fate
            if len(self._fates) > _RING:
                self._fates.popitem(last=False)

    def _end(self, metric: str, scored: ScoredTurn, outcome: str, fate: str, reason: str | None = None) -> None:
        """No score comes of a metric: count that, once per turn, not again for its revisions."""
        if scored.new:
            self._count(metric, scored.turn.agent or "", outcome, reason)
        self._tell(scored.turn.turn_id, metric, fate)

    def _drop(self, jobs: Sequence[Job], reason: str) -> None:
        """Jobs that nobody will do, with what waits for their scores."""
        for job in jobs:
            head = _head_of(job)
            for metric in (head["metric"], *_names(head.get("then", ()))):
                if head["new"]:
                    self._count(metric, head["agent"], "dropped", reason)
                self._tell(head["turn_id"], metric, f"dropped: {reason}")

    def _count(self, metric: str, agent: str, outcome: str, reason: str | None) -> None:
        self._telemetry.add(RESULTS, metric=metric, agent=agent, outcome=outcome)
        if reason is not None:
            self._telemetry.add(DROPPED, metric=metric, reason=reason)

    def _watch(self) -> None:
        watch = self._telemetry.watch
        watch(QUEUE_SIZE, lambda: [({"queue": "judge"}, self.queue.bytes)])
        watch(QUEUE_CAPACITY, lambda: [({"queue": "judge"}, self.queue.max_bytes)])
        for name, unit in ((BUDGET_REMAINING, "usd"), (BUDGET_TOKENS, "tokens"), (BUDGET_CALLS, "calls")):
            watch(name, functools.partial(self._remaining, unit))
        self.estimates.watch(self._telemetry)

    def _remaining(self, unit: str) -> list[tuple[dict[str, str], float]]:
        return [({"metric": bound.counter.account, "window": bound.window}, left) for bound, left in self.budget.remaining(unit)]

    # --- end of life

    def drain(self, until: float, render: Callable[[float], object], *, patient: bool = True) -> bool:
        """Wait until every job is settled; False if some are not by ``until``, in seconds of ``time.monotonic``.

        Args:
            until: when to give up.
            render: makes the worker render what was handed over, within the given seconds.
            patient: False gives up too once nothing is done any more: all jobs that are left wait for a retry or for the budget.
        """
        quiet = 0
        while self._depth():
            left = until - time.monotonic()
            if left <= 0 or not any(thread.is_alive() for thread in self._threads) or (quiet == _QUIET_LOOKS and not patient):
                return False
            self._wake()
            quiet = 0 if self._settled.wait(min(left, 0.05)) or self._busy else quiet + 1
            self._settled.clear()
            render(max(0.0, until - time.monotonic()))
        return True

    def stop(self, render: Callable[[], object]) -> None:
        """Claim nothing more. Jobs that end with the process are counted as dropped. Safe to call twice."""
        if self._stopping:
            return
        self._stopping = True
        self._wake()
        render()
        with self._settling:  # a score that was not sent out by now is not sent out any more
            self._given_up = True
        try:
            self._give_back()
            self._drop([job for job in self.queue.close() if job.id not in self._rendered], "shutdown")
            self.budget.close()
            if self._others is not None:
                self._others.close()
        except Exception as error:
            self._failed("judge_queue", error)
        self._release()

    def _release(self) -> None:
        """Close the connections to judge and embedder."""
        for model in (self._models.judge, self._models.embedder):
            close = getattr(model, "close", None)
            if close is not None:
                close()

    def after_fork_in_child(self) -> None:
        """The parent owns its jobs, and goes on with them; the child has threads and locks of its own."""
        self._reset()
        self._models = self._make_models()
        self.queue.after_fork_in_child()
        self.estimates.after_fork_in_child()
        self.budget.after_fork_in_child()
        if self._others is not None:
            self._others.after_fork_in_child()


def _key(conversation: bool, metric: BoundMetric) -> str:
    return f"{'conversation' if conversation else 'turn'} {metric.name} {metric.signature_hash} {metric.metric.version}"


def _subject(scored: ScoredTurn) -> str:
    """What a turn's place follows from."""
    return scored.turn.conversation_id or "" if scored.conversation else f"{scored.root.trace_id:032x}"


def _upstream(root: Root) -> float | None:
    return upstream_probability(root.trace_state)


def _job(score: Score, head: Mapping[str, Any], metric: BoundMetric, chance: Chance, body: bytes) -> Job:
    """The job that makes a score; it is called as its result will be."""
    score.about = (head["turn_id"], b"%d" % head["revision"])
    return Job(score.result_id, jsonio.dumps(head).encode() + b"\n" + body, 2 * (chance.by == "rule") + (metric.policy == "gate"))


def _names(waiting: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of all metrics that wait, also for those that wait."""
    return [name for one in waiting for name in (one["metric"], *_names(one["then"]))]


def _decision(metric: BoundMetric, own: Chance, first: Chance, turn: Turn, score: Score) -> tuple[Chance, dict[str, Any]]:
    """The chance of a metric after the score that it waits for, and what is said of that on its own score."""
    scores = [score] if score.status == "ok" else []
    chance = metric.sample.cascade.chance(own, first, turn, Known(scores))
    return chance, {"metric": score.metric, "value": score.value}


def _head_of(job: Job) -> dict[str, Any]:
    head: dict[str, Any] = jsonio.loads(job.payload.partition(b"\n")[0])
    return head


def _about(score: Score, turn: Turn) -> Score:
    if score.status != "skipped":
        score.about = (turn.turn_id, b"%d" % turn.revision)
    return score


def _rendered(scored: ScoredTurn, score: Score, judged: Judged, seconds: float = 0.0) -> ScoredTurn:
    """A score of its own, about the same turn."""
    return ScoredTurn(
        scored.turn.without_content(), scored.root, [score], scored.supersedes, scored.new, conversation=scored.conversation,
        size=SCORE_BYTES, seconds=seconds, judged=judged,
    )  # fmt: skip


def _fate(score: Score) -> str:
    return "scored" if score.status == "ok" else f"{score.status}: {score.error_type or score.detail.get('reason', '')}"


def _pause(attempts: int) -> float:
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** max(0, attempts - 1))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret


def judging_from(
    config: Config,
    metrics: Sequence[BoundMetric],
    conversation_metrics: Sequence[BoundMetric],
    telemetry: Telemetry,
    put: Callable[[Verdict, int], bool],
    failed: Callable[[str, BaseException], None],
    clock: Clock,
    shedding: Shedding,
) -> Judging:
    """What a configuration asks for. ``put`` hands a score of so many bytes to the worker.

    Raises:
        ConfigError: a bound for a metric that is not judged.
    """
    wanted = config.judge
    queue = wanted.queue
    _refuse_bounds(config, {metric.name for metric in (*metrics, *conversation_metrics)})
    jobs = queue_from(queue, clock)
    if queue.backend != "memory":
        seal = seal_from(config)
        jobs = jobs if seal is None else SealedQueue(jobs, seal, clock)
    return Judging(
        metrics,
        conversation_metrics,
        lambda: Models(judge_from(config), embedder_from(config)),
        jobs,
        Budget(bounds_of(wanted.budget), spend_book_from(queue), clock, wanted.budget.soft),
        telemetry,
        lambda verdict: put(verdict, SCORE_BYTES),
        failed,
        attempts=wanted.attempts,
        threads=wanted.max_concurrency,
        lease=queue.lease,
        max_age=queue.max_age,
        seed=wanted.seed or "",
        redact=config.privacy.redact,
        audit=wanted.cache.audit if wanted.cache.path is not None else 0.0,
        clock=clock,
        works=queue.work,
        lasting=queue.backend != "memory",
        outages=outages_from(queue),
        shedding=shedding,
        estimates=Estimates(WINDOWS["hour"], clock),
    )


def _refuse_bounds(config: Config, judged: Collection[str]) -> None:
    for name in config.judge.budget.metrics:
        if name not in judged:
            close = nearest(name, list(judged), 1)
            hint = f"did you mean {close[0]}?" if close else "none is configured"
            raise ConfigError(
                f"{config.where(('judge', 'budget', 'metrics', name))}: not a judged metric of this configuration; {hint}"
            )
