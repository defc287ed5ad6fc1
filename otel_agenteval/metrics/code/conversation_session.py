"""The ``code_`` metrics evaluate the completeness of a conversation, and the agent's reliability over a session.

They read a turn object that represents the whole conversation. Its ``messages`` contain the input and output of each turn.
Its ``session`` contains each trace's signals, which are scores of other metrics.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from annotated_types import Ge, Gt, Le, Predicate

from ...core import jsonio
from ...core.turn import Message, Turn
from ..lib import applies
from ..lib.tools import entry_name, expected_entries
from ..lib.values import Share, fact
from ..registry import EPSILON, Result, metric, skip, vacuous

SignalWeight = Annotated[float, Ge(0), Le(1000)]
Signal = Literal["confidence", "loop_detection", "tool_correctness", "coherence"]

SIGNAL_WEIGHTS: Mapping[Signal, float] = {"confidence": 1.0, "loop_detection": 1.0, "tool_correctness": 0.8, "coherence": 1.0}
_ELEVATED_RISK = 0.5
_SHOWN = 200
"""Maximum number of traces in ``detail``. The score uses all traces."""


# --- completeness


def says_something(message: Message) -> bool:
    """Return True unless the message contains only tool calls or tool results."""
    return bool(message.content) or not (message.tool_calls or message.tool_results)


@metric(
    references=("expected_tools",),
    threshold=0.7,
    aliases=("agenteval:ConversationCompleteness", "agenteval:ConversationCompletenessMetric"),
)
def code_conversation_completeness(
    turn: Turn,
    *,
    expected_tools: list[str | dict[str, Any]] | None = None,
    max_duration_s: Annotated[float, Ge(0)] | None = None,
    weights: Annotated[
        tuple[Share, Share, Share, Share], Predicate(lambda weights: math.isclose(sum(weights), 1.0, abs_tol=1e-6))
    ] = (0.40, 0.30, 0.15, 0.15),
) -> Result:
    """Completeness of a conversation: response rate, expected tools, duration, and errors.

    The value is ``0.4 * response_rate + 0.3 * tool_usage + 0.15 * duration_compliance + 0.15 * error_free``. If the turn has an
    error, the metric fails.

    - ``response_rate``: number of assistant messages per user message, at most 1. Without user messages, the rate is 1. Messages
      that contain only tool calls or results don't count.
    - ``tool_usage``: share of the expected tools that were called, ignoring case. Without expected tools, the share is 1.
    - ``duration_compliance``: 1 up to ``max_duration_s``, then decreasing linearly to 0 at twice that duration. If you don't set
      ``max_duration_s``, this number is 1.
    - ``error_free``: 0 if the turn has an error, otherwise 1.

    The score is skipped for these reasons:

    - ``missing:conversation``: the conversation is empty.
    - ``missing:tool_calls``: tools are expected, but the turn's tool calls are unknown.
    - ``missing:duration``: you set ``max_duration_s``, but the turn's duration is unknown.

    Parameters:
        expected_tools: Tool names, or objects with ``name``. The default is ``expected_tools`` in the turn's reference data.
        max_duration_s: Longest duration in seconds that doesn't lower the value.
        weights: Weights of the four terms, in the order of the formula. The weights must add up to 1.

    Detail: ``response_rate``, ``tool_usage``, ``duration_compliance``, and ``error_free``, each 0..1.
    """
    if not (messages := turn.messages):
        return skip("missing:conversation")
    entries = expected_entries(turn, expected_tools, "expected_tools") or []
    expected = {name.lower() for name in map(entry_name, entries) if name}
    if expected and turn.tool_calls is None:
        return skip("missing:tool_calls")
    seconds = turn.duration_s
    if seconds is None and max_duration_s is not None:
        return skip("missing:duration")
    roles = [message.role for message in messages if says_something(message)]
    asked = roles.count("user")
    called = {call.name.lower() for call in turn.tool_calls or ()}
    compliance = 1.0
    if max_duration_s is not None and (seconds or 0.0) > max_duration_s:
        compliance = max(0.0, 1 - ((seconds or 0.0) / max_duration_s - 1)) if max_duration_s else 0.0
    parts = {
        "response_rate": min(1.0, roles.count("assistant") / asked) if asked else 1.0,
        "tool_usage": len(expected & called) / len(expected) if expected else 1.0,
        "duration_compliance": compliance,
        "error_free": 1.0 if turn.error is None else 0.0,
    }
    value = sum(weight * part for weight, part in zip(weights, parts.values(), strict=True))
    return Result(value, passed=None if turn.error is None else False, detail=parts)


# --- signals of the traces of a session


def _traces(turn: Turn) -> list[tuple[str, dict[Signal, float]]]:
    """Return each trace's ID (or position) and known signals, in the session's order."""
    traces = (fact(turn, "session") or {}).get("traces", ())
    found: list[tuple[str, dict[Signal, float]]] = []
    for place, trace in enumerate(traces):
        if isinstance(trace, Mapping):
            given = trace.get("signals")
            signals = {name: given.get(name) for name in SIGNAL_WEIGHTS} if isinstance(given, Mapping) else {}
            known = {  # a value that isn't from 0 to 1 counts as missing
                name: value
                for name, value in signals.items()
                if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value <= 1
            }
            found.append((jsonio.text_of(trace.get("trace_id")) or str(place), known))
    return found


def _risks(signals: Mapping[Signal, float], weights: Mapping[Signal, float]) -> dict[Signal, float]:
    return {name: weights[name] * (1 - value) for name, value in signals.items()}


def _shown(signals: Mapping[Signal, float], **facts: float) -> dict[str, float]:
    return dict(signals) | {f"{name.partition('_')[0]}_risk": round(1 - value, 4) for name, value in signals.items()} | facts


@metric(applies=applies.session_signals, uses=("session",), threshold=0.5, aliases=("pandaprobe:agent_reliability",))
def code_agent_reliability(
    turn: Turn,
    *,
    signal_weights: dict[Signal, SignalWeight] | None = None,
    top_k: Annotated[float, Gt(0), Le(1)] = 0.15,
    ensemble: Share = 0.1,
) -> Result:
    """Reliability of the agent over a session: 1 minus the risk of its riskiest traces.

    A trace's risk is the highest ``weight * (1 - signal)`` of its signals, ignoring missing signals. The raw risk is ``0.9 * mean of the
    k highest risks + 0.1 * highest risk``, where ``k`` is ``ceil(0.15 * traces)``, but at least 1. The value is ``1 - raw risk``, limited
    to 0..1 and rounded to 4 decimals. Traces without signals are ignored. If no trace has a signal, the value is 1 (vacuous).

    If the session's only known signal is a ``loop_detection`` of 1 in a single trace, the score is skipped as ``missing:signals``.
    A session's first output can't repeat an earlier output, so this signal doesn't show reliability.

    The turn's ``session`` is an object ``{traces: [{trace_id, signals: {confidence, loop_detection, tool_correctness,
    coherence}}]}``. Each signal is a score from 0 to 1, and higher is better. Any other value counts as missing. If it is
    listed outside ``inline.metrics``, this metric enables the metrics that compute the signals of live and recorded turns:
    ``llm_confidence``, ``embed_loop_detection``, ``llm_tool_correctness``, and ``embed_coherence``.

    Parameters:
        signal_weights: Weight of each signal, 0..1000. Defaults: confidence 1, loop_detection 1, tool_correctness 0.8, coherence 1.
            If a weight is above 1, a risk can exceed 1.
        top_k: Share of the traces that the mean includes, riskiest first. Replaces 0.15 in the formula for ``k``.
        ensemble: Weight of the highest risk. Replaces 0.1 in the formula. The weight of the mean is ``1 - ensemble``.

    Detail: ``total_traces_in_session``, ``traces_evaluated``, ``raw_risk``, ``signal_weights``, ``flagged_traces`` (IDs of at
    most 200 traces with a risk above 0.5), ``per_trace_signals`` (for at most 200 traces: signals, risks, and ``step_risk``), and
    ``aggregation`` (``mean_top_k_risk``, ``max_risk``, and the parameters).
    """
    weights = {**SIGNAL_WEIGHTS, **(signal_weights or {})}
    traces = _traces(turn)
    risks = [(name, signals, max(_risks(signals, weights).values())) for name, signals in traces if signals]
    if not risks:
        return vacuous(1.0, total_traces_in_session=len(traces), traces_evaluated=0)
    if [signals for _, signals, _ in risks] == [{"loop_detection": 1.0}]:
        return skip("missing:signals")
    worst = sorted((risk for _, _, risk in risks), reverse=True)
    # without the tolerance, rounding errors could make 0.15 * 20 more than 3 traces
    k = max(1, math.ceil(len(worst) * top_k - EPSILON))
    mean_top_k = sum(worst[:k]) / k
    raw_risk = (1 - ensemble) * mean_top_k + ensemble * worst[0]
    flagged = [name for name, _, risk in risks if risk > _ELEVATED_RISK + EPSILON]
    method = {"method": "max_compose_top_k", "top_k_percentile": top_k, "ensemble_weight": ensemble}
    return Result(
        round(max(0.0, min(1.0, 1 - raw_risk)), 4),
        explanation=f"elevated risk in {len(flagged)} of {len(risks)} traces" if flagged else None,
        detail={
            "total_traces_in_session": len(traces),
            "traces_evaluated": len(risks),
            "raw_risk": raw_risk,
            "signal_weights": weights,
            "flagged_traces": flagged[:_SHOWN],
            "per_trace_signals": {name: _shown(signals, step_risk=risk) for name, signals, risk in risks[:_SHOWN]},
            "aggregation": {**method, "mean_top_k_risk": mean_top_k, "max_risk": worst[0]},
        },
    )


@metric(applies=applies.session_signals, uses=("session",), threshold=0.5, aliases=("pandaprobe:agent_consistency",))
def code_agent_consistency(turn: Turn, *, signal_weights: dict[Signal, SignalWeight] | None = None) -> Result:
    """Consistency of the agent over a session, based on the uncertainty of its traces.

    The turn's ``session`` contains the signals of each trace, as described for ``code_agent_reliability``.

    The value is 1 minus the root mean square of the traces' uncertainty. A trace's uncertainty is ``(1 + penalty) * weight * (1 -
    confidence)``, with ``confidence``'s own weight. The penalty is the sum of ``weight * (1 - signal)`` over the other known
    signals (``loop_detection``, ``tool_correctness``, and ``coherence``), each with its weight. The value is limited to 0..1
    and rounded to 4 decimals. Traces without ``confidence`` are ignored. If no trace has ``confidence``, the value is 1 (vacuous).

    If a trace's confidence is 1, low values of its other signals have no effect. To detect them, use ``code_agent_reliability``.

    Parameters:
        signal_weights: Weight of each signal, 0..1000. Defaults: confidence 1, loop_detection 1, tool_correctness 0.8, coherence 1.

    Detail: ``total_traces_in_session``, ``traces_evaluated``, ``raw_instability`` (root mean square, can exceed 1),
    ``signal_weights``, ``per_trace_signals`` (for at most 200 traces: signals, risks, ``situational_penalty``, and
    ``weighted_uncertainty``), and ``aggregation``.
    """
    weights = {**SIGNAL_WEIGHTS, **(signal_weights or {})}
    traces = _traces(turn)
    shown: dict[str, Any] = {}
    squares = []
    for name, signals in traces:
        risks = _risks(signals, weights)
        if (uncertainty := risks.pop("confidence", None)) is None:
            continue
        penalty = sum(risks.values())
        weighted = (1 + penalty) * uncertainty
        squares.append(weighted * weighted)
        if len(shown) < _SHOWN:
            shown[name] = _shown(signals, situational_penalty=penalty, weighted_uncertainty=weighted)
    if not squares:
        return vacuous(1.0, total_traces_in_session=len(traces), traces_evaluated=0)
    instability = math.sqrt(sum(squares) / len(squares))
    return Result(
        round(max(0.0, min(1.0, 1 - instability)), 4),
        detail={
            "total_traces_in_session": len(traces),
            "traces_evaluated": len(squares),
            "raw_instability": instability,
            "signal_weights": weights,
            "per_trace_signals": shown,
            "aggregation": {"method": "weighted_rms", "rms_value": instability},
        },
    )
