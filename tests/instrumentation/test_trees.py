"""Traces of any shape, with spans started and ended in any order: no span is lost or counted twice, and no memory is leaked."""

from __future__ import annotations

from collections import Counter

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from opentelemetry import trace
from opentelemetry.sdk.trace.sampling import Decision, Sampler, SamplingResult

from tests.support.clock import FakeClock
from tests.support.rig import Rig, chat_attributes
from tests.support.streams import standing

AGENT = {"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "bot"}
STARTS = {
    "app": {},
    "lost": {},
    "agent": AGENT,
    "late agent": {},
    "chat": chat_attributes("q", "a"),
    "tool": {"gen_ai.tool.name": "t"},
}
"""Kinds of spans by their attributes at the start. A ``late agent`` gets its attributes later."""

ONE = {"inline": {"metrics": ["code_latency"]}, "outlets": {"log_events": False}}
STEPS = st.lists(st.tuples(st.sampled_from([*STARTS, "end", "end"]), st.integers(0, 7)), min_size=2, max_size=25)
"""Each step starts a span of a kind below an open span, or ends an open span."""

any_tree = settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])


class LosesSome(Sampler):
    """Drops the spans named ``lost``."""

    def should_sample(self, parent_context, trace_id, name, kind=None, attributes=None, links=None, trace_state=None):
        return SamplingResult(Decision.DROP if name == "lost" else Decision.RECORD_AND_SAMPLE, attributes)

    def get_description(self):
        return "LosesSome"


class Tree:
    """One trace that is built step by step."""

    def __init__(self, rig):
        self.rig = rig
        self.open = [(rig.tracer.start_span("app"), False)]
        self.calls = []
        """Ids of the model calls below an agent."""

    def step(self, kind, pick):
        if kind == "end":
            if len(self.open) > 1:
                self.open.pop(1 + pick % (len(self.open) - 1))[0].end()
            return
        parent, below_agent = self.open[pick % len(self.open)]
        span = self.rig.tracer.start_span(kind, trace.set_span_in_context(parent), attributes=STARTS[kind])
        if kind == "late agent":
            span.set_attributes(AGENT)
        if kind == "chat":
            if below_agent:
                self.calls.append(f"{span.get_span_context().span_id:016x}")
            span.end()
        else:
            self.open.append((span, below_agent or kind.endswith("agent")))

    def end(self, pick):
        """End all open spans, in an order that depends on ``pick``."""
        while self.open:
            self.open.pop(pick % len(self.open))[0].end()


@any_tree
@given(STEPS, st.integers(0, 7))
def test_every_model_call_below_an_agent_is_in_exactly_one_complete_turn(steps, pick):
    with Rig(ONE) as rig:
        tree = Tree(rig)
        for step in steps:
            tree.step(*step)
        tree.end(pick)
        turns = rig.turns()
        seen = Counter(call.span_id for turn in turns for call in turn.llm_calls)
        assert [seen[span_id] for span_id in tree.calls] == [1] * len(tree.calls)
        assert all(turn.complete and turn.close_reason == "root_ended" for turn in turns)


@any_tree
@given(
    STEPS,
    st.integers(0, 7),
    st.sampled_from([{}, {"max_spans": 4}, {"max_bytes": 3_000}, {"total_bytes": 4_000}]),
    st.integers(0, 25),
)
@example(
    [("app", 0), ("agent", 0), ("end", 0), *([("app", 0)] * 6), ("agent", 0), ("chat", 1)], 2, {}, 9
)  # a call whose agent comes late was taken for another agent's, which has to give it back
@example(
    [("agent", 0), *([("app", 0)] * 3), ("agent", 1), *([("end", 1)] * 4), ("chat", 0)], 0, {}, 1
)  # two turns, a late agent contains both
@example(
    [("agent", 0), ("chat", 0), ("app", 0), ("agent", 0), ("agent", 3), ("chat", 1)], 2, {}, 4
)  # a late agent has a call of a turn that is part of another late agent
def test_whatever_is_lost_late_or_too_much_nothing_stays_and_nothing_fails(steps, pick, limits, attach_at):
    clock = FakeClock()
    with Rig({**ONE, "turn": limits}, clock=clock, attach=False, sampler=LosesSome()) as rig:
        tree = Tree(rig)
        for i, step in enumerate(steps):
            if i == attach_at:
                rig.attach()
            tree.step(*step)
            clock.advance(0.3)
        if attach_at >= len(steps):
            rig.attach()
        tree.end(pick)
        rig.turns()
        clock.advance(10_000)  # whatever waits for something has waited long enough
        calls = Counter(call.span_id for turn in standing(rig.scored()) for call in turn.llm_calls)
        assert max(calls.values(), default=1) == 1
        assert (rig.engine.assembler.open_turns, rig.engine.assembler.bytes, rig.engine.failures) == (0, 0, {})
