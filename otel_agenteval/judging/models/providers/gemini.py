"""Wire format of Google's generateContent API."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping
from typing import Any

from ....core.wellformed import sum_of
from . import parsing
from .base import ChatReply, ChatRequest, Finish, HttpRequest, Media, TokenUsage

_REFUSALS = ("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "IMAGE_SAFETY", "MODEL_ARMOR")
_FINISHES: dict[str, Finish] = {"STOP": "stop", "MAX_TOKENS": "length", **dict.fromkeys(_REFUSALS, "refusal")}


def headers(api_key: str | None) -> dict[str, str]:
    """Return a header with the API key. The key isn't sent in the URL, because logs can contain URLs."""
    return {"x-goog-api-key": api_key} if api_key else {}


def request(chat: ChatRequest) -> HttpRequest:
    settings: dict[str, Any] = {} if chat.temperature is None else {"temperature": chat.temperature}
    if chat.form != "plain":
        settings["responseMimeType"] = "application/json"
    if chat.form == "schema":
        settings["responseJsonSchema"] = _ordered(chat.schema)
    body = {
        "systemInstruction": {"parts": [{"text": chat.system}]},
        "contents": [
            {"role": "user" if message.role == "user" else "model", "parts": [{"text": message.text}, *map(_part, message.media)]}
            for message in chat.messages
        ],
        "generationConfig": settings,
    }
    name = chat.model.removeprefix("models/")
    return HttpRequest(f"/models/{urllib.parse.quote(name, safe='')}:generateContent", body)


def _ordered(schema: Any) -> Any:
    """Return the schema with explicit key order, because models before Gemini 2.5 sort the keys."""
    if isinstance(schema, Mapping):
        found = {key: _ordered(value) for key, value in schema.items()}
        properties = schema.get("properties")
        is_ordered = schema.get("type") == "object" and isinstance(properties, Mapping) and len(properties) > 1
        return {**found, "propertyOrdering": list(properties)} if is_ordered and properties else found
    return [_ordered(item) for item in schema] if isinstance(schema, (list, tuple)) else schema


def _part(media: Media) -> dict[str, Any]:
    if media.url:
        return {"fileData": {"fileUri": media.url, **({} if media.mime.endswith("*") else {"mimeType": media.mime})}}
    return {"inlineData": {"mimeType": media.mime, "data": media.data}}


def answer(body: Mapping[str, Any]) -> ChatReply:
    """Parse the first candidate, without its thoughts. Thought tokens are counted as output."""
    usage = parsing.mapping(body.get("usageMetadata"))
    written, thought = parsing.count(usage.get("candidatesTokenCount")), parsing.count(usage.get("thoughtsTokenCount"))
    counted = TokenUsage(
        parsing.count(usage.get("promptTokenCount")),
        sum_of((written, thought)),
        parsing.count(usage.get("cachedContentTokenCount")),
    )
    candidate = next(parsing.mappings(body.get("candidates")), None)
    if parsing.mapping(body.get("promptFeedback")).get("blockReason"):
        return ChatReply("", counted, "refusal")
    if candidate is None:
        raise parsing.no_answer("generateContent")
    content = parsing.mapping(candidate.get("content"))
    words = "".join(
        parsing.text(part.get("text")) for part in parsing.mappings(content.get("parts")) if part.get("thought") is not True
    )
    words = parsing.said(words, content.get("role"), None)
    is_blocked = any(rating.get("blocked") is True for rating in parsing.mappings(candidate.get("safetyRatings")))
    return ChatReply(words, counted, "refusal" if is_blocked else _FINISHES.get(parsing.text(candidate.get("finishReason"))))
