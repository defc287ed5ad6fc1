"""Record frameworks that the project has no dialect for, each in an environment of its own: ``run_unnamed_frameworks.py NAME``.

ragbits-agents 1.x, upsonic, livekit-agents (text only), mirascope 2.8 (llm and ops), each with its own OpenTelemetry spans.
"""

import os
import sys

from stage_client import BASE, TOOLS, Skip, _FLUSH, exporters, play, rescript, tools_of

NAME = sys.argv[1]
INSTRUCTIONS = "You are a helpful assistant. Use the tools when they help."
SPECIALIST = "You are a travel specialist."
os.environ.update(DEFAULT_MAX_RETRIES="0", OPENAI_API_KEY="x", OPENAI_BASE_URL=f"{BASE}/v1")


def ragbits():
    from ragbits.agents import Agent, AgentOptions
    from ragbits.core.audit.traces import set_trace_handlers
    from ragbits.core.audit.traces.otel import OtelTraceHandler
    from ragbits.core.llms import LiteLLM

    set_trace_handlers(OtelTraceHandler(provider=exporters("shop-assistant")))

    def prepare(plan):
        if plan["documents"]:
            raise Skip("no retriever")
        llm = LiteLLM(model_name="openai/gpt-4.1-mini", base_url=f"{BASE}/v1", api_key="x", use_structured_output=False)
        tools = tools_of(plan)
        if plan["sub_agent"]:
            tools = [Agent(llm=llm, name="travel_specialist", description="Knows what to pack.", prompt=SPECIALIST, tools=tools)]
        agent = Agent(llm=llm, name="assistant", prompt=INSTRUCTIONS, tools=tools, keep_history=plan["conversation_id"] is not None)

        async def ask(text):
            if plan["sub_agent"]:
                rescript(plan, {"travel_specialist": ("travel_specialist", {"input": f"{text}"})})
            if plan["stream"]:
                stream = agent.run_streaming(text)
                async for _ in stream:
                    pass
                return stream.content
            return (await agent.run(text)).content

        return ask

    return prepare, ("ragbits-agents", "ragbits-core"), {}


def upsonic():
    from upsonic import Agent, Task
    from upsonic.integrations.tracing import TracingProvider

    class Provider(TracingProvider):
        def _create_exporter(self):
            from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

            return OTLPSpanExporter(f"{BASE}/v1/traces")

    provider = Provider(service_name="shop-assistant")
    _FLUSH.append(provider.flush)

    def prepare(plan):
        if plan["documents"] or plan["sub_agent"]:
            raise Skip("not so")
        session = {"session_id": plan["conversation_id"], "user_id": "u-7"} if plan["conversation_id"] else {}
        agent = Agent("openai/gpt-4.1-mini", name="assistant", system_prompt=INSTRUCTIONS, instrument=provider, retry=1, **session)

        async def ask(text):
            return await agent.do_async(Task(text, tools=tools_of(plan)))

        return ask

    return prepare, ("upsonic",), {}


def livekit():
    from livekit.agents import Agent, AgentSession, function_tool
    from livekit.agents.telemetry import set_tracer_provider
    from livekit.agents.types import APIConnectOptions
    from livekit.agents.voice.agent_session import SessionConnectOptions
    from livekit.plugins import openai

    set_tracer_provider(exporters("shop-assistant"))

    async def prepare(plan):
        if plan["documents"] or plan["sub_agent"]:
            raise Skip("not so")
        llm = openai.LLM(model="gpt-4.1-mini", base_url=f"{BASE}/v1", api_key="x", max_retries=0)
        options = SessionConnectOptions(llm_conn_options=APIConnectOptions(max_retry=0), max_unrecoverable_errors=9)
        session = AgentSession(llm=llm, conn_options=options, max_tool_steps=8)
        await session.start(Agent(instructions=INSTRUCTIONS, tools=[function_tool(one) for one in tools_of(plan)]))

        failed = []
        session.on("error", lambda event: failed.append(event.error))

        async def ask(text):
            result = await session.run(user_input=text)
            if failed:
                raise getattr(failed[-1], "error", failed[-1])
            texts = [event.item.text_content for event in result.events if event.type == "message" and event.item.role == "assistant"]
            if text == plan["turns"][-1]["user_input"]:
                await session.aclose()
            return texts[-1]

        return ask

    return prepare, ("livekit-agents",), {}


def mirascope():
    from mirascope import llm, ops

    ops.configure(tracer_provider=exporters("shop-assistant"))
    ops.instrument_llm()
    llm.register_provider("openai:completions", scope="openai/", base_url=f"{BASE}/v1", api_key="x")

    def prepare(plan):
        if plan["documents"]:
            raise Skip("no retriever")

        def agent_of(system, tools):
            model = llm.Model("openai/gpt-4.1-mini")
            history = [llm.messages.system(system)]

            def run(text):
                response = model.call([*history, llm.messages.user(text)], tools=tools)
                while response.tool_calls:
                    response = response.resume(response.execute_tools())
                if plan["conversation_id"]:
                    history[:] = response.messages
                return response.text()

            return run

        tools = [llm.tool(ops.trace(one)) for one in tools_of(plan)]
        if plan["sub_agent"]:
            inner = agent_of(SPECIALIST, tools)

            @llm.tool
            @ops.trace
            def travel_specialist(task: str) -> str:
                """Ask the travel specialist."""
                return inner(task)

            tools = [travel_specialist]
        run = agent_of(INSTRUCTIONS, tools)

        @ops.trace
        def handle_message(question: str) -> str:
            return run(question)

        def ask(text):
            if plan["conversation_id"]:
                with ops.session(id=plan["conversation_id"]):
                    return handle_message(text)
            return handle_message(text)

        return ask

    return prepare, ("mirascope",), {}


def mcpagent():
    from mcp_agent.agents.agent import Agent
    from mcp_agent.app import MCPApp
    from mcp_agent.config import LoggerSettings, OpenAISettings, OpenTelemetrySettings, Settings
    from mcp_agent.workflows.llm.augmented_llm_openai import OpenAIAugmentedLLM
    from opentelemetry import trace

    otlp = {"otlp": {"endpoint": f"{BASE}/v1/traces"}}
    otel = OpenTelemetrySettings(enabled=True, exporters=[otlp], service_name="shop-assistant")
    openai = OpenAISettings(api_key="x", base_url=f"{BASE}/v1", default_model="gpt-4.1-mini")
    app = MCPApp(name="shop", settings=Settings(otel=otel, openai=openai, logger=LoggerSettings(type="none", level="error")))
    _FLUSH.append(lambda: trace.get_tracer_provider().force_flush())

    async def prepare(plan):
        if plan["documents"] or plan["sub_agent"] or plan["stream"]:
            raise Skip("not so")
        await app.initialize()
        agent = Agent(name="assistant", instruction=INSTRUCTIONS, functions=tools_of(plan), context=app.context)
        await agent.initialize()
        llm = await agent.attach_llm(OpenAIAugmentedLLM)
        if plan["conversation_id"]:
            app.context.session_id = plan["conversation_id"]

        async def ask(text):
            return await llm.generate_str(text)

        return ask

    return prepare, ("mcp-agent",), {}


prepare, packages, said = globals()[NAME]()
play(NAME, prepare, packages, **said)
