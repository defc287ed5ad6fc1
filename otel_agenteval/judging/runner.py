"""Judge job runner, which calls models, decides about retries, and plans follow-up jobs."""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from ..core import forks
from ..core.clock import Clock
from ..core.pacing import CircuitBreaker, CircuitBreakers, backoff
from ..core.score import Score
from ..core.telemetry import Telemetry
from ..core.turn import Turn
from ..evaluation.evaluator import score_one
from ..evaluation.scored_turn import Judged, ScoredTurn
from ..metrics.bound_metric import BoundMetric
from .budget import JudgeBudget
from .choose import JudgedMetrics, JudgedSample
from .job import (
    ContentFilter,
    Decision,
    Gathering,
    InnerOutcome,
    NewerPayload,
    Payload,
    Waiting,
    flattened,
    is_inner,
    judged_by,
    judged_turn,
    unmarked,
)
from .models import JudgeGroup, bypassing_cache
from .outcomes import NoScore, Outcomes, result_of, scored_or_not, unevaluated
from .queues import Job
from .sampling import position
from .session import OF_THE_SERVER, DelegatingGroup, Exhausted, JobProgress, Models, Session, is_transient

_log = logging.getLogger("otel_agenteval")
_AUDIT_SEED = "audit"
_KEPT = 1_000
_FIRST_PAUSE, _LONGEST_PAUSE = 2.0, 300.0
_LONGEST_WAIT = 600.0
"""Maximum seconds until the budget is checked again, so that a higher limit applies to waiting jobs, too."""
_PAUSE_UNASKED = 15.0
_PAUSE_NEWER = 300.0
"""Seconds between two checks of a job that only a later version of otel-agenteval can read."""
_PATIENCE = 15.0
"""Maximum seconds without an answer. After that, the health check reports the judge or embedder as silent."""
_BEHIND = 1.0
"""Extra seconds that a job waits after testing a failed server. Another job tests next, because this job might be the cause."""


@dataclass(frozen=True, slots=True)
class JobOptions:
    attempts: int
    threads: int
    max_age: float
    audit: float = 0.0
    """Share of jobs that call the judge even if the cache contains the reply."""
    works: bool = True
    """True if this process runs jobs. If False, other processes run the jobs in the queue."""
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class Retry:
    at: float
    counted: bool = False
    busy: bool = False


@dataclass(frozen=True, slots=True)
class Discard:
    reason: str


class NextSteps(NamedTuple):
    """Follow-up jobs, outcomes, and composite scores that result from a finished job."""

    jobs: Sequence[Job]
    ended: Sequence[tuple[str, NoScore]]
    composites: Sequence[ScoredTurn]


@dataclass(frozen=True, slots=True)
class Done:
    scored: ScoredTurn
    """Judged turn with its score. The turn has no score if only composites use the score, or if the job couldn't run."""
    score: Score
    next: NextSteps
    progress: JobProgress | None
    """Replies so far. If the score isn't exported, the next attempt in this process reuses these replies."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    job: Job
    payload: Payload
    metric: BoundMetric
    session: Session
    breaker: CircuitBreaker
    trying: bool
    """True if this job tests whether a failed server is available again."""


@dataclass(eq=False)
class JobRunner:
    _metrics: JudgedMetrics
    _follow_ups: FollowUps
    _content: ContentFilter
    _make_models: Callable[[], Models]
    """Function that creates the models. Called again in each forked child."""
    _budget: JudgeBudget
    _telemetry: Telemetry
    breakers: CircuitBreakers
    _outcomes: Outcomes
    _options: JobOptions
    _failed: Callable[[str, BaseException], None]
    _clock: Clock

    def __post_init__(self) -> None:
        self._reset()
        forks.in_child(self._reset)

    def _reset(self) -> None:
        self.models = self._make_models()
        self._lock = threading.Lock()
        self._progress: OrderedDict[str, JobProgress] = OrderedDict()
        self._calls: dict[int, tuple[CircuitBreaker, float]] = {}
        """Circuit breaker and monotonic start time of each job in progress."""

    def silent_models(self) -> dict[str, str]:
        """Return a mapping from ``judge`` or ``embedder`` to the reason why this model doesn't answer. Omit other models."""
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
        self._budget.close()
        self.breakers.close()

    def run(self, job: Job, wake: Callable[[], None]) -> Retry | Discard | Done:
        """Run a job. Return its score, the time for a retry, or the reason for a discard. After a server test, call ``wake``."""
        attempt = self._begin(job)
        if not isinstance(attempt, _Attempt):
            return attempt
        payload, session = attempt.payload, attempt.session
        is_scored = False
        try:
            turn = payload.turn()
            judge: Any = session
            if job.attempts > self._options.attempts:
                judge = Exhausted()
            elif isinstance(self.models.judge, JudgeGroup) and attempt.metric.metric.kind == "llm":
                judge = DelegatingGroup(self.models.judge, session.answer)
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
            if down and attempt.breaker.is_closed:
                model = "judge" if attempt.metric.metric.kind == "llm" else "embedder"
                _log.warning("%s: %s. Evaluations wait until a call succeeds", model, session.message)
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
        """Return a new attempt. Return :class:`Retry` if the job must wait, or :class:`Discard` if the job can't run."""
        try:
            payload = Payload.decode(job.payload)
        except NewerPayload:
            return Retry(self._in(_PAUSE_NEWER))
        metric, models = self._metrics.by_key(payload.key), self.models
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
        urgent = job.priority > 0 or progress is not None
        session = Session(models, self._budget, self._telemetry, metric.name, urgent, progress or JobProgress())
        attempt = _Attempt(job, payload, metric, session, breaker, trying)
        self._calls[id(attempt)] = breaker, self._clock.monotonic()
        return attempt

    def _retry(self, attempt: _Attempt, score: Score) -> Retry | None:
        session, breaker, attempts = attempt.session, attempt.breaker, attempt.job.attempts
        fault = session.fault
        if session.wait:
            return self._wait(attempt, "budget", self._in(min(session.wait, _LONGEST_WAIT)))
        if score.status != "error" or fault is None:
            return None
        if fault in OF_THE_SERVER:
            return self._wait(attempt, fault, breaker.until)
        if fault == "rate_limited":
            pause = _PAUSE_UNASKED * random.uniform(0.5, 1.5)  # noqa: S311 - jitter, no secret
            return self._wait(attempt, fault, self._in(max(session.pause, pause)))
        if not is_transient(fault):
            return None
        if attempt.trying:  # the server is down, maybe because of this job, so another job tries next
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
        judged = session.judged(metric, score, payload.chance, payload.root)
        made = judged_turn(scored, score, judged, seconds, self._content.exported(turn))
        if is_inner(payload.key):
            made = replace(made, scores=())
        return Done(made, score, self._follow_ups.after_score(payload, scored, score, judged), session.progress)

    def without_score(self, job: Job, reason: str, counted_as: str) -> Done | None:
        """Return a result without a score for a job that can't run, so that composites stop waiting for the job. If composites
        don't wait for the job, if the job is unreadable, or after an error, return None.
        """
        try:
            payload = Payload.decode(job.payload)
        except (NewerPayload, ValueError, KeyError, TypeError):
            return None
        if payload.gathering is None:
            return None
        try:
            scored = payload.scored_turn(payload.turn())
            following = self._follow_ups.without_score(payload, scored, counted_as)
            judged = judged_by("llm", payload.chance, payload.root)
            failed = Score(payload.metric, status="error", error_type=reason)
            return Done(replace(judged_turn(scored, failed, judged), scores=()), failed, following, None)
        except Exception as error:
            self._failed("judging", error)
            return None

    def keep_progress(self, job: Job, progress: JobProgress | None) -> None:
        """Keep paid replies for the next attempt. Without these replies, a job might never finish within a small budget."""
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


_NOT_CONFIGURED = NoScore.dropped("not_configured")


@dataclass(frozen=True, slots=True)
class FollowUps:
    """Planner of follow-up jobs and composite scores. Thread-safe."""

    _metrics: JudgedMetrics
    _sample: JudgedSample
    _content: ContentFilter

    def after_score(self, payload: Payload, scored: ScoredTurn, score: Score, judged: Judged) -> NextSteps:
        """Return the next steps after a score. ``sample.cascade`` uses this score to decide which waiting metrics are judged."""
        judge: list[Waiting] = []
        ended: list[tuple[Waiting, NoScore]] = []
        value = "no value" if score.value is None else f"{score.value:g}"
        for waiting in payload.then:
            metric = self._metrics.by_key(waiting.key)
            cascade = None if metric is None else self._metrics.rule(waiting.key).cascade
            if metric is None or cascade is None:
                ended += [(one, _NOT_CONFIGURED) for one in flattened([waiting])]
                continue
            chance = cascade.chance(waiting.chance, payload.chance, scored.turn, score)
            if payload.position < chance.probability:
                judge.append(replace(waiting, chance=chance, decided=Decision(score.metric, score.value)))
                self._sample.record_choice(metric.name, waiting.key, scored, chance)
            else:
                outcome = NoScore.sampled_out(chance.probability, f" after {score.metric}: {value}")
                passed_on = outcome.passed_on_by(metric.name)
                ended.append((replace(waiting, chance=chance), outcome))
                ended += [(replace(one, chance=chance), passed_on) for one in flattened(waiting.then)]
        cost = judged.cost_usd if is_inner(payload.key) else None
        return self._next_steps(payload, scored, InnerOutcome(score, payload.chance, cost), judge, ended)

    def without_score(self, payload: Payload, scored: ScoredTurn, reason: str) -> NextSteps:
        """Return the next steps after a job that can't run. The job's metric and the metrics that wait for it get no score."""
        outcome = NoScore.dropped(reason)
        own = Waiting(payload.key, payload.metric, payload.chance)
        ended = [(one, outcome) for one in (*flattened(payload.then), own)]
        return self._next_steps(payload, scored, InnerOutcome(unevaluated(payload.metric, outcome), payload.chance), (), ended)

    def _next_steps(
        self,
        payload: Payload,
        scored: ScoredTurn,
        own: InnerOutcome,
        judge: Sequence[Waiting],
        ended: Sequence[tuple[Waiting, NoScore]],
    ) -> NextSteps:
        gathering = payload.gathering
        planned = [*judge, *(() if gathering is None else gathering.next)]
        removed = [one for one in planned if self._metrics.by_key(one.key) is None]
        judge = [one for one in planned if one not in removed]
        ended = [*ended, *((one, _NOT_CONFIGURED) for one in flattened(removed))]
        without_score = [(one.metric, outcome) for one, outcome in ended if not is_inner(one.key)]
        composites: list[ScoredTurn] = []
        if gathering is not None:
            known = {**gathering.found, unmarked(payload.key): own}
            known |= {unmarked(one.key): InnerOutcome(unevaluated(one.metric, outcome), one.chance) for one, outcome in ended}
            incomplete: list[Waiting] = []
            for one in gathering.composites:
                made = self._composite(one, known, payload, scored)
                if made is None and judge:
                    incomplete.append(one)
                elif isinstance(made, ScoredTurn):
                    composites.append(made)
                else:
                    without_score.append((one.metric, made or _NOT_CONFIGURED))
            gathering = Gathering(incomplete, known, judge[1:]) if incomplete else None
            if gathering is not None:  # the first job contains the other jobs
                judge = judge[:1]
        jobs = []
        for one in judge:
            metric = self._metrics.by_key(one.key)
            assert metric is not None  # metrics that aren't configured were removed
            following = replace(
                payload, key=one.key, metric=one.metric, chance=one.chance, decided=one.decided, then=one.then, gathering=gathering,
            )  # fmt: skip
            jobs.append(following.job(metric))
        return NextSteps(jobs, without_score, composites)

    def _composite(
        self, waiting: Waiting, known: Mapping[str, InnerOutcome], payload: Payload, scored: ScoredTurn
    ) -> ScoredTurn | NoScore | None:
        metric = self._metrics.by_key(waiting.key)
        made = None if metric is None else result_of(metric, waiting.chance, known, conversation=scored.conversation)
        if metric is None or made is None:
            return None
        found = scored_or_not(made, scored, self._content.exported(scored.turn), called_model=True)
        if isinstance(found, ScoredTurn) or payload.position < made.chance.probability:
            self._sample.record_choice(metric.name, waiting.key, scored, made.chance)
        return found
