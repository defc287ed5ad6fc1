"""Parser for LangWatch (Python, TypeScript): ``langwatch.input`` and ``langwatch.output``.

They are JSON text of ``{"type": ..., "value": ...}``. User and conversation ids are in the JSON text ``metadata`` of a trace's
first span or in separate attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.later import Later
from ..core.turn import Document
from ..spans.record import SpanRecord
from .langfuse import call_arguments
from .step import (
    AGENT,
    CHAIN,
    CONVERSATION_NAMES,
    EMBEDDING,
    GUARDRAIL,
    LLM,
    RETRIEVAL,
    TOOL,
    WORKFLOW,
    Step,
    as_float,
    as_int,
    as_text,
    first_int,
    without_provider,
)

KINDS = {
    "llm": LLM, "agent": AGENT, "tool": TOOL, "rag": RETRIEVAL, "workflow": WORKFLOW, "guardrail": GUARDRAIL, "evaluation": GUARDRAIL,
    "embedding": EMBEDDING,
}  # fmt: skip
MARKS = frozenset((
    "langwatch.span.type", "langwatch.input", "langwatch.output", "langwatch.metrics", "langwatch.contexts", "langwatch.rag_contexts",
    "langwatch.thread.id",
))  # fmt: skip
SCOPES = re.compile(r"langwatch\b")

_VALUE = re.compile(r'\{"type": ?"\w+", ?"value": ?')
_GRAPH_INPUT = re.compile(r'\{"type": ?"json", ?"value": ?\{"messages": ?\[(?:\{"role":|\[")')
_NODES = frozenset(("LangGraph", "model", "tools", "agent", "chatbot", "call_model", "__start__"))
_IDS = ("thread_id", "threadId", *CONVERSATION_NAMES)


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role from the span's type.

    A chain with the user's messages and its own name is LangChain's agent.
    """
    kind = attributes.get("langwatch.span.type")
    if kind is None:
        return None if MARKS.isdisjoint(attributes) else CHAIN
    if kind == "chain" and name not in _NODES and not name.startswith("Runnable"):
        given = attributes.get("langwatch.input")
        return AGENT if given.__class__ is str and _GRAPH_INPUT.match(given) else CHAIN
    return KINDS.get(kind, CHAIN) if kind.__class__ is str else CHAIN


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    get = record.attributes.get
    role = step.role
    given, answered = get("langwatch.input"), get("langwatch.output")
    if role in (LLM, EMBEDDING):
        _read_model(record, step, given, answered)
    elif role == TOOL:
        if step.tool_name is None:
            step.tool_name = as_text(get("gen_ai.tool.name")) or record.name or None
        if step.tool_arguments is None:
            step.tool_arguments = _plain(given)
        if step.tool_result is None:
            step.tool_result = _result(answered)
    elif role == RETRIEVAL:
        if step.query is None:
            step.query = _query(_plain(given))
        if step.documents is None:
            step.documents = _documents(get("langwatch.contexts", get("langwatch.rag_contexts")))
    else:
        if role == AGENT and step.agent is None:
            step.agent = as_text(get("gen_ai.agent.name")) or record.name or None
        if step.input_value is None:
            step.input_value = call_arguments(_plain(given))
        if step.output_value is None:
            step.output_value = _plain(answered)
        if role == AGENT and answered.__class__ is str and '"usage_metadata"' in answered:
            _read_usage(answered, step)
    if step.conversation_id is None:
        step.conversation_id = as_text(get("langwatch.thread.id")) or as_text(get("langwatch.session.id"))
    if step.user_id is None:
        step.user_id = as_text(get("langwatch.user.id"))
    metadata = get("metadata")
    if metadata.__class__ is str and len(metadata) > 2:
        _read_metadata(metadata, step)


def _read_metadata(metadata: str, step: Step) -> None:
    value, _ = jsonio.loads_or_text(metadata)
    if isinstance(value, Mapping):
        if step.conversation_id is None:
            step.conversation_id = next((text for key in _IDS if (text := as_text(value.get(key)))), None)
        if step.user_id is None:
            step.user_id = as_text(value.get("user_id")) or as_text(value.get("userId"))


def _read_usage(answered: str, step: Step) -> None:
    """Fill the run's token counts from its last messages. Streamed calls don't count tokens."""
    found = _object(answered).get("messages")
    messages: list[Any] = found if isinstance(found, list) else []
    given = answered_with = 0
    for message in reversed(messages):
        fields = message.get("kwargs", message) if isinstance(message, Mapping) else {}
        if not isinstance(fields, Mapping) or not any(fields.get(key) for key in _OF_A_RUN):
            break
        usage = fields.get("usage_metadata")
        if isinstance(usage, Mapping):
            given += as_int(usage.get("input_tokens")) or 0
            answered_with += as_int(usage.get("output_tokens")) or 0
    if given or answered_with:
        step.input_tokens, step.output_tokens = given, answered_with


_OF_A_RUN = ("usage_metadata", "response_metadata", "tool_call_id")
"""Fields of a model's or a tool's message that the user's message lacks."""


def _read_model(record: SpanRecord, step: Step, given: Any, answered: Any) -> None:
    get = record.attributes.get
    if step.input_messages is None and given is not None:
        step.input_messages = Later(_messages, given)
    if step.output_messages is None and answered is not None:
        step.output_messages = Later(_messages, answered)
    if step.model is None:
        model = as_text(get("gen_ai.response.model")) or as_text(get("gen_ai.request.model"))
        step.provider, step.model = without_provider(model)
    if step.tool_definitions is None:
        parameters = get("langwatch.params")
        step.tool_definitions = parameters if parameters.__class__ is str and '"tools":' in parameters else None
    metrics = _object(get("langwatch.metrics"))
    if metrics:
        for field, keys in _COUNTS:
            if getattr(step, field) is None:
                setattr(step, field, first_int(metrics, keys))
        if step.cost_usd is None:
            step.cost_usd = as_float(metrics.get("cost"))
    times = _object(get("langwatch.timestamps"))
    if step.time_to_first_token_s is None and times.get("first_token_at"):
        started, first = as_float(times.get("started_at")), as_float(times["first_token_at"])
        if started is not None and first is not None:
            step.time_to_first_token_s = as_float((first - started) / 1000)


_COUNTS = (
    ("input_tokens", ("prompt_tokens", "promptTokens")),
    ("output_tokens", ("completion_tokens", "completionTokens")),
    ("reasoning_tokens", ("reasoning_tokens", "reasoningTokens")),
    ("cached_tokens", ("cache_read_input_tokens", "cacheReadInputTokens")),
)


def _object(raw: Any) -> Mapping[str, Any]:
    """Return an object from JSON text, with or without its type."""
    if raw.__class__ is not str:
        return {}
    value, _ = jsonio.loads_or_text(_inner(raw))
    return value if isinstance(value, Mapping) else {}


def _inner(raw: Any) -> Any:
    """Return the JSON text of a typed value, or any other value unchanged."""
    found = _VALUE.match(raw) if raw.__class__ is str else None
    return raw if found is None else raw[found.end() : -1]


def _plain(raw: Any) -> Any:
    """Return a text, or the JSON text of any other value."""
    inner = _inner(raw)
    return jsonio.loads_or_text(inner)[0] if inner.__class__ is str and inner[:1] == '"' else inner


def _messages(raw: Any) -> Any:
    """Return a model call's messages.

    LangWatch writes LangChain's tool results with the role ``unknown``.
    """
    value, _ = jsonio.loads_or_text(_inner(raw)) if raw.__class__ is str else (raw, False)
    if raw.__class__ is str and isinstance(value, list):
        value = [message for item in value for message in _typed(item)]
    return value


def _typed(item: Any) -> list[Any]:
    if isinstance(item, list):  # answers of several generations
        return [message for inner in item for message in _typed(inner)]
    if isinstance(item, Mapping) and item.keys() == {"type", "value"}:
        return _typed(item["value"])
    if isinstance(item, Mapping) and item.get("role") == "unknown":
        return [{**item, "role": "tool"}]
    function = item.get("function_call") if isinstance(item, Mapping) else None
    if isinstance(function, Mapping) and "tool_calls" in function:
        return [{**item, "tool_calls": function["tool_calls"]}]
    return [item]


def _result(raw: Any) -> Any:
    """Return a tool's result. LangChain's is a message, which TypeScript types twice."""
    inner = _inner(_plain(raw))
    if inner.__class__ is str and inner[:10] == '[{"role": ':
        value, _ = jsonio.loads_or_text(inner)
        if isinstance(value, list) and len(value) == 1 and isinstance(value[0], Mapping):
            return value[0].get("content")
    return inner


def _query(given: Any) -> Any:
    """Return a function's first text argument, or the text itself."""
    if given.__class__ is str and given[:1] == "{":
        value, _ = jsonio.loads_or_text(given)
        if isinstance(value, Mapping):
            return next((text for text in value.values() if isinstance(text, str)), None)
    return given


def _documents(raw: Any) -> list[Document] | None:
    value, _ = jsonio.loads_or_text(_inner(raw)) if raw.__class__ is str else (raw, False)
    if not isinstance(value, list):
        return None
    found = []
    for item in value:
        if isinstance(item, Mapping):
            content, identity = item.get("content"), item.get("document_id", item.get("documentId"))
            identity = item.get("chunk_id", item.get("chunkId")) if identity is None else identity
            found.append(
                Document(
                    id=str(identity) if identity is not None else None,
                    content=jsonio.text_of(content) if content is not None else None,
                    score=as_float(item.get("score")),
                )
            )
        elif isinstance(item, str):
            found.append(Document(content=item))
    return found
