"""Runner that calls the models for one job and decides what happens to the job."""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

from ..core import forks
from ..core.clock import Clock
from ..core.pacing import CircuitBreaker, CircuitBreakers, backoff
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.evaluator import score_one
from ..evaluation.scored_turn import Judged, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from .follow_up import FollowUp, FollowUps
from .job import ContentFilter, NewerPayload, Payload, is_inner, judged_turn
from .judged_metrics import JudgedMetrics
from .models import bypassing_cache
from .outcomes import Outcomes
from .queues import Job
from .sampling import position, upstream_probability
from .session import OF_THE_SERVER, Exhausted, JobProgress, Session, Sessions, is_transient

_AUDIT_SEED = "audit"
_KEPT = 1_000
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0
_PAUSE_UNASKED = 15.0
_PAUSE_NEWER = 300.0
"""Seconds until a job that only a later version can read is checked again."""
_PATIENCE = 15.0
"""Seconds without an answer after which health reports a judge or an embedder."""
_BEHIND = 1.0
"""Extra seconds for a job that tried a server in vain, because the job itself may be the reason. Another job tries next."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    attempts: int
    threads: int
    max_age: float
    audit: float = 0.0
    """Share of jobs that call the judge even if the reply is cached."""
    works: bool = True
    """True if this process runs jobs. Otherwise, other processes take them from the queue."""
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    at: float
    counted: bool = False
    busy: bool = False
    """True if another job is trying the same server."""


@dataclass(frozen=True, slots=True)
class Discard:
    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    scored: ScoredTurn
    """The turn with its score, or without it if only composites need the score."""
    score: Score
    follow_ups: Sequence[FollowUp]
    composites: Sequence[ScoredTurn]
    progress: JobProgress | None
    """The paid replies, in case the score isn't emitted."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    job: Job
    payload: Payload
    metric: BoundMetric
    session: Session
    breaker: CircuitBreaker
    trying: bool
    """True if this job checks for all others if the server is up again."""


@dataclass(eq=False)
class JobRunner:
    """Runner of jobs, each in the calling thread. Thread-safe."""

    _metrics: JudgedMetrics
    _follow_ups: FollowUps
    _content: ContentFilter
    sessions: Sessions
    breakers: CircuitBreakers
    _outcomes: Outcomes
    _options: JobOptions
    _failed: Callable[[str, BaseException], None]
    _clock: Clock

    def __post_init__(self) -> None:
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._progress: OrderedDict[str, JobProgress] = OrderedDict()
        self._calls: dict[int, tuple[CircuitBreaker, float]] = {}
        """Server and start of each job in progress."""

    def silent_models(self) -> dict[str, str]:
        """Return why a judge or an embedder gives no scores, by their names."""
        now, calls, found = self._clock.monotonic(), [*self._calls.copy().values()], {}
        for server, breaker in self.breakers.all().items():
            began = min((start for one, start in calls if one is breaker), default=now)
            silent = now - max(began, breaker.answered_at)
            if breaker.failures or not breaker.is_closed:
                reason = f"the last {breaker.failures or 1} calls failed"
            elif silent > _PATIENCE:
                reason = f"no answer for {silent:.0f} s"
            else:
                continue
            found["judge" if server.startswith("llm") else "embedder"] = reason
        return found

    def close(self) -> None:
        self.sessions.budget.close()
        self.breakers.close()

    def run(self, job: Job, wake: Callable[[], None]) -> Retry | Discard | Done:
        """Run a job, unless it must wait or can't be done. After a try of a server that was down, ``wake`` lets others continue."""
        attempt = self._begin(job)
        if not isinstance(attempt, _Attempt):
            return attempt
        payload, session = attempt.payload, attempt.session
        is_scored = False
        try:
            turn = payload.turn()
            judge: Any = Exhausted() if job.attempts > self._options.attempts else session
            audit = self._options.audit
            start = time.perf_counter()
            with bypassing_cache() if audit and position(job.id, _AUDIT_SEED) < audit else nullcontext():
                score = score_one(attempt.metric, turn, payload.sources, judge=judge, embedder=judge)
            seconds = time.perf_counter() - start
            is_scored = score.status == "ok"  # a score means that one judge answered, even if another one failed
        finally:
            del self._calls[id(attempt)]
            answered = session.answered
            down = not is_scored and session.fault in OF_THE_SERVER
            attempt.breaker.leave(attempt.trying, True if is_scored and answered is not None else answered, down=down)
            if attempt.trying:
                wake()
        if session.broken is not None:
            self._failed("judge_budget", session.broken)
        retry = self._retry(attempt, score)
        if retry is not None:
            self.keep_progress(job, session.progress)
            return retry
        return self._done(attempt, turn, score, seconds)

    def _begin(self, job: Job) -> _Attempt | Retry | Discard:
        """Return the attempt, after :meth:`CircuitBreaker.enter`, or why the job must wait or can't be done."""
        try:
            payload = Payload.decode(job.payload)
        except NewerPayload:
            return Retry(self._in(_PAUSE_NEWER))
        metric, models = self._metrics.by_key(payload.key), self.sessions.models
        if metric is None or not models.can_ask(metric):
            return Discard("not_configured")
        if self._in(0.0) - payload.at > self._options.max_age:
            return Discard("too_old")
        breaker = self.breakers.of(models.server_of(metric, payload.agent))
        wait, trying = breaker.enter()
        if wait is None:  # another job is trying the server
            return Retry(self._in(0.0), busy=True)
        if wait:
            self._report(payload, "waiting: circuit_open")
            return Retry(breaker.until)
        with self._lock:
            progress = self._progress.pop(job.id, None)
        session = self.sessions.open(metric.name, urgent=job.priority > 0, progress=progress)
        attempt = _Attempt(job, payload, metric, session, breaker, trying)
        self._calls[id(attempt)] = breaker, self._clock.monotonic()
        return attempt

    def _retry(self, attempt: _Attempt, score: Score) -> Retry | None:
        """Return when the job is tried again, or None if its score is final."""
        session, breaker, attempts = attempt.session, attempt.breaker, attempt.job.attempts
        fault = session.fault
        if session.wait:
            return self._wait(attempt, "budget", self._in(session.wait))
        if score.status != "error" or fault is None:
            return None
        if fault in OF_THE_SERVER:
            return self._wait(attempt, fault, breaker.until)
        if fault == "rate_limited":
            pause = _PAUSE_UNASKED * random.uniform(0.5, 1.5)  # noqa: S311 - jitter, no secret
            return self._wait(attempt, fault, self._in(max(session.pause, pause)))
        if not is_transient(fault):
            return None
        if attempt.trying:  # the server is down, maybe because of this job, so another one tries next
            return self._wait(attempt, fault, breaker.until + _BEHIND)
        if attempts < self._options.attempts:
            return self._wait(attempt, fault, self._in(max(session.pause, pause_after(attempts))), counted=True)
        return None

    def _wait(self, attempt: _Attempt, reason: str, at: float, *, counted: bool = False) -> Retry:
        self._report(attempt.payload, f"waiting: {reason}")
        return Retry(at, counted)

    def _report(self, payload: Payload, outcome: str) -> None:
        if not is_inner(payload.key):
            self._outcomes.report(payload.turn_id, payload.metric, outcome)

    def _done(self, attempt: _Attempt, turn: Turn, score: Score, seconds: float) -> Done:
        payload, metric, session = attempt.payload, attempt.metric, attempt.session
        if payload.decided is not None and score.status == "ok":
            score.detail["decided_by"] = payload.decided._asdict()
        scored = payload.scored_turn(turn)
        judged = session.judged(metric, score, payload.chance, upstream_probability(payload.root.trace_state))
        made = judged_turn(scored, score, judged, seconds, self._content.exported(turn))
        following = self._follow_ups.after_score(payload, scored, score, judged)
        if is_inner(payload.key):
            made = replace(made, scores=())
        return Done(made, score, following.follow_ups, following.composites, session.progress)

    def without_score(self, job: Job, reason: str, counted_as: str) -> Done | None:
        """Return the next steps if a job can't be done, or None if no composite waits for it."""
        try:
            payload = Payload.decode(job.payload)
        except (NewerPayload, ValueError, KeyError, TypeError):
            return None
        if payload.gathering is None:
            return None
        try:
            scored = payload.scored_turn(payload.turn())
            following = self._follow_ups.without_score(payload, scored, counted_as)
            judged = Judged(
                "llm",
                payload.chance.probability,
                decided_by=payload.chance.by,
                upstream=upstream_probability(payload.root.trace_state),
            )
            failed = Score(payload.metric, status="error", error_type=reason)
            made = replace(judged_turn(scored, failed, judged), scores=())
            return Done(made, failed, following.follow_ups, following.composites, None)
        except Exception as error:
            self._failed("judging", error)
            return None

    def keep_progress(self, job: Job, progress: JobProgress | None) -> None:
        """Keep paid replies, because a job might never finish within a tight budget without them."""
        if progress is None:
            return
        with self._lock:
            self._progress[job.id] = progress
            if len(self._progress) > _KEPT:
                self._progress.popitem(last=False)

    def _in(self, seconds: float) -> float:
        return self._clock.time_ns() / 1e9 + seconds


def pause_after(attempts: int) -> float:
    return backoff(attempts, _FIRST_PAUSE, _LONGEST_PAUSE)
