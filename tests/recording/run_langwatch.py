"""Record LangWatch's Python SDK: its decorators on a loop with autotracked OpenAI calls, or OpenInference's; its LangChain callback.

    uv pip install langwatch==1.4.0 openai langchain langchain-openai langgraph openinference-instrumentation-openai
"""

import langwatch
from agents import ARGS, STAGE, LangChainAgent, OpenAIAgent, openai_client, play

instrumentors = []
if ARGS.sets == "langwatch-openinference":  # in a process of its own: the instrumentation stays
    from openinference.instrumentation.openai import OpenAIInstrumentor

    instrumentors.append(OpenAIInstrumentor())
langwatch.setup(api_key="x", endpoint_url=STAGE, instrumentors=instrumentors)
client = openai_client()
TYPES = {"agent": "agent", "tool": "tool", "retriever": "rag"}


def wrap(kind, name):
    if kind != "retriever":
        return langwatch.span(type=TYPES[kind], name=name)

    def decorate(function):
        @langwatch.span(type="rag", name=name)
        def retrieve(query):
            found = function(query)
            contexts = [{"document_id": item["id"], "content": item["content"]} for item in found]
            langwatch.get_current_span().update(contexts=contexts)
            return found

        return retrieve

    return decorate


def metadata(told):
    return {"metadata": {"thread_id": told["conversation_id"], "user_id": "u-7"}} if told["conversation_id"] else {}


def by_decorators(told):
    agent = OpenAIAgent(told, client, wrap)

    @langwatch.trace(name="handle_message", **metadata(told))
    def handle_message(question):
        if not instrumentors:
            langwatch.get_current_trace().autotrack_openai_calls(client)
        return agent.answer(question)

    return handle_message


def tracked(retriever):
    from langwatch.langchain import capture_rag_from_retriever

    return capture_rag_from_retriever(retriever, lambda document: {"document_id": document.id, "content": document.page_content})


def by_callback(told):
    agent = LangChainAgent(told, tracked=tracked)

    @langwatch.trace(name="chat", **metadata(told))
    def chat(question):
        agent.config["callbacks"] = [langwatch.get_current_trace().get_langchain_callback()]
        return agent.answer(question)

    return chat


def flush():
    from opentelemetry import trace

    trace.get_tracer_provider().force_flush()


PACKAGES = ("langwatch", "openai")
if instrumentors:
    play("langwatch-openinference", by_decorators, flush, (*PACKAGES, "openinference-instrumentation-openai"))
play("langwatch-openai", by_decorators, flush, PACKAGES)
play("langwatch-langchain", by_callback, flush, (*PACKAGES, "langchain", "langgraph"))
