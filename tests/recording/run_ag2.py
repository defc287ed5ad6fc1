"""AG2's own tracing. MODE: agent (ag2 1.2.1: TelemetryMiddleware), chat and group (ag2 0.14.0: instrument_agent, instrument_pattern and
instrument_llm_wrapper; an agent that a user proxy talks to, and a group chat).
"""

from __future__ import annotations

import sys

from stage_client import BASE, exporters, play, tools_of

MODE = sys.argv[1]
provider = exporters("shop-assistant")
INSTRUCTIONS = "You are a helpful assistant."


def prepare(plan):
    from ag2 import Agent
    from ag2.config import OpenAIConfig
    from ag2.middleware.builtin.telemetry import TelemetryMiddleware

    config = OpenAIConfig(model="gpt-4o-mini", api_key="x", base_url=f"{BASE}/v1", max_retries=0, streaming=plan["stream"])
    more = {"span_attributes": {"session.id": plan["conversation_id"]}} if plan["conversation_id"] else {}
    context = "\n".join(document["content"] for document in plan["documents"])
    prompt = f"{INSTRUCTIONS}\nContext:\n{context}" if context else INSTRUCTIONS

    def agent(name, tools):
        return Agent(name, prompt=prompt, config=config, tools=tools, middleware=[TelemetryMiddleware(agent_name=name, provider_name="openai", model_name="gpt-4o-mini", **more)])

    tools = tools_of(plan)
    if plan["sub_agent"]:
        specialist = agent(plan["sub_agent"], tools)

        async def travel_specialist(task: str) -> str:
            """Ask the travel specialist."""
            return (await specialist.ask(task)).body

        tools = [travel_specialist]
    main = agent("shop_assistant", tools)
    reply = None

    async def ask(text):
        nonlocal reply
        reply = await (reply.ask(text) if reply is not None and plan["conversation_id"] else main.ask(text))
        return reply.body

    return ask


def prepare_classic(plan):
    from autogen import ConversableAgent, LLMConfig
    from autogen.agentchat import a_run_group_chat, run_group_chat
    from autogen.agentchat.group.patterns import RoundRobinPattern
    from autogen.opentelemetry import instrument_agent, instrument_llm_wrapper, instrument_pattern

    instrument_llm_wrapper(tracer_provider=provider)
    llm = LLMConfig({"model": "gpt-4o-mini", "api_key": "x", "base_url": f"{BASE}/v1", "max_retries": 0, "stream": plan["stream"]}, cache_seed=None)
    context = "\n".join(document["content"] for document in plan["documents"])

    def agent(name, tools):
        made = ConversableAgent(name, system_message=f"{INSTRUCTIONS}\n{context}".strip(), llm_config=llm, functions=tools, human_input_mode="NEVER")
        return made

    tools = tools_of(plan)
    if plan["sub_agent"]:
        specialist = agent(plan["sub_agent"], tools)
        instrument_agent(specialist, tracer_provider=provider)
        caller = ConversableAgent("caller", llm_config=False, human_input_mode="NEVER")
        for function in tools:
            caller.register_for_execution(name=function.__name__)(function)
        instrument_agent(caller, tracer_provider=provider)

        def travel_specialist(task: str) -> str:
            """Ask the travel specialist."""
            return caller.initiate_chat(specialist, message=task, max_turns=2).summary

        tools = [travel_specialist]
    main = agent("shop_assistant", tools)
    if MODE == "chat":
        instrument_agent(main, tracer_provider=provider)
    else:
        pattern = RoundRobinPattern(initial_agent=main, agents=[main])
        instrument_pattern(pattern, tracer_provider=provider)
    calls = [sum(bool(step.get("tool_calls")) for step in steps) for steps in plan["all_steps"]]
    turns = iter([1] if plan["sub_agent"] else calls)

    def ask(text):
        rounds = next(turns)
        if MODE == "chat":
            answer = main.run(message=text, max_turns=rounds + 1, user_input=False, clear_history=plan["scenario"] != "s6")
        else:
            answer = run_group_chat(pattern=pattern, messages=text, max_rounds=2 * rounds + 2)
        answer.process()
        said = [message["content"] for message in answer.messages if message.get("content") and not message.get("tool_responses")]
        return said[-1]

    import asyncio

    return lambda text: asyncio.to_thread(ask, text)


if MODE == "agent":
    play("ag2-agent", prepare, ("ag2",))
else:
    play(f"ag2-{MODE}", prepare_classic, ("ag2",))
