"""Does one job: asks the models within a session, and says what is to become of the job."""

from __future__ import annotations

import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

from ..core.clock import Clock
from ..core.score import Score
from ..core.turn import Turn
from ..evaluation.evaluator import score_one
from ..evaluation.scored_turn import Judged, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from .circuit_breaker import CircuitBreaker, CircuitBreakers
from .job import NewerPayload, Payload, is_inner, judged_turn, upstream_of
from .models import bypassing_cache
from .outcomes import Outcomes
from .planner import FollowUp, Planner
from .queues import Job
from .sampling import position
from .session import OF_THE_SERVER, Exhausted, Progress, Session, Sessions, is_transient

_AUDIT_SEED = "audit"
_KEPT = 1_000
"""Jobs whose progress is kept while they wait."""
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0
_PAUSE_UNASKED = 15.0
"""Seconds until a job is tried again that the rate left no room for."""
_PAUSE_NEWER = 300.0
"""Seconds until a job is looked at again that only a later version can read."""
_BEHIND = 1.0
"""Seconds that a job that tried a server in vain stands behind the others: it may be what the server fails on."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    """What the configuration says about jobs."""

    attempts: int
    """Tries per job while the models fail."""
    threads: int
    """Jobs at once."""
    max_age: float
    """Seconds that a job may wait."""
    audit: float = 0.0
    """Share of jobs whose questions are asked although the judge knows the answer."""
    works: bool = True
    """Whether jobs are done here; else others take them from the queue."""
    lasting: bool = False
    """Whether the queue outlives this process."""


@dataclass(frozen=True, slots=True)
class Retry:
    """The job goes back to its queue."""

    at: float
    """When it is due again, in seconds since the Unix epoch."""
    counted: bool = False
    """Whether the attempt counts."""
    busy: bool = False
    """Whether another job is trying the same server just now."""


@dataclass(frozen=True, slots=True)
class Discard:
    """The job cannot be done."""

    reason: str


@dataclass(frozen=True, slots=True)
class Done:
    """The job has a score."""

    scored: ScoredTurn
    """With its score; without one where that was asked for composites alone."""
    score: Score
    follow_ups: Sequence[FollowUp]
    composites: Sequence[ScoredTurn]
    """What was made of this score and others."""
    progress: Progress | None
    """What was paid for, should the score not be sent out after all."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    """A job whose models are asked."""

    job: Job
    payload: Payload
    metric: BoundMetric
    session: Session
    breaker: CircuitBreaker
    trying: bool
    """Whether it finds out for all jobs if the server is up again."""


class JobRunner:
    """Does jobs, each in the thread that calls. Thread-safe.

    Args:
        planner: knows the metrics, and what follows their scores.
        sessions: opens a session for each job.
        breakers: know which servers are down.
        outcomes: learns what jobs wait for.
        options: as configured.
        failed: called with faults of ours.
        clock: dates retries.
    """

    def __init__(
        self,
        planner: Planner,
        sessions: Sessions,
        breakers: CircuitBreakers,
        outcomes: Outcomes,
        options: JobOptions,
        failed: Callable[[str, BaseException], None],
        clock: Clock,
    ) -> None:
        self.sessions = sessions
        self.breakers = breakers
        self._planner = planner
        self._outcomes = outcomes
        self._options = options
        self._failed = failed
        self._clock = clock
        self._reset()

    def _reset(self) -> None:
        self._lock = threading.Lock()
        self._progress: OrderedDict[str, Progress] = OrderedDict()
        """By job: what those got that have to wait."""

    def after_fork_in_child(self) -> None:
        """The parent continues its jobs; the child has connections and locks of its own."""
        self._reset()
        self.sessions.after_fork_in_child()
        self.breakers.after_fork_in_child()

    def close(self) -> None:
        """Release what was spent, and what is known of servers that are down."""
        self.sessions.budget.close()
        self.breakers.close()

    def run(self, job: Job, wake: Callable[[], None]) -> Retry | Discard | Done:
        """Do a job, unless it has to wait or cannot be done. ``wake`` is called once other jobs may go to a server that was down."""
        try:
            payload = Payload.decode(job.payload)
        except NewerPayload:
            return Retry(self._in(_PAUSE_NEWER))
        metric, models = self._planner.metrics.by_key(payload.key), self.sessions.models
        if metric is None or not models.can_ask(metric):
            return Discard("not_configured")
        if self._in(0.0) - payload.at > self._options.max_age:
            return Discard("too_old")
        breaker = self.breakers.of(models.server_of(metric, payload.agent))
        wait, trying = breaker.enter()
        if wait is None:  # another job tries; the thread that has the oldest one goes next
            return Retry(self._in(0.0), busy=True)
        if wait:
            self._report(payload, "waiting: circuit_open")
            return Retry(breaker.until)
        with self._lock:
            progress = self._progress.pop(job.id, None)
        session = self.sessions.open(metric.name, urgent=job.priority > 0, progress=progress)
        attempt = _Attempt(job, payload, metric, session, breaker, trying)
        try:
            turn, score, seconds = self._ask(attempt)
        finally:
            if trying:
                wake()
        if session.broken is not None:
            self._failed("judge_budget", session.broken)
        retry = self._retry(attempt, score)
        if retry is not None:
            self.keep(job, session.progress)
            return retry
        return self._done(attempt, turn, score, seconds)

    def _ask(self, attempt: _Attempt) -> tuple[Turn, Score, float]:
        """The turn, its score, and the seconds that took. The breaker learns whether the server answered."""
        job, session = attempt.job, attempt.session
        fine = False
        try:
            turn = attempt.payload.turn()
            asked: Any = Exhausted() if job.attempts > self._options.attempts else session
            start = time.perf_counter()
            audit = self._options.audit
            with bypassing_cache() if audit and position(job.id, _AUDIT_SEED) < audit else nullcontext():
                score = score_one(attempt.metric, turn, attempt.payload.sources, judge=asked, embedder=asked)
            seconds = time.perf_counter() - start
            fine = score.status == "ok"  # where a second judge failed, the first one answered
        finally:
            answered = session.answered
            down = not fine and session.fault in OF_THE_SERVER
            attempt.breaker.leave(attempt.trying, True if fine and answered is not None else answered, down=down)
        return turn, score, seconds

    def _retry(self, attempt: _Attempt, score: Score) -> Retry | None:
        """When the job is tried again; None if its score stands."""
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
        if attempt.trying:  # the server is down; but it may be the job that it fails on, so another one tries next
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
        judged = session.judged(metric, score, payload.chance, upstream_of(payload.root))
        made = judged_turn(scored, score, judged, seconds, self._planner.content.exported(turn))
        following = self._planner.follow_ups(payload, scored, score, judged)
        if is_inner(payload.key):
            made.scores = ()
        return Done(made, score, following.follow_ups, following.composites, session.progress)

    def without_score(self, job: Job, reason: str, counted_as: str) -> Done | None:
        """What follows for composites, and for what is asked after it, once a job cannot be done; None where nothing waits but by cascade."""
        try:
            payload = Payload.decode(job.payload)
        except (NewerPayload, ValueError, KeyError, TypeError):
            return None
        if payload.gathering is None:
            return None
        try:
            scored = payload.scored_turn(payload.turn())
            following = self._planner.follow_without_score(payload, scored, counted_as)
            judged = Judged("llm", payload.chance.probability, decided_by=payload.chance.by, upstream=upstream_of(payload.root))
            failed = Score(payload.metric, status="error", error_type=reason)
            made = judged_turn(scored, failed, judged)
            made.scores = ()
            return Done(made, failed, following.follow_ups, following.composites, None)
        except Exception as error:
            self._failed("judging", error)
            return None

    def keep(self, job: Job, progress: Progress | None) -> None:
        """Keep what a job got: next time it asks only for the rest, or it would never come to an end in a tight budget."""
        if progress is None:
            return
        with self._lock:
            self._progress[job.id] = progress
            if len(self._progress) > _KEPT:
                self._progress.popitem(last=False)

    def _in(self, seconds: float) -> float:
        """In so many seconds, as seconds since the Unix epoch."""
        return self._clock.time_ns() / 1e9 + seconds


def pause_after(attempts: int) -> float:
    """Seconds until a job is tried again that failed so often."""
    longest = min(_LONGEST_PAUSE, _FIRST_PAUSE * 2.0 ** max(0, attempts - 1))
    return longest * random.uniform(0.5, 1.0)  # noqa: S311 - jitter, no secret
