"""Record the SDKs of Groq, Cohere and Ollama, each under OpenInference and Traceloop: a loop by hand.

    uv pip install groq==1.7.0 cohere==7.3.1 ollama==0.6.3 openinference-instrumentation-{groq,cohere,ollama} opentelemetry-instrumentation-{groq,cohere,ollama}
"""

import json

from agents import INSTRUCTIONS, STAGE, TOOLS, OrderServiceError, exporter, play, schema
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter()))
trace.set_tracer_provider(provider)
tracer = trace.get_tracer("shop")


class Groq:
    """Chat Completions; also the base of the others."""

    def __init__(self, told):
        self.told = told
        self.tools = {name: TOOLS[name] for name in told["tools"]}
        self.history = [{"role": "system", "content": INSTRUCTIONS}]
        self.definitions = [schema(name) for name in self.tools] or None
        self.client = self.connect()

    def connect(self):
        import groq

        return groq.Groq(api_key="x", base_url=STAGE, max_retries=0)

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
            messages += [self.result(call, self.run(call["function"])) for call in said["tool_calls"]]

    def run(self, function):
        arguments = function["arguments"]
        try:
            result = self.tools[function["name"]](**(json.loads(arguments) if isinstance(arguments, str) else arguments))
        except OrderServiceError as error:
            result = f"Error: {error}"
        return result if isinstance(result, str) else json.dumps(result)

    def result(self, call, text):
        return {"role": "tool", "tool_call_id": call["id"], "name": call["function"]["name"], "content": text}

    def ask(self, messages):
        request = {"model": "llama-3.3-70b-versatile", "messages": messages, **({"tools": self.definitions} if self.definitions else {})}
        if not self.told["stream"]:
            message = self.client.chat.completions.create(**request).choices[0].message.model_dump(exclude_none=True)
            return {key: value for key, value in message.items() if key in ("role", "content", "tool_calls")}
        text, calls = "", {}
        for chunk in self.client.chat.completions.create(**request, stream=True):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    whole = calls.setdefault(piece.index, {"id": piece.id, "type": "function", "function": {"name": "", "arguments": ""}})
                    whole["function"]["name"] += piece.function.name or ""
                    whole["function"]["arguments"] += piece.function.arguments or ""
        return {"role": "assistant", "content": text, **({"tool_calls": list(calls.values())} if calls else {})}


class Ollama(Groq):
    """Its calls have no ids."""

    def connect(self):
        import ollama

        return ollama.Client(STAGE)

    def result(self, call, text):
        return {"role": "tool", "tool_name": call["function"]["name"], "content": text}

    def ask(self, messages):
        request = {"model": "llama3.2", "messages": messages, **({"tools": self.definitions} if self.definitions else {})}
        if not self.told["stream"]:
            return self.plain(self.client.chat(**request).message)
        said = {"role": "assistant", "content": ""}
        for part in self.client.chat(**request, stream=True):
            more = self.plain(part.message)
            said["content"] += more["content"]
            if "tool_calls" in more:
                said["tool_calls"] = more["tool_calls"]
        return said

    def plain(self, message):
        calls = [{"function": {"name": call.function.name, "arguments": dict(call.function.arguments)}} for call in message.tool_calls or ()]
        return {"role": "assistant", "content": message.content or "", **({"tool_calls": calls} if calls else {})}


class Cohere(Groq):
    """Version 2 of its chat."""

    def connect(self):
        import cohere

        return cohere.ClientV2("x", base_url=STAGE)

    def result(self, call, text):
        return {"role": "tool", "tool_call_id": call["id"], "content": text}

    def ask(self, messages):
        request = {"model": "command-a-03-2025", "messages": messages, **({"tools": self.definitions} if self.definitions else {})}
        message = self.client.chat(**request, request_options={"max_retries": 0}).message
        said = {"role": "assistant"}
        if message.tool_calls:
            calls = message.tool_calls
            said["tool_calls"] = [{"id": call.id, "type": "function", "function": {"name": call.function.name, "arguments": call.function.arguments}} for call in calls]
        else:
            said["content"] = "".join(part.text for part in message.content or ())
        return said


def under_a_request(agent):
    def make(told):
        made = agent(told)

        def answer(question):
            with tracer.start_as_current_span("POST /chat", attributes={"session.id": told["conversation_id"]} if told["conversation_id"] else {}):
                return made.answer(question)

        return answer

    return make


def record(name, agent, instrumentor, packages, leave_out=("s7",)):
    instrumentor.instrument()
    play(name, under_a_request(agent), provider.force_flush, packages, leave_out, {"no_agents": True})
    instrumentor.uninstrument()


def main():
    import openinference.instrumentation.groq as groq_open
    import openinference.instrumentation.ollama as ollama_open
    import openinference.instrumentation.cohere as cohere_open
    import opentelemetry.instrumentation.groq as groq_loop
    import opentelemetry.instrumentation.ollama as ollama_loop

    record("groq-openinference", Groq, groq_open.GroqInstrumentor(), ("groq", "openinference-instrumentation-groq"))
    record("groq-traceloop", Groq, groq_loop.GroqInstrumentor(), ("groq", "opentelemetry-instrumentation-groq"))
    record("ollama-openinference", Ollama, ollama_open.OllamaInstrumentor(), ("ollama", "openinference-instrumentation-ollama"))
    record("ollama-traceloop", Ollama, ollama_loop.OllamaInstrumentor(), ("ollama", "opentelemetry-instrumentation-ollama"))
    record("cohere-openinference", Cohere, cohere_open.CohereInstrumentor(), ("cohere", "openinference-instrumentation-cohere"), ("s7", "s10", "s10b"))


main()
