"""Faults of ours are counted by where they were, and as lost spans only where they cost one."""

from __future__ import annotations

from otel_agenteval.core import semconv
from tests.support.rig import Rig


def test_a_fault_counts_as_a_lost_span_only_where_it_costs_one() -> None:
    with Rig({"inline": {"metrics": []}}) as rig:
        rig.engine.failed("judge_queue", ConnectionError())
        assert rig.count(semconv.SPANS_DROPPED) == {}
        rig.engine.failed("on_end", RuntimeError())
        rig.engine.failed("on_end", RuntimeError())
        assert rig.count(semconv.SPANS_DROPPED) == {("error",): 2}
        assert rig.count(semconv.FAULTS) == {("judge_queue",): 1, ("on_end",): 2}
