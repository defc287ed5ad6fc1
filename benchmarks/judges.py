"""How many judged metrics a second 200 judges at once make of a slow model, through the real queue and worker, and what that costs.

    python benchmarks/judges.py
    python benchmarks/judges.py --write    the table also into benchmarks/README.md
    python benchmarks/judges.py --against TREE    beside the package of another checkout

Where the model sleeps in this process it costs no time of the processor, so that what is left is ours: claiming, reading a turn, scoring,
rendering, acknowledging. Asked over HTTP, of a server in a process of its own, writing and reading requests is part of it.
"""

from __future__ import annotations

import json
import logging
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import harness
from opentelemetry.sdk.trace import TracerProvider

from otel_agenteval.instrumentation.span_processor import AgentEvalSpanProcessor
from otel_agenteval.judging import factory
from otel_agenteval.judging.models.base import JudgeModel

JOBS, AT_ONCE, SECONDS = 12_000, 200, 0.05
SLOW, FAST = 1.0, SECONDS
"""Seconds that models take which are asked over HTTP."""
SETUPS: dict[str, dict[str, Any]] = {
    f"{AT_ONCE} judges at once, asked over HTTP, a model of {model:g} s, queue in {where}": {
        "queue": queue,
        "model": model,
        "questions": each,
    }
    for model, each in ((SLOW, 12), (FAST, 40))
    for queue, where in (("memory", "memory"), ("sqlite", "SQLite"))
} | {
    f"{AT_ONCE} judges at once, a model that sleeps {SECONDS:g} s in this process, queue in {where}": {"queue": queue}
    for queue, where in (("memory", "memory"), ("sqlite", "SQLite"))
}
"""What is measured: the queue, the model's seconds, and how often each thread asks it."""
LEAST_SHARE, MOST_CPU = 0.9, 1_000.0
"""Of the slow model: the least share of what it would give if asking took no time, and the most µs of the processor per question."""


class _Sleeping(JudgeModel):
    """A judge that answers after a while, and takes nothing of the processor."""

    model = "sleeping"

    def ask(self, stage: str, task: str, data: Mapping[str, Any], reply: str, **_: Any) -> dict[str, Any]:
        time.sleep(SECONDS)
        return {"score": 90, "reasoning": "It answers."}


def jobs_per_second(backend: str, jobs: int, at_once: int, *, http: bool = False) -> float:
    """Acknowledged jobs per second; the queue is full before the first one is asked."""
    with ExitStack() as stack:
        if http:
            url = stack.enter_context(_served(SECONDS))
        else:
            url = "http://127.0.0.1:1/v1"
            stack.callback(setattr, factory, "judge_from", factory.judge_from)
            factory.judge_from = lambda *_, **__: _Sleeping()  # type: ignore[assignment, return-value]
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        queue = {"backend": "sqlite", "path": str(Path(folder) / "q.db")} if backend == "sqlite" else {}
        return _measured(*_judging(url, at_once, queue), jobs)[0]


def _judging(url: str, at_once: int, queue: Mapping[str, str]) -> tuple[AgentEvalSpanProcessor, TracerProvider]:
    processor = AgentEvalSpanProcessor({
        "judge": {"base_url": url, "model": "m-1", "max_concurrency": at_once, "queue": queue},
        "metrics": ["llm_relevance"], "inline": {"metrics": []}, "outlets": {"log_events": False, "prometheus": None},
    })  # fmt: skip
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
    """The base URL of a model that takes its time, in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER, str(seconds)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait()


def _measured(processor: AgentEvalSpanProcessor, provider: TracerProvider, jobs: int) -> tuple[float, float]:
    """Acknowledged jobs per second, and this process's seconds of the processor per job."""
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
    while judges.queue.depth:  # not by a drain, which hurries the worker
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


def over_http(backend: str, seconds: float, questions: int) -> dict[str, float]:
    """Ask a model that takes so many seconds, so often by each thread. Threads, connections and prices are made in that time, too."""
    with _served(seconds) as url, tempfile.TemporaryDirectory() as folder:
        queue = {"backend": "sqlite", "path": str(Path(folder) / "q.db")} if backend == "sqlite" else {}
        rate, cpu = _measured(*_judging(url, AT_ONCE, queue), questions * AT_ONCE)
    return {"seconds": 1 / rate, "cpu": cpu * 1e6}


def in_process(backend: str) -> dict[str, float]:
    """The same of a model that sleeps in this process."""
    return {"seconds": 1 / jobs_per_second(backend, JOBS, AT_ONCE)}


def rows(found: harness.Runs) -> list[harness.Row]:
    """The lines of the table."""
    made = []
    for setup, what in SETUPS.items():
        ideal = what.get("model", SECONDS) / AT_ONCE
        best = found.best(setup, "seconds")
        row = harness.Row(setup, f"{1 / best:.0f} questions/s", f"{ideal / best:.2f} × ideal")
        if what.get("model") == SLOW:
            row.bound, row.over = f"≥ {LEAST_SHARE} × ideal", LEAST_SHARE * best / ideal
        before = found.before(setup, "seconds")
        made.append(row.compared(1 / best, None if before is None else 1 / before, "{:.0f} questions/s"))
        if "model" in what:
            cpu = found.best(setup, "cpu")
            of_it = harness.Row("CPU of the judging process for each of them", f"{cpu:.0f} µs")
            if what["model"] == SLOW:
                of_it.bound, of_it.over = f"≤ {MOST_CPU:.0f} µs", cpu / MOST_CPU
            made.append(of_it.compared(cpu, found.before(setup, "cpu")))
    return made


def main() -> int:
    """Measure, print, and say by the exit status whether the bounds hold."""
    options = harness.parser(__doc__)
    options.add_argument("--rounds", type=int, default=2, help="of each setup")
    args = options.parse_args()
    logging.disable(logging.CRITICAL)
    if args.child:
        what = json.loads(args.child)
        http = "model" in what
        print(json.dumps(over_http(what["queue"], what["model"], what["questions"]) if http else in_process(what["queue"])))
        return 0
    return harness.report(rows(harness.alternate(__file__, SETUPS, args.against, args.rounds)), args, "judges")


if __name__ == "__main__":
    sys.exit(main())
