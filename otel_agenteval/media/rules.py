"""Rules for opening media, limits on size and time, and a cache that a turn's metrics share."""

from __future__ import annotations

import urllib.parse
from collections.abc import Callable, Hashable
from contextlib import AbstractContextManager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import Any, TypeVar

from ..core.contexts import setting
from ..core.errors import MetricError

T = TypeVar("T")


@dataclass(frozen=True)
class Transcription:
    base_url: str | None = None
    """Address of the server, including the API version."""
    model: str = ""
    api_key: str | None = field(default=None, repr=False)
    path: str | None = None
    """Folder of a model that runs in this process. Replaces the server."""
    language: str | None = None
    """ISO 639-1 code of the spoken language, or None to detect the language."""
    timeout: float = 60.0


@dataclass(frozen=True)
class Rules:
    """Rules for opening media. By default, only ``data:`` URIs are opened."""

    hosts: tuple[str, ...] = ()
    """Hosts from which media may be fetched, such as ``cdn.example.com``, ``*.example.com``, or ``media.example.com:8443``."""
    folders: tuple[str, ...] = ()
    """Folders in which files may be read, including subfolders."""
    buckets: tuple[str, ...] = ()
    """Prefixes of addresses in object stores, including the scheme, such as ``s3://recordings/``."""
    private_addresses: bool = False
    """True if hosts can have addresses on this machine or in a private network."""
    max_bytes: int = 20 * 2**20
    """Maximum size of one media file in bytes, as sent or fetched."""
    max_pixels: int = 25_000_000
    """Maximum number of pixels in one image or one video frame."""
    fetch_timeout: float = 10.0
    decode_timeout: float = 20.0
    """Maximum number of seconds to measure a recording or video. After that, only the part measured so far counts."""
    decode_memory: int = 2**30
    """Maximum address space of a process that decodes a recording or video, in bytes."""
    decode_total: int = 2 * 2**30
    """Maximum address space of concurrent decoder processes without OCR, in bytes. Further processes wait. One can always run."""
    max_edge: int = 1568
    """Maximum pixels of the longer side of images for judges. Larger images are scaled down, as models would do anyway."""
    transcription: Transcription | None = None
    """Settings of the transcriber for recordings without a transcript."""
    clean: Callable[[str], str] | None = None
    """Function that removes personal data and secrets from transcripts before judges receive them."""
    absent: str | None = None
    """Reason why the required judge or embedder is missing. If set, media aren't opened."""
    hears: bool = True
    """True if judges receive the audio of a transcribed recording."""

    def allow_host(self, address: str) -> bool:
        """Return True for an HTTP or HTTPS address without credentials on an allowed host."""
        scheme = scheme_of(address)
        try:
            parts = urllib.parse.urlsplit(address)
            host, port = (parts.hostname or "").rstrip("."), parts.port
        except ValueError:
            return False
        if scheme not in ("http", "https") or "@" in parts.netloc or not host:
            return False
        host = f"[{host}]" if ":" in host else host
        name = host if port in (None, 443 if scheme == "https" else 80) else f"{host}:{port}"
        return any(name == one or (one.startswith("*.") and name.endswith(one[1:])) for one in self.hosts)

    def too_large(self) -> MetricError:
        return MetricError("media_too_large", f"the media file is larger than {self.max_bytes:,} bytes (media.max_bytes)")

    def late(self) -> MetricError:
        return MetricError(
            "media_timeout", f"fetching the media file took longer than {self.fetch_timeout:g} s (media.fetch_timeout)"
        )


_RULES: ContextVar[Rules | None] = ContextVar("otel_agenteval_media_rules", default=None)
"""Rules of the current context. Stored in a context variable, because metrics receive only a turn and parameters."""
_INLINE_ONLY = Rules()


def opening(rules: Rules) -> AbstractContextManager[None]:
    """Apply rules to all media that this thread or task opens in the ``with`` block."""
    return setting(_RULES, rules)


def current_rules() -> Rules:
    """Return the rules of this thread or task. By default, only ``data:`` URIs may be opened."""
    return _RULES.get() or _INLINE_ONLY


def scheme_of(reference: str) -> str | None:
    """Return the scheme of a URL in lower case, or None for an ID."""
    scheme = reference.partition(":")[0].lower()
    return scheme if "://" in reference or scheme == "data" else None


# --- sharing

_SHARED: ContextVar[dict[Hashable, Any] | None] = ContextVar("otel_agenteval_shared_media", default=None)


def sharing() -> AbstractContextManager[None]:
    """Cache the media that this thread or task opens in the ``with`` block, so that metrics can share the media."""
    return setting(_SHARED, {})


def is_shared() -> bool:
    """Return True inside :func:`sharing`, where other metrics might use the same media."""
    return _SHARED.get() is not None


def shared(key: Hashable, make: Callable[[], T]) -> T:
    """Return the cached value for ``key``, or create and cache the value. Outside :func:`sharing`, values aren't cached."""
    kept = _SHARED.get()
    if kept is None:
        return make()
    if key not in kept:
        kept[key] = make()
    found: T = kept[key]
    return found
