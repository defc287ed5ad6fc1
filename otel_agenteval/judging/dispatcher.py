"""Jobs of judged metrics: put into their queue, claimed, asked within the budget, and handed back to the worker as scores."""

from __future__ import annotations

import functools
import random
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from typing import Any

from ..core import jsonio
from ..core.clock import Clock
from ..core.score import Score
from ..core.semconv import BUDGET_CALLS, BUDGET_REMAINING, BUDGET_TOKENS, JUDGE_CACHE, JUDGE_REQUESTS, QUEUE_CAPACITY, QUEUE_SIZE
from ..core.telemetry import Telemetry
from ..core.tenancy import qualified
from ..core.threads import OwnThread, is_meant_for_host
from ..core.turn import Turn
from ..evaluation.references import tell_sources
from ..evaluation.scored_turn import ScoredTurn
from ..metrics.bound_metric import BoundMetric
from ..outlets.base import Verdict
from ..statistics.estimates import Estimates, group_of
from .budget import Budget
from .circuit_breaker import Outage, Outages
from .job import about, body_in, head_in, rendered, root_in, upstream_of
from .leases import HeldLeases, LeaseLost
from .models import asking_anew
from .outcomes import Fates, fate_of
from .planner import Next, Offers
from .queues import Job, JobQueue
from .sampling import Chance, position
from .session import OF_THE_SERVER, Asking, Begun, GivenUp, Models, is_transient

_AUDIT_SEED = "audit"
_POLL = 0.5
"""Seconds between two looks at jobs that are not due yet."""
_IDLE = 30.0
_QUIET_LOOKS = 4
_RENDERED = 10_000
_BEGUN = 1_000
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0
_PAUSE_UNASKED = 15.0
"""Seconds until a job is looked at again that the rate left no room for."""
_BEHIND = 1.0
"""Seconds that a job that tried a server in vain stands behind the others: it may be what the server fails on."""
_PAUSE_FULL = 0.1
"""Seconds until a score is handed to the worker again that had no room for it."""
_THREADS_PER_CLAIM = 8


class Judging:
    """Everything between a scored turn and its judged scores.

    Args:
        offers: decides what is judged.
        fates: told what becomes of each metric on each turn.
        models: makes those who are asked; again in a forked child.
        queue: where jobs wait.
        budget: what may be asked.
        telemetry: counts questions, and shows queue and budget.
        deliver: hands a score to the worker; False when it has no room.
        failed: told of faults of ours.
        attempts: tries per job while the models fail.
        threads: jobs at once.
        lease: seconds after which a job of a process that died is done by another one.
        longest: seconds that a job may take here, before others may try it.
        max_age: seconds that a job may wait.
        audit: share of jobs whose questions are asked although the judge knows the answer.
        clock: dates jobs and retries.
        works: whether jobs are done here; else others take them from the queue.
        lasting: whether the queue outlives this process.
        outages: what processes tell each other about models that are down.
        estimates: gets every judged score.
    """

    def __init__(
        self,
        offers: Offers,
        fates: Fates,
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
        longest: float,
        max_age: float,
        audit: float = 0.0,
        clock: Clock,
        works: bool = True,
        lasting: bool = False,
        outages: Outages | None = None,
        estimates: Estimates,
    ) -> None:
        self.offers = offers
        self.fates = fates
        self._audit = audit
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
        self._leases = HeldLeases(queue, lease, longest, clock, failed)
        self._max_age = max_age
        self._clock = clock
        self._others = outages
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
        self._outages = {kind: Outage(self._clock, kind, self._others) for kind in ("llm", "embed")}
        self._settling = threading.Lock()
        self._claiming = threading.Lock()
        self._claimed: deque[Job] = deque()
        """Jobs that are claimed and not begun."""
        self._rendered: OrderedDict[str, None] = OrderedDict()
        """Jobs whose score was sent out, so that a lease that ended too early makes no second one."""
        self._under_way: dict[str, Job] = {}
        """Jobs that a thread of ours does, or whose score waits for the worker."""
        self._delivered: set[str] = set()
        """Those of them whose score waits."""
        self._begun: OrderedDict[str, Begun] = OrderedDict()
        """What jobs were told that have to wait."""
        self._given_up = False
        self._made: list[Job] | None = None
        """Jobs to be put, and jobs that are settled, while they are gathered."""
        self._done: list[Job] | None = None

    # --- on the worker

    def offer(self, scored: ScoredTurn) -> list[ScoredTurn]:
        """Queue what is to be judged on a turn that has its inline scores.

        What can be said without asking is said at once: it is returned if it is a score, and stands with the turn's own scores if
        it is a reason why there is none. Never raises.
        """
        offer = self.offers.decide(scored, self._models.can_ask)
        self._put(offer.jobs)
        return offer.said

    def _put(self, jobs: Sequence[Job]) -> None:
        if self._made is not None:
            self._made += jobs
            return
        if not jobs:
            return
        if self._stopping:
            self.fates.drop(jobs, "shutdown")
            return
        self.fates.wait(jobs)
        try:
            self.fates.drop(self.queue.put_many(jobs), "queue_full")
        except Exception as error:  # its disk
            self._failed("judge_queue", error)
            self.fates.drop(jobs, "queue_error")
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
            thread = OwnThread(self._run, "otel-agenteval-judge")
            try:
                self._leases.start()
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
            except BaseException as error:  # the queue's disk
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
                found = self._leases.claim(max(1, len(self._threads) // _THREADS_PER_CLAIM))
                if not found:
                    return None
                self._claimed.extend(found)

    def _give_back(self) -> None:
        """What was claimed and not begun is due at once again."""
        with self._claiming:
            while self._claimed:
                self._again(self._claimed.popleft(), 0.0, counted=False)

    def _try(self, job: Job) -> None:
        overdue = self._leases.is_overdue(job)
        with self._settling:
            begins = job.id not in self._under_way or (overdue and job.id in self._delivered)
            if begins:
                self._under_way[job.id] = job
                self._delivered.discard(job.id)
        if not begins:
            self._leave_to_who_does_it(job, overdue)
            return
        self._leases.begin(job)
        try:
            self._do(job)
        except BaseException as error:
            if is_meant_for_host(error):
                self._again(job, 0.0, counted=False)
                raise
            self._failed("judging", error)
            if job.attempts < self._attempts:
                self._again(job, _pause(job.attempts))
            else:
                self._discard(job, type(error).__name__, "fault")
        finally:
            with self._settling:  # once it was given back, another thread may do it already
                if self._under_way.get(job.id) is job and job.id not in self._delivered:
                    del self._under_way[job.id]

    def _leave_to_who_does_it(self, job: Job, overdue: bool) -> None:
        """A job came again while a thread of ours is at it: nobody asks beside. If that takes too long, another process may try."""
        if overdue:
            self.queue.retry_at(job, self._now() + _POLL, counted=False)
        else:
            self._leases.renew(job)

    def _do(self, job: Job) -> None:
        if job.id in self._rendered:  # its score went out, and the queue could not be told: that is not paid for twice
            self._ack(job, None)
            return
        head = head_in(job)
        metric = self.offers.metric_of(head["key"])
        if metric is None or not self._models.can_ask(metric):
            self._discard(job, "not_configured")
            return
        if self._now() - head["at"] > self._max_age:
            self._discard(job, "too_old")
            return
        outage = self._outage(self._models.server_of(metric, head["agent"]))
        wait, trying = outage.enter()
        if wait is None:  # somebody tries; whoever has the oldest job goes next
            self._again(job, 0.0, counted=False)
            with self._changed:
                self._changed.wait(_POLL)
        elif wait:
            self.fates.tell(head["turn_id"], metric.name, "waiting: circuit_open")
            self._again_at(job, outage.until, counted=False)
        else:
            self._judge(job, head, metric, outage, trying)

    def _judge(self, job: Job, head: dict[str, Any], metric: BoundMetric, outage: Outage, trying: bool) -> None:
        with self._settling:
            begun = self._begun.pop(job.id, None)
        asking = Asking(self._models, self.budget, self._telemetry, metric.name, job.priority > 0, begun)
        fine = False
        try:
            turn = Turn.written(jsonio.loads(body_in(job)))
            asked: Any = GivenUp() if job.attempts > self._attempts else asking
            start = time.perf_counter()
            with asking_anew() if self._audit and position(job.id, _AUDIT_SEED) < self._audit else nullcontext():
                score = about(metric.evaluate(turn, judge=asked, embedder=asked), turn)
            seconds = time.perf_counter() - start
            fine = score.status == "ok"  # where a second judge failed, the first one answered
        finally:
            answered = asking.answered
            outage.leave(
                trying, True if fine and answered is not None else answered, down=not fine and asking.fault in OF_THE_SERVER
            )
            if trying:
                self._wake()
        if asking.broken is not None:
            self._failed("judge_budget", asking.broken)
        if asking.wait:
            self.fates.tell(turn.turn_id, metric.name, "waiting: budget")
            self._keep(job, asking)
            self._again(job, asking.wait, counted=False)
        elif score.status == "error" and asking.fault in OF_THE_SERVER:
            self.fates.tell(turn.turn_id, metric.name, f"waiting: {asking.fault}")
            self._keep(job, asking)
            self._again_at(job, outage.until, counted=False)
        elif score.status == "error" and asking.fault == "rate_limited":
            self.fates.tell(turn.turn_id, metric.name, "waiting: rate_limited")
            self._keep(job, asking)
            pause = _PAUSE_UNASKED * random.uniform(0.5, 1.5)  # noqa: S311 - jitter, no secret
            self._again(job, max(asking.pause, pause), counted=False)
        elif score.status == "error" and is_transient(asking.fault) and (trying or job.attempts < self._attempts):
            self.fates.tell(turn.turn_id, metric.name, f"waiting: {asking.fault}")
            self._keep(job, asking)
            if trying:  # the server is down; but it may be the job that it fails on, so another one tries next
                self._again_at(job, outage.until + _BEHIND, counted=False)
            else:
                self._again(job, max(asking.pause, _pause(job.attempts)))
        else:
            tell_sources(metric, score, head["sources"])
            if head["decided"] is not None and score.status == "ok":
                score.detail["decided_by"] = head["decided"]
            root = root_in(head)
            origin = ScoredTurn(
                turn, root, (), head["supersedes"], head["new"], conversation=head["conversation"],
                counted_as=head.get("counted_as"), absorbs=head.get("absorbs", ()),
            )  # fmt: skip
            judged = asking.judged(metric, score, Chance(*head["chance"]), upstream_of(root))
            made = rendered(origin, score, judged, seconds, self.offers.content_of(turn))
            self._hand_over(job, made, self.offers.following(job, head, origin, score), lambda: self._keep(job, asking))

    def _outage(self, server: str) -> Outage:
        with self._settling:
            found = self._outages.get(server)
            if found is None:
                found = self._outages[server] = Outage(self._clock, server, self._others)
            return found

    def _keep(self, job: Job, asking: Asking) -> None:
        """What the job was told so far: the next time it asks for the rest only, or a tight budget would never see an end of it."""
        begun = asking.begun
        if begun is None:
            return
        with self._settling:
            self._begun[job.id] = begun
            if len(self._begun) > _BEGUN:
                self._begun.popitem(last=False)

    def _hand_over(self, job: Job, scored: ScoredTurn, following: Sequence[Next], keep: Callable[[], None]) -> None:
        score = scored.scores[0]

        def settle() -> None:
            self._put([one.job for one in following if one.job is not None])
            self._ack(job, score)
            self.fates.tell(scored.turn.turn_id, score.metric, fate_of(score))
            for one in following:
                if one.job is None:
                    self.fates.end(one.metric, scored, one.outcome, one.fate, one.reason)
            if not self._settled.is_set():
                self._settled.set()

        verdict = Verdict(scored, job, settle, keep)
        self._delivered.add(job.id)
        while not self._deliver(verdict):
            if self._stopping:  # it was counted as dropped, or comes back from the queue
                self._delivered.discard(job.id)
                break
            with self._changed:  # what was paid for is not thrown away: this thread asks nothing more until there is room
                self._changed.wait(_PAUSE_FULL)
        if not self._settled.is_set():
            self._settled.set()

    def begin(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """Of judged scores those that may be sent out: nobody else has claimed their jobs, and they were not sent before. On the worker.

        The leases are extended by that, so that nobody claims the jobs until :meth:`Verdict.settle` acknowledges them.
        """
        lost = self._leases.confirm([verdict.job for verdict in verdicts])
        found, sent_before = [], []
        with self._settling:
            for verdict in [] if self._given_up else verdicts:
                job = verdict.job
                if job.id in self._rendered:
                    sent_before.append(job)
                elif job.id not in lost:
                    self._rendered[job.id] = None
                    found.append(verdict)
            while len(self._rendered) > _RENDERED:
                self._rendered.popitem(last=False)
        for job in sent_before:
            self._ack(job, None)
        for verdict in verdicts:
            if verdict.job.id in lost:
                verdict.keep()
                self._let_go(verdict.job)
                self._failed("judge_lease", LeaseLost())
        return found

    def _let_go(self, job: Job) -> Job:
        """We are done with a job, before anybody else can claim it; returns it with its last lease."""
        with self._settling:
            self._under_way.pop(job.id, None)
            self._delivered.discard(job.id)
        return self._leases.release(job)

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
                    for _ in self.queue.ack_many(done):
                        self._failed("judge_lease", LeaseLost())
            except Exception as error:  # they come back after their leases
                self._failed("judge_queue", error)
            self._settled.set()

    def _ack(self, job: Job, score: Score | None) -> None:
        owned = self._let_go(job)
        try:
            if score is not None and score.status == "error":
                self.queue.dead(owned, score.error_type or "")
            elif self._done is not None:
                self._done.append(owned)
            else:
                self.queue.ack(owned)
        except Exception as error:  # it comes back after its lease, and its score again under the same id
            self._failed("judge_queue", error)

    def _discard(self, job: Job, reason: str, counted_as: str = "") -> None:
        if self.queue.dead(self._let_go(job), reason):
            self.fates.drop([job], counted_as or reason)

    def _again(self, job: Job, pause: float, *, counted: bool = True) -> None:
        self._again_at(job, self._now() + pause, counted=counted)

    def _again_at(self, job: Job, at: float, *, counted: bool = True) -> None:
        self.queue.retry_at(self._let_go(job), at, counted=counted)

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
                trace = qualified(turn.tenant, f"{scored.root.trace_id:032x}")
                group = group_of(judged.decided_by) if judged.asked else "itself"
                self.estimates.add(
                    score.metric, turn.agent or "", trace, scored.first_id, score.value, judged.probability, group,
                    turn.revision, scored.absorbs,
                )  # fmt: skip

    def _watch(self) -> None:
        watch = self._telemetry.watch
        self._telemetry.expect(JUDGE_REQUESTS)
        self._telemetry.expect(JUDGE_CACHE)
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
            self.fates.drop([job for job in self.queue.close() if job.id not in self._rendered], "shutdown")
            self.budget.close()
            if self._others is not None:
                self._others.close()
        except Exception as error:
            self._failed("judge_queue", error)
        self._leases.stop()
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
        self._leases.reset()
        self.offers.reset()
        self.fates.reset()
        self._models = self._make_models()
        self.queue.after_fork_in_child()
        self.estimates.after_fork_in_child()
        self.budget.after_fork_in_child()
        if self._others is not None:
            self._others.after_fork_in_child()


def _pause(attempts: int) -> float:
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** max(0, attempts - 1))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
