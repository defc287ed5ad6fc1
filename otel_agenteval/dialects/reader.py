"""Which dialects a span speaks, and what they say together.

A span may carry two (an SDK's instrumentation under a framework's, or one instrumentation that writes both): every
dialect that is present fills the fields that those before it left open.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..model import ErrorInfo
from ..spans.record import ERROR, SpanRecord
from . import openinference, openllmetry, otel_genai, pydantic_ai
from .step import TOOL, UNKNOWN, Step, as_text

_SCOPES = re.compile(
    r"""^(openinference\b|pydantic[-_]ai$|logfire(\.|$)|strands|traceloop|langfuse|com\.anthropic\.|gcp\.vertex\.agent|google[._]adk
        |mlflow|ai$|agent_framework|haystack|crewai|llama[-_]?index|smolagents|dspy|autogen|semantic_kernel
        |opentelemetry\.(instrumentation\.genai\.|util\.genai|instrumentation\.(openai|anthropic|langchain|llamaindex|crewai|bedrock|cohere
        |google_generativeai|google_genai|vertexai|mistralai|groq|ollama|together|replicate|watsonx|alephalpha|haystack|mcp|agno|writer|transformers
        |sagemaker|weaviate|pinecone|chromadb|qdrant|milvus|lancedb|marqo)))""",
    re.VERBOSE,
)
_known_scopes: dict[str, bool] = {}

ROLE_KEYS = frozenset((
    "gen_ai.operation.name", "gen_ai.tool.name", "gen_ai.request.model", "gen_ai.response.model", "openinference.span.kind",
    "traceloop.span.kind", "llm.request.type",
))  # fmt: skip
"""A span of an application's own scope that has none of these attributes is not GenAI (one C call: ``isdisjoint``)."""


def is_genai_scope(scope: str) -> bool:
    """Whether an instrumentation scope writes GenAI spans; some of them say a span's role only at its end."""
    known = _known_scopes.get(scope)
    if known is None:
        if len(_known_scopes) > 1_000:
            _known_scopes.clear()
        known = _known_scopes[scope] = _SCOPES.match(scope) is not None
    return known


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """A span's role from what it says so far: None is not GenAI, ``unknown`` is GenAI that has not said what."""
    if attributes and not ROLE_KEYS.isdisjoint(attributes):
        if "openinference.span.kind" in attributes:
            return openinference.role_of(attributes, name)
        role = otel_genai.role_of(attributes)
        if "traceloop.span.kind" in attributes or "llm.request.type" in attributes:
            told = openllmetry.role_of(attributes)
            # both speak: the convention's operation is finer, except for what it has no word for
            return told if role is None or (told is not None and role == "chain") else role
        if role is not None:
            return role
    if scope and is_genai_scope(scope):
        return (pydantic_ai.role_of(attributes, name) if scope in pydantic_ai.SCOPES else None) or UNKNOWN
    return None


_WHO = frozenset(("session.id", "user.id", "enduser.id"))


def read(record: SpanRecord) -> Step:
    """Everything that a span says, in any dialect. A span without a role is an application's own."""
    step = Step(record)
    attributes = record.attributes
    role = step.role = role_of(attributes, record.scope, record.name)
    if role is not None:
        if "openinference.span.kind" in attributes:
            openinference.read(record, step)
            step.framework = record.scope.removeprefix("openinference.instrumentation.") or None
        otel_genai.read(record, step)
        if openllmetry.speaks(attributes):
            openllmetry.read(record, step)
        if record.scope in pydantic_ai.SCOPES:
            pydantic_ai.read(record, step)
        if step.tool_name is None and role == TOOL:
            step.tool_name = record.name.removeprefix("execute_tool ") or None
    if not _WHO.isdisjoint(attributes):
        if step.conversation_id is None:
            step.conversation_id = as_text(attributes.get("session.id"))
        if step.user_id is None:
            step.user_id = as_text(attributes.get("user.id")) or as_text(attributes.get("enduser.id"))
    if record.status == ERROR or step.tool_failed or "error.type" in attributes:
        step.error = _error(record, step)
    return step


def _error(record: SpanRecord, step: Step) -> ErrorInfo | None:
    """Status ERROR or ``error.type``; the exception event, if any, says it best. A recorded exception alone is no failure."""
    kind = as_text(record.attributes.get("error.type"))
    if record.status != ERROR and kind is None and not step.tool_failed:
        return None
    message = record.status_message
    for event in reversed(record.events):
        if event.name == "exception":
            kind = kind or as_text(event.attributes.get("exception.type"))
            message = as_text(event.attributes.get("exception.message")) or message
            break
    if kind is None and message is not None:
        head = message.split(":", 1)[0]
        if head.isidentifier() and head[:1].isupper():
            kind = head
    if kind == "GeneratorExit":  # the consumer of a stream stopped reading; nothing failed
        return None
    return ErrorInfo(kind or "error", message)
