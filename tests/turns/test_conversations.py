"""Turns with a common conversation id: order, limits, end and continuation."""

from __future__ import annotations

import datetime

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core.errors import ConfigError
from otel_agenteval.core.turn import Turn
from otel_agenteval.evaluation.selection import select_conversation_metrics
from otel_agenteval.turns.conversations import Conversations, whole
from tests.support.clock import FakeClock
from tests.support.rig import Rig

START = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)


def turn(number, conversation="c1", **more):
    """Return a turn that starts ``number`` minutes after the first turn and takes ten seconds."""
    known = {
        "turn_id": f"t{number}", "conversation_id": conversation, "start": START + datetime.timedelta(minutes=number), "duration_s": 10.0,
        "input": f"question {number}", "output": f"answer {number}", **more,
    }  # fmt: skip
    return Turn(**known)


class Store(Conversations):
    """A store with its own clock."""

    def __init__(self, idle_timeout=60.0, max_open=10, max_turns=10, max_bytes=1_000):
        self.clock = FakeClock()
        super().__init__(idle_timeout, max_open, max_turns, max_bytes, self.clock.monotonic)


def ids(turns):
    return [item.turn_id for item in turns]


@pytest.mark.parametrize("order", [(1, 2, 3), (3, 1, 2), (2, 3, 1)])
def test_turns_stand_in_the_order_of_their_starts(order):
    store = Store()
    for number in order:
        store.add(turn(number), 1)
    assert ids(store.turns("c1")) == ["t1", "t2", "t3"]


def test_turns_without_a_conversation_are_not_held():
    store = Store()
    assert (store.add(turn(1, None), 1), len(store)) == ([], 0)


def test_a_revised_turn_takes_the_place_of_the_one_before():
    store = Store()
    store.add(turn(1), 1)
    store.add(turn(2), 1)
    store.add(turn(1, output="better", supersedes="t1", revision=2), 1)
    store.add(turn(3, output="found its root", supersedes="t2", revision=2), 1)
    assert [(item.turn_id, item.output) for item in store.turns("c1")] == [("t1", "better"), ("t3", "found its root")]


def test_a_conversation_is_one_turn_in_which_everything_was_said():
    store = Store()
    for number in (1, 2):
        store.add(turn(number, cost_usd=0.5, cost_estimated=number == 1, tool_calls=[f"call {number}"]), 1, f"root {number}")
    (ended,) = store.end("c1")
    found = ended.turn
    assert (found.turn_id, found.conversation_id, found.revision, ended.reason) == ("conversation-c1", "c1", 1, "ended")
    assert [(message.role, message.content) for message in found.messages] == [
        ("user", "question 1"), ("assistant", "answer 1"), ("user", "question 2"), ("assistant", "answer 2"),
    ]  # fmt: skip
    assert found.history == [{"input": "question 1", "output": "answer 1"}]
    assert (found.input, found.output, found.cost_usd, found.duration_s) == ("question 2", "answer 2", 1.0, 70.0)
    assert found.cost_estimated, "one turn's cost was estimated"
    assert found.tool_calls == ["call 1", "call 2"]
    assert (ended.last, ended.supersedes) == ("root 2", None)


def test_what_no_turn_knows_stays_unknown():
    found = whole([Turn(turn_id="t1", conversation_id="c1")])
    assert (found.cost_usd, found.usage, found.tool_calls, found.duration_s, found.messages) == (None, None, None, None, [])


def test_a_conversation_ends_when_nothing_was_said_for_long_enough():
    store = Store(idle_timeout=60)
    store.add(turn(1), 1)
    store.clock.advance(30)
    store.add(turn(2, "c2"), 1)
    store.clock.advance(30)
    assert [(ended.turn.conversation_id, ended.reason) for ended in store.due()] == [("c1", "idle")]
    assert (store.due(), len(store)) == ([], 1)


def test_turns_after_the_end_resume_it_and_its_next_end_supersedes_the_first():
    store = Store()
    store.add(turn(1), 1)
    store.end("c1")
    assert store.end("c1") == []
    store.add(turn(2), 1)
    (ended,) = store.end("c1")
    assert (ended.turn.revision, ended.supersedes, len(ended.turn.messages)) == (2, "conversation-c1", 4)


@pytest.mark.parametrize("dropped_by", ["time", "size", "move of its turn"])
def test_a_conversation_resumed_much_later_holds_later_turns_as_a_revision(dropped_by):
    store = Store(idle_timeout=10, max_bytes=100)
    for revision in (1, 2, 3):
        store.add(turn(revision), 60)
        assert ids(store.turns("c1")) == [f"t{revision}"]
        store.clock.advance(10)
        (ended,) = [one for one in store.due() if one.turn.conversation_id == "c1"]
        assert (ended.turn.revision, ended.supersedes) == (revision, "conversation-c1" if revision > 1 else None)
        if dropped_by == "time":
            store.clock.advance(10)
            assert store.due() == []
        else:
            store.add(turn(9 if dropped_by == "size" else revision, "c2"), 60)
        assert store.turns("c1") == []


def test_revisions_of_conversations_are_remembered_in_bounds():
    store = Store(idle_timeout=10, max_open=3)
    for number in range(20):
        store.add(turn(1, f"c{number}"), 1)
        store.clock.advance(10)
        store.due()
        store.clock.advance(10)
        store.due()
    for name, revision in (("c19", 2), ("c0", 1)):
        store.add(turn(2, name), 1)
        assert [ended.turn.revision for ended in store.end(name)] == [revision]


def test_past_the_number_of_conversations_the_most_silent_one_ends():
    store = Store(max_open=2)
    for number, conversation in enumerate(["c1", "c2", "c1", "c3"]):
        ended = store.add(turn(number, conversation), 1)
    assert [(one.turn.conversation_id, one.reason) for one in ended] == [("c2", "evicted")]


def test_past_the_bytes_what_ended_goes_first():
    store = Store(max_bytes=100)
    store.add(turn(1, "c1"), 40)
    store.end("c1")
    store.add(turn(2, "c2"), 40)
    assert store.add(turn(3, "c3"), 40) == []
    assert (store.turns("c1"), len(store)) == ([], 2)
    assert [one.turn.conversation_id for one in store.add(turn(4, "c3"), 40)] == ["c2"]


def test_of_a_long_conversation_the_latest_turns_are_held():
    store = Store(max_turns=2)
    for number in (1, 2, 3):
        store.add(turn(number), 1)
    assert ids(store.turns("c1")) == ["t2", "t3"]


# --- through the engine

SAID = {"conversation": {"metrics": [{"code_contains": {"value": "Rome"}}], "idle_timeout": "60s"}}


def converse(rig, *answers, conversation="conv-1"):
    for answer in answers:
        rig.run(says=answer, attributes={"gen_ai.conversation.id": conversation})


def whole_ones(rig):
    return [scored for scored in rig.scored() if scored.conversation]


def test_an_idle_conversation_is_scored_once_as_a_whole():
    clock = FakeClock()
    with Rig(SAID, clock=clock) as rig:
        converse(rig, "Paris.", "Rome.")
        assert whole_ones(rig) == []
        clock.advance(61)
        rig.engine.intake.tick()
        (scored,) = whole_ones(rig)
        assert [(score.metric, score.passed) for score in scored.scores] == [("code_contains", True)]
        assert len(scored.turn.messages) == 4
        last = rig.turns()[1]
        assert f"{scored.root.trace_id:032x}" == last.trace_id
        assert sum(rig.count("agenteval.turns").values()) == 2


def test_an_ended_conversation_that_goes_on_is_revised():
    with Rig(SAID) as rig:
        converse(rig, "Paris.")
        assert rig.engine.end_conversation("conv-1")
        converse(rig, "Rome.")
        assert rig.engine.end_conversation("conv-1")
        first, second = whole_ones(rig)
        assert (first.scores[0].passed, second.scores[0].passed) == (False, True)
        assert (second.turn.revision, second.supersedes, second.new) == (2, "conversation-conv-1", False)
        assert not rig.engine.end_conversation("another")


def test_shutdown_evaluates_the_conversations_that_are_open():
    rig = Rig(SAID)
    converse(rig, "Rome.")
    rig.processor.shutdown()
    assert [scored.scores[0].passed for scored in rig.kept if scored.conversation] == [True]


def test_without_metrics_over_conversations_none_is_held():
    with Rig() as rig:
        converse(rig, "Rome.")
        assert rig.engine.pipeline.conversations is None
        assert not rig.engine.end_conversation("conv-1")


@pytest.mark.parametrize(
    ("entries", "error"),
    [
        (["code_contain"], r"conversation\.metrics\[0\]"),
        ([{"code_contains": {"value": "x"}}] * 2, r"conversation\.metrics\[1\]"),
    ],
)
def test_bad_metrics_over_conversations_are_refused(entries, error):
    with pytest.raises(ConfigError, match=error):
        select_conversation_metrics(load_config({"conversation": {"metrics": entries}}, env={}))
