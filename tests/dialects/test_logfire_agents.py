"""Logfire's spans of the OpenAI Agents SDK become one step each."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import span, turn_of

SCOPE = "logfire.openai_agents"
USER = {"event.name": "gen_ai.user.message", "role": "user", "content": "Weather?"}
ANSWER = {"event.name": "gen_ai.assistant.message", "role": "assistant", "content": "Sunny."}
MODEL = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "events": json.dumps([USER, ANSWER])}


def made(span_id, parent_id, name, attributes=None, **more):
    return span(span_id, parent_id, name, attributes, scope=SCOPE, **{"ms": 100.0 - span_id, **more})


def run(*records):
    return turn_of(
        made(1, 0, "OpenAI Agents trace: {name}", {"name": "support", "group_id": "g-1"}),
        made(2, 1, "Task: support"),
        made(3, 2, "Agent run: {name!r}", {"name": "bot"}),
        made(4, 3, "Turn {turn} for agent bot"),
        *records,
        made(9, 4, "Responses API with {gen_ai.request.model!r}", MODEL),
    )


def test_another_scope_s_spans_are_not_the_sdk_s():
    assert role_of({}, "acme", "Function: {name}") is None


def test_a_hand_off_names_both_agents():
    turn = run(made(5, 4, "Handoff: {from_agent} → {to_agent}", {"from_agent": "triage", "to_agent": "billing"}))
    assert [(handoff.from_, handoff.to) for handoff in turn.handoffs] == [("triage", "billing")]


@pytest.mark.parametrize(
    ("error", "message"),
    [
        pytest.param(
            '{"message": "Error running tool", "data": {"error": "no database"}}', "no database", id="the inner message"
        ),
        pytest.param('{"message": "Error running tool", "data": null}', "Error running tool", id="the outer message"),
        pytest.param("gone", "gone", id="bare text"),
        pytest.param(5, "5", id="another type"),
    ],
)
def test_an_error_says(error, message):
    assert read(made(1, 0, "Function: {name}", {"name": "t", "error": error})).error.message == message


def test_a_tool_that_returned_nothing_has_no_result():
    assert read(made(1, 0, "Function: {name}", {"name": "t", "output": "null"})).tool_result is None
