"""Rebuild color profiles (ICC) of images without texts.

A profile can contain its vendor, device and owner, and arbitrary data. Only primaries, white point and curves are
kept. Each is parsed and written again. Profiles with lookup tables, such as those of printers, are removed, because
judges don't use them.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence

_LARGEST = 1 << 20
"""Maximum size of a profile that is read, in bytes."""
_LARGEST_KEPT = 60_000
"""Maximum size of a profile that is kept, in bytes. It must fit into one segment of a JPEG."""
_NEEDED = {b"RGB ": (b"rXYZ", b"gXYZ", b"bXYZ", b"rTRC", b"gTRC", b"bTRC", b"wtpt"), b"GRAY": (b"kTRC", b"wtpt")}
_CLASSES = (b"mntr", b"scnr", b"spac")
_FIXED = 65_536
"""The value 1 as a fixed-point number with 16 fractional bits."""
_DATE = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)
_D50 = struct.pack(">3i", 0xF6D6, 0x10000, 0xD32D)
_PARAMETERS = (1, 3, 4, 5, 7)
"""Number of parameters of each kind of curve."""


def without_texts(profile: bytes) -> bytes | None:
    """Return an equivalent profile without texts, or None if the profile is broken or uses lookup tables."""
    space = profile[16:20]
    if len(profile) > _LARGEST or profile[36:40] != b"acsp" or profile[12:16] not in _CLASSES or profile[20:24] != b"XYZ ":
        return None
    try:
        tags = _tags(profile)
        kept = {name: _READERS[tags[name][:4]](tags[name]) for name in _NEEDED[space]}
        if b"chad" in tags:
            kept[b"chad"] = _numbers(tags[b"chad"], b"sf32", 9)
        return _profile(space, 4 if profile[8] >= 4 else 2, kept)
    except (struct.error, IndexError, KeyError, ValueError):
        return None


def _tags(profile: bytes) -> dict[bytes, bytes]:
    (count,) = struct.unpack_from(">I", profile, 128)
    found = {}
    for number in range(min(count, 100)):
        name, start, size = struct.unpack_from(">4sII", profile, 132 + 12 * number)
        found[name] = profile[start : start + size]
    return found


def _profile(space: bytes, version: int, tags: dict[bytes, bytes]) -> bytes | None:
    place = 132 + 12 * len(tags)
    table, body = struct.pack(">I", len(tags)), b""
    for name, data in tags.items():
        table += struct.pack(">4sII", name, place + len(body), len(data))
        body += data + bytes(-len(data) % 4)
    size = place + len(body)
    head = struct.pack(">I4x", size) + bytes((version, 0x30 if version == 4 else 0x40, 0, 0)) + b"mntr" + space + b"XYZ " + _DATE
    head += b"acsp" + bytes(28) + _D50
    return head.ljust(128, b"\0") + table + body if size <= _LARGEST_KEPT else None


def _numbers(data: bytes, kind: bytes, count: int) -> bytes:
    """Return a tag with ``count`` numbers. Numbers large enough to encode four letters of text aren't accepted."""
    found = struct.unpack_from(f">{count}i", data, 8)
    return kind + bytes(4) + struct.pack(f">{count}i", *_sane(found))


def _sane(numbers: Sequence[int]) -> Sequence[int]:
    if any(abs(number) > 16 * _FIXED for number in numbers):
        raise ValueError("a number is out of range")
    return numbers


def _table(data: bytes) -> bytes:
    """Return a curve given as a table. Its values must never decrease, which excludes texts."""
    (count,) = struct.unpack_from(">I", data, 8)
    points = struct.unpack_from(f">{min(count, _LARGEST)}H", data, 12)
    if list(points) != sorted(points):
        raise ValueError("the curve decreases")
    return b"curv" + bytes(4) + struct.pack(f">I{count}H", count, *points)


def _formula(data: bytes) -> bytes:
    (kind,) = struct.unpack_from(">H", data, 8)
    count = _PARAMETERS[kind]
    return b"para" + bytes(4) + struct.pack(f">H2x{count}i", kind, *_sane(struct.unpack_from(f">{count}i", data, 12)))


_READERS: dict[bytes, Callable[[bytes], bytes]] = {
    b"XYZ ": lambda data: _numbers(data, b"XYZ ", 3), b"curv": _table, b"para": _formula,
}  # fmt: skip
