"""trpc-agent-go's spellings → one step, beside what the recording holds."""

from __future__ import annotations

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import span

SCOPE = "trpc.agent.go"


def step_of(**attributes):
    return read(span(1, attributes={key.replace("__", "."): value for key, value in attributes.items()}, scope=SCOPE))


@pytest.mark.parametrize(
    ("attributes", "role"),
    [
        pytest.param(
            {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "(merged tools)"}, "inner", id="told once more"
        ),
        pytest.param({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}, "tool", id="a tool"),
        pytest.param({"gen_ai.operation.name": "workflow"}, "inner", id="a node of a graph"),
        pytest.param({"trpc.go.agent.runner.name": "shop"}, "agent", id="a runner"),
    ],
)
def test_roles(attributes, role):
    """Mostly the convention's."""
    assert role_of(attributes, SCOPE, "one") == role


def test_a_runner_of_an_older_version():
    """It had a span of its own."""
    step = step_of(
        trpc__go__agent__runner__name="shop", trpc__go__agent__runner__input="Hi", trpc__go__agent__runner__output="Hello",
        trpc__go__agent__runner__session_id="s1", trpc__go__agent__runner__user_id="u1",
    )  # fmt: skip
    assert (
        decode(step.input_messages, "user").messages[0].content,
        decode(step.output_messages, "assistant").messages[0].content,
    ) == ("Hi", "Hello")
    assert (step.conversation_id, step.user_id) == ("s1", "u1")


def test_messages_in_the_convention_s_form_come_first():
    """The framework's own form stands beside them."""
    step = step_of(
        gen_ai__operation__name="chat", trpc__go__agent__llm_request="{}", gen_ai__input__messages="[]",
        gen_ai__input__messages__otel='[{"role":"user","parts":[{"type":"text","content":"Hi"}]}]',
    )  # fmt: skip
    assert decode(step.input_messages, "user").messages[0].content == "Hi"


@pytest.mark.parametrize("result", ['{"choices":[{"message":{"content":"18"}}]}', "18"])
def test_a_tool_s_result_is_in_an_event(result):
    """The whole event is written as the result."""
    step = step_of(gen_ai__operation__name="execute_tool", gen_ai__tool__name="t", gen_ai__tool__call__result=result)
    assert step.tool_result == "18"
    assert (
        step_of(gen_ai__operation__name="execute_tool", gen_ai__tool__call__result='{"choices":[]}').tool_result
        == '{"choices":[]}'
    )
