"""Parser for OpenLLMetry's LangChain.js spans, which don't form a tree.

Every chain is a ``workflow``. A graph's span contains its whole run, and the model's messages name the agent. A tool's span
has its class name. The tool's own name is in the message that it returns. Model calls contain only texts, so the spans of
the provider's SDK are better.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .step import AGENT, CHAIN, LLM, TOOL, Step, as_text

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"@traceloop/instrumentation-langchain$")
_GRAPHS = ("CompiledStateGraph", "LangGraph", "CompiledGraph", "AgentExecutor", "ReactAgent")
_CLASSES = frozenset(("DynamicStructuredTool", "DynamicTool", "StructuredTool", "Tool", "unknown"))


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role from the operation. A chain isn't a workflow, and a graph is an agent."""
    operation = attributes.get("gen_ai.operation.name")
    if operation in ("workflow", "invoke_agent"):
        return AGENT if operation == "invoke_agent" or name.endswith(_GRAPHS) else CHAIN
    return TOOL if operation == "execute_tool" else None


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    get = record.attributes.get
    if step.role == LLM:
        step.texts_only = True
    elif step.role == AGENT:
        step.agent = _speaker(get("traceloop.entity.output")) or as_text(get("gen_ai.agent.name"))
    elif step.role == TOOL:
        message = _message_in(get("traceloop.entity.output"))
        name = as_text(get("traceloop.entity.name")) or record.name.removeprefix("execute_tool ")
        step.tool_name = as_text(message.get("name")) or name
        step.tool_unnamed = step.tool_name in _CLASSES
        step.tool_call_id = as_text(message.get("tool_call_id"))
        if "content" in message:
            step.tool_result = message["content"]
            step.tool_failed = message.get("status") == "error"


def _message_in(raw: Any) -> Mapping[str, Any]:
    """Return a message's fields from a serialized constructor."""
    value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str and raw[:1] == "{" else raw
    inner = value.get("kwargs", value) if isinstance(value, Mapping) else None
    return inner if isinstance(inner, Mapping) else {}


def _speaker(raw: Any) -> str | None:
    """Return the agent that wrote the last model message of a run."""
    messages = _message_in(raw).get("messages") if raw.__class__ is str and '"name"' in raw else None
    for message in reversed(messages) if isinstance(messages, list) else ():
        inner = _message_in(message)
        if isinstance(message, Mapping) and ("AIMessage" in str(message.get("id")) or inner.get("type") == "ai"):
            return as_text(inner.get("name"))
    return None
