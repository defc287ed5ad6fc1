"""Attributes as OTLP sends them: a list of pairs of a key and a value, in bytes.

Most pairs of a span are short and came before, in other spans: these are known by their bytes. Of the others, a key with a text or a
number, in the order in which every writer in use puts them, is read here, because an object of protobuf's for each would cost
five times as much. Whatever looks otherwise is left to protobuf, so that nothing is accepted here which it refuses. Lists and objects
are read where somebody asks for them.

What is known is bounded in number and size, holds nothing that can be changed, and depends on the bytes alone.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from functools import partial
from typing import Any

from google.protobuf.message import DecodeError
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from .otlp import _finite, _proto_value
from .schemas import MESSAGES
from .utf8 import mended
from .wire import Unread

_SHORT = 80
"""Bytes of a pair from which it is not kept: its value is hardly the same again, and finding it would mean to hash it."""
_MOST_PAIRS = 4_096
_MOST_KEYS = 4_096
_LONGEST_KEY = 0x7F + 2
"""Where a key ends at most whose length takes one byte."""

_parse_pair = MESSAGES["Pair"].FromString
_real = struct.Struct("<d").unpack_from
_lengths = struct.Struct("<BHBH").unpack_from
"""Tag and length of a value, tag and length of its text."""

_known: dict[bytes, tuple[str, Any]] = {}
"""Short pairs that were read before, with values that cannot be changed."""
_known_lists: dict[bytes, tuple[str, tuple[Any, ...]]] = {}
"""The same for short lists of such values: each reader gets a list of its own."""
_known_keys: dict[bytes, str] = {}


def pairs_of(raw_pairs: Iterable[bytes]) -> tuple[dict[str, Any], list[str]]:
    """Attributes in the order in which they came, and the keys of those whose value is an :class:`Unread` one. The last of two equal
    keys counts.

    Raises:
        DecodeError: a pair is none.
        UnicodeDecodeError: a text is not UTF-8.
    """
    found: dict[str, Any] = {}
    unread: list[str] = []
    known = _known.get
    for raw in raw_pairs:
        if len(raw) < _SHORT:
            pair = known(raw) or _read_short(raw, unread)
        else:
            pair = _long_text(raw) or _read(raw, unread)
        key, found[key] = pair
    return found, unread


def attributes_of(raw_pairs: Iterable[bytes]) -> dict[str, Any]:
    """All attributes, read. Raises as :func:`pairs_of`."""
    found, unread = pairs_of(raw_pairs)
    return read_all(found, unread) if unread else found


def read_all(found: dict[str, Any], unread: Iterable[str]) -> dict[str, Any]:
    """The same attributes after those of some keys were read too."""
    for key in unread:
        value = found[key]
        if value.__class__ is Unread:
            found[key] = value.read()
    return found


_UNCHANGEABLE = frozenset((str, int, float, bool, type(None)))


def _read_short(raw: bytes, unread: list[str]) -> tuple[str, Any]:
    """A short pair that is not known. From now on it is, if its value cannot be changed."""
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
    pair = _read_in_order(raw)
    if pair is None:
        return _read_by_protobuf(raw)
    if pair[1].__class__ is Unread:
        unread.append(pair[0])
    return pair


def _long_text(raw: bytes) -> tuple[str, str] | None:
    """A key with a text of 128 to 16,380 bytes, as content mostly is; None for any other pair."""
    end = raw[1] + 2
    size = len(raw) - end - 6
    if raw[0] == _KEY and end <= _LONGEST_KEY and 0x80 <= size < 0x3FFD:
        # Both lengths take two bytes, and are told by the length of the pair: they are compared, not read.
        value, outer, text, inner = _lengths(raw, end)
        if value == _VALUE and text == _TEXT and inner == (size << 1 & 0x7F00 | size & 0x7F | 0x80):
            size += 3
            if outer == (size << 1 & 0x7F00 | size & 0x7F | 0x80):
                key = raw[2:end]
                return _known_keys.get(key) or _key(key), raw[end + 6 :].decode()
    return None


def _read_later(raw: bytes, at: int) -> Any:
    """The list or object that begins at a place in a pair; None for one that cannot be read."""
    value = _any_value(raw[at:])
    if len(raw) < _SHORT and value.__class__ is list and all(item.__class__ in _UNCHANGEABLE for item in value):
        if len(_known_lists) >= _MOST_PAIRS:
            _known_lists.clear()
        _known_lists[raw] = _key(raw[2 : raw[1] + 2]), tuple(value)
    return value


_KEY, _VALUE = 0x0A, 0x12
"""Tags of the two fields of a pair."""
_TEXT, _WHOLE, _REAL = 0x0A, 0x18, 0x21
_NOT_PLAIN = frozenset((0x2A, 0x32, 0x3A))
"""Tags of the kinds of a value: lists, objects and bytes are the last."""


def _read_in_order(raw: bytes) -> tuple[str, Any] | None:
    """A pair of a key and a value of one kind, each once, in this order; None for any other."""
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
    """A number as protobuf writes it, and where it ends. One that takes more than nine bytes is none that is read here."""
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
    key = _known_keys.get(raw)
    if key is None:
        key = raw.decode()
        if len(_known_keys) >= _MOST_KEYS:
            _known_keys.clear()
        _known_keys[raw] = key
    return key


def _read_by_protobuf(raw: bytes) -> tuple[str, Any]:
    """Any pair.

    Raises:
        DecodeError: it is none, or a text in it is not UTF-8.
    """
    pair = _parse_pair(raw)
    return pair.key, value_of(pair.value)


def value_of(value: Any) -> Any:
    """What a value of protobuf's says; None for one that is not set or cannot be read."""
    kind = value.WhichOneof("kind")
    if kind is None:
        return None
    if kind == "real":
        return _finite(value.real)
    return getattr(value, kind) if kind not in ("array", "pairs", "raw") else _any_value(value.SerializeToString())


def _any_value(raw: bytes) -> Any:
    """The value in an AnyValue; None for one that cannot be read."""
    try:
        try:
            value = AnyValue.FromString(raw)
        except DecodeError:
            better = mended(raw, "common.v1.AnyValue")
            if better is None:
                return None
            value = AnyValue.FromString(better)
        return _proto_value(value, 0)
    except (DecodeError, RecursionError):
        return None
