"""Metrics of an answer's state: turns that pass, fail and are skipped."""

from __future__ import annotations

from typing import Any

import pytest

from otel_agenteval import get_metric
from otel_agenteval.core.turn import ErrorInfo, LlmCall, Message, Turn


def calls(*reasons: Any) -> list[LlmCall]:
    return [LlmCall(model="m", finish_reason=reason) for reason in reasons]


@pytest.mark.parametrize(
    ("known", "passed"),
    [
        pytest.param({"output": "\u200b\u200bやあ"}, True, id="text behind invisible characters is an answer"),
        pytest.param({"output": "<br>"}, True, id="markup is text"),
        pytest.param({"output": ""}, False, id="no character is empty"),
        pytest.param({"output": " \t\r\n\u3000\xa0"}, False, id="white space of any script is empty"),
        pytest.param({"output": "\u200b\u2060\ufeff\u200e"}, False, id="zero width characters are empty"),
        pytest.param({"output": "\u2800\u3164\x00\x1b"}, False, id="blank letters and control characters are empty"),
    ],
)
def test_empty_answer(known: dict[str, Any], passed: bool) -> None:
    score = get_metric("code_empty_answer").evaluate(Turn(**known))
    assert (score.status, score.passed, score.value) == ("ok", passed, float(passed))


@pytest.mark.parametrize(
    ("known", "reason"),
    [
        pytest.param({}, "missing:output", id="unknown output"),
        pytest.param({"output": "", "error": ErrorInfo("TimeoutError")}, "turn_error", id="a turn that failed"),
    ],
)
def test_empty_answer_does_not_apply(known: dict[str, Any], reason: str) -> None:
    score = get_metric("code_empty_answer").evaluate(Turn(**known))
    assert (score.status, score.detail["reason"]) == ("skipped", reason)


def test_a_picture_from_the_assistant_is_an_answer() -> None:
    for role in ("assistant", "user"):
        message = Message(role, attachments=[{"modality": "image", "uri": "https://x.org/a.png"}])
        score = get_metric("code_empty_answer").evaluate(Turn(output="", messages=[Message("user", "draw"), message]))
        assert (score.passed, score.detail) == ((True, {"attachments": 1}) if role == "assistant" else (False, {}))


@pytest.mark.parametrize("reason", ["stop", "end_turn", "STOP", "tool_calls", "tool_use", "content_filter", "unlimited"])
def test_an_answer_that_stopped_is_whole(reason: str) -> None:
    assert get_metric("code_truncated_answer").evaluate(Turn(llm_calls=calls(reason))).passed is True


@pytest.mark.parametrize(
    "reason",
    [
        "length", "max_tokens", "MAX_TOKENS", "FinishReason.MAX_TOKENS", "FINISH_REASON_MAX_TOKENS", "max_output_tokens",
        "model_length", "incomplete", "maxTokens", "max-tokens", " Length ", "model_context_window_exceeded",
    ],
)  # fmt: skip
def test_an_answer_that_hit_the_limit_is_cut(reason: str) -> None:
    score = get_metric("code_truncated_answer").evaluate(Turn(llm_calls=calls("stop", reason)))
    assert (score.passed, score.value) == (False, 0.0)
    assert score.detail == {"finish_reason": reason, "model": "m"}


def test_a_cut_step_before_a_whole_answer_does_not_count() -> None:
    assert get_metric("code_truncated_answer").evaluate(Turn(llm_calls=calls("length", "stop"))).passed is True
    assert get_metric("code_truncated_answer").evaluate(Turn(llm_calls=calls("length", None))).status == "skipped"


def turn_of(known: dict[str, Any]) -> Turn:
    """Return a turn with these fields. If calls are a number, they have no content."""
    return Turn.from_dict(known) if isinstance(known.get("llm_calls"), int) else Turn(**known)


@pytest.mark.parametrize("metric", ["code_truncated_answer", "code_content_filtered"])
@pytest.mark.parametrize(
    "known",
    [
        pytest.param({}, id="no call is known"),
        pytest.param({"llm_calls": calls(None)}, id="no reason is stated"),
        pytest.param({"llm_calls": calls("")}, id="the reason is empty text"),
        pytest.param({"llm_calls": calls(["stop"])}, id="the reason is no text"),
        pytest.param({"llm_calls": 3}, id="only the number of calls is known"),
    ],
)
def test_without_a_finish_reason_nothing_is_said(metric: str, known: dict[str, Any]) -> None:
    score = get_metric(metric).evaluate(turn_of(known))
    assert (score.status, score.detail["reason"]) == ("skipped", "missing:finish_reason")


@pytest.mark.parametrize(
    "reason",
    [
        "content_filter", "ContentFilter", "content_filtered", "content-filter", "SAFETY", "FinishReason.SAFETY", "refusal", "BLOCKLIST",
        "PROHIBITED_CONTENT", "guardrail_intervened", "RECITATION", "SPII",
    ],
)  # fmt: skip
def test_a_filtered_call_is_found_wherever_it_stands(reason: str) -> None:
    score = get_metric("code_content_filtered").evaluate(Turn(llm_calls=calls(reason, "stop")))
    assert (score.passed, score.detail) == (False, {"reason": reason, "model": "m"})


@pytest.mark.parametrize(
    "error_type",
    ["content_policy_violation", "ContentFilterFinishReasonError", "InputGuardrailTripwireTriggered", "BlockedPromptException"],
)
def test_an_error_type_can_say_that_content_was_filtered(error_type: str) -> None:
    metric = get_metric("code_content_filtered")
    failed = LlmCall(model="m", error=ErrorInfo(error_type, "the text"))
    assert metric.evaluate(Turn(llm_calls=[failed])).detail == {"reason": error_type, "model": "m"}
    assert metric.evaluate(Turn(error=ErrorInfo(error_type))).detail == {"reason": error_type}


@pytest.mark.parametrize(
    ("known", "status", "passed"),
    [
        pytest.param({"llm_calls": calls("stop", "tool_calls")}, "ok", True, id="calls that stopped are unfiltered"),
        pytest.param({"llm_calls": calls(None, "length")}, "ok", True, id="one stated reason is enough"),
        pytest.param({"error": ErrorInfo("TimeoutError")}, "skipped", None, id="another error says nothing"),
        pytest.param({"error": ErrorInfo("error", "Guardrail service: timeout")}, "skipped", None, id="nor does another message"),
        pytest.param(
            {"error": ErrorInfo("error", "Guardrail tripwire triggered: {}")}, "ok", False, id="a tripwire without a type"
        ),
    ],
)
def test_content_not_filtered(known: dict[str, Any], status: str, passed: bool | None) -> None:
    score = get_metric("code_content_filtered").evaluate(Turn(**known))
    assert (score.status, score.passed) == (status, passed)


@pytest.mark.parametrize(("error_type", "named"), [("TimeoutError", "TimeoutError"), (None, "unknown")])
def test_turn_error_names_the_type_and_no_message(error_type: str | None, named: str) -> None:
    score = get_metric("code_turn_error").evaluate(Turn(error=ErrorInfo(error_type, "secret text")))
    assert (score.passed, score.detail, "secret" in (score.explanation or "")) == (False, {"type": named}, False)


def failed(model: str | None, error_type: str | None = "429") -> LlmCall:
    return LlmCall(model=model, error=ErrorInfo(error_type))


OK = LlmCall(model="m")


@pytest.mark.parametrize(
    ("llm_calls", "value", "detail"),
    [
        pytest.param([failed("m"), OK], 1, {"errors": {"429": 1}}, id="one retry"),
        pytest.param([failed("m"), failed("m", None), OK], 2, {"errors": {"429": 1, "unknown": 1}}, id="two retries"),
        pytest.param([failed("m"), LlmCall(model="other"), OK], 1, {"errors": {"429": 1}}, id="the retry may come later"),
        pytest.param([failed("m"), LlmCall(model="other")], 0, {}, id="a fallback to another model is no retry"),
        pytest.param([OK, failed("m")], 0, {}, id="the last failure was not retried"),
        pytest.param([failed("gpt-4o"), LlmCall(model="gpt-4o-2024-08-06")], 1, {"errors": {"429": 1}}, id="a dated release"),
        pytest.param([failed("gpt-4o"), LlmCall(model="gpt-4o-mini")], 0, {}, id="a smaller sister is another model"),
        pytest.param([failed(None), LlmCall(model=None)], 0, {}, id="unknown models are not compared"),
    ],
)
def test_llm_retries(llm_calls: list[LlmCall], value: int, detail: dict[str, Any]) -> None:
    score = get_metric("code_llm_retries").evaluate(Turn(llm_calls=llm_calls))
    assert (score.value, score.detail, score.passed) == (value, detail, None)


@pytest.mark.parametrize("known", [{}, {"llm_calls": 2}], ids=["no call is known", "only their number is known"])
def test_llm_retries_do_not_apply(known: dict[str, Any]) -> None:
    score = get_metric("code_llm_retries").evaluate(turn_of(known))
    assert (score.status, score.detail["reason"]) == ("skipped", "missing:llm_calls")


@pytest.mark.parametrize(("times", "value"), [([0.8, 0.3], 0.3), ([None, 0.8, 0.0], 0.0)])
def test_time_to_first_token_is_that_of_the_last_call(times: list[float | None], value: float) -> None:
    score = get_metric("code_time_to_first_token").evaluate(Turn(llm_calls=[LlmCall(time_to_first_token_s=t) for t in times]))
    assert (score.value, score.detail, score.unit, score.passed) == (value, {"first_call": 0.8}, "s", None)


@pytest.mark.parametrize("times", [[], [None], [0.8, None], [float("nan")], [-1.0]], ids=str)
def test_time_to_first_token_does_not_apply(times: list[float | None]) -> None:
    score = get_metric("code_time_to_first_token").evaluate(Turn(llm_calls=[LlmCall(time_to_first_token_s=t) for t in times]))
    assert (score.status, score.detail["reason"]) == ("skipped", "missing:time_to_first_token")


@pytest.mark.parametrize("output", ["null", " None ", "{}", "[ ]", '""', "```\n```", "```json\n\n```", "undefined"])
def test_nothing_in_a_notation_is_an_empty_answer(output: str) -> None:
    assert get_metric("code_empty_answer").evaluate(Turn(output=output)).passed is False


@pytest.mark.parametrize("output", ["nullable", "{0}", "[]{}", "None of them.", "```\nx\n```", "0"])
def test_a_short_answer_is_not_empty(output: str) -> None:
    assert get_metric("code_empty_answer").evaluate(Turn(output=output)).passed is True


@pytest.mark.parametrize("reason", ["tool_calls", "tool_use", "toolUse", "FinishReason.TOOL_CALL", "ToolCalls", "function_call"])
def test_a_turn_that_ends_with_a_tool_call_has_no_answer_to_check(reason: str) -> None:
    score = get_metric("code_empty_answer").evaluate(Turn(output="", llm_calls=[LlmCall(finish_reason=reason)]))
    assert (score.status, score.detail["reason"]) == ("skipped", "tool_calls")


@pytest.mark.parametrize(
    "output",
    [
        "Agent stopped due to iteration limit or time limit.",
        "Maximum number of turns 10 reached.",
        "Recursion limit of 25 reached without hitting a stop condition.",
        "Sorry, need more steps to process this request.",
    ],
)
def test_the_sentence_of_a_framework_that_stops_an_agent_is_an_error(output: str) -> None:
    score = get_metric("code_turn_error").evaluate(Turn(output=output))
    assert (score.passed, score.detail) == (False, {"type": "stopped"})
    for ordinary in ("The agent stopped due to rain.", "Your plan has a time limit of 25 minutes.", "Set max_iterations to 9."):
        assert get_metric("code_turn_error").evaluate(Turn(output=ordinary)).passed is True
