"""Division of spans into turns."""

from __future__ import annotations

import json

import pytest

from otel_agenteval.turns.roots import split
from tests.support.spans import agent, chat, span, tool


def roots(*records):
    return [group.root.span_id for group in split(records)]


def asked(text):
    return {"gen_ai.input.messages": json.dumps([{"role": "user", "parts": [{"type": "text", "content": text}]}])}


CHAIN = {"openinference.span.kind": "CHAIN"}
WORKFLOW = {"gen_ai.operation.name": "invoke_workflow"}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([agent(1), chat(2, 1)], [1], id="an agent is a turn"),
        pytest.param([chat(1)], [1], id="a lone model call is its own root"),
        pytest.param([span(1), chat(2, 1), chat(3, 1)], [1], id="without an agent the local root is the turn"),
        pytest.param([span(1), span(2, 1), agent(3, 2), chat(4, 3)], [3], id="the agent below an application's spans"),
        pytest.param([span(1), agent(2, 1), agent(3, 1, at=200)], [2, 3], id="two agents below one request are two turns"),
        pytest.param([span(1, attributes=WORKFLOW), agent(2, 1), agent(3, 1, at=50)], [1], id="a workflow holds its agents"),
        pytest.param([agent(1), tool(2, 1), agent(3, 2, "helper"), chat(4, 3)], [1], id="an agent inside an agent is no turn"),
        pytest.param(
            [span(1), chat(2, 1), tool(3, 1, at=20), agent(4, 3, at=21)],
            [1],
            id="an agent in a tool of the application's loop is no turn",
        ),
        pytest.param(
            [span(1), tool(2, 1), agent(3, 2), chat(4, 1, at=200)], [3], id="a call after an agent's tool doesn't run it"
        ),
        pytest.param([span(1, attributes=CHAIN), chat(2, 1)], [1], id="a chain with a model call below"),
        pytest.param([span(1, attributes=CHAIN), span(2, 1)], [], id="a chain without a model call is none"),
        pytest.param([span(1), tool(2, 1)], [], id="tools alone are none"),
        pytest.param([span(1), span(2, 1)], [], id="an application's own trace is none"),
        pytest.param([span(1, attributes={"gen_ai.operation.name": "create_agent"})], [], id="making an agent is no turn"),
        pytest.param([agent(2, 9, remote=True), chat(3, 2)], [2], id="a remote parent makes a local root"),
        pytest.param([], [], id="nothing"),
    ],
)
def test_the_turn_roots_are(records, expected):
    assert roots(*records) == expected


def test_a_span_sent_twice_is_one_span():
    group = split([agent(1), chat(2, 1), chat(2, 1)])[0]
    assert len(group.members) == 2


def test_an_orphan_belongs_to_the_turn_that_was_running():
    first, second = split([agent(1, at=0), agent(2, at=500), tool(3, 99, at=520)])
    assert [r.span_id for r in second.members] == [2, 3]
    assert (first.all_seen, second.all_seen) == (True, False)  # one is missing a span: the orphan's parent


def test_an_orphan_without_a_model_call_belongs_to_the_only_turn_at_any_time():
    (group,) = split([agent(1), tool(2, 99, at=5_000)])
    assert len(group.members) == 2


def test_spans_that_miss_the_same_parent_are_one_turn_whose_root_was_not_seen():
    (group,) = split([chat(2, 99, at=5), chat(3, 99, at=0)])
    assert group.root.span_id == 3
    assert not group.root_seen
    assert len(group.members) == 2


def test_an_orphan_with_an_agent_of_its_own_is_a_turn():
    assert roots(agent(1), agent(2, 99, at=5_000)) == [1, 2]


def test_spans_in_a_circle_or_their_own_parents_do_no_harm():
    assert roots(agent(1, 1), chat(2, 3), chat(3, 2)) == [1]


def test_a_chain_of_many_parents_is_no_recursion():
    deep = [span(i, i - 1) for i in range(1, 20_001)]
    assert roots(*deep, chat(20_001, 20_000)) == [1]


# --- spans beside a run, without a parent, and below an ended one


def chain(span_id, parent_id=0, name="shop", **more):
    return span(span_id, parent_id, name, CHAIN, **more)


def served(record):
    record.server = True
    return record


def members(*records):
    return {group.root.span_id: {record.span_id for record in group.members} for group in split(records)}


@pytest.mark.parametrize(
    ("records", "expected"),
    [
        pytest.param([span(1), agent(2, 1), chat(3, 1, at=10), tool(4, 1, at=30), span(5, 4)], {2: {2, 3, 4, 5}}, id="calls beside a run"),
        pytest.param([agent(2, 9, remote=True), chat(3, 9, at=10, remote=True)], {2: {2, 3}}, id="the parent is remote"),
        pytest.param([span(1, ms=200), agent(2, 1, at=50), chat(3, 1)], {2: {2}}, id="a call before the run"),
        pytest.param([span(1), agent(2, 1), agent(3, 1, at=50), chat(4, 1, at=60)], {2: {2}, 3: {3}}, id="within two runs"),
        pytest.param([span(1), agent(2, 1), agent(3, 1, at=50), chat(4, 1, at=120)], {2: {2}, 3: {3, 4}}, id="within the second run"),
        pytest.param([served(span(1, ms=100)), chat(2, at=10), tool(3, at=30)], {1: {1, 2, 3}}, id="no parent, within a request"),
        pytest.param([span(1, ms=100), agent(2, 1), chat(3, at=10)], {2: {2, 3}}, id="no parent, within a run in a request"),
        pytest.param([span(1, ms=100), span(2, ms=100), chat(3, at=10)], {3: {3}}, id="no parent, within two requests"),
        pytest.param([span(1, ms=100), chat(3, at=10, resource={"service.name": "b"})], {3: {3}}, id="no parent, another service"),
        pytest.param(
            [span(1, ms=200), span(2, 1), chat(3, 2), span(4, 2, at=50), chat(5, 4, at=51)], {1: {1, 2, 3, 4, 5}},
            id="a span whose parent had ended, within the root's time",
        ),
        pytest.param(
            [span(1, ms=200), served(span(2, 1)), chat(3, 2), served(span(4, 2, at=50)), chat(5, 4, at=51)], {1: {1, 2, 3}, 4: {4, 5}},
            id="a request whose parent had ended",
        ),
        pytest.param([chain(1), chat(2, 1), chain(3, 2, at=50), chat(4, 3, at=51)], {1: {1, 2}, 3: {3, 4}}, id="a run below an ended run's call"),
        pytest.param(
            [chain(1), chain(2, 1, "model"), chat(3, 2), chain(4, 2, at=50), chat(5, 4, at=51), chain(6, 5, at=90), chat(7, 6, at=91)],
            {1: {1, 2, 3}, 4: {4, 5}, 6: {6, 7}}, id="runs below an ended run's step",
        ),
        pytest.param([chain(1), chat(2, 1, error="429"), chain(3, 2, at=50), chat(4, 3, at=51)], {1: {1, 2}, 3: {3, 4}}, id="a run below a failed run's call"),
        pytest.param([chain(1, ms=200), chat(2, 1), chain(3, 2, at=50), chat(4, 3, at=51)], {1: {1, 2, 3, 4}}, id="a run below a call, within the root's time"),
        pytest.param([chain(1), chat(2, 1), chain(3, 2, "summary", at=50), chat(4, 3, at=51)], {1: {1, 2, 3, 4}}, id="another chain after the run"),
        pytest.param([agent(1), chat(2, 1), agent(3, 1, at=150), chat(4, 3, at=151)], {1: {1, 2, 3, 4}}, id="a run whose agent's span ended early"),
        pytest.param([span(1, name="graph.run", ms=200), agent(2, 1), agent(3, 1, "b", at=100)], {1: {1, 2, 3}}, id="runs of a graph"),
        pytest.param(
            [span(1, name="team", ms=200), agent(2, 1, attributes=asked("a")), agent(3, 1, "b", at=100, attributes=asked("b"))],
            {2: {2}, 3: {3}}, id="runs of a team, each with a new user message",
        ),
    ],
)  # fmt: skip
@pytest.mark.parametrize("turned", [False, True])
def test_the_spans_of_each_turn_are(records, expected, turned):
    assert members(*(reversed(records) if turned else records)) == expected
