"""Observations that one scored turn adds to the metrics.

Every metrics outlet uses the same ones.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from typing import TypeGuard

from ..core.score import GATED, SHED, Score
from ..core.semconv import (
    DROPPED,
    MEASURE_COST,
    MEASURE_DURATION,
    MEASURE_ITEMS,
    MEASURE_SEVERITY,
    MEASURE_TOKENS,
    RESULTS,
    SCORE,
    SKIPPED,
    TURN_COST,
    TURN_DURATION,
    TURN_TOKENS,
    TURNS,
)
from ..core.telemetry import Observation, Plan, Telemetry
from ..core.turn import LlmCall, Turn
from ..evaluation.scored_turn import Root, ScoredTurn

HISTOGRAM_OF_UNIT: Mapping[str, str] = {
    "1": SCORE,
    "s": MEASURE_DURATION,
    "{token}": MEASURE_TOKENS,
    "USD": MEASURE_COST,
    "{item}": MEASURE_ITEMS,
    "{level}": MEASURE_SEVERITY,
}
"""Histogram of a score by its unit. Scores of other units are only counted."""


def account(telemetry: Telemetry, scored: ScoredTurn) -> None:
    """Count one scored turn. Call once per turn and revision, whichever outlets are enabled."""
    again = scored.conversation or not scored.of_turn_itself or not scored.new
    exemplar = exemplar_of(scored.root)
    if not scored.new:
        telemetry.record(observations(scored), exemplar, again=again)
        return
    labels = _labels_of(scored.turn)
    found = [] if again else _of_turn(scored.turn, labels)
    plans = telemetry.plans_of(labels)
    planned: list[tuple[Plan, float | None]] = []
    for score in scored.scores:
        result = outcome(score)
        key = score.facts, result
        plan = plans.get(key)
        if plan is None:
            plan = plans[key] = _plan(score, result, labels)
        planned.append((plan, None if plan.histogram is None else _finite(score.value)))
        if result in _WITH_REASON:
            found.append(_why(score, result))
    telemetry.record(found, exemplar, again=again, planned=planned)


def account_lost(
    telemetry: Telemetry, metrics: Iterable[str], agent: str, reason: str, turn: tuple[str, str, bool] | None = None
) -> None:
    """Count a turn that won't be evaluated.

    ``turn`` is the service, close reason and completeness of a turn to count. None for a conversation or a counted turn.
    """
    found: list[Observation] = []
    if turn is not None:
        service, close_reason, complete = turn
        found.append((TURNS, (agent, service, close_reason, "true" if complete else "false"), 1))
    for name in metrics:
        found += [(RESULTS, (name, agent, "dropped"), 1), (DROPPED, (name, reason), 1)]
    telemetry.record(found, again=turn is None)


def observations(scored: ScoredTurn) -> list[Observation]:
    """Return all observations of a scored turn.

    A revision only adds ``agenteval.results{outcome="superseded"}`` for each score, because its turn was counted the first time.
    """
    turn = scored.turn
    agent = turn.agent or ""
    if not scored.new:
        return [(RESULTS, (score.metric, agent, "superseded"), 1) for score in scored.scores]
    labels = _labels_of(turn)
    found = [] if scored.conversation or not scored.of_turn_itself else _of_turn(turn, labels)
    for score in scored.scores:
        result = outcome(score)
        plan = _plan(score, result, labels)
        found.append((plan.counter, plan.counted, 1))
        if result in _WITH_REASON:
            found.append(_why(score, result))
        if plan.histogram is not None and (value := _finite(score.value)) is not None:
            found.append((plan.histogram, plan.observed, value))
    return found


def _labels_of(turn: Turn) -> tuple[str, str, str]:
    call = answering_call(turn)
    return turn.agent or "", (call.model if call is not None else None) or "", turn.service or ""


def _plan(score: Score, result: str, labels: tuple[str, str, str]) -> Plan:
    """Return the observations that each score of a metric adds for this outcome."""
    counted = (score.metric, labels[0], result)
    histogram = HISTOGRAM_OF_UNIT.get(score.unit) if result in _VALUED else None
    return Plan(RESULTS, counted, histogram, () if histogram is None else (score.metric, score.kind, *labels))


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _why(score: Score, result: str) -> Observation:
    return (DROPPED, (score.metric, SHED), 1) if result == "dropped" else (SKIPPED, (score.metric, _reason(score)), 1)


_REASON = re.compile(r"[a-z][a-z0-9_]{0,39}(?::[a-z][a-z0-9_.]{0,39})?")


def _reason(score: Score) -> str:
    """Return why a score was skipped. ``other`` replaces texts of custom metrics."""
    reason = score.detail.get("reason")
    return reason if isinstance(reason, str) and _REASON.fullmatch(reason) else "other"


_VALUED = ("pass", "fail", "ok")
_WITH_REASON = ("dropped", "skipped")
_NOT_EVALUATED = {GATED: "gated", SHED: "dropped"}


def outcome(score: Score) -> str:
    """Return the outcome of a score.

    The outcomes are ``pass``, ``fail``, ``ok`` (a value without a :attr:`~otel_agenteval.core.score.Score.verdict`), ``vacuous``,
    ``error``, ``skipped``, ``gated`` (a selector excluded the turn) and ``dropped`` (no time left).
    """
    if score.status == "skipped":
        return _NOT_EVALUATED.get(score.detail.get("reason", ""), "skipped")
    if score.status != "ok":
        return score.status
    if score.vacuous:
        return "vacuous"
    verdict = score.verdict
    return "ok" if verdict is None else "pass" if verdict else "fail"


def answering_call(turn: Turn) -> LlmCall | None:
    """Return the model call that wrote the answer, which is the turn's last one."""
    calls = turn.llm_calls
    return calls[-1] if calls else None


def exemplar_of(root: Root) -> dict[str, str] | None:
    """Return the ids that link a histogram bucket to a trace. None if the trace isn't sampled."""
    if not root.sampled or not root.trace_id:
        return None
    return {"trace_id": f"{root.trace_id:032x}", "span_id": f"{root.span_id:016x}"}


def _of_turn(turn: Turn, labels: tuple[str, str, str]) -> list[Observation]:
    agent, _, service = labels
    complete = "true" if turn.complete else "false"
    found: list[Observation] = [(TURNS, (agent, service, turn.close_reason or "", complete), 1)]
    if _is_amount(turn.duration_s):
        found.append((TURN_DURATION, labels, turn.duration_s))
    if _is_amount(turn.cost_usd):
        found.append((TURN_COST, labels, turn.cost_usd))
    usage = turn.usage
    if usage is not None:
        for token_type, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if _is_amount(count):
                found.append((TURN_TOKENS, (*labels, token_type), count))
    return found


def _is_amount(value: float | None) -> TypeGuard[float]:
    """Return True if a sum stays finite and exportable with the value of a span."""
    return value is not None and 0 <= value < 2**63
