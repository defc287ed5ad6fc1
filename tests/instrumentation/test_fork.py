"""A forked child: the parent's turns, queue and port stay the parent's; the child's own work goes on."""

from __future__ import annotations

import json
import os

import pytest

from tests.support.process import output_of

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="this platform cannot fork")

FORK = """
provider = TracerProvider()
config = {"outlets": {"prometheus": {"port": 0}, "jsonl": sys.argv[1], "log_events": False}}
handle = oa.instrument(tracer_provider=provider, config=config)
engine = handle.processor.engine
prometheus = next(iter(engine.outlets))
tracer = provider.get_tracer("app")
for i in range(5):
    turn(tracer, "before")
opened = agent(tracer, "parent's")
opened.__enter__()
parent_port, parent_instance = prometheus.port, engine.instance_id
read_end, write_end = os.pipe()

def fork(in_child):
    pid = os.fork()
    if pid == 0:
        try:
            os.write(write_end, json.dumps(in_child()).encode())
        except BaseException as error:
            os.write(write_end, json.dumps(repr(error)).encode())
        os._exit(0)
    os.waitpid(pid, 0)
    return json.loads(os.read(read_end, 100_000))
"""


@pytest.fixture
def scores(tmp_path):
    return lambda: [json.loads(line) for line in (tmp_path / "scores").read_text().splitlines()]


def run(script, tmp_path):
    return json.loads(output_of(FORK + script, str(tmp_path / "scores")))


def test_the_child_has_none_of_the_open_turns_and_nothing_queued(tmp_path):
    assert run("print(json.dumps(fork(lambda: [engine.assembler.open_turns, engine.worker.bytes])))", tmp_path) == [0, 0]


def test_the_child_works_on_its_own_turns(tmp_path, scores):
    script = """
def child():
    trace.use_span(trace.INVALID_SPAN)
    with trace.use_span(trace.INVALID_SPAN):
        turn(tracer, "child's")
    return handle.flush()
flushed = fork(child)
opened.__exit__(None, None, None)
handle.flush()
print(flushed)
"""
    assert output_of(FORK + script, str(tmp_path / "scores")) == "True\n"
    assert {score["agent"] for score in scores()} == {"before", "child's", "parent's"}


def test_every_turn_of_parent_and_child_is_scored_once(tmp_path, scores):
    script = """
def child():
    with trace.use_span(trace.INVALID_SPAN):
        turn(tracer, "child's")
    opened.__exit__(None, None, None)     # the parent's root, whose copy the child holds
    handle.shutdown()
    return True
fork(child)
opened.__exit__(None, None, None)
handle.shutdown()
print(True)
"""
    run(script.replace("print(True)", "print('true')"), tmp_path)
    ids = [score["result_id"] for score in scores()]
    assert len(ids) == len(set(ids))


def test_the_child_inherits_no_port(tmp_path):
    script = """
import psutil
def child():
    listening = [c.laddr.port for c in psutil.Process().net_connections() if c.status == "LISTEN"]
    return [prometheus.port, listening]
print(json.dumps([fork(child), prometheus.port == parent_port]))
"""
    assert run(script, tmp_path) == [[None, []], True]


def test_the_child_starts_its_worker_with_its_first_turn(tmp_path):
    script = """
def child():
    before = [t.name for t in threading.enumerate() if t.name == "otel-agenteval"]
    with trace.use_span(trace.INVALID_SPAN):
        turn(tracer, "child's")
    return [before, [t.name for t in threading.enumerate() if t.name == "otel-agenteval"]]
print(json.dumps(fork(child)))
"""
    assert run(script, tmp_path) == [[], ["otel-agenteval"]]


def test_the_child_has_an_instance_id_of_its_own(tmp_path):
    assert run("print(json.dumps(fork(lambda: engine.instance_id != parent_instance)))", tmp_path) is True


def test_the_child_counts_from_zero(tmp_path):
    script = """
def child():
    with trace.use_span(trace.INVALID_SPAN):
        turn(tracer, "child's")
    handle.flush()
    return [sum(engine.telemetry.read("agenteval.turns").values.values()), engine.assembler.received]
print(json.dumps(fork(child)))
"""
    assert run(script, tmp_path) == [1, 2]


def test_a_fork_while_our_locks_are_held_leaves_the_child_free(tmp_path):
    script = """
def child():
    with trace.use_span(trace.INVALID_SPAN):
        turn(tracer, "child's")
    return handle.flush(10)
handle.flush(10)  # there is something to show to other processes
# in the order in which the worker takes them
engine.worker._working.acquire(); engine.assembler.lock.acquire(); engine.worker._lock.acquire(); engine.telemetry._lock.acquire()
found = fork(child)
engine.telemetry._lock.release(); engine.worker._lock.release(); engine.assembler.lock.release(); engine.worker._working.release()
print(json.dumps(found))
"""
    assert run(script, tmp_path) is True


def test_the_parent_goes_on_after_the_fork(tmp_path, scores):
    script = """
fork(lambda: True)
opened.__exit__(None, None, None)
turn(tracer, "after")
print(json.dumps(handle.flush()))
"""
    assert run(script, tmp_path) is True
    assert {score["agent"] for score in scores()} == {"before", "parent's", "after"}
