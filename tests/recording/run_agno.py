"""Agno: agno 3.1.10, openinference-instrumentation-agno 1.0.15 (MODE openinference: asynchronous; openinference-openai: synchronous,
with openinference-instrumentation-openai 0.1.66 below it; off: content hidden; otel-genai:
opentelemetry-instrumentation-genai-agno 1.3b0, with genai-openai 1.3b0 below it, or alone: otel-genai-agent; traceloop: opentelemetry-instrumentation-agno 0.62.4).
"""

from __future__ import annotations

import asyncio
import os
import sys

from agno.agent import Agent
from agno.db.in_memory import InMemoryDb
from agno.models.openai import OpenAIChat
from agno.run import RunStatus
from agno.team import Team
from openinference.instrumentation import TraceConfig
from openinference.instrumentation.agno import AgnoInstrumentor
from openinference.instrumentation.openai import OpenAIInstrumentor
from stage_client import BASE, exporters, play, rescript, tools_of

MODE = sys.argv[1]
exporters("shop-assistant")
hidden = TraceConfig(hide_inputs=True, hide_outputs=True) if MODE == "openinference-off" else TraceConfig()
if MODE.startswith("otel-genai"):
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_ONLY"
    from opentelemetry.instrumentation.genai.agno import AgnoInstrumentor as GenAIAgnoInstrumentor
    from opentelemetry.instrumentation.genai.openai import OpenAIInstrumentor as GenAIOpenAIInstrumentor

    GenAIAgnoInstrumentor().instrument()
    if MODE == "otel-genai":
        GenAIOpenAIInstrumentor().instrument()
elif MODE == "traceloop":
    from opentelemetry.instrumentation.agno import AgnoInstrumentor as TraceloopInstrumentor

    TraceloopInstrumentor().instrument()
else:
    AgnoInstrumentor().instrument(config=hidden)
if MODE == "openinference-openai":
    OpenAIInstrumentor().instrument()


def model():
    return OpenAIChat(id="gpt-4o-mini", base_url=f"{BASE}/v1", api_key="x", max_retries=0)


def prepare(plan):
    common = {"telemetry": False, "retries": 0}
    if plan["sub_agent"]:
        specialist = Agent(name="travel_specialist", id="travel_specialist", role="Knows what to pack", model=model(), tools=tools_of(plan), **common)
        agent = Team(name="front_desk", members=[specialist], model=model(), instructions="Delegate travel questions.", **common)
    else:
        more = {}
        if plan["documents"]:
            more = {"knowledge_retriever": lambda query, **_: plan["documents"], "add_knowledge_to_context": True, "search_knowledge": False}
        if plan["conversation_id"]:
            more = {"db": InMemoryDb(), "add_history_to_context": True}
        agent = Agent(name="shop_assistant", model=model(), instructions="You are a helpful assistant.", tools=tools_of(plan), **more, **common)

    async def ask(text):
        if plan["sub_agent"]:
            task = plan["steps"][0]["tool_calls"][0]["arguments"]["task"]
            rescript(plan, {"travel_specialist": ("delegate_task_to_member", {"member_id": "travel_specialist", "task": task})})
        where = {"session_id": plan["conversation_id"], "user_id": "user-7"} if plan["conversation_id"] else {}
        if plan["stream"]:
            parts, failed = [], None
            if MODE == "openinference-openai":
                for event in agent.run(text, stream=True, **where):
                    if event.event == "RunContent":
                        parts.append(event.content)
            else:
                async for event in agent.arun(text, stream=True, **where):
                    if event.event == "RunContent":
                        parts.append(event.content)
            return "".join(parts)
        if MODE == "openinference-openai":
            answer = await asyncio.to_thread(agent.run, text, **where)
        else:
            answer = await agent.arun(text, **where)
        if answer.status == RunStatus.error:
            raise RuntimeError(answer.content)
        return answer.content

    return ask


play(f"agno-{MODE}", prepare, ("agno", "openinference-instrumentation-agno"), framework_tools=["delegate_task_to_member"])
