"""What is taken out of a turn before its content leaves the process: to a judge, or to the file of a queue.

Scores are computed on what was really said; only what goes out is redacted. A find is replaced by its kind in brackets, as in
``[EMAIL]``, so that a judge still sees that something was there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from .metrics._pii import EMAILS, NUMBERS, SCAN_LIMIT, find
from .metrics._secrets import secret_spans
from .model import Turn

KINDS = ("email", "phone", "card", "ssn", "secret")
"""What can be taken out."""
_KIND_OF = {"email": "email", "phone": "phone", "credit_card": "card", "ssn": "ssn"}
_OVERLAP = 10_000
"""Characters that two windows over a long text share: no find is longer, so none is cut in half."""
_MAX_NESTING = 60
_NAMES = frozenset(("turn_id", "trace_id", "span_id", "id", "parent", "call_id", "response_id", "start", "close_reason"))
"""Identifiers of ours and of the telemetry: nobody's data, and digits enough to look like it."""


def redacted_turn(turn: Turn, kinds: Collection[str]) -> Turn:
    """The turn as it may leave. The same turn if there is nothing to take out."""
    return Turn.from_dict(redacted(turn.to_dict(), kinds)) if kinds else turn


def redacted(value: Any, kinds: Collection[str], depth: int = 0) -> Any:
    """A value of the form ``turn.v1`` with every text in it redacted; what is nested too deep to be looked at is left out."""
    if isinstance(value, str):
        return redacted_text(value, kinds)
    if isinstance(value, (dict, list, tuple)) and depth >= _MAX_NESTING:
        return None
    if isinstance(value, dict):
        return {key: item if key in _NAMES else redacted(item, kinds, depth + 1) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [redacted(item, kinds, depth + 1) for item in value]
    return value


def redacted_text(text: str, kinds: Collection[str]) -> str:
    """A text in which every find of these kinds is replaced by its kind."""
    out: list[str] = []
    at = 0
    for start, end, kind in sorted(_finds(text, kinds)):
        if start >= at:
            out += text[at:start], f"[{kind.upper()}]"
        at = max(at, end)
    out.append(text[at:])
    return "".join(out) if at else text


def _finds(text: str, kinds: Collection[str]) -> Iterator[tuple[int, int, str]]:
    for offset in range(0, max(len(text) - _OVERLAP, 1), SCAN_LIMIT - _OVERLAP):
        window = text[offset : offset + SCAN_LIMIT]
        for detector, start, end in find(window, (EMAILS, NUMBERS)):
            kind = _KIND_OF.get(detector.kind)
            if kind in kinds:
                yield offset + start, offset + end, str(kind)
        if "secret" in kinds:
            for _, start, end in secret_spans(window):
                yield offset + start, offset + end, "secret"
