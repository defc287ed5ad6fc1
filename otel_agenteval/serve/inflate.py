"""Unpacking requests without ever holding more than what is allowed: a megabyte can unpack to gigabytes."""

from __future__ import annotations

import zlib
from typing import Any

from ..errors import MissingExtra
from ..registry import require
from .answers import Refusal

try:  # two to three times as fast
    from isal import isal_zlib

    _zlib: Any = isal_zlib
except ImportError:
    _zlib = zlib

_PIECE = 1 << 20
_PACKED_PIECE = 1 << 10
_WINDOW = 8 << 20
GZIP_MAGIC = b"\x1f\x8b"


def inflate(body: bytes, encoding: str, limit: int) -> bytes:
    """The bytes that were packed as an HTTP ``Content-Encoding`` says.

    Raises:
        Refusal: they are more than ``limit``, are not packed so, or the encoding is not known.
    """
    if encoding in ("", "identity", "none"):
        found = body
    elif encoding in ("gzip", "x-gzip"):
        found = _members(body, 31, limit)
    elif encoding == "deflate":
        found = _members(body, 15, limit)
    elif encoding == "zstd":
        found = _zstd(body, limit)
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
    """The answer to a body that is too large."""
    return Refusal("too_large", f"the request is larger than {limit} bytes, which is the most that is taken (serve.max_body)")


def _members(body: bytes, window: int, limit: int) -> bytes:
    """One packed stream after the other, as gzip allows."""
    pieces: list[bytes] = []
    room = limit
    try:
        while body:
            stream: Any = _zlib.decompressobj(window)
            while not stream.eof:
                piece = stream.decompress(body, min(room + 1, _PIECE))
                room -= len(piece)
                if room < 0:
                    raise too_large(limit)
                if not piece and not stream.eof and not stream.unconsumed_tail:
                    raise Refusal("bad_data", "the packed body breaks off")
                pieces.append(piece)
                body = stream.unconsumed_tail
            body = stream.unused_data
    except (zlib.error, _zlib.error):
        raise Refusal("bad_data", "the body is not packed as its Content-Encoding says") from None
    return b"".join(pieces)


def _zstd(body: bytes, limit: int) -> bytes:
    try:
        zstandard = require("zstandard", feature="Content-Encoding zstd", extra="serve")
    except MissingExtra as error:
        raise Refusal("bad_type", str(error)) from None
    # A piece of a kilobyte can be 256 blocks of 128 KiB: so much more than the limit is made before it is seen.
    pieces: list[bytes] = []
    room = limit
    at = 0
    try:
        while at < len(body):
            stream = zstandard.ZstdDecompressor(max_window_size=_WINDOW).decompressobj()
            while not stream.eof:
                if at >= len(body):
                    raise Refusal("bad_data", "the packed body breaks off")
                piece = stream.decompress(body[at : at + _PACKED_PIECE])
                at += _PACKED_PIECE
                room -= len(piece)
                if room < 0:
                    raise too_large(limit)
                pieces.append(piece)
            at = min(at, len(body)) - len(stream.unused_data)
    except zstandard.ZstdError:
        raise Refusal("bad_data", "the body is not packed as its Content-Encoding says") from None
    return b"".join(pieces)
