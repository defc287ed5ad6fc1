"""Opening one medium: what may be opened at all, from where, and how much of it.

A reference is ``data:…`` (the bytes themselves), an address, or an id that means something only to those who gave it: that is never opened.
Addresses are opened only where the configuration allows their host, folder or bucket (:class:`.rules.Rules`).
"""

from __future__ import annotations

import base64
import binascii
import os
import stat
import urllib.parse
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..core.deadlines import within
from ..core.errors import MetricError, NoModel
from ..core.extras import require
from .rules import Rules, current_rules
from .sharing import shared
from .types import kind_of, type_of


@dataclass(frozen=True, slots=True, eq=False)
class Content:
    """The bytes of a medium, and what they are. Each is equal to itself alone: bytes are not compared."""

    data: bytes
    mime: str


def may_open(reference: str) -> bool:
    """Whether a reference holds its bytes, or is an address that the rules allow."""
    scheme = scheme_of(reference)
    return scheme == "data" or (scheme is not None and _is_allowed(reference, scheme, current_rules()))


def scheme_of(reference: str) -> str | None:
    """The scheme of an address, in lower case; None for an id, which has none."""
    scheme = reference.partition(":")[0].lower()
    return scheme if "://" in reference or scheme == "data" else None


def content_of(reference: str, kind: str) -> Content:
    """The bytes of a reference, which must be of a kind: ``image``, ``audio`` or ``video``.

    Raises:
        MetricError: it may not be opened (``media_not_allowed``), cannot be had (``media_not_found``, ``media_unreachable``, ``media_timeout``),
            is too large (``media_too_large``), or is none of this kind, whatever its sender says (``invalid_media``).
        MissingExtra: the package for this object store is not installed.
    """
    return shared(("content", reference, kind), lambda: _opened(reference, kind))


def _opened(reference: str, kind: str) -> Content:
    rules = current_rules()
    if rules.absent is not None:
        raise NoModel(rules.absent)
    scheme = scheme_of(reference)
    if scheme == "data":
        data = _inline(reference, rules)
    elif scheme is None or not _is_allowed(reference, scheme, rules):
        raise MetricError(
            "media_not_allowed", f"a medium of the scheme {scheme or 'none'} may not be opened from there; media.* allows it"
        )
    elif scheme == "file":
        data = _file(reference, rules)
    elif scheme in ("http", "https"):
        from .fetching import fetched  # imports httpx

        data = fetched(reference, rules)
    else:
        data = _stored(reference, rules)
    found = type_of(data)
    if kind_of(found) != kind and not (kind == "audio" and found in ("video/mp4", "video/webm", "video/ogg")):
        raise MetricError("invalid_media", f"this is no {kind}: it is {found or 'of no known type'}")
    assert found is not None
    return Content(data, found)


def as_data(content: Content) -> str:
    """The bytes as a ``data:`` uri."""
    return f"data:{content.mime};base64,{base64.b64encode(content.data).decode()}"


def _is_allowed(reference: str, scheme: str, rules: Rules) -> bool:
    if scheme in ("http", "https"):
        return bool(rules.hosts) and _host_is_allowed(reference, scheme, rules)
    if scheme == "file":
        return bool(rules.folders)
    return any(_is_below(reference, bucket) for bucket in rules.buckets)


def _is_below(reference: str, bucket: str) -> bool:
    """Whether an object's address begins with an allowed one, and does not climb out of it."""
    return reference.startswith(bucket if bucket.endswith("/") else bucket + "/") and ".." not in reference.split("/")


def _host_is_allowed(address: str, scheme: str, rules: Rules) -> bool:
    try:
        parts = urllib.parse.urlsplit(address)
        host, port = (parts.hostname or "").rstrip("."), parts.port
    except ValueError:
        return False
    if "@" in parts.netloc or not host:
        return False
    host = f"[{host}]" if ":" in host else host
    usual = 443 if scheme == "https" else 80
    named = host if port in (None, usual) else f"{host}:{port}"
    return any(named == one or (one.startswith("*.") and named.endswith(one[1:])) for one in rules.hosts)


def host_is_allowed(address: str, rules: Rules) -> bool:
    """Whether an address is http or https, without credentials, of a host that the rules name."""
    scheme = scheme_of(address)
    return scheme in ("http", "https") and _host_is_allowed(address, scheme, rules)


def too_large(rules: Rules) -> MetricError:
    """The error of a medium that has more bytes than are allowed."""
    return MetricError("media_too_large", f"the medium has more than {rules.max_bytes:,} bytes (media.max_bytes)")


def late(rules: Rules) -> MetricError:
    """The error of a medium that did not come in time."""
    return MetricError("media_timeout", f"the medium did not come within {rules.fetch_timeout:g} s (media.fetch_timeout)")


def _inline(reference: str, rules: Rules) -> bytes:
    head, comma, body = reference.partition(",")
    if len(body) > rules.max_bytes * 4 // 3 + 4:
        raise too_large(rules)
    try:
        raw = urllib.parse.unquote_to_bytes(body) if "%" in body else body.encode("ascii")
        data = _decoded(raw) if head.lower().endswith(";base64") else raw
    except (ValueError, binascii.Error):
        data = b""
    if not (comma and data):
        raise MetricError("invalid_media", "a data: uri holds nothing that can be read")
    return data


def _decoded(raw: bytes) -> bytes:
    """Base64 in either alphabet: Google's SDK writes bytes in that of addresses."""
    plain = raw.translate(_OF_ADDRESSES).rstrip(b"=")
    return base64.b64decode(plain + b"=" * (-len(plain) % 4), validate=True)


_OF_ADDRESSES = bytes.maketrans(b"-_", b"+/")


def _file(reference: str, rules: Rules) -> bytes:
    """A regular file below an allowed folder, wherever links lead."""
    parts = urllib.parse.urlsplit(reference)
    missing = MetricError("media_not_found", "there is no such file below media.folders")
    if parts.netloc not in ("", "localhost"):
        raise missing
    try:
        path = Path(urllib.parse.unquote(parts.path)).resolve(strict=True)
        if not any(path.is_relative_to(Path(folder).resolve()) for folder in rules.folders):
            raise missing
        if not stat.S_ISREG(path.stat().st_mode):
            raise missing
        # the links are resolved: one that is put in their place meanwhile is not followed, and a pipe does not block
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
        with os.fdopen(descriptor, "rb") as file:
            return _within(file, rules)
    except (OSError, ValueError, RuntimeError):
        raise missing from None


def _within(file: Any, rules: Rules) -> bytes:
    data: bytes = file.read(rules.max_bytes + 1)
    if len(data) > rules.max_bytes:
        raise too_large(rules)
    return data


def _stored(reference: str, rules: Rules) -> bytes:
    """An object of a store that fsspec knows, with the credentials that its package finds."""
    fsspec = require("fsspec", feature="media in object stores", extra="fsspec")

    def read() -> bytes:
        with fsspec.open(reference, "rb") as file:
            return _within(file, rules)

    try:
        return within(rules.fetch_timeout, read)
    except TimeoutError:
        raise late(rules) from None
    except ImportError as error:
        raise MetricError("unsupported_media", f"fsspec needs a package for this store: {str(error)[:200]}") from None
    except FileNotFoundError:
        raise MetricError("media_not_found", "there is no such object") from None
    except MetricError:
        raise
    except Exception as error:  # every store has exceptions of its own
        raise MetricError("media_unreachable", f"the object store could not be read ({type(error).__name__})") from None
