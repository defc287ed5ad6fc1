"""Semantic Kernel's own diagnostics: semantic-kernel 1.45.0. MODE: agent (ChatCompletionAgent), chat (a chat service that calls
functions by itself), kernel (a prompt function), agent-off (without content).
"""

from __future__ import annotations

import json
import logging
import os
import sys

MODE = sys.argv[1]
os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS"] = "true"
os.environ["SEMANTICKERNEL_EXPERIMENTAL_GENAI_ENABLE_OTEL_DIAGNOSTICS_SENSITIVE"] = "false" if MODE.endswith("-off") else "true"

from openai import AsyncOpenAI
from opentelemetry.sdk._logs import LoggingHandler
from semantic_kernel import Kernel
from semantic_kernel.agents import ChatCompletionAgent, ChatHistoryAgentThread
from semantic_kernel.connectors.ai.function_choice_behavior import FunctionChoiceBehavior
from semantic_kernel.connectors.ai.open_ai import OpenAIChatCompletion, OpenAIChatPromptExecutionSettings
from semantic_kernel.contents import ChatHistory
from semantic_kernel.functions import KernelArguments, kernel_function
from stage_client import BASE, TOOLS, Skip, exporters, play, rescript

_, log_provider = exporters("shop-assistant", logs=True)
handler = LoggingHandler(logger_provider=log_provider)
handler.addFilter(logging.Filter("semantic_kernel"))
logging.getLogger().addHandler(handler)
logging.getLogger().setLevel(logging.WARNING if MODE.endswith("-off") else logging.INFO)
INSTRUCTIONS = "You are a helpful assistant."


def service():
    client = AsyncOpenAI(base_url=f"{BASE}/v1", api_key="x", max_retries=0)
    return OpenAIChatCompletion(ai_model_id="gpt-4o-mini", async_client=client)


def plugin(plan):
    return {name: kernel_function(TOOLS[name], name=name, description=TOOLS[name].__doc__) for name in plan["tools"] or ["get_weather"]}


def kernel_of(plan):
    kernel = Kernel()
    kernel.add_service(service())
    kernel.add_functions(plugin_name="shop", functions=list(plugin(plan).values()))
    return kernel


def qualified(plan):
    for step in plan["steps"]:
        for call in step.get("tool_calls", ()):
            if call["name"] in TOOLS:
                call["name"] = f"shop-{call['name']}"
            elif call["name"] == plan["sub_agent"]:
                call.update(name="travel_specialist-travel_specialist", arguments={"messages": call["arguments"]["task"]})


def prepare(plan):
    if plan["sub_agent"] and MODE not in ("agent", "agent-off"):
        raise Skip("no agents")
    kernel = kernel_of(plan)
    history = ChatHistory(system_message=INSTRUCTIONS)
    thread = ChatHistoryAgentThread(thread_id=plan["conversation_id"])
    settings = OpenAIChatPromptExecutionSettings(function_choice_behavior=FunctionChoiceBehavior.Auto(maximum_auto_invoke_attempts=8))
    if plan["sub_agent"]:
        specialist = ChatCompletionAgent(kernel=kernel, name="travel_specialist", description="Knows what to pack.", instructions=INSTRUCTIONS)
        agent = ChatCompletionAgent(service=service(), name="front_desk", instructions=INSTRUCTIONS, plugins=[specialist])
    else:
        agent = ChatCompletionAgent(kernel=kernel, name="shop_assistant", instructions=INSTRUCTIONS, function_choice_behavior=FunctionChoiceBehavior.Auto(maximum_auto_invoke_attempts=8))
    turn = iter(plan["all_steps"])

    async def ask(text):
        plan["steps"] = next(turn)
        qualified(plan)
        rescript(plan, {}, f"{plan['scenario']}{text}")
        if plan["documents"]:
            text = f"Answer from these documents:\n{json.dumps([d['content'] for d in plan['documents']])}\n\nQuestion: {text}"
        if MODE == "kernel":
            result = await kernel.invoke_prompt("{{$question}}", arguments=KernelArguments(settings=settings, question=text))
            return str(result)
        if MODE.startswith("agent"):
            where = {"thread": thread} if plan["conversation_id"] else {}
            if plan["stream"]:
                return "".join([str(chunk.message.content) async for chunk in agent.invoke_stream(messages=text, **where)])
            return str((await agent.get_response(messages=text, **where)).message.content)
        if plan["scenario"] == "s11":
            history.clear()
        history.add_user_message(text)
        chat = kernel.get_service()
        if plan["stream"]:
            return "".join([str(chunk.content) async for chunk in chat.get_streaming_chat_message_content(history, settings, kernel=kernel)])
        answer = await chat.get_chat_message_content(history, settings, kernel=kernel)
        history.add_message(answer)
        return str(answer)

    return ask


play(f"semantic-kernel-{MODE}", prepare, ("semantic-kernel",), scenarios="s1 s2 s3 s4 s6 s7 s8 s10 s10b s11 s9 s9b", tool_prefix="shop-", framework_tools=["travel_specialist-travel_specialist"])
