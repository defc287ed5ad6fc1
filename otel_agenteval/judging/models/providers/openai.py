"""Wire format of OpenAI's chat completions, which vLLM, Ollama, llama.cpp, LiteLLM, and many other servers support."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from . import parsing
from .base import ChatMessage, ChatReply, ChatRequest, Finish, HttpRequest, Media, TokenUsage, is_closed, unsupported_media

_REFUSALS = ("blocklist", "content_filter", "prohibited_content", "recitation", "refusal", "safety", "spii")
_FINISHES: dict[str, Finish] = {"stop": "stop", "length": "length", **dict.fromkeys(_REFUSALS, "refusal")}


def headers(api_key: str | None) -> dict[str, str]:
    return {"Authorization": f"Bearer {api_key}"} if api_key else {}


def request(chat: ChatRequest) -> HttpRequest:
    body: dict[str, Any] = {
        "model": chat.model,
        "messages": [*([{"role": "system", "content": chat.system}] if chat.system else ()), *map(_message, chat.messages)],
    }
    if chat.temperature is not None:
        body["temperature"] = chat.temperature
    if chat.stream:
        body["stream"] = True
    if chat.form == "schema":
        schema = {"name": "reply", "strict": is_closed(chat.schema), "schema": chat.schema}
        body["response_format"] = {"type": "json_schema", "json_schema": schema}
    elif chat.form == "json":
        body["response_format"] = {"type": "json_object"}
    return HttpRequest("/chat/completions", body)


def _message(message: ChatMessage) -> dict[str, Any]:
    if not message.media:
        return {"role": message.role, "content": message.text}
    return {"role": message.role, "content": [{"type": "text", "text": message.text}, *map(_part, message.media)]}


def _part(media: Media) -> dict[str, Any]:
    if media.kind == "image":
        return {"type": "image_url", "image_url": {"url": media.uri}}
    if media.kind == "video":  # vLLM and others accept this, OpenAI itself doesn't
        return {"type": "video_url", "video_url": {"url": media.uri}}
    if media.kind == "audio" and media.data:
        form = {"mpeg": "mp3", "x-wav": "wav", "wave": "wav"}.get(media.form, media.form)
        return {"type": "input_audio", "input_audio": {"data": media.data, "format": form}}
    raise unsupported_media(media, "chat completions")


def answer(body: Mapping[str, Any]) -> ChatReply:
    body = _joined(body["events"]) if body.keys() == {"events"} else body
    choice = next(parsing.mappings(body.get("choices")), {})
    if choice.get("finish_reason") == "error" or choice.get("error"):
        raise parsing.failed("the model")
    message, finish = choice.get("message"), _FINISHES.get(parsing.text(choice.get("finish_reason")).lower())
    if not isinstance(message, Mapping):
        if finish != "refusal":
            raise parsing.no_answer("chat completions")
        message = {}
    has_refusal_part = any(part.get("type") == "refusal" for part in parsing.mappings(message.get("content")))
    refuses = has_refusal_part or bool(parsing.text(message.get("refusal")))
    return ChatReply(_reply(message, choice.get("finish_reason")), _usage(body), "refusal" if refuses else finish)


def _reply(message: Mapping[str, Any], stop: Any) -> str:
    """Return a message's content. If blank, return the tool call's arguments, or reasoning that is one JSON object."""
    content, role = message.get("content"), message.get("role")
    if isinstance(content, list):
        texts = (part.get("text") for part in parsing.mappings(content) if part.get("type", "text") in ("text", "output_text"))
        content = "".join(map(parsing.text, texts))
    reply = parsing.said(parsing.text(content), role, stop)
    if reply.strip():
        return reply
    # some gateways enforce a form by a tool or function call
    call = next(parsing.mappings(message.get("tool_calls")), {})
    arguments = parsing.mapping(call.get("function") or message.get("function_call")).get("arguments")
    words = parsing.said(json.dumps(arguments) if isinstance(arguments, Mapping) else parsing.text(arguments), role, None)
    if words:
        return words
    # if a schema applies from the first character, vLLM and others return the reply as reasoning
    reasoning = parsing.text(message.get("reasoning_content")) or parsing.text(message.get("reasoning"))
    thought = parsing.said(reasoning, role, stop)
    return thought if parsing.is_object(thought) else reply


def _joined(events: Any) -> Mapping[str, Any]:
    choices = [choice for event in parsing.mappings(events) for choice in parsing.mappings(event.get("choices"))]
    pieces = [parsing.text(parsing.mapping(choice.get("delta")).get("content")) for choice in choices]
    ends = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    usage = [event["usage"] for event in parsing.mappings(events) if event.get("usage")]
    choice = {"message": {"content": "".join(pieces)}, "finish_reason": ends[-1] if ends else None}
    return {"choices": [choice], "usage": usage[-1] if usage else None}


def _usage(body: Mapping[str, Any]) -> TokenUsage:
    """Return the token usage. Gemini and xAI include reasoning tokens only in the total, so they are added to the output tokens."""
    usage = parsing.mapping(body.get("usage"))
    given, written, total = (parsing.count(usage.get(name)) for name in ("prompt_tokens", "completion_tokens", "total_tokens"))
    if given is not None and written is not None and total is not None:
        written = max(written, total - given)
    cached = parsing.count(parsing.mapping(usage.get("prompt_tokens_details")).get("cached_tokens"))
    for name in ("prompt_cache_hit_tokens", "cached_tokens"):  # of DeepSeek and Moonshot
        cached = parsing.count(usage.get(name)) if cached is None else cached
    return TokenUsage(given, written, cached)


# --- the moderation endpoint


def moderation_request(model: str, text: str) -> HttpRequest:
    return HttpRequest("/moderations", {"model": model, "input": text})


def moderation(body: Mapping[str, Any]) -> tuple[dict[str, Any], TokenUsage]:
    """Convert a moderation response to a judge reply (``{flags: [{code, description, confidence}]}``) with unknown token usage."""
    flags, results = [], list(parsing.mappings(body.get("results")))
    for result in results:
        categories = parsing.mapping(result.get("categories"))
        known = [flag for flag in categories.values() if flag is not None]
        are_booleans = bool(known) and all(isinstance(flag, bool) for flag in known)
        if not are_booleans or (result.get("flagged") is True and not any(known)):
            raise parsing.no_answer("moderations")
        scores = parsing.mapping(result.get("category_scores"))
        flagged = [code for code, flag in categories.items() if flag is True]
        flags += [{"code": code, "description": None, "confidence": scores.get(code)} for code in flagged]
    if not results:
        raise parsing.no_answer("moderations")
    return {"flags": flags}, TokenUsage()
