"""Microsoft Agent Framework's spellings → one step."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import agent, chat, span, tool, turn_of, turns_of

SCOPE = "agent_framework"


@pytest.mark.parametrize(
    ("name", "role"),
    [
        pytest.param("workflow.run", "workflow", id="a run of a workflow"),
        pytest.param("workflow_invoke", "workflow", id="a run of a workflow in .NET and Go"),
        pytest.param("workflow.session", "inner", id="a session may hold many runs"),
        pytest.param("workflow.build", "setup", id="building a workflow is no turn"),
        pytest.param("executor.process triage", "inner", id="an executor stands for no turn"),
        pytest.param("edge_group.process SingleEdgeGroup", "inner", id="an edge stands for no turn"),
        pytest.param("message.send", "inner", id="a message stands for no turn"),
        pytest.param("invoke_agent bot", "agent", id="an agent, before its attributes are set"),
        pytest.param("chat gpt-4o-mini", "llm", id="a model call, before its attributes are set"),
        pytest.param("execute_tool search", "tool", id="a tool"),
        pytest.param("tools/list", "inner", id="talk with a tool server"),
        pytest.param("Scenario: two questions", "inner", id="an application's span from the framework's tracer"),
    ],
)
def test_a_span_s_name_says_its_role(name, role):
    assert role_of({}, SCOPE, name) == role


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


def test_agents_in_one_workflow_are_one_turn():
    turn = turn_of(
        span(1, name="workflow.run", attributes={"workflow.id": "w"}, scope=SCOPE, ms=90),
        span(2, 1, "executor.process triage", {"executor.id": "triage"}, scope=SCOPE),
        agent(3, 2, "triage", scope=SCOPE),
        chat(4, 3, user="Refund me.", calls=[{"id": "c1", "name": "handoff_to_billing", "arguments": "{}"}], scope=SCOPE),
        span(5, 1, "executor.process billing", {"executor.id": "billing"}, scope=SCOPE, at=20),
        agent(6, 5, "billing", scope=SCOPE, at=20),
        chat(7, 6, user="Refund me.", says="Done.", scope=SCOPE, at=30),
    )
    assert (turn.input, turn.output, [run.name for run in turn.agent_runs]) == ("Refund me.", "Done.", ["triage", "billing"])
    assert turn.tool_calls == []
    assert [(handoff.from_, handoff.to) for handoff in turn.handoffs] == [("triage", "billing")]


def test_an_application_s_span_from_the_framework_s_tracer_does_not_join_two_turns():
    runs = [agent(2, 1, scope=SCOPE), chat(3, 2, user="One?", says="1", scope=SCOPE)]
    runs += [agent(4, 1, scope=SCOPE, at=200), chat(5, 4, user="Two?", says="2", scope=SCOPE, at=210)]
    assert [turn.output for turn in turns_of(span(1, name="Scenario", scope=SCOPE, ms=400), *runs)] == ["1", "2"]


def test_a_result_that_only_the_model_was_told_is_found_by_its_call_id():
    told = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "search", "arguments": {"q": "Paris"}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "18 degrees"}]},
    ]
    turn = turn_of(
        agent(1, scope=SCOPE),
        chat(2, 1, user="Weather?", calls=[{"id": "c1", "name": "search", "arguments": json.dumps({"q": "Paris"})}], scope=SCOPE),
        tool(3, 1, attributes={"gen_ai.tool.call.id": "c1"}, scope=SCOPE, at=20),
        chat(4, 1, user="Weather?", messages=told, says="18.", scope=SCOPE, at=40),
    )
    assert [(call.arguments, call.result) for call in turn.tool_calls] == [({"q": "Paris"}, "18 degrees")]
