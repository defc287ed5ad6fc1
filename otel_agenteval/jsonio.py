"""JSON in and out: orjson where it is installed, the standard library where not; no input can crash or hang it.

Telemetry cuts strings in the middle (attribute length limits, Collectors), so there is also a reader that keeps what a
cut document still holds. Depth is bounded by the parsers; a document that is too deep is "not JSON".
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

try:
    import orjson
except ImportError:  # a platform without wheels: slower, same results
    orjson = None  # type: ignore[assignment]

MAX_DEPTH = 200
"""Deepest nesting that is read at all; deeper content is kept as text."""


def _reject_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def loads(text: str | bytes) -> Any:
    """Parse strict JSON (RFC 8259: no NaN, no comments).

    Raises:
        ValueError: not JSON, or nested deeper than the parser allows.
    """
    if orjson is not None:
        try:
            return orjson.loads(text)
        except orjson.JSONDecodeError:
            # orjson refuses lone surrogates (and integers are cut to float past 64 bits); the standard library does not
            if not _worth_second_look(text):
                raise
    try:
        return json.loads(text, parse_constant=_reject_constant)
    except RecursionError:
        raise ValueError("nested too deep") from None


def _worth_second_look(text: str | bytes) -> bool:
    return (
        isinstance(text, str)
        and len(text) < 1_000_000
        and ("\\ud" in text or "\\uD" in text or not text.isprintable())
        and text.count("[") + text.count("{") < 5_000
    )


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\Z)', re.DOTALL)
_OBJECT, _LIST, _VALUE = 256, 96, 64
"""Bytes that Python takes for an object with one member, a list, and a value."""
_FOUR_BYTES = (*(bytes((lead,)) for lead in range(0xF0, 0xF5)), b"\\ud", b"\\uD")
"""Where a character stands that takes four bytes: then all of its text do."""


def weight(document: bytes) -> int:
    """Bytes that what a JSON document says takes at most as Python objects, without parsing it: up to fifty times its length."""
    text = len(document) * (4 if any(mark in document for mark in _FOUR_BYTES) else 1 if document.isascii() else 2)
    structure = _structure(document)
    if structure > 4 * len(document):  # in earnest, or only in the texts of it
        structure = _structure(_STRING.sub(b'""', document))
    return text + structure


def _structure(document: bytes) -> int:
    objects, lists = document.count(b"{"), document.count(b"[")
    return _OBJECT * objects + _LIST * lists + _VALUE * (document.count(b",") + document.count(b":"))


def loads_lenient(text: str | bytes) -> Any:
    """As :func:`loads`, but bare NaN and Infinity are taken too: some programs write them into telemetry.

    Raises:
        ValueError: not JSON, or nested deeper than the parser allows.
    """
    try:
        return loads(text)
    except ValueError:
        raw = text if isinstance(text, bytes) else text.encode(errors="replace")
        if b"NaN" not in raw and b"Infinity" not in raw:
            raise
    try:
        return json.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def loads_or_text(text: str) -> tuple[Any, bool]:
    """The value of a JSON document, what is left of one that was cut, or the text itself; and whether it was cut."""
    try:
        return loads(text), False
    except ValueError:
        pass
    if text[:1] in '[{"':
        repaired = loads_cut(text)
        if repaired is not None:
            return repaired, True
    return text, False


def loads_cut(text: str) -> Any:
    """What a JSON document that was cut at its end still holds, or None if that is nothing."""
    from pydantic_core import from_json

    try:
        value = from_json(text, allow_partial="trailing-strings", allow_inf_nan=False)
    except ValueError:
        return None
    return value if value not in ([], {}, "") else None


def dumps(value: Any) -> str:
    """Compact JSON text; objects that JSON does not know become their ``str``, non-finite numbers null."""
    if orjson is not None:
        try:
            return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
        except (TypeError, ValueError, RecursionError):  # lone surrogates, integers past 64 bits, circular or too deep
            pass
    try:
        return json.dumps(_finite(value, 0), default=str, separators=(",", ":"), ensure_ascii=True)
    except (ValueError, RecursionError):
        return json.dumps(str(type(value)))


def _finite(value: Any, depth: int) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {str(k): _finite(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v, depth + 1) for v in value]
    return value


def text_of(value: Any) -> str:
    """Text as it is, anything else as compact JSON (``5`` → ``5``, ``True`` → ``true``)."""
    return value if isinstance(value, str) else "" if value is None else dumps(value)
