"""Unpacking of requests that never holds more than is allowed: a megabyte can unpack to gigabytes."""

from __future__ import annotations

import zlib
from typing import Any

from ..core.errors import MissingExtra
from ..core.extras import require
from .admission import UNBOUNDED, Share
from .responses import Refusal

try:  # two to three times as fast
    from isal import isal_zlib

    _zlib: Any = isal_zlib
except ImportError:
    _zlib = zlib

_PIECE = 1 << 20
_FEED = 64 << 10
"""Packed bytes that are given to zlib at once: what it does not consume is copied every time."""
_PACKED_PIECE = 256
_MAX_PARTS = 10_000
"""Packed streams, one after the other, in one body."""
_WINDOW = 8 << 20
GZIP_MAGIC = b"\x1f\x8b"


def inflate(body: bytes, encoding: str, limit: int, share: Share = UNBOUNDED) -> bytes:
    """The bytes that were packed with an HTTP ``Content-Encoding``; ``share`` grows with them.

    Raises:
        Refusal: they are more than ``limit``, they are not packed that way, there is no room for them, or the encoding is unknown.
    """
    if encoding in ("", "identity", "none"):
        found = body
    elif encoding in ("gzip", "x-gzip"):
        found = _joined(_members(body, 31, limit, share), share)
    elif encoding == "deflate":
        found = _joined(_members(body, 15, limit, share), share)
    elif encoding == "zstd":
        found = _joined(_zstd(body, limit, share), share)
    else:
        raise Refusal("bad_type", "Content-Encoding must be gzip, deflate, zstd or identity")
    if len(found) > limit:
        raise too_large(limit)
    return found


def sniffed(body: bytes) -> str:
    """How a gRPC message is packed. Neither beginning is one of an OTLP message."""
    if body[:2] == GZIP_MAGIC:
        return "gzip"
    if body[:1] == b"\x78" and len(body) > 1 and int.from_bytes(body[:2], "big") % 31 == 0:
        return "deflate"
    return ""


def too_large(limit: int) -> Refusal:
    """The refusal of a body that is too large."""
    return Refusal("too_large", f"the request is larger than the {limit} bytes that are allowed (serve.max_body)")


def _joined(pieces: list[bytes], share: Share) -> bytes:
    if len(pieces) == 1:
        return pieces[0]
    size = sum(map(len, pieces))
    share.grow(size)  # for a moment it exists twice
    whole = b"".join(pieces)
    pieces.clear()
    share.shrink(size)
    return whole


def _members(body: bytes, window: int, limit: int, share: Share) -> list[bytes]:
    """One packed stream after the other, as gzip allows."""
    pieces: list[bytes] = []
    room, at, parts = limit, 0, 0
    try:
        while at < len(body):
            parts = _one_more(parts)
            stream: Any = _zlib.decompressobj(window)
            left = b""
            while not stream.eof:
                if not left:
                    left = body[at : at + _FEED]
                    at += len(left)
                piece = stream.decompress(left, min(room + 1, _PIECE))
                left = stream.unconsumed_tail
                room -= len(piece)
                if room < 0:
                    raise too_large(limit)
                if piece:
                    share.grow(len(piece))
                    pieces.append(piece)
                elif not (stream.eof or left or at < len(body)):
                    raise Refusal("bad_data", "the packed body is incomplete")
            at -= len(stream.unused_data)
    except (zlib.error, _zlib.error):
        raise Refusal("bad_data", "the body is not packed with its Content-Encoding") from None
    return pieces


def _one_more(parts: int) -> int:
    if parts == _MAX_PARTS:
        raise Refusal("bad_data", f"the packed body has more than {_MAX_PARTS} parts")
    return parts + 1


def _zstd(body: bytes, limit: int, share: Share) -> list[bytes]:
    try:
        zstandard = require("zstandard", feature="Content-Encoding zstd", extra="serve")
    except MissingExtra as error:
        raise Refusal("bad_type", str(error)) from None
    # A piece can be made of blocks of 128 KiB in four bytes each: so much more than the limit is made before it is seen.
    pieces: list[bytes] = []
    room, at, parts = limit, 0, 0
    reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    try:
        while at < len(body):
            parts = _one_more(parts)
            stream = reader.decompressobj()
            while not stream.eof:
                if at >= len(body):
                    raise Refusal("bad_data", "the packed body is incomplete")
                piece = stream.decompress(body[at : at + _PACKED_PIECE])
                at += _PACKED_PIECE
                room -= len(piece)
                if room < 0:
                    raise too_large(limit)
                if piece:
                    share.grow(len(piece))
                    pieces.append(piece)
            at = min(at, len(body)) - len(stream.unused_data)
    except zstandard.ZstdError:
        raise Refusal("bad_data", "the body is not packed with its Content-Encoding") from None
    return pieces
