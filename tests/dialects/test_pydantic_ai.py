"""pydantic-ai's first format: everything in ``events``, roles in span names."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from tests.support.spans import span, turn_of

SCOPE = "pydantic-ai"
USER = {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?"}
CALL = {
    "role": "assistant",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "get_weather", "arguments": '{"city": "Paris"}'}}],
}
RESULT = {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "name": "get_weather", "content": "sunny"}


def choice(message):
    return {"event.name": "gen_ai.choice", "index": 0, "message": message}


def model(span_id, *events, **more):
    attributes = {
        "gen_ai.operation.name": "chat",
        "gen_ai.request.model": "m",
        "events": json.dumps(events),
        **more.pop("attributes", {}),
    }
    return span(span_id, 1, "chat m", attributes, scope=SCOPE, **more)


def test_a_turn_is_read_from_events():
    definitions = {"function_tools": [{"name": "get_weather", "parameters_json_schema": {"type": "object"}}]}
    turn = turn_of(
        span(1, 0, "agent run", {"model_name": "m", "agent_name": "support"}, scope=SCOPE, ms=100),
        model(2, USER, choice(CALL), attributes={"model_request_parameters": json.dumps(definitions)}),
        span(
            3,
            1,
            "running tool",
            {"gen_ai.tool.name": "get_weather", "tool_arguments": '{"city": "Paris"}', "tool_response": "sunny"},
            scope=SCOPE,
            at=20,
        ),
        model(
            4,
            USER,
            {"event.name": "gen_ai.assistant.message", **CALL},
            RESULT,
            choice({"role": "assistant", "content": "Sunny."}),
            at=40,
        ),
    )
    assert (turn.input, turn.output, turn.agent) == ("Weather?", "Sunny.", "support")
    assert [(call.name, call.arguments, call.result) for call in turn.tool_calls] == [("get_weather", {"city": "Paris"}, "sunny")]
    assert turn.tool_definitions[0]["parameters"] == {"type": "object"}


@pytest.mark.parametrize(
    ("events", "asked", "answered"),
    [
        pytest.param([USER, choice({"role": "assistant", "content": "A"})], ["Weather?"], ["A"], id="a choice is the answer"),
        pytest.param([USER, {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "A"}], ["Weather?"], ["A"], id="the assistant's last words are"),
        pytest.param([USER], ["Weather?"], [], id="no answer yet"),
        pytest.param([USER, 5, choice({"content": "A"})], ["Weather?", "5"], ["A"], id="something that is no event"),
    ],
)  # fmt: skip
def test_events_are_split_where_the_answer_begins(events, asked, answered):
    assert [message.content for message in decode(json.dumps(events), "user").messages] == asked
    assert [message.content for message in decode(json.dumps(events), "assistant").messages] == answered
