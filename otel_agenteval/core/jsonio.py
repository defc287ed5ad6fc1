"""JSON parsing and writing that no text can crash or stall.

SDKs and Collectors truncate long attributes, so :func:`loads_cut` recovers the readable part of a truncated document. :func:`loads`
rejects documents that are nested too deeply.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Hashable, Mapping
from typing import Any

import orjson

from .wellformed import MAX_DEPTH, decoded, plain, well_formed, written

_ENCODER_DEPTH = 254


def loads(text: str | bytes) -> Any:
    """Parse strict JSON (no NaN), and repair its Unicode. If text is invalid or nested deeper than MAX_DEPTH, raise ValueError."""
    found = _parse(text)
    if len(text) > 2 * MAX_DEPTH:  # a shorter text can't be nested too deeply
        opening = text.count("[") + text.count("{") if isinstance(text, str) else text.count(b"[") + text.count(b"{")
        if opening > MAX_DEPTH and _is_too_deep(found):  # brackets inside strings count too
            raise ValueError("nested too deeply")
    return found


_LONG_NUMBER = b"0" * 19
"""Every integer over 64 bits has at least 19 digits. The search for long integers first replaces all digits with 0."""
_ZEROS_FOR_DIGITS = bytes.maketrans(b"123456789", b"0" * 9)


def loads_exact(text: str) -> Any:
    """Parse like :func:`loads`, but keep integers over 64 bits exact, for comparison. Don't store these integers in a turn."""
    found = loads(text)
    if _LONG_NUMBER in text.encode("utf-8", "surrogatepass").translate(_ZEROS_FOR_DIGITS):
        found = json.loads(_with_valid_unicode(text) or text)
    return found


def _is_too_deep(value: Any) -> bool:
    """Return True if ``value`` is nested deeper than MAX_DEPTH. To reach orjson's higher limit, ``value`` is wrapped in tuples."""
    for _ in range(_ENCODER_DEPTH - MAX_DEPTH):
        value = (value,)
    try:
        orjson.dumps(value)
    except TypeError:
        return True
    return False


def _parse(text: str | bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        repaired = _with_valid_unicode(text)
        if repaired is None:
            raise
    return orjson.loads(repaired)


_ESCAPE = re.compile(
    rb"""\\ (?:
        u[dD][89abAB][0-9a-fA-F]{2} \\u[dD][c-fC-F][0-9a-fA-F]{2}  # a surrogate pair
        | (?P<lone_surrogate> u[dD][89a-fA-F][0-9a-fA-F]{2} )
        | .  # another escape, such as of the backslash in "\\ud800", which is text
    )""",
    re.DOTALL | re.VERBOSE,
)


def _with_valid_unicode(text: str | bytes) -> bytes | None:
    """Return the document with U+FFFD instead of lone surrogates and invalid UTF-8, or None if the document is valid."""
    if isinstance(text, str):
        if "\\ud" not in text and "\\uD" not in text and well_formed(text) is text:  # the usual case: plain text, not JSON
            return None
        raw = text.encode("utf-8", "surrogatepass")
    else:
        raw = bytes(text)
    repaired = decoded(raw).encode()
    if b"\\ud" in repaired or b"\\uD" in repaired:
        repaired = _ESCAPE.sub(lambda found: b"\\ufffd" if found["lone_surrogate"] else found[0], repaired)
    return repaired if repaired != raw else None


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
_OBJECT, _LIST, _VALUE = 256, 96, 64
"""Memory in bytes, rounded up, of a dict, a list, and a short value (including its reference in a dict or list)."""
_WIDEST = 4
"""Maximum bytes per character. In a Python string, each character takes as many bytes as the string's widest character."""
_NEEDS_WIDEST = (*(bytes((lead,)) for lead in range(0xF0, 0xF5)), b"\\ud", b"\\uD")
"""First bytes of characters that need four bytes, in UTF-8 and as a JSON escape."""


def weight(document: bytes) -> int:
    """Estimate the memory in bytes of the parsed document, without parsing it. It can exceed 100 times the document's length."""
    is_wide = any(mark in document for mark in _NEEDS_WIDEST)
    text = len(document) * (_WIDEST if is_wide else 1 if document.isascii() else 2)
    structure = _structure(document)
    if structure > _WIDEST * len(document):  # the structure outweighs any text, so ignore brackets and commas inside strings
        structure = _structure(_STRING.sub(b'""', document))
    return text + structure


def _structure(document: bytes) -> int:
    """Estimate the memory in bytes of objects, lists, and short values from the number of brackets, commas, and colons."""
    objects, lists = document.count(b"{"), document.count(b"[")
    return _OBJECT * objects + _LIST * lists + _VALUE * (document.count(b",") + document.count(b":"))


def loads_lenient(text: str | bytes) -> Any:
    """Parse JSON that can contain NaN and Infinity. The caller must limit nesting. Truncated documents aren't supported."""
    try:
        return _parse(text)
    except ValueError:
        raw = text.encode(errors="replace") if isinstance(text, str) else text
        if b"NaN" not in raw and b"Infinity" not in raw:
            raise
    try:
        return json.loads(_with_valid_unicode(text) or text)
    except RecursionError:
        raise ValueError("nested too deeply") from None


def loads_or_text(text: str) -> tuple[Any, bool]:
    """Return ``(value, False)`` for JSON and ``(text, False)`` for other text. If JSON is cut, return ``(readable part, True)``."""
    try:
        return loads(text), False
    except ValueError:
        pass
    text = well_formed(text)
    repaired = loads_cut(text) if text[:1] in '[{"' and not _goes_on_after_json(text) else None
    return (text, False) if repaired is None else (repaired, True)


def _goes_on_after_json(text: str) -> bool:
    try:
        return json.JSONDecoder().raw_decode(text)[1] < len(text.rstrip())
    except (ValueError, RecursionError):
        return False


def loads_cut(text: str) -> Any:
    """Return the readable part of a truncated JSON document, or None if the document has no readable part."""
    from pydantic_core import from_json

    try:
        value = from_json(text, allow_partial="trailing-strings", allow_inf_nan=False)
    except (ValueError, TypeError):  # half a surrogate pair raises a TypeError
        return None
    return plain(value) if value not in ([], {}, "") else None


def dumps(value: Any) -> str:
    """Return compact JSON. Dates and other libraries' numbers are converted as in
    :func:`.wellformed.written`. Dataclasses and Pydantic models become objects, most other objects text, and NaN or infinity null.
    Don't pass deeply nested tuples, because orjson 3.13 crashes on 2,000 nested tuples.
    """
    try:
        return orjson.dumps(value, default=_of_object, option=orjson.OPT_NON_STR_KEYS | orjson.OPT_PASSTHROUGH_DATETIME).decode()
    except (TypeError, ValueError, RecursionError):  # lone surrogates, integers over 64 bits, circular references, deep nesting
        pass
    try:
        return well_formed(json.dumps(_finite(value, 0), default=_of_object, separators=(",", ":"), ensure_ascii=False))
    except (ValueError, RecursionError):
        return json.dumps(str(type(value)))


def _of_object(value: Any) -> Any:
    dump = getattr(type(value), "model_dump", None)
    return plain(value) if dump is None else dump(value, mode="json")


def _finite(value: Any, depth: int) -> Any:
    if isinstance(value, (float, int)):
        return value if abs(value) <= sys.float_info.max else None
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {str(k): _finite(v, depth + 1) for k, v in value.items()}
    return [_finite(v, depth + 1) for v in value] if isinstance(value, (list, tuple)) else value


def frozen(value: Any) -> Hashable:
    if isinstance(value, (list, tuple)):
        return tuple(map(frozen, value))
    if value is not None and value.__class__ is not str and isinstance(value, Mapping):
        return frozenset([(key, frozen(inner)) for key, inner in value.items()])
    found: Hashable = value
    return found


def text_of(value: Any) -> str:
    """Return a value as text: a string unchanged, None as ``""``, other values as JSON, but without quotes around a JSON string."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    text = dumps(written(value))
    return str(orjson.loads(text)) if text[:1] == '"' else text


def rendered(value: Any) -> str:
    """Return a configured value as text. A whole float has the same text as an integer: ``5.0`` → ``5``."""
    return text_of(int(value) if isinstance(value, float) and value.is_integer() else value)
