"""Logfire's spans of provider clients become one call each."""

from __future__ import annotations

import json

from otel_agenteval.dialects.reader import read
from tests.support.spans import chat, span, turn_of

SCOPE = "logfire.openai"
MESSAGES = [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Weather in Paris?"}]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "parameters": {"type": "object"}}}]
REQUEST = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "request_data": json.dumps({"model": "m", "messages": MESSAGES, "tools": TOOLS})}  # fmt: skip
ANSWER = {"message": {"role": "assistant", "content": "Sunny."}, "usage": {"prompt_tokens": 57, "completion_tokens": 15}}


def call(span_id=1, parent_id=0, attributes=None, scope=SCOPE, **more):
    return span(
        span_id, parent_id, "Chat Completion with {request_data[model]!r}", {**REQUEST, **(attributes or {})}, scope=scope, **more
    )


def streamed(span_id, parent_id, attributes, **more):
    log = {**REQUEST, "logfire.span_type": "log", "logfire.level_num": 9, "duration": 0.25, **attributes}
    return span(
        span_id, parent_id, "streaming response from {request_data[model]!r} took {duration:.2f}s", log, scope=SCOPE, ms=0, **more
    )


def test_anthropic_s_instructions_stand_beside_the_messages():
    request = json.dumps({"model": "m", "system": "Be polite.", "messages": MESSAGES[1:]})
    turn = turn_of(call(attributes={"request_data": request, "response_data": json.dumps(ANSWER)}, scope="logfire.anthropic"))
    assert turn.system == "Be polite."


def test_anthropic_s_arguments_come_out_of_their_wrapping():
    function = {"name": "get_weather", "arguments": json.dumps({"input": {"city": "Paris"}}, separators=(",", ":"))}
    message = {"role": "assistant", "tool_calls": [{"id": "c1", "function": function}]}
    record = call(
        attributes={"response_data": json.dumps({"message": message}, separators=(",", ":"))}, scope="logfire.anthropic"
    )
    assert read(record).output_messages["tool_calls"][0]["function"]["arguments"] == {"city": "Paris"}


def test_a_streamed_call_over_an_sdk_that_writes_its_own_span_counts_once():
    sdk = chat(3, 2, at=2, scope="com.anthropic.sdk.python", attributes={"gen_ai.usage.input_tokens": 57})
    log = streamed(
        4, 1, {"response_data": json.dumps(ANSWER), "gen_ai.usage.input_tokens": 57, "gen_ai.usage.output_tokens": 15}, at=300
    )
    turn = turn_of(span(1, name="handle", ms=400), call(2, 1, {}, at=1), sdk, log)
    assert len(turn.llm_calls) == 1
    assert turn.usage.input_tokens == 57
    assert turn.output == "Sunny."


def test_events_of_the_responses_api_are_split_where_the_answer_begins():
    events = [
        {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief."},
        {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Sunny."},
    ]
    turn = turn_of(call(attributes={"events": json.dumps(events), "gen_ai.response.id": "r1"}))
    assert (turn.input, turn.output, turn.system) == ("Weather?", "Sunny.", "Be brief.")


def test_a_scrubbed_session_is_unknown():
    record = call(attributes={"session.id": "[Scrubbed due to 'session']", "response_data": "{}"})
    assert read(record).conversation_id is None
