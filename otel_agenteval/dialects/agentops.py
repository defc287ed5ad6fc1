"""Parser for AgentOps, which writes ``agentops.*`` and messages in Traceloop's format.

Attributes for a decorated function's input and output can have the function's kind in their name: ``agentops.task.input``.

A session can contain several turns, so a ``session`` span is a possible turn only if this span has an input.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..core import jsonio
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_text, text_under
from .openinference import objects_under
from .step import AGENT, CHAIN, CONVERSATION_NAMES, EMBEDDING, GUARDRAIL, HANDOFF, INNER, LLM, RERANK, TOOL, WORKFLOW, Step

KINDS = {
    "workflow": WORKFLOW, "task": CHAIN, "operation": CHAIN, "agent": AGENT, "tool": TOOL, "llm": LLM, "llm.call": LLM, "chain": CHAIN,
    "text": CHAIN, "guardrail": GUARDRAIL, "team": WORKFLOW, "workflow.step": INNER, "agent.action": INNER, "agent.thinking": INNER,
    "agent.decision": INNER, "http": None, "unknown": None, "client": LLM, "agent.handoff": HANDOFF,
}  # fmt: skip
REQUESTS = {"chat": LLM, "completion": LLM, "embedding": EMBEDDING, "embeddings": EMBEDDING, "rerank": RERANK}
MARKS = frozenset((
    "agentops.span.kind", "agentops.operation.name", "agentops.entity.name", "agentops.tags", "workflow.step.type", "gen_ai.request.type",
))  # fmt: skip
SCOPES = re.compile(r"agentops\b")
_SESSION_KEYS = ("agentops.session_id", "session.id", *CONVERSATION_NAMES)


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    if (kind := attributes.get("agentops.span.kind")) is None:
        if attributes.get("workflow.step.type") == "trace":
            return WORKFLOW
        request = attributes.get("gen_ai.request.type")
        return REQUESTS.get(request) if request.__class__ is str else None
    if kind == "session":
        return CHAIN if "agentops.entity.input" in attributes or "agentops.session.input" in attributes else INNER
    if kind == "workflow" and attributes.get("workflow.type") in ("graph_compilation", "graph_initialization"):
        return INNER
    if kind == "llm" and name == "langgraph.node.execute" and "gen_ai.request.model" not in attributes:
        return CHAIN  # AgentOps mistakes graph nodes for model calls if their code contains certain words
    return KINDS.get(kind, CHAIN) if kind.__class__ is str else CHAIN


def read(record: SpanRecord, step: Step) -> None:
    attributes = record.attributes
    get = attributes.get
    role = step.role
    if get("agentops.span.kind") == "session" and step.conversation_id is None:
        step.conversation_id = text_under(attributes, _SESSION_KEYS)
    if role == WORKFLOW and step.conversation_id is None:
        step.conversation_id = as_text(get("group.id"))
    if role == TOOL:
        _read_tool(record, step)
    elif role == LLM:
        _read_call(attributes, step)
    elif role in (AGENT, WORKFLOW, CHAIN):
        if step.agent is None and role == AGENT:
            step.agent = as_text(get("agent.name")) or as_text(get("operation.name"))
        step.function = get("agentops.span.kind") in ("operation", "task")
        raw_input, raw_output = _entity(get)
        step.input_value, step.output_value = raw_input, raw_output
        if "gen_ai.prompt.0.content" in attributes:
            step.input_messages = Later(_asked, attributes)
        if raw_output is None:
            step.output_value = get("langgraph.graph.final_response")


def _entity(get: Any) -> tuple[Any, Any]:
    """Return the input and output of a decorated function, or ``(None, None)`` if no input is recorded."""
    kind = get("agentops.span.kind")
    if kind.__class__ is str:
        for prefix in (f"agentops.{kind}.", "agentops.entity.", "chain.", "workflow."):
            if (raw_input := get(f"{prefix}input")) is None:
                raw_input = get(f"{prefix}inputs")
            if raw_input is not None:
                raw_output = get(f"{prefix}output")
                return raw_input, get(f"{prefix}outputs") if raw_output is None else raw_output
    return None, None


def _read_tool(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    step.tool_name = text_under(record.attributes, ("langchain.tool.name", "tool.name", "operation.name"))
    step.tool_name = step.tool_name or record.name.removesuffix(".tool")
    step.tool_call_id = as_text(get("tool.call.id"))
    for field, keys in (
        ("tool_arguments", ("agentops.tool.input", "langchain.tool.input", "tool.parameters", "agentops.entity.input")),
        ("tool_result", ("agentops.tool.output", "langchain.tool.output", "tool.result", "agentops.entity.output")),
    ):
        setattr(step, field, next((value for key in keys if (value := get(key)) is not None), None))
    step.tool_failed = "langchain.tool.error" in record.attributes
    result = step.tool_result
    if result.__class__ is str and result[:1] == "{" and '"status": "error"' in result:
        step.tool_failed = True


def _read_call(attributes: dict[str, Any], step: Step) -> None:
    get = attributes.get
    if "gen_ai.prompt.0.content" in attributes or "gen_ai.prompt.0.role" in attributes:
        step.input_messages = Later(_asked, attributes)
    if any(key in attributes for key in _ANSWERED):
        step.output_messages = Later(_answered, attributes)
    step.finish_reason = as_text(get("gen_ai.completion.0.finish_reason")) or as_text(get("gen_ai.response.stop_reason"))
    completion = get("gen_ai.completion")
    if completion.__class__ is str and completion[:2] == '["':  # a list of LangChain texts
        texts = jsonio.loads_or_text(completion)[0]
        if isinstance(texts, list) and any(texts):
            step.output_messages = [{"role": "assistant", "content": text} for text in texts if isinstance(text, str) and text]


_ANSWERED = ("gen_ai.completion.0.role", "gen_ai.completion.0.content", "gen_ai.completion.0.tool_calls.0.name")


def _messages(attributes: dict[str, Any], prefix: str, author: str) -> list[Any]:
    return [{"role": author, **item} for item in objects_under(attributes, prefix) or ()]


_asked = partial(_messages, prefix="gen_ai.prompt.", author="user")
_answered = partial(_messages, prefix="gen_ai.completion.", author="assistant")
