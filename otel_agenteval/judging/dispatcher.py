"""Dispatcher that queues judge jobs, runs them, and passes their scores to the worker."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace

from ..core import forks
from ..core.clock import Clock
from ..core.score import Score, outcome_of
from ..core.threads import OwnThread, is_meant_for_host, own_work
from ..evaluation.scored_turn import ScoredTurn
from .job import Payload
from .leases import HeldLeases, LeaseLost
from .outcomes import Outcomes
from .plan import Planner
from .queues import Job, JobQueue
from .runner import Discard, Done, JobOptions, JobRunner, Retry, pause_after
from .session import Models

_log = logging.getLogger("otel_agenteval")
_POLL = 0.5
_IDLE = 30.0
"""Seconds between checks of the queue if another thread polls, or if the queue is empty and not shared."""
_QUIET_CHECKS = 4
_SENT = 10_000
_PAUSE_FULL = 0.1
"""Seconds between two attempts to add a score to the worker's queue while that queue is full."""
_THREADS_PER_CLAIM = 8


@dataclass(frozen=True, slots=True)
class Verdict:
    """Judged score, and the job that produced the score. The job is acknowledged after the score is exported."""

    done: Done
    job: Job
    """Job that produced the score. If another process claims this job before the score is exported, the score is discarded."""
    acknowledge: Callable[[], None]

    def turns(self) -> Sequence[ScoredTurn]:
        """Return one scored turn for the judged score and one for each composite score, all with this verdict as ``receipt``."""
        return [replace(scored, receipt=self) for scored in (self.done.scored, *self.done.next.composites)]


@dataclass(eq=False)
class Dispatcher:
    """Owner of the judge threads. Plans judge jobs, queues and runs them, and delivers their scores."""

    planner: Planner
    runner: JobRunner
    _leases: HeldLeases
    outcomes: Outcomes
    _deliver: Callable[[Verdict], bool]
    _failed: Callable[[str, BaseException], None]
    _options: JobOptions
    _clock: Clock

    def __post_init__(self) -> None:
        self.metrics = self.planner.metrics
        self.sample = self.planner.sample
        self.queue: JobQueue = self._leases.queue
        self.lasting = self._options.lasting
        self.may_start = self._options.works
        self._stopping = False
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._changed = threading.Condition()
        """Condition variable on which idle threads wait. Each new job wakes one thread."""
        self._news = 0
        """Number of wake-ups so far. An idle thread waits only if this number is unchanged since the thread checked the queue."""
        self._is_polling = False
        """True if a waiting thread polls the queue on behalf of the other threads."""
        self._stopped = threading.Event()
        self._progressed = threading.Event()
        self._threads: list[threading.Thread] = []
        self._busy: set[int] = set()
        self._lock = threading.Lock()
        self._claiming = threading.Lock()
        self._claimed: deque[Job] = deque()
        self._sent: OrderedDict[str, None] = OrderedDict()
        """IDs of recent jobs whose scores were exported. If a lease expires, these IDs prevent a second score for the same job."""
        self._under_way: dict[str, Job] = {}
        """Jobs by ID. Each job is running, or its score waits for the worker."""
        self._delivered: set[str] = set()
        """IDs of jobs in ``_under_way`` whose scores wait for the worker."""
        self._given_up = False
        self._gathered_jobs: list[Job] | None = None
        """Jobs to queue when the active :meth:`at_once` block ends. None outside :meth:`at_once` blocks."""
        self._gathered_done: list[Job] | None = None
        """Jobs to acknowledge when the active :meth:`at_once` block ends. None outside :meth:`at_once` blocks."""

    # --- on the worker

    def plan(self, scored: ScoredTurn, *, again: bool = False) -> list[ScoredTurn]:
        """Queue a turn's judge jobs. Return the scores that don't need a judge call. Never raises. Set ``again`` if the turn was
        planned before. Then only jobs that new user feedback requires are queued.
        """
        answered, jobs = self.planner.plan(scored, self.runner.models.can_ask, again=again)
        self._put(jobs)
        return answered

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
        except Exception as error:  # for example, a full disk
            self._failed("judge_queue", error)
            self.outcomes.drop(jobs, "queue_error")
        if self.may_start and len(self._threads) < self._options.threads:
            self.start(self._depth())
        self._wake(len(jobs))

    def _depth(self) -> int:
        try:
            with own_work():  # after a failure, only judge threads wait for the queue
                return self.queue.depth
        except Exception as error:
            self._failed("judge_queue", error)
            return 1

    def start(self, jobs: int = 1) -> None:
        """Start at most one judge thread per job, up to the configured number. If no model is configured, no thread starts. Called
        only on the worker thread.
        """
        self._threads = [thread for thread in self._threads if thread.is_alive()]
        if self.runner.models == Models():
            return
        while self.may_start and not self._stopping and len(self._threads) < min(self._options.threads, jobs):
            thread = OwnThread(self._run, "otel-agenteval-judge")
            try:
                self._leases.start()
                thread.start()
            except RuntimeError:  # the interpreter is shutting down
                self.may_start = False
                return
            self._threads.append(thread)

    # --- on judge threads

    def _run(self) -> None:
        while not self._stopping:
            busy, news = False, self._news
            try:
                busy = self.step()
            except BaseException as error:  # for example, the queue's disk is full
                self._failed("judge_queue", error)
            if not busy:
                self._wait_for_news(news)
        self.runner.models.close()  # a judge call in progress may have reconnected after an earlier close

    def _wait_for_news(self, seen: int) -> None:
        """Wait until ``_news`` differs from ``seen``, or until the next check for retries and for other processes' jobs."""
        polls = not self._is_polling
        pause = _POLL if polls and (self.queue.is_shared or self._depth()) else _IDLE
        with self._changed:
            if self._stopping or self._news != seen:
                return
            polls = polls and not self._is_polling
            self._is_polling = self._is_polling or polls
            try:
                self._changed.wait(pause)
            finally:
                if polls:
                    self._is_polling = False

    def step(self) -> bool:
        """Run one due job in this thread. If no job can be claimed, return False."""
        job = self._next()
        if job is None:
            return False
        if not self._begin(job):
            return True
        self._busy.add(threading.get_ident())
        try:
            if job.id in self._sent:  # the score was emitted, but the acknowledgment failed: don't judge it again
                self._acknowledge(job, None)
            else:
                self._end(job, self.runner.run(job, self._wake))
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
            self._busy.discard(threading.get_ident())
            with self._lock:  # a job that was returned to the queue may already run in another thread
                if self._under_way.get(job.id) is job and job.id not in self._delivered:
                    del self._under_way[job.id]
        return True

    def _next(self) -> Job | None:
        """Return a due job, or None. One thread claims jobs for all threads, because an SQLite queue allows one claim at a time."""
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
                self._wake(len(found))  # a thread for each further job, and one that claims more

    def _begin(self, job: Job) -> bool:
        """Record the start of a claimed job. Return False if this process still handles an earlier claim of the job."""
        overdue = self._leases.is_overdue(job)
        with self._lock:
            begins = job.id not in self._under_way or (overdue and job.id in self._delivered)
            if begins:
                self._under_way[job.id] = job
                self._delivered.discard(job.id)
        if begins:
            self._leases.begin(job)
        elif overdue:  # let another process try
            self.queue.retry_at(job, self._now() + _POLL, counted=False)
        else:
            self._leases.hold([job], self._clock.monotonic())
        return begins

    def _end(self, job: Job, result: Retry | Discard | Done) -> None:
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
        verdict = Verdict(done, job, lambda: self._finish(job, done))
        self._delivered.add(job.id)
        while not self._deliver(verdict):
            if self._stopping:  # counted as dropped, or redelivered by the queue
                self._delivered.discard(job.id)
                break
            self._stopped.wait(_PAUSE_FULL)  # a paid score is never discarded, so this thread waits for room
        self._progressed.set()

    def _finish(self, job: Job, done: Done) -> None:
        """Queue the follow-up jobs of an exported score, and acknowledge the score's job. Called on the worker thread."""
        self._put(done.next.jobs)
        self._acknowledge(job, done.score)
        for made in (done.scored, *done.next.composites):
            for score in made.scores:
                self.outcomes.report(made.turn.turn_id, score.metric, outcome_of(score))
        for metric, outcome in done.next.ended:
            self.outcomes.end(metric, done.scored, outcome)
        self._progressed.set()

    def confirm(self, done: Sequence[ScoredTurn]) -> list[ScoredTurn]:
        """Return the turns to export. Omit a turn if its job's lease was lost or if its score was already exported.

        This method extends the leases first, so that other processes don't claim the jobs during the export. After
        :meth:`stop` has exported the pending scores, this method omits all verdicts. Called on the worker thread.
        """
        verdicts = list({id(scored.receipt): scored.receipt for scored in done if isinstance(scored.receipt, Verdict)}.values())
        if not verdicts:
            return list(done)
        lost = self._leases.confirm([verdict.job for verdict in verdicts])
        kept, sent_before = set(), []
        with self._lock:
            for verdict in [] if self._given_up else verdicts:
                job = verdict.job
                if job.id in self._sent:
                    sent_before.append(job)
                elif job.id not in lost:
                    self._sent[job.id] = None
                    kept.add(id(verdict))
            while len(self._sent) > _SENT:
                self._sent.popitem(last=False)
        for job in sent_before:
            self._acknowledge(job, None)
        for verdict in verdicts:
            if verdict.job.id in lost:
                self.runner.keep_progress(verdict.job, verdict.done.progress)  # the score isn't emitted, but the replies are paid
                self._release(verdict.job)
                self._failed("judge_lease", LeaseLost())
        return [scored for scored in done if scored.receipt is None or id(scored.receipt) in kept]

    def _release(self, job: Job) -> Job:
        with self._lock:
            self._under_way.pop(job.id, None)
            self._delivered.discard(job.id)
        return self._leases.release(job)

    @contextmanager
    def at_once(self) -> Iterator[None]:
        """Collect new jobs and acknowledgments, and write both to the queue when the block ends. Called on the worker thread."""
        self._gathered_jobs, self._gathered_done = [], []
        try:
            yield
        finally:
            jobs, self._gathered_jobs = self._gathered_jobs, None
            done, self._gathered_done = self._gathered_done, None
            self._put(jobs)  # follow-up jobs are queued before their predecessor is removed
            try:
                if done:
                    for _ in self.queue.ack_many(done):
                        self._failed("judge_lease", LeaseLost())
            except Exception as error:  # the jobs are redelivered when their leases end
                self._failed("judge_queue", error)
            self._progressed.set()

    def _acknowledge(self, job: Job, score: Score | None) -> None:
        owned = self._release(job)
        try:
            if score is not None and score.status == "error":
                self.queue.dead(owned, score.error_type or "")
            elif self._gathered_done is not None:
                self._gathered_done.append(owned)
            else:
                self.queue.ack(owned)
        except Exception as error:  # the job is redelivered when its lease ends, and its score has the same ID
            self._failed("judge_queue", error)

    def _discard(self, job: Job, reason: str, counted_as: str = "") -> None:
        done = self.runner.without_score(job, reason, counted_as or reason)
        if done is not None:
            self._deliver_verdict(job, done)
            return
        if self.queue.dead(self._release(job), reason):
            self.outcomes.drop([job], counted_as or reason)

    def _give_back(self, job: Job, at: float, *, counted: bool = False) -> None:
        self.queue.retry_at(self._release(job), at, counted=counted)

    def _now(self) -> float:
        return self._clock.time_ns() / 1e9

    def _wake(self, threads: int = sys.maxsize) -> None:
        with self._changed:
            self._news += 1
            self._changed.notify(threads)

    # --- end of life

    def drain(self, until: float, render: Callable[[float], object], *, patient: bool = True) -> bool:
        """Wait until all jobs have ended, then return True. Meanwhile, call ``render`` to export finished scores. Return False at
        the monotonic time ``until``, or if judge threads aren't running. If ``patient`` is false, also return False if the
        remaining jobs seem to wait for a retry or for budget.
        """
        quiet = 0
        while self._depth():
            left = until - time.monotonic()
            if left <= 0 or not any(thread.is_alive() for thread in self._threads) or (quiet == _QUIET_CHECKS and not patient):
                return False
            self._wake(1)
            quiet = 0 if self._progressed.wait(min(left, 0.05)) or self._busy else quiet + 1
            self._progressed.clear()
            render(max(0.0, until - time.monotonic()))
        return True

    def stop(self, render: Callable[[], object], left_behind: set[int] | None = None) -> None:
        """Stop claiming jobs. Jobs that are lost when this process ends count as dropped. If the queue is persistent, add the trace
        keys of these jobs' turns to ``left_behind``. The next process reads these turns from the journal and judges them.
        """
        if self._stopping:
            return
        self._stopping = True
        self._stopped.set()
        self._wake()
        render()
        with self._lock:  # from now on, no score is emitted
            self._given_up = True
        claims_ended = self._claiming.acquire(timeout=_POLL)  # a server may not answer
        try:
            while self._claimed:
                self._give_back(self._claimed.popleft(), self._now())
            lost = [job for job in self.queue.close() if job.id not in self._sent]
            if self.lasting and left_behind is not None:  # the next process judges turns that are in the journal
                left_behind |= {Payload.decode(job.payload).root.trace_key for job in lost}
            self.outcomes.drop(lost, "shutdown")
            if lost and not self.lasting:
                _log.warning(
                    "%d waiting judge jobs dropped. To avoid this, set judge.queue: {backend: sqlite, path: FILE}", len(lost)
                )
            self.runner.close()
        except Exception as error:
            self._failed("judge_queue", error)
        finally:
            if claims_ended:
                self._claiming.release()
        self._leases.stop()
        self.runner.models.close()
