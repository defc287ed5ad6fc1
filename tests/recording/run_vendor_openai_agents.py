"""Record the OpenAI Agents SDK under a vendor's SDK: ``--sets langwatch-openai-agents`` or ``--sets traceai-openai-agents``, in its environment.

    uv pip install langwatch==1.4.0 openai-agents==0.24.0 openinference-instrumentation-openai-agents==2.6.0
    uv pip install fi-instrumentation-otel==1.1.0 traceai-openai-agents==0.1.6 openai-agents==0.24.0
"""

import asyncio
import sys
from pathlib import Path

here = sys.path.pop(0)  # this folder has a module of the SDK's name
import agents as sdk
import openai

del sys.modules["agents"]
sys.path.insert(0, here)
import agents as stage

sys.modules["agents"] = sdk
assert Path(stage.__file__).parent == Path(here)

LOOP = asyncio.new_event_loop()
model = sdk.OpenAIResponsesModel("gpt-4.1-mini", openai.AsyncOpenAI(base_url=f"{stage.STAGE}/v1", api_key="x", max_retries=0))


class Agent:
    def __init__(self, told):
        self.told = told
        self.session = sdk.SQLiteSession(told["conversation_id"]) if told["conversation_id"] else None
        tools = [sdk.function_tool(stage.TOOLS[name]) for name in told["tools"] if name in stage.TOOLS]
        if told["documents"]:

            def search_docs(query: str) -> str:
                """Search the documents."""
                return "\n".join(item["content"] for item in told["documents"])

            tools = [sdk.function_tool(search_docs)]
        if told["sub_agent"]:
            inner = sdk.Agent(name=told["sub_agent"], instructions=stage.SPECIALIST, model=model, tools=tools)

            @sdk.function_tool
            async def travel_specialist(task: str) -> str:
                """Ask the travel specialist."""
                return (await sdk.Runner.run(inner, task)).final_output

            tools = [travel_specialist]
        self.agent = sdk.Agent(name="assistant", instructions=stage.INSTRUCTIONS, model=model, tools=tools)

    def answer(self, question):
        return LOOP.run_until_complete(self.run(question))

    async def run(self, question):
        if not self.told["stream"]:
            return (await sdk.Runner.run(self.agent, question, session=self.session)).final_output
        result = sdk.Runner.run_streamed(self.agent, question, session=self.session)
        async for _ in result.stream_events():
            pass
        return result.final_output


def flush():
    from opentelemetry import trace

    trace.get_tracer_provider().force_flush()


if stage.ARGS.sets == "langwatch-openai-agents":
    import langwatch
    from openinference.instrumentation.openai_agents import OpenAIAgentsInstrumentor

    langwatch.setup(api_key="x", endpoint_url=stage.STAGE, instrumentors=[OpenAIAgentsInstrumentor()])

    def make(told):
        agent = Agent(told)
        given = {"metadata": {"thread_id": told["conversation_id"], "user_id": "u-7"}} if told["conversation_id"] else {}

        @langwatch.trace(name="handle_message", **given)
        def handle_message(question):
            return agent.answer(question)

        return handle_message

    packages = ("langwatch", "openai-agents", "openinference-instrumentation-openai-agents")
else:
    from contextlib import nullcontext

    from fi_instrumentation import register, using_session
    from fi_instrumentation.fi_types import ProjectType
    from traceai_openai_agents import OpenAIAgentsInstrumentor

    provider = register(
        project_name="shop", project_type=ProjectType.OBSERVE, set_global_tracer_provider=True, verbose=False, span_exporter=stage.exporter()
    )
    OpenAIAgentsInstrumentor().instrument(tracer_provider=provider)

    def make(told):
        agent = Agent(told)

        def handle(question):
            with using_session(told["conversation_id"]) if told["conversation_id"] else nullcontext():
                return agent.answer(question)

        return handle

    packages = ("fi-instrumentation-otel", "traceai-openai-agents", "openai-agents")

stage.play(stage.ARGS.sets, make, flush, packages, leave_out=("s5",))
