"""Record Logfire: its spans around a loop with instrument_openai.

    uv pip install logfire==5.2.0 openai
"""

import logfire
from agents import OpenAIAgent, exporter, openai_client, play
from opentelemetry.sdk.trace.export import BatchSpanProcessor

processor = BatchSpanProcessor(exporter())
logfire.configure(send_to_logfire=False, service_name="shop", console=False, additional_span_processors=[processor], inspect_arguments=False)


def wrap(kind, name):
    return logfire.instrument(name, extract_args=True, record_return=True)


def by_spans(told):
    agent = OpenAIAgent(told, openai_client(), wrap)

    def handle(question):
        with logfire.set_baggage(**({"session.id": told["conversation_id"]} if told["conversation_id"] else {})):
            with logfire.span("handle_message", question=question):
                return agent.answer(question)

    return handle


logfire.instrument_openai()
play("logfire-openai-v5", by_spans, processor.force_flush, ("logfire", "openai"))
