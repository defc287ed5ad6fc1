"""Vendors' tracing SDKs over typical agents, recorded at a stage (stage.py).

    python run_vendor_sdks.py --stage http://127.0.0.1:8513 --sdk laminar --agent loop [--only s1,s2]

SDKs, as their docs teach them: LangSmith in OTel mode (0.15.0), Laminar (lmnr 0.8.2), OpenLIT (1.45.0 and 1.33.23), AgentOps (0.4.21),
Langtrace (3.8.21), and more in ``SDKS``. Agents: ``loop`` (OpenAI chat completions by hand, functions under the SDK's decorators), ``responses``
and ``anthropic`` (the same over these APIs), ``graph`` (LangChain's create_agent, LangGraph's before 1.0), ``agents`` (openai-agents).
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import json
import os
import sys
import traceback
import urllib.error
import urllib.request
from importlib import import_module

sys.path.pop(0)  # this folder has a module of the name of OpenAI's agents
MODEL = "gpt-4.1-mini"
CLAUDE = "claude-sonnet-4-5"
STAGE = ""
SYSTEM = "You are a helpful assistant. Use the tools you have."
SPECIALIST = "You are a travel specialist. Look at the weather, then advise."


class OrderServiceError(Exception):
    """What a tool of the application raises."""


def control(path: str, body: dict) -> dict:
    """To the stage, past instrumentations of HTTP clients."""
    connection = http.client.HTTPConnection(STAGE.removeprefix("http://"), timeout=60)
    connection.request("POST", path, json.dumps(body), {"content-type": "application/json"})
    return json.loads(connection.getresponse().read())


def post(path: str, body: dict) -> dict:
    request = urllib.request.Request(STAGE + path, json.dumps(body).encode(), {"content-type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        failed = json.loads(error.read())
        raise OrderServiceError(failed["message"]) from None


def get_weather(city: str) -> str:
    """The weather in a city."""
    return post("/tools/get_weather", {"city": city})["result"]


def convert_currency(amount: float, currency: str) -> dict:
    """An amount of US dollars in another currency."""
    return post("/tools/convert_currency", {"amount": amount, "currency": currency})["result"]


def lookup_order(order_id: str) -> str:
    """Where an order is."""
    return post("/tools/lookup_order", {"order_id": order_id})["result"]


def check_job(job_id: str) -> str:
    """The state of a job."""
    return post("/tools/check_job", {"job_id": job_id})["result"]


TOOLS = {tool.__name__: tool for tool in (get_weather, convert_currency, lookup_order, check_job)}
PARAMETERS = {
    "get_weather": {"city": "string"}, "convert_currency": {"amount": "number", "currency": "string"},
    "lookup_order": {"order_id": "string"}, "check_job": {"job_id": "string"}, "travel_specialist": {"task": "string"},
}  # fmt: skip


def schema(name: str) -> dict:
    given = PARAMETERS[name]
    said = TOOLS[name].__doc__ if name in TOOLS else "Ask the travel specialist."
    parameters = {"type": "object", "properties": {key: {"type": kind} for key, kind in given.items()}, "required": list(given)}
    return {"name": name, "description": said, "parameters": parameters}


def with_documents(question: str, documents: list[str]) -> str:
    return "Answer from these documents:\n\n" + "\n\n".join(documents) + f"\n\nQuestion: {question}"


# --- SDKs ---------------------------------------------------------------------------------------------------------------


class Sdk:
    """What an SDK calls its parts; by default functions stay as they are."""

    def __init__(self, agent: str) -> None:
        self.agent_kind = agent

    def client(self, client):
        return client

    def agent(self, function, name: str):
        return function

    def turn(self, function, name: str):
        return self.agent(function, name)

    def specialist(self, function, name: str):
        return self.agent(function, name)

    def tool(self, function, name: str):
        return function

    def retriever(self, function, name: str):
        return function

    def session(self, conversation: str | None):
        return contextlib.nullcontext()

    def config(self, conversation: str | None) -> dict:
        """What goes into LangChain's config."""
        return {}

    def agents_sdk(self) -> None:
        """Switch on tracing of openai-agents."""

    def flush(self) -> None:
        from opentelemetry import trace

        trace.get_tracer_provider().force_flush()


def renamed(function, name: str):
    function.__name__ = function.__qualname__ = name
    return function


class LangSmith(Sdk):
    def __init__(self, agent: str) -> None:
        super().__init__(agent)
        os.environ.update(LANGSMITH_TRACING="true", LANGSMITH_OTEL_ENABLED="true", LANGSMITH_OTEL_ONLY="true", LANGSMITH_API_KEY="none",
                          LANGSMITH_PROJECT="shop", LANGSMITH_ENDPOINT=STAGE, OTEL_EXPORTER_OTLP_ENDPOINT=STAGE)  # fmt: skip
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{STAGE}/v1/traces")))
        trace.set_tracer_provider(provider)

    def client(self, client):
        from langsmith import wrappers

        return wrappers.wrap_anthropic(client) if "Anthropic" in type(client).__name__ else wrappers.wrap_openai(client)

    def agent(self, function, name: str):
        from langsmith import traceable

        return traceable(run_type="chain", name=name)(function)

    def turn(self, function, name: str):
        return function if self.agent_kind == "agents" else self.agent(function, name)  # else its spans are in two traces

    def tool(self, function, name: str):
        from langsmith import traceable

        return traceable(run_type="tool", name=name)(function)

    def retriever(self, function, name: str):
        from langsmith import traceable

        return traceable(run_type="retriever", name=name)(function)

    def session(self, conversation: str | None):
        from langsmith import tracing_context

        return tracing_context(metadata={"session_id": conversation}) if conversation else contextlib.nullcontext()

    def config(self, conversation: str | None) -> dict:
        return {"metadata": {"session_id": conversation}} if conversation else {}

    def agents_sdk(self) -> None:
        from agents import set_trace_processors
        from langsmith.integrations.openai_agents_sdk import OpenAIAgentsTracingProcessor

        set_trace_processors([OpenAIAgentsTracingProcessor()])

    def flush(self) -> None:
        from langsmith.run_trees import get_cached_client

        get_cached_client().flush()
        super().flush()


class Laminar(Sdk):
    def __init__(self, agent: str) -> None:
        super().__init__(agent)
        from lmnr import Laminar as laminar

        host, port = STAGE.rsplit(":", 1)
        laminar.initialize(project_api_key="none", base_url=host, http_port=int(port), force_http=True)
        self.sdk = laminar

    def agent(self, function, name: str):
        from lmnr import observe

        return observe(name=name)(function)

    def tool(self, function, name: str):
        from lmnr import observe

        return observe(name=name, span_type="TOOL")(function)

    retriever = agent

    @contextlib.contextmanager
    def session(self, conversation: str | None):
        if conversation is None:
            yield
            return
        if self.agent_kind == "graph":  # the other way that the docs teach
            with self.sdk.start_as_current_span(name="chat", session_id=conversation):
                yield
        else:
            self.conversation = conversation
            yield
            self.conversation = None

    def turn(self, function, name: str):
        from lmnr import observe

        def said(question: str) -> str:
            if getattr(self, "conversation", None):
                self.sdk.set_trace_session_id(self.conversation)
            return function(question)

        return observe(name=name)(said)

    def flush(self) -> None:
        self.sdk.flush()


class OpenLit(Sdk):
    def __init__(self, agent: str) -> None:
        super().__init__(agent)
        import openlit

        openlit.init(otlp_endpoint=STAGE, application_name="shop", disable_metrics=True)
        self.sdk = openlit

    def agent(self, function, name: str):
        return self.sdk.trace(renamed(function, name))

    def turn(self, function, name: str):
        return function if "graph" in self.agent_kind else self.agent(function, name)

    tool = retriever = agent

    @contextlib.contextmanager
    def session(self, conversation: str | None):
        if conversation and hasattr(self.sdk, "inject_additional_attributes"):
            self.conversation = conversation
        yield
        self.conversation = None

    def around(self, function):
        """Newer versions take attributes for all spans of a call."""
        conversation = getattr(self, "conversation", None)
        if not conversation:
            return function()
        return self.sdk.inject_additional_attributes(function, {"session.id": conversation})


class AgentOps(Sdk):
    def __init__(self, agent: str) -> None:
        super().__init__(agent)
        import agentops

        import_module({"agents": "agents", "anthropic": "anthropic", "own-graph": "langgraph.graph"}.get(agent, "openai"))  # else its half-loaded modules are patched
        agentops.init(api_key="00000000-0000-4000-8000-000000000000", exporter_endpoint=f"{STAGE}/v1/traces", endpoint=STAGE,
                      auto_start_session=False, log_level="ERROR")  # fmt: skip
        self.sdk = agentops

    def agent(self, function, name: str):
        from agentops.sdk.decorators import operation

        return operation(name=name)(function)

    def specialist(self, function, name: str):
        from agentops.sdk.decorators import agent

        return agent(name=name)(function)

    def turn(self, function, name: str):
        from agentops.sdk.decorators import trace, workflow

        if self.agent_kind == "loop":
            return trace(name=name)(function)
        return function if self.agent_kind in ("graph", "own-graph", "agents", "classes") else workflow(name=name)(function)

    def tool(self, function, name: str):
        from agentops.sdk.decorators import tool

        return tool(name=name)(function)

    retriever = agent

    @contextlib.contextmanager
    def session(self, conversation: str | None):
        if self.agent_kind not in ("classes", "own-graph"):
            yield
            return
        started = self.sdk.start_trace("support chat", tags={"session_id": conversation} if conversation else None)
        try:
            yield
        except BaseException:
            self.sdk.end_trace(started, "Error")
            raise
        self.sdk.end_trace(started, "Success")

    def config(self, conversation: str | None) -> dict:
        if self.agent_kind == "own-graph":
            return {}
        from agentops.integration.callbacks.langchain import LangchainCallbackHandler

        return {"callbacks": [LangchainCallbackHandler()]}


class Langtrace(Sdk):
    def __init__(self, agent: str) -> None:
        super().__init__(agent)
        os.environ["LANGTRACE_ERROR_REPORTING"] = "False"
        from langtrace_python_sdk import langtrace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

        langtrace.init(api_key="none", custom_remote_exporter=OTLPSpanExporter(f"{STAGE}/v1/traces"), batch=True)

    def agent(self, function, name: str):
        from langtrace_python_sdk import with_langtrace_root_span

        return with_langtrace_root_span(name)(function)

    tool = retriever = agent

    @contextlib.contextmanager
    def session(self, conversation: str | None):
        if conversation is None:
            yield
            return
        os.environ["LANGTRACE_SESSION_ID"] = conversation
        self.conversation = conversation
        yield
        del os.environ["LANGTRACE_SESSION_ID"]
        self.conversation = None

    def around(self, function):
        conversation = getattr(self, "conversation", None)
        if not conversation:
            return function()
        from langtrace_python_sdk.utils.with_root_span import inject_additional_attributes

        return inject_additional_attributes(function, {"session_id": conversation, "user_id": "user-1"})


SDKS = {"langsmith": LangSmith, "laminar": Laminar, "openlit": OpenLit, "agentops": AgentOps, "langtrace": Langtrace}


# --- agents -------------------------------------------------------------------------------------------------------------


class Loop:
    """A tool loop by hand over chat completions; functions under the SDK's decorators."""

    def __init__(self, sdk: Sdk, told: dict) -> None:
        self.sdk, self.told = sdk, told
        self.client = sdk.client(self._client())
        self.tools = {name: sdk.tool(TOOLS[name], name) for name in told["tools"]}
        self.history: list = []
        if told["sub_agent"]:
            weather = dict(self.tools)
            specialist = sdk.specialist(lambda task: self.run([self._system(SPECIALIST), {"role": "user", "content": task}], weather), told["sub_agent"])
            self.tools = {told["sub_agent"]: specialist}
        documents = [document["content"] for document in told["documents"]]
        self.retrieve = sdk.retriever(renamed(lambda query: documents, "search_docs"), "search_docs") if documents else None
        self.answer = sdk.turn(renamed(lambda question: self._answer(question), "support_agent"), "support_agent")

    def _client(self):
        from openai import OpenAI

        return OpenAI(base_url=f"{STAGE}/v1", api_key="none", max_retries=0)

    def _system(self, text: str) -> dict:
        return {"role": "system", "content": text}

    def _answer(self, question: str) -> str:
        if self.retrieve is not None:
            question = with_documents(question, self.retrieve(question))
        messages = [self._system(SYSTEM), *self.history, {"role": "user", "content": question}]
        answer = self.run(messages, self.tools)
        self.history += [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
        return answer

    def run(self, messages: list, tools: dict) -> str:
        for _ in range(8):
            answer, calls, said = self.ask(messages, tools)
            if not calls:
                return answer
            messages += said
            messages += self.results([(call_id, self.call(tools[name], arguments)) for call_id, name, arguments in calls])
        return "gave up"

    def call(self, tool, arguments: dict) -> str:
        try:
            result = tool(**arguments)
        except OrderServiceError as error:
            return f"Error: {error}"
        return result if isinstance(result, str) else json.dumps(result)

    def results(self, found: list) -> list:
        return [{"role": "tool", "tool_call_id": call_id, "content": result} for call_id, result in found]

    def ask(self, messages: list, tools: dict):
        given = {"tools": [{"type": "function", "function": schema(name)} for name in tools]} if tools else {}
        if self.told["stream"]:
            return self.ask_stream(messages, given)
        message = self.client.chat.completions.create(model=MODEL, messages=messages, **given).choices[0].message
        calls = [(call.id, call.function.name, json.loads(call.function.arguments)) for call in message.tool_calls or ()]
        said = {"tool_calls": [call.model_dump() for call in message.tool_calls]} if calls else {}
        return message.content, calls, [{"role": "assistant", "content": message.content or "", **said}]

    def ask_stream(self, messages: list, given: dict):
        text, calls = "", {}
        stream = self.client.chat.completions.create(model=MODEL, messages=messages, stream=True, stream_options={"include_usage": True}, **given)
        for chunk in stream:
            for choice in chunk.choices:
                text += choice.delta.content or ""
                for part in choice.delta.tool_calls or ():
                    call = calls.setdefault(part.index, {"id": "", "name": "", "arguments": ""})
                    call["id"] += part.id or ""
                    call["name"] += part.function.name or ""
                    call["arguments"] += part.function.arguments or ""
        said = [{"id": call["id"], "type": "function", "function": {"name": call["name"], "arguments": call["arguments"]}} for call in calls.values()]
        found = [(call["id"], call["name"], json.loads(call["arguments"])) for call in calls.values()]
        return text, found, [{"role": "assistant", "content": text or None, **({"tool_calls": said} if said else {})}]


class Responses(Loop):
    """The same over the Responses API."""

    def ask(self, messages: list, tools: dict):
        given = {"tools": [{"type": "function", **schema(name)} for name in tools]} if tools else {}
        if self.told["stream"]:
            with self.client.responses.create(model=MODEL, input=messages, stream=True, **given) as stream:
                response = next(event.response for event in stream if event.type == "response.completed")
        else:
            response = self.client.responses.create(model=MODEL, input=messages, **given)
        calls = [(item.call_id, item.name, json.loads(item.arguments)) for item in response.output if item.type == "function_call"]
        return response.output_text, calls, [item.model_dump(exclude_none=True) for item in response.output]

    def results(self, found: list) -> list:
        return [{"type": "function_call_output", "call_id": call_id, "output": result} for call_id, result in found]


class Anthropic(Loop):
    """The same over the Messages API."""

    def _client(self):
        from anthropic import Anthropic as client

        return client(base_url=STAGE, api_key="none", max_retries=0)

    def ask(self, messages: list, tools: dict):
        given = {"tools": [{"name": name, "description": schema(name)["description"], "input_schema": schema(name)["parameters"]} for name in tools]} if tools else {}
        ask = {"model": CLAUDE, "max_tokens": 500, "system": messages[0]["content"], "messages": messages[1:], **given}
        if self.told["stream"]:
            with self.client.messages.stream(**ask) as stream:
                message = stream.get_final_message()
        else:
            message = self.client.messages.create(**ask)
        calls = [(block.id, block.name, block.input) for block in message.content if block.type == "tool_use"]
        text = "".join(block.text for block in message.content if block.type == "text")
        return text, calls, [{"role": "assistant", "content": [block.model_dump(include={"type", "text", "id", "name", "input"}) for block in message.content]}]

    def results(self, found: list) -> list:
        return [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": call_id, "content": result} for call_id, result in found]}]


class Classes(Loop):
    """The loop in a class: AgentOps has a decorator for classes, whose span lasts as long as the object."""

    def __init__(self, sdk: Sdk, told: dict) -> None:
        super().__init__(sdk, told)
        from agentops.sdk.decorators import agent, operation

        outer = self

        @agent(name="support_agent")
        class Support:
            @operation(name="answer")
            def answer(self, question: str) -> str:
                return outer._answer(question)

        self.support = Support()
        self.answer = self.support.answer


class Graph:
    """LangChain's agent on LangGraph."""

    def __init__(self, sdk: Sdk, told: dict) -> None:
        from langchain_core.tools import tool

        self.sdk, self.told = sdk, told
        tools = [tool(TOOLS[name]) for name in told["tools"]]
        if told["sub_agent"]:
            specialist = self.build(tools, SPECIALIST, told["sub_agent"])

            @tool(told["sub_agent"])
            def ask_specialist(task: str) -> str:
                """Ask the travel specialist."""
                return specialist.invoke({"messages": [{"role": "user", "content": task}]})["messages"][-1].content

            tools = [ask_specialist]
        self.agent = self.build(tools, SYSTEM, "support_agent", memory=True)
        self.answer = sdk.turn(renamed(lambda question: self._answer(question), "support_agent"), "support_agent")

    def build(self, tools: list, prompt: str, name: str, memory: bool = False):
        from langchain_openai import ChatOpenAI
        from langgraph.checkpoint.memory import InMemorySaver

        model = ChatOpenAI(model=MODEL, base_url=f"{STAGE}/v1", api_key="none", max_retries=0, stream_usage=True)
        saver = {"checkpointer": InMemorySaver()} if memory else {}
        try:
            from langchain.agents import create_agent
            from langchain.agents.middleware import wrap_tool_call
            from langchain_core.messages import ToolMessage
        except ImportError:
            from langgraph.prebuilt import create_react_agent

            return create_react_agent(model, tools, prompt=prompt, name=name, **saver)

        @wrap_tool_call
        def handle_tool_errors(request, handler):
            try:
                return handler(request)
            except OrderServiceError as error:
                return ToolMessage(f"Error: {error}", tool_call_id=request.tool_call["id"], status="error")

        return create_agent(model, tools, system_prompt=prompt, name=name, middleware=[handle_tool_errors], **saver)

    def _answer(self, question: str) -> str:
        conversation = self.told["conversation_id"]
        config = {"configurable": {"thread_id": conversation or f"thread-{self.told['scenario']}-{self.index}"}, **self.sdk.config(conversation)}
        if self.told["documents"]:
            return self.from_documents(question, config)
        given = {"messages": [{"role": "user", "content": question}]}
        if self.told["stream"]:
            *_, state = self.agent.stream(given, config, stream_mode="values")
        else:
            state = self.agent.invoke(given, config)
        return state["messages"][-1].content

    def from_documents(self, question: str, config: dict) -> str:
        """The chain of the RAG tutorial: retriever, prompt, model, parser."""
        from langchain_core.documents import Document
        from langchain_core.output_parsers import StrOutputParser
        from langchain_core.prompts import ChatPromptTemplate
        from langchain_core.runnables import RunnablePassthrough
        from langchain_core.vectorstores import InMemoryVectorStore
        from langchain_openai import ChatOpenAI, OpenAIEmbeddings

        store = InMemoryVectorStore(OpenAIEmbeddings(base_url=f"{STAGE}/v1", api_key="none", check_embedding_ctx_length=False))
        store.add_documents([Document(page_content=document["content"], id=document["id"]) for document in self.told["documents"]])
        prompt = ChatPromptTemplate.from_template("Answer the question from this context:\n{context}\n\nQuestion: {question}")
        model = ChatOpenAI(model=MODEL, base_url=f"{STAGE}/v1", api_key="none", max_retries=0)
        joined = store.as_retriever() | (lambda found: "\n\n".join(document.page_content for document in found))
        chain = {"context": joined, "question": RunnablePassthrough()} | prompt | model | StrOutputParser()
        return chain.invoke(question, config)


class OwnGraph(Graph):
    """A graph of nodes that the application writes itself."""

    def build(self, tools: list, prompt: str, name: str, memory: bool = False):
        from langchain_core.messages import SystemMessage, ToolMessage
        from langchain_openai import ChatOpenAI
        from langgraph.checkpoint.memory import InMemorySaver
        from langgraph.graph import END, START, MessagesState, StateGraph

        model = ChatOpenAI(model=MODEL, base_url=f"{STAGE}/v1", api_key="none", max_retries=0, stream_usage=True)
        model = model.bind_tools(tools) if tools else model
        by_name = {tool.name: tool for tool in tools}

        def chatbot(state: MessagesState) -> dict:
            return {"messages": [model.invoke([SystemMessage(prompt), *state["messages"]])]}

        def run_tools(state: MessagesState) -> dict:
            found = []
            for call in state["messages"][-1].tool_calls:
                try:
                    result = by_name[call["name"]].invoke(call["args"])
                except OrderServiceError as error:
                    result = f"Error: {error}"
                found.append(ToolMessage(result if isinstance(result, str) else json.dumps(result), tool_call_id=call["id"], name=call["name"]))
            return {"messages": found}

        builder = StateGraph(MessagesState)
        builder.add_node("chatbot", chatbot)
        builder.add_node("tools", run_tools)
        builder.add_edge(START, "chatbot")
        builder.add_conditional_edges("chatbot", lambda state: "tools" if state["messages"][-1].tool_calls else END)
        builder.add_edge("tools", "chatbot")
        return builder.compile(name=name, **({"checkpointer": InMemorySaver()} if memory else {}))


class Agents:
    """OpenAI's agents SDK, over chat completions or the Responses API."""

    def __init__(self, sdk: Sdk, told: dict) -> None:
        import asyncio

        import agents

        self.loop = asyncio.new_event_loop()
        os.environ.update(OPENAI_API_KEY="none", OPENAI_BASE_URL=f"{STAGE}/v1")
        sdk.agents_sdk()
        from agents.tracing.processors import default_exporter
        from openai import AsyncOpenAI

        default_exporter().export = lambda items: None  # OpenAI's own backend is not wanted

        agents.set_default_openai_client(AsyncOpenAI(base_url=f"{STAGE}/v1", api_key="none", max_retries=0), use_for_tracing=False)
        self.sdk, self.told, self.agents = sdk, told, agents
        tools = [agents.function_tool(TOOLS[name]) for name in told["tools"]]
        if told["sub_agent"]:
            specialist = agents.Agent(name=told["sub_agent"], instructions=SPECIALIST, tools=tools, model=MODEL)

            @agents.function_tool(name_override=told["sub_agent"])
            async def ask_specialist(task: str) -> str:
                """Ask the travel specialist."""
                return (await agents.Runner.run(specialist, task)).final_output

            tools = [ask_specialist]
        self.agent = agents.Agent(name="support_agent", instructions=SYSTEM, tools=tools, model=MODEL)
        self.session = agents.SQLiteSession(told["conversation_id"]) if told["conversation_id"] else None
        self.answer = sdk.turn(renamed(lambda question: self._answer(question), "support_agent"), "support_agent")

    def _answer(self, question: str) -> str:
        if self.told["documents"]:
            question = with_documents(question, [document["content"] for document in self.told["documents"]])
        config = self.agents.RunConfig(workflow_name="Support", group_id=self.told["conversation_id"])

        async def run() -> str:
            if not self.told["stream"]:
                return (await self.agents.Runner.run(self.agent, question, session=self.session, run_config=config)).final_output
            result = self.agents.Runner.run_streamed(self.agent, question, session=self.session, run_config=config)
            async for _ in result.stream_events():
                pass
            return result.final_output

        return self.loop.run_until_complete(run())


AGENTS = {"loop": Loop, "responses": Responses, "anthropic": Anthropic, "classes": Classes, "graph": Graph, "own-graph": OwnGraph, "agents": Agents}


# --- playing ------------------------------------------------------------------------------------------------------------


def play(sdk: Sdk, kind: str, name: str, scenario: str, versions: dict) -> dict:
    told = {**control("/control/start", {"set": name, "scenario": scenario}), "scenario": scenario}
    agent = AGENTS[kind](sdk, told)
    around = getattr(sdk, "around", lambda function: function())
    for index, turn in enumerate(told["turns"]):
        control("/control/turn", {"index": index})
        agent.index = index
        try:
            with sdk.session(told["conversation_id"]):
                answer = around(lambda text=turn["user_input"]: agent.answer(text))
        except Exception as error:
            if not scenario.startswith(("s9", "s11")):
                traceback.print_exc()
            control("/control/answer", {"error": {"type": type(error).__name__, "message": str(error)}})
        else:
            control("/control/answer", {"answer": answer})
        sdk.flush()
    return control("/control/finish", {"versions": versions})


def main() -> None:
    global STAGE
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--stage", default="http://127.0.0.1:8513")
    parser.add_argument("--sdk", choices=SDKS, required=True)
    parser.add_argument("--agent", choices=AGENTS, required=True)
    parser.add_argument("--name", help="of the set; else SDK-AGENT")
    parser.add_argument("--only", default="s1,s2,s3,s4,s5,s6,s7,s8,s9,s9b,s10,s10b,s11")
    given = parser.parse_args()
    STAGE = given.stage
    from importlib.metadata import distributions

    wanted = ("lmnr", "langsmith", "openlit", "agentops", "langtrace-python-sdk", "openai", "anthropic", "langchain", "langgraph", "openai-agents", "opik",
              "weave", "braintrust", "honeyhive", "posthog", "portkey-ai", "maxim-py", "literalai", "opentelemetry-sdk")  # fmt: skip
    found = {item.metadata["Name"].lower(): item.version for item in distributions() if item.metadata["Name"]}
    versions = {name: found[name] for name in wanted if name in found}
    sdk = SDKS[given.sdk](given.agent)
    for scenario in given.only.split(","):
        print(scenario, play(sdk, given.agent, given.name or f"{given.sdk}-{given.agent}", scenario, versions), flush=True)


if __name__ == "__main__":
    main()
