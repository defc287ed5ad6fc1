"""A turn counts once, whatever the ids of its revisions are, and however large its trace is."""

from __future__ import annotations

import threading
from collections import Counter

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.core import semconv
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.statistics.estimates import Estimates
from otel_agenteval.turns.conversations import Conversations
from tests.outlets.factories import scored_turn
from tests.outlets.test_store import Kept, kept, score
from tests.support.clock import FakeClock
from tests.support.rig import Rig
from tests.support.spans import agent, chat, tool
from tests.turns.test_complete import QUIET, Received
from tests.turns.test_conversations import turn

__all__ = ["kept"]


def ids(received):
    return [(one.turn.turn_id[-2:], one.turn.revision, (one.supersedes or "")[-2:], one.new) for one in received.kept]


def test_a_root_that_comes_late_revises_its_turn_under_a_new_id():
    received = Received()
    received.send(chat(2, 1), tool(3, 1))
    received.wait(301)
    received.send(agent(1))
    received.wait(11)
    assert ids(received) == [("02", 1, "", True), ("01", 2, "02", False)]
    assert [one.first_id[-2:] for one in received.kept] == ["02", "02"]
    assert received.turns() == [("idle", False), ("delay", True)]
    counted = received.engine.telemetry.read(semconv.TURNS).values
    assert sum(counted.values()) == 1


def test_turns_that_turn_out_to_be_one_are_told_to_whoever_counts():
    received = Received()
    received.send(agent(2, 1, "first", ms=5), chat(4, 2), agent(3, 1, "second", at=10, ms=5), chat(5, 3, at=11))
    received.wait(301)
    received.send(agent(1, ms=99))
    received.wait(11)
    *before, whole = received.kept
    assert [one.turn.agent for one in before] == ["first", "second"]
    assert whole.supersedes == before[0].turn.turn_id
    assert list(whole.absorbs) == [before[1].turn.turn_id]
    assert not whole.new


def test_what_a_service_did_for_a_caller_is_a_turn_of_its_own_and_counts_as_one():
    caller = {"service.name": "caller"}
    received = Received()
    received.send(
        chat(4, 3, at=3),
        agent(3, 2, "callee", at=2, ms=5, remote=True),
        chat(2, 1, at=1, resource=caller),
        agent(1, 0, "caller", resource=caller),
    )
    received.wait(11)
    assert ids(received) == [("01", 1, "", True), ("03", 1, "", True)]
    received.send(tool(5, 3, at=4))
    received.wait(11)
    assert ids(received)[2:] == [("01", 2, "01", False), ("03", 2, "03", False)]


def test_late_span_of_a_turn_keeps_the_run_of_its_tool_in_another_trace():
    given = {"gen_ai.tool.call.arguments": '{"task": "Pack?"}', "gen_ai.tool.call.result": "A jacket."}
    received = Received()
    received.send(
        chat(8, 7, user="Pack?", says="A jacket.", at=25, trace_id=0xB2), agent(7, 0, "helper", at=22, ms=30, trace_id=0xB2)
    )
    received.wait(11)
    received.send(chat(2, 1, user="Ask."), tool(3, 1, attributes=given, at=20, ms=50), chat(4, 1, at=80, says="Fine."), agent(1))
    received.wait(11)
    assert ids(received) == [("07", 1, "", True), ("01", 2, "07", False)]
    received.send(chat(5, 1, at=90, says="Fine, then."))
    received.wait(11)
    assert received.kept[-1].turn.turn_id.endswith("01")
    assert [one.turn.llm_call_count for one in received.kept] == [1, 3, 3, 4]
    assert sum(received.engine.telemetry.read(semconv.TURNS).values.values()) == 1


def test_a_root_that_comes_when_its_turn_is_forgotten_is_no_second_turn():
    received = Received()
    received.send(chat(2, 1))
    received.wait(301)
    received.clock.advance(1_000)
    received.send(agent(1, trace_id=0xB2))
    received.wait(11)  # whatever is too old is forgotten
    received.send(agent(1))
    received.wait(11)
    assert [one.root.trace_id for one in received.kept] == [0xA1, 0xB2]


def test_late_spans_look_at_nothing_but_what_they_belong_to():
    received = Received()
    received.send(agent(1, 0, "a", remote=True), chat(2, 1))
    received.wait(11)
    for number in range(10, 50, 10):
        root = agent(number, 99, "b", at=number * 1_000, remote=True)
        received.send(chat(number + 1, number, at=number * 1_000 + 1), root)
        received.wait(11)
    received.send(tool(22, 20, at=20_002))
    received.wait(11)
    assert Counter(one.turn.turn_id[-2:] for one in received.kept) == {"01": 1, "0a": 1, "14": 2, "1e": 1, "28": 1}
    last = received.kept[-1].turn
    assert (last.revision, len(last.spans), last.complete) == (2, 3, True)


# --- where turns are added up


def test_estimates_count_a_revision_under_a_new_id_once():
    estimates = Estimates(3_600, FakeClock())
    for first, agent_name, revision, value in (("a", "", 1, 0.0), ("a", "bot", 2, 1.0), ("b", "", 1, 1.0)):
        estimates.choose("m", agent_name, 0.5, "drawn", first)
        estimates.add("m", agent_name, first, first, value, 0.5, revision=revision)
    assert list(estimates.read()) == [("m", "")]  # where the turn was counted first
    assert (estimates.read()["m", ""].mean, estimates.read()["m", ""].n_eff) == (1.0, 2.0)


def test_a_score_of_an_earlier_revision_that_comes_later_changes_nothing():
    estimates = Estimates(3_600, FakeClock())
    estimates.add("m", "", "t", "turn", 1.0, 0.5, revision=2)
    estimates.add("m", "", "t", "turn", 0.0, 0.5, revision=1)
    assert estimates.read()["m", ""].mean == 1.0


def test_turns_that_became_one_leave_the_estimates():
    estimates = Estimates(3_600, FakeClock())
    for name in ("a", "b"):
        estimates.add("m", "", "t", name, 0.0, 0.5)
    estimates.add("m", "", "t", "a", 1.0, 0.5, revision=2, replaces=("b",))
    assert estimates.read()["m", ""].mean == 1.0


def test_a_trace_of_many_turns_costs_an_estimate_no_more():
    from tests.turns.test_growth import steps

    def adding(count):
        estimates = Estimates(3_600, FakeClock())
        return lambda: [estimates.add("m", "", "one trace", f"{n}", n % 2, 0.5) for n in range(count)]

    assert steps(adding(800)) / steps(adding(200)) < 4.5


def test_a_conversation_holds_a_revised_turn_once_even_under_another_conversation():
    store = Conversations(600, 10, 10, 10_000, FakeClock().monotonic)
    store.add(turn(1, "c1", turn_id="a"), 100)
    revised = turn(1, "c2", turn_id="b")
    revised.revision, revised.supersedes = 2, "a"
    assert store.add(revised, 100) == []
    assert ([one.turn_id for one in store.turns("c2")], store.turns("c1")) == (["b"], [])
    assert store.end_all()[0].turn.turn_id == "conversation-c2"


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 2, 1, 3), (2, 1, 0, 3)])
def test_the_store_counts_a_turn_once_however_its_revisions_are_called(kept: Kept, order: tuple[int, ...]) -> None:
    batches = [
        scored_turn(score(1), turn={"turn_id": "a"}),
        scored_turn(score(2), turn={"turn_id": "b", "revision": 2}, supersedes="a", new=False, counted_as="a"),
        scored_turn(score(3), turn={"turn_id": "b", "revision": 3}, supersedes="b", new=False, counted_as="a"),
        scored_turn(score(4), turn={"turn_id": "a"}),  # a judged score of the first one, which brings its turn again
    ]
    for index in order:
        kept.outlet.emit([batches[index]])
    with kept.reader() as reader:
        assert [row["turn_id"] for row in reader.turns()] == ["b"]
        assert len(list(reader.rows())) == 1


def test_turns_that_became_one_leave_the_store(kept: Kept) -> None:
    whole = scored_turn(turn={"turn_id": "a", "revision": 2}, supersedes="a", new=False, absorbs=("c",))
    kept.outlet.emit([scored_turn(turn={"turn_id": "a"}), scored_turn(turn={"turn_id": "c"}), whole])
    with kept.reader() as reader:
        assert [row["turn_id"] for row in reader.turns()] == ["a"]


# --- what was said before


HISTORY = {"metrics": ["embed_loop_detection"], "judge": {"base_url": "http://127.0.0.1:9/v1", "model": "m"},
           "embedder": {"base_url": "http://127.0.0.1:9/v1", "model": "m"}}  # fmt: skip


def heard(kept):
    """Return the earlier answers that judges receive, by the answer of each turn."""
    return {one.turn.output: [said["output"] for said in one.turn.history] for one in kept if one.judged is None}


def in_conversation(number, trace_id, name="c"):
    attributes = {"gen_ai.conversation.id": name}
    return [
        chat(2, 1, user="And?", says=f"answer {number}", at=1_000 * number + 1, trace_id=trace_id),
        agent(1, at=1_000 * number, trace_id=trace_id, attributes=attributes),
    ]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_turns_that_are_closed_together_know_what_was_said_before_them(order):
    received = Received()
    received.engine = engine_from(load_config({**QUIET, **HISTORY}), waited=received.clock.monotonic)
    received.engine.judging.may_start = False
    received.engine.keep_turns(received.kept)
    for number in order:
        received.send(*in_conversation(number, 0xC1 + number))
    received.end()
    assert heard(received.kept) == {"answer 0": [], "answer 1": ["answer 0"], "answer 2": ["answer 0", "answer 1"]}


def test_so_do_turns_of_this_process_whichever_threads_run_them():
    """Each conversation moves from thread to thread. All run at the same time, and the worker runs at any time."""
    with Rig({**HISTORY, "inline": {"metrics": []}}) as rig:
        rig.engine.judging.may_start = False

        def one_turn(conversation, number):
            rig.run(says=f"{conversation} {number}", attributes={"gen_ai.conversation.id": f"c{conversation}"})

        def converse(conversation):
            for number in range(6):
                thread = threading.Thread(target=one_turn, args=(conversation, number))
                thread.start()
                thread.join()

        threads = [threading.Thread(target=converse, args=(conversation,)) for conversation in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        rig.turns()
        assert heard(rig.kept) == {
            f"{conversation} {number}": [f"{conversation} {before}" for before in range(number)]
            for conversation in range(8)
            for number in range(6)
        }
