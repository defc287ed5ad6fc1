"""VoltAgent's attributes and runs that the recordings don't contain."""

from __future__ import annotations

import pytest

from otel_agenteval.dialects.reader import read
from tests.support.spans import span

AGENT = {"entity.type": "agent", "entity.name": "bot", "voltagent.operation_id": "o"}


def one(span_id, kind=None, parent_id=0, attributes=None, **more):
    attributes = {**AGENT, **({} if kind is None else {"span.type": kind}), **(attributes or {})}
    return span(span_id, parent_id, name=kind or "bot", attributes=attributes, scope="@voltagent/core", **more)


@pytest.mark.parametrize(
    ("gave", "contents"),
    [
        pytest.param("one text", ["one text"], id="a text"),
        pytest.param('[{"content": "a"}, {"content": "b"}]', ["a", "b"], id="documents"),
        pytest.param("", [], id="nothing"),
    ],
)
def test_what_was_found(gave, contents):
    """A retriever returns text or documents."""
    step = read(one(1, "retriever", attributes={"input": "what?", "output": gave}))
    assert ([document.content for document in step.documents], step.query) == (contents, "what?")
    assert read(one(1, "retriever")).documents is None


def test_workflows_and_conversations():
    """Workflows have an input, an output and a conversation id."""
    attributes = {"entity.type": "workflow", "input": "a", "output": "b", "conversation.id": "c"}
    step = read(span(1, name="w", attributes=attributes, scope="@voltagent/core"))
    assert (step.input_value, step.output_value, step.conversation_id) == ("a", "b", "c")
