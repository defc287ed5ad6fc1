"""Agents of three frameworks for live tests: scripted models, tools that say what they were asked, and the instrumentation."""

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
"""The scripted server's queue of connections is short."""

Tool = Callable[..., str]
Ask = Callable[[list[Any]], dict[str, Any]]


# --- instrumentation


@contextmanager
def openai_traced(live: Live, capture: str = "SPAN_ONLY") -> Iterator[None]:
    """The OpenAI SDK instrumented by OpenTelemetry's package, with this capture mode."""
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
    """LangChain instrumented by OpenInference."""
    instrumentor = LangChainInstrumentor()
    config = TraceConfig(hide_inputs=not content, hide_outputs=not content)
    instrumentor.instrument(tracer_provider=live.provider, config=config)
    try:
        yield
    finally:
        instrumentor.uninstrument()


def pydantic_traced(live: Live, *, content: bool = True) -> InstrumentationSettings:
    """Settings with which pydantic-ai writes its own spans."""
    return InstrumentationSettings(tracer_provider=live.provider, include_content=content)


# --- agents


def pydantic_agent(live: Live, model: Any, name: str = "support_agent", *, content: bool = True, **more: Any) -> Agent[None, str]:
    """An agent of pydantic-ai."""
    settings = pydantic_traced(live, content=content)
    return Agent(model, name=name, instructions=SYSTEM, capabilities=[Instrumentation(settings)], **more)


def langgraph_agent(url: str, tools: Sequence[Tool], name: str = "support_agent", **clients: Any) -> Any:
    """An agent of LangGraph."""
    return create_agent(langchain_model(url, **clients), _structured(tools), system_prompt=SYSTEM, name=name)


def langchain_model(url: str, tools: Sequence[Tool] = (), **clients: Any) -> Any:
    """A chat model of LangChain, with its tools bound."""
    model = ChatOpenAI(model=MODEL, base_url=url, api_key="none", max_retries=0, **clients)
    return model.bind_tools(_structured(tools)) if tools else model


def _structured(tools: Sequence[Tool]) -> list[Any]:
    return [StructuredTool.from_function(tool) for tool in tools]


def said(question: str) -> dict[str, Any]:
    """What LangGraph's agents are given."""
    return {"messages": [{"role": "user", "content": question}]}


def settings_of(conversation: str) -> dict[str, Any]:
    """A LangGraph run's settings, with its conversation."""
    return {"configurable": {"thread_id": conversation}, "metadata": {"session_id": conversation}}


# --- a loop by hand around the OpenAI SDK


def definitions(tools: Mapping[str, str]) -> list[dict[str, Any]]:
    """Tools, by name with the one argument of each, as the API wants them."""
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
    """A conversation's first messages."""
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": question}]


def answer_tools(message: Mapping[str, Any], tools: Mapping[str, Tool]) -> list[dict[str, Any]]:
    """The messages that answer a model's tool calls."""
    return [
        {
            "role": "tool",
            "tool_call_id": call["id"],
            "content": tools[call["function"]["name"]](**json.loads(call["function"]["arguments"])),
        }
        for call in message.get("tool_calls") or ()
    ]


def tool_loop(ask: Ask, question: str, tools: Mapping[str, Tool]) -> str:
    """The loop of every tutorial; returns the answer."""
    history = begin(question)
    while True:
        message = ask(history)
        history.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        history += answer_tools(message, tools)


async def tool_loop_async(client: openai.AsyncOpenAI, question: str, offered: list[Any], tools: Mapping[str, Tool]) -> str:
    """The same with the asynchronous client."""
    history = begin(question)
    while True:
        answer = await client.chat.completions.create(model=MODEL, messages=history, tools=offered)
        message = answer.choices[0].message.model_dump(exclude_none=True)
        history.append(message)
        if not message.get("tool_calls"):
            return str(message["content"])
        history += answer_tools(message, tools)


def asker(client: openai.OpenAI, offered: list[Any], *, stream: bool = False) -> Ask:
    """One request and its answer as a message of the history, streamed or not."""

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
