"""In a forked child, the parent's turns, queue and port aren't used. The child's own turns are scored."""

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


def test_parent_and_child_work_on_their_own_turns(tmp_path, scores):
    script = """
import psutil
def workers():
    return [thread.name for thread in threading.enumerate() if thread.name == "otel-agenteval"]
def child():
    found = {
        "open": engine.assembler.open_turns, "queued": engine.worker.queue.bytes, "port": prometheus.port, "workers": workers(),
        "listening": [c.laddr.port for c in psutil.Process().net_connections() if c.status == "LISTEN"],
        "own instance": engine.instance_id != parent_instance,
    }
    with trace.use_span(trace.INVALID_SPAN):
        turn(tracer, "child's")
    found["then"] = workers()
    found["flushed"] = handle.flush()
    found["turns"] = sum(engine.telemetry.read("agenteval.turns").values.values())
    return found
found = fork(child)
opened.__exit__(None, None, None)
turn(tracer, "after")
print(json.dumps([found, handle.flush(), prometheus.port == parent_port]))
"""
    found, *parent = run(script, tmp_path)
    assert found == {
        "open": 0, "queued": 0, "port": None, "workers": [], "listening": [], "own instance": True,
        "then": ["otel-agenteval"], "flushed": True, "turns": 1,
    }  # fmt: skip
    assert parent == [True, True]
    assert {score["agent"] for score in scores()} == {"before", "child's", "parent's", "after"}


def test_every_turn_of_parent_and_child_is_scored_once(tmp_path, scores):
    script = """
def child():
    with trace.use_span(trace.INVALID_SPAN):
        turn(tracer, "child's")
    opened.__exit__(None, None, None)     # the parent's root, whose copy the child holds
    handle.shutdown()
    return True
found = fork(child)
opened.__exit__(None, None, None)
handle.shutdown()
print(json.dumps(found))
"""
    assert run(script, tmp_path) is True
    ids = [score["result_id"] for score in scores()]
    assert len(ids) == len(set(ids))


def test_a_fork_while_our_locks_are_held_leaves_the_child_free(tmp_path):
    script = """
def child():
    with trace.use_span(trace.INVALID_SPAN):
        turn(tracer, "child's")
    return handle.flush(60)
handle.flush(60)  # there is something to show to other processes
# in the order in which the worker takes them
engine.worker._working.acquire(); engine.assembler.lock.acquire(); engine.worker.queue._lock.acquire(); engine.telemetry._lock.acquire()
found = fork(child)
engine.telemetry._lock.release(); engine.worker.queue._lock.release(); engine.assembler.lock.release(); engine.worker._working.release()
print(json.dumps(found))
"""
    assert run(script, tmp_path) is True
