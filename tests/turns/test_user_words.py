"""Text from an earlier call or turn isn't part of this turn's input."""

from __future__ import annotations

import json

import pytest

from tests.support.spans import agent, chat, span, tool, turns_of

ASKED = "What is my name?"


def user(text):
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def said(text):
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


HISTORY = [user("My name is Bo."), said("Hi Bo, how are you?")]
REQUEST = {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "search", "arguments": {}}]}
RESULT = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "found"}]}
ANSWER = chat(9, 1, at=50, messages=[*HISTORY, user(ASKED)], says="Bo.")


def run(*messages, **attributes):
    return agent(1, attributes={**attributes, **({"gen_ai.input.messages": json.dumps(messages)} if messages else {})})


def helper(text):
    return chat(2, 1, at=1, ms=5, messages=[user(text)], says="memory")


def looping(*more):
    first = chat(2, 1, user=ASKED, calls=[{"id": "c1", "name": "search", "arguments": {}}])
    return first, tool(3, 1, at=12), chat(4, 1, at=30, messages=[user(ASKED), REQUEST, RESULT, *more], says="Bo.")


SHAPES = {
    "history before the message": (run(), ANSWER),
    "root has only the history": (run(*HISTORY), ANSWER),
    "root has the history and a prompt": (run(*HISTORY, prompt=ASKED), ANSWER),
    "root has the history, calls have nothing": (run(*HISTORY, **{"acme.user_prompt": ASKED}), chat(2, 1, says="Bo.")),
    "root has the final conversation": (run(*HISTORY, user(ASKED), said("Bo.")), ANSWER),
    "root has the prompt, calls only the history": (run(**{"acme.user_prompt": ASKED}), chat(2, 1, messages=HISTORY, says="Bo.")),
    "question beside the history in one object": (
        span(1, 0, "run", {"acme.kind": "agent", "acme.input": json.dumps({"question": ASKED, "messages": [
            {"role": "user", "content": "My name is Bo."}, {"role": "assistant", "content": "Hi Bo, how are you?"},
        ]})}, ms=100),
        ANSWER,
    ),
    "conversation as one text": (run(user(f"user: My name is Bo.\nassistant: Hi Bo.\nuser: {ASKED}")), ANSWER),
    "summary appended by the framework": (run(user(ASKED)), chat(2, 1, messages=[user(ASKED), user("Summary: Bo said hi.")], says="Bo.")),
    "message repeated after each tool": (run(), *looping(user(ASKED))),
    "message of the framework after each tool": (run(), *looping(user("Go on."))),
    "history after the message": (run(user(ASKED)), chat(2, 1, messages=[user(ASKED), *HISTORY], says="Bo.")),
    "call that classifies the message": (run(), helper(f"Classify the request in one word: {ASKED}"), ANSWER),
    "call that rephrases the message": (run(), helper(f"Rephrase.\nuser: My name is Bo.\nFollow-up: {ASKED}"), ANSWER),
    "call that summarizes the history": (run(), helper("Summarize.\nuser: My name is Bo.\nassistant: Hi Bo, how are you?"), ANSWER),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES)
def test_input_is_the_new_message_in_any_shape(shape):
    for order in (1, -1):
        assert [turn.input for turn in turns_of(*SHAPES[shape][::order])] == [ASKED]


def test_input_is_not_what_an_agent_passes_to_the_next():
    passed = (
        chat(3, 2, user="Plan a trip to Paris", says="Paris in spring"),
        chat(5, 4, at=31, user="Paris in spring", says="Go."),
    )
    spans = span(1, 0, "graph", ms=100), agent(2, 1, "planner", ms=20), agent(4, 1, "writer", at=30, ms=20), *passed
    assert [turn.input for turn in turns_of(*spans)] == ["Plan a trip to Paris"]


def test_input_keeps_a_quote_of_an_answered_message():
    quoted = "What does 'My name is Bo.' mean?"
    assert [turn.input for turn in turns_of(run(), chat(2, 1, messages=[*HISTORY, user(quoted)], says="Bo."))] == [quoted]
