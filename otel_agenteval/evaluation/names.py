"""Redact names and IDs before export.

Names of conversations, users, agents, models, services, and error types can contain personal data or secrets, such as a phone
number. A hash replaces this data, because names are used as labels and join keys. Equal data has the same hash in every turn.
"""

from __future__ import annotations

import hashlib
import operator
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

from ..core.turn import ErrorInfo, LlmCall, ToolCall, Turn
from ..detectors.redaction.find import find_in
from ..detectors.redaction.numbers import digits_of, numbers_in_id
from ..detectors.redaction.views import decoded

WITHHELD = "[WITHHELD]"


def public_name(name: str, kinds: Collection[str]) -> str:
    """Replace personal data and secrets in a name with hashes. ``kinds`` contains the kinds of data to replace."""
    return _public(name, frozenset(kinds)) if kinds else name


def public_id(name: str, kinds: Collection[str]) -> str:
    """Replace personal data and secrets in an ID with hashes. Find phone numbers even without a preceding plus sign or word."""
    return _public(name, frozenset(kinds), "id") if kinds else name


@lru_cache(maxsize=4096)
def _public(name: str, kinds: frozenset[str], use: Literal["name", "id", "call id"] = "name") -> str:
    try:
        found = find_in(name, kinds & {"email", "secret"} if use == "call id" else kinds)
        if use == "id" and "phone" in kinds and not found:
            found = tuple((start, end, "phone") for start, end in numbers_in_id(name))
        out: list[str] = []
        at = 0
        for start, end, kind in found:
            plain = decoded(name[start:end])
            same = plain.casefold() if kind in ("email", "secret") else digits_of(plain).removeprefix("00") or plain
            digest = hashlib.blake2b(f"{kind} {same}".encode(errors="replace"), digest_size=6).hexdigest()
            out += name[at:start], f"[{kind.upper()}-{digest}]"
            at = end
        return "".join([*out, name[at:]]) if out else name
    except Exception:  # withhold a name that can't be searched
        return WITHHELD


_NAMES: Mapping[type, Collection[str]] = {
    Turn: ("conversation_id", "user_id", "agent", "service", "service_version", "framework", "error", "llm_calls", "tool_calls"),
    LlmCall: ("model", "provider", "finish_reason", "response_id", "service_tier"),
    ToolCall: ("name", "call_id", "error"),
    ErrorInfo: ("type",),
}
"""Fields (by type) that contain names, IDs, or records with names or IDs."""


def named_publicly(turn: Turn, kinds: Collection[str]) -> Turn:
    """Redact a turn's names and IDs, but not its content. Return the same turn if nothing changes."""
    changed = _redacted_fields(turn, frozenset(kinds)) if kinds else {}
    conversation = turn.conversation_id
    if "conversation_id" in changed and (turn.turn_id or "").endswith(f"conversation-{conversation}"):
        changed["turn_id"] = f"{turn.turn_id.removesuffix(conversation or '')}{changed['conversation_id']}"
    return turn.but(changed) if changed else turn


def _redacted_fields(record: Any, kinds: frozenset[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in _NAMES[record.__class__]:
        if value := getattr(record, field):
            left = NAME_ATTRIBUTES[field](value, kinds) if field in NAME_ATTRIBUTES else _without_names(value, kinds)
            if left is not value and left != value:
                found[field] = left
    return found


def _without_names(value: Any, kinds: frozenset[str]) -> Any:
    """Redact the names in a text, record, mapping, or list. Return the same object if nothing changes."""
    kind = value.__class__
    if kind is str:
        left = _public(value, kinds)
        return value if left == value else left
    if kind in _NAMES:
        return replace(value, **changed) if (changed := _redacted_fields(value, kinds)) else value
    if isinstance(value, Mapping):
        items = {_without_names(name, kinds): _without_names(item, kinds) for name, item in value.items()}
        return value if all(name in value and item is value[name] for name, item in items.items()) else items
    if kind in (list, tuple):
        entries = [_without_names(item, kinds) for item in value]
        return value if all(map(operator.is_, entries, value)) else entries
    return value


def attributes_publicly(attributes: Mapping[str, Any], kinds: Collection[str]) -> Mapping[str, Any]:
    """Redact resource attributes, both names and values. Return the same mapping if nothing changes."""
    left: Mapping[str, Any] = _without_names(attributes, frozenset(kinds))
    return left


def public_call_id(name: str, kinds: Collection[str]) -> str:
    """Redact email addresses and secrets in a tool call ID or response ID. Don't redact numbers, because most are harmless."""
    return _public(name, frozenset(kinds), "call id")


NAME_ATTRIBUTES: Mapping[str, Callable[[str, Collection[str]], str]] = {
    **dict.fromkeys(("gen_ai.conversation.id", "session.id", "user.id", "enduser.id", "conversation_id", "user_id"), public_id),
    **dict.fromkeys(("gen_ai.tool.call.id", "gen_ai.response.id", "call_id", "response_id"), public_call_id),
    **dict.fromkeys(
        ("gen_ai.agent.name", "gen_ai.tool.name", "gen_ai.request.model", "gen_ai.response.model", "error.type"), public_name
    ),
}
"""Maps span attributes and fields that contain names or IDs to the functions that redact these values."""
