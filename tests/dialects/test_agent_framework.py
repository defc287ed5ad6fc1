from __future__ import annotations

import pytest

from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import agent, chat, span, turns_of

SCOPE = "agent_framework"


@pytest.mark.parametrize(
    ("attributes", "name", "role"),
    [
        pytest.param({"workflow.id": "w"}, "workflow_invoke", "chain", id="a workflow counts when it holds an agent"),
        pytest.param({"executor.id": "e"}, "executor.process pre", "inner", id="an executor"),
        pytest.param({"workflow.id": "w"}, "chat with the team", None, id="somebody else's span with an id of the same name"),
        pytest.param({}, "workflow.run", None, id="somebody else's span with the same name"),
    ],
)
def test_under_a_scope_of_the_application_s_choice_attributes_are_needed_too(attributes, name, role):
    assert role_of(attributes, "Contoso.Support", name) == role


@pytest.mark.parametrize(
    ("scope", "known"),
    [
        ("agent_framework", True), ("Experimental.Microsoft.Agents.AI", True), ("Experimental.Microsoft.Extensions.AI", True),
        ("Microsoft.Agents.AI.Workflows", True), ("github.com/microsoft/agent-framework-go/workflow", True),
        ("agent_frameworks", False), ("Microsoft.AspNetCore", False),
    ],
)  # fmt: skip
def test_the_framework_s_scopes(scope, known):
    assert (role_of({}, scope, "workflow.run") == "workflow") is known


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        pytest.param({"gen_ai.response.finish_reasons": '["stop"]'}, "finish_reason", "stop", id="finish reasons as JSON text"),
        pytest.param({"gen_ai.response.finish_reasons": "[]"}, "finish_reason", None, id="no finish reason"),
        pytest.param({"gen_ai.response.finish_reasons": "stop"}, "finish_reason", "stop", id="a finish reason as text"),
        pytest.param({"gen_ai.request.model": "unknown"}, "model", None, id="a model that the client did not know"),
        pytest.param({"gen_ai.request.model": 5}, "model", None, id="a model of the wrong type"),
    ],
)
def test_a_model_call_says(attributes, field, expected):
    step = read(span(1, name="chat x", attributes={"gen_ai.operation.name": "chat", **attributes}, scope=SCOPE))
    assert getattr(step, field) == expected


@pytest.mark.parametrize(
    ("attributes", "field", "expected"),
    [
        pytest.param({"gen_ai.tool.call.id": "unknown"}, "tool_call_id", None, id="an id that was not known"),
        pytest.param({"gen_ai.tool.call.id": "c1"}, "tool_call_id", "c1", id="an id"),
        pytest.param({"gen_ai.tool.call.result": "18"}, "tool_result", "18", id="a result"),
    ],
)
def test_a_tool_says(attributes, field, expected):
    step = read(span(1, name="execute_tool search", attributes={"gen_ai.tool.name": "search", **attributes}, scope=SCOPE))
    assert getattr(step, field) == expected


def test_a_workflow_says_its_name_and_framework():
    step = read(span(1, name="workflow.run", attributes={"workflow.id": "w", "workflow.name": "support"}, scope=SCOPE))
    assert (step.role, step.workflow, step.framework) == ("workflow", "support", "agent_framework")


def test_an_application_s_span_from_the_framework_s_tracer_does_not_join_two_turns():
    runs = [agent(2, 1, scope=SCOPE), chat(3, 2, user="One?", says="1", scope=SCOPE)]
    runs += [agent(4, 1, scope=SCOPE, at=200), chat(5, 4, user="Two?", says="2", scope=SCOPE, at=210)]
    assert [turn.output for turn in turns_of(span(1, name="Scenario", scope=SCOPE, ms=400), *runs)] == ["1", "2"]
