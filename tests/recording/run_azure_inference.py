"""Record azure-ai-inference with its own tracing: a loop by hand, alone and inside an application's span.

    uv pip install azure-ai-inference==1.0.0b9 azure-core-tracing-opentelemetry==1.0.0b13 opentelemetry-exporter-otlp-proto-http==1.45.2
"""

import json

from agents import INSTRUCTIONS, SPECIALIST, STAGE, TOOLS, OrderServiceError, exporter, play, schema
from azure.ai.inference import ChatCompletionsClient
from azure.ai.inference.models import AssistantMessage, ChatCompletionsToolDefinition, SystemMessage, ToolMessage, UserMessage
from azure.ai.inference.tracing import AIInferenceInstrumentor
from azure.core.credentials import AzureKeyCredential
from azure.core.settings import settings
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")
settings.tracing_implementation = "opentelemetry"
AIInferenceInstrumentor().instrument(enable_content_recording=True)
client = ChatCompletionsClient(f"{STAGE}/v1", AzureKeyCredential("x"), retry_total=0)


class Agent:
    def __init__(self, told, instructions=INSTRUCTIONS):
        self.told = told
        self.tools = {name: TOOLS[name] for name in told["tools"]}
        if told["sub_agent"]:
            inner = Agent({**told, "sub_agent": None}, SPECIALIST)
            self.tools = {"travel_specialist": lambda task: inner.answer(task)}
        self.history = [SystemMessage(instructions)]

    def answer(self, question):
        if self.told["documents"]:
            context = "\n\n".join(document["content"] for document in self.told["documents"])
            question = f"Context:\n{context}\n\nQuestion: {question}"
        messages = [*self.history, UserMessage(question)]
        while True:
            said = self.ask(messages)
            messages.append(said)
            if not said.tool_calls:
                self.history = messages
                return said.content
            messages += [ToolMessage(self.run(call["function"]), tool_call_id=call["id"]) for call in said.tool_calls]

    def run(self, function):
        try:
            with tracer.start_as_current_span(function["name"]):
                result = self.tools[function["name"]](**json.loads(function["arguments"]))
        except OrderServiceError as error:
            result = f"Error: {error}"
        return result if isinstance(result, str) else json.dumps(result)

    def ask(self, messages):
        more = {"tools": [ChatCompletionsToolDefinition(schema(name)) for name in self.tools]} if self.tools else {}
        request = {"model": "gpt-4o", "messages": messages, **more}
        if not self.told["stream"]:
            message = client.complete(**request).choices[0].message
            return AssistantMessage(content=message.content, tool_calls=message.tool_calls)
        text, calls = "", []
        for update in client.complete(**request, stream=True, model_extras={"stream_options": {"include_usage": True}}):
            for choice in update.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    if piece.id:
                        calls.append({"id": piece.id, "type": "function", "function": {"name": "", "arguments": ""}})
                    calls[-1]["function"]["name"] += piece.function.name or ""
                    calls[-1]["function"]["arguments"] += piece.function.arguments or ""
        return AssistantMessage(content=text or None, tool_calls=calls or None)


def under_a_request(told):
    made = Agent(told)

    def answer(question):
        with tracer.start_as_current_span("POST /chat", attributes={"session.id": told["conversation_id"]} if told["conversation_id"] else {}):
            return made.answer(question)

    return answer


PACKAGES = ("azure-ai-inference", "azure-core-tracing-opentelemetry")
play("azure-inference", lambda told: Agent(told).answer, provider.force_flush, PACKAGES, finish={"no_session": True, "no_agents": True})
play("azure-inference-request", under_a_request, provider.force_flush, PACKAGES, finish={"no_agents": True})
