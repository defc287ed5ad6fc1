"""Wire format of Amazon Bedrock's Converse API.

Requests have an API key or a signature (:mod:`..aws`).
"""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping
from typing import Any

from .base import (  # fmt: skip
    ChatMessage,
    ChatReply,
    ChatRequest,
    Finish,
    HttpRequest,
    Media,
    TokenUsage,
    added,
    count,
    mapping,
    mappings,
    no_answer,
    not_taken,
    text,
)
from .openai import headers

__all__ = ["answer", "headers", "request"]

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
    "guardrail_intervened": "refusal", "content_filtered": "refusal", "refusal": "refusal",
}  # fmt: skip


def request(chat: ChatRequest) -> HttpRequest:
    """Return the request ``POST /model/{model}/converse``.

    The API doesn't have a JSON mode, so without a schema only the prompt requests JSON.
    """
    settings: dict[str, Any] = {"maxTokens": chat.room}
    if chat.temperature is not None:
        settings["temperature"] = chat.temperature
    body: dict[str, Any] = {
        "system": [{"text": chat.system}],
        "messages": [_message(message) for message in chat.messages],
        "inferenceConfig": settings,
    }
    if chat.form == "schema":
        schema = {"name": "reply", "schema": json.dumps(chat.schema)}
        body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
    return HttpRequest(f"/model/{urllib.parse.quote(chat.model, safe='')}/converse", body)


def _message(message: ChatMessage) -> dict[str, Any]:
    return {"role": message.role, "content": [{"text": message.text}, *map(_part, message.media)]}


def _part(media: Media) -> dict[str, Any]:
    if media.url or media.kind not in ("image", "video"):
        raise not_taken(media, "Converse")
    return {media.kind: {"format": media.form, "source": {"bytes": media.data}}}


def answer(body: Mapping[str, Any]) -> ChatReply:
    """Parse the text blocks of a response, without reasoning."""
    message = mapping(body.get("output")).get("message")
    if not isinstance(message, Mapping):
        raise no_answer("Converse")
    reply = "".join(text(block.get("text")) for block in mappings(message.get("content")))
    usage = mapping(body.get("usage"))
    cached = count(usage.get("cacheReadInputTokens"))
    fresh = count(usage.get("inputTokens"))
    given = None if fresh is None else added(fresh, cached, count(usage.get("cacheWriteInputTokens")))
    finish = _FINISHES.get(text(body.get("stopReason")))
    return ChatReply(reply, TokenUsage(given, count(usage.get("outputTokens")), cached), finish)
