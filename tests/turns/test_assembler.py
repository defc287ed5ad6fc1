"""The end of a turn. Spans are simple objects here, because the assembler needs only their roles."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from otel_agenteval.spans.record import LogPart
from otel_agenteval.turns.assembler import Assembler
from otel_agenteval.turns.late_data import LateData
from otel_agenteval.turns.open_traces import OpenTraces
from otel_agenteval.turns.state import HeldBytes, OpenTrace, TurnLimits
from tests.support.clock import FakeClock

T = 7
ATTRIBUTES = {"gen_ai.operation.name": "x", "text": "y" * 100}


class Live:
    """A span whose role can be set late."""

    def __init__(self, name, role=None):
        self.name = name
        self.role = role

    def __repr__(self):
        return self.name


class House:
    """An assembler with spans by name."""

    def __init__(self, **limits):
        self.clock = FakeClock()
        self.assembler = Assembler(TurnLimits(**limits), lambda span: span.role, self.clock.monotonic)
        self.spans = {}
        self.ids = {}

    def start(self, name, parent=None, role=None, late_role=None):
        self.spans[name] = Live(name, role)
        self.ids[name] = len(self.ids) + 1
        parent_id = self.ids[parent] if parent else 0
        self.assembler.start(T, self.ids[name], parent_id, role, self.spans[name])
        if late_role:
            self.spans[name].role = late_role

    def end(self, name, attributes=ATTRIBUTES):
        return list(self.assembler.end(T, self.ids[name], self.spans[name], attributes if self.spans[name].role else {}))

    def names(self, closed):
        return [sorted(span.name for span in item.spans) for item in closed]


def test_a_turn_closes_with_its_root_when_nothing_below_is_open():
    house = House()
    house.start("root", role="agent")
    house.start("call", "root", "llm")
    assert house.end("call") == []
    (closed,) = house.end("root")
    assert (closed.reason, closed.complete, closed.sole, closed.root) == ("root_ended", True, True, house.spans["root"])
    assert house.names([closed]) == [["call", "root"]]
    assert (house.assembler.open_turns, house.assembler.bytes) == (0, 0)


def test_a_stream_that_ends_after_its_parent_keeps_the_turn_open():
    house = House()
    house.start("root", role="agent")
    house.start("stream", "root", "llm")
    assert house.end("root") == []
    (closed,) = house.end("stream")
    assert (closed.reason, closed.complete) == ("root_ended", True)
    assert house.names([closed]) == [["root", "stream"]]


def test_a_span_that_stays_open_is_waited_for_no_longer_than_the_delay():
    house = House(decision_delay=2)
    house.start("root", role="agent")
    house.start("stuck", "root", "llm")
    house.end("root")
    house.clock.advance(1.9)
    assert house.assembler.tick() == []
    house.clock.advance(0.2)
    (closed,) = house.assembler.tick()
    assert (closed.reason, closed.complete) == ("delay", False)
    assert house.names([closed]) == [["root"]]
    assert house.end("stuck") == []
    assert house.assembler.late_spans == 1


def test_two_agents_under_a_request_close_each_in_its_time():
    house = House()
    house.start("request")
    house.start("first", "request", "agent")
    (first,) = house.end("first")
    house.start("second", "request", "agent")
    (second,) = house.end("second")
    assert house.names([first, second]) == [["first"], ["second"]]
    (remainder,) = house.end("request")
    assert remainder.remainder
    assert house.names([remainder]) == [["request"]]
    assert house.assembler.open_turns == 0


@pytest.mark.parametrize(
    ("called", "turns"),
    [(True, [["answer", "helper", "plan", "request", "tool"]]), (False, [["helper"], ["answer", "request", "tool"]])],
)
def test_agent_in_a_tool_is_no_turn_if_the_request_called_a_model(called, turns):
    house = House()
    house.start("request")
    if called:
        house.start("plan", "request", "llm")
        house.end("plan")
    house.start("tool", "request", "tool")
    house.start("helper", "tool", "agent")
    closed = house.end("helper") + house.end("tool")
    house.start("answer", "request", "llm")
    house.end("answer")
    assert house.names(closed + house.end("request")) == turns


def test_agent_below_a_tools_own_span_is_no_turn():
    house = House()
    house.assembler.plain_scopes["app"] = True
    house.start("request")
    house.start("plan", "request", "llm")
    house.end("plan")
    house.start("tool", "request", "tool")
    house.spans["code"], house.ids["code"] = Live("code"), len(house.ids) + 1
    code = SimpleNamespace(
        _parent=(T, house.ids["tool"]), _context=(T, house.ids["code"]), _attributes=SimpleNamespace(_dict={}),
        _instrumentation_scope=SimpleNamespace(_name="app"),
    )  # fmt: skip
    assert house.assembler.start_below(code, roles_matter=False)
    house.start("helper", "code", "agent")
    closed = house.end("helper") + house.end("code") + house.end("tool") + house.end("request")
    assert house.names(closed) == [["code", "helper", "plan", "request", "tool"]]


def test_nothing_is_a_root_while_an_open_ancestor_has_not_said_what_it_is():
    house = House()
    house.start("graph", role="unknown")
    house.start("agent", "graph", "agent")
    assert house.end("agent") == []
    house.spans["graph"].role = "workflow"
    (closed,) = house.end("graph")
    assert house.names([closed]) == [["agent", "graph"]]


def test_a_request_that_says_late_that_it_is_an_agent_takes_the_agents_below_it():
    house = House()
    house.start("request", late_role="agent")
    house.start("inner", "request", "agent")
    assert house.end("inner") == []
    (closed,) = house.end("request")
    assert house.names([closed]) == [["inner", "request"]]
    assert closed.sole


def test_an_unknown_span_that_turns_out_to_be_a_model_call_belongs_to_the_request():
    house = House()
    house.start("request")
    house.start("call", "request", "unknown", late_role="llm")
    assert house.end("call") == []
    (closed,) = house.end("request")
    assert house.names([closed]) == [["call", "request"]]
    assert not closed.remainder


def test_an_application_s_own_trace_closes_nothing_and_leaves_nothing():
    house = House()
    house.start("request")
    house.start("query", "request")
    assert house.end("query") == []
    assert house.end("request") == []
    assert (house.assembler.open_turns, house.assembler.bytes) == (0, 0)


def test_a_trace_without_genai_keeps_a_bounded_number_of_spans():
    house = House()
    house.start("loop")
    for i in range(1_000):
        house.start(f"q{i}", "loop")
        house.end(f"q{i}")
    assert house.assembler.pruned_spans == 1_000 - 256


def test_children_that_start_after_their_parent_ended_still_belong_to_the_open_turn():
    house = House()
    house.start("root", role="agent")
    house.start("step", "root", "tool")
    house.end("step")
    house.start("background", "step", "llm")
    assert house.end("root") == []
    (closed,) = house.end("background")
    assert house.names([closed]) == [["background", "root", "step"]]


def test_a_span_after_the_close_is_late_and_its_age_is_known():
    house = House()
    house.start("root", role="agent")
    house.end("root")
    house.clock.advance(3)
    house.start("late", "root", "llm")
    assert house.assembler.late_spans == 1
    assert list(house.assembler.late.ages) == [3.0]


def test_the_span_limit_closes_and_says_so():
    house = House(max_spans=3)
    house.start("root", role="agent")
    closed = []
    for i in range(4):
        house.start(f"t{i}", "root", "tool")
        closed += house.end(f"t{i}")
    assert [(c.reason, c.complete, len(c.spans)) for c in closed] == [("span_limit", False, 4)]
    assert house.end("root") == []


def test_the_byte_limit_closes_and_says_so():
    house = House(max_bytes=10_000)
    house.start("root", role="agent")
    house.start("big", "root", "llm")
    (closed,) = house.end("big", {"gen_ai.operation.name": "chat", "x": "y" * 20_000})
    assert closed.reason == "byte_limit"
    assert house.assembler.bytes == 0


def test_past_the_number_of_open_turns_the_oldest_is_closed():
    house = House(max_open=2)
    assembler = house.assembler
    for trace in (1, 2, 3):
        assembler.start(trace, trace * 10, 0, "agent", Live(f"root{trace}", "agent"))
        assembler.start(trace, trace * 10 + 1, trace * 10, "llm", Live("call", "llm"))
        assembler.end(trace, trace * 10 + 1, Live("call", "llm"), ATTRIBUTES)
    assert [(c.trace_id, c.reason) for c in assembler.tick()] == [(1, "evicted")]
    assert assembler.open_turns == 2


def test_past_the_total_of_bytes_the_oldest_is_closed():
    house = House(total_bytes=5_000)
    assembler = house.assembler
    closed = []
    for trace in (1, 2):
        assembler.start(trace, trace * 10, 0, "agent", Live("root", "agent"))
        assembler.start(trace, trace * 10 + 1, trace * 10, "llm", Live("call", "llm"))
        closed += assembler.end(trace, trace * 10 + 1, Live("call", "llm"), {"gen_ai.operation.name": "chat", "x": "y" * 3_000})
    assert [(c.trace_id, c.reason) for c in closed] == [(1, "evicted")]


def test_a_turn_that_never_ends_closes_at_max_duration():
    house = House(max_duration=60)
    house.start("root", role="agent")
    house.clock.advance(59)
    assert house.assembler.tick() == []
    house.clock.advance(2)
    (closed,) = house.assembler.tick()
    assert (closed.reason, closed.complete, closed.root) == ("max_duration", False, house.spans["root"])


@pytest.mark.parametrize("reason", ["shutdown", "exit"])
def test_the_end_evaluates_everything_that_is_open(reason):
    house = House()
    house.start("root", role="agent")
    house.start("done", "root", "llm")
    house.end("done")
    (closed,) = house.assembler.close_all(reason)
    assert (closed.reason, house.names([closed]), house.assembler.open_turns) == (reason, [["done"]], 0)


def test_spans_without_a_start_wait_for_their_local_root_and_then_a_moment():
    house = House(decision_delay=10, idle_timeout=300)
    assembler = house.assembler
    assert list(assembler.add(T, Live("child", "llm"), 100, local_root=False)) == []
    house.clock.advance(100)
    assembler.add(T, Live("root", "agent"), 100, local_root=True)
    house.clock.advance(9)
    assert assembler.tick() == []
    house.clock.advance(2)
    (closed,) = assembler.tick()
    assert (closed.reason, closed.complete, len(closed.spans)) == ("delay", True, 2)


def test_without_a_root_a_trace_closes_when_it_has_been_idle():
    house = House(idle_timeout=300)
    assembler = house.assembler
    assembler.add(T, Live("a", "llm"), 100, local_root=False)
    house.clock.advance(200)
    assembler.add(T, Live("b", "llm"), 100, local_root=False)
    house.clock.advance(200)
    assert assembler.tick() == []  # the idle deadline moved with the second span
    house.clock.advance(101)
    (closed,) = assembler.tick()
    assert (closed.reason, closed.complete, len(closed.spans)) == ("idle", False, 2)


def test_a_span_that_arrives_after_the_close_reopens_nothing():
    house = House(decision_delay=1)
    assembler = house.assembler
    assembler.add(T, Live("root", "agent"), 100, local_root=True)
    house.clock.advance(2)
    assembler.tick()
    assert list(assembler.add(T, Live("late", "llm"), 100, local_root=False)) == []
    assert (assembler.late_spans, assembler.open_turns) == (1, 0)


def test_a_span_that_was_open_before_us_joins_the_open_turn():
    house = House()
    house.start("root", role="agent")
    house.assembler.end(T, 999, Live("older", "llm"), ATTRIBUTES)
    (closed,) = house.end("root")
    assert house.names([closed]) == [["older", "root"]]


def test_log_records_wait_with_their_turn():
    house = House()
    house.start("root", role="agent")
    assert house.assembler.add_log(T, house.ids["root"], LogPart("gen_ai.choice", {}, None))
    (closed,) = house.end("root")
    assert closed.logs is not None
    assert [part.name for part in closed.logs[house.ids["root"]]] == ["gen_ai.choice"]
    assert not house.assembler.add_log(T + 1, 1, LogPart("gen_ai.choice", {}, None))


def test_what_comes_after_the_close_is_handed_out_once_no_more_is_expected():
    house = House(decision_delay=1)
    house.start("root", role="agent")
    house.end("root")
    assert house.assembler.add_log(T, 1, LogPart("gen_ai.choice", {}, None))
    house.assembler.add(T, Live("call", "llm"), 100, local_root=False)
    house.assembler.add(T, Live("query", None), 100, local_root=False)
    assert house.assembler.tick() == []
    house.clock.advance(1)
    (closed,) = house.assembler.tick()
    assert (closed.late, [span.name for span in closed.spans], list(closed.logs)) == (True, ["call", "query"], [1])
    assert (house.assembler.bytes, house.assembler.waiting) == (0, False)


def test_late_spans_that_do_not_matter_revise_nothing():
    house = House(decision_delay=1)
    house.start("root", role="agent")
    house.end("root")
    house.assembler.add(T, Live("query", None), 100, local_root=False)
    house.clock.advance(1)
    assert house.assembler.tick() == []
    assert (house.assembler.late_spans, house.assembler.bytes) == (1, 0)


def test_a_turn_that_was_closed_at_a_bound_is_not_revised():
    house = House(max_spans=2)
    house.start("root", role="agent")
    for number in range(4):
        house.start(f"call {number}", "root", "llm")
        house.end(f"call {number}")
    house.end("root")
    assert (house.assembler.late_spans, house.assembler.waiting) == (2, False)


def test_a_forked_child_forgets_what_was_open():
    house = House()
    house.start("root", role="agent")
    house.assembler.forget()
    assert house.assembler.open_turns == 0
    assert house.assembler.close_all("exit") == []


def test_deadlines_of_closed_traces_do_not_pile_up():
    traces = OpenTraces(HeldBytes(0))
    for number in range(5_000):
        traces.by_id[number] = trace = OpenTrace(number, 0.0)
        traces.set_deadline(trace, None, 10_000.0)
        del traces.by_id[number]
    assert len(traces.deadlines) < 2_000
    assert not list(traces.due(20_000.0, 10_000))


def test_closed_turns_are_remembered_after_many_closed_at_a_limit():
    late = LateData(TurnLimits(), HeldBytes(0), lambda span: "llm", lambda: 0.0)
    for trace_id in range(120):
        late.remember(trace_id, "root_ended", dict.fromkeys(range(1_000), "agent"))
        late.remember(trace_id, "evicted", {})
    late.remember(1_000, "root_ended", {1: "agent"})
    assert list(late.roles_in(1_000)) == [1]


def test_calls_beside_a_run_belong_to_it():
    house = House()
    house.start("request")
    for run in ("first", "second"):
        house.start(run, "request", "agent")
        house.start(f"{run} call", "request", "llm")
        house.start(f"{run} step", f"{run} call")
        house.start(f"{run} tool", "request", "unknown", late_role="tool")
        for name in ("step", "call", "tool"):
            assert house.end(f"{run} {name}") == []
        assert house.names(house.end(run)) == [sorted([run, *(f"{run} {name}" for name in ("call", "step", "tool"))])]
    assert house.names(house.end("request")) == [["request"]]


def test_a_call_without_a_parent_belongs_to_the_only_request():
    house = House()
    house.start("request")
    house.start("call", role="llm")
    assert house.end("call") == []
    assert house.names(house.end("request")) == [["call", "request"]]
