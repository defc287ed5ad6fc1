"""Wire format of OpenAI's Responses API. Requests ask the server not to store them (``store: false``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from . import parsing
from .base import ChatMessage, ChatReply, ChatRequest, HttpRequest, Media, TokenUsage, is_closed, unsupported_media
from .openai import headers

__all__ = ["answer", "headers", "request"]


def request(chat: ChatRequest) -> HttpRequest:
    body: dict[str, Any] = {
        "model": chat.model,
        "instructions": chat.system,
        "input": [_message(message) for message in chat.messages],
        "store": False,
    }
    if chat.temperature is not None:
        body["temperature"] = chat.temperature
    if chat.form == "schema":
        form = {"type": "json_schema", "name": "reply", "schema": chat.schema, "strict": is_closed(chat.schema)}
        body["text"] = {"format": form}
    elif chat.form == "json":
        body["text"] = {"format": {"type": "json_object"}}
    return HttpRequest("/responses", body)


def _message(message: ChatMessage) -> dict[str, Any]:
    kind = "input_text" if message.role == "user" else "output_text"
    return {"role": message.role, "content": [{"type": kind, "text": message.text}, *map(_part, message.media)]}


def _part(media: Media) -> dict[str, Any]:
    if media.kind != "image":
        raise unsupported_media(media, "the Responses API")
    return {"type": "input_image", "image_url": media.uri}


def answer(body: Mapping[str, Any]) -> ChatReply:
    if body.get("status") == "failed":
        raise parsing.failed("the Responses API")
    if not isinstance(body.get("output"), list):
        raise parsing.no_answer("the Responses API")
    messages = [
        item
        for item in parsing.mappings(body["output"])
        if item.get("type") == "message" and item.get("phase") != "commentary" and parsing.said("x", item.get("role"), None)
    ]
    parts = [part for message in messages for part in parsing.mappings(message.get("content"))]
    reply = "".join(parsing.text(part.get("text")) for part in parts if part.get("type") == "output_text")
    why = parsing.mapping(body.get("incomplete_details")).get("reason")
    usage = parsing.mapping(body.get("usage"))
    cached = parsing.mapping(usage.get("input_tokens_details")).get("cached_tokens")
    used = TokenUsage(parsing.count(usage.get("input_tokens")), parsing.count(usage.get("output_tokens")), parsing.count(cached))
    if why == "content_filter" or any(part.get("type") == "refusal" for part in parts):
        return ChatReply(reply, used, "refusal")
    if why is not None:
        return ChatReply(reply, used, "length" if why == "max_output_tokens" else None)
    return ChatReply(reply, used, "stop" if body.get("status") == "completed" else None)
