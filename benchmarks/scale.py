"""Measure deployments with several processes: workers on Kafka and Redis, many open turns, and backfill.

    PYTHONPATH=. python benchmarks/scale.py [kafka] [judges] [queue] [open] [backfill]    (default: all)
    ... --write       also writes the tables to benchmarks/README.md
    ... --spans N     spans of the backfill (default: 40,000)

Starts real servers (see tests/support). Rates are wall-clock rates on this machine, including other load. CPU time is only that of our
processes.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from tests.support.clock import FakeClock
from tests.support.collector import value
from tests.support.faulty import FaultyModel
from tests.support.kafka import Kafka
from tests.support.process import ROOT, environment
from tests.support.redis_server import RedisServer
from tests.support.servers import free_port, until
from tests.support.turns_on_wire import Message, messages_of

DOCUMENT = ROOT / "benchmarks" / "README.md"
KAFKA_TURNS, JUDGED, QUEUED = 12_000, 400, 6_000
_ROUNDS, _SAMPLE = 7, 1_000
THINKING = 0.1


class Worker(psutil.Process):
    def __init__(self, pid: int, port: int) -> None:
        super().__init__(pid)
        self._page = f"http://127.0.0.1:{port}/metrics"

    def metric(self, name: str, **labels: str) -> float:
        """Return a metric of the worker, or 0 while it starts."""
        try:
            return value(self._page, name, **labels)
        except OSError:
            return 0.0


@contextmanager
def workers(folder: Path, count: int, config: dict[str, Any], *args: str) -> Iterator[list[Worker]]:
    running, ports = [], []
    for i in range(count):
        ports.append(free_port())
        file = folder / f"worker-{count}-{i}.yaml"
        file.write_text(json.dumps({**config, "outlets": {"log_events": False, **config.get("outlets", {})}}))
        command = [
            sys.executable,
            "-m",
            "otel_agenteval",
            "worker",
            "--config",
            str(file),
            "--metrics",
            f"127.0.0.1:{ports[-1]}",
            *args,
        ]
        running.append(subprocess.Popen(command, env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    try:
        yield [Worker(one.pid, port) for one, port in zip(running, ports, strict=True)]
    finally:
        for one in running:
            one.terminate()
        for one in running:
            one.wait(40)


def cpu_of(processes: Sequence[psutil.Process]) -> float:
    """Return the CPU seconds of some processes."""
    return sum(sum(process.cpu_times()[:2]) for process in processes)


def steady(running: Sequence[Worker], total: int, metric: str) -> tuple[int, float, float]:
    """Measure from when all workers score until everything is scored. Return the scores, the seconds, and the workers' CPU seconds."""

    def scored() -> list[int]:
        return [int(worker.metric("agenteval_results", metric=metric)) for worker in running]

    def all_score() -> list[int] | None:
        found = scored()
        return found if all(found) else None

    before = sum(until(all_score, "all score", 120, 0.02))
    started, cpu = time.monotonic(), cpu_of(running)
    until(lambda: sum(scored()) >= total, "all is scored", 300, 0.2)
    return total - before, time.monotonic() - started, cpu_of(running) - cpu


def kafka(folder: Path) -> list[str]:
    """Measure spans per second with one and two workers. The topic is filled when the workers have their partitions."""
    import confluent_kafka

    messages = messages_of(KAFKA_TURNS)
    rows = ["| Workers | Spans/s | CPU µs per span |", "|---|---|---|"]
    with Kafka(folder / "kafka", partitions=4) as broker:
        producer = confluent_kafka.Producer({"bootstrap.servers": broker.address, "linger.ms": 50})

        def produce(topic: str, some: Sequence[Message]) -> None:
            for message in some:
                producer.produce(topic, message.proto, message.trace_id.hex())
                producer.poll(0)
            producer.flush(60)

        for count in (1, 2):
            topic = f"spans-{count}"
            produce(topic, messages[:1])
            url = f"kafka://{broker.address}/{topic}?group=bench-{count}&commit=0.5"
            with workers(folder, count, {"turn": {"decision_delay": "300ms"}}, "--spans", url) as running:
                until(
                    lambda count=count, running=running: all(
                        worker.metric("agenteval_kafka_partitions") == 4 / count for worker in running
                    ),
                    "each has its partitions",
                    120,
                )
                produce(topic, messages[1:])
                turns, seconds, spent = steady(running, KAFKA_TURNS, "code_latency")
            rows.append(f"| {count} | {3 * turns / seconds:,.0f} | {spent / (3 * turns) * 1e6:.0f} |")
    return rows


def judges(folder: Path) -> list[str]:
    """Measure jobs per second with one to four judge workers. The judge takes 0.1 s. Each worker makes four calls at once."""
    from tests.support.rig import Rig

    rows = ["| Judge workers | Jobs/s | CPU µs per job |", "|---|---|---|"]
    server = RedisServer(folder / "redis", ["--appendfsync", "everysec"])
    judge = FaultyModel(0.0, {"score": 80, "reason": "It answers."}, served=lambda: time.sleep(THINKING))
    try:
        for count in (1, 2, 3, 4):
            name = f"bench-{count}"
            queue = {"backend": "redis", "url": server.url, "name": name, "work": False}
            config = {
                "judge": {"base_url": judge.url, "model": "scripted", "max_concurrency": 4, "queue": queue},
                "metrics": ["llm_relevance"], "inline": {"metrics": []},
            }  # fmt: skip
            with Rig({**config, "outlets": {"log_events": False}}) as rig:
                for _ in range(JUDGED * count):
                    rig.run()
                rig.engine.flush(30)
            with workers(folder, count, config, "--judge", server.url) as running:
                done, seconds, spent = steady(running, JUDGED * count, "llm_relevance")
            rows.append(f"| {count} | {done / seconds:,.0f} | {spent / done * 1e6:,.0f} |")
    finally:
        judge.close()
        server.stop()
    return rows


_CLAIM = """
import resource, sys, time
from otel_agenteval.judging.queues.redis import RedisQueue
queue = RedisQueue(sys.argv[1], 2**30)
queue.depth
done = 0
cpu, begin = time.process_time(), time.monotonic()
while jobs := queue.claim(20, 60.0):
    queue.ack_many([job.id for job in jobs])
    done += len(jobs)
print(done, time.process_time() - cpu, begin, time.monotonic())
"""


def queue(folder: Path) -> list[str]:
    """Measure the queue alone. One process adds jobs of 4 kB in batches of 100. They are claimed and acknowledged in batches of 20."""
    from otel_agenteval.judging.queues import Job
    from otel_agenteval.judging.queues.redis import RedisQueue

    server = RedisServer(folder / "redis-queue", ["--appendfsync", "everysec"])
    rows = ["| Processes | Jobs/s | CPU µs per job |", "|---|---|---|"]
    try:
        put = RedisQueue(server.url, 2**30)
        for count in (1, 2, 3, 4):
            jobs = [Job(f"{count}-{i}", os.urandom(2_000).hex().encode()) for i in range(QUEUED // 2)]
            started, cpu = time.monotonic(), time.process_time()
            for at in range(0, len(jobs), 100):
                put.put_many(jobs[at : at + 100])
            if count == 1:
                seconds, spent = time.monotonic() - started, time.process_time() - cpu
                rows.append(f"| 1, adding | {len(jobs) / seconds:,.0f} | {spent / len(jobs) * 1e6:.0f} |")
            command = [sys.executable, "-c", _CLAIM, server.url]
            running = [subprocess.Popen(command, env=environment(), stdout=subprocess.PIPE, text=True) for _ in range(count)]
            found = [one.communicate(timeout=200)[0].split() for one in running]
            seconds = max(float(one[3]) for one in found) - min(float(one[2]) for one in found)
            spent = sum(float(one[1]) for one in found)
            rows.append(f"| {count}, claiming | {len(jobs) / seconds:,.0f} | {spent / len(jobs) * 1e6:.0f} |")
        put.close()
    finally:
        server.stop()
    return rows


def open_turns(folder: Path) -> list[str]:
    """Measure the CPU time per turn (receive, close, score, commit) while other turns are open, as the median of some rounds."""
    rows = [
        "| Open turns | CPU µs per turn | Relative to 1,000 open turns | ms to find messages to commit |",
        "|---|---|---|---|",
    ]
    _beside(0)  # for warm-up
    base = 0.0
    for count in (1_000, 10_000, 100_000):
        spent, look = _beside(count)
        base = base or spent
        rows.append(f"| {count:,} | {spent:,.0f} | {spent / base:.2f} | {look:.1f} |")
    return rows


def _beside(count: int) -> tuple[float, float]:
    """Return the CPU µs per turn while ``count`` turns are open, and the CPU ms to find the offsets that can be committed."""
    from otel_agenteval.config.loader import load_config
    from otel_agenteval.engine.builder import engine_from
    from otel_agenteval.kafka.offsets import Partition, Place
    from otel_agenteval.server.feed import Feed

    clock = FakeClock()
    turn = {"decision_delay": "10s", "idle_timeout": "1h", "max_open": 200_000, "total_bytes": "4GiB"}
    config = load_config({"turn": turn, "outlets": {"log_events": False, "prometheus": None}, "queue": {"max_bytes": "4GiB"}}, {})
    engine = engine_from(config, decision_delay=10.0, clock=clock)
    engine.worker.is_courteous = False
    feed = Feed(engine, config.serve)
    partition = Partition(Place(0, 0), 0)
    offsets = itertools.count()

    def take(message: Message) -> None:
        batch = feed.read("traces", message.proto, False)
        feed.pass_on(batch)
        partition.note(next(offsets), batch.traces)

    messages = messages_of(count + _ROUNDS * _SAMPLE, together=10**9)
    first, last = messages[0::2], messages[1::2]
    for message in first[:count]:
        take(message)
    assert engine.assembler.open_turns == count
    spent, looks = [], []
    for begin in range(count, len(first), _SAMPLE):
        started = time.process_time()
        for i in range(begin, begin + _SAMPLE):
            take(first[i])
            take(last[i])
        clock.advance(11)
        engine.intake.tick()
        engine.evaluate_closed(60)
        spent.append((time.process_time() - started) / _SAMPLE * 1e6)
        started = time.process_time()
        partition.commit(partition.done(engine.intake.held(set(partition.traces))))
        looks.append((time.process_time() - started) * 1e3)
    engine.assembler.forget()
    engine.shutdown()
    return statistics.median(spent), statistics.median(looks)


def backfill(folder: Path, spans: int) -> list[str]:
    """Measure the CPU µs per span of pyarrow and Daft on the same Parquet files, including startup."""
    import pyarrow.parquet as pq

    from otel_agenteval.spans.columnar import table_of
    from otel_agenteval.turns.recordings import Reading, read_items

    lines = folder / "spans.jsonl"
    with lines.open("wb") as file:
        for message in messages_of(spans // 3):
            file.write(message.json + b"\n")
    items = list(read_items([lines], Reading(), print))
    source = folder / "parquet"
    source.mkdir()
    for i in range(4):
        pq.write_table(table_of(items[i::4]), source / f"{i}.parquet")
    rows = [f"| Engine ({len(items):,} spans) | Spans/s | CPU µs per span | Peak MB of a process |", "|---|---|---|---|"]
    for engine in ("local", "daft"):
        command = [
            sys.executable,
            "-m",
            "otel_agenteval",
            "backfill",
            str(source),
            "--out",
            str(folder / engine),
            "--buckets",
            "8",
        ]
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
        subprocess.run([*command, "--engine", engine], env=environment(), check=True, stdout=subprocess.DEVNULL)
        seconds, after = time.monotonic() - started, resource.getrusage(resource.RUSAGE_CHILDREN)
        spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        name = {"local": "pyarrow, one process", "daft": "Daft, this machine"}[engine]
        rows.append(f"| {name} | {len(items) / seconds:,.0f} | {spent / len(items) * 1e6:.0f} | {after.ru_maxrss / 1024:,.0f} |")
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("parts", nargs="*")
    parser.add_argument("--write", action="store_true", help="write the tables to benchmarks/README.md")
    parser.add_argument("--spans", type=int, default=40_000, help="spans of the backfill")
    args = parser.parse_args()
    parts: dict[str, Callable[[Path], list[str]]] = {
        "kafka": kafka, "judges": judges, "queue": queue, "open": open_turns,
        "backfill": lambda folder: backfill(folder, args.spans),
    }  # fmt: skip
    for name in args.parts or parts:
        with tempfile.TemporaryDirectory() as folder:
            text = "\n".join(parts[name](Path(folder)))
        print(f"{name}\n{text}\n", flush=True)
        if args.write:
            write(name, text)
    return 0


def write(name: str, text: str) -> None:
    """Write a table between its marks of the README."""
    document = DOCUMENT.read_text(encoding="utf-8")
    name = "judge workers" if name == "judges" else name  # benchmarks/judges.py writes that mark
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, _, rest = document.partition(begin)
    _, _, after = rest.partition(end)
    DOCUMENT.write_text(f"{before}{begin}\n{text}\n\n{end}{after}", encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
