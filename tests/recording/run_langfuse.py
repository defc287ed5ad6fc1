"""Record Langfuse's Python SDK: @observe on a loop with its OpenAI drop-in, and its LangChain callback. Its exporter is pointed at the stage.

    uv pip install langfuse==5.0.4 openai langchain langchain-openai langgraph
"""

import contextlib
import os

from agents import STAGE, LangChainAgent, OpenAIAgent, exporter, play
from langfuse import Langfuse, observe, propagate_attributes
from langfuse.langchain import CallbackHandler

os.environ["OTEL_RESOURCE_ATTRIBUTES"] = "service.name=shop"
langfuse = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-1", base_url=STAGE, span_exporter=exporter())


def session(told):
    given = {"session_id": told["conversation_id"], "user_id": "u-7"} if told["conversation_id"] else {}
    return propagate_attributes(**given) if given else contextlib.nullcontext()


def wrap(kind, name):
    return observe(name=name, as_type=kind)


def by_decorators(told):
    from langfuse.openai import OpenAI

    agent = OpenAIAgent(told, OpenAI(base_url=f"{STAGE}/v1", api_key="x", max_retries=0), wrap)

    @observe(name="handle-message")
    def handle_message(question):
        with session(told):
            return agent.answer(question)

    return handle_message


def by_callback(told):
    metadata = {"langfuse_session_id": told["conversation_id"], "langfuse_user_id": "u-7"} if told["conversation_id"] else {}
    return LangChainAgent(told, lambda told: {"callbacks": [CallbackHandler()], "metadata": metadata}).answer


PACKAGES = ("langfuse", "openai")
play("langfuse-v5-openai", by_decorators, langfuse.flush, PACKAGES)
play("langfuse-v5-langchain", by_callback, langfuse.flush, (*PACKAGES, "langchain", "langgraph"))
