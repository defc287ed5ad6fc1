"""What the process does about its memory, and what open turns may hold of it."""

from __future__ import annotations

import gc
import json
import sys

import pytest

from otel_agenteval.server.process import tune
from tests.support.process import run
from tests.support.service import Sidecar, request

LARGE = """
import resource, sys
from otel_agenteval.server.process import tune
if sys.argv[1] == "tuned":
    assert tune()

def requests(count):
    for _ in range(count):  # each is held twice, as a packed and an unpacked body are
        bodies = [bytearray(20 << 20) for _ in range(2)]
        for data in bodies:
            data[::4096] = b"x" * len(data[::4096])
        del bodies, data

requests(3)
faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
requests(10)
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc only")
def test_memory_of_one_request_serves_the_next() -> None:
    plain, tuned = (int(run(LARGE, how).stdout) for how in ("plain", "tuned"))
    assert tuned < plain / 4, (plain, tuned)


def test_looks_for_cycles_are_rarer() -> None:
    before = gc.get_threshold()
    try:
        tune()
        assert gc.get_threshold()[0] > before[0]
    finally:
        gc.set_threshold(*before)


HOLD = """
import json, psutil, gc
from tests.support.service import request
from otel_agenteval.config.loader import load_config
from otel_agenteval.engine.builder import engine_from
from otel_agenteval.server.feed import Feed
from otel_agenteval.server.process import tune
tune()
config = load_config({"turn": {"total_bytes": "24MiB"}, "inline": {"metrics": []}, "outlets": {"prometheus": None, "log_events": False}})
engine = engine_from(config)
engine.worker.may_start = False
feed = Feed(engine, config.serve)
gc.collect()
start = psutil.Process().memory_info().rss
peak = 0
for first in range(0, 30_000, 200):
    spans = [{"trace": 1 + first + n, "id": 2, "parent": 1, "attributes": {"gen_ai.operation.name": "chat", "x": "y" * 500}} for n in range(200)]
    feed.give(feed.read("traces", request(*spans), False))
    engine.worker.drain(60)
    peak = max(peak, psutil.Process().memory_info().rss - start)
print(json.dumps([engine.assembler.open_turns, engine.assembler.bytes, peak]))
"""


@pytest.mark.slow
def test_what_open_turns_hold_is_what_is_counted() -> None:
    done = run(HOLD, timeout=120)
    assert done.returncode == 0, done.stderr
    open_turns, counted, resident = json.loads(done.stdout.splitlines()[-1])
    assert 5_000 < open_turns < 30_000  # the oldest were closed
    assert counted <= 24 << 20
    assert resident < 2 * (24 << 20), resident >> 20  # what closed turns take until they are forgotten comes on top


def test_a_large_trace_is_closed_at_its_bounds() -> None:
    with Sidecar({"turn": {"max_bytes": "64kB"}}) as sidecar:
        body = request(
            *[{"id": number + 1, "attributes": {"gen_ai.operation.name": "chat", "x": "y" * 1_000}} for number in range(100)]
        )
        assert sidecar.post("/v1/traces", body)[0] == 200
        assert sidecar.turns()[0].close_reason == "byte_limit"
