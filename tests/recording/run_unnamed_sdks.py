"""Record tracing SDKs that the project has no dialect for, each in an environment and a process of its own (``--sets NAME``).

monocle_apptrace 0.8.15, judgeval 1.6.0, honeyhive 1.7.0, trulens-core 2.16.0 over the loop around OpenAI's client or LangChain.
"""

import os
import uuid

from agents import ARGS, STAGE, LangChainAgent, OpenAIAgent, exporter, openai_client, play
from opentelemetry import trace
from opentelemetry.sdk.trace.export import BatchSpanProcessor

SET = ARGS.sets
FLUSH = []


def flush():
    for one in FLUSH or [trace.get_tracer_provider().force_flush]:
        one()


def monocle():
    from monocle_apptrace.instrumentation.common.instrumentor import setup_monocle_telemetry
    from monocle_apptrace.instrumentation.common.scope_wrapper import monocle_trace_scope

    setup_monocle_telemetry(workflow_name="shop_assistant", span_processors=[BatchSpanProcessor(exporter())])

    def make(told):
        agent = LangChainAgent(told) if SET == "monocle-langchain" else OpenAIAgent(told, openai_client())

        def ask(question):
            if told["conversation_id"] is None:
                return agent.answer(question)
            with monocle_trace_scope("agentic.session", told["conversation_id"]):
                return agent.answer(question)

        return ask

    return make, ("monocle_apptrace",)


def judgeval():
    from judgeval import Tracer, wrap

    os.environ.update(JUDGMENT_API_KEY="x", JUDGMENT_ORG_ID="x", JUDGMENT_API_URL=STAGE)
    tracer = Tracer.init(project_name="shop", api_key="x", organization_id="x", api_url=STAGE, span_processors=[BatchSpanProcessor(exporter())])
    FLUSH.append(tracer.force_flush)
    client = wrap(openai_client())

    def decorate(kind, name):
        return lambda function: Tracer.observe(span_type="tool" if kind == "retriever" else kind, span_name=name)(function)

    def make(told):
        agent = OpenAIAgent(told, client, decorate)

        @Tracer.observe(span_type="agent")
        def handle_message(question):
            if told["conversation_id"]:
                Tracer.set_session_id(told["conversation_id"])
            return agent.answer(question)

        return handle_message

    return make, ("judgeval",)


def honeyhive():
    from honeyhive import HoneyHiveTracer
    from honeyhive import trace as traced

    tracer = HoneyHiveTracer.init(api_key="x", project="shop", server_url=STAGE, session_id=str(uuid.UUID(int=7)), disable_batch=True)
    FLUSH.append(tracer.force_flush)
    tracer.provider.add_span_processor(BatchSpanProcessor(exporter()))
    FLUSH.append(tracer.provider.force_flush)
    kinds = {"agent": "chain", "tool": "tool", "retriever": "tool"}
    client = openai_client()

    def make(told):
        agent = OpenAIAgent(told, client, lambda kind, name: traced(event_type=kinds[kind], event_name=name, tracer=tracer))
        ask = agent.ask

        @traced(event_type="model", event_name="chat", tracer=tracer)
        def chat(messages, tools):
            message = ask(messages, tools)
            tracer.enrich_span(metadata={"model": agent.model}, outputs={"message": message})
            return message

        agent.ask = chat

        @traced(event_type="chain", event_name="handle_message", tracer=tracer)
        def handle_message(question):
            return agent.answer(question)

        return handle_message

    return make, ("honeyhive",)


def trulens():
    from trulens.apps.app import TruApp
    from trulens.core import TruSession
    from trulens.core.database.connector import DefaultDBConnector
    from trulens.core.otel.instrument import instrument
    from trulens.otel.semconv.trace import SpanAttributes

    trace_types = SpanAttributes.SpanType
    kinds = {"agent": trace_types.AGENT, "tool": trace_types.TOOL, "retriever": trace_types.RETRIEVAL}
    client = openai_client()
    session = TruSession(connector=DefaultDBConnector(database_url="sqlite:///:memory:"), span_exporter=exporter())
    FLUSH.append(session.force_flush)

    def make(told):
        agent = OpenAIAgent(told, client, lambda kind, name: lambda function: instrument(span_type=kinds[kind], attributes=None)(named(function, name)))
        agent.ask = instrument(span_type=trace_types.GENERATION)(agent.ask)

        class Shop:
            @instrument()
            def handle_message(self, question: str) -> str:
                return agent.answer(question)

        shop = Shop()
        app = TruApp(shop, app_name="shop", app_version="1", main_method=shop.handle_message)

        def ask(question):
            with app:
                return shop.handle_message(question)

        return ask

    return make, ("trulens-core",)


def named(function, name):
    function.__name__ = function.__qualname__ = name
    return function


make, packages = {"monocle": monocle, "judgeval": judgeval, "honeyhive": honeyhive, "trulens": trulens}[SET.partition("-")[0]]()
play(SET, make, flush, packages)
