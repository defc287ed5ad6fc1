"""AutoGen: autogen-core/agentchat/ext 0.7.5. MODE: team (a group chat on a traced runtime), team-traceloop (as its docs trace it, with
opentelemetry-instrumentation-openai), agent (one agent's run), core (an agent of its core's API), openinference
(openinference-instrumentation-autogen-agentchat 0.1.22, a team), openinference-agent.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from dataclasses import dataclass

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.conditions import TextMessageTermination
from autogen_agentchat.teams import RoundRobinGroupChat
from autogen_agentchat.tools import AgentTool
from autogen_core import AgentId, CancellationToken, FunctionCall, MessageContext, RoutedAgent, SingleThreadedAgentRuntime, message_handler
from autogen_core.models import AssistantMessage, FunctionExecutionResult, FunctionExecutionResultMessage, SystemMessage, UserMessage
from autogen_core.tools import FunctionTool
from autogen_ext.models.openai import OpenAIChatCompletionClient
from opentelemetry import trace
from stage_client import BASE, exporters, play, tools_of

MODE = sys.argv[1]
provider = exporters("shop-assistant")
INSTRUCTIONS = "You are a helpful assistant."
if MODE == "team-traceloop":
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument()
if MODE.startswith("openinference"):
    from openinference.instrumentation.autogen_agentchat import AutogenAgentChatInstrumentor

    AutogenAgentChatInstrumentor().instrument()


def client():
    return OpenAIChatCompletionClient(model="gpt-4.1-mini", base_url=f"{BASE}/v1", api_key="x", max_retries=0, include_name_in_message=False)


@dataclass
class Message:
    content: str


class ToolAgent(RoutedAgent):
    def __init__(self, tools, helper: str | None = None) -> None:
        super().__init__("An agent with tools")
        self._history = [SystemMessage(content=INSTRUCTIONS)]
        self._model = client()
        self._tools = tools
        if helper is not None:

            async def ask(task: str) -> str:
                return (await self.send_message(Message(task), AgentId(helper, "default"))).content

            self._tools = [FunctionTool(ask, name=helper, description="Knows what to pack.")]

    @message_handler
    async def handle_user_message(self, message: Message, ctx: MessageContext) -> Message:
        history = [*self._history, UserMessage(content=message.content, source="user")]
        while True:
            answer = await self._model.create(messages=history, tools=self._tools, cancellation_token=ctx.cancellation_token)
            if isinstance(answer.content, str):
                self._history = [*history, AssistantMessage(content=answer.content, source="assistant")]
                return Message(content=answer.content)
            history.append(AssistantMessage(content=answer.content, source="assistant"))
            results = await asyncio.gather(*(self._call(call, ctx) for call in answer.content))
            history.append(FunctionExecutionResultMessage(content=results))

    async def _call(self, call: FunctionCall, ctx: MessageContext) -> FunctionExecutionResult:
        tool = next((tool for tool in self._tools if tool.name == call.name), None)
        try:
            result = await tool.run_json(json.loads(call.arguments), ctx.cancellation_token, call_id=call.id)
            return FunctionExecutionResult(call_id=call.id, content=tool.return_value_as_string(result), is_error=False, name=tool.name)
        except Exception as error:
            return FunctionExecutionResult(call_id=call.id, content=str(error), is_error=True, name=tool.name)


async def core(plan):
    runtime = SingleThreadedAgentRuntime(tracer_provider=provider)
    tools = [FunctionTool(function, description=function.__doc__) for function in tools_of(plan)]
    if plan["sub_agent"]:
        await ToolAgent.register(runtime, "travel_specialist", lambda: ToolAgent(tools))
        await ToolAgent.register(runtime, "shop_assistant", lambda: ToolAgent([], "travel_specialist"))
    else:
        await ToolAgent.register(runtime, "shop_assistant", lambda: ToolAgent(tools))

    async def ask(text):
        runtime.start()
        try:
            return (await runtime.send_message(Message(text), AgentId("shop_assistant", plan["conversation_id"] or "default"))).content
        finally:
            with contextlib.suppress(Exception):
                await runtime.stop()

    return ask


def answer_of(result: TaskResult) -> str:
    return result.messages[-1].to_text()


async def prepare(plan):
    if MODE == "core":
        return await core(plan)
    if plan["sub_agent"]:
        specialist = AssistantAgent("travel_specialist", model_client=client(), tools=tools_of(plan), system_message=INSTRUCTIONS, description="Knows what to pack.", reflect_on_tool_use=True)
        tools = [AgentTool(agent=specialist, return_value_as_last_message=True)]
    else:
        tools = tools_of(plan)
    context = "\n".join(document["content"] for document in plan["documents"])
    agent = AssistantAgent("shop_assistant", model_client=client(), tools=tools, model_client_stream=plan["stream"], max_tool_iterations=8,
        reflect_on_tool_use=True, system_message=f"{INSTRUCTIONS}\n\nAnswer from this context:\n{context}" if context else INSTRUCTIONS)  # fmt: skip
    def team():
        if MODE.endswith("agent"):
            return agent
        runtime = None
        if MODE == "team-traceloop":
            runtime = SingleThreadedAgentRuntime(tracer_provider=trace.NoOpTracerProvider())
            runtime.start()
        return RoundRobinGroupChat([agent], termination_condition=TextMessageTermination("shop_assistant"), runtime=runtime)

    runner = team()

    async def run(text):
        if plan["stream"]:
            events = [event async for event in runner.run_stream(task=text)]
            return answer_of(events[-1])
        return answer_of(await asyncio.wait_for(runner.run(task=text), 15))

    async def ask(text):
        nonlocal runner
        if plan["scenario"] == "s11":  # a team that failed does not go on
            await agent.on_reset(CancellationToken())
            runner = team()
        if MODE == "team-traceloop":
            with trace.get_tracer("shop").start_as_current_span("run_team"):
                return await run(text)
        return await run(text)

    return ask


play(f"autogen-{MODE}", prepare, ("autogen-core", "autogen-agentchat"))
