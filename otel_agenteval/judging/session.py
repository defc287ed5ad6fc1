"""Between a job and the models: a session holds the job's questions to the budget, and keeps the account of what was asked."""

from __future__ import annotations

import copy
import hashlib
import marshal
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ..core import jsonio
from ..core.errors import JudgeError
from ..core.exchange import Exchange
from ..core.score import Score
from ..core.semconv import JUDGE_CACHE, JUDGE_REQUESTS, JUDGE_SPENT
from ..core.telemetry import Telemetry
from ..core.turn import Turn
from ..evaluation.scored_turn import Judged
from ..metrics.bound_metric import BoundMetric, ChoosesJudges
from ..metrics.evaluation_context import Evaluation, current_evaluation
from .budget import Admission, Budget
from .models import Account, Bench, admitting_repairs, is_cache_bypassed, listening, recording
from .models.base import EmbedderModel, JudgeModel, Model
from .sampling import Chance

T = TypeVar("T")
OF_THE_SERVER = frozenset(("circuit_open", "insufficient_quota"))
"""Faults of the server, not of the question: every other question meets them too."""
_WAIT_FOR_BOOK = 15.0
"""Seconds until a job is looked at again whose budget could not be read."""


@dataclass(frozen=True, slots=True)
class Models:
    """The models that a configuration names."""

    judge: JudgeModel | None = None
    embedder: EmbedderModel | None = None

    def can_ask(self, metric: BoundMetric) -> bool:
        """Whether there is a model for this metric."""
        return (self.judge if metric.metric.kind == "llm" else self.embedder) is not None

    def server_of(self, metric: BoundMetric, agent: str) -> str:
        """Which server is asked: that of its kind, and its address where it is another one than the others'."""
        kind = metric.metric.kind
        other = self.judge.server_of(metric.name, agent) if kind == "llm" and self.judge is not None else ""
        return f"{kind} {other}" if other else kind

    def close(self) -> None:
        """Release their connections. A later question makes new ones."""
        for model in (self.judge, self.embedder):
            if model is not None:
                model.close()


class Sessions:
    """Opens a session for each job, with the configured models and within one budget.

    Args:
        make_models: makes the models; again in a forked child.
        budget: bounds what is asked.
        telemetry: counts questions and their cost.
    """

    def __init__(self, make_models: Callable[[], Models], budget: Budget, telemetry: Telemetry) -> None:
        self._make_models = make_models
        self.models = make_models()
        self.budget = budget
        self._telemetry = telemetry

    def open(self, metric: str, *, urgent: bool, progress: Progress | None) -> Session:
        """A session for a job about a metric, see :class:`Session`."""
        kind = BenchSession if isinstance(self.models.judge, Bench) else Session
        return kind(self.models, self.budget, self._telemetry, metric, urgent, progress)

    def after_fork_in_child(self) -> None:
        """Connections and locks of its own; what the parent spent still counts."""
        self.models = self._make_models()
        self.budget.after_fork_in_child()


class OverBudget(Exception):
    """Raised where a question would go past the budget."""


class Reply(NamedTuple):
    """A reply, and what the judge saw of the question's material."""

    reply: dict[str, Any]
    pieces: int
    truncated: bool


@dataclass(slots=True)
class Progress:
    """What a job got before it had to wait: it is paid for, and not asked again."""

    replies: dict[tuple[str, int], Reply] = field(default_factory=dict)
    """By the hash of a question, and how often it was asked before."""
    accounts: list[Account] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)


class Session:
    """Stands before judge and embedder while one job is done: holds them to the budget, and keeps account.

    Args:
        models: the models that are asked.
        budget: bounds what is asked.
        telemetry: counts questions and their cost.
        metric: the metric that asks.
        urgent: whether the job may use what the budget reserves for those that matter more.
        progress: what the job got when it was tried before.
    """

    def __init__(
        self, models: Models, budget: Budget, telemetry: Telemetry, metric: str, urgent: bool, progress: Progress | None = None
    ) -> None:
        self._models = models
        self._budget = budget
        self._telemetry = telemetry
        self._metric = metric
        self._urgent = urgent or progress is not None
        self._earlier = progress or Progress()
        self._times: Counter[str] = Counter()
        """How often each question was asked."""
        self.wait = 0.0
        """Seconds until the budget has room again, once it had none."""
        self.pause = 0.0
        """Seconds that the server asked to be left alone for."""
        self.broken: Exception | None = None
        """What kept the budget from being read or written: nothing is asked then."""
        self.fault: str | None = None
        """Error type of the last question that failed."""
        self.accounts: list[Account] = []
        self.exchanges: list[Exchange] = []

    def ask(self, stage: str, task: str, data: Mapping[str, Any], reply: str, **more: Any) -> dict[str, Any]:
        """As :meth:`otel_agenteval.Judge.ask`."""
        judge = self._models.judge
        assert judge is not None
        return self.ask_of(judge, stage, task, data, reply, **more)

    def ask_of(
        self, judge: JudgeModel, stage: str, task: str, data: Mapping[str, Any], reply: str, **more: Any
    ) -> dict[str, Any]:
        """The same, of one judge."""
        question = _hash_of(judge, stage, task, data, reply, more)
        this = question, self._times[question]
        self._times[question] += 1
        evaluation = current_evaluation() or Evaluation()
        if this in self._earlier.replies:
            earlier = self._earlier.replies[this]
            evaluation.learn(earlier.pieces, earlier.truncated)
            return _copied(earlier.reply)
        found = self._known(judge, stage, task, data, reply, more)
        if found is None:
            found = self._through(judge, lambda: judge.ask(stage, task, data, reply, **more))
        self._earlier.replies[this] = Reply(_copied(found), evaluation.pieces, evaluation.truncated)
        return found

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """As :meth:`otel_agenteval.Embedder.embed`."""
        embedder = self._models.embedder
        assert embedder is not None
        return self._through(embedder, lambda: embedder.embed(texts))

    def _known(
        self, judge: JudgeModel, stage: str, task: str, data: Mapping[str, Any], reply: str, more: Mapping[str, Any]
    ) -> dict[str, Any] | None:
        """The reply to the same question of another job, if the judge keeps replies: it takes nothing of the budget."""
        if not judge.keeps:
            return None
        found = judge.known(stage, task, data, reply, **more)
        outcome = "hit" if found is not None else "audit" if is_cache_bypassed() else "miss"
        self._telemetry.add(JUDGE_CACHE, outcome=outcome)
        return found

    @property
    def progress(self) -> Progress | None:
        """What is to be kept while the job waits; None if it got nothing so far."""
        earlier = self._earlier
        if not earlier.replies:
            return None
        return Progress(earlier.replies, [*earlier.accounts, *self.accounts], [*earlier.exchanges, *self.exchanges])

    @property
    def answered(self) -> bool | None:
        """Whether the server answered at all, be it with a refusal; None when it was not asked."""
        if not any(account.attempts for account in self.accounts):
            return None
        return not is_transient(self.fault)

    def _through(self, model: Model, question: Callable[[], T]) -> T:
        if self._budget.wants_prices(self._metric) and not model.priced:
            self.fault = "unpriced"
            raise JudgeError(
                f"not asked: dollars are bounded (judge.budget) and the price of {model.model} is not known (judge.prices)",
                "unpriced",
            )
        admissions = [self._admitted()]
        self._urgent = True  # what was begun is finished
        outcome = "ok"
        again = admitting_repairs(lambda: admissions.append(self._admitted_again()))
        with recording() as accounts, listening() as exchanges, again:
            try:
                return question()
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

    def _admitted(self) -> Admission:
        """A question's place in the budget.

        Raises:
            OverBudget: it has to wait.
        """
        try:
            admission = self._budget.admit(self._metric, urgent=self._urgent)
        except Exception as error:  # its file is locked, or its disk is full
            self.broken, self.wait = error, _WAIT_FOR_BOOK
            raise OverBudget from None
        if admission.wait:
            self.wait = admission.wait
            self._telemetry.add(JUDGE_REQUESTS, outcome="gated")
            raise OverBudget
        return admission

    def _admitted_again(self) -> Admission:
        """The place of the request that repairs a reply. It does not wait for room: the whole question would be asked again.

        Raises:
            JudgeError: there is no room.
        """
        try:
            admission = self._budget.admit(self._metric, urgent=True)
        except Exception as error:
            self.broken = error
            raise JudgeError("the reply could not be read, nor the budget for asking again", "unreadable_reply") from None
        if admission.wait:
            raise JudgeError("the reply could not be read, and the budget has no room to ask again", "unreadable_reply")
        self._telemetry.add(JUDGE_REQUESTS, outcome="unreadable")
        return admission

    def _correct(self, admissions: Sequence[Admission], accounts: Sequence[Account]) -> None:
        """Correct in the budget what the question took, and what its repair did."""
        asked = [account for account in accounts if not account.repair]
        repaired = [account for account in accounts if account.repair]
        try:
            for admission, taken in zip(admissions, (asked, repaired), strict=False):
                self._budget.correct(admission, *_spent(taken))
        except Exception as error:  # what was taken stands; the answer is paid for
            self.broken = error

    def judged(self, metric: BoundMetric, score: Score, chance: Chance, upstream: float | None) -> Judged:
        """How a score came to be."""
        asked = [*self._earlier.accounts, *self.accounts]
        costs = [account.cost_usd for account in asked if account.error_type is None]
        known = [cost for cost in costs if cost is not None]
        cost = sum(known) if known and len(known) == len(costs) else None
        kind = metric.metric.kind
        default = self._models.judge if kind == "llm" else self._models.embedder
        model = asked[-1].model if asked else None if default is None else default.model
        truncated = bool(score.detail.get("input_truncated"))
        said = (*self._earlier.exchanges, *self.exchanges)
        return Judged(kind, chance.probability, model, cost, chance.by, upstream, input_truncated=truncated, said=said)


class BenchSession(Session, ChoosesJudges):
    """A session with several judges: each of them is asked within it."""

    def evaluated(self, metric: BoundMetric, turn: Turn) -> Score:
        """A metric's score on a turn, as the judges decide it together."""
        bench = self._models.judge
        assert isinstance(bench, Bench)
        return bench.evaluated(metric, turn, lambda judge: _JudgeInSession(self, judge))


class _JudgeInSession:
    """One of several judges, asked through a session."""

    def __init__(self, session: Session, judge: JudgeModel) -> None:
        self._session = session
        self._judge = judge
        self.model = judge.model

    def ask(self, stage: str, task: str, data: Mapping[str, Any], reply: str, **more: Any) -> dict[str, Any]:
        """As :meth:`otel_agenteval.Judge.ask`."""
        return self._session.ask_of(self._judge, stage, task, data, reply, **more)


def _hash_of(judge: JudgeModel, *question: Any) -> str:
    return hashlib.sha256(jsonio.dumps([id(judge), *question]).encode()).hexdigest()


def _copied(reply: dict[str, Any]) -> dict[str, Any]:
    """A reply that shares nothing with the given one: the metric that got it may change it."""
    try:
        found: dict[str, Any] = marshal.loads(marshal.dumps(reply))  # noqa: S302 - it was written in the same line
    except ValueError:  # a judge of the application's own replied with more than JSON
        return copy.deepcopy(reply)
    return found


def _spent(accounts: Sequence[Account]) -> tuple[float | None, int, int]:
    """Dollars (None when a price is not known), tokens and questions."""
    charges = [account.charge_usd for account in accounts if account.attempts]
    known = [charge for charge in charges if charge is not None]
    usd = sum(known) if len(known) == len(charges) else None
    return usd, sum(account.charge_tokens for account in accounts), int(bool(charges))


class Exhausted:
    """Refuses every question of a job that was tried as often as is allowed: its metric is an error, unless it needs no question."""

    def ask(self, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """Refuse."""
        raise JudgeError("tried as often as is allowed, and never came to an end", "attempts_exhausted")

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        """Refuse."""
        raise JudgeError("tried as often as is allowed, and never came to an end", "attempts_exhausted")


_TRANSIENT = frozenset(
    ("timeout", "unreachable", "server_error", "invalid_answer", "http_408", "http_409", "http_424", "http_429", "http_498")
)
_LASTING = frozenset(("http_501", "http_505"))


def is_transient(error_type: str | None) -> bool:
    """Whether a fault may be gone at the next attempt."""
    return error_type is not None and (
        error_type in _TRANSIENT or (error_type.startswith("http_5") and error_type not in _LASTING)
    )
