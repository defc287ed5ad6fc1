"""Score a Pydantic AI agent.

    pip install './otel-agenteval' pydantic-ai-slim
    python examples/pydantic_ai_agent.py

The model is a script, so you don't need a key or network access. You can replace it with a real model: ``Agent("openai:…")``.
"""

from __future__ import annotations

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

import otel_agenteval as oa

# your application's existing OpenTelemetry provider, and pydantic-ai's tracing
exporter = InMemorySpanExporter()  # add your OTLP exporter here
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(exporter))
trace.set_tracer_provider(provider)
Agent.instrument_all()

STEPS = (
    ModelResponse(parts=[ToolCallPart("departures", {"station": "Basel"}, tool_call_id="call_1")], finish_reason="tool_call"),
    ModelResponse(parts=[TextPart("Two trains leave: at 06:28 and at 08:28, for 79 CHF.")], finish_reason="stop"),
)


def script(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
    """Return the next step after the steps in the history. The price in the last step is made up."""
    return STEPS[sum(isinstance(message, ModelResponse) for message in messages)]


agent = Agent(FunctionModel(script, model_name="scripted"), name="timetable")


@agent.tool_plain
def departures(station: str) -> str:
    """When trains leave."""
    return f"{station}: 06:28, 08:28"


handle = oa.instrument()  # scores each turn

print(agent.run_sync("When does a train leave Basel, and what does it cost?").output)

root = next(span for span in exporter.get_finished_spans() if span.parent is None)
for event in root.events:
    attributes = dict(event.attributes or {})
    print(
        attributes["gen_ai.evaluation.name"],
        attributes["gen_ai.evaluation.score.value"],
        attributes.get("gen_ai.evaluation.score.label") or attributes.get("agenteval.severity", ""),
    )
handle.shutdown()
