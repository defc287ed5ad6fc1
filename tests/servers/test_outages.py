"""What the Collector does for us when we are slow, full or gone, and what the others notice of it: nothing."""

from __future__ import annotations

import json
import logging
import statistics
import time
import urllib.error
import urllib.request
from collections import Counter
from dataclasses import replace
from pathlib import Path

from otel_agenteval.demo import SCENES
from tests.support.collector import Agent, Collector
from tests.support.receiver import GrpcReceiver
from tests.support.servers import until
from tests.support.sidecar import Sidecar

log = logging.getLogger(__name__)
WELL = next(scene for scene in SCENES if scene.title == "all is well")
LONG = replace(WELL, user=f"{WELL.user} {'Please be thorough. ' * 400}")
"""Some 25 kB of spans."""
OURS = {"exporter": "otlp_grpc/agenteval"}

GATED = """
import os, time
import otel_agenteval as oa

@oa.metric(boolean=True)
def code_gate(turn: oa.Turn) -> bool:
    '''Passes as soon as the test lets it.'''
    while os.path.exists({path!r}):
        time.sleep(0.01)
    return True
"""
"""A metric that keeps the worker busy while a file is there: what a metric that is far too slow does."""


def gate(path: Path) -> str:
    return GATED.format(path=str(path))


def turns_in(path: Path) -> set[str]:
    """Traces with a score in a file of JSON lines."""
    return {json.loads(line)["trace_id"] for line in path.read_text(encoding="utf-8").splitlines()} if path.exists() else set()


def roots(receiver: GrpcReceiver) -> list[str]:
    return [span.trace_id.hex() for span in receiver.spans("invoke_agent trip-planner")]


def ready(sidecar: Sidecar) -> bool:
    try:
        with urllib.request.urlopen(f"{sidecar.http}/readyz", timeout=5):
            return True
    except urllib.error.HTTPError as error:
        error.close()
        return False


def paced(agent: Agent, turns: int) -> float:
    """Seconds that a turn took the agent, in the median: its spans are exported one by one, each waiting for its answer."""
    took = []
    for _ in range(turns):
        began = time.perf_counter()
        agent.play(1, LONG)
        took.append(time.perf_counter() - began)
    return statistics.median(took)


def test_overload_is_absorbed_by_the_queue_and_past_it_only_our_copy_drops(tmp_path: Path, backend: GrpcReceiver) -> None:
    closed = tmp_path / "closed"
    scores = tmp_path / "scores.jsonl"
    config = {
        "turn": {"decision_delay": "200ms", "total_bytes": "1MiB"},
        "queue": {"max_bytes": "16MiB"},
        "metrics": ["code_gate"],
        "outlets": {"jsonl": str(scores)},
    }
    with (
        Sidecar(tmp_path, config, script=gate(closed)) as sidecar,
        Collector(
            "sidecar", tmp_path, AGENTEVAL_ENDPOINT=sidecar.grpc, AGENTEVAL_QUEUE=20, BACKEND_ENDPOINT=backend.address
        ) as collector,
    ):
        agent = Agent(collector.grpc)
        closed.touch()
        first_pace = paced(agent, 20)

        def overloaded() -> bool:
            agent.play(20, LONG)
            return sidecar.metric("agenteval_serve_requests_total", outcome="overloaded") > 0

        until(overloaded, "we ask the Collector to come again", every=0)
        assert not ready(sidecar)
        second_pace = paced(agent, 50)
        absorbed = set(roots(backend))
        assert collector.metric("otelcol_exporter_queue_size", **OURS) > 0
        assert collector.metric("otelcol_exporter_enqueue_failed_spans", **OURS) == 0
        assert collector.metric("otelcol_exporter_send_failed_spans", **OURS) == 0

        def dropped() -> float:
            agent.play(20, LONG)
            return collector.metric("otelcol_exporter_enqueue_failed_spans", **OURS)

        until(dropped, "the queue is full", every=0)
        third_pace = paced(agent, 50)
        agent.close()
        log.info(
            "milliseconds per turn: %.1f before, %.1f absorbing, %.1f dropping",
            *(pace * 1e3 for pace in (first_pace, second_pace, third_pace)),
        )
        assert agent.failed == 0
        assert max(second_pace, third_pace) < 5 * first_pace + 0.05, "a busy machine is no slow exporter, but this is one"
        until(lambda: len(roots(backend)) == len(set(roots(backend))) == agent.turns, "every turn at the backend, once")
        assert collector.metric("otelcol_exporter_enqueue_failed_spans", exporter="otlp_grpc/backend") == 0
        assert max(Counter(span.span_id for span in backend.spans()).values()) == 1

        closed.unlink()
        until(lambda: collector.metric("otelcol_exporter_queue_size", **OURS) == 0, "the queue is worked off", 60)
        until(lambda: absorbed <= turns_in(scores), "every turn that was absorbed is scored")
        assert ready(sidecar)
        assert len(turns_in(scores)) < agent.turns, "what was dropped is not"
        assert collector.metric("otelcol_exporter_send_failed_spans", **OURS) == 0
