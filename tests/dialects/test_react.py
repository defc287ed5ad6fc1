"""Tool calls and results inside message texts, and results that belong to a call only by their order."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.content import decode
from tests.support.spans import agent, chat, tool, turn_of

CALLED = """On it.
Calling tools:
[{'id': 'a', 'type': 'function', 'function': {'name': 'f', 'arguments': {'x': 1}}}, {'id': 'b', 'type': 'function', 'function': \
{'name': 'g', 'arguments': {}}}]"""
ONCE = "Calling tools:\n[{'id': 'a', 'type': 'function', 'function': {'name': 'f', 'arguments': {'x': 1}}}]"
RETRY = (
    "{}Error:\n{}\nNow let's retry: take care not to repeat previous errors! "
    "If you have retried several times, try a completely different approach.\n"
)


def said(*texts):
    """Return alternating messages of a user and a model, starting with the user."""
    return [{"role": ("user", "assistant")[index % 2], "content": text} for index, text in enumerate(texts)]


def decoded(*texts):
    return decode(said(*texts), "user").messages


def test_calls_behind_a_model_s_words_are_calls():
    _, asked = decoded("Go", CALLED)
    assert asked.content == "On it."
    assert [(call.call_id, call.name, call.arguments) for call in asked.tool_calls] == [("a", "f", {"x": 1}), ("b", "g", {})]


@pytest.mark.parametrize(
    "text", ["Calling tools:\n[no python", "Calling tools:\n[{'id': 'a'}]", "I am Calling tools: now", "Calling tools:\n[]"]
)
def test_what_only_looks_like_calls_stays_a_text(text):
    _, asked = decoded("Go", text)
    assert (asked.content, list(asked.tool_calls)) == (text, [])


@pytest.mark.parametrize(
    ("asked", "observed", "results"),
    [
        pytest.param(ONCE, "Observation:\n5", [("a", "5")], id="one call"),
        pytest.param(ONCE, "Observation: 5\n6", [("a", "5\n6")], id="one call, two lines"),
        pytest.param(CALLED, "Observation:\n5\n6", [("a", "5"), ("b", "6")], id="a line for each call"),
        pytest.param(CALLED, "Observation:\n5", [("a", "5"), ("b", "5")], id="nobody can say where one ends"),
        pytest.param("Thought: look it up", "Observation: 5", [(None, "5")], id="an agent that calls in words of its own"),
    ],
)
def test_an_observation_is_what_tools_returned(asked, observed, results):
    *_, answer = decoded("Go", asked, observed)
    assert answer.role == "tool"
    assert [(result.call_id, result.result) for result in answer.tool_results] == results


def test_a_user_may_speak_of_an_observation():
    assert [message.role for message in decoded("Observation: it rains")] == ["user"]


def test_a_failure_behind_the_user_s_words_is_the_tool_s():
    failure = "Error executing tool 'f' with arguments {'x': 1}: OrderError: too late\nPlease try again or use another tool"
    user, answer = decoded(RETRY.format("New task:\nGo\n", failure))
    assert (user.role, user.content) == ("user", "Go")
    assert (answer.role, answer.tool_results[0].name, answer.tool_results[0].result) == ("tool", "f", failure)


def test_a_model_that_was_not_understood_is_no_tool_s_failure():
    _, note = decoded(RETRY.format("New task:\nGo\n", "Error while parsing tool call"))
    assert (note.role, list(note.tool_results)) == ("system", [])


def test_a_second_failure_leaves_the_first_where_it_is():
    text = RETRY.format(RETRY.format("New task:\nGo\n", "Error executing tool 'f': A"), "Error executing tool 'f': B")
    assert [(message.role, message.content) for message in decoded(text)] == [
        ("user", "Go"), ("tool", "Error executing tool 'f': A"), ("tool", "Error executing tool 'f': B"),
    ]  # fmt: skip


def test_only_a_failure_is_no_word_of_the_user():
    _, asked, answer = decoded("Go", ONCE, RETRY.format("", "Error executing tool 'f': A"))
    assert (asked.role, answer.role) == ("assistant", "tool")


def code(text, definitions=({"name": "f", "parameters": {"properties": {"x": {}, "y": {}}}}, {"name": "final_answer"})):
    """Return the tools that a code agent's code called."""
    ran = f"Calling tools:\n[{{'id': 'c', 'type': 'function', 'function': {{'name': 'python_interpreter', 'arguments': {text!r}}}}}]"
    talk = said("Go", ran, "Observation:\nExecution logs:\n7\nLast output from code snippet:\nNone")
    defined = {"gen_ai.tool.definitions": json.dumps(definitions)}
    turn = turn_of(agent(1, attributes=defined), chat(2, 1, says="x", at=1), chat(3, 1, messages=talk, says="Done", at=20))
    return [(call.name, call.arguments, call.result) for call in turn.tool_calls]


@pytest.mark.parametrize(
    ("text", "calls"),
    [
        pytest.param("print(f(1, y='b'))", [("f", {"x": 1, "y": "b"}, "7")], id="by position and by name"),
        pytest.param(
            "a = f(1)\nb = f(a)", [("f", {"x": 1}, None), ("f", None, None)], id="two calls, one with what was computed"
        ),
        pytest.param("print(len('abc'))", [], id="no tool"),
        pytest.param("final_answer(f(2))", [("f", {"x": 2}, "7")], id="the answer is no tool"),
        pytest.param("no python (", [], id="no code"),
    ],
)
def test_code_that_calls_tools(text, calls):
    assert code(text) == calls


def answers(*results, of="f"):
    """Return a prompt whose result ids differ from the call ids."""
    asked = [
        {"role": "assistant", "parts": [{"type": "tool_call", "id": f"{of}_{n}", "name": of, "arguments": {}}]}
        for n in range(len(results))
    ]
    given = [
        {"role": "user", "parts": [{"type": "tool_call_response", "id": f"{of}_{n}", "response": result}]}
        for n, result in enumerate(results)
    ]
    return [message for pair in zip(asked, given, strict=True) for message in pair]


def test_answers_with_ids_of_their_own_are_given_out_in_order():
    turn = turn_of(
        agent(1), chat(2, 1, user="Go", calls=[{"id": "x1", "name": "f", "arguments": {}}], at=1),
        tool(3, 1, "f", attributes={"gen_ai.tool.call.id": "x1"}, at=12),
        chat(4, 1, user="Go", messages=answers("one"), calls=[{"id": "x2", "name": "f", "arguments": {}}], at=23),
        tool(5, 1, "f", attributes={"gen_ai.tool.call.id": "x2"}, at=34, error="lost"),
        chat(6, 1, user="Go", messages=answers("one", "lost"), calls=[{"id": "x3", "name": "f", "arguments": {}}], at=45),
        tool(7, 1, "f", attributes={"gen_ai.tool.call.id": "x3"}, at=56),
        chat(8, 1, user="Go", messages=answers("one", "lost", "three"), says="Done", at=67),
    )  # fmt: skip
    assert [(call.result, call.error is not None) for call in turn.tool_calls] == [("one", False), (None, True), ("three", False)]


def test_answers_of_earlier_turns_are_nobody_s():
    talk = [*said("Before"), *answers("old"), *said("Go")]
    turn = turn_of(
        agent(1), chat(2, 1, messages=talk, says="x", at=1), tool(3, 1, "f", at=12), chat(4, 1, messages=talk, says="Done", at=23)
    )
    assert [call.result for call in turn.tool_calls] == [None]


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("OrderServiceError: timed out (HTTP 504)", "OrderServiceError"),
        ("google.api.NotFoundException: none", "NotFoundException"),
        ("ReadTimeout: 5 s", "ReadTimeout"),
        ("KeyError: 'x'", "KeyError"),
        ("An error occurred when calling tool `f`:\nToolError: HTTP 504", "tool_error"),
        ("Error executing tool f: HTTP 504", "tool_error"),
        ("An error occurred: HTTP 504", "tool_error"),
        ("No error occurred when calling tool `f`", None),
        ("An order occurred twice", None),
        ("The last run ended with KeyError: 'x'", None),
        ("errors: none", None),
    ],
)
def test_a_result_that_begins_with_an_exception_is_a_failure(text, kind):
    turn = turn_of(
        agent(1), chat(2, 1, user="Go", calls=[{"id": "x", "name": "f", "arguments": {}}], at=1),
        tool(3, 1, "f", attributes={"gen_ai.tool.call.id": "x", "gen_ai.tool.call.result": text}, at=12), chat(4, 1, says="Done", at=23),
    )  # fmt: skip
    assert [call.error.type if call.error else None for call in turn.tool_calls] == [kind]
