"""Wire format of Anthropic's Messages API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ....core.wellformed import sum_of
from . import parsing
from .base import ChatReply, ChatRequest, Finish, HttpRequest, Media, TokenUsage, unsupported_media

_FINISHES: dict[str, Finish] = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "model_context_window_exceeded": "length", "refusal": "refusal",
}  # fmt: skip


def headers(api_key: str | None) -> dict[str, str]:
    return {"anthropic-version": "2023-06-01", **({"x-api-key": api_key} if api_key else {})}


def request(chat: ChatRequest) -> HttpRequest:
    """Return the HTTP request. Without a schema, only the prompt asks for JSON, because the API has no JSON mode."""
    body: dict[str, Any] = {
        "model": chat.model,
        "max_tokens": chat.room,
        "system": chat.system,
        "messages": [
            {"role": one.role, "content": [{"type": "text", "text": one.text}, *map(_part, one.media)]} for one in chat.messages
        ],
    }
    if chat.temperature is not None:
        body["temperature"] = chat.temperature
    if chat.form == "schema":
        body["output_config"] = {"format": {"type": "json_schema", "schema": chat.schema}}
    return HttpRequest("/messages", body)


def _part(media: Media) -> dict[str, Any]:
    kind = "image" if media.kind == "image" else "document" if media.mime == "application/pdf" else None
    if kind is None:
        raise unsupported_media(media, "the Messages API")
    if media.url:
        return {"type": kind, "source": {"type": "url", "url": media.url}}
    return {"type": kind, "source": {"type": "base64", "media_type": media.mime, "data": media.data}}


def answer(body: Mapping[str, Any]) -> ChatReply:
    if not isinstance(body.get("content"), list):
        raise parsing.no_answer("the Messages API")
    reply = "".join(parsing.text(block.get("text")) for block in parsing.mappings(body["content"]) if block.get("type") == "text")
    usage = parsing.mapping(body.get("usage"))
    cached = parsing.count(usage.get("cache_read_input_tokens"))
    fresh = parsing.count(usage.get("input_tokens"))
    given = None if fresh is None else sum_of((fresh, cached, parsing.count(usage.get("cache_creation_input_tokens"))))
    finish = _FINISHES.get(parsing.text(body.get("stop_reason")))
    reply = parsing.said(reply, body.get("role"), body.get("stop_reason"))
    return ChatReply(reply, TokenUsage(given, parsing.count(usage.get("output_tokens")), cached), finish)
