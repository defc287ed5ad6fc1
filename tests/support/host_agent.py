"""An agent in one kind of host program. ``python host_agent.py KIND FOLDER`` runs concurrent turns and prints their scores.

The agent answers forty questions with a tool, eight at a time. Each question sets its own expected answer with ``expect``. A score
therefore fails if a turn gets spans or references of another turn. The last line of the output is JSON: turns, scores by result, and
the exported roots with score events.

The script imports only the standard library, the SDK and the packages of a kind, so that it runs in any environment.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

TURNS, AT_ONCE = 40, 8
METRICS = ["code_equals_ground_truth", "code_tool_success"]


def _messages(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


class Agent:
    """Answers with two model calls and a tool call, and lets other turns run in between."""

    def __init__(self, tracer: Any, expect: Callable[..., Any]) -> None:
        self.tracer = tracer
        self.expect = expect

    @contextlib.contextmanager
    def _span(self, name: str, operation: str, **more: str) -> Iterator[Any]:
        attributes = {
            "gen_ai.operation.name": operation,
            **{f"gen_ai.{key.replace('__', '.')}": text for key, text in more.items()},
        }
        with self.tracer.start_as_current_span(name, attributes=attributes) as span:
            yield span

    def steps(self, number: int) -> Iterator[None]:
        """Run one turn, with a pause after each step."""
        answer = f"Room {number} is free."
        asked = _messages("user", f"Is room {number} free?")
        with (
            self.expect(ground_truth=answer),
            self._span("invoke_agent desk", "invoke_agent", agent__name="desk", input__messages=asked) as root,
        ):
            with self._span("chat m", "chat", request__model="m", input__messages=asked):
                yield
            given = {"tool__name": "rooms", "tool__call__arguments": json.dumps({"room": number})}
            with self._span("execute_tool rooms", "execute_tool", **given, tool__call__result='{"free": true}'):
                yield
            with self._span("chat m", "chat", request__model="m", output__messages=_messages("assistant", answer)):
                yield
            root.set_attribute("gen_ai.output.messages", _messages("assistant", answer))


# --- kinds of host programs


def _in_threads(agent: Agent) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from time import sleep

    def answer(number: int) -> None:
        for _ in agent.steps(number):
            sleep(0)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(answer, range(TURNS)))


async def _in_tasks(agent: Agent) -> None:
    room = asyncio.Semaphore(AT_ONCE)

    async def answer(number: int) -> None:
        async with room:
            for _ in agent.steps(number):
                await asyncio.sleep(0)

    await asyncio.gather(*map(answer, range(TURNS)))


def _in_asyncio(agent: Agent) -> None:
    asyncio.run(_in_tasks(agent))


def _in_uvloop(agent: Agent) -> None:
    import uvloop

    work: Coroutine[Any, Any, None] = _in_tasks(agent)
    uvloop.run(work)


def _in_greenlets(agent: Agent) -> None:
    import gevent
    from gevent.pool import Pool

    def answer(number: int) -> None:
        for _ in agent.steps(number):
            gevent.sleep(0)

    Pool(AT_ONCE).map(answer, range(TURNS))


KINDS: dict[str, Callable[[Agent], None]] = {
    "threads": _in_threads,
    "asyncio": _in_asyncio,
    "uvloop": _in_uvloop,
    "gevent": _in_greenlets,
    "distro": _in_threads,
    "logfire": _in_threads,
    "langfuse": _in_threads,
}


# --- tracer providers


def _provider_of(kind: str) -> Any:
    """Return the tracer provider of this kind of program."""
    from opentelemetry import trace

    if kind == "logfire":
        import logfire

        logfire.configure(send_to_logfire=False, console=False)
    elif kind == "langfuse":
        from langfuse import Langfuse

        Langfuse(public_key="pk", secret_key="sk", base_url="http://127.0.0.1:1")  # no server at this address
    elif kind != "distro":  # created before this program started
        from opentelemetry.sdk.trace import TracerProvider

        trace.set_tracer_provider(TracerProvider())
    return trace.get_tracer_provider()


def main(kind: str, folder: Path) -> None:
    if kind == "gevent":
        from gevent import monkey

        monkey.patch_all()
    provider = _provider_of(kind)
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor
    from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

    import otel_agenteval as oa

    rows = folder / "scores.jsonl"
    exporter = InMemorySpanExporter()
    if kind == "distro":  # attached by the entry point, configured with environment variables
        handle = oa.instrument()
        assert os.environ["OTEL_AGENTEVAL_OUTLETS__JSONL"] == str(rows)
    else:
        handle = oa.instrument(
            config={"inline": {"metrics": METRICS, "expected": False}, "outlets": {"jsonl": str(rows), "prometheus": None}}
        )
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    KINDS[kind](Agent(provider.get_tracer("acme.desk"), oa.expect))
    delivered = handle.flush(30)
    handle.shutdown()
    scores = [json.loads(line) for line in rows.read_text(encoding="utf-8").splitlines()]
    roots = [span for span in exporter.get_finished_spans() if span.name == "invoke_agent desk"]
    outcome = {
        "delivered": delivered,
        "turns": len({score["turn_id"] for score in scores}),
        "scores": Counter(f"{score['metric']} {score['value']}" for score in scores),
        "roots": len(roots),
        "roots with scores": sum(len(METRICS) == len(span.events) for span in roots),
    }
    sys.stdout.write(json.dumps(outcome) + "\n")


def expected() -> dict[str, Any]:
    """Return the expected result, which is the same for every kind."""
    scores = {f"{metric} 1.0": TURNS for metric in METRICS}
    return {"delivered": True, "turns": TURNS, "scores": scores, "roots": TURNS, "roots with scores": TURNS}


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
