"""Record Langfuse's Python SDK: @observe on a loop with its OpenAI drop-in, and its LangChain callback.

    uv pip install langfuse==5.0.4 (or 3.15.0) openai langchain langchain-openai langgraph
"""

import contextlib
import os
from importlib.metadata import version

from agents import STAGE, LangChainAgent, OpenAIAgent, play
from langfuse import Langfuse, observe

try:
    from langfuse import propagate_attributes
except ImportError:  # before 3.9
    propagate_attributes = None

os.environ["OTEL_RESOURCE_ATTRIBUTES"] = "service.name=shop"
os.environ["LANGFUSE_HOST"] = os.environ["LANGFUSE_BASE_URL"] = STAGE
langfuse = Langfuse(public_key="pk-lf-1", secret_key="sk-lf-1")


def session(told):
    if propagate_attributes is None:
        return contextlib.nullcontext(langfuse.update_current_trace(session_id=told["conversation_id"]))
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


def by_callback(told):  # in a process of its own (--sets), as the drop-in patches the client that LangChain uses
    from langfuse.langchain import CallbackHandler

    metadata = {"langfuse_session_id": told["conversation_id"], "langfuse_user_id": "u-7"} if told["conversation_id"] else {}
    return LangChainAgent(told, lambda told: {"callbacks": [CallbackHandler()], "metadata": metadata}).answer


PACKAGES = ("langfuse", "openai")
MAJOR = version("langfuse").split(".")[0]
play(f"langfuse-v{MAJOR}-openai", by_decorators, langfuse.flush, PACKAGES)
play(f"langfuse-v{MAJOR}-langchain", by_callback, langfuse.flush, (*PACKAGES, "langchain", "langgraph"))
