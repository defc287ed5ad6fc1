"""AutoGen's messages, and turns that consist of several traces."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.dialects.reader import role_of
from otel_agenteval.turns.relations import stitch
from otel_agenteval.turns.roots import split
from otel_agenteval.turns.stitching import Stitcher, may_go_on, reader_of
from tests.support.spans import span

SCOPE = "autogen SingleThreadedAgentRuntime"
TEAM = "fe15f749-0ac8-4104-b192-3b85af23b0cf"
MANAGER = {"recipient_agent_class": "RoundRobinGroupChatManager", "messaging.destination": f"Manager_{TEAM}.({TEAM})-A"}
OWN = {"recipient_agent_class": "Assistant", "recipient_agent_type": "assistant", "messaging.destination": "assistant.(chat-7)-A"}


def message(number, value, at, *, to=MANAGER, sender="None", name="autogen process x"):
    attributes = {**to, "message": json.dumps(value, separators=(",", ":")), "message_context": json.dumps({"sender": sender})}
    return span(number, name=name, attributes=attributes, scope=SCOPE, trace_id=number, at=at)


def start(number, text, at):
    return message(number, {"messages": [{"source": "user", "content": text}]}, at)


def said(number, text, at, usage=(5, 2)):
    used = {"prompt_tokens": usage[0], "completion_tokens": usage[1]}
    return message(number, {"message": {"source": "bot", "models_usage": used, "content": text}}, at)


def response(number, text, at):
    return message(number, {"response": {"chat_message": {"content": text}}}, at)


def groups(*records):
    return [group for record in records for group in split([record])]


@pytest.mark.parametrize(
    ("attributes", "scope", "name", "role"),
    [
        pytest.param({"messaging.destination": "orders"}, "kafka", "orders process", None, id="a message of any other system"),
        pytest.param({**MANAGER, "message": '{"messages":[]}'}, SCOPE, "autogen process x", "workflow", id="a team's task"),
        pytest.param({**OWN, "message": "{}"}, SCOPE, "autogen process x", "agent", id="an agent of an application's own"),
        pytest.param({**OWN, "recipient_agent_class": "ClosureAgent", "message": "{}"}, SCOPE, "autogen process x", "inner", id="a function"),
        pytest.param({"message": "No Message"}, SCOPE, "autogen ack", "unknown", id="an answer without content"),
    ],
)  # fmt: skip
def test_what_a_message_is(attributes, scope, name, role):
    assert role_of(attributes, scope, name) == role


def test_the_traces_of_a_team_are_its_turns():
    first = [start(1, "Hello", 0), said(2, "Hi!", 20), response(3, "Hi!", 40)]
    second = [start(4, "And now?", 100), said(5, "Bye", 120), response(6, "Bye", 140)]
    found = [reader_of(group).turn("recorded_file", True) for group in stitch(groups(*second, *reversed(first)))]
    assert [(turn.input, turn.output, len(turn.llm_calls)) for turn in found] == [("Hello", "Hi!", 1), ("And now?", "Bye", 1)]
    assert {turn.conversation_id for turn in found} == {TEAM}


def test_a_team_s_turn_is_over_when_nothing_more_came():
    stitcher = Stitcher(30.0)
    parts = groups(start(1, "Hello", 0), said(2, "Hi!", 20))
    assert all(map(may_go_on, parts))
    assert [stitcher.add(group, float(now)) for now, group in enumerate(parts)] == [[], []]
    assert (len(stitcher), stitcher.traces(), stitcher.due(30.0)) == (2, {1, 2}, [])
    (whole,) = stitcher.due(31.0)
    assert ([record.trace_id for record in whole.members], len(stitcher)) == ([1, 2], 0)


def test_parts_of_a_thread_can_be_forgotten():
    stitcher = Stitcher(30.0)
    for group in groups(start(1, "Hello", 0), said(2, "Hi!", 20)):
        stitcher.add(group, 0.0)
    assert [group.root.trace_id for group in stitcher.forget_traces({2})] == [2]
    stitcher.forget()
    assert (len(stitcher), stitcher.release_all()) == (0, [])


def test_agents_of_an_application_s_own_answer_in_a_trace_of_its_own():
    asked = message(1, {"content": "Hello"}, 0, to=OWN)
    helper = message(2, {"content": "help"}, 20, to={**OWN, "recipient_agent_type": "helper"}, sender="assistant/default")
    answer = message(3, {"content": "Hi!"}, 40, to={"sender_agent_type": "assistant"}, name="autogen ack")
    (group,) = stitch(groups(answer, helper, asked))
    turn = reader_of(group).turn("recorded_file", True)
    assert (turn.input, turn.output, turn.conversation_id) == ("Hello", "Hi!", "chat-7")
    assert [run.name for run in turn.agent_runs] == ["assistant", "helper"]
