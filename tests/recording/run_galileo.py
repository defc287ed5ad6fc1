"""Record Galileo's OpenTelemetry mode: its typed spans around model calls that OpenInference records; exported to the stage.

    uv pip install galileo[otel]==2.7.0 openai openinference-instrumentation-openai
"""

import json

from agents import OpenAIAgent, exporter, openai_client, play
from galileo import otel
from galileo_core.schemas.shared.document import Document
from galileo_core.schemas.logging.span import RetrieverSpan, ToolSpan, WorkflowSpan
from openinference.instrumentation.openai import OpenAIInstrumentor
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter()))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument(tracer_provider=provider)


def wrap(kind, name):
    def decorate(function):
        def tool(**arguments):
            step = ToolSpan(name=name, input=json.dumps(arguments))
            with otel.start_galileo_span(step):
                result = function(**arguments)
                step.output = result if isinstance(result, str) else json.dumps(result)
                return result

        def retrieve(query):
            step = RetrieverSpan(name=name, input=query)
            with otel.start_galileo_span(step):
                found = function(query)
                step.output = [Document(content=item["content"], metadata={"id": item["id"], "score": item["score"]}) for item in found]
                return found

        def run(question):
            step = WorkflowSpan(name=name, input=question)
            with otel.start_galileo_span(step) as span:
                session = getattr(wrap, "session", None)
                if session:
                    span.set_attribute("galileo.session.id", session)
                step.output = function(question)
                return step.output

        return {"tool": tool, "retriever": retrieve}.get(kind, run)

    return decorate


def by_spans(told):
    wrap.session = told["conversation_id"]
    return wrap("workflow", "handle_message")(OpenAIAgent(told, openai_client(), wrap).answer)


play("galileo-otel-openai", by_spans, provider.force_flush, ("galileo", "openai", "openinference-instrumentation-openai"))
