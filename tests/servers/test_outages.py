"""What the Collector does for us when we are slow, full or gone, and what the others notice of it: nothing."""

from __future__ import annotations

import contextlib
import json
import logging
import sqlite3
import statistics
import time
import urllib.error
import urllib.request
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import otel_agenteval as oa
from otel_agenteval.cli.demo import SCENES
from otel_agenteval.outlets.store.statements import CURRENT
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


@pytest.mark.slow
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
        until(lambda: collector.metric("otelcol_exporter_queue_size", **OURS) == 0, "the queue is worked off")
        until(lambda: absorbed <= turns_in(scores), "every turn that was absorbed is scored")
        until(lambda: ready(sidecar), "there is room again")
        assert len(turns_in(scores)) < agent.turns, "what was dropped is not"
        assert collector.metric("otelcol_exporter_send_failed_spans", **OURS) == 0


def rows_in(path: Path) -> dict[str, dict[str, Any]]:
    """Scores of a file of JSON lines by result id; one that stands there twice must be the same twice."""
    rows: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else ():
        row = json.loads(line)
        row.pop("close_reason")
        assert rows.setdefault(row["result_id"], row) == row
    return rows


def last_revisions(rows: Mapping[str, Mapping[str, Any]]) -> dict[tuple[str, str], dict[str, Any]]:
    """What holds in the end, by trace and metric.

    After an outage the Collector's queue sends with several consumers, each at its own pace: a root can come long before the spans
    below it, and its turn is evaluated again when they come.
    """
    last = {row["turn_id"]: 0 for row in rows.values()}
    for row in rows.values():
        last[row["turn_id"]] = max(last[row["turn_id"]], row["revision"])
    of_one_revision = {"result_id", "revision", "supersedes"}
    return {
        (row["trace_id"], row["metric"]): {key: row[key] for key in row.keys() - of_one_revision}
        for row in rows.values()
        if row["revision"] == last[row["turn_id"]]
    }


class Both(Agent):
    """An agent that is evaluated in its own process too."""

    def __init__(self, address: str, folder: Path) -> None:
        super().__init__(address)
        self._path = folder / "process.jsonl"
        config = {"outlets": {"log_events": False, "span_events": "off", "prometheus": None, "jsonl": str(self._path)}}
        self.provider.add_span_processor(oa.AgentEvalSpanProcessor(config))

    def rows(self) -> dict[str, dict[str, Any]]:
        """What is to be expected, after :meth:`close`."""
        return rows_in(self._path)


def stored(path: Path) -> set[tuple[str, str, float | None]]:
    """The store's rows that hold: trace, metric, value. The file has one row per result id."""
    with contextlib.closing(sqlite3.connect(path)) as db:
        rows = db.execute(f"SELECT trace_id, metric, value FROM scores JOIN turns USING (turn_id) WHERE {CURRENT}").fetchall()
    assert len({(trace_id, metric) for trace_id, metric, _ in rows}) == len(rows)
    return set(rows)


@pytest.mark.slow
def test_kills_of_ours_and_a_restart_of_the_collector_lose_nothing(tmp_path: Path, backend: GrpcReceiver) -> None:
    scores = tmp_path / "scores.jsonl"
    config = {"turn": {"decision_delay": "300ms"}, "outlets": {"jsonl": str(scores), "store": str(tmp_path / "store.db")}}
    with (
        Sidecar(tmp_path, config, journal=True) as sidecar,
        Collector("gateway", tmp_path, AGENTEVAL_ENDPOINT=sidecar.grpc, BACKEND_ENDPOINT=backend.address) as collector,
    ):
        agent = Both(collector.grpc, tmp_path)
        agent.play(24)
        until(lambda: agent.play(1) or sidecar.metric("agenteval_turns_open") > 0, "acknowledged turns that are open", every=0)
        sidecar.kill()
        before = len(turns_in(scores))
        agent.play(24)
        until(lambda: collector.metric("otelcol_exporter_queue_size", **OURS) > 0, "the queue has what nobody takes")
        collector.stop()
        collector.start()
        sidecar.start()
        until(lambda: agent.play(1) or len(turns_in(scores)) > before, "scores again", every=0.01)
        sidecar.kill()
        sidecar.start()
        agent.play(24)
        agent.close()
        assert agent.failed == 0
        expected = last_revisions(agent.rows())
        assert len({trace_id for trace_id, _ in expected}) == agent.turns
        until(lambda: last_revisions(rows_in(scores)) == expected, "every score of every turn")
        in_process = {(trace_id, metric, row["value"]) for (trace_id, metric), row in expected.items()}
        until(lambda: stored(tmp_path / "store.db") == in_process, "one row of each in the store")
        until(lambda: len(roots(backend)) == agent.turns, "all at the backend")


@pytest.mark.slow
def test_without_a_journal_a_kill_costs_the_open_turns_and_no_others(tmp_path: Path, backend: GrpcReceiver) -> None:
    scores = tmp_path / "scores.jsonl"
    config = {"turn": {"decision_delay": "9s"}, "outlets": {"jsonl": str(scores)}}
    with (
        Sidecar(tmp_path, config) as sidecar,
        Collector("gateway", tmp_path, AGENTEVAL_ENDPOINT=sidecar.grpc, BACKEND_ENDPOINT=backend.address) as collector,
    ):
        agent = Both(collector.grpc, tmp_path)
        agent.play(8)
        until(lambda: len(turns_in(scores)) == 8, "the first turns")
        agent.play(5)
        until(lambda: sidecar.metric("agenteval_turns_open") == 5, "the next, acknowledged and open", every=0.01)
        sidecar.kill()
        sidecar.start()
        agent.play(8)
        agent.close()
        until(lambda: len(turns_in(scores)) == 16, "the turns after it")
        assert sidecar.stop() == 0
        lost = {row["trace_id"] for row in agent.rows().values()} - turns_in(scores)
        assert len(lost) == 5
        assert sidecar.ledger()["turns"]["closed"] == {"delay": 8}
