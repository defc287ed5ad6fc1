"""Session between a job and the models. It enforces the budget and records judge calls."""

from __future__ import annotations

import copy
import hashlib
import marshal
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ..core import forks, jsonio
from ..core.errors import JudgeError
from ..core.score import Exchange, Score
from ..core.semconv import JUDGE_CACHE, JUDGE_REQUESTS, JUDGE_SPENT
from ..core.telemetry import Telemetry
from ..core.turn import Turn
from ..evaluation.scored_turn import Judged
from ..metrics.bound_metric import BoundMetric, ChoosesJudges
from ..metrics.evaluation_context import EvaluationState, current_evaluation
from ..metrics.question import Answers, Question
from .budget import Admission, JudgeBudget
from .models import Account, JudgeGroup, admitting_repairs, is_cache_bypassed, listening, recording
from .models.base import EmbedderModel, JudgeModel, Model
from .sampling import Chance

OF_THE_SERVER = frozenset(("circuit_open", "insufficient_quota"))
"""Error types of the server, which every judge call gets."""
_WAIT_FOR_BOOK = 15.0


@dataclass(frozen=True, slots=True)
class Models:
    judge: JudgeModel | None = None
    embedder: EmbedderModel | None = None

    def can_ask(self, metric: BoundMetric) -> bool:
        return (self.judge if metric.metric.kind == "llm" else self.embedder) is not None

    def server_of(self, metric: BoundMetric, agent: str) -> str:
        """Return a metric's kind and, if its server isn't the default, the server's address."""
        kind = metric.metric.kind
        other = self.judge.server_of(metric.metric.name, agent) if kind == "llm" and self.judge is not None else ""
        return f"{kind} {other}" if other else kind

    def close(self) -> None:
        for model in (self.judge, self.embedder):
            if model is not None:
                model.close()


class Sessions:
    """Factory of sessions with the configured models and one budget. ``make_models`` is called again in a forked child."""

    def __init__(self, make_models: Callable[[], Models], budget: JudgeBudget, telemetry: Telemetry) -> None:
        self._make_models = make_models
        self._open_models()
        self.budget = budget
        self._telemetry = telemetry
        forks.in_child(self._open_models)

    def _open_models(self) -> None:
        self.models = self._make_models()

    def open(self, metric: str, *, urgent: bool, progress: JobProgress | None) -> Session:
        kind = GroupSession if isinstance(self.models.judge, JudgeGroup) else Session
        return kind(self.models, self.budget, self._telemetry, metric, urgent, progress)


class OverBudget(Exception):
    """A judge call would exceed the budget."""


class PaidReply(NamedTuple):
    """A reply, and how much of the material the judge received."""

    reply: dict[str, Any]
    pieces: int
    truncated: bool


@dataclass(slots=True)
class JobProgress:
    """Paid replies that a job received before it had to wait. They aren't requested again."""

    replies: dict[tuple[str, int], PaidReply] = field(default_factory=dict)
    """Replies by the call's hash and the number of identical earlier calls."""
    accounts: list[Account] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)


class Session(Answers):
    """Judge and embedder for one job, within the budget. Urgent jobs can use the reserved share."""

    def __init__(
        self,
        models: Models,
        budget: JudgeBudget,
        telemetry: Telemetry,
        metric: str,
        urgent: bool,
        progress: JobProgress | None = None,
    ) -> None:
        self._models = models
        self._budget = budget
        self._telemetry = telemetry
        self._metric = metric
        self._urgent = urgent or progress is not None
        self._earlier = progress or JobProgress()
        self._calls: Counter[str] = Counter()
        """Number of identical calls, by hash."""
        self.wait = 0.0
        """Seconds until the budget has room again, or 0."""
        self.pause = 0.0
        self.broken: Exception | None = None
        """Error that prevented reading or writing the budget. No model is called in this case."""
        self.fault: str | None = None
        self.accounts: list[Account] = []
        self.exchanges: list[Exchange] = []

    def answer(self, question: Question, judge: JudgeModel | None = None) -> dict[str, Any]:
        """Return the reply of a judge, or of the default one: the paid reply of an earlier attempt, a cached reply, or a new one."""
        judge = judge or self._models.judge
        assert judge is not None
        fields = [getattr(question, name) for name in Question.__slots__]
        hashed = hashlib.sha256(jsonio.dumps([id(judge), *fields]).encode()).hexdigest()
        call = hashed, self._calls[hashed]
        self._calls[hashed] += 1
        evaluation = current_evaluation() or EvaluationState()
        if call in self._earlier.replies:
            paid = self._earlier.replies[call]
            evaluation.learn(paid.pieces, paid.truncated)
            return _copied(paid.reply)
        reply = None
        if judge.has_cache:
            reply = judge.cached(question)
            outcome = "hit" if reply is not None else "audit" if is_cache_bypassed() else "miss"
            self._telemetry.add(JUDGE_CACHE, outcome=outcome)
        if reply is None:
            with self._within_budget(judge):
                reply = judge.answer(question)
        self._earlier.replies[call] = PaidReply(_copied(reply), evaluation.pieces, evaluation.truncated)
        return reply

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        embedder = self._models.embedder
        assert embedder is not None
        with self._within_budget(embedder):
            return embedder.embed(texts)

    @property
    def progress(self) -> JobProgress | None:
        earlier = self._earlier
        if not earlier.replies:
            return None
        return JobProgress(earlier.replies, [*earlier.accounts, *self.accounts], [*earlier.exchanges, *self.exchanges])

    @property
    def answered(self) -> bool | None:
        """Return True if the server answered, even with a refusal, or None if it wasn't called."""
        if not any(account.attempts for account in self.accounts):
            return None
        return not is_transient(self.fault)

    @contextmanager
    def _within_budget(self, model: Model) -> Iterator[None]:
        """Reserve budget for the call of a model in the block, and record its requests. Raises :class:`OverBudget` if it must wait."""
        if self._budget.wants_prices(self._metric) and not model.priced:
            self.fault = "unpriced"
            raise JudgeError(f"judge.prices: must contain {model.model}, because judge.budget has a dollar limit", "unpriced")
        admissions = [self._admit()]
        self._urgent = True  # a job that began can finish
        outcome = "ok"
        repairs = admitting_repairs(lambda: admissions.append(self._admit_repair()))
        with recording() as accounts, listening() as exchanges, repairs:
            try:
                yield
            except JudgeError as error:
                self.fault, outcome = error.error_type, "error"
                self.pause = error.retry_after
                raise
            finally:
                self._telemetry.add(JUDGE_REQUESTS, outcome=outcome)
                self.accounts += accounts
                self.exchanges += exchanges
                for account in accounts:
                    if account.cost_usd is not None:
                        self._telemetry.add(JUDGE_SPENT, account.cost_usd)
                self._correct(admissions, accounts)

    def _admit(self) -> Admission:
        try:
            admission = self._budget.admit(self._metric, urgent=self._urgent)
        except Exception as error:  # for example, a locked file or a full disk
            self.broken, self.wait = error, _WAIT_FOR_BOOK
            raise OverBudget from None
        if admission.wait:
            self.wait = admission.wait
            self._telemetry.add(JUDGE_REQUESTS, outcome="gated")
            raise OverBudget
        return admission

    def _admit_repair(self) -> Admission:
        """Reserve budget for a repair without waiting, because the whole call would be repeated."""
        try:
            admission = self._budget.admit(self._metric, urgent=True)
        except Exception as error:
            self.broken = error
            raise JudgeError("the reply is unreadable, and the budget can't be read for a retry", "unreadable_reply") from None
        if admission.wait:
            raise JudgeError("the reply is unreadable, and judge.budget allows no retry", "unreadable_reply")
        self._telemetry.add(JUDGE_REQUESTS, outcome="unreadable")
        return admission

    def _correct(self, admissions: Sequence[Admission], accounts: Sequence[Account]) -> None:
        """Replace the budget's estimates by the actual cost of the judge call and its repair."""
        try:
            for admission, repair in zip(admissions, (False, True), strict=False):
                charges = [account.charge_usd for account in accounts if account.repair is repair and account.attempts]
                known = [charge for charge in charges if charge is not None]
                self._budget.correct(admission, sum(known) if len(known) == len(charges) else None, calls=int(bool(charges)))
        except Exception as error:  # the estimate stays, and the paid answer is used
            self.broken = error

    def judged(self, metric: BoundMetric, score: Score, chance: Chance, upstream: float | None) -> Judged:
        asked = [*self._earlier.accounts, *self.accounts]
        costs = [account.cost_usd for account in asked if account.error_type is None]
        known = [cost for cost in costs if cost is not None]
        cost = sum(known) if known and len(known) == len(costs) else None
        kind = metric.metric.kind
        default = self._models.judge if kind == "llm" else self._models.embedder
        model = asked[-1].model if asked else None if default is None else default.model
        truncated = bool(score.detail.get("input_truncated"))
        exchanges = (*self._earlier.exchanges, *self.exchanges)
        return Judged(kind, chance.probability, model, cost, chance.by, upstream, input_truncated=truncated, exchanges=exchanges)


class GroupSession(Session, ChoosesJudges):
    def evaluated(self, metric: BoundMetric, turn: Turn) -> Score:
        group = self._models.judge
        assert isinstance(group, JudgeGroup)
        return group.evaluated(metric, turn, lambda judge: _JudgeInSession(self, judge))


class _JudgeInSession(Answers):
    def __init__(self, session: Session, judge: JudgeModel) -> None:
        self._session = session
        self._judge = judge
        self.model = judge.model

    def answer(self, question: Question) -> dict[str, Any]:
        return self._session.answer(question, self._judge)


def _copied(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a deep copy of a reply, because the calling metric can change it."""
    try:
        found: dict[str, Any] = marshal.loads(marshal.dumps(reply))  # noqa: S302 - it was written in the same line
    except ValueError:  # a custom judge can return more than JSON
        return copy.deepcopy(reply)
    return found


class Exhausted(Answers):
    """Judge and embedder that reject every call, for a job without remaining attempts."""

    def answer(self, question: Question) -> dict[str, Any]:
        raise JudgeError("all judge.attempts were used without a result", "attempts_exhausted")

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        raise JudgeError("all judge.attempts were used without a result", "attempts_exhausted")


_TRANSIENT = frozenset(
    ("timeout", "unreachable", "server_error", "invalid_answer", "http_408", "http_409", "http_424", "http_429", "http_498")
)
_LASTING = frozenset(("http_501", "http_505"))


def is_transient(error_type: str | None) -> bool:
    """Return True if a retry can succeed after this error type."""
    return error_type is not None and (
        error_type in _TRANSIENT or (error_type.startswith("http_5") and error_type not in _LASTING)
    )
