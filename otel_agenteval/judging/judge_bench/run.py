"""Benchmark run: calls a judge for labeled cases, and estimates the cost beforehand."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Literal

from ...metrics.question import Question
from ..models import Judge, JudgeGroup, bypassing_cache, recording
from ..models.base import JudgeModel, Prices, cost_of
from ..models.model_server import tokens_in
from ..models.prompt import SYSTEM
from ..models.providers.base import TokenUsage
from ..models.reply import schema_of
from .cases import BenchCase

Stopped = Literal["interrupted", "budget"]

_REPLY_TOKENS = 150
_ENTRIES = 3


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    case: BenchCase
    value: float | None
    passed: bool | None
    error_type: str | None
    """Error type without a score: ``refusal``, ``unreadable_reply``, …"""
    explanation: str | None
    questions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    seconds: float


@dataclass(frozen=True, slots=True)
class CostEstimate:
    questions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None


@dataclass(slots=True)
class BenchRun:
    planned: int
    outcomes: list[CaseOutcome] = field(default_factory=list)
    stopped: Stopped | None = None
    seconds: float = 0.0


class _CallCounter(JudgeModel):
    def __init__(self) -> None:
        self.questions = self.tokens = 0

    def answer(self, question: Question) -> dict[str, Any]:
        self.questions += 1
        material = json.dumps([question.data, question.criteria], default=str, ensure_ascii=False)
        self.tokens += tokens_in([SYSTEM, question.task, material, question.reply])
        found: dict[str, Any] = _sample(question.schema or schema_of(question.reply) or {"type": "object"})
        return found


def _sample(schema: Mapping[str, Any]) -> Any:
    if schema.get("enum"):
        return schema["enum"][0]
    kind = schema.get("type")
    if kind == "object":
        return {key: _sample(value) for key, value in schema.get("properties", {}).items()}
    if kind == "array":
        return [_sample(schema["items"])] * _ENTRIES
    return {"number": 1, "boolean": True}.get(str(kind), "x")


def estimate(cases: Sequence[BenchCase], judge: JudgeModel, *, repeat: int = 1, prices: Prices | None = None) -> CostEstimate:
    """Estimate the cost of a run without calling a model."""
    counting = _CallCounter()
    for case in cases:
        case.bound.evaluate(case.read_turn(), judge=counting)
    questions, tokens = counting.questions * repeat, counting.tokens * repeat
    usage = TokenUsage(tokens, questions * _REPLY_TOKENS)
    main = judge.main if isinstance(judge, JudgeGroup) else judge
    cost = None
    if isinstance(main, Judge):
        cost = cost_of(main.model, main.server.base_url, usage, prices or {})[0]
    return CostEstimate(questions, tokens, questions * _REPLY_TOKENS, cost)


def run(
    judge: JudgeModel,
    cases: Sequence[BenchCase],
    *,
    repeat: int = 1,
    threads: int = 4,
    max_usd: float | None = None,
    report: Callable[[CaseOutcome, BenchRun], object] = lambda outcome, run: None,
    abandoned: Callable[[], object] = lambda: None,
) -> BenchRun:
    """Evaluate each case ``repeat`` times with a judge, bypassing its cache. Ctrl-C stops early, with the outcomes so far.
    ``abandoned`` is called after each evaluation that was running then, to close its connections. At ``max_usd``, no evaluation
    starts.
    """
    found = BenchRun(len(cases) * repeat)
    start = time.monotonic()
    lock, spent = threading.Lock(), 0.0

    def evaluate(case: BenchCase) -> CaseOutcome | None:
        nonlocal spent
        if max_usd is not None and spent >= max_usd:
            return None
        outcome, usd = _evaluate(judge, case)
        with lock:
            spent += usd
        return outcome

    pool = ThreadPoolExecutor(max_workers=threads)
    futures: list[Future[CaseOutcome | None]] = [pool.submit(evaluate, case) for _ in range(repeat) for case in cases]
    try:
        for future in as_completed(futures):
            outcome = future.result()
            if outcome is None:
                found.stopped = "budget"
                continue
            found.outcomes.append(outcome)
            report(outcome, found)
    except KeyboardInterrupt:
        found.stopped = "interrupted"
        for future in futures:
            if not future.done():
                future.add_done_callback(lambda ended: ended.cancelled() or abandoned())
    finally:
        pool.shutdown(wait=found.stopped != "interrupted", cancel_futures=True)
    found.seconds = time.monotonic() - start
    return found


def _evaluate(judge: JudgeModel, case: BenchCase) -> tuple[CaseOutcome, float]:
    """Return the outcome of a case, and the dollars that it cost."""
    start = time.monotonic()
    metric = case.bound
    with bypassing_cache(), recording() as accounts:
        score = metric.evaluate(case.read_turn(), judge=judge)
    usd = sum(account.charge_usd or account.cost_usd or 0.0 for account in accounts)
    answered = [account for account in accounts if account.error_type is None]
    costs = [account.cost_usd for account in answered]
    outcome = CaseOutcome(
        case,
        score.value if score.status == "ok" else None,
        score.passed,
        None if score.status == "ok" else score.error_type or str(score.detail.get("reason") or score.status),
        score.explanation,
        len(accounts),
        sum(account.input_tokens or 0 for account in accounts),
        sum(account.output_tokens or 0 for account in accounts),
        None if not costs or None in costs else sum(cost for cost in costs if cost is not None),
        time.monotonic() - start,
    )
    return outcome, usd
