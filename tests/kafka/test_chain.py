"""The whole chain with every part real, while its parts are killed: agent → Collector → Kafka → 2 workers of spans → Redis → 3 judge
workers → store, log events and Prometheus. What comes out is what one process says of the same spans.

``AGENTEVAL_CHAIN_TURNS`` sets how many turns; the suite runs fewer than a release does (20,000).
"""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2_grpc import TraceServiceStub

from otel_agenteval.cli.main import main
from otel_agenteval.core import semconv
from otel_agenteval.judging.queues.redis import RedisQueue
from tests.support.collector import Collector, value
from tests.support.faulty import FaultyModel
from tests.support.kafka import Kafka
from tests.support.process import environment
from tests.support.prometheus import Prometheus
from tests.support.receiver import GrpcReceiver, plain
from tests.support.redis_server import RedisServer
from tests.support.servers import free_port, until
from tests.support.turns_on_wire import Message, messages_of, write

pytest.importorskip("confluent_kafka")

TURNS = int(os.environ.get("AGENTEVAL_CHAIN_TURNS", "400"))
KILLS = max(6, TURNS // 1_000)
METRICS = ["llm_relevance"]
INLINE = ["code_latency", "code_empty_answer", "code_token_usage"]


class Worker:
    """One of the five, which can be killed and comes back."""

    def __init__(self, folder: Path, name: str, config: Path, *args: str) -> None:
        self.name = name
        self.port = free_port()
        self.log = folder / f"{name}.log"
        self._command = [sys.executable, "-m", "otel_agenteval", "worker", "--config", str(config)]
        self._command += ["--metrics", f"127.0.0.1:{self.port}", *args]
        self.kills = 0
        self.start()

    def start(self) -> None:
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                self._command, env=environment(), stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait(20)
        self.kills += 1

    def metric(self, name: str, **labels: str) -> float:
        try:
            return value(f"http://127.0.0.1:{self.port}/metrics", name, **labels)
        except OSError:
            return 0.0

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(40)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
                raise


def send(messages: list[Message], address: str) -> None:
    """As an agent's exporter does, in many small requests."""
    with grpc.insecure_channel(address) as channel:
        stub = TraceServiceStub(channel)
        for message in messages:
            stub.Export(ExportTraceServiceRequest.FromString(message.proto), timeout=30, wait_for_ready=True)


def stored(store: Path) -> dict[str, tuple[Any, ...]]:
    """Rows of the store by result id, which is its key."""
    if not store.exists():
        return {}
    with sqlite3.connect(store, timeout=30) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'scores'").fetchone():
            return {}
        rows = db.execute("SELECT result_id, turn_id, metric, status, value, passed FROM scores").fetchall()
    assert len({row[0] for row in rows}) == len(rows)
    return {row[0]: (*row[1:5], None if row[5] is None else bool(row[5])) for row in rows}


def events(backend: GrpcReceiver) -> Counter[str]:
    """How often each result arrived as a log event."""
    return Counter(plain(record.attributes)[semconv.RESULT_ID] for record in backend.scores())


def has(store: Path, rows: int) -> bool:
    """Whether so many rows are there."""
    if not store.exists():
        return False
    with closing(sqlite3.connect(store, timeout=30)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'scores'").fetchone():
            return False
        return bool(db.execute("SELECT count(*) >= ? FROM scores", (rows,)).fetchone()[0])


@pytest.mark.slow
def test_every_turn_is_scored_once_whatever_dies(tmp_path: Path, capsys: Any) -> None:
    messages = messages_of(TURNS)
    chosen = random.Random(7)
    judge = FaultyModel(0.0, {"score": 80, "reason": "It answers."})
    backend = GrpcReceiver()
    redis = RedisServer(tmp_path / "redis")
    store = tmp_path / "scores.db"
    given: dict[str, Any] = {
        "turn": {"decision_delay": "2s"},  # the Collector, on a core that all share here, may hold half a turn back so long
        "inline": {"metrics": INLINE},
        "metrics": METRICS,
        "judge": {
            "base_url": judge.url, "model": "scripted", "max_concurrency": 4,
            "queue": {"backend": "redis", "url": redis.url, "shards": 2, "lease": "4s"},
        },
        "outlets": {
            "log_events": False, "store": str(store),
            "otlp": {
                "endpoint": f"http://{backend.address}", "metrics_interval": 0, "spool": {"directory": str(tmp_path / "spool")},
            },
        },
        "serve": {"drain_timeout": "5s"},
    }  # fmt: skip
    config = tmp_path / "agenteval.yaml"
    config.write_text(json.dumps(given))
    ledger: Counter[str] = Counter(sent_turns=TURNS, sent_messages=len(messages))
    started = time.monotonic()
    with (
        Kafka(tmp_path / "kafka", partitions=4) as kafka,
        Collector("kafka_in", tmp_path, KAFKA=kafka.address, BACKEND_ENDPOINT=backend.address) as collector,
    ):
        url = f"kafka://{kafka.address}/otlp_spans?group=chain&commit=0.5&session.timeout.ms=6000&heartbeat.interval.ms=500"
        spans = [Worker(tmp_path, f"spans-{i}", config, "--spans", url) for i in range(2)]
        judges = [Worker(tmp_path, f"judge-{i}", config, "--judge", redis.url) for i in range(3)]
        workers = [*spans, *judges]
        targets = {worker.name: f"127.0.0.1:{worker.port}" for worker in workers}
        queue = RedisQueue(redis.url, 1, shards=2)
        try:
            with Prometheus(tmp_path / "prometheus", targets) as prometheus:
                sender = threading.Thread(target=send, args=(messages, collector.grpc))
                sender.start()
                wanted = TURNS * (len(INLINE) + len(METRICS))
                for kill in range(KILLS):  # while it runs
                    if kill == KILLS // 3:  # partitions move although nobody died
                        spans.append(Worker(tmp_path, "spans-2", config, "--spans", url))
                        workers.append(spans[-1])
                    elif kill == 2 * KILLS // 3:
                        spans.pop().stop()
                    least = wanted * kill // (KILLS + 1)
                    until(partial(has, store, least), f"{least} scores", 90 + TURNS / 100)
                    victim = chosen.choice(spans if kill % 2 else judges)
                    victim.kill()
                    if kill == KILLS // 2:
                        redis.kill()
                        redis.start()
                    victim.start()
                sender.join(300)
                assert not sender.is_alive()
                patience = 120 + TURNS / 20
                until(partial(has, store, wanted), "every score is stored", patience, 0.5)
                until(lambda: queue.depth == 0, "no job is left", 60)
                until(
                    lambda: sum(worker.metric("agenteval_kafka_partitions") for worker in spans) == 4,
                    "all partitions are read",
                    60,
                )
                until(lambda: sum(worker.metric("agenteval_kafka_uncommitted") for worker in spans) == 0, "all is committed", 60)
                until(lambda: len(events(backend)) == wanted, "every score is told", 90, 2.0)
                until(
                    lambda: (
                        sum(prometheus.query('count by (job) (agenteval_results_total{metric="llm_relevance"})').values()) >= 3
                    ),
                    "scraped",
                )
                until(lambda: sorted(prometheus.query("up").values()) == [1.0] * 5, "all five are up", 60)
        finally:
            for worker in workers:
                worker.stop()
            ledger["dead_letters"] = len(queue.dead_letters())
            ledger["left_in_redis"] = queue.depth
            queue.close()
            redis.stop()
            backend.close()
    ledger["seconds"] = round(time.monotonic() - started)
    for kind in ("spans", "judge"):
        ledger[f"kills_of_{kind}_workers"] = sum(worker.kills for worker in workers if worker.name.startswith(kind))
    ledger["kills_of_redis"] = 1
    ledger["questions"] = sum(judge.met.values())
    ledger["partitions_assigned"] = sum(worker.log.read_text().count("INFO kafka: ") for worker in workers)
    found = stored(store)
    ledger["rows"] = len(found)
    told = events(backend)
    ledger["log_events"], ledger["log_events_of_different_ids"] = told.total(), len(told)
    assert main(["eval", str(write(messages, tmp_path / "all.jsonl")), "--config", str(config)]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    single = {
        row["result_id"]: (row["turn_id"], row["metric"], row["status"], row["value"], row.get("passed"))
        for row in said
        if row["status"] != "skipped"
    }
    judge.close()
    ledger["rows_of_one_process"] = len(single)
    ledger["missing"] = len(single.keys() - found.keys())
    ledger["too_many"] = len(found.keys() - single.keys())
    ledger["different"] = sum(found[key] != single[key] for key in found.keys() & single.keys())
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps(ledger)}\n")
    assert found == single
    assert told.keys() == found.keys()  # each at least once
    assert ledger["dead_letters"] == 0
    assert ledger["kills_of_spans_workers"] >= KILLS // 2
