"""Koog's spellings → one step, beside what the recordings hold."""

from __future__ import annotations

import pytest

from otel_agenteval.dialects.content import decode
from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import span

SERVICE = "acme-support"
MESSAGES = (
    '[{"role":"System","parts":[{"type":"text","content":"Be kind"}]},{"role":"tool","parts":[]},'
    '{"role":"User","parts":[{"type":"text","content":"Hi"}]},{"role":"Assistant","parts":[{"type":"text","content":"Hello"}]}]'
)


def step_of(**attributes):
    attributes = {"koog.event.id": "e1", **{key.replace("__", "."): value for key, value in attributes.items()}}
    return read(span(1, attributes=attributes, scope=SERVICE))


def texts(raw):
    return [(message.role, message.content) for message in decode(raw, "user").messages]


@pytest.mark.parametrize(
    ("attributes", "role"),
    [
        pytest.param({"koog.event.id": "e1", "gen_ai.operation.name": "invoke_agent"}, "agent", id="a run"),
        pytest.param({"koog.event.id": "e1", "gen_ai.operation.name": "create_agent"}, "setup", id="what stands around it"),
        pytest.param({"koog.strategy.name": "single_run", "gen_ai.conversation.id": "c"}, "inner", id="the strategy"),
        pytest.param({"koog.node.id": "nodeExecuteTool", "koog.node.input": '{"toolCalls": []}'}, "inner", id="a node"),
        pytest.param({"koog.subgraph.id": "one"}, "inner", id="a subgraph"),
    ],
)
def test_roles(attributes, role):
    """A node's values look like a tool's or a model's, whose spans stand below it."""
    assert role_of(attributes, SERVICE, "one") == role


def test_a_run_holds_the_prompt_it_was_built_with():
    """What the user said is there only if an application put it there."""
    step = step_of(gen_ai__operation__name="invoke_agent", gen_ai__agent__id="bot", gen_ai__input__messages=MESSAGES)
    assert (step.agent, texts(step.input_messages)) == ("bot", [("user", "Hi")])
    same = step_of(gen_ai__operation__name="invoke_agent", gen_ai__output__messages=MESSAGES)
    assert texts(same.output_messages) == [("assistant", "Hello")]
    bare = step_of(gen_ai__operation__name="invoke_agent", gen_ai__output__messages="HIDDEN:non-empty")
    assert decode(bare.output_messages, "assistant").hidden


def test_a_call_has_its_messages_with_the_convention_s_roles():
    """Koog writes the names of its enumeration, and a list's text for the reason."""
    step = step_of(
        gen_ai__operation__name="chat", gen_ai__input__messages=MESSAGES, gen_ai__response__finish_reasons="[tool_calls]",
        system_instructions="Be kind",
    )  # fmt: skip
    assert texts(step.input_messages) == [("system", "Be kind"), ("user", "Hi"), ("assistant", "Hello")]
    assert (step.finish_reason, step.system) == ("tool_calls", "Be kind")
    assert step_of(gen_ai__operation__name="chat").finish_reason is None


def test_hidden_content_is_unknown():
    """Content is off unless the feature is verbose."""
    hidden = step_of(
        gen_ai__operation__name="execute_tool", gen_ai__tool__name="t", gen_ai__tool__call__arguments="HIDDEN:non-empty",
        gen_ai__tool__call__result="HIDDEN:non-empty",
    )  # fmt: skip
    assert (hidden.tool_arguments, hidden.tool_result) == (None, None)
    shown = step_of(gen_ai__operation__name="execute_tool", gen_ai__tool__name="t", gen_ai__tool__call__result="18")
    assert shown.tool_result == "18"
    assert decode(
        step_of(gen_ai__operation__name="chat", gen_ai__input__messages="HIDDEN:non-empty").input_messages, "user"
    ).hidden
