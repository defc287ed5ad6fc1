"""JSON in and out; no input can crash or hang it.

Telemetry cuts strings in the middle (attribute length limits, Collectors), so there is also a reader that keeps what a
cut document still holds. Depth is bounded by the parsers; a document that is too deep is "not JSON".
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Hashable, Mapping
from typing import Any

import orjson

from .wellformed import MAX_DEPTH, decoded, plain, well_formed

_ENCODER = 254
"""Deepest nesting that the encoder takes."""


def loads(text: str | bytes) -> Any:
    """Parse strict JSON (RFC 8259: no NaN, no comments).

    Raises:
        ValueError: not JSON, or nested so deep that a turn with it could not be written.
    """
    found = _parsed(text)
    if len(text) > 2 * MAX_DEPTH:
        held = found
        for _ in range(_ENCODER - MAX_DEPTH):
            held = (held,)
        try:
            orjson.dumps(held)  # takes a fifth of the parser's time, and refuses what is deeper
        except TypeError:
            raise ValueError("nested too deep") from None
    return found


def _parsed(text: str | bytes) -> Any:
    try:
        return orjson.loads(text)
    except ValueError:
        mended = _mended(text)
        if mended is None:
            raise
    return orjson.loads(mended)


_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}(\\u[dD][c-fC-F][0-9a-fA-F]{2})|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)


def _mended(text: str | bytes) -> bytes | None:
    """A document without halves of surrogate pairs and bytes that are not UTF-8; None where it has none."""
    if isinstance(text, str):
        if "\\ud" not in text and "\\uD" not in text and well_formed(text) is text:  # nearly always: it is plain text, no JSON
            return None
        raw = text.encode("utf-8", "surrogatepass")
    else:
        raw = bytes(text)
    mended = _as_utf8(raw)
    if b"\\ud" in mended or b"\\uD" in mended:
        mended = _ESCAPE.sub(_whole_pair, mended)
    return mended if mended != raw else None


def _as_utf8(raw: bytes) -> bytes:
    try:
        raw.decode()
    except UnicodeDecodeError:
        return decoded(raw).encode()
    return raw


def _whole_pair(found: re.Match[bytes]) -> bytes:
    return b"\\ufffd" if found[2] else found[0]


_STRING = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)', re.DOTALL)
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
    """As :func:`loads`, but bare NaN and Infinity are taken too: some programs write them into telemetry. For whole documents, whose
    reader bounds the depth of each value in them.

    Raises:
        ValueError: not JSON, or nested deeper than the parser allows.
    """
    try:
        return _parsed(text)
    except ValueError:
        raw = text.encode(errors="replace") if isinstance(text, str) else text
        if b"NaN" not in raw and b"Infinity" not in raw:
            raise
    try:
        return json.loads(_mended(text) or text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def loads_or_text(text: str) -> tuple[Any, bool]:
    """The value of a JSON document, what is left of one that was cut, or the text itself; and whether it was cut."""
    try:
        return loads(text), False
    except ValueError:
        pass
    text = well_formed(text)
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
    return plain(value) if value not in ([], {}, "") else None


def dumps(value: Any) -> str:
    """Compact JSON text that :func:`loads` reads; objects that JSON does not know become their ``str``, non-finite numbers null."""
    try:
        return orjson.dumps(value, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except (TypeError, ValueError, RecursionError):  # halves of surrogate pairs, integers past 64 bits, circular or too deep
        pass
    try:
        text = json.dumps(_finite(value, 0), default=str, separators=(",", ":"), ensure_ascii=False)
        return well_formed(text)
    except (ValueError, RecursionError):
        return json.dumps(str(type(value)))


def _finite(value: Any, depth: int) -> Any:
    if isinstance(value, (float, int)):
        return value if abs(value) <= sys.float_info.max else None
    if depth > MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        return {str(k): _finite(v, depth + 1) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(v, depth + 1) for v in value]
    return value


def frozen(value: Any) -> Hashable:
    """Return what stands for a JSON value where a hash is needed: equal for equal values, and for no others."""
    if isinstance(value, Mapping):
        return frozenset((key, frozen(inner)) for key, inner in value.items())
    return tuple(map(frozen, value)) if isinstance(value, (list, tuple)) else value


def text_of(value: Any) -> str:
    """Text as it is, anything else as compact JSON (``5`` → ``5``, ``True`` → ``true``)."""
    return value if isinstance(value, str) else "" if value is None else dumps(value)
