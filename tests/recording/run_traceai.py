"""Record traceAI by Future AGI: its decorators with its OpenAI instrumentation, and its LangChain instrumentation.

    uv pip install fi-instrumentation-otel==1.1.0 traceai-openai==0.1.10 traceai-langchain==0.2.0 \
        openai langchain langchain-openai langgraph
"""

import contextlib
import sys

from agents import LangChainAgent, OpenAIAgent, exporter, openai_client, play
from fi_instrumentation import FITracer, register, using_session, using_user
from fi_instrumentation.fi_types import FiSpanKindValues, ProjectType
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = register(project_name="shop", project_type=ProjectType.OBSERVE, set_global_tracer_provider=True, verbose=False)
provider.add_span_processor(BatchSpanProcessor(exporter()))  # it takes the place of the vendor's own
tracer = FITracer(provider.get_tracer(__name__))


def session(told):
    stack = contextlib.ExitStack()
    if told["conversation_id"]:
        stack.enter_context(using_session(told["conversation_id"]))
        stack.enter_context(using_user("u-7"))
    return stack


def wrap(kind, name):
    if kind == "tool":
        return tracer.tool(name=name)
    if kind == "agent":
        return tracer.agent(name=name)

    def decorate(function):
        def retrieve(query):
            with tracer.start_as_current_span(name, fi_span_kind=FiSpanKindValues.RETRIEVER) as span:
                span.set_input(query)
                found = function(query)
                for number, item in enumerate(found):
                    span.set_attribute(f"retrieval.documents.{number}.document.id", item["id"])
                    span.set_attribute(f"retrieval.documents.{number}.document.content", item["content"])
                    span.set_attribute(f"retrieval.documents.{number}.document.score", item["score"])
                return found

        return retrieve

    return decorate


def by_decorators(told):
    agent = OpenAIAgent(told, client, wrap)
    assistant = tracer.agent(name="assistant")(agent.answer)

    def handle(question):
        with session(told):
            return assistant(question)

    return handle


def by_instrumentation(told):
    agent = LangChainAgent(told)

    def handle(question):
        with session(told):
            return agent.answer(question)

    return handle


PACKAGES = ("fi-instrumentation-otel", "openai")
if "langchain" in sys.argv[-1]:
    from traceai_langchain import LangChainInstrumentor

    LangChainInstrumentor().instrument(tracer_provider=provider)
    play("traceai-langchain", by_instrumentation, provider.force_flush, (*PACKAGES, "traceai-langchain", "langchain", "langgraph"))
else:
    from traceai_openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=provider)
    client = openai_client()
    play("traceai-openai", by_decorators, provider.force_flush, (*PACKAGES, "traceai-openai"))
