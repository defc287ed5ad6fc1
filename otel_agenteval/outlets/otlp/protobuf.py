"""Encoder for the subset of the protobuf wire format that OTLP uses.

The generated protobuf classes need microseconds per field. Most fields repeat with the same value, so this encoder caches each
field's bytes. Tests compare each message with the output of the protobuf classes.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from ...core.wellformed import well_formed

FIXED64, BYTES, FIXED32 = 1, 2, 5
"""Wire types, which are the lower three bits of a field's tag."""

as_fixed64: Callable[[int], bytes] = struct.Struct("<Q").pack
as_fixed32: Callable[[int], bytes] = struct.Struct("<I").pack
as_double: Callable[[float], bytes] = struct.Struct("<d").pack

_MAX_NESTING = 16
_MAX_KEYS = 256
"""Maximum number of keys that a writer caches, and maximum number of cached boolean or integer attributes."""
_MAX_LENGTH = 512
"""Maximum length of a cached key, and of a string whose encoded prefix (tags and lengths) is cached."""


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)


_VARINTS = tuple(_varint(number) for number in range(4096))


def varint(number: int) -> bytes:
    return _VARINTS[number] if number < 4096 else _varint(number)


def tag(field: int, kind: int) -> bytes:
    return varint(field << 3 | kind)


def delimited(field: int, *parts: bytes) -> bytes:
    """Encode a length-delimited field (message, bytes, or string). The field's value is the concatenation of ``parts``."""
    body = b"".join(parts)
    return b"".join((tag(field, BYTES), varint(len(body)), body))


def utf8(text: str) -> bytes:
    """Encode a string as UTF-8. Lone surrogates become U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        return well_formed(text).encode()


def any_value(value: Any, depth: int = 0) -> bytes:
    """Encode an ``AnyValue``. Integers that exceed 64 bits become strings. Unsupported or deeply nested values become empty."""
    if isinstance(value, str):
        return delimited(1, utf8(value))
    if isinstance(value, bool):
        return b"\x10\x01" if value else b"\x10\x00"
    if isinstance(value, int):
        if -(2**63) <= value < 2**63:
            return b"\x18" + varint(value & 0xFFFF_FFFF_FFFF_FFFF)
        return delimited(1, utf8(str(value)))
    if isinstance(value, float):
        return b"\x21" + as_double(value)
    if isinstance(value, bytes):
        return delimited(7, value)
    if depth < _MAX_NESTING:
        if isinstance(value, Mapping):
            return delimited(6, *[delimited(1, _pair(str(key), any_value(inner, depth + 1))) for key, inner in value.items()])
        if isinstance(value, (list, tuple)):
            return delimited(5, *[delimited(1, any_value(inner, depth + 1)) for inner in value])
    return b""


def _pair(key: str, value: bytes) -> bytes:
    """Encode a ``KeyValue``. ``value`` is an encoded ``AnyValue``. An empty ``value`` is omitted."""
    return delimited(1, utf8(key)) + (delimited(2, value) if value else b"")


class TextWriter:
    """Encoder for one attribute key with string values. ``before`` is the encoded tag of the attribute's field."""

    __slots__ = ("_before", "_heads", "_key")

    def __init__(self, before: bytes, key: str) -> None:
        self._before = before
        self._key = delimited(1, utf8(key)) + tag(2, BYTES)
        self._heads: dict[int, bytes] = {}

    def __call__(self, text: str) -> bytes:
        raw = utf8(text)
        length = len(raw)
        return (self._heads.get(length) or self.head(length)) + raw

    def head(self, length: int) -> bytes:
        value = tag(1, BYTES) + varint(length)
        pair = self._key + varint(len(value) + length) + value
        head = self._before + varint(len(pair) + length) + pair
        if length <= _MAX_LENGTH:
            self._heads[length] = head
        return head


class AttributeWriter:
    def __init__(self, field: int) -> None:
        self._tag = tag(field, BYTES)
        self._texts: dict[str, TextWriter] = {}
        self._plain: dict[tuple[str, type, object], bytes] = {}

    def write(self, attributes: Mapping[str, Any]) -> bytes:
        texts, plain = self._texts, self._plain
        out: list[bytes] = []
        for key, value in attributes.items():
            if value.__class__ is str:
                out.append((texts.get(key) or self.text(key))(value))
            elif value.__class__ is bool or value.__class__ is int:
                known = plain.get((key, value.__class__, value))
                if known is None:
                    known = self.pair(key, value)
                    if len(plain) < _MAX_KEYS and len(key) <= _MAX_LENGTH:
                        plain[key, value.__class__, value] = known
                out.append(known)
            else:
                out.append(self.pair(key, value))
        return b"".join(out)

    def text(self, key: str) -> TextWriter:
        found = self._texts.get(key)
        if found is None:
            found = TextWriter(self._tag, key)
            if len(self._texts) < _MAX_KEYS and len(key) <= _MAX_LENGTH:
                self._texts[key] = found
        return found

    def double_head(self, key: str) -> bytes:
        """Return the encoded start of a float attribute. The caller appends the value, encoded by :data:`as_double`."""
        return self.pair(key, 0.0)[:-8]

    def pair(self, key: str, value: Any) -> bytes:
        """Encode one attribute. If :func:`any_value` doesn't support the value, the attribute has only a key."""
        pair = _pair(key, any_value(value))
        return b"".join((self._tag, varint(len(pair)), pair))
