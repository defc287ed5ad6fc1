"""Agents of three frameworks for live tests: scripted models, tools that record their arguments, and the instrumentation."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import httpx
import openai
import pytest
from langchain.agents import create_agent
from langchain_core.tools import StructuredTool
from langchain_openai import ChatOpenAI
from openinference.instrumentation import TraceConfig
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor
from pydantic_ai import Agent
from pydantic_ai.capabilities import Instrumentation
from pydantic_ai.models.instrumented import InstrumentationSettings

from tests.support.live import Live

MODEL = "gpt-4o-mini"
SYSTEM = "You are the support assistant of the Acme store."
ALL = httpx.Limits(max_connections=8)
"""Few connections, because the scripted server's connection queue is short."""

Tool = Callable[..., str]
Ask = Callable[[list[Any]], dict[str, Any]]


# --- instrumentation


@contextmanager
def openai_traced(live: Live, capture: str = "SPAN_ONLY") -> Iterator[None]:
    """Instrument the OpenAI SDK with OpenTelemetry's package, in this capture mode."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", capture)
        if capture == "EVENT_ONLY":
            patch.setenv("OTEL_INSTRUMENTATION_GENAI_EMIT_EVENT", "true")
        instrumentor = OpenAIInstrumentor()
        instrumentor.instrument(tracer_provider=live.provider, logger_provider=live.logger_provider)
        try:
            yield
        finally:
            instrumentor.uninstrument()


@contextmanager
def langchain_traced(live: Live, *, content: bool = True) -> Iterator[None]:
    """Instrument LangChain with OpenInference."""
    instrumentor = LangChainInstrumentor()
    config = TraceConfig(hide_inputs=not content, hide_outputs=not content)
    instrumentor.instrument(tracer_provider=live.provider, config=config)
    try:
        yield
    finally:
        instrumentor.uninstrument()


def pydantic_traced(live: Live, *, content: bool = True) -> InstrumentationSettings:
    """Return settings with which pydantic-ai writes its own spans."""
    return InstrumentationSettings(tracer_provider=live.provider, include_content=content)


# --- agents


def pydantic_agent(live: Live, model: Any, name: str = "support_agent", *, content: bool = True, **more: Any) -> Agent[None, str]:
    settings = pydantic_traced(live, content=content)
    return Agent(model, name=name, instructions=SYSTEM, capabilities=[Instrumentation(settings)], **more)


def langgraph_agent(url: str, tools: Sequence[Tool], name: str = "support_agent", **clients: Any) -> Any:
    return create_agent(langchain_model(url, **clients), _structured(tools), system_prompt=SYSTEM, name=name)


def langchain_model(url: str, tools: Sequence[Tool] = (), **clients: Any) -> Any:
    """Return a LangChain chat model with bound tools."""
    model = ChatOpenAI(model=MODEL, base_url=url, api_key="none", max_retries=0, **clients)
    return model.bind_tools(_structured(tools)) if tools else model


def _structured(tools: Sequence[Tool]) -> list[Any]:
    return [StructuredTool.from_function(tool) for tool in tools]


def said(question: str) -> dict[str, Any]:
    """Return the input of a LangGraph agent."""
    return {"messages": [{"role": "user", "content": question}]}


def settings_of(conversation: str) -> dict[str, Any]:
    """Return the configuration of a LangGraph run in a conversation."""
    return {"configurable": {"thread_id": conversation}, "metadata": {"session_id": conversation}}


# --- a hand-written loop with the OpenAI SDK


def definitions(tools: Mapping[str, str]) -> list[dict[str, Any]]:
    """Return tool definitions for the API. ``tools`` maps names to the only argument of each tool."""
    return [
        {
            "type": "function",
            "function": {
                "name": name,
                "description": name,
                "parameters": {"type": "object", "properties": {argument: {"type": "string"}}},
            },
        }
        for name, argument in tools.items()
    ]


def begin(question: str) -> list[Any]:
    """Return the first messages of a conversation."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


def answer_tools(message: Mapping[str, Any], tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """Call the tools that the model requested, and return the result messages."""
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": tools[call["function"]["name"]](**json.loads(call["function"]["arguments"])),
        }
        for call in message.get("tool_calls") or ()
    ]


def tool_loop(ask: Ask, question: str, tools: Mapping[str, Tool]) -> str:
    """Run the usual tool loop, and return the answer."""
    history = begin(question)
    while True:
        message = ask(history)
        history.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        history += answer_tools(message, tools)


async def tool_loop_async(client: openai.AsyncOpenAI, question: str, offered: list[Any], tools: Mapping[str, Tool]) -> str:
    """Run :func:`tool_loop` with the asynchronous client."""
    history = begin(question)
    while True:
        answer = await client.chat.completions.create(model=MODEL, messages=history, tools=offered)
        message = answer.choices[0].message.model_dump(exclude_none=True)
        history.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        history += answer_tools(message, tools)


def asker(client: openai.OpenAI, offered: list[Any], *, stream: bool = False) -> Ask:
    """Return a function that sends a request, and returns its (possibly streamed) answer as a message."""

    def whole(history: list[Any]) -> dict[str, Any]:
        answer = client.chat.completions.create(model=MODEL, messages=history, tools=offered)
        message: dict[str, Any] = answer.choices[0].message.model_dump(exclude_none=True)
        return message

    def streamed(history: list[Any]) -> dict[str, Any]:
        content, calls = "", {}
        for chunk in client.chat.completions.create(
            model=MODEL, messages=history, tools=offered, stream=True, stream_options={"include_usage": True}
        ):
            for choice in chunk.choices:
                content += choice.delta.content or ""
                for part in choice.delta.tool_calls or []:
                    first = {"id": part.id, "type": "function", "function": {"name": part.function.name, "arguments": ""}}
                    call = calls.setdefault(part.index, first)
                    call["function"]["arguments"] += part.function.arguments or ""
        return {"role": "assistant", "content": content, **({"tool_calls": list(calls.values())} if calls else {})}

    return streamed if stream else whole
