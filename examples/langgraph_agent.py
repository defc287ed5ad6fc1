"""Score a LangGraph agent that OpenInference traces.

    pip install './otel-agenteval' langgraph langchain-core openinference-instrumentation-langchain
    python examples/langgraph_agent.py

The model is a script, so you don't need a key or network access. You can replace it with a real model, such as ``ChatOpenAI(…)``.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.sdk.trace import TracerProvider

import otel_agenteval as oa

# your application's existing OpenTelemetry provider and instrumentation
provider = TracerProvider()  # add your exporter here
LangChainInstrumentor().instrument(tracer_provider=provider)

scores = Path(tempfile.mkdtemp()) / "scores.jsonl"
handle = oa.instrument(tracer_provider=provider, config={"outlets": {"jsonl": str(scores)}})  # scores each turn


class Script(BaseChatModel):
    """Model that requests a seat three times, regardless of the tool's result, and then gives up."""

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        asked = sum(isinstance(message, AIMessage) for message in messages)
        if asked < 3:
            call = {"name": "book_seat", "args": {"train": "EC 51"}, "id": f"call_{asked}"}
            said = AIMessage("", tool_calls=[call])
        else:
            said = AIMessage("I am sorry, I could not book a seat.")
        return ChatResult(generations=[ChatGeneration(message=said)])

    @property
    def _llm_type(self) -> str:
        return "script"


@tool
def book_seat(train: str) -> str:
    """Book a seat on a train."""
    return "no answer, try again"


def assistant(state: MessagesState) -> dict[str, Any]:
    """Call the model."""
    return {"messages": [Script().invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("assistant", assistant)
graph.add_node("tools", ToolNode([book_seat]))
graph.add_edge(START, "assistant")
graph.add_conditional_edges("assistant", tools_condition)
graph.add_edge("tools", "assistant")
agent = graph.compile(name="booking")

print(agent.invoke({"messages": [("user", "Book me a seat on EC 51.")]})["messages"][-1].content)

handle.shutdown()
for line in scores.read_bytes().splitlines():
    score = json.loads(line)
    if score.get("passed") is not None:  # skip metrics without a verdict
        print(score["metric"], score["value"], score["label"])
