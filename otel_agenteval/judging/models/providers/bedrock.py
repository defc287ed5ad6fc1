"""Wire format of Amazon Bedrock's Converse API. Requests have an API key or a signature (:mod:`..aws`)."""

from __future__ import annotations

import json
import urllib.parse
from collections.abc import Mapping
from typing import Any

from . import parsing
from .base import ChatReply, ChatRequest, Finish, HttpRequest, Media, TokenUsage, unsupported_media
from .openai import headers

__all__ = ["answer", "headers", "request"]

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length",
    "guardrail_intervened": "refusal", "content_filtered": "refusal", "refusal": "refusal",
}  # fmt: skip


def request(chat: ChatRequest) -> HttpRequest:
    """Return the request. The API has no JSON mode, so without a schema only the prompt asks for it."""
    settings: dict[str, Any] = {"maxTokens": chat.room}
    if chat.temperature is not None:
        settings["temperature"] = chat.temperature
    body: dict[str, Any] = {
        "system": [{"text": chat.system}],
        "messages": [{"role": one.role, "content": [{"text": one.text}, *map(_part, one.media)]} for one in chat.messages],
        "inferenceConfig": settings,
    }
    if chat.form == "schema":
        schema = {"name": "reply", "schema": json.dumps(chat.schema)}
        body["outputConfig"] = {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": schema}}}
    return HttpRequest(f"/model/{urllib.parse.quote(chat.model, safe='')}/converse", body)


def _part(media: Media) -> dict[str, Any]:
    if media.url or media.kind not in ("image", "video"):
        raise unsupported_media(media, "Converse")
    return {media.kind: {"format": media.form, "source": {"bytes": media.data}}}


def answer(body: Mapping[str, Any]) -> ChatReply:
    message = parsing.mapping(body.get("output")).get("message")
    if not isinstance(message, Mapping):
        raise parsing.no_answer("Converse")
    reply = "".join(parsing.text(block.get("text")) for block in parsing.mappings(message.get("content")))
    usage = parsing.mapping(body.get("usage"))
    cached = parsing.count(usage.get("cacheReadInputTokens"))
    fresh = parsing.count(usage.get("inputTokens"))
    given = None if fresh is None else parsing.added(fresh, cached, parsing.count(usage.get("cacheWriteInputTokens")))
    finish = _FINISHES.get(parsing.text(body.get("stopReason")))
    reply = parsing.said(reply, message.get("role"), body.get("stopReason"))
    return ChatReply(reply, TokenUsage(given, parsing.count(usage.get("outputTokens")), cached), finish)
