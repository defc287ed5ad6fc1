"""Conversion of scored turns to metric observations (counts and values), which all outlets for metrics export."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, TypeGuard

from ..core import semconv
from ..core.score import SHED, Score, ScoreSummary
from ..core.telemetry import Observation, Plan, Telemetry
from ..core.turn import LlmCall, Turn
from ..evaluation.scored_turn import Root, ScoredTurn

HISTOGRAM_OF_UNIT: Mapping[str, str] = {
    "1": semconv.SCORE,
    "s": semconv.MEASURE_DURATION,
    "{token}": semconv.MEASURE_TOKENS,
    "USD": semconv.MEASURE_COST,
    "{item}": semconv.MEASURE_ITEMS,
    "{level}": semconv.MEASURE_SEVERITY,
}
"""Mapping from score unit to histogram name. Scores with other units are only counted."""


def account(telemetry: Telemetry, scored: ScoredTurn) -> None:
    """Add a scored turn to the telemetry. Call this function once per :class:`ScoredTurn`, even if no outlet is enabled."""
    again = scored.conversation or not scored.of_turn_itself or not scored.new
    labels = _labels_of(scored.turn)
    found, planned = _observed(scored, labels, telemetry.plans_of(labels))
    telemetry.record(found, exemplar_of(scored.root), again=again, planned=planned)


def account_lost(
    telemetry: Telemetry, metrics: Iterable[str], agent: str, reason: str, turn: tuple[str, str, bool] | None = None
) -> None:
    """Count ``metrics`` as dropped for ``reason``. If ``turn`` is set, also count the turn.

    ``turn`` is a tuple: the service, the close reason, and True for a complete turn.
    """
    found: list[Observation] = []
    if turn is not None:
        service, close_reason, complete = turn
        found.append((semconv.TURNS, (agent, service, close_reason, "true" if complete else "false"), 1))
    for name in metrics:
        found += [(semconv.RESULTS, (name, agent, "dropped"), 1), (semconv.DROPPED, (name, reason), 1)]
    telemetry.record(found, again=turn is None)


def observations(scored: ScoredTurn) -> list[Observation]:
    found, planned = _observed(scored, _labels_of(scored.turn), {})
    for plan, value in planned:
        found.append((plan.counter, plan.counted, 1))
        if plan.histogram is not None and value is not None:
            found.append((plan.histogram, plan.observed, value))
    return found


def _observed(
    scored: ScoredTurn, labels: tuple[str, str, str], plans: dict[Hashable, Any]
) -> tuple[list[Observation], list[tuple[Plan, float | None]]]:
    """Return observations, and a pair (:class:`Plan`, value) per score. Scores of later revisions count only as ``superseded``."""
    if not scored.new:
        return [(semconv.RESULTS, (score.metric, labels[0], "superseded"), 1) for score in scored.scores], []
    found = [] if scored.conversation or not scored.of_turn_itself else _of_turn(scored.turn, labels)
    planned: list[tuple[Plan, float | None]] = []
    for score in scored.scores:
        summary = score.summary
        plan, others = plans.get(summary) or _planned(score, summary, labels, plans)
        value = score.value
        planned.append((plan, value if plan.histogram is not None and value is not None and math.isfinite(value) else None))
        found += others
    return found, planned


def _labels_of(turn: Turn) -> tuple[str, str, str]:
    call = answering_call(turn)
    return turn.agent or "", (call.model if call is not None else None) or "", turn.service or ""


def _planned(
    score: Score, summary: ScoreSummary, labels: tuple[str, str, str], plans: dict[Hashable, Any]
) -> tuple[Plan, Sequence[Observation]]:
    """Return the :class:`Plan` and further observations, such as findings, for scores with this ``summary``. Cache the result."""
    result, metric, agent = summary.outcome, score.metric, labels[0]
    histogram = HISTOGRAM_OF_UNIT.get(score.unit) if result in _VALUED else None
    plan = Plan(semconv.RESULTS, (metric, agent, result), histogram, () if histogram is None else (metric, score.kind, *labels))
    others: list[Observation] = []
    if summary.severity is not None:
        others.append((semconv.FINDINGS, (metric, agent, summary.severity), 1))
    if result == "dropped":
        others.append((semconv.DROPPED, (metric, SHED), 1))
    elif result == "skipped":
        reason = summary.reason  # texts of custom metrics are replaced
        others.append((semconv.SKIPPED, (metric, reason if reason is not None and _REASON.fullmatch(reason) else "other"), 1))
    plans[summary] = plan, others
    return plan, others


_REASON = re.compile(r"[a-z][a-z0-9_]{0,39}(?::[a-z][a-z0-9_.]{0,39})?")
_VALUED = ("pass", "fail", "ok")


def outcome(score: Score) -> str:
    return score.summary.outcome


def answering_call(turn: Turn) -> LlmCall | None:
    """Return the turn's last model call, which usually wrote the answer, or None if the turn has no model calls."""
    return turn.llm_calls[-1] if turn.llm_calls else None


def exemplar_of(root: Root) -> dict[str, str] | None:
    """Return the root span's trace and span IDs for a histogram exemplar. Return None for an unknown or unsampled trace."""
    if not root.sampled or not root.trace_id:
        return None
    return {"trace_id": f"{root.trace_id:032x}", "span_id": f"{root.span_id:016x}"}


def _of_turn(turn: Turn, labels: tuple[str, str, str]) -> list[Observation]:
    agent, _, service = labels
    complete = "true" if turn.complete else "false"
    found: list[Observation] = [(semconv.TURNS, (agent, service, turn.close_reason or "", complete), 1)]
    if _is_amount(turn.duration_s):
        found.append((semconv.TURN_DURATION, labels, turn.duration_s))
    if _is_amount(turn.cost_usd):
        found.append((semconv.TURN_COST, (*labels, "true" if turn.cost_estimated else "false"), turn.cost_usd))
    usage = turn.usage
    if usage is not None:
        for token_type, count in (("input", usage.input_tokens), ("output", usage.output_tokens)):
            if _is_amount(count):
                found.append((semconv.TURN_TOKENS, (*labels, token_type), count))
    return found


def _is_amount(value: float | None) -> TypeGuard[float]:
    return value is not None and 0 <= value < 2**63
