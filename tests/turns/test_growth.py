"""A turn of four times the size costs at most slightly more than four times as much, in any shape and at any depth.

The tests count interpreter steps instead of time, so results are the same on every machine.
"""

from __future__ import annotations

import inspect
import runpy
import sys
from pathlib import Path

import pytest

from otel_agenteval.metrics.bound_metric import BoundMetric
from otel_agenteval.metrics.registry import catalog
from tests.support.growth import steep

growth = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "growth.py"))
SHAPES, STREAMS, rebuild = growth["SHAPES"], growth["STREAMS"], growth["rebuild"]
METRICS = [BoundMetric(metric, {}) for metric in catalog() if metric.kind == "code"]
N = 40
DEEP = 500
SIZES = (60, 240, 960)
"""Numbers of spans for tests that measure time, which includes the work inside one interpreter step."""


def steps(run) -> int:
    """Return the number of executed lines of our code, including each loop iteration."""
    count = 0

    def trace(frame, event, argument):
        nonlocal count
        if "otel_agenteval" not in frame.f_code.co_filename:
            return None
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        run()
    finally:
        sys.settrace(before)
    return count


def growth_of(prepare) -> float:
    for size in (N, 4 * N):  # what is found out once for all, some of it for what is large
        prepare(size)()
    return steps(prepare(4 * N)) / steps(prepare(N))


@pytest.mark.parametrize("name", SHAPES)
def test_recorded_spans_cost_the_same_however_many_there_are(name):
    def prepare(n):
        records = SHAPES[name](n)
        return lambda: rebuild(records)

    assert growth_of(prepare) < 5


@pytest.mark.parametrize("name", STREAMS)
def test_so_do_spans_that_keep_coming(name):
    assert growth_of(STREAMS[name]) < 5


def score(records) -> None:
    """Create turns from spans, serialize them, and evaluate every computed metric."""
    for turn in growth["turns_of"](records):
        turn.to_dict()
        for metric in METRICS:
            metric.evaluate(turn)


@pytest.mark.slow
@pytest.mark.parametrize("name", SHAPES)
def test_scoring_takes_linear_time(name):
    score(SHAPES[name](9))
    assert steep(score, SHAPES[name], SIZES) is None


@pytest.mark.parametrize("name", SHAPES)
def test_no_depth_is_too_deep(name):
    """Many more spans are nested than the interpreter has stack frames."""
    limit = sys.getrecursionlimit()
    records = SHAPES[name](DEEP)
    sys.setrecursionlimit(len(inspect.stack()) + 150)
    try:
        rebuild(records)
    finally:
        sys.setrecursionlimit(limit)


def test_a_circle_of_spans_is_no_turn_and_harms_none():
    circle = SHAPES["nesting depth"](50)
    circle[0].parent_id = circle[-1].span_id
    whole = SHAPES["siblings"](5)
    for record in whole:
        record.span_id += 1_000
        record.parent_id += 1_000 if record.parent_id else 0
    (turn,) = growth["turns_of"]([*circle, *whole])
    assert turn.turn_id == f"{growth['TRACE']:032x}-{1_001:016x}"
    assert len(turn.llm_calls) == 4


def test_a_loop_above_a_turn_does_not_keep_its_readers_going():
    """Equal span ids in two traces of a turn can create a cycle that neither trace has."""
    from otel_agenteval.turns.reading.llm_calls import TurnCalls
    from otel_agenteval.turns.reading.turn import TurnReader

    records = SHAPES["nesting depth"](60)
    records[0].parent_id = records[-1].span_id
    reader = TurnReader(TurnCalls(records[0], records))
    reader.turn("recorded_file", True).to_dict()
    assert not any(list(reader.calls.ancestors(step)) for step in reader.calls.steps)
