"""Parser for Promptflow: ``span_type``, and ``inputs`` and ``output`` as JSON text.

Events can contain them too. A model's answer is the whole response or its chunks.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.later import Later
from ..spans.record import SpanRecord
from .langfuse import read_usage
from .otel_genai import documents
from .step import CHAIN, EMBEDDING, LLM, RETRIEVAL, WORKFLOW, Step, as_int, as_text

MARKS = frozenset(("__computed__.cumulative_token_count.total",))
SCOPES = re.compile(r"promptflow\b")
_TYPES = {
    "LLM": LLM,
    "Function": CHAIN,
    "Tool": CHAIN,
    "LangChain": CHAIN,
    "Flow": WORKFLOW,
    "Embedding": EMBEDDING,
    "Retrieval": RETRIEVAL,
}


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role from the span's type.

    A function can become a turn root if a model works below it.
    """
    kind = attributes.get("span_type")
    return (
        _TYPES.get(kind, CHAIN) if kind.__class__ is str and attributes.get("framework", "promptflow") == "promptflow" else None
    )


def read(record: SpanRecord, step: Step) -> None:
    """Fill the fields that no earlier dialect has filled."""
    get = record.attributes.get
    step.framework = "promptflow"
    step.conversation_id = as_text(get("session_id"))
    payloads = {event.name: event.attributes.get("payload") for event in record.events}
    given = get("inputs", payloads.get("promptflow.function.inputs"))
    gave = get("output", payloads.get("promptflow.function.output"))
    if step.role == LLM:
        _read_llm(get, given, gave, step)
    elif step.role in (CHAIN, WORKFLOW):
        if given is not None:
            step.input_value = Later(_arguments, given)
        step.output_value = _value(gave)
    elif step.role == RETRIEVAL:
        step.query = next((value for value in _object(given).values() if isinstance(value, str)), None)
        found = _value(gave)
        step.documents = documents(found) if isinstance(found, (list, dict)) else None


def _read_llm(get: Any, given: Any, gave: Any, step: Step) -> None:
    step.model = as_text(get("llm.response.model"))
    step.input_tokens, step.output_tokens = as_int(get("llm.usage.prompt_tokens")), as_int(get("llm.usage.completion_tokens"))
    request = _object(given)
    step.request_model = as_text(request.get("model"))
    step.model = step.model or step.request_model
    step.input_messages = request.get("messages") or request.get("prompt")
    step.tool_definitions = request.get("tools")
    response = _value(gave)
    if isinstance(response, list):
        response = _joined([chunk for chunk in response if isinstance(chunk, Mapping)])
    if not isinstance(response, Mapping):
        step.output_messages = get("llm.generated_message")
        return
    step.response_id = as_text(response.get("id"))
    choices = response.get("choices")
    step.output_messages = choices
    first = choices[0] if isinstance(choices, list) and choices else None
    step.finish_reason = as_text(first.get("finish_reason")) if isinstance(first, Mapping) else None
    usage = response.get("usage")
    if isinstance(usage, Mapping):
        read_usage(usage, step)


def _joined(chunks: list[Mapping[str, Any]]) -> dict[str, Any]:
    """Return the response that a stream's chunks make, with its single choice."""
    text, reason, usage = "", None, None
    calls: dict[Any, dict[str, Any]] = {}
    for chunk in chunks:
        usage = chunk.get("usage") or usage
        choices = chunk.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, Mapping) or choice.get("index"):
            continue
        reason = choice.get("finish_reason") or reason
        delta = choice.get("delta")
        if isinstance(delta, Mapping):
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                _add_piece(piece, calls)
    message = {"role": "assistant", "content": text or None, "tool_calls": list(calls.values())}
    first = chunks[0] if chunks else {}
    return {"id": first.get("id"), "choices": [{"message": message, "finish_reason": reason}], "usage": usage}


def _add_piece(piece: Any, calls: dict[Any, dict[str, Any]]) -> None:
    if not isinstance(piece, Mapping):
        return
    call = calls.setdefault(piece.get("index"), {"id": None, "name": "", "arguments": ""})
    call["id"] = call["id"] or piece.get("id")
    function = piece.get("function")
    if isinstance(function, Mapping):
        for key in ("name", "arguments"):
            call[key] += function.get(key) or ""


def _value(raw: Any) -> Any:
    """Return a value from JSON text, with the pieces of a streamed text joined."""
    value = jsonio.loads_or_text(raw)[0] if raw.__class__ is str else raw
    if isinstance(value, list) and value and all(isinstance(item, str) for item in value):
        return "".join(value)
    return value


def _object(raw: Any) -> dict[str, Any]:
    value = _value(raw)
    return value if isinstance(value, dict) else {}


def _arguments(raw: Any) -> Any:
    """Return a function's arguments in the form in which messages are searched for."""
    value = _value(raw)
    return {"kwargs": {key: item for key, item in value.items() if item not in (None, "")}} if isinstance(value, dict) else value
