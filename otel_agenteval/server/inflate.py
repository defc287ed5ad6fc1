"""Decompression of requests within a memory limit: a megabyte can decompress to gigabytes."""

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
"""Compressed bytes passed to zlib at once. It copies the bytes that it doesn't consume."""
_PACKED_PIECE = 256
_MAX_PARTS = 10_000
"""Limit of concatenated compressed streams in one body."""
_WINDOW = 8 << 20
GZIP_MAGIC = b"\x1f\x8b"


def inflate(body: bytes, encoding: str, limit: int, share: Share = UNBOUNDED) -> bytes:
    """Decompress a body by its ``Content-Encoding``, and charge ``share`` for the result.

    Raises a Refusal if the result exceeds ``limit`` or the memory budget, the body is invalid, or the encoding is unknown.
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
        raise Refusal("bad_type", "unknown Content-Encoding; must be gzip, deflate, zstd or identity")
    if len(found) > limit:
        raise too_large(limit)
    return found


def sniffed(body: bytes) -> str:
    """Return the compression of a gRPC message. No OTLP message begins like a compressed one."""
    if body[:2] == GZIP_MAGIC:
        return "gzip"
    if body[:1] == b"\x78" and len(body) > 1 and int.from_bytes(body[:2], "big") % 31 == 0:
        return "deflate"
    return ""


def too_large(limit: int) -> Refusal:
    return Refusal("too_large", f"the request is larger than {limit} bytes (serve.max_body)")


def _joined(pieces: list[bytes], share: Share) -> bytes:
    if len(pieces) == 1:
        return pieces[0]
    size = sum(map(len, pieces))
    share.grow(size)  # during the join, the bytes exist twice
    whole = b"".join(pieces)
    pieces.clear()
    share.shrink(size)
    return whole


def _members(body: bytes, window: int, limit: int, share: Share) -> list[bytes]:
    """Decompress concatenated streams, as gzip allows."""
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
                    raise Refusal("bad_data", "the compressed body is incomplete")
            at -= len(stream.unused_data)
    except (zlib.error, _zlib.error):
        raise Refusal("bad_data", "the body can't be decompressed with its Content-Encoding") from None
    return pieces


def _one_more(parts: int) -> int:
    if parts == _MAX_PARTS:
        raise Refusal("bad_data", f"the compressed body has more than {_MAX_PARTS} parts")
    return parts + 1


def _zstd(body: bytes, limit: int, share: Share) -> list[bytes]:
    try:
        zstandard = require("zstandard", feature="Content-Encoding zstd", extra="serve")
    except MissingExtra as error:
        raise Refusal("bad_type", str(error)) from None
    # Four compressed bytes can hold a block of 128 KiB, so a small piece can exceed the limit before the check.
    pieces: list[bytes] = []
    room, at, parts = limit, 0, 0
    reader = zstandard.ZstdDecompressor(max_window_size=_WINDOW)
    try:
        while at < len(body):
            parts = _one_more(parts)
            stream = reader.decompressobj()
            while not stream.eof:
                if at >= len(body):
                    raise Refusal("bad_data", "the compressed body is incomplete")
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
        raise Refusal("bad_data", "the body can't be decompressed with its Content-Encoding") from None
    return pieces
