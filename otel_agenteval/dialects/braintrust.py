"""Parser for Braintrust, which writes ``braintrust.input_json`` and ``braintrust.output_json``.

Braintrust's SDKs for Go and Java write ``braintrust.*`` attributes, and applications can write these attributes, too.
``braintrust.span_attributes`` contains the role. Wrapped clients' spans can have a model name in their metadata instead.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..spans.record import ERROR, SpanRecord
from .attributes import as_float, as_int, as_text
from .payloads import object_in, unquoted
from .step import CHAIN, CONVERSATION_NAMES, GUARDRAIL, INNER, LLM, TOOL, Step

KINDS = {
    "llm": LLM, "tool": TOOL, "score": GUARDRAIL, "classifier": GUARDRAIL, "review": GUARDRAIL, "facet": INNER, "preprocessor": INNER,
}  # fmt: skip
MARKS = frozenset((
    "braintrust.input_json", "braintrust.input", "braintrust.output_json", "braintrust.output", "braintrust.metrics",
    "braintrust.span_attributes", "braintrust.metrics.prompt_tokens",
))  # fmt: skip
SCOPES = re.compile(r"braintrust\b")

_TYPE = re.compile(r'"type": ?"(\w+)"')


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role for a span's type. If it is missing, prompt tokens or (in Braintrust's scope) a model identify a call."""
    about = attributes.get("braintrust.span_attributes")
    kind = _TYPE.search(about) if about.__class__ is str else None
    if kind is not None:
        return KINDS.get(kind.group(1), CHAIN)
    if MARKS.isdisjoint(attributes):
        return None
    metadata, metrics = str(attributes.get("braintrust.metadata")), str(attributes.get("braintrust.metrics"))
    is_call = '"prompt_tokens"' in metrics or "braintrust.metrics.prompt_tokens" in attributes
    return LLM if is_call or (SCOPES.match(scope) and '"model"' in metadata) else CHAIN


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    role = step.role
    raw_input = get("braintrust.input_json", get("braintrust.input"))
    raw_output = get("braintrust.output_json", get("braintrust.output"))
    metadata = object_in(get("braintrust.metadata"))
    if role == LLM:
        _read_model(record, step, raw_input, raw_output, metadata)
    elif role == TOOL:
        if step.tool_name is None:
            step.tool_name = record.name or None
        if step.tool_arguments is None:
            step.tool_arguments = raw_input
        if step.tool_result is None:
            step.tool_result = unquoted(raw_output)
    else:
        if step.input_value is None:
            step.input_value = (
                {"kwargs": raw_input} if raw_input.__class__ is str and raw_input[:1] == "{" else unquoted(raw_input)
            )
        if step.output_value is None:
            step.output_value = unquoted(raw_output)
    if step.conversation_id is None:
        step.conversation_id = next((text for key in CONVERSATION_NAMES if (text := _text_under(get, metadata, key))), None)
    if step.user_id is None:
        step.user_id = _text_under(get, metadata, "user_id")


def _text_under(get: Any, metadata: Mapping[str, Any], key: str) -> str | None:
    return as_text(metadata.get(key)) or as_text(get(f"braintrust.metadata.{key}"))


def _read_model(record: SpanRecord, step: Step, raw_input: Any, raw_output: Any, metadata: Mapping[str, Any]) -> None:
    get = record.attributes.get
    if step.input_messages is None:
        step.input_messages = raw_input
    if step.output_messages is None:
        step.output_messages = raw_output
    if step.model is None:
        step.model = _text_under(get, metadata, "model")
    if step.provider is None:
        step.provider = _text_under(get, metadata, "provider")
    if step.tool_definitions is None:
        step.tool_definitions = metadata.get("tools")
    metrics = object_in(get("braintrust.metrics"))
    for field, key in _COUNTS:
        if getattr(step, field) is None:
            setattr(step, field, as_int(metrics.get(key, get(f"braintrust.metrics.{key}"))))
    if step.time_to_first_token_s is None and metrics.get("prompt_tokens") is not None:
        step.time_to_first_token_s = as_float(metrics.get("time_to_first_token"))
    if record.status != ERROR and raw_output is None and metrics and "prompt_tokens" not in metrics:
        step.tool_failed = True  # the response has no answer, although the HTTP client accepted it


_COUNTS = (
    ("input_tokens", "prompt_tokens"),
    ("output_tokens", "completion_tokens"),
    ("cached_tokens", "prompt_cached_tokens"),
    ("cache_write_tokens", "prompt_cache_creation_tokens"),
    ("reasoning_tokens", "completion_reasoning_tokens"),
)
