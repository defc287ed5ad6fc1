"""Declare the expected tools or answer of a turn in your code, with ``expect()``.

    python examples/references.py

References stay in the process. asyncio tasks and ``asyncio.to_thread`` inherit them, but other threads don't.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa

provider = TracerProvider()
tracer = provider.get_tracer("my.agent")


def agent(question: str, *tools: str) -> None:
    """Call the given tools, in instrumented spans."""
    said = json.dumps([{"role": "user", "parts": [{"type": "text", "content": question}]}])
    attributes = {"gen_ai.operation.name": "invoke_agent", "gen_ai.input.messages": said}
    with tracer.start_as_current_span("invoke_agent guide", attributes=attributes):
        for tool in tools:
            with tracer.start_as_current_span(f"execute_tool {tool}") as span:
                span.set_attributes({"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": tool})


scores = Path(tempfile.mkdtemp()) / "scores.jsonl"
handle = oa.instrument(
    tracer_provider=provider,
    config={"inline": {"metrics": []}, "outlets": {"jsonl": str(scores), "prometheus": None}},
)

with oa.expect(expected_tools=["search", "book"]):  # turns on the metrics that compare tool calls
    agent("Book me a table", "search", "book")
    agent("Book me a table", "search")

agent("This turn has no expected tools", "search")  # not scored

handle.shutdown()
for line in scores.read_bytes().splitlines():
    score = json.loads(line)
    print(score["metric"], score["value"], score.get("label", ""))
