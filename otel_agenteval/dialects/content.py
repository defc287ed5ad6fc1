"""Messages, whatever their shape: written once for all dialects.

Understood: the convention's ``{role, parts: [...]}``; chat-completions ``{role, content, tool_calls}``; Responses items
(``function_call``, ``function_call_output``, ``message``); Anthropic and Bedrock content blocks; LangChain messages
(serialised constructors, ``{type, data}`` and dumps); any of them as JSON text, also nested, also cut in the middle.

A part that names its type but holds no text was written with content capture off: then the text is unknown (``None``),
never empty.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from .. import jsonio
from ..model import Message, ToolRequest, ToolResponse

ROLES = {
    "human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool",
    "AIMessageChunk": "assistant", "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system",
    "ToolMessage": "tool", "HumanMessageChunk": "user", "ToolMessageChunk": "tool", "chat": "user", "Human": "user",
}  # fmt: skip

REDACTED = ("__REDACTED__", "[REDACTED]", "<REDACTED>", "[redacted]", "REDACTED")
"""What instrumentations write in place of content that they were told to leave out."""

_TEXT_TYPES = frozenset(("text", "output_text", "input_text", "refusal", "summary_text"))
_REASONING_TYPES = frozenset(("reasoning", "thinking", "redacted_thinking", "reasoning_text"))
_MEDIA = {"image_url": "image", "image": "image", "input_image": "image", "audio": "audio", "input_audio": "audio", "video": "video",
          "document": "document", "blob": None, "uri": None, "file": None, "file_data": None, "input_file": "document"}  # fmt: skip
_MAX_NESTING = 6


class Decoded:
    """Messages read from one attribute, and whether anything was cut or held back on the way."""

    __slots__ = ("hidden", "messages", "truncated")

    def __init__(self, messages: list[Message], truncated: bool = False, hidden: bool = False) -> None:
        self.messages = messages
        self.truncated = truncated
        self.hidden = hidden
        """Whether some text was left out by the instrumentation (content capture off)."""


def decode(raw: Any, role: str) -> Decoded:
    """The messages in an attribute's value; ``role`` is whose words a bare text is."""
    out = Decoded([])
    if raw is None:
        return out
    _add(raw, role, out, 0)
    return out


def _add(raw: Any, role: str, out: Decoded, depth: int) -> None:
    if raw.__class__ is str:
        if raw in REDACTED:
            out.hidden = True
            return
        value, cut = jsonio.loads_or_text(raw) if raw[:1] in '[{"' else (raw, False)
        out.truncated |= cut
        if value.__class__ is str:
            if value in REDACTED:
                out.hidden = True
            elif value[:2] == "[{":  # messages once, and unreadable now: not somebody's words
                out.hidden = out.truncated = True
            elif value or not raw:
                out.messages.append(Message(role, value))
            return
        raw = value
    if depth > _MAX_NESTING:
        return
    if isinstance(raw, Mapping):
        if _looks_like_message(raw):
            out.messages.append(_message(raw, role, out))
            return
        for key in (
            "messages",
            "input_messages",
            "output_messages",
            "choices",
            "content",
            "prompt",
            "input",
            "query",
            "question",
            "text",
        ):
            if raw.get(key) not in (None, ""):
                _add(raw[key], role, out, depth + 1)
                return
    elif isinstance(raw, (list, tuple)):
        if raw and raw[0].__class__ is dict and "parts" in raw[0] and "role" in raw[0]:  # the convention's own form
            for item in raw:
                if item.__class__ is dict and "role" in item:
                    out.messages.append(_message(item, role, out))
                else:
                    _add(item, role, out, depth + 1)
            return
        if raw and all(isinstance(item, Mapping) and _is_part(item) for item in raw):
            out.messages.append(_message({"content": raw}, role, out))
            return
        for item in raw:
            _add(item, role, out, depth + 1)
    elif raw is not None:
        out.messages.append(Message(role, jsonio.text_of(raw)))


def _looks_like_message(value: Mapping[str, Any]) -> bool:
    if "role" in value:
        return True
    kind = _kind(value)
    if kind in ("function_call", "function_call_output", "message", "reasoning"):
        return True
    if "lc" in value and "kwargs" in value:
        return True
    if "data" in value or "content" in value:
        return kind in ROLES or kind in ("system", "tool", "user", "assistant")
    return "message" in value and isinstance(value["message"], Mapping)


def _kind(value: Mapping[str, Any]) -> str | None:
    kind = value.get("type")
    return kind if isinstance(kind, str) else None


def _is_part(value: Mapping[str, Any]) -> bool:
    if "role" in value:
        return False
    kind = _kind(value)
    if kind is None:
        return "text" in value or "toolUse" in value or "toolResult" in value or "reasoningContent" in value
    return kind in _TEXT_TYPES or kind in _REASONING_TYPES or kind in _MEDIA or kind in _PART_READERS


def _message(value: Mapping[str, Any], role: str, out: Decoded) -> Message:
    texts: list[str] = []
    parts = value.get("parts")
    if parts is not None and "role" in value:
        own = value["role"]
        message = Message(ROLES.get(own, own) if own.__class__ is str else role)
        _read_parts(parts, message, texts, out, 0)
    else:
        value = _unwrapped(value)
        kind = _kind(value)
        own = value.get("role")
        if own is None:
            own = _ITEM_ROLES.get(kind, kind if kind != "message" else None) if kind is not None else None
        message = Message(ROLES.get(own, own) if own.__class__ is str else role)
        parts = value.get("content") if parts is None else parts
        if parts is None and kind in _ITEM_ROLES:
            parts = [value]
        _read_parts(parts, message, texts, out, 0)
        _read_tool_calls(value, message)
        if message.role == "tool" and not message.tool_results:
            call_id = value.get("tool_call_id") or value.get("id")
            message.tool_results = [
                ToolResponse(_text_or_none(call_id), _text_or_none(value.get("name")), "\n".join(texts) if texts else None)
            ]
    if texts:
        message.content = "\n".join(texts) if len(texts) > 1 else texts[0]
    name = value.get("name")
    if name and name.__class__ is str:
        message.name = name
    reason = value.get("finish_reason")
    if reason and reason.__class__ is str:
        message.finish_reason = reason
    return message


_ITEM_ROLES = {"function_call": "assistant", "reasoning": "assistant", "function_call_output": "tool"}


def _unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """The message inside a serialised constructor, a ``{type, data}`` pair, or a choice."""
    if "lc" in value and isinstance(value.get("kwargs"), Mapping):
        path = value.get("id")
        kind = path[-1] if isinstance(path, list) and path else None
        return {"type": ROLES.get(kind, kind) if isinstance(kind, str) else None, **value["kwargs"]}
    if isinstance(value.get("data"), Mapping):
        return {**value["data"], "type": value.get("type")}
    if isinstance(value.get("message"), Mapping) and "role" not in value:
        return {"finish_reason": value.get("finish_reason"), **value["message"]}
    return value


def _read_parts(parts: Any, message: Message, texts: list[str], out: Decoded, depth: int) -> None:
    if parts is None or depth > _MAX_NESTING:
        return
    if parts.__class__ is str:
        if parts in REDACTED:
            out.hidden = True
            return
        if parts[:2] == "[{":  # blocks that were serialised once more
            value, cut = jsonio.loads_or_text(parts)
            if isinstance(value, list) and value and all(isinstance(item, Mapping) and _is_part(item) for item in value):
                out.truncated |= cut
                _read_parts(value, message, texts, out, depth + 1)
                return
        texts.append(parts)
        return
    if parts.__class__ is not list:
        if isinstance(parts, Mapping):
            parts = [parts]
        elif not isinstance(parts, (list, tuple)):
            texts.append(jsonio.text_of(parts))
            return
    for part in parts:
        if part.__class__ is dict or isinstance(part, Mapping):
            _read_part(part, message, texts, out)
        elif part.__class__ is str:
            _read_parts(part, message, texts, out, depth + 1)


def _read_part(part: Mapping[str, Any], message: Message, texts: list[str], out: Decoded) -> None:
    kind = _kind(part)
    if kind == "text" or kind in _TEXT_TYPES or (kind is None and "text" in part):
        text = part.get("content")
        if text is None:
            text = part.get("text")
            if text is None:
                text = part.get("refusal")
        if text is None:
            out.hidden = True
        elif text.__class__ is str:
            if text in REDACTED:
                out.hidden = True
            else:
                texts.append(text)
        else:
            texts.append(jsonio.text_of(text))
        return
    reader = _PART_READERS.get(kind) if kind is not None else None
    if reader is not None:
        reader(part, message)
    elif "toolUse" in part:
        _tool_request(part["toolUse"] if isinstance(part["toolUse"], Mapping) else {}, message)
    elif "toolResult" in part:
        _tool_response(part["toolResult"] if isinstance(part["toolResult"], Mapping) else {}, message)
    elif kind in _REASONING_TYPES or "reasoningContent" in part:
        _reasoning(part, message)
    elif kind in _MEDIA:
        _attachment(part, message, _MEDIA[kind])
    elif isinstance(part.get("content"), (str, list)) and kind is None:
        _read_parts(part["content"], message, texts, out, 1)


def _tool_request(part: Mapping[str, Any], message: Message) -> None:
    function = part.get("function")
    if isinstance(function, Mapping):
        part = {"id": part.get("id"), **function}
    call_id = part.get("id") or part.get("call_id") or part.get("toolUseId") or part.get("tool_call_id")
    if part.get("type") == "function_call":
        call_id = part.get("call_id") or call_id
    arguments = part.get("arguments")
    if arguments is None:
        arguments = part.get("args")
        if arguments is None:
            arguments = part.get("input")
    message.tool_calls = [*message.tool_calls, ToolRequest(_text_or_none(call_id), _text_or_none(part.get("name")), arguments)]


def _tool_response(part: Mapping[str, Any], message: Message) -> None:
    for key in ("response", "result", "output", "content", "server_tool_call_response"):
        if part.get(key) is not None:
            result = part[key]
            break
    else:
        result = None
    call_id = part.get("call_id") or part.get("id") or part.get("tool_use_id") or part.get("toolUseId")
    found = ToolResponse(_text_or_none(call_id), _text_or_none(part.get("name")), unwrap_result(result))
    message.tool_results = [*message.tool_results, found]


def _server_tool_call(part: Mapping[str, Any], message: Message) -> None:
    inner = part.get("server_tool_call")
    known = message.extra or {}
    calls = [*known.get("server_tool_calls", ()), dict(inner) if isinstance(inner, Mapping) else {"name": part.get("name")}]
    message.extra = {**known, "server_tool_calls": calls}


def _reasoning(part: Mapping[str, Any], message: Message) -> None:
    text = part.get("content") or part.get("thinking") or part.get("text") or part.get("summary") or part.get("reasoningContent")
    if isinstance(text, Mapping):
        text = text.get("reasoningText", text)
        text = text.get("text") if isinstance(text, Mapping) else text
    if isinstance(text, list):
        text = "\n".join(str(item.get("text", "")) for item in text if isinstance(item, Mapping))
    if isinstance(text, str) and text:
        message.reasoning = f"{message.reasoning}\n{text}" if message.reasoning else text


def _attachment(part: Mapping[str, Any], message: Message, modality: str | None) -> None:
    image = part.get("image_url")
    uri = part.get("uri") or part.get("file_uri") or (image.get("url") if isinstance(image, Mapping) else image)
    known = {"modality": part.get("modality") or modality or "document", "mime_type": part.get("mime_type") or part.get("media_type"), "uri": uri,
             "data": part.get("content") or part.get("data"), "file_id": part.get("file_id")}  # fmt: skip
    message.attachments = [*message.attachments, {key: item for key, item in known.items() if isinstance(item, str) and item}]


_PART_READERS = {
    "tool_call": _tool_request, "tool_use": _tool_request, "function_call": _tool_request, "toolUse": _tool_request,
    "function": _tool_request, "tool_call_response": _tool_response, "tool_result": _tool_response,
    "function_call_output": _tool_response, "toolResult": _tool_response, "server_tool_call": _server_tool_call,
}  # fmt: skip


def _read_tool_calls(value: Mapping[str, Any], message: Message) -> None:
    calls = value.get("tool_calls")
    if not calls:
        extra = value.get("additional_kwargs")
        calls = extra.get("tool_calls") if isinstance(extra, Mapping) else None
    if isinstance(calls, (list, tuple)):
        known = {call.call_id for call in message.tool_calls if call.call_id}
        for call in calls:
            if isinstance(call, Mapping) and call.get("id") not in known:
                _tool_request(call, message)


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None


# --- values of tools -----------------------------------------------------------------------------------------------


def arguments_of(raw: Any) -> dict[str, Any] | None:
    """A tool call's arguments as an object, or None when that is not what they are."""
    if isinstance(raw, str):
        try:
            raw = jsonio.loads(raw)
        except ValueError:
            raw = _python_literal(raw)
        if isinstance(raw, str):  # JSON text inside JSON text
            return arguments_of(raw) if raw[:1] == "{" else None
    return dict(raw) if isinstance(raw, Mapping) else None


def _python_literal(text: str) -> Any:
    """Some instrumentations write ``str(dict)``."""
    if text[:1] != "{" or len(text) > 100_000:
        return None
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return None


def unwrap_result(raw: Any) -> Any:
    """What a tool returned, out of the message or content blocks that frameworks wrap around it."""
    value = raw
    if isinstance(raw, str) and raw[:1] in "{[":
        if '"content"' not in raw and '"text"' not in raw:  # no wrapping is without one of them
            return raw
        try:
            value = jsonio.loads(raw)
        except ValueError:
            return raw
    if (
        isinstance(value, list)
        and value
        and all(isinstance(item, Mapping) and ("text" in item or item.get("type") == "text") for item in value)
    ):
        texts = [str(item.get("text", item.get("content", ""))) for item in value]
        return "\n".join(texts)
    if isinstance(value, Mapping):
        if "lc" in value and isinstance(value.get("kwargs"), Mapping):
            value = {"type": "tool", "data": value["kwargs"]}
        data = value.get("data")
        if value.get("type") == "tool" and isinstance(data, Mapping) and "content" in data:
            return unwrap_result(data["content"]) if not isinstance(data["content"], str) else data["content"]
        if value.get("type") in ("tool", "ToolMessage") and "content" in value:
            return value["content"]
        if set(value) <= {"toolUseId", "status", "content"} and "content" in value:
            return unwrap_result(value["content"])
    return raw
