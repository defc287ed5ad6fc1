"""Functions that remove metadata, such as locations, names, comments, and previews, from images and WAV files.

Pixels and samples stay unchanged, byte for byte, because the content isn't decoded. Each format has an allowlist of chunks that
affect the pixels or the sound. All other chunks are removed. The orientation in a JPEG's Exif data is
kept, so that the image stays upright.

Color profiles (ICC) can name a vendor, device, or owner, and contain arbitrary data. Only primaries, white point, and curves are
copied to a new profile. Profiles with lookup tables, such as printer profiles, are removed, because judges don't use them.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable, Iterator, Sequence

from ..core.errors import MetricError
from .access import type_of

_ORIENTATION = 0x0112
_ANY = 1 << 31
_CHUNKS = {
    b"IHDR": 13, b"PLTE": 768, b"IDAT": _ANY, b"IEND": 0, b"tRNS": 256, b"gAMA": 4, b"cHRM": 32, b"sRGB": 1, b"sBIT": 4, b"bKGD": 6, b"acTL": 8,
    b"fcTL": 26, b"fdAT": _ANY, b"cICP": 4,
}  # fmt: skip
"""Mapping from PNG chunks that affect the picture to their maximum length in bytes."""
_RIFF = {b"VP8 ": _ANY, b"VP8L": _ANY, b"ALPH": _ANY, b"ANIM": 6}
"""Mapping from WebP chunks that affect the picture to their maximum length in bytes."""
_WAVE = {b"fmt ": 64, b"fact": 12, b"data": 1 << 32}
_FRAME_HEAD = 16
_PROFILE_FLAG, _SEE_THROUGH_OR_MOVING = 0x20, 0x12
"""Flags in a WebP file's header. The first flag is for a color profile, the second for transparency or animation."""
_JFIF = b"\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0"
"""JPEG segment that marks standard colors, without a preview image."""
_ADOBE = b"\xff\xee\0\x0eAdobe\0\x64\0\0\0\0"


def without_metadata(data: bytes) -> bytes:
    """Remove metadata from PNG, JPEG, WebP, GIF, and WAV files, but not from other types. Raises MetricError for a broken file."""
    strip = _STRIP.get(type_of(data) or "")
    try:
        return data if strip is None else strip(data)
    except (IndexError, ValueError, struct.error):
        raise MetricError("invalid_media", "the media file is broken or truncated") from None


# --- PNG


def _png(data: bytes) -> bytes:
    out, place = [data[:8]], 8
    while place < len(data):
        size, name = struct.unpack_from(">I4s", data, place)
        end = place + 12 + size
        if end > len(data):
            raise IndexError
        if size <= _CHUNKS.get(name, -1):
            out.append(data[place:end])
        elif name == b"iCCP":
            out += _png_profile(data[place + 8 : end - 4])
        elif name in (b"IHDR", b"IEND"):
            raise IndexError
        place = end
        if name == b"IEND":
            return b"".join(out)
    raise IndexError


def _png_profile(chunk: bytes) -> Iterator[bytes]:
    packed = chunk[chunk.index(0) + 2 :]
    try:
        profile = without_texts(zlib.decompressobj().decompress(packed, _LARGEST_READ))
    except zlib.error:
        return
    if profile is not None:
        body = b"iCCPicc\0\0" + zlib.compress(profile)
        yield struct.pack(">I", len(body) - 4) + body + struct.pack(">I", zlib.crc32(body))


# --- JPEG


def _jpeg(data: bytes) -> bytes:
    head: dict[int, bytes] = {}
    out: list[bytes] = []
    profile: list[tuple[int, bytes]] = []
    place = 2
    while True:
        if data[place] != 0xFF:
            raise IndexError
        while data[place + 1] == 0xFF:  # padding
            place += 1
        marker = data[place + 1]
        if marker == 0xD9:  # a second image with its own metadata may follow
            head[0xE2] = _jpeg_profile(profile)
            return b"".join((data[:2], *(head[one] for one in sorted(head)), *out, b"\xff\xd9"))
        (size,) = struct.unpack_from(">H", data, place + 2)
        end = place + 2 + size
        if size < 2 or end > len(data):
            raise IndexError
        body = data[place + 4 : end]
        end = _end_of_scan(data, end) if marker == 0xDA else end
        if marker in _LENGTHS:
            if len(body) != _LENGTHS[marker](body):
                raise IndexError
            out.append(data[place:end])
        elif marker == 0xE0 and body[:5] == b"JFIF\0":
            head[marker] = _JFIF
        elif marker == 0xE1 and body[:6] == b"Exif\0\0":
            head.setdefault(marker, _orientation_alone(body[6:]))
        elif marker == 0xE2 and body[:12] == b"ICC_PROFILE\0":
            profile.append((body[12], body[14:]))
        elif marker == 0xEE and body[:5] == b"Adobe":
            head[marker] = _ADOBE + body[11:12]
        place = end


def _tables(body: bytes) -> int:
    """Return the exact length, in bytes, of a JPEG segment with quantization tables."""
    at = 0
    while at < len(body):
        at += 1 + 64 * (1 + (body[at] >> 4))
    return at


def _codes(body: bytes) -> int:
    """Return the exact length, in bytes, of a JPEG segment with Huffman tables."""
    at = 0
    while at < len(body):
        at += 17 + sum(body[at + 1 : at + 17])
    return at


_LENGTHS: dict[int, Callable[[bytes], int]] = {
    0xDB: _tables,
    0xC4: _codes,
    0xCC: lambda body: min(len(body), 64),
    0xDA: lambda body: 4 + 2 * body[0],
    **dict.fromkeys((0xDC, 0xDD), lambda _: 2),
    **dict.fromkeys(set(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}, lambda body: 6 + 3 * body[5]),
}
"""Mapping from JPEG segments that define pixels to a function that returns the segment's exact length."""


def _jpeg_profile(parts: list[tuple[int, bytes]]) -> bytes:
    profile = without_texts(b"".join(part for _, part in sorted(parts)))
    if profile is None:
        return b""
    body = b"ICC_PROFILE\0\x01\x01" + profile
    return b"\xff\xe2" + struct.pack(">H", len(body) + 2) + body


def _end_of_scan(data: bytes, place: int) -> int:
    """Return the position of the marker that ends a JPEG scan. Inside a scan, only 0 or a restart marker's number follows 0xFF."""
    while True:
        place = data.index(b"\xff", place)
        if data[place + 1] and not 0xD0 <= data[place + 1] <= 0xD7:
            return place
        place += 2


def _orientation_alone(tiff: bytes) -> bytes:
    """Return a JPEG segment with only the Exif orientation. Return ``b""`` for an upright image or broken Exif data."""
    try:
        order = "<" if tiff[:2] == b"II" else ">"
        (place,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, place)
        for index in range(count):
            tag, kind, _, value = struct.unpack_from(order + "HHIH", tiff, place + 2 + 12 * index)
            if tag == _ORIENTATION and kind == 3 and 2 <= value <= 8:
                body = b"Exif\0\0MM\0*" + struct.pack(">IHHHIHHI", 8, 1, _ORIENTATION, 3, 1, value, 0, 0)
                return b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
    except struct.error:
        pass
    return b""


# --- WebP


def _webp(data: bytes) -> bytes:
    out, head, profile = [], b"", b""
    (size,) = struct.unpack_from("<I", data, 4)
    for name, body in _riff(data[12 : 8 + size]):
        if name == b"VP8X":
            head = body[:10]
        elif name == b"ICCP":
            found = without_texts(body)
            profile = b"" if found is None else _chunk(b"ICCP", found)
        elif name == b"ANMF":
            frame = [_chunk(part, inner) for part, inner in _riff(body[_FRAME_HEAD:]) if len(inner) <= _RIFF.get(part, -1)]
            out.append(_chunk(name, body[:_FRAME_HEAD] + b"".join(frame)))
        elif len(body) <= _RIFF.get(name, -1):
            out.append(_chunk(name, body))
    if not out:
        raise IndexError
    if head:
        flags = (head[0] & _SEE_THROUGH_OR_MOVING) | (_PROFILE_FLAG if profile else 0)
        out = [_chunk(b"VP8X", bytes((flags, 0, 0, 0)) + head[4:]), profile, *out]
    whole = b"WEBP" + b"".join(out)
    return b"RIFF" + struct.pack("<I", len(whole)) + whole


def _riff(data: bytes) -> Iterator[tuple[bytes, bytes]]:
    place = 0
    while place + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, place)
        if place + 8 + size > len(data):
            raise IndexError
        yield name, data[place + 8 : place + 8 + size]
        place += 8 + size + size % 2


def _chunk(name: bytes, body: bytes) -> bytes:
    return name + struct.pack("<I", len(body)) + body + bytes(len(body) % 2)


# --- GIF


def _gif(data: bytes) -> bytes:
    """Remove a GIF's comments, texts, and application data. Keep the loop count of an animation."""
    flags = data[10]
    place = 13 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0)
    out = [data[:place]]
    while True:
        start, mark = place, data[place]
        if mark == 0x3B:
            return b"".join((*out, b"\x3b"))
        if mark == 0x21:
            label = data[place + 1]
            place = _past_blocks(data, place + 2)
            if label == 0xF9:
                out.append(b"\x21\xf9\x04" + struct.unpack_from("4s", data, start + 3)[0] + b"\0")
            elif label == 0xFF and data[start + 2 : start + 16] == b"\x0bNETSCAPE2.0\x03\x01":
                out.append(data[start : start + 18] + b"\0")
        elif mark == 0x2C:
            flags = data[place + 9]
            place = _past_blocks(data, place + 10 + (3 << ((flags & 7) + 1) if flags & 0x80 else 0) + 1)
            out.append(data[start:place])
        else:
            raise IndexError


def _past_blocks(data: bytes, place: int) -> int:
    while size := data[place]:
        place += size + 1
    return place + 1


# --- WAV


def _wav(data: bytes) -> bytes:
    """Remove names, notes, and times from a WAV file. If a chunk is shorter than stated, keep its bytes."""
    out = []
    place = 12
    while place + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, place)
        if size <= _WAVE.get(name, -1):
            out.append(_chunk(name, data[place + 8 : place + 8 + size]))
        place += 8 + size + size % 2
    whole = b"".join(out)
    return data if len(data) == 12 + len(whole) else b"RIFF" + struct.pack("<I", 4 + len(whole)) + b"WAVE" + whole


_STRIP = {"image/png": _png, "image/jpeg": _jpeg, "image/webp": _webp, "image/gif": _gif, "audio/wav": _wav}
WITHOUT_METADATA = frozenset(_STRIP)


# --- color profiles

_LARGEST_READ = 1 << 20
"""Maximum size of a color profile to read, in bytes."""
_LARGEST_KEPT = 60_000
"""Maximum size of a color profile to keep, in bytes. The profile must fit into one JPEG segment."""
_NEEDED = {b"RGB ": (b"rXYZ", b"gXYZ", b"bXYZ", b"rTRC", b"gTRC", b"bTRC", b"wtpt"), b"GRAY": (b"kTRC", b"wtpt")}
_CLASSES = (b"mntr", b"scnr", b"spac")
_FIXED = 65_536
"""The value 1 as a fixed-point number with 16 fractional bits."""
_DATE = struct.pack(">6H", 2000, 1, 1, 0, 0, 0)
_D50 = struct.pack(">3i", 0xF6D6, 0x10000, 0xD32D)
_PARAMETERS = (1, 3, 4, 5, 7)
"""Number of parameters of a parametric curve in a color profile. The index is the curve's type."""


def without_texts(profile: bytes) -> bytes | None:
    """Return an equivalent color profile without texts. For a broken, large, or table-based profile, return None."""
    space = profile[16:20]
    if len(profile) > _LARGEST_READ or profile[36:40] != b"acsp" or profile[12:16] not in _CLASSES or profile[20:24] != b"XYZ ":
        return None
    try:
        (count,) = struct.unpack_from(">I", profile, 128)
        tags = {}
        for number in range(min(count, 100)):
            name, start, size = struct.unpack_from(">4sII", profile, 132 + 12 * number)
            tags[name] = profile[start : start + size]
        kept = {name: _READERS[tags[name][:4]](tags[name]) for name in _NEEDED[space]}
        if b"chad" in tags:
            kept[b"chad"] = _numbers(tags[b"chad"], b"sf32", 9)
        return _profile(space, 4 if profile[8] >= 4 else 2, kept)
    except (struct.error, IndexError, KeyError, ValueError):
        return None


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
    """Return a color profile's tag with ``count`` numbers. For large numbers, which could encode text, raise ValueError."""
    return kind + bytes(4) + struct.pack(f">{count}i", *_sane(struct.unpack_from(f">{count}i", data, 8)))


def _sane(numbers: Sequence[int]) -> Sequence[int]:
    if any(abs(number) > 16 * _FIXED for number in numbers):
        raise ValueError("a number is out of range")
    return numbers


def _table(data: bytes) -> bytes:
    """Return a color profile's tone curve. If values decrease, raise ValueError, because the curve could encode text."""
    (count,) = struct.unpack_from(">I", data, 8)
    points = struct.unpack_from(f">{min(count, _LARGEST_READ)}H", data, 12)
    if list(points) != sorted(points):
        raise ValueError("color profile: tone curve values must not decrease")
    return b"curv" + bytes(4) + struct.pack(f">I{count}H", count, *points)


def _formula(data: bytes) -> bytes:
    (kind,) = struct.unpack_from(">H", data, 8)
    count = _PARAMETERS[kind]
    return b"para" + bytes(4) + struct.pack(f">H2x{count}i", kind, *_sane(struct.unpack_from(f">{count}i", data, 12)))


_READERS: dict[bytes, Callable[[bytes], bytes]] = {
    b"XYZ ": lambda data: _numbers(data, b"XYZ ", 3), b"curv": _table, b"para": _formula,
}  # fmt: skip
