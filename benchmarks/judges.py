"""How many judged metrics a second 200 judges at once make of a model that takes 50 ms, through the real queue and worker.

    python benchmarks/judges.py

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

from opentelemetry.sdk.trace import TracerProvider

from otel_agenteval.instrumentation.span_processor import AgentEvalSpanProcessor
from otel_agenteval.judging import factory
from otel_agenteval.judging.models.base import JudgeModel

JOBS, AT_ONCE, SECONDS = 12_000, 200, 0.05


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
            url = stack.enter_context(_served())
        else:
            url = "http://127.0.0.1:1/v1"
            stack.callback(setattr, factory, "judge_from", factory.judge_from)
            factory.judge_from = lambda *_, **__: _Sleeping()  # type: ignore[assignment, return-value]
        folder = stack.enter_context(tempfile.TemporaryDirectory())
        queue = {"backend": "sqlite", "path": str(Path(folder) / "q.db")} if backend == "sqlite" else {}
        processor = AgentEvalSpanProcessor({
            "judge": {"base_url": url, "model": "m-1", "max_concurrency": at_once, "queue": queue},
            "metrics": ["llm_relevance"], "inline": {"metrics": []}, "outlets": {"log_events": False, "prometheus": None},
        })  # fmt: skip
        provider = TracerProvider(shutdown_on_exit=False)
        provider.add_span_processor(processor)
        return _measured(processor, provider, jobs)


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
def _served() -> Iterator[str]:
    """The base URL of a model that takes its time, in a process of its own."""
    process = subprocess.Popen([sys.executable, "-c", _SERVER, str(SECONDS)], stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.0.1:{int(process.stdout.readline())}/v1"
    finally:
        process.terminate()
        process.wait()


def _measured(processor: AgentEvalSpanProcessor, provider: TracerProvider, jobs: int) -> float:
    judges = processor.engine.judging
    assert judges is not None
    judges.may_start = False
    tracer = provider.get_tracer("acme.app")
    for _ in range(jobs):
        _turn(tracer)
    assert processor.engine.flush(120)
    judges.may_start = True
    started = time.perf_counter()
    judges.start(jobs)
    while judges.queue.depth:  # not by a drain, which hurries the worker
        time.sleep(0.01)
    taken = time.perf_counter() - started
    provider.shutdown()
    return jobs / taken


def _turn(tracer: Any) -> None:
    said = {
        "gen_ai.input.messages": [{"role": "user", "parts": [{"type": "text", "content": "How far is it to the moon?"}]}],
        "gen_ai.output.messages": [{"role": "assistant", "parts": [{"type": "text", "content": "384,400 km on average."}]}],
    }
    with tracer.start_as_current_span("invoke_agent bot", attributes={"gen_ai.operation.name": "invoke_agent"}):
        tracer.start_span(
            "chat m-1", attributes={"gen_ai.operation.name": "chat", **{key: json.dumps(value) for key, value in said.items()}}
        ).end()


def main() -> int:
    """Print both rates."""
    logging.disable(logging.CRITICAL)
    for backend in ("memory", "sqlite"):
        rate = jobs_per_second(backend, JOBS, AT_ONCE)
        print(f"{AT_ONCE} at once, {backend}: {rate:.0f} jobs/s, {rate * SECONDS / AT_ONCE:.0%} of the ideal")
    for at_once in (8, 50, AT_ONCE):
        rate = jobs_per_second("memory", 60 * at_once, at_once, http=True)
        print(f"{at_once} at once, over HTTP: {rate:.0f} jobs/s, {rate * SECONDS / at_once:.0%} of the ideal")
    return 0


if __name__ == "__main__":
    sys.exit(main())
