"""Recognize messages, documents, and tool definitions by their keys and types."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

from ..content import ROLES
from .keys import word_set
from .values import Branch, opened

MODEL_ROLES = word_set("""
    user assistant system tool function developer model human ai bot chatbot tool-call tool-response ipython tool_result unknown
""")
TELLING_ROLES = MODEL_ROLES - {"user", "human", "function", "bot", "unknown"}
"""Roles that rarely occur in ordinary applications' messages."""
_CONTENT = (
    "content", "parts", "tool_calls", "contents", "blocks", "text", "function_call", "toolCalls", "items", "tool_call_id",
    "finish_reason",
)  # fmt: skip
_OF_PARTS = frozenset(("text", "functionCall", "functionResponse", "function_call", "function_response"))
_TYPED = word_set("function_call function_call_output tool_use tool_result tool-call tool-result tool_call tool_call_response")
_OF_TYPED = frozenset(("name", "call_id", "id", "tool_use_id", "toolCallId", "toolName", "output", "content"))
_BESIDE_TYPE = _OF_TYPED | {"data", "kwargs"}
_LANGCHAIN = word_set("human ai system tool AIMessage HumanMessage SystemMessage ToolMessage AIMessageChunk")
_MODEL_AUTHORS = frozenset(("assistant", "ai"))
_AUTHORS = _MODEL_AUTHORS | {"system", "user", "human", "tool"}
"""Authors whose name can be a message's only key: ``{"assistant": "Hello."}``."""
_MESSAGE_KEYS = frozenset(("role", "type", "message", "parts", *_MODEL_AUTHORS))
"""Keys of messages. :func:`is_message` requires at least one of these keys."""
_SURE_KEYS = frozenset(("role", "message", "parts"))
_WRAPPERS = frozenset(("message", "tool_call", "message_content", "document", "tool", "node", "choice"))
_ALIASES = {
    "contents": "content", "toolCalls": "tool_calls", "toolCallId": "tool_call_id", "finishReason": "finish_reason", "toolRequests": "tool_calls",
    "inputSchema": "parameters",
}  # fmt: skip
_REQUEST = {
    "tool_function": "name", "tool_name": "name", "tool_id": "id", "tool_call_id": "id", "tool_arguments": "arguments", "args": "arguments",
    "tool_args": "arguments", "tool_input": "arguments",
}  # fmt: skip
_OPAQUE = word_set("""
    arguments args parameters inputSchema outputSchema metadata response_metadata usage_metadata usage token_usage request
""")
"""Message keys whose values :func:`plain` doesn't convert."""
_DOCUMENT_TEXT = ("content", "page_content", "text", "pageContent", "document", "chunk", "body")
_DOCUMENT_FACTS = ("id", "score", "metadata", "doc_id", "document_id", "similarity", "distance", "source", "title", "id_")
_MAX_DEPTH = 12


def is_message(node: Mapping[str, Any]) -> bool:
    if _MESSAGE_KEYS.isdisjoint(node):
        return False
    if len(node) == 1:
        ((key, inner),) = node.items()
        if key in _MODEL_AUTHORS and isinstance(inner, (str, list, dict)) and inner and node.__class__ is not Branch:
            return inner.__class__ is not str or len(inner) > 1
    role = node.get("role")
    if role.__class__ is str:
        return role.lower() in MODEL_ROLES and any(key in node for key in _CONTENT) and not _is_list_of_words(node.get("content"))
    kind = node.get("type")
    if kind.__class__ is str:
        if kind in _TYPED:
            return not _OF_TYPED.isdisjoint(node)
        if kind in _LANGCHAIN:
            return "content" in node or isinstance(node.get("data"), dict)
        if kind == "constructor" and "kwargs" in node and isinstance(node.get("id"), list):
            return str(node["id"][-1:]).strip("[]'") in ROLES
        if kind.endswith("Message") and "source" in node and "content" in node:
            return True
    inner = node.get("message")
    if isinstance(inner, dict):
        return is_message(inner)
    parts = node.get("parts")  # Google's
    return (
        isinstance(parts, list)
        and all(isinstance(part, dict) for part in parts)
        and any(not _OF_PARTS.isdisjoint(part) for part in parts)
    )


def may_be_message(names: Collection[str]) -> bool:
    """Return True if an object with these keys can be a message, depending on its values."""
    return not _SURE_KEYS.isdisjoint(names) or ("type" in names and not _BESIDE_TYPE.isdisjoint(names))


def _is_list_of_words(parts: Any) -> bool:
    """Return True if the content is a list of single words, such as permissions. Such a list isn't message content."""
    return isinstance(parts, (list, tuple)) and bool(parts) and all(part.__class__ is str and " " not in part for part in parts)


def is_telling(node: Mapping[str, Any]) -> bool:
    """Return True if a message occurs only in LLM conversations, for example because its role is ``assistant``."""
    inner = node.get("message")
    if isinstance(inner, dict) and "role" not in node:
        node = inner
    role = node.get("role", next(iter(node)) if len(node) == 1 else None)
    return (
        (role.__class__ is str and role.lower() in TELLING_ROLES)
        or any(node.get(key) for key in ("tool_calls", "toolCalls", "parts"))
        or (node.get("type").__class__ is str and node["type"] in _TYPED)
        or (node.get("type") == "constructor" and "lc" in node)
    )


def are_messages(node: list[Any]) -> bool:
    """Return True if at least half of the first 50 items are messages. ``{author: content}`` items need a model or system role."""
    if all(isinstance(item, dict) and len(item) == 1 and next(iter(item)) in _AUTHORS for item in node[:50]):
        return any(next(iter(item)) in ("assistant", "ai", "system") for item in node)
    found = sum(is_message(item) for item in node[:50] if isinstance(item, dict))
    return found > 0 and 2 * found >= min(len(node), 50)


def pieces_in(chunks: list[Any]) -> list[dict[str, Any]]:
    found = [_piece_in(chunk) for chunk in chunks if isinstance(chunk, dict)]
    return [{"role": "assistant", **piece} for piece in found if piece] if len(found) == len(chunks) else []


def _piece_in(chunk: Mapping[str, Any]) -> Any:
    for key, inner in (("choices", "delta"), ("candidates", "content")):
        several = chunk.get(key)
        if isinstance(several, list) and several and isinstance(several[0], dict):
            chunk = several[0] if inner == "delta" else {"delta": several[0].get(inner)}
    piece = chunk.get("delta")
    return piece if isinstance(piece, dict) else {"content": piece} if isinstance(piece, str) else None


def are_documents(node: list[Any], may_lack_texts: bool = False) -> bool:
    return bool(node) and all(isinstance(item, dict) and _is_document(item, may_lack_texts) for item in node[:50])


def _is_document(node: Mapping[str, Any], may_lack_text: bool) -> bool:
    if "role" in node or "tool_calls" in node:
        return False
    inner = node.get("document", node.get("node"))
    if isinstance(inner, dict):
        return True
    if any(_is_text(node.get(key)) for key in _DOCUMENT_TEXT):
        return any(key in node for key in _DOCUMENT_FACTS)
    return may_lack_text and node.keys() >= {"id", "score"}  # vector stores omit texts


def _is_text(content: Any) -> bool:
    return isinstance(content, str) or (
        isinstance(content, list)
        and bool(content)
        and all(isinstance(part, dict) and isinstance(part.get("text"), str) for part in content)
    )


def are_requests(node: list[Any]) -> bool:
    return bool(node) and all(isinstance(item, dict) and _is_request(item) for item in node[:50])


def _is_request(node: Mapping[str, Any]) -> bool:
    inner = node.get("function", node)
    if not isinstance(inner, dict) or "role" in node or "description" in inner or "parameters" in inner:
        return False
    name = inner.get("name") or inner.get("toolName") or inner.get("tool_name")
    return isinstance(name, str) and any(key in inner for key in ("arguments", "args", "input"))


def are_tools(node: list[Any]) -> bool:
    return bool(node) and all(isinstance(item, dict) and is_definition(item) for item in node[:20])


def is_definition(node: Mapping[str, Any]) -> bool:
    if node.get("type") == "function" and isinstance(node.get("function"), dict):
        node = node["function"]
    if "role" in node or "arguments" in node:
        return False
    return isinstance(node.get("name"), str) and any(
        key in node for key in ("description", "parameters", "input_schema", "inputSchema", "parametersJsonSchema", "json_schema")
    )


def plain(node: Any, depth: int = 0) -> Any:
    """Convert a value to the format that :mod:`..content` reads. Use standard names for keys, and remove wrappers with one key."""
    if depth > _MAX_DEPTH:
        return node
    if node.__class__ is list:
        return [plain(item, depth + 1) if isinstance(item, (list, dict)) else item for item in node]
    if not isinstance(node, dict):
        return node
    if len(node) == 1 and (unwrapped := _unwrapped(node, depth)) is not None:
        return unwrapped
    changed = {
        key: plain(inner, depth + 1) if isinstance(inner, (list, dict)) and key not in _OPAQUE else inner
        for key, inner in node.items()
    }
    if not _ALIASES.keys().isdisjoint(changed):
        changed = {alias if (alias := _ALIASES.get(key, key)) not in node else key: inner for key, inner in changed.items()}
    if (role := _role_in(changed)) is not None:
        changed["role"] = role
    calls = changed.get("tool_calls")
    if calls.__class__ is str:
        changed["tool_calls"] = opened(calls)
    return changed


def _unwrapped(node: dict[str, Any], depth: int) -> Any:
    """Unwrap ``{"message": {…}}``, or convert ``{"assistant": …}`` to a message. Return None for other objects."""
    ((key, inner),) = node.items()
    if key in _WRAPPERS and isinstance(inner, dict):
        return plain(inner, depth + 1)
    if key not in _AUTHORS:
        return None
    value = opened(inner) if inner.__class__ is str and inner[:1] in ("{", "[") else inner
    items = [opened(item) for item in value] if isinstance(value, list) else [value]
    calls = [{_REQUEST.get(name, name): fact for name, fact in item.items()} for item in items if isinstance(item, dict)]
    if key in _MODEL_AUTHORS and calls and len(calls) == len(items) and are_requests(calls):
        return {"role": key, "content": None, "tool_calls": calls}
    return {"role": key, "content": plain(inner, depth + 1)}


def _role_in(node: dict[str, Any]) -> str | None:
    """Return a message's role in lower case, or the role that ``unknown`` or ``source`` means. Return None if the role can stay."""
    role = node.get("role")
    if role == "unknown":
        return "tool"  # LangChain's tool results under LangWatch
    if role.__class__ is str:
        return role.lower() if role not in ROLES else None
    source = node.get("source")
    if role is None and source.__class__ is str and str(node.get("type", "")).endswith("Message") and "content" in node:
        return "user" if source == "user" else "assistant"
    return None
