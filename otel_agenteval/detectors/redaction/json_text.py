"""Keeps text that contains JSON valid after redaction.

A number that is replaced by a mark becomes a JSON string, with quotation marks escaped like those around it.
"""

from __future__ import annotations

from typing import Any

from ...core import jsonio
from ..texts import lazy

_NUMBER = lazy(r"-?[0-9]+")
_LOOK_BACK = 2_000
_SPACE = r"(?:\s|\\+[nrt])"
_AFTER_KEY = lazy(rf'(?<!\\)(\\*)"{_SPACE}*:{_SPACE}*\Z')
_IN_LIST_OF_KEY = lazy(rf'(?<!\\)(\\*)"{_SPACE}*:{_SPACE}*\[(?:[^\[\]{{}}"\\]|\\+[nrt]|\\*"[^"\\]*\\*")*\Z')
_BEFORE_ITEM = lazy(rf"[\[,]{_SPACE}*\Z")
_AFTER_VALUE = lazy(rf"{_SPACE}*(?:[,}}\]]|\Z)")
_LAST_QUOTE = lazy(r'(?<!\\)(\\*)"([^"]*)\Z')


def as_written(text: str, start: int, end: int, marker: str) -> str:
    """Return the redaction mark as it must be written in place of a part of the text."""
    if _NUMBER.fullmatch(text, start, end) is None or _AFTER_VALUE.match(text, end) is None:
        return marker
    before = text[max(0, start - _LOOK_BACK) : start].removesuffix("-")
    key = _AFTER_KEY.search(before[-300:]) or (_IN_LIST_OF_KEY.search(before) if _BEFORE_ITEM.search(before[-300:]) else None)
    if key is not None:
        return _quoted(marker, len(key.group(1)))
    if _BEFORE_ITEM.search(before[-300:]) is None or text.lstrip()[:1] not in ("[", "{"):
        return marker
    quote = _LAST_QUOTE.search(before)
    if quote is None:
        return _quoted(marker, 0)
    slashes, since = len(quote.group(1)), quote.group(2).strip()
    opens = since[:1] not in (",", ":", "]", "}")
    return _quoted(marker, 2 * slashes + 1 if opens else slashes)


def _quoted(marker: str, slashes: int) -> str:
    quote = "\\" * slashes + '"'
    return f"{quote}{marker}{quote}"


def still_parses(before: str, after: str) -> bool:
    """Return True if JSON is still valid after the change, including JSON inside its strings."""
    if before.lstrip()[:1] not in ("{", "["):
        return True
    parsed = _parsed(before)
    return parsed is None or _alike(parsed, _parsed(after), 0)


def _parsed(text: str) -> Any:
    try:
        found = jsonio.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, (dict, list)) else None


def _alike(before: Any, after: Any, depth: int) -> bool:
    if depth > 60:
        return True
    if isinstance(before, dict):
        if not isinstance(after, dict) or len(before) != len(after):
            return False
        return all(_alike(a, b, depth + 1) for a, b in zip(before.values(), after.values(), strict=True))
    if isinstance(before, list):
        return (
            isinstance(after, list)
            and len(before) == len(after)
            and all(_alike(a, b, depth + 1) for a, b in zip(before, after, strict=True))
        )
    if isinstance(before, str):
        return isinstance(after, str) and (before == after or still_parses(before, after))
    return after is not None or before is None
