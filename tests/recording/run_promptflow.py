"""Record Promptflow's tracing: ``@trace`` on an application's functions, and the OpenAI calls that it sees by itself.

    uv pip install promptflow-tracing==1.18.5 openai==3.54.0 opentelemetry-exporter-otlp-proto-http==1.38.0
"""

import os

os.environ["PF_DISABLE_TRACING"] = "false"

from agents import OpenAIAgent, exporter, openai_client, play
from opentelemetry import trace as otel
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from promptflow.tracing import start_trace, trace
from promptflow.tracing._operation_context import OperationContext

start_trace(collection="shop")
otel.get_tracer_provider().add_span_processor(BatchSpanProcessor(exporter()))
client = openai_client()


def wrap(kind, name):
    def decorate(function):
        function.__name__ = function.__qualname__ = name
        return trace(function)

    return decorate


def make(told):
    context = OperationContext.get_instance()
    if told["conversation_id"]:
        context._add_otel_attributes("session_id", told["conversation_id"])
    else:
        context._remove_otel_attributes(["session_id"])
    agent = OpenAIAgent(told, client, wrap)

    @trace
    def chat(question: str) -> str:
        return agent.answer(question)

    return chat


play("promptflow", make, otel.get_tracer_provider().force_flush, ("promptflow-tracing", "openai"), finish={"no_agents": True})
