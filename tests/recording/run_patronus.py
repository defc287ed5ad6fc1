"""Record Patronus: @traced writes a span without content and a log record with it; model calls come from OpenInference.

    uv pip install patronus==0.1.26 openai openinference-instrumentation-openai
"""

from agents import STAGE, OpenAIAgent, openai_client, play

import patronus
from openinference.instrumentation.openai import OpenAIInstrumentor

context = patronus.init(
    project_name="shop", app="shop", service="shop", api_key="x", otel_endpoint=STAGE, otel_exporter_otlp_protocol="http/protobuf",
    integrations=[OpenAIInstrumentor()],
)  # fmt: skip


def wrap(kind, name):
    return patronus.traced(name)


def by_decorators(told):
    agent = OpenAIAgent(told, openai_client(), wrap)
    return patronus.traced("handle_message")(lambda question: agent.answer(question))


def flush():
    context.tracer_provider.force_flush()
    context.logger_provider.force_flush()


play("patronus-openai", by_decorators, flush, ("patronus", "openai", "openinference-instrumentation-openai"), finish={"no_session": True})
