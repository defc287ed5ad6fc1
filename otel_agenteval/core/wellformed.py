"""Text that any encoder takes: Python's can hold half of a surrogate pair, which UTF-8, SQLite, protobuf and JSON parsers refuse.

Programs cut text in the middle of an emoji, and one such character must not cost the batch, line or job that it stands in.
Whatever comes in from outside is cleaned where it comes in, by one of these.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST = 200
"""Nesting below which nothing is looked at: parsers and encoders refuse what is deeper."""


def well_formed(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair; two halves that belong together become their character."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def well_formed_value(value: Any, depth: int = 0) -> Any:
    """The same for every text in a value, keys of objects included. What needs no change is returned as it is."""
    if value.__class__ is str:
        return well_formed(value)
    if depth >= _DEEPEST:
        return value
    if isinstance(value, Mapping):
        made: dict[Any, Any] = {}
        changed = False
        for key, inner in value.items():
            its_key = well_formed(key) if key.__class__ is str else key
            made[its_key] = found = well_formed_value(inner, depth + 1)
            changed = changed or found is not inner or its_key is not key
        return made if changed else value
    if isinstance(value, (list, tuple)):
        items = [well_formed_value(item, depth + 1) for item in value]
        if all(item is before for item, before in zip(items, value, strict=True)):
            return value
        return tuple(items) if value.__class__ is tuple else items
    return well_formed(value) if isinstance(value, str) else value


def decoded(raw: bytes) -> str:
    """Bytes that should be UTF-8, with U+FFFD for what is not; halves of surrogate pairs that were written as such count once."""
    try:
        return well_formed(raw.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")
