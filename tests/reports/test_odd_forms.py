"""Situations of public reports on odd forms of answers, token counts and tool calls. See README.md in this folder."""

from __future__ import annotations

import json
from typing import Any

import pytest

from otel_agenteval.spans.record import SpanEvent
from tests.support.spans import MS, START, agent, chat, span, tool, turn_of

ASKED, SAID = "What is the weather in Paris?", "It is 21 degrees in Paris."
MALFORMED = "MALFORMED_FUNCTION_CALL"


def answer_in(key: str, written: str, scope: str) -> str | None:
    attributes = {"gen_ai.operation.name": "chat", "openinference.span.kind": "LLM", "gen_ai.request.model": "g-1", key: written}
    return turn_of(agent(1), chat(2, 1, user=ASKED, attributes=attributes, scope=scope)).output


@pytest.mark.parametrize(
    "response",
    [
        {"content": {}, "finish_reason": MALFORMED, "usage_metadata": {"prompt_token_count": 6354}},
        {"content": {}, "finish_reason": MALFORMED},
        {"error_code": MALFORMED, "usage_metadata": {"prompt_token_count": 5}},
        {"model_version": "g-1", "error_code": "SAFETY", "error_message": "blocked"},
        {"candidates": [{"content": {}, "finishReason": MALFORMED}], "usageMetadata": {}},
        {"prompt_feedback": {"block_reason": "SAFETY"}, "usage_metadata": {}},
        {"choices": [], "usage": {"prompt_tokens": 3}},
        {"generations": [[]], "llm_output": None, "run": None, "type": "LLMResult"},
        {"generations": [], "llm_output": {}},
    ],
)
@pytest.mark.parametrize("key", ["gcp.vertex.agent.llm_response", "output.value"])
def test_response_without_content_is_an_empty_answer(response: Any, key: str) -> None:
    """openinference 1785: Gemini ended a response without any part, and the whole response became the answer."""
    scope = "gcp.vertex.agent" if key.startswith("gcp") else "openinference.instrumentation.google_adk"
    assert answer_in(key, json.dumps(response), scope) == ""


@pytest.mark.parametrize(
    "value",
    [
        {"celsius": 21, "content": {}},
        {"error_code": "E7", "error_message": "no city"},
        {"finish_reason": "done", "celsius": 21},
        {"usage": "twice a day", "content": {"aspirin": 1}},
    ],
)
def test_object_that_is_no_response_is_the_answer(value: Any) -> None:
    """The opposite of openinference 1785: structured answers with a field that responses also have."""
    written = json.dumps(value)
    assert answer_in("output.value", written, "openinference.instrumentation.google_adk") == written


def test_truncated_response_without_content_is_unknown() -> None:
    """The opposite of openinference 1785: the text was in the part that the SDK cut off."""
    written = '{"usage_metadata": {"prompt_token_count": 5}, "content": {"par'
    assert answer_in("output.value", written, "openinference.instrumentation.google_adk") is None


CACHED = {"cache_read_input_tokens": 1200, "cache_creation_input_tokens": 300}


def counts_of(attributes: dict[str, Any], scope: str = "acme.app") -> tuple[int | None, ...]:
    (call,) = turn_of(span(1, 0, "llm", attributes, scope=scope)).llm_calls
    return call.input_tokens, call.output_tokens, call.cached_tokens, call.cache_write_tokens


@pytest.mark.parametrize(("usage", "counts"), [
    ({"input_tokens": 1600, "output_tokens": 40, "total_tokens": 1640, **CACHED}, (1600, 40, 1200, 300)),
    ({"input_tokens": 1600, "output_tokens": 40, "total_tokens": 1640, "cache_creation_input_tokens": 300}, (1600, 40, None, 300)),
    ({"input_tokens": 100, "output_tokens": 40, "total_tokens": 140, **CACHED}, (1600, 40, 1200, 300)),
    ({"input_tokens": 100, "output_tokens": 40, "total_tokens": 1640, **CACHED}, (1600, 40, 1200, 300)),
    ({"input_tokens": 100, "output_tokens": 40, "cache_creation_input_tokens": 300}, (400, 40, None, 300)),
    ({"cache_creation": {"ephemeral_1h_input_tokens": 0, "ephemeral_5m_input_tokens": 300}, "input_tokens": 100, "output_tokens": 40, **CACHED},
     (1600, 40, 1200, 300)),
    ({"inputTokens": 1600, "outputTokens": 40, "cacheReadInputTokens": 1200, "cacheWriteInputTokens": 300}, (1600, 40, 1200, 300)),
    ({"input_tokens": 1600, "output_tokens": 40}, (1600, 40, None, None)),
    ({"input_tokens": 1600, "output_tokens": 40, "cache_creation_input_tokens_limit": 300}, (1600, 40, None, None)),
])  # fmt: skip
def test_cache_writes_of_a_usage_object(usage: dict[str, Any], counts: tuple[int | None, ...]) -> None:
    """mlflow 24615: the tokens that a call wrote to a cache were lost, although the flat attributes of other SDKs were read."""
    asked = {"messages": [{"role": "user", "content": ASKED}], "model": "claude-sonnet-4-5"}
    mlflow = {
        "mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": json.dumps(asked), "mlflow.spanOutputs": json.dumps(SAID),
        "mlflow.traceRequestId": '"tr-1"', "mlflow.chat.tokenUsage": json.dumps(usage),
    }  # fmt: skip
    own = {"app.model": "claude-sonnet-4-5", "app.prompt": ASKED, "app.response": SAID, "app.usage": json.dumps(usage)}
    assert counts_of(mlflow, "mlflow.anthropic") == counts_of(own) == counts


def test_cost_of_cache_writes_is_no_count() -> None:
    """The opposite of mlflow 24615: Langfuse's costs have the same names as its counts, and come first."""
    langfuse = {
        "langfuse.observation.type": "generation", "langfuse.observation.model.name": "claude-sonnet-4-5",
        "langfuse.observation.input": ASKED, "langfuse.observation.output": SAID,
        "langfuse.observation.cost_details": json.dumps({"input": 0.1, **dict.fromkeys(CACHED, 0)}),
        "langfuse.observation.usage_details": json.dumps({"input": 100, "output": 40, "total": 1640, **CACHED}),
    }  # fmt: skip
    assert counts_of(langfuse, "langfuse-sdk") == (1600, 40, 1200, 300)


def openinference_part(side: str, role: str, **part: Any) -> dict[str, Any]:
    place = f"llm.{side}_messages.0.message"
    return {f"{place}.role": role, **{f"{place}.contents.0.message_content.{key}": value for key, value in part.items()}}


@pytest.mark.parametrize("audio", ["audio", "audio.audio"])
def test_transcripts_of_openinference_are_texts(audio: str) -> None:
    """openinference 3081: the user and the model spoke, and only the transcripts show what they said."""
    asked = {"type": "audio", f"{audio}.url": "data:audio/wav;base64,UklGRg==", f"{audio}.transcript": ASKED}
    said = {"type": "audio", f"{audio}.transcript": SAID}
    turn = turn_of(span(1, 0, "ChatCompletion", {
        "openinference.span.kind": "LLM", **openinference_part("input", "user", **asked), **openinference_part("output", "assistant", **said),
    }, scope="openinference.instrumentation.openai"))  # fmt: skip
    assert (turn.input, turn.output) == (ASKED, SAID)
    assert [attachment["modality"] for attachment in turn.attachments] == ["audio"]


@pytest.mark.parametrize(("message", "output"), [
    ({"content": None, "audio": {"id": "a", "data": "UklGRg==", "transcript": SAID, "expires_at": 1}}, SAID),
    ({"type": "message", "content": [{"type": "output_audio", "transcript": SAID}]}, SAID),
    ({"parts": [{"type": "text", "content": SAID}, {"type": "audio", "transcript": SAID}]}, SAID),
    ({"parts": [{"type": "audio", "transcript": "[REDACTED]"}]}, None),
    ({"content": SAID, "audio": {"id": "a", "transcript": "It is"}}, SAID),
    ({"content": SAID, "audio": {"id": "a"}}, SAID),
    ({"parts": [{"type": "blob", "modality": "audio", "content": "UklGRg=="}, {"type": "text", "content": SAID}]}, SAID),
])  # fmt: skip
def test_transcript_is_the_text_of_a_spoken_answer(message: dict[str, Any], output: str | None) -> None:
    """openinference 3081: the same answer as OpenAI's APIs return it, beside answers whose text is known or hidden."""
    call = chat(1, user=ASKED)
    call.attributes |= {"gen_ai.output.messages": json.dumps([{"role": "assistant", **message}])}
    assert turn_of(call).output == output


@pytest.mark.parametrize("handle", [
    "<AsyncAPIResponse [200 OK] type=<class 'openai.types.responses.response.Response'>>",
    "<LegacyAPIResponse [200 OK] type=typing.Any>", "<Response [200 OK]>", "<Response [200]>", "<httpx.Response [429 Too Many Requests]>",
])  # fmt: skip
def test_raw_response_of_an_sdk_is_no_answer(handle: str) -> None:
    """mlflow 22598: with ``with_raw_response``, the answer is parsed later, and the span has the ``repr`` of the response."""
    mlflow = {
        "mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": json.dumps({"input": [{"role": "user", "content": ASKED}], "model": "m-1"}),
        "mlflow.spanOutputs": json.dumps(handle), "mlflow.traceRequestId": '"tr-1"',
    }  # fmt: skip
    turn = turn_of(span(1, 0, "AsyncResponses.create", mlflow, scope="mlflow.openai"))
    assert (turn.input, turn.output) == (ASKED, None)
    above = span(1, 0, "ask", {"openinference.span.kind": "CHAIN", "input.value": ASKED, "output.value": handle}, ms=50)
    assert turn_of(above, chat(2, 1, user=ASKED, says=SAID)).output == SAID


@pytest.mark.parametrize(
    "answer",
    ["<p>Response [200 OK]</p>", "<Response>[200 OK]</Response>", "It returned <Response [200 OK]>", "<Response [city]>"],
)
def test_answer_that_resembles_a_raw_response_stays(answer: str) -> None:
    """The opposite of mlflow 22598: markup, and texts about a response."""
    assert turn_of(chat(1, user=ASKED, says=answer)).output == answer


def tool_call_of(arguments: Any, name: str = "execute_tool find", **attributes: Any) -> tuple[str | None, Any]:
    root = span(1, 0, "agent bot", {"app.span.kind": "agent", "app.input": ASKED, "app.output": SAID}, ms=50)
    event = SpanEvent("data.input", {"input": arguments})
    turn = turn_of(root, span(2, 1, name, {"span.type": "agentic.tool.invocation", **attributes}, events=[event]))
    (call,) = turn.tool_calls or ()
    return call.name, call.arguments


@pytest.mark.parametrize(("arguments", "read"), [
    (['{"city": "Paris", "days": 3}'], {"city": "Paris", "days": 3}), (['{"city": "Paris"}', '{"days": 3}'], {"city": "Paris", "days": 3}),
    ('["{\\"city\\": \\"Paris\\"}"]', {"city": "Paris"}), ('{"city": "Paris"}', {"city": "Paris"}),
    (['{"city": "Paris"}', '{"city": "Rome"}'], None), (["Paris", "Rome"], None), (['{"city": "Paris"}', "Rome"], None),
])  # fmt: skip
def test_arguments_in_a_list_of_json_texts(arguments: Any, read: Any) -> None:
    """monocle 662: the arguments are one item of a list, and were lost. Other lists aren't arguments with names."""
    assert tool_call_of(arguments) == ("find", read)


def test_entitys_name_is_surer_than_the_spans_name() -> None:
    """monocle 665: the span's name is only the framework's, ``adk.tool``. Names of other subjects don't replace the tool's."""
    entity = {"entity.1.name": "book", "entity.1.type": "tool.adk", "entity.2.name": "bot", "entity.2.type": "agent.adk"}
    assert tool_call_of('{"city": "Paris"}', "adk.tool", **entity)[0] == "book"
    assert tool_call_of('{"city": "Paris"}', "find.tool", **{"component.name": "ToolNode"})[0] == "find"
    assert tool_call_of('{"city": "Paris"}', "find.tool")[0] == "find"


@pytest.mark.parametrize(("outcome", "has_failed"), [
    ("fail", True), ("FAILED", True), ("timeout", True), ("ok", False), ("success", False), ("failover", False), ("completed", False),
])  # fmt: skip
@pytest.mark.parametrize("key", ["executor.tool.outcome", "gen_ai.tool.call.outcome", "gen_ai.tool.status"])
def test_outcome_of_a_tool_decides_without_a_span_status(key: str, outcome: str, has_failed: bool) -> None:
    """executor 992: the tool returned a failure as a value, so its span has no error status, and ``outcome`` is ``fail``."""
    failing = tool(
        2, 1, "issues", attributes={"gen_ai.tool.call.arguments": '{"q": "x"}', key: outcome, "executor.tool.error_code": "e-1"}
    )
    (call,) = turn_of(agent(1), failing).tool_calls or ()
    assert (call.error is not None) == has_failed


def test_other_outcomes_are_no_failures_of_tools() -> None:
    """The opposite of executor 992: the outcome of something else, and an argument."""
    attributes = {"gen_ai.tool.call.arguments": '{"outcome": "fail"}', "check.outcome": "fail", "outcome": "fail"}
    (call,) = turn_of(agent(1), tool(2, 1, "grade", attributes=attributes)).tool_calls or ()
    assert call.error is None


DETAILS = {
    "inputTokenDetails": {"noCacheTokens": 100, "cacheReadTokens": 1200, "cacheWriteTokens": 300},
    "outputTokenDetails": {"reasoningTokens": 10},
}


@pytest.mark.parametrize(("usage", "counts"), [
    ({"inputTokens": {"total": 1600, "noCache": 100, "cacheRead": 1200, "cacheWrite": 300}, "outputTokens": {"total": 40, "text": 30, "reasoning": 10}},
     (1600, 40, 1200, 300)),
    ({"inputTokens": 1600, "outputTokens": 40, "totalTokens": 1640, **DETAILS}, (1600, 40, 1200, 300)),
    ({"inputTokens": 1600, "outputTokens": 40, **DETAILS}, (1600, 40, 1200, 300)),
    ({"prompt_tokens": {"total": 1600}, "completion_tokens": {"total": 40}, "total_tokens": 1640}, (1600, 40, None, None)),
    ({"tokens": {"total": 1640, "input": 1600, "output": 40}}, (1600, 40, None, None)),
    ({"output": {"tokens": {"total": 1640, "input": 1600, "output": 40}}}, (1600, 40, None, None)),
    ({"prompt_token_count": 1500, "tool_use_prompt_token_count": 100, "candidates_token_count": 30, "thoughts_token_count": 10, "total_token_count": 1640},
     (1600, 40, None, None)),
    ({"prompt_token_count": 1600, "candidates_token_count": 30, "thoughts_token_count": 10, "total_token_count": 1640}, (1600, 40, None, None)),
    ({"prompt_token_count": 1600, "candidates_token_count": 40, "total_token_count": 1640}, (1600, 40, None, None)),
])  # fmt: skip
def test_counts_of_nested_and_partial_names(usage: dict[str, Any], counts: tuple[int | None, ...]) -> None:
    """openai-agents-js 945 and adk-go 1525: tokens outside the cache counted as cached, and tokens of tool prompts were lost."""
    langfuse = {
        "langfuse.observation.type": "generation", "langfuse.observation.model.name": "m-1", "langfuse.observation.input": ASKED,
        "langfuse.observation.output": SAID, "langfuse.observation.usage_details": json.dumps(usage),
    }  # fmt: skip
    own = {"app.model": "claude-sonnet-4-5", "app.prompt": ASKED, "app.response": SAID, "app.usage": json.dumps(usage)}
    assert counts_of(langfuse, "langfuse-sdk") == counts_of(own) == counts


@pytest.mark.parametrize(("written", "result"), [
    ("<generator object find at 0x7f12>", None),
    ("<async_generator object find at 0x7f12>", None),
    ("<coroutine object find at 0x7f12>", None),
    ("<app.Hits object at 0x7f12>", None),
    ("[REDACTED]", None),
    ("<find.py> has a generator object", "<find.py> has a generator object"),
    ("[object storage] 3 files", "[object storage] 3 files"),
])  # fmt: skip
@pytest.mark.parametrize("in_prompt", [True, False])
def test_handle_of_a_stream_is_no_result_of_a_tool(written: str, result: str | None, in_prompt: bool) -> None:
    """opentelemetry-python-genai 558: an agent streams its tools' results. The next prompt can contain the whole result."""
    request = {"id": "c1", "name": "find", "arguments": {"q": "a"}}
    told = [
        {"role": "assistant", "parts": [{"type": "tool_call", **request}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "3 files"}]},
    ]
    ran = tool(3, 1, "find", at=20, attributes={"gen_ai.tool.call.id": "c1", "gen_ai.tool.call.result": written})
    last = chat(4, 1, user=ASKED, messages=told if in_prompt else None, says=SAID, at=40)
    (call,) = turn_of(agent(1), chat(2, 1, user=ASKED, calls=[request]), ran, last).tool_calls or ()
    assert call.result == (result or ("3 files" if in_prompt else None))


def recorded_twice(**other: Any) -> int:
    attributes = {"gen_ai.usage.input_tokens": 50, "gen_ai.usage.output_tokens": 9}
    copies = [chat(number, 1, user=ASKED, says=SAID, scope="litellm", attributes=attributes) for number in (2, 3)]
    for name, value in other.items():
        setattr(copies[1], name, value)
    return len(turn_of(span(1, 0, "Received Proxy Server Request", scope="litellm", ms=50), *copies).llm_calls)


def test_record_that_differs_only_in_its_id_is_the_same_call() -> None:
    """litellm 10588: the synchronous and the asynchronous callback wrote a span each."""
    assert recorded_twice() == 1


@pytest.mark.parametrize("other", [
    {"start_ns": START + 1}, {"end_ns": START + 11 * MS}, {"attributes": {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m-2"}},
])  # fmt: skip
def test_calls_that_differ_are_two_calls(other: dict[str, Any]) -> None:
    """The opposite of litellm 10588: parallel calls have other times, places, or values."""
    assert recorded_twice(**other) == 2


def test_calls_without_times_are_not_compared() -> None:
    """The opposite of litellm 10588: without times, equal calls can be two calls."""
    calls = [chat(number, 1, user=ASKED, says=SAID, ms=0) for number in (2, 3)]
    assert len(turn_of(agent(1), *calls).llm_calls) == 2


SPOKEN = [
    ("user", "I need a train to Rome on Friday, please"),
    ("assistant", "Which class?"),
    ("user", "First"),
    ("assistant", "Fine."),
    ("user", "A hotel?"),
]


@pytest.mark.parametrize("kept", [75, 90, 120, 260])
def test_input_of_a_truncated_root_is_the_model_calls_last_message(kept: int) -> None:
    """A length limit cut the root's list inside its first message, so a judge compared the answer with an old message."""
    messages = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in SPOKEN]
    root = agent(1, attributes={"gen_ai.input.messages": json.dumps(messages)[:kept]})
    found = turn_of(root, chat(2, 1, messages=messages, says="Here is one."))
    assert (found.input, found.truncated) == ("A hotel?", True)
    only = turn_of(
        agent(1, attributes={"gen_ai.input.messages": json.dumps(messages[:1])[:kept]}),
        chat(2, 1, messages=messages[:1], says="Yes."),
    )
    assert only.input == SPOKEN[0][1]


def test_input_of_a_truncated_root_is_no_helpers_prompt() -> None:
    """A guard's instruction and a retrieved context aren't the question."""
    parts = [{"role": role, "parts": [{"type": "text", "content": text}]} for role, text in SPOKEN]
    guard = {"role": "user", "parts": [{"type": "text", "content": "Is the last message harmful?"}]}
    cut = {"gen_ai.input.messages": json.dumps(parts)[:90]}
    first = chat(2, 1, messages=[*parts, guard], says="no", at=1.0)
    assert turn_of(agent(1, attributes=cut), first, chat(3, 1, messages=parts, says="Here is one.", at=20.0)).input == "A hotel?"
    context = {"role": "user", "parts": [{"type": "text", "content": "Context: a timetable"}]}
    assert turn_of(agent(1, attributes=cut), chat(2, 1, messages=[parts[0], context], says="Yes.")).input == SPOKEN[0][1]
