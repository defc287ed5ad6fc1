"""A call that two instrumentations each write into a trace counts once, whatever the order of the traces."""

from __future__ import annotations

import gc
import itertools

import pytest

from otel_agenteval.turns.duplicates import Duplicates
from otel_agenteval.turns.relations import stitch
from otel_agenteval.turns.roots import split
from otel_agenteval.turns.stitching import Stitcher, reader_of
from tests.support.spans import agent, chat

ASK = {"id": "c1", "name": "weather", "arguments": {"city": "Paris"}}
RESULT = [
    {"role": "user", "parts": [{"type": "text", "content": "q"}]},
    {"role": "assistant", "parts": [{"type": "tool_call", **ASK}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": "18"}]},
]


def answer(response_id):
    return {"gen_ai.response.id": response_id}


def loop():
    """Return a hand-written loop of two calls, each recorded twice."""
    return [
        chat(1, trace_id=1, user="q", calls=[ASK], attributes=answer("r1")),
        chat(2, trace_id=2, user="q", calls=[ASK], at=1, attributes=answer("r1")),
        chat(3, trace_id=3, messages=RESULT, says="done", at=50, attributes=answer("r2")),
        chat(4, trace_id=4, messages=RESULT, says="done", at=51, attributes=answer("r2")),
    ]


def last_of(found, traces):
    """Return the final turns by root. A later turn replaces the turns that it contains."""
    groups = [split(records)[0] for records in traces]
    out = [whole for group in groups for whole in found.add(group, 0.0)] + found.due(31.0)
    assert len(found) == 0
    last = []
    for whole in out:
        held = {record.span_id for record in whole.members}
        last = [one for one in last if one.root.span_id not in held] + [whole]
    return last


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_both_sightings_of_a_call_are_one_whichever_comes_first(order):
    records = loop()
    (group,) = last_of(Duplicates(Stitcher(30.0)), [[records[index]] for index in order])
    turn = reader_of(group).turn("delay", True)
    assert (turn.turn_id[-1], turn.output, len(turn.llm_calls), len(turn.tool_calls)) == ("1", "done", 2, 1)


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_an_agent_takes_in_what_was_seen_of_its_calls_outside(order):
    traces = [
        [agent(1), chat(2, 1, user="q", says="a", attributes=answer("r1")), chat(3, 1, user="q", at=5, attributes=answer("r2"))],
        [chat(4, trace_id=4, user="q", at=1, attributes=answer("r1"))],
        [chat(5, trace_id=5, user="q", at=6, attributes=answer("r2"))],
    ]
    (group,) = last_of(Duplicates(Stitcher(30.0)), [traces[index] for index in order])
    turn = reader_of(group).turn("delay", True)
    assert (turn.turn_id[-1], len(turn.llm_calls)) == ("1", 2)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_failure_within_another_is_the_same_one(order):
    outer, inner = chat(1, trace_id=1, user="q", error="429", ms=90), chat(2, trace_id=2, user="q", error="429", at=5, ms=50)
    outer.scope, inner.scope = "one", "other"
    (group,) = last_of(Duplicates(Stitcher(30.0)), [[(outer, inner)[index]] for index in order])
    assert group.root is outer


def test_what_was_seen_of_a_turn_that_is_forgotten_is_a_turn():
    found = Duplicates(Stitcher(0.1))
    held = found.add(split([chat(1, trace_id=1, user="q", says="a", attributes=answer("r1"))])[0], 0.0)
    assert len(held) == 1
    second = split([chat(2, trace_id=2, user="q", says="a", at=1, attributes=answer("r1"))])[0]
    assert found.add(second, 0.0) == []
    held.clear()
    gc.collect()
    assert found.due(1.0) == [second]


def test_duplicates_that_wait_are_bounded_and_leave_at_the_end():
    found = Duplicates(Stitcher(30.0), max_bytes=1_000)
    groups = [split([chat(n, trace_id=n, user="q", says="a", at=n, attributes=answer("r1"))])[0] for n in (1, 2, 3, 4)]
    for group in groups:
        group.size = 600
    out = [found.add(group, 0.0) for group in groups[:3]]
    assert [len(found) for found in out] == [1, 0, 1]
    assert len(out[2][0].members) == 3
    assert found.add(groups[3], 0.0) == []
    assert found.traces() == {4}
    (whole,) = found.release_all(0.0)
    assert len(whole.members) == 4


def test_a_turn_that_something_late_changes_is_not_its_own_duplicate():
    found = Duplicates(Stitcher(30.0))
    first = split([chat(1, trace_id=1, user="q", says="a", attributes=answer("r1"))])[0]
    again = split([chat(1, trace_id=1, user="q", says="a", attributes=answer("r1"))])[0]
    assert found.add(first, 0.0) == [first]
    assert found.add(again, 0.0) == [again]


SAME_ID = answer("x")
AFTER_RESULT = {"messages": RESULT, "says": "done"}


def later(**more):
    """Return the span of a second instrumentation."""
    return chat(3, 1, **{"at": 10, "scope": "other", "attributes": SAME_ID, **more})


@pytest.mark.parametrize(
    ("second", "calls"),
    [
        (later(**AFTER_RESULT), 2),
        (later(user="q", calls=[{**ASK, "arguments": {"city": "Rome"}}]), 2),
        (later(messages=RESULT, calls=[ASK]), 2),
        (later(**AFTER_RESULT, at=9.5), 2),
        (later(**AFTER_RESULT, scope="acme.app"), 2),
        (later(scope="acme.app"), 2),
        (later(user="q", calls=[ASK]), 1),
        (later(user="q", says="Let me check.", calls=[ASK]), 1),
        (later(), 1),
        (later(**AFTER_RESULT, at=2, ms=6), 1),
    ],
    ids=["answer", "arguments", "loop", "clock step", "scope", "no content", "same", "more text", "only times", "nested"],
)  # fmt: skip
def test_calls_in_a_row_with_one_id_are_two_if_texts_differ(second, calls):
    first = chat(2, 1, user="q", calls=[ASK], attributes=SAME_ID)
    turn = reader_of(split([agent(1, ms=30), first, second])[0]).turn("delay", True)
    assert len(turn.llm_calls) == calls


@pytest.mark.parametrize(("scope", "says", "turns"), [("acme.app", "a", 2), ("other", "b", 2), ("other", "a", 1)])
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_traces_with_one_response_id_stay_apart_if_calls_differ(order, scope, says, turns):
    traces = [
        [chat(1, trace_id=1, user="q", says="a", attributes=SAME_ID)],
        [chat(2, trace_id=2, user="q", says=says, at=500, scope=scope, attributes=SAME_ID)],
    ]
    assert len(last_of(Duplicates(Stitcher(30.0)), [traces[index] for index in order])) == turns
    assert len(stitch([split(traces[index])[0] for index in order])) == turns
