"""Images without what their makers wrote into them: places, names, devices, comments.

Pixels stay as they are, byte for byte; nothing is decoded. Of a JPEG's Exif data only the orientation is kept, without which it lies on its
side, and of every format the colour profile.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from ..core.errors import MetricError
from .types import type_of

_ORIENTATION = 0x0112
_KEPT_CHUNKS = frozenset((
    b"IHDR", b"PLTE", b"IDAT", b"IEND", b"tRNS", b"gAMA", b"cHRM", b"sRGB", b"iCCP", b"sBIT", b"bKGD", b"acTL", b"fcTL", b"fdAT", b"cICP",
))  # fmt: skip
"""Of PNG: what says how it looks."""
_DROPPED_RIFF = frozenset((b"EXIF", b"XMP "))
_EXIF_FLAG, _XMP_FLAG = 0x08, 0x04


def without_metadata(data: bytes) -> bytes:
    """An image (PNG, JPEG, WebP, GIF) without metadata; any other bytes as they are.

    Raises:
        MetricError: the file is broken (``invalid_media``).
    """
    strip = _STRIP.get(type_of(data) or "")
    try:
        return data if strip is None else strip(data)
    except (IndexError, ValueError, struct.error):
        raise MetricError("invalid_media", "the image is broken or cut off") from None


def _png(data: bytes) -> bytes:
    out, place = [data[:8]], 8
    while place < len(data):
        size, name = struct.unpack_from(">I4s", data, place)
        end = place + 12 + size
        if end > len(data):
            raise IndexError
        if name in _KEPT_CHUNKS:
            out.append(data[place:end])
        place = end
        if name == b"IEND":
            return b"".join(out)
    raise IndexError


def _jpeg(data: bytes) -> bytes:
    out, place = [data[:2]], 2
    while True:
        if data[place] != 0xFF:
            raise IndexError
        while data[place + 1] == 0xFF:  # bytes that fill up
            place += 1
        marker = data[place + 1]
        if marker == 0xD9:  # what stands behind it can be a whole second image, with data of its own
            return b"".join((*out, b"\xff\xd9"))
        (size,) = struct.unpack_from(">H", data, place + 2)
        end = place + 2 + size
        if size < 2 or end > len(data):
            raise IndexError
        segment = data[place:end]
        if marker == 0xDA:
            end = _end_of_scan(data, end)
            out.append(data[place:end])
        elif marker == 0xE1 and segment[4:10] == b"Exif\0\0":
            out += _orientation_alone(segment[10:])
        elif not (0xE1 <= marker <= 0xEF or marker == 0xFE) or _is_needed(marker, segment):
            out.append(segment)
        place = end


def _is_needed(marker: int, segment: bytes) -> bool:
    """Whether an application's segment says how the image looks: a colour profile, or Adobe's mark of the colours' form."""
    return (marker == 0xE2 and segment[4:15] == b"ICC_PROFILE") or (marker == 0xEE and segment[4:9] == b"Adobe")


def _end_of_scan(data: bytes, place: int) -> int:
    """Where the marker stands that ends a scan: of those within it, a byte 0 follows or they only mark a place to start again."""
    while True:
        place = data.index(b"\xff", place)
        if data[place + 1] and not 0xD0 <= data[place + 1] <= 0xD7:
            return place
        place += 2


def _orientation_alone(tiff: bytes) -> Iterator[bytes]:
    """Exif data with nothing but the orientation; nothing where it is upright, or cannot be read."""
    try:
        order = "<" if tiff[:2] == b"II" else ">"
        (place,) = struct.unpack_from(order + "I", tiff, 4)
        (count,) = struct.unpack_from(order + "H", tiff, place)
        for index in range(count):
            tag, kind, _, value = struct.unpack_from(order + "HHIH", tiff, place + 2 + 12 * index)
            if tag == _ORIENTATION and kind == 3 and 2 <= value <= 8:
                body = b"Exif\0\0MM\0*" + struct.pack(">IHHHIHHI", 8, 1, _ORIENTATION, 3, 1, value, 0, 0)
                yield b"\xff\xe1" + struct.pack(">H", len(body) + 2) + body
                return
    except struct.error:
        return


def _webp(data: bytes) -> bytes:
    out, place = [], 12
    while place + 8 <= len(data):
        name, size = struct.unpack_from("<4sI", data, place)
        end = place + 8 + size + size % 2
        if end > len(data) + 1:
            raise IndexError
        chunk = data[place:end]
        if name == b"VP8X":
            chunk = chunk[:8] + bytes((chunk[8] & ~(_EXIF_FLAG | _XMP_FLAG),)) + chunk[9:]
        if name not in _DROPPED_RIFF:
            out.append(chunk)
        place = end
    if not out:
        raise IndexError
    body = b"WEBP" + b"".join(out)
    return b"RIFF" + struct.pack("<I", len(body)) + body


def _gif(data: bytes) -> bytes:
    """Without comments and applications' data, except how often an animation repeats."""
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
            if label == 0xF9 or (label == 0xFF and data[start + 3 : start + 14] == b"NETSCAPE2.0"):
                out.append(data[start:place])
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


_STRIP = {"image/png": _png, "image/jpeg": _jpeg, "image/webp": _webp, "image/gif": _gif}
WITHOUT_METADATA = frozenset(_STRIP)
"""The types whose metadata can be taken out."""
