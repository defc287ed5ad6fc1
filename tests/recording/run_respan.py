"""Record Respan (once KeywordsAI): its decorators over its OpenAI instrumentation.

    uv pip install respan-ai==4.2.4 openai
"""

import os
from contextlib import nullcontext

from agents import STAGE, OpenAIAgent, openai_client, play
from respan import Respan, agent, task, tool, workflow

os.environ["RESPAN_API_KEY"] = "x"
respan = Respan(api_key="x", base_url=STAGE)
KINDS = {"agent": agent, "tool": tool, "retriever": task}


def wrap(kind, name):
    return KINDS[kind](name=name)


def session(told):
    if not told["conversation_id"]:
        return nullcontext()
    return respan.propagate_attributes(thread_identifier=told["conversation_id"], customer_identifier="u-7")


def by_decorators(told):
    loop = OpenAIAgent(told, openai_client(), wrap)

    @workflow(name="handle_message")
    def handle_message(question):
        return loop.answer(question)

    def handle(question):
        with session(told):
            return handle_message(question)

    return handle


play("respan-openai", by_decorators, respan.flush, ("respan-ai", "openai"))
