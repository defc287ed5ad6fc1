"""Parser for the Vercel AI SDK. Versions 4 to 6 write ``ai.*`` attributes.

Version 7 mainly writes the GenAI convention's attributes. A call such as ``generateText`` is a span that encloses one
``doGenerate`` or ``doStream`` span per model request, and one ``ai.toolCall`` span per tool call. The outer span only repeats the
last answer and the token totals, so it isn't a model call.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ..core import jsonio
from ..core.turn import Document
from ..spans.record import ERROR, SpanRecord
from .attributes import as_float, as_int, as_text, first_int, first_text, text_under
from .otel_genai import document
from .payloads import parsed
from .step import AGENT, EMBEDDING, INNER, LLM, RERANK, TOOL, Step

MARKS = frozenset(("ai.operationId",))
SCOPES = re.compile(r"(ai|gen_ai|@ai-sdk/.+)$")
_OPERATIONS = {
    "ai.generateText": AGENT, "ai.streamText": AGENT, "ai.generateObject": AGENT, "ai.streamObject": AGENT,
    "ai.workflowAgent.stream": AGENT, "ai.toolCall": TOOL, "ai.embed": EMBEDDING, "ai.embedMany": EMBEDDING, "ai.rerank": INNER,
}  # fmt: skip
_INNER_OPERATIONS = {"doGenerate": LLM, "doStream": LLM, "doEmbed": EMBEDDING, "doRerank": RERANK}

_STREAMS = ("ai.streamText", "ai.streamObject")
_PLACES = ("ai.telemetry.metadata.", "ai.settings.context.")
"""Prefixes of an application's own metadata. Versions up to 6 write the first prefix, and later versions write the second."""
_CONVERSATION = tuple(
    place + key
    for place in _PLACES
    for key in ("sessionId", "session_id", "conversationId", "conversation_id", "threadId", "thread_id", "chatId", "chat_id")
)
_USER = tuple(place + key for place in _PLACES for key in ("userId", "user_id"))

_CACHE_READ = ("cacheReadInputTokens", "cache_read_input_tokens")
_CACHE_WRITTEN = ("cacheCreationInputTokens", "cache_creation_input_tokens", "cacheWriteInputTokens")
_LONGEST_METADATA = 20_000


def role_of(attributes: Mapping[str, Any], scope: str, name: str) -> str | None:
    operation = attributes.get("ai.operationId")
    if operation.__class__ is not str:
        return None
    role = _OPERATIONS.get(operation)
    return role if role is not None else _INNER_OPERATIONS.get(operation.rpartition(".")[2])


def read(record: SpanRecord, step: Step) -> None:
    get = record.attributes.get
    role = step.role
    step.framework = "vercel-ai"
    if role == TOOL:
        _read_tool(get, step)
        return
    if role in (AGENT, LLM):
        if step.agent is None:
            step.agent = as_text(get("ai.telemetry.functionId"))
        if step.conversation_id is None:
            step.conversation_id = text_under(record.attributes, _CONVERSATION)
        if step.user_id is None:
            step.user_id = text_under(record.attributes, _USER)
        if step.output_messages is None:
            step.output_messages = _answer(get)
        _read_end(record, step)
    if role == AGENT:
        if step.input_value is None:
            step.input_value = get("ai.prompt")
    elif role == LLM:
        _read_call(get, step)
    elif role == RERANK:
        _read_ranking(get, step)


def _read_end(record: SpanRecord, step: Step) -> None:
    """Read the finish reason, which shows whether the run ended normally. Streaming spans without a reason have no answer."""
    get = record.attributes.get
    if (reason := as_text(get("ai.response.finishReason"))) is not None:
        step.recovered = reason != "error"
    elif get("ai.operationId") in _STREAMS and record.status != ERROR:  # this span ends, but the request's span doesn't
        step.calls_model = True
        step.model = as_text(get("ai.model.id"))
    if step.finish_reason is None:
        step.finish_reason = reason or first_text(get("gen_ai.response.finish_reasons"))


def _answer(get: Any) -> Any:
    """Combine an answer's text (or object), reasoning, and tool requests into one message. Tool requests stay JSON text."""
    if (text := get("ai.response.text")) is None:
        text = get("ai.response.object")
    calls = get("ai.response.toolCalls")
    thoughts = get("ai.response.reasoning")
    if calls is not None and text == "":  # streams with only tool requests have an empty text
        text = None
    if thoughts is not None:
        parts = [{"type": "reasoning", "text": thoughts}]
        text = parts if text is None else [*parts, {"type": "text", "text": text}]
    return None if text is None and calls is None else {"role": "assistant", "content": text, "tool_calls": calls}


def _read_call(get: Any, step: Step) -> None:
    if step.model is None:
        step.model = as_text(get("ai.response.model")) or as_text(get("ai.model.id"))
    if step.provider is None and (provider := as_text(get("ai.model.provider"))) is not None:
        step.provider = provider.partition(".")[0]  # the API follows the dot
    if step.input_messages is None:
        step.input_messages = get("ai.prompt.messages")
    if step.tool_definitions is None:
        step.tool_definitions = get("ai.prompt.tools")
    if step.response_id is None:
        step.response_id = as_text(get("ai.response.id"))
    if step.time_to_first_token_s is None:
        milliseconds = as_float(get("ai.response.msToFirstChunk", get("ai.stream.msToFirstChunk")))
        if milliseconds is None:
            step.time_to_first_token_s = as_float(get("gen_ai.client.operation.time_to_first_chunk"))
        else:
            step.time_to_first_token_s = milliseconds / 1000
    _read_usage(get, step)


def _read_usage(get: Any, step: Step) -> None:
    if step.input_tokens is None:
        step.input_tokens = as_int(get("ai.usage.inputTokens", get("ai.usage.promptTokens")))
    if step.output_tokens is None:
        step.output_tokens = as_int(get("ai.usage.outputTokens", get("ai.usage.completionTokens")))
    if step.reasoning_tokens is None:
        step.reasoning_tokens = as_int(get("ai.usage.outputTokenDetails.reasoningTokens", get("ai.usage.reasoningTokens")))
    metadata = get("ai.response.providerMetadata")
    if metadata.__class__ is str and '"logprob"' in metadata:
        step.logprobs = metadata
    if metadata.__class__ is str and (tier := _SERVICE_TIER.search(metadata)) is not None:
        step.service_tier = tier[1]
    if metadata.__class__ is str and (
        "thoughtsTokenCount" in metadata or ("ache" in metadata and get("ai.usage.inputTokenDetails.noCacheTokens") is None)
    ):
        _read_providers_usage(metadata, step)


_SERVICE_TIER = re.compile(r'"serviceTier" ?: ?"(\w+)"')


def _read_providers_usage(metadata: str, step: Step) -> None:
    """Read token counts in the provider's format, which until version 5 is the only source of cached tokens. If a provider's input
    tokens exclude cached tokens, add the cached tokens. Gemini's output tokens exclude thoughts, so add the thoughts.
    """
    providers, _ = jsonio.loads_or_text(metadata) if len(metadata) < _LONGEST_METADATA else ({}, False)
    for fields in providers.values() if isinstance(providers, Mapping) else ():
        if not isinstance(fields, Mapping):
            continue
        usage = fields.get("usage", fields.get("usageMetadata"))
        counts = {**fields, **usage} if isinstance(usage, Mapping) else fields
        read, written = first_int(counts, _CACHE_READ), first_int(counts, _CACHE_WRITTEN)
        if step.cached_tokens is None:
            step.cached_tokens = as_int(counts.get("cachedPromptTokens")) if read is None else read
        if written is not None:
            step.cache_write_tokens = written
        if step.input_tokens is not None:
            step.input_tokens += (read or 0) + (written or 0)
        thoughts = as_int(counts.get("thoughtsTokenCount"))
        if thoughts and step.output_tokens is not None and step.output_tokens == as_int(counts.get("candidatesTokenCount")):
            step.output_tokens, step.reasoning_tokens = step.output_tokens + thoughts, thoughts


def _read_tool(get: Any, step: Step) -> None:
    if step.tool_name is None:
        step.tool_name = as_text(get("ai.toolCall.name"))
    if step.tool_call_id is None:
        step.tool_call_id = as_text(get("ai.toolCall.id"))
    if step.tool_arguments is None:
        step.tool_arguments = get("ai.toolCall.args")
    if step.tool_result is None:
        step.tool_result = get("ai.toolCall.result")


def _read_ranking(get: Any, step: Step) -> None:
    """Read documents in their ranked order. The ranking refers to documents by index."""
    if get("ai.ranking") is None and get("ai.documents") is not None:  # the span around the request's span
        step.role = INNER
        return
    texts, ranking = _values(get("ai.documents")), _values(get("ai.ranking"))
    if step.documents is not None or not texts or not ranking:
        return
    found = []
    for entry in ranking:
        place = entry.get("index") if isinstance(entry, Mapping) else None
        if place.__class__ is int and 0 <= place < len(texts):
            text = texts[place]
            item = document(text) if isinstance(text, Mapping) else Document(content=jsonio.text_of(text))
            item.score = as_float(entry.get("relevanceScore"))
            found.append(item)
    step.documents = found


def _values(raw: Any) -> list[Any]:
    items = raw if isinstance(raw, (list, tuple)) else ()
    return [*map(parsed, items)]
