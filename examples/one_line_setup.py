"""Score an agent with one call, ``oa.instrument()``, and print the scores.

    python examples/one_line_setup.py

The function ``agent`` stands in for your agent. Your instrumentation must write GenAI spans, as this function does.
"""

from __future__ import annotations

import json

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import otel_agenteval as oa

FACTS = "You guide visitors. The tower was finished in 1889 and is 324 metres high: https://tower.example/facts"


def set_up_opentelemetry() -> InMemorySpanExporter:
    """Set up OpenTelemetry as your application already does, for example with an OTLP exporter."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def agent(question: str) -> str:
    """Answer with an invented link, in an instrumented span."""
    tracer = trace.get_tracer("my.agent")
    answer = "The tower is 324 metres high. See https://big-tower.example/facts."
    with tracer.start_as_current_span("invoke_agent guide") as run:
        run.set_attributes({"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "guide"})
        with tracer.start_as_current_span("chat small-model") as call:
            call.set_attributes({"gen_ai.operation.name": "chat", "gen_ai.request.model": "small-model"})
            call.set_attribute("gen_ai.system_instructions", json.dumps([{"type": "text", "content": FACTS}]))
            call.set_attribute("gen_ai.input.messages", _message("user", question))
            call.set_attribute("gen_ai.output.messages", _message("assistant", answer))
            call.set_attribute("gen_ai.response.finish_reasons", ["stop"])
    return answer


def _message(role: str, text: str) -> str:
    return json.dumps([{"role": role, "parts": [{"type": "text", "content": text}]}])


exporter = set_up_opentelemetry()
handle = oa.instrument()  # scores each turn. In your application, you add only this call.

agent("How high is the tower?")

root = exporter.get_finished_spans()[-1]
for event in root.events:
    attributes = dict(event.attributes or {})
    print(
        attributes["gen_ai.evaluation.name"],
        attributes["gen_ai.evaluation.score.value"],
        attributes.get("gen_ai.evaluation.score.label") or attributes.get("agenteval.severity", ""),
    )
handle.shutdown()
