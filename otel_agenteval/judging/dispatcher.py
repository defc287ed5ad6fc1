"""Jobs of judged metrics: put into their queue, claimed by threads of our own, done, and handed to the worker as scores."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

from ..core.clock import Clock
from ..core.score import Score
from ..core.threads import OwnThread, is_meant_for_host
from ..evaluation.scored_turn import ScoredTurn
from .leases import HeldLeases, LeaseLost
from .outcomes import Outcomes, outcome_of
from .planner import Planner
from .queues import Job, JobQueue
from .runner import Discard, Done, JobOptions, JobRunner, pause_after
from .session import Models
from .verdict import Verdict

_POLL = 0.5
"""Seconds between two looks at jobs that are not due yet."""
_IDLE = 30.0
"""The same while the queue is empty and only this process puts jobs in."""
_QUIET_LOOKS = 4
_SENT = 10_000
"""Jobs that are remembered because their score was sent out."""
_PAUSE_FULL = 0.1
"""Seconds until a score is handed to the worker again that had no room for it."""
_THREADS_PER_CLAIM = 8


class Dispatcher:
    """Everything between a scored turn and its judged scores.

    Args:
        planner: plans what is judged.
        runner: does jobs.
        leases: hold the jobs that were claimed from the queue.
        outcomes: learns of each metric that is judged.
        deliver: hands a score to the worker; False when it has no room.
        failed: called with faults of ours.
        options: as configured.
        clock: dates retries.
    """

    def __init__(
        self,
        planner: Planner,
        runner: JobRunner,
        leases: HeldLeases,
        outcomes: Outcomes,
        deliver: Callable[[Verdict], bool],
        failed: Callable[[str, BaseException], None],
        options: JobOptions,
        clock: Clock,
    ) -> None:
        self.planner = planner
        self.metrics = planner.metrics
        self.outcomes = outcomes
        self.queue: JobQueue = leases.queue
        self.lasting = options.lasting
        """Whether the queue outlives this process."""
        self.may_start = options.works
        """Whether threads may be started; False too at interpreter exit."""
        self._runner = runner
        self._leases = leases
        self._deliver = deliver
        self._failed = failed
        self._options = options
        self._clock = clock
        self._stopping = False
        self._reset()

    def _reset(self) -> None:
        self._changed = threading.Condition()
        """Threads wait here for something to do; each job wakes one."""
        self._news = 0
        """How often there was something to do: nobody waits who looked before the last time."""
        self._looks = False
        """Whether one of the threads that wait looks at the queue from time to time, for all of them."""
        self._stopped = threading.Event()
        self._progressed = threading.Event()
        """Set when a job has ended."""
        self._threads: list[threading.Thread] = []
        self._busy: set[int] = set()
        """Threads that are doing a job."""
        self._lock = threading.Lock()
        """Guards what is known of jobs under way."""
        self._claiming = threading.Lock()
        self._claimed: deque[Job] = deque()
        """Jobs that are claimed and not begun."""
        self._sent: OrderedDict[str, None] = OrderedDict()
        """Jobs whose score was sent out, so that a lease that ended too early makes no second one."""
        self._under_way: dict[str, Job] = {}
        """Jobs that a thread of ours does, or whose score waits for the worker."""
        self._delivered: set[str] = set()
        """Those of them whose score waits."""
        self._given_up = False
        self._gathered_jobs: list[Job] | None = None
        """Jobs to be put into the queue, and jobs to be acknowledged, while they are gathered."""
        self._gathered_done: list[Job] | None = None

    # --- on the worker

    def plan(self, scored: ScoredTurn) -> list[ScoredTurn]:
        """Queue what is to be judged on a turn that has its inline scores. Never raises.

        Scores that take no question are returned at once; reasons why there is none are added to the turn's own scores.
        """
        plan = self.planner.plan(scored, self._models.can_ask)
        self._put(plan.jobs)
        return plan.answered

    def plan_again(self, scored: ScoredTurn) -> list[ScoredTurn]:
        """The same for a turn that was planned before, once its user has said something of it."""
        plan = self.planner.plan_again(scored, self._models.can_ask)
        self._put(plan.jobs)
        return plan.answered

    @property
    def _models(self) -> Models:
        return self._runner.sessions.models

    def _put(self, jobs: Sequence[Job]) -> None:
        if self._gathered_jobs is not None:
            self._gathered_jobs += jobs
            return
        if not jobs:
            return
        if self._stopping:
            self.outcomes.drop(jobs, "shutdown")
            return
        self.outcomes.wait(jobs)
        try:
            self.outcomes.drop(self.queue.put_many(jobs), "queue_full")
        except Exception as error:  # its disk
            self._failed("judge_queue", error)
            self.outcomes.drop(jobs, "queue_error")
        if self.may_start and len(self._threads) < self._options.threads:
            self.start(self._depth())
        self._wake(len(jobs))

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
        while self.may_start and not self._stopping and len(self._threads) < min(self._options.threads, jobs):
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
        while not self._stopping:
            busy, news = False, self._news
            try:
                busy = self.step()
            except BaseException as error:  # the queue's disk
                self._failed("judge_queue", error)
            if not busy:
                self._wait_for_news(news)
        self._models.close()  # a question that was under way when they were closed has made a new connection

    def _wait_for_news(self, seen: int) -> None:
        """Wait until there may be something to do; not at all if there was news since ``seen``.

        Nobody says when a job becomes due, or when another process puts one in. One thread looks for that; the others sleep until it finds some.
        """
        looks = not self._looks
        pause = _POLL if looks and (self.queue.is_shared or self._depth()) else _IDLE
        with self._changed:
            if self._stopping or self._news != seen:
                return
            looks = looks and not self._looks
            self._looks = self._looks or looks
            try:
                self._changed.wait(pause)
            finally:
                if looks:
                    self._looks = False

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
                self._wake(len(found))  # for all but the first, and one to look for more

    def _give_back_claimed(self) -> None:
        """What was claimed and not begun is due again at once."""
        with self._claiming:
            while self._claimed:
                self._give_back(self._claimed.popleft(), self._now())

    def _try(self, job: Job) -> None:
        overdue = self._leases.is_overdue(job)
        with self._lock:
            begins = job.id not in self._under_way or (overdue and job.id in self._delivered)
            if begins:
                self._under_way[job.id] = job
                self._delivered.discard(job.id)
        if not begins:
            self._leave(job, overdue)
            return
        self._leases.begin(job)
        try:
            self._do(job)
        except BaseException as error:
            if is_meant_for_host(error):
                self._give_back(job, self._now())
                raise
            self._failed("judging", error)
            if job.attempts < self._options.attempts:
                self._give_back(job, self._now() + pause_after(job.attempts), counted=True)
            else:
                self._discard(job, type(error).__name__, "fault")
        finally:
            with self._lock:  # once it was given back, another thread may do it already
                if self._under_way.get(job.id) is job and job.id not in self._delivered:
                    del self._under_way[job.id]

    def _leave(self, job: Job, overdue: bool) -> None:
        """A job came again while a thread of ours does it: it is not asked about twice. If that takes too long, another process may try."""
        if overdue:
            self.queue.retry_at(job, self._now() + _POLL, counted=False)
        else:
            self._leases.renew(job)

    def _do(self, job: Job) -> None:
        if job.id in self._sent:  # its score went out, but the queue could not be told: that is not paid for twice
            self._acknowledge(job, None)
            return
        result = self._runner.run(job, self._wake_all)
        if isinstance(result, Discard):
            self._discard(job, result.reason)
        elif isinstance(result, Done):
            self._deliver_verdict(job, result)
        else:
            self._give_back(job, result.at, counted=result.counted)
            if result.busy:
                with self._changed:
                    self._changed.wait(_POLL)

    def _deliver_verdict(self, job: Job, done: Done) -> None:
        """Give a score to the worker."""
        verdict = Verdict(
            done.scored, job, lambda: self._finish(job, done), lambda: self._runner.keep(job, done.progress), done.composites
        )
        self._delivered.add(job.id)
        while not self._deliver(verdict):
            if self._stopping:  # it was counted as dropped, or comes back from the queue
                self._delivered.discard(job.id)
                break
            self._stopped.wait(
                _PAUSE_FULL
            )  # what was paid for is not thrown away: this thread asks nothing more until there is room
        self._progressed.set()

    def _finish(self, job: Job, done: Done) -> None:
        """The score was sent out: what waited for it follows, and the job is acknowledged. On the worker."""
        self._put([one.job for one in done.follow_ups if one.job is not None])
        self._acknowledge(job, done.score)
        for made in (done.scored, *done.composites):
            for score in made.scores:
                self.outcomes.report(made.turn.turn_id, score.metric, outcome_of(score))
        for one in done.follow_ups:
            if one.outcome is not None:
                self.outcomes.end(one.metric, done.scored, one.outcome)
        self._progressed.set()

    def confirm(self, done: Sequence[ScoredTurn]) -> list[ScoredTurn]:
        """Of scored turns that are about to be emitted, all but the judged ones that may not be. On the worker."""
        verdicts = list({id(scored.receipt): scored.receipt for scored in done if isinstance(scored.receipt, Verdict)}.values())
        if not verdicts:
            return list(done)
        kept = set(map(id, self._confirm(verdicts)))
        return [scored for scored in done if scored.receipt is None or id(scored.receipt) in kept]

    def _confirm(self, verdicts: Sequence[Verdict]) -> list[Verdict]:
        """The judged scores that may be sent out: their jobs are still ours, and they were not sent before. On the worker.

        This extends the leases, so that no other process claims the jobs until :meth:`Verdict.acknowledge` ends them.
        """
        lost = self._leases.confirm([verdict.job for verdict in verdicts])
        found, sent_before = [], []
        with self._lock:
            for verdict in [] if self._given_up else verdicts:
                job = verdict.job
                if job.id in self._sent:
                    sent_before.append(job)
                elif job.id not in lost:
                    self._sent[job.id] = None
                    found.append(verdict)
            while len(self._sent) > _SENT:
                self._sent.popitem(last=False)
        for job in sent_before:
            self._acknowledge(job, None)
        for verdict in verdicts:
            if verdict.job.id in lost:
                verdict.keep()
                self._release(verdict.job)
                self._failed("judge_lease", LeaseLost())
        return found

    def _release(self, job: Job) -> Job:
        """Hold a job no longer, before another process can claim it; returns it with its last lease."""
        with self._lock:
            self._under_way.pop(job.id, None)
            self._delivered.discard(job.id)
        return self._leases.release(job)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """While turns are planned or scores acknowledged: the queue learns of all of them at the end, at once. On the worker."""
        self._gathered_jobs, self._gathered_done = [], []
        try:
            yield
        finally:
            jobs, self._gathered_jobs = self._gathered_jobs, None
            done, self._gathered_done = self._gathered_done, None
            self._put(jobs)  # what follows a job is there before it goes
            try:
                if done:
                    for _ in self.queue.ack_many(done):
                        self._failed("judge_lease", LeaseLost())
            except Exception as error:  # they come back after their leases
                self._failed("judge_queue", error)
            self._progressed.set()

    def _acknowledge(self, job: Job, score: Score | None) -> None:
        """A job is done: the queue forgets it."""
        owned = self._release(job)
        try:
            if score is not None and score.status == "error":
                self.queue.dead(owned, score.error_type or "")
            elif self._gathered_done is not None:
                self._gathered_done.append(owned)
            else:
                self.queue.ack(owned)
        except Exception as error:  # it comes back after its lease, and its score again under the same id
            self._failed("judge_queue", error)

    def _discard(self, job: Job, reason: str, counted_as: str = "") -> None:
        done = self._runner.without_score(job, reason, counted_as or reason)
        if done is not None:
            self._deliver_verdict(job, done)
            return
        if self.queue.dead(self._release(job), reason):
            self.outcomes.drop([job], counted_as or reason)

    def _give_back(self, job: Job, at: float, *, counted: bool = False) -> None:
        """A job is due again at a time."""
        self.queue.retry_at(self._release(job), at, counted=counted)

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9

    def _wake(self, jobs: int) -> None:
        """There may be something to do for so many threads."""
        with self._changed:
            self._news += 1
            self._changed.notify(jobs)

    def _wake_all(self) -> None:
        with self._changed:
            self._news += 1
            self._changed.notify_all()

    def note(self, scored: ScoredTurn) -> None:
        """A judged score was sent out."""
        self.planner.note_sent(scored)

    # --- end of life

    def drain(self, until: float, render: Callable[[float], object], *, patient: bool = True) -> bool:
        """Wait until every job has ended; False if some have not by ``until``, in seconds of ``time.monotonic``.

        Args:
            until: when to give up.
            render: makes the worker render what was handed to it, within the given seconds.
            patient: False gives up too once nothing is done any more: all jobs that are left wait for a retry or for the budget.
        """
        quiet = 0
        while self._depth():
            left = until - time.monotonic()
            if left <= 0 or not any(thread.is_alive() for thread in self._threads) or (quiet == _QUIET_LOOKS and not patient):
                return False
            self._wake(1)
            quiet = 0 if self._progressed.wait(min(left, 0.05)) or self._busy else quiet + 1
            self._progressed.clear()
            render(max(0.0, until - time.monotonic()))
        return True

    def stop(self, render: Callable[[], object]) -> None:
        """Claim nothing more. Jobs that end with the process are counted as dropped. Safe to call twice."""
        if self._stopping:
            return
        self._stopping = True
        self._stopped.set()
        self._wake_all()
        render()
        with self._lock:  # a score that was not sent out by now is not sent out any more
            self._given_up = True
        try:
            self._give_back_claimed()
            self.outcomes.drop([job for job in self.queue.close() if job.id not in self._sent], "shutdown")
            self._runner.close()
        except Exception as error:
            self._failed("judge_queue", error)
        self._leases.stop()
        self._models.close()

    def after_fork_in_child(self) -> None:
        """The parent owns its jobs, and goes on with them; the child has threads and locks of its own."""
        self._reset()
        self._leases.reset()
        self.planner.after_fork_in_child()
        self.outcomes.reset()
        self._runner.after_fork_in_child()
        self.queue.after_fork_in_child()
