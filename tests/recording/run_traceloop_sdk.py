"""Record Traceloop's SDK: @workflow, @agent, @task and @tool on a loop, with its OpenAI instrumentation; create_agent below a @workflow.

    uv pip install traceloop-sdk==0.62.4 openai langchain langchain-openai langgraph
"""

from agents import LangChainAgent, OpenAIAgent, exporter, openai_client, play
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import agent, task, tool, workflow

Traceloop.init(app_name="shop", exporter=exporter(), disable_batch=True, telemetry_enabled=False)
KINDS = {"agent": agent, "tool": tool, "retriever": task}


def wrap(kind, name):
    return KINDS[kind](name=name)


def associate(told):
    if told["conversation_id"]:
        Traceloop.set_association_properties({"session_id": told["conversation_id"], "user_id": "u-7"})


def by_decorators(told):
    loop = OpenAIAgent(told, openai_client(), wrap)

    @workflow(name="handle_message")
    def handle_message(question):
        associate(told)
        return loop.answer(question)

    return handle_message


def by_agent(told):
    loop = OpenAIAgent(told, openai_client(), wrap)

    @agent(name="assistant")
    def assistant(question):
        associate(told)
        return loop.answer(question)

    return assistant


def langchain(told):
    graph = LangChainAgent(told)

    @workflow(name="chat")
    def chat(question):
        associate(told)
        return graph.answer(question)

    return chat


def flush():
    from opentelemetry import trace

    trace.get_tracer_provider().force_flush()


PACKAGES = ("traceloop-sdk", "openai")
play("traceloop-sdk-workflow", by_decorators, flush, PACKAGES)
play("traceloop-sdk-agent", by_agent, flush, PACKAGES, ("s1", "s5", "s9", "s10"))
play("traceloop-sdk-langchain", langchain, flush, (*PACKAGES, "langchain", "langgraph"))
