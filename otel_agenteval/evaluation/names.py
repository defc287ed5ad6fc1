"""Redact names and ids before they are exported.

Conversations, users, agents, models, services and error types can have names that contain personal data or secrets,
such as a phone number. Names label metrics and join rows, so a find is replaced by a hash. It is the same in every
turn, unlike the numbered markers in texts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any

from ..core.turn import Turn
from ..detectors.redaction.find import finds, plainly
from ..detectors.redaction.numbers import digits_of, numbers_in_id

WITHHELD = "[WITHHELD]"
"""Replaces a value that can't be searched."""
_HEX_DIGITS = 12
_CONVERSATION = "conversation-"


def public_name(name: str, kinds: Collection[str]) -> str:
    """Return a name without data of these kinds."""
    return _public(name, frozenset(kinds), False) if kinds else name


def public_id(name: str, kinds: Collection[str]) -> str:
    """Return an id without data of these kinds. Phone numbers in ids don't need a plus sign or an identifying word."""
    return _public(name, frozenset(kinds), True) if kinds else name


@lru_cache(maxsize=4096)
def _public(name: str, kinds: frozenset[str], is_id: bool) -> str:
    try:
        return _replaced(name, kinds, is_id)
    except Exception:  # withhold a name that can't be searched
        return WITHHELD


def _replaced(name: str, kinds: frozenset[str], is_id: bool) -> str:
    found = finds(name, kinds)
    if is_id and "phone" in kinds and not found:
        found = tuple((start, end, "phone") for start, end in numbers_in_id(name))
    out: list[str] = []
    at = 0
    for start, end, kind in found:
        out += name[at:start], _mark(kind, name[start:end])
        at = end
    return "".join([*out, name[at:]]) if out else name


def _mark(kind: str, found: str) -> str:
    plain = plainly(found)
    same = plain.casefold() if kind in ("email", "secret") else digits_of(plain).removeprefix("00") or plain
    digest = hashlib.blake2b(f"{kind} {same}".encode(errors="replace"), digest_size=_HEX_DIGITS // 2).hexdigest()
    return f"[{kind.upper()}-{digest}]"


def named_publicly(turn: Turn, kinds: Collection[str]) -> Turn:
    """Return the turn with redacted names and ids, or the same turn if nothing changes. The turn's content isn't redacted."""
    if not kinds:
        return turn
    kinds = frozenset(kinds)
    conversation, user, error = turn.conversation_id, turn.user_id, turn.error
    calls, tools = turn.llm_calls, turn.tool_calls or ()
    changed: dict[str, Any] = {}
    if conversation and (left := _public(conversation, kinds, True)) != conversation:
        changed["conversation_id"] = left
        if (turn.turn_id or "").endswith(f"{_CONVERSATION}{conversation}"):
            changed["turn_id"] = f"{turn.turn_id.removesuffix(conversation)}{left}"
    if user and (left := _public(user, kinds, True)) != user:
        changed["user_id"] = left
    if any(name and _public(name, kinds, False) != name for name in _names_of(turn)):
        changed |= {
            **{name: _public(getattr(turn, name) or "", kinds, False) for name in ("agent", "service", "service_version")},
            "error": error and _with_public(error, "type", kinds),
            "llm_calls": [_with_public(call, "model", kinds) for call in calls],
            "tool_calls": [_with_public(call, "name", kinds) for call in tools],
        }
        changed = {name: value for name, value in changed.items() if value and value != getattr(turn, name)}
    return turn.but(changed) if changed else turn


def _names_of(turn: Turn) -> set[str | None]:
    found = {call.model for call in turn.llm_calls} | {call.name for call in turn.tool_calls or ()}
    return found | {turn.agent, turn.service, turn.service_version, turn.error.type if turn.error is not None else None}


def _with_public(entry: Any, field: str, kinds: frozenset[str]) -> Any:
    name = getattr(entry, field)
    left = name and _public(name, kinds, False)
    return entry if left == name else replace(entry, **{field: left})


def attributes_publicly(attributes: Mapping[str, Any], kinds: Collection[str]) -> Mapping[str, Any]:
    """Return resource attributes with redacted values, or the same mapping if nothing changes."""
    found = {name: public_name(value, kinds) for name, value in attributes.items() if isinstance(value, str)}
    changed = {name: value for name, value in found.items() if value != attributes[name]}
    return {**attributes, **changed} if changed else attributes


NAME_ATTRIBUTES: Mapping[str, Callable[[str, Collection[str]], str]] = {
    **dict.fromkeys(("gen_ai.conversation.id", "session.id", "user.id", "enduser.id"), public_id),
    **dict.fromkeys(
        ("gen_ai.agent.name", "gen_ai.tool.name", "gen_ai.request.model", "gen_ai.response.model", "error.type"), public_name
    ),
}
"""Span attributes with names or ids, and the functions that redact them."""
