"""Benchmark runs that evaluate labeled cases with a judge, and cost estimates for such runs.

A case has a turn and the range of scores that careful raters would give. ``cases/FAMILY.jsonl`` has one JSON object per case:

- ``id``, ``family``, ``metric``, and ``params`` if the metric needs parameters
- ``turn``: the turn as ``turn.v1`` JSON
- ``band``: lowest and highest correct value. For boolean metrics, the band is ``[1, 1]`` or ``[0, 0]``.
- ``lang``: language code. ``about``: purpose of the case, in English.
- ``pair``: only for a counterpart. An object with the keys ``of`` (ID of the original case) and ``bias`` (the bias to test).

A counterpart is a variant that deserves the same score as its original case. Only the order, length, or language differs, or the
answer also praises itself or claims authority.

There are no cases for image, audio, and video metrics, because cases contain only text.
"""

from __future__ import annotations

import functools
import json
import threading
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from importlib.resources import files
from typing import Any, Literal

from ...core.errors import ConfigError, meant
from ...core.turn import Turn
from ...metrics.bound_metric import BoundMetric, get_metric
from ...metrics.question import Question
from ..models import Judge, JudgeGroup, bypassing_cache, recording
from ..models.base import JudgeModel, Prices, cost_of
from ..models.model_server import tokens_in
from ..models.prompt import SYSTEM
from ..models.providers.base import TokenUsage
from ..models.reply import schema_of

Bias = Literal["position", "length", "language", "self_praise", "authority"]
Level = Literal["bad", "middling", "good"]

BIASES: tuple[Bias, ...] = ("position", "length", "language", "self_praise", "authority")
LEVELS: tuple[Level, ...] = ("bad", "middling", "good")
FAMILIES = (
    "agentic_judges", "rag_judges", "quality_judges", "conversation_session", "safety_policy", "moderation", "reasoning", "risk_autonomy",
    "structured_output", "workflow", "code_evaluation",
)  # fmt: skip
SAFETY = ("safety_policy", "moderation")
"""Metric families for which the summary also reports misses and false alarms."""
MIDDLING, GOOD = 0.35, 0.7
"""Minimum goodness (0 is worst, 1 is best) for the levels ``middling`` and ``good``."""
_SCALES = {"llm_turn_risk": (1.0, 10.0)}
_SEVERITY = (0.0, 7.0)


@dataclass(frozen=True)
class BenchCase:
    id: str
    family: str
    metric: str
    turn: Mapping[str, Any]
    band: tuple[float, float]
    """Lowest and highest correct value, on the metric's scale."""
    lang: str
    about: str
    params: Mapping[str, Any] = field(default_factory=dict)
    pair: Mapping[str, str] | None = None

    @property
    def counterpart(self) -> str | None:
        return self.pair["of"] if self.pair else None

    @functools.cached_property
    def bound(self) -> BoundMetric:
        return get_metric(self.metric, **self.params)

    def read_turn(self) -> Turn:
        return Turn.from_dict(self.turn)

    @property
    def is_verdict(self) -> bool:
        return self.bound.metric.type == "boolean"

    def goodness(self, value: float) -> float:
        low, high = scale_of(self.bound)
        share = (value - low) / (high - low)
        return 1 - share if self.bound.metric.direction == "down" else share

    @property
    def middle(self) -> float:
        return self.goodness(sum(self.band) / 2)

    def level(self, goodness: float) -> Level:
        if self.is_verdict:
            return "good" if goodness >= 0.5 else "bad"
        return "good" if goodness >= GOOD - _SLACK else "middling" if goodness >= MIDDLING - _SLACK else "bad"

    @property
    def expected(self) -> Level:
        return self.level(self.middle)

    def is_right(self, value: float) -> bool:
        return self.band[0] - _SLACK <= value <= self.band[1] + _SLACK


_SLACK = 1e-9


def scale_of(bound: BoundMetric) -> tuple[float, float]:
    if bound.name in _SCALES:
        return _SCALES[bound.name]
    return _SEVERITY if bound.metric.family == "safety_policy" and bound.metric.type == "numeric" else (0.0, 1.0)


@functools.cache
def all_cases() -> tuple[BenchCase, ...]:
    folder = files(__package__) / "cases"
    return tuple(
        read_case(json.loads(line)) for family in FAMILIES for line in (folder / f"{family}.jsonl").read_bytes().splitlines()
    )


def read_case(row: Mapping[str, Any]) -> BenchCase:
    low, high = row["band"]
    return BenchCase(**{**row, "band": (float(low), float(high))})


def chosen(families: Sequence[str] = (), metrics: Sequence[str] = (), limit: int | None = None) -> list[BenchCase]:
    """Return benchmark cases for ``families`` and ``metrics``. An empty sequence selects all families or all metrics.

    If ``limit`` is set, return a subset that balances families, levels, and metrics. Counterparts whose original case isn't in the
    subset are selected last.
    """
    cases = all_cases()
    for option, names, known in (("--families", families, FAMILIES), ("--metrics", metrics, {case.metric for case in cases})):
        for name in names:
            if name not in known:
                raise ConfigError(f"{option}: no cases for {name!r}{meant(name, known)}")
    found = [case for case in cases if (not families or case.family in families) and (not metrics or case.metric in metrics)]
    if not found:
        raise ConfigError("--metrics: none of these metrics has cases in --families. Change one of the options")
    return found if limit is None else _balanced(found, limit)


def _balanced(cases: Sequence[BenchCase], limit: int) -> list[BenchCase]:
    """Select cases from the families in rotation. Within a family, rotate through the levels and prefer the least used metrics."""
    left: dict[str, dict[Level, list[BenchCase]]] = {}
    for case in cases:
        left.setdefault(case.family, {}).setdefault(case.expected, []).append(case)
    taken: list[BenchCase] = []
    turn = 0
    while len(taken) < limit and any(left.values()):
        for levels in left.values():
            if len(taken) < limit and levels:
                level = sorted(levels, key=LEVELS.index)[turn % len(levels)]
                used, ids = Counter(case.metric for case in taken), {case.id for case in taken}
                best = min(
                    levels[level],
                    key=lambda case: (case.counterpart is not None and case.counterpart not in ids, used[case.metric]),
                )
                levels[level].remove(best)
                taken.append(best)
                if not levels[level]:
                    del levels[level]
        turn += 1
    ids = {case.id for case in taken}
    return [case for case in cases if case.id in ids]


# --- runs

Stopped = Literal["interrupted", "budget"]

_REPLY_TOKENS = 150
_ENTRIES = 3


@dataclass(frozen=True, slots=True)
class CaseOutcome:
    case: BenchCase
    value: float | None
    passed: bool | None
    error_type: str | None
    """Reason for the missing score, such as ``refusal`` or ``unreadable_reply``. None if the case has a score."""
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
    counting = _CallCounter()
    for case in cases:
        case.bound.evaluate(case.read_turn(), judge=counting)
    questions, tokens = counting.questions * repeat, counting.tokens * repeat
    usage = TokenUsage(tokens, questions * _REPLY_TOKENS)
    main = judge.main if isinstance(judge, JudgeGroup) else judge
    cost = cost_of(main.model, main.server.base_url, usage, prices or {})[0] if isinstance(main, Judge) else None
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
    """Evaluate each case ``repeat`` times without the judge's cache. After ``max_usd`` is spent, don't start another evaluation.

    Ctrl+C ends the run and keeps the results so far. Running evaluations continue in the background. When each of these evaluations
    ends, ``abandoned`` is called, so that the caller can close connections.
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
    start = time.monotonic()
    metric = case.bound
    with bypassing_cache(), recording() as accounts:
        score = metric.evaluate(case.read_turn(), judge=judge)
    usd = sum(account.charge_usd or account.cost_usd or 0.0 for account in accounts)
    costs = [account.cost_usd for account in accounts if account.error_type is None]
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
