"""Wire format of OpenAI's Responses API. The server stores nothing."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .base import (  # fmt: skip
    ChatMessage,
    ChatReply,
    ChatRequest,
    HttpRequest,
    Media,
    TokenUsage,
    count,
    failed,
    is_closed,
    mapping,
    mappings,
    no_answer,
    not_taken,
    text,
)
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
        body["text"] = {
            "format": {"type": "json_schema", "name": "reply", "schema": chat.schema, "strict": is_closed(chat.schema)}
        }
    elif chat.form == "json":
        body["text"] = {"format": {"type": "json_object"}}
    return HttpRequest("/responses", body)


def _message(message: ChatMessage) -> dict[str, Any]:
    kind = "input_text" if message.role == "user" else "output_text"
    return {"role": message.role, "content": [{"type": kind, "text": message.text}, *map(_part, message.media)]}


def _part(media: Media) -> dict[str, Any]:
    if media.kind != "image":
        raise not_taken(media, "the Responses API")
    return {"type": "input_image", "image_url": media.uri}


def answer(body: Mapping[str, Any]) -> ChatReply:
    """Parse the texts of all output messages, without reasoning and commentary.

    Raises:
        JudgeError: the response has another form, or reports a failure.
    """
    if body.get("status") == "failed":
        raise failed("the Responses API")
    if not isinstance(body.get("output"), list):
        raise no_answer("the Responses API")
    messages = [item for item in mappings(body["output"]) if item.get("type") == "message" and item.get("phase") != "commentary"]
    parts = [part for message in messages for part in mappings(message.get("content"))]
    reply = "".join(text(part.get("text")) for part in parts if part.get("type") == "output_text")
    why = mapping(body.get("incomplete_details")).get("reason")
    usage = mapping(body.get("usage"))
    cached = mapping(usage.get("input_tokens_details")).get("cached_tokens")
    counted = TokenUsage(count(usage.get("input_tokens")), count(usage.get("output_tokens")), count(cached))
    if why == "content_filter" or any(part.get("type") == "refusal" for part in parts):
        return ChatReply(reply, counted, "refusal")
    if why is not None:
        return ChatReply(reply, counted, "length" if why == "max_output_tokens" else None)
    return ChatReply(reply, counted, "stop" if body.get("status") == "completed" else None)
