"""Functions that open a media file if the rules allow its source and size.

A media reference is a ``data:`` URI with the bytes, a URL, or an ID. IDs are never opened, because only the service that issued an
ID can resolve it. A URL is opened only if the configuration allows its host, folder, or bucket (:class:`.rules.Rules`). The media
type is detected from the first bytes, because the sender's type can be wrong.
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ..core.deadlines import within
from ..core.errors import MetricError, NoModel
from ..core.extras import require
from .rules import Rules, current_rules, scheme_of, shared


@dataclass(frozen=True, slots=True, eq=False)
class MediaContent:
    """Bytes of a media file and their media type. Instances are compared by identity, not by content."""

    data: bytes
    mime: str


def may_open(reference: str) -> bool:
    scheme = scheme_of(reference)
    return scheme == "data" or (scheme is not None and _is_allowed(reference, scheme, current_rules()))


def content_of(reference: str, kind: str) -> MediaContent:
    """Return a media reference's content. ``kind`` must be ``image``, ``audio``, or ``video``.

    Raises MetricError with the type ``media_not_allowed``, ``media_not_found``, ``media_unreachable``, ``media_timeout``,
    ``media_too_large``, or ``invalid_media`` (for example, another kind of media). For object stores, raises MissingExtra if fsspec
    is missing, and a MetricError ``unsupported_media`` if fsspec lacks a package. Raises NoModel if ``absent`` is set in the rules.
    """
    return shared(("content", reference, kind), lambda: _opened(reference, kind))


def _opened(reference: str, kind: str) -> MediaContent:
    rules = current_rules()
    if rules.absent is not None:
        raise NoModel(rules.absent)
    scheme = scheme_of(reference)
    if scheme == "data":
        data = _decoded_uri(reference, rules)
    elif scheme is None or not _is_allowed(reference, scheme, rules):
        raise MetricError(
            "media_not_allowed",
            f"the source isn't allowed, got scheme {scheme or 'none'}. Set media.hosts, media.folders, or media.buckets",
        )
    elif scheme == "file":
        data = _read_file(reference, rules)
    elif scheme in ("http", "https"):
        from .fetching import fetched  # imports httpx

        data = fetched(reference, rules)
    else:
        data = _read_object(reference, rules)
    found = type_of(data)
    if kind_of(found) != kind and not (kind == "audio" and found in ("video/mp4", "video/webm", "video/ogg")):
        raise MetricError("invalid_media", f"the media file must be of kind {kind}, got {found or 'an unknown type'}")
    assert found is not None
    return MediaContent(data, found)


def as_data(content: MediaContent) -> str:
    return f"data:{content.mime};base64,{base64.b64encode(content.data).decode()}"


def _is_allowed(reference: str, scheme: str, rules: Rules) -> bool:
    if scheme in ("http", "https"):
        return rules.allow_host(reference)
    if scheme == "file":
        return bool(rules.folders)
    below = any(reference.startswith(bucket if bucket.endswith("/") else f"{bucket}/") for bucket in rules.buckets)
    return below and ".." not in reference.split("/")


def _decoded_uri(reference: str, rules: Rules) -> bytes:
    head, comma, body = reference.partition(",")
    if len(body) > rules.max_bytes * 4 // 3 + 4:
        raise rules.too_large()
    try:
        data = urllib.parse.unquote_to_bytes(body) if "%" in body else body.encode("ascii")
        if head.lower().endswith(";base64"):
            plain = data.translate(_URL_SAFE).rstrip(b"=")
            data = base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)
    except (ValueError, binascii.Error):
        data = b""
    if not (comma and data):
        raise MetricError("invalid_media", "the data: URI is empty or can't be decoded")
    return data


_URL_SAFE = bytes.maketrans(b"-_", b"+/")
"""Translation from the URL-safe Base64 alphabet, which Google's SDK uses, to the standard alphabet."""


def _read_file(reference: str, rules: Rules) -> bytes:
    """Read a regular file in an allowed folder. Symbolic links to files outside allowed folders are rejected."""
    parts = urllib.parse.urlsplit(reference)
    missing = MetricError("media_not_found", "file not found below media.folders")
    if parts.netloc not in ("", "localhost"):
        raise missing
    try:
        path = Path(os.path.realpath(urllib.parse.unquote(parts.path), strict=True))
        is_below = any(path.is_relative_to(os.path.realpath(folder)) for folder in rules.folders)
        if not (is_below and stat.S_ISREG(path.stat().st_mode)):
            raise missing
        # Links are already resolved. The flags reject a link created since then, and prevent a pipe from blocking.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            return _read_limited(file, rules)
    except (OSError, ValueError, RuntimeError):
        raise missing from None


def _read_limited(file: Any, rules: Rules) -> bytes:
    data: bytes = file.read(rules.max_bytes + 1)
    if len(data) > rules.max_bytes:
        raise rules.too_large()
    return data


def _read_object(reference: str, rules: Rules) -> bytes:
    """Read an object from a store that fsspec supports, with fsspec's default credentials."""
    fsspec = require("fsspec", feature="media in object stores", extra="fsspec")

    def read() -> bytes:
        with fsspec.open(reference, "rb") as file:
            return _read_limited(file, rules)

    try:
        return within(rules.fetch_timeout, read)
    except TimeoutError:
        raise rules.late() from None
    except ImportError as error:
        raise MetricError("unsupported_media", f"fsspec requires a package for this store: {str(error)[:200]}") from None
    except FileNotFoundError:
        raise MetricError("media_not_found", "object not found") from None
    except MetricError:
        raise
    except Exception as error:  # each store raises its own exceptions
        raise MetricError("media_unreachable", f"reading the object store failed ({type(error).__name__})") from None


IMAGES: Final = frozenset(("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp", "image/tiff"))
"""Image types that can be opened."""


class ImageReference(str):
    """Image in a list of texts to embed. The value is a ``data:`` URI, a URL, or an ID."""

    __slots__ = ()


_BEGINNINGS: tuple[tuple[bytes, str], ...] = (
    (b"\x89PNG\r\n\x1a\n", "image/png"), (b"\xff\xd8\xff", "image/jpeg"), (b"GIF87a", "image/gif"), (b"GIF89a", "image/gif"),
    (b"BM", "image/bmp"), (b"II*\0", "image/tiff"), (b"MM\0*", "image/tiff"), (b"fLaC", "audio/flac"), (b"ID3", "audio/mpeg"),
    (b"%PDF-", "application/pdf"),
)  # fmt: skip
_RIFF = {b"WEBP": "image/webp", b"WAVE": "audio/wav", b"AVI ": "video/x-msvideo"}
_BRANDS = {
    **dict.fromkeys((b"M4A ", b"M4B "), "audio/mp4"),
    **dict.fromkeys((b"heic", b"heix", b"mif1"), "image/heic"),
    b"avif": "image/avif",
}
_LOOKED_AT = 4096


def type_of(data: bytes) -> str | None:
    """Return the media type of ``data``, or None if unknown."""
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
    return (mime or "").partition("/")[0]
