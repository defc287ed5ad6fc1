"""Decompression of requests within a memory limit: a megabyte can decompress to gigabytes."""

from __future__ import annotations

import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

from ..core.errors import MissingExtra
from ..core.extras import require
from .admission import UNBOUNDED, MemoryShare
from .responses import Refusal

try:  # two to three times as fast
    from isal import isal_zlib

    _zlib: Any = isal_zlib
except ImportError:
    _zlib = zlib

_PIECE = 1 << 20
_MAX_PARTS = 10_000
"""Limit of concatenated compressed streams in one body."""


def inflate(body: bytes, encoding: str, limit: int, share: MemoryShare = UNBOUNDED) -> bytes:
    """Decompress a body by its encoding, and charge ``share``. Raises a Refusal above ``limit``, or if it isn't possible."""
    if encoding in ("", "identity", "none"):
        found = body
    elif encoding in ("gzip", "x-gzip"):
        found = _decompressed(body, _GZIP, limit, share)
    elif encoding == "deflate":
        found = _decompressed(body, _DEFLATE, limit, share)
    elif encoding == "zstd":
        found = _decompressed(body, _zstd_format(), limit, share)
    else:
        raise Refusal("bad_type", "unknown Content-Encoding; must be gzip, deflate, zstd or identity")
    if len(found) > limit:
        raise too_large(limit)
    return found


def too_large(limit: int) -> Refusal:
    return Refusal("too_large", f"the request is larger than {limit} bytes (serve.max_body)")


class _Format(NamedTuple):
    """Compression whose streams can be concatenated, as gzip allows."""

    open: Callable[[], Any]
    decompress: Callable[[Any, bytes, int], bytes]
    """Decompresses a piece of a stream to at most so many bytes, if the format can limit them."""
    feed: int
    """Compressed bytes to decompress at once."""
    errors: tuple[type[Exception], ...]


def _zlib_format(window: int) -> _Format:
    # zlib copies the bytes that it doesn't consume
    errors = (zlib.error, _zlib.error)
    return _Format(
        lambda: _zlib.decompressobj(window), lambda stream, data, most: stream.decompress(data, most), 64 << 10, errors
    )


_GZIP, _DEFLATE = _zlib_format(31), _zlib_format(15)


def _zstd_format() -> _Format:
    try:
        zstandard = require("zstandard", feature="Content-Encoding zstd", extra="serve")
    except MissingExtra as error:
        raise Refusal("bad_type", str(error)) from None
    # Four compressed bytes can hold a block of 128 KiB, so even 256 bytes can exceed the limit before the check.
    reader = zstandard.ZstdDecompressor(max_window_size=8 << 20)
    return _Format(reader.decompressobj, lambda stream, data, most: stream.decompress(data), 256, (zstandard.ZstdError,))


def _decompressed(body: bytes, form: _Format, limit: int, share: MemoryShare) -> bytes:
    pieces: list[bytes] = []
    room, at, parts = limit, 0, 0
    try:
        while at < len(body):
            if parts == _MAX_PARTS:
                raise Refusal("bad_data", f"the compressed body has more than {_MAX_PARTS} parts")
            parts += 1
            stream = form.open()
            left = b""
            while not stream.eof:
                if not left:
                    left = body[at : at + form.feed]
                    at += len(left)
                piece = form.decompress(stream, left, min(room + 1, _PIECE))
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
    except form.errors:
        raise Refusal("bad_data", "the body can't be decompressed with its Content-Encoding") from None
    if len(pieces) == 1:
        return pieces[0]
    size = sum(map(len, pieces))
    share.grow(size)  # during the join, the bytes exist twice
    whole = b"".join(pieces)
    pieces.clear()
    share.shrink(size)
    return whole
