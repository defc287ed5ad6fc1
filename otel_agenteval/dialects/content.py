"""Decode messages in all known formats. All dialects use this module.

Formats:

- ``{role, parts: [...]}`` (GenAI convention)
- ``{role, content, tool_calls}`` (chat completions)
- ``function_call``, ``function_call_output``, and ``message`` items (Responses API)
- content blocks (Anthropic, Bedrock)
- LangChain messages (serialized constructors, ``{type, data}``, and dumps)

Messages can be JSON text, nested, or truncated. If a text part has a type but no text, its text is None (not captured), not ``""``.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, TypeVar

from ..core import jsonio, literals
from ..core.turn import Message, ToolRequest, ToolResponse
from ..core.wellformed import Later
from . import react
from .generic.values import opened
from .payloads import CALL_FIELDS, TEXT_BLOCK_FIELDS, literal, repr_text, says_failed, unwrap_result

ROLES = {
    "human": "user", "ai": "assistant", "model": "assistant", "developer": "system", "function": "tool",
    "AIMessageChunk": "assistant", "HumanMessage": "user", "AIMessage": "assistant", "SystemMessage": "system",
    "ToolMessage": "tool", "HumanMessageChunk": "user", "ToolMessageChunk": "tool", "chat": "user", "Human": "user",
    "tool-call": "assistant", "tool-response": "tool", "MessageRole.SYSTEM": "system", "MessageRole.USER": "user",
    "MessageRole.ASSISTANT": "assistant", "MessageRole.TOOL_CALL": "assistant", "MessageRole.TOOL_RESPONSE": "tool",
}  # fmt: skip

_PLACEHOLDER = re.compile(
    r"(?:\[|<|__)(?i:redacted|masked|filtered|elided)(?:\]|>|__)|REDACTED|\*{3,60}|HIDDEN:(?:non-)?empty"
    r"|<fully masked due to failed mask function>|\[Scrubbed due to '[^'\n]{0,40}'\]"
    # texts in place of an unfinished answer, such as the repr of a stream
    r"""|["']?<(?:(?:async_)?generator\b.*|coroutine\b.*|[\w.]+ object at 0x[0-9a-fA-F]+|[\w.]*(?:Stream|Streaming|EventSource)\w*"""
    r"""|[\w.]*Response \[\d{3}(?: [^\]\n]*)?\](?: type=.*)?)>["']?|<\w+ pending\b.*>|Promise \{ <\w+> \}"""
    r"|\[object (?:Async)?(?:Generator|Iterator|ReadableStream|Promise|Object|Response)\w*\]"
)


class _Placeholders:
    def __contains__(self, value: Any) -> bool:
        return (
            value.__class__ is str
            and value[:1] in "[<_R*HP\"'"
            and len(value) < 400
            and _PLACEHOLDER.fullmatch(value) is not None
        )


HIDDEN = _Placeholders()
"""Placeholders for content that an instrumentation or the Collector omits: ``[REDACTED]``, ``<generator object at 0x7f…>``."""

_TEXT_TYPES = frozenset(("text", "output_text", "input_text", "refusal", "summary_text"))
_REASONING_TYPES = frozenset(("reasoning", "thinking", "redacted_thinking", "reasoning_text"))
_MEDIA = {"image_url": "image", "image": "image", "input_image": "image", "image-url": "image", "audio": "audio", "input_audio": "audio",
          "output_audio": "audio", "audio_url": "audio", "audio-url": "audio", "video": "video", "video_url": "video",
          "video-url": "video", "input_video": "video", "document": "document", "document-url": "document", "blob": None, "uri": None,
          "file": None, "file_data": None, "binary": None, "media": None, "input_file": "document"}  # fmt: skip
_UNTYPED_PARTS = frozenset((
    "text", "toolUse", "toolResult", "reasoningContent", "function_call", "functionCall", "function_response", "functionResponse",
    "toolRequest", "toolResponse",
))  # fmt: skip
"""Keys of message parts without a type (Bedrock, Google's SDK, Genkit)."""
_FRAMEWORK_WORDS = (
    "Continue processing previous requests as instructed.", "Handle the requests as specified in the System Instruction.",
    "For context:\n[",
)  # fmt: skip
"""First words of ``user`` messages that Google's ADK adds. These messages contain instructions or other agents' messages."""
_MAX_NESTING = 6


@dataclass(slots=True, eq=False)
class Decoded:
    """Messages in one attribute, with flags for truncated and hidden content."""

    messages: list[Message]
    hidden: bool = False
    """True if any text is missing, for example because content capture is off."""
    truncated: bool = False
    append_items: Callable[[Sequence[Any], str, Decoded, int], None] | None = None
    """Function that appends a longer history's new messages. None if longer histories must be decoded completely."""


def decode(raw: Any, role: str) -> Decoded:
    """Decode the messages in an attribute's value. Plain text, and messages without a role, get the role ``role``."""
    out = Decoded([])
    if raw.__class__ is Later:
        raw = raw.reader(raw.raw)
    if raw is None:
        return out
    _add(raw, role, out, 0)
    if role == "assistant" and not out.messages and not out.hidden and raw.__class__ is str and raw[:1] == "{":
        value, is_cut = jsonio.loads_or_text(raw)
        has_fields = value.__class__ is dict and len(_RESPONSE_FIELDS & value.keys()) > 1
        has_fields = has_fields and isinstance(value.get("usage", {}), Mapping) and value.get("generations") in (None, [], [[]])
        is_response = has_fields and not (value.get("content") or value.get("choices"))
        if is_response and is_cut:
            out.hidden = True
        else:  # any other object is the answer
            out.messages.append(Message(role, "" if is_response else raw))
    if role == "assistant" and len(out.messages) > 1:
        _join_streamed_messages(out.messages)
    return out


_RESPONSE_FIELDS = frozenset((
    "content", "candidates", "choices", "finish_reason", "finishReason", "error_code", "errorCode", "usage", "usage_metadata",
    "usageMetadata", "prompt_feedback", "promptFeedback", "model_version", "modelVersion", "generations", "llm_output",
))  # fmt: skip
"""Fields of model responses. An object with at least two of them but no message, such as a blocked response, is an empty answer."""


def decode_longer(raw: str, shorter: str, known: Decoded) -> Decoded | None:
    """Decode a history that extends ``shorter``, such as ``[1, 2, 3]`` after ``[1, 2]``. Parse only the new messages, because
    ``known`` contains the decoded messages in ``shorter``. Return None if ``raw`` must be decoded completely.
    """
    comma = len(shorter) - 1
    if known.append_items is None or known.truncated or not goes_on(raw, shorter):
        return None
    try:
        items = jsonio.loads(f"[{raw[comma + 1 :]}")
    except ValueError:
        return None
    if not items:
        return None
    out = Decoded([*known.messages], hidden=known.hidden)
    out.append_items = known.append_items
    out.append_items(items, "user", out, 0)
    return out


def goes_on(raw: Any, shorter: Any) -> bool:
    """Return True if ``raw`` begins like the JSON list ``shorter`` and continues with more items."""
    if raw.__class__ is not str or shorter.__class__ is not str or len(raw) <= len(shorter):
        return False
    end = len(shorter) - 1
    return raw[end] == "," and shorter[end] == "]" and raw.startswith(shorter[:end])


def _join_streamed_messages(messages: list[Message]) -> None:
    """Join assistant messages that are chunks of a streamed answer. A finish reason, tool call, or other role ends an answer."""
    pieces: list[Message] = []
    joined = []
    for message in (*messages, Message("")):  # the empty message ends the last answer
        if pieces and (message.role != "assistant" or pieces[-1].finish_reason or pieces[-1].tool_calls):
            texts = [piece.content for piece in pieces if piece.content]
            if len(pieces) > 1 and _is_streamed(texts):
                pieces[-1].content = _join_stream(texts, "stop")  # the last chunk may repeat the whole text
                del pieces[:-1]
            joined += pieces
            pieces = []
        if message.role == "assistant":
            pieces.append(message)
        elif message.role:
            joined.append(message)
    messages[:] = joined


def _is_streamed(texts: Sequence[str]) -> bool:
    """Return True if the texts seem to be chunks of one text, for example because a chunk starts with a space."""
    return any(_CONTINUATION.match(later) or earlier[-1:] == " " for earlier, later in pairwise(texts))


_CONTINUATION = re.compile(r" |[,.;:!?')\]}][^\n]{0,3}(?:\s|$)")


def _add(raw: Any, role: str, out: Decoded, depth: int) -> None:
    if raw.__class__ is str:
        is_json = raw[:1] in '[{"' and raw not in HIDDEN and not raw.startswith(_REPR_STARTS)
        value, is_cut = jsonio.loads_or_text(raw) if is_json else (raw, False)
        out.truncated |= is_cut
        if value.__class__ is str and (value[-1:] in '}])"' or value[:2] == "{'"):
            value = _parse_shown_text(value)
        if value.__class__ is str:
            if value or not raw:
                _add_text(value, role, out)
            return
        raw = value
    if depth > _MAX_NESTING:
        return
    if isinstance(raw, (list, tuple)):
        _add_list(raw, role, out, depth)
    elif raw.__class__ is dict or isinstance(raw, Mapping):
        _add_object(raw, role, out, depth)
    elif raw.__class__ is Later:
        _add(raw.reader(raw.raw), role, out, depth + 1)
    elif raw is not None:
        out.messages.append(Message(role, jsonio.text_of(raw)))


_REPR_STARTS = ("[{'", "{'")
_MOST_ENCODINGS = 3
_MESSAGE_ROLES = frozenset((*ROLES, *ROLES.values(), "user", "assistant", "system", "tool"))


def _parse_shown_text(text: str) -> Any:
    """Parse messages from Java's ``toString()``, a Python ``repr``, or repeatedly encoded JSON. Return other texts unchanged."""
    if (shown := literals.java_value(text)) is not None:
        return shown
    if text[:2] == "{'" and "Message(" in text:
        return opened(text)
    value: Any = text
    for _ in range(_MOST_ENCODINGS if "role" in text else 0):
        value = literal(value) if value.startswith(_REPR_STARTS) else jsonio.loads_or_text(value)[0]
        if value.__class__ is not str:
            first = value[0] if value.__class__ is list and value else value
            return value if isinstance(first, dict) and first.get("role") in _MESSAGE_ROLES else text
    return text


_SHOWN_MESSAGES = ("content='", 'content="', "content=[")


def _add_text(text: str, role: str, out: Decoded) -> None:
    if text in HIDDEN:
        out.hidden = True
    elif text[:2] == "[{":  # truncated messages that can't be parsed
        out.hidden = out.truncated = True
    elif not (text.startswith(_SHOWN_MESSAGES) and " tool_call_id=" in text):  # str() of LangChain's tool message
        message = Message(role, repr_text(text) if text.startswith(_SHOWN_MESSAGES) else text)
        if role == "assistant" and "Tool calls: [" in text:
            react.read_assistant(message)
        out.messages.append(message)


def _add_object(raw: Mapping[str, Any], role: str, out: Decoded, depth: int) -> None:
    if literals.JAVA_CLASS in raw:
        raw = literals.java_message(raw)
    if _is_message(raw):
        content = raw.get("content")
        if content.__class__ is str and content[:2] == "[{" and (items := _parse_convention_text(content)):
            _add_list(items if "parts" in items[0] else [{"role": raw.get("role", role), "parts": items}], role, out, depth)
            return
        if raw.get("role") != "tool" or content.__class__ is not dict or raw.get("tool_call_id"):
            out.messages.append(_message(raw, role, out))
        return  # a "tool" message without a call id is a tool definition
    if raw.keys() <= CALL_FIELDS:
        _add_function_arguments(raw, role, out, depth)
    else:
        _add_wrapped(raw, role, out, depth)


def _add_wrapped(raw: Mapping[str, Any], role: str, out: Decoded, depth: int) -> None:
    if role == "assistant" and ("output" in raw or "generations" in raw):
        _add(raw.get("output") or raw.get("generations"), role, out, depth + 1)
        return
    if "raw" in raw and "pydantic" in raw:  # a CrewAI output: the text and its parsed form
        if isinstance(raw["raw"], str):
            out.messages.append(Message(role, raw["raw"]))
        return
    if len(raw) == 1 and isinstance(raw.get("result"), Mapping) and role == "assistant":
        _add(raw["result"], role, out, depth + 1)
        return
    if "response" in raw and not _ENGINE_KEYS.isdisjoint(raw):  # a LlamaIndex engine's response: the text and its sources
        _add(raw["response"], role, out, depth + 1)
        return
    if role == "system" and "messages" in raw:  # only the instructions of a whole request
        _add(raw.get("system"), role, out, depth + 1)
        return
    if isinstance(raw.get("contents"), list):  # a request of Google's SDK: {config: {system_instruction}, contents: [...]}
        config = raw.get("config")
        if isinstance(config, Mapping) and config.get("system_instruction"):
            _add(config["system_instruction"], "system", out, depth + 1)
        _add(raw["contents"], role, out, depth + 1)
        return
    for key in _ANSWER_KEYS if role == "assistant" else _MESSAGE_KEYS:
        if raw.get(key) not in (None, ""):
            _add(raw[key], role, out, depth + 1)
            return


def _parse_convention_text(text: str) -> list[Any] | None:
    """Parse a JSON list of the GenAI convention's messages, or of parts with ``content``. Return None for other text."""
    items, _ = jsonio.loads_or_text(text) if '"parts":' in text or '"type":' in text else (None, False)
    if not isinstance(items, list):
        return None
    for item in items:
        if item.__class__ is not dict:
            return None
        required = _MESSAGE_KEYS_OF_CONVENTION if item.get("type") is None else _PART_KEYS
        if not required <= item.keys():
            return None
    return items


_PART_KEYS, _MESSAGE_KEYS_OF_CONVENTION = frozenset(("type", "content")), frozenset(("role", "parts"))
_MESSAGE_KEYS = (
    "messages", "new_message", "input_messages", "output_messages", "choices", "content", "input", "prompt", "query", "question",
    "text", "delta", "candidates", "combined_chunk_content", "str_or_query_bundle", "query_str", "user_msg",
)  # fmt: skip
_ANSWER_KEYS = (*_MESSAGE_KEYS[:5], "output", *_MESSAGE_KEYS[5:])


def _add_list(raw: Sequence[Any], role: str, out: Decoded, depth: int) -> None:
    """Add the messages in a list. If the list consists of message parts, add one message."""
    first = raw[0] if raw and raw[0].__class__ is dict else {}
    if "parts" in first and "role" in first:
        out.append_items = None if depth else _add_convention_messages
        _add_convention_messages(raw, role, out, depth)
        return
    if "event.name" in first:
        raw = _events_of_role(raw, role)
    elif "role" in first:
        out.append_items = None if depth else _add_each
    if raw and all(isinstance(item, Mapping) and _is_part(item) for item in raw):
        out.messages.append(_message({"content": raw}, role, out))
        return
    _add_each(raw, role, out, depth)


def _add_each(raw: Sequence[Any], role: str, out: Decoded, depth: int) -> None:
    for item in raw:
        _add(item, role, out, depth + 1)


def _add_convention_messages(raw: Sequence[Any], role: str, out: Decoded, depth: int) -> None:
    """Add messages in the GenAI convention's format. Join the chunks of a streamed message."""
    pieces: list[Message] = []
    unfinished = False
    for item in raw:
        if item.__class__ is dict and "role" in item:
            message = _message(item, role, out)
            if unfinished and message.role == out.messages[-1].role:
                pieces.append(message)
            else:
                _append_pieces(out.messages, pieces)
                out.messages.append(message)
            unfinished = item.get("finish_reason") == ""  # a chunk of a streamed message
            if unfinished:
                out.append_items = None
        else:
            _append_pieces(out.messages, pieces)
            _add(item, role, out, depth + 1)
            unfinished = False
    _append_pieces(out.messages, pieces)


def _events_of_role(events: Sequence[Any], role: str) -> list[Any]:
    """If ``role`` is ``assistant``, return the output events at the end of the list. Otherwise, return the preceding events."""
    first_output = len(events)
    has_choices = any(isinstance(event, Mapping) and event.get("event.name") == "gen_ai.choice" for event in events)
    output_names = ("gen_ai.choice",) if has_choices else ("gen_ai.assistant.message", "gen_ai.unknown")
    while first_output and isinstance(event := events[first_output - 1], Mapping) and event.get("event.name") in output_names:
        first_output -= 1
    return list(events[first_output:] if role == "assistant" else events[:first_output])


_ENGINE_KEYS = frozenset(("source_nodes", "sources", "metadata", "current_agent_name"))


def _add_function_arguments(call: Mapping[str, Any], role: str, out: Decoded, depth: int) -> None:
    """Add the messages or text in a function's arguments, such as ``{"args": ["Hi there"]}``."""
    args, kwargs = call.get("args"), call.get("kwargs")
    if kwargs.__class__ is str and kwargs[:1] == "{":
        kwargs, is_cut = jsonio.loads_or_text(kwargs)
        out.truncated |= is_cut
    if isinstance(kwargs, Mapping) and not args:
        from_kwargs = Decoded([])
        _add(kwargs, role, from_kwargs, depth + 1)
        if from_kwargs.messages or kwargs.keys() <= CALL_FIELDS:
            out.messages.extend(from_kwargs.messages)
            out.hidden |= from_kwargs.hidden
            out.truncated |= from_kwargs.truncated
            return
    values = [*(args if isinstance(args, (list, tuple)) else ()), *(kwargs.values() if isinstance(kwargs, Mapping) else ())]
    lists = [value for value in values if isinstance(value, list) and value and isinstance(value[-1], Mapping)]
    message_lists = [messages for messages in lists if _is_message(messages[-1])]
    prompts = [messages for messages in message_lists if messages[-1].get("role") not in ("assistant", "ai")]
    texts = [value for value in values if isinstance(value, str)]
    sentences = [text for text in texts if " " in text.strip()]
    likeliest_first = [*prompts, *sentences, *message_lists, *texts]
    if likeliest_first:
        _add(likeliest_first[0], role, out, depth + 1)


def _append_pieces(messages: list[Message], pieces: list[Message]) -> None:
    """Append the chunks in ``pieces`` to the last message, and clear ``pieces``. The last chunk can repeat the whole text."""
    if not pieces:
        return
    message, last = messages[-1], pieces[-1]
    message.content = _join_stream([piece.content for piece in (message, *pieces)], last.finish_reason)
    message.reasoning = _join_stream([piece.reasoning for piece in (message, *pieces)], last.finish_reason)
    new_calls: dict[tuple[str | None, Hashable], ToolRequest] = {}
    for call in (call for piece in pieces for call in piece.tool_calls):
        new_calls.pop((call.call_id, None), None)  # a call can appear without arguments first
        new_calls.pop(_identity_of(call), None)
        new_calls[_identity_of(call)] = call
    replaced = {*new_calls, *((call_id, None) for call_id, _ in new_calls)}
    kept_calls = [call for call in message.tool_calls if _identity_of(call) not in replaced]
    message.tool_calls = [*kept_calls, *new_calls.values()]
    message.finish_reason = last.finish_reason
    pieces.clear()


def _join_stream(texts: Sequence[str | None], finish_reason: str | None) -> str | None:
    pieces = [text for text in texts if text]
    if not pieces:
        return texts[0]
    whole = "".join(pieces[:-1])
    repeats_whole = finish_reason and texts[-1] and texts[-1] == whole
    return whole if repeats_whole else whole + pieces[-1]


def _identity_of(call: ToolRequest) -> tuple[str | None, Hashable]:
    return call.call_id, None if call.arguments in (None, "", {}) else jsonio.frozen(call.arguments)


def _is_message(value: Mapping[str, Any]) -> bool:
    if "role" in value or isinstance(value.get("parts"), list):
        return True
    kind = _kind(value)
    if kind == "message" or kind in _ITEM_ROLES or ("lc" in value and "kwargs" in value):
        return True
    if "data" in value or "content" in value:
        return kind in ROLES or kind in ("system", "tool", "user", "assistant")
    return "message" in value and isinstance(value["message"], Mapping)


def _kind(value: Mapping[str, Any]) -> str | None:
    if (kind := value.get("type")) is None:
        kind = value.get("block_type")
    return kind if isinstance(kind, str) else None


def _is_part(value: Mapping[str, Any]) -> bool:
    if "role" in value:
        return False
    if (kind := _kind(value)) is None:
        return ("object" not in value and not _UNTYPED_PARTS.isdisjoint(value)) or _is_bare_call(value)
    return kind in _TEXT_TYPES or kind in _REASONING_TYPES or kind in _MEDIA or kind in _PART_READERS


def _is_block(value: Mapping[str, Any]) -> bool:
    """Return True if an object is a message part. An object with ``text`` and unusual fields, but no type, is a tool result."""
    return _is_part(value) and (_kind(value) is not None or "text" not in value or TEXT_BLOCK_FIELDS.issuperset(value))


def _message(value: Mapping[str, Any], role: str, out: Decoded) -> Message:
    texts: list[str] = []
    parts = value.get("parts")
    is_of_convention = parts is not None and "role" in value
    if is_of_convention:
        author = value["role"]
    else:
        value = _unwrapped(value)
        author, parts = _author_and_parts(value, parts)
        if parts.__class__ is str and parts[-1:] == "}" and (shown := literals.java_message_in(parts)) is not None:
            value, parts = {**shown, **{key: one for key, one in value.items() if one}}, shown["content"]
    message = Message(ROLES.get(author, author) if author.__class__ is str else role)
    _read_parts(parts, message, texts, out, 0)
    if not any(texts) and _transcript_of(value.get("audio")):  # OpenAI's spoken answer
        texts.clear()
        _read_part({"type": "audio", "audio": value["audio"]}, message, texts, out)
    if message.role == "assistant" and not value.keys().isdisjoint(_BESIDE_CONTENT):
        _read_beside_content(value, message, texts)
    if "tool_calls" in value or "additional_kwargs" in value or "function_call" in value:
        _read_tool_calls(value, message)
    _read_results(value, message, texts, is_of_convention)
    if texts:
        message = _with_text(message, texts, out)
    name = value.get("name")
    if name and name.__class__ is str:
        message.name = name
    reason = value.get("finish_reason")
    if reason and reason.__class__ is str:
        message.finish_reason = reason
    return message


def _read_results(value: Mapping[str, Any], message: Message, texts: list[str], is_of_convention: bool) -> None:
    results = value.get("tool_results")  # in exports of Datadog
    for result in results if isinstance(results, list) else ():
        if isinstance(result, Mapping):
            _add_result(message, result.get("tool_id"), result.get("name"), result.get("result"))
    if not message.tool_results and ("tool_call_id" in value if is_of_convention else message.role == "tool"):
        extra = value.get("additional_kwargs")
        call_id = (
            value.get("tool_call_id") or value.get("id") or (extra.get("tool_call_id") if isinstance(extra, Mapping) else None)
        )
        _add_result(message, call_id, value.get("name"), "\n".join(texts) if texts else None)


_REASONING_KEYS = ("reasoning_content", "reasoning", "thinking", "reasoning_details")
_BESIDE_CONTENT = frozenset(("refusal", "additional_kwargs", *_REASONING_KEYS))


def _read_beside_content(value: Mapping[str, Any], message: Message, texts: list[str]) -> None:
    """Read an answer's refusal and reasoning, which OpenAI-compatible APIs and LangChain write next to the answer's content."""
    for holder in (value, value.get("additional_kwargs")):
        if not isinstance(holder, Mapping):
            continue
        if not any(texts) and (refusal := _text_or_none(holder.get("refusal"))):
            texts[:] = [refusal]
        if message.reasoning is None:
            _reasoning({key: holder.get(key) for key in _REASONING_KEYS}, message)


def _author_and_parts(value: Mapping[str, Any], parts: Any) -> tuple[Any, Any]:
    kind = _kind(value)
    author = value.get("role")
    if author is None and kind is not None:
        author = _ITEM_ROLES.get(kind, kind if kind != "message" else None)
    if parts is None:
        parts = value.get("content")
    if parts is None:
        parts = value.get("blocks", value.get("text", value.get("message")))
    if parts is None and kind in _ITEM_ROLES:
        parts = [value]
    return author, parts


def _with_text(message: Message, texts: list[str], out: Decoded) -> Message:
    """Set a message's text, and parse tool calls and results that frameworks write into this text."""
    if len(texts) > 1 and message.role == "user":
        texts = [text for text in texts if not is_tagged(text)] or texts
    content = message.content = texts[0] if len(texts) == 1 else _joined_texts(texts)
    if message.role == "user":
        if content[:1] == "<":
            content = message.content = _LEADING_NOTES.sub("", content)
        if not content.startswith(_FRAMEWORK_WORDS):
            return react.read_user(message, out.messages)
        message.role = "system"
    elif message.role == "assistant" and ("Calling tools:" in content or "Tool calls: [" in content):
        react.read_assistant(message)
    return message


def _joined_texts(texts: list[str]) -> str:
    if _is_streamed(texts):
        return "".join(texts)
    whole = texts[0]
    for text in texts[1:]:
        whole += text if text[:1].isspace() or whole[-1:].isspace() else f"\n{text}"
    return whole


def is_tagged(text: str) -> bool:
    """Return True if one XML element encloses the whole text. Frameworks add such elements to the user's message."""
    if text[:1] != "<" and text.lstrip()[:1] != "<":
        return False
    text = text.strip()
    opening = _TAG.match(text)
    return opening is not None and text.find(f"</{opening[1]}>") == len(text) - len(f"</{opening[1]}>")


_TAG = re.compile(r"<([A-Za-z][\w.:-]{0,60})(?: [^<>]{0,200})?>")
_LEADING_NOTES = re.compile(r"(?:<([a-z]+[_-][\w-]{1,58})>[^<>\n]{0,200}</\1>\n\n)+(?=\S)")
"""Pattern for one-line notes that a framework adds above the user's message: ``<current_datetime>…</current_datetime>``."""
_REQUEST_ITEMS = ("function_call", "custom_tool_call", "local_shell_call", "shell_call", "apply_patch_call", "computer_call")
_RESULT_ITEMS = tuple(f"{kind}_output" for kind in _REQUEST_ITEMS)
_PROVIDER_ITEMS = ("web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call")
_ITEM_ROLES = {
    "reasoning": "assistant", **dict.fromkeys((*_REQUEST_ITEMS, *_PROVIDER_ITEMS), "assistant"), **dict.fromkeys(_RESULT_ITEMS, "tool"),
}  # fmt: skip


def _unwrapped(value: Mapping[str, Any]) -> Mapping[str, Any]:
    """Unwrap a message from a serialized constructor, a ``{type, data}`` pair, or a choice. Return other messages unchanged."""
    if "lc" in value and isinstance(value.get("kwargs"), Mapping):
        path = value.get("id")
        kind = path[-1] if isinstance(path, list) and path else None
        return {"type": ROLES.get(kind, kind) if isinstance(kind, str) else None, **value["kwargs"]}
    if "data" in value and isinstance(value["data"], Mapping):
        return {**value["data"], "type": value.get("type")}
    if "message" in value and "role" not in value and isinstance(value["message"], Mapping):
        info = value.get("generation_info")
        reason = value.get("finish_reason") or (info.get("finish_reason") if isinstance(info, Mapping) else None)
        return {"finish_reason": reason, **_unwrapped(value["message"])}
    return value


def _read_parts(parts: Any, message: Message, texts: list[str], out: Decoded, depth: int) -> None:
    if parts is None or depth > _MAX_NESTING:
        return
    if parts.__class__ is str:
        if parts in HIDDEN:
            out.hidden = True
            return
        if parts[:2] == "[{":  # blocks that were serialized twice
            blocks, is_cut = (literal(parts), False) if parts[2:3] == "'" else jsonio.loads_or_text(parts)
            if isinstance(blocks, list) and blocks and all(isinstance(block, Mapping) and _is_block(block) for block in blocks):
                out.truncated |= is_cut
                _read_parts(blocks, message, texts, out, depth + 1)
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
        _read_text(part, kind, message, texts, out)
        return
    reader = _PART_READERS.get(kind) if kind is not None else None
    if reader is not None:
        reader(part, message)
    elif kind in _REASONING_TYPES or "reasoningContent" in part:
        _reasoning(part, message)
    elif kind in _MEDIA:
        _attachment(part, message, _MEDIA[kind])
        if _MEDIA[kind] == "audio" and (transcript := _transcript_of(part)) not in (None, *texts):
            _read_parts(transcript, message, texts, out, 1)
    elif kind in (None, "raw") and isinstance(part.get("content"), (str, list)):
        _read_parts(part["content"], message, texts, out, 1)
    elif kind is None and not _google_part(part, message) and _is_bare_call(part):
        _tool_request(part, message)


def _transcript_of(audio: Any) -> str | None:
    while isinstance(audio, Mapping):
        if transcript := _text_or_none(audio.get("transcript")):
            return transcript
        audio = audio.get("audio") or audio.get("input_audio")
    return None


def _is_bare_call(part: Mapping[str, Any]) -> bool:
    return part.get("name").__class__ is str and not _CALL_ARGUMENTS.isdisjoint(part) and not _CALL_IDS.isdisjoint(part)


_CALL_ARGUMENTS, _CALL_IDS = frozenset(("args", "arguments", "input")), frozenset(("id", "call_id", "tool_call_id"))


def _read_text(part: Mapping[str, Any], kind: str | None, message: Message, texts: list[str], out: Decoded) -> None:
    if kind is None:
        if part.get("thought") is True:
            _reasoning(part, message)
            return
        metadata = part.get("metadata")
        if isinstance(metadata, Mapping) and metadata.get("purpose") == "context":
            return  # documents that Genkit adds to the user's message
    if (text := part.get("content")) is None and (text := part.get("text")) is None:
        text = part.get("refusal")
    if text is None:
        if kind is not None or not _google_part(part, message):
            out.hidden = True
    elif text.__class__ is not str:
        texts.append(jsonio.text_of(text))
    elif text in HIDDEN:
        out.hidden = True
    elif ((text[:1] == "{" and '"type": "reasoning"' in text) or _RESPONSE_ITEM.match(text)) and (
        item := opened(text)
    ).__class__ is dict:
        _read_part(item, message, texts, out)  # an item of OpenAI's Responses API as text
    else:
        texts.append(text)


_RESPONSE_ITEM = re.compile(r"Response(?:FunctionToolCall|ReasoningItem)\(\w+=")


def _google_part(part: Mapping[str, Any], message: Message) -> bool:
    """Read a part that has a key such as ``functionCall`` instead of a type. Return False for other parts."""
    for key, reader in _GOOGLE_READERS.items():
        inner = part.get(key)
        if inner is not None and isinstance(inner, Mapping):
            reader(inner, message)
            return True
    for key in ("image", "video", "document", "audio"):  # Bedrock's
        inner = part.get(key)
        if isinstance(inner, Mapping) and "source" in inner:
            _attachment(inner, message, key)
            return True
    return False


_T = TypeVar("_T")


def _with_appended(items: Sequence[_T], item: _T) -> list[_T]:
    """Append an item, and return the list. A list is changed in place, because copying thousands of items would be slow."""
    if isinstance(items, list):
        items.append(item)
        return items
    return [*items, item]


def _tool_request(part: Mapping[str, Any], message: Message) -> None:
    function = part.get("function")
    if isinstance(function, Mapping):
        part = {"id": part.get("id"), **function}
    elif function.__class__ is str and part.get("name") is None:  # the function's name as text
        part = {**part, "name": function}
    call_id = part.get("id") or part.get("call_id") or part.get("toolUseId") or part.get("tool_call_id") or part.get("toolCallId")
    call_id = call_id or part.get("ref") or part.get("tool_id")
    if (kind := _kind(part)) in _ITEM_ROLES:
        call_id = part.get("call_id") or call_id
    for key in ("arguments", "args", "input", "tool_kwargs", "action", "operation"):
        if (arguments := part.get(key)) is not None:
            break
    name = part.get("name") or part.get("toolName") or part.get("tool_name")
    if name is None and kind is not None and kind in _REQUEST_ITEMS[2:]:  # OpenAI's own tools
        name = kind.removesuffix("_call")
    message.tool_calls = _with_appended(message.tool_calls, ToolRequest(_text_or_none(call_id), _text_or_none(name), arguments))


def _tool_response(part: Mapping[str, Any], message: Message) -> None:
    result = _result_in(part)
    call_id = part.get("call_id") or part.get("id") or part.get("tool_use_id") or part.get("toolUseId") or part.get("ref")
    _add_result(message, call_id, part.get("name"), result)
    _add_media_of_result(result, message)


def _result_in(part: Mapping[str, Any]) -> Any:
    for key in ("response", "result", "output", "content", "server_tool_call_response", "outputs", "results"):
        if (result := part.get(key)) is not None:
            break
    result = {"error": part["error"]} if result is None and part.get("error") else unwrap_result(result)
    return {"error": result} if says_failed(part) and not isinstance(result, Mapping) else result


def _add_result(message: Message, call_id: Any, name: Any, result: Any) -> None:
    message.tool_results = _with_appended(message.tool_results, ToolResponse(_text_or_none(call_id), _text_or_none(name), result))


def _add_media_of_result(result: Any, message: Message) -> None:
    if isinstance(result, Mapping):
        result = result["content"] if isinstance(result.get("content"), list) else [result]
    if not isinstance(result, list):
        return
    holder = Message(role="tool")
    for part in result[:_MOST_PARTS]:
        if not isinstance(part, Mapping):
            continue
        kind = _kind(part)
        resource = part.get("resource")
        if kind == "resource" and isinstance(resource, Mapping):
            _attachment(resource, holder, None)
        elif kind in _MEDIA and any(part.get(key) for key in (*_DATA_KEYS, *_URI_KEYS, *_ID_KEYS, *_MEDIA_KEYS)):
            _attachment(part, holder, _MEDIA[kind])
        elif kind is None and not part.keys().isdisjoint(_UNTYPED_MEDIA_KEYS):
            _google_part({key: part[key] for key in _UNTYPED_MEDIA_KEYS if key in part}, holder)
    for attachment in holder.attachments:
        if attachment.get("modality") in _MODALITIES:  # documents of a search aren't media
            message.attachments = _with_appended(message.attachments, attachment)


def _typed_tool_response(part: Mapping[str, Any], message: Message) -> None:
    """Add a tool result in Vercel's format: ``{type: "text" | "json" | "error-text" | …, value}``, or a value with ``isError``."""
    result = part.get("output")
    kind = _kind(result) if isinstance(result, Mapping) else None
    has_failed = part.get("isError") is True
    if isinstance(result, Mapping) and kind is not None:
        has_failed |= kind.startswith("error")
        result = {"error": result.get("reason") or kind} if kind == "execution-denied" else result.get("value", result)
    elif result is None:
        result = part.get("result")
    result = {"error": result} if has_failed else result
    _add_result(message, part.get("toolCallId"), part.get("toolName"), unwrap_result(result))
    _add_media_of_result(result, message)


def _tool_response_with_origin(part: Mapping[str, Any], message: Message) -> None:
    origin = part.get("origin")
    request = origin if isinstance(origin, Mapping) else {}
    result = unwrap_result(part.get("result"))
    _add_result(message, request.get("id"), request.get("tool_name"), {"error": result} if part.get("error") is True else result)


def _provider_run(part: Mapping[str, Any], message: Message) -> None:
    """Add a tool call that the model provider ran itself, such as a web search."""
    inner = part.get("server_tool_call")
    item = inner if isinstance(inner, Mapping) else part
    arguments = next((item[key] for key in ("arguments", "args", "input", "action") if item.get(key) is not None), None)
    if arguments is None:
        arguments = {key: value for key, value in item.items() if key not in _NO_ARGUMENTS}
    name = part.get("name") or item.get("name") or (_kind(item) or "").removesuffix("_call")
    run = {"call_id": _text_or_none(part.get("id") or item.get("id")), "name": _text_or_none(name), "arguments": arguments}
    run["result"] = _result_in({key: item.get(key) for key in ("output", "outputs", "results", "error", "status")})
    message.extra = {_RUNS: _with_appended((message.extra or {}).get(_RUNS, ()), run)}


def _provider_result(part: Mapping[str, Any], message: Message) -> None:
    call_id, result = _text_or_none(part.get("tool_use_id") or part.get("tool_call_id") or part.get("id")), _result_in(part)
    runs = reversed((message.extra or {}).get(_RUNS, ())[-_MOST_RUNS:])
    if (run := next((one for one in runs if one["call_id"] == call_id), None)) is not None:
        run["result"] = {"error": result["error_code"]} if isinstance(result, Mapping) and "error_code" in result else result


@dataclass(slots=True)
class ProviderRun(ToolRequest):
    result: Any = None


def provider_runs(message: Message) -> list[Any]:
    """Return the tool calls that the model provider ran itself for this message."""
    return [ProviderRun(**run) for run in message.extra[_RUNS]] if message.extra else []


_RUNS, _MOST_RUNS = "server_tool_calls", 100
_NO_ARGUMENTS = frozenset(("type", "id", "name", "status", "caller", "container_id", "outputs", "results", "result"))


def _reasoning(part: Mapping[str, Any], message: Message) -> None:
    text: Any = None
    for key in ("content", "thinking", "text", "summary", "reasoningContent", "reasoning_text", *_REASONING_KEYS):
        text = part.get(key)
        if text:
            break
    if isinstance(text, Mapping):
        text = text.get("reasoningText", text)
        text = text.get("text") if isinstance(text, Mapping) else text
    if text.__class__ is str and text[:2] == "[{" and '"summary_text"' in text:  # a list of summaries as JSON text
        text, _ = jsonio.loads_or_text(text)
    if isinstance(text, list):
        text = "\n".join(str(item.get("text", "")) for item in text if isinstance(item, Mapping))
    if isinstance(text, str) and text:
        message.reasoning = f"{message.reasoning}\n{text}" if message.reasoning else text


_URI_KEYS = ("uri", "url", "file_uri", "fileUri", "file_url", "fileUrl")
_DATA_KEYS = ("content", "data", "base64", "bytes", "file_data", "binary_content", "blob")
_MIME_TYPE_KEYS = ("mime_type", "media_type", "mimeType", "mediaType", "contentType", "content_type")
_ID_KEYS = ("file_id", "fileId")
_MEDIA_KEYS = (
    "source", "image_url", "input_audio", "audio_url", "video_url", "file", "image", "audio", "video", "document",
    "s3Location",
)  # fmt: skip
"""Fields of a message part that contain media or a link to media."""
_MODALITIES = frozenset(("image", "audio", "video"))
_UNTYPED_MEDIA_KEYS = ("inline_data", "inlineData", "file_data", "fileData", "image", "video", "audio")
"""Keys of media parts without a type (Google, Bedrock)."""
_MOST_PARTS = 1_000
"""Maximum number of a tool result's parts that are searched for media."""


def _attachment(part: Mapping[str, Any], message: Message, modality: str | None) -> None:
    holders = [part]
    for holder in holders:  # grows during iteration: {"image": {"source": {"s3Location": {"uri": …}}}} of Bedrock
        holders += [inner for key in _MEDIA_KEYS if isinstance(inner := holder.get(key), Mapping)]
    if (uri := _first_text(holders, _URI_KEYS)) is None:  # {"image_url": "https://…"}
        uri = next((value for holder in holders for key in _MEDIA_KEYS if _is_address(value := holder.get(key))), None)
    if (data := _first_text(holders, _DATA_KEYS)) is None:  # {"image": "iVBOR…"}
        images = (image for holder in holders if (image := holder.get("image")).__class__ is str)
        data = next((image for image in images if image != uri), None)
    if data is not None and uri is None and _is_address(data):
        uri, data = data, None
    mime, file_format = _first_text(holders, _MIME_TYPE_KEYS), _first_text(holders, ("format",))
    shown_kind = (mime or (uri or "")[5:]).partition("/")[0]  # of "image/png" or "data:image/png;base64,…"
    kind = part.get("modality") or (shown_kind if shown_kind in _MODALITIES else modality or "document")
    if mime is None and file_format is not None and kind in _MODALITIES:
        mime = f"{kind}/{file_format}"
    fields = {"modality": kind, "mime_type": mime, "uri": uri, "data": data, "file_id": _first_text(holders, _ID_KEYS)}
    # str.__str__ also converts enum members
    attachment = {key: str.__str__(value) for key, value in fields.items() if isinstance(value, str) and value}
    message.attachments = _with_appended(message.attachments, attachment)


def _first_text(holders: Sequence[Mapping[str, Any]], keys: Sequence[str]) -> str | None:
    """Return the first text under any of the keys, or None. Skip empty texts and placeholders. Convert bytes to base64."""
    for holder in holders:
        for key in keys:
            value = holder.get(key)
            if value.__class__ is str and value[:1] == "<":  # placeholders such as "<not serializable>" instead of bytes
                continue
            if isinstance(value, bytes):
                return base64.b64encode(value).decode()
            if value.__class__ is str and value:
                return str(value)
    return None


def _is_address(value: Any) -> bool:
    return value.__class__ is str and (value[:5] == "data:" or "://" in value[:12])


_PART_READERS = {
    **dict.fromkeys(("tool_call", "tool_use", "toolUse", "tool-call", "function", *_REQUEST_ITEMS), _tool_request), "tool-result": _typed_tool_response,
    **dict.fromkeys(("tool_call_response", "tool_result", "toolResult", *_RESULT_ITEMS), _tool_response),
    **dict.fromkeys(("server_tool_call", "server_tool_use", "mcp_tool_use", *_PROVIDER_ITEMS), _provider_run),
    **dict.fromkeys(("server_tool_call_response", "server_tool_result", "web_search_tool_result", "web_fetch_tool_result", "code_execution_tool_result",
                     "bash_code_execution_tool_result", "text_editor_code_execution_tool_result", "mcp_tool_result"), _provider_result),
}  # fmt: skip
_GOOGLE_READERS: dict[str, Callable[[Mapping[str, Any], Message], None]] = {
    "function_call": _tool_request, "functionCall": _tool_request,
    "function_response": _tool_response, "functionResponse": _tool_response,
    "toolRequest": _tool_request, "toolResponse": _tool_response, "toolUse": _tool_request, "toolResult": _tool_response,
    "tool_call": _tool_request, "tool_call_result": _tool_response_with_origin, "reasoning": _reasoning,
    **dict.fromkeys(
        ("inline_data", "inlineData", "file_data", "fileData"), lambda part, message: _attachment(part, message, None)
    ),
}  # fmt: skip


def _read_tool_calls(value: Mapping[str, Any], message: Message) -> None:
    calls = value.get("tool_calls")
    if calls.__class__ is str:
        calls, _ = jsonio.loads_or_text(calls)
    if not calls:
        extra = value.get("additional_kwargs")
        holder = extra if isinstance(extra, Mapping) else value
        calls = holder.get("tool_calls") or [holder.get("function_call")]  # OpenAI's API before tools
    if isinstance(calls, (list, tuple)):
        read_ids = {call.call_id for call in message.tool_calls if call.call_id}
        for call in calls:
            if isinstance(call, Mapping) and _text_or_none(call.get("id")) not in read_ids:
                _tool_request(call, message)


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) and value else None
