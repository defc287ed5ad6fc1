"""Measure the throughput and CPU cost of 200 simultaneous judge calls to a slow model, with the real queue and worker.

    python benchmarks/judges.py
    python benchmarks/judges.py --write           also writes the table to benchmarks/README.md
    python benchmarks/judges.py --against TREE    compares with the package of another checkout

A model that sleeps in this process uses no CPU time. The rest is our cost of claiming, reading, scoring, rendering and acknowledging.
With a model server in another process, the cost of HTTP requests is included.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import harness
from opentelemetry.sdk.trace import TracerProvider

from otel_agenteval.instrumentation.span_processor import AgentEvalSpanProcessor
from otel_agenteval.judging import factory
from otel_agenteval.judging.models.base import JudgeModel
from otel_agenteval.judging.queues import JobQueue
from otel_agenteval.metrics.question import Question

JOBS, AT_ONCE = 4_000, 200
SLOW, FAST = 1.0, 0.05
"""Response times of the models, in seconds."""
SETUPS: dict[str, dict[str, Any]] = {
    f"{AT_ONCE} concurrent calls over HTTP, a model that replies in {model:g} s, queue in {where}": {
        "queue": queue, "model": model, "at_once": AT_ONCE, "questions": each * AT_ONCE,
    }
    for model, each in ((SLOW, 10), (FAST, 20))
    for queue, where in (("memory", "memory"), ("sqlite", "SQLite"))
} | {
    f"{at_once} concurrent calls over HTTP, a model that replies in {FAST:g} s, queue in memory": {
        "queue": "memory", "model": FAST, "at_once": at_once, "questions": 40 * at_once,
    }
    for at_once in (50, 8)
} | {
    f"{AT_ONCE} concurrent calls, a model that sleeps {FAST:g} s in this process, queue in {where}": {"queue": queue}
    for queue, where in (("memory", "memory"), ("sqlite", "SQLite"))
} | {
    f"the same over HTTP, a model of {FAST:g} s, queue in Redis, `worker --judge --processes {processes}`": {
        "processes": processes, "model": FAST, "questions": 30 * AT_ONCE,
    }
    for processes in (1, 2)
}  # fmt: skip
"""Setups by name: queue, response time of the model, number of judges and of calls. Without ``model``, it sleeps in this process."""
LEAST_SHARE, MOST_CPU = 0.9, 1_000.0
"""Limits for the slow model: lowest share of its maximum throughput, and highest CPU µs per call."""
LEAST_SHARE_HERE = {"memory": 0.5, "sqlite": 0.35}
"""Lowest share of the maximum throughput of a model that sleeps in this process, by queue. The maximum is 4,000 calls per second."""


class _Sleeping(JudgeModel):
    """A judge that answers after some time without using CPU."""

    model = "sleeping"

    def answer(self, question: Question) -> dict[str, Any]:
        time.sleep(FAST)
        return {"score": 90, "reasoning": "It answers."}


def _config(url: str, at_once: int, queue: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "judge": {"base_url": url, "model": "m-1", "max_concurrency": at_once, "queue": queue},
        "metrics": ["llm_relevance"], "inline": {"metrics": []}, "outlets": {"log_events": False, "prometheus": None},
    }  # fmt: skip


def _judging(url: str, at_once: int, queue: Mapping[str, Any]) -> tuple[AgentEvalSpanProcessor, TracerProvider]:
    processor = AgentEvalSpanProcessor(_config(url, at_once, queue))
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return processor, provider


_SERVER = """
import asyncio, json, sys

SAID = json.dumps({"choices": [{"message": {"role": "assistant", "content": json.dumps({"score": 90, "reasoning": "It answers."})}}],
                   "usage": {"prompt_tokens": 300, "completion_tokens": 20}}).encode()
ANSWER = b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: %d\\r\\n\\r\\n" % len(SAID) + SAID


async def serve(reader, writer):
    try:
        while True:
            head = (await reader.readuntil(b"\\r\\n\\r\\n")).lower()
            await reader.readexactly(int(head.partition(b"content-length:")[2].split(None, 1)[0]))
            await asyncio.sleep(float(sys.argv[1]))
            writer.write(ANSWER)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1_000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"""


@contextmanager
def _served(seconds: float) -> Iterator[str]:
    """Run a slow model server in a separate process, and yield its base URL."""
    with harness.running("-c", _SERVER, str(seconds)) as port:
        yield f"http://127.0.0.1:{port}/v1"


def _measured(processor: AgentEvalSpanProcessor, provider: TracerProvider, jobs: int) -> tuple[float, float]:
    """Return the acknowledged jobs per second, and this process's CPU seconds per job."""
    judges = processor.engine.judging
    assert judges is not None
    judges.may_start = False
    tracer = provider.get_tracer("acme.app")
    for _ in range(jobs):
        _turn(tracer)
    assert processor.engine.flush(120)
    judges.may_start = True
    started, cpu = time.perf_counter(), time.process_time()
    judges.start(jobs)
    while judges.queue.depth:  # don't drain, because it speeds up the worker
        time.sleep(0.02)
    taken, cpu = time.perf_counter() - started, time.process_time() - cpu
    provider.shutdown()
    return jobs / taken, cpu / jobs


def _turn(tracer: Any) -> None:
    said = {
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "How far is it to the moon?"}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "384,400 km on average."}]}],
    }
    with tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"}):
        tracer.start_span(
            "chat m-1", attributes={"gen_ai.operation.name": "chat", **{key: json.dumps(value) for key, value in said.items()}}
        ).end()


@contextmanager
def _judge_queue(backend: str) -> Iterator[dict[str, str]]:
    """Yield the configuration of an empty queue."""
    with tempfile.TemporaryDirectory() as folder:
        yield {"backend": "sqlite", "path": str(Path(folder) / "q.db")} if backend == "sqlite" else {}


def by_workers(seconds: float, processes: int, questions: int) -> dict[str, float]:
    """Measure judge worker processes on most jobs of a queue, after all processes have started."""
    with _served(seconds) as url, tempfile.TemporaryDirectory() as folder:
        port = harness.free_port()
        redis = subprocess.Popen(
            [harness.server_program("redis-server"), "--port", str(port), "--save", ""], stdout=subprocess.DEVNULL, cwd=folder
        )
        server = f"redis://127.0.0.1:{port}"
        queue = {"backend": "redis", "url": server, "work": False}
        processor, provider = _judging(url, AT_ONCE, queue)
        for _ in range(questions):
            _turn(provider.get_tracer("acme.app"))
        assert processor.engine.flush(120)
        judges = processor.engine.judging
        assert judges is not None
        file = Path(folder, "agenteval.yaml")
        file.write_text(json.dumps(_config(url, AT_ONCE, queue)), encoding="utf-8")
        command = [sys.executable, "-m", "otel_agenteval", "worker", "--judge", server, "--processes", str(processes)]
        worker = subprocess.Popen(
            [*command, "--config", file, "--metrics", "off"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        try:
            first, started = _when(judges.queue, questions * 2 // 3)
            left, ended = _when(judges.queue, questions // 10)
        finally:
            worker.terminate()
            worker.wait()
            redis.kill()
            redis.wait()
    return {"seconds": (ended - started) / (first - left)}


def _when(queue: JobQueue, depth: int) -> tuple[int, float]:
    """Wait until a queue has at most ``depth`` jobs. Return their number and the time."""
    while (found := queue.depth) > depth:
        time.sleep(0.02)
    return found, time.perf_counter()


def over_http(backend: str, seconds: float, at_once: int, questions: int) -> dict[str, float]:
    """Measure calls over HTTP. Starting threads and connections, and reading prices, is included."""
    with _served(seconds) as url, _judge_queue(backend) as queue:
        rate, cpu = _measured(*_judging(url, at_once, queue), questions)
    return {"seconds": 1 / rate, "cpu": cpu * 1e6}


def in_process(backend: str) -> dict[str, float]:
    """Measure calls of a model that sleeps in this process."""
    factory.judge_from = lambda *_, **__: _Sleeping()  # type: ignore[assignment, return-value]
    with _judge_queue(backend) as queue:
        rate, _ = _measured(*_judging("http://127.0.0.1:1/v1", AT_ONCE, queue), JOBS)
    return {"seconds": 1 / rate}


def rows(found: harness.Runs) -> list[harness.Row]:
    made = []
    for setup, what in SETUPS.items():
        if (harness.AFTER, setup) not in found.outcomes:
            continue
        ideal = what.get("model", FAST) / what.get("at_once", AT_ONCE)
        best = found.best(setup, "seconds")
        row = harness.Row(setup, f"{1 / best:.0f} calls/s", f"{ideal / best:.2f} × ideal")
        if what.get("model") == SLOW:
            row.bound, row.over = f"≥ {LEAST_SHARE} × ideal", LEAST_SHARE * best / ideal
        elif "model" not in what:
            least = LEAST_SHARE_HERE[what["queue"]]
            row.bound, row.over = f"≥ {least} × ideal", least * best / ideal
        before = found.before(setup, "seconds")
        made.append(row.compared(1 / best, None if before is None else 1 / before, "{:.0f} calls/s"))
        if "at_once" in what:
            cpu = found.best(setup, "cpu")
            of_it = harness.Row("CPU time of the judging process per call", f"{cpu:.0f} µs")
            if what["model"] == SLOW:
                of_it.bound, of_it.over = f"≤ {MOST_CPU:.0f} µs", cpu / MOST_CPU
            made.append(of_it.compared(cpu, found.before(setup, "cpu")))
    return made


def main() -> int:
    """Measure and print. Return 1 with ``--check`` if a limit is exceeded."""
    options = harness.parser(__doc__)
    options.add_argument("--rounds", type=int, default=2, help="runs of each setup")
    options.add_argument("--only", metavar="TEXT", help="only setups whose name contains TEXT")
    args = options.parse_args()
    logging.disable(logging.CRITICAL)
    if args.child:
        what = json.loads(args.child)
        if "processes" in what:
            outcome = by_workers(what["model"], what["processes"], what["questions"])
        elif "model" in what:
            outcome = over_http(what["queue"], what["model"], what["at_once"], what["questions"])
        else:
            outcome = in_process(what["queue"])
        print(json.dumps(outcome))
        return 0
    chosen = {name: what for name, what in SETUPS.items() if not args.only or args.only in name}
    return harness.report(rows(harness.alternate(__file__, chosen, args.against, args.rounds)), args, "judges")


if __name__ == "__main__":
    sys.exit(main())
