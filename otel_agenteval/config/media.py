"""Section ``media``: which images, audio and videos are opened for metrics, and their limits."""

from __future__ import annotations

import re
from typing import Annotated, Any

from ..media.rules import Rules
from .section import Section, options_of
from .transcriber import TranscriberOptions
from .types import Before, Count, Duration, Kind, Size, Switch

_HOST = re.compile(r"(\*\.)?[a-z0-9]([a-z0-9.-]*[a-z0-9])?(:[0-9]{1,5})?|\[[0-9a-f:]+\](:[0-9]{1,5})?")
_BUCKET = re.compile(r"(s3|gs|gcs|abfs|az|adl|oss)://[^\s/]+(/\S*)?")


def _hosts(value: Any) -> Any:
    items = _listed(value)
    if items is None or not all(_HOST.fullmatch(item.lower()) for item in items):
        raise ValueError("must be a list of hosts. Examples: cdn.example.com, *.example.com, media.example.com:8443")
    return tuple(item.lower() for item in items)


def _folders(value: Any) -> Any:
    items = _listed(value)
    if items is None or not all(item.startswith("/") or re.match(r"[A-Za-z]:[\\/]", item) for item in items):
        raise ValueError("must be a list of absolute paths of folders")
    return items


def _buckets(value: Any) -> Any:
    items = _listed(value)
    if items is None or not all(map(_BUCKET.fullmatch, items)):
        raise ValueError("must be a list of prefixes of object store addresses. Examples: s3://recordings/2026/, gs://calls")
    return items


def _listed(value: Any) -> tuple[str, ...] | None:
    items = (value,) if isinstance(value, str) else value
    found = isinstance(items, (list, tuple)) and all(isinstance(item, str) and item for item in items)
    return tuple(items) if found else None


class MediaOptions(Section):
    """Access to the images, audio and videos of a turn. Media inside a turn are always opened. Media at an address are opened only if an option allows it."""

    hosts: Annotated[tuple[str, ...], Before(_hosts), Kind("list of hosts")] = ()
    """Hosts from which media are fetched (``cdn.example.com``, ``*.example.com``, ``media.example.com:8443``). Addresses at other hosts are sent to the judge unopened."""
    folders: Annotated[tuple[str, ...], Before(_folders), Kind("list of folders")] = ()
    """Folders whose files can be opened by ``file:`` addresses."""
    buckets: Annotated[tuple[str, ...], Before(_buckets), Kind("list of addresses in object stores")] = ()
    """Prefixes of object store addresses that are opened (``s3://recordings/``). Requires the extra ``[fsspec]`` and the package of the store."""
    private_addresses: Switch = False
    """Allow hosts in a private network or on this machine."""
    max_bytes: Size = Rules.max_bytes
    """Maximum bytes of one image, audio or video."""
    max_pixels: Count = Rules.max_pixels
    """Maximum pixels of one image or video frame."""
    max_edge: Count = Rules.max_edge
    """Maximum pixels of the longer side of an image for a judge. Larger images are scaled down."""
    fetch_timeout: Duration = Rules.fetch_timeout
    """Maximum seconds to fetch one file."""
    decode_timeout: Duration = Rules.decode_timeout
    """Maximum seconds to decode audio or a video. After that, only the decoded beginning is measured."""
    decode_memory: Size = Rules.decode_memory
    """Maximum memory of a process that decodes audio or a video."""
    decode_total: Size = Rules.decode_total
    """Maximum memory of all concurrent decoding processes. Others wait. One process always runs."""
    transcriber: TranscriberOptions = TranscriberOptions()

    def rules(self) -> Rules:
        """Return the access rules for metrics. Raises ValueError if the transcriber is incomplete."""
        given = {name: getattr(self, name) for name in options_of(MediaOptions) if name != "transcriber"}
        return Rules(**given, transcription=self.transcriber.wanted(), hears=not self.transcriber.instead_of_sound)
