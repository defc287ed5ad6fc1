"""Parser for spans that LiteLLM's callbacks write.

The first callback writes ``litellm_request`` spans. Each encloses a raw request: a ``raw_gen_ai_request`` span with the provider's
parameters and response as Python literals (``llm.openai.messages``, ``llm.openai.choices``). If the application has an
active span, LiteLLM writes to this span instead of creating a ``litellm_request`` span. Each call overwrites the attributes of the
preceding call, so only raw requests have one span per call.

A second callback (``LITELLM_OTEL_V2``) writes the GenAI convention's attributes, and writes the model to other proxy spans, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core.wellformed import Later
from ..spans.record import SpanRecord
from .attributes import as_int, as_text, first_int
from .openinference import objects_under
from .payloads import literal, parsed
from .step import EMBEDDING, INNER, LLM, RERANK, WORKFLOW, Step

MARKS = frozenset(("litellm.call_id", "litellm.api_key.hash", "hidden_params", "litellm.provider.model"))
SCOPES = re.compile(r"litellm$")
_FOREIGN = re.compile(
    r"gcp\.vertex|pydantic|logfire|agent_framework|semantic_kernel|strands|crewai|openinference|opentelemetry\."
)
"""Scopes of frameworks that use LiteLLM. If a span has one of these scopes, the framework's dialect determines the span's role."""
_CALL_TYPES = {
    **dict.fromkeys(("completion", "text_completion", "responses", "anthropic_messages", "generate_content", "generate_content_stream"), LLM),
    "embedding": EMBEDDING, "rerank": RERANK,
}  # fmt: skip
_RAW = re.compile(r"llm\.[^.]+\.([a-zA-Z_]+)$")
_RAW_NAME = "raw_gen_ai_request"


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    """Return the role of a span with a LiteLLM call's attributes. Return None for most other spans."""
    own = SCOPES.match(scope) is not None
    has_answer = name == "litellm_request" or "gen_ai.output.messages" in attributes or "gen_ai.completion.0.role" in attributes
    operation = attributes.get("gen_ai.operation.name") if own and has_answer else None
    if operation.__class__ is str and (role := _CALL_TYPES.get(operation) or _CALL_TYPES.get(operation.removeprefix("a"))):
        return role  # the name of LiteLLM's function: ``acompletion``
    if not own and "hidden_params" in attributes:
        if _FOREIGN.match(scope) or "gen_ai.request.model" not in attributes:
            return None
        # Under the latest convention, there are no raw requests. The span describes its last call, whose prompt has earlier calls.
        return LLM if "gen_ai.provider.name" in attributes else WORKFLOW
    if "gen_ai.request.model" in attributes:
        kind = attributes.get("llm.request.type")
        if kind is None or not own:
            return None if "gen_ai.operation.name" in attributes else INNER
        return _CALL_TYPES.get(kind.removeprefix("a"), LLM) if kind.__class__ is str and not kind.startswith("anth") else LLM
    if not own:
        return None
    return LLM if name == _RAW_NAME or any(_RAW.match(key) for key in attributes) else None


def read(record: SpanRecord, step: Step) -> None:
    attributes = record.attributes
    get = attributes.get
    if step.framework is None:
        step.framework = "litellm"
    if SCOPES.match(record.scope) is None:
        _read_parent(record, step)
    elif "gen_ai.request.model" not in attributes:
        if step.role == LLM:
            _read_raw(record, step)
        return
    if step.conversation_id is None:
        step.conversation_id = as_text(get("metadata.session_id")) or _session(get("metadata.requester_metadata"))
    if step.user_id is None:
        step.user_id = as_text(get("metadata.user_api_key_end_user_id")) or as_text(get("llm.user"))
    if step.cost_usd is None and isinstance(cost := get("gen_ai.cost.total_cost", get("litellm.cost.total")), (int, float)):
        step.cost_usd = float(cost)
    if step.output_messages is None and "gen_ai.completion.0.function_call.name" in attributes:
        step.output_messages = Later(_answer, attributes)


def _read_parent(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    if step.role == LLM:
        step.overwritten = True
    elif step.role == WORKFLOW:
        prompt = get("gen_ai.input.messages")
        step.calls_model = prompt is None
        if prompt is None or (prompt.__class__ is str and '"tool_calls"' not in prompt):  # otherwise, tokens of the last call
            step.input_tokens = as_int(get("gen_ai.usage.input_tokens"))
            step.output_tokens = as_int(get("gen_ai.usage.output_tokens"))
        if prompt is None:
            step.model = as_text(get("gen_ai.response.model")) or as_text(get("gen_ai.request.model"))
            step.provider = as_text(get("gen_ai.system"))
            step.response_id = as_text(get("gen_ai.response.id"))


def _session(raw: Any) -> str | None:
    """Return the session ID in the ``repr`` of a request's metadata, or None."""
    if raw.__class__ is not str or "session_id" not in raw:
        return None
    value = literal(raw)
    return as_text(value.get("session_id")) if isinstance(value, Mapping) else None


def _answer(attributes: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the answer with its tool requests, which LiteLLM writes to separate attributes without IDs."""
    value = parsed(attributes.get("gen_ai.output.messages"))
    flat = objects_under(attributes, "gen_ai.completion.") or []
    messages = [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
    if not messages:
        messages = [{"role": "assistant", **{k: v for k, v in item.items() if k != "function_call"}} for item in flat[:1]]
    first = messages[0]
    if not first.get("tool_calls"):
        first["tool_calls"] = [item["function_call"] for item in flat if isinstance(item.get("function_call"), dict)]
    return messages


# --- the provider's request


def _read_raw(record: SpanRecord, step: Step) -> None:
    raw = {found[1]: value for key, value in record.attributes.items() if (found := _RAW.match(key))}
    step.verbatim = bool(raw)
    step.model = as_text(raw.get("model"))
    step.response_id = as_text(raw.get("id"))
    usage = literal(raw.get("usage") or raw.get("usageMetadata"))
    if isinstance(usage, Mapping):
        step.input_tokens = first_int(usage, ("prompt_tokens", "input_tokens", "promptTokenCount", "inputTokens"))
        step.output_tokens = first_int(usage, ("completion_tokens", "output_tokens", "candidatesTokenCount", "outputTokens"))
    prompts = [raw[key] for key in _PROMPTS if key in raw]
    if step.input_messages is None and prompts:
        step.input_messages = Later(literal, prompts[0])
    if step.output_messages is None and not raw.keys().isdisjoint(_ANSWERS):
        step.output_messages = Later(_raw_answer, raw)
    if step.system is None:
        step.system = literal(raw.get("system") or raw.get("instructions"))
    if step.tool_definitions is None and raw.get("tools"):
        step.tool_definitions = Later(literal, raw["tools"])


_PROMPTS = ("messages", "input", "contents", "prompt")
"""Request fields with messages, depending on the provider's API."""
_ANSWERS = ("choices", "content", "output", "candidates")


def _raw_answer(raw: Mapping[str, Any]) -> Any:
    if "candidates" in raw:
        found = literal(raw["candidates"])
        return [item.get("content") for item in found if isinstance(item, Mapping)] if isinstance(found, list) else None
    if "content" in raw and "choices" not in raw:  # Anthropic's response is the message
        return [{"role": "assistant", "content": literal(raw["content"]), "finish_reason": raw.get("stop_reason")}]
    value = literal(raw["choices"] if "choices" in raw else raw["output"])
    return [value["message"]] if isinstance(value, Mapping) and "message" in value else value
