"""Two typical agents that play the stage's scenarios, so that a vendor's runner holds only what its SDK asks for.

``OpenAIAgent`` is a loop as people write it around the OpenAI client, with a vendor's decorators on its functions; ``LangChainAgent`` is
``create_agent`` and, for documents, a chain with a retriever. A runner makes an agent for each scenario and hands its turns to
:func:`play`.
"""

from __future__ import annotations

import argparse
import json
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from importlib.metadata import version

parser = argparse.ArgumentParser()
parser.add_argument("--stage", default="http://127.0.0.1:8471")
parser.add_argument("--only", default="")
parser.add_argument("--sets", default="")
ARGS = parser.parse_args()
STAGE = ARGS.stage
ALL = ("s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s9b", "s10", "s10b", "s11")
INSTRUCTIONS = "You are a helpful assistant. Use the tools when they help."
SPECIALIST = "You are a travel specialist."


def post(path: str, body: dict) -> dict:
    request = urllib.request.Request(f"{STAGE}{path}", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


class OrderServiceError(Exception):
    """What the order service raises."""


def call(name: str, arguments: dict):
    try:
        return post(f"/tools/{name}", arguments)["result"]
    except urllib.error.HTTPError as error:
        told = json.load(error)
        raise (OrderServiceError if told.get("error_type") == "OrderServiceError" else RuntimeError)(told["message"]) from None


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


TOOLS = {function.__name__: function for function in (get_weather, convert_currency, lookup_order, check_job)}
_PARAMETERS = {
    "get_weather": {"city": "string"}, "convert_currency": {"amount": "number", "currency": "string"}, "lookup_order": {"order_id": "string"},
    "check_job": {"job_id": "string"}, "travel_specialist": {"task": "string"},
}  # fmt: skip


def schema(name: str) -> dict:
    properties = {key: {"type": kind} for key, kind in _PARAMETERS[name].items()}
    function = {"name": name, "description": f"{name.replace('_', ' ')}.", "parameters": {"type": "object", "properties": properties, "required": list(properties)}}
    return {"type": "function", "function": function}


def plain(kind: str, name: str) -> Callable:
    """No decorator."""
    return lambda function: function


class OpenAIAgent:
    """``wrap(kind, name)`` is the vendor's decorator for an "agent", a "tool", a "retriever"."""

    def __init__(self, told: dict, client, wrap: Callable = plain, model: str = "gpt-4.1-mini") -> None:
        self.told, self.client, self.model, self.wrap = told, client, model, wrap
        self.tools = {name: wrap("tool", name)(TOOLS[name]) for name in told["tools"] if name in TOOLS}
        if told["sub_agent"]:
            inner = OpenAIAgent({**told, "sub_agent": None, "documents": []}, client, wrap, model)
            specialist = wrap("agent", "travel_specialist")(lambda task: inner.loop([{"role": "system", "content": SPECIALIST}, {"role": "user", "content": task}]))

            def travel_specialist(task: str) -> str:
                return specialist(task)

            self.tools = {"travel_specialist": travel_specialist}
        self.history = [{"role": "system", "content": INSTRUCTIONS}]

    def answer(self, question: str) -> str:
        if self.told["documents"]:
            retrieve = self.wrap("retriever", "search_docs")(lambda query: self.told["documents"])
            found = retrieve(question)
            context = "\n\n".join(document["content"] for document in found)
            messages = [{"role": "system", "content": f"Answer from these documents:\n\n{context}"}, {"role": "user", "content": question}]
            return self.loop(messages)
        messages = [*self.history, {"role": "user", "content": question}]
        text = self.loop(messages)
        self.history = messages
        return text

    def loop(self, messages: list) -> str:
        more = {"tools": [schema(name) for name in self.tools]} if self.tools else {}
        while True:
            message = self.ask(messages, more)
            messages.append(message)
            if not message.get("tool_calls"):
                return message["content"]
            for asked in message["tool_calls"]:
                try:
                    result = self.tools[asked["function"]["name"]](**json.loads(asked["function"]["arguments"]))
                except OrderServiceError as error:
                    result = f"Error: {error}"
                content = result if isinstance(result, str) else json.dumps(result)
                messages.append({"role": "tool", "tool_call_id": asked["id"], "content": content})

    def ask(self, messages: list, more: dict) -> dict:
        if self.told["stream"]:
            return self.streamed(messages, more)
        message = self.client.chat.completions.create(model=self.model, messages=messages, **more).choices[0].message
        return {key: value for key, value in message.model_dump(exclude_none=True).items() if key in ("role", "content", "tool_calls")}

    def streamed(self, messages: list, more: dict) -> dict:
        text, calls = "", {}
        options = {"stream": True, "stream_options": {"include_usage": True}}
        for chunk in self.client.chat.completions.create(model=self.model, messages=messages, **options, **more):
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for piece in choice.delta.tool_calls or ():
                    whole = calls.setdefault(piece.index, {"id": "", "type": "function", "function": {"name": "", "arguments": ""}})
                    whole["id"] += piece.id or ""
                    whole["function"]["name"] += piece.function.name or ""
                    whole["function"]["arguments"] += piece.function.arguments or ""
        message = {"role": "assistant", "content": text or None}
        return {**message, "tool_calls": list(calls.values())} if calls else message


class LangChainAgent:
    """``config(told)`` is what the vendor wants in a run's config (callbacks, metadata), ``tracked`` what it does with a retriever."""

    def __init__(self, told: dict, config: Callable = lambda told: {}, tracked: Callable = lambda retriever: retriever) -> None:
        from langchain.agents import create_agent
        from langchain.agents.middleware import wrap_tool_call
        from langchain_core.messages import ToolMessage
        from langchain_core.tools import tool
        from langchain_openai import ChatOpenAI
        from langgraph.checkpoint.memory import InMemorySaver

        @wrap_tool_call
        def tell_errors(request, handler):
            try:
                return handler(request)
            except OrderServiceError as error:
                return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")

        self.told, self.config, self.tracked = told, config(told), tracked
        self.model = ChatOpenAI(model="gpt-4.1-mini", max_retries=0, base_url=f"{STAGE}/v1", api_key="x", streaming=told["stream"], stream_usage=True)
        tools = [tool(TOOLS[name]) for name in told["tools"] if name in TOOLS]
        if told["sub_agent"]:
            inner = create_agent(self.model, tools, system_prompt=SPECIALIST, name="travel_specialist")

            @tool
            def travel_specialist(task: str) -> str:
                """Ask the travel specialist."""
                return inner.invoke({"messages": [{"role": "user", "content": task}]})["messages"][-1].content

            tools = [travel_specialist]
        more = {"checkpointer": InMemorySaver()} if told["conversation_id"] else {}
        if told["conversation_id"]:
            self.config.setdefault("configurable", {})["thread_id"] = told["conversation_id"]
        self.agent = create_agent(self.model, tools, system_prompt=INSTRUCTIONS, name="assistant", middleware=[tell_errors], **more)

    def answer(self, question: str) -> str:
        if self.told["documents"]:
            return self.chain().invoke(question, config=self.config)
        given = {"messages": [{"role": "user", "content": question}]}
        if self.told["stream"]:
            pieces = [(chunk, metadata) for chunk, metadata in self.agent.stream(given, config=self.config, stream_mode="messages")]
            last = max(metadata["langgraph_step"] for _, metadata in pieces)
            return "".join(chunk.text for chunk, metadata in pieces if metadata["langgraph_step"] == last and metadata["langgraph_node"] == "model")
        return self.agent.invoke(given, config=self.config)["messages"][-1].content

    def chain(self):
        from langchain_core.documents import Document
        from langchain_core.output_parsers import StrOutputParser
        from langchain_core.prompts import ChatPromptTemplate
        from langchain_core.retrievers import BaseRetriever
        from langchain_core.runnables import RunnablePassthrough

        found = [
            Document(id=item["id"], page_content=item["content"], metadata={"source": item["id"], "score": item["score"]})
            for item in self.told["documents"]
        ]

        class ShopRetriever(BaseRetriever):
            def _get_relevant_documents(self, query, *, run_manager):
                return found

        prompt = ChatPromptTemplate.from_messages([("system", "Answer from these documents:\n\n{context}"), ("human", "{question}")])

        def joined(documents):
            return "\n\n".join(document.page_content for document in documents)

        return {"context": self.tracked(ShopRetriever()) | joined, "question": RunnablePassthrough()} | prompt | self.model | StrOutputParser()


def play(name: str, make: Callable, flush: Callable, packages: Sequence[str], leave_out: Sequence[str] = (), finish: dict | None = None) -> None:
    """Record a set. ``make(told)`` gives, for a scenario, the function that answers what the user says."""
    if ARGS.sets and name not in ARGS.sets.split(","):
        return
    for scenario in ARGS.only.split(",") if ARGS.only else ALL:
        if scenario in leave_out:
            continue
        told = post("/control/start", {"set": name, "scenario": scenario})
        answer = make(told)
        for index, turn in enumerate(told["turns"]):
            post("/control/turn", {"index": index})
            try:
                said = {"answer": answer(turn["user_input"])}
            except Exception as error:  # noqa: BLE001 - whatever the framework lets through is what its caller sees
                said = {"error": {"type": type(error).__name__, "message": str(error)}}
            flush()
            post("/control/answer", said)
        versions = {package: version(package) for package in packages}
        done = post("/control/finish", {"versions": versions, **(finish or {})})
        print(name, scenario, json.dumps(done), said.get("error", ""))  # noqa: T201


def openai_client(**options):
    import openai

    return openai.OpenAI(base_url=f"{STAGE}/v1", api_key="x", max_retries=0, **options)


def exporter():
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter(endpoint=f"{STAGE}/v1/traces")
