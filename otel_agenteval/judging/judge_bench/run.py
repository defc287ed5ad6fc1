"""Asking a judge about labelled cases: what it would take, and what it says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from typing import Any, Literal

from ..models import Bench, Judge, bypassing_cache, recording
from ..models.base import JudgeModel
from ..models.model_server import tokens_in
from ..models.prices import Prices, cost_of
from ..models.prompt import SYSTEM
from ..models.providers import Usage
from ..models.reply_schema import schema_of
from .cases import BenchCase

Stopped = Literal["interrupted", "budget"]

_REPLY_TOKENS = 150
"""Of an average reply, for the estimate."""
_ENTRIES = 3
"""Of a list in a reply, for the estimate."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a judge said of a case, once."""

    case: BenchCase
    value: float | None
    """The score, in the metric's unit; None if there is none."""
    passed: bool | None
    error_type: str | None
    """Why there is no score: ``refusal``, ``unreadable_reply``, …"""
    explanation: str | None
    questions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None if the price of one of its questions is not known."""
    seconds: float


@dataclass(frozen=True, slots=True)
class Estimate:
    """What a run would take, roughly."""

    questions: int
    input_tokens: int
    output_tokens: int
    cost_usd: float | None
    """None if the model's price is not known."""


@dataclass(slots=True)
class BenchRun:
    """What came of a run."""

    planned: int
    """Evaluations that were to be made: cases times repeats."""
    outcomes: list[Outcome] = field(default_factory=list)
    stopped: Stopped | None = None
    seconds: float = 0.0
    """Wall clock."""


class _Counting(JudgeModel):
    """Gives any reply of the form that is asked for, and counts what asking would take."""

    def __init__(self) -> None:
        self.questions = self.tokens = 0

    def ask(
        self,
        stage: str,
        task: str,
        data: Mapping[str, Any],
        reply: str,
        *,
        criteria: Mapping[str, str | Sequence[str]] | None = None,
        media: Sequence[str] = (),
        schema: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        self.questions += 1
        self.tokens += tokens_in([SYSTEM, task, json.dumps([data, criteria], default=str, ensure_ascii=False), reply])
        found: dict[str, Any] = _sample(schema or schema_of(reply) or {"type": "object"})
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


def estimate(cases: Sequence[BenchCase], judge: JudgeModel, *, repeat: int = 1, prices: Prices | None = None) -> Estimate:
    """What it would take to ask a judge about cases. Nothing is asked.

    Args:
        cases: the cases.
        judge: who would be asked.
        repeat: how often.
        prices: by model, as the configuration has them.
    """
    counting = _Counting()
    for case in cases:
        case.bound.evaluate(case.read_turn(), judge=counting)
    questions, tokens = counting.questions * repeat, counting.tokens * repeat
    usage = Usage(tokens, questions * _REPLY_TOKENS)
    main = judge.main if isinstance(judge, Bench) else judge
    cost = None
    if isinstance(main, Judge):
        cost = cost_of(main.model, main.server.transport.base_url, usage, prices or {})[0]
    return Estimate(questions, tokens, questions * _REPLY_TOKENS, cost)


def run(
    judge: JudgeModel,
    cases: Sequence[BenchCase],
    *,
    repeat: int = 1,
    threads: int = 4,
    max_usd: float | None = None,
    report: Callable[[Outcome, BenchRun], object] = lambda outcome, run: None,
    abandoned: Callable[[], object] = lambda: None,
) -> BenchRun:
    """Ask a judge about each case. Replies that it keeps are not used.

    Ctrl-C ends it early: what there is by then is in the result.

    Args:
        judge: who is asked.
        cases: what is asked.
        repeat: how often each is asked, to see how stable the answers are.
        threads: evaluations at once.
        max_usd: no evaluation begins once so much was spent; those under way go on.
        report: called with each outcome as it comes, in this thread.
        abandoned: called when an evaluation ends that was under way at Ctrl-C: what it opened since then is to be closed.
    """
    found = BenchRun(len(cases) * repeat)
    start = time.monotonic()
    purse = _Purse(max_usd)
    pool = ThreadPoolExecutor(max_workers=threads)
    futures: list[Future[Outcome | None]] = [pool.submit(_asked, judge, case, purse) for _ in range(repeat) for case in cases]
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


class _Purse:
    """What was spent, and what may be. Thread-safe."""

    def __init__(self, most: float | None) -> None:
        self._most = most
        self._spent = 0.0
        self._lock = threading.Lock()

    @property
    def is_empty(self) -> bool:
        return self._most is not None and self._spent >= self._most

    def spend(self, usd: float) -> None:
        with self._lock:
            self._spent += usd


def _asked(judge: JudgeModel, case: BenchCase, purse: _Purse) -> Outcome | None:
    """One evaluation; None if there is no money left for it."""
    if purse.is_empty:
        return None
    start = time.monotonic()
    metric = case.bound
    with bypassing_cache(), recording() as accounts:
        score = metric.evaluate(case.read_turn(), judge=judge)
    purse.spend(sum(account.charge_usd or account.cost_usd or 0.0 for account in accounts))
    answered = [account for account in accounts if account.error_type is None]
    costs = [account.cost_usd for account in answered]
    return Outcome(
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
