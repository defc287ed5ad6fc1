"""Record further frameworks without a dialect, each in an environment of its own: ``run_agent_frameworks.py NAME``.

any-agent 1.18 (TinyAgent), agentscope 2.0, AWS's distribution 0.21 (content in log records) around LangChain and Strands, nvidia-nat 1.9
with and without its profiler, pipecat-ai 1.14 (text only), fast-agent-mcp 0.10, nemoguardrails 0.24, magentic 0.41 with Logfire,
Splunk's and Fiddler's instrumentations of LangChain, and Elastic's (with OpenTelemetry 1.38) and Netra's of the OpenAI client. Each uses the OpenTelemetry that it has, or that its vendor documents.

nemoguardrails keeps a client per process: record one scenario at a time.
"""

import asyncio
import inspect
import json
import os
import sys

from stage_client import BASE, TOOLS, Skip, ToolError, _FLUSH, exporters, play, post, rescript, tools_of

NAME = sys.argv[1]
INSTRUCTIONS = "You are a helpful assistant. Use the tools when they help."
SPECIALIST = "You are a travel specialist."
os.environ.update(OPENAI_API_KEY="x", OPENAI_BASE_URL=f"{BASE}/v1")


def any_agent():
    exporters("shop-assistant")
    from any_agent import AgentConfig, AgentRunError, AnyAgent

    async def prepare(plan):
        if plan["documents"] or plan["conversation_id"] or plan["stream"]:
            raise Skip("not so")
        options = {"model_id": "openai:gpt-4.1-mini", "api_base": f"{BASE}/v1", "api_key": "x"}
        options |= {"model_args": {"tool_choice": "auto"}, "any_llm_args": {"max_retries": 0}}

        async def make(name, instructions, tools):
            return await AnyAgent.create_async("tinyagent", AgentConfig(name=name, instructions=instructions, tools=tools, **options))

        tools = tools_of(plan)
        if plan["sub_agent"]:
            inner = await make("travel_specialist", SPECIALIST, tools)

            async def travel_specialist(task: str) -> str:
                """Ask the travel specialist.

                Args:
                    task: What to ask.
                """
                return str((await inner.run_async(task)).final_output)

            tools = [travel_specialist]
        agent = await make("assistant", INSTRUCTIONS, tools)

        async def ask(text):
            try:
                return str((await agent.run_async(text)).final_output)
            except AgentRunError as error:
                raise error.original_exception from None

        return ask

    return prepare, ("any-agent",), {}


def agentscope():
    exporters("shop-assistant")
    from agentscope.agent import Agent, InjectionConfig
    from agentscope.credential import OpenAICredential
    from agentscope.message import UserMsg
    from agentscope.middleware import TracingMiddleware
    from agentscope.model import OpenAIChatModel
    from agentscope.permission import PermissionContext, PermissionMode
    from agentscope.state import AgentState
    from agentscope.tool import FunctionTool, Toolkit

    def prepare(plan):
        if plan["documents"]:
            raise Skip("no retriever")

        def make(name, instructions, tools):
            credential = OpenAICredential(api_key="x", base_url=f"{BASE}/v1")
            model = OpenAIChatModel(credential, "gpt-4.1-mini", stream=plan["stream"], max_retries=0, client_kwargs={"max_retries": 0})
            state = AgentState(permission_context=PermissionContext(mode=PermissionMode.BYPASS))
            if plan["conversation_id"]:
                state.session_id = plan["conversation_id"]
            more = {"injection_config": InjectionConfig(inject_runtime_state=False), "state": state}
            return Agent(name, instructions, model, Toolkit([FunctionTool(one) for one in tools]), middlewares=[TracingMiddleware()], **more)

        tools = tools_of(plan)
        if plan["sub_agent"]:
            inner = make("travel_specialist", SPECIALIST, tools)

            async def travel_specialist(task: str) -> str:
                """Ask the travel specialist."""
                return (await inner.reply(UserMsg("assistant", task))).get_text_content()

            tools = [travel_specialist]
        agent = make("assistant", INSTRUCTIONS, tools)

        async def ask(text):
            return (await agent.reply(UserMsg("user", text))).get_text_content()

        return ask

    return prepare, ("agentscope",), {}


def aws():
    """Let AWS's exporter move content into log records, as with AGENT_OBSERVABILITY_ENABLED, but send to the stage."""
    os.environ.update(AGENT_OBSERVABILITY_ENABLED="true", AWS_ACCESS_KEY_ID="x", AWS_SECRET_ACCESS_KEY="x")
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"
    from amazon.opentelemetry.distro.exporter.otlp.aws.traces.otlp_aws_span_exporter import OTLPAwsSpanExporter
    from botocore.session import Session
    from opentelemetry import trace
    from opentelemetry._logs import set_logger_provider
    from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
    from opentelemetry.sdk._logs import LoggerProvider
    from opentelemetry.sdk._logs.export import BatchLogRecordProcessor
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    about = Resource.create({"service.name": "shop-assistant", "aws.service.type": "gen_ai_agent"})
    logs = LoggerProvider(resource=about)
    logs.add_log_record_processor(BatchLogRecordProcessor(OTLPLogExporter(f"{BASE}/v1/logs")))
    set_logger_provider(logs)
    provider = TracerProvider(resource=about)
    exporter = OTLPAwsSpanExporter("us-east-1", Session(), f"{BASE}/v1/traces", logger_provider=logs)
    provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=300))
    trace.set_tracer_provider(provider)
    _FLUSH.extend((provider.force_flush, logs.force_flush))
    return provider


def aws_langchain():
    from amazon.opentelemetry.distro.instrumentation.langchain import LangChainInstrumentor

    return langchain(lambda: LangChainInstrumentor().instrument(tracer_provider=aws()), ("aws-opentelemetry-distro",))


def aws_strands():
    aws()
    from strands import Agent, tool
    from strands.models.openai import OpenAIModel

    def prepare(plan):
        if plan["documents"]:
            raise Skip("no retriever")
        model = OpenAIModel(client_args={"api_key": "x", "base_url": f"{BASE}/v1", "max_retries": 0}, model_id="gpt-4.1-mini")
        about = {"trace_attributes": {"session.id": plan["conversation_id"]}} if plan["conversation_id"] else {}
        about |= {"callback_handler": None, "retry_strategy": None}
        tools = [tool(one) for one in tools_of(plan)]
        if plan["sub_agent"]:
            inner = Agent(model, name="travel_specialist", system_prompt=SPECIALIST, tools=tools, **about)

            @tool
            def travel_specialist(task: str) -> str:
                """Ask the travel specialist."""
                return str(inner(task)).strip()

            tools = [travel_specialist]
        agent = Agent(model, name="assistant", system_prompt=INSTRUCTIONS, tools=tools, **about)
        return lambda text: str(agent(text)).strip()

    return prepare, ("aws-opentelemetry-distro", "strands-agents"), {}


def nat():  # model calls have spans only if nvidia-nat-profiler is installed
    from contextlib import AsyncExitStack
    from tempfile import NamedTemporaryFile

    from nat.builder.function_info import FunctionInfo
    from nat.cli.register_workflow import register_function
    from nat.data_models.api_server import ChatRequest
    from nat.data_models.function import FunctionBaseConfig
    from nat.runtime.loader import load_workflow

    def register(function):
        config_type = type(f"{function.__name__}_config", (FunctionBaseConfig,), {}, name=function.__name__)

        @register_function(config_type=config_type)
        async def build(config: config_type, builder):
            names = ", ".join(f"{name}: {parameter.annotation}" for name, parameter in inspect.signature(function).parameters.items())
            made = {"function": function, "asyncio": asyncio}
            given = ", ".join(f"{name}={name}" for name in inspect.signature(function).parameters)
            exec(f"async def {function.__name__}({names}) -> str:\n    return await asyncio.to_thread(function, {given})", made)
            yield FunctionInfo.from_fn(made[function.__name__], description=function.__doc__)

    for one in TOOLS.values():
        register(one)

    async def prepare(plan):
        if plan["documents"] or plan["stream"]:
            raise Skip("not so")
        names = [one.__name__ for one in tools_of(plan)]
        agent = {"_type": "tool_calling_agent", "llm_name": "model", "tool_names": names, "system_prompt": INSTRUCTIONS}
        config = {
            "general": {"telemetry": {"tracing": {"otel": {"_type": "otelcollector", "project": "shop-assistant", "endpoint": f"{BASE}/v1/traces"}}}},
            "llms": {"model": {"_type": "openai", "model_name": "gpt-4.1-mini", "base_url": f"{BASE}/v1", "api_key": "x", "max_retries": 0}},
            "functions": {name: {"_type": name} for name in names}, "workflow": agent,
        }  # fmt: skip
        config["llms"]["model"]["do_auto_retry"] = False
        if plan["sub_agent"]:
            inner = {**agent, "system_prompt": SPECIALIST, "description": "Ask the travel specialist."}
            config["functions"]["travel_specialist"], config["workflow"] = inner, {**agent, "tool_names": ["travel_specialist"]}
        with NamedTemporaryFile("w", suffix=".yml", delete=False) as file:
            json.dump(config, file)
        stack, history = AsyncExitStack(), []
        sessions = await stack.enter_async_context(load_workflow(file.name))

        async def ask(text):
            if plan["sub_agent"]:
                rescript(plan, {"travel_specialist": ("travel_specialist", {"input_message": text})})
            history.append({"role": "user", "content": text})
            message = ChatRequest(messages=history) if plan["conversation_id"] else text
            try:
                async with sessions.session(conversation_id=plan["conversation_id"]) as session, session.run(message) as runner:
                    answer = await runner.result(to_type=str)
            finally:
                if text == plan["turns"][-1]["user_input"]:
                    await asyncio.sleep(0.5)
                    await stack.aclose()
            history.append({"role": "assistant", "content": answer})
            return answer

        return ask

    return prepare, ("nvidia-nat", "nvidia-nat-langchain", "nvidia-nat-opentelemetry"), {}


def pipecat():
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from pipecat.adapters.schemas.function_schema import FunctionSchema
    from pipecat.adapters.schemas.tools_schema import ToolsSchema
    from pipecat.frames.frames import BotStartedSpeakingFrame, BotStoppedSpeakingFrame, EndFrame, ErrorFrame
    from pipecat.frames.frames import LLMFullResponseEndFrame, LLMMessagesAppendFrame, LLMTextFrame
    from pipecat.frames.frames import UserStartedSpeakingFrame, UserStoppedSpeakingFrame
    from pipecat.pipeline.pipeline import Pipeline
    from pipecat.pipeline.worker import PipelineParams, PipelineWorker
    from pipecat.processors.aggregators.llm_context import LLMContext
    from pipecat.processors.aggregators.llm_response_universal import LLMContextAggregatorPair
    from pipecat.processors.frame_processor import FrameDirection, FrameProcessor
    from pipecat.services.openai.llm import OpenAILLMService
    from pipecat.utils.tracing.setup import setup_tracing
    from pipecat.workers.runner import WorkerRunner

    from opentelemetry import trace

    setup_tracing("shop-assistant", OTLPSpanExporter(f"{BASE}/v1/traces"))
    _FLUSH.append(trace.get_tracer_provider().force_flush)

    class Speaker(FrameProcessor):
        """Says what the model answers, in no time."""

        said, text = None, ""

        async def process_frame(self, frame, direction):
            await super().process_frame(frame, direction)
            if isinstance(frame, LLMTextFrame):
                self.text += frame.text
            await self.push_frame(frame, direction)
            if isinstance(frame, LLMFullResponseEndFrame) and self.text:
                for spoken in (BotStartedSpeakingFrame, BotStoppedSpeakingFrame):
                    await self.push_frame(spoken(), FrameDirection.UPSTREAM)
                    await self.push_frame(spoken(), FrameDirection.DOWNSTREAM)
                await asyncio.sleep(0.2)
                self.said.set_result(self.text)
                self.text = ""

    async def prepare(plan):
        if plan["documents"] or plan["sub_agent"]:
            raise Skip("not so")
        llm = OpenAILLMService(api_key="x", base_url=f"{BASE}/v1", settings=OpenAILLMService.Settings(model="gpt-4.1-mini", system_instruction=INSTRUCTIONS))
        kinds, schemas = {"str": "string", "float": "number"}, []
        for function in tools_of(plan):
            properties = {name: {"type": kinds[one.annotation]} for name, one in inspect.signature(function).parameters.items()}
            schemas.append(FunctionSchema(function.__name__, function.__doc__, properties, list(properties)))

            async def handle(params, function=function):
                try:
                    result = function(**params.arguments)
                except ToolError as error:
                    result = {"error": str(error)}
                await params.result_callback(result)

            llm.register_function(function.__name__, handle)
        pair, speaker = LLMContextAggregatorPair(LLMContext(tools=ToolsSchema(standard_tools=schemas))), Speaker()
        about = {"enable_tracing": True, "conversation_id": plan["conversation_id"], "enable_rtvi": False}
        params = PipelineParams(enable_metrics=True, enable_usage_metrics=True)
        worker = PipelineWorker(Pipeline([pair.user(), llm, speaker, pair.assistant()]), params=params, **about)

        @worker.event_handler("on_pipeline_error")
        async def failed(worker, frame: ErrorFrame):
            if not speaker.said.done():
                speaker.said.set_exception(frame.exception or RuntimeError(frame.error))

        runner = WorkerRunner(handle_sigint=False)
        await runner.add_workers(worker)
        running = asyncio.create_task(runner.run())

        async def ask(text):
            speaker.said = asyncio.get_running_loop().create_future()
            if text != plan["turns"][0]["user_input"]:  # a pipeline starts with a turn
                await worker.queue_frames([UserStartedSpeakingFrame(), UserStoppedSpeakingFrame()])
            await worker.queue_frame(LLMMessagesAppendFrame([{"role": "user", "content": text}], run_llm=True))
            try:
                return await asyncio.wait_for(speaker.said, 20)
            finally:
                if text == plan["turns"][-1]["user_input"]:
                    await worker.queue_frame(EndFrame())
                    await asyncio.wait_for(running, 20)

        return ask

    return prepare, ("pipecat-ai",), {}


def fast_agent():
    from pathlib import Path
    from tempfile import mkdtemp

    folder = mkdtemp()
    otel = {"enabled": True, "service_name": "shop-assistant", "otlp_endpoint": f"{BASE}/v1/traces"}
    config = {"default_model": "openai.gpt-4.1-mini", "openai": {"api_key": "x", "base_url": f"{BASE}/v1"}, "otel": otel}
    config |= {"llm_retries": 0, "logger": {"type": "none", "progress_display": False, "show_chat": False, "show_tools": False}}
    Path(folder, "fastagent.config.yaml").write_text(json.dumps(config))
    os.chdir(folder)
    from contextlib import AsyncExitStack

    from fast_agent import FastAgent
    from opentelemetry import trace

    _FLUSH.append(lambda: trace.get_tracer_provider().force_flush())

    async def prepare(plan):
        if plan["documents"]:
            raise Skip("no retriever")
        fast, tools = FastAgent("shop", parse_cli_args=False, quiet=True), tools_of(plan)
        if plan["sub_agent"]:
            fast.agent("travel_specialist", instruction=SPECIALIST, function_tools=tools)(lambda: None)
            fast.agent("assistant", instruction=INSTRUCTIONS, agents=["travel_specialist"], default=True)(lambda: None)
        else:
            fast.agent("assistant", instruction=INSTRUCTIONS, function_tools=tools, default=True, use_history=True)(lambda: None)
        stack = AsyncExitStack()
        app = await stack.enter_async_context(fast.run())

        async def ask(text):
            if plan["sub_agent"]:
                rescript(plan, {"travel_specialist": ("agent__travel_specialist", {"message": text})})
            try:
                message = await app.assistant.generate(text)
                if message.stop_reason == "error":
                    raise RuntimeError(message.last_text())
                return message.last_text()
            finally:
                if text == plan["turns"][-1]["user_input"]:
                    await stack.aclose()

        return ask

    return prepare, ("fast-agent-mcp",), {"no_session": True, "framework_tools": ["agent__travel_specialist"]}


def langchain(instrument, packages):
    instrument()
    sys.argv = [sys.argv[0], "--stage", BASE]
    from agents import LangChainAgent

    return lambda plan: LangChainAgent(plan).answer, (*packages, "langchain", "langgraph"), {}


def splunk_langchain():
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "SPAN_AND_EVENT" if NAME == "splunk-langchain" else "EVENT_ONLY"
    os.environ.update(OTEL_INSTRUMENTATION_GENAI_EMITTERS="span_metric_event", OTEL_SEMCONV_STABILITY_OPT_IN="gen_ai_latest_experimental")
    tracing, logging = exporters("shop-assistant", logs=True)
    from opentelemetry.instrumentation.langchain import LangchainInstrumentor

    return langchain(lambda: LangchainInstrumentor().instrument(tracer_provider=tracing, logger_provider=logging), ("splunk-otel-instrumentation-langchain",))


def fiddler():
    from fiddler_langgraph import FiddlerClient, LangGraphInstrumentor, set_conversation_id
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    client = FiddlerClient("550e8400-e29b-41d4-a716-446655440000", "x", BASE, otlp_enabled=False)
    client.get_tracer_provider().add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{BASE}/v1/traces")))
    make, *more = langchain(LangGraphInstrumentor(client).instrument, ("fiddler-langgraph",))

    def prepare(plan):
        if plan["conversation_id"]:
            set_conversation_id(plan["conversation_id"])
        return make(plan)

    return prepare, *more


def nemoguardrails():
    """Rails that check what the user says and what the bot answers, each with a call to the model."""
    exporters("shop-assistant")
    from nemoguardrails import LLMRails, RailsConfig

    config = f"models: [{{type: main, engine: openai, model: gpt-4.1-mini, parameters: {{base_url: {BASE}/v1}}}}]" + """
instructions: [{type: general, content: You are a helpful assistant.}]
rails: {input: {flows: [self check input]}, output: {flows: [self check output]}}
prompts:
- {task: self_check_input, content: "Should the user message be blocked? {{ user_input }} Answer (Yes or No):"}
- {task: self_check_output, content: "Should the bot message be blocked? {{ bot_response }} Answer (Yes or No):"}
tracing: {enabled: true, enable_content_capture: true, adapters: [{name: OpenTelemetry}]}
"""

    def prepare(plan):
        if (plan["tools"] and not plan["conversation_id"]) or plan["documents"] or plan["sub_agent"] or plan["stream"]:
            raise Skip("no tools")
        rails, history = LLMRails(RailsConfig.from_content(yaml_content=config)), []

        async def ask(text):
            index = next(place for place, turn in enumerate(plan["turns"]) if turn["user_input"] == text)
            steps = [{"text": "No"}, plan["all_steps"][index][-1]]
            post("/__script", {"steps": steps if "error" in steps[-1] else [*steps, {"text": "No"}], "salt": f"rails{index}"})
            if not plan["conversation_id"]:
                history.clear()
            history.append({"role": "user", "content": text})
            answer = (await rails.generate_async(messages=history)).response[0]
            history.append(answer)
            return answer["content"]

        return ask

    return prepare, ("nemoguardrails",), {"no_session": True}


def loop(packages, wrap=None):
    """A loop around the OpenAI client, whose functions have a vendor's decorators."""
    sys.argv = [sys.argv[0], "--stage", BASE]
    from agents import OpenAIAgent, openai_client, plain

    return lambda plan: OpenAIAgent(plan, openai_client(), wrap or plain).answer, (*packages, "openai"), {}


def elastic():
    os.environ["OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"] = "true"
    tracing, _ = exporters("shop-assistant", logs=True)
    from opentelemetry.instrumentation.openai import OpenAIInstrumentor

    OpenAIInstrumentor().instrument(tracer_provider=tracing)  # it passes a logger provider in the wrong place
    make, packages, _ = loop(("elastic-opentelemetry-instrumentation-openai",))

    def prepare(plan):
        ask = make(plan)

        def handle(question):
            with tracing.get_tracer("shop").start_as_current_span("handle_message"):
                return ask(question)

        return handle

    return prepare, packages, {"no_agents": True}


def netra():
    os.environ.update(NETRA_OTLP_ENDPOINT=BASE, NETRA_API_KEY="x")
    from netra import Netra
    from netra.decorators import agent, span, workflow
    from netra.instrumentation.instruments import NetraInstruments
    from netra.span_wrapper import SpanType
    from opentelemetry import trace

    Netra.init(app_name="shop-assistant", headers="x-api-key=x", trace_content=True, disable_batch=True, instruments={NetraInstruments.OPENAI})
    _FLUSH.append(lambda: trace.get_tracer_provider().force_flush())
    kinds = {"tool": SpanType.TOOL, "retriever": SpanType.SPAN}
    make, *more = loop(("netra-sdk",), lambda kind, name: agent(name=name) if kind == "agent" else span(name=name, as_type=kinds[kind]))

    def prepare(plan):
        if plan["conversation_id"]:
            Netra.set_session_id(plan["conversation_id"])
        return workflow(name="handle_message")(make(plan))

    return prepare, *more


def magentic():
    import logfire
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    processor = SimpleSpanProcessor(OTLPSpanExporter(f"{BASE}/v1/traces"))
    logfire.configure(send_to_logfire=False, service_name="shop", console=False, additional_span_processors=[processor])
    logfire.instrument_openai()
    from magentic import OpenaiChatModel, prompt_chain

    def prepare(plan):
        if plan["documents"] or plan["conversation_id"]:
            raise Skip("no memory")
        model, tools = OpenaiChatModel("gpt-4.1-mini"), tools_of(plan)

        if plan["sub_agent"]:

            @prompt_chain("{task}", functions=tools, model=model)
            def travel_specialist(task: str) -> str:
                """Ask the travel specialist."""

            tools = [travel_specialist]

        @prompt_chain("{question}", functions=tools, model=model)
        def assistant(question: str) -> str: ...

        return assistant

    return prepare, ("magentic", "logfire"), {"no_agents": True}


prepare, packages, said = globals()[NAME.removesuffix("-bare").removesuffix("-events").replace("-", "_")]()
play(NAME, prepare, packages, **said)
