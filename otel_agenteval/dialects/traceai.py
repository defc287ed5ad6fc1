"""Parser for traceAI (Future AGI): OpenInference's layout under the convention's names.

An example is ``gen_ai.input.messages.0.message.content``. The role is in ``gen_ai.span.kind``. Before 0.1.10, it was in
``fi.span.kind`` beside OpenInference's own names. LoongSuite's instrumentations write the kind beside the convention's
attributes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import partial
from typing import Any

from ..core import jsonio
from ..core.wellformed import Later
from ..spans.record import ERROR, SpanRecord
from . import openinference
from .attributes import as_float, as_int, as_text
from .openinference import messages_of
from .payloads import repr_text
from .step import AGENT, CHAIN, INNER, LLM, RETRIEVAL, ROOT_ROLES, TOOL, Step

KINDS = {**openinference.KINDS, "STEP": INNER, "TASK": CHAIN, "ENTRY": CHAIN, "WORKFLOW": CHAIN, "CONVERSATION": CHAIN}
MARKS = frozenset(("gen_ai.span.kind", "fi.span.kind"))
SCOPES = re.compile(r"traceai_|fi_instrumentation\b")


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role from the kind. A chain with the name of LangChain's agent is the agent's run."""
    kind = attributes.get("gen_ai.span.kind")
    if kind is None:
        kind = attributes.get("fi.span.kind")
    if kind.__class__ is not str:
        return None
    role = KINDS.get(kind.upper(), CHAIN)
    return AGENT if role == CHAIN and name and attributes.get("lc_agent_name") == name else role


def read(record: SpanRecord, step: Step) -> None:
    attributes = record.attributes
    get = attributes.get
    role = step.role
    if step.conversation_id is None and "session.id" not in attributes:
        step.conversation_id = as_text(get("thread_id")) or as_text(get("session_id"))
    if role == LLM:
        _read_model(attributes, step)
    elif role == TOOL:
        _read_tool(get, step)
    elif role == RETRIEVAL and step.query is None:
        step.query = _inner(get("gen_ai.retrieval.query", get("input.value")), "input")
    elif role in ROOT_ROLES:
        if step.input_value is None:
            step.input_value = get("input.value", get("raw.input"))
        if step.output_value is None:
            step.output_value = _answer(get("output.value", get("raw.output")))
    openinference.read(record, step)


def _read_model(attributes: dict[str, Any], step: Step) -> None:
    get = attributes.get
    whole = get("output.value", get("raw.output"))
    if step.input_messages is None and ("gen_ai.input.messages.0.message.role" in attributes):
        step.input_messages = Later(_inputs, attributes)
    if step.output_messages is None and step.record.status != ERROR:
        answered = not _ANSWERS.isdisjoint(attributes)
        step.output_messages = (
            Later(_outputs, attributes) if answered else whole or None
        )  # streams and LangChain's tool calls have only the whole
    parameters = get("gen_ai.request.parameters")
    if step.tool_definitions is None:
        step.tool_definitions = get("gen_ai.tool.definitions") or parameters
    if step.model is None and "gen_ai.request.model" not in attributes and parameters.__class__ is str:
        value, _ = jsonio.loads_or_text(parameters)
        step.model = as_text(value.get("model")) if isinstance(value, Mapping) else None
    if step.cost_usd is None:
        step.cost_usd = as_float(get("gen_ai.cost.total"))
    if step.reasoning_tokens is None:
        step.reasoning_tokens = as_int(get("gen_ai.usage.output_tokens.reasoning"))


_ANSWERS = frozenset((
    "gen_ai.output.messages.0.message.content", "gen_ai.output.messages.0.message.contents.0.message_content.text",
    "gen_ai.output.messages.0.message.tool_calls.0.tool_call.function.name",
    "gen_ai.output.messages.0.message.function_call_name",
))  # fmt: skip


_inputs = partial(messages_of, prefix="gen_ai.input.messages.")
_outputs = partial(messages_of, prefix="gen_ai.output.messages.")


def _read_tool(get: Any, step: Step) -> None:
    if step.tool_name is None:
        step.tool_name = as_text(get("gen_ai.tool.name"))
    if step.tool_arguments is None:
        step.tool_arguments = _inner(get("input.value", get("raw.input")), "input")
    if step.tool_result is None:
        result = _inner(get("output.value", get("raw.output")), "output")
        step.tool_result = result
        if result.__class__ is str and result[:8] == "content=" and result.endswith("status='error'"):
            step.tool_failed = True


def _inner(value: Any, key: str) -> Any:
    """Return a value without quotes, or without the object that LangChain's tracer adds, such as ``{"output": "..."}``."""
    if value.__class__ is str and value[:1] == '"':
        return jsonio.loads_or_text(value)[0]
    if value.__class__ is str and value.startswith(f'{{"{key}":'):
        found, _ = jsonio.loads_or_text(value)
        if isinstance(found, Mapping) and len(found) == 1:
            return found[key]
    return value


def _answer(value: Any) -> Any:
    """Return the last message of a state with LangChain messages as ``str()``. Any other value stays unchanged."""
    if value.__class__ is not str or not value.startswith('{"messages": ["content='):
        return value
    found, _ = jsonio.loads_or_text(value)
    messages = found.get("messages") if isinstance(found, Mapping) else None
    last = messages[-1] if isinstance(messages, list) and messages else None
    return repr_text(last) if isinstance(last, str) and " tool_call_id=" not in last else None
