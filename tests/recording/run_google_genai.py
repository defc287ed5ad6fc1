"""Record Google's Gen AI SDK: a chat whose tools the SDK calls itself, and a loop by hand.

    uv pip install google-genai==3.4.0 openinference-instrumentation-google-genai==1.4.14 opentelemetry-instrumentation-google-genai==1.3b0

The sets of 1.50 need google-genai==1.50.1, whose SDK wrote one span over all calls of a turn, openinference-instrumentation-google-genai==0.1.8
and opentelemetry-instrumentation-google-genai==0.4b0.
"""

import os
from contextlib import nullcontext
from importlib.metadata import version

os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = os.environ.get("CONTENT", "SPAN_ONLY")

from agents import INSTRUCTIONS, SPECIALIST, STAGE, OrderServiceError, call, exporter, play
from google import genai
from google.genai import types
from openinference.instrumentation import using_session
from openinference.instrumentation.google_genai import GoogleGenAIInstrumentor
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter()))
trace.set_tracer_provider(provider)
logs = LoggerProvider()
logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{STAGE}/v1/logs")))
options = types.HttpOptions(base_url=STAGE, retry_options=types.HttpRetryOptions(attempts=1))
client = genai.Client(api_key="x", http_options=options)
MODEL = "gemini-2.5-flash"
_NAMES = {"get_weather": {"city": "STRING"}, "convert_currency": {"amount": "NUMBER", "currency": "STRING"}, "lookup_order": {"order_id": "STRING"}, "check_job": {"job_id": "STRING"}, "travel_specialist": {"task": "STRING"}}  # fmt: skip


def get_weather(city: str) -> str:
    """Get the current weather of a city."""
    return call("get_weather", {"city": city})


def convert_currency(amount: float, currency: str) -> dict:
    """Convert an amount of US dollars to another currency."""
    return call("convert_currency", {"amount": amount, "currency": currency})


def lookup_order(order_id: str) -> str:
    """Look up an order by its id."""
    return call("lookup_order", {"order_id": order_id})


def check_job(job_id: str) -> str:
    """Check whether a job is done."""
    return call("check_job", {"job_id": job_id})


TOOLS = {function.__name__: function for function in (get_weather, convert_currency, lookup_order, check_job)}  # the SDK reads annotations


def prompt(told, question):
    if not told["documents"]:
        return question
    context = "\n\n".join(document["content"] for document in told["documents"])
    return f"Context:\n{context}\n\nQuestion: {question}"


class Automatic:
    """The SDK runs the tools."""

    def __init__(self, told, instructions=INSTRUCTIONS):
        self.told = told
        tools = [TOOLS[name] for name in told["tools"]]
        if told["sub_agent"]:
            inner = Automatic({**told, "sub_agent": None}, SPECIALIST)

            def travel_specialist(task: str) -> str:
                """Ask the travel specialist."""
                return inner.answer(task)

            tools = [travel_specialist]
        self.chat = client.chats.create(model=MODEL, config=types.GenerateContentConfig(system_instruction=instructions, tools=tools or None))

    def answer(self, question):
        text = prompt(self.told, question)
        if self.told["stream"]:
            return "".join(chunk.text or "" for chunk in self.chat.send_message_stream(text))
        return self.chat.send_message(text).text


class ByHand:
    """The application runs the tools."""

    def __init__(self, told, instructions=INSTRUCTIONS):
        self.told = told
        self.tools = {name: TOOLS[name] for name in told["tools"]}
        if told["sub_agent"]:
            inner = ByHand({**told, "sub_agent": None}, SPECIALIST)
            self.tools = {"travel_specialist": lambda task: inner.answer(task)}
        declared = [
            types.FunctionDeclaration(name=name, description=name, parameters={"type": "OBJECT", "properties": {key: {"type": kind} for key, kind in _NAMES[name].items()}})
            for name in self.tools
        ]
        tools = [types.Tool(function_declarations=declared)] if declared else None
        self.config = types.GenerateContentConfig(system_instruction=instructions, tools=tools)
        self.history = []

    def answer(self, question):
        contents = [*self.history, types.Content(role="user", parts=[types.Part(text=prompt(self.told, question))])]
        while True:
            said = self.ask(contents)
            contents.append(said)
            asked = [part.function_call for part in said.parts if part.function_call]
            if not asked:
                self.history = contents
                return "".join(part.text or "" for part in said.parts)
            contents.append(types.Content(role="user", parts=[types.Part.from_function_response(name=call.name, response=self.run(call)) for call in asked]))

    def run(self, call):
        try:
            return {"result": self.tools[call.name](**call.args)}
        except OrderServiceError as error:
            return {"error": str(error)}

    def ask(self, contents):
        if not self.told["stream"]:
            return client.models.generate_content(model=MODEL, contents=contents, config=self.config).candidates[0].content
        parts = []
        for chunk in client.models.generate_content_stream(model=MODEL, contents=contents, config=self.config):
            parts += chunk.candidates[0].content.parts or []
        return types.Content(role="model", parts=parts)


def in_session(agent):
    def make(told):
        made = agent(told)
        conversation = told["conversation_id"]

        def answer(question):
            with using_session(conversation) if conversation else nullcontext():
                return made.answer(question)

        return answer

    return make


def flush():
    provider.force_flush()
    logs.force_flush()


def main():
    packages = ("google-genai", "openinference-instrumentation-google-genai")
    older = "-1.50" if version("google-genai").startswith("1.") else ""
    GoogleGenAIInstrumentor().instrument()
    play(f"google-genai-openinference{older}", in_session(Automatic), flush, packages, finish={"no_agents": True})
    play(f"google-genai-openinference-manual{older}", in_session(ByHand), flush, packages, finish={"no_agents": True})
    GoogleGenAIInstrumentor().uninstrument()
    try:
        from opentelemetry.instrumentation.google_genai import GoogleGenAiSdkInstrumentor
    except ImportError:
        return
    packages = ("google-genai", "opentelemetry-instrumentation-google-genai")
    GoogleGenAiSdkInstrumentor().instrument(logger_provider=logs)
    play(f"google-genai-otel{older}", lambda told: Automatic(told).answer, flush, packages, finish={"no_session": True, "no_agents": True})
    play(f"google-genai-otel-manual{older}", lambda told: ByHand(told).answer, flush, packages, finish={"no_session": True, "no_agents": True})


main()
