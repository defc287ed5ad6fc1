"""Judged metrics on live turns: sampled, queued, asked within the budget, and sent out like any other score.

The worker offers each turn with its inline scores. What is to be judged becomes a job that holds the turn in form ``turn.v1``;
threads of our own claim jobs, ask, and hand each score back to the worker, which renders it. A job is settled once its score
was rendered, so that what is lost in between comes back from a queue that survives.
"""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar, cast

from opentelemetry.trace import TraceState

from . import jsonio
from .budget import Budget
from .clock import Clock
from .config import Config
from .emit.base import Judged, Root, ScoredTurn, Verdict
from .encryption import SealedQueue
from .errors import JudgeError
from .judge import Account, Judge, asking_anew, embedder_from, is_asking_anew, judge_from, recording, seal_from
from .model import Turn
from .names import BUDGET_CALLS, BUDGET_REMAINING, JUDGE_CACHE, JUDGE_REQUESTS, JUDGE_SPENT, QUEUE_CAPACITY, QUEUE_SIZE, RESULTS
from .privacy import redacted
from .queues import Job, JobQueue, queue_from
from .references import applies, tell_sources
from .registry import Asks, BoundMetric, Embeds
from .sampling import EVERY_TURN, position
from .score import Score
from .telemetry import Telemetry

T = TypeVar("T")
_AUDIT_SEED = "audit"
_POLL = 0.5
"""Seconds between two looks at jobs that are not due yet."""
_IDLE = 30.0
_QUIET_LOOKS = 4
_RING = 1_000
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0
_PAUSE_UNASKED = 15.0
"""Seconds until a job is looked at again that could not even be asked."""
_PAUSE_FULL = 1.0
_NOT_ASKED = frozenset(("circuit_open", "rate_limited"))
_TRANSIENT = frozenset(("timeout", "unreachable", "server_error", "invalid_answer", "http_408", "http_409", "http_429"))
_ABSENT = frozenset(("no_judge", "no_embedder"))
SCORE_BYTES = 8 * 1024
"""What a judged score is taken to hold in the worker's queue."""


@dataclass(frozen=True, slots=True)
class Models:
    """Who can be asked."""

    judge: Asks | None = None
    embedder: Embeds | None = None

    def can_ask(self, metric: BoundMetric) -> bool:
        """Whether there is somebody for this metric."""
        return (self.judge if metric.metric.kind == "llm" else self.embedder) is not None


class OverBudget(Exception):
    """Raised where a question would go past the budget."""


class _Asking:
    """Stands before judge and embedder while one job is done: holds them to the budget, and keeps account."""

    def __init__(self, models: Models, budget: Budget, telemetry: Telemetry) -> None:
        self._models = models
        self._budget = budget
        self._telemetry = telemetry
        self.wait = 0.0
        """Seconds until the budget has room again, once it had none."""
        self.fault: str | None = None
        """Error type of the last question that failed."""
        self.accounts: list[Account] = []

    def ask(self, stage: str, task: str, data: Mapping[str, Any], reply: str, **more: Any) -> dict[str, Any]:
        judge = self._models.judge
        assert judge is not None
        known = self._known(judge, task, data, reply, more)
        if known is not None:
            return known
        return self._through(judge, lambda: judge.ask(stage, task, data, reply, **more))

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        embedder = self._models.embedder
        assert embedder is not None
        return self._through(embedder, lambda: embedder.embed(texts))

    def _known(
        self, judge: Asks, task: str, data: Mapping[str, Any], reply: str, more: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """What was asked before, if the judge keeps that: it takes nothing of the budget."""
        if not getattr(judge, "keeps", False):
            return None
        found: dict[str, Any] | None = cast("Judge", judge).known(task, data, reply, **more)
        outcome = "hit" if found is not None else "audit" if is_asking_anew() else "miss"
        self._telemetry.add(JUDGE_CACHE, outcome=outcome)
        return found

    def _through(self, asked: Asks | Embeds, question: Callable[[], T]) -> T:
        try:
            self.wait = self.wait or self._budget.admit(_model_of(asked))
        except JudgeError as error:
            self.fault = error.error_type
            raise
        if self.wait:
            self._telemetry.add(JUDGE_REQUESTS, outcome="gated")
            raise OverBudget
        outcome = "ok"
        with recording() as accounts:
            try:
                return question()
            except JudgeError as error:
                self.fault, outcome = error.error_type, "error"
                raise
            finally:
                self._telemetry.add(JUDGE_REQUESTS, outcome=outcome)
                self._settle(accounts)

    def _settle(self, accounts: Sequence[Account]) -> None:
        self.accounts += accounts
        for account in accounts:
            if account.cost_usd is not None:
                self._telemetry.add(JUDGE_SPENT, account.cost_usd)
            if account.charge_usd or account.error_type is None:
                self._budget.spend(account.charge_usd, account.model)

    def judged(self, metric: BoundMetric, probability: float) -> Judged:
        """How the score came to be."""
        asked = self.accounts
        costs = [account.cost_usd for account in asked if account.error_type is None]
        known = [cost for cost in costs if cost is not None]
        cost = sum(known) if known and len(known) == len(costs) else None
        kind = metric.metric.kind
        model = (
            asked[-1].model if asked else getattr(self._models.judge if kind == "llm" else self._models.embedder, "model", None)
        )
        return Judged(kind, probability, model, cost)


def _model_of(asked: object) -> str:
    return str(getattr(asked, "model", ""))


class _GivenUp:
    """Answers no question of a job that never came to an end."""

    def ask(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        raise JudgeError("tried as often as is allowed, and never came to an end", "attempts_exhausted")

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise JudgeError("tried as often as is allowed, and never came to an end", "attempts_exhausted")


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
        seed: of the sampling.
        redact: what is taken out of a turn before it becomes a job.
        audit: share of jobs whose questions are asked although the judge knows the answer.
        clock: dates retries.
        works: whether jobs are done here; else others take them from the queue.
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
        seed: str,
        redact: Collection[str],
        audit: float = 0.0,
        clock: Clock,
        works: bool = True,
    ) -> None:
        self._audit = audit
        self._redact = redact
        self._metrics = {False: list(metrics), True: list(conversation_metrics)}
        self._by_key = {_key(whole, metric): metric for whole, some in self._metrics.items() for metric in some}
        self._make_models = models
        self._models = models()
        self.queue = queue
        self.budget = budget
        self._telemetry = telemetry
        self._deliver = deliver
        self._failed = failed
        self._attempts = attempts
        self._max_threads = threads
        self._lease = lease
        self._seed = seed
        self._clock = clock
        self.may_start = works
        """False too at interpreter exit, when no thread can be started any more."""
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
        self._fates: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._telling = threading.Lock()

    def reload(self, metrics: Sequence[BoundMetric], conversation_metrics: Sequence[BoundMetric]) -> None:
        """Judge by other metrics from the next turn on. Jobs that wait are done as they were meant."""
        chosen = {False: list(metrics), True: list(conversation_metrics)}
        self._by_key = {**self._by_key, **{_key(whole, metric): metric for whole, some in chosen.items() for metric in some}}
        self._metrics = chosen

    # --- on the worker

    def offer(self, scored: ScoredTurn) -> list[ScoredTurn]:
        """Queue what is to be judged on a turn that has its inline scores.

        What can be said without asking is said at once: it is returned if it is a score, and stands with the turn's own scores if
        it is a reason why there is none. Never raises.
        """
        said: list[ScoredTurn] = []
        try:
            jobs: list[Job] = []
            body = b""
            place = position(
                scored.turn.conversation_id or "" if scored.conversation else f"{scored.root.trace_id:032x}", self._seed
            )
            for metric in self._metrics[scored.conversation]:
                if metric.when is not None and not applies(metric.when, scored.turn):
                    continue
                probability = (metric.sample or EVERY_TURN).probability(scored.turn, scored.scores)
                if self._models.can_ask(metric) and place >= probability:
                    self._end(metric.name, scored, "sampled_out", f"sampled out (p={probability:g})")
                    continue
                score = _about(metric.evaluate(scored.turn), scored.turn)
                if score.status != "skipped":
                    tell_sources(metric, score, scored.sources)
                    said.append(_rendered(scored, score, Judged(metric.metric.kind, probability)))
                    self._tell(scored.turn.turn_id, metric.name, _fate(score))
                elif score.detail.get("reason") in _ABSENT and self._models.can_ask(metric):
                    body = body or self._written(scored.turn)
                    jobs.append(self._job(metric, scored, score, probability, body))
                else:
                    scored.scores = [*scored.scores, score]
            self._put(jobs)
        except Exception as error:
            self._failed("judging", error)
        return said

    def _written(self, turn: Turn) -> bytes:
        """The turn as it leaves for a queue and a judge."""
        return jsonio.dumps(redacted(turn.to_dict(), self._redact) if self._redact else turn.to_dict()).encode()

    def _job(self, metric: BoundMetric, scored: ScoredTurn, score: Score, probability: float, body: bytes) -> Job:
        root, turn = scored.root, scored.turn
        score.about = (turn.turn_id, b"%d" % turn.revision)  # the job is called as its result will be
        head = {
            "key": _key(scored.conversation, metric), "metric": metric.name, "turn_id": turn.turn_id, "agent": turn.agent or "",
            "conversation": scored.conversation, "new": scored.new, "supersedes": scored.supersedes, "probability": probability,
            "sources": dict(scored.sources), "trace_id": f"{root.trace_id:032x}", "span_id": f"{root.span_id:016x}",
            "sampled": root.sampled, "trace_state": root.trace_state.to_header() if root.trace_state else "",
            "resource": dict(root.resource),
        }  # fmt: skip
        always = metric.sample is not None and probability > metric.sample.rate
        return Job(score.result_id, jsonio.dumps(head).encode() + b"\n" + body, 2 * always + (metric.policy == "gate"))

    def _put(self, jobs: Sequence[Job]) -> None:
        if not jobs:
            return
        if self._stopping:
            self._drop(jobs, "shutdown")
            return
        for job in jobs:
            head = _head_of(job)
            self._tell(head["turn_id"], head["metric"], "waiting")
        try:
            self._drop(self.queue.put_many(jobs), "queue_full")
        except Exception as error:  # its disk
            self._failed("judge_queue", error)
            self._drop(jobs, "queue_error")
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
                        changed.wait(_POLL if self._depth() else _IDLE)

    def step(self) -> bool:
        """Do one job that is due, in this thread; False when there is none."""
        jobs = self.queue.claim(1, self._lease)
        self._busy.add(threading.get_ident())
        try:
            for job in jobs:
                self._try(job)
        finally:
            self._busy.discard(threading.get_ident())
        return bool(jobs)

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
            self.queue.dead(job.id, "not_configured")
            self._drop([job], "not_configured")
            return
        turn = Turn.from_dict(jsonio.loads(job.payload.partition(b"\n")[2]))
        asking = _Asking(self._models, self.budget, self._telemetry)
        asked: Any = _GivenUp() if job.attempts > self._attempts else asking
        start = time.perf_counter()
        with asking_anew(position(job.id, _AUDIT_SEED) < self._audit):
            score = _about(metric.evaluate(turn, judge=asked, embedder=asked), turn)
        if asking.wait:
            self._tell(turn.turn_id, metric.name, "waiting: budget")
            self._again(job, asking.wait, counted=False)
        elif score.status == "error" and asking.fault in _NOT_ASKED:
            self._again(job, _PAUSE_UNASKED * random.uniform(0.5, 1.5), counted=False)  # noqa: S311 - jitter, no secret
        elif score.status == "error" and _is_transient(asking.fault) and job.attempts < self._attempts:
            self._tell(turn.turn_id, metric.name, f"waiting: {asking.fault}")
            self._again(job, _pause(job.attempts))
        else:
            tell_sources(metric, score, head["sources"])
            root = Root(
                int(head["trace_id"], 16), int(head["span_id"], 16), head["sampled"],
                TraceState.from_header([head["trace_state"]]) if head["trace_state"] else None, head["resource"],
            )  # fmt: skip
            origin = ScoredTurn(turn, root, (), head["supersedes"], head["new"], conversation=head["conversation"])
            judged = asking.judged(metric, head["probability"])
            self._hand_over(job, _rendered(origin, score, judged, time.perf_counter() - start))

    def _hand_over(self, job: Job, scored: ScoredTurn) -> None:
        score = scored.scores[0]

        def settle() -> None:
            try:
                if score.status == "error":
                    self.queue.dead(job.id, score.error_type or "")
                else:
                    self.queue.ack(job.id)
            except Exception as error:  # it comes back after its lease, and its score again under the same id
                self._failed("judge_queue", error)
            self._tell(scored.turn.turn_id, score.metric, _fate(score))
            self._settled.set()

        if self._stopping:
            return  # it was counted as dropped, or comes back from the queue
        if not self._deliver(Verdict(scored, settle)):
            self._again(job, _PAUSE_FULL, counted=False)
        self._settled.set()

    def _again(self, job: Job, pause: float, *, counted: bool = True) -> None:
        self.queue.retry_at(job.id, self._clock.time_ns() / 1e9 + pause, counted=counted)

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()

    # --- what became of it

    def fates(self, turn_id: str) -> dict[str, str]:
        """For each judged metric what became of it on a recent turn."""
        with self._telling:
            return dict(self._fates.get(turn_id, {}))

    def _tell(self, turn_id: str, metric: str, fate: str) -> None:
        with self._telling:
            self._fates.setdefault(turn_id, {})[metric] = fate
            if len(self._fates) > _RING:
                self._fates.popitem(last=False)

    def _end(self, metric: str, scored: ScoredTurn, outcome: str, fate: str) -> None:
        """No score comes of a metric: count that, once per turn, not again for its revisions."""
        if scored.new:
            self._telemetry.add(RESULTS, metric=metric, agent=scored.turn.agent or "", outcome=outcome)
        self._tell(scored.turn.turn_id, metric, fate)

    def _drop(self, jobs: Sequence[Job], reason: str) -> None:
        for job in jobs:
            head = _head_of(job)
            if head["new"]:
                self._telemetry.add(RESULTS, metric=head["metric"], agent=head["agent"], outcome="dropped")
            self._tell(head["turn_id"], head["metric"], f"dropped: {reason}")

    def _watch(self) -> None:
        watch = self._telemetry.watch
        watch(QUEUE_SIZE, lambda: [({"queue": "judge"}, self.queue.bytes)])
        watch(QUEUE_CAPACITY, lambda: [({"queue": "judge"}, self.queue.max_bytes)])
        watch(BUDGET_REMAINING, lambda: [({}, left) for left in (self.budget.remaining_usd(),) if left is not None])
        watch(BUDGET_CALLS, lambda: [({}, left) for left in (self.budget.remaining_calls(),) if left is not None])

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
        try:
            self._drop(self.queue.close(), "shutdown")
        except Exception as error:
            self._failed("judge_queue", error)
        for model in (self._models.judge, self._models.embedder):
            close = getattr(model, "close", None)
            if close is not None:
                close()

    def after_fork_in_child(self) -> None:
        """The parent owns its jobs, and goes on with them; the child has threads and locks of its own."""
        self._reset()
        self._models = self._make_models()
        self.queue.after_fork_in_child()
        self.budget.after_fork_in_child()


def _key(conversation: bool, metric: BoundMetric) -> str:
    return f"{'conversation' if conversation else 'turn'} {metric.name} {metric.signature_hash} {metric.metric.version}"


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


def _is_transient(error_type: str | None) -> bool:
    return error_type is not None and (error_type in _TRANSIENT or error_type.startswith("http_5"))


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
) -> Judging:
    """What a configuration asks for. ``put`` hands a score of so many bytes to the worker."""
    wanted = config.judge
    queue = wanted.queue
    jobs = queue_from(queue, clock)
    if queue.backend != "memory":
        seal = seal_from(config)
        jobs = jobs if seal is None else SealedQueue(jobs, seal, clock)
    return Judging(
        metrics,
        conversation_metrics,
        lambda: Models(judge_from(config), embedder_from(config)),
        jobs,
        Budget(wanted.budget.usd_per_hour, wanted.budget.calls_per_hour, clock),
        telemetry,
        lambda verdict: put(verdict, SCORE_BYTES),
        failed,
        attempts=wanted.attempts,
        threads=wanted.max_concurrency,
        lease=queue.lease,
        seed=wanted.seed or "",
        redact=config.privacy.redact,
        audit=wanted.cache.audit,
        clock=clock,
        works=queue.work,
    )
