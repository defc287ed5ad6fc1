"""VoltAgent's attributes and runs that the recordings don't contain."""

from __future__ import annotations

import pytest

from otel_agenteval.dialects.reader import read
from otel_agenteval.turns.reading.turn import build_turn
from tests.support.spans import chat, span

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


@pytest.mark.parametrize("inner", [{}, {"gen_ai.usage.input_tokens": 90, "gen_ai.usage.output_tokens": 9}])
def test_tokens_that_another_instrumentation_also_counted(inner):
    """An agent's total isn't added to the counts of its calls."""
    bot = one(1, attributes={"usage.prompt_tokens": 100, "usage.completion_tokens": 10}, ms=90)
    spans = [bot, one(2, "llm", 1, ms=80), chat(3, 2, says="hi", at=1, attributes=inner)]
    usage = build_turn(bot, spans, close_reason="root_ended").usage
    assert (usage.input_tokens, usage.output_tokens) == ((90, 9) if inner else (100, 10))
