"""Parser for LangSmith's OpenTelemetry mode.

``gen_ai.prompt`` and ``gen_ai.completion`` contain a run's inputs and outputs as JSON: named parameters, a request and its
response, or LangChain's state. LangSmith sets the status OK at a run's start, so a failed run often has OK and an exception event.
``langsmith.metadata.*`` contains metadata. ``langsmith.trace.session_id`` identifies a project, not a conversation.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.turn import ErrorInfo
from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_int, as_text, text_under
from .otel_genai import documents
from .payloads import first_argument
from .step import AGENT, CHAIN, CONVERSATION_NAMES, EMBEDDING, INNER, LLM, NO_FAILURES, RETRIEVAL, TOOL, Step

KINDS = {
    "llm": LLM, "tool": TOOL, "retriever": RETRIEVAL, "embedding": EMBEDDING, "chain": CHAIN, "prompt": INNER, "parser": INNER,
}  # fmt: skip
MARKS = frozenset(("langsmith.span.kind", "langsmith.trace.name", "langsmith.metadata.ls_method"))
SCOPES = re.compile(r"langsmith$")
_METADATA = "langsmith.metadata."
_SESSION_KEYS = tuple(f"{_METADATA}{name}" for name in CONVERSATION_NAMES)
_USER_KEYS = tuple(f"{_METADATA}{name}" for name in ("user_id", "ls_user_id"))
_AGENT_NAMES = tuple(f"{_METADATA}{name}" for name in ("lc_agent_name", "ls_agent_name"))
_UNNAMED = frozenset(("Span", "Handoff", "Guardrail", "Custom"))
_FINISH = re.compile(r'"(?:finish_reason|stop_reason|finishReason)": ?"(\w+)"')
_RAISED = re.compile(r"(\w+)\((.*?)\)(?=\s*Traceback|\s*$)", re.DOTALL)


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    if (kind := attributes.get("langsmith.span.kind")) is None:
        return None
    role = KINDS.get(kind, CHAIN) if kind.__class__ is str else CHAIN
    if role != CHAIN:
        return role
    of_openai = f"{_METADATA}openai_parent_id" in attributes and name not in _UNNAMED  # named steps are agents
    return AGENT if of_openai or any(attributes.get(key) == name for key in _AGENT_NAMES) else CHAIN


def read(record: SpanRecord, step: Step) -> None:
    attributes = record.attributes
    if attributes.get("langsmith.span.kind") is None:
        return
    get = attributes.get
    step.framework = step.framework or "langsmith"
    if step.conversation_id is None:
        step.conversation_id = text_under(attributes, _SESSION_KEYS)
    if step.user_id is None:
        step.user_id = text_under(attributes, _USER_KEYS)
    raw_input, raw_output = get("gen_ai.prompt"), get("gen_ai.completion")
    if raw_output.__class__ is str and raw_output in _NOTHING:
        raw_output = None
    role = step.role
    if role == LLM:
        step.input_messages, step.output_messages = raw_input, _later_answer(raw_output)
        _read_call(get, raw_output, step)
    elif role == TOOL:
        step.tool_arguments = (
            _arguments(raw_input) if raw_input.__class__ is str and raw_input.startswith('{"input"') else raw_input
        )
        step.tool_result, step.tool_call_id = _output(raw_output), as_text(get(f"{_METADATA}tool_call_id"))
    elif role == RETRIEVAL:
        step.query = first_argument(raw_input)
        step.documents = documents(_output(raw_output)) if raw_output is not None else None
    else:
        _read_run(record, raw_input, raw_output, step)
    _read_failure(record, step)


def _read_run(record: SpanRecord, raw_input: Any, raw_output: Any, step: Step) -> None:
    step.function = step.role == CHAIN
    if step.role == AGENT:
        step.agent = record.name
    step.input_messages = (
        raw_input if raw_input.__class__ is not str or raw_input.startswith('{"messages"') else {"kwargs": raw_input}
    )
    step.output_messages = _later_answer(raw_output)


_NOTHING = frozenset(('{"output":null}', '{"output": null}', "{}", "null"))


def _later_answer(raw_output: Any) -> Any:
    return Later(_answer, raw_output) if raw_output.__class__ is str else raw_output


def _read_call(get: Any, raw_output: Any, step: Step) -> None:
    """Read token usage from the metadata or response, and the finish reason from the response."""
    usage = get(f"{_METADATA}usage_metadata")
    if usage.__class__ is str:
        _read_usage(jsonio.loads_or_text(usage)[0], step)
    elif raw_output.__class__ is str and get("gen_ai.usage.input_tokens") is None and '"usage' in raw_output:
        value = jsonio.loads_or_text(raw_output)[0]
        if isinstance(value, Mapping):
            _read_usage(value.get("usage_metadata") or value.get("usage"), step)
    if raw_output.__class__ is str and (reason := _FINISH.search(raw_output)) is not None:
        step.finish_reason = reason[1]


def _read_usage(usage: Any, step: Step) -> None:
    if not isinstance(usage, Mapping):
        return
    step.input_tokens = as_int(usage.get("input_tokens", usage.get("prompt_tokens", step.input_tokens)))
    step.output_tokens = as_int(usage.get("output_tokens", usage.get("completion_tokens", step.output_tokens)))
    for field, group, name in (
        ("cached_tokens", "input_token_details", "cache_read"),
        ("cache_write_tokens", "input_token_details", "cache_creation"),
        ("reasoning_tokens", "output_token_details", "reasoning"),
    ):
        details = usage.get(group)
        if isinstance(details, Mapping):
            setattr(step, field, as_int(details.get(name)))


def _answer(raw: str) -> Any:
    """Return a run's output without LangSmith's wrapper. If the output is a list of LangGraph commands, return the last update."""
    value = jsonio.loads_or_text(raw)[0]
    if isinstance(value, Mapping) and value.keys() == {"output"}:
        value = value["output"]
    if isinstance(value, list) and value and all(isinstance(item, Mapping) and "update" in item for item in value):
        value = value[-1]["update"]  # LangGraph's commands
    return value


def _arguments(raw: str) -> Any:
    """Return a tool's arguments, which LangChain writes as JSON text in ``input``."""
    value = jsonio.loads_or_text(raw)[0]
    inner = value.get("input") if isinstance(value, Mapping) and len(value) == 1 else None
    return inner if isinstance(inner, str) and inner[:1] == "{" else value


def _output(raw: Any) -> Any:
    """Return a function's result. LangSmith wraps all results except objects in ``{"output": …}``."""
    if raw.__class__ is not str or not raw.startswith('{"output"'):
        return raw
    value = jsonio.loads_or_text(raw)[0]
    return value["output"] if isinstance(value, Mapping) and len(value) == 1 else raw


def _read_failure(record: SpanRecord, step: Step) -> None:
    """Read the error from the exception event. The event's message (``repr`` and traceback) contains the error's type."""
    for event in reversed(record.events):
        if event.name == "exception":
            text = as_text(event.attributes.get("exception.message")) or ""
            if text.partition("(")[0] not in NO_FAILURES:
                raised = _RAISED.match(text)
                kind, message = (raised[1], raised[2].strip("'\"")) if raised is not None else (None, text.split("\n", 1)[0])
                step.error = ErrorInfo(kind or "error", message)
            return
