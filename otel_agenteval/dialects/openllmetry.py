"""Parser for OpenLLMetry: ``traceloop.*``, and messages in ``gen_ai.prompt.N.*`` or, in newer versions, the convention's format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .attributes import as_int, as_text, text_under
from .openinference import objects_under, unflatten
from .otel_genai import OPERATIONS, documents
from .payloads import first_argument, literal, object_in, parsed
from .step import AGENT, CHAIN, EMBEDDING, HANDOFF, LLM, RERANK, RETRIEVAL, TOOL, WORKFLOW, Step

KINDS = {"workflow": WORKFLOW, "task": CHAIN, "agent": AGENT, "tool": TOOL, "handoff": HANDOFF}
REQUEST_TYPES = {"chat": LLM, "completion": LLM, "rerank": RERANK, "embedding": EMBEDDING}
MARKS = frozenset((
    "traceloop.span.kind", "traceloop.entity.name", "llm.request.type", "llm.usage.total_tokens", "gen_ai.prompt.0.role",
    "gen_ai.prompt.0.content", "gen_ai.completion.0.role", "gen_ai.completion.0.content", "traceloop.workflow.name",
    "traceloop.association.properties.session_id", "traceloop.association.properties.thread_id",
    "traceloop.association.properties.conversation_id", "traceloop.association.properties.user_id",
    "respan.threads.thread_identifier", "respan.sessions.session_identifier",
))  # fmt: skip
SCOPES = re.compile(
    r"""traceloop|opentelemetry\.instrumentation\.(anthropic|langchain|llamaindex|crewai|bedrock|cohere|google_generativeai|mistralai|groq
        |ollama|together|replicate|watsonx|alephalpha|haystack|mcp|agno|writer|transformers|sagemaker|weaviate|pinecone|chromadb|qdrant
        |milvus|lancedb|marqo)""",
    re.VERBOSE,
)


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    kind = attributes.get("traceloop.span.kind")
    operation = attributes.get("gen_ai.operation.name")
    if operation == "invoke_agent" and scope.startswith(_LANGCHAIN):
        return _graph_role(attributes, kind)
    if operation.__class__ is str and operation in OPERATIONS:
        return None
    request = attributes.get("llm.request.type")
    role = REQUEST_TYPES.get(request) if request.__class__ is str else None
    if kind is not None and (role is None or kind != "task"):
        if kind == "workflow" == operation:  # LangChain.js: any chain
            return CHAIN
        return KINDS.get(kind, CHAIN) if kind.__class__ is str else CHAIN
    return role


_LANGCHAIN = "opentelemetry.instrumentation.langchain"
_NODES = "gen_ai.workflow.nodes"
_AGENT_NAME = "traceloop.association.properties.lc_agent_name"
_LOOP = frozenset(("model", "agent", "tools"))
"""Nodes in a single LangChain agent's graph. Graphs with several agents or steps have other nodes."""


def _graph_role(attributes: Mapping[str, Any], kind: Any) -> str | None:
    """Return the actual role of LangChain's outermost runnable, which OpenLLMetry records as an agent, or None if it is unknown."""
    if (nodes := attributes.get(_NODES)) is not None:
        found = parsed(nodes)
        known = isinstance(found, (list, tuple)) and bool(found) and not any(as_text(node) in _LOOP for node in found)
        return WORKFLOW if known else AGENT
    if kind != "workflow":
        return None
    agent = attributes.get("traceloop.association.properties.ls_integration") == "langchain_create_agent"
    return AGENT if agent or _AGENT_NAME in attributes else WORKFLOW


def read(record: SpanRecord, step: Step) -> None:
    attributes = record.attributes
    get = attributes.get
    if step.role == WORKFLOW and record.scope.startswith(_LANGCHAIN):
        step.workflow = as_text(get("gen_ai.agent.name"))  # the convention uses a graph's name as the agent
    elif step.role in (LLM, TOOL):
        step.agent = as_text(get(_AGENT_NAME)) or step.agent
    if step.conversation_id is None:
        step.conversation_id = text_under(attributes, _CONVERSATIONS)
        if step.conversation_id is None and step.role in (WORKFLOW, AGENT):
            step.conversation_id = _conversation(get("traceloop.entity.input"))
    if step.user_id is None:
        step.user_id = text_under(attributes, _USERS)
    if step.agent is None and step.role == AGENT:
        name = as_text(get("traceloop.entity.name"))
        step.agent = None if name is not None and name.endswith(".workflow") else name  # a class and its method
    if step.input_value is None:
        step.input_value = _entity(get("traceloop.entity.input"))
    if step.output_value is None:
        step.output_value = _entity(get("traceloop.entity.output"))
    if step.role == AGENT and as_int(get("llm.usage.total_tokens")):  # Agno: only the agent's span has the run's tokens
        step.input_tokens = as_int(get("gen_ai.usage.input_tokens"))
        step.output_tokens = as_int(get("gen_ai.usage.output_tokens"))
    if step.role == LLM:
        _read_llm(attributes, step)
    elif step.role == TOOL:
        _read_tool(record, step)
    elif step.role == RETRIEVAL and step.query is None:
        step.query = first_argument(get("gen_ai.task.input", step.input_value))
        step.documents = step.documents or documents(get("gen_ai.task.output"))


_CONVERSATIONS = (
    *(f"traceloop.association.properties.{key}" for key in ("session_id", "thread_id", "conversation_id")),
    "respan.threads.thread_identifier", "respan.sessions.session_identifier",
)  # fmt: skip
_USERS = ("traceloop.association.properties.user_id", "respan.customer_params.customer_identifier")
"""Attributes with user IDs. Respan writes OpenLLMetry's attributes, but has its own keys for conversation IDs and user IDs."""


def _conversation(raw: Any) -> str | None:
    """Return the conversation ID from LangChain's metadata (in the JSON text of a run's inputs), or None if there is no ID."""
    if raw.__class__ is not str or '_id"' not in raw or '"metadata"' not in raw:
        return None
    return text_under(object_in(object_in(raw).get("metadata")), ("session_id", "thread_id", "conversation_id"))


def _read_llm(attributes: dict[str, Any], step: Step) -> None:
    get = attributes.get
    if step.model == "unknown":
        step.model = None
    if step.input_messages is None and "gen_ai.input.messages" not in attributes:
        step.input_messages = _messages_under(attributes, "gen_ai.prompt.")
    if step.output_messages is None and "gen_ai.output.messages" not in attributes:
        step.output_messages = _messages_under(attributes, "gen_ai.completion.")
    if step.tool_definitions is None:
        functions = unflatten(attributes, "llm.request.functions.")
        if isinstance(functions, list):
            step.tool_definitions = functions
    for field, key in (("input_tokens", "gen_ai.usage.prompt_tokens"), ("output_tokens", "gen_ai.usage.completion_tokens")):
        if getattr(step, field) is None:
            setattr(step, field, as_int(get(key)))
    if step.finish_reason is None:
        step.finish_reason = as_text(get("llm.response.finish_reason")) or as_text(get("gen_ai.completion.0.finish_reason"))


def _messages_under(attributes: dict[str, Any], prefix: str) -> list[dict[str, Any]] | None:
    """Return messages with standard roles, or None. Older versions wrote roles such as ``thinking`` and ``CHATBOT``."""
    messages = objects_under(attributes, prefix)
    for message in messages or ():
        role = message.get("role")
        if role == "thinking":
            message["content"] = [{"type": "thinking", "thinking": message.get("content")}]
        if role in ("thinking", "unknown", "CHATBOT"):
            message["role"] = "assistant"
        elif role == "USER":
            message["role"] = "user"
        if "user" in message:  # Cohere's texts in JavaScript
            message.setdefault("content", message["user"])
    return messages


def _read_tool(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    if step.tool_name is None:
        step.tool_name = as_text(get("traceloop.entity.name")) or record.name.removesuffix(".tool") or None
    # The convention's attributes have the same wrapper.
    step.tool_arguments = step.input_value if step.tool_arguments is None else _entity(step.tool_arguments)
    step.tool_result = step.output_value if step.tool_result is None else _entity(step.tool_result)
    if step.tool_result.__class__ is str and record.scope.endswith(".agno"):
        status = _AGNO_RESULT.match(step.tool_result)
        fields, _, _ = step.tool_result.rpartition(" updated_session_state=")
        result, _, error = fields.rpartition(" error=")
        if status is not None and len(result) >= status.end():
            step.tool_failed = status[1] == "failure"
            step.tool_result = literal(error if step.tool_failed else result[status.end() :])


_AGNO_RESULT = re.compile(r"status='(\w+)' result=")


def _entity(raw: Any) -> Any:
    """Unwrap a function's ``{"args": […], "kwargs": {…}}`` or ``{"outputs": …}``. Parse other JSON objects, except LangChain's."""
    if raw.__class__ is not str or raw[:1] != "{":
        return raw
    value, _ = jsonio.loads_or_text(raw)
    if not isinstance(value, Mapping) or "lc" in value:
        return raw
    for key in ("input_str", "inputs", "outputs", "output"):
        if value.get(key) not in (None, ""):
            return value[key]
    if "args" in value or "kwargs" in value:
        args, kwargs = value.get("args"), value.get("kwargs")
        if kwargs:
            return kwargs
        return args[0] if isinstance(args, list) and len(args) == 1 else args
    return value
