"""Parser for Laminar (``lmnr``): ``lmnr.span.type``, ``.input`` and ``.output``.

Input and output are JSON text. A function's input is an object of its parameters. Instrumentations of model SDKs write
messages in the SDK's form.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..spans.record import SpanRecord
from .content import unquoted
from .langfuse import first_argument
from .otel_genai import documents
from .step import AGENT, CHAIN, EMBEDDING, GUARDRAIL, LLM, RETRIEVAL, TOOL, Step, as_text

KINDS = {
    "LLM": LLM, "CACHED": LLM, "TOOL": TOOL, "EVALUATION": CHAIN, "EXECUTOR": CHAIN, "EVALUATOR": GUARDRAIL, "HUMAN_EVALUATOR": GUARDRAIL,
    "DEFAULT": CHAIN, "PIPELINE": CHAIN, "EVENT": None,
}  # fmt: skip
MARKS = frozenset((
    "lmnr.span.type", "lmnr.span.path", "lmnr.span.input", "lmnr.span.output", "lmnr.association.properties.session_id",
))  # fmt: skip
SCOPES = re.compile(r"lmnr\b")
_EMBEDDINGS = ("embedding", "embeddings")
_AGENT = re.compile(r'\{"name": ?"([^"\\]+)", ?"tools": ?\[')
"""Start of the input of an agent's span of the OpenAI Agents SDK."""
_REASON = re.compile(r'"(?:finish|stop)_reason": ?"(\w+)"')
_SESSION, _USER = "lmnr.association.properties.session_id", "lmnr.association.properties.user_id"


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role from the span's type. A model span named after embeddings is an embedding."""
    kind = attributes.get("lmnr.span.type")
    if kind is None:
        return None
    role = KINDS.get(kind, CHAIN) if kind.__class__ is str else CHAIN
    given = attributes.get("lmnr.span.input") if kind == "DEFAULT" else None
    if given.__class__ is str and (found := _AGENT.match(given)) is not None and found[1] == name:
        return AGENT
    if role == LLM and name.rsplit(".", 1)[-1] in _EMBEDDINGS:
        return EMBEDDING
    return role


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    get = record.attributes.get
    if step.conversation_id is None:
        step.conversation_id = as_text(get(_SESSION))
    if step.user_id is None:
        step.user_id = as_text(get(_USER))
    given, answered = get("lmnr.span.input"), get("lmnr.span.output")
    role = step.role
    if role == TOOL:
        if step.tool_name is None:
            step.tool_name = as_text(get("gen_ai.tool.name")) or record.name or None
        if step.tool_arguments is None:
            step.tool_arguments = given
        if step.tool_result is None:
            step.tool_result = answered
    elif role == RETRIEVAL:
        step.query = first_argument(given) if step.query is None else step.query
        if step.documents is None and answered.__class__ is str:
            step.documents = documents(answered)
    elif role == AGENT:
        step.agent = step.agent or record.name
    else:
        step.function = get("lmnr.span.type") == "DEFAULT"
        if step.input_value is None:
            step.input_value = _call(given) if role == CHAIN else given
        if step.output_value is None:
            step.output_value = unquoted(answered)
        if role == LLM:
            made = get("gen_ai.output.messages", answered)
            if step.finish_reason is None and made.__class__ is str and (found := _REASON.search(made)) is not None:
                step.finish_reason = found[1]
            if step.input_messages is None and "gen_ai.input.messages" not in record.attributes:
                step.input_messages = given
            if step.output_messages is None and "gen_ai.output.messages" not in record.attributes:
                step.output_messages = answered


def _call(raw: Any) -> Any:
    """Return a function's parameters in the form in which messages are searched for."""
    return {"kwargs": raw} if raw.__class__ is str and raw[:1] == "{" and not raw.startswith('{"messages"') else raw
