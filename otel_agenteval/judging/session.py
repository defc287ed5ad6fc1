"""Sessions that connect metrics with models, enforce the budget, and record judge calls.

In the live pipeline, jobs wait until the budget allows their calls (:class:`Session`). In CLI commands and functions such as
``evaluate``, each wait lasts up to about a minute. If a longer wait is required, the score is an error (:class:`CommandBudget`).
"""

from __future__ import annotations

import copy
import hashlib
import logging
import marshal
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeVar

from ..config.root import Config
from ..core import jsonio
from ..core.clock import SYSTEM_CLOCK, Clock
from ..core.errors import JudgeError
from ..core.score import Exchange, Score
from ..core.semconv import JUDGE_CACHE, JUDGE_REQUESTS, JUDGE_SPENT
from ..core.telemetry import Telemetry
from ..core.turn import Turn
from ..evaluation.scored_turn import Judged, Root
from ..metrics.bound_metric import BoundMetric, ChoosesJudges
from ..metrics.question import Answers, EvaluationState, Question, current_evaluation
from .budget import Admission, JudgeBudget, bounds_of
from .job import judged_by
from .models import (
    Account,
    Embedder,
    InProcessEmbedder,
    Judge,
    JudgeGroup,
    admitting_repairs,
    is_cache_bypassed,
    listening,
    recording,
)
from .models.base import EmbedderModel, JudgeModel, Model
from .queues import spend_book_from
from .sampling import Chance

OF_THE_SERVER = frozenset(("circuit_open", "insufficient_quota"))
"""Error types that affect all judge calls to the same server."""
_WAIT_FOR_BOOK = 15.0
_log = logging.getLogger("otel_agenteval")


@dataclass(frozen=True, slots=True)
class Models:
    judge: JudgeModel | None = None
    embedder: EmbedderModel | None = None

    def can_ask(self, metric: BoundMetric) -> bool:
        return (self.judge if metric.metric.kind == "llm" else self.embedder) is not None

    def server_of(self, metric: BoundMetric, agent: str) -> str:
        """Return a key for the metric's server: the metric's kind and, if the server isn't the default server, the address."""
        kind = metric.metric.kind
        other = self.judge.server_of(metric.metric.name, agent) if kind == "llm" and self.judge is not None else ""
        return f"{kind} {other}" if other else kind

    def close(self) -> None:
        for model in (self.judge, self.embedder):
            if model is not None:
                model.close()


class OverBudget(Exception):
    """Error for a judge call that must wait for the budget."""


class PaidReply(NamedTuple):
    """Reply of a model or the cache. For ``pieces`` and ``truncated``, see :class:`.prompt.Prompt`."""

    reply: dict[str, Any]
    pieces: int
    truncated: bool


@dataclass(slots=True)
class JobProgress:
    """Replies from a job's earlier attempts, which the job reuses."""

    replies: dict[tuple[str, int], PaidReply] = field(default_factory=dict)
    """Replies by (call hash, number of identical earlier calls)."""
    accounts: list[Account] = field(default_factory=list)
    exchanges: list[Exchange] = field(default_factory=list)


@dataclass(eq=False)
class Session(Answers):
    """Judge and embedder for one job, within the budget. Above the share ``soft`` of a limit, only urgent jobs can start calls."""

    _models: Models
    _budget: JudgeBudget
    _telemetry: Telemetry
    _metric: str
    urgent: bool
    _earlier: JobProgress = field(default_factory=JobProgress)
    _calls: Counter[str] = field(default_factory=Counter, init=False)
    wait: float = field(default=0.0, init=False)
    pause: float = field(default=0.0, init=False)
    broken: Exception | None = field(default=None, init=False)
    """Error from reading or writing the budget. If the budget can't be read, models aren't called."""
    fault: str | None = field(default=None, init=False)
    message: str = field(default="", init=False)
    accounts: list[Account] = field(default_factory=list, init=False)
    exchanges: list[Exchange] = field(default_factory=list, init=False)

    def answer(self, question: Question, judge: JudgeModel | None = None) -> dict[str, Any]:
        """Return a reply from ``judge`` or the default judge. Reuse replies from earlier attempts and from the cache."""
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
        """True if the server answered, even with a refusal. False after a temporary error. None if no request was sent."""
        if not any(account.attempts for account in self.accounts):
            return None
        return not is_transient(self.fault)

    @contextmanager
    def _within_budget(self, model: Model) -> Iterator[None]:
        """Reserve budget for the block's model call, and record its requests. If the call must wait, raise :class:`OverBudget`."""
        if self._budget.wants_prices(self._metric) and not model.priced:
            self.fault = "unpriced"
            self._warn(model, "unpriced", f"the price of {model.model} is unknown, so a budget in USD blocks calls")
            section = "embedder" if model is self._models.embedder else "judge"
            raise JudgeError(f"{section}.prices: must contain {model.model}, because judge.budget has a dollar limit", "unpriced")
        admissions = [self._admit()]
        self.urgent = True  # a job that began can finish
        outcome = "ok"
        repairs = admitting_repairs(lambda: admissions.append(self._admit_repair()))
        with recording() as accounts, listening() as exchanges, repairs:
            try:
                yield
            except JudgeError as error:
                self.fault, self.message, outcome = error.error_type, str(error), "error"
                self.pause = error.retry_after
                self._warn(model, error.error_type, str(error))
                raise
            finally:
                self._telemetry.add(JUDGE_REQUESTS, outcome=outcome)
                self.accounts += accounts
                self.exchanges += exchanges
                for account in accounts:
                    if account.cost_usd is not None:
                        self._telemetry.add(JUDGE_SPENT, account.cost_usd)
                self._correct(admissions, accounts)

    def _warn(self, model: Model, error_type: str, message: str) -> None:
        if error_type in _OF_SETTINGS:
            section = "embedder" if model is self._models.embedder else "judge"
            warn_of_settings(section, f"{model.model} {model.address}".rstrip(), error_type, message)

    def _admit(self) -> Admission:
        try:
            admission = self._budget.admit(self._metric, urgent=self.urgent)
        except Exception as error:  # for example, a locked file or a full disk
            self.broken, self.wait = error, _WAIT_FOR_BOOK
            raise OverBudget from None
        if admission.wait:
            self.wait = admission.wait
            self._telemetry.add(JUDGE_REQUESTS, outcome="gated")
            raise OverBudget
        return admission

    def _admit_repair(self) -> Admission:
        """Reserve budget for a repair request. If the budget is exhausted, raise a JudgeError. Don't wait, because the original
        request would then be repeated.
        """
        try:
            admission = self._budget.admit(self._metric, urgent=True)
        except Exception as error:
            self.broken = error
            raise JudgeError("the reply is unusable, and the budget for a retry can't be read", "unreadable_reply") from None
        if admission.wait:
            raise JudgeError("the reply is unusable, and judge.budget allows no retry", "unreadable_reply")
        self._telemetry.add(JUDGE_REQUESTS, outcome="unreadable")
        return admission

    def _correct(self, admissions: Sequence[Admission], accounts: Sequence[Account]) -> None:
        try:
            for admission, repair in zip(admissions, (False, True), strict=False):
                charges = [account.charge_usd for account in accounts if account.repair is repair and account.attempts]
                known = [charge for charge in charges if charge is not None]
                self._budget.correct(admission, sum(known) if len(known) == len(charges) else None, calls=int(bool(charges)))
        except Exception as error:  # the estimate stays, and the paid answer is used
            self.broken = error

    def judged(self, metric: BoundMetric, score: Score, chance: Chance, root: Root) -> Judged:
        asked = [*self._earlier.accounts, *self.accounts]
        costs = [account.cost_usd for account in asked if account.error_type is None]
        known = [cost for cost in costs if cost is not None]
        cost = sum(known) if known and len(known) == len(costs) else None
        kind = metric.metric.kind
        default = self._models.judge if kind == "llm" else self._models.embedder
        model = asked[-1].model if asked else None if default is None else default.model
        truncated = bool(score.detail.get("input_truncated"))
        exchanges = (*self._earlier.exchanges, *self.exchanges)
        return judged_by(kind, chance, root, model, cost, input_truncated=truncated, exchanges=exchanges)


class DelegatingJudge(Answers):
    """Judge that passes each call to a function, for example to enforce a budget."""

    def __init__(self, judge: JudgeModel, answer: Callable[[Question, JudgeModel], dict[str, Any]]) -> None:
        self._judge = judge
        self._answer = answer
        self.model = judge.model

    def answer(self, question: Question) -> dict[str, Any]:
        return self._answer(question, self._judge)


class DelegatingGroup(DelegatingJudge, ChoosesJudges):
    _judge: JudgeGroup

    def evaluated(self, metric: BoundMetric, turn: Turn) -> Score:
        return self._judge.evaluated(metric, turn, lambda judge: DelegatingJudge(judge, self._answer))


def _copied(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a deep copy of ``reply``, so that a metric can't change the stored reply."""
    try:
        found: dict[str, Any] = marshal.loads(marshal.dumps(reply))  # noqa: S302 - it was written in the same line
    except ValueError:  # a custom judge can return more than JSON
        return copy.deepcopy(reply)
    return found


class Exhausted(Answers):
    """Judge that rejects all calls, because the job's attempts are exhausted. Also used as an embedder."""

    def answer(self, *_: object) -> Any:
        raise JudgeError("all attempts failed. To allow more, raise judge.attempts", "attempts_exhausted")

    embed = answer


_TRANSIENT = frozenset(
    ("timeout", "unreachable", "server_error", "invalid_answer", "http_408", "http_409", "http_424", "http_429", "http_498")
)
_LASTING = frozenset(("http_501", "http_505"))


def is_transient(error_type: str | None) -> bool:
    return error_type in _TRANSIENT or (error_type is not None and error_type.startswith("http_5") and error_type not in _LASTING)


_OF_SETTINGS = frozenset(("unpriced", "http_401", "http_403", "http_404"))
"""Error types that recur until someone changes the settings or the account."""
warned: dict[tuple[str, str, str], object] = {}


def warn_of_settings(section: str, server: str, error_type: str, message: str) -> None:
    if warned.setdefault((section, server, error_type), this := object()) is this:  # threads can fail at the same time
        text, why = "%s %s: %s (%s); %s. Further errors are only counted", message.rpartition(": ")[2]
        _log.warning(text, section, server, why, error_type, advice_on(error_type, section))


def advice_on(fault: str, section: str = "judge") -> str:
    """Return advice on how to fix ``fault``: an error type, optionally with a message, or the fault that a judge probe found."""
    if fault.startswith("unpriced"):
        return f"set {section}.prices, or limit calls instead of dollars"
    if fault.startswith("unreachable: "):
        refused = f"nothing listens at {section}.base_url. Start the server, or correct the address"
        return refused if "ConnectionRefusedError" in fault else f"check {section}.base_url and the server"
    if fault.startswith(("http_429", "rate_limited", "the judge ")):  # the server works
        slow = "the server limits the rate. Wait and try again, or raise your limit at the provider"
        return "use a more capable model" if fault.startswith("the ") else slow
    advice = f"check {section}.base_url, {section}.model, and {section}.api_key"
    return advice if fault.startswith(("http_", "insufficient_quota")) else f"{advice}, or use a more capable model"


# --- commands

T = TypeVar("T")
LONGEST_WAIT = 61.0


class CommandBudget:
    """Budget for model calls of CLI commands and of functions such as ``evaluate``. A configured queue file or server stores it."""

    def __init__(self, config: Config, clock: Clock = SYSTEM_CLOCK, sleep: Callable[[float], None] = time.sleep) -> None:
        options = config.judge
        bounds = bounds_of(options.budget)
        book = spend_book_from(options.queue) if bounds else None
        self._budget = None if book is None else JudgeBudget(bounds, book, clock, options.budget.soft, LONGEST_WAIT)
        self.is_limited = self._budget is not None
        self.lasts = options.queue.backend != "memory"
        self._telemetry = Telemetry()
        self._sleep = sleep

    def judge(self, judge: Judge | JudgeGroup | None) -> Any:
        if judge is None or self._budget is None:
            return judge
        return (DelegatingGroup if isinstance(judge, JudgeGroup) else DelegatingJudge)(judge, self._answer)

    def embedder(self, embedder: Embedder | InProcessEmbedder | None) -> Any:
        """Return the embedder, wrapped to enforce the budget. In-process embedders aren't wrapped, because they are free."""
        if self._budget is None or not isinstance(embedder, Embedder):
            return embedder
        return _BudgetedEmbedder(self, embedder)

    def close(self) -> None:
        if self._budget is not None:
            self._budget.close()

    def _answer(self, question: Question, judge: JudgeModel) -> dict[str, Any]:
        return self.ask(Models(judge=judge), lambda session: session.answer(question))

    def ask(self, models: Models, call: Callable[[Session], T]) -> T:
        """Call a model when the budget allows. On failure, or if the wait exceeds :data:`LONGEST_WAIT`, raise a JudgeError."""
        assert self._budget is not None
        evaluation = current_evaluation()
        metric = evaluation.metric if evaluation is not None else ""
        while True:
            session = Session(models, self._budget, self._telemetry, metric, urgent=True)
            try:
                return call(session)
            except OverBudget:
                if (fault := session.broken or self._budget.fault()) is not None:
                    raise JudgeError(f"judge.budget: can't read spending: {type(fault).__name__}", "over_budget") from None
                if session.wait > LONGEST_WAIT:
                    raise JudgeError(f"judge.budget: {metric} reached a limit. Raise it, or retry later", "over_budget") from None
                self._sleep(session.wait)


class _BudgetedEmbedder:
    def __init__(self, budget: CommandBudget, embedder: EmbedderModel) -> None:
        self._budget = budget
        self._models = Models(embedder=embedder)
        self.model = embedder.model

    def embed(self, texts: Sequence[str]) -> list[list[float]]:
        return self._budget.ask(self._models, lambda session: session.embed(texts))
