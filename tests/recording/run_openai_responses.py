"""Record the OpenAI SDK's Responses API under Traceloop's instrumentation: a hand-written loop, in two ways to keep the history.

    uv pip install openai==3.54.0 opentelemetry-instrumentation-openai==0.62.4 opentelemetry-exporter-otlp-proto-http==1.45.2

The sets of 0.50 need ``opentelemetry-instrumentation-openai==0.50.1``.
"""

import json
from importlib.metadata import version

from agents import INSTRUCTIONS, SPECIALIST, TOOLS, OrderServiceError, exporter, openai_client, play, schema
from opentelemetry import trace
from opentelemetry.instrumentation.openai import OpenAIInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter()))
trace.set_tracer_provider(provider)
OpenAIInstrumentor().instrument()
client = openai_client()
tracer = trace.get_tracer("shop")


class Agent:
    """``by_id``: the server keeps the history, and each request names the response before it."""

    def __init__(self, told, by_id, instructions=INSTRUCTIONS):
        self.told, self.by_id, self.instructions = told, by_id, instructions
        self.tools = {name: TOOLS[name] for name in told["tools"]}
        if told["sub_agent"]:
            inner = Agent({**told, "sub_agent": None}, by_id, SPECIALIST)
            self.tools = {"travel_specialist": lambda task: inner.answer(task)}
        self.history, self.previous = [], None

    def answer(self, question):
        if self.told["documents"]:
            context = "\n\n".join(document["content"] for document in self.told["documents"])
            question = f"Documents:\n{context}\n\nQuestion: {question}"
        before = len(self.history)
        given = [{"role": "user", "content": question}]
        try:
            return self.loop(given)
        except Exception:
            del self.history[before:]
            raise

    def loop(self, given):
        while True:
            self.history += given
            response = self.ask(self.history if not self.by_id else given)
            self.previous = response.id
            self.history += response.output
            asked = [item for item in response.output if item.type == "function_call"]
            if not asked:
                return response.output_text
            given = [{"type": "function_call_output", "call_id": item.call_id, "output": self.run(item)} for item in asked]

    def run(self, item):
        try:
            result = self.tools[item.name](**json.loads(item.arguments))
        except OrderServiceError as error:
            result = f"Error: {error}"
        return result if isinstance(result, str) else json.dumps(result)

    def ask(self, given):
        more = {"tools": [{"type": "function", **schema(name)["function"]} for name in self.tools]} if self.tools else {}
        if self.by_id and self.previous:
            more["previous_response_id"] = self.previous
        request = {"model": "gpt-4.1-mini", "instructions": self.instructions, "input": given, **more}
        if not self.told["stream"]:
            return client.responses.create(**request)
        for event in client.responses.create(**request, stream=True):
            if event.type == "response.completed":
                whole = event.response
        return whole


def bare(told):
    return Agent(told, by_id=False).answer


def under_a_request(told):
    agent = Agent(told, by_id=True)

    def handle(question):
        with tracer.start_as_current_span("POST /chat", attributes={"session.id": told["conversation_id"]} if told["conversation_id"] else {}):
            return agent.answer(question)

    return handle


def bare_by_id(told):
    return Agent(told, by_id=True).answer


PACKAGES = ("openai", "opentelemetry-instrumentation-openai")
NAME = "openai-responses-traceloop" + ("" if version(PACKAGES[1]) > "0.6" else "-0.50")
play(NAME, bare, provider.force_flush, PACKAGES, finish={"no_session": True, "no_agents": True})
play(f"{NAME}-by-id", bare_by_id, provider.force_flush, PACKAGES, finish={"no_session": True, "no_agents": True})
play(f"{NAME}-request", under_a_request, provider.force_flush, PACKAGES, finish={"no_agents": True})
