"""Parser for MLflow tracing 3.x over OTLP: JSON text of a function's inputs and outputs.

With ``MLFLOW_ENABLE_OTEL_GENAI_SEMCONV`` it writes the convention's attributes instead. Types that the convention lacks
(``RETRIEVER``, ``CHAIN``) are the operation's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import SpanRecord
from .langfuse import call_arguments, first_argument, read_usage
from .otel_genai import documents
from .step import (  # fmt: skip
    AGENT,
    CHAIN,
    EMBEDDING,
    GUARDRAIL,
    INNER,
    LLM,
    MEMORY,
    RERANK,
    RETRIEVAL,
    ROOT_ROLES,
    TOOL,
    WORKFLOW,
    Step,
    as_float,
    as_int,
    as_text,
)

_TYPES = {
    "LLM": LLM, "CHAT_MODEL": LLM, "AGENT": AGENT, "TOOL": TOOL, "RETRIEVER": RETRIEVAL, "CHAIN": CHAIN, "EMBEDDING": EMBEDDING,
    "RERANKER": RERANK, "WORKFLOW": WORKFLOW, "TASK": CHAIN, "PARSER": INNER, "MEMORY": MEMORY, "GUARDRAIL": GUARDRAIL,
    "EVALUATOR": GUARDRAIL, "UNKNOWN": CHAIN,
}  # fmt: skip
KINDS = {**_TYPES, **{f'"{kind}"': role for kind, role in _TYPES.items()}}
MARKS = frozenset(("mlflow.spanType", "mlflow.spanInputs", "mlflow.spanOutputs", "mlflow.traceRequestId"))
SCOPES = re.compile(r"mlflow\b")

_CONVERSATION = re.compile(r'"(?:(?:session|conversation|conv)(?:_?[iI]d)?|(?:thread|chat|group)_?[iI]d)": ?"([^"\\\s]+)"')
_AGENT = re.compile(r'"lc_agent_name": ?"([^"\\]+)"')
_SESSIONS = (
    "session.id", "mlflow.trace.session", "mlflow.traceTag.session_id", "mlflow.traceTag.group_id", "mlflow.traceTag.conversation_id",
    "mlflow.traceTag.thread_id", "session_id", "conversation_id", "thread_id",
)  # fmt: skip


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role from the span's type. A chain with the agent's name is a LangGraph agent."""
    kind = attributes.get("mlflow.spanType")
    if kind is None:
        kind = attributes.get("gen_ai.operation.name") if SCOPES.match(scope) else None
        if kind is None:
            return None if MARKS.isdisjoint(attributes) else CHAIN
        if kind == "CHAIN" and _AGENT.search(str(attributes.get("metadata"))):
            return AGENT  # nothing else distinguishes an agent's graph from its nodes, and nodes don't become runs
        return _TYPES.get(kind) if kind.__class__ is str else None
    role = KINDS.get(kind, CHAIN) if kind.__class__ is str else CHAIN
    if role == CHAIN:
        metadata = attributes.get("metadata")
        if metadata.__class__ is str and f'"lc_agent_name": "{name}"' in metadata:
            return AGENT
    elif role == AGENT and "mlflow.openai.agent_run_root" in attributes:
        return WORKFLOW  # the runner's span around the agents
    return role


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    get = record.attributes.get
    role = step.role
    given, answered = _said(get("mlflow.spanInputs")), _said(get("mlflow.spanOutputs"))
    if role in (LLM, EMBEDDING):
        _read_model(get, step, given, answered)
    elif role == TOOL:
        _read_tool(record, step, given, answered)
    elif role == RETRIEVAL:
        if step.query is None:
            step.query = first_argument(given)
        if step.documents is None and answered.__class__ is str and answered[:1] in "[{":
            step.documents = documents(answered)
    else:
        if role == AGENT and step.agent is None:
            step.agent = as_text(get("gen_ai.agent.name")) or _agent_name(record)
        if step.input_value is None:
            step.input_value = call_arguments(given)
        if step.output_value is None and not (role == AGENT and answered.__class__ is str and answered[:14] == '{"output_type"'):
            step.output_value = _joined(record, answered)
    if step.conversation_id is None:
        step.conversation_id = _first_text(get, _SESSIONS) or _named_in(get("metadata"))
        if step.conversation_id is None and role in ROOT_ROLES:  # arguments of the application's function or of the runner
            step.conversation_id = _named_in(given) or _named_in(get("kwargs"))
    if step.user_id is None:
        step.user_id = _first_text(get, ("user.id", "mlflow.trace.user", "mlflow.traceTag.user_id"))


def _agent_name(record: SpanRecord) -> str | None:
    found = _AGENT.search(str(record.attributes.get("metadata"))) if record.name == "CHAIN" else None
    return found.group(1) if found is not None else record.name or None


def _said(value: Any) -> Any:
    return None if value in ("null", '""') else value


def _plain(value: Any) -> str | None:
    """Return a text from JSON, or a plain text from a program that bypasses MLflow's SDK."""
    if value.__class__ is str and value[:1] == '"':
        value, _ = jsonio.loads_or_text(value)
    return None if value == "null" else as_text(value)


def _first_text(get: Any, keys: tuple[str, ...]) -> str | None:
    for key in keys:
        value = get(key)
        if value is not None and (text := _plain(value)) is not None:
            return text
    return None


def _named_in(fields: Any) -> str | None:
    """Return a conversation's id (LangGraph's thread, a run's group) from JSON text, or None.

    It is found without parsing, because every span repeats it.
    """
    found = _CONVERSATION.search(fields) if fields.__class__ is str else None
    return found.group(1) if found is not None else None


def _read_model(get: Any, step: Step, given: Any, answered: Any) -> None:
    if step.input_messages is None:
        step.input_messages = given
    if step.output_messages is None:
        step.output_messages = answered
    if step.system is None:
        step.system = _plain(get("instructions"))
        if step.system is None and given.__class__ is str and '"system": ' in given:
            step.system = given
    if step.model is None:
        step.model = _first_text(get, ("mlflow.llm.model", "model", "ai.model.id"))
    if step.provider is None:
        step.provider = _plain(get("mlflow.llm.provider"))
    if step.tool_definitions is None:
        step.tool_definitions = get("mlflow.chat.tools")
        if step.tool_definitions is None and given.__class__ is str and '"tools": [' in given:
            step.tool_definitions = given
    usage = get("mlflow.chat.tokenUsage")
    if usage is None:
        usage = get("usage")
    if usage is not None:
        _read_usage(usage, step)
    cost = get("mlflow.llm.cost")
    if cost is not None and step.cost_usd is None:
        value = jsonio.loads_or_text(cost)[0] if isinstance(cost, str) else cost
        step.cost_usd = as_float(value.get("total_cost")) if isinstance(value, Mapping) else None


def _read_usage(raw: Any, step: Step) -> None:
    """Fill token counts. MLflow's input tokens always include the cached ones."""
    value = jsonio.loads_or_text(raw)[0] if isinstance(raw, str) else raw
    if isinstance(value, Mapping):
        counts = (as_int(value.get("input_tokens")) or 0, as_int(value.get("output_tokens")) or 0)
        read_usage({"total": sum(counts), **value}, step)


def _read_tool(record: SpanRecord, step: Step, given: Any, answered: Any) -> None:
    get = record.attributes.get
    if step.tool_name is None:
        step.tool_name = as_text(get("gen_ai.tool.name")) or record.name or None
    if step.tool_call_id is None:
        step.tool_call_id = _plain(get("tool_call_id"))
    if step.tool_arguments is None:
        step.tool_arguments = given
    if step.tool_result is None:
        step.tool_result = _text(answered)
    if answered.__class__ is str and '"status": "error"' in answered and '"tool_call_id"' in answered:
        step.tool_failed = True


def _text(value: Any) -> Any:
    return jsonio.loads_or_text(value)[0] if value.__class__ is str and value[:1] == '"' else value


def _joined(record: SpanRecord, answered: Any) -> Any:
    """Return a generator's output as one text. Each of its pieces is also an event."""
    if answered.__class__ is str and answered[:2] == '["' and any(event.name == "mlflow.chunk.item.0" for event in record.events):
        pieces, _ = jsonio.loads_or_text(answered)
        if isinstance(pieces, list) and all(isinstance(piece, str) for piece in pieces):
            return "".join(pieces)
    return _text(answered)
