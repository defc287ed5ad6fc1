"""BeeAI: beeai-framework 0.1.85, openinference-instrumentation-beeai 0.1.30. MODE: openinference (RequirementAgent),
openinference-toolcalling (ToolCallingAgent).
"""

from __future__ import annotations

import inspect
import sys

from beeai_framework.adapters.openai import OpenAIChatModel
from beeai_framework.agents.requirement import RequirementAgent
from beeai_framework.agents.tool_calling import ToolCallingAgent
from beeai_framework.backend import ChatModelParameters, UserMessage
from beeai_framework.memory import UnconstrainedMemory
from beeai_framework.tools import tool
from beeai_framework.tools.handoff import HandoffTool
from openinference.instrumentation import using_session
from openinference.instrumentation.beeai import BeeAIInstrumentor
from stage_client import BASE, exporters, play, rescript, tools_of

MODE = sys.argv[1]
exporters("shop-assistant")
BeeAIInstrumentor().instrument()
INSTRUCTIONS = "You are a helpful assistant."


def model(plan):
    return OpenAIChatModel("gpt-4o-mini", api_key="x", base_url=f"{BASE}/v1", parameters=ChatModelParameters(temperature=0, stream=plan["stream"]))


def prepare(plan):
    memory = UnconstrainedMemory()

    def agent(name, tools, own=None):
        if MODE.endswith("toolcalling"):
            return ToolCallingAgent(llm=model(plan), memory=own or UnconstrainedMemory(), tools=tools)
        return RequirementAgent(llm=model(plan), name=name, description="Knows what to pack.", memory=own or UnconstrainedMemory(), tools=tools, instructions=INSTRUCTIONS)

    tools = [tool(function) for function in tools_of(plan)]
    if plan["sub_agent"]:
        tools = [HandoffTool(agent("travel_specialist", tools), name="travel_specialist", description="Knows what to pack.")]
    main = agent("shop_assistant", tools, memory if plan["conversation_id"] else None)
    context = "\n".join(document["content"] for document in plan["documents"])

    turn = iter(plan["all_steps"])

    async def ask(text):
        plan["steps"] = next(turn)
        if MODE == "openinference":  # its answers are a tool's arguments
            for step in plan["steps"]:
                if "text" in step:
                    step["tool_calls"] = [{"name": "final_answer", "arguments": {"response": step.pop("text")}}]
        rescript(plan, {}, f"{plan['scenario']}{text}")
        if plan["scenario"] == "s11":
            return await run(agent("shop_assistant", tools), text)
        return await run(main, text)

    async def run(which, text):
        prompt = f"Context:\n{context}\n\nQuestion: {text}" if context else text
        answer = which.run(prompt) if "max_retries_per_step" not in inspect.signature(which.run).parameters else which.run(prompt, max_retries_per_step=0)
        if plan["conversation_id"]:
            with using_session(plan["conversation_id"]):
                answer = await answer
        else:
            answer = await answer
        return answer.last_message.text

    return ask


play(f"beeai-{MODE}", prepare, ("beeai-framework", "openinference-instrumentation-beeai"), framework_tools=["final_answer"])
