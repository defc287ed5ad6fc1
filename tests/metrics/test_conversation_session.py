from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import otel_agenteval as oa

SESSION_METRICS = ("code_agent_reliability", "code_agent_consistency")


def evaluate(metric: str, turn: dict[str, Any], **params: Any) -> oa.Score:
    return oa.get_metric(metric, **params).evaluate(oa.Turn.from_dict(turn))


def said(*roles: str) -> list[dict[str, Any]]:
    return [{"role": role, "content": f"words {place}"} for place, role in enumerate(roles)]


def session(*signals: Any) -> dict[str, Any]:
    return {"session": {"traces": [{"trace_id": f"t{place}", "signals": given} for place, given in enumerate(signals)]}}


CALLING = {"role": "assistant", "content": "", "tool_calls": [{"name": "a"}]}
RESULT = {"role": "user", "tool_results": [{"result": 1}]}
SEARCHED = {"tool_calls": [{"name": "SEARCH"}]}
ANSWERED = {"messages": said("user", "assistant"), "tool_calls": []}


@pytest.mark.parametrize(
    ("turn", "params", "parts"),
    [
        pytest.param({"messages": said("user", "user", "assistant")}, {}, (0.5, 1, 1, 1), id="one of two answered"),
        pytest.param({"messages": [*said("user", "user", "assistant"), CALLING]}, {}, (0.5, 1, 1, 1), id="a tool call"),
        pytest.param({"messages": [*said("user", "assistant"), RESULT]}, {}, (1, 1, 1, 1), id="a tool's result is no question"),
        pytest.param(SEARCHED, {"expected_tools": ["search", "Search", "book", "pay"]}, (1, 1 / 3, 1, 1), id="without case"),
        pytest.param({**SEARCHED, "references": {"expected_tools": ["pay"]}}, {}, (1, 0, 1, 1), id="the turn's reference"),
        pytest.param({"duration_s": 75}, {"max_duration_s": 60}, (1, 1, 0.75, 1), id="a quarter over it"),
        pytest.param({"tool_calls": None}, {}, (1, 1, 1, 1), id="unknown calls do not matter when none are expected"),
        pytest.param({"duration_s": 0}, {"max_duration_s": 0}, (1, 1, 1, 1), id="within a limit of nothing"),
        pytest.param({"duration_s": 1}, {"max_duration_s": 0}, (1, 1, 0, 1), id="over a limit of nothing"),
    ],
)
def test_completeness_is_the_weighted_sum_of_its_four_parts(
    turn: dict[str, Any], params: dict[str, Any], parts: tuple[float, ...]
) -> None:
    score = evaluate("code_conversation_completeness", {**ANSWERED, **turn}, **params)
    assert tuple(score.detail.values()) == pytest.approx(parts)
    assert list(score.detail) == ["response_rate", "tool_usage", "duration_compliance", "error_free"]
    assert score.value == pytest.approx(sum(w * part for w, part in zip((0.4, 0.3, 0.15, 0.15), parts, strict=True)))
    assert score.passed is (score.value >= 0.7 and parts[3] == 1)


def test_completeness_never_passes_with_an_error() -> None:
    assert evaluate("code_conversation_completeness", {**ANSWERED, "error": "boom"}, threshold=0.1).passed is False
    assert evaluate("code_conversation_completeness", ANSWERED, threshold=1).passed is True


def test_completeness_takes_weights_that_add_up() -> None:
    turn = {**ANSWERED, "messages": said("user", "user", "assistant")}
    assert evaluate("code_conversation_completeness", turn, weights=[1, 0, 0, 0]).value == 0.5
    assert evaluate("code_conversation_completeness", turn, weights=[0.1] * 2 + [0.4] * 2).value == pytest.approx(0.95)


@pytest.mark.parametrize(
    ("turn", "params", "reason"),
    [
        pytest.param({"input": "q", "output": "a"}, {}, "missing:conversation", id="no messages"),
        pytest.param({**ANSWERED, "tool_calls": None}, {"expected_tools": ["a"]}, "missing:tool_calls", id="unknown tool calls"),
        pytest.param(ANSWERED, {"max_duration_s": 1}, "missing:duration", id="an unknown duration"),
    ],
)
def test_completeness_does_not_apply(turn: dict[str, Any], params: dict[str, Any], reason: str) -> None:
    score = evaluate("code_conversation_completeness", turn, **params)
    assert (score.status, score.value, score.detail) == ("skipped", None, {"reason": reason})


def test_completeness_refuses_a_reference_that_is_no_list_of_tools() -> None:
    score = evaluate("code_conversation_completeness", {**ANSWERED, "references": {"expected_tools": 5}})
    assert (score.status, score.error_type) == ("error", "invalid_reference")


@pytest.mark.parametrize(
    ("signals", "params", "value", "raw"),
    [
        pytest.param([{"confidence": 0.8}, {}, {"loop_detection": None}], {}, 0.8, 0.2, id="traces without a signal"),
        pytest.param([{"confidence": 1}] * 9 + [{"confidence": 0}], {"top_k": 1, "ensemble": 1}, 0.0, 1.0, id="the worst alone"),
        pytest.param([{"confidence": 0.66666}], {}, 0.6667, 0.33334, id="rounded to four decimals"),
        pytest.param([{"confidence": 0}], {"signal_weights": {"confidence": 3}}, 0.0, 3.0, id="kept at 0, the raw risk not"),
    ],
)
def test_reliability_looks_at_the_worst_traces(
    signals: list[dict[str, Any]], params: dict[str, Any], value: float, raw: float
) -> None:
    score = evaluate("code_agent_reliability", session(*signals), **params)
    assert score.value == pytest.approx(value, abs=1e-12)
    assert score.detail["raw_risk"] == pytest.approx(raw)
    assert score.detail["total_traces_in_session"] == len(signals)
    assert score.passed is (value >= 0.5)


@pytest.mark.parametrize("traces", [1, 6, 7, 20, 140])
def test_the_number_of_worst_traces_is_exact_whatever_binary_fractions_say(traces: int) -> None:
    worst = -(-traces * 15 // 100)
    signals = [{"confidence": 0.0}] * worst + [{"confidence": 1.0}] * (traces - worst)
    assert evaluate("code_agent_reliability", session(*signals)).detail["aggregation"]["mean_top_k_risk"] == 1.0
    fewer = [*signals[1:], {"confidence": 1.0}]
    assert evaluate("code_agent_reliability", session(*fewer)).detail["aggregation"]["mean_top_k_risk"] < 1.0


def test_reliability_flags_traces_above_half_the_risk_by_id_or_place() -> None:
    traces = [
        {"trace_id": "a", "signals": {"confidence": 0.5}},
        {"signals": {"confidence": 0.4}},
        {"trace_id": 7, "signals": {"confidence": 0}},
    ]
    score = evaluate("code_agent_reliability", {"session": {"traces": traces}})
    assert score.detail["flagged_traces"] == ["1", "7"]
    risks = {"confidence_risk": 0.6, "step_risk": pytest.approx(0.6)}
    assert score.detail["per_trace_signals"]["1"] == {"confidence": 0.4, **risks}
    assert score.explanation == "elevated risk in 2 of 3 traces"


def reference_instability(traces: list[dict[str, float]], weights: dict[str, float]) -> float:
    """Return the result of the formula."""
    found = []
    for signals in traces:
        if "confidence" in signals:
            penalty = sum(weights[s] * (1 - signals.get(s, 1.0)) for s in ("loop_detection", "tool_correctness", "coherence"))
            found.append((1 + penalty) * weights["confidence"] * (1 - signals["confidence"]))
    return math.sqrt(sum(x**2 for x in found) / len(found))


@given(
    st.lists(
        st.dictionaries(st.sampled_from(["confidence", "loop_detection", "tool_correctness", "coherence"]), st.floats(0, 1)),
        min_size=1,
        max_size=12,
    ).filter(lambda traces: any("confidence" in signals for signals in traces))
)
def test_consistency_is_one_less_the_root_mean_square(traces: list[dict[str, float]]) -> None:
    weights = {"confidence": 1.0, "loop_detection": 1.0, "tool_correctness": 0.8, "coherence": 1.0}
    score = evaluate("code_agent_consistency", session(*traces))
    expected = reference_instability(traces, weights)
    assert score.detail["raw_instability"] == pytest.approx(expected, abs=1e-12)
    assert score.value == pytest.approx(max(0.0, 1 - expected), abs=1e-4)


@pytest.mark.parametrize("metric", SESSION_METRICS)
@pytest.mark.parametrize(
    "turn",
    [
        pytest.param({}, id="no session"),
        pytest.param({"session": {}}, id="no traces"),
        pytest.param(
            session({}, {"other": 0.1}, {"confidence": "low"}, {"confidence": True}, {"confidence": 1.5}, None), id="no signals"
        ),
    ],
)
def test_nothing_to_evaluate_is_vacuous(metric: str, turn: dict[str, Any]) -> None:
    score = evaluate(metric, turn)
    assert (score.value, score.passed, score.vacuous, score.detail["traces_evaluated"]) == (1.0, True, True, 0)


@pytest.mark.parametrize("metric", SESSION_METRICS)
def test_traces_that_are_no_list_are_an_error(metric: str) -> None:
    assert evaluate(metric, {"session": {"traces": "t0"}}).error_type == "invalid_session"


def test_many_traces_are_counted_and_not_all_shown() -> None:
    turn = session(*[{"confidence": 0.1}] * 1_000)
    for metric in SESSION_METRICS:
        score = evaluate(metric, turn)
        assert (score.detail["traces_evaluated"], len(score.detail["per_trace_signals"])) == (1_000, 200)
