"""AG2's span types that its recordings don't contain."""

from __future__ import annotations

from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import agent, chat, span, turn_of

SCOPE = "opentelemetry.instrumentation.ag2"


def test_bookkeeping_is_no_model_call():
    used = {"ag2.span.type": "usage", "ag2.usage.kind": "subtask", "gen_ai.response.model": "m", "gen_ai.usage.output_tokens": 9}
    turn = turn_of(agent(1), chat(2, 1, scope=SCOPE), span(3, 1, "record_usage subtask", used, scope=SCOPE))
    assert len(turn.llm_calls) == 1
    assert role_of({}, SCOPE, "record_usage subtask") == "setup"


def test_running_code_is_a_tool():
    step = read(span(1, name="execute_code bot", scope=SCOPE, attributes={"ag2.span.type": "code_execution"}))
    assert (step.role, step.tool_name) == ("tool", "execute_code")
