"""Read attributes from OTLP's serialized key-value pairs.

Most attributes are short and repeat earlier spans' attributes, so a cache maps their bytes to values. This module's parser reads
most other texts and numbers, because a protobuf object per attribute would take five times as long. Protobuf parses all other
values. Lists and objects are parsed on first use. If they are invalid, their value is None.

The caches have limits for entries and bytes. Cached values are immutable, and depend only on a pair's bytes.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from .otlp import _finite, _proto_value
from .schemas import MESSAGES, mended
from .wire import Unread

_SHORT = 80
"""Pairs with at least this many bytes aren't cached, because long values rarely repeat, and hashing long values takes time."""
_MOST_PAIRS = 4_096
_MOST_KEYS = 4_096
_LONGEST_KEY = 0x7F + 2
"""Maximum end position of a key in a pair. A longer key's length takes more than one byte."""

_parse_pair = MESSAGES["Pair"].FromString
_real = struct.Struct("<d").unpack_from
_lengths = struct.Struct("<BHBH").unpack_from
"""Reads a value's tag and length, and then the tag and length of the text in this value."""

_known: dict[bytes, tuple[str, Any]] = {}
_known_lists: dict[bytes, tuple[str, tuple[Any, ...]]] = {}
"""Maps the bytes of short pairs to (key, list of immutable values). Each caller receives a new list."""
_known_keys: dict[bytes, str] = {}


def pairs_of(raw_pairs: Iterable[bytes]) -> tuple[dict[str, Any], list[str]]:
    """Return (attributes in order, keys whose values might still be :class:`Unread`). The last value of a repeated key wins.
    Raises DecodeError or UnicodeDecodeError for invalid bytes.
    """
    found: dict[str, Any] = {}
    unread: list[str] = []
    known = _known.get
    for raw in raw_pairs:
        if len(raw) < _SHORT:
            key, found[key] = known(raw) or _read_short(raw, unread)
        else:
            key, found[key] = _long_text(raw) or _read(raw, unread)
    return found, unread


def attributes_of(raw_pairs: Iterable[bytes]) -> dict[str, Any]:
    """Parse all attributes, including lists and objects. Raises the same errors as :func:`pairs_of`."""
    found, unread = pairs_of(raw_pairs)
    return read_all(found, unread) if unread else found


def read_all(found: dict[str, Any], unread: Iterable[str]) -> dict[str, Any]:
    for key in unread:
        value = found[key]
        if value.__class__ is Unread:
            found[key] = value.read()
    return found


_UNCHANGEABLE = frozenset((str, int, float, bool, type(None)))


def _read_short(raw: bytes, unread: list[str]) -> tuple[str, Any]:
    """Parse a short key-value pair. Cache the pair if its value is immutable. If the value is a cached list, return a copy."""
    if raw in _known_lists:
        key, items = _known_lists[raw]
        return key, list(items)
    pair = _read(raw, unread)
    if pair[1].__class__ in _UNCHANGEABLE:
        if len(_known) >= _MOST_PAIRS:
            _known.clear()
        _known[raw] = pair
    return pair


def _read(raw: bytes, unread: list[str]) -> tuple[str, Any]:
    if (pair := _read_in_order(raw)) is None:
        parsed = _parse_pair(raw)
        return parsed.key, value_of(parsed.value)
    if pair[1].__class__ is Unread:
        unread.append(pair[0])
    return pair


def _long_text(raw: bytes) -> tuple[str, str] | None:
    """Return a pair's key and text. Return None if :func:`_read` must parse the pair, for example because its text is too long."""
    end = raw[1] + 2
    size = len(raw) - end - 6
    if raw[0] != _KEY or end > _LONGEST_KEY:
        return None
    # The pair's length determines these lengths, so they are compared, not parsed.
    if 0x80 <= size < 0x3FFD:  # both take two bytes
        value, outer, text, inner = _lengths(raw, end)
        if value == _VALUE and text == _TEXT and inner == (size << 1 & 0x7F00 | size & 0x7F | 0x80):
            size += 3
            if outer == (size << 1 & 0x7F00 | size & 0x7F | 0x80):
                key = raw[2:end]
                return _known_keys.get(key) or _key(key), raw[end + 6 :].decode()
    elif -6 < size < 0x7C and raw[end : end + 4] == _SHORT_TEXTS[size + 6]:  # both take one byte
        key = raw[2:end]
        return _known_keys.get(key) or _key(key), raw[end + 4 :].decode()
    return None


def _read_later(raw: bytes, at: int) -> Any:
    """Parse the list, object, or bytes at position ``at`` in a pair. Return None if parsing fails."""
    value = _any_value(raw[at:])
    if len(raw) < _SHORT and value.__class__ is list and all(item.__class__ in _UNCHANGEABLE for item in value):
        if len(_known_lists) >= _MOST_PAIRS:
            _known_lists.clear()
        _known_lists[raw] = _key(raw[2 : raw[1] + 2]), tuple(value)
    return value


_KEY, _VALUE = 0x0A, 0x12
"""Tags of a pair's two fields."""
_TEXT, _WHOLE, _REAL = 0x0A, 0x18, 0x21
_SHORT_TEXTS = tuple(bytes((_VALUE, size - 2, _TEXT, size - 4)) if size >= 4 else b"" for size in range(0x82))
"""Tags and lengths at the start of a text value. The index is the total size of the value's field."""
_NOT_PLAIN = frozenset((0x2A, 0x32, 0x3A))
"""Tags of values that are lists, objects, or bytes."""


def _read_in_order(raw: bytes) -> tuple[str, Any] | None:
    """Parse a pair if its fields have the usual order. Return None if protobuf must parse the pair."""
    try:
        end = raw[1] + 2
        if raw[0] != _KEY or end > _LONGEST_KEY or raw[end] != _VALUE:
            return None
        size, start = _length(raw, end + 1)
        if start + size != len(raw):
            return None
        tag = raw[start]
        if tag == _TEXT or tag in _NOT_PLAIN:
            size, at = _length(raw, start + 1)
            if at + size != len(raw):
                return None
            return _key(raw[2:end]), raw[at:].decode() if tag == _TEXT else Unread(partial(_read_later, raw, start))
        if tag == _WHOLE:
            number, at = _length(raw, start + 1)
            return (_key(raw[2:end]), number) if at == len(raw) and number < 1 << 63 else None
        if tag == _REAL and size == 9:
            return _key(raw[2:end]), _finite(_real(raw, start + 1)[0])
    except IndexError:
        pass
    return None


def _length(raw: bytes, at: int) -> tuple[int, int]:
    """Return (varint, position after the varint). Raises IndexError if the varint has more than nine bytes."""
    value = raw[at]
    at += 1
    if value < 0x80:
        return value, at
    value &= 0x7F
    for shift in range(7, 63, 7):
        byte = raw[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise IndexError


def _key(raw: bytes) -> str:
    if (key := _known_keys.get(raw)) is None:
        key = raw.decode()
        if len(_known_keys) >= _MOST_KEYS:
            _known_keys.clear()
        _known_keys[raw] = key
    return key


def value_of(value: Any) -> Any:
    if (kind := value.WhichOneof("kind")) is None:
        return None
    if kind == "real":
        return _finite(value.real)
    return getattr(value, kind) if kind not in ("array", "pairs", "raw") else _any_value(value.SerializeToString())


def _any_value(raw: bytes) -> Any:
    try:
        try:
            value = AnyValue.FromString(raw)
        except DecodeError:
            if (better := mended(raw, "common.v1.AnyValue")) is None:
                return None
            value = AnyValue.FromString(better)
        return _proto_value(value, 0)
    except (DecodeError, RecursionError):
        return None
