"""AG2's types of spans → one step; what its recordings do not show."""

from __future__ import annotations

import pytest

from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import agent, chat, span, turn_of

SCOPE = "opentelemetry.instrumentation.ag2"


@pytest.mark.parametrize(
    ("kind", "role"),
    [
        pytest.param("agent", "agent", id="an agent"),
        pytest.param("multi_conversation", "workflow", id="conversations one after the other"),
        pytest.param("speaker_selection", "inner", id="a step of a group"),
        pytest.param("channel", "inner", id="a step between agents"),
        pytest.param("agent_lifetime", "setup", id="no turn"),
        pytest.param(3, "inner", id="a wrong type"),
    ],
)
def test_a_type_is_a_role(kind, role):
    assert role_of({"ag2.span.type": kind}, SCOPE, "x") == role


def test_bookkeeping_is_no_model_call():
    used = {"ag2.span.type": "usage", "ag2.usage.kind": "subtask", "gen_ai.response.model": "m", "gen_ai.usage.output_tokens": 9}
    turn = turn_of(agent(1), chat(2, 1, scope=SCOPE), span(3, 1, "record_usage subtask", used, scope=SCOPE))
    assert len(turn.llm_calls) == 1
    assert role_of({}, SCOPE, "record_usage subtask") == "setup"


def test_running_code_is_a_tool():
    step = read(span(1, name="execute_code bot", scope=SCOPE, attributes={"ag2.span.type": "code_execution"}))
    assert (step.role, step.tool_name) == ("tool", "execute_code")
