"""Detect the type of media by their first bytes, because senders may state a wrong one."""

from __future__ import annotations

from typing import Final

IMAGES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff"))
"""Types of images that are opened."""


class ImageReference(str):
    """A reference to an image among texts to embed: its ``data:`` URI, address or id."""

    __slots__ = ()


_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"), (b"II*\0", "image/tiff"), (b"MM\0*", "image/tiff"), (b"fLaC", "audio/flac"), (b"ID3", "audio/mpeg"),
    (b"%PDF-", "application/pdf"),
)  # fmt: skip
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    b"M4A ": "audio/mp4",
    b"M4B ": "audio/mp4",
    b"heic": "image/heic",
    b"heix": "image/heic",
    b"mif1": "image/heic",
    b"avif": "image/avif",
}
_LOOKED_AT = 4096


def type_of(data: bytes) -> str | None:
    """Return the media type of bytes, or None if unknown."""
    for beginning, found in _BEGINNINGS:
        if data.startswith(beginning):
            return found
    if data[:4] == b"RIFF":
        return _RIFF.get(data[8:12])
    if data[4:8] == b"ftyp":
        return _BRANDS.get(data[8:12], "video/mp4")
    head = data[:_LOOKED_AT]
    if head[:4] == b"\x1aE\xdf\xa3":
        return "video/webm" if b"V_" in head or b"A_" not in head else "audio/webm"
    if head[:4] == b"OggS":
        return "video/ogg" if b"\x80theora" in head else "audio/ogg"
    if len(head) > 3 and head[0] == 0xFF and head[1] & 0xE0 == 0xE0 and head[1] & 0x06 and head[2] & 0xF0 != 0xF0:
        return "audio/mpeg"  # an MPEG audio frame without tags before it
    return None


def kind_of(mime: str | None) -> str:
    """Return the first part of a media type, such as ``image``, ``audio`` or ``video``."""
    return (mime or "").partition("/")[0]
