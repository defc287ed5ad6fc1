"""A turn is complete if all of its spans were received, however it closed. Turns that wait for nothing are evicted first."""

from __future__ import annotations

import pytest

from otel_agenteval.config.loader import load_config
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.engine.engine import limits_of
from otel_agenteval.engine.work import ClosedSpans
from tests.support.clock import FakeClock
from tests.support.spans import agent, chat, span, tool

QUIET = {"outlets": {"span_events": "off", "log_events": False, "prometheus": None}, "inline": {"metrics": []}}


class Received:
    """An engine behind OTLP without a worker thread. The test does its work."""

    def __init__(self, **limits):
        self.clock = FakeClock()
        self.engine = engine_from(
            load_config({**QUIET, "turn": {"decision_delay": "10s", **limits}}), waited=self.clock.monotonic
        )
        self.kept = []
        self.engine.keep_turns(self.kept)

    def send(self, *records):
        for record in records:
            local_root = record.parent_id == 0 or record.remote_parent
            self.handle(self.engine.assembler.add(record.trace_id, record, 600, local_root))

    def handle(self, closed):
        self.engine.pipeline.run([ClosedSpans(one) for one in closed])

    def wait(self, seconds):
        self.clock.advance(seconds)
        self.handle(self.engine.assembler.tick())

    def end(self, reason="shutdown"):
        self.handle(self.engine.assembler.close_all(reason))

    def turns(self):
        return [(scored.turn.close_reason, scored.turn.complete) for scored in self.kept]


WHOLE = [chat(2, 1), tool(3, 1), agent(1)]
WITHOUT_ROOT = WHOLE[:2]
WITHOUT_A_PARENT = [chat(2, 7), agent(1)]


def evict(received):
    received.engine.assembler.set_limits(limits_of(load_config({"turn": {"max_open": 1}}), 10.0))
    received.send(chat(2, 1, trace_id=0xB2))


CLOSERS = {
    "delay": lambda received: received.wait(11),
    "idle": lambda received: received.wait(400),
    "evicted": evict,
    "shutdown": lambda received: received.end("shutdown"),
    "exit": lambda received: received.end("exit"),
}


@pytest.mark.parametrize(
    ("spans", "complete", "reason"),
    [
        *((WHOLE, True, reason) for reason in CLOSERS if reason != "idle"),
        *((WITHOUT_ROOT, False, reason) for reason in CLOSERS if reason != "delay"),
        *((WITHOUT_A_PARENT, False, reason) for reason in CLOSERS if reason != "idle"),
    ],
)
def test_a_turn_is_complete_if_all_of_it_was_seen(spans, complete, reason):
    received = Received()
    received.send(*spans)
    CLOSERS[reason](received)
    assert received.turns()[0] == (reason, complete)


def test_a_turn_that_reached_its_byte_limit_with_its_last_span_is_complete():
    received = Received(max_bytes=1_700)
    received.send(*WHOLE)
    assert received.turns() == [("byte_limit", True)]


def test_what_waits_only_for_its_time_is_evicted_first_and_loses_nothing():
    """One trace stays open. More other traces than may be open arrive, each complete."""
    received = Received(max_open=3)
    received.send(chat(2, 1, trace_id=1))
    for trace in range(2, 12):
        received.send(*(type_(*ids, trace_id=trace) for type_, *ids in ((chat, 2, 1), (agent, 1))))
    evicted = list(received.kept)
    assert [(one.turn.close_reason, one.turn.complete, one.root.trace_id) for one in evicted] == [
        ("evicted", True, trace) for trace in range(2, 10)
    ]
    received.send(agent(1, trace_id=1))
    received.wait(11)
    assert received.turns()[8:] == [("delay", True)] * 3


def test_a_span_below_a_turn_in_this_process_that_was_pruned_leaves_it_incomplete():
    from tests.turns.test_assembler import House

    house = House()
    house.start("request")
    for i in range(300):
        house.start(f"query {i}", "request")
        house.end(f"query {i}")
    house.start("call", "request", "llm")
    house.end("call")
    (closed,) = house.end("request")
    assert (closed.reason, closed.complete) == ("root_ended", False)
    house.start("next")
    house.start("call", "next", "llm")
    house.end("call")
    assert [closed.complete for closed in house.end("next")] == [True]


def test_a_turn_that_waits_for_a_stream_is_evicted_before_one_whose_root_runs():
    from tests.turns.test_assembler import House, Live

    house = House(decision_delay=60, max_open=2)
    for trace, name in enumerate(("running", "ended", "new"), 1):
        house.assembler.start(trace, 1, 0, "agent", Live(name, "agent"))
        house.assembler.start(trace, 2, 1, "llm", Live(f"{name} stream", "llm"))
        if name == "ended":
            house.assembler.end(trace, 1, Live(name, "agent"), {})
    (closed,) = house.assembler.tick()
    assert (closed.trace_id, closed.reason, closed.complete) == (2, "evicted", False)


def test_other_turns_of_a_trace_outlive_one_that_waited_in_vain():
    """Two simultaneous requests of one caller. A stream of the first never ends."""
    from tests.turns.test_assembler import House, Live, T

    house = House(decision_delay=2)
    for number in (1, 11):
        house.assembler.start(T, number, 0, "agent", Live(f"root {number}", "agent"), carried_id=99)
        house.assembler.start(T, number + 1, number, "llm", Live(f"call {number}", "llm"))
    house.assembler.end(T, 1, Live("root 1", "agent"), {})
    house.clock.advance(3)
    (first,) = house.assembler.tick()
    assert (first.reason, first.complete) == ("delay", False)
    house.assembler.end(T, 12, Live("call 11", "llm"), {})
    (second,) = house.assembler.end(T, 11, Live("root 11", "agent"), {})
    assert (second.reason, second.complete, len(second.spans)) == ("root_ended", True, 2)
    assert (house.assembler.open_turns, house.assembler.bytes) == (0, 0)


def test_a_trace_without_an_end_is_evaluated_to_its_end():
    """A trace that is too large to hold is evaluated in complete turns."""
    received = Received(max_spans=100)
    sent = 0
    for number in range(10, 4_010, 4):
        received.send(
            chat(number + 1, number, at=number), tool(number + 2, number, at=number + 1), agent(number, 1, at=number, ms=3)
        )
        sent += 3
    received.end()
    scored = sum(one.turn.agent == "bot" for one in received.kept)
    assert scored >= 960  # a turn that a bound cuts in two may lose a part
    unused = received.engine.status.dropped()
    used = sum(len(one.turn.spans) for one in received.kept)
    assert used + unused["not_in_a_turn"] + unused.get("late", 0) == sent


def test_late_spans_that_nobody_looks_at_are_counted():
    received = Received(max_open=1)
    received.send(chat(2, 1), chat(2, 1, trace_id=0xB2))
    assert received.turns() == [("evicted", False)]
    received.send(chat(3, 1), chat(4, 1))
    assert received.engine.status.dropped()["late"] == 2


def test_a_plain_span_alone_is_no_part_of_it():
    received = Received()
    received.send(*WHOLE, span(9, 1))
    received.wait(11)
    assert received.turns() == [("delay", True)]
