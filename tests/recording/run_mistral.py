"""Record Mistral's SDK under OpenInference and Traceloop: a loop by hand.

    uv pip install mistralai==3.7.0 openinference-instrumentation-mistralai==2.2.2 opentelemetry-instrumentation-mistralai==0.62.4

Traceloop's instrumentation and the sets of 1.12 need mistralai==1.12.4 and openinference-instrumentation-mistralai==1.4.0.
"""

import json
from contextlib import nullcontext
from importlib.metadata import version

from agents import INSTRUCTIONS, SPECIALIST, STAGE, TOOLS, OrderServiceError, exporter, play, schema
from openinference.instrumentation import using_session
from openinference.instrumentation.mistralai import MistralAIInstrumentor

try:
    from mistralai.client import Mistral
except ImportError:  # 1.x
    from mistralai import Mistral
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")


class Agent:
    """``messages`` are dicts, or objects as the SDK gives them."""

    def __init__(self, told, instructions=INSTRUCTIONS):
        self.client = Mistral(api_key="x", server_url=STAGE)
        self.told = told
        self.tools = {name: TOOLS[name] for name in told["tools"]}
        if told["sub_agent"]:
            inner = Agent({**told, "sub_agent": None}, SPECIALIST)
            self.tools = {"travel_specialist": lambda task: inner.answer(task)}
        self.history = [{"role": "system", "content": instructions}]

    def answer(self, question):
        if self.told["documents"]:
            context = "\n\n".join(document["content"] for document in self.told["documents"])
            question = f"Context:\n{context}\n\nQuestion: {question}"
        messages = [*self.history, {"role": "user", "content": question}]
        while True:
            said = self.ask(messages)
            messages.append(said)
            if not said.get("tool_calls"):
                self.history = messages
                return said["content"]
            for asked in said["tool_calls"]:
                messages.append({"role": "tool", "name": asked["function"]["name"], "content": self.run(asked["function"]), "tool_call_id": asked["id"]})

    def run(self, function):
        try:
            result = self.tools[function["name"]](**json.loads(function["arguments"]))
        except OrderServiceError as error:
            result = f"Error: {error}"
        return result if isinstance(result, str) else json.dumps(result)

    def ask(self, messages):
        request = {"model": "mistral-small-latest", "messages": messages}
        if self.tools:
            request["tools"] = [schema(name) for name in self.tools]
        if not self.told["stream"]:
            message = self.client.chat.complete(**request).choices[0].message
            calls = [{"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}} for call in message.tool_calls or ()]
            return {"role": "assistant", "content": message.content or "", **({"tool_calls": calls} if calls else {})}
        text, calls = "", {}
        for event in self.client.chat.stream(**request):
            for choice in event.data.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    whole = calls.setdefault(piece.index or 0, {"id": piece.id, "type": "function", "function": {"name": "", "arguments": ""}})
                    whole["function"]["name"] += piece.function.name or ""
                    whole["function"]["arguments"] += piece.function.arguments if isinstance(piece.function.arguments, str) else json.dumps(piece.function.arguments)
        return {"role": "assistant", "content": text, **({"tool_calls": list(calls.values())} if calls else {})}


def in_session(told):
    made = Agent(told)
    conversation = told["conversation_id"]

    def answer(question):
        with using_session(conversation) if conversation else nullcontext():
            return made.answer(question)

    return answer


def under_a_request(told):
    made = Agent(told)

    def answer(question):
        with tracer.start_as_current_span("POST /chat", attributes={"session.id": told["conversation_id"]} if told["conversation_id"] else {}):
            return made.answer(question)

    return answer


OLDER = version("mistralai").startswith("1.")
MistralAIInstrumentor().instrument()
PACKAGES = ("mistralai", "openinference-instrumentation-mistralai")
play(f"mistral-openinference{'-1.12' if OLDER else ''}", in_session, provider.force_flush, PACKAGES, finish={"no_agents": True})
MistralAIInstrumentor().uninstrument()
if OLDER:
    from opentelemetry.instrumentation.mistralai import MistralAiInstrumentor

    MistralAiInstrumentor().instrument()
    PACKAGES = ("mistralai", "opentelemetry-instrumentation-mistralai")
    play("mistral-traceloop", under_a_request, provider.force_flush, PACKAGES, finish={"no_agents": True})
