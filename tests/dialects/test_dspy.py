"""DSPy's spans by OpenInference."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.payloads import arguments_of
from otel_agenteval.dialects.reader import read
from tests.support.spans import span, turn_of

SCOPE = "openinference.instrumentation.dspy"
CHAIN, TOOL = {"openinference.span.kind": "CHAIN"}, {"openinference.span.kind": "TOOL"}


def module(given, gave, name="RAG.forward"):
    values = {key: json.dumps(value) for key, value in (("input.value", given), ("output.value", gave)) if value is not None}
    return span(1, 0, name, {**CHAIN, **values}, scope=SCOPE)


def turn(given, gave=None, name="RAG.forward"):
    return turn_of(module(given, gave, name), span(2, 1, "LM.__call__", {"openinference.span.kind": "LLM"}, scope=SCOPE))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        pytest.param({"question": "Why?"}, "Why?", id="one field"),
        pytest.param({"input_args": {"question": "Why?"}}, "Why?", id="fields that were bound as one"),
        pytest.param({"context": "long text", "question": "Why?"}, "Why?", id="a question beside its context"),
        pytest.param({"history": "…", "user_message": "Why?"}, "Why?", id="a message beside the history"),
        pytest.param({"trajectory": "…", "claim": "It is so."}, "It is so.", id="a field of any other name"),
        pytest.param({"tone": "calm", "query": "Why?"}, "Why?", id="the surest name first"),
        pytest.param({"n": 5}, None, id="no text at all"),
        pytest.param({}, None, id="no field at all"),
    ],
)
def test_the_user_s_words_are_a_field_of_the_signature(given, words):
    assert turn(given).input == words


@pytest.mark.parametrize(
    ("gave", "answer"),
    [
        pytest.param({"answer": "So."}, "So.", id="one field"),
        pytest.param({"reasoning": "hm", "reply": "So."}, "So.", id="without the reasoning"),
        pytest.param(
            {"trajectory": {"thought_0": "hm"}, "reasoning": "hm", "verdict": "So."}, "So.", id="without the steps to it"
        ),
        pytest.param({"answer": "So.", "confidence": 0.9}, "So.", id="an answer beside other fields"),
        pytest.param({"name": "Ada", "age": 36}, '{"name":"Ada","age":36}', id="several fields are one object"),
        pytest.param({"person": {"name": "Ada"}}, '{"name":"Ada"}', id="a structured field"),
        pytest.param({"answer": "[{not messages}]"}, "[{not messages}]", id="text that looks like more"),
        pytest.param("So.", "So.", id="a module that gives back text"),
    ],
)
def test_the_answer_is_a_field_of_the_signature(gave, answer):
    assert turn({"question": "Why?"}, gave).output == answer


def test_a_tool_s_name_and_arguments():
    step = read(span(1, 0, "search.acall", {**TOOL, "input.value": '{"kwargs": {"query": "a"}}'}, scope=SCOPE))
    assert (step.tool_name, arguments_of(step.tool_arguments)) == ("search", {"query": "a"})


def test_what_was_searched_for():
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": '{"query": "why", "k": 2}',
        "retrieval.documents.0.document.content": "So.",
    }
    model = span(3, 1, "LM.__call__", {"openinference.span.kind": "LLM"}, scope=SCOPE)
    found = turn_of(module({"question": "Why?"}, None), span(2, 1, "Retrieve.forward", attributes, scope=SCOPE), model).retrievals
    assert [(one.query, one.documents[0].content) for one in found] == [("why", "So.")]
