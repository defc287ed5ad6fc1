"""Text and values that any encoder takes. Python's text can hold half of a surrogate pair, which UTF-8, SQLite, protobuf and JSON parsers
refuse. Python's values can have keys that aren't text, numbers without a value, and any depth.

Programs cut text in the middle of an emoji and write whatever their objects print. None of that may cost the batch, line or job that it
stands in. Whatever comes in from outside is cleaned where it comes in, by one of these functions, so that no later stage has to care.
"""

from __future__ import annotations

import base64
import math
import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Any

from .later import Later

_SURROGATE = re.compile("[\ud800-\udfff]")
MAX_DEPTH = 200
"""Deepest nesting of a value that is read. With what stands around it in a turn, the encoder takes no more than 254."""
_LEAST, _MOST = -(2**63), 2**64 - 1
"""Whole numbers that parsers and encoders take."""
_WORDS = {None: "null", False: "false", True: "true"}


def well_formed(text: str) -> str:
    """The text with U+FFFD for each half of a surrogate pair; two halves that belong together become their character."""
    if text.isascii() or _SURROGATE.search(text) is None:
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def plain(value: Any, depth: int = 0) -> Any:
    """Return a foreign value with JSON types only: text keys, finite numbers of 64 bits, well-formed texts, bounded depth.

    Whatever needs no change is returned as it is, and so is what is read :class:`.Later`. Bytes become base64, larger whole numbers become floats, other objects their text, and
    what is nested too deep becomes None.
    """
    kind = value.__class__
    if kind is str:
        return well_formed(value)
    if kind is int:
        return value if _LEAST <= value <= _MOST else _real(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if value is None or kind is bool or kind is Later:
        return value
    if isinstance(value, (Mapping, list, tuple, AbstractSet)):
        return None if depth >= MAX_DEPTH else _plain_container(value, depth + 1)
    if isinstance(value, (bytes, bytearray)):
        return base64.b64encode(value).decode()
    try:
        if isinstance(value, (int, float)):  # members of enumerations, and numbers of other libraries
            return plain(value.__index__() if isinstance(value, int) else float(value))
        return well_formed(str.__str__(value) if isinstance(value, str) else str(value))
    except Exception:  # objects of the application can do anything
        return None


def _plain_container(value: Any, depth: int) -> Any:
    if isinstance(value, Mapping):
        made: dict[str, Any] = {}
        changed = value.__class__ is not dict
        for key, inner in value.items():
            its_key = well_formed(key) if key.__class__ is str else _key(key)
            made[its_key] = found = plain(inner, depth)
            changed = changed or found is not inner or its_key is not key
        return made if changed else value
    items = [plain(item, depth) for item in value]
    if isinstance(value, AbstractSet):
        return sorted(items, key=str)  # the same order in every process
    if all(item is before for item, before in zip(items, value, strict=True)):
        return value
    return tuple(items) if value.__class__ is tuple else items


def _key(key: Any) -> str:
    """A key as JSON's writers write it."""
    if key is None or key.__class__ is bool:
        return _WORDS[key]
    return str(found) if (found := plain(key)) is not None else ""


def _real(number: int) -> float | None:
    try:
        return float(number)
    except OverflowError:
        return None


def decoded(raw: bytes) -> str:
    """Bytes that should be UTF-8, with U+FFFD for what is not; halves of surrogate pairs that were written as such count once."""
    try:
        return well_formed(raw.decode("utf-8", "surrogatepass"))
    except UnicodeDecodeError:
        return raw.decode("utf-8", "replace")
