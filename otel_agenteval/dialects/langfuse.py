"""Parser for Langfuse (Python SDK 3 to 5) and other writers of its attributes.

One attribute contains the input and one the output. An observation's type is its role. Values that aren't text are JSON text.
Since version 5, so is metadata.
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..spans.record import ERROR, SpanRecord
from .content import object_in, unquoted
from .otel_genai import documents
from .step import (
    AGENT,
    CHAIN,
    EMBEDDING,
    GUARDRAIL,
    INNER,
    LLM,
    RETRIEVAL,
    TOOL,
    Step,
    as_float,
    as_int,
    as_text,
    first_int,
)

KINDS = {
    "generation": LLM, "embedding": EMBEDDING, "agent": AGENT, "tool": TOOL, "retriever": RETRIEVAL, "chain": CHAIN, "span": CHAIN,
    "evaluator": GUARDRAIL, "guardrail": GUARDRAIL, "event": INNER,
}  # fmt: skip
MARKS = frozenset((
    "langfuse.observation.type", "langfuse.observation.input", "langfuse.observation.output", "langfuse.observation.model.name",
    "langfuse.observation.usage_details", "langfuse.trace.input", "langfuse.trace.output",
))  # fmt: skip
SCOPES = re.compile(r"langfuse\b")


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role from the observation's type.

    Without a type, a model makes it a generation, and content alone a chain. A chain with the name of LangChain's agent is the
    agent's run.
    """
    kind = attributes.get("langfuse.observation.type")
    if kind is not None:
        role = KINDS.get(kind, CHAIN) if kind.__class__ is str else CHAIN
        agent = attributes.get("langfuse.observation.metadata.lc_agent_name") if role == CHAIN else None
        return AGENT if name and agent in (name, f'"{name}"') else role
    if "langfuse.observation.model.name" in attributes or "langfuse.observation.usage_details" in attributes:
        return LLM
    return None if MARKS.isdisjoint(attributes) else CHAIN


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    get = record.attributes.get
    role = step.role
    given, answered = get("langfuse.observation.input"), get("langfuse.observation.output")
    if role in (LLM, EMBEDDING):
        _read_generation(record, step, given, answered)
    elif role == TOOL:
        if get("langfuse.observation.type") is not None:  # otherwise another framework's span, copied for Langfuse
            _read_tool(record, step, given, answered)
    elif role == RETRIEVAL:
        if step.query is None:
            step.query = first_argument(given)
        if step.documents is None and answered.__class__ is str and answered[:1] in "[{":
            step.documents = documents(answered)
    else:
        if role == AGENT and step.agent is None:
            step.agent = record.name or None
        if step.input_value is None:
            step.input_value = call_arguments(get("langfuse.trace.input", given))
        if step.output_value is None:
            step.output_value = get("langfuse.trace.output", answered)
    if step.conversation_id is None:
        step.conversation_id = (
            as_text(get("session.id"))
            or as_text(get("langfuse.session.id"))
            or _plain(get("langfuse.observation.metadata.thread_id"))
        )
    if step.user_id is None:
        step.user_id = as_text(get("user.id")) or as_text(get("langfuse.user.id"))
    if record.status != ERROR and get("langfuse.observation.level") == "ERROR":
        step.tool_failed = True  # set for every role, because older versions don't set the span's status


def call_arguments(raw: Any) -> Any:
    """Wrap a function's input object, whose parameter names are the application's own."""
    return {"kwargs": raw} if raw.__class__ is str and raw[:1] == "{" else raw


def _read_generation(record: SpanRecord, step: Step, given: Any, answered: Any) -> None:
    get = record.attributes.get
    if step.input_messages is None:
        step.input_messages = given
    if step.output_messages is None:
        step.output_messages = answered
    if (
        step.tool_definitions is None
        and given.__class__ is str
        and ('"tools"' in given or '"role": "tool", "content": {' in given)
    ):
        step.tool_definitions = given  # they are among the messages
    if step.model is None:
        step.model = as_text(get("langfuse.observation.model.name"))
    if step.provider is None:
        step.provider = _plain(get("langfuse.observation.metadata.ls_provider"))
    if step.finish_reason is None:
        step.finish_reason = _plain(get("langfuse.observation.metadata.finish_reason"))
    usage = get("langfuse.observation.usage_details")
    if usage is not None:
        read_usage(object_in(usage), step)
    cost = get("langfuse.observation.cost_details")
    if cost is not None and step.cost_usd is None:
        step.cost_usd = _cost(object_in(cost))
    started = get("langfuse.observation.completion_start_time")
    if started is not None and step.time_to_first_token_s is None:
        step.time_to_first_token_s = seconds_until(started, record.start_ns)


def _read_tool(record: SpanRecord, step: Step, given: Any, answered: Any) -> None:
    if step.tool_name is None:
        step.tool_name = record.name or None
    if step.tool_call_id is None:
        step.tool_call_id = _plain(record.attributes.get("langfuse.observation.metadata.tool_call_id"))
    if step.tool_arguments is None:
        step.tool_arguments = _arguments(given)
    if step.tool_result is None:
        step.tool_result = answered


def _arguments(raw: Any) -> Any:
    """Unpack ``{"args": [...], "kwargs": {...}}`` of a decorated function.

    Positional values have no names.
    """
    if raw.__class__ is not str or not raw.startswith('{"args"'):
        return raw
    call = object_in(raw)
    args, kwargs = call.get("args"), call.get("kwargs")
    if not args:
        return kwargs if isinstance(kwargs, Mapping) else raw
    if not isinstance(args, list):
        return raw
    values = [*args, *kwargs.values()] if isinstance(kwargs, Mapping) else args
    return values[0] if len(values) == 1 else values


def first_argument(raw: Any) -> Any:
    """Return a retriever's query: the text, or the first text among a call's arguments."""
    if raw.__class__ is not str or raw[:1] not in '{["':
        return raw
    value, _ = jsonio.loads_or_text(raw)
    if isinstance(value, Mapping):
        args, kwargs = value.get("args"), value.get("kwargs")
        if isinstance(args, list) or isinstance(kwargs, Mapping):
            value = [*(args if isinstance(args, list) else ()), *(kwargs.values() if isinstance(kwargs, Mapping) else ())]
        else:
            value = [value[key] for key in ("query", "question", "input") if key in value] + list(value.values())
    if isinstance(value, list):
        return next((item for item in value if isinstance(item, str)), None)
    return value


def _plain(value: Any) -> str | None:
    """Return a metadata value from text or JSON text."""
    return as_text(unquoted(value))


_CACHED = ("input_cache_read", "cache_read_input_tokens", "input_cached_tokens", "cached_tokens")
_REASONING = ("output_reasoning", "output_reasoning_tokens", "reasoning_tokens")
_APART = frozenset(("cache_read_input_tokens", "cache_creation_input_tokens"))
_TOTALS = frozenset(("input_tokens", "output_tokens", "input_tokens_details", "output_tokens_details"))


def read_usage(usage: Mapping[str, Any], step: Step) -> None:
    """Fill token counts, by a provider's names or by disjoint kinds that add up to the total."""
    given = first_int(usage, ("input", "prompt_tokens", "input_tokens", "prompt"))
    answered = first_int(usage, ("output", "completion_tokens", "output_tokens", "completion"))
    more_given, more_answered = _apart(usage, "input_"), _apart(usage, "output_")
    total = first_int(usage, ("total", "total_tokens"))
    if (more_given or more_answered) and (total is None or total != (given or 0) + (answered or 0)):
        answered = (answered or 0) + more_answered
        given = (given or 0) + more_given if total is None or total < answered else total - answered
    if step.input_tokens is None:
        step.input_tokens = given
    if step.output_tokens is None:
        step.output_tokens = answered
    if step.cached_tokens is None:
        step.cached_tokens = _detail(usage, ("prompt_tokens_details", "input_tokens_details"), "cached_tokens", _CACHED)
    if step.reasoning_tokens is None:
        step.reasoning_tokens = _detail(
            usage, ("completion_tokens_details", "output_tokens_details"), "reasoning_tokens", _REASONING
        )


def _apart(usage: Mapping[str, Any], prefix: str) -> int:
    """Return the tokens of kinds that the main count excludes.

    A priority tier isn't such a kind.
    """
    return sum(
        as_int(count) or 0
        for key, count in usage.items()
        if (key.startswith(prefix) and key not in _TOTALS and not key.startswith(f"{prefix}priority"))
        or (prefix == "input_" and key in _APART)
    )


def _detail(usage: Mapping[str, Any], groups: tuple[str, ...], name: str, keys: tuple[str, ...]) -> int | None:
    for group in groups:
        details = usage.get(group)
        if isinstance(details, Mapping):
            return as_int(details.get(name))
    return first_int(usage, keys)


def _cost(costs: Mapping[str, Any]) -> float | None:
    if "total" in costs:
        return as_float(costs["total"])
    known = [cost for value in costs.values() if (cost := as_float(value)) is not None]
    return sum(known) if known else None


def seconds_until(raw: Any, start_ns: int) -> float | None:
    """Return the seconds from a span's start to a time that is written as text, or None."""
    text = _plain(raw)
    if text is None:
        return None
    try:
        moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
        return as_float(round(moment.timestamp() - start_ns / 1e9, 6))
    except (ValueError, OverflowError, OSError):
        return None
