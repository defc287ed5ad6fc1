"""Parser for OpenLLMetry's spans of LangChain.js. These spans don't form a tree.

Every chain has the kind ``workflow``. A graph's span contains all messages of its run, and a model's messages contain the agent's
name. A tool's span has the name of the tool's class, and the result message has the tool's own name. Model calls contain only
texts, so spans of the provider's SDK take precedence. Unless the application creates a workflow, each span is a separate trace.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.wellformed import sum_of
from ..spans.record import SpanRecord
from .attributes import as_int, as_text
from .payloads import object_in
from .step import AGENT, CHAIN, LLM, TOOL, Step

MARKS: frozenset[str] = frozenset()
SCOPES = re.compile(r"@traceloop/instrumentation-langchain$")
_GRAPHS = ("CompiledStateGraph", "LangGraph", "CompiledGraph", "AgentExecutor", "ReactAgent")
_TYPES = {"AIMessage": "ai", "AIMessageChunk": "ai", "HumanMessage": "human", "ToolMessage": "tool", "SystemMessage": "system"}
_CLASSES = frozenset(("DynamicStructuredTool", "DynamicTool", "StructuredTool", "Tool", "unknown"))


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    operation = attributes.get("gen_ai.operation.name")
    if operation in ("workflow", "invoke_agent"):
        return AGENT if operation == "invoke_agent" or name.endswith(_GRAPHS) else CHAIN
    return TOOL if operation == "execute_tool" else None


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    if step.role == LLM:
        step.texts_only = True
    elif step.role == AGENT:
        messages = _messages_in(get("traceloop.entity.output"))
        speakers = (as_text(fields.get("name")) for kind, fields, _ in reversed(messages) if kind == "ai")
        step.agent = next(speakers, None) or as_text(get("gen_ai.agent.name"))
        if not record.parent_id:
            _read_run(messages, step)
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
    message = object_in(raw)
    inner = message.get("kwargs", message)
    return inner if isinstance(inner, Mapping) else {}


def _messages_in(raw: Any) -> list[tuple[str | None, Mapping[str, Any], Any]]:
    messages = _message_in(raw).get("messages") if raw.__class__ is str and '"messages"' in raw else None
    found = []
    for message in messages if isinstance(messages, list) else ():
        if isinstance(message, Mapping) and (fields := _message_in(message)):
            path = message.get("id")
            kind = _TYPES.get(str(path[-1])) if isinstance(path, list) and path else None
            found.append((kind or as_text(fields.get("type")), fields, message))
    return found


def _read_run(messages: list[tuple[str | None, Mapping[str, Any], Any]], step: Step) -> None:
    """Read a run's model calls and tokens from the run's messages, because the calls' spans are in other traces."""
    if not messages or messages[-1][0] != "ai":
        return
    step.calls_model = step.overwritten = True
    step.input_messages = [message for *_, message in messages[:-1]]
    step.output_messages = [messages[-1][2]]
    about = messages[-1][1].get("response_metadata")
    if isinstance(about, Mapping):
        step.model, step.provider = as_text(about.get("model_name")), as_text(about.get("model_provider"))
        step.finish_reason = as_text(about.get("finish_reason"))
    used = []
    for kind, fields, _ in reversed(messages):
        if kind == "human":
            break
        if kind == "ai" and isinstance(fields.get("usage_metadata"), Mapping):
            used.append(fields["usage_metadata"])
    step.input_tokens = sum_of(as_int(usage.get("input_tokens")) for usage in used)
    step.output_tokens = sum_of(as_int(usage.get("output_tokens")) for usage in used)
