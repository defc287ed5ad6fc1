"""Turns with a common parent, and turns in several traces (docs/internals/turn-stitching-rules.md describes each rule)."""

from __future__ import annotations

import itertools
import json
from collections import defaultdict

import pytest

from otel_agenteval.turns.reading.templates import question_in
from otel_agenteval.turns.relations import stitch
from otel_agenteval.turns.roots import split
from otel_agenteval.turns.separation import separate
from otel_agenteval.turns.stitching import Stitcher, reader_of
from tests.support.spans import agent, chat, span, tool

ASK = {"id": "c1", "name": "weather", "arguments": {"city": "Paris"}}
WORKFLOW = {"gen_ai.operation.name": "invoke_workflow"}


def user(text):
    return {"role": "user", "parts": [{"type": "text", "content": text}]}


def said(text):
    return {"role": "assistant", "parts": [{"type": "text", "content": text}]}


def asked(call_id="c1", name="weather"):
    return {"role": "assistant", "parts": [{"type": "tool_call", "id": call_id, "name": name, "arguments": {"city": "Paris"}}]}


def result(text, call_id="c1"):
    return {"role": "tool", "parts": [{"type": "tool_call_response", "id": call_id, "response": text}]}


def groups_of(records):
    traces = defaultdict(list)
    for record in records:
        traces[record.trace_id].append(record)
    return sorted((group for trace in traces.values() for group in split(trace)), key=lambda group: group.root.start_ns)


def turns(*records):
    return [reader_of(group).turn("recorded_file", group.all_seen) for group in stitch(groups_of(records))]


def loop(first=0, question="Weather in Paris?", call_id="c1", trace=1):
    """Return a hand-written loop: a call that requests a tool, and a call with its result, each as a separate trace."""
    return [
        chat(trace, trace_id=trace, user=question, calls=[{**ASK, "id": call_id}], at=first),
        chat(
            trace + 1, trace_id=trace + 1, messages=[user(question), asked(call_id), result("18 degrees", call_id)],
            says="It is 18 degrees.", at=first + 50,
        ),
    ]  # fmt: skip


# --- one turn in several traces


def test_a_call_that_brings_the_results_another_asked_for_belongs_to_its_turn():
    (turn,) = turns(*loop())
    assert turn.turn_id == f"{1:032x}-{1:016x}"
    assert (turn.input, turn.output) == ("Weather in Paris?", "It is 18 degrees.")
    assert [(call.name, call.result) for call in turn.tool_calls] == [("weather", "18 degrees")]
    assert len(turn.llm_calls) == 2
    assert turn.duration_s == pytest.approx(0.060)


def test_the_next_question_is_a_turn_of_its_own():
    later = [user("Weather in Paris?"), asked(), result("18 degrees"), said("It is 18 degrees."), user("And in Rome?")]
    first, second = turns(*loop(), chat(9, trace_id=9, messages=later, says="Also 18.", at=500))
    assert (first.input, second.input) == ("Weather in Paris?", "And in Rome?")


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_parts_are_joined_in_whatever_order_they_come(order):
    records = [
        chat(1, trace_id=1, user="q", calls=[ASK]),
        chat(2, trace_id=2, messages=[user("q"), asked(), result("a")], calls=[{**ASK, "id": "c2"}], at=50),
        chat(3, trace_id=3, messages=[user("q"), asked(), result("a"), asked("c2"), result("b", "c2")], says="done", at=90),
    ]
    groups = [split([record])[0] for record in records]
    stitcher = Stitcher(30.0)
    found = [whole for index in order for whole in stitcher.add(groups[index], 0.0)] + stitcher.due(31.0)
    (turn,) = [reader_of(group).turn("delay", True) for group in found]
    assert (turn.turn_id[-1], turn.output, len(turn.llm_calls), len(turn.tool_calls)) == ("1", "done", 3, 2)


def test_loops_at_the_same_time_are_told_apart():
    records = [
        record for pair in zip(loop(call_id="a", trace=1), loop(call_id="b", trace=11, first=5), strict=True) for record in pair
    ]
    assert [len(turn.llm_calls) for turn in turns(*records)] == [2, 2]


def test_without_ids_the_repeated_messages_tell():
    bare = {"name": "weather", "arguments": {"city": "Paris"}}
    history = [user("q"), {"role": "assistant", "parts": [{"type": "tool_call", **bare}]}, {"role": "tool", "content": "18"}]
    (turn,) = turns(chat(1, trace_id=1, user="q", calls=[bare]), chat(2, trace_id=2, messages=history, says="18 degrees", at=50))
    assert turn.output == "18 degrees"


def test_the_previous_response_tells_where_only_results_are_sent():
    (turn,) = turns(
        chat(1, trace_id=1, user="q", calls=[{"name": "weather"}], attributes={"gen_ai.response.id": "r1"}),
        chat(
            2, trace_id=2, messages=[{"role": "tool", "content": "18"}], says="18 degrees", at=50,
            attributes={"gen_ai.request.previous_response.id": "r1"},
        ),
    )  # fmt: skip
    assert turn.output == "18 degrees"


def quiet(number, at, given, answered, reason, **more):
    """Return a call without content."""
    usage = {
        "gen_ai.usage.input_tokens": given,
        "gen_ai.usage.output_tokens": answered,
        "gen_ai.response.finish_reasons": [reason],
    }
    return chat(number, trace_id=number, at=at, attributes={**usage, **more})


def test_without_content_the_only_call_that_can_be_next_is():
    (turn,) = turns(quiet(1, 0, 57, 15, "tool_calls"), quiet(2, 50, 91, 14, "stop"))
    assert turn.usage.total_tokens == 177
    assert turn.output is None


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([quiet(1, 0, 57, 15, "tool_calls"), quiet(2, 50, 60, 14, "stop")], id="its prompt is too short"),
        pytest.param([quiet(1, 0, 57, 15, "stop"), quiet(2, 50, 91, 14, "stop")], id="the first one had answered"),
        pytest.param(
            [quiet(1, 0, 57, 15, "tool_calls"), quiet(2, 50, 91, 14, "stop", **{"gen_ai.request.model": "m-2"})],
            id="another model",
        ),
        pytest.param([quiet(1, 0, 57, 15, "tool_calls"), quiet(2, 700_000, 91, 14, "stop")], id="it came much later"),
    ],
)
def test_without_content_nothing_is_joined_on_a_guess(records):
    assert len(turns(*records)) == 2


def test_without_content_two_loops_that_wait_are_left_alone():
    waiting = [quiet(1, 0, 57, 15, "tool_calls"), quiet(2, 5, 57, 15, "tool_calls")]
    assert len(turns(*waiting, quiet(3, 50, 91, 14, "stop"), quiet(4, 60, 91, 14, "stop"))) == 4


def test_a_part_whose_rest_never_comes_is_a_turn_as_it_is():
    stitcher = Stitcher(30.0)
    (group,) = split([chat(1, user="q", calls=[ASK])])
    assert stitcher.add(group, 0.0) == []
    assert (stitcher.due(29.0), len(stitcher)) == ([], 1)
    assert (stitcher.due(30.0), len(stitcher)) == ([group], 0)


def test_what_waits_is_bounded_and_the_oldest_goes_first():
    stitcher = Stitcher(30.0, max_bytes=1_000)
    groups = [split([chat(number, trace_id=number, user="q", calls=[{**ASK, "id": f"c{number}"}])])[0] for number in (1, 2, 3)]
    for group in groups:
        group.size = 400
    assert [stitcher.add(group, 0.0) for group in groups] == [[], [], [groups[0]]]


@pytest.mark.parametrize(
    "records",
    [
        pytest.param([agent(1), chat(2, 1, user="q", calls=[ASK])], id="an agent's turn ends with the agent"),
        pytest.param([chat(1, user="q", says="a")], id="a call that answered"),
        pytest.param(
            [span(1), chat(2, 1, user="q", calls=[ASK]), tool(3, 1, at=20.0)], id="a request around the call and its tool"
        ),
    ],
)
def test_what_is_whole_does_not_wait(records):
    (group,) = split(records)
    assert Stitcher(30.0).add(group, 0.0) == [group]


# --- several turns below one span


def runs(second, *, says="Hello Ada!", at=300.0, **more):
    """Return two agents below one workflow. ``second`` is the second agent's input."""
    return [
        span(1, 0, "chat session", WORKFLOW, ms=900, **more),
        agent(2, 1, "support"), chat(3, 2, user="I am Ada.", says=says),
        agent(4, 1, "support", at=at), chat(5, 4, messages=second, says="Star Atlas", at=at),
    ]  # fmt: skip


def test_two_turns_that_only_share_a_parent():
    (group,) = split(runs([user("I am Ada."), said("Hello Ada!"), user("A gift?")]))
    first, second = [reader_of(part).turn("root_ended", True) for part in separate(group)]
    assert [(turn.turn_id[-1], turn.input, turn.output) for turn in (first, second)] == [
        ("2", "I am Ada.", "Hello Ada!"), ("4", "A gift?", "Star Atlas"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    "records",
    [
        pytest.param(runs([user("I am Ada.")]), id="a hand-off: the second agent reads the same message"),
        pytest.param(runs([user("I am Ada."), said("Hello Ada!")]), id="a hand-off: it reads the first one's answer"),
        pytest.param(runs([user("I am Ada."), said("Other words."), user("A gift?")]), id="the answer before is not the first one's"),
        pytest.param(runs([user("I am Ada."), said("Hello Ada!"), user("A gift?")], at=50.0), id="they ran at the same time"),
        pytest.param(
            [agent(1, ms=900), chat(2, 1, user="q", says="draft"), tool(3, 1), agent(4, 3, "critic"),
             chat(5, 4, messages=[user("q"), said("draft"), user("Criticise it.")], says="bad", at=300)],
            id="an agent that works as a tool",
        ),
        pytest.param(
            [agent(1, ms=900), chat(2, 1, user="q", says="{}"),
             chat(3, 1, messages=[user("q"), said("{}"), user("Fix the errors.")], says='{"a": 1}', at=300)],
            id="an agent that corrects itself",
        ),
    ],
)  # fmt: skip
def test_one_turn_stays_one(records):
    (group,) = split(records)
    assert separate(group) == [group]


def test_who_talks_is_known_from_the_shared_span():
    records = runs([user("I am Ada."), said("Hello Ada!"), user("A gift?")])
    records[0].attributes["gen_ai.conversation.id"] = "conv-1"
    (group,) = split(records)
    assert [reader_of(part).calls.conversation_id() for part in separate(group)] == ["conv-1", "conv-1"]


# --- requests below a request that had ended


def test_a_context_that_was_never_left_does_not_join_two_requests():
    records = [
        span(1, 0, "handle", ms=100), chat(2, 1, user="one", says="1"),
        span(3, 1, "handle", at=700, ms=100), chat(4, 3, user="two", says="2", at=710),
    ]  # fmt: skip
    assert [turn.input for turn in turns(*records)] == ["one", "two"]


def test_work_that_goes_on_after_the_request_s_span_is_its_own():
    records = [span(1, 0, "handle", ms=100), span(3, 1, "stream", at=700, ms=100), chat(4, 3, user="one", says="1", at=710)]
    assert [turn.turn_id[-1] for turn in turns(*records)] == ["1"]


# --- more than one process


def test_what_another_process_did_is_its_turn_and_a_step_of_the_caller_s():
    here, there = {"service.name": "shop"}, {"service.name": "billing"}
    records = [
        agent(1, resource=here), chat(2, 1, user="q", calls=[{**ASK, "name": "ask_billing"}], resource=here),
        tool(3, 1, "ask_billing", resource=here), span(4, 3, "POST /run", remote=True, resource=there),
        agent(5, 4, "billing", resource=there), chat(6, 5, user="refund?", says="yes", resource=there, at=20),
        chat(7, 1, messages=[user("q"), asked(name="ask_billing"), result("yes")], says="Yes.", at=60, resource=here),
    ]  # fmt: skip
    caller, callee = turns(*records)
    assert (caller.service, caller.input, caller.output) == ("shop", "q", "Yes.")
    assert [run.name for run in caller.agent_runs] == ["bot", "billing"]
    assert (callee.service, callee.agent, callee.input, callee.output) == ("billing", "billing", "refund?", "yes")


# --- the question inside a prompt


@pytest.mark.parametrize(
    ("prompt", "question"),
    [
        ("Answer from the context only.\n\nContext:\n[1] Thirty days.\n\nQuestion: How long?", "How long?"),
        ("Context information is below.\n---\nThirty days.\n---\nAnswer the query.\nQuery: How long?\nAnswer: ", "How long?"),
        ("Question: How long?\nContext: Thirty days.", "How long?"),
        ("Use these documents.\n<documents>a</documents>\n<question>\nHow long?\n</question>", "How long?"),
        ("Sources:\nx\n\nUser question: How long,\nand from when?\nHelpful answer:", "How long,\nand from when?"),
        ("How long do I have?", "How long do I have?"),
        ("I have two things.\nQuestion: how long?", "I have two things.\nQuestion: how long?"),
        ("Context:\nThirty days.\nQuestion:", "Context:\nThirty days.\nQuestion:"),
        ("Here is the context of my trip:\nParis in May.", "Here is the context of my trip:\nParis in May."),
        ("How long?\n\nAnswer using the following information:\nThirty days.", "How long?"),
    ],
)
def test_the_question_in_a_prompt(prompt, question):
    assert question_in(prompt) == question


def test_a_prompt_s_question_is_the_turn_s_input():
    prompt = "Context:\n[1] Thirty days.\n\nQuestion: How long?"
    (turn,) = turns(chat(1, messages=[user(prompt)], says="Thirty days."))
    assert turn.input == "How long?"
    assert json.dumps(prompt) in json.dumps([message.content for message in turn.messages])


# --- spans named as turns


def talk(*texts):
    return [{"role": ("user", "assistant")[i % 2], "parts": [{"type": "text", "content": text}]} for i, text in enumerate(texts)]


RESULT = [
    {"role": "assistant", "parts": [{"type": "tool_call", "id": "c", "name": "w", "arguments": {}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c", "response": "21"}]},
]


@pytest.mark.parametrize(
    ("names", "first", "second", "inputs"),
    [
        pytest.param(("turn 1", "turn 2"), talk("a"), talk("a", "A", "b"), ["a", "b"], id="with history"),
        pytest.param(("turn", "turn"), talk("a"), talk("b"), ["a", "b"], id="without history"),
        pytest.param(("question-1", "question-2"), talk("a"), talk("b"), ["a", "b"], id="numbered"),
        pytest.param(("step 1", "step 2"), talk("a"), talk("b"), ["a"], id="steps"),
        pytest.param(("turn 1", "turn 2"), talk("a"), talk("a"), ["a"], id="the same message again"),
        pytest.param(("turn 1", "turn 2"), talk("a"), [*talk("a"), *RESULT], ["a"], id="results of tools"),
    ],
)
@pytest.mark.parametrize("outer", [span, agent])
def test_spans_named_as_turns_are_turns_with_a_new_message(outer, names, first, second, inputs):
    records = [
        outer(1, ms=300), span(2, 1, names[0], at=5, ms=50), chat(3, 2, messages=first, says="A", at=10),
        span(4, 1, names[1], at=100, ms=50), chat(5, 4, messages=second, says="B", at=110),
    ]  # fmt: skip
    found = [reader_of(part).turn("recorded_file", True) for group in split(records) for part in separate(group)]
    assert [turn.input for turn in found] == inputs
