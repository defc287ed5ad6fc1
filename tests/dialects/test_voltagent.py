"""VoltAgent's spellings → one step, and its runs → calls, beside what the recordings hold."""

from __future__ import annotations

import pytest

from otel_agenteval.dialects.reader import read, role_of
from tests.support.spans import span, turn_of

AGENT = {"entity.type": "agent", "entity.name": "bot", "voltagent.operation_id": "o"}


def one(span_id, kind=None, parent_id=0, attributes=None, **more):
    attributes = {**AGENT, **({} if kind is None else {"span.type": kind}), **(attributes or {})}
    return span(span_id, parent_id, name=kind or "bot", attributes=attributes, scope="@voltagent/core", **more)


@pytest.mark.parametrize(
    ("attributes", "role"),
    [
        pytest.param(AGENT, "agent", id="an agent"),
        pytest.param({"entity.type": "workflow"}, "chain", id="a workflow"),
        pytest.param({**AGENT, "span.type": "llm"}, "llm", id="requests"),
        pytest.param({**AGENT, "span.type": "memory"}, "memory", id="its memory"),
        pytest.param({**AGENT, "span.type": "what is new"}, "inner", id="what is new"),
        pytest.param({**AGENT, "span.type": 7}, "inner", id="a wrong type"),
        pytest.param({}, "unknown", id="nothing"),
    ],
)
def test_roles(attributes, role):
    """The type of a span, or the entity whose run it is."""
    assert role_of(attributes, "@voltagent/core", "one") == role


def test_one_span_for_all_requests():
    """Tools that ran one after the other were asked for one after the other; the agent says the tokens."""
    tool = {"tool.name": "look", "tool.call.id": "c"}
    turn = turn_of(
        one(1, attributes={"usage.prompt_tokens": 30, "usage.completion_tokens": 3, "input": "Hi", "output": "Hello"}, ms=100),
        one(2, "llm", 1, {"llm.model": "m", "llm.finish_reason": "stop", "llm.usage.prompt_tokens": 20}, at=1, ms=90),
        one(3, "tool", 1, tool, at=10, ms=10),
        one(4, "tool", 1, tool, at=10, ms=5),
        one(5, "tool", 1, tool, at=40, ms=5),
        one(6, "tool", 2, tool, at=60, ms=5),
    )
    assert [call.model for call in turn.llm_calls] == ["m", "m", "m"]
    assert (turn.usage.input_tokens, turn.usage.output_tokens, turn.input, turn.output) == (30, 3, "Hi", "Hello")


@pytest.mark.parametrize(
    ("gave", "contents"),
    [
        pytest.param("one text", ["one text"], id="a text"),
        pytest.param('[{"content": "a"}, {"content": "b"}]', ["a", "b"], id="documents"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_what_was_found(gave, contents):
    """A retriever gives a text or documents."""
    step = read(one(1, "retriever", attributes={"input": "what?", "output": gave}))
    assert ([document.content for document in step.documents], step.query) == (contents, "what?")
    assert read(one(1, "retriever")).documents is None


def test_workflows_and_conversations():
    """What goes in and comes out; whose conversation it is."""
    attributes = {"entity.type": "workflow", "input": "a", "output": "b", "conversation.id": "c"}
    step = read(span(1, name="w", attributes=attributes, scope="@voltagent/core"))
    assert (step.input_value, step.output_value, step.conversation_id) == ("a", "b", "c")
